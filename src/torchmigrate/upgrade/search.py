"""Which fixes make a test fail: by halving the groups, then their files, then the places in these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

from torchmigrate.upgrade.fixer import Exclusion, Exclusions, hunks_of, with_hunks
from torchmigrate.upgrade.model import Applied, Hunk, Outcome, TakenBack, TestRun
from torchmigrate.upgrade.suite import Suite
from torchmigrate.upgrade.workspace import Workspace

Item = TypeVar("Item")


def culprits(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Those of some items without which it does not fail any more; few questions where they are few.

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
    """

    def __init__(self, space: Workspace, suite: Suite, start: str, exclusions: Exclusions) -> None:
        self.space = space
        self.suite = suite
        self.start = start
        self.exclusions = exclusions

    def take_back(self, made: Sequence[Applied], lost: Collection[str]) -> TakenBack:
        """Find the first group with which tests fail, and leave out what it takes for them to pass.

        made: all groups, of which the last state fails in all of `lost`, and the start in none.
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
        run = self.suite.run(commits[high], lost)
        tests = _not_passed(run, lost)
        exclusion = self.exclusions.setdefault(step.group.key, Exclusion())
        places = self._leave_out(exclusion, step, before, tests)
        message = next(
            (run.results[test].message for test in tests if test in run.results), "the test was not collected"
        )
        return TakenBack(step.group, places, tuple(tests), message, whole=exclusion.whole)

    def _leave_out(
        self, exclusion: Exclusion, step: Applied, before: str, tests: Sequence[str]
    ) -> tuple[tuple[str, int], ...]:
        """Add to what is left out of a group; the places."""
        git = self.space.git
        old = {path: git.run_bytes("show", f"{before}:{path}") for path in step.paths}
        new = {path: git.run_bytes("show", f"{step.commit}:{path}") for path in step.paths}

        def fails(contents: dict[str, bytes]) -> bool:
            return bool(self._bad(self._commit_of(before, contents), tests))

        files = culprits(step.paths, lambda some: fails({path: new[path] for path in some}))
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
        if not files or fails(kept):
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
        return _not_passed(self.suite.run(commit, tests), tests)


def _not_passed(run: TestRun, tests: Collection[str]) -> list[str]:
    """Those of some tests that did not pass; one that was not run did not."""
    return [
        name for name in tests if name not in run.results or run.results[name].outcome is not Outcome.PASSED
    ]
