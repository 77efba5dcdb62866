"""What a project requires for a file, as its own dependencies say: the oldest torch that it supports."""

from __future__ import annotations

import ast
import functools
import itertools
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from torchmigrate.files.formats import FormatError, check_yaml, read_toml
from torchmigrate.files.paths import entries, is_dir, project_of, shared_directories, work_tree_of
from torchmigrate.files.reading import UnreadableError, is_below, read

if TYPE_CHECKING:
    from configparser import ConfigParser

    from torchmigrate.versions.bounds import Bound
    from torchmigrate.versions.releases import Version

Note = Callable[[str], None]  # is told, in a line, what was not understood
# Is told of a file that was not read at all, or (False) that is not what its name says.
Trouble = Callable[[Path, str, bool], None]

# Patterns are compiled when they are used: in most directories there is nothing to read.
_OPTION = r"\s--?[A-Za-z].*$"  # `torch==1.7 --hash=...`
_INCLUDE = r"(?:-r|--requirement|-c|--constraint)[\s=]*(\S+)"
LONGEST = 10_000  # characters of one requirement
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
)
_YAML = (".yml", ".yaml")
MOST_OTHERS = 50  # files at the top that may be an environment
MOST_INCLUDED = 100  # files that a requirements file may include


# Packages besides torch that matter: rules may be silent where the project declares one of them.
PACKAGES = frozenset(["torchcodec"])


def silent(*_: object) -> None:
    """Tell nobody."""


class Required(NamedTuple):
    """What is required for a file, as far as it matters here.

    minimum: the oldest torch that is allowed; None: nobody says. path: the file that says it. python: the
        oldest Python of the project, if the first torch that was built for it is that minimum, and a newer
        one than the file says.
    packages: those of `PACKAGES` that are declared, for a part of the project or for an extra as well.
    """

    minimum: Version | None = None
    path: Path | None = None
    python: Version | None = None
    packages: frozenset[str] = frozenset()


class _Stated(NamedTuple):
    """What the files of a directory state: bounds with the files that have them, and `PACKAGES`."""

    bounds: Mapping[Path, Sequence[Bound]] = MappingProxyType({})
    packages: frozenset[str] = frozenset()


class Requirements:
    """What projects require for their files; every directory is looked at once.

    For a file counts what is required in the directories from the root of its project (the repository; where
    there is none, from the highest one below one that many share, such as the home directory) to its own.
    The oldest torch of them is the minimum: a part of a project may ask for an older one than the root, but
    not for a newer one, since what is in it may be used with what the root allows.

    A torch that was never built for the oldest Python of the project is not supported, whatever the bound:
    the nearest of pyproject.toml, setup.cfg and setup.py that names a Python counts.

    In one directory the first of pyproject.toml, setup.cfg, setup.py, requirements files, conda environments
    and cog.yaml that states a lower bound counts. Nothing is executed, and nothing is read that is not in
    the project (`project_of`).

    Args:
        note: is told, in a line, what was not understood.
        trouble: is told of a file that was not read, or is not what its name says.
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
            places = _directories(Path(os.path.realpath(directory)))
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
        return required._replace(minimum=PYTHONS[python], python=python)

    def _python_in(self, directory: Path) -> Version | None:
        if directory not in self._pythons:
            self._pythons[directory] = _read_python(directory)
        return self._pythons[directory]

    def _stated_in(self, directory: Path) -> _Stated:
        if directory not in self._stated:
            self._stated[directory] = _read_directory(directory, self.note, self.trouble)
        return self._stated[directory]


def _directories(directory: Path) -> list[Path]:
    """A directory and those around it that belong to its project, the root last."""
    above = [directory, *directory.parents]
    top = work_tree_of(directory)
    if top is not None:
        return above[: above.index(top) + 1]
    return [directory, *itertools.takewhile(lambda place: place not in shared_directories(), above[1:])]


def _required(places: Sequence[_Stated]) -> Required:
    """What directories state together; of the same minimum in several of them, the first is named."""
    packages = frozenset().union(*(place.packages for place in places))
    stated = [(bound, path) for place in places for path, held in place.bounds.items() for bound in held]
    if not stated:
        return Required(None, None, packages=packages)
    from torchmigrate.versions.bounds import lowest  # with all that understands requirements

    minimum, bound = lowest([bound for bound, _ in stated])
    path = next((path for held, path in stated if held is bound), None)
    return Required(minimum, path, packages=packages)


def _read_directory(directory: Path, note: Note, trouble: Trouble) -> _Stated:
    found: dict[Path, Sequence[Bound]] = {}
    of_torch = False  # there is a bound of torch itself
    project = None
    packages: set[str] = set()
    for reader, paths in _candidates(directory):
        project = project or project_of(directory)
        if of_torch:  # what is wrong with files that do not count for the minimum matters to nobody
            for path in paths:
                _bounds(reader, _File(path, project, silent, silent, packages), *map(str.encode, PACKAGES))
            continue
        files = [_File(path, project, note, trouble, packages) for path in paths]
        here = {file.path: held for file in files if (held := _bounds(reader, file, b"torch"))}
        of_torch = any(bound.newest is None for held in here.values() for bound in held)
        if of_torch or not found:
            found |= here
    return _Stated(found, frozenset(packages))


class _File(NamedTuple):
    """A file that may state a bound.

    project: what it may lead to has to be there. packages: those of `PACKAGES` that it names.
    """

    path: Path
    project: Path
    note: Note
    trouble: Trouble
    packages: set[str]

    def read(self) -> bytes:
        return read(self.path, within=self.project)

    def tell(self, text: str) -> None:
        """Say that something in it is not understood."""
        self.note(f"{self.path}: {text}")

    def declares(self, texts: Iterable[object]) -> None:
        """Remember the packages that these requirements are about."""
        from torchmigrate.versions.bounds import name_of

        self.packages.update(PACKAGES.intersection(name_of(text) for text in texts if isinstance(text, str)))


Reader = Callable[[_File, bytes], "Iterable[Bound | None]"]


def _candidates(directory: Path) -> Iterator[tuple[Reader, list[Path]]]:
    """Readers with the files they are for, strongest first; the lowest bound of one group counts."""
    held = entries(directory)
    # Environments of other names, `linux_gpu.yml`, are beside the README that tells of them.
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
    main = [path for path in requirements if path.name == "requirements.txt" and path.parent == directory]
    conda = [
        directory / name
        for name in names
        if name.startswith(("conda", "environment")) and re.fullmatch(r"\w[\w.-]*\.ya?ml", name)
    ]
    for name, reader in (("pyproject.toml", _pyproject), ("setup.cfg", _setup_cfg), ("setup.py", _setup_py)):
        if name in names:
            yield reader, [directory / name]
    yield _requirements, main
    yield _requirements, [path for path in requirements if path not in main]
    yield _environment, conda
    if others := [
        directory / name for name in names if name.endswith(_YAML) and directory / name not in conda
    ]:
        yield _other_environment, others[:MOST_OTHERS]
    if "cog.yaml" in names:
        yield _cog, [directory / "cog.yaml"]


def _bounds(reader: Reader, file: _File, *words: bytes) -> Sequence[Bound]:
    """The bounds that a file states. words: without one of them, as most files are, it is not parsed."""
    if is_dir(file.path):
        return ()
    try:
        data = file.read()
        text = data.replace(b"\0", b"").lower()  # UTF-16 has them
        if b"-r" not in text and not any(word in text for word in words):
            return ()
        return [bound for bound in reader(file, data) if bound is not None]
    except UnreadableError as error:
        file.trouble(file.path, error.reason, True)
    except FormatError as error:
        file.trouble(file.path, error.reason, False)
    return ()


def _each(
    read: Callable[[str], Bound | None], texts: Iterable[object], file: _File
) -> Iterator[Bound | None]:
    """The bound of every text; those that are not understood are told."""
    texts = list(texts)
    file.declares(texts)
    for text in texts:
        if not isinstance(text, str):
            continue
        if len(text) > LONGEST:
            file.tell("not understood: a requirement is too long")
            continue
        try:
            yield read(text)
        except ValueError as error:
            file.tell(f"not understood: {error}")


def _decode(data: bytes) -> str:
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", "utf-8-sig")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                break
    return data.decode("latin-1")


# ---- pyproject.toml ---------------------------------------------------------------------------------


def _pyproject(file: _File, data: bytes) -> Iterable[Bound | None]:
    from torchmigrate.versions.bounds import of_requirement

    content = read_toml(data)
    project = _table(content, "project")
    poetry = _table(content, "tool", "poetry")
    own = [*_each(of_requirement, _items(project.get("dependencies")), file)]
    own += _poetry(_table(poetry, "dependencies"), file)
    extras = [
        *_table(project, "optional-dependencies").values(),
        *_table(content, "dependency-groups").values(),
    ]
    others = [item for group in extras for item in _items(group)]
    groups = [_table(poetry, "group", name, "dependencies") for name in _table(poetry, "group")]
    file.declares(others)
    for table in (_table(poetry, "dependencies"), *groups):
        file.declares(table)
    if any(bound is not None for bound in own):
        return own  # what an extra or a group asks for is no bound of the project
    found = [*_each(of_requirement, others, file)]
    for table in (_table(poetry, "dev-dependencies"), *groups):
        found += _poetry(table, file)
    return found


def _poetry(table: dict[str, Any], file: _File) -> Iterator[Bound | None]:
    """The bounds of a table's constraints: strings, tables with `version`, or lists of such tables."""
    from torchmigrate.versions.bounds import library_of, of_poetry

    for name, value in table.items():
        library = library_of(name)
        if library is not None:
            items = _items(value) or [value]
            texts = [item.get("version") if isinstance(item, dict) else item for item in items]
            yield from _each(functools.partial(of_poetry, library=library), texts, file)


def _table(value: Any, *keys: str) -> dict[str, Any]:
    """A table inside of tables; empty where there is something else."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# ---- setup.cfg and setup.py -------------------------------------------------------------------------


def _read_cfg(data: bytes) -> ConfigParser:
    import configparser

    parser = configparser.ConfigParser(interpolation=None, strict=False)
    # Its own pattern takes quadratic time for white space within a line.
    text = re.sub(r"(?<=\S)[^\S\n]{2,}", " ", _decode(data))
    try:
        parser.read_string(text)
    except configparser.Error as error:
        errors = getattr(error, "errors", None) or [(getattr(error, "lineno", None), "")]
        line = errors[0][0]
        raise FormatError(f"not understood (line {line})" if line else "not understood") from None
    return parser


def _setup_cfg(file: _File, data: bytes) -> Iterable[Bound | None]:
    from torchmigrate.versions.bounds import of_requirement

    parser = _read_cfg(data)
    own = parser.get("options", "install_requires", fallback="")
    bounds = [*_each(of_requirement, re.split(r"[\n]", own), file)]
    if "options.extras_require" not in parser:
        return bounds
    extras = [line for text in parser["options.extras_require"].values() for line in text.splitlines()]
    file.declares(extras)
    return bounds if any(bound is not None for bound in bounds) else _each(of_requirement, extras, file)


class _Setup(NamedTuple):
    """A setup.py.

    values: what names are bound to. keywords: those of the calls of `setup`.
    """

    tree: ast.Module
    values: dict[str, list[ast.expr]]
    keywords: list[ast.keyword]

    def strings(self, keyword: str) -> list[str]:
        """The strings that an argument of `setup` holds."""
        found = (item.value for item in self.keywords if item.arg == keyword)
        return [text for value in found for text in _strings(value, self.values)]


def _read_setup(data: bytes) -> _Setup:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except SyntaxError as error:
        raise FormatError(f"not Python 3 (line {error.lineno})" if error.lineno else "not Python 3") from None
    except ValueError:
        raise FormatError("not Python 3") from None
    except (RecursionError, MemoryError):
        raise UnreadableError("nested too deeply: not read") from None
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(value)
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last_name(node.func) == "setup"
    ]
    return _Setup(tree, values, [keyword for call in calls for keyword in call.keywords])


def _setup_py(file: _File, data: bytes) -> Iterable[Bound | None]:
    """Reads the call of `setup` and the names that are bound to literal lists; else what lists there are."""
    from torchmigrate.versions.bounds import of_requirement

    setup = _read_setup(data)
    own, extras = setup.strings("install_requires"), setup.strings("extras_require")
    file.declares(extras)
    for texts in (own, extras):
        bounds = [*_each(of_requirement, texts, file)]
        if any(bound is not None for bound in bounds):
            return bounds
    # Lists of which functions make what `setup` gets: `_deps = [...]`.
    lists = (node for node in ast.walk(setup.tree) if isinstance(node, ast.List | ast.Tuple | ast.Set))
    rest = [item for node in lists for item in node.elts if isinstance(item, ast.Constant)]
    quiet = file._replace(note=silent)  # not all of them are requirements
    return _each(of_requirement, [item.value for item in rest], quiet)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _strings(node: ast.expr, values: dict[str, list[ast.expr]]) -> Iterator[str]:
    """The strings of a literal list, sum of lists or dict of lists; names are looked up once each."""
    seen = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.splitlines()
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            waiting += node.elts
        elif isinstance(node, ast.Dict):
            waiting += node.values
        elif isinstance(node, ast.BinOp):
            waiting += node.left, node.right
        elif isinstance(node, ast.Starred | ast.Subscript):
            waiting.append(node.value)
        elif isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            waiting += values.get(node.id, ())


# ---- the oldest Python ------------------------------------------------------------------------------


def _read_python(directory: Path) -> Version | None:
    """The oldest Python that the metadata in a directory allow; what is wrong with them is told elsewhere."""
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
    return _read_cfg(data).get("options", "python_requires", fallback=None)


def _setup_python(data: bytes) -> object:
    return (
        next(iter(_read_setup(data).strings("python_requires")), None) if b"python_requires" in data else None
    )


# ---- requirements files and conda environments ------------------------------------------------------


def _requirements(file: _File, data: bytes) -> Iterable[Bound | None]:
    from torchmigrate.versions.bounds import of_requirement

    return _each(of_requirement, _requirement_lines(file, data), file)


def _requirement_lines(file: _File, data: bytes) -> Iterator[str]:
    """The requirements of a file and of those that it includes."""
    seen = {os.path.realpath(file.path)}
    waiting = [(file, data)]
    while waiting:
        here, data = waiting.pop()
        text = re.sub(r"\\\r?\n", "", _decode(data))
        for line in text.splitlines():
            line = re.sub(r"(?:^|\s)#.*", "", line).strip()
            include = re.fullmatch(_INCLUDE, line)
            if include is None:
                if line and not line.startswith("-"):
                    yield re.sub(_OPTION, "", line).strip()
                continue
            if re.match(r"https?://", include[1]):
                continue
            other = here._replace(path=here.path.parent / include[1])
            real = os.path.realpath(other.path)
            if real in seen:
                continue
            seen.add(real)
            if len(seen) > MOST_INCLUDED:
                raise UnreadableError("includes too many files: not read")
            try:
                waiting.append((other, other.read()))
            except UnreadableError as error:
                # One that is gone does not mean harm.
                missing = not os.path.lexists(other.path) and is_below(real, str(here.project))
                if missing:
                    here.tell(f"{include[1]}: {error.reason}")
                else:
                    here.trouble(here.path, f"`-r` {error.reason}", True)


def _environment(file: _File, data: bytes) -> Iterable[Bound | None]:
    from torchmigrate.versions.bounds import of_conda, of_requirement

    items = _items(_yaml(data).get("dependencies"))
    bounds = [*_each(of_conda, items, file)]
    for item in items:
        if isinstance(item, dict):
            bounds += _each(of_requirement, _items(item.get("pip")), file)
    return bounds


def _other_environment(file: _File, data: bytes) -> Iterable[Bound | None]:
    """The same of a file whose name does not say that it is one."""
    if b"dependencies:" not in data:
        return ()
    try:
        return [*_environment(file._replace(note=silent), data)]
    except FormatError:
        return ()


def _cog(file: _File, data: bytes) -> Iterable[Bound | None]:
    """What a container of Replicate is built with."""
    from torchmigrate.versions.bounds import of_requirement

    return _each(of_requirement, _items(_table(_yaml(data), "build").get("python_packages")), file)


def _yaml(data: bytes) -> dict[str, Any]:
    import yaml

    text = _decode(data)
    try:
        check_yaml(text, aliases=False)
        content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        raise FormatError(f"not YAML (line {mark.line + 1})" if mark else "not YAML") from None
    return _table(content)
