"""The arguments and results of the tools of the MCP server, from which the SDK makes the schemas."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

Text = Annotated[str, Field(max_length=4096)]
Texts = Annotated[list[Text], Field(max_length=200)]
Paths = Annotated[Texts, Field(description="Files and directories below the root; by default, all of it.")]
Target = Annotated[
    Text | None,
    Field(description='The torch release to move to, such as "2.9"; by default, that in the configuration.'),
]
Minimum = Annotated[
    Text | None,
    Field(
        description="The oldest torch release that must still work; by default, what the project requires."
    ),
]
Select = Annotated[
    Texts | None,
    Field(description='Only these rules: codes ("TM100"), prefixes ("TM1"), names, or "ALL".'),
]
Ignore = Annotated[Texts, Field(description="Rules to leave out, as for `select`.")]
Limit = Annotated[int, Field(ge=1, le=1000, description="How many to list, the most severe first.")]
RuleKey = Annotated[Text, Field(description='A code ("TM100"), a name, or a symbol ("torch.symeig").')]
Unsafe = Annotated[bool, Field(description="Include fixes that may change results.")]
Write = Annotated[bool, Field(description="Write the files.")]

Row = Annotated[int, Field(description="From 1 on; in a notebook, within the cell.")]
Column = Annotated[int, Field(description="From 1 on, in characters.")]
Cell = Annotated[int | None, Field(description="The cell of a notebook, from 1 on.")]
Help = Annotated[str | None, Field(description="What to do manually.")]


class Place(BaseModel):
    row: Row
    column: Column
    cell: Cell = None


class FixOf(BaseModel):
    """safe: the same results on every release from minimum to target. display: advice, never applied."""

    applicability: Literal["safe", "unsafe", "display"]
    title: str
    reason: str | None = Field(description="Why the fix is not safe.")


class Finding(BaseModel):
    path: str
    row: Row
    column: Column
    cell: Cell
    code: str
    name: str
    severity: Literal["error", "warning", "info"]
    message: str
    help: Help
    fix: FixOf | None
    unsafe_fix: FixOf | None = Field(description="An alternative to a safe fix.")
    other_places: list[Place] = Field(description="Such as the uses of an import in the file.")


class Result(BaseModel):
    summary: str = Field(description="What the command line prints at the end: totals, releases.")
    problems: list[str] = Field(description="What could not be checked, and why.")


class CheckResult(Result):
    findings: list[Finding]
    more: int = Field(description="How many findings are not listed; narrow the paths or the rules.")
    rules: dict[str, int] = Field(description="Number of findings of each rule, listed or not.")


class FixResult(Result):
    diff: str = Field(description="A unified diff of the text of the files.")
    more_lines: int = Field(description="How many lines of the diff are left out.")
    written: bool


class Rule(BaseModel):
    code: str
    name: str
    summary: str
    fix: Literal["safe", "unsafe", "advice", "none"]
    advice: str | None
    url: str | None


class Explanation(BaseModel):
    rules: list[Rule]
    text: str = Field(description="The reason, the releases, what the fix does, and examples.")
    more_lines: int = Field(description="How many lines of the text are left out.")


class Release(BaseModel):
    """Numbers of places from the first to the last of these releases."""

    first: str
    last: str
    runs: bool
    needs_newer: int
    breaks_on_import: int
    raises: int
    may_raise: int
    changes: int
    warns: int


class PlanPlace(BaseModel):
    path: str
    row: Row
    column: Column
    cell: Cell
    code: str
    name: str
    message: str
    effect: str | None = Field(description="What happens on the target.")
    effort: str = Field(description="safe: a safe fix; unsafe: an unsafe fix; by_hand: your edit.")
    help: Help


class PlanResult(Result):
    minimum: str | None
    target: str
    releases: list[Release]
    effort: dict[str, int] = Field(description="Number of places for each effort.")
    places: list[PlanPlace]
    more: int = Field(description="How many places are not listed.")
