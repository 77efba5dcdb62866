"""Fixes that were chosen before the tests got to their places, made again when recording shows more there.

A rule may have several fixes, and what was recorded decides which one is right (`other_shape`). The first
fixes are made by what the first run shows; places that it does not reach because a test fails before get the
fix for what is usual. Where a test now fails at the line of such a fix, the old text is put back in its file,
the tests are recorded, and the file is fixed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from torchmigrate.upgrade.fixer import hunks_of, message_of
from torchmigrate.upgrade.model import Applied, FixGroup, Frame, TestRun
from torchmigrate.upgrade.workspace import Workspace

_AGAIN = " again"  # the end of the key of a group


def is_chosen_again(group: FixGroup) -> bool:
    """Whether a group is in the place of fixes that the tests did not like."""
    return group.key.endswith(_AGAIN)


def undone(
    space: Workspace, made: Sequence[Applied], run: TestRun, codes: frozenset[str]
) -> tuple[str, Applied, list[str]] | None:
    """A commit without the fixes of one group in the files where tests fail at what it wrote.

    Also the group, and the files; None: there is none. The tree is at that commit.

    codes: of the rules whose fixes are chosen by the test runs.
    """
    final = made[-1].commit if made else space.base
    steps = {step.commit: step for step in made if not codes.isdisjoint(step.group.codes)}
    if not steps:
        return None
    space.go_to(final)
    found: dict[str, list[str]] = {}
    for path, commit in _failed_at(space, run, steps):
        if path not in found.setdefault(commit, []):
            found[commit].append(path)
    for commit, paths in found.items():
        known = without(space, final, steps[commit], paths)
        if known is not None:
            return known[0], steps[commit], known[1]
    return None


def without(
    space: Workspace, final: str, step: Applied, paths: Sequence[str]
) -> tuple[str, list[str]] | None:
    """A commit after `final` without what a step changed in some files, and those files; None: not possible.

    The tree is at that commit.
    """
    key = f"undone-{step.commit[:12]}-{space.git.tree_of(final)[:12]}"
    known = space.recalled(key, tuple[str, list[str]])
    if known is None or space.git.says("cat-file", "-e", known[0]) is None:
        space.go_to(final)
        left = [path for path in paths if _put_back(space, step.commit, path)]
        if not left:
            return None
        known = space.git.commit("To be recorded"), left
        space.note(key, known)
    space.go_to(known[0])
    return known


def _failed_at(space: Workspace, run: TestRun, steps: Mapping[str, Applied]) -> Iterator[tuple[str, str]]:
    """The files and commits of the innermost lines of the project that tests fail at."""
    frames = [_innermost(run.results[name].frames) for name in run.bad]
    for frame in dict.fromkeys(frame for frame in frames if frame is not None):
        at = f"{frame.line},{frame.line}"
        said = space.git.says("blame", "--porcelain", "-L", at, "--", frame.path)
        commit = (said or "").partition(" ")[0]
        if commit in steps:
            yield frame.path, commit


def _innermost(frames: Sequence[Frame]) -> Frame | None:
    return next((frame for frame in reversed(frames) if not Path(frame.path).is_absolute()), None)


def _put_back(space: Workspace, commit: str, path: str) -> bool:
    """Put back what a commit changed in a file of the tree; whether that was possible."""
    change = space.git.run_bytes("show", "--format=", "--no-ext-diff", "--no-color", commit, "--", path)
    return space.git.writes("apply", "--reverse", "-C1", "-", data=change) is not None


def squashed(space: Workspace, parent: str, steps: Sequence[Applied], undone: Applied) -> Applied | None:
    """What some steps made of the commit without fixes, as one step after that with them; None: nothing."""
    if not steps or space.git.tree_of(steps[-1].commit) == space.git.tree_of(parent):
        return None
    paths = sorted({path for step in steps for path in step.paths} | set(undone.paths))
    fixes, changed = 0, []
    for path in paths:
        before = space.git.run_bytes("show", f"{parent}:{path}")
        after = space.git.run_bytes("show", f"{steps[-1].commit}:{path}")
        if before != after:
            fixes += len(hunks_of(path, before, after)) or 1
            changed.append(path)
    codes = undone.group.codes
    title = f"Choose other fixes by what the tests now show ({', '.join(codes[:3])})"
    group = FixGroup(f"{undone.group.key}{_AGAIN}", title, undone.group.why, codes)
    space.go_to(steps[-1].commit)
    space.git.write("reset", "--quiet", "--soft", parent)
    return Applied(group, space.git.commit(message_of(group)), fixes, tuple(changed))
