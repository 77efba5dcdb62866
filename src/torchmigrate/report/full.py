"""Findings with the source around them, marked, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from torchmigrate.findings import Finding, Problem
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.concise import header
from torchmigrate.report.reasons import by_hand_of, fix_advice
from torchmigrate.report.replacement import ReplacedPlace, Replacements
from torchmigrate.report.style import WIDTH, Style
from torchmigrate.report.summary import plural

CONTEXT = 1  # rows before and after
MOST_ROWS = 5  # of a long finding; its other rows are left out
# Characters before and after the beginning of a range that are looked at; some have no width.
_NEAR = 4 * WIDTH
_TAB = 4
_CUT = "…"


class _Block(Struct, frozen=True):
    """The text of one finding. once: parts that are printed the first time only, by their subject."""

    text: str
    key: tuple[str, str] | None = None
    once: str = ""


class FullReporter:
    """A header line, an excerpt with a caret range, what the fix does, and what to do by hand.

    The advice of a rule is printed once in a run.
    whole: all that a fix changes is shown, and not only what is near.
    """

    def __init__(self, style: Style, *, whole: bool = False) -> None:
        self.style = style
        self.whole_fixes = whole

    def piece(self, file: FileFindings) -> list[_Block]:
        rows: dict[int, str] = {}
        replacements = Replacements(file.source, whole=self.whole_fixes)
        return [self._block(file, finding, rows, replacements) for finding in file.findings]

    def problem(self, problem: Problem, shown: str) -> None:
        """Nothing: stderr says it."""

    def whole(self, pieces: Sequence[list[_Block]]) -> str:
        parts = []
        said = set()
        for block in (block for piece in pieces for block in piece):
            parts.append(block.text)
            if block.key is not None and block.key not in said:
                said.add(block.key)
                parts.append(block.once)
            parts.append("\n")
        return "".join(parts)

    def _block(
        self, file: FileFindings, finding: Finding, rows: dict[int, str], replacements: Replacements
    ) -> _Block:
        fix = finding.fix
        places, more = ([], 0) if fix is None else replacements.of(fix, finding.start)
        numbers = [line.number or 0 for place in places for line in place.lines]
        bottom = self._rows_of(file, finding)[3]
        gutter = len(str(max([file.source.shown_row(bottom), *numbers])))
        lines = list(self._excerpt(file, finding, rows, gutter))
        also = file.also(finding)
        if also:
            lines.append(self._advice("note", also, gutter))
        for kind, text in fix_advice(finding):
            lines.append(self._advice(kind, text, gutter))
            lines += self._replacement(places, more, gutter, file.source.place(finding.start).cell)
        blocked, by_hand = by_hand_of(finding)
        if blocked:
            lines.append(self._advice("help", blocked, gutter))
        text = "".join(f"{line}\n" for line in lines)
        if not by_hand:
            return _Block(text)
        return _Block(text, (finding.code, by_hand), self._advice("help", by_hand, gutter) + "\n")

    def _rows_of(self, file: FileFindings, finding: Finding) -> tuple[int, int, int, int]:
        """The first and last row of a finding, and of what is shown with it."""
        first = file.source.position(finding.start)[0]
        last = file.source.position(max(finding.end, finding.start + 1))[0]
        begin, end = file.source.rows_around(first)
        return first, last, max(begin, first - CONTEXT), max(last, min(end, last + CONTEXT))

    def _excerpt(
        self, file: FileFindings, finding: Finding, rows: dict[int, str], gutter: int
    ) -> Iterator[str]:
        """The header and the source; rows: those that were shown before, which may be long."""
        style = self.style
        yield header(file, finding, style)
        first, last, top, bottom = self._rows_of(file, finding)
        start = file.source.position(finding.start)[1]
        end = file.source.position(max(finding.end, finding.start + 1))[1]
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
            shown, before, width = excerpt(lead + line, left, right, style.width)
            yield f"{style.gutter(f'{file.source.shown_row(row):{gutter}} |')} {shown}".rstrip()
            if marked and (width or row == first):
                label = f" {finding.severity.label}" if row == last else ""
                carets = style.severity(finding.severity, "^" * max(width, 1) + label)
                yield f"{bar} {' ' * before}{carets}"
        yield bar

    def _replacement(
        self, places: Sequence[ReplacedPlace], more: int, gutter: int, cell: int | None
    ) -> Iterator[str]:
        """What a fix removes and adds. cell: the cell of the finding."""
        style = self.style
        bar = style.gutter(f"{'':{gutter}} |")
        dots = style.gutter(f"{'':{gutter}} {_CUT}")
        if places:
            yield bar
        for number, place in enumerate(places):
            if place.cell != cell:
                yield style.gutter(f"{'':{gutter}} ::: cell {place.cell}")
                cell = place.cell
            elif number:
                yield dots
            for line in place.lines:
                shown, _, _ = excerpt(line.text, line.at, line.at, style.width)
                row = "" if line.number is None else line.number
                if line.sign == " ":
                    yield f"{style.gutter(f'{row:{gutter}} |')} {shown}".rstrip()
                else:
                    paint = style.bad if line.sign == "-" else style.good
                    yield f"{style.gutter(f'{row:{gutter}}')} {paint(f'{line.sign} {shown}'.rstrip())}"
            if place.cut:
                yield dots
        if more and places:
            yield f"{dots} and {plural(more, 'more place')}"
        if places:
            yield bar

    def _advice(self, kind: str, text: str, gutter: int) -> str:
        said = _wrap(f"{kind}: {printable(text)}", self.style.width)
        said[0] = self.style.bold(said[0][: len(kind) + 1]) + said[0][len(kind) + 1 :]
        return f"{'':{gutter}} {self.style.gutter('=')} " + f"\n{'':{gutter + 3}}".join(said)


def _wrap(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    import textwrap

    return textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def excerpt(text: str, left: int, right: int, columns: int) -> tuple[str, int, int]:
    """A line as it is shown, and where a range of it (character offsets) begins there and how wide it is.

    Tabs become spaces, control characters visible; of a line that is too long a window around the range.
    """
    # What is far from the range is not looked at: there may be a finding for every word of a long line.
    skipped, end = max(0, left - _NEAR), left + _NEAR
    near = text[skipped:end]
    if near.isascii() and near.isprintable() and "##" not in near:
        cells = [(character, 1) for character in near]
    else:
        cells = [_cell(character) for character in near]
        for found in re.finditer(r"##(?=\w*\[)", near):  # as `terminal_text` shows it, whose columns count
            cells[found.end() - 1] = ("\\u0023", 6)
    left, right = left - skipped, right - skipped
    total = sum(width for _, width in cells)
    before = sum(width for _, width in cells[:left])
    marked = sum(width for _, width in cells[left:right])
    if len(near) == len(text) and total <= columns:
        return "".join(shown for shown, _ in cells), before, marked
    # As much of the range as fits, with the text before it rather than after it.
    begin = 0
    while begin < left and before + min(marked, columns // 2) > columns - 20:
        before -= cells[begin][1]
        begin += 1
    shown_text, width, at = "", 0, begin
    while at < len(cells) and width + cells[at][1] <= columns:
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


reporter = FullReporter
