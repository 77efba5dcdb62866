"""Which files to check: what is named, and what is found in directories.

Exclusion works as in ruff: what is named on the command line is taken, whatever the patterns say, unless
`force_exclude` is set; below it, excluded and git-ignored directories are not entered. Symbolic links to
directories are not followed (so there are no loops, and no file outside the tree is rewritten); links to
files are, and a file that is reachable in several ways is taken once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchmigrate.model import Problem
from torchmigrate.reach import exists, is_file
from torchmigrate.source import explain_os_error

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from torchmigrate.config import Settings

SUFFIXES = (".py", ".pyi")
OUTSIDE = "../"
_SPECIAL = frozenset("*?[]!\\/#")  # what a plain name does not have

DEFAULT_EXCLUDE = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".git-rewrite",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pypackages__",
    "_build",
    "buck-out",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)


class Discovery(NamedTuple):
    """What there is to check: files in order of their path, each once, and what could not be looked at."""

    files: list[Path]
    problems: list[Problem]


def discover(
    paths: Iterable[Path],
    *,
    exclude: Sequence[str] = DEFAULT_EXCLUDE,
    extend_exclude: Sequence[str] = (),
    force_exclude: bool = False,
    respect_gitignore: bool = True,
    root: Path | None = None,
    suffixes: tuple[str, ...] = SUFFIXES,
) -> Discovery:
    """Find the Python files (`*.py`, `*.pyi`) in `paths`; files that are named are taken with any suffix.

    exclude, extend_exclude: names (`build`: any file or directory of that name) or patterns as in
        .gitignore, relative to `root` (`docs/*.py`, `tests/**/data`).
    force_exclude: apply them to the given paths and the directories that these are in, too.
    respect_gitignore: leave out what the .gitignore files and .git/info/exclude of the repository say.
    root: directory of the project; the current one if not given.
    suffixes: of the files that are looked for.
    Never raises: missing paths, unreadable directories, bad patterns and broken links become problems.
    """
    walker = _Walker(root or Path(), respect_gitignore, suffixes)
    walker.exclude([*exclude, *extend_exclude])
    for path in paths:
        walker.take(path, force_exclude)
    return walker.result()


def discover_for(paths: Iterable[Path], settings: Settings) -> Discovery:
    """The same with what the settings of a run say."""
    return discover(
        paths,
        exclude=DEFAULT_EXCLUDE if settings.exclude is None else settings.exclude,
        extend_exclude=settings.extend_exclude,
        force_exclude=settings.force_exclude,
        respect_gitignore=settings.respect_gitignore,
        root=settings.root,
    )


def is_excluded(path: Path, settings: Settings) -> bool:
    """Whether `force_exclude` leaves out a file, which need not exist (the text may come from stdin)."""
    walker = _Walker(settings.root, settings.respect_gitignore)
    exclude = DEFAULT_EXCLUDE if settings.exclude is None else settings.exclude
    walker.exclude([*exclude, *settings.extend_exclude])
    return walker.excludes_path(os.path.realpath(path), path, False)


# A chain of ignore files that hold in a directory, innermost first, each with the directory's path
# relative to where the file is ("" or with a trailing slash).
_Chain = tuple[tuple["_Patterns", str], ...]


class _Walker:
    def __init__(self, root: Path, respect_gitignore: bool, suffixes: tuple[str, ...] = SUFFIXES) -> None:
        self.suffixes = suffixes
        self.root = os.path.realpath(root)
        self.root_as_given = str(root.absolute())
        self.respect_gitignore = respect_gitignore
        self.names: frozenset[str] = frozenset()
        self.patterns: _Patterns | None = None
        self.problems: list[Problem] = []
        self.found: dict[str, tuple[bool, str]] = {}  # real path -> (is a link, path as given)

    def result(self) -> Discovery:
        files = sorted((Path(path) for _, path in self.found.values()), key=lambda path: path.parts)
        return Discovery(files, sorted(self.problems, key=lambda problem: problem.path.parts))

    def problem(self, path: str | Path, reason: str) -> None:
        self.problems.append(Problem(Path(path), reason))

    # ---- what is excluded --------------------------------------------------------------------------

    def exclude(self, patterns: Sequence[str]) -> None:
        names = set()
        lines = []
        for pattern in patterns:
            if pattern and not any(character in _SPECIAL or character.isspace() for character in pattern):
                names.add(pattern)
            elif pattern.strip():
                lines.append(self._relative(pattern))
        self.names = frozenset(names)
        if lines:
            self.patterns = _Patterns.of(lines)
            for bad in self.patterns.bad:
                self.problem(self.root, f"invalid exclude pattern: {bad}")

    def _relative(self, pattern: str) -> str:
        """A path that somebody typed as a pattern relative to the root."""
        if pattern.startswith("#"):
            return "\\" + pattern
        if pattern.startswith("./"):
            return pattern[1:]
        for root in (self.root, self.root_as_given):
            if pattern.startswith(_slash(root)):
                return pattern[len(_slash(root)) - 1 :].replace(os.sep, "/")
        return pattern

    def excludes(self, prefix: str, name: str, is_directory: bool) -> bool:
        if name in self.names:
            return True
        return self.patterns is not None and self.patterns.match(prefix, name, is_directory) is True

    def excludes_path(self, real: str, path: Path, is_directory: bool) -> bool:
        """Whether a path, or a directory above it and below the root, is excluded."""
        below = self._below_root(real)
        if below.startswith(OUTSIDE):
            return self.excludes(OUTSIDE, path.name, is_directory)
        prefix = ""
        parts = below.split("/") if below else []
        for index, part in enumerate(parts):
            if self.excludes(prefix, part, is_directory or index < len(parts) - 1):
                return True
            prefix += part + "/"
        return False

    def _below_root(self, real: str) -> str:
        """Path relative to the root, with slashes, "" for the root itself.

        Outside it is OUTSIDE: a pattern without a slash matches there too, one with a slash does not.
        """
        if real == self.root:
            return ""
        head = _slash(self.root)
        return real[len(head) :].replace(os.sep, "/") if real.startswith(head) else OUTSIDE

    # ---- what is found -----------------------------------------------------------------------------

    def take(self, path: Path, force_exclude: bool) -> None:
        try:
            real = os.path.realpath(path, strict=True)
            is_directory = Path(real).is_dir()
        except (OSError, ValueError) as error:
            reason = explain_os_error(error) if isinstance(error, OSError) else "not a path"
            self.problem(path, reason)
            return
        if force_exclude:
            place = str(Path(os.path.realpath(path.parent)) / path.name) if path.is_symlink() else real
            if self.excludes_path(place, path, is_directory):
                return
        if is_directory:
            self.walk(str(path), real)
        else:
            self.add(real, str(path), path.is_symlink())

    def add(self, real: str, path: str, is_link: bool) -> None:
        if real not in self.found or (self.found[real][0] and not is_link):
            self.found[real] = (is_link, path)

    def walk(self, start: str, real: str) -> None:
        """Take everything below a directory, which `start` names and whose real path is `real`."""
        start = "" if start == os.curdir else _slash(start)
        below = self._below_root(real)
        prefix = f"{below.rstrip('/')}/" if below else ""
        chain = self.gitignores_above(real) if self.respect_gitignore else ()
        stack = [(start, _slash(real), prefix, chain)]
        while stack:
            shown, directory, prefix, chain = stack.pop()
            try:
                with os.scandir(directory) as listing:
                    entries = list(listing)
            except OSError as error:
                self.problem(shown or os.curdir, f"cannot read the directory: {explain_os_error(error)}")
                continue
            if self.respect_gitignore:
                names = {entry.name for entry in entries}
                if ".git" in names:
                    chain = self.repository_excludes(directory)
                if ".gitignore" in names:
                    chain = self.read_patterns(directory + ".gitignore") + chain
            for entry in entries:
                name = entry.name
                try:
                    is_directory = entry.is_dir(follow_symlinks=False)
                    if not is_directory and not name.endswith(self.suffixes):
                        continue
                    if self.excludes(prefix, name, is_directory) or _ignored(chain, name, is_directory):
                        continue
                    if is_directory:
                        inner = tuple((patterns, f"{above}{name}/") for patterns, above in chain)
                        place = f"{directory}{name}{os.sep}"
                        stack.append((f"{shown}{name}{os.sep}", place, f"{prefix}{name}/", inner))
                    elif entry.is_symlink():
                        self.link(directory + name, shown + name)
                    elif entry.is_file():
                        self.add(directory + name, shown + name, False)
                except OSError as error:  # file systems that do not tell the kind of an entry in advance
                    self.problem(shown + name, f"cannot read: {explain_os_error(error)}")

    def link(self, path: str, shown: str) -> None:
        try:
            real = os.path.realpath(path, strict=True)
        except OSError as error:
            # Emacs marks a file that is being edited with a dangling link of such a name.
            if "/.#" not in path.replace(os.sep, "/"):
                self.problem(shown, f"broken symbolic link: {explain_os_error(error)}")
            return
        if is_file(Path(real)):
            self.add(real, shown, True)

    # ---- git ---------------------------------------------------------------------------------------

    def gitignores_above(self, real: str) -> _Chain:
        """The ignore files of the repository above a directory, as they hold in it.

        If they ignore the directory itself, then none: it was asked for by name.
        """
        parents = [Path(real), *Path(real).parents]
        top = next((index for index, parent in enumerate(parents) if exists(parent / ".git")), 0)
        if top == 0:
            return ()  # the walk sees to it, or there is no repository
        directories = parents[top::-1]
        chain = self.repository_excludes(directories[0])
        for directory, child in pairwise(directories):
            file = directory / ".gitignore"
            if is_file(file):
                chain = self.read_patterns(str(file)) + chain
            if _ignored(chain, child.name, True):
                chain = ()
            chain = tuple((patterns, f"{above}{child.name}/") for patterns, above in chain)
        return chain

    def repository_excludes(self, directory: str | Path) -> _Chain:
        """`.git/info/exclude` of the repository whose top is `directory`."""
        git = Path(directory) / ".git"
        if is_file(git):  # a worktree or a submodule: `gitdir: PATH`
            try:
                text = git.read_text("utf-8", "surrogateescape")
                git = git.parent / text.removeprefix("gitdir:").strip()
                common = git / "commondir"
                if common.is_file():
                    git = git / common.read_text("utf-8", "surrogateescape").strip()
            except OSError:
                return ()  # a repository that git itself cannot use has no excludes
        file = git / "info" / "exclude"
        return self.read_patterns(str(file)) if is_file(file) else ()

    def read_patterns(self, file: str) -> _Chain:
        try:
            text = Path(file).read_text("utf-8-sig", "surrogateescape")
        except OSError as error:
            if is_file(Path(file)):
                self.problem(file, f"cannot read: {explain_os_error(error)}")
            return ()
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        lines = [line for line in lines if line.strip() and not line.startswith("#")]
        return ((_Patterns.of(lines), ""),) if lines else ()


def _slash(directory: str) -> str:
    return directory if directory.endswith(os.sep) else directory + os.sep


def _ignored(chain: _Chain, name: str, is_directory: bool) -> bool:
    for patterns, prefix in chain:
        decision = patterns.match(prefix, name, is_directory)
        if decision is not None:
            return decision
    return False


class _Patterns:
    """The patterns of one file, made fast.

    Most entries match no pattern at all. All patterns in one regular expression tell that ten times
    faster than one after the other; only if it matches, pathspec tells which one decides. Patterns without
    a slash depend on the last part of the path alone, and names repeat.
    """

    __slots__ = ("_by_name", "_by_path", "_seen", "_spec", "bad")

    def __init__(self, spec: GitIgnoreSpec, bad: list[str]) -> None:
        names, paths = [], []
        for pattern in spec.patterns:
            if pattern.include is None or pattern.regex is None:
                continue  # a comment
            text = re.sub(r"\(\?P<\w+>", "(?:", pattern.regex.pattern)
            rest = text.removeprefix(r"^(?:.+/)?")
            if rest != text and "/" not in rest.replace("[^/]", "").replace("(?:/)", ""):
                names.append(rest)
            else:
                paths.append(text)
        self._spec = spec
        self._by_name = re.compile("|".join(names)) if names else None
        self._by_path = re.compile("|".join(paths)) if paths else None
        self._seen: dict[str, bool] = {}
        self.bad = bad

    @classmethod
    def of(cls, lines: Sequence[str]) -> _Patterns:
        """Compile lines of a .gitignore file; invalid ones are left out, as git does."""
        from pathspec import GitIgnoreSpec

        # `x/**` is what is in x, but pathspec takes x itself for it, and what `!x/y` keeps would be lost.
        lines = [re.sub(r"/\*\*(/?)\s*\Z", r"/**/*\1", line) for line in lines]
        try:
            return cls(GitIgnoreSpec.from_lines(lines), [])
        except ValueError:
            bad = []
            for line in lines:
                try:
                    GitIgnoreSpec.from_lines([line])
                except ValueError:
                    bad.append(line)
            return cls(GitIgnoreSpec.from_lines([line for line in lines if line not in bad]), bad)

    def match(self, prefix: str, name: str, is_directory: bool) -> bool | None:
        """True: ignored; False: `!pattern` keeps it; None: no pattern says anything.

        prefix: the directory it is in, relative to the patterns' own, "" or with a trailing slash.
        """
        last = name + "/" if is_directory else name
        maybe = False
        if self._by_name is not None:
            known = self._seen.get(last)
            if known is None:
                known = self._seen[last] = self._by_name.match(last) is not None
            maybe = known
        if not maybe and (self._by_path is None or self._by_path.search(prefix + last) is None):
            return None
        return self._decide(prefix + last)

    def _decide(self, path: str) -> bool | None:
        # Not `check_file`: that also counts matches of a directory above, which the walk has dealt with,
        # so that `x/y/` before `!x/` would not ignore x/y.
        for pattern in reversed(self._spec.patterns):
            if pattern.include is not None:
                found = pattern.match_file(path)
                if found is not None:
                    mark = found.match.groupdict().get("ps_d") and found.match.end("ps_d")
                    anywhere = mark and not found.match.re.pattern.startswith("^")  # `*/`: any directory
                    if not mark or mark == len(path) or (anywhere and path.endswith("/")):
                        return pattern.include
        return None
