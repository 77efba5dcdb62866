"""The nouns of an upgrade: outcomes of tests, groups of fixes, and what became of them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from torchmigrate.versions.releases import Version


class UpgradeError(Exception):
    """Why an upgrade cannot go on, as one line for the user."""


class Outcome(enum.Enum):
    """How a test ended; the value is the word in reports."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"  # in its setup, or its file could not be imported
    SKIPPED = "skipped"
    EXPECTED = "xfailed"  # it fails, and says that it does
    HUNG = "hung"  # ended after the time that a test may take
    CRASHED = "crashed"  # it took the interpreter along

    @property
    def is_bad(self) -> bool:
        return self in (Outcome.FAILED, Outcome.ERROR, Outcome.HUNG, Outcome.CRASHED)


class Frame(Struct, frozen=True):
    """A line of a traceback. path: relative to the tree where it is in it, with `/`; line: 1-based."""

    path: str
    line: int


class Result(NamedTuple):
    """What became of one test. message: the error; frames: of its traceback, innermost last."""

    outcome: Outcome
    message: str = ""
    frames: tuple[Frame, ...] = ()


class Warned(Struct, frozen=True):
    """A warning of torch or a companion. path, line: where, as in `Frame`."""

    category: str
    message: str
    path: str
    line: int


class TestRun(Struct):
    """What a run of the tests gave.

    results: by the id of the test. collected: whether single tests are known; False: the command counts as
    one. seconds: how long it took; cpu: seconds of the processors. trouble: why the run is not whole, in a
    line. torch: the release that the tests imported, as their own Python reported it. warned: by the file
    of the test; "" for none. kept: how many results are of an earlier run.
    """

    results: dict[str, Result] = field(default_factory=dict)
    warned: dict[str, list[Warned]] = field(default_factory=dict)
    collected: bool = True
    seconds: float = 0.0
    cpu: float = 0.0
    trouble: str | None = None
    torch: str | None = None
    kept: int = 0

    @property
    def warnings(self) -> list[Warned]:
        """Different warnings, by what they say and where."""
        return list(dict.fromkeys(each for listed in self.warned.values() for each in listed))

    def count(self, outcome: Outcome) -> int:
        return sum(result.outcome is outcome for result in self.results.values())

    @property
    def bad(self) -> list[str]:
        """The tests that failed, in any way."""
        return [name for name, result in self.results.items() if result.outcome.is_bad]

    @property
    def passed(self) -> list[str]:
        return [name for name, result in self.results.items() if result.outcome is Outcome.PASSED]


def not_passed(run: TestRun, tests: Iterable[str]) -> list[str]:
    """Those of some tests that did not pass; one that was not run did not."""
    passed = set(run.passed)
    return [name for name in tests if name not in passed]


def broken(before: TestRun, after: TestRun) -> list[str]:
    """The tests that passed before and do not now: they fail, or are missing because their file does not
    load."""
    lost = []
    for name, result in before.results.items():
        now = after.results.get(name)
        if result.outcome is Outcome.PASSED and (now is None or now.outcome.is_bad):
            lost.append(name)
    return lost


def mended(before: TestRun, after: TestRun) -> list[str]:
    """The tests that pass, and did not before: they failed, or could not be collected."""
    found = []
    for name, result in after.results.items():
        was = before.results.get(name)
        if result.outcome is Outcome.PASSED and (was is None or was.outcome.is_bad):
            found.append(name)
    return found


class FixGroup(Struct, frozen=True):
    """Fixes that are made and taken back together: of a rule, of a migration, of pins, of notebooks.

    key: unique, and the same in every run. title: first line of the commit. why: its text.
    codes: of the rules; none where another tool makes the fixes.
    """

    key: str
    title: str
    why: str = ""
    codes: tuple[str, ...] = ()


class Hunk(NamedTuple):
    """Lines that a group changed in a file: those of `old` from row `start` on became `new`. 0-based."""

    path: str
    start: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]


class Applied(Struct):
    """A group that was made. commit: its hash; fixes: how many; paths: of the files, relative to the tree."""

    group: FixGroup
    commit: str
    fixes: int
    paths: tuple[str, ...]


class TakenBack(Struct):
    """What was taken back of a group, because tests failed with it.

    places: path and 1-based line; a line of 0: all of the file. whole: all of the group.
    tests: what failed; message: the error of the first. advice: what to do by hand.
    """

    group: FixGroup
    places: tuple[tuple[str, int], ...]
    tests: tuple[str, ...]
    message: str
    advice: str = ""
    whole: bool = False


class StillFailing(Struct):
    """Tests that fail in the end for the same reason. cause: a finding, or that it is not about torch.

    place: the innermost line of the project in the traceback, with the path relative to the tree.
    code: of the rule that names the line; None: there is none.
    """

    tests: tuple[str, ...]
    message: str
    place: Frame | None
    code: str | None
    cause: str
    about_torch: bool

    def leads_to(self, path: str) -> bool:
        return self.place is not None and self.place.path == path


class ByHand(Struct):
    """A finding that is left. tests: how many failing tests depend on it."""

    path: str
    line: int
    code: str
    message: str
    advice: str
    tests: int = 0


class Report(Struct):
    """What an upgrade came to; see the names.

    verified: in words, by what. unstable: tests that gave different outcomes for the same code.
    to_change: tests that expect the old call of a mock, which a fix changed.
    runs_from: the first torch on which the result may run; None: not known.
    left_out: requirements that could not be installed, with the reason.
    before_old: the tests in the environment of before, where one was given.
    cost: the CPU time of all test runs, divided by the CPU time of a whole run; None: not known.
    """

    project: str
    target: Version
    python: str
    torch: str
    branch: str
    tree: str
    log: str
    before: TestRun
    after: TestRun
    verified: str
    before_old: TestRun | None = None
    applied: Sequence[Applied] = ()
    taken_back: Sequence[TakenBack] = ()
    failing: Sequence[StillFailing] = ()
    by_hand: Sequence[ByHand] = ()
    unstable: Sequence[str] = ()
    to_change: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    runs_from: str | None = None
    diffs: Mapping[str, str] = field(default_factory=dict)  # commit -> diff
    seconds: float = 0.0
    cost: float | None = None

    @property
    def bad(self) -> list[str]:
        """The tests that fail in the end, without those that are unstable."""
        return [name for name in self.after.bad if name not in self.unstable]

    @property
    def broken(self) -> list[str]:
        """The tests that passed and do not any more, without those that are unstable or are to be changed."""
        left = {*self.unstable, *self.to_change}
        return [name for name in broken(self.before, self.after) if name not in left]

    @property
    def mended(self) -> list[str]:
        """The tests that pass and did not before, without those that are unstable."""
        return [name for name in mended(self.before, self.after) if name not in self.unstable]
