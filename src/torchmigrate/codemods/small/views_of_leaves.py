"""TM361: writes into a part of a leaf that needs a gradient, such as a parameter, while these are recorded.

Only what is sure to raise is found: the leaf is made in the same function, or in the same `__init__`, and
nothing there, or around calls of it in the file, turns the recording off.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.in_place import changed_by_call
from torchmigrate.codemods.small.leaves import FACTORIES, MAKERS, VIEW, Leaves
from torchmigrate.findings import Applicability, Finding, Fix, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.placing import use_at
from torchmigrate.rewrite.statements import Crowded
from torchmigrate.semantics.facts.dtypes import NUMBER
from torchmigrate.semantics.flow.mentions import blocks
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEEPEST = 4  # calls from `__init__` to a method
_NO_GRAD = "torch.no_grad"
# Methods that set parameters before training, by their names; others may run in evaluation only.
_INITIALIZES = pattern(r"__init__|_*(init|initialize|reset)_(weights?|bias(es)?|parameters)")
_RECORDED = because("the values that are written get no gradients")

# What may turn the recording of gradients off, or the need of parameters for them, by parts of its name.
_SWITCHES = ("set_grad_enabled", "grad_mode", "inference_mode", "freeze")


class _Write(Struct, frozen=True):
    """A statement that writes into `view`, with the values that it writes."""

    statement: ast.stmt
    view: ast.expr
    values: tuple[ast.expr, ...]


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every write that is sure to raise."""
    look = _Look(file)
    if not look.has_leaves():
        return
    for function, block, scope in look.blocks():
        found = [(index, look.write(item, function)) for index, item in enumerate(block)]
        group: list[tuple[int, _Write]] = []
        for index, write in found:
            if group and (write is None or index != group[-1][0] + 1):
                yield from _findings(rule, file, look, block, scope, group)
                group = []
            if write is not None:
                group.append((index, write))
        if group:
            yield from _findings(rule, file, look, block, scope, group)


def _findings(
    rule: Rule,
    file: FileContext,
    look: _Look,
    block: list[ast.stmt],
    scope: Scope,
    group: Sequence[tuple[int, _Write]],
) -> Iterator[Finding]:
    """The findings of neighbours, which share a fix."""
    writes = [write for _, write in group]
    fix = _fix(rule, file, look, block, scope, writes)
    for write in writes:
        yield finding_at(rule, file, file.source.span(write.view), symbol="torch.nn.Parameter", fix=fix)


def _fix(
    rule: Rule,
    file: FileContext,
    look: _Look,
    block: list[ast.stmt],
    scope: Scope,
    writes: Sequence[_Write],
) -> Fix | None:
    first = writes[0].statement
    outer = getattr(scope.node, "body", block)
    spelling = file.imports.spell(_NO_GRAD, use_at(_NO_GRAD, first, [outer, block], scope, file))
    if isinstance(spelling, Refusal):
        return None
    rewriting = file.rewriting()
    try:
        rewriting.wrap([write.statement for write in writes], code("$manager()", manager=spelling.text))
        edits = rewriting.edits()
    except Crowded:
        return None
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    if not all(look.is_constant(value) for write in writes for value in write.values):
        level, reasons = Applicability.UNSAFE, (*reasons, *_RECORDED)
    title = "Write under `torch.no_grad()`"
    return file.fixes.fix(rule, title, level, reasons, (*edits, *spelling.edits))


class _Look:
    """What is known of one file."""

    def __init__(self, file: FileContext) -> None:
        self.file = file
        self._unrecorded: set[str] | None = None

    @cached_property
    def leaves(self) -> Leaves:
        """What is a leaf, and what is a view of one."""
        return Leaves(self.file.flow, self.file.facts)

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Node -> the one around it."""
        return self.file.names.parents

    def blocks(self) -> Iterator[tuple[_Function | None, list[ast.stmt], Scope]]:
        """The blocks of statements in which gradients are recorded, as far as the function shows."""
        for scope in self.file.names.scopes:
            node = scope.node
            if isinstance(node, _Function):
                outer = scope.parent
                if not node.decorator_list and outer and outer.kind != "function" and self._may_run(node):
                    yield from ((node, block, scope) for block in _recorded(node.body))
            elif scope.kind == "module":
                yield from ((None, block, scope) for block in _recorded(self.file.tree.body))

    def write(self, statement: ast.stmt, function: _Function | None) -> _Write | None:
        """A statement as a write that is sure to raise; None: it is not, or it is not certain."""
        write = _as_write(statement)
        if write is None or not self.leaves.is_surely(write.view, VIEW):
            return None
        return None if self._is_unrecorded(function) or not self._is_run(function) else write

    def has_leaves(self) -> bool:
        """Whether the file makes parameters or layers, and records gradients everywhere."""
        named = {name for use in self.file.names.uses for name in use.candidates}
        return not named.isdisjoint(MAKERS) and not self.switches

    def _may_run(self, function: _Function) -> bool:
        """Whether `_is_run` may say so, by the names that the file calls."""
        if _INITIALIZES.fullmatch(function.name) or not isinstance(self.parents.get(function), ast.ClassDef):
            return True
        called = self.file.flow.index.attributes(function.name)
        return any(isinstance(self.parents.get(item), ast.Call) for item in called)

    def _is_run(self, function: _Function | None, depth: int = 0) -> bool:
        """Whether a method surely runs while an object is made: others may run in evaluation only."""
        if function is None or _INITIALIZES.fullmatch(function.name):
            return True
        if not isinstance(self.parents.get(function), ast.ClassDef):
            return True
        calls = self.file.flow.calls_of(function)[0]
        makers = [self.file.flow.index.home_of(call) for call, _ in calls]
        return depth < _DEEPEST and any(
            isinstance(maker, _Function)
            and isinstance(self.parents.get(maker), ast.ClassDef)
            and self._is_run(maker, depth + 1)
            for maker in makers
        )

    def is_constant(self, node: ast.expr) -> bool:
        """Whether a value that is written surely needs no gradient."""
        if isinstance(node, ast.Attribute) and node.attr == "data":
            return True
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
                return True
            plain = all(item.arg not in (None, "requires_grad") for item in node.keywords)
            return self.file.around.qualified(node.func) in FACTORIES and plain
        if isinstance(node, (ast.Constant, ast.Slice)):
            return True
        return NUMBER in self.file.facts.of(node, frozenset([NUMBER]))

    # ---- whether gradients are recorded ------------------------------------------------------------

    @cached_property
    def switches(self) -> bool:
        """Whether the file turns the recording of gradients off anywhere, or that something needs them."""
        nodes = self.file.names.nodes
        names = {node.attr for node in nodes(ast.Attribute)} | {node.id for node in nodes(ast.Name)}
        names |= {node.arg or "" for node in nodes(ast.keyword)}
        if any(switch in name for name in names for switch in _SWITCHES):
            return True
        given = [item.value for item in nodes(ast.keyword) if item.arg == "requires_grad"]
        for call in nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
                given += [*call.args, *(item.value for item in call.keywords)]
        for statement in nodes(ast.Assign):
            targets = [item for target in statement.targets for item in walk(target)]
            if any(isinstance(item, ast.Attribute) and item.attr == "requires_grad" for item in targets):
                given.append(statement.value)
        return not all(isinstance(value, ast.Constant) and value.value is True for value in given)

    def _is_unrecorded(self, function: _Function | None) -> bool:
        """Whether the file mentions a function, or the class that it makes objects of, under `no_grad`."""
        if function is None:
            return False
        if self._unrecorded is None:
            self._unrecorded = set()
            for manager in self.file.names.nodes(ast.With):
                if any("grad" in ast.dump(item.context_expr) for item in manager.items):
                    self._unrecorded |= _names_in(manager)
            nodes = self.file.names.nodes
            functions: list[_Function] = [*nodes(ast.FunctionDef), *nodes(ast.AsyncFunctionDef)]
            for item in functions:
                if any("grad" in ast.dump(mark) for mark in item.decorator_list):
                    self._unrecorded |= _names_in(item)
        owner = self.parents.get(function)
        names = {function.name} if function.name != "__init__" else set()
        if isinstance(owner, ast.ClassDef):
            names.add(owner.name)
        return bool(names & self._unrecorded)


def _recorded(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """A block and those in it, without what is in a `with`, a `try`, or another function or class."""
    todo = [body]
    while todo:
        block = todo.pop()
        yield block
        for statement in block:
            if isinstance(statement, (ast.If, ast.For, ast.While)):
                todo.extend(blocks(statement))


def _as_write(statement: ast.stmt) -> _Write | None:
    """What a statement changes in place."""
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        if len(statement.targets) == 1 and isinstance(target, ast.Subscript):
            return _Write(statement, target, (statement.value,))
    elif isinstance(statement, ast.AugAssign):
        if isinstance(statement.target, ast.Subscript):
            return _Write(statement, statement.target, (statement.value,))
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        changed = changed_by_call(call)
        if changed is not None:
            return _Write(statement, changed, (*call.args, *(item.value for item in call.keywords)))
    return None


def _names_in(node: ast.AST) -> set[str]:
    return {
        item.id if isinstance(item, ast.Name) else item.attr
        for item in walk(node)
        if isinstance(item, (ast.Name, ast.Attribute))
    }
