"""What is wrong with a rule file, and where."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from torchmigrate.printing import printable

KeyPath = tuple[str | int, ...]  # from the top of a YAML file: (0, "cases", 1, "when", "upper")


class RuleProblem(NamedTuple):
    """One mistake in a rule file; `line` counts from 1, 0 means the whole file."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return printable(
            f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"
        )


class CatalogueError(Exception):
    """Rules that cannot be loaded; its text has one line for every mistake."""

    def __init__(self, problems: Iterable[RuleProblem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[CatalogueError], tuple[list[RuleProblem]]]:
        return type(self), (self.problems,)


def listed(names: Iterable[str], *, last: str = "or") -> str:
    """`a`, `b` or `c`."""
    quoted = [f"`{name}`" for name in names]
    return f" {last} ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1]))) if quoted else "nothing"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion to put after an unknown word, or nothing."""
    import difflib

    close = difflib.get_close_matches(word[:100], list(known), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""
