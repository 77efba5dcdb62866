"""Results as JSON has them, and back.

Whatever is not exactly what is written here raises ValueError: codes and names that no rule has, places
outside of the text, addresses that are none, texts with control characters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import astuple

from torchmigrate.engine.results import FileResult
from torchmigrate.findings import (
    Applicability,
    Edit,
    Finding,
    Fix,
    Obstacle,
    Problem,
    Reason,
    Severity,
    Timeline,
    Trouble,
)
from torchmigrate.printing import printable
from torchmigrate.project.questions import Plain, plain

T = TypeVar("T")
_LAST_LINE = 10_000_000  # of a file that is read


# ---- writing --------------------------------------------------------------------------------------------


def record_of(result: FileResult) -> Plain:
    """What was found in a file; None: nothing."""
    if not (result.findings or result.problems or result.examples):
        return None
    fixes = _Fixes()
    found = [_finding(finding, fixes) for finding in result.findings]
    examples = [
        [number, [_finding(finding, fixes) for finding in some]] for number, some in result.examples.items()
    ]
    problems: list[Plain] = [
        [problem.reason, problem.line, problem.kind.value, problem.cell] for problem in result.problems
    ]
    return [found, fixes.records, problems, examples]  # type: ignore[list-item]


class _Fixes:
    """The fixes of a file: findings that share one name it by its number."""

    def __init__(self) -> None:
        self.records: list[Plain] = []
        self._numbers: dict[int, int] = {}

    def number(self, fix: Fix | None) -> int | None:
        if fix is None:
            return None
        if id(fix) not in self._numbers:
            unsafe = self.number(fix.unsafe)
            edits: list[Plain] = [[edit.start, edit.end, edit.text, edit.mergeable] for edit in fix.edits]
            # `releases` are for the run alone that makes the fix.
            held_by, requires = _reasons(fix.held_by), plain(fix.requires)
            level = fix.applicability.value
            self.records.append([fix.title, level, edits, held_by, fix.code, requires, unsafe])
            self._numbers[id(fix)] = len(self.records) - 1
        return self._numbers[id(fix)]


def _finding(finding: Finding, fixes: _Fixes) -> Plain:
    return [
        *(finding.code, finding.name, finding.message, finding.severity.value, finding.start, finding.end),
        *(finding.help, _reasons(finding.blocked_by), fixes.number(finding.fix), finding.url, finding.symbol),
        None if finding.timeline is None else [*astuple(finding.timeline)],
        [[start, end] for start, end in finding.places],
        None if finding.lacking is None else _reason(finding.lacking),
        finding.seen,
    ]


def _reasons(reasons: Sequence[Reason]) -> Plain:
    return [_reason(reason) for reason in reasons]


def _reason(reason: Reason) -> Plain:
    path = None if reason.path is None else str(reason.path)
    return [reason.kind.value, reason.text, reason.name, path, reason.line, reason.needs, reason.has]


# ---- reading --------------------------------------------------------------------------------------------


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
        found, fixes, problems, examples = _row(record, 4)
        # The fixes in examples count in the text of these; as many places as there are cannot be beyond all.
        self.limit = max([self.size, *self.sizes])
        for fix in _list(fixes):
            self.fixes.append(self._fix(fix))
        self.limit = self.size
        result = FileResult(self.path, [self._finding(item) for item in _list(found)])
        result.problems = [self._problem(item) for item in _list(problems)]
        for item in _list(examples):
            number, some = _row(item, 2)
            if not (type(number) is int and 0 <= number < len(self.sizes)):
                raise ValueError(number)
            self.limit = self.sizes[number]
            result.examples[number] = [self._finding(each) for each in _list(some)]
        return result

    def _finding(self, record: Any) -> Finding:
        row = _row(record, 15)
        code, name, message, level, start, end, help, blocked_by, fix, url, symbol = row[:11]
        timeline, places, lacking, seen = row[11:]
        first, last = self._span(start, end)
        self._check_rule(_text(code), _text(name))
        return Finding(
            code=code,
            name=name,
            message=_text(message),
            severity=Severity(_number(level)),
            start=first,
            end=last,
            help=_maybe(_text, help),
            blocked_by=_reasons_of(blocked_by),
            fix=None if fix is None else self._fix_of(fix),
            url=_maybe(_address, url),
            symbol=_maybe(_text, symbol),
            timeline=None if timeline is None else _timeline(timeline),
            places=tuple(self._span(*_row(place, 2)) for place in _list(places)),
            lacking=_maybe(_reason_of, lacking),
            seen=_flag(seen),
        )

    def _check_rule(self, code: str, name: str) -> None:
        if not self.known.get(code) == code == self.known.get(name):
            raise ValueError(code)

    def _fix_of(self, number: Any) -> Fix:
        if not (type(number) is int and 0 <= number < len(self.fixes)):
            raise ValueError(number)
        fix = self.fixes[number]
        if any(edit.end > self.limit for edit in fix.edits):
            raise ValueError(number)
        return fix

    def _fix(self, record: Any) -> Fix:
        title, level, edits, held_by, code, requires, unsafe = _row(record, 7)
        if self.known.get(_text(code)) != code and code:
            raise ValueError(code)
        return Fix(
            title=_text(title),
            applicability=Applicability(_number(level)),
            edits=tuple(self._edit(edit) for edit in _list(edits)),
            held_by=_reasons_of(held_by),
            code=code,
            requires=tuple(map(_text, _list(requires))),
            unsafe=None if unsafe is None else self._fix_of(unsafe),
        )

    def _edit(self, record: Any) -> Edit:
        start, end, text, mergeable = _row(record, 4)
        return Edit(*self._span(start, end), _any_text(text), _flag(mergeable))

    def _problem(self, record: Any) -> Problem:
        reason, line, kind, cell = _row(record, 4)
        return Problem(self.path, _text(reason), _maybe(_line, line), Trouble(kind), _maybe(_line, cell))

    def _span(self, start: Any, end: Any) -> tuple[int, int]:
        if not (type(start) is int and type(end) is int and 0 <= start <= end <= self.limit):
            raise ValueError((start, end))
        return start, end


def _row(value: Any, size: int) -> list[Any]:
    if type(value) is not list or len(value) != size:
        raise ValueError("not a row")
    return value


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise ValueError("not a list")
    return value


def _any_text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("not a text")
    return value


def _text(value: Any) -> str:
    """A text of a message."""
    text = _any_text(value)
    if printable(text) != text:
        raise ValueError("control characters")
    return text


def _address(value: Any) -> str:
    text = _text(value)
    if not text.startswith(("https://", "http://")) or " " in text:
        raise ValueError("not an address")
    return text


def _number(value: Any) -> int:
    if type(value) is not int:
        raise ValueError("not a number")
    return value


def _line(value: Any) -> int:
    if not 0 <= _number(value) <= _LAST_LINE:
        raise ValueError("not a line")
    return _number(value)


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("not a flag")
    return value


def _maybe(read: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else read(value)


def _reasons_of(value: Any) -> tuple[Reason, ...]:
    return tuple(map(_reason_of, _list(value)))


def _reason_of(value: Any) -> Reason:
    kind, text, name, path, line, needs, has = _row(value, 7)
    where = None if path is None else Path(_text(path))
    rest = _maybe(_text, needs), _maybe(_text, has)
    return Reason(Obstacle(kind), _text(text), _maybe(_text, name), where, _maybe(_line, line), *rest)


def _timeline(value: Any) -> Timeline:
    library, *releases = _row(value, len(Timeline.__struct_fields__))
    return Timeline(_text(library), *(_maybe(_text, release) for release in releases))
