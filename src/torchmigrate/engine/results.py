"""What an engine makes of a file: findings, problems, and the fixed text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from torchmigrate.findings import Edit, Finding, Problem, Trouble

if TYPE_CHECKING:
    from torchmigrate.project.questions import Asked
    from torchmigrate.rewrite.context import FileContext
    from torchmigrate.source.text import Source


class History(Struct, frozen=True):
    """How the text of a file became another one.

    found: the findings in the old text. rounds: the edits of each round, in the order of their places, which
    count in the text of that round. file: what is known of the text, which the caller closes, where no fix
    has made another one of it.
    """

    found: list[Finding]
    rounds: list[list[Edit]]
    file: FileContext | None = None


class FileResult:
    """The result for one file.

    fixed: code -> how many fixes were applied. new_text: set when fixes were applied, as is old_text.
    old, new: what has these texts, set with them. history: set where the engine keeps it.
    examples: what is found in the documents within the file, by their number, where that is wanted.
    requires: the releases that the fixes need which were applied: "torch 2.3". needs: the first torch, as
        numbers, on which the new text may run; None: any, as far as is known.
    asked: the queries about other files; None: not recorded.
    """

    __slots__ = (
        "asked",
        "examples",
        "findings",
        "fixed",
        "history",
        "needs",
        "new",
        "new_text",
        "old",
        "old_text",
        "path",
        "problems",
        "requires",
    )

    def __init__(
        self,
        path: Path,
        findings: list[Finding] | None = None,
        problems: list[Problem] | None = None,
        old_text: str | None = None,
        new_text: str | None = None,
    ) -> None:
        self.path = path
        self.findings = findings or []
        self.problems = problems or []
        self.examples: dict[int, list[Finding]] = {}
        self.fixed: dict[str, int] = {}
        self.requires: set[str] = set()
        self.needs: tuple[int, ...] | None = None
        self.old_text = old_text
        self.new_text = new_text
        self.old: Source | None = None
        self.new: Source | None = None
        self.history: History | None = None
        self.asked: Asked | None = None

    def leave_out(self, most: int, *, more: bool = False) -> None:
        """Keep only the first findings, and record that. more: others were left out before."""
        if not more and len(self.findings) + sum(map(len, self.examples.values())) <= most:
            return
        left = most - len(self.findings)
        self.findings = self.findings[:most]
        for number, found in self.examples.items():
            self.examples[number] = found[: max(left, 0)]
            left -= len(found)
        reason = f"has more than {most:,} findings: only the first {most:,} are listed"
        if not any(problem.kind is Trouble.MANY for problem in self.problems):
            self.problems.append(Problem(self.path, reason, kind=Trouble.MANY))

    def add(self, problems: Iterable[Problem]) -> None:
        """Add problems that were not named before: in a round of fixes, rules fail as in the one before."""
        named = {problem.reason for problem in self.problems}
        self.problems += [problem for problem in problems if problem.reason not in named]
