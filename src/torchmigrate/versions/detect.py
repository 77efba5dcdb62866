"""What a project requires for a file, as its own dependencies say: the oldest torch that it supports."""

from __future__ import annotations

import ast
import functools
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.files.formats import FormatError, check_yaml, read_cfg, read_toml
from torchmigrate.files.paths import (
    directories_of_project,
    entries,
    is_dir,
    is_file,
    project_of,
    real_directory,
)
from torchmigrate.files.reading import UnreadableError, read
from torchmigrate.patterns import pattern
from torchmigrate.source.trees import walk
from torchmigrate.versions.requirement_lists import (
    LONGEST,
    MOST_INCLUDED,
    OTHER_PURPOSE,
    PACKAGES,
    Note,
    StatingFile,
    Trouble,
    decode,
    requirement_lines,
    silent,
)
from torchmigrate.versions.setup_file import SetupFile, read_setup

if TYPE_CHECKING:
    from torchmigrate.versions.bounds import Bound
    from torchmigrate.versions.releases import Version

# How the names of all files begin that state what a project requires.
_NAMES = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "requirement",
    "dependencies",
    "conda",
    "environment",
    "cog",
    "pixi.toml",
    "Pipfile",
    "meta.yaml",
    "recipe",
    ".conda",
)
_YAML = (".yml", ".yaml")
# What a file names that matters although another one has the bound of torch.
_NEIGHBORS = (b"lightning", b"transformers")
_OTHERS = (
    *(b"torchvision", b"torchaudio", b"torchtext", b"torchdata", b"torchao", b"torchmetrics", *_NEIGHBORS),
    *map(str.encode, PACKAGES),
)
_TEMPLATE = "__template__"  # stands for unknown values in a recipe
# Where projects have the recipe of their conda package.
_RECIPES = ("", "conda.recipe", "conda-recipe", "recipe", ".conda", "conda", "conda/recipe")
MOST_OTHERS = 50  # files at the top that may be an environment
# Requirements for documentation and checks are not requirements of the library.
_OTHER_DIRECTORIES = frozenset(["docs", "doc", "documentation", ".github", ".circleci", ".ci", "ci"])
_DEVELOPMENT = r"(?i)(?:^|[-_.])(?:dev|develop|development|tests?|testing|build)(?:[-_.]|$)"


class Required(Struct, frozen=True):
    """What is required for a file, as far as it matters here.

    minimum: the oldest torch that is allowed; None: no file says. path: the file that says it. python: the
        oldest Python of the project, if the first torch that was built for it is that minimum, and a newer
        one than the file says.
    packages: those of `PACKAGES` that are declared, for a part of the project or for an extra as well.
    companions: the oldest release of other libraries that is allowed, if one is declared.
    """

    minimum: Version | None = None
    path: Path | None = None
    python: Version | None = None
    packages: frozenset[str] = frozenset()
    companions: frozenset[tuple[str, Version]] = frozenset()


class _Stated(Struct, frozen=True):
    """What the files of a directory state: bounds by file, `PACKAGES`, and companions."""

    bounds: Mapping[Path, Sequence[Bound]] = MappingProxyType({})
    packages: frozenset[str] = frozenset()
    companions: Mapping[str, Version] = MappingProxyType({})


class Requirements:
    """What projects require for their files; every directory is looked at once.

    For a file counts what is required in the directories from the root of its project (the repository; where
    there is none, from the highest one below one that many share, such as the home directory) to its own.
    The oldest torch of them is the minimum: a part of a project may ask for an older one than the root, but
    not for a newer one, since what is in it may be used with what the root allows.

    A torch that was never built for the oldest Python of the project is not supported, whatever the bound:
    the nearest of pyproject.toml, setup.cfg and setup.py that names a Python counts.

    In one directory the first of pyproject.toml, setup.cfg, setup.py, requirements files, pixi.toml, Pipfile,
    recipes of conda, conda environments and cog.yaml that states a lower bound counts; requirements for
    development and tests come last, those for documentation and checks not at all. Nothing is executed, and
    nothing is read that is not in the project (`project_of`).

    Args:
        note: receives, in a line, what was not understood. trouble: receives a file that was not read, or is
        not what its name says.
    """

    def __init__(self, note: Note = silent, trouble: Trouble = silent) -> None:
        self.note = note
        self.trouble = trouble
        self._stated: dict[Path, _Stated] = {}
        self._found: dict[Path, Required] = {}
        self._pythons: dict[Path, Version | None] = {}

    def of(self, path: Path) -> Required:
        """What is required for a file, which need not exist."""
        if os.path.islink(path):  # noqa: PTH114 (never raises)
            path = Path(os.path.realpath(path))
        directory = path.parent
        if directory not in self._found:
            places = _of_the_library(directories_of_project(real_directory(directory)))
            required = _required([self._stated_in(place) for place in reversed(places)])
            self._found[directory] = self._for_python(required, places)
        return self._found[directory]

    def _for_python(self, required: Required, places: Sequence[Path]) -> Required:
        from torchmigrate.versions.releases import PYTHONS

        if required.minimum is None:
            return required
        python = next(filter(None, map(self._python_in, places)), None)
        if python is None or PYTHONS[python] <= required.minimum:
            return required
        return replace(required, minimum=PYTHONS[python], python=python)

    def _python_in(self, directory: Path) -> Version | None:
        if directory not in self._pythons:
            self._pythons[directory] = _read_python(directory)
        return self._pythons[directory]

    def _stated_in(self, directory: Path) -> _Stated:
        if directory not in self._stated:
            self._stated[directory] = _read_directory(directory, self.note, self.trouble)
        return self._stated[directory]


def _of_the_library(places: Sequence[Path]) -> list[Path]:
    """Directories and those around them, without documentation and what runs tests, and what is in these."""
    found: list[Path] = []
    for place in reversed(places):
        if found and place.name in _OTHER_DIRECTORIES:
            break
        found.insert(0, place)
    return found


def _required(places: Sequence[_Stated]) -> Required:
    """What directories state together; of the same minimum in several of them, the first is named."""
    packages = frozenset().union(*(place.packages for place in places))
    stated = [(bound, path) for place in places for path, held in place.bounds.items() for bound in held]
    least = {
        library: min(place.companions[library] for place in places if library in place.companions)
        for library in {library for place in places for library in place.companions}
    }
    companions = frozenset(least.items())
    if not stated:
        return Required(None, None, packages=packages, companions=companions)
    from torchmigrate.versions.bounds import lowest  # with all that understands requirements

    minimum, bound = lowest([bound for bound, _ in stated])
    path = next((path for held, path in stated if held is bound), None)
    return Required(minimum, path, packages=packages, companions=companions)


def _read_directory(directory: Path, note: Note, trouble: Trouble) -> _Stated:
    found: dict[Path, Sequence[Bound]] = {}
    of_torch = False  # there is a bound of torch itself
    project = None
    packages: set[str] = set()
    companions: dict[str, Version] = {}
    for reader, paths in _candidates(directory):
        project = project or project_of(directory)
        least: dict[str, Version] = {}
        if of_torch:  # problems of files that do not count for the minimum are not reported
            for path in paths:
                _bounds(reader, StatingFile(path, project, silent, silent, packages, least), *_OTHERS)
            companions = least | companions
            continue
        files = [StatingFile(path, project, note, trouble, packages, least) for path in paths]
        here = {file.path: held for file in files if (held := _bounds(reader, file, b"torch", *_NEIGHBORS))}
        of_torch = any(not bound.companion for held in here.values() for bound in held)
        companions = least | companions
        if of_torch or not found:
            found |= here
    return _Stated(found, frozenset(packages), companions)


Reader = Callable[[StatingFile, bytes], "Iterable[Bound | None]"]


def _candidates(directory: Path) -> Iterator[tuple[Reader, list[Path]]]:
    """Readers with the files they are for, strongest first; the lowest bound of one group counts."""
    held = entries(directory)
    # Environments of other names, `linux_gpu.yml`, are next to the README that describes them.
    is_told = any(name.lower().startswith("readme") for name in held)
    names = sorted(
        name
        for name in held
        if name.startswith(_NAMES) or (is_told and name.endswith(_YAML) and not name.startswith("."))
    )
    if not names:
        return
    requirements = [
        directory / name
        for name in names
        if name.startswith("requirement") and re.fullmatch(r"requirements?[\w.-]*\.(?:txt|in)", name)
    ]
    for name in ("requirements", "dependencies"):
        if name in names and is_dir(directory / name):
            requirements += sorted((directory / name).glob("*.txt"))
            requirements += sorted((directory / name).glob("*/base.txt"))  # of parts of it
    requirements = [path for path in requirements if not re.search(OTHER_PURPOSE, path.stem)]
    main = [path for path in requirements if path.name == "requirements.txt" and path.parent == directory]
    others = [path for path in requirements if path not in main]
    development = [path for path in others if re.search(_DEVELOPMENT, path.stem)]
    conda = [
        directory / name
        for name in names
        if name.startswith(("conda", "environment")) and re.fullmatch(r"\w[\w.-]*\.ya?ml", name)
    ]
    for name, reader in (("pyproject.toml", _pyproject), ("setup.cfg", _setup_cfg), ("setup.py", _setup_py)):
        if name in names:
            yield reader, [directory / name]
    yield _requirements, main
    yield _requirements, [path for path in others if path not in development]
    for name, reader in (("pixi.toml", _pixi_toml), ("Pipfile", _pipfile)):
        if name in names:
            yield reader, [directory / name]
    yield (
        _recipe,
        [place for place in (directory / name / "meta.yaml" for name in _recipes(held)) if is_file(place)],
    )
    yield _environment, conda
    if environments := [
        directory / name
        for name in names
        if name.endswith(_YAML) and directory / name not in conda and name != "meta.yaml"
    ]:
        yield _other_environment, environments[:MOST_OTHERS]
    if "cog.yaml" in names:
        yield _cog, [directory / "cog.yaml"]
    yield _requirements, development


def _bounds(reader: Reader, file: StatingFile, *words: bytes) -> Sequence[Bound]:
    """The bounds that a file states. words: without one of them, as most files are, it is not parsed."""
    if is_dir(file.path):
        return ()
    try:
        data = file.read()
        text = data.replace(b"\0", b"").lower()  # UTF-16 has them
        if not any(word in text for word in (*words, b"-r", b".txt", b".in")):
            return ()  # nor does it name a file that may
        bounds = [bound for bound in reader(file, data) if bound is not None]
        if len(bounds) > 1:
            from torchmigrate.versions.bounds import together

            bounds = together(bounds)
        return bounds
    except UnreadableError as error:
        file.trouble(file.path, error.reason, True)
    except FormatError as error:
        file.trouble(file.path, error.reason, False)
    return ()


def _each(
    read: Callable[[str], Bound | None], texts: Iterable[object], file: StatingFile
) -> Iterator[Bound | None]:
    """The bound of every text; those that are not understood are reported."""
    texts = list(texts)
    file.declares(texts)
    for text in texts:
        if not isinstance(text, str):
            continue
        if len(text) > LONGEST:
            file.tell("not read: a requirement is too long")
            continue
        try:
            bound = read(text)
        except ValueError as error:
            file.tell(f"not understood: {error}")
            continue
        if bound is not None:
            file.requires(bound)
            bound = bound if bound.is_about_torch else None
        yield bound


def _declared(texts: Iterable[object], file: StatingFile) -> None:
    """Remember what these requirements say of other packages than torch."""
    from torchmigrate.versions.bounds import of_requirement

    deque(_each(of_requirement, texts, replace(file, note=silent)), maxlen=0)


def _conditional(bounds: Iterable[Bound | None]) -> list[Bound | None]:
    """Bounds of lists that hold independently of each other, such as the lists of extras."""
    return [bound and replace(bound, conditional=True) for bound in bounds]


# ---- pyproject.toml ---------------------------------------------------------------------------------


def _pyproject(file: StatingFile, data: bytes) -> Iterable[Bound | None]:
    from torchmigrate.versions.bounds import of_requirement

    content = read_toml(data)
    project = _table(content, "project")
    poetry = _table(content, "tool", "poetry")
    own = [*_each(of_requirement, _items(project.get("dependencies")), file)]
    own += _poetry(_table(poetry, "dependencies"), file)
    dynamic = _table(content, "tool", "setuptools", "dynamic", "dependencies").get("file")
    named = _table(content, "tool", "hatch", "metadata", "hooks", "requirements_txt").get("files")
    for name in (*_items(dynamic), *([dynamic] if isinstance(dynamic, str) else []), *_items(named)):
        own += _of_file(file, name)
    own += _pixi(_table(content, "tool", "pixi"), file)
    groups = {
        **_table(content, "dependency-groups"),
        **_table(content, "tool", "pdm", "dev-dependencies"),
        "uv": _table(content, "tool", "uv").get("dev-dependencies"),
        **_table(project, "optional-dependencies"),
    }
    _declared([item for group in groups.values() for item in _items(group)], file)
    others = [item for name, group in groups.items() if not _is_beside(name) for item in _items(group)]
    of_poetry = {name: _table(poetry, "group", name, "dependencies") for name in _table(poetry, "group")}
    for table in (_table(poetry, "dependencies"), *of_poetry.values()):
        file.declares(table)
        deque(_poetry(table, replace(file, note=silent)), maxlen=0)
    if any(bound is not None for bound in own):
        return own  # what an extra or a group requires is not a bound of the project
    found = [*_each(of_requirement, others, file)]
    found += _poetry(_table(poetry, "dev-dependencies"), file)
    for name, table in of_poetry.items():
        if not _is_beside(name):
            found += _poetry(table, file)
    return _conditional(found)


def _is_beside(name: str) -> bool:
    """Whether an extra or a group of this name is not for the library itself."""
    return re.search(OTHER_PURPOSE, name) is not None


def _of_file(file: StatingFile, name: object) -> list[Bound | None]:
    """The bounds of a requirements file that another file names."""
    if not isinstance(name, str):
        return []
    other = replace(file, path=file.path.parent / name)
    try:
        return [*_requirements(other, other.read())]
    except UnreadableError as error:
        file.tell(f"{name}: {error.reason}")
        return []


def _pixi_toml(file: StatingFile, data: bytes) -> Iterable[Bound | None]:
    return _pixi(read_toml(data), file)


def _pixi(content: dict[str, Any], file: StatingFile) -> list[Bound | None]:
    """What an environment of pixi has: packages of conda, and of PyPI."""
    from torchmigrate.versions.bounds import of_conda

    found: list[Bound | None] = []
    for name, value in _table(content, "dependencies").items():
        version = value.get("version") if isinstance(value, dict) else value
        if isinstance(version, str):
            found += _each(of_conda, [f"{name} {version}"], file)
    return [*found, *_poetry(_table(content, "pypi-dependencies"), file)]


def _pipfile(file: StatingFile, data: bytes) -> Iterable[Bound | None]:
    return _poetry(_table(read_toml(data), "packages"), file)


def _poetry(table: dict[str, Any], file: StatingFile) -> Iterator[Bound | None]:
    """The bounds of a table's constraints: strings, tables with `version`, or lists of such tables."""
    from torchmigrate.versions.bounds import library_of, of_poetry

    for name, value in table.items():
        library = library_of(name)
        if library is not None:
            items = _items(value) or [value]
            texts = [item.get("version") if isinstance(item, dict) else item for item in items]
            bounds = _each(functools.partial(of_poetry, library=library), texts, file)
            # A table may have `markers`, `platform`, `optional`.
            yield from bounds if isinstance(value, str) else _conditional(bounds)


def _table(value: Any, *keys: str) -> dict[str, Any]:
    """A table inside of tables; empty where there is something else."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# ---- setup.cfg and setup.py -------------------------------------------------------------------------


def _setup_cfg(file: StatingFile, data: bytes) -> Iterable[Bound | None]:
    from torchmigrate.versions.bounds import of_requirement

    parser = read_cfg(decode(data))
    own = parser.get("options", "install_requires", fallback="")
    bounds = [*_each(of_requirement, re.split(r"[\n]", own), file)]
    if "options.extras_require" not in parser:
        return bounds
    extras = [line for text in parser["options.extras_require"].values() for line in text.splitlines()]
    _declared(extras, file)
    if any(bound is not None for bound in bounds):
        return bounds
    return _conditional(_each(of_requirement, extras, file))


def _setup_py(file: StatingFile, data: bytes) -> Iterable[Bound | None]:
    """Reads the call of `setup`, the names that are bound to literal lists, and files that it names.

    Else what lists there are, and what it says of a torch that is too old.
    """
    from torchmigrate.versions.bounds import of_requirement, of_specifier

    setup = read_setup(data)
    own, extras = setup.strings("install_requires"), setup.strings("extras_require")
    _declared(extras, file)
    bounds = [*_each(of_requirement, own, file)]
    if any(bound is not None for bound in bounds):
        return bounds
    names = (
        _named_files(setup, file.path.parent)
        if any(keyword.arg in ("install_requires", None) for keyword in setup.keywords)
        else []
    )
    for name in names:
        bounds += _of_file(file, name)
    if not any(bound is not None for bound in bounds):
        bounds = _conditional(_each(of_requirement, extras, file))
    if any(bound is not None for bound in bounds):
        return bounds
    # Lists that functions turn into arguments of `setup`: `_deps = [...]`.
    lists = (node for node in walk(setup.tree) if isinstance(node, (ast.List, ast.Tuple, ast.Set)))
    rest = [item for node in lists for item in node.elts if isinstance(item, ast.Constant)]
    quiet = replace(file, note=silent)  # not all of them are requirements
    bounds = _conditional(_each(of_requirement, [item.value for item in rest], quiet))
    if any(bound is not None for bound in bounds):
        return bounds
    refused = (node for node in walk(setup.tree) if isinstance(node, (ast.Assert, ast.Raise)))
    texts = [setup.text(part) for node in refused for part in walk(node) if isinstance(part, ast.expr)]
    found = [_TOO_OLD.search(text) for text in texts if text is not None]
    return [of_specifier(f">={match[1]}") for match in found if match is not None]


_TOO_OLD = pattern(r"(?i)\brequires? (?:at least )?(?:py)?torch *(?:>=|version) *v?(\d+(?:\.\d+)+)")


def _named_files(setup: SetupFile, directory: Path) -> list[str]:
    """The requirements files next to a setup.py that it names, apart from those for other purposes."""
    texts = (setup.text(node) for node in walk(setup.tree) if isinstance(node, ast.expr))
    names = [
        text for text in dict.fromkeys(texts) if text and len(text) < 200 and text.endswith((".txt", ".in"))
    ]
    return [
        name
        for name in names[:MOST_INCLUDED]
        if "\n" not in name
        and not re.search(f"{OTHER_PURPOSE}|{_DEVELOPMENT[4:]}", Path(name).stem)
        and is_file(directory / name)
    ]


# ---- the oldest Python ------------------------------------------------------------------------------


def _read_python(directory: Path) -> Version | None:
    """The oldest Python that the metadata in a directory allow; their problems are reported elsewhere."""
    from torchmigrate.versions.bounds import oldest_python

    readers = {"pyproject.toml": _pyproject_python, "setup.cfg": _cfg_python, "setup.py": _setup_python}
    for name, reader in readers.items():
        if name not in entries(directory) or is_dir(directory / name):
            continue
        try:
            stated = reader(read(directory / name, within=project_of(directory)))
        except (UnreadableError, FormatError):
            continue
        if isinstance(stated, str) and len(stated) <= LONGEST:
            return oldest_python(stated)
    return None


def _pyproject_python(data: bytes) -> object:
    content = read_toml(data)
    own = _table(content, "project").get("requires-python")
    return own or _table(content, "tool", "poetry", "dependencies").get("python")


def _cfg_python(data: bytes) -> object:
    return read_cfg(decode(data)).get("options", "python_requires", fallback=None)


def _setup_python(data: bytes) -> object:
    return (
        next(iter(read_setup(data).strings("python_requires")), None) if b"python_requires" in data else None
    )


# ---- requirements files and conda environments ------------------------------------------------------


def _requirements(file: StatingFile, data: bytes) -> Iterable[Bound | None]:
    from torchmigrate.versions.bounds import of_requirement

    return _each(of_requirement, requirement_lines(file, data), file)


def _environment(file: StatingFile, data: bytes) -> Iterable[Bound | None]:
    from torchmigrate.versions.bounds import of_conda, of_requirement

    items = _items(_yaml(data).get("dependencies"))
    bounds = [*_each(of_conda, items, file)]
    for item in items:
        if isinstance(item, dict):
            bounds += _each(of_requirement, _items(item.get("pip")), file)
    return bounds


def _other_environment(file: StatingFile, data: bytes) -> Iterable[Bound | None]:
    """The same of a file whose name does not say that it is one."""
    if b"dependencies:" not in data:
        return ()
    try:
        return [*_environment(replace(file, note=silent), data)]
    except FormatError:
        return ()


def _recipes(held: Collection[str]) -> Iterator[str]:
    """The directories in which a recipe may be, by what is in the one around them."""
    for name in _RECIPES:
        if (name.partition("/")[0] or "meta.yaml") in held:
            yield name


def _recipe(file: StatingFile, data: bytes) -> Iterable[Bound | None]:
    """What the package of a recipe needs when it runs. Its templates are not run: of an `if`, all counts."""
    from torchmigrate.versions.bounds import of_conda

    text = decode(data)
    values: dict[str, str] = dict(
        re.findall(r"\{%-?\s*set\s+(\w+)\s*=\s*[\"']([^\"'\n]*)[\"']\s*-?%\}", text)
    )
    text = re.sub(r"\{%(?:(?!\{%).)*?%\}|\{#(?:(?!\{#).)*?#\}", "", text, flags=re.DOTALL)

    def value(found: re.Match[str]) -> str:
        return values.get(found[1].strip(), _TEMPLATE)

    text = re.sub(r"\{\{([^{}\n]*)\}\}", value, text)
    try:
        content = _yaml(text.encode())
    except FormatError:
        return ()  # by its templates
    parts = [content, *(part for part in _items(content.get("outputs")) if isinstance(part, dict))]
    bounds: list[Bound | None] = []
    for part in parts:
        requirements = _table(part, "requirements")
        for key in ("run", "run_constrained"):
            items = [item for item in _items(requirements.get(key)) if _TEMPLATE not in str(item)]
            bounds += _each(of_conda, items, file)
    # Of packages of one recipe, and of what only may be there, not all need hold.
    return _conditional(bounds)


def _cog(file: StatingFile, data: bytes) -> Iterable[Bound | None]:
    """What a container of Replicate is built with."""
    from torchmigrate.versions.bounds import of_requirement

    return _each(of_requirement, _items(_table(_yaml(data), "build").get("python_packages")), file)


def _yaml(data: bytes) -> dict[str, Any]:
    import yaml

    text = decode(data)
    try:
        check_yaml(text, aliases=False)
        content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        raise FormatError(f"not valid YAML (line {mark.line + 1})" if mark else "not YAML") from None
    return _table(content)
