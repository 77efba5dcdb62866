"""What the client asks for: initializationOptions, and the section `torchmigrate` of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.config.selection import did_you_mean
from torchmigrate.config.settings import ConfigError, Layer, layer_of

SECTION = "torchmigrate"
# As in a configuration file, in camel case.
_OF_CHECK = {
    "target": "target",
    "minimum": "minimum",
    "select": "select",
    "extendSelect": "extend-select",
    "ignore": "ignore",
    "exclude": "exclude",
    "extendExclude": "extend-exclude",
    "unsafeFixes": "unsafe-fixes",
    "embedded": "embedded",
    "evidence": "evidence",
}
_OWN = ("enable", "configuration", "showSyntaxErrors")
_LATER = Layer(option=f"{SECTION}.{{}}")


class ServerOptions(Struct, frozen=True):
    """What holds for all documents.

    enable: whether anything is found. layer: comes after every configuration file, as a command line does.
    configuration: the one file that holds for all, relative to the directory that is open.
    """

    enable: bool = True
    layer: Layer = _LATER
    configuration: Path | None = None
    show_syntax_errors: bool = True


def read_options(given: object) -> tuple[ServerOptions, list[str]]:
    """The options that a client gives, and what is wrong with them: such an option counts as not given.

    They may be below `settings` or `torchmigrate`, as editors have it.
    """
    values = _unwrapped(given)
    options = ServerOptions()
    wrong: list[str] = []
    table: dict[str, object] = {}
    for key, value in values.items():
        if value is None:
            continue
        if key in _OF_CHECK:
            table[key] = value
        elif key in ("enable", "showSyntaxErrors"):
            if isinstance(value, bool):
                options = (
                    replace(options, enable=value)
                    if key == "enable"
                    else replace(options, show_syntax_errors=value)
                )
            else:
                wrong.append(f"{SECTION}.{key}: must be true or false")
        elif key == "configuration":
            if isinstance(value, str):
                options = replace(options, configuration=Path(value).expanduser() if value else None)
            else:
                wrong.append(f"{SECTION}.{key}: must be the path of a file")
        else:
            wrong.append(f"{SECTION}.{key}: unknown option{did_you_mean(key, [*_OF_CHECK, *_OWN])}")
    layer = options.layer
    for key, value in table.items():
        try:
            layer = layer_of({_OF_CHECK[key]: value}, layer)
        except ConfigError as error:
            wrong.append(str(error).replace(_OF_CHECK[key], key, 1))
    return replace(options, layer=layer), wrong


def are_ours(given: object) -> bool:
    """Whether the settings of a client say anything of this server: some send those of others."""
    keys = {SECTION, "settings", *_OF_CHECK, *_OWN}
    return not given or (isinstance(given, Mapping) and not keys.isdisjoint(given))


def are_empty(given: object) -> bool:
    """Whether the settings of a client say nothing: some send those even if options came with the start."""
    return all(value is None for value in _unwrapped(given).values())


def _unwrapped(given: object) -> Mapping[str, Any]:
    while isinstance(given, Mapping):
        inner = next((given[key] for key in (SECTION, "settings") if key in given), None)
        if inner is None:
            return given
        given = inner
    return {}
