"""TM904: checkpoints whose keys start with `_orig_mod.`, since a compiled model's state dict is saved.

`model.compile()` in place of `model = torch.compile(model)` gives back the keys of the model itself, at every
place at once and also where compiling is optional; `model._orig_mod.state_dict()` would have to be written at
each of them, and fails where the model was not compiled.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.words import Words
from torchmigrate.codemods.compile.compiled import WRAPPERS as _WRAPPERS
from torchmigrate.codemods.compile.compiled import (
    Compiled,
    compiled_models,
    is_taken_over,
    last_value,
    uses_by_node,
)
from torchmigrate.findings import Edit, Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.lines import logical_line
from torchmigrate.rewrite.nodes import has_comment, unassigned
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import children, last_name, walk
from torchmigrate.versions.range import applicability, required

# Who writes one of these knows of the prefix.
_MOST = 16  # models of a file that are followed: for each, all that may use it is looked through
_KNOWN = Words("_orig_mod", "OptimizedModule")
_SAVE = pattern(r"(?:^|_)save(?:_|$)|^save")
_SAME = frozenset("to cuda cpu train eval float half double bfloat16 requires_grad_ apply".split())
_ALIASED = "`{other}` is the plain model, which `{model}.compile()` would change: save `{other}`"
_ELSEWHERE = "save the original model: `{model}.state_dict()` has the plain keys"
_KEPT = "compile in place: `{model}.compile(...)` (torch 2.1), and then `{target} = {model}`"
_FORWARD = "call `{target}(...)` instead of its `forward`, which is not compiled, then compile in place"
_UNCLEAR = "compile in place (`{target}.compile(...)`, torch 2.1), or save `{target}._orig_mod.state_dict()`"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding at every state dict that is saved with the prefix; those of one model share their fix."""
    if not hits or _KNOWN.are_in(file.source.text) or is_taken_over(file.names):
        return
    parents = file.names.parents
    groups: dict[tuple[int, str], list[Compiled]] = {}
    for item in compiled_models(hits):
        region = _region(item, parents)
        if region is not None:
            groups.setdefault((id(region), ast.unparse(item.target)), []).append(item)
    reported: set[int] = set()  # a function may save several models
    for (_, target), group in itertools.islice(groups.items(), _MOST):
        region = _region(group[0], parents)
        assert region is not None, "only those with a region are in a group"
        saved = _Saved(group, region, parents, file).calls()
        if not saved:
            continue
        made = _fix(rule, group, region, file)
        for call in saved:
            if id(call) in reported and isinstance(made, str):
                continue
            reported.add(id(call))
            fix = made if isinstance(made, Fix) else None
            span = file.source.span(call)
            finding = finding_at(rule, file, span, symbol=ast.unparse(call.func), fix=fix)
            yield replace(finding, help=made if isinstance(made, str) else _UNCLEAR.format(target=target))


def _region(item: Compiled, parents: dict[ast.AST, ast.AST]) -> ast.AST | None:
    """What may use the compiled model: the scope of a variable, the class of an attribute of `self`."""
    if isinstance(item.target, ast.Name):
        scope = item.hit.use.scope
        if item.target.id in scope.globals or item.target.id in scope.nonlocals:
            return None
        return scope.node if scope.kind in ("function", "module") else None
    if not isinstance(item.target.value, ast.Name) or item.target.value.id != "self":
        return None
    node: ast.AST | None = item.statement
    while node is not None and not isinstance(node, ast.ClassDef):
        node = parents.get(node)
    return node


class _Saved:
    """The calls of `state_dict` of one compiled model whose value goes into a file."""

    def __init__(
        self,
        group: list[Compiled],
        region: ast.AST,
        parents: dict[ast.AST, ast.AST],
        file: FileContext,
    ) -> None:
        self.group = group
        self.first = min(group, key=lambda item: item.statement.lineno)
        self.target = ast.unparse(self.first.target)
        self.region = region
        self.parents = parents
        self.scopes = {id(scope.node): scope for scope in file.names.scopes}
        self.module = file.names.tree
        self.known = uses_by_node(file.names)
        self.local = isinstance(self.first.target, ast.Name)

    def calls(self) -> list[ast.Call]:
        holders = self._holders()
        if not holders:
            return []
        found = []
        for node in self._nodes():
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "state_dict"
                and ast.unparse(node.func.value) in holders
                and (not self.local or node.lineno > self.first.statement.lineno)
                and self._is_saved(node)
            ):
                found.append(node)
        found += self._in_functions(holders)
        return sorted(found, key=lambda call: (call.lineno, call.col_offset))

    def _in_functions(self, holders: set[str]) -> Iterator[ast.Call]:
        """Those in functions of the file that are given the compiled model."""
        seen: set[tuple[int, str]] = set()
        for node in self._nodes():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            function = self._defined(node.func.id)
            if function is None or (self.local and node.lineno < self.first.statement.lineno):
                continue
            for name in _parameters_given(node, function, holders):
                if (id(function), name) not in seen and not _assigns(function, name):
                    seen.add((id(function), name))
                    yield from self._in_function(function, name)

    def _defined(self, name: str) -> ast.FunctionDef | None:
        """The function of the module that a name is, if it is one alone."""
        bound = self.scopes[id(self.module)].bindings.get(name, ())
        node = bound[0].node if len(bound) == 1 else None
        return node if isinstance(node, ast.FunctionDef) and not node.decorator_list else None

    def _in_function(self, function: ast.FunctionDef, name: str) -> Iterator[ast.Call]:
        """The calls in one function, for the parameter that holds the model or its wrapper."""
        holders = {name}
        for node in walk(function):
            if (
                isinstance(node, ast.Assign)
                and len(node.targets) == 1
                and self._is_one_of(node.value, {name, f"{name}.module"})
            ):
                holders.add(ast.unparse(node.targets[0]))
        for node in walk(function):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "state_dict"
                and ast.unparse(node.func.value) in holders
                and self._is_saved(node)
            ):
                yield node

    def _nodes(self) -> Iterator[ast.AST]:
        """The nodes of the region that see the same variable."""
        todo = [self.region]
        name = self.first.target.id if isinstance(self.first.target, ast.Name) else ""
        while todo:
            node = todo.pop()
            inner = self.scopes.get(id(node))
            if name and node is not self.region and inner is not None and inner.bindings.get(name):
                continue
            yield node
            todo += children(node)

    def _holders(self) -> set[str]:
        """The expressions that are the compiled model, or the wrapper around it; empty: not known."""
        compiled = {id(item.statement) for item in self.group}
        holders = {self.target}
        inside = self.target  # the compiled model inside of a wrapper
        assigned = [node for node in self._nodes() if isinstance(node, ast.Assign)]
        for node in sorted(assigned, key=lambda item: item.lineno):
            if id(node) in compiled or len(node.targets) != 1:
                continue
            if self.local and node.lineno < self.first.statement.lineno:
                continue
            name = ast.unparse(node.targets[0])
            if self._wraps(node.value):
                holders |= {name, f"{name}.module"}
                inside = f"{name}.module"
            elif self._is_one_of(node.value, {self.target, inside} & holders):
                if name != self.target:
                    holders.add(name)
            elif name == self.target and self.local and not self._keeps(node.value):
                return set()  # another model
        if self.local and self._bound_otherwise():
            return set()
        return holders

    def _wraps(self, value: ast.expr) -> bool:
        """`DistributedDataParallel(model)` of the compiled model."""
        return (
            isinstance(value, ast.Call)
            and self.known.get(id(value.func)) in _WRAPPERS
            and bool(value.args)
            and ast.unparse(value.args[0]) == self.target
        )

    def _is_one_of(self, value: ast.expr, wanted: set[str]) -> bool:
        """`model`, or `model.module if wrapped else model`."""
        if isinstance(value, ast.IfExp):
            return self._is_one_of(value.body, wanted) or self._is_one_of(value.orelse, wanted)
        return ast.unparse(value) in wanted

    def _keeps(self, value: ast.expr) -> bool:
        """`model.to(device)`, which gives the same object."""
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr not in _SAME:
                return False
            value = value.func.value
        return ast.unparse(value) == self.target

    def _bound_otherwise(self) -> bool:
        """Whether something but assignments binds the variable after the call: a loop, `with`, `del`."""
        assert isinstance(self.first.target, ast.Name), "only called for variables"
        scope = self.first.hit.use.scope
        return any(
            binding.statement is not None
            and binding.statement.lineno > self.first.statement.lineno
            and not (isinstance(binding.statement, ast.Assign) and binding.node in binding.statement.targets)
            for binding in scope.bindings.get(self.first.target.id, ())
        )

    def _is_saved(self, node: ast.AST) -> bool:
        """Whether a value is an argument of something that saves, directly, in a container or in a
        variable."""
        outer = self.parents.get(node)
        while isinstance(outer, (ast.Dict, ast.Tuple, ast.List, ast.keyword, ast.IfExp)) or (
            isinstance(outer, ast.Call) and last_name(outer.func) in ("dict", "OrderedDict")
        ):
            node, outer = outer, self.parents.get(outer)
        if isinstance(outer, ast.Call):
            return outer.func is not node and _SAVE.search(last_name(outer.func)) is not None
        if not isinstance(outer, ast.Assign) or len(outer.targets) != 1:
            return False
        target = outer.targets[0]
        if isinstance(target, ast.Subscript):
            target = target.value
        return isinstance(target, ast.Name) and any(
            isinstance(call, ast.Call)
            and _SAVE.search(last_name(call.func)) is not None
            and any(isinstance(item, ast.Name) and item.id == target.id for item in _given(call))
            for call in walk(self._function(outer))
        )

    def _function(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            node = self.parents[node]
        return node


def _parameters_given(call: ast.Call, function: ast.FunctionDef, values: set[str]) -> Iterator[str]:
    """The parameters of a function that a call gives one of some expressions."""
    names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    for name, argument in zip(names, call.args, strict=False):
        if isinstance(argument, ast.Starred):
            return
        if ast.unparse(argument) in values:
            yield name
    known = {*names, *(item.arg for item in function.args.kwonlyargs)}
    for keyword in call.keywords:
        if keyword.arg in known and ast.unparse(keyword.value) in values:
            yield keyword.arg


def _assigns(function: ast.FunctionDef, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        for node in walk(function)
    )


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


# ---- the fix ------------------------------------------------------------------------------------------


def _fix(rule: Rule, group: list[Compiled], region: ast.AST, file: FileContext) -> Fix | str:
    """Compile in place, everywhere in the group; or what is in the way, and what to write."""
    edits: list[Edit] = []
    target = ast.unparse(group[0].target)
    if any(
        isinstance(node, ast.Attribute) and node.attr == "forward" and ast.unparse(node.value) == target
        for node in walk(region)
    ):
        return _FORWARD.format(target=target)
    for item in group:
        model = ast.unparse(item.model)
        if model != target:
            text = _ELSEWHERE if isinstance(item.target, ast.Name) else _KEPT
            simple = isinstance(item.model, (ast.Name, ast.Attribute))
            return (text if simple else _UNCLEAR).format(model=model, target=target)
        other = _alias(item, region)
        if other is not None:
            return _ALIASED.format(other=other, model=target)
        made = _in_place(item, file) if file.fixes.may_fix(item.hit) else None
        if made is None or not _is_model(item.model, item.statement, item.hit.use.scope):
            return _UNCLEAR.format(target=target)
        edits += made
    level, reason = applicability(rule.cases[0], rule, file.versions)
    title = f"Compile `{target}` in place, which keeps the keys of its state dict"
    return file.fixes.fix(rule, title, level, reason, edits, requires=required(rule.cases[0], rule))


def _alias(item: Compiled, region: ast.AST) -> str | None:
    """Another variable that was given the model before it was compiled."""
    model = ast.unparse(item.model)
    for node in walk(region):
        if isinstance(node, ast.Assign) and node.lineno < item.statement.lineno:
            for target in node.targets:
                if isinstance(target, (ast.Name, ast.Attribute)) and ast.unparse(node.value) == model:
                    return ast.unparse(target)
    return None


def _is_model(model: ast.expr, statement: ast.stmt, scope: Scope) -> bool:
    """Whether nothing says that the variable holds something but a module: a lambda, a function."""
    value = last_value(model, statement, scope) if isinstance(model, ast.Name) else None
    return not isinstance(value, ast.Lambda)


def _in_place(item: Compiled, file: FileContext) -> tuple[Edit, ...] | None:
    """`model.compile(mode="max-autotune")` for `model = torch.compile(model, mode="max-autotune")`."""
    source, call = file.source, item.call
    use = item.hit.use
    if not any(statement is item.statement for statement in use.block):
        return None
    line = logical_line(source, use.block, item.statement)
    rest = [keyword for keyword in call.keywords if keyword.value is not item.model]
    editor = CallEditor(source, call)
    editor.call_instead(code("$model.compile", model=item.target))
    editor.keep(rest)
    edits = editor.edits()
    if line.indent is None or edits is None or has_comment(source, item.statement, *rest[:1]):
        return None
    return (unassigned(source, item.statement), *edits)
