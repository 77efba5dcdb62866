"""Which files are looked at, and how each kind is read."""

from __future__ import annotations

from pathlib import Path

from torchmigrate.source.other import OtherSource, other_kind
from torchmigrate.source.text import Source

# Suffix -> what its text is. Files of other names are read, as plain Python, where a person names them.
KINDS: dict[str, type[Source]] = {".py": Source, ".pyi": Source}


def kind_of(path: Path) -> type[Source]:
    """What the text of a file is, by its name."""
    return KINDS.get(path.suffix) or (Source if other_kind(path) is None else OtherSource)


def read_source(path: Path) -> Source:
    """The text of a file. Raises SourceError if it is missing, unreadable or no text of its kind."""
    return kind_of(path).read(path)
