"""Reads the list of repositories: text, CSV or YAML."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from torchmigrate.files.formats import check_yaml
from torchmigrate.files.reading import UnreadableError, read
from torchmigrate.fleet.model import FleetError, Repository
from torchmigrate.patterns import pattern

_COLUMNS = ("address", "revision", "owner", "name")
_ALSO = {
    "path": "address",
    "url": "address",
    "repository": "address",
    "branch": "revision",
    "tag": "revision",
}
# Addresses for git that are not paths: `https://host/path`, and `host:path`, where one letter is a drive.
_ADDRESS = pattern(r"[a-z][a-z0-9+.-]*://|(?:[\w.-]+@)?[\w-][\w.-]+:(?!\\)", re.IGNORECASE)
_UNFIT = pattern(r"[^A-Za-z0-9._-]+")
_LONGEST = 100  # characters of a name
_YAML = (".yaml", ".yml")


class _Entry(Struct, frozen=True):
    """What the list says of a repository; line: of the file, 1-based, where that is known."""

    values: Mapping[str, str]
    line: int | None


def read_repositories(path: Path) -> list[Repository]:
    """The repositories of a list, in its order; directories are relative to the directory of the list.

    A `.csv` has a row of titles, `address` among them; a `.yaml` or `.yml` is a list of addresses and of
    mappings; anything else has an address in each line, and after white space a revision and an owner.

    Raises FleetError: it cannot be read, or an entry cannot be used.
    """
    try:
        text = read(path).decode("utf-8-sig")
    except UnreadableError as error:
        raise FleetError(f"{path}: {error.reason}") from None
    except UnicodeDecodeError:
        raise FleetError(f"{path}: not UTF-8 text") from None
    if path.suffix.lower() == ".csv":
        entries = _of_csv(text, path)
    elif path.suffix.lower() in _YAML:
        entries = _of_yaml(text, path)
    else:
        entries = _of_text(text, path)
    found: dict[str, Repository] = {}  # by the names of their files, on systems that ignore case as well
    for entry in entries:
        repository = _repository(entry, path, found)
        found[file_name(repository.name).casefold()] = repository
    if not found:
        raise FleetError(f"{path}: lists no repository")
    return list(found.values())


def file_name(name: str) -> str:
    """The name of a repository as that of a file."""
    return name.replace("/", "--")


def shown_address(address: str) -> str:
    """An address without a password, a token or the name of a user."""
    if "://" not in address:
        return address
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return address.partition("://")[0] + "://"
    if ":" in host:
        host = f"[{host}]"
    return urlunsplit((parts.scheme, host + port, parts.path, "", ""))


# ---- the three forms ---------------------------------------------------------------------------------------


def _of_text(text: str, path: Path) -> Iterator[_Entry]:
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        comment = next((index for index, word in enumerate(words) if word.startswith("#")), len(words))
        words = words[:comment]
        if len(words) > 3:
            raise _error(path, number, "more than an address, a revision and an owner; use CSV for spaces")
        if words:
            yield _Entry(dict(zip(_COLUMNS, words, strict=False)), number)


def _of_csv(text: str, path: Path) -> Iterator[_Entry]:
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        titles = [_ALSO.get(title.strip().lower(), title.strip().lower()) for title in next(rows, [])]
        _check_titles(titles, path)
        for row in rows:
            if any(row):
                values = {title: value.strip() for title, value in zip(titles, row, strict=False)}
                yield _Entry(values, rows.line_num)
    except csv.Error as error:
        raise _error(path, rows.line_num, f"not CSV: {error}") from None


def _check_titles(titles: list[str], path: Path) -> None:
    if "address" not in titles:
        raise _error(path, 1, f"the first row must have the titles of the columns: {', '.join(_COLUMNS)}")
    for title in titles:
        if titles.count(title) > 1:
            raise _error(path, 1, f"two columns are called {title!r}")


def _of_yaml(text: str, path: Path) -> Iterator[_Entry]:
    import yaml

    try:
        check_yaml(text, aliases=False)
        content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise _error(path, mark and mark.line + 1, "not YAML") from None
    except (UnreadableError, ValueError, RecursionError) as error:
        raise _error(path, None, getattr(error, "reason", "not YAML")) from None
    if isinstance(content, Mapping) and list(content) == ["repositories"]:
        content = content["repositories"]
    if not isinstance(content, list):
        raise _error(path, None, "must be a list of repositories")
    for number, item in enumerate(content, start=1):
        where = f"entry {number}"
        if isinstance(item, str):
            item = {"address": item}
        if not isinstance(item, Mapping):
            raise FleetError(f"{path}: {where}: must be an address, or a mapping with `address`")
        values: dict[str, str] = {}
        for key, value in item.items():
            title = _ALSO.get(str(key), str(key))
            if title not in _COLUMNS:
                raise FleetError(f"{path}: {where}: unknown key {str(key)!r}; known: {', '.join(_COLUMNS)}")
            if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int, float))):
                raise FleetError(f"{path}: {where}: `{key}` must be text")
            values[title] = "" if value is None else str(value)
        yield _Entry(values, None)


def _error(path: Path, line: int | None, reason: str) -> FleetError:
    return FleetError(f"{path}{'' if line is None else f':{line}'}: {reason}")


# ---- an entry ----------------------------------------------------------------------------------------------


def _repository(entry: _Entry, path: Path, known: Mapping[str, Repository]) -> Repository:
    address = entry.values.get("address", "")
    for title, value in entry.values.items():
        if not value.isprintable():
            raise _error(path, entry.line, f"a control character in the {title}")
    revision = entry.values.get("revision", "").removeprefix("-") and entry.values["revision"]
    if not address:
        raise _error(path, entry.line, "an entry without an address")
    if address.startswith("-") or revision.startswith("-"):
        raise _error(path, entry.line, "an address or a revision must not begin with `-`")
    is_directory = _ADDRESS.match(address) is None
    if is_directory:
        address = str((path.parent / Path(address).expanduser()).resolve())
    name = entry.values.get("name") or _name_of(address, is_directory)
    if entry.values.get("name") and (
        _UNFIT.sub("", name.replace("/", "")) != name.replace("/", "") or not _is_fit(name)
    ):
        raise _error(path, entry.line, f"the name {name!r} has other characters than letters, digits, `._-/`")
    other = known.get(file_name(name).casefold())
    if other is not None:
        if entry.values.get("name") or (other.address, other.revision) == (address, revision or None):
            raise _error(
                path, entry.line, f"{name} is listed twice; give the entries a `name` if they differ"
            )
        numbered = (f"{name}-{number}" for number in range(2, len(known) + 3))
        name = next(each for each in numbered if file_name(each).casefold() not in known)
    return Repository(name, address, revision or None, entry.values.get("owner") or None, is_directory)


def _is_fit(name: str) -> bool:
    """Whether a name can be a file below a directory."""
    parts = name.split("/")
    return len(name) <= _LONGEST and all(part and part.strip(".") for part in parts)


def _name_of(address: str, is_directory: bool) -> str:
    """The last two parts of an address, as `owner/repository`; of a directory the last one."""
    text = re.sub(r"^[a-z][a-z0-9+.-]*://[^/]*/|^[^/:]*:", "", address, flags=re.IGNORECASE)
    parts = [_UNFIT.sub("-", part).strip(".-") for part in text.split("?")[0].replace("\\", "/").split("/")]
    parts = [part for part in parts if part]
    if parts:
        parts[-1] = parts[-1].removesuffix(".git") or parts[-1]
    name = "/".join(parts[-1 if is_directory else -2 :])[-_LONGEST:].strip("/")
    return name or "repository"
