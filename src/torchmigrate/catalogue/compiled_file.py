"""The file of compiled rules: a line on what it was made from, one with all names, and the rules.

Every run reads the first two, to know what can be selected; the rest only where a file may need a rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from torchmigrate.config.selection import Selectable

FORMAT = "torchmigrate-rules-5"  # changes when files of an older torchmigrate can no longer be read
_OPT_IN = "opt-in"


class StaleError(ValueError):
    """A compiled file that this version cannot read."""


class RuleName(Struct, frozen=True):
    """What selecting needs to know of a rule."""

    code: str
    name: str
    opt_in: bool = False
    group: str | None = None


class CompiledFile(Struct, frozen=True):
    """What is in the file. made_from: as `pack` was given it; rules: for `compiled.content`."""

    made_from: str
    names: tuple[RuleName, ...]
    rules: bytes


def pack(made_from: str, names: Iterable[Selectable], rules: bytes) -> bytes:
    """The bytes of the file; `made_from` is on one line."""
    shown = (f"{rule.code} {rule.name} {_OPT_IN if rule.opt_in else ''} {rule.group or ''}" for rule in names)
    return f"{FORMAT} {made_from}\n{','.join(shown)}\n".encode() + rules


def unpack(data: bytes) -> CompiledFile:
    """What `pack` was given.

    Raises:
        StaleError: it is damaged, or of another format.
    """
    first, _, rest = data.partition(b"\n")
    name, _, made_from = first.decode(errors="replace").partition(" ")
    if name != FORMAT:
        raise StaleError(f"not in the format {FORMAT}")
    line, _, rules = rest.partition(b"\n")
    try:
        return CompiledFile(made_from, tuple(_name(text) for text in line.decode().split(",") if text), rules)
    except ValueError:
        raise StaleError("the names of the rules are damaged") from None


def _name(text: str) -> RuleName:
    code, name, opt_in, group = text.split(" ")
    return RuleName(code, name, opt_in == _OPT_IN, group or None)
