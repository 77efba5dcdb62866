"""The command `config`: which settings hold for a file, and where each of them is from."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.cli.options import (
    Command,
    cache_dir_option,
    config_options,
    console_options,
    fixable_options,
    format_option,
    option,
    settings_options,
)
from torchmigrate.cli.session import Session, errors_of_the_user
from torchmigrate.config.settings import Layer, Settings
from torchmigrate.files.paths import is_dir
from torchmigrate.printing import json_text, printable
from torchmigrate.report.base import shown_path
from torchmigrate.report.console import Console
from torchmigrate.report.style import Style

if TYPE_CHECKING:
    from torchmigrate.run.configurations import Scope


@click.command("config", cls=Command, short_help="Show the settings that hold for a file.")
@click.argument("path", metavar="[FILE]", type=click.Path(readable=False, path_type=Path), default=".")
@option(
    "--schema",
    type=click.Choice(["torchmigrate", "pyproject", "rules"]),
    help="Print the JSON Schema of torchmigrate.toml, of pyproject.toml or of rule files instead.",
)
@option(
    "--unsafe-fixes/--no-unsafe-fixes",
    default=None,
    help="Also count and apply fixes that may change results.",
)
@settings_options
@fixable_options
@format_option("output", "text", "json")
@console_options
@config_options
@cache_dir_option
def show_config(path: Path, schema: str | None, output_format: str, **options: Any) -> int:
    """Show the settings that hold for a file or a directory (default: the current one), which need not exist.

    Each setting comes with its origin: the default, a file (the minimum may be from one that states what the
    project requires), or the command line. Takes the options of `check` that change settings.

    Exit codes: 0 done, 2 a configuration cannot be used.
    """
    if schema is not None:
        from torchmigrate.authoring.schemas import schema as made

        Console(options["color"]).out(json_text(made(schema)))
        return 0
    return show_settings(Session.from_options([path], options), path, output_format)


DONE, FAILED = 0, 2
DEFAULT, COMMAND_LINE = "default", "command line"
_WIDTH = 100

Value = str | bool | list[str] | dict[str, list[str]] | None


class Setting(Struct, frozen=True):
    """One key of a configuration. origins: DEFAULT, COMMAND_LINE, or files; several where they add up."""

    key: str
    value: Value
    origins: Sequence[str | Path]


class InForce(Struct, frozen=True):
    """What holds for a file. excluded: a directory that is given would leave it out."""

    path: Path
    excluded: bool
    settings: Sequence[Setting]
    selected: frozenset[str]
    ignored: frozenset[str]
    known: int


def show_settings(session: Session, path: Path, output_format: str) -> int:
    """Print what holds for a file (or for files in a directory), which need not exist; the exit code."""
    from torchmigrate.project.discover import is_excluded
    from torchmigrate.run.engines import scopes_of

    inside = path / "-" if is_dir(path) else path
    with errors_of_the_user():
        scopes, problems = scopes_of([inside], session.configurations, session.console)
        scope = scopes[inside]
        settings = scope.settings
        forced = replace(settings, force_exclude=True)
        excluded = is_excluded(path, lambda _: forced)
    # A file ignores what is selected for others, so that only those matter.
    ignored = settings.ignored_in(path) & settings.codes
    found = InForce(path, excluded, list(_in_force(scope)), settings.codes, ignored, len(scope.known))
    if output_format == "json":
        session.console.out(_json(found))
    else:
        session.console.out(_text(found, session.console.style))
    for problem in problems:
        session.console.problem(problem, Path.cwd())
    return FAILED if problems else DONE


# ---- what holds ---------------------------------------------------------------------------------------


def _in_force(scope: Scope) -> Iterator[Setting]:
    """Every key, in the order of the reference."""
    from torchmigrate.config.keys import KEYS

    layers, settings = scope.layers, scope.settings
    for key in KEYS:
        field = key.name.replace("-", "_")
        given = [layer for layer in layers if getattr(layer, field) not in (None, ())]
        for start, others in _SELECTING.items():
            if field in others:
                given = [layer for layer in given if layer in _from_on(start, layers)]
        if field in _LAST:
            given = given[-1:]
        origins: list[str | Path] = [_origin(layer) for layer in given]
        if key.name == "minimum" and not given and settings.minimum is not None and scope.source:
            origins = [scope.source]
        if not settings.evidence and key.name == "evidence" and not given:
            origins = [COMMAND_LINE]  # --isolated
        value = _IN_SETTINGS[field](settings) if field in _IN_SETTINGS else _added(field, given)
        yield Setting(key.name, value, origins or [DEFAULT])


# What starts a selection of rules afresh, and what changes it.
_SELECTING = {"select": ("extend_select", "ignore"), "fixable": ("extend_fixable", "unfixable")}


def _from_on(start: str, layers: Sequence[Layer]) -> Sequence[Layer]:
    """The layers from the last one that starts a selection afresh, which overrides those before it."""
    numbers = [number for number, layer in enumerate(layers) if getattr(layer, start) is not None]
    return layers[numbers[-1] :] if numbers else layers


def _origin(layer: Layer) -> str | Path:
    return Path(layer.origin) if layer.origin else COMMAND_LINE


def _added(field: str, layers: Sequence[Layer]) -> Value:
    """What layers say together, of a key whose values add up."""
    if field == "per_file_ignores":
        table: dict[str, list[str]] = {}
        for layer in layers:
            for pattern, selectors in layer.per_file_ignores:
                table.setdefault(pattern, []).extend(selectors)
        return table
    if field == "extend":
        return str(layers[-1].extend) if layers else None
    if field in _SELECTING:
        return list(getattr(layers[-1], field)) if layers else None
    if field in _DEFAULTS:
        return getattr(layers[-1], field) if layers else _DEFAULTS[field]
    return [str(item) for layer in layers for item in getattr(layer, field)]


def _excluded(settings: Settings) -> Value:
    from torchmigrate.project.discover import DEFAULT_EXCLUDE

    return list(DEFAULT_EXCLUDE if settings.exclude is None else settings.exclude)


def _cache(settings: Settings) -> Value:
    from torchmigrate.cache.location import directory_for

    found = directory_for(settings.root, settings.cache_dir)
    return None if found is None else str(found)


# Where the last layer wins: what it comes to, and the default where none says anything.
_IN_SETTINGS: dict[str, Callable[[Settings], Value]] = {
    "target": lambda settings: settings.target,
    "minimum": lambda settings: settings.minimum,
    "exclude": _excluded,
    "include": lambda settings: None if settings.include is None else list(settings.include),
    "force_exclude": lambda settings: settings.force_exclude,
    "respect_gitignore": lambda settings: settings.respect_gitignore,
    "embedded": lambda settings: settings.embedded,
    "evidence": lambda settings: settings.evidence,
    "unsafe_fixes": lambda settings: settings.unsafe_fixes,
    "baseline": lambda settings: None if settings.baseline is None else str(settings.baseline),
    "cache_dir": _cache,
}


_DEFAULTS: dict[str, Value] = {"fix": False, "output_format": "full"}
_LAST = frozenset([*_SELECTING, *_DEFAULTS, *_IN_SETTINGS])  # where the last layer wins


# ---- how it is shown ----------------------------------------------------------------------------------


def _text(found: InForce, style: Style) -> str:
    here = Path.cwd()
    rows = [
        (
            setting.key,
            ", ".join(_shown(origin, here) for origin in dict.fromkeys(setting.origins)),
            _shown_value(setting, here),
        )
        for setting in found.settings
    ]
    heads = ("SETTING", "FROM", "VALUE")
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in (0, 1)]
    lines = []
    for row in (heads, *rows):
        start = "".join(f"{cell:{size}}  " for cell, size in zip(row, widths, strict=False))
        room = max(30, _WIDTH - len(start))
        parts = textwrap.wrap(row[2], room, break_long_words=False, break_on_hyphens=False) or [""]
        line = start + f"\n{' ' * len(start)}".join(parts)
        lines.append(style.bold(line) if row is heads else line)
    rules = f"{len(found.selected - found.ignored)} of {found.known} rules are enabled"
    if found.ignored:
        rules += f"; per-file-ignores turns off {len(found.ignored)} more"
    end = [rules + "."]
    if found.excluded:
        end.append("It is excluded: only a run that names it checks it, unless force-exclude is set.")
    return "\n".join([f"{shown_path(found.path, here)}\n", *lines, "", *end]) + "\n"


def _shown(origin: str | Path, here: Path) -> str:
    return origin if isinstance(origin, str) else shown_path(origin, here)


_NOTHING = {
    "minimum": "unknown",
    "select": "all that are not off by default",
    "fixable": "all",
    "include": "all kinds",
}


def _shown_value(setting: Setting, here: Path) -> str:
    value = setting.value
    if value is None:
        return _NOTHING.get(setting.key, "none")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return printable("; ".join(f"{key}: {', '.join(codes)}" for key, codes in value.items())) or "none"
    if isinstance(value, list):
        if setting.key == "rules":
            value = [shown_path(Path(item), here) for item in value]
        return printable(", ".join(value)) or "none"
    return (
        shown_path(Path(value), here)
        if setting.key in ("baseline", "cache-dir", "extend")
        else printable(value)
    )


def _json(found: InForce) -> str:
    shown = {
        "filename": str(found.path.absolute()),
        "excluded": found.excluded,
        "settings": {
            setting.key: {
                "value": setting.value,
                "from": [str(origin) for origin in dict.fromkeys(setting.origins)],
            }
            for setting in found.settings
        },
        "rules": sorted(found.selected - found.ignored),
        "ignored_here": sorted(found.ignored),
    }
    return json_text(shown)
