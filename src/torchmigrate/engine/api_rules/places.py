"""Which uses count, which are reported elsewhere, and where a finding about them points."""

from __future__ import annotations

import ast
from functools import cached_property

from torchmigrate.engine.api_rules.api import Point
from torchmigrate.match.rule_matches import is_guarded
from torchmigrate.patterns import pattern
from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.formulas import TryGuard
from torchmigrate.semantics.guards.formulas import (
    MISSING_IMPORT,
    MISSING_NAME,
    Arguments,
    Missing,
    any_outwards,
    caught_by,
    ends_in_error,
    is_about,
)
from torchmigrate.semantics.model import BindingKind, Guards, Role, SemanticModel, Use, Via
from torchmigrate.semantics.values.objects import TENSOR
from torchmigrate.source.text import Source

# What a handler must catch so that a missing name, or an argument that is not taken, does no harm.
NAME_ERRORS = Missing(MISSING_IMPORT.named | MISSING_NAME.named, MISSING_IMPORT.broad)
ARGUMENT_ERRORS = Missing(frozenset(), MISSING_IMPORT.broad | {"TypeError"})
_PARAMETERS = pattern(r"signature|param|args|argspec|varnames")
INIT = "__init__"
_CATCHING = frozenset("catch_warnings warns deprecated_call assertWarns assertWarnsRegex".split())
_WHOLE = (Role.IMPORT, Role.STRING)  # where names are written from their first part on


def name_of(use: Use) -> str | None:
    """The one library name that a use surely is; None where it may be something else."""
    if len(use.candidates) != 1:
        return None
    (name,) = use.candidates
    if use.binding is not None and use.binding.type_checking:
        return None
    if use.method:
        return name if use.sure else None
    if use.role in _WHOLE or (use.via is Via.GETATTR and isinstance(use.node, ast.Call)):
        return name
    return name if use.sure else None


def calls_constructor(use: Use) -> bool:
    """Whether a use is `super().__init__`, or `__init__` of another object."""
    return use.method and use.attribute_path == INIT


def may_have_more(use: Use, name: str) -> bool:
    """Whether an object may have members, or methods parameters, that its class lacks.

    Objects may be given attributes, and what is known of the class of an object may be one of its bases.
    """
    return use.method and (use.call is None or not name.startswith(f"{TENSOR}."))


def is_load(use: Use) -> bool:
    """Whether a use is looked at, not set or deleted."""
    return not isinstance(use.node, ast.Attribute) or isinstance(use.node.ctx, ast.Load)


def base_of(use: Use, name: str) -> str:
    """The part of a name that is bound, and was looked at, somewhere else: `torch.nn` of `nn.Linear`."""
    if use.role in _WHOLE:
        return ""
    if use.method or isinstance(use.node, ast.Call):  # getattr(torch.nn, "Linear")
        return name.rpartition(".")[0]
    return name[: -len(use.attribute_path) - 1] if use.attribute_path else name


class Surrounding:
    """What one file does elsewhere that bears on its uses."""

    def __init__(self, names: SemanticModel, source: Source) -> None:
        self.names = names
        self.source = source
        self.around = FileFacts(names)

    @cached_property
    def imported(self) -> frozenset[str]:
        """The modules of every `import a.b.c`: names that they lack are reported there."""
        return frozenset(
            binding.module
            for binding in self.names.bindings
            if binding.module and binding.kind is BindingKind.IMPORT and binding.target == binding.name
        )

    def imports(self, name: str) -> bool:
        """Whether the file has an `import` of this module or one below it, by its full name."""
        return any(f"{module}.".startswith(f"{name}.") for module in self.imported)

    @cached_property
    def assigned(self) -> frozenset[str]:
        """Last parts of the attributes that the file sets on anything but `self`."""
        found: set[str] = set()
        for node in self.names.nodes(ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if isinstance(node.ctx, ast.Store) and not own:
                found.add(node.attr)
        for call in self.names.nodes(ast.Call):
            if len(call.args) >= 2:
                name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
                second = call.args[1]
                if name == "setattr" and isinstance(second, ast.Constant) and isinstance(second.value, str):
                    found.add(second.value)
        for item in self.names.nodes(ast.Subscript):
            if isinstance(item.ctx, ast.Store):
                key = item.slice  # sys.modules["torch.foo"] = ...
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    found.add(key.value)
        return frozenset(found)

    @cached_property
    def asked_for(self) -> frozenset[str]:
        """Parameters that the file looks for: `"dim" in inspect.signature(f).parameters`, or in a helper."""
        return frozenset(
            node.left.value
            for node in self.names.nodes(ast.Compare)
            if isinstance(node.left, ast.Constant)
            and isinstance(node.left.value, str)
            and isinstance(node.ops[0], (ast.In, ast.NotIn))
            and _PARAMETERS.search(ast.unparse(node.comparators[0]))
        )

    def patches(self, name: str) -> bool:
        """Whether the file itself may put something there."""
        return name in self.assigned or name.rpartition(".")[2] in self.assigned

    def may_create(self, use: Use) -> bool:
        """Whether a string is given to something that does not need the name: `patch(..., create=True)`."""
        call = self.around.parent(use.node, use.statement) if use.role is Role.STRING else None
        return isinstance(call, ast.Call) and any(
            keyword.arg in ("create", "raising") for keyword in call.keywords
        )

    def is_chosen(self, use: Use) -> bool:
        """Whether an unknown flag picks this place and not another.

        `if self.fused: new() else: old()`: such a flag mostly says what the installed release has.
        """
        inner: ast.AST = use.statement
        parents = self.names.parents
        while inner in parents:
            outer = parents[inner]
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
                return False
            if isinstance(outer, ast.If) and outer.orelse and _is_flag(outer.test):
                return True
            inner = outer
        return False

    def catches_warnings(self, use: Use) -> bool:
        """Whether a use stands where its warnings are caught: `with warnings.catch_warnings():`."""
        inner: ast.AST = use.statement
        parents = self.names.parents
        while True:
            if isinstance(inner, (ast.With, ast.AsyncWith)) and any(map(_is_catching, inner.items)):
                return True
            if inner not in parents or isinstance(inner, (ast.ClassDef, ast.Module)):
                return False
            inner = parents[inner]

    # ---- places --------------------------------------------------------------------------------------

    def span(self, use: Use, name: str, prefix: str) -> tuple[int, int]:
        """Where the prefix of a use's name is written; the whole use if that is unknown."""
        beyond = name[len(prefix) :]
        if use.role is Role.IMPORT:
            return self._span_of_import(use, prefix)
        if use.role is Role.STRING or use.in_fstring:
            return use.start, use.end
        if use.in_string:
            return use.start, use.end - len(beyond)
        node = use.node
        for _ in range(beyond.count(".")):
            if not isinstance(node, ast.Attribute):
                return use.start, use.end
            node = node.value
        return self.span_of(node)

    def span_of(self, node: ast.AST) -> tuple[int, int]:
        """Offsets of an expression or argument."""
        return self.source.span(node)  # type: ignore[arg-type]  # these have positions

    def _span_of_import(self, use: Use, prefix: str) -> tuple[int, int]:
        text, statement = self.source.text, use.statement
        if isinstance(statement, ast.Import):
            start = use.start
        elif imports_from(use, prefix):
            assert isinstance(statement, ast.ImportFrom), "what else is imported from"
            start = text.find(statement.module or "", self.source.span(statement)[0] + len("from"))
        else:
            return use.start, use.end
        found = text.startswith(prefix, start)
        return (start, start + len(prefix)) if found else (use.start, use.end)


def imports_from(use: Use, prefix: str) -> bool:
    """Whether a `from ... import` imports something from a missing module: reported once for the
    statement."""
    statement = use.statement
    return (
        isinstance(statement, ast.ImportFrom)
        and use.role is Role.IMPORT
        and f"{statement.module}.".startswith(f"{prefix}.")
    )


def _is_catching(item: ast.withitem) -> bool:
    """`warnings.catch_warnings()`, `pytest.warns(...)`, `self.assertWarns(...)`."""
    call = item.context_expr
    function = call.func if isinstance(call, ast.Call) else None
    word = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return word in _CATCHING


def _is_flag(test: ast.expr) -> bool:
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.Call):
        return not (test.args or test.keywords)
    return isinstance(test, (ast.Name, ast.Attribute))


# ---- guards -----------------------------------------------------------------------------------------


def is_handled_at(
    use: Use,
    name: str,
    old: tuple[str, ...],
    point: Point,
    missing: Missing,
    *,
    is_known: bool = False,
    arguments: Arguments | None = None,
) -> bool:
    """Whether the code takes care of what a release lacks: a test, or a `try` with another way.

    is_known: a handler of any error, or one that only raises another, is enough; its author knows of the
        releases without.
    arguments: where only the arguments of a call are outdated.
    """
    if is_guarded(use, name, target=point.version, old=old, new=(), exists=point.exists, arguments=arguments):
        return True

    def has_way_out(guard: Guards) -> bool:
        attempt = guard.attempt
        return attempt is not None and _has_way_out(attempt, guard.part, point, missing, is_known)

    return any_outwards(use.guards, ("way out", id(point), missing, is_known), has_way_out)


def _has_way_out(attempt: TryGuard, part: str, point: Point, missing: Missing, is_known: bool) -> bool:
    if part == "body":
        if is_known:
            caught = frozenset().union(*map(caught_by, attempt.node.handlers))
            return bool(caught & (missing.named | missing.broad))
        return any(
            is_about(attempt, handler, missing) and not ends_in_error(handler.body)
            for handler in attempt.node.handlers
        )
    if part == "handler":  # which does not run, unless the body surely fails
        used = attempt.names.get("body", set()) | attempt.names.get("else", set())
        return all(point.missing(name) is None for name in used)
    return False
