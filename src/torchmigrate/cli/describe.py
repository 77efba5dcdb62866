"""Rules as text for people and programs: `explain` and `rules`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.pages import has_page, page_of, url_of
from torchmigrate.config.torchfix_codes import CODES, RELEASED
from torchmigrate.printing import printable
from torchmigrate.report.explanation import (
    MOST_SYMBOLS,
    STATUS,
    about,
    fix_level,
    fix_level_in,
    in_range,
    sections,
    severity_in,
    versions,
)
from torchmigrate.report.rule_texts import generic
from torchmigrate.report.style import Style
from torchmigrate.versions.range import VersionRange

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example
    from torchmigrate.cli.session import Session

_WIDTH = 100


def _told(rules: Iterable[Rule], span: VersionRange | None) -> list[Rule]:
    """Rules in order of code, without those that say nothing in the range."""
    return [
        rule
        for rule in sorted(rules, key=lambda rule: rule.code)
        if span is None or not versions(rule) or severity_in(rule, span) is not None
    ]


# ---- rules --------------------------------------------------------------------------------------------


def rules_table(
    rules: Iterable[Rule], style: Style, width: int | None, span: VersionRange | None = None
) -> str:
    """One line for each rule. width: columns of the terminal, where the last column is cut.

    span: only the rules that say something in this range, and what that is.
    """
    rows = [
        (
            rule.code,
            rule.name,
            f"{rule.library}: {versions(rule)}" if versions(rule) else rule.library,
            *([] if span is None else [severity_in(rule, span) or ""]),
            fix_level(rule) if span is None else fix_level_in(rule, span),
            generic(rule, rule.summary) + (" (off unless selected)" if rule.opt_in else ""),
        )
        for rule in _told(rules, span)
    ]
    heads = ("CODE", "NAME", "VERSIONS", *([] if span is None else ["SEVERITY"]), "FIX", "SUMMARY")
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads) - 1)]
    lines = []
    for row in (heads, *rows):
        cells = [f"{cell:{size}}" for cell, size in zip(row, widths, strict=False)]
        room = None if width is None else max(20, width - sum(widths) - 2 * len(widths))
        last = row[-1] if room is None or len(row[-1]) <= room else row[-1][: room - 1] + "…"
        line = "  ".join([*cells, last]).rstrip()
        lines.append(style.bold(line) if row is heads else line)
    return "\n".join(lines) + "\n"


def rules_json(rules: Iterable[Rule], span: VersionRange | None = None) -> str:
    """A list of objects, one for each rule. span: as in `rules_table`."""
    import json

    table = [
        {
            "code": rule.code,
            "name": rule.name,
            "summary": generic(rule, rule.summary),
            "why": rule.why,
            "library": rule.library,
            **{status: getattr(rule, status) for status in STATUS},
            "symbols": list(rule.symbols),
            "modules": list(rule.modules),
            **({} if span is None else {"severity": severity_in(rule, span)}),
            "fix": fix_level(rule) if span is None else fix_level_in(rule, span),
            "opt_in": rule.opt_in,
            "advice": None if rule.advice is None else generic(rule, rule.advice),
            "url": url_of(rule),
            "references": list(rule.references),
        }
        for rule in _told(rules, span)
    ]
    return json.dumps(table, indent=2) + "\n"


# ---- explain ------------------------------------------------------------------------------------------


def explained(key: str, session: Session, span: VersionRange | None = None) -> str:
    """What `explain` prints for a rule by code, name or what it finds, or for a code of TorchFix.

    For the beginning of codes, such as TM21, and for what several rules are about, that is their table.
    Raises click.ClickException, with a suggestion, if there is none.
    """
    from torchmigrate.cli.session import examples

    style = session.console.style
    if key.upper() in CODES:
        return torchfix_explanation(key.upper(), session.rules, style)
    begun = _beginning_with(key.upper(), session.rules)
    if begun:
        return rules_table(begun, style, None, span)
    found = session.rules_about(key)
    if len(found) > 1:
        return rules_table(found, style, None, span)
    return explanation(found[0], examples(found[0]), style, span)


def _beginning_with(prefix: str, rules: Sequence[Rule]) -> list[Rule]:
    """The rules whose codes a prefix such as TM2 or TM21 stands for; none for a whole code."""
    from torchmigrate.config.selection import SelectorError, codes_of

    keys = {key for rule in rules for key in (rule.code, rule.name.upper())}
    if prefix in keys or prefix == "ALL" or prefix.startswith("TOR"):
        return []
    try:
        codes = codes_of(prefix, rules)[1]
    except SelectorError:
        return []
    return [rule for rule in rules if rule.code in codes]


def explanation(
    rule: Rule, examples: Sequence[Example], style: Style, span: VersionRange | None = None
) -> str:
    """Everything about a rule; with `span`, also what it comes to in this range of releases."""
    parts = [f"{style.heading(rule.code)} {style.bold(rule.name)}\n\n{_wrap(generic(rule, rule.summary))}"]
    if about(rule):
        parts.append("\n".join(about(rule)))
    if span is not None and versions(rule):
        parts.append(in_range(rule, span))
    for section in sections(rule, examples, MOST_SYMBOLS):
        text = "\n".join(
            [
                *([_wrap(section.prose)] if section.prose else []),
                *section.names,
                *(_wrap(printable(line), 2) for line in section.lines),
                *([section.code] if section.code else []),
            ]
        )
        parts.append(f"{style.heading(section.title)}\n{textwrap.indent(text, '  ')}")
    if has_page(rule):
        parts.append(f"Documentation: {page_of(rule.code)}")
    return "\n\n".join(parts) + "\n"


def torchfix_explanation(code: str, rules: Iterable[Rule], style: Style) -> str:
    """Which rules stand for a code of TorchFix, which must be one."""
    entry = CODES[code]
    origin = f"TorchFix {entry.since}" if entry.since == RELEASED else "TorchFix, not yet in a release"
    mine = sorted((rule for rule in rules if rule.code in entry.ours), key=lambda rule: rule.code)
    size = max((len(rule.name) for rule in mine), default=0)
    lines = []
    for rule in mine:
        off = " (off unless selected)" if rule.opt_in else ""
        lines.append(_wrap(f"{rule.code}  {rule.name:{size}}  {generic(rule, rule.summary)}{off}", size + 9))
    reported = [f"{what} -> {', '.join(codes)}" for what, codes in entry.rules.items()]
    use = f"`# noqa: {code}` suppresses these rules, and `--select {code}` selects them."
    parts = [f"{style.heading(code)} {style.bold(entry.summary)}", f"{origin}."]
    for title, text in (("Rule in torchmigrate", lines), ("What it finds", reported), ("In use", [use])):
        parts.append(style.heading(title) + "\n" + textwrap.indent("\n".join(text), "  "))
    return "\n\n".join(parts) + "\n"


def _wrap(text: str, hanging: int = 0) -> str:
    return textwrap.fill(
        text,
        _WIDTH - 2,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
