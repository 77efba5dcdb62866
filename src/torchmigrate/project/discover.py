"""Which files to check: what is named, and what is found in directories.

Exclusion works as in ruff: what is named on the command line is taken, whatever the patterns say, unless
`force_exclude` is set; below it, excluded and git-ignored directories are not entered. What git tracks is not
ignored, as for git. Symbolic links to directories are not followed (so there are no loops); links to files
are, unless they lead out of the project, and a file that is reachable in several ways is taken once.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchmigrate.files.paths import exists, is_dir, is_file, project_of, repository_of
from torchmigrate.files.reading import UnreadableError, explain_os_error, is_below, read
from torchmigrate.findings import Problem
from torchmigrate.source import other
from torchmigrate.source.kinds import KINDS

if TYPE_CHECKING:
    from torchmigrate.config.settings import Settings
    from torchmigrate.files.git_index import Tracked
    from torchmigrate.files.globs import Patterns

SUFFIXES = tuple(KINDS)
# What `include` is by default: the names of the files that are looked for in directories.
DEFAULT_INCLUDE = (*(f"*{suffix}" for suffix in SUFFIXES), *other.PATTERNS)
OUTSIDE = "../"
ENTRIES_A_FILE = 20  # of a directory are looked at, for each file that a bounded walk may take
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
    include: Sequence[str] | None = None,
    extend_include: Sequence[str] = (),
) -> Discovery:
    """Find the files to check in `paths`; files that are named are taken with any suffix.

    exclude, extend_exclude: names (`build`: any file or directory of that name) or patterns as in
        .gitignore, relative to `root` (`docs/*.py`, `tests/**/data`).
    force_exclude: apply them to the given paths and the directories that these are in, too.
    respect_gitignore: leave out what the .gitignore files and .git/info/exclude of the repository say.
    root: directory of the project; the current one if not given.
    suffixes: of the Python files that are looked for.
    include, extend_include: names or patterns, as for `exclude`, of the files taken from directories;
        without them, Python and the kinds of `source.other`.
    Never raises: missing paths, unreadable directories, bad patterns, broken links and those that lead out of
    the project become problems.
    """
    walker = _Walker(root or Path(), respect_gitignore, suffixes)
    walker.others = include is None
    walker.exclude([*exclude, *extend_exclude])
    walker.include([*(include or ()), *extend_include])
    paths = list(paths)
    walker.named = [os.path.realpath(path) for path in paths if is_dir(path)]
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
        include=settings.include,
        extend_include=settings.extend_include,
    )


def discover_real(
    directory: Path, settings: Settings, suffixes: tuple[str, ...], most: int
) -> list[Path] | None:
    """The real paths of the files below a directory, sorted.

    most: files; None for a directory with more of them, or with so much else that to look at it takes long.
    """
    walker = _Walker(settings.root, settings.respect_gitignore, suffixes)
    exclude = DEFAULT_EXCLUDE if settings.exclude is None else settings.exclude
    walker.exclude([*exclude, *settings.extend_exclude])
    walker.most = most
    real = os.path.realpath(directory)
    walker.named = [real]
    walker.walk(real, real)
    return None if walker.gave_up else [*map(Path, sorted(walker.found))]


def is_excluded(path: Path, settings: Settings) -> bool:
    """Whether `force_exclude` leaves out a file, which need not exist (the text may come from stdin)."""
    walker = _Walker(settings.root, settings.respect_gitignore)
    exclude = DEFAULT_EXCLUDE if settings.exclude is None else settings.exclude
    walker.exclude([*exclude, *settings.extend_exclude])
    return walker.excludes_path(os.path.realpath(path), path, False)


# A chain of ignore files that hold in a directory, innermost first, each with the directory's path
# relative to where the file is ("" or with a trailing slash).
_Chain = tuple[tuple["Patterns", str], ...]


class _Repository:
    """A work tree of git, with what it tracks: read when something in it is ignored."""

    def __init__(self, top: Path, walker: _Walker) -> None:
        from torchmigrate.files.git_index import git_directory

        self.top = top
        self.walker = walker
        self.directories = git_directory(top)

    def excludes(self) -> _Chain:
        """`.git/info/exclude`."""
        if self.directories is None:
            return ()
        shared = self.directories[1]
        return self.walker.read_patterns(shared / "info" / "exclude", shared)

    @cached_property
    def tracked(self) -> Tracked:
        from torchmigrate.files.git_index import Tracked, tracked

        if self.directories is None:
            return Tracked()
        try:
            everything = self.walker.others or self.walker.included is not None
            return tracked(self.directories[0], ("",) if everything else self.walker.suffixes)
        except UnreadableError as error:
            self.walker.problem(self.top / ".git", f"what git tracks is not known: its index {error.reason}")
            return Tracked()


class _Place(NamedTuple):
    """A directory on the way.

    shown, real: its path as messages have it and as it is, with a slash at its end.
    prefix: the path relative to the root, as patterns of the configuration see it.
    inside: the path relative to the top of the repository.
    ignored: of what is in it, only what is tracked is taken.
    """

    shown: str
    real: str
    prefix: str
    chain: _Chain
    repository: _Repository | None
    inside: str
    ignored: bool = False


class _Walker:
    def __init__(self, root: Path, respect_gitignore: bool, suffixes: tuple[str, ...] = SUFFIXES) -> None:
        self.suffixes = suffixes
        self.root = os.path.realpath(root)
        self.root_as_given = str(root.absolute())
        self.respect_gitignore = respect_gitignore
        self.names: frozenset[str] = frozenset()
        self.patterns: Patterns | None = None
        self.included: Patterns | None = None  # what is taken as well
        self.others = False  # whether files that are not Python are taken
        self.python = True
        self.named: list[str] = []  # real paths of the given directories
        self.problems: list[Problem] = []
        self.found: dict[str, tuple[bool, str]] = {}  # real path -> (is a link, path as given)
        self.most: int | None = None  # files after which a walk gives up; None: all are taken
        self.gave_up = False

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
            from torchmigrate.files.globs import Patterns, TooManyError

            try:
                self.patterns = Patterns(lines)
            except TooManyError:
                self.problem(self.root, "too many exclude patterns with wildcards: none of them is used")
                return
            for bad in reversed(self.patterns.bad):
                self.problem(self.root, f"invalid exclude pattern: {bad}")

    def include(self, patterns: Sequence[str]) -> None:
        """Take what fits these patterns too; without `others`, take nothing else."""
        lines = [self._relative(pattern) for pattern in patterns if pattern.strip()]
        if not lines:
            return
        from torchmigrate.files.globs import Patterns, TooManyError

        self.python = self.others
        try:
            self.included = Patterns(lines)
        except TooManyError:
            self.problem(self.root, "too many include patterns with wildcards: none of them is used")
            return
        for bad in reversed(self.included.bad):
            self.problem(self.root, f"invalid include pattern: {bad}")

    def wants(self, place: _Place, name: str) -> bool:
        """Whether a file in a directory is looked for, by its name."""
        if self.python and name.endswith(self.suffixes):
            return True
        if self.others and other.may_be_other(name):
            directory = place.real.rstrip(os.sep).rpartition(os.sep)[2]
            if other.kind_of_name(name, directory) is not None:
                return True
        return self.included is not None and self.included.match(place.prefix, name, False) is True

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
        project = project_of(Path(real))
        place = _Place(start, _slash(real), prefix, (), None, "")
        stack = [self.in_repository(place, project) if self.respect_gitignore else place]
        inner = {str(project), self.root, *self.named} - {os.sep}
        seen = 0
        while stack:
            if self.most is not None and (len(self.found) > self.most or seen > ENTRIES_A_FILE * self.most):
                self.gave_up = True
                return
            place = stack.pop()
            try:
                with os.scandir(place.real) as listing:
                    entries = list(listing)
            except OSError as error:
                reason = f"cannot read the directory: {explain_os_error(error)}"
                self.problem(place.shown or os.curdir, reason)
                continue
            seen += len(entries)
            if self.respect_gitignore and not place.ignored:
                names = {entry.name for entry in entries}
                chain, repository, inside = place.chain, place.repository, place.inside
                if ".git" in names:
                    repository, inside = _Repository(Path(place.real), self), ""
                    chain = repository.excludes()
                if ".gitignore" in names:
                    chain = self.read_patterns(Path(place.real, ".gitignore"), project) + chain
                place = place._replace(chain=chain, repository=repository, inside=inside)
            for entry in entries:
                try:
                    is_directory = entry.is_dir(follow_symlinks=False)
                    if not is_directory and not self.wants(place, entry.name):
                        continue
                    ignored = self.ignores(place, entry.name, is_directory)
                    if ignored is None:
                        continue
                    if is_directory:
                        stack.append(_entered(place, entry.name, ignored))
                    elif entry.is_symlink():
                        self.link(place.real + entry.name, place.shown + entry.name, inner)
                    elif entry.is_file():
                        self.add(place.real + entry.name, place.shown + entry.name, False)
                    elif entry.name.endswith(self.suffixes):
                        self.problem(place.shown + entry.name, "is not a regular file")
                except OSError as error:  # file systems that do not tell the kind of an entry in advance
                    self.problem(place.shown + entry.name, f"cannot read: {explain_os_error(error)}")

    def ignores(self, place: _Place, name: str, is_directory: bool) -> bool | None:
        """None: an entry is left out; True: only what is tracked in it is not; False: it is taken."""
        if self.excludes(place.prefix, name, is_directory):
            return None
        if not (place.ignored or _ignored(place.chain, name, is_directory)):
            return False
        if place.repository is None:
            return None
        tracked = place.repository.tracked
        known = tracked.directories if is_directory else tracked.files
        return True if place.inside + name in known else None

    def link(self, path: str, shown: str, inner: Collection[str]) -> None:
        """Take what a link leads to. inner: the directories that it may lead into."""
        if not path.endswith(self.suffixes) and other.may_be_other(os.path.basename(path)):  # noqa: PTH119
            real = os.path.realpath(path)
            # What is no Python and is not there, or elsewhere, is nobody's loss.
            if is_file(Path(real)) and any(is_below(real, directory) for directory in inner):
                self.add(real, shown, True)
            return
        try:
            real = os.path.realpath(path, strict=True)
        except OSError as error:
            # Emacs marks a file that is being edited with a dangling link of such a name.
            if "/.#" not in path.replace(os.sep, "/"):
                self.problem(shown, f"broken symbolic link: {explain_os_error(error)}")
            return
        if is_dir(Path(real)):
            return
        if not is_file(Path(real)):
            self.problem(shown, "leads to something that is not a regular file")
        elif any(is_below(real, directory) for directory in inner):
            self.add(real, shown, True)
        else:
            self.problem(shown, "leads out of the project: not checked unless it is named")

    # ---- git ---------------------------------------------------------------------------------------

    def in_repository(self, place: _Place, project: Path) -> _Place:
        """A directory to begin with, with the ignore files of the repository above it, as they hold in it.

        If they ignore the directory itself, then they do not count: it was asked for by name.
        """
        real = Path(place.real)
        top = repository_of(real)
        if top is None or top == real:
            return place  # the walk sees to it, or there is no repository
        parents = [real, *real.parents]
        directories = parents[parents.index(top) :: -1]
        repository = _Repository(top, self)
        chain = repository.excludes()
        for directory, child in pairwise(directories):
            chain = self.read_patterns(directory / ".gitignore", project) + chain
            if _ignored(chain, child.name, True):
                chain = ()
            chain = _below(chain, child.name)
        inside = f"{real.relative_to(top).as_posix()}/"
        return place._replace(chain=chain, repository=repository, inside=inside)

    def read_patterns(self, file: Path, within: Path) -> _Chain:
        """The patterns of a file, which need not be there. within: where it has to be."""
        if not exists(file) or is_dir(file):
            return ()
        from torchmigrate.files.globs import Patterns, TooManyError

        try:
            text = read(file, within=within).decode("utf-8-sig", "surrogateescape")
            patterns = Patterns([line.removesuffix("\r") for line in text.split("\n")])
        except UnreadableError as error:
            self.problem(file, error.reason)
            return ()
        except TooManyError:
            self.problem(file, "has too many patterns with wildcards: not used")
            return ()
        return ((patterns, ""),) if patterns else ()


def _slash(directory: str) -> str:
    return directory if directory.endswith(os.sep) else directory + os.sep


def _entered(place: _Place, name: str, ignored: bool) -> _Place:
    """A directory in a directory."""
    return _Place(
        f"{place.shown}{name}{os.sep}",
        f"{place.real}{name}{os.sep}",
        f"{place.prefix}{name}/",
        _below(place.chain, name),
        place.repository,
        f"{place.inside}{name}/",
        ignored,
    )


def _below(chain: _Chain, name: str) -> _Chain:
    return tuple((patterns, f"{above}{name}/") for patterns, above in chain)


def _ignored(chain: _Chain, name: str, is_directory: bool) -> bool:
    for patterns, prefix in chain:
        decision = patterns.match(prefix, name, is_directory)
        if decision is not None:
            return decision
    return False
