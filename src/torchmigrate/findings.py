"""The nouns that every layer shares: findings, fixes and edits.

Offsets are characters of the decoded text (not bytes, not `ast` columns), 0-based, end exclusive.
"""

import enum
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct


class Severity(enum.IntEnum):
    """How bad a finding is at the target version, mildest first."""

    INFO = 1  # outdated or worth adopting; works without a warning
    WARNING = 2  # warns at the target, or changed its behavior silently
    ERROR = 3  # removed at the target

    @property
    def label(self) -> str:
        return self.name.lower()


class Applicability(enum.IntEnum):
    """Who may apply a fix, strictest first, so that `min()` of several is the one that holds."""

    DISPLAY = 1  # shown as advice, never applied
    UNSAFE = 2  # valid code that may change results; applied on request
    SAFE = 3  # same results on every version in the range

    @property
    def label(self) -> str:
        return self.name.lower()


class Edit(NamedTuple):
    """Replace `text[start:end]` by `text`.

    A `mergeable` edit (an import that several fixes ask for) may be part of any number of fixes: it is
    applied once, and several mergeable insertions at one place are applied one after the other.
    """

    start: int
    end: int
    text: str
    mergeable: bool = False


def edit_key(edit: Edit) -> tuple[int, int, bool, str]:
    """What edits are sorted by: at one place imports first (they are whole lines before the code)."""
    return (edit.start, edit.end, not edit.mergeable, edit.text)


def in_order(edits: Iterable[Edit]) -> list[Edit]:
    """Edits, each once, in the order in which they are applied."""
    return sorted(set(edits), key=edit_key)


class DroppedUse(Struct, frozen=True):
    """A fix no longer uses this import binding at these places (offsets of the names)."""

    binding: int  # id of the Binding in Names.bindings
    places: tuple[int, ...]


class Obstacle(enum.Enum):
    """What kind of thing is in the way of a fix."""

    WORDS = "words"  # what a rule or a codemod says: `text`
    TARGET = "target"  # the new code needs `needs`, and the target is `has`
    MINIMUM = "minimum"  # the new code needs `needs`, and the project supports `has`
    COMMENT = "comment"  # a comment would be lost
    ANNOTATION = "annotation"  # only an annotation, or a name, says what an object is: `text`
    EVIDENCE = "evidence"  # only what was seen while the code ran says what an object is: `text`
    CONFIGURATION = "configuration"  # the configuration calls fixes of the rule unsafe
    PATCH = "patch"  # `path`, or the file itself, puts something else in the place of `name`
    REPLACED = "replaced"  # another file puts something else in the place of `name` of this one
    TAKEN = "taken"  # other code takes `name` from the file
    UNSAFE = "unsafe"  # an unsafe fix does more: `text`


class Reason(Struct, array_like=True, frozen=True):
    """Why a fix is not safe, is shown only, or is not there; `report.reasons` makes the sentence of it.

    Releases are text such as "torch 2.3".
    """

    kind: Obstacle
    text: str = ""
    name: str | None = None
    path: Path | None = None
    line: int | None = None
    needs: str | None = None
    has: str | None = None


def because(*texts: str, line: int | None = None) -> tuple[Reason, ...]:
    """Reasons in the words of a rule or a codemod. line: where in the file that is, if at one place."""
    return tuple(Reason(Obstacle.WORDS, text, line=line) for text in texts)


class Fix(Struct, array_like=True, frozen=True):
    """All edits of one rewrite: applied together or not at all.

    Findings may share one Fix object (an import line and the uses of what it binds).
    held_by: why it is not safe; nothing exactly when it is.
    requires: the releases that have the new code, as in rules: "torch 2.3"; none: all of them.
    unsafe: another fix, which takes the place of this one where unsafe fixes are wanted.
    lesser: the fix whose place this one took, for those who refuse this one.
    """

    title: str
    applicability: Applicability
    edits: tuple[Edit, ...]
    held_by: tuple[Reason, ...] = ()
    releases: tuple[DroppedUse, ...] = ()
    code: str = ""  # of the rule that made it, for messages
    requires: tuple[str, ...] = ()
    unsafe: "Fix | None" = None
    lesser: "Fix | None" = None


class Timeline(Struct, array_like=True, frozen=True):
    """The releases of `library` from which on a finding's name is outdated, warns, behaves differently, is
    removed.

    Versions are text such as "1.8"; None: not (yet). added: the release that first has it, where a finding
    is about that. excluded: the first release that a requirement keeps from being installed.
    """

    library: str
    outdated: str | None = None
    deprecated: str | None = None
    changed: str | None = None
    removed: str | None = None
    added: str | None = None
    excluded: str | None = None


class Finding(Struct, array_like=True, frozen=True):
    """One outdated place."""

    code: str
    name: str
    message: str
    severity: Severity
    start: int
    end: int
    help: str | None = None  # what to do by hand, where no fix says it
    blocked_by: tuple[Reason, ...] = ()  # why there is no fix, or not the one that one would expect
    fix: Fix | None = None
    url: str | None = None
    symbol: str | None = None  # the qualified name that was found
    timeline: Timeline | None = None  # None: about the file, not about a release
    places: tuple[tuple[int, int], ...] = ()  # start and end of others that the same decision is about
    lacking: Reason | None = None  # which supported release lacks what was found: TARGET or MINIMUM, `has`
    seen: bool = False  # only what was seen while the code ran says that it is what the finding is about


class Trouble(enum.Enum):
    """What kind of thing a file could not be done for; the value is the code in output for programs."""

    SYNTAX = "invalid-syntax"  # it is not Python
    UNREADABLE = "io-error"  # it, or a directory, was not read
    MANY = "too-many-findings"  # more than are listed; nothing failed
    OTHER = "not-done"


class Problem(Struct, array_like=True, frozen=True):
    """Why a file (or a place in it) could not be done: one line on stderr, exit code 2 (but for `MANY`).

    line: of the file, or of the cell.
    """

    path: Path
    reason: str
    line: int | None = None
    kind: Trouble = Trouble.OTHER
    cell: int | None = None

    @property
    def severity(self) -> Severity:
        """How bad it is for the run."""
        return Severity.WARNING if self.kind is Trouble.MANY else Severity.ERROR
