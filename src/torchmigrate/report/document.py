"""A document, and its text for a terminal and in Markdown; `web_page.py` makes a page of it.

Tiles and charts are only on pages.

A text is a string, in which `code` is between backticks, or a tuple of strings and other parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from torchmigrate.findings import Severity
from torchmigrate.printing import printable
from torchmigrate.report.bars import BarChart
from torchmigrate.report.style import Style

_NOTHING = "·"  # in a cell, on a terminal
_MOST_DETAILS = 5  # of an entry, in Markdown
_MOST_OPEN = 20  # entries of a list that are shown before a click


class Code(NamedTuple):
    """Code, whatever characters it has."""

    code: str


class Link(NamedTuple):
    """A link to a place in the source, such as `a/b.py:3`. column: is added on a terminal."""

    text: str
    address: str
    column: int


class Label(NamedTuple):
    """A word that classifies. kind: the CSS class. severity: of its color on a terminal."""

    text: str
    kind: str
    severity: Severity | None = None


Part: TypeAlias = "str | Code | Link | Label"
Text: TypeAlias = "str | tuple[Part, ...]"


class Cell(Struct, frozen=True):
    """A cell of a table. more: a small addition, such as "+2". words: what its color says."""

    text: str
    more: str = ""
    kind: str = ""
    severity: Severity | None = None
    words: str = ""

    @property
    def in_brackets(self) -> str:
        return f"({self.more})" if self.more else ""


class TableRow(NamedTuple):
    """A row of a table. data: attributes of the HTML element, by name without `data-`."""

    cells: Sequence[Cell | str | int]
    data: Mapping[str, object] = {}


class Table(Struct, frozen=True):
    """A table; the cells of its first column are text, all others are numbers. key: its class and id."""

    heads: Sequence[str]
    rows: Sequence[TableRow]
    key: str


class Entry(Struct, frozen=True):
    """An entry of a list.

    where, label: in front. notes: below; aside: not on a terminal. details: names; only HTML
    shows all. diff: a diff of git, only in HTML.
    """

    text: Text
    where: Code | Link | None = None
    label: Label | None = None
    notes: tuple[Text, ...] = ()
    aside: Text = ""
    details: tuple[Part, ...] = ()
    diff: str = ""


class List(Struct, frozen=True):
    """A list.

    most: entries that a terminal shows. summary: a sentence about it, which a click opens. advice: below it.
    """

    entries: Sequence[Entry]
    most: int | None = None
    summary: str = ""
    advice: Sequence[str] = ()

    @property
    def is_long(self) -> bool:
        return len(self.entries) > _MOST_OPEN


class Paragraph(NamedTuple):
    """A paragraph. key: its id."""

    text: Text
    key: str = ""


class Tile(NamedTuple):
    """A number with its name. kind: the CSS class. note: below."""

    number: int
    name: str
    kind: str
    note: str = ""


class Tiles(NamedTuple):
    """Numbers that are shown large, side by side."""

    tiles: Sequence[Tile]


class Section(Struct, frozen=True):
    """A part with a title. key: its id. severity: of the title's color on a terminal."""

    title: str
    blocks: Sequence[Block]
    key: str = ""
    severity: Severity | None = None


Block: TypeAlias = "Paragraph | Table | List | Section | Tiles | BarChart"


class Document(Struct, frozen=True):
    """A document. kind: what it is. name: what it is about. facts: of its header in HTML."""

    kind: str
    title: str
    name: str
    headline: str
    blocks: Sequence[Block]
    facts: Mapping[str, str] = {}


def parts_of(text: Text) -> Iterator[Part]:
    """The parts of a text: code between backticks is a part of its own."""
    for part in (text,) if isinstance(text, str) else text:
        if not isinstance(part, str):
            yield part
            continue
        for number, piece in enumerate(re.split(r"`([^`\n]+)`", part)):
            if piece:
                yield Code(piece) if number % 2 else piece


def one_line(text: str, most: int = 300) -> str:
    """A text of strangers as one line of a sensible length."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


# ---- terminal ----------------------------------------------------------------------------------------------


def as_text(document: Document, style: Style) -> str:
    """The document for a terminal."""
    head = printable(document.headline)
    named = head.startswith(document.name)
    lines = [style.bold(head) if named else f"{style.bold(document.name)}: {head}", ""]
    lines += _lines(document.blocks, style)
    return "\n".join(lines) + "\n"


def _lines(blocks: Sequence[Block], style: Style) -> Iterator[str]:
    before: Block | None = None
    for block in blocks:
        if isinstance(before, List) and isinstance(block, Paragraph):
            yield ""
        before = block
        if isinstance(block, Section):
            title = block.title.upper()
            yield ""
            yield style.bold(title) if block.severity is None else style.severity(block.severity, title)
            yield from _lines(block.blocks, style)
        elif isinstance(block, Table):
            yield from _table_lines(block, style)
        elif isinstance(block, List):
            yield from _list_lines(block, style)
        elif isinstance(block, Paragraph):
            yield _line(block.text, style)


def _line(text: Text, style: Style) -> str:
    return "".join(
        _colored(part, part.text, style) if isinstance(part, Label) else printable(_plain(part))
        for part in ((text,) if isinstance(text, str) else text)
    )


def _plain(part: str | Code | Link) -> str:
    if isinstance(part, Link):
        return f"{part.text}:{part.column}"
    return part if isinstance(part, str) else part.code


def _colored(part: Label | Cell, text: str, style: Style) -> str:
    if part.severity is not None:
        return style.severity(part.severity, text)
    return {"runs": style.good, "stops": style.bad, "rule": style.bold}.get(part.kind, str)(text)


def _list_lines(block: List, style: Style) -> Iterator[str]:
    if block.summary:
        yield block.summary
    entries = block.entries[: block.most]
    width = max((len(_plain(each.where)) for each in entries if each.where), default=0)
    wide = max((len(each.label.text) for each in entries if each.label), default=0)
    for each in entries:
        where = f"{printable(_plain(each.where)):{width}}  " if each.where else ""
        label = _colored(each.label, f"{each.label.text:{wide}}", style) + "  " if each.label else ""
        yield f"  {where}{label}{_line(each.text, style)}"
        if each.details:
            more = f" and {len(each.details) - 1} more" if len(each.details) > 1 else ""
            yield f"    {_line(each.details[:1], style)}{more}"
        yield from (f"    {_line(note, style)}" for note in each.notes)
    if len(entries) < len(block.entries):
        yield f"  and {len(block.entries) - len(entries)} more"
    yield from (style.dim(f"  {_line(each, style)}") for each in block.advice)


def _table_lines(table: Table, style: Style) -> Iterator[str]:
    cells = [[cell_of(each) for each in row.cells] for row in table.rows]
    texts = [
        [printable(" ".join(filter(None, (cell.text, cell.in_brackets)))) for cell in row] for row in cells
    ]

    def colored(row: int, column: int, text: str) -> str:
        if not row:
            return style.bold(text)
        if text == _NOTHING:
            return style.dim(text)
        cell = cells[row - 1][column]
        number = text[: len(text) - len(cell.in_brackets)]
        return _colored(cell, number, style) + cell.in_brackets

    rows = [[text or _NOTHING for text in row] for row in texts]
    yield from columns([[head.upper() for head in table.heads], *rows], colored)


def columns(
    rows: Sequence[Sequence[str]],
    shown: Callable[[int, int, str], str] = lambda row, column, text: text,
    numbers: Container[int] = (),
) -> Iterator[str]:
    """Rows of cells as lines, in columns.

    shown: what is shown of a cell (its row, its column, its text), with colors. numbers: the columns that are
    aligned at their end.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        line = ""
        for column, (text, width) in enumerate(zip(row, widths, strict=True)):
            blank = " " * (width - len(text))
            colored = shown(number, column, text)
            line += f"{blank}{colored}  " if column in numbers else f"{colored}{blank}  "
        yield line.rstrip()


def cell_of(cell: Cell | str | int) -> Cell:
    """A cell; the number 0 is an empty one."""
    return cell if isinstance(cell, Cell) else Cell(str(cell or ""))


# ---- Markdown ----------------------------------------------------------------------------------------------


def as_markdown(document: Document) -> str:
    """The document for an issue or a pull request."""
    blocks = [Paragraph(document.headline), *document.blocks]
    return "\n".join([f"# {escape(document.title)}", *_markdown(blocks, 2)]) + "\n"


def _markdown(blocks: Sequence[Block], level: int) -> Iterator[str]:
    for block in blocks:
        yield ""
        if isinstance(block, Section):
            yield f"{'#' * level} {escape(block.title)}"
            yield from _markdown(block.blocks, level + 1)
        elif isinstance(block, Table):
            yield _markdown_row(block.heads)
            yield _markdown_row(["---", *["---:"] * (len(block.heads) - 1)])
            for row in block.rows:
                yield _markdown_row([_markdown_cell(cell_of(each)) for each in row.cells])
        elif isinstance(block, List):
            folded = bool(block.summary) and block.is_long
            if folded:
                yield from ("<details>", f"<summary>{block.summary}</summary>", "")
            elif block.summary:
                yield from (f"{block.summary}:", "")
            for entry in block.entries:
                yield f"- {_markdown_entry(entry)}"
                more = (*entry.notes, entry.aside, *((each,) for each in entry.details[:_MOST_DETAILS]))
                yield from (f"  - {markdown_text(each)}" for each in more if each)
            if folded:
                yield from ("", "</details>")
            for each in block.advice:
                yield from ("", markdown_text(each))
        elif isinstance(block, Paragraph):
            yield markdown_text(block.text)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    text = ": ".join(filter(None, (cell.text, cell.words)))
    return escape(" ".join(filter(None, (text, cell.in_brackets))))


def _markdown_entry(entry: Entry) -> str:
    label = f"**{entry.label.text}**" if entry.label else ""
    front = ", ".join(filter(None, [markdown_text((entry.where,)) if entry.where else "", label]))
    text = markdown_text(entry.text)
    return f"{front}: {text}" if front else text


def markdown_text(text: Text) -> str:
    """A text in Markdown."""
    shown = ""
    for part in parts_of(text):
        if isinstance(part, Code):
            ticks = "``" if "`" in part.code else "`"
            shown += f"{ticks}{part.code}{ticks}"
        elif isinstance(part, Link):
            # An address may hold parentheses: in a template, or in the directories of a path.
            address = part.address.replace("(", "%28").replace(")", "%29")
            shown += f"[{escape(part.text)}]({address})"
        else:
            shown += f"**{escape(part.text)}**" if isinstance(part, Label) else escape(part)
    return shown


def escape(text: str) -> str:
    """Text that means nothing in Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", text)
