"""Links from a plan to the source."""

from __future__ import annotations

import os
import re
import string
from pathlib import Path
from urllib.parse import quote

from torchmigrate.patterns import pattern
from torchmigrate.planning.model import Place

_FIELDS = {"path", "line"}
# Everything else that a browser would open: it might run the rest of the address.
_SCHEME = pattern(r"\s*[A-Za-z][A-Za-z0-9+.-]*:")
_SCHEMES = ("http:", "https:", "file:", "vscode:", "vscodium:", "cursor:", "idea:", "pycharm:", "jetbrains:")


class Links:
    """Makes the addresses of places.

    Args:
        template: such as `https://github.com/o/r/blob/main/{path}#L{line}`, with the path relative to `root`;
            None: the path relative to `near`, the directory of the plan itself.

    Raises:
        ValueError: the template cannot be used; the message says why.
    """

    def __init__(self, template: str | None, *, root: Path, near: Path) -> None:
        self.template = template
        self.up = None if template is not None else _way(near, root)
        if template is not None:
            _check(template)

    def to(self, place: Place) -> str:
        """The address of a place: its characters mean nothing in HTML or Markdown."""
        line = place.line or place.row
        if self.template is None:
            path = place.file if self.up is None else os.path.normpath(f"{self.up}/{place.file}")
            return f"{_quoted(path)}#L{line}"
        return self.template.format(path=_quoted(place.file), line=line)


def _way(start: Path, root: Path) -> str | None:
    """The relative path from a directory to another one; None: there is none."""
    try:
        return os.path.relpath(root.absolute(), start.absolute())
    except ValueError:  # another drive
        return None


def _quoted(path: str) -> str:
    return quote(os.fsencode(path.replace(os.sep, "/")), safe="/~")


def _check(template: str) -> None:
    try:
        fields = [
            (field, spec, conversion) for _, field, spec, conversion in string.Formatter().parse(template)
        ]
    except ValueError as error:
        raise ValueError(f"{template!r} is not a valid template: {error}") from None
    for field, spec, conversion in fields:
        if field is not None and (field not in _FIELDS or spec or conversion):
            raise ValueError(f"{template!r} contains {{{field}}}; only {{path}} and {{line}} are supported")
    if "path" not in {field for field, _, _ in fields}:
        raise ValueError(f"{template!r} lacks {{path}}")
    if _SCHEME.match(template) and not template.lower().startswith(_SCHEMES):
        raise ValueError(f"{template!r} must start with one of {', '.join(_SCHEMES)}, or be a path")
    if re.search(r"[\s\"'<>`\\\x00-\x1f]", template):
        raise ValueError(f"{template!r} contains a character that is not allowed in a URL")
