"""Text that is safe to print: all that comes from a file goes through here.

It must neither steer a terminal nor be a command for the log of a service.
"""

from __future__ import annotations

import re

# Besides the control characters, those that reorder text on a terminal.
_UNSAFE = "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
# What the logs of GitHub (`::name::`, `##[name]`) and Azure (`##vso[name]`) take for a command.
_COMMAND = r"(?<=#)#(?=\w*\[)|(?:^|(?<=\n))(?:[^\S\n]|\x1b\[[\d;]*m)*:(?=:)"
_COLOR = r"\x1b\[(?:[012]|3[26]|1;3[1346])m"  # those that `Style` has


def terminal_text(text: str, *, color: bool, commands: bool = False) -> str:
    """Lines that may hold anything, with control characters (but tabs and the ends of lines) made visible.

    So are commands for the log that the text ends up in. What is JSON stays JSON.

    color: the text has colors of our own. commands: and commands.
    """
    if not commands and _may_have_commands(text):
        text = re.sub(_COMMAND, _without_command, text)
    if "\x1b" not in text and text.replace("\n", "").isprintable():
        return text
    pattern = rf"{_COLOR}|{_UNSAFE}" if color else _UNSAFE
    return re.sub(pattern, lambda match: _visible(match[0]), text)


def _may_have_commands(text: str) -> bool:
    return "##" in text or "::" in text


def _without_command(found: re.Match[str]) -> str:
    return f"{found[0][:-1]}\\u{ord(found[0][-1]):04x}"


def _visible(text: str) -> str:
    if text == "\n" or len(text) > 1:  # a color
        return text
    return text.encode("unicode_escape").decode("ascii")


def printable(text: str) -> str:
    """The text on one line, with control characters (but tabs) and commands for a log made visible."""
    if not text.isprintable():  # seldom, and the pattern takes a millisecond to compile
        text = re.sub(_UNSAFE, lambda match: match.group().encode("unicode_escape").decode("ascii"), text)
    return re.sub(_COMMAND, _without_command, text) if _may_have_commands(text) else text


def json_text(value: object) -> str:
    """A value as JSON, in ASCII, so that it is valid for any terminal, locale and file name."""
    import json

    return json.dumps(value, indent=2) + "\n"
