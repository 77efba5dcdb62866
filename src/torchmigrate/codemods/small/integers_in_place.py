"""TM131 and TM132: integer tensors that are changed in place by what gives floats.

`x += 0.5` and `x /= 2` are not uses of a name, so the rules walk the statements of the file. Where a
tensor surely holds integers, every true division of it raises, and so does what is done with a float.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.variants import rule_for_symbol
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Edit, Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced
from torchmigrate.semantics.facts.dtypes import INTEGER, NUMBER, ValueFacts
from torchmigrate.semantics.flow.domain import OPEN, UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.steps import EACH, Path
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.source.trees import has_effects
from torchmigrate.versions.range import applicability, severity

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "__iadd__",
    ast.Sub: "__isub__",
    ast.Mult: "__imul__",
    ast.Mod: "__imod__",
    ast.FloorDiv: "__ifloordiv__",
    ast.Div: "__itruediv__",
}
_INT, _FLOAT = "int", "float"
_FLOATS = frozenset(["floating"])
_INTEGER, _NUMBER = frozenset([INTEGER]), frozenset([NUMBER])
# What dropped the fraction of a number until it began to raise, so that a whole number is the same there.
_DROPPED = frozenset(["__iadd__", "__isub__", "__imul__", "add_", "sub_", "mul_", "clamp_"])


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every method and every statement that the rule is about."""
    if rule.name == "integer-in-place-division":
        yield from file.fixes.findings(hits)
    else:
        for hit in hits:
            if hit.use.call is None:
                continue
            given = [*hit.use.call.args, *(item.value for item in hit.use.call.keywords)]
            floats = [item for item in given if _is_float(item, file)]
            if floats:
                method = hit.symbol.rpartition(".")[2]
                fix = _whole(hit.rule, file, method, floats) if file.fixes.may_fix(hit) else None
                yield file.fixes.finding(hit, fix)
    yield from _statements(rule, file)


def _is_float(node: ast.expr, file: FileContext) -> bool:
    """Whether an expression is surely a float, or a tensor of floats."""
    return _numbers(file).is_only(node, _FLOAT) or "floating" in file.facts.of(node, _FLOATS)


def _numbers(file: FileContext) -> _Numbers:
    return file.once(_Numbers, lambda: _Numbers(file.flow, file.facts))


def _statements(rule: Rule, file: FileContext) -> Iterator[Finding]:
    # Both rules look at the same statements.
    for node in file.once(_augmented, lambda: list(_augmented(file))):
        method = _OPERATORS.get(node.op.__class__)
        symbol = f"torch.Tensor.{method}"
        if method is None or symbol not in rule.symbols:
            continue
        if file.runs_elsewhere(node):
            continue
        own = rule_for_symbol(rule, symbol)
        if severity(own, file.versions) is None:
            continue
        if isinstance(node.op, ast.Div):
            fix = _rounded(own, file, node)
        elif _is_float(node.value, file):
            fix = _whole(own, file, method, [node.value])
        else:
            continue
        yield finding_at(own, file, file.source.span(node), symbol=symbol, fix=fix)


def _augmented(file: FileContext) -> Iterator[ast.AugAssign]:
    """The augmented assignments to integer tensors, and to parts of them."""
    for binding in file.names.bindings:
        node = binding.statement
        if not isinstance(node, ast.AugAssign) or binding.node is not node.target:
            continue
        if not isinstance(node.target, ast.Name) or not _may_matter(node):
            continue
        if INTEGER in file.facts.of(node.target, _INTEGER):
            yield node
    for part, _, fstring in file.names.operations:
        if not isinstance(part, ast.Subscript) or not isinstance(part.ctx, ast.Store) or fstring is not None:
            continue
        around = file.names.parents.get(part)
        if not isinstance(around, ast.AugAssign) or not _may_matter(around):
            continue
        if INTEGER in file.facts.of(part.value, _INTEGER):
            yield around


def _may_matter(node: ast.AugAssign) -> bool:
    """Whether a statement is about floats, unless what it is given is something else: most add integers."""
    if isinstance(node.op, ast.Div):
        return True
    value = node.value
    return node.op.__class__ in _OPERATORS and not (
        isinstance(value, ast.Constant) and not isinstance(value.value, float)
    )


class _Numbers(Domain[str]):
    """Numbers of Python: integers, floats, or one of both.

    Args:
        facts: what is a number, whichever.
    """

    def __init__(self, flow: ValueFlow, facts: ValueFacts) -> None:
        super().__init__(flow)
        self._facts = facts

    def start(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Constant):
            return {int: _INT, float: _FLOAT}.get(type(node.value))
        called = self.flow.builtin(node.func) if isinstance(node, ast.Call) else None
        if called in ("int", "float"):
            return called
        return _INT if isinstance(node, ast.expr) and self._facts.is_size(node) else None

    def through(self, node: ast.AST) -> Values[str]:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return self.of(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            both = self._number(node.left) | self._number(node.right)
            if both & {UNKNOWN, OPEN}:
                return frozenset([UNKNOWN])
            if isinstance(node.op, ast.Div):
                return frozenset([_FLOAT])
            only = [self.is_only(side, _FLOAT) for side in (node.left, node.right)]
            return frozenset([_FLOAT]) if any(only) else both
        return frozenset([UNKNOWN])

    def part(self, node: ast.AST, path: Path) -> Values[str]:
        counts = isinstance(node, ast.Call) and self.flow.builtin(node.func) == "range" and path == (EACH,)
        return frozenset([_INT if counts else UNKNOWN])

    def _number(self, node: ast.expr) -> Values[str]:
        known = self.of(node)
        is_number = bool(known & {UNKNOWN, OPEN}) and NUMBER in self._facts.of(node, _NUMBER)
        return frozenset([NUMBER]) if is_number else known


def _whole(rule: Rule, file: FileContext, method: str, floats: Sequence[ast.expr]) -> Fix | None:
    """The fix that writes whole numbers as integers; None where a number is none, or is computed."""
    edits: list[Edit] = []
    for node in floats:
        number = node.operand if isinstance(node, ast.UnaryOp) else node
        if method not in _DROPPED or not isinstance(number, ast.Constant):
            return None
        value = number.value
        if not isinstance(value, float) or not value.is_integer() or value > 2**31:
            return None
        edits.append(replaced(file.source, number, code("$number", number=str(int(value)))))
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    return file.fixes.fix(rule, "Write the number as an integer", level, reasons, edits)


# ---- divisions ----------------------------------------------------------------------------------------


def _rounded(rule: Rule, file: FileContext, node: ast.AugAssign) -> Fix | None:
    """The fix that divides as before torch 1.6; None where the divisor may be a float."""
    if not _numbers(file).is_only(node.value, _INT) and INTEGER not in file.facts.of(node.value, _INTEGER):
        return None
    if isinstance(node.target, ast.Name):
        new = code("$target.div_($value, rounding_mode='trunc')", target=node.target, value=node.value)
    elif isinstance(node.target, ast.Subscript) and not has_effects(node.target):
        # An index that is a tensor gives a copy, which is written back.
        new = code(
            "$target = $again.div($value, rounding_mode='trunc')",
            target=node.target,
            again=node.target,
            value=node.value,
        )
    else:
        return None
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    rewriting = file.rewriting()
    rewriting.replace_node(node, new)
    return file.fixes.fix(rule, "Divide with `rounding_mode='trunc'`", level, reasons, rewriting.edits())
