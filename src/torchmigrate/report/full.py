"""Findings with the source around them, marked, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmigrate.findings import Applicability, Finding, Problem
from torchmigrate.report.base import FileFindings
from torchmigrate.report.concise import header
from torchmigrate.report.reasons import help_of, reason_of
from torchmigrate.report.style import Style, printable

WIDTH = 110  # columns of source that are shown of a longer line
CONTEXT = 1  # rows before and after
MOST_ROWS = 5  # of a long finding; its other rows are left out
_NEAR = (
    4 * WIDTH
)  # characters before and after the beginning of a range that are looked at; some have no width
_TAB = 4
_CUT = "…"


class FullReporter:
    """A header line, an excerpt with a caret range, and a help line for each finding."""

    def __init__(self, style: Style) -> None:
        self.style = style

    def piece(self, file: FileFindings) -> str:
        rows: dict[int, str] = {}
        return "".join("\n".join(self._lines(file, finding, rows)) + "\n\n" for finding in file.findings)

    def problem(self, problem: Problem, shown: str) -> str:
        return ""  # stderr says it

    def whole(self, pieces: Sequence[str]) -> str:
        return "".join(pieces)

    def _lines(self, file: FileFindings, finding: Finding, rows: dict[int, str]) -> Iterator[str]:
        """The lines for one finding; rows: those of the source that were shown before, which may be long."""
        style = self.style
        yield header(file, finding, style)
        first, start = file.source.position(finding.start)
        last, end = file.source.position(max(finding.end, finding.start + 1))
        begin, end_row = file.source.rows_around(first)
        top = max(begin, first - CONTEXT)
        bottom = max(last, min(end_row, last + CONTEXT))
        gutter = len(str(file.source.shown_row(bottom)))
        bar = style.gutter(f"{'':{gutter}} |")
        yield bar
        for row in range(top, bottom + 1):
            if MOST_ROWS <= row - first < last - first:
                if row - first == MOST_ROWS:
                    yield style.gutter(f"{'':{gutter}} {_CUT}")
                continue
            line = rows.get(row)
            if line is None:
                line = rows[row] = file.source.shown_line(row)
            lead = file.source.lead(row)
            marked = first <= row <= last
            left = start - 1 if row == first else len(line) - len(line.lstrip())
            right = end - 1 if row == last else len(line.rstrip())
            if marked:
                left, right = left + len(lead), right + len(lead)
            else:
                left = right = 0
            shown, before, width = excerpt(lead + line, left, right)
            yield f"{style.gutter(f'{file.source.shown_row(row):{gutter}} |')} {shown}".rstrip()
            if marked and (width or row == first):
                label = f" {finding.severity.label}" if row == last else ""
                carets = style.severity(finding.severity, "^" * max(width, 1) + label)
                yield f"{bar} {' ' * before}{carets}"
        yield bar
        also = file.also(finding)
        for kind, text in (*([("note", also)] if also else []), *advice(finding)):
            said = _wrap(f"{kind}: {printable(text)}")
            said[0] = style.bold(said[0][: len(kind) + 1]) + said[0][len(kind) + 1 :]
            yield f"{'':{gutter}} {style.gutter('=')} " + f"\n{'':{gutter + 3}}".join(said)


def advice(finding: Finding) -> Iterator[tuple[str, str]]:
    """What can be done about a finding: ("fix" | "help", text)."""
    fix = finding.fix
    if fix is not None:
        kind = {
            Applicability.SAFE: "fix",
            Applicability.UNSAFE: "unsafe fix",
            Applicability.DISPLAY: "suggestion",
        }
        reason = reason_of(fix)
        yield kind[fix.applicability], f"{fix.title} ({reason})" if reason else fix.title
    text = help_of(finding)
    if text and (fix is None or fix.applicability is not Applicability.SAFE):
        yield "help", text


def _wrap(text: str) -> list[str]:
    if len(text) <= WIDTH:
        return [text]
    import textwrap

    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def excerpt(text: str, left: int, right: int) -> tuple[str, int, int]:
    """A line as it is shown, and where a range of it (character offsets) begins there and how wide it is.

    Tabs become spaces, control characters visible; of a line that is too long a window around the range.
    """
    # What is far from the range is not looked at: there may be a finding for every word of a long line.
    skipped, end = max(0, left - _NEAR), left + _NEAR
    near = text[skipped:end]
    if near.isascii() and near.isprintable():
        cells = [(character, 1) for character in near]
    else:
        cells = [_cell(character) for character in near]
    left, right = left - skipped, right - skipped
    total = sum(width for _, width in cells)
    before = sum(width for _, width in cells[:left])
    marked = sum(width for _, width in cells[left:right])
    if len(near) == len(text) and total <= WIDTH:
        return "".join(shown for shown, _ in cells), before, marked
    # As much of the range as fits, with what stands before it rather than after it.
    begin = 0
    while begin < left and before + min(marked, WIDTH // 2) > WIDTH - 20:
        before -= cells[begin][1]
        begin += 1
    shown_text, width, at = "", 0, begin
    while at < len(cells) and width + cells[at][1] <= WIDTH:
        shown_text += cells[at][0]
        width += cells[at][1]
        at += 1
    head = _CUT if skipped or begin else ""
    tail = _CUT if at < len(cells) or end < len(text) else ""
    return head + shown_text + tail, before + len(head), max(0, min(marked, width - before))


def _cell(character: str) -> tuple[str, int]:
    """What is shown for a character, and its width in columns."""
    if character == "\t":
        return " " * _TAB, _TAB
    shown = printable(character)
    if shown != character:
        return shown, len(shown)
    if character.isascii():
        return character, 1
    import unicodedata  # not every run gets here

    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1
