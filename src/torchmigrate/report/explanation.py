"""What there is to say of a rule, for `explain` and for editors: the parts, without a layout."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.findings import Applicability
from torchmigrate.report.rule_texts import generic
from torchmigrate.report.style import printable
from torchmigrate.versions.range import VersionRange, applicability, severity
from torchmigrate.versions.releases import Version, parse_version

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example

STATUS = ("outdated", "deprecated", "changed", "removed")
_MOST_SYMBOLS = 40  # that are listed


class Form(enum.Enum):
    """How the lines of a section are to be laid out."""

    PROSE = "prose"  # a paragraph
    ITEMS = "items"  # sentences, one below the other
    NAMES = "names"  # of symbols, one a line
    LINKS = "links"  # one a line
    CODE = "code"


class Section(NamedTuple):
    """A part with a title of its own."""

    title: str
    form: Form
    lines: tuple[str, ...]


class Explanation(NamedTuple):
    """Everything about a rule.

    about: short statements, each a line. in_range: what the rule comes to in a range of releases; None: no
    range was given, or the rule is not about releases.
    """

    code: str
    name: str
    summary: str
    about: tuple[str, ...]
    in_range: str | None
    sections: tuple[Section, ...]


def explanation_of(rule: Rule, examples: Sequence[Example], span: VersionRange | None = None) -> Explanation:
    """What there is to say of a rule; with `span`, also what it comes to in this range of releases."""
    about = [f"{rule.library}: {versions(rule)}"] if versions(rule) else []
    if rule.opt_in:
        about.append("Off unless selected.")
    sections: list[Section] = []

    def section(title: str, form: Form, lines: Sequence[str]) -> None:
        if any(lines):
            sections.append(Section(title, form, tuple(lines)))

    section("Why", Form.PROSE, [rule.why])
    section("What is found", Form.NAMES, _symbols(rule))
    section("What the fix does", Form.ITEMS, _fixes(rule))
    for example in examples:
        if example.kind == "fix":
            note = (
                f" ({example.applicability.label})" if example.applicability is not Applicability.SAFE else ""
            )
            section(f"Before{note}", Form.CODE, [example.before.rstrip()])
            section("After", Form.CODE, [(example.after or "").rstrip()])
    kept = [example.before.rstrip() for example in examples if example.kind == "report-only"]
    section("Found, not rewritten", Form.CODE, ["\n\n".join(kept)])
    section("By hand", Form.PROSE, [generic(rule, rule.advice)] if rule.advice else [])
    section("Links", Form.LINKS, rule.references)
    section("To suppress it", Form.CODE, [f"# torchmigrate: ignore[{rule.code}] reason"])
    return Explanation(
        rule.code,
        rule.name,
        generic(rule, rule.summary),
        tuple(about),
        _in_range(rule, span) if span is not None and versions(rule) else None,
        tuple(sections),
    )


def examples_of(rule: Rule) -> Sequence[Example]:
    """The examples of a rule. Raises CatalogueError if its file is gone."""
    from torchmigrate.catalogue import store
    from torchmigrate.catalogue.builtin import EXAMPLES
    from torchmigrate.catalogue.examples import FIX, REPORT_ONLY, Example

    if rule.code in EXAMPLES:
        before, after = EXAMPLES[rule.code]
        return [Example(FIX if after else REPORT_ONLY, before, after)]
    return store.examples_of(rule)


def versions(rule: Rule) -> str:
    """ "deprecated in 1.9, removed in 2.0", the oldest first."""
    known = [(status, version) for status in STATUS if (version := getattr(rule, status))]
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


def severity_in(rule: Rule, span: VersionRange) -> str | None:
    """How bad a finding is at the target; None: the rule is not about a release, or says nothing there."""
    level = severity(rule, span) if versions(rule) else None
    return None if level is None else level.label


def _in_range(rule: Rule, span: VersionRange) -> str:
    """ "On torch 2.6, with torch 1.8 as the minimum: error; the fix is unsafe."."""
    where = f"On torch {span.target}"
    if span.minimum is not None:
        where += f", with torch {span.minimum} as the minimum"
    level = severity_in(rule, span)
    if level is None:
        if severity(rule, VersionRange(span.target)) is None:
            return f"{where}: nothing is reported yet."
        return f"{where}: nothing is reported, since both have the change."
    fix = {
        "none": "there is no fix",
        "advice": "the fix is only shown",
        "rewrite": "the fix depends on the code",
    }
    best = fix_level_in(rule, span)
    return f"{where}: {level}; {fix.get(best, f'the fix is {best}')}."


def _symbols(rule: Rule) -> list[str]:
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
    return lines


def _names(names: Sequence[str]) -> str:
    return " or ".join(f"`{name}=`" for name in names)


def _fixes(rule: Rule) -> list[str]:
    """How safe each way to rewrite is, and why; equal ones once."""
    if not rule.cases:
        return ["It rewrites several places together."] if rule.codemod else ["Nothing: it only reports."]
    lines = []
    for case in rule.cases:
        text = _safety(case, rule)
        if case.title:
            text += f": {generic(rule, case.title)}"
        if case.reason:
            text += f" ({case.reason})" if case.title else f": {case.reason}"
        lines.append(printable(text))
    return list(dict.fromkeys(lines))


def _safety(case: Case, rule: Rule) -> str:
    level = case.applicability.label
    if case.requires is None:
        return level
    needs = case.requires if " " in case.requires else f"{rule.library} {case.requires}"
    if case.applicability is Applicability.SAFE:
        return f"safe; unsafe where the code must also run on less than {needs}"
    return f"{level}, needs {needs}"
