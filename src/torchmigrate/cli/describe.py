"""Rules as text for people and programs: `explain` and `rules`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.config.torchfix_codes import CODES, RELEASED
from torchmigrate.findings import Applicability
from torchmigrate.report.rule_texts import generic
from torchmigrate.report.style import Style, printable
from torchmigrate.versions.range import VersionRange, applicability, severity
from torchmigrate.versions.releases import Version, parse_version

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example
    from torchmigrate.cli.session import Session

_WIDTH = 100
_STATUS = ("outdated", "deprecated", "changed", "removed")
_MOST_SYMBOLS = 40  # that `explain` lists


def versions(rule: Rule) -> str:
    """ "deprecated in 1.9, removed in 2.0", the oldest first."""
    known = [(status, version) for status in _STATUS if (version := getattr(rule, status))]
    return ", ".join(f"{status} in {version}" for status, version in sorted(known, key=_by_version))


def _by_version(known: tuple[str, str]) -> Version:
    return parse_version(known[1])


def fix_level(rule: Rule) -> str:
    """The best that the rule can do: "safe", "unsafe", "advice" (its own code, not applied) or "none"."""
    levels = [case.applicability for case in rule.cases]
    if not levels:
        return "rewrite" if rule.codemod else "none"
    return {Applicability.DISPLAY: "advice"}.get(max(levels), max(levels).label)


def fix_level_in(rule: Rule, span: VersionRange) -> str:
    """The same for a range: what its target lacks is "advice", what its minimum lacks is unsafe."""
    levels = [applicability(case, rule, span)[0] for case in rule.cases]
    if not levels:
        return fix_level(rule)
    return {Applicability.DISPLAY: "advice"}.get(max(levels), max(levels).label)


def _severity(rule: Rule, span: VersionRange) -> str | None:
    """How bad a finding is at the target; None: the rule is not about a release, or says nothing there."""
    level = severity(rule, span) if versions(rule) else None
    return None if level is None else level.label


def _told(rules: Iterable[Rule], span: VersionRange | None) -> list[Rule]:
    """Rules in order of code, without those that say nothing in the range."""
    return [
        rule
        for rule in sorted(rules, key=lambda rule: rule.code)
        if span is None or not versions(rule) or _severity(rule, span) is not None
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
            *([] if span is None else [_severity(rule, span) or ""]),
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
            **{status: getattr(rule, status) for status in _STATUS},
            "symbols": list(rule.symbols),
            "modules": list(rule.modules),
            **({} if span is None else {"severity": _severity(rule, span)}),
            "fix": fix_level(rule) if span is None else fix_level_in(rule, span),
            "opt_in": rule.opt_in,
            "advice": None if rule.advice is None else generic(rule, rule.advice),
            "references": list(rule.references),
        }
        for rule in _told(rules, span)
    ]
    return json.dumps(table, indent=2) + "\n"


# ---- explain ------------------------------------------------------------------------------------------


def explained(key: str, session: Session, span: VersionRange | None = None) -> str:
    """What `explain` prints for a rule by code, name or what it finds, or for a code of TorchFix.

    For the beginning of codes, such as TM21, that is the table of these rules.
    Raises click.ClickException, with a suggestion, if there is none.
    """
    from torchmigrate.cli.session import examples

    style = session.console.style
    if key.upper() in CODES:
        return torchfix_explanation(key.upper(), session.rules, style)
    begun = _beginning_with(key.upper(), session.rules)
    if begun:
        return rules_table(begun, style, None, span)
    rule = session.rule(key)
    return explanation(rule, examples(rule), style, span)


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
    about = f"{rule.library}: {versions(rule)}" if versions(rule) else ""
    if rule.opt_in:
        about += "\nOff unless selected." if about else "Off unless selected."
    if about:
        parts.append(about)
    if span is not None and versions(rule):
        parts.append(_in_range(rule, span))

    def section(title: str, text: str) -> None:
        if text:
            parts.append(f"{style.heading(title)}\n{textwrap.indent(text, '  ')}")

    section("Why", _wrap(rule.why))
    section("What it finds", _symbols(rule))
    section("What the fix does", "\n".join(_fixes(rule)))
    for example in examples:
        if example.kind == "fix":
            note = (
                f" ({example.applicability.label})" if example.applicability is not Applicability.SAFE else ""
            )
            section(f"Before{note}", example.before.rstrip())
            section("After", (example.after or "").rstrip())
    kept = [example.before.rstrip() for example in examples if example.kind == "report-only"]
    section("Found, but not fixed", "\n\n".join(kept))
    if rule.advice:
        section("By hand", _wrap(generic(rule, rule.advice)))
    section("Links", "\n".join(rule.references))
    section("How to suppress it", f"# torchmigrate: ignore[{rule.code}] reason")
    return "\n\n".join(parts) + "\n"


def _in_range(rule: Rule, span: VersionRange) -> str:
    """ "On torch 2.6, with torch 1.8 as the minimum: error; the fix is unsafe."."""
    where = f"On torch {span.target}"
    if span.minimum is not None:
        where += f", with torch {span.minimum} as the minimum"
    level = _severity(rule, span)
    if level is None:
        if severity(rule, VersionRange(span.target)) is None:
            return f"{where}: no finding yet."
        return f"{where}: no finding, because both releases have the change."
    fix = {
        "none": "there is no fix",
        "advice": "the fix is only displayed",
        "rewrite": "the fix depends on the code",
    }
    best = fix_level_in(rule, span)
    return f"{where}: {level}; {fix.get(best, f'the fix is {best}')}."


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


def _symbols(rule: Rule) -> str:
    lines = []
    for names in (rule.symbols, {name: {"new": new} if new else {} for name, new in rule.modules.items()}):
        for name, variables in names.items():
            new = variables.get("new")
            lines.append(f"{name} -> {new}" if new else name)
    rest = len(lines) - _MOST_SYMBOLS
    if rest > 1:
        lines = [*lines[:_MOST_SYMBOLS], f"... and {rest} more"]
    if rule.parameters:
        lines.append(f"only with {_names(rule.parameters)}")
    if rule.only_in_patterns:
        lines += [f"only as {case.pattern}" for case in rule.cases if case.pattern]
    if rule.missing:
        lines.append(f"only without {_names(rule.missing)}")
    return "\n".join(lines)


def _names(names: Sequence[str]) -> str:
    return " or ".join(f"`{name}=`" for name in names)


def _fixes(rule: Rule) -> list[str]:
    """How safe each way to rewrite is, and why; equal ones once."""
    if not rule.cases:
        return ["It changes several places together."] if rule.codemod else ["Nothing: the rule has no fix."]
    lines = []
    for case in rule.cases:
        text = _safety(case, rule)
        if case.title:
            text += f": {generic(rule, case.title)}"
        if case.reason:
            text += f" ({case.reason})" if case.title else f": {case.reason}"
        lines.append(_wrap(printable(text), 2))
    return list(dict.fromkeys(lines))


def _safety(case: Case, rule: Rule) -> str:
    level = case.applicability.label
    if case.requires is None:
        return level
    needs = case.requires if " " in case.requires else f"{rule.library} {case.requires}"
    if case.applicability is Applicability.SAFE:
        return f"safe; unsafe if the code must also run on a release before {needs}"
    return f"{level}, needs {needs}"


def _wrap(text: str, hanging: int = 0) -> str:
    return textwrap.fill(
        text,
        _WIDTH - 2,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
