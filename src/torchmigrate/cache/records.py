"""Results as JSON has them, and back.

Whatever is not what is written here raises ValueError: codes and names that no rule has, places outside of
the text, addresses that are none, texts with control characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, convert
from msgspec.structs import replace

from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Finding, Fix, Problem
from torchmigrate.printing import printable
from torchmigrate.project.questions import Plain, plain

T = TypeVar("T")
_LAST_LINE = 10_000_000  # of a file that is read
_Found = list[tuple[Finding, int | None]]


class _Record(Struct, array_like=True):
    """What was found in a file.

    A finding is kept without its fix, and a fix without its unsafe one, but with the number of that in
    `fixes`: findings may share one. examples: the findings in each, by its number.
    """

    findings: _Found
    fixes: list[tuple[Fix, int | None]]
    problems: list[Problem]
    examples: list[tuple[int, _Found]]


def record_of(result: FileResult) -> Plain:
    """What was found in a file; None: nothing."""
    if not (result.findings or result.problems or result.examples):
        return None
    fixes: list[tuple[Fix, int | None]] = []
    numbers: dict[int, int] = {}

    def number(fix: Fix | None) -> int | None:
        if fix is None:
            return None
        if id(fix) not in numbers:
            unsafe = number(fix.unsafe)
            # The rest is for the run alone that makes the fix.
            fixes.append((replace(fix, releases=(), unsafe=None, lesser=None), unsafe))
            numbers[id(fix)] = len(fixes) - 1
        return numbers[id(fix)]

    def numbered(found: Iterable[Finding]) -> _Found:
        return [(replace(finding, fix=None), number(finding.fix)) for finding in found]

    examples = [(number, numbered(found)) for number, found in result.examples.items()]
    return plain(_Record(numbered(result.findings), fixes, result.problems, examples))


class Reader:
    """Reads the record of one file. Raises ValueError for what is none.

    Args:
        path: of the file.
        size: how many characters its text has. examples: the same of those in it, by their numbers.
        known: the code of every rule, by code and by name.
    """

    def __init__(self, path: Path, size: int, examples: Sequence[int], known: Mapping[str, str]) -> None:
        self.path = path
        self.known = known
        self.size = size
        self.sizes = examples
        self.fixes: list[Fix] = []

    def result(self, record: Any) -> FileResult:
        read = convert(record, _Record, dec_hook=lambda kind, value: kind(value))  # a path
        # The fixes in examples count in the text of these; as many places as there are cannot be beyond all.
        limit = max([self.size, *self.sizes])
        for fix, unsafe in read.fixes:
            _check_texts(plain(replace(fix, edits=())))
            _check_spans([(edit.start, edit.end) for edit in fix.edits], limit)
            self.fixes.append(replace(fix, unsafe=_numbered(self.fixes, unsafe)))
        _check_texts([record[0], *record[2:]])
        result = FileResult(self.path, self._findings(read.findings, self.size))
        result.problems = [replace(problem, path=self.path) for problem in read.problems]
        for number, found in read.examples:
            size = _numbered(self.sizes, number)
            assert size is not None
            result.examples[number] = self._findings(found, size)
        return result

    def _findings(self, found: _Found, size: int) -> list[Finding]:
        for finding, _ in found:
            _check_spans([(finding.start, finding.end), *finding.places], size)
            if not self.known.get(finding.code) == finding.code == self.known.get(finding.name):
                raise ValueError(finding.code)
            url = finding.url or "https://"
            if not url.startswith(("https://", "http://")) or " " in url:
                raise ValueError("not an address")
        return [replace(finding, fix=_numbered(self.fixes, number)) for finding, number in found]


def _check_texts(value: Plain) -> None:
    """Raise ValueError where a text is not fit for a message, or a line cannot be one."""
    if isinstance(value, (list, tuple)):
        for each in value:
            _check_texts(each)
    elif isinstance(value, str):
        if printable(value) != value:
            raise ValueError("control characters")
    elif value is not None and not 0 <= value <= _LAST_LINE:
        raise ValueError("not a line")


def _check_spans(spans: Iterable[tuple[int, int]], size: int) -> None:
    for start, end in spans:
        if not 0 <= start <= end <= size:
            raise ValueError((start, end))


def _numbered(values: Sequence[T], number: int | None) -> T | None:
    """What has a number; None: there is none."""
    if number is not None and not 0 <= number < len(values):
        raise ValueError(number)
    return None if number is None else values[number]
