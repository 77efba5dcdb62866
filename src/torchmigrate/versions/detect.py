"""The oldest torch that a project supports, as its own dependencies say."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchmigrate.files import UnreadableError, is_below, read
from torchmigrate.formats import FormatError, check_yaml, read_toml
from torchmigrate.reach import exists, is_dir, project_of
from torchmigrate.versions.releases import show_version

if TYPE_CHECKING:
    from torchmigrate.versions.releases import Version

Note = Callable[[str], None]  # is told, in a line, what was not understood
# Is told of a file that was not read at all, or (False) that is not what its name says.
Trouble = Callable[[Path, str, bool], None]

# Patterns are compiled when they are used: in most directories there is nothing to read.
_OPTION = r"\s--?[A-Za-z].*$"  # `torch==1.7 --hash=...`
_INCLUDE = r"(?:-r|--requirement|-c|--constraint)[\s=]*(\S+)"
LONGEST = 10_000  # characters of one requirement
MOST_INCLUDED = 100  # files that a requirements file may include


def _silent(*_: object) -> None:
    pass


class Detected(NamedTuple):
    """A minimum and the file that states it."""

    minimum: str  # "1.7"
    path: Path


def find_minimum(start: Path, note: Note = _silent, trouble: Trouble = _silent) -> Detected | None:
    """The oldest torch that the project around `start` (a file or directory) allows.

    Looks in that directory and those above it, up to the root of the repository, or to below the home
    directory where there is none. The nearest file that states a lower bound wins; in one directory
    pyproject.toml, setup.cfg, setup.py, requirements files and conda environments, in this order. What
    cannot be read or understood is left out and told: a line to `note`, a file to `trouble`. Nothing is
    executed, and nothing is read that is not in the project (`project_of`).
    """
    for directory in _directories(start):
        project = project_of(directory)
        for reader, paths in _candidates(directory):
            bounds = {
                path: bound
                for path in paths
                if (bound := _bound(reader, _File(path, project, note, trouble))) is not None
            }
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


class _File(NamedTuple):
    """A file that may state a bound. project: what it may lead to has to be there."""

    path: Path
    project: Path
    note: Note
    trouble: Trouble

    def read(self) -> bytes:
        return read(self.path, within=self.project)

    def tell(self, text: str) -> None:
        """Say that something in it is not understood."""
        self.note(f"{self.path}: {text}")


Reader = Callable[[_File, bytes], "Iterable[Version | None]"]


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


def _bound(reader: Reader, file: _File) -> Version | None:
    from torchmigrate.versions.bounds import lowest

    if is_dir(file.path):
        return None
    try:
        data = file.read()
        if b"torch" not in data.replace(b"\0", b"") and b"-r" not in data:
            return None  # most files; not worth parsing
        return lowest(list(reader(file, data)))
    except UnreadableError as error:
        file.trouble(file.path, error.reason, True)
    except FormatError as error:
        file.trouble(file.path, error.reason, False)
    return None


def _each(
    read: Callable[[str], Version | None], texts: Iterable[object], file: _File
) -> Iterator[Version | None]:
    """The bound of every text; those that are not understood are told."""
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


def _pyproject(file: _File, data: bytes) -> Iterable[Version | None]:
    from torchmigrate.versions.bounds import of_poetry, of_requirement

    content = read_toml(data)
    project = _table(content, "project")
    poetry = _table(content, "tool", "poetry")
    own = [*_each(of_requirement, _items(project.get("dependencies")), file)]
    own += _each(of_poetry, _poetry(_table(poetry, "dependencies")), file)
    if any(bound is not None for bound in own):
        return own  # what an extra or a group asks for is no bound of the project
    others = [
        *_table(project, "optional-dependencies").values(),
        *_table(content, "dependency-groups").values(),
    ]
    found = [*_each(of_requirement, (item for group in others for item in _items(group)), file)]
    groups = [_table(poetry, "group", name, "dependencies") for name in _table(poetry, "group")]
    for table in (_table(poetry, "dev-dependencies"), *groups):
        found += _each(of_poetry, _poetry(table), file)
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


def _setup_cfg(file: _File, data: bytes) -> Iterable[Version | None]:
    import configparser

    from torchmigrate.versions.bounds import of_requirement

    parser = configparser.ConfigParser(interpolation=None, strict=False)
    # Its own pattern takes quadratic time for white space within a line.
    text = re.sub(r"(?<=\S)[^\S\n]{2,}", " ", _decode(data))
    try:
        parser.read_string(text)
    except configparser.Error as error:
        errors = getattr(error, "errors", None) or [(getattr(error, "lineno", None), "")]
        line = errors[0][0]
        raise FormatError(f"not understood (line {line})" if line else "not understood") from None
    own = parser.get("options", "install_requires", fallback="")
    bounds = [*_each(of_requirement, re.split(r"[\n]", own), file)]
    if any(bound is not None for bound in bounds) or "options.extras_require" not in parser:
        return bounds
    extras = parser["options.extras_require"].values()
    return _each(of_requirement, (line for text in extras for line in text.splitlines()), file)


def _setup_py(file: _File, data: bytes) -> Iterable[Version | None]:
    """Reads the call of `setup` and the names that are bound to literal lists."""
    from torchmigrate.versions.bounds import of_requirement

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
    own: list[str] = []
    extras: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) == "setup":
            for keyword in node.keywords:
                if keyword.arg == "install_requires":
                    own += _strings(keyword.value, values)
                elif keyword.arg == "extras_require":
                    extras += _strings(keyword.value, values)
    bounds = [*_each(of_requirement, own, file)]
    if any(bound is not None for bound in bounds):
        return bounds
    return _each(of_requirement, extras, file)


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


# ---- requirements files and conda environments ------------------------------------------------------


def _requirements(file: _File, data: bytes) -> Iterable[Version | None]:
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


def _environment(file: _File, data: bytes) -> Iterable[Version | None]:
    import yaml

    from torchmigrate.versions.bounds import of_conda, of_requirement

    text = _decode(data)
    try:
        check_yaml(text, aliases=False)
        content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        raise FormatError(f"not YAML (line {mark.line + 1})" if mark else "not YAML") from None
    items = _items(content.get("dependencies")) if isinstance(content, dict) else []
    bounds = [*_each(of_conda, items, file)]
    for item in items:
        if isinstance(item, dict):
            bounds += _each(of_requirement, _items(item.get("pip")), file)
    return bounds
