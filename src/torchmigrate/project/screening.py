"""Byte-level prefilter: which modules a file may import from or patch.

It has no false negatives.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence

from torchmigrate.patterns import pattern
from torchmigrate.project.mentions import Name
from torchmigrate.semantics.libraries import LIBRARY_ROOTS

# (Patterns that begin with letters are found quickly.)
_IMPORT = pattern(rb"import\b[ \t]*(\((?:[^)#]|#[^\n]*)*\)?|(?:\\\r?\n|[^\n;])*)")
# The text before an import: nothing, the prompt of a doctest, other statements, `from module`.
_BEFORE = pattern(rb"(?:^|[;:])[ \t>.]*(?:from\b\s*([\w. \t\\\r\n]+?)\s*)?\Z")
_LONGEST = 500  # bytes that are looked at for it
_WORD = pattern(r"\w+")
_DOTTED = pattern(r"\w+(?:[ \t]*\.[ \t]*\w+)*")
_OWNER = pattern(rb"(\w+)[\s\\]*\Z")
# A file with one of these may read a name that it does not contain.
_DYNAMIC = (
    *(pattern(rb"%s(?<!\w%s)\s*\(" % (word, word)) for word in (b"vars", b"dir", b"getmembers")),
    *(
        pattern(rb"%s(?<!\w%s)\s*\((?!\s*[\w.]+\s*,\s*[rbuRBU]?['\"])" % (word, word))
        for word in (b"getattr", b"hasattr")
    ),
)
_LOADS = (b"import_module", b"__import__", b"run_module", b"find_spec", b"reload")
_QUOTED = pattern(rb"['\"]")
_STAR = pattern(rb"import[\s\\]*\*")


class Imports:
    """What the import statements of a file name, and whether it takes names in other ways.

    Those in doctests, and in code that is a string of many lines, are among them. Everything is computed when
    it is first needed.

    Args:
        content: gives the bytes of the file, which are not kept for every file of a project.
        directory: that it is in, as parts of an absolute path.
    """

    def __init__(self, content: Callable[[], bytes], directory: tuple[str, ...]) -> None:
        self._content = content
        self._directory = directory

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self._content()

    @property
    def taken(self) -> list[tuple[Name, frozenset[str]]]:
        """Modules and what is taken from each: names, new names, `*`."""
        return self._found[0]

    @property
    def whole(self) -> list[Name]:
        """Modules that are imported as `import a.b`."""
        return self._found[1]

    @property
    def words(self) -> frozenset[str]:
        """Every part of all those names."""
        return self._found[2]

    @functools.cached_property
    def stars(self) -> bool:
        """Whether there is an `import *`."""
        return _STAR.search(self.data) is not None

    @functools.cached_property
    def dynamic(self) -> bool:
        """Whether names may be read that are not written there."""
        data = self.data
        return any(pattern.search(data) is not None for pattern in _DYNAMIC)

    @functools.cached_property
    def loads(self) -> bool:
        """Whether modules may be loaded by a name in a string."""
        data = self.data
        return any(word in data for word in _LOADS) or (b"modules" in data and "sys" in self.words)

    @functools.cached_property
    def _found(self) -> tuple[list[tuple[Name, frozenset[str]]], list[Name], frozenset[str]]:
        data = self.data
        taken: list[tuple[Name, frozenset[str]]] = []
        whole: list[Name] = []
        words: set[str] = set()
        for found in _IMPORT.finditer(data):
            before = _BEFORE.search(data[_start(data, found.start()) : found.start()])
            if before is None:
                continue
            text = found[1].decode("utf-8", "replace")
            if before[1] is None:
                for dotted in _DOTTED.findall(text):
                    parts = tuple(_WORD.findall(dotted))
                    whole.append(Name(None, parts))
                    words.update(parts)
                continue
            module = before[1].decode("utf-8", "replace")
            parts = tuple(_WORD.findall(module))
            level = (module[: module.find(parts[0])] if parts else module).count(".")
            base = self._directory[: len(self._directory) - level + 1] if level else None
            names = frozenset(_WORD.findall(text)) | frozenset(["*"] if "*" in text else ())
            taken.append((Name(base, parts), names))
            words.update(parts, names)
        return taken, whole, frozenset(words)


def _start(data: bytes, end: int) -> int:
    """Where the line begins that a place is in; lines that a backslash joins are one."""
    least = max(0, end - _LONGEST)
    start = data.rfind(b"\n", least, end) + 1
    while start > least and data[:start].endswith((b"\\\n", b"\\\r\n")):
        start = data.rfind(b"\n", least, start - 1) + 1
    return max(start, least)


def notebook_imports(data: bytes) -> Imports:
    """What the imports in a notebook name."""
    return Imports(lambda: data.replace(b"\\n", b"\n").replace(b'"', b"\n"), ())


def notebook_takes(imports: Imports, module: str, name: str) -> bool:
    """Whether a notebook that imports a module may take a name of it, which is a word in it."""
    return any(module in item.parts for item in imports.whole) or any(
        module in names or (module in owner.parts and not names.isdisjoint((name, "*")))
        for owner, names in imports.taken
    )


def screen(imports: Imports, module: str, name: str, starred: bool | None) -> Sequence[Name] | bool:
    """Whether a file may take a name of a module, by an import, an attribute or a string.

    True: of any module of this name; names: only if one of them means the module.

    Args:
        imports: those of the file.
        module: the last part of the module's name.
        starred: whether a star import takes the name; None: only in a file that names it as well.
    """
    if not (module.isascii() and name.isascii()):
        return True
    data = imports.data
    named = name.encode() in data
    starred = (named if starred is None else starred) and imports.stars
    if not (named or starred or imports.dynamic):
        return False
    owners: list[Name] = []
    modules = [item.first(module) for item in imports.whole if module in item.parts]
    for owner, names in imports.taken:
        if name in names or (starred and "*" in names):
            if owner.parts[1:][-1:] == (module,) and owner.parts[0] not in LIBRARY_ROOTS:
                return True  # `middle.module`: any of that name
            owners.append(owner)
        if module in names:
            modules.append(owner.plus(module))

    def has(form: bytes) -> bool:
        return _matches(form, module, name).search(data) is not None

    def before(form: bytes) -> Iterator[bytes]:
        for found in _matches(form, module, name).finditer(data):
            yield data[max(0, found.start() - _LONGEST) : found.start()]

    if named and (
        has(_PAIR) or has(_FILE) or any(_QUOTED.search(text.rpartition(b"\n")[2]) for text in before(_CODE))
    ):
        return True
    if not (imports.dynamic or (named and has(_READ))):
        return owners
    if (imports.loads and has(_STRING)) or any(
        (owned := _OWNER.search(text)) is not None and owned[1].decode("utf-8", "replace") in imports.words
        for text in before(_ATTRIBUTE)
    ):
        return True
    return owners + modules


# Where else the name of a module is: `module.name`, also in a string that is written in pieces; as the name
# of a file; in an import, which may be in a string; at the end of a string; and as an attribute.
_PAIR = rb"%(module)s[\s\\'\"rbufRBUF)]*\.[\s\\'\"rbufRBUF(]*%(name)s\b"
_FILE = rb"%(module)s(?<=['\"/\\.}\n]%(module)s)[\s'\"\\]*\.py['\"]"
_CODE = rb"(?:from|import)[ \t]+[\w.]*\b%(module)s\b"
_STRING = rb"%(module)s(?<=['\"/\\.}\n]%(module)s)['\"]"
_ATTRIBUTE = rb"\.[\s\\]*%(module)s\b"
# How the name in it is read.
_READ = rb"[.'\"][\s\\]*%(name)s\b"


@functools.lru_cache(maxsize=1024)
def _matches(form: bytes, module: str, name: str) -> re.Pattern[bytes]:
    return re.compile(form % {b"module": re.escape(module).encode(), b"name": re.escape(name).encode()})


# ---- what tests ask --------------------------------------------------------------------------------------

_RELEASE = pattern(rb"(?m)^\w*VERSION\w*[ \t]*(?::[^=\n]*)?=[\s('\"]*\d")
# One of these is in whatever tests what there is, or how old it is.
_ASKING = (
    b"__version__",
    b"ersion(",
    b"hasattr",
    b"find_spec",
    b"ImportError",
    b"NotFoundError",
    b"AttributeError",
)
_SHORT, _LONGEST_ANSWER = 12, 40  # lines of a function; a short one may answer by a flag of any name


def may_ask(data: bytes) -> bool:
    """Whether a module may test which release of a library there is, or what that has, or name a release."""
    return b"torch" in data.lower() and (any(word in data for word in _ASKING) or _named_release(data))


def _named_release(data: bytes) -> bool:
    """Whether a module has a constant such as `MINIMUM_TORCH_VERSION = "2.1"`, with which others compare."""
    return b"VERSION" in data and _RELEASE.search(data) is not None


def may_tell(data: bytes, name: str) -> bool:
    """Whether what such a module binds to a name may be that: no class, and no function that does more."""
    if not name.isascii():
        return False
    bound = _definition(name).search(data)
    if bound is None or bound[1] is not None:
        return bound is None
    lines = bound[2].count(b"\n")
    asks = lines <= _SHORT or any(word in bound[2] for word in _ASKING)
    return asks and lines <= _LONGEST_ANSWER


@functools.lru_cache(maxsize=256)
def _definition(name: str) -> re.Pattern[bytes]:
    word = re.escape(name).encode()
    return re.compile(
        rb"^(?:(class)|(?:async )?def) %s\b([^\n]*\n(?:(?:[ \t)#][^\n]*)?\n)*)" % word, re.MULTILINE
    )


# ---- what is replaced ------------------------------------------------------------------------------------

# `.name =`, `.name: T =`, `.name, x =`; `as thing.name`; and in calls such as `patch("torch.name")`,
# `patch.multiple(torch, name=mine)`.
_ASSIGNS = rb"(?=[ \t]*(?:=|[,:][^=\n]{0,80}=)(?!=))"
BOUND = pattern(rb"as [\w.]+\.(\w+)")
ASSIGNED = pattern(rb"\.(\w+)" + _ASSIGNS)
_ASSIGNED = rb"as [\w.]+\.%(name)s\b|\.%(name)s" + _ASSIGNS.replace(b"%", b"%%")
_GIVEN = rb"%(name)s(?:['\"]|(?<![\w.]%(name)s)[ \t]*=(?!=))"
_OWN = (b"self", b"cls")
PATCHING = ("patch", "setattr", "delattr", "spy", "stub")
# A call, not the word alone: patches of pictures are in many files.
_PATCHING = [
    pattern(rb"%s(?<!\w%s)[\s\\]*[.()#](?!\s*(?:self|cls)\b)" % (word, word))
    for word in map(str.encode, PATCHING)
]


def may_replace(data: bytes, name: str) -> bool:
    """Whether a file may put something else in the place of what ends with this name."""
    return may_assign(data, name) or (may_patch(data, name) and has_patching_call(data))


def may_assign(data: bytes, name: str) -> bool:
    """Whether a file may assign what has this name in something else than `self`."""
    for found in _matches(_ASSIGNED, "", name).finditer(data):
        *_, owner = b"", *data[max(0, found.start() - _LONGEST) : found.start()].rsplit(None, 1)
        if owner not in _OWN and not owner.startswith((b"self.", b"cls.")):
            return True
    return False


def may_patch(data: bytes, name: str) -> bool:
    """Whether a call that replaces a name, if there is any in a file, may replace this one."""
    return _matches(_GIVEN, "", name).search(data) is not None


def has_patching_call(data: bytes) -> bool:
    """Whether a file may call something that replaces a name."""
    return any(pattern.search(data) is not None for pattern in _PATCHING)
