"""What the bytes of a file say of what it may take from a module, before anybody parses it.

Never wrong in saying that it takes nothing.
"""

from __future__ import annotations

import re

from torchmigrate.libraries import LIBRARY_ROOTS

_IMPORT = re.compile(
    rb"(?:^|[;:])[ \t>.]*(?:from[ \t]+([\w. \t]+?)[ \t]+)?import\b[ \t]*(\([^)]*\)?|(?:\\\r?\n|[^\n])*)",
    re.MULTILINE,
)
_WORD = re.compile(rb"\w+")
_STAR = re.compile(rb"\bimport[ \t\\\r\n]*\*")
_OWNER = re.compile(rb"(\w+)[ \t]*\.[ \t]*\Z")
_ROOTS = frozenset(root.encode() for root in LIBRARY_ROOTS)
# Whoever has one of these may read a name that is not written there.
_ANY_NAME = (
    b"getattr",
    b"hasattr",
    b"vars",
    b"dir(",
    b"getmembers",
    b"__dict__",
    b"exec",
    b"eval",
    b"globals",
)


def notebook_code(data: bytes) -> bytes:
    """The bytes of a notebook with the lines of its cells as lines, as far as finding imports needs it."""
    return data.replace(b"\\n", b"\n").replace(b'"', b"\n")


def imported_words(data: bytes) -> frozenset[bytes]:
    """The parts of what the imports of a file name, those from the libraries left out."""
    words: set[bytes] = set()
    for module, names in _IMPORT.findall(data):
        if module.partition(b".")[0].strip() not in _ROOTS or b";" in names:
            words.update(_WORD.findall(module))
            words.update(_WORD.findall(names))
    return frozenset(words)


def may_take(data: bytes, imported: frozenset[bytes], module: str, name: str, starred: bool) -> bool:
    """Whether a file may take a name of a module: by an import, an attribute, or in a string.

    Args:
        imported: the `imported_words` of the file.
        module: the last part of its name.
        starred: whether a star import takes the name.
    """
    if not (module.isascii() and name.isascii()):
        return True
    word = name.encode()
    named = word in data and re.search(rb"\b%s\b" % word, data)
    if not named and not (starred and _STAR.search(data)) and not any(text in data for text in _ANY_NAME):
        return False
    stem = module.encode()
    if stem in imported:
        return True
    for found in re.finditer(rb"\b%s\b" % re.escape(stem), data):
        start, end = found.span()
        before = data[data.rfind(b"\n", 0, start) + 1 : start]
        if b"'" in before or b'"' in before or b">>>" in before:
            return True
        # The end of a long string, or of a chain that goes over several lines.
        owner = _OWNER.search(before)
        if owner is not None and owner[1] in imported:
            return True
        if before.strip() in (b"", b".") or before.rstrip().endswith((b"/", b"\\")):
            return True
        rest = data.find(b"\n", end)
        if data[end : end + 3] == b".py" or b"'''" in data[end:rest] or b'"""' in data[end:rest]:
            return True
    return False
