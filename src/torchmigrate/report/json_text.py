"""JSON that every reader takes, in ASCII, whatever the terminal and the locale are."""

from __future__ import annotations

import json

from torchmigrate.patterns import pattern

_LONE = pattern("[\ud800-\udfff]")


def json_text(value: object, *, indent: int | None = 2) -> str:
    """A value as JSON; characters that JSON may hold, but no terminal should get, are escaped."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def strict_json_text(value: object) -> str:
    """The same without halves of surrogate pairs, which many readers refuse: they are written as escapes.

    Such a half is a byte of a file name that is not text, or an escape in the code of a notebook.
    """
    text = json_text(value)
    return json_text(_without_halves(value)) if "\\ud" in text else text


def _without_halves(value: object) -> object:
    if isinstance(value, str):
        return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
    if isinstance(value, dict):
        return {key: _without_halves(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_halves(item) for item in value]
    return value
