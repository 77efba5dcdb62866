"""What every output format gets, and has to give."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct

from torchmigrate.findings import Applicability, Finding, Obstacle, Problem, Severity, Trouble
from torchmigrate.printing import printable
from torchmigrate.source.text import Source
from torchmigrate.versions.releases import Version, parse_version, torch_release

_MOST_PLACES = 8  # that are listed where a person reads them


class FileFindings(Struct, frozen=True):
    """The findings that are left in one file, in order of place, and the text that they are in.

    shown: the path as messages name it. least: the least applicability that `--fix` would apply.
    """

    path: Path
    shown: str
    source: Source
    findings: Sequence[Finding]
    least: Applicability = Applicability.SAFE

    def mark(self, finding: Finding) -> str:
        """ruff's sign for a finding that `--fix`, with the settings of this run, would fix."""
        return "[*]" if fixable(finding, self.least) else ""

    def also(self, finding: Finding) -> str:
        """The lines of the other places where there is something to do, in words; empty if there are none.

        Where an import is fixed, its uses may stay as they are.
        """
        places = finding.places
        position = self.source.position
        if places and finding.fix is not None:
            changed = {
                row
                for edit in finding.fix.edits
                for row in range(position(edit.start)[0], position(edit.end)[0] + 1)
            }
            places = tuple(place for place in places if position(place[0])[0] in changed)
        rows = list(dict.fromkeys(position(start)[0] for start, _ in places))
        if not rows:
            return ""
        if self.source.in_pieces:
            said = [self.source.said_row(row) for row in rows[:_MOST_PLACES]]
            return f"also in {', '.join(said)}" + (
                f" and {len(rows) - _MOST_PLACES} more" if len(rows) > _MOST_PLACES else ""
            )
        shown = ", ".join(map(str, rows[:_MOST_PLACES]))
        if len(rows) > _MOST_PLACES:
            return f"also in lines {shown} and {len(rows) - _MOST_PLACES} more"
        return f"also in line{'s' if len(rows) > 1 else ''} {shown}"


Piece = TypeVar("Piece")


class Reporter(Protocol[Piece]):
    """One output format. Files are given one at a time, so that their text need not be kept."""

    def piece(self, file: FileFindings) -> Piece:
        """The part of the output for one file with at least one finding, or for one of its documents."""
        ...

    def problem(self, problem: Problem, shown: str) -> Piece | None:
        """The part about what could not be done; None where only stderr says it.

        shown: the path as messages name it.
        """
        ...

    def whole(self, pieces: Sequence[Piece]) -> str:
        """The output, from the pieces in order of path; empty or ending with a newline."""
        ...


class RuleCount:
    """How often one rule was found."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found = 0
        self.fixable = 0


class Versions(NamedTuple):
    """For which releases of torch a file was checked.

    minimum None: not known. origin: the file or option that says it.
    """

    target: str
    minimum: str | None = None
    origin: str | None = None


class Tally:
    """What a run found and fixed, over all files.

    versions: how many files were checked for which releases. held: by the first torch that has the new code,
    how many fixes are not safe for the minimum alone. needs: the first torch on which all files run that were
    fixed, as far as is known; beyond: it is newer than the minimum of one of them. troubles: the problems by
    their kind. hidden: how many findings a baseline hides; stale: how many entries of it fit no finding.
    """

    def __init__(self) -> None:
        self.versions: Counter[Versions] = Counter()
        self.held: Counter[Version] = Counter()
        self.needs: Version | None = None
        self.beyond = False
        self.troubles: Counter[Trouble] = Counter()
        self.hidden = 0
        self.stale = 0
        self.by_severity: Counter[Severity] = Counter()
        self.rules: dict[str, RuleCount] = {}
        self.places: dict[str, dict[str, list[str]]] = {}  # code -> shown path -> rows, where that is wanted
        self.fixable = 0
        self.unsafe = 0  # fixable with --unsafe-fixes only
        self.fixed: dict[str, Counter[str]] = {}  # shown path -> code -> how many

    @property
    def found(self) -> int:
        return sum(self.by_severity.values())

    @property
    def fixes(self) -> int:
        return sum(sum(codes.values()) for codes in self.fixed.values())

    def add(self, findings: Sequence[Finding], least: Applicability = Applicability.SAFE) -> None:
        """Count what is left in a file. least: the least applicability that the run would apply there."""
        for finding in findings:
            self.by_severity[finding.severity] += 1
            count = self.rules.setdefault(finding.code, RuleCount(finding.name))
            count.found += 1
            if fixable(finding, least):
                self.fixable += 1
                count.fixable += 1
            elif fixable(finding, Applicability.UNSAFE):
                self.unsafe += 1
                if (release := _safe_from(finding)) is not None:
                    self.held[release] += 1

    def add_places(self, file: FileFindings) -> None:
        """Record where the findings of a file are."""
        for finding in file.findings:
            cell, row, _ = file.source.place(finding.start)
            rows = self.places.setdefault(finding.code, {}).setdefault(file.shown, [])
            rows.append(str(row) if cell is None else f"cell {cell}:{row}")

    def add_needs(self, needs: Version | None, minimum: Version | None) -> None:
        """Count what a file that was fixed needs now."""
        if needs is not None:
            self.needs = max(needs, self.needs or needs)
            self.beyond = self.beyond or (minimum is not None and needs > minimum)


def _safe_from(finding: Finding) -> Version | None:
    """The minimum with which an unsafe fix is safe; None: it is not with any."""
    if finding.fix is None:
        return None
    releases = []
    for reason in finding.fix.held_by:
        if reason.kind is not Obstacle.MINIMUM or reason.needs is None:
            return None
        library, _, version = reason.needs.rpartition(" ")
        releases.append(torch_release(library, parse_version(version)))
    known = [release for release in releases if release is not None]
    return max(known) if known and len(known) == len(releases) else None


def fixable(finding: Finding, least: Applicability) -> bool:
    """Whether there is a fix that is at least that applicable."""
    return finding.fix is not None and finding.fix.applicability >= least


def shown_path(path: Path, directory: Path) -> str:
    """A path for messages: relative to the directory when it is below it, and always on one line."""
    return printable(relative_path(path, directory))


def relative_path(path: Path, directory: Path) -> str:
    """The same for programs."""
    absolute = os.path.abspath(path)  # noqa: PTH100 (Path.absolute keeps `..`)
    return os.path.relpath(absolute, directory) if _below(absolute, str(directory)) else str(path)


def _below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)
