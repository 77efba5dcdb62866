"""TM082: `view` of what an operation makes of a transposed tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import renamed
from torchmigrate.semantics.flow.domain import OPEN, UNKNOWN, Domain, Values

_TURNED, _MADE = "turned", "made"  # a transposed view, and what an operation makes of one
_TURN = frozenset(["t", "transpose", "permute"])
_COMPARE = frozenset("eq ne lt gt le ge".split())
_KEEP = frozenset("float long int byte bool double half type to cuda cpu detach".split())


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `view` that flattens such a result."""
    made = file.once(_Turned, lambda: _Turned(file.flow))
    for call in file.names.nodes(ast.Call):
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr != "view" or not _flattens(call):
            continue
        if file.flow.classes.owner_of(function.value) is None and made.is_surely(function.value, _MADE):
            edit = renamed(file.source, function, "view", "reshape")
            fix = fix_by(rule, file, "Replace with `reshape`", edit) if edit is not None else None
            yield finding_at(rule, file, file.source.span(call), symbol="torch.Tensor.view", fix=fix)


def _flattens(call: ast.Call) -> bool:
    """Whether it is `.view(-1)`."""
    (only,) = call.args if len(call.args) == 1 and not call.keywords else (None,)
    return isinstance(only, ast.UnaryOp) and isinstance(only.op, ast.USub) and _is_one(only.operand)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


class _Turned(Domain[str]):
    """What is a transposed view, or has its order of dimensions in memory."""

    def start(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TURN:
            name = self.flow.names.qualified(node.func)
            return _TURNED if not name or name.startswith("torch.") else None
        return None

    def through(self, node: ast.AST) -> Values[str]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _COMPARE and len(node.args) == 1:
                return self._made(node.func.value)
            if node.func.attr in _KEEP:
                return self.of(node.func.value)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._made(node.left)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self.of(node.value)
        return frozenset([UNKNOWN])

    def _made(self, node: ast.AST) -> Values[str]:
        """What an operation makes, which takes the order of its first operand."""
        known = {_TURNED: _MADE, _MADE: _MADE}
        return frozenset(
            each if each is OPEN else known.get(each, UNKNOWN) if isinstance(each, str) else UNKNOWN
            for each in self.of(node)
        )
