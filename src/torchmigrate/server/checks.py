"""One document in, findings with their places out. Everything here runs in the thread that checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from lsprotocol import types
from msgspec import Struct
from msgspec.structs import replace
from pygls.workspace import PositionCodec

from torchmigrate.baseline.baselines import Baselines
from torchmigrate.baseline.file import BaselineError
from torchmigrate.config.settings import ConfigError
from torchmigrate.engine.engine import Engine
from torchmigrate.engine.results import FileResult
from torchmigrate.files.paths import forget, repository_of
from torchmigrate.findings import Finding, Problem, Trouble
from torchmigrate.printing import printable
from torchmigrate.project.discover import is_passed_over
from torchmigrate.report.reasons import said_of
from torchmigrate.run.configurations import Configurations
from torchmigrate.run.results import texts_in
from torchmigrate.run.texts import TextChecker
from torchmigrate.server.documents import PYTHON, DocumentPart, Snapshot
from torchmigrate.server.options import ServerOptions
from torchmigrate.server.positions import Lines
from torchmigrate.source.text import Source, SourceError

_INSTALLED = frozenset(["site-packages", "dist-packages"])


class Placed(Struct, frozen=True):
    """A finding, and where it is for the client.

    source: the text that it is in, which may be an example within the file. said: the finding in the words
    for this file. others: the other places of the decision.
    """

    source: Source
    finding: Finding
    said: Finding
    uri: str
    range: types.Range
    others: tuple[types.Location, ...]


class Checked:
    """A document that was checked.

    source: None where it is not for the rules. said: messages for the user, in addition to the findings.
    """

    def __init__(self, snapshot: Snapshot, codec: PositionCodec) -> None:
        self.snapshot = snapshot
        self.codec = codec
        self.source: Source | None = None
        self.checker: TextChecker | None = None
        self.found: list[tuple[Source, Finding]] = []
        self.broken: list[SourceError] = []
        self.said: list[str] = []
        self.made: dict[
            tuple[str, int], Source | None
        ] = {}  # the results of actions, as far as they were requested
        self._lines: dict[str, Lines] = {}

    @property
    def engine(self) -> Engine:
        """What checked it."""
        assert self.checker is not None, "it was checked"
        return self.checker.engine(self.snapshot.path)

    def lines(self, part: DocumentPart) -> Lines:
        """The lines of one of its texts."""
        if part.uri not in self._lines:
            self._lines[part.uri] = Lines(part.text, self.codec)
        return self._lines[part.uri]

    @cached_property
    def placed(self) -> list[Placed]:
        """The findings, in order of place."""
        made = []
        for source, finding in self.found:
            location = self.location(source, finding.start, finding.end)
            others = tuple(self.location(source, start, end) for start, end in finding.places)
            said = said_of(finding, source)
            made.append(Placed(source, finding, said, location.uri, location.range, others))
        return sorted(made, key=lambda each: (self._number(each.uri), _key(each.range)))

    def location(self, source: Source, start: int, end: int) -> types.Location:
        """Where characters of a text are for the client."""
        cell, row, column = source.place(start)
        part = self.snapshot.part_of(cell)
        lines = self.lines(part)
        if cell is not None and not self.snapshot.is_notebook:  # the JSON of a notebook is open
            return types.Location(part.uri, lines.whole_line(source.file_row(start) - 1))
        first = lines.at(row - 1, column - 1 + self._shift(row))
        end_cell, end_row, end_column = source.place(end)
        if end_cell != cell:
            return types.Location(part.uri, types.Range(first, lines.position(len(part.text))))
        return types.Location(
            part.uri, types.Range(first, lines.at(end_row - 1, end_column - 1 + self._shift(end_row)))
        )

    def _shift(self, row: int) -> int:
        """How many characters of the client's line are before the line of the text: a byte order mark."""
        return 1 if row == 1 and self.source is not None and self.source.bom else 0

    def _number(self, uri: str) -> int:
        return next(number for number, part in enumerate(self.snapshot.parts) if part.uri == uri)


def _key(area: types.Range) -> tuple[int, int, int, int]:
    return area.start.line, area.start.character, area.end.line, area.end.character


class Checker:
    """Checks documents with the same options; keeps what it learns of projects until it is made anew."""

    def __init__(self, options: ServerOptions, roots: Sequence[Path]) -> None:
        forget()
        self.options = options
        self.roots = list(roots)
        self._checkers: dict[Path, TextChecker] = {}
        self._baselines = Baselines()

    def check(self, snapshot: Snapshot, codec: PositionCodec) -> Checked:
        """Check a document; whatever goes wrong is in what is given back."""
        checked = Checked(snapshot, codec)
        if not self.options.enable:
            return checked
        try:
            self._check(checked)
        except ConfigError as error:
            checked.said.append(printable(str(error)))
        except SourceError as error:
            checked.broken.append(error)
        checked.broken = [error for error in checked.broken if self._is_shown(error)]
        return checked

    def warm_up(self) -> None:
        """Load what the first check needs."""
        path = (self.roots[0] if self.roots else Path.cwd()) / "-.py"
        text = "import torch\nL, V = torch.symeig(A, eigenvectors=True)\n"
        with suppress(ConfigError):  # which the first document says
            self._checker(path).check(Source.from_text(text, path), path)

    def _check(self, checked: Checked) -> None:
        snapshot = checked.snapshot
        path = snapshot.path
        checker = checked.checker = self._checker(path)
        scope, problems = checker.scope(path)
        checked.said += map(_said, problems)
        embedded = scope.settings.embedded
        if not snapshot.has_kind(embedded=embedded) or self._leaves_out(snapshot, checker):
            return
        checked.source = source = snapshot.source(embedded=embedded)
        result = checker.check(source, path)
        checked.found = [(text, finding) for text, some in texts_in(result, source) for finding in some]
        if scope.settings.baseline is not None and checked.found:
            try:
                checked.found = self._baselines.of(scope.settings.baseline).new(path, checked.found)
            except BaselineError as error:
                checked.said.append(f"{error.path}: {error.reason}")
        checked.broken += source.broken or _syntax_errors(result)
        checked.said += [_said(each) for each in result.problems if each.kind is not Trouble.SYNTAX]

    def _is_shown(self, error: SourceError) -> bool:
        return self.options.show_syntax_errors and error.kind is Trouble.SYNTAX

    # ---- what holds for a file -----------------------------------------------------------------------

    def _root(self, path: Path) -> Path | None:
        """The innermost directory that is open and has a file in it."""
        inside = [root for root in self.roots if path.is_relative_to(root)]
        return max(inside, key=lambda root: len(root.parts), default=None)

    def _checker(self, path: Path) -> TextChecker:
        start = self._root(path) or path.parent
        if start not in self._checkers:
            given = self.options.configuration
            configurations = Configurations(
                replace(self.options.layer, root=start),
                config=None if given is None else start / given,
                start=start,
            )
            self._checkers[start] = TextChecker(configurations, by_place=True)
        return self._checkers[start]

    def _leaves_out(self, snapshot: Snapshot, checker: TextChecker) -> bool:
        """Whether a run on the directory that is open would not come to the file.

        Of what is in none that is open, what is installed is left out, and what its repository ignores.
        """
        path = snapshot.path
        if not snapshot.is_file:
            return False
        top = self._root(path)
        if top is None:
            if not _INSTALLED.isdisjoint(path.parts):
                return True
            top = repository_of(path.parent) or path.parent
        is_python = snapshot.language == PYTHON  # whatever its name
        return is_passed_over(path, checker.configurations.settings_in, top, any_kind=is_python)


def _syntax_errors(result: FileResult) -> Iterator[SourceError]:
    return (
        SourceError(each.reason, each.line, each.kind, each.cell)
        for each in result.problems
        if each.kind is Trouble.SYNTAX and each.path == result.path
    )


def _said(problem: Problem) -> str:
    line = "" if problem.line is None else f":{problem.line}"
    return printable(f"{problem.path}{line}: {problem.reason}")
