"""The settings of a run: the configuration file, the command line, and their combination.

As in `model`, annotations are not text, so that the named tuples are made quickly.
"""

import fnmatch
import functools
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.config.selection import (
    ALL,
    Selectable,
    SelectorError,
    apply_layer,
    default_codes,
    did_you_mean,
    union,
)
from torchmigrate.files.paths import exists, is_dir, project_of
from torchmigrate.files.reading import UnreadableError, is_below, read
from torchmigrate.findings import Applicability
from torchmigrate.printing import printable
from torchmigrate.versions.range import VersionRange
from torchmigrate.versions.releases import NEWEST, RELEASES, parse_version, show_version

if TYPE_CHECKING:
    from torchmigrate.files.globs import Patterns

FILE_NAME = "torchmigrate.toml"
PROJECT_FILE = "pyproject.toml"
CONFIG_NAMES = frozenset([FILE_NAME, PROJECT_FILE])
OUTPUT_FORMATS = (
    *("full", "concise", "grouped", "json", "json-lines", "junit", "github", "gitlab", "azure"),
    *("pylint", "rdjson", "sarif"),
)
MOST_EXTENDED = 20  # configurations that extend each other
TABLE = "tool.torchmigrate"
_NONE: Mapping[str, str] = {}


class ConfigError(Exception):
    """A configuration or option that cannot be used; the message is one line for a person, or several.

    lines: those of the message, as they were given.
    """

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        super().__init__("\n".join(map(printable, lines)))


class Layer(Struct, frozen=True):
    """The options of one origin: a configuration file or the command line. None: not given there.

    origin: how messages name it; option: how they name one of its keys, with `{}` for the key.
    Paths in `rules`, `extend` and `baseline` are absolute; patterns are as they were written.
    extend: the configuration file whose options come before these.
    root: the directory that patterns are relative to; None: the root of the settings. project: the files in
    `rules` must be in this directory; None: the user named them, they may be anywhere.
    """

    origin: str = ""
    option: str = "{}"
    target: str | None = None
    minimum: str | None = None
    written_for: str | None = None
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    include: tuple[str, ...] | None = None
    extend_include: tuple[str, ...] = ()
    fixable: tuple[str, ...] | None = None
    extend_fixable: tuple[str, ...] = ()
    unfixable: tuple[str, ...] = ()
    extend_safe_fixes: tuple[str, ...] = ()
    extend_unsafe_fixes: tuple[str, ...] = ()
    rules: tuple[Path, ...] = ()
    extend: Path | None = None
    root: Path | None = None
    project: Path | None = None
    fix: bool | None = None
    output_format: str | None = None
    unsafe_fixes: bool | None = None
    respect_gitignore: bool | None = None
    force_exclude: bool | None = None
    embedded: bool | None = None
    cache_dir: Path | None = None
    evidence: bool | None = None
    suppressions: bool | None = None
    baseline: Path | None = None

    def fail(self, key: str, what: str, *more: str) -> ConfigError:
        """The error to raise about one of the keys. more: lines after the first one."""
        name = self.option.format(key)
        return ConfigError(f"{self.origin}: {name}: {what}" if self.origin else f"{name}: {what}", *more)


class Settings(Struct, frozen=True):
    """What to look for, for which versions, and what to fix. Can be sent to another process.

    target, minimum: releases of torch such as "2.15"; minimum None: unknown, only the target matters.
    written_for: as in `VersionRange`; no setting of a user.
    minimum_from: the option or the file that says it.
    detect: what the project of a file requires counts; `minimum`, where there is one, all the same.
    packages: those of `versions.requirement_lists.PACKAGES` that the project declares.
    companions: the oldest releases of other libraries that the project allows, as far as it declares them.
    codes: of the selected rules. known: the code of every rule that exists, by code and by name.
    own_names: the qualified names that rules of the user are about, outside of the known libraries.
    unfixable: codes of rules whose fixes are only shown.
    suppressions: whether comments hide findings.
    per_file_ignores: pattern relative to `root` (`!` in front: files that do not match) -> codes.
    root: directory of the configuration, or of the project; patterns are relative to it.
    """

    codes: frozenset[str] = frozenset()
    known: Mapping[str, str] = _NONE
    own_names: frozenset[str] = frozenset()
    target: str = NEWEST
    minimum: str | None = None
    written_for: str | None = None
    minimum_from: str | None = None
    detect: bool = False
    packages: frozenset[str] = frozenset()
    companions: frozenset[tuple[str, tuple[int, ...]]] = frozenset()
    fix: bool = False
    unsafe_fixes: bool = False
    per_file_ignores: tuple[tuple[str, frozenset[str]], ...] = ()
    unfixable: frozenset[str] = frozenset()
    safe_fixes: frozenset[str] = frozenset()
    unsafe_codes: frozenset[str] = frozenset()
    root: Path = Path()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    include: tuple[str, ...] | None = None
    extend_include: tuple[str, ...] = ()
    respect_gitignore: bool = True
    force_exclude: bool = False
    embedded: bool = False  # whether documentation that holds Python is looked for
    suppressions: bool = True
    evidence: bool = True  # whether what `record` has seen counts
    baseline: Path | None = None  # the file with the findings that are accepted
    cache_dir: Path | None = None  # where results are kept; None: in the root
    keeps_line_length: bool = False  # whether fixes keep to the line length that the project declares

    @property
    def least(self) -> Applicability:
        """The lowest applicability that `--fix` applies."""
        return Applicability.UNSAFE if self.unsafe_fixes else Applicability.SAFE

    @property
    def own_roots(self) -> frozenset[str]:
        """The top-level packages of `own_names`."""
        return frozenset(name.partition(".")[0] for name in self.own_names)

    def mentions_own(self, text: str) -> bool:
        """Whether a text may use one of `own_names`: only the last part counts, since modules re-export."""
        return any(name.rpartition(".")[2] in text for name in self.own_names)

    def selects(self, code: str) -> bool:
        """Whether a rule is looked for."""
        return code in self.codes

    def ignored_in(self, path: Path) -> frozenset[str]:
        """Codes that `per-file-ignores` turns off for a file."""
        if not self.per_file_ignores:
            return frozenset()
        inside = _relative(path, self.root)
        ignored: set[str] = set()
        for pattern, codes in self.per_file_ignores:
            if _patterns(pattern.removeprefix("!")).covers(inside) is not pattern.startswith("!"):
                ignored |= codes
        return frozenset(ignored)

    def looks_for_in(self, path: Path) -> Callable[[str], bool]:
        """Whether a rule is looked for in a file, or is never to be."""
        ignored = self.ignored_in(path)
        return lambda code: code in self.codes or code in ignored

    def promotes(self, code: str) -> bool:
        """Whether an unsafe fix of this rule counts as safe."""
        return code in self.safe_fixes

    def demotes(self, code: str) -> bool:
        """Whether a safe fix of this rule counts as unsafe."""
        return code in self.unsafe_codes


# The fields of a layer that name rules.
_OF_RULES = (
    *("select", "extend_select", "ignore", "fixable", "extend_fixable", "unfixable"),
    *("extend_safe_fixes", "extend_unsafe_fixes"),
)


def combine(
    layers: Sequence[Layer], rules: Sequence[Selectable], *, root: Path, fix: bool = False
) -> Settings:
    """The settings of a run. Later layers win.

    Raises ConfigError, naming origin and key, for a selector that fits no rule or an impossible range.
    """
    codes = default_codes(rules)
    every = fixable = union([ALL], rules)
    per_file: list[tuple[str, frozenset[str]]] = []
    safe: frozenset[str] = frozenset()
    unsafe: frozenset[str] = frozenset()
    settings = Settings(
        root=root, fix=fix, known={key: rule.code for rule in rules for key in (rule.code, rule.name)}
    )
    for layer in layers:
        for key in _OF_RULES:
            _check(layer, key, getattr(layer, key) or (), rules)
        codes = apply_layer(
            codes, rules, select=layer.select, extend_select=layer.extend_select, ignore=layer.ignore
        )
        fixable = apply_layer(
            *(fixable, rules),
            select=layer.fixable,
            extend_select=layer.extend_fixable,
            ignore=layer.unfixable,
        )
        for pattern, selectors in layer.per_file_ignores:
            _check(layer, "per_file_ignores", selectors, rules)
            if not _patterns(pattern.removeprefix("!")):
                raise layer.fail("per-file-ignores", f"{reprlib.repr(pattern)} is not a valid pattern")
            per_file += [(here, union(selectors, rules)) for here in _here([pattern], layer.root, root)]
        safe |= union(layer.extend_safe_fixes, rules)
        unsafe |= union(layer.extend_unsafe_fixes, rules)
        given = {
            key: value
            for key in (
                "target",
                "minimum",
                "written_for",
                "unsafe_fixes",
                "respect_gitignore",
                "force_exclude",
                "embedded",
                "evidence",
                "suppressions",
                "baseline",
                "cache_dir",
            )
            if (value := getattr(layer, key)) is not None
        }
        if layer.exclude is not None:
            given["exclude"] = _here(layer.exclude, layer.root, root)
        if layer.minimum is not None:
            given["minimum_from"] = layer.origin or layer.option.format("minimum")
        if layer.include is not None:
            given["include"] = _here(layer.include, layer.root, root)
        settings = replace(
            settings,
            **given,
            extend_exclude=(*settings.extend_exclude, *_here(layer.extend_exclude, layer.root, root)),
            extend_include=(*settings.extend_include, *_here(layer.extend_include, layer.root, root)),
        )
    try:
        VersionRange(settings.target, settings.minimum)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return replace(
        settings,
        codes=codes,
        unfixable=every - fixable,
        per_file_ignores=tuple(per_file),
        safe_fixes=safe - unsafe,
        unsafe_codes=unsafe,
    )


def _check(layer: Layer, key: str, selectors: Iterable[str], rules: Sequence[Selectable]) -> None:
    try:
        union(selectors, rules)
    except SelectorError as error:
        raise layer.fail(key.replace("_", "-"), str(error)) from None


def check_version(value: str) -> str:
    """A release of torch as given by a person, such as "2.13", "v2.13.0" or "2.13.0+cu126", as "2.13".

    Raises ValueError, with what is allowed, for anything but a known release.
    """
    try:
        version = parse_version(value)
    except ValueError:
        shown = reprlib.repr(value)
        raise ValueError(f'must be a release of torch such as "2.13" or "1.8.1", not {shown}') from None
    shown = show_version(version)
    if version > RELEASES[-1]:
        raise ValueError(
            f"torch {shown} is unknown; the newest release that this version of torchmigrate knows is "
            f"{NEWEST}"
        )
    if version > RELEASES[0] and version not in RELEASES:
        raise ValueError(f"there is no torch {shown}")
    return shown


def _relative(path: Path, root: Path) -> str:
    """The path as patterns see it: relative to the root, or absolute without its first slash."""
    absolute, root = path.absolute(), root.absolute()
    for place in (absolute, Path(os.path.realpath(absolute))):
        if place.is_relative_to(root):
            return place.relative_to(root).as_posix()
    return absolute.relative_to(absolute.anchor).as_posix()


def _here(patterns: Iterable[str], written: Path | None, root: Path) -> tuple[str, ...]:
    """Patterns that are relative to one directory, as they are for another; those that fit nothing there go.

    written: where they were; None: at the root. A pattern without a directory in it fits anywhere.
    """
    if written is None or written == root:
        return tuple(patterns)
    found: list[str] = []
    for pattern in patterns:
        sign = "!" if pattern.startswith("!") else ""
        plain = pattern.removeprefix(sign).removeprefix("./")
        if "/" not in plain.rstrip("/") or plain.startswith("/"):
            found.append(pattern)
        elif written.is_relative_to(root):
            inside = re.sub(r"([*?!\[\]\\ #])", r"\\\1", written.relative_to(root).as_posix())
            found.append(f"{sign}{inside}/{plain}")
        elif root.is_relative_to(written):
            rests = _below(plain.split("/"), root.relative_to(written).parts)
            # Of what does not fit here at all, everything is what it leaves.
            found += [sign + rest for rest in rests] or (["!**"] if sign else [])
    return tuple(found)


def _below(pattern: Sequence[str], parts: Sequence[str]) -> list[str]:
    """What a pattern that is anchored in a directory is for one further down, which `parts` lead to."""
    if not parts:
        return ["/" + "/".join(pattern)] if pattern and pattern != [""] else ["**"]
    if not pattern or pattern == [""]:  # it fits a directory on the way
        return ["**"]
    if pattern[0] == "**":
        return [*_below(pattern, parts[1:]), *_below(pattern[1:], parts)]
    return _below(pattern[1:], parts[1:]) if fnmatch.fnmatchcase(parts[0], pattern[0]) else []


@functools.lru_cache(maxsize=256)
def _patterns(pattern: str) -> "Patterns":
    from torchmigrate.files.globs import Patterns

    return Patterns([pattern])


# ---- the configuration file ---------------------------------------------------------------------------


def find_config(start: Path) -> Path | None:
    """The nearest configuration file at or above a directory.

    That is `torchmigrate.toml`, or a `pyproject.toml` with a [tool.torchmigrate] table. Raises ConfigError
    for one that is not a regular file of the project, and for a `pyproject.toml` that mentions the table but
    is not TOML.
    """
    start = start.absolute()
    return next(filter(None, map(config_in, (start, *start.parents))), None)


def config_in(directory: Path) -> Path | None:
    """The configuration file in a directory. Raises ConfigError as `find_config`."""
    own = directory / FILE_NAME
    if _is_there(own):
        return own
    project = directory / PROJECT_FILE
    if _is_there(project) and _has_table(project):
        return project
    return None


def _is_there(path: Path) -> bool:
    return exists(path) and not is_dir(path)


def _has_table(path: Path) -> bool:
    project = project_of(path.parent)
    data = _read(path, project)
    return b"torchmigrate" in data and _table(path, data, project) is not None


def _read(path: Path, within: Path | None) -> bytes:
    try:
        return read(path, within=within)
    except UnreadableError as error:
        raise ConfigError(f"{path}: {error.reason}") from None


def _table(path: Path, data: bytes, project: Path) -> Any:
    """The table of ours in a TOML file, None without one. project: outside of it, no line is shown."""
    content: Any = _toml(data, str(path), shows=is_below(os.path.realpath(path), str(project)))
    if path.name != PROJECT_FILE:
        return content
    tool = content.get("tool", {})
    return tool.get("torchmigrate") if isinstance(tool, dict) else None


def _toml(data: bytes, origin: str, *, shows: bool = True) -> dict[str, Any]:
    """Parse TOML. Raises ConfigError.

    origin: how messages name it. shows: whether they show the line with the error.
    """
    from torchmigrate.files.formats import FormatError, read_toml

    try:
        return read_toml(data)
    except FormatError as error:
        shown: Sequence[str] = ()
        if shows:
            shown = _pointed_at(data.decode("utf-8", "replace"), error.line, error.column)
        raise ConfigError(f"{origin}: {error.reason}", *shown) from None
    except UnreadableError as error:
        raise ConfigError(f"{origin}: {error.reason}") from None


_MOST_SHOWN = 80  # characters of a line, and of what is before the place in it


def _pointed_at(text: str, row: int | None, column: int | None) -> list[str]:
    """A line of a text, and under it a caret; nothing where there is no such line.

    row, column: 1-based; column None: after the end of the line.
    """
    lines = re.split(r"\r?\n", text)
    if row is None or not 0 < row <= len(lines):
        return []
    line = lines[row - 1].replace("\t", " ")
    place = len(line) if column is None else column - 1
    start = max(0, place - _MOST_SHOWN)
    before = printable(line[start:place])
    number = f"{row} | "
    return [
        number + before + printable(line[place : place + _MOST_SHOWN]),
        f"{'| ':>{len(number)}}{' ' * len(before)}^",
    ]


def read_config(path: Path, *, named: bool = True, around: Path | None = None) -> Layer:
    """The options in a configuration file. Raises ConfigError that names the file and the key.

    named: by the user. What is found in a project must be in it, and so must be what it names.
    around: the project of the configuration that extends this one; None: none does.
    """
    project = None if named else project_of(path.parent)
    table = _table(path, _read(path, project), around or project_of(path.parent))
    inside = path.name == PROJECT_FILE
    empty = Layer(origin=str(path), option=f"[{TABLE}] {{}}" if inside else "{}")
    if table is None:
        raise ConfigError(f"{path}: has no [{TABLE}] table")
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [{TABLE}] must be a table")
    layer = layer_of(table, empty)
    root = path.absolute().parent
    named_there = [("rules", item) for item in layer.rules]
    if layer.cache_dir is not None:
        named_there.append(("cache-dir", layer.cache_dir))
    if layer.extend is not None:
        named_there.append(("extend", layer.extend))
    if layer.baseline is not None:
        named_there.append(("baseline", layer.baseline))
    for key, item in named_there:
        if project is not None and not is_below(os.path.realpath(root / item), str(project)):
            what = f"{str(item)!r} is outside of the project; pass this file with `--config`"
            raise empty.fail(key, what)
    return replace(_placed(layer, root), project=project)


def _placed(layer: Layer, root: Path) -> Layer:
    """A layer whose paths are relative to a directory, with absolute ones."""
    if layer.cache_dir is not None:
        layer = replace(layer, cache_dir=root / layer.cache_dir)
    rules = tuple(root / item for item in layer.rules)
    extend = None if layer.extend is None else Path(os.path.normpath(root / layer.extend))
    baseline = None if layer.baseline is None else Path(os.path.normpath(root / layer.baseline))
    return replace(layer, rules=rules, extend=extend, baseline=baseline, root=root)


def read_inline(texts: Sequence[str]) -> Layer:
    """The options in `--config KEY=VALUE`; the last value of a key wins.

    Raises ConfigError that names the key.
    """
    empty = Layer(option="--config: {}")
    table: dict[str, object] = {}
    for text in texts:
        table.update(_toml(text.encode("utf-8", "surrogateescape"), "--config"))
    if "extend" in table:
        raise empty.fail("extend", "is only for configuration files")
    return _placed(layer_of(table, empty), Path.cwd())


def layer_of(table: Mapping[str, object], empty: Layer) -> Layer:
    """The options in a table, by the keys of a configuration file.

    empty: where they are from. Raises ConfigError that names the key.
    """
    values: dict[str, object] = {}
    for key, value in table.items():
        reader = _READERS.get(key)
        if reader is None:
            known = ", ".join(sorted(_READERS))
            raise empty.fail(key, f"unknown key{did_you_mean(key, _READERS) or '.'} Allowed keys are {known}")
        try:
            values[key.replace("-", "_")] = reader(value)
        except ValueError as error:
            raise empty.fail(key, str(error)) from None
    return replace(empty, **values)


def read_layers(path: Path, *, named: bool = True) -> list[Layer]:
    """`read_config`, and before it what the file extends."""
    layers = [read_config(path, named=named)]
    seen = {os.path.realpath(path)}
    while (extended := layers[0].extend) is not None:
        try:
            base = read_config(extended, named=named, around=project_of(path.parent))
        except ConfigError as error:
            raise layers[0].fail("extend", *error.lines) from None
        if os.path.realpath(extended) in seen or len(seen) == MOST_EXTENDED:
            raise layers[0].fail("extend", "the files extend each other in a cycle")
        seen.add(os.path.realpath(extended))
        layers.insert(0, base)
    return layers


def _read_version(value: object) -> str:
    if isinstance(value, (float, int)) and not isinstance(value, bool):
        raise ValueError(f'must be quoted, such as "{value}" (unquoted, 1.10 would be the number 1.1)')
    if not isinstance(value, str):
        raise ValueError(f'must be a release of torch such as "2.13", not {reprlib.repr(value)}')
    return check_version(value)


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {reprlib.repr(value)}")
    return value


def _read_format(value: object) -> str:
    if value not in OUTPUT_FORMATS:
        raise ValueError(f"must be one of {', '.join(OUTPUT_FORMATS)}, not {reprlib.repr(value)}")
    return str(value)


def _read_strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"must be a list of strings, not {reprlib.repr(value)}")
    return tuple(value)


def _read_paths(value: object) -> tuple[Path, ...]:
    return tuple(Path(item) for item in _read_strings(value))


def _read_path(value: object) -> Path:
    if not isinstance(value, str):
        raise ValueError(f"must be a file path, not {reprlib.repr(value)}")
    return Path(value)


def _read_table(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise ValueError(f'must be a table such as {{"tests/*" = ["TM131"]}}, not {reprlib.repr(value)}')
    entries = []
    for pattern, selectors in value.items():
        try:
            entries.append((pattern, _read_strings(selectors)))
        except ValueError as error:
            raise ValueError(f"{pattern!r} {error}") from None
    return tuple(entries)


_READERS: dict[str, Callable[[object], object]] = {
    "target": _read_version,
    "minimum": _read_version,
    "select": _read_strings,
    "extend-select": _read_strings,
    "ignore": _read_strings,
    "per-file-ignores": _read_table,
    "fix": _read_flag,
    "fixable": _read_strings,
    "extend-fixable": _read_strings,
    "unfixable": _read_strings,
    "output-format": _read_format,
    "exclude": _read_strings,
    "extend-exclude": _read_strings,
    "include": _read_strings,
    "extend-include": _read_strings,
    "extend-safe-fixes": _read_strings,
    "extend-unsafe-fixes": _read_strings,
    "rules": _read_paths,
    "extend": _read_path,
    "unsafe-fixes": _read_flag,
    "respect-gitignore": _read_flag,
    "force-exclude": _read_flag,
    "embedded": _read_flag,
    "evidence": _read_flag,
    "baseline": _read_path,
    "cache-dir": _read_path,
}
