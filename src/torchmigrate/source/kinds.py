"""Which files are looked at, and how each kind is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from torchmigrate.source.other import CPP, OtherSource, other_kind
from torchmigrate.source.text import Source


def _python() -> type[Source]:
    return Source


def _notebook() -> type[Source]:
    from torchmigrate.source.notebook import Notebook  # most runs have none

    return Notebook


def _document() -> type[Source]:
    from torchmigrate.source.document import Document

    return Document


# Suffix -> what its text is. Files of other names are read, as plain Python, where a person names them.
KINDS: dict[str, Callable[[], type[Source]]] = {".py": _python, ".pyi": _python, ".ipynb": _notebook}
# The same for files of documentation only, which are checked on request. Documentation within Markdown and
# Python is found by `source.embedded`.
DOCUMENTS: dict[str, Callable[[], type[Source]]] = {".rst": _document}


def kind_of(path: Path, *, embedded: bool = False) -> type[Source]:
    """What the text of a file is, by its name. embedded: whether Python in documentation is meant."""
    kind = KINDS.get(path.suffix) or (DOCUMENTS.get(path.suffix) if embedded else None)
    if kind is None and other_kind(path) is not None:
        return OtherSource
    return (kind or _python)()


def with_code(paths: Sequence[Path]) -> Sequence[Path]:
    """Those of some files that hold code, not lists or commands; all if none does."""
    return [path for path in paths if other_kind(path) in (None, CPP)] or paths


def read_source(path: Path, *, embedded: bool = False) -> Source:
    """The text of a file. Raises SourceError if it is missing, unreadable or no text of its kind."""
    return kind_of(path, embedded=embedded).read(path)


def source_of_text(text: str, path: Path, *, embedded: bool = False) -> Source:
    """The text of a file that need not hold it. Raises SourceError if it is not a text of its kind."""
    kind = kind_of(path, embedded=embedded)
    if kind is Source and "\0" not in text:
        return Source.from_text(text, path)
    return kind.from_bytes(text.encode("utf-8", "surrogatepass"), path)
