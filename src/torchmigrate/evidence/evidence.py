"""Evidence: what a recording says of the places of a project's files, as long as the files are unchanged.

It is looked up by place: the line and the column (of bytes, as in `ast`) at which the name of an attribute or
of a function stands that is looked up or called there.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from torchmigrate.evidence.kinds import Seen, parse
from torchmigrate.evidence.location import find
from torchmigrate.files.paths import remembered
from torchmigrate.files.reading import MEGABYTE, UnreadableError, read
from torchmigrate.source.text import Source, SourceError
from torchmigrate.source.trees import walk

if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = 1
MOST = 16 * MEGABYTE  # bytes of a file with evidence
RECEIVER, SHAPES = "receiver", "shapes"
_ANY = "*"  # so many kinds that nothing is known
_GONE = "gone"
_SYMBOLS: dict[type[ast.operator], str] = {ast.Div: "/", ast.FloorDiv: "//", ast.Sub: "-"}

Slots = Mapping[str, tuple[Seen, ...]]  # "receiver", "0", "device" -> what was seen there


class FileEvidence(Struct, frozen=True):
    """What is known of one file.

    places: (line, column in characters from 1, name) -> what was seen. warnings: line -> the messages of
    torch.
    """

    sha256: str
    places: Mapping[tuple[int, int, str], Slots]
    warnings: Mapping[int, Sequence[str]]


class SeenPlaces:
    """What was seen in one text, by line and column in bytes. warnings: as in `FileEvidence`."""

    def __init__(
        self,
        source: Source,
        places: Mapping[tuple[int, int, str], Slots],
        warnings: Mapping[int, Sequence[str]],
    ) -> None:
        self.of_names = places
        self.warnings = warnings
        self._places: dict[tuple[int, int, str], Slots] = {}
        for (line, column, name), slots in places.items():
            before = source.line_text(line)[: column - 1]
            self._places[line, len(before.encode("utf-8", "surrogatepass")), name] = slots

    def operands(self, node: ast.expr) -> Iterator[tuple[ast.expr, tuple[Seen, ...]]]:
        """What was seen of the operands of an operator, and of what a subscript is indexed with."""
        if isinstance(node, ast.BinOp):
            slots = self._places.get(
                (node.right.lineno, node.right.col_offset, _SYMBOLS.get(type(node.op), ""))
            )
            for slot, operand in (("0", node.left), ("1", node.right)):
                if slots is not None and slot in slots:
                    yield operand, slots[slot]
        elif isinstance(node, ast.Subscript):
            for index in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
                slots = self._places.get((index.lineno, index.col_offset, "["))
                if slots is not None and "0" in slots:
                    yield index, slots["0"]

    def at(self, node: ast.expr) -> Slots | None:
        """What was seen at an attribute or a name; None: nothing."""
        if isinstance(node, ast.Attribute):
            name = node.attr
            line, end = node.end_lineno, node.end_col_offset
            assert line is not None and end is not None, "parsed"
            return self._places.get((line, end - len(name.encode()), name))
        if isinstance(node, ast.Name):
            return self._places.get((node.lineno, node.col_offset, node.id))
        return None


class Evidence:
    """The evidence of one project. root: the directory whose files it is about."""

    def __init__(self, root: Path, files: Mapping[str, FileEvidence]) -> None:
        self.root = root
        self.files = files

    def of(self, path: Path, source: Source) -> SeenPlaces | None:
        """What is known of a file; None: nothing, or it has changed since."""
        real = os.path.realpath(path)
        root = str(self.root).rstrip(os.sep) + os.sep
        entry = self.files.get(real[len(root) :].replace(os.sep, "/")) if real.startswith(root) else None
        if entry is None:
            return None
        import hashlib  # as `json` below: not for a run without evidence

        try:
            text = hashlib.sha256(source.content()).hexdigest()
        except SourceError:
            return None
        return SeenPlaces(source, entry.places, entry.warnings) if text == entry.sha256 else None


class EvidenceOfFiles:
    """Finds the evidence of each file that is analysed; for a text that fixes made, the evidence of the text
    before.

    wanted: whether evidence is used at all.
    """

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted
        self._latest: tuple[str, SeenPlaces | None] | None = None

    def of(self, path: Path, source: Source) -> SeenPlaces | None:
        """What was seen in a text; None: nothing is known."""
        if not self.wanted or type(source) is not Source:
            return None
        if self._latest is not None and self._latest[0] == source.text:
            return self._latest[1]
        found = find(path.parent)
        evidence = None if found is None else _loaded(found)[0]
        if evidence is None:
            return None
        seen = evidence.of(path, source)
        self._latest = source.text, seen
        return seen

    def follow(
        self,
        path: Path,
        before: Source,
        after: Source,
        moved: Callable[[int], int],
        changed: Sequence[tuple[int, int]],
    ) -> None:
        """A text became another one by fixes.

        What an object is that something is looked up on stays; arguments of a statement that was changed may
        be others now.

        moved: where an offset of the old text is in the new one. changed: start and end of what was replaced.
        """
        seen = self.of(path, before)
        if seen is None:
            return
        rows = _rows_of_statements(before, changed)
        places: dict[tuple[int, int, str], Slots] = {}
        for (line, column, name), slots in seen.of_names.items():
            if name.isidentifier() and not before.line_text(line)[column - 1 :].startswith(name):
                continue
            start = before.line_start(line) + column - 1
            if any(begin < start + len(name) and start < end for begin, end in changed):
                continue
            if line in rows:
                slots = {RECEIVER: slots[RECEIVER]} if RECEIVER in slots else {}
            if slots:
                row, place = after.position(moved(start))
                places[row, place, name] = slots
        self._latest = after.text, SeenPlaces(after, places, {})


def _rows_of_statements(source: Source, spans: Sequence[tuple[int, int]]) -> set[int]:
    """The lines of the statements, of their headers if they have a body, in which something of a text is."""
    wanted: set[int] = set()
    for start, end in spans:
        wanted.update(range(source.position(start)[0], source.position(max(start, end - 1))[0] + 1))
    rows = set(wanted)
    for node in walk(source.parse()):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        last = body[0].lineno if isinstance(body, list) and body else node.end_lineno or node.lineno
        lines = range(node.lineno, last + 1)
        if not wanted.isdisjoint(lines):
            rows.update(lines)
    return rows


class Warned(Struct, frozen=True, order=True):
    """A warning that a line led to. path: relative to the project; text: without values of the user."""

    path: str
    line: int
    text: str


def warnings_in(data: bytes, root: Path) -> list[Warned]:
    """The warnings of torch in a recording, of files that are as they were; nothing in what is none."""
    import hashlib
    import json

    found = []
    try:
        for name, entry in json.loads(data)["files"].items():
            lines = entry.get("warnings", {}).items()
            if (
                not lines
                or hashlib.sha256(read(root / name, MOST, within=root)).hexdigest() != entry["sha256"]
            ):
                continue
            found += [Warned(name, int(line), str(text)) for line, texts in lines for text in texts]
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, UnreadableError):
        return []
    return sorted(found)


def problem_with(path: Path) -> str | None:
    """Why evidence cannot be used, in one line; None: it can."""
    return _loaded(path)[1]


@remembered
def _loaded(path: Path) -> tuple[Evidence | None, str | None]:
    root = path.parent.parent
    try:
        return Evidence(root, _parsed(read(path, MOST, within=root))), None
    except UnreadableError as error:
        return None, error.reason


def _parsed(data: bytes) -> dict[str, FileEvidence]:
    """The files of evidence. Raises UnreadableError for what is none."""
    import json

    try:
        content: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreadableError("is not valid JSON: record it again") from None
    try:
        if content["version"] != VERSION:
            raise UnreadableError("was recorded by another version: record it again")
        return {str(name): _entry(entry) for name, entry in content["files"].items()}
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UnreadableError("was not written by `torchmigrate record`: record it again") from None


def _entry(entry: Any) -> FileEvidence:
    places: dict[tuple[int, int, str], Slots] = {}
    for place, slots in entry["places"].items():
        where, _, name = place.partition(" ")
        line, _, column = where.partition(":")
        if not (line.isdecimal() and column.isdecimal() and len(where) < 20 and int(line) and int(column)):
            raise ValueError(place)
        places[int(line), int(column), name] = {
            str(slot): found for slot, kinds in slots.items() if slot != _GONE and (found := _kinds(kinds))
        }
    warnings = {int(line): tuple(map(str, texts)) for line, texts in entry.get("warnings", {}).items()}
    return FileEvidence(str(entry["sha256"]), places, warnings)


def _kinds(texts: Any) -> tuple[Seen, ...]:
    """What was seen at a slot; nothing where that is too much to be of use."""
    if not isinstance(texts, list) or _ANY in texts:
        return ()
    found = [parse(text) for text in texts]
    return () if None in found else tuple(kind for kind in found if kind is not None)
