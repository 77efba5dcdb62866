"""Where an upgrade works: a directory next to the project, with a tree, an environment, records and a log.

The tree is a work tree of the project's repository, or a copy with a repository of its own. Nothing of the
user's checkout is changed: neither files, index and stash, nor the branch that is checked out.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import ValidationError, convert

from torchmigrate.evidence.location import DIRECTORY as EVIDENCE_DIRECTORY
from torchmigrate.evidence.location import FILE as EVIDENCE
from torchmigrate.files.paths import forget
from torchmigrate.upgrade.git import Git
from torchmigrate.upgrade.model import UpgradeError
from torchmigrate.versions.releases import Version, parse_version, show_version

T = TypeVar("T")
_STATE = "state.json"
_NOT_COPIED = ("__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache", "node_modules")


class Workspace:
    """One upgrade of one project.

    Attributes:
        directory: all that is made is in it.
        tree: the work tree or the copy.
        project: what is upgraded: the tree, or a directory in it.
        base: the commit that it starts from.
        branch: what the result is committed to.
        is_copy: the project is in no repository.
        is_planned: nothing of it is made, or written.
        notes: what the user should know, in lines.
    """

    def __init__(self, directory: Path, start: Path, base: str, branch: str, *, is_copy: bool) -> None:
        self.directory = directory
        self.tree = directory / "tree"
        self.project = self.tree / start
        self.base = base
        self.branch = branch
        self.is_copy = is_copy
        self.git = Git(self.tree)
        self.is_planned = False
        self.notes: list[str] = []
        self._kept: set[str] = set()

    # ---- how it begins -----------------------------------------------------------------------------------

    @classmethod
    def open(
        cls, path: Path, to: Version, work: Path | None, *, resume: bool, options: Mapping[str, Any]
    ) -> Workspace:
        """Make one for a project, or take the one that an earlier run left.

        One in which an earlier run failed before it changed anything is replaced.

        work: the directory; None: next to the project. options: to be remembered.
        Raises UpgradeError where that is not possible.
        """
        origin, start = cls._origin(path)
        directory = cls._directory(origin, to, work)
        state = _read_state(directory)
        if resume:
            if state is None:
                raise UpgradeError(f"{directory}: there is no upgrade to continue; remove --resume")
            if state["origin"] != str(origin) or state["start"] != start.as_posix():
                raise UpgradeError(
                    f"{directory} belongs to the upgrade of another project: {state['origin']}"
                )
            space = cls(directory, start, state["base"], state["branch"], is_copy=state["copy"])
            space._kept = set(state.get("kept", ()))
            if not space.tree.is_dir():
                raise UpgradeError(f"{space.tree} no longer exists: remove {directory} and start again")
            space._note_state(failed=False, options=options)
            return space
        if directory.exists():
            if state is not None and state["origin"] == str(origin) and state.get("failed"):
                _remove(directory, Git(origin))
            else:
                how = "use --resume to continue it" if state else "choose another directory with --work"
                raise UpgradeError(f"{directory} exists: {how}{_removal(directory, origin) if state else ''}")
        space = cls._made(origin, cls._unmade(origin, start, directory, to))
        space._note_state(to=show_version(to), options=options)
        return space

    @classmethod
    def remembered(
        cls, path: Path, to: Version | None, work: Path | None
    ) -> tuple[Version | None, Mapping[str, Any]]:
        """The target and the options of the upgrade that an earlier run of a project left.

        to: None: of the only one that there is.
        """
        origin, _ = cls._origin(path)
        if to is None and work is None:
            found = [
                _read_state(place) for place in origin.parent.glob(f"{glob.escape(origin.name)}-upgrade-*")
            ]
            states = [state for state in found if state is not None and state["origin"] == str(origin)]
            state = states[0] if len(states) == 1 else None
        else:
            state = _read_state(cls._directory(origin, to or (), work))
        if state is None:
            return to, {}
        known = state.get("to")
        return to or (parse_version(known) if known else None), state.get("options", {})

    def start(self) -> None:
        """Note that there are results, for a run that goes on."""
        self._note_state(started=True)

    def fail(self) -> None:
        """Note that the upgrade ended before there were results: a new one may replace it."""
        if not (_read_state(self.directory) or {}).get("started"):
            self.go_to(self.base)
            self._note_state(failed=True)

    @classmethod
    def planned(cls, path: Path, to: Version, work: Path | None) -> Workspace:
        """One that is not made: its tree is the checkout, and nothing of it may be changed.

        Raises UpgradeError where it could not be made.
        """
        origin, start = cls._origin(path)
        directory = cls._directory(origin, to, work)
        space = cls._unmade(origin, start, directory, to)
        space.tree, space.project, space.git = origin, origin / start, Git(origin)
        space.is_planned = True
        return space

    @classmethod
    def _origin(cls, path: Path) -> tuple[Path, Path]:
        """The repository or directory that a project is in, and where in it."""
        path = path.resolve()
        if not path.is_dir():
            raise UpgradeError(f"{path}: not a directory; you can only upgrade a whole project")
        top = Git(path).top
        return (path, Path()) if top is None else (top, path.relative_to(top))

    @classmethod
    def _directory(cls, origin: Path, to: Version, work: Path | None) -> Path:
        directory = work.resolve() if work else origin.parent / f"{origin.name}-upgrade-{show_version(to)}"
        if directory == origin or directory.is_relative_to(origin):
            raise UpgradeError(
                f"{directory} is inside of the project: choose a directory outside of it with --work"
            )
        return directory

    @classmethod
    def _unmade(cls, origin: Path, start: Path, directory: Path, to: Version) -> Workspace:
        """What `_made` makes, if that is possible."""
        git = Git(origin)
        branch = f"torchmigrate/upgrade-{show_version(to)}"
        is_copy = git.top is None
        if not is_copy and git.head is None:
            raise UpgradeError(f"{origin}: the repository has no commits; an upgrade starts from a commit")
        if not is_copy and git.has_branch(branch):
            raise UpgradeError(
                f"the branch {branch} exists: rename it, or delete it with `git branch -D {branch}`"
            )
        space = cls(directory, start, git.head or "", branch, is_copy=is_copy)
        if is_copy:
            space.notes.append(f"{origin} is not in a git repository: upgrading the copy {space.tree}")
        elif not git.is_clean:
            space.notes.append("uncommitted changes are not part of the upgrade")
        return space

    @classmethod
    def _made(cls, origin: Path, space: Workspace) -> Workspace:
        git = Git(origin)
        try:
            space.directory.mkdir(parents=True)
        except OSError as error:
            raise UpgradeError(f"cannot create {space.directory}: {error.strerror}") from None
        try:
            if space.is_copy:
                space._copy(origin)
            else:
                git.write("worktree", "prune")
                git.write("worktree", "add", "--quiet", "--detach", str(space.tree), space.base)
                space._fill_submodules(git)
            space._write_state(origin)
        except BaseException:
            _remove(space.directory, git)
            raise
        return space

    def _copy(self, origin: Path) -> None:
        try:
            shutil.copytree(
                origin, self.tree, symlinks=True, ignore=shutil.ignore_patterns(*_NOT_COPIED, ".git")
            )
        except (OSError, shutil.Error) as error:
            raise UpgradeError(f"cannot copy {origin}: {_first(error)}") from None
        self.git.write("init", "--quiet")
        self.git.write("add", "--all")
        self.base = self.git.commit("As it was")

    def _fill_submodules(self, origin: Git) -> None:
        """What submodules hold is taken from the checkout, where it is; it is not upgraded."""
        for path, wanted in self.git.submodules().items():
            source = Git(origin.directory / path)
            asked = ("cat-file", "-e", f"{wanted}^{{commit}}")
            if not ((source.directory / ".git").exists() and source.says(*asked) is not None):
                self.notes.append(f"the submodule {path} is not checked out, so it is empty in the upgrade")
                continue
            source.share(self.tree / path, wanted)
            self.notes.append(f"the submodule {path} is used unchanged and not upgraded")

    # ---- states of the tree ------------------------------------------------------------------------------

    def keep_untracked(self) -> None:
        """Untracked files that are in the tree now belong to every state: builds of extensions."""
        self._kept = self.git.untracked()
        self._note_state(kept=sorted(self._kept))

    def go_to(self, commit: str) -> None:
        """Make the tree what a commit holds: files that tests or an interrupted step left are removed."""
        self.git.write("checkout", "--quiet", "--force", "--detach", commit)
        for name in self.git.untracked() - self._kept:
            place = self.tree / name
            if name.endswith("/"):  # a repository of its own
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink(missing_ok=True)

    def keep_evidence(self, commit: str) -> None:
        """What was recorded of a commit, for `restore_evidence`."""
        place = self.tree / EVIDENCE_DIRECTORY / EVIDENCE
        if place.is_file():
            shutil.copyfile(place, self._evidence(commit))

    def evidence_of(self, commit: str) -> bytes:
        """What was recorded of a commit; empty: nothing."""
        kept = self._evidence(commit)
        return kept.read_bytes() if kept.is_file() else b""

    def restore_evidence(self, commit: str) -> None:
        """Put what was recorded of a commit into the tree, which is at it."""
        place = self.tree / EVIDENCE_DIRECTORY / EVIDENCE
        shutil.rmtree(place.parent, ignore_errors=True)
        if self._evidence(commit).is_file():
            place.parent.mkdir()
            (place.parent / ".gitignore").write_text("*\n")
            shutil.copyfile(self._evidence(commit), place)
        forget()

    def _evidence(self, commit: str) -> Path:
        return self.directory / f"evidence-{self.git.tree_of(commit)}.json"

    def finish(self, commit: str) -> None:
        """The result: the branch is at a commit, and checked out in the tree."""
        self.go_to(commit)
        self.git.write("branch", "--force", self.branch, commit)
        self.git.write("checkout", "--quiet", self.branch)

    # ---- records -----------------------------------------------------------------------------------------

    @property
    def log(self) -> Path:
        return self.directory / "log.txt"

    def record(self, name: str) -> Any:
        """What was noted under a name; None: nothing."""
        try:
            return json.loads((self.directory / "records" / f"{name}.json").read_bytes())
        except (OSError, ValueError):
            return None

    def recalled(self, name: str, kind: type[T]) -> T | None:
        """The same as an object; None also where an earlier version of this program kept it otherwise."""
        try:
            return convert(self.record(name), kind)
        except ValidationError:
            return None

    def note(self, name: str, value: object) -> None:
        """Note something that JSON can hold, so that a later run need not find it out again."""
        if not self.is_planned:
            self._write(f"records/{name}.json", json.dumps(value, indent=1))

    def _write(self, name: str, text: str) -> None:
        """Write a file of the workspace, whole or not at all."""
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text(text, encoding="utf-8", errors="surrogateescape")
        os.replace(part, path)  # noqa: PTH105

    def _write_state(self, origin: Path) -> None:
        start = self.project.relative_to(self.tree).as_posix()
        state = {"origin": str(origin), "start": start, "base": self.base, "branch": self.branch}
        self._write(_STATE, json.dumps({**state, "copy": self.is_copy}, indent=1))

    def _note_state(self, **values: object) -> None:
        state = _read_state(self.directory) or {}
        self._write(_STATE, json.dumps({**state, **values}, indent=1))


def _remove(directory: Path, git: Git) -> None:
    """Remove a workspace; git forgets its work tree."""
    shutil.rmtree(directory, ignore_errors=True)
    if git.top is not None:
        git.writes("worktree", "prune")


def _read_state(directory: Path) -> dict[str, Any] | None:
    try:
        state = json.loads((directory / _STATE).read_bytes())
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) and "origin" in state else None


def _removal(directory: Path, origin: Path) -> str:
    if Git(origin).top is None:
        return f"; to start again, remove it: rm -r {directory}"
    remove = f"worktree remove --force {directory / 'tree'}"
    return f"; to start again: git -C {origin} {remove} && rm -r {directory}, and delete the branch"


def _first(error: OSError | shutil.Error) -> str:
    """One line of what may be a list."""
    if isinstance(error, shutil.Error) and error.args and error.args[0]:
        return str(error.args[0][0][-1])
    return getattr(error, "strerror", None) or str(error)
