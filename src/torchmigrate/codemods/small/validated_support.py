"""TM444: code that relies on `log_prob` of values outside of the support, which raises an error."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.matching import given_by, signature_of
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.source.trees import walk

_TESTS = frozenset(f"torch.{name}" for name in ("isfinite", "isinf", "isneginf"))
_COUNTS = frozenset(
    f"torch.distributions.{name}"
    for name in ("Poisson", "Geometric", "Binomial", "Bernoulli", "NegativeBinomial")
)
_MOST = 16  # expressions that a distribution, or a probability, goes to


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every distribution whose `log_prob` is tested for infinity, or gets no counts."""
    forward = Forward(file.flow)
    for hit in hits:
        call = hit.use.call
        if (
            call is None
            or given_by(signature_of(rule, hit.symbol), hit.use).state("validate_args") != "absent"
        ):
            continue
        if any(_relies(item, hit.symbol, forward, file) for item in _probabilities(call, forward, file)):
            yield from file.fixes.findings([hit])


def _reached(node: ast.AST, forward: Forward) -> list[ast.AST]:
    """An expression, and those that its value goes to."""
    seen = [node]
    for place in seen:
        if len(seen) < _MOST:
            seen += [item for item in forward.of(place) if item not in seen]
    return seen


def _probabilities(call: ast.Call, forward: Forward, file: FileContext) -> Iterator[ast.Call]:
    """The calls of `log_prob` of a distribution."""
    for place in _reached(call, forward):
        outer = file.names.parents.get(place)
        used = file.names.parents.get(outer) if isinstance(outer, ast.Attribute) else None
        if isinstance(outer, ast.Attribute) and outer.attr == "log_prob" and isinstance(used, ast.Call):
            yield used


def _relies(call: ast.Call, symbol: str, forward: Forward, file: FileContext) -> bool:
    """Whether a probability is tested for infinity, or the value has fractions where only counts have one."""
    if symbol in _COUNTS and call.args and _has_fraction(call.args[0], file):
        return True
    return any(_is_tested(place, file) for place in _reached(call, forward))


def _is_tested(node: ast.AST, file: FileContext) -> bool:
    outer = file.names.parents.get(node)
    if isinstance(outer, ast.Call) and node in outer.args:
        return file.names.qualified(outer.func) in _TESTS
    if isinstance(outer, ast.Attribute):
        return f"torch.{outer.attr}" in _TESTS
    if isinstance(outer, ast.Compare) and len(outer.ops) == 1:
        other = outer.comparators[0] if outer.left is node else outer.left
        return any(
            isinstance(item, ast.Constant) and str(item.value).lstrip("-") in ("inf", "infinity")
            for item in walk(other)
        ) or any(isinstance(item, ast.Attribute) and item.attr == "inf" for item in walk(other))
    return False


def _has_fraction(node: ast.expr, file: FileContext) -> bool:
    """Whether a tensor is written out with a fraction."""
    made = file.flow.only_origin(node)
    return (
        isinstance(made, ast.Call)
        and file.names.qualified(made.func) in ("torch.tensor", "torch.Tensor", "torch.FloatTensor")
        and bool(made.args)
        and any(
            isinstance(item, ast.Constant) and type(item.value) is float and not item.value.is_integer()
            for item in walk(made.args[0])
        )
    )
