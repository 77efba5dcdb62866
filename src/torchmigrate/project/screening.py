"""Byte-level prefilter: which modules a file may import from or patch.

It has no false negatives.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from msgspec import Struct

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
# `t = torch`, `t = import_module("torch")`
_GIVEN_NAME = pattern(
    rb"[ \t]*=[ \t]*[A-Za-z_][\w. \t=]*(?:[\n\r#;]|\Z|(?:(?<=import_module)|(?<=importorskip))[ \t]*\()"
)
_STAR = pattern(rb"import[\s\\]*\*")
_STRING = pattern(rb"['\"][^\n]*\Z")
_QUOTES = (b"'", b'"')
_BLANK = b" \t\r\n\f\v\\"
_ALONE = pattern(rb"[ \t)]*(?:[\r\n\\;#]|\Z)")  # the text after a value that a variable gets


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
        self._binds: dict[bytes, bool] = {}

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

    def binds(self, name: bytes) -> bool:
        """Whether a variable may have what is imported: it is imported, or is given a plain name."""
        if name not in self._binds:  # most are `self`
            data = self.data
            self._binds[name] = name.decode("utf-8", "replace") in self.words or any(
                _GIVEN_NAME.match(data, found.end()) for found in re.finditer(re.escape(name), data)
            )
        return self._binds[name]

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


class Screened(Struct, frozen=True):
    """How a file may take a name of a module, as far as that is the same for all modules of one name.

    sure: of any of them. owners: if one of these is the module. rest: by what `Rest` says.
    """

    sure: bool = False
    owners: tuple[Name, ...] = ()
    rest: Rest | None = None

    def takes(self, package: str, is_module: Callable[[Name], bool]) -> bool:
        """Whether it may take the name of the module in a directory.

        is_module: whether a name in the file may mean the module.
        """
        if self.sure or any(map(is_module, self.owners)):
            return True
        rest = self.rest
        if rest is None:
            return False
        return (
            rest.held
            or (rest.attribute and (not package.isascii() or package.encode() in rest.imports.data))
            or any(map(is_module, rest.modules))
        )


class Rest(Struct, frozen=True):
    """A file that reads the name, as an attribute or in ways not written there, if it has the module.

    held: it has. modules: if one of these is the module. attribute: as one of its package, if that is named.
    """

    imports: Imports
    held: bool
    modules: tuple[Name, ...]
    attribute: bool


_SURE = Screened(sure=True)


def screen(imports: Imports, module: str, name: str, starred: bool | None) -> Screened | None:
    """Whether a file may take a name of a module, by an import, an attribute or a string; None: it does not.

    Args:
        imports: those of the file.
        module: the last part of the module's name.
        starred: whether a star import takes the name; None: only in a file that names it as well.
    """
    if not (module.isascii() and name.isascii()):
        return _SURE
    data = imports.data
    named = name.encode() in data
    starred = (named if starred is None else starred) and imports.stars
    if not (named or starred or imports.dynamic):
        return None
    held = False  # whether the file has the module as a whole
    owners: list[Name] = []
    modules: list[Name] = []
    for owner, names in imports.taken:
        own = bool(owner.parts) and owner.parts[0] not in LIBRARY_ROOTS
        if name in names or (starred and "*" in names):
            if own and owner.parts[1:][-1:] == (module,):  # `middle.module`: any of that name
                return _SURE
            owners.append(owner)
        if module in names:
            held |= own
            modules.append(owner.plus(module))
    for item in imports.whole:
        if module in item.parts:
            held |= item.parts[0] not in LIBRARY_ROOTS and item.parts[0] != module
            modules.append(item.first(module))
    rest = None
    asked = _questions(module, name)
    named = named and asked.named.search(data) is not None
    if named or imports.dynamic:
        is_string = asked.string.search(data) is not None
        is_file = is_string and asked.file.search(data) is not None
        if named and (
            is_file
            or asked.pair.search(data) is not None
            or any(_in_string(data, found.start()) for code in asked.code for found in code.finditer(data))
        ):
            return _SURE
        held |= is_file or (is_string and imports.loads)
        if imports.dynamic or any(_is_read(data, *found.span()) for found in asked.named.finditer(data)):
            rest = _rest(imports, asked, held, modules, named)
    return Screened(False, tuple(owners), rest) if owners or rest is not None else None


def _rest(imports: Imports, asked: _Questions, held: bool, modules: list[Name], named: bool) -> Rest | None:
    data = imports.data
    attribute = False
    for found in asked.attribute.finditer(data):
        if held:
            break
        before = _OWNER.search(data[max(0, found.start() - _LONGEST) : found.start()])
        if before is not None and before[1].decode("utf-8", "replace") in imports.words:
            attribute = True
            # Of anything but its package it is `s = b.module`, whose name is read later.
            held = named and _ALONE.match(data, found.end()) is not None
    return Rest(imports, held, tuple(modules), attribute) if held or modules or attribute else None


def _is_read(data: bytes, start: int, end: int) -> bool:
    """Whether a word is an attribute, or a string of its own."""
    if data[start - 1 : start] in _QUOTES and data[end : end + 1] in _QUOTES:
        return True
    return data[max(0, start - _LONGEST) : start].rstrip(_BLANK).endswith(b".")


def _in_string(data: bytes, offset: int) -> bool:
    """Whether a place may be inside of a string."""
    line = data.rfind(b"\n", 0, offset) + 1
    return _STRING.search(data[line:offset]) is not None or any(
        data.count(quotes, 0, offset) % 2 for quotes in (b"'''", b'"""')
    )


class _Questions(Struct, frozen=True):
    """Patterns for a name of a module."""

    named: re.Pattern[bytes]
    pair: re.Pattern[bytes]  # `module.name`, also in a string that is written in pieces
    attribute: re.Pattern[bytes]  # `.module`
    string: re.Pattern[bytes]  # a string that ends with the module, also as the name of a file
    file: re.Pattern[bytes]  # the name of its file
    code: list[re.Pattern[bytes]]  # `from package.module`, `import module`


@functools.lru_cache(maxsize=256)
def _questions(module: str, name: str) -> _Questions:
    stem, word = re.escape(module).encode(), re.escape(name).encode()
    patterns = (
        rb"%s(?!\w)" % word,
        rb"%s[\s\\'\"rbufRBUF)]*\.[\s\\'\"rbufRBUF(]*%s\b" % (stem, word),
        rb"\.[\s\\]*%s\b" % stem,
        rb"%s(?<=['\"/\\.}\n]%s)(?:[\s'\"\\]*\.py)?['\"]" % (stem, stem),
        rb"%s(?<=['\"/\\.}\n]%s)[\s'\"\\]*\.py['\"]" % (stem, stem),
    )
    code = [re.compile(rb"%s[ \t]+[\w.]*\b%s\b" % (keyword, stem)) for keyword in (b"from", b"import")]
    named, pair, attribute, string, file = map(re.compile, patterns)
    return _Questions(named, pair, attribute, string, file, code)


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

# The text around a name that code replaces: `.name =`, `.name: T =`, `.name, x =`;
# `as thing.name`; and in calls such as `patch("torch.name")` and `patch.multiple(torch, name=mine)`.
_BOUND = pattern(rb"\bas [\w.]+\Z")
_CHAIN = pattern(rb"(?<![\w.])(\w+)(?:\.\w+)*\Z")
# In a block on the line of its header the name may be assigned after all: `else: torch.name = mine`.
_ANNOTATED = pattern(rb"[\n(,][ \t*]*\w+[ \t]*:[ \t]*\Z")
_FIRST_WORD = pattern(rb"[ \t>.]*(\w+)")
_HEADERS = frozenset(b"if elif else for while try except finally with class match case async".split())
_ASSIGNED = pattern(rb"[ \t]*(?:=|[,:][^=\n]{0,80}=)(?!=)")
# The same of any attribute, to list all of a project at once.
BOUND = pattern(rb"as [\w.]+\.(\w+)")
ASSIGNED = pattern(rb"\.(\w+)(?=[ \t]*(?:=|[,:][^=\n]{0,80}=)(?!=))")
PATCHING = ("patch", "setattr", "delattr", "spy", "stub")
# A call, not the word alone: patches of pictures are in many files.
_PATCHING = [pattern(rb"%s(?<!\w%s)[\s\\]*[.()#]" % (word, word)) for word in map(str.encode, PATCHING)]
_SETS = pattern(rb"(?:set|del)attr\(\s*(\w+)(?:\.\w+)*\s*,")  # `setattr(self.config, name, value)`


def may_assign(data: bytes, imports: Callable[[], Imports], name: str) -> bool:
    """Whether a file may assign what has this name in something that is imported.

    Args:
        imports: returns those of the file; called last.
    """
    for found in _attributes(name).finditer(data):
        before = data[max(0, found.start() - _LONGEST) : found.start()]
        first = _CHAIN.search(before)
        bound = _BOUND.search(before) is not None
        if not bound and (
            _ASSIGNED.match(data, found.end()) is None
            or (first is not None and _is_annotation(before[: first.start()]))
        ):
            continue
        if first is None or imports().binds(first[1]):
            return True
    return False


def _is_annotation(before: bytes) -> bool:
    """Whether a name is a type, by the text before it: `x: torch.Tensor = y`."""
    named = _ANNOTATED.search(before)
    if named is None:
        return False
    lines = before.rsplit(b"\n", 2)
    continued = len(lines) > 1 and lines[-2].endswith((b"\\", b"\\\r"))
    start = _FIRST_WORD.match(lines[-1])
    return not continued and (start is None or start[1] not in _HEADERS)


def may_patch(data: bytes, imports: Callable[[], Imports], name: str) -> bool:
    """Whether a call in a file may put something else in the place of what ends with this name.

    Args:
        imports: returns those of the file; called last.
    """
    given = [found.start() for found in _given(name).finditer(data)]
    return bool(given) and (
        (any(_is_dotted(data, start) for start in given) and has_patching_call(data))
        or _patches_imported(data, imports)
    )


def _is_dotted(data: bytes, start: int) -> bool:
    """Whether a word ends a dotted name in a string, also in one that is written in pieces."""
    before = data[max(0, start - _LONGEST) : start]
    if before[-1:] not in _QUOTES:
        return before.endswith(b".")
    return before[:-1].rstrip(b"rbufRBUF").rstrip(_BLANK)[-1:] in _QUOTES  # "torch." "name"


def _patches_imported(data: bytes, imports: Callable[[], Imports]) -> bool:
    """Whether a call may replace an attribute of what is imported; most do so of an object of their own."""
    return any(
        (sets := _SETS.match(data, found.start())) is None or imports().binds(sets[1])
        for pattern in _PATCHING
        for found in pattern.finditer(data)
    )


def has_patching_call(data: bytes) -> bool:
    """Whether a file may call something that replaces a name."""
    return any(pattern.search(data) is not None for pattern in _PATCHING)


@functools.lru_cache(maxsize=256)
def _attributes(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"\.%s(?!\w)" % re.escape(name).encode())


@functools.lru_cache(maxsize=256)
def _given(name: str) -> re.Pattern[bytes]:
    word = re.escape(name).encode()
    return re.compile(rb"%s(?:['\"]|(?<![\w.]%s)[ \t]*=(?!=))" % (word, word))
