"""Which fixes make a test fail: by halving the groups, then their files, then the places in these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

from torchmigrate.upgrade.fixer import Exclusion, Exclusions, hunks_of, with_hunks
from torchmigrate.upgrade.model import Applied, Hunk, TakenBack, TestRun, not_passed
from torchmigrate.upgrade.suite import Suite
from torchmigrate.upgrade.workspace import Workspace

Item = TypeVar("Item")
_CONFIRMATIONS = 2  # more runs of tests that a fix seems to break


def culprits(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """The items that make it fail; takes few runs if they are few.

    fails: whether it fails with some of the items, in their order. It is taken to pass with none.
    """
    found: list[Item] = []
    left = list(items)
    while left and fails(left):
        low, high = 0, len(left)
        while high - low > 1:
            middle = (low + high) // 2
            if fails(left[:middle]):
                high = middle
            else:
                low = middle
        found.append(left.pop(high - 1))
    return found


class Search:
    """Finds out what to take back.

    Args:
        start: the commit on which the fixes were made.
        exclusions: what is left out so far; it grows.
        whole: all tests are run each time, because some only pass after others.
    """

    def __init__(
        self, space: Workspace, suite: Suite, start: str, exclusions: Exclusions, *, whole: bool = False
    ) -> None:
        self.space = space
        self.suite = suite
        self.start = start
        self.exclusions = exclusions
        self.whole = whole

    def take_back(self, made: Sequence[Applied], lost: Collection[str]) -> TakenBack | None:
        """Find the first group with which tests fail, and leave out what it takes for them to pass.

        None: the tests do not fail each time; those that showed this are noted as unstable.

        made: all groups; the state after the last fails in all of `lost`, the state before the first in none.
        """
        commits = [self.start, *(each.commit for each in made)]
        low, high = 0, len(commits) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._bad(commits[middle], lost):
                high = middle
            else:
                low = middle
        step, before = made[high - 1], commits[high - 1]
        run = self._run(commits[high], lost)
        failing = not_passed(run, lost)
        tests = failing
        for attempt in range(1, _CONFIRMATIONS + 1):
            if tests:
                tests = not_passed(self._run(commits[high], tests, attempt), tests)
        if tests:
            broke = not_passed(self._run(before, tests, 1), tests)
            tests = [test for test in tests if test not in broke]
        exclusion = self.exclusions.get(step.group.key, Exclusion())
        places = self._leave_out(exclusion, step, before, tests) if tests else None
        if places is None:
            self.suite.unstable.update(failing or lost)
            return None
        self.exclusions[step.group.key] = exclusion
        message = next(
            (run.results[test].message for test in tests if test in run.results), "the test was not collected"
        )
        return TakenBack(step.group, places, tuple(tests), message, whole=exclusion.whole)

    def _leave_out(
        self, exclusion: Exclusion, step: Applied, before: str, tests: Sequence[str]
    ) -> tuple[tuple[str, int], ...] | None:
        """Add to what is left out of a group; the places. None: the tests pass with all of the group."""
        git = self.space.git
        old = {path: git.run_bytes("show", f"{before}:{path}") for path in step.paths}
        new = {path: git.run_bytes("show", f"{step.commit}:{path}") for path in step.paths}

        def fails(contents: dict[str, bytes]) -> bool:
            return bool(self._bad(self._commit_of(before, contents), tests))

        files = culprits(step.paths, lambda some: fails({path: new[path] for path in some}))
        if not files:
            return None
        others = {path: new[path] for path in step.paths if path not in files}
        lines: dict[str, list[Hunk]] = {}
        kept = dict(others)
        for path in files:
            hunks = hunks_of(path, old[path], new[path])
            # The places of one file, with all that is right in the others.
            fails_with = partial(self._fails_with, fails, kept, path, old[path])
            wrong = culprits(hunks, fails_with)
            if len(wrong) < len(hunks):
                lines[path] = wrong
                kept[path] = with_hunks(old[path], [hunk for hunk in hunks if hunk not in wrong])
        if fails(kept):
            exclusion.whole = True
            return tuple((path, 0) for path in step.paths)
        for path in files:
            if path in lines:
                exclusion.hunks.setdefault(path, []).extend(lines[path])
            else:
                exclusion.paths.add(path)
        return tuple((path, hunk.start + 1) for path, hunks in lines.items() for hunk in hunks) + tuple(
            (path, 0) for path in files if path not in lines
        )

    @staticmethod
    def _fails_with(
        fails: Callable[[dict[str, bytes]], bool],
        kept: dict[str, bytes],
        path: str,
        old: bytes,
        some: Sequence[Hunk],
    ) -> bool:
        """Whether it fails with some places of a file, and all that is kept of the others."""
        return fails({**kept, path: with_hunks(old, some)})

    def _commit_of(self, before: str, contents: dict[str, bytes]) -> str:
        """A commit with some files changed, to run tests on; no branch has it."""
        self.space.go_to(before)
        for path, data in contents.items():
            (self.space.tree / path).write_bytes(data)
        if self.space.git.writes("diff", "--quiet", "HEAD") is not None:
            return before
        return self.space.git.commit("To be tested")

    def _bad(self, commit: str, tests: Collection[str]) -> list[str]:
        return not_passed(self._run(commit, tests), tests)

    def _run(self, commit: str, tests: Collection[str], attempt: int = 0) -> TestRun:
        return self.suite.run(commit, None if self.whole else tests, attempt=attempt)
