"""Regular expressions of modules: compiled when they are first used.

Compiling takes a tenth of a millisecond, and a run that imports a hundred modules uses few of theirs.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("finditer", "findall", "fullmatch", "match", "search", "split", "sub", "subn")


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, but that `re.error` is raised when it is first used."""
    return cast("re.Pattern[AnyStr]", _Late(text, flags))


class _Late:
    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._text, self._flags)
        # From now on they are found without this method.
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)
