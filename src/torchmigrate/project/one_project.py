"""One project: what its files take from each other, and which names they patch."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from torchmigrate.files.paths import entries, exists
from torchmigrate.patterns import pattern
from torchmigrate.project.contents import Contents, Kept
from torchmigrate.project.discover import SettingsIn
from torchmigrate.project.importers import Taken, imported_at_import, is_reached
from torchmigrate.project.listing import (
    MOST_BYTES,
    MOST_FILES,
    NOTEBOOK,
    content_of,
    files_of,
)
from torchmigrate.project.mentions import Mentions, Name
from torchmigrate.project.module_values import (
    NO_TREE,
    ModuleValues,
    is_about_tests,
    is_telling,
    values_of,
)
from torchmigrate.project.own_states import STATE, OwnStates
from torchmigrate.project.saved_files import SavedFiles
from torchmigrate.project.screening import (
    ASSIGNED,
    BOUND,
    PATCHING,
    Imports,
    has_patching_call,
    may_assign,
    may_patch,
    may_tell,
    notebook_imports,
    notebook_takes,
    screen,
)
from torchmigrate.project.tested import Tested
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Foreign, Value
from torchmigrate.semantics.public_names import public_name
from torchmigrate.source.text import Source, SourceError
from torchmigrate.source.trees import names_attribute

STEPS = 4  # from module to module on the way to what a name means
_WORD = pattern(r"\w+")
_FILE = pattern(r"[/\\.]")
_PICTURE = pattern(rb'"image/[a-z]+":\s*"[^"]*"')  # most of what is in a notebook
_RUN = b"%run"
# `%run layers.ipynb`, and the libraries that import notebooks.
_TAKES_NOTEBOOKS = pattern(rb"%run|import_?ipynb|nbimport|importnb|ipynb\.fs")
_NOTHING = Contents([])
# For the whole process, as soon as the file is imported. (torch/serialization.py)
_DECIDES = pattern(
    rb"^(?:os\.)?environ(?:\.setdefault\(|\[)\s*['\"]TORCH_FORCE_(?:NO_)?WEIGHTS_ONLY_LOAD['\"]",
    re.MULTILINE,
)


class Project:
    """The files below one directory."""

    def __init__(self, root: Path, settings_in: SettingsIn | None) -> None:
        self.root = root
        self.settings_in = settings_in
        # By path: of a file, of a notebook for `_imports_in`.
        self._mentions = Kept(self._read)
        self._imports = Kept(self._imports_of)
        self._imports_in = Kept(self._imports_of_notebook)
        self._at_import = Kept(self._imported_at_import)
        self._values = Kept(self._values_of)
        self._states = Kept(self._states_in)
        # By the last part of a name.
        self.mentioning = Kept(self._mentioning)
        self.loading = Kept(self._loading)
        self.replacing = Kept(self._replacing)
        self._screens: dict[
            tuple[str, str, bool | None],
            tuple[list[tuple[Path, Sequence[Name] | Literal[True]]], Iterator[Path]],
        ] = {}

    def load(self) -> None:
        """Read the files, and look through them for what most runs ask."""
        _ = self.contents, self._with_calls, self._assigning, self.modules  # each is kept

    @property
    def contents(self) -> Contents:
        """Python files that are not excluded, by their real paths; none where they are too much."""
        return self._python or _NOTHING

    @cached_property
    def _python(self) -> Contents | None:
        return self._held(lambda path: path.suffix != NOTEBOOK)

    @cached_property
    def notebooks(self) -> Contents | None:
        """Notebooks that are not excluded, without the pictures in them; None: they are too much."""
        return self._held(lambda path: path.suffix == NOTEBOOK)

    def _held(self, wanted: Callable[[Path], bool]) -> Contents | None:
        """What the files hold that are wanted; None: that is too much."""
        if self._listed is None:
            return None
        left = MOST_BYTES

        def contents() -> Iterator[tuple[Path, bytes]]:
            nonlocal left
            for path in filter(wanted, self._listed or ()):
                data = content_of(path)
                left -= len(data)
                if left < 0:
                    return
                yield path, _PICTURE.sub(b"", data) if path.suffix == NOTEBOOK else data

        held = Contents(contents())
        return held if left >= 0 else None

    @cached_property
    def _listed(self) -> list[Path] | None:
        """The paths of the files; None: there is too much to look at."""
        return files_of(self.root, self.settings_in)

    @property
    def too_big(self) -> bool:
        """Whether nothing is known of the files, since to look at them would take too long."""
        return self._python is None

    # ---- checkpoints ---------------------------------------------------------------------------------

    @cached_property
    def _saved(self) -> SavedFiles:
        return SavedFiles(self.root, self.contents)

    def saves_objects(self, path: Path) -> bool:
        """Whether a file of the project writes checkpoints with more than tensors, which `path` may read."""
        return self.too_big or self._saved.saves_objects[path.parent]

    def saves_plainly(self, path: Path, name: str) -> bool | None:
        """Whether a file in the directory of `path` saves what is plain under a file name.

        False: a file of the project saves anything else under it; None: no file of the directory saves any.
        """
        return False if self.too_big else self._saved.saves_plainly[path.parent, name]

    @cached_property
    def _deciding(self) -> list[tuple[Path, tuple[str, ...]]]:
        """Where a package (or `conftest.py`) sets what `torch.load` reads, and the name of the package."""
        found = []
        for path in self.contents.holding(b"WEIGHTS_ONLY_LOAD"):
            if path.name in ("__init__.py", "conftest.py") and _DECIDES.search(self.contents[path]):
                package = parent = _parent(path)
                while path.name == "__init__.py" and "__init__.py" in entries(parent):
                    parent = parent.parent
                found.append((package, package.parts[len(parent.parts) :]))
        return found

    def decides_loading(self, path: Path) -> bool:
        """Whether a package that `path` is in or imports says for all what `torch.load` reads."""
        for directory, package in self._deciding:
            if directory in path.parents:
                return True
            if package and self.contents.get(path) is not None:
                imports = self._imports[path]
                names = [*imports.whole, *(name for name, _ in imports.taken)]
                if any(name.base is None and name.parts[: len(package)] == package for name in names):
                    return True
        return False

    # ---- words ---------------------------------------------------------------------------------------

    @cached_property
    def modules(self) -> dict[str, list[Path]]:
        """Last name of a module -> its files."""
        found: dict[str, list[Path]] = {}
        for path in self.contents.paths:
            found.setdefault(module_parts(path)[-1], []).append(path)
        return found

    @cached_property
    def _naming(self) -> dict[bytes, list[Path]]:
        """Last name of a module -> the files that have it in them as a word."""
        return self.contents.naming(
            frozenset(os.fsencode(name) for name in self.modules if name.isidentifier())
        )

    def _mentioning(self, module: str) -> list[Path]:
        """The files that have the last name of a module in them."""
        name = os.fsencode(module)
        if module not in self.modules or not module.isidentifier():
            return [*self.contents.holding(name)]
        return self._naming.get(name, [])

    def _loading(self, module: str) -> list[tuple[bytes, Imports]]:
        """What the notebooks hold that may import or run a module, and their imports."""
        notebooks = self.notebooks or _NOTHING
        held = ((path, notebooks[path]) for path in notebooks.holding(os.fsencode(module)))
        return [
            (data, self._imports_in[path])
            for path, data in held
            if _has_word(data, module) and (_RUN in data or module in self._imports_in[path].words)
        ]

    @cached_property
    def _with_calls(self) -> set[Path]:
        """The files that may call what puts something else in the place of a name."""
        named = {path for word in PATCHING for path in self.contents.holding(word.encode())}
        return {path for path in named if has_patching_call(self.contents[path])}

    @cached_property
    def _assigning(self) -> dict[bytes, set[Path]]:
        """Attribute -> the files that may assign one of that name."""
        found = self.contents.by_word(ASSIGNED)
        for name, paths in self.contents.by_word(BOUND).items():
            found.setdefault(name, set()).update(paths)
        return found

    def _replacing(self, name: str) -> list[Path]:
        """The files that may put something else in the place of what has this last part in its name."""
        word = name.encode()
        paths = self._assigning.get(word, ()) if name.isascii() else self.contents.holding(word)
        found = {path for path in paths if may_assign(self.contents[path], name)}
        return sorted(found.union(path for path in self._with_calls if may_patch(self.contents[path], name)))

    # ---- classes that keep state, and what they derive from -----------------------------------------

    @cached_property
    def _with_states(self) -> list[Path]:
        """The files with a class that makes its state dict itself."""
        return [*self.contents.holding(b"def %s(" % STATE.encode())]

    def keeps_objects(self, path: Path, name: Name, called: list[str]) -> bool:
        """Whether a class that a file imports puts objects into the state dict that it makes itself.

        called: as for `OwnStates.keeps_objects`.
        """
        word = name.parts[-1]
        if not any(b"class %s" % os.fsencode(word) in self.contents[path] for path in self._with_states):
            return False
        module = self._defining(name, path, STEPS)
        states = self._states[module] if module is not None else None
        return states is not None and states.keeps_objects(
            word, called, lambda node: self._is_plain_in(node, module)
        )

    def library_bases(self, path: Path, name: Name, without: str) -> set[str]:
        """The classes of libraries that a class derives from which a file imports from the project.

        Empty where not all bases are known, or one of the classes names an attribute in `without` (words).
        """
        module = self._defining(name, path, STEPS)
        return self._bases_in(module, name.parts[-1], without, STEPS) if module is not None else set()

    def _bases_in(self, module: Path, name: str, without: str, steps: int) -> set[str]:
        states, mentions = self._states[module], self._mentions[module]
        made = states.classes.get(name) if states is not None else None
        if states is None or made is None or mentions is None or not steps:
            return set()
        if any(names_attribute(made, word) for word in without.split()):
            return set()
        found: set[str] = set()
        for base in made.bases:
            known: set[str] = set()
            if isinstance(base, ast.Name) and base.id in states.classes:
                known = self._bases_in(module, base.id, without, steps - 1)
            for meant in mentions.meanings(base):
                known |= self.qualified(module, meant)
                if not known and (other := self._defining(meant, module, STEPS)) is not None:
                    known = self._bases_in(other, meant.parts[-1], without, steps - 1)
            if not known:
                return set()
            found |= known
        return found

    def is_plain(self, path: Path, name: Name) -> bool:
        """Whether what a file imports under a name is known to be text or a number."""
        module = self._defining(name, path, STEPS)
        states = self._states[module] if module is not None else None
        return states is not None and states.is_plain(name.parts[-1])

    def _is_plain_in(self, node: ast.expr, path: Path | None) -> bool:
        """Whether what a name in a file means, which an import binds, is known to be text or a number."""
        found = self._mentions[path] if path is not None else None
        meant = found.meanings(node) if found is not None else []
        return bool(meant) and all(path is not None and self.is_plain(path, name) for name in meant)

    def _states_in(self, path: Path) -> OwnStates | None:
        saved = self._saved.of[path]
        return None if saved is None else OwnStates(saved)

    def _defining(self, name: Name, other: Path, steps: int) -> Path | None:
        """The module that binds a name, by more than an import; None: there is none, or more."""
        found: set[Path] = set()
        waiting = [(name, other, steps)]
        while waiting:
            name, other, steps = waiting.pop()
            owner, word = replace(name, parts=name.parts[:-1]), name.parts[-1]
            last = (*(owner.base or ()), *owner.parts)[-1:]
            for path in [each for part in last for each in self.modules.get(part, ())]:
                if path == other or not self._is(owner, other, path):
                    continue
                states, mentions = self._states[path], self._mentions[path]
                if states is not None and word in states:
                    found.add(path)
                elif mentions is not None and steps:
                    sources = mentions.bound(word) or [star.plus(word) for star in mentions.stars]
                    waiting += [(source, path, steps - 1) for source in sources]
        return found.pop() if len(found) == 1 else None

    # ---- questions -----------------------------------------------------------------------------------

    def needs(self, path: Path, name: str, starred: bool | None) -> bool:
        """Whether another file of the project takes a name of the module at `path`.

        That is: imports it, reads it as an attribute of the module, or names it in a string, as for a patch.

        starred: whether a star import takes it; None: only in a file that names it as well.
        """
        module = module_parts(path)[-1]
        starred = False if name.startswith("_") else starred
        if self.too_big:
            return True
        if path.suffix == NOTEBOOK:  # which `import` does not find
            held = [data for data, _ in self.loading[module]]
            held += [self.contents[other] for other in self.mentioning[module]]
            return self.notebooks is None or any(
                _has_word(data, name) and _TAKES_NOTEBOOKS.search(data) for data in held
            )
        return (
            any(
                other != path
                and (owners is True or any(self._is(owner, other, path) for owner in owners))
                and self._takes(other, path, name, starred)
                for other, owners in self._screened(module, name, starred)
            )
            or self.notebooks is None
            or any(
                _has_word(data, name) and (_RUN in data or notebook_takes(imports, module, name))
                for data, imports in self.loading[module]
            )
        )

    def _screened(
        self, module: str, name: str, starred: bool | None
    ) -> Iterator[tuple[Path, Sequence[Name] | Literal[True]]]:
        """The files that may take a name of a module of this name, with what `screen` says of them.

        As far as somebody asks, once for all modules of that name: `train.py` is in every directory.
        """
        found, left = self._screens.setdefault((module, name, starred), ([], iter(self.mentioning[module])))
        yield from found
        for other in left:
            if owners := screen(self._imports[other], module, name, starred):
                found.append((other, owners))
                yield other, owners

    def _takes(self, other: Path, path: Path, name: str, starred: bool | None) -> bool:
        found = self._mentions[other]
        if found is None:  # it does not parse: Python 2
            return _has_word(self.contents[other], name)
        starred = _has_word(self.contents[other], name) if starred is None else starred
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
                is_file = text.endswith(".py")
                if is_file and name in found.words:  # `exec(open("layers.py").read())` binds them all
                    return True
                loaded |= is_file or found.loads
            elif name in text and name in _WORD.findall(text) and _imports(text, stem):
                return True  # code
        if loaded and found.dynamic_objects:
            return True
        return (held or loaded) and (name in found.attributes or (name,) in found.strings)

    def replaces(self, path: Path, name: str) -> bool:
        """Whether another file of the project puts something else in the place of a name of this module."""
        if self.too_big:
            return False
        for other in self.replacing[name]:
            found = self._mentions[other]
            if other == path or found is None:
                continue
            for item in found.patched:
                if item.parts[-1:] == (name,) and self._is(replace(item, parts=item.parts[:-1]), other, path):
                    return True
        return False

    def patches(self, path: Path, qualified: str) -> Path | None:
        """A file of the project of `path`, other than itself, that patches a name of a library."""
        if self.too_big:
            return None
        last = qualified.rpartition(".")[2]
        for other in self.replacing[last]:
            if other != path and self._patches(other, qualified, last):
                return other
        return None

    def _patches(self, other: Path, qualified: str, last: str) -> bool:
        found = self._mentions[other]
        if found is None:
            return False
        return last in found.patched_anywhere or any(
            item.parts[-1] == last and qualified in self.qualified(other, item) for item in found.patched
        )

    # ---- names ---------------------------------------------------------------------------------------

    def qualified(self, path: Path, name: Name) -> set[str]:
        """The public names of a library that a name may mean, also through modules of the project."""
        return set(map(public_name, self._in_library(name, path, STEPS)))

    def _in_library(self, item: Name, other: Path, steps: int) -> Iterator[str]:
        """The qualified names of a library that a name may be, through the modules of the project."""
        if item.base is None and item.parts[0] in LIBRARY_ROOTS:
            yield ".".join(item.parts)
            return
        # What is replaced in a module itself is its binding: the name in the library stays as it is.
        for size in range(1, len(item.parts) - 1):
            module = replace(item, parts=item.parts[:size])
            for path in self.modules.get(item.parts[size - 1], ()):
                found = self._mentions[path] if steps and self._is(module, other, path) else None
                for bound in found.bound(item.parts[size]) if found is not None else ():
                    yield from self._in_library(bound.plus(*item.parts[size + 1 :]), path, steps - 1)

    def tells(self, path: Path, tested: list[Tested]) -> bool:
        """Whether other files say anything of names that tests in a file ask."""
        return any(self.said(*asked, path) for asked in tested)

    def said(self, name: Name, attributes: frozenset[str], other: Path, steps: int = STEPS) -> Value:
        """What a name is that a file imports, as far as that is for tests; empty where it says nothing.

        attributes: the attributes to look up, if it may be a module; none: they are not known.
        """
        if self.too_big or not steps:
            return ()
        module = self._only(name, other)
        if module is not None:  # the file itself; a test reads one of its attributes
            asked = [name.plus(attribute) for attribute in attributes if attribute]
            if attributes and not any(self.said(each, frozenset(), other, steps) for each in asked):
                return ()
            values = self._values[module]
            return () if values is None else (Foreign(name.parts[-1], NO_TREE, values),)
        module = self._only(replace(name, parts=name.parts[:-1]), other)
        if module is None:
            return ()
        wanted = name.parts[-1]
        tells = may_tell(self.contents.get(module) or b"", wanted)
        values = self._values[module] if tells else None
        held = values(ast.Name(wanted, ast.Load())) if values is not None else ()
        if is_about_tests(held):
            return held if is_telling(held) else ()
        # It may have it from another file itself.
        imports = self._imports[module]
        named = [owner.plus(wanted) for owner, names in imports.taken if wanted in names]
        if len(named) > 1:
            return ()
        stars = [owner.plus(wanted) for owner, names in imports.taken if "*" in names]
        found = (self.said(source, attributes, module, steps - 1) for source in named or stars)
        return next(filter(None, found), ())

    def own(self, path: Path, name: Name, names: frozenset[str]) -> str | None:
        """Resolve an imported name to one of `names`, or to a module that holds one, through re-exports.

        Returns None if it is, or may be, something else.
        """
        for _ in range(STEPS):
            for own in sorted(names):
                if (dotted := _as_in(name, own.split("."))) is not None:
                    return dotted
            module = None if self.too_big else self._only(replace(name, parts=name.parts[:-1]), path)
            found = self._mentions[module] if module is not None else None
            bound = found.bound(name.parts[-1]) if found is not None else ()
            if module is None or len(bound) != 1 or _defines(self.contents[module], name.parts[-1]):
                return None
            (name,), path = bound, module
        return None

    def _only(self, name: Name, other: Path) -> Path | None:
        """The only file that a name of a module may mean; None: there is none, or more."""
        last = (*(name.base or ()), *name.parts)[-1:]
        found = [path for part in last for path in self.modules.get(part, ()) if self._is(name, other, path)]
        return found[0] if len(found) == 1 and found[0] != other else None

    # ---- imports -------------------------------------------------------------------------------------

    def importers(self, path: Path) -> list[Path]:
        module = module_parts(path)[-1]
        found = {
            other
            for other in self.mentioning[module]
            if other != path
            and other.suffix == ".py"
            and (module in self._imports[other].words)
            and any(self._is_import(taken, other, path) for taken in self._at_import[other])
        }
        if path.name == "__init__.py":
            inside = (other for other in self.contents.paths if path.parent in other.parents)
            found.update(other for other in inside if other != path and other.suffix == ".py")
        return sorted(found)

    def _imported_at_import(self, path: Path) -> list[Taken]:
        try:
            tree = Source.from_bytes(self.contents[path], path).parse()
            return imported_at_import(tree, path.parent.parts)
        except (SourceError, RecursionError):
            return []

    def _is_import(self, taken: Taken, other: Path, path: Path) -> bool:
        """Whether what is taken in a file is surely the module at `path`."""
        name = taken.name
        if self._only(name, other) != path:
            return False
        if name.base is None and not is_reached(Path(*module_parts(path)), name.parts, other, self.root):
            return False
        if not taken.member:
            return True
        # What the package binds is taken from there.
        package = self.contents.get(Path(*module_parts(path)).parent / "__init__.py")
        return package is None or not _has_word(package, name.parts[-1])

    def _is(self, name: Name, other: Path, path: Path) -> bool:
        """Whether a name in `other` may be the module at `path`."""
        module = module_parts(path)
        if name.base is not None:
            return (*name.base, *name.parts) == module
        if not name.parts or module[-len(name.parts) :] != name.parts:
            return False
        # A script imports the modules in its own directory, whatever else has such a name.
        directory = _parent(other)
        names = entries(directory)
        if "__init__.py" not in names and (
            f"{name.parts[0]}.py" in names or _is_package(directory, name.parts[0])
        ):
            return (*directory.parts, *name.parts) == module
        return True

    def _imports_of(self, path: Path) -> Imports:
        return Imports(partial(self.contents.__getitem__, path), path.parent.parts)

    def _imports_of_notebook(self, path: Path) -> Imports:
        return notebook_imports((self.notebooks or _NOTHING)[path])

    def _values_of(self, path: Path) -> ModuleValues | None:
        return values_of(path, self.contents.get(path))

    def _read(self, path: Path) -> Mentions | None:
        """What a file takes and patches; None: it cannot be parsed."""
        try:
            data = self.contents.get(path)
            source = Source.read(path) if data is None else Source.from_bytes(data, path)
            return Mentions(source.parse(), path.parent.parts)
        except (SourceError, RecursionError):
            return None


def _imports(text: str, module: str) -> bool:
    """Whether a string holds the code of an import."""
    return (
        module in text
        and re.search(rf"\b(?:from|import)[ \t]+[\w.]*\b{re.escape(module)}\b", text) is not None
    )


@lru_cache(maxsize=MOST_FILES)
def _parent(path: Path) -> Path:
    return path.parent


@lru_cache(maxsize=MOST_FILES)
def module_parts(path: Path) -> tuple[str, ...]:
    """A module as the parts of its absolute path; a package is its directory."""
    return path.parent.parts if path.stem == "__init__" else (*path.parent.parts, path.stem)


def _is_package(directory: Path, name: str) -> bool:
    return name in entries(directory) and exists(directory / name / "__init__.py")


def _as_in(name: Name, own: list[str]) -> str | None:
    """The leading part of `own` that an imported name stands for; None if it is another name."""
    parts = (*(name.base or ()), *name.parts)
    for size in range(1, len(own) + 1):
        if list(parts[-size:]) == own[:size]:
            above = parts[:-size]
            if not above if name.base is None else not exists(Path(*above, "__init__.py")):
                return ".".join(own[:size])
    return None


def _defines(data: bytes, name: str) -> bool:
    """Whether a module may bind a name otherwise than by an import."""
    defined = rb"^[ \t]*(?:(?:async )?def |class )?%s[ \t]*[=(:]" % re.escape(os.fsencode(name))
    return re.search(defined, data, re.MULTILINE) is not None


def _has_word(data: bytes, name: str) -> bool:
    """Whether an identifier is in a text, also after a newline as JSON writes it."""
    word = re.escape(os.fsencode(name))
    if not name.isascii():
        return os.fsencode(name) in data
    return re.search(rb"%s\b(?:(?<!\w%s)|(?<=\\[nt]%s))" % (word, word, word), data) is not None
