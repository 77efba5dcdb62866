"""TM401, TM403 to TM405, TM408: classes that derive from one of torch, and no longer fit what that expects.

What a base class sets and reads changed: a constructor must be called, an attribute became read-only, another
is required. What it calls is the matter of `overrides`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.codemods.base.subclasses import Method, Subclass, self_of, subclass_of, subclasses_elsewhere
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.lines import add_line_before
from torchmigrate.rewrite.nodes import name_span
from torchmigrate.source.trees import walk

_INIT = "__init__"
# Where an object is made like another one, the constructor has nothing to do.
_COPIES = frozenset(["__dict__", "__setstate__", "__class__"])
# Methods of an optimizer that need what the constructor sets, and what; a subclass may have or set it itself.
_NEEDS_CONSTRUCTOR = {
    "zero_grad": "defaults",
    "state_dict": "_optimizer_state_dict_pre_hooks",
    "load_state_dict": "_optimizer_load_state_dict_pre_hooks",
}
_STEPS = ("step", "zero_grad")
_NEEDS_ANYWAY = "param_groups"  # without this, they have never worked
_PARTS = ("_call", "_inverse", "log_abs_det_jacobian")  # of a transform
_LOOKUPS = ("__getattr__", "__getattribute__")  # that may find it in another object

Span = tuple[int, int]


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every class that the rule is about."""
    look, mend = _LOOK[rule.name], _MEND.get(rule.name)
    for hit in hits:
        item = subclass_of(hit.use)
        if item is None:
            continue
        for span in look(item, file):
            fix = mend(hit, item, file) if mend is not None and file.fixes.may_fix(hit) else None
            yield finding_at(hit.rule, file, span, symbol=hit.symbol, fix=fix)
    if rule.name in _ELSEWHERE:
        for item, symbol in subclasses_elsewhere(rule.symbols, *_ELSEWHERE[rule.name], file):
            for span in look(item, file) if not file.runs_elsewhere(item.node) else ():
                yield finding_at(rule, file, span, symbol=symbol, fix=None)


# ---- the rules ------------------------------------------------------------------------------------------


def _constructor(item: Subclass, file: FileContext) -> Iterator[Span]:
    """An `__init__` that never calls the `__init__` of the base."""
    method = item.method(_INIT)
    if method is None or not item.sole or any(map(item.method, _LOOKUPS)):
        return
    if all(map(_does_nothing, map(item.method, _STEPS))):  # a stand-in where nothing is trained
        return
    own, inside = self_of(method), walk(method)
    if any(_hands_on(node, own, item) for node in inside):
        return
    needed = _NEEDS_CONSTRUCTOR.items()
    needs = any(_reaches_base(item, name) and not item.defines(what) for name, what in needed)
    if needs and item.defines(_NEEDS_ANYWAY):
        yield name_span(file.source, method)


def _reaches_base(item: Subclass, name: str) -> bool:
    """Whether a method is inherited from the base, or calls the base's method."""
    method = item.method(name)
    if method is None:
        return not item.defines(name)
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "super"
        for node in walk(method)
    )


def _constructed(hit: RuleMatch, item: Subclass, file: FileContext) -> Fix | None:
    """Construct a wrapper, which takes the groups of another optimizer as its own, like that one."""
    method = item.method(_INIT)
    own = self_of(method) if method is not None else None
    if method is None or own is None:
        return None
    name = _wrapped(method, own)
    body = method.body[1:] if ast.get_docstring(method, clean=False) is not None else method.body
    if name is None or not body:
        return None
    new = f"super().__init__({name}.param_groups, {name}.defaults)"
    edit = add_line_before(file.source, method.body, body[0], new)
    if edit is None:
        return None
    return fix_by(hit.rule, file, "Construct it like the wrapped optimizer", edit)


def _wrapped(method: Method, own: str) -> str | None:
    """The parameter whose groups a wrapper takes: `self.param_groups = optimizer.param_groups`."""
    stored = {
        node.id for node in walk(method) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    names = {argument.arg for argument in method.args.args} - {own} - stored
    kept: dict[str, str] = {}  # attributes that are parameters
    for node in method.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = _of_name(node.targets[0])
        if target is None or target[0] != own:
            continue
        if isinstance(node.value, ast.Name) and node.value.id in names:
            kept[target[1]] = node.value.id
        elif target[1] == "param_groups" and isinstance(node.value, ast.Attribute):
            if node.value.attr != "param_groups":
                return None
            root = node.value.value
            if isinstance(root, ast.Name):
                return root.id if root.id in names else None
            inner = _of_name(root)
            return kept.get(inner[1]) if inner is not None and inner[0] == own else None
    return None


def _of_name(node: ast.expr) -> tuple[str, str] | None:
    """The parts of `name.attribute`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id, node.attr
    return None


def _hands_on(node: ast.AST, own: str | None, item: Subclass) -> bool:
    """Whether a node leads to the constructor of the base, or takes all from another object."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
        return True
    if isinstance(node, ast.Attribute):
        return node.attr == _INIT or node.attr in _COPIES
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return any(isinstance(value, ast.Name) and value.id == own for value in node.args)
    return isinstance(node, ast.Raise) and node in _last(item.method(_INIT))


def _does_nothing(method: Method | None) -> bool:
    """Whether a method is there, and consists of constants and `pass`."""
    return method is not None and all(
        isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in method.body
    )


def _last(method: Method | None) -> list[ast.stmt]:
    return method.body[-1:] if method is not None else []


def _without_constraints(item: Subclass, file: FileContext) -> Iterator[Span]:
    """A distribution that hands on to the constructor, and does not say what its arguments may be."""
    method = item.method(_INIT)
    if not item.sole or method is None or item.defines("arg_constraints"):
        return
    calls = [node for node in walk(method) if isinstance(node, ast.Call) and _is_constructor(node.func)]
    if calls and not any(map(_may_refuse, calls)):
        yield name_span(file.source, item.node)


def _is_constructor(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == _INIT


def _may_refuse(call: ast.Call) -> bool:
    """Whether a call may say that nothing is validated."""
    return any(keyword.arg in (None, "validate_args") for keyword in call.keywords) or any(
        isinstance(value, ast.Starred) for value in call.args
    )


def _unwrapped(item: Subclass, file: FileContext) -> Iterator[Span]:
    """A tensor with `__torch_dispatch__` of its own and the default `__torch_function__`."""
    method = item.method("__torch_dispatch__")
    if method is not None and item.sole and not item.defines("__torch_function__"):
        yield name_span(file.source, method)


def _event_dim(item: Subclass, file: FileContext) -> Iterator[Span]:
    """`self.event_dim = ...`, which is a property of the base: it is read from `domain` and `codomain`."""
    if item.sole and not any(_binds(node, "event_dim") for node in item.node.body):
        yield from map(file.source.span, item.stores("event_dim"))


def _binds(node: ast.stmt, name: str) -> bool:
    if isinstance(node, (Method, ast.ClassDef)):
        return node.name == name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _without_domain(item: Subclass, file: FileContext) -> Iterator[Span]:
    """A transform that does not say between what it leads."""
    if item.sole and not all(map(item.defines, ("domain", "codomain"))) and any(map(item.method, _PARTS)):
        yield name_span(file.source, item.node)


_LOOK: dict[str, Callable[[Subclass, FileContext], Iterator[Span]]] = {
    "constructor-not-called": _constructor,
    "distribution-arg-constraints": _without_constraints,
    "tensor-subclass-wrapping": _unwrapped,
    "transform-event-dim": _event_dim,
    "transform-domain": _without_domain,
}
# Of classes derived from those of other files: what they name, and what the others must not name.
_ELSEWHERE = {
    "transform-event-dim": ("event_dim", "event_dim"),
    "transform-domain": ("log_abs_det_jacobian", "event_dim domain codomain"),
}
# Those that can be mended.
_MEND: dict[str, Callable[[RuleMatch, Subclass, FileContext], Fix | None]] = {
    "constructor-not-called": _constructed,
}
