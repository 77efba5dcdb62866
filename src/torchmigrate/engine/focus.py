"""The lines that findings of a run may be about, where that is not all lines: those that have changed.

They are followed through fixes: what a fix changes is a changed line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from torchmigrate.engine.suppressions import rows_around
from torchmigrate.files.changed_lines import Rows
from torchmigrate.findings import Edit, Finding
from torchmigrate.rewrite.apply import map_offset
from torchmigrate.source.document import Document
from torchmigrate.source.text import Source

_Spans = list[tuple[int, int]]  # of whole lines of a text, in order, none touches another


class Focus:
    """What has changed in the files of a run; queried for one file after the other.

    changed: the rows of each file, as an editor counts them; None: all.
    """

    def __init__(self, changed: Mapping[Path, Rows | None]) -> None:
        self.changed = changed
        self._file: Source | None = None  # the text that examples are in
        self._spans: dict[int, tuple[Source, _Spans | None]] = {}  # None: all of the text

    def start(self, source: Source, path: Path) -> None:
        """Begin with a file."""
        rows = self.changed.get(path, ())
        self._file = source
        self._spans = {id(source): (source, None if rows is None else _spans_of(source, rows))}

    def follow(self, before: Source, after: Source, edits: Sequence[Edit]) -> None:
        """A text became another one by edits, which are sorted and do not overlap."""
        spans = self._of(before)
        if spans is not None:
            moved = [(map_offset(edits, start), map_offset(edits, end)) for start, end in spans]
            shift = 0
            for edit in edits:
                start = edit.start + shift
                moved.append((start, start + len(edit.text)))
                shift += len(edit.text) - (edit.end - edit.start)
            spans = _whole_lines(after, moved)
        self._spans[id(after)] = (after, spans)
        if before is self._file:
            self._file = after

    def touches(self, source: Source, start: int, end: int) -> bool:
        """Whether a part of a text is, or is in part, in a changed line."""
        spans = self._of(source)
        if spans is None:
            return True
        index = bisect_right(spans, (max(end - 1, start), len(source.text) + 1)) - 1
        return index >= 0 and spans[index][1] > start

    def concerns(self, source: Source, finding: Finding) -> bool:
        """Whether a finding is about a changed line."""
        places = ((finding.start, finding.end), *finding.places)
        return any(self.touches(source, start, end) for start, end in places)

    def may_concern(self, source: Source, offset: int) -> bool:
        """Whether the statement that something is in has a changed line."""
        if self._of(source) is None:
            return True
        first, last = rows_around(source.position(offset)[0], source.parse().body)
        return self.touches(source, source.line_start(first), _end(source, last))

    def _of(self, source: Source) -> _Spans | None:
        known = self._spans.get(id(source))
        if known is None:  # an example: its lines are those of the file
            rows: Rows | None = ()
            if self._file is not None and isinstance(source, Document) and source.whole is not None:
                rows = self._rows()
            spans = None if rows is None else _spans_of(source, rows)
            known = self._spans[id(source)] = (source, spans)
        return known[1]

    def _rows(self) -> Rows | None:
        """The changed rows of the file as it is now."""
        assert self._file is not None
        spans = self._of(self._file)
        if spans is None:
            return None
        position = self._file.position
        return tuple((position(start)[0], position(max(end - 1, start))[0]) for start, end in spans)


def _spans_of(source: Source, rows: Rows) -> _Spans | None:
    """The lines of a text that are in some rows of its file."""
    text, count = source.text, source.line_count
    if not source.in_pieces:
        # A line feed alone ends a line for git.
        if "\r" in text and text.count("\r") != text.count("\r\n"):
            return None
        lines: Iterable[tuple[int, int]] = (
            (first, min(last, count)) for first, last in rows if first <= count
        )
    else:
        firsts = [first for first, _ in rows]

        def is_changed(row: int) -> bool:
            at = source.file_row(source.line_start(row))
            index = bisect_right(firsts, at) - 1
            return index >= 0 and rows[index][1] >= at

        lines = ((row, row) for row in range(1, count + 1) if is_changed(row))
    return _whole_lines(source, [(source.line_start(first), _end(source, last)) for first, last in lines])


def _end(source: Source, row: int) -> int:
    return source.line_start(row + 1) if row < source.line_count else len(source.text)


def _whole_lines(source: Source, spans: Iterable[tuple[int, int]]) -> _Spans:
    """The lines that spans are in, joined where they touch."""
    joined: _Spans = []
    for start, end in sorted(spans):
        first = source.position(start)[0]
        last = source.position(max(end - 1, start))[0]
        if not source.line_count or first > source.line_count:
            continue
        start, end = source.line_start(first), _end(source, min(last, source.line_count))
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
