"""Findings of codemods that look at the file themselves, without a hit of the rule's symbols."""

from __future__ import annotations

from collections.abc import Mapping

from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.pages import url_of
from torchmigrate.findings import Applicability, Edit, Finding, Fix, Obstacle, Reason
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.fix_maker import fill
from torchmigrate.versions.range import applicability, severity, timeline


def finding_at(
    rule: Rule,
    file: FileContext,
    span: tuple[int, int],
    *,
    symbol: str,
    fix: Fix | None,
    variables: Mapping[str, str] | None = None,
    seen: bool = False,
) -> Finding:
    """What a rule says of the text in `span`.

    Args:
        symbol: the qualified name that it stands for.
        variables: of the rule's texts; None: those of the symbol.
        seen: only a recording shows that the rule is about it.
    """
    level = severity(rule, file.versions)
    assert level is not None, "rules that say nothing at the target are not run"
    variables = rule.symbols.get(symbol, {}) if variables is None else variables
    return Finding(
        code=rule.code,
        name=rule.name,
        message=fill(rule.summary, symbol, variables),
        severity=level,
        start=span[0],
        end=span[1],
        help=fill(rule.advice, symbol, variables) if rule.advice else None,
        fix=fix,
        url=url_of(rule),
        symbol=symbol,
        timeline=timeline(rule, file.versions),
        seen=seen,
    )


def safety(rule: Rule, file: FileContext, *, seen: bool) -> tuple[Applicability, tuple[Reason, ...]]:
    """How safe a fix is, as the rule says, and why it is not safe. seen: as in `finding_at`."""
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    if seen and level is Applicability.SAFE:
        return Applicability.UNSAFE, (Reason(Obstacle.EVIDENCE, "the types of the objects"),)
    return level, reasons


def fix_by(rule: Rule, file: FileContext, title: str, *edits: Edit) -> Fix:
    """A fix of some edits, as safe as the rule says."""
    level, reason = applicability(rule.cases[0], rule, file.versions)
    return file.fixes.fix(rule, title, level, reason, edits)
