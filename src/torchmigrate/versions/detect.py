"""What a project requires for a file, as its own dependencies say: the oldest torch that it supports."""

from __future__ import annotations

import ast
import functools
import itertools
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from torchmigrate.files.formats import FormatError, check_yaml, read_toml
from torchmigrate.files.paths import entries, is_dir, is_file, project_of, shared_directories, work_tree_of
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
    "pixi.toml",
    "Pipfile",
    "meta.yaml",
    "recipe",
    ".conda",
)
_YAML = (".yml", ".yaml")
# Where projects have the recipe of their conda package.
_TEMPLATE = "__template__"  # what stands in one for what nobody knows
_RECIPES = ("", "conda.recipe", "conda-recipe", "recipe", ".conda", "conda", "conda/recipe")
MOST_OTHERS = 50  # files at the top that may be an environment
MOST_INCLUDED = 100  # files that a requirements file may include
MOST_STEPS = 200_000  # in working out the strings of a setup.py
# What is for documentation, checks and examples is no requirement of the library.
_OTHER_DIRECTORIES = frozenset(["docs", "doc", "documentation", ".github", ".circleci", ".ci", "ci"])
_OTHER_PURPOSE = (
    r"(?i)(?:^|[-_.])(?:docs?|documentation|doctests?|sphinx|rtd|readthedocs|ci|lint(?:ing|ers?)?|typing|mypy|style"
    r"|fmt|format(?:ting)?|benchmarks?|examples?|tutorials?|notebooks?)(?:[-_.]|$)"
)
_DEVELOPMENT = r"(?i)(?:^|[-_.])(?:dev|develop|development|tests?|testing|build)(?:[-_.]|$)"


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

    In one directory the first of pyproject.toml, setup.cfg, setup.py, requirements files, pixi.toml, Pipfile,
    recipes of conda, conda environments and cog.yaml that states a lower bound counts; requirements for
    development and tests come last, those for documentation and checks not at all. Nothing is executed, and
    nothing is read that is not in the project (`project_of`).

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
            places = _of_the_library(_directories(Path(os.path.realpath(directory))))
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
            requirements += sorted((directory / name).glob("*/base.txt"))  # of parts of it
    requirements = [path for path in requirements if not re.search(_OTHER_PURPOSE, path.stem)]
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


def _bounds(reader: Reader, file: _File, *words: bytes) -> Sequence[Bound]:
    """The bounds that a file states. words: without one of them, as most files are, it is not parsed."""
    if is_dir(file.path):
        return ()
    try:
        data = file.read()
        text = data.replace(b"\0", b"").lower()  # UTF-16 has them
        if not any(word in text for word in (*words, b"-r", b".txt", b".in")):
            return ()  # nor does it name a file that may
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
    file.declares([item for group in groups.values() for item in _items(group)])
    others = [item for name, group in groups.items() if not _is_beside(name) for item in _items(group)]
    of_poetry = {name: _table(poetry, "group", name, "dependencies") for name in _table(poetry, "group")}
    for table in (_table(poetry, "dependencies"), *of_poetry.values()):
        file.declares(table)
    if any(bound is not None for bound in own):
        return own  # what an extra or a group asks for is no bound of the project
    found = [*_each(of_requirement, others, file)]
    found += _poetry(_table(poetry, "dev-dependencies"), file)
    for name, table in of_poetry.items():
        if not _is_beside(name):
            found += _poetry(table, file)
    return found


def _is_beside(name: str) -> bool:
    """Whether an extra or a group of this name is not for the library itself."""
    return re.search(_OTHER_PURPOSE, name) is not None


def _of_file(file: _File, name: object) -> list[Bound | None]:
    """The bounds of a requirements file that another file names."""
    if not isinstance(name, str):
        return []
    other = file._replace(path=file.path.parent / name)
    try:
        return [*_requirements(other, other.read())]
    except UnreadableError as error:
        file.tell(f"{name}: {error.reason}")
        return []


def _pixi_toml(file: _File, data: bytes) -> Iterable[Bound | None]:
    return _pixi(read_toml(data), file)


def _pixi(content: dict[str, Any], file: _File) -> list[Bound | None]:
    """What an environment of pixi has: packages of conda, and of PyPI."""
    from torchmigrate.versions.bounds import of_conda

    found: list[Bound | None] = []
    for name, value in _table(content, "dependencies").items():
        version = value.get("version") if isinstance(value, dict) else value
        if isinstance(version, str):
            found += _each(of_conda, [f"{name} {version}"], file)
    return [*found, *_poetry(_table(content, "pypi-dependencies"), file)]


def _pipfile(file: _File, data: bytes) -> Iterable[Bound | None]:
    return _poetry(_table(read_toml(data), "packages"), file)


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

    values: what names are bound to. keywords: those of the calls of `setup`. texts: works out its strings.
    """

    tree: ast.Module
    values: dict[str, list[ast.expr]]
    keywords: list[ast.keyword]
    texts: _Texts

    def strings(self, keyword: str) -> list[str]:
        """The strings that an argument of `setup` holds."""
        found = (item.value for item in self.keywords if item.arg == keyword)
        return [text for value in found for text in _strings(value, self.values, self.texts)]

    def text(self, node: ast.expr) -> str | None:
        """A string that is put together of others; None: not known."""
        return self.texts.text(node)


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
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held = node.func.value
            if node.func.attr in ("append", "extend", "update") and isinstance(held, ast.Name) and node.args:
                values.setdefault(held.id, []).append(node.args[0])
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(value)
            elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                values.setdefault(target.value.id, []).append(value)  # extras["a"] = [...]
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last_name(node.func) == "setup"
    ]
    return _Setup(tree, values, [keyword for call in calls for keyword in call.keywords], _Texts(values))


def _setup_py(file: _File, data: bytes) -> Iterable[Bound | None]:
    """Reads the call of `setup`, the names that are bound to literal lists, and files that it names.

    Else what lists there are, and what it says of a torch that is too old.
    """
    from torchmigrate.versions.bounds import of_requirement, of_specifier

    setup = _read_setup(data)
    own, extras = setup.strings("install_requires"), setup.strings("extras_require")
    file.declares(extras)
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
    bounds = bounds if any(bound is not None for bound in bounds) else [*_each(of_requirement, extras, file)]
    if any(bound is not None for bound in bounds):
        return bounds
    # Lists of which functions make what `setup` gets: `_deps = [...]`.
    lists = (node for node in ast.walk(setup.tree) if isinstance(node, ast.List | ast.Tuple | ast.Set))
    rest = [item for node in lists for item in node.elts if isinstance(item, ast.Constant)]
    quiet = file._replace(note=silent)  # not all of them are requirements
    bounds = [*_each(of_requirement, [item.value for item in rest], quiet)]
    if any(bound is not None for bound in bounds):
        return bounds
    refused = (node for node in ast.walk(setup.tree) if isinstance(node, ast.Assert | ast.Raise))
    texts = [setup.text(part) for node in refused for part in ast.walk(node) if isinstance(part, ast.expr)]
    found = [re.search(_TOO_OLD, text) for text in texts if text is not None]
    return [of_specifier(f">={match[1]}") for match in found if match is not None]


_TOO_OLD = r"(?i)\brequires? (?:at least )?(?:py)?torch *(?:>=|version) *v?(\d+(?:\.\d+)+)"


def _named_files(setup: _Setup, directory: Path) -> list[str]:
    """The requirements files beside a setup.py that it names, apart from those for other purposes."""
    texts = (setup.text(node) for node in ast.walk(setup.tree) if isinstance(node, ast.expr))
    names = [
        text for text in dict.fromkeys(texts) if text and len(text) < 200 and text.endswith((".txt", ".in"))
    ]
    return [
        name
        for name in names[:MOST_INCLUDED]
        if "\n" not in name
        and not re.search(f"{_OTHER_PURPOSE}|{_DEVELOPMENT[4:]}", Path(name).stem)
        and is_file(directory / name)
    ]


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


class _Texts:
    """Works out strings that are put together of others, in a bounded number of steps.

    values: what names are bound to; of a name that is bound several times, the last one counts.
    """

    def __init__(self, values: Mapping[str, list[ast.expr]]) -> None:
        self.values = values
        self.left = MOST_STEPS

    def text(self, node: ast.expr, depth: int = 0) -> str | None:
        """None: not known, or too long."""
        self.left -= 1
        if self.left < 0 or depth > _DEEPEST:
            return None
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        found: str | None = None
        if isinstance(node, ast.Name) and node.id in self.values:
            found = self.text(self.values[node.id][-1], depth + 1)
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
            # What is not known is no part of what is looked for.
            found = "".join(self.text(part, depth + 1) or "?" for part in parts)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div | ast.Mod):
            found = self._operation(node, depth)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found = self._call(node, node.func, depth)
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("Path", "str") and node.args:
            found = self.text(node.args[-1], depth + 1)
        return found if found is not None and len(found) <= LONGEST else None

    def _operation(self, node: ast.BinOp, depth: int) -> str | None:
        left, right = self.text(node.left, depth + 1), self.text(node.right, depth + 1)
        if isinstance(node.op, ast.Div):  # a path below one that is not known
            return right if left is None or right is None else f"{left}/{right}"
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else left.replace("%s", right, 1)

    def _call(self, node: ast.Call, function: ast.Attribute, depth: int) -> str | None:
        """`">=".join([a, b])`, `"torch>={}".format(a)` and `os.path.join(here, a, b)`."""
        between = self.text(function.value, depth + 1)
        arguments: Sequence[ast.expr] = node.args
        if function.attr == "join" and between is not None and len(arguments) == 1:
            items = arguments[0].elts if isinstance(arguments[0], ast.List | ast.Tuple) else []
            texts = [self.text(item, depth + 1) for item in items]
            known = [text for text in texts if text is not None]
            return between.join(known) if known and len(known) == len(texts) else None
        if function.attr == "join":
            parts = [self.text(item, depth + 1) for item in arguments]
            return "/".join(part for part in parts if part) or None
        if function.attr == "format" and between is not None and len(arguments) == 1:
            value = self.text(arguments[0], depth + 1)
            return None if value is None else re.sub(r"\{0?\}", lambda _: value, between)
        return None


_DEEPEST = 20


def _strings(node: ast.expr, values: dict[str, list[ast.expr]], texts: _Texts) -> Iterator[str]:
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
        elif isinstance(node, ast.BinOp) and (text := texts.text(node)) is not None:
            yield from text.splitlines()
        elif isinstance(node, ast.BinOp):
            waiting += node.left, node.right
        elif isinstance(node, ast.Starred | ast.Subscript):
            waiting.append(node.value)
        elif isinstance(node, ast.IfExp):
            waiting += node.body, node.orelse
        elif isinstance(node, ast.JoinedStr):
            yield texts.text(node) or ""
        elif isinstance(node, ast.Call):
            text = texts.text(node)
            if text is not None:
                yield text
            elif isinstance(node.func, ast.Attribute) and node.func.attr in ("split", "splitlines", "strip"):
                waiting.append(node.func.value)
            elif _last_name(node.func) in ("list", "sorted", "tuple", "set", "dict"):
                waiting += [*node.args, *(keyword.value for keyword in node.keywords)]
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


def _recipes(held: Collection[str]) -> Iterator[str]:
    """The directories in which a recipe may be, by what is in the one around them."""
    for name in _RECIPES:
        if (name.partition("/")[0] or "meta.yaml") in held:
            yield name


def _recipe(file: _File, data: bytes) -> Iterable[Bound | None]:
    """What the package of a recipe needs when it runs. Its templates are not run: of an `if`, all counts."""
    from torchmigrate.versions.bounds import of_conda

    text = _decode(data)
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
    items: list[object] = []
    for part in parts:
        requirements = _table(part, "requirements")
        for key in ("run", "run_constrained"):
            items += [item for item in _items(requirements.get(key)) if _TEMPLATE not in str(item)]
    return _each(of_conda, items, file)


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
