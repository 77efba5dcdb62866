"""The functions for programs that `torchmigrate` exports; nothing else of the package is public.

They find and do what the command line does, configurations included, and print nothing. Findings that a
baseline accepts are among the results, and no cache is read or written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from torchmigrate.config.settings import ConfigError, Layer
from torchmigrate.engine.results import FileResult
from torchmigrate.files.paths import common_directory, forget, project_directory, repository_of
from torchmigrate.findings import Finding as Found
from torchmigrate.findings import Fix as FoundFix
from torchmigrate.findings import Problem as FoundProblem
from torchmigrate.findings import in_order
from torchmigrate.printing import printable
from torchmigrate.report.console import Console
from torchmigrate.report.reasons import help_of, message_of, reason_of
from torchmigrate.run.configurations import Configurations
from torchmigrate.run.engines import Engines
from torchmigrate.run.results import Results, problems_in_order, texts_in
from torchmigrate.source.kinds import read_source, source_of_text
from torchmigrate.source.text import Source, SourceError

if TYPE_CHECKING:
    from torchmigrate.planning.model import Plan

__all__ = [
    "ConfigError",
    "Edit",
    "Finding",
    "Fix",
    "FixedText",
    "Problem",
    "Report",
    "UpgradePlan",
    "check_paths",
    "check_text",
    "fix_text",
    "plan",
]

SeverityName = Literal["info", "warning", "error"]
ApplicabilityName = Literal["safe", "unsafe", "display"]
AnyPath = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace what is between two places by `content`.

    cell: of a notebook, 1-based. Rows are those of the cell, if there is one. Rows and columns are 1-based,
    columns in characters, the end exclusive.
    """

    content: str
    row: int
    column: int
    end_row: int
    end_column: int
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """All edits of one rewrite: they are made together or not at all.

    applicability: "safe" has the same results on every release from the minimum to the target; "unsafe" may
    have others, as `reason` says; "display" is only to be shown.
    """

    applicability: ApplicabilityName
    message: str
    reason: str | None
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One outdated place. Rows and columns are as in `Edit`.

    code, name: of the rule. path: of the file; None: the text has none. symbol: the qualified name that was
    found. help: what to do by hand. fix: None where there is none. unsafe_fix: an unsafe alternative to
    `fix`.
    """

    code: str
    name: str
    message: str
    severity: SeverityName
    path: Path | None
    row: int
    column: int
    end_row: int
    end_column: int
    cell: int | None = None
    symbol: str | None = None
    help: str | None = None
    url: str | None = None
    fix: Fix | None = None
    unsafe_fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be checked. kind: "invalid-syntax", "io-error", "not-done", "too-many-findings"."""

    kind: str
    message: str
    path: Path | None
    row: int | None = None
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, in order of path and place, and what could not be checked."""

    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class FixedText:
    """A text after fixes.

    fixed: how many fixes of each rule were made. report: what is left, in the new text.
    """

    text: str
    fixed: Mapping[str, int] = field(default_factory=dict)
    report: Report = field(default_factory=Report)


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """What every release up to the target would break.

    Releases are text such as "2.6"; None: unknown. runs: the first and the last release on which the code
    runs as it stands; None: on none. effort: how many places need a "safe" fix, an "unsafe" one, and work
    "by_hand". data: all of it, in the form that `torchmigrate plan --output-format json` prints.
    """

    project: str
    minimum: str | None
    target: str
    headline: str
    runs: tuple[str | None, str] | None
    effort: Mapping[str, int]
    problems: tuple[Problem, ...]
    data: Mapping[str, Any]


def check_paths(
    paths: Sequence[AnyPath],
    *,
    target: str | None = None,
    minimum: str | None = None,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    config: AnyPath | None = None,
    isolated: bool = False,
    jobs: int | None = 1,
) -> Report:
    """Check files and directories.

    Args:
        paths: directories are searched as on the command line.
        target: the release of torch to move to, such as "2.9"; None: the target of the configuration, or the
        newest known release.
        minimum: the oldest release that must still work; None: what the project requires.
        select: codes, prefixes, names of rules, groups, or "ALL"; None: those of the configuration.
        ignore: those that are not looked for.
        config: a configuration file that holds for all files; None: the nearest one of each file.
        isolated: read no configuration, and detect no minimum.
        jobs: processes; None: as many as pay off. More than one needs `if __name__ == "__main__"` where
            processes are not forked.

    Raises:
        ConfigError: an option or a configuration cannot be used.
    """
    places = [Path(path) for path in paths]
    options = _layer(target, minimum, select, ignore)
    configurations = _configurations(places, options, config, isolated=isolated)
    results = Results(places, configurations, _silent(), jobs)
    findings: list[Finding] = []
    for result in results:
        try:
            findings += _findings_of(result, results.engines)
        except SourceError as error:  # it was there a moment ago
            results.problems.append(FoundProblem(result.path, error.reason, error.line, error.kind))
    return Report(tuple(findings), _problems(results.problems))


def check_text(
    text: str,
    *,
    path: AnyPath | None = None,
    target: str | None = None,
    minimum: str | None = None,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    config: AnyPath | None = None,
    isolated: bool = False,
) -> Report:
    """Check the text of one file, as `torchmigrate check -` does.

    Args:
        path: what the file is called: which kind of file it is, which configuration holds for it, and its
        neighboring files. It need not exist. None: it is Python, in the current directory.

    The other arguments, and what is raised, are as for `check_paths`.
    """
    options = _layer(target, minimum, select, ignore)
    result, _ = _checked(text, path, options, config, isolated=isolated, fix=False)
    return result


def fix_text(
    text: str,
    *,
    path: AnyPath | None = None,
    unsafe_fixes: bool = False,
    target: str | None = None,
    minimum: str | None = None,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    config: AnyPath | None = None,
    isolated: bool = False,
) -> FixedText:
    """Make the fixes in the text of one file, as `torchmigrate check --fix -` does.

    Args:
        unsafe_fixes: make the fixes that may change results, too.

    The other arguments, and what is raised, are as for `check_text`. A text that cannot be checked is given
    back as it is.
    """
    options = _layer(target, minimum, select, ignore)
    if unsafe_fixes:
        options = replace(options, unsafe_fixes=True)
    report, result = _checked(text, path, options, config, isolated=isolated, fix=True)
    if result is None or result.new is None:
        return FixedText(text, {}, report)
    new = result.new.content().decode("utf-8") if result.new.in_pieces else result.new.text
    return FixedText(("\ufeff" if result.new.bom else "") + new, dict(result.fixed), report)


def plan(
    paths: Sequence[AnyPath],
    *,
    target: str | None = None,
    minimum: str | None = None,
    title: str | None = None,
    config: AnyPath | None = None,
    isolated: bool = False,
    jobs: int | None = 1,
) -> UpgradePlan:
    """Say what every release up to the target would break, as `torchmigrate plan` does.

    Args:
        title: what the project is called; None: as its directory.

    The other arguments, and what is raised, are as for `check_paths`.
    """
    from torchmigrate.planning.json import as_json
    from torchmigrate.planning.links import Links
    from torchmigrate.planning.look import Project

    places = [Path(path) for path in paths]
    configurations = _configurations(places, _layer(target, minimum, None, ()), config, isolated=isolated)
    start, here = common_directory(places), Path.cwd()
    root = repository_of(start) or configurations.start
    project = Project(places, configurations, _silent(), start=start, root=root, here=here)
    made, problems = project.plan(project.look(project.files, jobs), title)
    return _public_plan(made, json.loads(as_json(made, Links(None, root=root, near=here))), problems)


# ---- what a run needs ------------------------------------------------------------------------------------


def _layer(
    target: str | None, minimum: str | None, select: Sequence[str] | None, ignore: Sequence[str]
) -> Layer:
    if isinstance(select, str) or isinstance(ignore, str):
        raise TypeError("`select` and `ignore` must be lists of codes, not a string")
    return Layer(
        option="{}",
        target=target,
        minimum=minimum,
        select=None if select is None else tuple(select),
        ignore=tuple(ignore),
        root=Path.cwd(),
    )


def _configurations(
    paths: Sequence[Path], options: Layer, config: AnyPath | None, *, isolated: bool, fix: bool = False
) -> Configurations:
    forget()  # a program that goes on for long asks again when files have changed
    named = None if config is None else Path(config)
    start = project_directory(common_directory(paths))
    return Configurations(options, config=named, isolated=isolated, fix=fix, start=start)


def _silent() -> Console:
    return Console("never", quiet=True)


def _checked(
    text: str, path: AnyPath | None, options: Layer, config: AnyPath | None, *, isolated: bool, fix: bool
) -> tuple[Report, FileResult | None]:
    from torchmigrate.project.discover import is_excluded
    from torchmigrate.run.texts import TextChecker

    place = Path("<text>" if path is None else path)
    around = [place if path is not None else Path()]
    configurations = _configurations(around, options, config, isolated=isolated, fix=fix)
    if is_excluded(place, configurations.settings_in):
        return Report(), None
    checker = TextChecker(configurations)
    name = None if path is None else place
    scope, problems = checker.scope(place)
    try:
        source = source_of_text(text, place, embedded=scope.settings.embedded)
    except SourceError as error:
        problems = [*problems, FoundProblem(place, error.reason, error.line, error.kind, error.cell)]
        return Report((), _problems(problems, nameless=path is None)), None
    result = checker.check(source, place)
    findings = tuple(_public(result, result.new or source, name))
    return Report(findings, _problems([*problems, *result.problems], nameless=path is None)), result


# ---- what is given back ----------------------------------------------------------------------------------


def _findings_of(result: FileResult, engines: Engines) -> Iterator[Finding]:
    if result.findings or any(result.examples.values()):
        settings = engines.scopes[result.path].settings
        yield from _public(result, read_source(result.path, embedded=settings.embedded), result.path)


def _public(result: FileResult, source: Source, path: Path | None) -> list[Finding]:
    """The findings of a file in order of place."""
    fixes: dict[int, Fix] = {}  # findings may share one with edits all over the file
    every = [
        (text.place(found.start), found.end, found.code, _finding(found, text, path, fixes))
        for text, some in texts_in(result, source)
        for found in some
    ]
    every.sort(key=lambda each: ((each[0].cell or 0, each[0].row, each[0].column), *each[1:3]))
    return [each[3] for each in every]


def _finding(found: Found, source: Source, path: Path | None, fixes: dict[int, Fix]) -> Finding:
    cell, row, column = source.place(found.start)
    _, end_row, end_column = source.place(found.end)
    fix = found.fix
    return Finding(
        code=found.code,
        name=found.name,
        message=message_of(found),
        severity=found.severity.label,  # type: ignore[arg-type]
        path=path,
        row=row,
        column=column,
        end_row=end_row,
        end_column=end_column,
        cell=cell,
        symbol=found.symbol,
        help=help_of(found),
        url=found.url,
        fix=None if fix is None else _fix(fix, source, fixes),
        unsafe_fix=None if fix is None or fix.unsafe is None else _fix(fix.unsafe, source, fixes),
    )


def _fix(fix: FoundFix, source: Source, fixes: dict[int, Fix]) -> Fix:
    if id(fix) in fixes:
        return fixes[id(fix)]
    edits = []
    for edit in in_order(fix.edits):
        cell, row, column = source.place(edit.start)
        _, end_row, end_column = source.place(edit.end)
        edits.append(Edit(edit.text, row, column, end_row, end_column, cell))
    label = fix.applicability.label
    made = fixes[id(fix)] = Fix(label, fix.title, reason_of(fix), tuple(edits))  # type: ignore[arg-type]
    return made


def _problems(found: Sequence[FoundProblem], *, nameless: bool = False) -> tuple[Problem, ...]:
    return tuple(
        Problem(
            problem.kind.value,
            printable(problem.reason),
            None if nameless else problem.path,
            problem.line,
            problem.cell,
        )
        for problem in problems_in_order(found)
    )


def _public_plan(made: Plan, data: Mapping[str, Any], problems: Sequence[FoundProblem]) -> UpgradePlan:
    runs = data["runs"]
    return UpgradePlan(
        project=made.project,
        minimum=data["minimum"],
        target=data["to"],
        headline=data["headline"],
        runs=None if runs is None else (runs["first"], runs["last"]),
        effort=data["effort"],
        problems=_problems(problems),
        data=data,
    )
