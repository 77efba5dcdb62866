"""The oldest torch that a project supports, as its own dependencies say."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchmigrate.reach import exists, is_dir
from torchmigrate.versions.releases import show_version

if TYPE_CHECKING:
    from torchmigrate.versions.releases import Version

Note = Callable[[str], None]  # is told, in a line, what was not understood

# Patterns are compiled when they are used: in most directories there is nothing to read.
_OPTION = r"\s+--?[A-Za-z].*$"  # `torch==1.7 --hash=...`
_INCLUDE = r"(?:-r|--requirement|-c|--constraint)[\s=]*(\S+)"


class Detected(NamedTuple):
    """A minimum and the file that states it."""

    minimum: str  # "1.7"
    path: Path


def find_minimum(start: Path, note: Note | None = None) -> Detected | None:
    """The oldest torch that the project around `start` (a file or directory) allows.

    Looks in that directory and those above it, up to the root of the repository, or to below the home
    directory where there is none. The nearest file that states a lower bound wins; in one directory
    pyproject.toml, setup.cfg, setup.py, requirements files and conda environments, in this order. What
    cannot be read or understood is left out and told to `note`. Nothing is executed.
    """
    for directory in _directories(start):
        for reader, paths in _candidates(directory):
            bounds = {path: bound for path in paths if (bound := _bound(reader, path, note)) is not None}
            if bounds:
                path = min(bounds, key=lambda item: bounds[item])
                return Detected(show_version(bounds[path]), path)
    return None


def _directories(start: Path) -> Iterator[Path]:
    place = start.absolute()
    if not is_dir(place):
        place = place.parent
    above = [place, *place.parents]
    root = next((directory for directory in above if exists(directory / ".git")), None)
    home = _home()
    for directory in above:
        if root is None and directory == home:
            return
        yield directory
        if directory == root:
            return


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # there is none
        return None


Reader = Callable[[Path, bytes, Note], "Iterable[Version | None]"]


def _candidates(directory: Path) -> Iterator[tuple[Reader, list[Path]]]:
    """Readers with the files they are for, strongest first; the lowest bound of one group counts."""
    try:
        names = sorted(os.listdir(directory))  # noqa: PTH208 (a Path for each would take longer)
    except OSError:
        return
    more = directory / "requirements"
    requirements = [
        directory / name
        for name in names
        if name.startswith("requirement") and re.fullmatch(r"requirements?[\w.-]*\.(?:txt|in)", name)
    ]
    if "requirements" in names and is_dir(more):
        requirements += sorted(more.glob("*.txt"))
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


def _bound(reader: Reader, path: Path, note: Note | None) -> Version | None:
    from torchmigrate.versions.bounds import lowest

    def tell(text: str) -> None:
        if note is not None:
            note(f"{path}: {text}")

    try:
        data = path.read_bytes()
    except OSError as error:
        tell(f"not read: {error.strerror or error}")
        return None
    if b"torch" not in data.replace(b"\0", b"") and b"-r" not in data:
        return None  # most files; not worth parsing
    return lowest(list(reader(path, data, tell)))


def _each(
    read: Callable[[str], Version | None], texts: Iterable[object], tell: Note
) -> Iterator[Version | None]:
    """The bound of every text; those that are not understood are told."""
    for text in texts:
        if not isinstance(text, str):
            continue
        try:
            yield read(text)
        except ValueError as error:
            tell(f"not understood: {error}")


def _decode(data: bytes) -> str:
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", "utf-8-sig")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                break
    return data.decode("latin-1")


# ---- pyproject.toml ---------------------------------------------------------------------------------


def _pyproject(path: Path, data: bytes, tell: Note) -> Iterable[Version | None]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    from torchmigrate.versions.bounds import of_poetry, of_requirement

    try:
        content = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        tell(f"not valid TOML: {error}")
        return []
    project = _table(content, "project")
    poetry = _table(content, "tool", "poetry")
    own = [*_each(of_requirement, _items(project.get("dependencies")), tell)]
    own += _each(of_poetry, _poetry(_table(poetry, "dependencies")), tell)
    if any(bound is not None for bound in own):
        return own  # what an extra or a group asks for is no bound of the project
    others = [
        *_table(project, "optional-dependencies").values(),
        *_table(content, "dependency-groups").values(),
    ]
    found = [*_each(of_requirement, (item for group in others for item in _items(group)), tell)]
    groups = [_table(poetry, "group", name, "dependencies") for name in _table(poetry, "group")]
    for table in (_table(poetry, "dev-dependencies"), *groups):
        found += _each(of_poetry, _poetry(table), tell)
    return found


def _poetry(table: dict[str, Any]) -> Iterator[object]:
    """The constraints on torch: a string, a table with `version`, or a list of such tables."""
    for name, value in table.items():
        if name.lower() == "torch":
            for item in _items(value) or [value]:
                yield item.get("version") if isinstance(item, dict) else item


def _table(value: Any, *keys: str) -> dict[str, Any]:
    """A table inside of tables; empty where there is something else."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# ---- setup.cfg and setup.py -------------------------------------------------------------------------


def _setup_cfg(path: Path, data: bytes, tell: Note) -> Iterable[Version | None]:
    import configparser

    from torchmigrate.versions.bounds import of_requirement

    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(_decode(data))
    except configparser.Error as error:
        tell(f"not understood: {str(error).splitlines()[0]}")
        return []
    own = parser.get("options", "install_requires", fallback="")
    bounds = [*_each(of_requirement, re.split(r"[\n]", own), tell)]
    if any(bound is not None for bound in bounds) or "options.extras_require" not in parser:
        return bounds
    extras = parser["options.extras_require"].values()
    return _each(of_requirement, (line for text in extras for line in text.splitlines()), tell)


def _setup_py(path: Path, data: bytes, tell: Note) -> Iterable[Version | None]:
    """Reads the call of `setup` and the names that are bound to literal lists."""
    from torchmigrate.versions.bounds import of_requirement

    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        tell(f"not understood: {error}")
        return []
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
    own: list[str] = []
    extras: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) == "setup":
            for keyword in node.keywords:
                if keyword.arg == "install_requires":
                    own += _strings(keyword.value, values)
                elif keyword.arg == "extras_require":
                    extras += _strings(keyword.value, values)
    bounds = [*_each(of_requirement, own, tell)]
    if any(bound is not None for bound in bounds):
        return bounds
    return _each(of_requirement, extras, tell)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _strings(node: ast.expr, values: dict[str, list[ast.expr]]) -> Iterator[str]:
    """The strings of a literal list, sum of lists or dict of lists; names are looked up once each."""
    waiting: list[ast.expr] = [node]
    seen: set[str] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.splitlines()
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            waiting += node.elts
        elif isinstance(node, ast.Dict):
            waiting += node.values
        elif isinstance(node, ast.BinOp):
            waiting += (node.left, node.right)
        elif isinstance(node, ast.Starred | ast.Subscript):
            waiting.append(node.value)
        elif isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            waiting += values.get(node.id, ())


# ---- requirements files and conda environments ------------------------------------------------------


def _requirements(path: Path, data: bytes, tell: Note) -> Iterable[Version | None]:
    from torchmigrate.versions.bounds import of_requirement

    return _each(of_requirement, _requirement_lines(path, data, set(), tell), tell)


def _requirement_lines(path: Path, data: bytes, seen: set[Path], tell: Note) -> Iterator[str]:
    """The requirements of a file and of those that it includes."""
    seen.add(path.resolve())
    text = re.sub(r"\\\r?\n", "", _decode(data))
    for line in text.splitlines():
        line = re.sub(r"(?:^|\s)#.*", "", line).strip()
        include = re.fullmatch(_INCLUDE, line)
        if include is not None:
            other = path.parent / include[1]
            if other.resolve() in seen:
                continue
            try:
                yield from _requirement_lines(other, other.read_bytes(), seen, tell)
            except OSError as error:
                tell(f"{include[1]} not read: {error.strerror or error}")
        elif line and not line.startswith("-"):
            yield re.sub(_OPTION, "", line)


def _environment(path: Path, data: bytes, tell: Note) -> Iterable[Version | None]:
    import yaml

    from torchmigrate.versions.bounds import of_conda, of_requirement

    try:
        content = yaml.load(_decode(data), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        tell(f"not valid YAML: {str(error).splitlines()[0]}")
        return []
    items = _items(content.get("dependencies")) if isinstance(content, dict) else []
    bounds = [*_each(of_conda, items, tell)]
    for item in items:
        if isinstance(item, dict):
            bounds += _each(of_requirement, _items(item.get("pip")), tell)
    return bounds
