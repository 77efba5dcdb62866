"""The explanation of a rule as parts, without a layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from torchmigrate.findings import Applicability, Severity
from torchmigrate.report.cases import needs, table
from torchmigrate.report.rule_texts import generic
from torchmigrate.versions.range import VersionRange, applicability, severity
from torchmigrate.versions.releases import parse_version

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example
    from torchmigrate.catalogue.model import Rule

STATUS = ("outdated", "deprecated", "changed", "removed")
MOST_SYMBOLS = 40  # that `explain` and editors list


class Section(NamedTuple):
    """A part of an explanation: one of prose, code, a table and lists.

    table: rows, the first with the heads; it comes before the lines.
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
    table: Sequence[tuple[str, ...]] = ()


def about(rule: Rule) -> list[str]:
    """The releases that a rule is about, and whether it is looked for: a line each."""
    return [
        *([releases(rule)] if versions(rule) else []),
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
        _fixes(rule),
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
    return [section for section in found if any((*section[1:5], section.table))]


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


def releases(rule: Rule) -> str:
    """ "torch: deprecated in 1.9, removed in 2.0", or that a rule is about no release in particular."""
    library = "" if rule.library == "torchmigrate" else f"{rule.library}: "
    return library + (versions(rule) or "any release")


def versions(rule: Rule) -> str:
    """ "deprecated in 1.9, removed in 2.0", the oldest first; "removed in 1.9 to 2.4" if names differ.

    Empty for a rule that is about no release in particular.
    """
    known = [(status, found) for status in STATUS if (found := _releases_of(rule, status))]
    known.sort(key=lambda item: parse_version(item[1][0]))
    return ", ".join(
        f"{status} in {found[0]}" + (f" to {found[-1]}" if len(found) > 1 else "") for status, found in known
    )


def first_release(rule: Rule, status: str) -> str | None:
    """The first release in which a status holds for a name of a rule; None: it never does."""
    return next(iter(_releases_of(rule, status)), None)


def _releases_of(rule: Rule, status: str) -> list[str]:
    """The releases in which a status holds for the names of a rule, the oldest first."""
    found = {release for each in histories(rule) if (release := getattr(each, status))}
    return sorted(found, key=parse_version)


def histories(rule: Rule) -> list[Rule]:
    """A rule with the releases of its names, once for each history that they have.

    A name that has releases of its own has only these.
    """
    found: dict[tuple[str | None, ...], Rule] = {}
    for values in rule.symbols.values() or [{}]:
        own = any(status in values for status in STATUS)
        history = tuple(values.get(status) if own else getattr(rule, status) for status in STATUS)
        if history not in found:
            found[history] = replace(rule, **dict(zip(STATUS, history, strict=True))) if own else rule
    return list(found.values())


def fix_level(rule: Rule) -> str:
    """The best that the rule can do: "safe", "unsafe", "advice" (its own code, not applied) or "none"."""
    return _best(case.applicability for case in rule.cases)  # a codemod without one only reports


def fix_level_in(rule: Rule, span: VersionRange) -> str:
    """The same for a range: what its target lacks is "advice", what its minimum lacks is unsafe."""
    return _best(applicability(case, rule, span)[0] for case in rule.cases)


def _best(levels: Iterable[Applicability]) -> str:
    best = max(levels, default=None)
    return "none" if best is None else "advice" if best is Applicability.DISPLAY else best.label


def severity_in(rule: Rule, span: VersionRange) -> str | None:
    """How bad a finding is at the target, at worst; None: the rule is about no release, or silent there."""
    levels = _severities(rule, span)
    return max(levels).label if levels else None


def _severities(rule: Rule, span: VersionRange) -> list[Severity]:
    """How bad findings are at the target, the mildest first; it may depend on the name."""
    found = {severity(each, span) for each in histories(rule)} if versions(rule) else set()
    return sorted(level for level in found if level is not None)


def in_range(rule: Rule, span: VersionRange) -> str:
    """ "On torch 2.6, with torch 1.8 as the minimum: error; the fix is unsafe."."""
    where = f"On torch {span.target}"
    if span.minimum is not None:
        where += f", with torch {span.minimum} as the minimum"
    levels = [level.label for level in _severities(rule, span)]
    if not levels:
        if not _severities(rule, VersionRange(span.target)):
            return f"{where}: no finding yet."
        return f"{where}: no finding, because both releases have the change."
    fix = {
        "none": "there is no fix",
        "advice": "the fix is only displayed",
    }
    best = fix_level_in(rule, span)
    return f"{where}: {' or '.join(levels)}; {fix.get(best, f'the fix is {best}')}."


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


def _fixes(rule: Rule) -> Section:
    """How each use is rewritten, how safe that is, and why; equal ones once."""
    title = "What the fix does"
    if not rule.cases:
        return Section(title, lines=["Nothing: the rule has no fix."])
    rows, notes = table(rule)
    if rows:
        return Section(title, table=[("condition", "result", "safety"), *rows], lines=notes)
    lines = []
    for case in rule.cases:
        text = "; ".join((case.applicability.label, *needs(case, rule)))
        if case.title:
            text += f": {generic(rule, case.title)}"
        if case.reason:
            text += f" ({case.reason})" if case.title else f": {case.reason}"
        lines.append(text)
    return Section(title, lines=list(dict.fromkeys(lines)))
