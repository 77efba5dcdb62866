"""An index of a project: what its files take from each other, and which names they patch."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from torchmigrate.canonical import canonical
from torchmigrate.discover import DEFAULT_EXCLUDE, discover
from torchmigrate.files import SOURCE, UnreadableError, read
from torchmigrate.libraries import LIBRARY_ROOTS
from torchmigrate.project.mentions import Mentions, Name
from torchmigrate.reach import entries, exists
from torchmigrate.source import Source, SourceError

if TYPE_CHECKING:
    from torchmigrate.config import Settings

NOTEBOOK = ".ipynb"
MOST_FILES = 30_000  # of a project that is searched; in a bigger one nothing is known, and every name stays
STEPS = 4  # from module to module on the way to what a name means
MOST_BYTES = 8_000_000  # of a file; a notebook may hold pictures
_VERSION_CONTROL = (".git", ".hg", ".svn")
_PROJECT_FILES = frozenset(["pyproject.toml", "setup.py", "setup.cfg", "torchmigrate.toml"])
# Every byte that is in no identifier becomes a space.
_WORDS = bytes(
    code if code >= 128 or chr(code).isalnum() or chr(code) == "_" else ord(" ") for code in range(256)
)
_ASSIGNED = re.compile(rb"\.(\w+)(?=[ \t]*(?:[,:][^=\n]{0,80})?=(?!=))")
_BOUND = re.compile(rb"\bas [\w.]+\.(\w+)")
_QUOTED = re.compile(rb"(\w+)['\"]")
_WORD = re.compile(r"\w+")
_FILE = re.compile(r"[/\\.]")
_KEYWORD = re.compile(rb"(\w+)[ \t]*=")
_PATCHING = (b"patch", b"setattr", b"delattr", b"spy", b"stub")


class ProjectIndex:
    """Answers for all files of a run; looks at a project when the first question about it comes.

    Can be sent to another process. What it says of a file depends on the files of its project only: neither
    on those that were given, nor on how many processes there are.

    Args:
        settings: of the run, with what is excluded; None: there are no other files.
    """

    def __init__(self, settings: Settings | None) -> None:
        self.settings = settings
        self._projects: dict[Path, _Project] = {}

    def __getstate__(self) -> dict[str, object]:
        return {"settings": self.settings, "_projects": {}}

    def needed_elsewhere(self, path: Path, name: str, *, starred: bool = True) -> bool:
        """Whether another file of the project takes a name of the module at `path`.

        That is: imports it, reads it as an attribute of the module, or names it in a string, as for a patch.

        Args:
            starred: whether a star import takes it.
        """
        return self._project(path).needed(Path(os.path.realpath(path)), name, starred)

    def replaced(self, path: Path, name: str) -> bool:
        """Whether another file of the project puts something else in the place of a name of this module."""
        return self._project(path).replaces(Path(os.path.realpath(path)), name)

    def patched(self, path: Path, qualified: str) -> Path | None:
        """A file of the project of `path`, other than itself, that patches a name of a library."""
        return self._project(path).patches(Path(os.path.realpath(path)), qualified)

    def qualified(self, name: Name, path: Path) -> set[str]:
        """The names of a library that a name in a file may mean, also through modules of the project."""
        return self._project(path).qualified(name, Path(os.path.realpath(path)))

    def _project(self, path: Path) -> _Project:
        if self.settings is None:
            root = Path(os.devnull)
        else:
            above = Path(os.path.realpath(self.settings.root))
            root = project_root(Path(os.path.realpath(path)).parent, above)
        if root not in self._projects:
            self._projects[root] = _Project(root, self.settings)
        return self._projects[root]


@functools.lru_cache(maxsize=4096)
def project_root(directory: Path, root: Path) -> Path:
    """The directory of the project that a directory is in.

    That is the repository. Without one it is the highest directory that has the files of a project (such as
    `pyproject.toml`), or that is reached through directories with Python files; or `root`, if that is above.
    """
    above = [directory, *directory.parents]
    for marker in _VERSION_CONTROL:
        held = [place for place in above if marker in entries(place)]
        # A submodule, which has a file of that name, belongs to the repository around it.
        for place in [item for item in held if (item / marker).is_dir()] or held:
            return place
    import tempfile  # takes long to load, and is seldom asked

    outside = {Path.home(), Path(tempfile.gettempdir()), Path(directory.anchor)}
    inside = [place for place in above if place not in outside]
    found = [directory]
    found += [place for place in inside if not _PROJECT_FILES.isdisjoint(entries(place))]
    if root in above:
        found.append(root)
    for place in inside:
        if place != directory and not any(name.endswith(".py") for name in entries(place)):
            break
        found.append(place)
    return min(found, key=lambda place: len(place.parts))


class _Project:
    """The files below one directory."""

    def __init__(self, root: Path, settings: Settings | None) -> None:
        self.root = root
        self.settings = settings
        self._mentions: dict[Path, Mentions | None] = {}

    @functools.cached_property
    def files(self) -> list[Path]:
        """Python files and notebooks that are not excluded, by their real paths."""
        settings = self.settings
        if settings is None:
            return []
        found = discover(
            [self.root],
            exclude=DEFAULT_EXCLUDE if settings.exclude is None else settings.exclude,
            extend_exclude=settings.extend_exclude,
            respect_gitignore=settings.respect_gitignore,
            root=settings.root,
            suffixes=(".py", ".pyi", NOTEBOOK),
        )
        return [Path(os.path.realpath(path)) for path in found.files]

    @functools.cached_property
    def too_big(self) -> bool:
        return len(self.files) > MOST_FILES

    @functools.cached_property
    def modules(self) -> dict[str, list[Path]]:
        """Last name of a module -> its files."""
        found: dict[str, list[Path]] = {}
        for path in self.files:
            if path.suffix != NOTEBOOK:
                found.setdefault(module_parts(path)[-1], []).append(path)
        return found

    @functools.cached_property
    def mentioned(self) -> dict[str, list[Path]]:
        """Last name of a module -> the files with that word in them."""
        names = {name.encode(): name for name in self.modules}
        found: dict[str, list[Path]] = {}
        for path in self.files:
            if path.suffix != NOTEBOOK:
                for word in names.keys() & set(_read(path).translate(_WORDS).split()):
                    found.setdefault(names[word], []).append(path)
        return found

    @functools.cached_property
    def patching(self) -> dict[str, list[Path]]:
        """Last part of a name -> the files that may put something else in its place."""
        found: dict[str, list[Path]] = {}
        for path in self.files:
            if path.suffix == NOTEBOOK:
                continue
            data = _read(path)
            words = {*_ASSIGNED.findall(data), *_BOUND.findall(data)}
            if any(word in data for word in _PATCHING):
                words.update(_QUOTED.findall(data), _KEYWORD.findall(data))
            for item in words:
                found.setdefault(item.decode("utf-8", "replace"), []).append(path)
        return found

    # ---- questions -----------------------------------------------------------------------------------

    def needed(self, path: Path, name: str, starred: bool) -> bool:
        if self.too_big:
            return True
        module = module_parts(path)[-1]
        starred = starred and not name.startswith("_")
        for other in self._mentioning(module):
            if other != path and self._takes(other, path, name, starred):
                return True
        return any(
            other.suffix == NOTEBOOK and _has_word(_read(other), module) and _has_word(_read(other), name)
            for other in self.files
        )

    def _mentioning(self, module: str) -> list[Path]:
        if module.isidentifier() and module in self.modules:
            return self.mentioned.get(module, [])
        return [path for path in self.files if module.encode() in _read(path)]  # it may come from stdin

    def _takes(self, other: Path, path: Path, name: str, starred: bool) -> bool:
        found = self._mentions_of(other)
        if found is None:  # it does not parse: Python 2
            return _has_word(_read(other), name)
        if starred and any(self._is(star, other, path) for star in found.stars):
            return True
        held = loaded = False  # whether the module is imported as a whole, or by its name in a string
        stem = module_parts(path)[-1]
        for item in found.names:
            if (stem, name) in pairwise(item.parts[1:]) and item.parts[0] not in LIBRARY_ROOTS:
                return True  # `middle.layers.name`
            for size in range(len(item.parts) + 1):
                if not self._is(Name(item.base, item.parts[:size]), other, path):
                    continue
                if item.parts[size : size + 1] == (name,):
                    return True
                if size == len(item.parts):
                    held = True
                    if item in found.dynamic:
                        return True
        for parts in found.strings:
            for size in range(1, len(parts) + 1):
                if self._is(Name(None, parts[:size]), other, path):
                    if parts[size : size + 1] == (name,):
                        return True
                    loaded |= size == len(parts) and found.loads
        for text in found.texts:
            if stem in text and _FILE.split(text.removesuffix(".py"))[-1] == stem:
                if name in found.words:  # `exec(open("layers.py").read())` binds them all
                    return True
                loaded = True
            elif name in text and name in _WORD.findall(text) and _imports(text, stem):
                return True  # code
        if loaded and found.dynamic_objects:
            return True
        return (held or loaded) and (name in found.attributes or (name,) in found.strings)

    def replaces(self, path: Path, name: str) -> bool:
        if self.too_big:
            return False
        for other in self.patching.get(name, ()):
            found = self._mentions_of(other)
            if other == path or found is None:
                continue
            for item in found.patched:
                if item.parts[-1:] == (name,) and self._is(item._replace(parts=item.parts[:-1]), other, path):
                    return True
        return False

    def patches(self, path: Path, qualified: str) -> Path | None:
        if self.too_big:
            return None
        last = qualified.rpartition(".")[2]
        for other in self.patching.get(last, ()):
            if other != path and self._patches(other, qualified, last):
                return other
        return None

    def _patches(self, other: Path, qualified: str, last: str) -> bool:
        found = self._mentions_of(other)
        if found is None:
            return False
        return last in found.patched_anywhere or any(
            item.parts[-1] == last and qualified in self.qualified(item, other) for item in found.patched
        )

    # ---- names ---------------------------------------------------------------------------------------

    def qualified(self, name: Name, other: Path) -> set[str]:
        """The public names of a library that a name in a file may mean."""
        return set(map(canonical, self._in_library(name, other, STEPS)))

    def _in_library(self, item: Name, other: Path, steps: int) -> Iterator[str]:
        """The qualified names of a library that a name may be, through the modules of the project."""
        if item.base is None and item.parts[0] in LIBRARY_ROOTS:
            yield ".".join(item.parts)
            return
        # What is replaced in a module itself is its binding: the name in the library stays as it is.
        for size in range(1, len(item.parts) - 1):
            module = item._replace(parts=item.parts[:size])
            for path in self.modules.get(item.parts[size - 1], ()):
                found = self._mentions_of(path) if steps and self._is(module, other, path) else None
                for bound in found.bound(item.parts[size]) if found is not None else ():
                    yield from self._in_library(bound.plus(*item.parts[size + 1 :]), path, steps - 1)

    def _is(self, name: Name, other: Path, path: Path) -> bool:
        """Whether a name in `other` may be the module at `path`."""
        module = module_parts(path)
        if name.base is not None:
            return (*name.base, *name.parts) == module
        if not name.parts or module[-len(name.parts) :] != name.parts:
            return False
        # A script gets the modules that are beside it, whatever else has such a name.
        beside = other.parent
        names = entries(beside)
        if "__init__.py" not in names and (
            f"{name.parts[0]}.py" in names or _is_package(beside, name.parts[0])
        ):
            return (*beside.parts, *name.parts) == module
        return True

    def _mentions_of(self, path: Path) -> Mentions | None:
        if path not in self._mentions:
            self._mentions[path] = _mentions(path)
        return self._mentions[path]


def _imports(text: str, module: str) -> bool:
    """Whether a string holds the code of an import."""
    return (
        module in text
        and re.search(rf"\b(?:from|import)[ \t]+[\w.]*\b{re.escape(module)}\b", text) is not None
    )


def module_parts(path: Path) -> tuple[str, ...]:
    """A module as the parts of its absolute path; a package is its directory."""
    return path.parent.parts if path.stem == "__init__" else (*path.parent.parts, path.stem)


def _is_package(directory: Path, name: str) -> bool:
    return name in entries(directory) and exists(directory / name / "__init__.py")


def _mentions(path: Path) -> Mentions | None:
    """What a file takes and patches; None: it cannot be parsed."""
    try:
        return Mentions(Source.read(path).parse(), path.parent.parts)
    except (SourceError, RecursionError):
        return None


def _read(path: Path) -> bytes:
    """The content of a file; nothing where it cannot be read."""
    try:
        return read(path, SOURCE)[:MOST_BYTES]
    except UnreadableError:
        return b""


def _has_word(data: bytes, name: str) -> bool:
    """Whether an identifier is in a text, also after a newline as JSON writes it."""
    word = name.encode()
    return word in data and re.search(rb"(?:\b|\\[nt])" + re.escape(word) + rb"\b", data) is not None
