"""Which lines of files have changed since a revision of git, in the work tree as it is.

No filter is run, so that a file with a filter may count as changed as a whole.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from torchmigrate.files.git import Git, GitError
from torchmigrate.patterns import pattern

Rows = tuple[tuple[int, int], ...]  # first and last, 1-based, in order
_MOST_NAMES = 200  # of files in one call
_PLAIN = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--find-renames", "--no-color")
_PATCH = ("--unified=0", "--inter-hunk-context=0", "--text", "--src-prefix=a/", "--dst-prefix=b/")
_HUNK = pattern(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = pattern(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def changed_since(revision: str, files: Sequence[Path]) -> dict[Path, Rows | None]:
    """Those of some files that have lines that were added or changed, each with these lines.

    None: all lines, as of a file that git does not track yet. What is compared is the work tree with the
    commit that the revision and HEAD have in common; in a submodule, with what that commit has of it.

    Raises GitError where there is no git, no repository, or no such revision.
    """
    trees: dict[Path, _Tree] = {}
    of_tree: defaultdict[Path, dict[str, Path]] = defaultdict(dict)
    tops: dict[Path, Path] = {}
    for path in files:
        real = Path(os.path.realpath(path))
        if real.parent not in tops:
            tops[real.parent] = _top(real.parent)
        top = tops[real.parent]
        of_tree[top][real.relative_to(top).as_posix()] = path
    changed: dict[Path, Rows | None] = {}
    for top, names in of_tree.items():
        for name, rows in _tree(top, revision, trees).changed(names):
            changed[names[name]] = rows
    return {path: changed[path] for path in files if path in changed}


def _top(directory: Path) -> Path:
    top = Git(directory).top
    if top is None:
        raise GitError(f"{directory} is not in a git repository")
    return top


def _tree(top: Path, revision: str, trees: dict[Path, _Tree]) -> _Tree:
    """The work tree at `top`; of a submodule, also those around it are made."""
    if top not in trees:
        git = Git(top)
        around = Git(top.parent)
        if around.top is not None and around.submodules(top.name):
            above = _tree(around.top, revision, trees)
            trees[top] = _Tree(git, above.commit_of(top))
        else:
            trees[top] = _Tree(git, _common_commit(git, revision))
    return trees[top]


def _common_commit(git: Git, revision: str) -> str:
    ask = ("rev-parse", "--verify", "--quiet", "--end-of-options")
    commit = git.says(*ask, f"{revision}^{{commit}}")
    if not commit:
        raise GitError(f"there is no revision `{revision}` in {git.directory}")
    common = git.says("merge-base", "HEAD", commit)
    if not common:
        raise GitError(
            f"`{revision}` and HEAD have no common commit in {git.directory}; in a shallow clone, fetch "
            "more of the history"
        )
    return common.split("\n")[0]


class _Tree:
    """A work tree and what it is compared with; None: nothing, all of it is new."""

    def __init__(self, git: Git, commit: str | None) -> None:
        self.git = git
        self.commit = commit

    def commit_of(self, submodule: Path) -> str | None:
        """The commit of a submodule that the commit of this work tree names; None: it names none."""
        if self.commit is None:
            return None
        name = submodule.relative_to(os.path.realpath(self.git.directory)).as_posix()
        found = self.git.says("rev-parse", "--verify", "--quiet", f"{self.commit}:{name}")
        if not found:
            return None
        if Git(submodule).says("rev-parse", "--verify", "--quiet", f"{found}^{{commit}}") is None:
            raise GitError(
                f"the submodule {submodule} lacks commit {found[:12]}, which is needed for the comparison"
            )
        return found

    def changed(self, names: Iterable[str]) -> Iterator[tuple[str, Rows | None]]:
        """Those of some files, named from the root, that have changed lines, with these lines."""
        names = list(names)
        if self.commit is None:
            yield from ((name, None) for name in names)
            return
        tracked = set(self.git.run_bytes("ls-files", "-z").split(b"\0"))
        untracked = [name for name in names if os.fsencode(name) not in tracked]
        yield from ((name, None) for name in untracked)
        wanted = set(names).difference(untracked)
        former = {name: old for name, old in self._touched() if name in wanted}
        some = sorted(former)
        for start in range(0, len(some), _MOST_NAMES):
            now = some[start : start + _MOST_NAMES]
            asked = dict.fromkeys([*now, *(former[name] for name in now)])
            patch = self.git.run_bytes(
                "--literal-pathspecs", "diff", *_PLAIN, *_PATCH, self.commit, "--", *asked
            )
            for name, rows in _rows(patch):
                if name in wanted and rows:
                    yield name, rows

    def _touched(self) -> Iterator[tuple[str, str]]:
        """The files that are there and differ, each with what it was called."""
        assert self.commit is not None
        said = self.git.run_bytes("diff", *_PLAIN, "--raw", "-z", self.commit, "--").split(b"\0")
        fields = iter(said)
        for field in fields:
            if not field.startswith(b":"):
                continue
            status = field.rpartition(b" ")[2][:1]
            old = os.fsdecode(next(fields))
            new = os.fsdecode(next(fields)) if status in b"RC" else old
            if status != b"D":
                yield new, old


def _rows(patch: bytes) -> Iterator[tuple[str, Rows]]:
    """The files in a patch without context, each with the rows that it has of the new text."""
    name: str | None = None
    rows: list[tuple[int, int]] = []
    inside = 0  # lines that the hunk still has
    for line in patch.split(b"\n"):
        if inside and line[:1] in (b"+", b"-"):
            inside -= 1
        elif line.startswith(b"+++ "):
            if name is not None:
                yield name, tuple(rows)
            name, rows = _name(line[4:]), []
        elif (hunk := _HUNK.match(line)) is not None:
            old, first, new = (1 if number is None else int(number) for number in hunk.groups())
            inside = old + new
            if new:
                rows.append((first, first + new - 1))
    if name is not None:
        yield name, tuple(rows)


def _name(written: bytes) -> str | None:
    """The name of a file in the head of a patch; None: the file was removed."""
    written = written.removesuffix(b"\t")  # after a name with spaces
    if written.startswith(b'"'):

        def plain(match: re.Match[bytes]) -> bytes:
            what = match[1]
            return bytes([int(what, 8)]) if len(what) == 3 else _ESCAPED.get(what, what)

        written = _ESCAPE.sub(plain, written[1:-1])
    return os.fsdecode(written[2:]) if written.startswith(b"b/") else None
