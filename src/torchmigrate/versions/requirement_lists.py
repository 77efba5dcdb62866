"""Files that state requirements: how they are read, and the lines of lists of requirements."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.files.reading import UnreadableError, is_below, read
from torchmigrate.patterns import pattern

if TYPE_CHECKING:
    from torchmigrate.versions.bounds import Bound
    from torchmigrate.versions.releases import Version

Note = Callable[[str], None]  # receives, in a line, what was not understood
# Receives a file that was not read at all, or (False) that is not what its name says.
Trouble = Callable[[Path, str, bool], None]

_OPTION = pattern(r"\s--?[A-Za-z].*$")  # `torch==1.7 --hash=...`
_INCLUDE = pattern(r"(?:-r|--requirement|-c|--constraint)[\s=]*(\S+)")
# Of lists for documentation, checks and examples.
OTHER_PURPOSE = (
    r"(?i)(?:^|[-_.])(?:docs?|documentation|doctests?|sphinx|rtd|readthedocs|ci|lint(?:ing|ers?)?|typing|mypy|style"
    r"|fmt|format(?:ting)?|benchmarks?|examples?|tutorials?|notebooks?)(?:[-_.]|$)"
)
LONGEST = 10_000  # characters of one requirement
MOST_INCLUDED = 100  # files that a requirements file may include

# Packages besides torch that matter: rules may be silent where the project declares one of them.
PACKAGES = frozenset(["torchcodec"])


def silent(*_: object) -> None:
    """Ignore a message."""


class StatingFile(Struct, frozen=True):
    """A file that may state a bound.

    project: the files that it names must be in it. packages: those of `PACKAGES` that it names. companions:
        the oldest release of each library other than torch that it allows.
    """

    path: Path
    project: Path
    note: Note
    trouble: Trouble
    packages: set[str]
    companions: dict[str, Version]

    def read(self) -> bytes:
        """What is in it. Raises UnreadableError."""
        return read(self.path, within=self.project)

    def tell(self, text: str) -> None:
        """Say that something in it is not understood."""
        self.note(f"{self.path}: {text}")

    def declares(self, texts: Iterable[object]) -> None:
        """Remember the packages that these requirements are about."""
        from torchmigrate.versions.bounds import name_of

        self.packages.update(PACKAGES.intersection(name_of(text) for text in texts if isinstance(text, str)))

    def requires(self, bound: Bound) -> None:
        """Remember which release of a companion a requirement allows."""
        if bound.companion:
            held = self.companions.get(bound.library, bound.least)
            self.companions[bound.library] = min(held, bound.least)


def decode(data: bytes) -> str:
    """The text of a file, which is in UTF-8 or UTF-16, or else in anything."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", "utf-8-sig")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                break
    return data.decode("latin-1")


def requirement_lines(file: StatingFile, data: bytes, *, constraints: bool = True) -> Iterator[str]:
    """The requirements of a file and of those that it includes; options of pip are left out.

    constraints: with what only limits the release of a package, if it is required.

    Raises UnreadableError if it includes too many.
    """
    seen = {os.path.realpath(file.path)}
    waiting = [(file, data)]
    while waiting:
        here, data = waiting.pop()
        text = re.sub(r"\\\r?\n", "", decode(data))
        for line in text.splitlines():
            line = re.sub(r"(?:^|\s)#.*", "", line).strip()
            include = _INCLUDE.fullmatch(line)
            if include is None:
                if line and not line.startswith("-"):
                    yield _OPTION.sub("", line).strip()
                continue
            if re.match(r"https?://", include[1]) or (line.startswith(("-c", "--c")) and not constraints):
                continue
            other = replace(here, path=here.path.parent / include[1])
            real = os.path.realpath(other.path)
            if real in seen:
                continue
            seen.add(real)
            if len(seen) > MOST_INCLUDED:
                raise UnreadableError("includes too many files: not read")
            try:
                waiting.append((other, other.read()))
            except UnreadableError as error:
                # A missing file is not an attack.
                missing = not os.path.lexists(other.path) and is_below(real, str(here.project))
                if missing:
                    here.tell(f"{include[1]}: {error.reason}")
                else:
                    here.trouble(here.path, f"`-r` {error.reason}", True)
