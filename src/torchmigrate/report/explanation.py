"""The explanation of a rule as parts, without a layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchmigrate.findings import Applicability
from torchmigrate.report.rule_texts import generic
from torchmigrate.versions.range import VersionRange, applicability, severity
from torchmigrate.versions.releases import Version, parse_version

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example
    from torchmigrate.catalogue.model import Case, Rule

STATUS = ("outdated", "deprecated", "changed", "removed")
MOST_SYMBOLS = 40  # that `explain` and editors list


class Section(NamedTuple):
    """A part of an explanation: one of prose, code and lists.

    names: the names that the rule finds, as code; lines: sentences; file: what `code` is called where it is
    not Python. example: `code` is what the rule is shown by.
    """

    title: str
    prose: str = ""
    names: Sequence[str] = ()
    lines: Sequence[str] = ()
    code: str = ""
    file: str | None = None
    example: bool = False


def about(rule: Rule) -> list[str]:
    """The releases that a rule is about, and whether it is looked for: a line each."""
    return [
        *([f"{rule.library}: {versions(rule)}"] if versions(rule) else []),
        *([status_of(rule)] if rule.opt_in or rule.group else []),
    ]


def status_of(rule: Rule) -> str:
    """Whether a rule is looked for, and by which group it can be selected."""
    parts = ["Off unless selected."] if rule.opt_in else []
    return " ".join([*parts, f"Group: `{rule.group}`."] if rule.group else parts)


def sections(rule: Rule, examples: Sequence[Example], most: int | None = None) -> list[Section]:
    """The explanation of a rule below its summary, for every output. most: of the names that it finds."""
    found = [
        Section("Why", rule.why),
        Section("What it finds", names=_symbols(rule, most), lines=_conditions(rule)),
        Section("What the fix does", lines=_fixes(rule)),
    ]
    for example in examples:
        if example.kind == "fix":
            unsafe = example.applicability is not Applicability.SAFE
            note = f" ({example.applicability.label})" if unsafe else ""
            found.append(
                Section(f"Before{note}", code=example.before.rstrip(), file=example.file, example=True)
            )
            found.append(
                Section("After", code=(example.after or "").rstrip(), file=example.file, example=True)
            )
    kept = [example for example in examples if example.kind == "report-only"]
    if kept:
        code = "\n\n".join(example.before.rstrip() for example in kept)
        found.append(Section("Found, but not fixed", code=code, file=kept[0].file, example=True))
    if rule.advice:
        found.append(Section("By hand", generic(rule, rule.advice)))
    found.append(Section("Links", names=rule.references))
    found.append(Section("How to suppress it", code=suppression(rule)))
    return [section for section in found if any(section[1:5])]


def suppression(rule: Rule) -> str:
    """The comment that hides a rule, in the language that it is about."""
    text = f"torchmigrate: ignore[{rule.code}] reason"
    if set(rule.files) == {"cpp"}:
        return f"// {text}"
    return f"<!-- {text} -->" if set(rule.files) == {"markdown"} else f"# {text}"


def examples_of(rule: Rule) -> Sequence[Example]:
    """The examples of a rule. Raises CatalogueError if its file was removed."""
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
    levels = [case.applicability for case in rule.cases]  # a codemod without one only reports
    if not levels:
        return "none"
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


def in_range(rule: Rule, span: VersionRange) -> str:
    """ "On torch 2.6, with torch 1.8 as the minimum: error; the fix is unsafe."."""
    where = f"On torch {span.target}"
    if span.minimum is not None:
        where += f", with torch {span.minimum} as the minimum"
    level = severity_in(rule, span)
    if level is None:
        if severity(rule, VersionRange(span.target)) is None:
            return f"{where}: no finding yet."
        return f"{where}: no finding, because both releases have the change."
    fix = {
        "none": "there is no fix",
        "advice": "the fix is only displayed",
    }
    best = fix_level_in(rule, span)
    return f"{where}: {level}; {fix.get(best, f'the fix is {best}')}."


def _symbols(rule: Rule, most: int | None) -> list[str]:
    """The names that a rule is about, each with the new one if there is one. most: how many."""
    lines = []
    for names in (rule.symbols, {name: {"new": new} if new else {} for name, new in rule.modules.items()}):
        for name, variables in names.items():
            new = variables.get("new")
            lines.append(f"{name} -> {new}" if new else name)
    rest = 0 if most is None else len(lines) - most
    return [*lines[:most], f"... and {rest} more"] if rest > 1 else lines


def _conditions(rule: Rule) -> list[str]:
    """Where these names are found only."""
    lines = []
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
        return ["Nothing: the rule has no fix."]
    lines = []
    for case in rule.cases:
        text = _safety(case, rule)
        if case.title:
            text += f": {generic(rule, case.title)}"
        if case.reason:
            text += f" ({case.reason})" if case.title else f": {case.reason}"
        lines.append(text)
    return list(dict.fromkeys(lines))


def _safety(case: Case, rule: Rule) -> str:
    level = case.applicability.label
    if case.safe_from is not None:
        level += f" (safe if the code only has to run on {rule.library} {case.safe_from} or newer)"
    if case.requires is None:
        return level
    needs = case.requires if " " in case.requires else f"{rule.library} {case.requires}"
    if case.applicability is Applicability.SAFE:
        return f"safe; unsafe if the code must also run on a release before {needs}"
    return f"{level}, needs {needs}"
