"""Parse untrusted TOML, YAML and setup.cfg; errors give the position but never quote the content."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from torchmigrate.files.reading import UnreadableError

if TYPE_CHECKING:
    from configparser import ConfigParser

MOST_DEPTH = 50  # of YAML; the library in C that reads it overflows its stack

MOST_DOTS = 10_000_000  # of TOML: the sum of the squares of how many there are in a line


class FormatError(Exception):
    """A text that is not what it should be; the reason is one line for a person.

    line, column: where, 1-based; None: not known. column None with a line: after its end.
    """

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


@lru_cache(maxsize=8)  # settings, requirements and the line length are in one file
def read_toml(data: bytes) -> dict[str, Any]:
    """The content of a TOML file, which is shared: it must not be changed.

    Raises:
        FormatError: it is not TOML.
        UnreadableError: it is nested too deeply.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    # Dotted keys take the standard library quadratic time.
    if sum(line.count(b".") ** 2 for line in data.splitlines()) > MOST_DOTS:
        raise UnreadableError("nested too deeply: not read")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise FormatError("not TOML: it is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        # The rest of the message may hold keys and characters of the file.
        place = re.search(r"\(at (line (\d+), column (\d+)|end of document)\)\Z", str(error))
        if place is None:
            raise FormatError("not TOML") from None
        at = (int(place[2]), int(place[3])) if place[2] else (len(data.rstrip().split(b"\n")), None)
        raise FormatError(f"not TOML: {place[1]}", *at) from None
    except ValueError:  # an integer of thousands of digits
        raise FormatError("not TOML: a number has too many digits") from None
    except (RecursionError, MemoryError):
        raise UnreadableError("nested too deeply: not read") from None


@lru_cache(maxsize=8)
def read_cfg(text: str) -> ConfigParser:
    """The content of a file such as setup.cfg, which is shared. Raises FormatError for other text."""
    import configparser

    parser = configparser.ConfigParser(interpolation=None, strict=False)
    # Its own pattern takes quadratic time for white space within a line.
    text = re.sub(r"(?<=\S)[^\S\n]{2,}", " ", text)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        errors = getattr(error, "errors", None) or [(getattr(error, "lineno", None), "")]
        line = errors[0][0]
        raise FormatError(f"not valid (line {line})" if line else "not valid") from None
    return parser


def check_yaml(text: str, *, aliases: bool) -> None:
    """Look through YAML before it is read, one event after the other, which needs no stack.

    aliases: whether they are allowed; a few of them can stand for millions of values.

    Raises:
        yaml.YAMLError: it is not YAML.
        UnreadableError: it is nested too deeply, or has aliases.
    """
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MOST_DEPTH:
                    raise UnreadableError("nested too deeply: not read")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.AliasEvent) and not aliases:
                raise UnreadableError("has YAML aliases: not read")
    except yaml.MarkedYAMLError as error:
        # PyYAML 6.0.4 brings a library that has a limit of its own, and reads ahead of the events.
        if error.problem == "exceeded maximum nesting depth":
            raise UnreadableError("nested too deeply: not read") from None
        raise
