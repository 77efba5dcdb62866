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
from torchmigrate.semantics.model import Guards, Scope
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
_INTEGER, _NUMBER = frozenset([INTEGER]), frozenset([NUMBER])
# What dropped the fraction of a number until it began to raise, so that a whole number is the same there.
_DROPPED = frozenset(["__iadd__", "__isub__", "__imul__", "add_", "sub_", "mul_", "clamp_"])


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every method and every statement that the rule is about."""
    facts = file.once(ValueFacts, lambda: ValueFacts(file.names, file.around))
    if rule.name == "integer-in-place-division":
        yield from file.fixes.findings(hits)
    else:
        for hit in hits:
            if hit.use.call is None:
                continue
            given = [*hit.use.call.args, *(item.value for item in hit.use.call.keywords)]
            floats = [item for item in given if _is_float(item, hit.use.scope, facts)]
            if floats:
                method = hit.symbol.rpartition(".")[2]
                fix = _whole(hit.rule, file, method, floats) if file.fixes.may_fix(hit) else None
                yield file.fixes.finding(hit, fix)
    yield from _statements(rule, file, facts)


def _statements(rule: Rule, file: FileContext, facts: ValueFacts) -> Iterator[Finding]:
    # Both rules look at the same statements.
    for node, scope, guards in file.once(_augmented, lambda: list(_augmented(file, facts))):
        method = _OPERATORS.get(node.op.__class__)
        symbol = f"torch.Tensor.{method}"
        if method is None or symbol not in rule.symbols:
            continue
        if file.runs_elsewhere(guards):
            continue
        own = rule_for_symbol(rule, symbol)
        if severity(own, file.versions) is None:
            continue
        if isinstance(node.op, ast.Div):
            fix = _rounded(own, file, node, scope, facts)
        elif _is_float(node.value, scope, facts):
            fix = _whole(own, file, method, [node.value])
        else:
            continue
        yield finding_at(own, file, file.source.span(node), symbol=symbol, fix=fix)


def _augmented(file: FileContext, facts: ValueFacts) -> Iterator[tuple[ast.AugAssign, Scope, Guards]]:
    """The augmented assignments to integer tensors, and to parts of them."""
    for binding in file.names.bindings:
        node = binding.statement
        if not isinstance(node, ast.AugAssign) or binding.node is not node.target:
            continue
        if isinstance(node.target, ast.Name) and INTEGER in facts.of(node.target, binding.scope, _INTEGER):
            yield node, binding.scope, binding.guards
    for part, scope, guards, fstring in file.names.operations:
        if not isinstance(part, ast.Subscript) or not isinstance(part.ctx, ast.Store) or fstring is not None:
            continue
        if INTEGER in facts.of(part.value, scope, _INTEGER):
            around = file.names.parents.get(part)
            if isinstance(around, ast.AugAssign):
                yield around, scope, guards


# ---- what is surely a float ---------------------------------------------------------------------------


def _is_float(node: ast.expr, scope: Scope, facts: ValueFacts) -> bool:
    """Whether an expression is surely a float of Python: `0.5`, `-1.0`, `1 / n`, `float(x)`."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.USub, ast.UAdd)) and _is_float(node.operand, scope, facts)
    if isinstance(node, ast.BinOp):
        left, right = node.left, node.right
        numbers = NUMBER in facts.of(left, scope, _NUMBER) and NUMBER in facts.of(right, scope, _NUMBER)
        if isinstance(node.op, ast.Div):
            return numbers
        arithmetic = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))
        return arithmetic and numbers and (_is_float(left, scope, facts) or _is_float(right, scope, facts))
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "float"
        and "float" not in facts.names.module.bindings
    )


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


def _rounded(
    rule: Rule, file: FileContext, node: ast.AugAssign, scope: Scope, facts: ValueFacts
) -> Fix | None:
    """The fix that divides as before torch 1.6; None where the divisor may be a float."""
    if not _is_integer(node.value, scope, facts):
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


def _is_integer(node: ast.expr, scope: Scope, facts: ValueFacts) -> bool:
    """Whether an expression is surely an integer of Python, or a tensor of integers."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("len", "int"):
        return node.func.id not in facts.names.module.bindings
    found = facts.of(node, scope, _INTEGER)
    if INTEGER in found:
        return True
    last = (
        node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else None
    )
    sizes = isinstance(last, ast.Attribute) and last.attr in ("size", "shape", "numel", "dim", "nelement")
    return sizes and NUMBER in found
