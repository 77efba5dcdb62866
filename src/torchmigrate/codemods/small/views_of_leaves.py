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
from torchmigrate.codemods.base.operations import Reader, is_self
from torchmigrate.findings import Applicability, Finding, Fix, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.placing import use_at
from torchmigrate.rewrite.statements import Crowded
from torchmigrate.semantics.facts.dtypes import NUMBER, ValueFacts
from torchmigrate.semantics.flow.mentions import blocks
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NO_GRAD = "torch.no_grad"
_RECORDED = because("the values that are written get no gradients")

_VIEWS = frozenset(
    "view view_as t transpose permute narrow select squeeze unsqueeze diagonal chunk split unbind".split()
)  # which never copy
_PARAMETERS = frozenset(["torch.nn.Parameter", "torch.nn.parameter.Parameter"])
_FACTORIES = frozenset(
    f"torch.{name}" for name in "zeros ones empty full rand randn tensor eye linspace arange".split()
)
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding "
        "EmbeddingBag LayerNorm RNN LSTM GRU RNNCell LSTMCell GRUCell"
    ).split()
)
_LAYER_PARAMETERS = pattern(r"(weight|bias)(_(ih|hh)(_l\d+(_reverse)?)?)?")
# What may turn the recording of gradients off, or the need of parameters for them, by parts of its name.
_SWITCHES = ("set_grad_enabled", "grad_mode", "inference_mode", "freeze")
_STILL_LAYER = frozenset("cuda cpu to float double half train eval".split())


class _Write(Struct, frozen=True):
    """A statement that writes into `view`, with the values that it writes."""

    statement: ast.stmt
    view: ast.expr
    values: tuple[ast.expr, ...]


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every write that is sure to raise."""
    look = _Look(file)
    for function, block, scope in look.blocks():
        found = [(index, look.write(item, function, scope)) for index, item in enumerate(block)]
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
    if not all(look.is_constant(value, scope) for write in writes for value in write.values):
        level, reasons = Applicability.UNSAFE, (*reasons, *_RECORDED)
    title = "Write under `torch.no_grad()`"
    return file.fixes.fix(rule, title, level, reasons, (*edits, *spelling.edits))


class _Look:
    """What is known of one file."""

    def __init__(self, file: FileContext) -> None:
        self.file = file
        self._unrecorded: set[str] | None = None

    @cached_property
    def reader(self) -> Reader:
        """What the values of attributes are."""
        return self.file.once(Reader, lambda: Reader(self.file.names))

    @cached_property
    def facts(self) -> ValueFacts:
        """What is a number."""
        return self.file.once(ValueFacts, lambda: ValueFacts(self.file.names, self.file.around))

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Node -> the one around it."""
        return self.file.names.parents

    def blocks(self) -> Iterator[tuple[_Function | None, list[ast.stmt], Scope]]:
        """The blocks of statements in which gradients are recorded, as far as the function shows."""
        for scope in self.file.names.scopes:
            node = scope.node
            if isinstance(node, _Function):
                if not node.decorator_list and scope.parent is not None and scope.parent.kind != "function":
                    yield from ((node, block, scope) for block in _recorded(node.body))
            elif scope.kind == "module":
                yield from ((None, block, scope) for block in _recorded(self.file.tree.body))

    def write(self, statement: ast.stmt, function: _Function | None, scope: Scope) -> _Write | None:
        """A statement as a write that is sure to raise; None: it is not, or it is not certain."""
        write = _as_write(statement)
        if write is None:
            return None
        leaf = self._peeled(write.view, scope)
        if leaf is None or leaf is write.view or not self._needs_gradient(leaf, statement, function, scope):
            return None
        return None if self.switches or self._is_unrecorded(function) else write

    def is_constant(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a value that is written surely needs no gradient."""
        if isinstance(node, ast.Attribute) and node.attr == "data":
            return True
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
                return True
            plain = all(item.arg not in (None, "requires_grad") for item in node.keywords)
            return self.reader.qualified(node.func) in _FACTORIES and plain
        if isinstance(node, (ast.Constant, ast.Slice)):
            return True
        return NUMBER in self.facts.of(node, scope)

    # ---- what is written to ------------------------------------------------------------------------

    def _peeled(self, node: ast.expr, scope: Scope) -> ast.expr | None:
        """What an expression is a view of; None where it may be a copy."""
        while True:
            if isinstance(node, ast.Subscript):
                if not self._is_basic(node.slice, scope):
                    return None
                node = node.value
            elif isinstance(node, ast.Call):
                if not isinstance(node.func, ast.Attribute) or node.func.attr not in _VIEWS:
                    return None
                node = node.func.value
            elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
                node = node.value
            else:
                return node

    def _is_basic(self, index: ast.expr, scope: Scope) -> bool:
        """Whether an index gives a view: integers, slices, `None` and `...`."""
        for item in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(item, ast.Slice):
                continue
            if isinstance(item, ast.Constant) and (item.value is None or item.value is ...):
                continue
            if isinstance(item, ast.Constant) and type(item.value) is not int:
                return False
            if NUMBER not in self.facts.of(item, scope) and not _is_counted(item, scope):
                return False
        return True

    def _needs_gradient(
        self, leaf: ast.expr, statement: ast.stmt, function: _Function | None, scope: Scope
    ) -> bool:
        if isinstance(leaf, ast.Attribute) and not is_self(leaf.value):
            if not _LAYER_PARAMETERS.fullmatch(leaf.attr) or self._sets(leaf.attr, scope):
                return False
            made = self._made(leaf.value, statement, function, scope)
            return made is not None and self._is_layer(made)
        made = self._made(leaf, statement, function, scope)
        return made is not None and self._is_leaf(made)

    def _made(
        self, node: ast.expr, statement: ast.stmt, function: _Function | None, scope: Scope
    ) -> ast.expr | None:
        """The one value of a variable of this function, or of an attribute of the object that is made."""
        if isinstance(node, ast.Name):
            bindings = scope.bindings.get(node.id, [])
            made = bindings[0].statement if len(bindings) == 1 else None
            if not isinstance(made, ast.Assign) or made.targets != [bindings[0].node]:
                return None
            return made.value if not bindings[0].conditional and _is_before(made, statement) else None
        if not isinstance(node, ast.Attribute) or not is_self(node.value):
            return None
        owner = self.parents.get(function) if function is not None else None
        if function is None or function.name != "__init__" or not isinstance(owner, ast.ClassDef):
            return None
        value = self.reader.layers(owner).sole(node.attr)
        if value is None or not _is_before(value, statement):
            return None
        around = self.parents.get(value)
        in_line = isinstance(around, ast.Assign) and any(around is item for item in function.body)
        return value if in_line else None

    def _sets(self, name: str, scope: Scope) -> bool:
        """Whether the function sets an attribute of this name anywhere."""
        return any(
            isinstance(item, ast.Attribute) and item.attr == name and not isinstance(item.ctx, ast.Load)
            for item in walk(scope.node)
        )

    def _is_leaf(self, node: ast.expr) -> bool:
        """Whether an expression makes a leaf that needs a gradient."""
        if not isinstance(node, ast.Call):
            return False
        name = self.reader.qualified(node.func)
        given = {item.arg: item.value for item in node.keywords}
        if None in given or any(isinstance(item, ast.Starred) for item in node.args):
            return False
        needs = given.get("requires_grad")
        stated = isinstance(needs, ast.Constant) and needs.value is True
        if name in _PARAMETERS:
            return len(node.args) < 2 and (needs is None or stated)
        if name in _FACTORIES:
            return stated
        if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            inner = node.func.value
            made = isinstance(inner, ast.Call) and self.reader.qualified(inner.func) in _FACTORIES
            return made and not node.args and not node.keywords
        return False

    def _is_layer(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if self.reader.qualified(node.func) in _LAYERS:
                return True
            if node.func.attr not in _STILL_LAYER:
                return False
            node = node.func.value
        return isinstance(node, ast.Call) and self.reader.qualified(node.func) in _LAYERS

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


def _is_counted(node: ast.expr, scope: Scope) -> bool:
    """Whether a name is nothing but the variable of a loop over `range(...)`."""
    bindings = scope.bindings.get(node.id, []) if isinstance(node, ast.Name) else []
    loop = bindings[0].statement if len(bindings) == 1 else None
    if not isinstance(loop, ast.For) or loop.target is not bindings[0].node:
        return False
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    return isinstance(called, ast.Name) and called.id == "range"


def _is_before(node: ast.expr | ast.stmt, other: ast.stmt) -> bool:
    return (node.lineno, node.col_offset) < (other.lineno, other.col_offset)


def _names_in(node: ast.AST) -> set[str]:
    return {
        item.id if isinstance(item, ast.Name) else item.attr
        for item in walk(node)
        if isinstance(item, (ast.Name, ast.Attribute))
    }
