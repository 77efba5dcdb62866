"""Which files to check: what is named, and what is found in directories.

Exclusion works as in ruff: what is named on the command line is taken, whatever the patterns say, unless
`force_exclude` is set; below it, excluded and git-ignored directories are not entered. The settings that hold
in a directory decide what of it is excluded, wherever one begins to look. What git tracks is not ignored, as
for git. Symbolic links to directories are not followed (so there are no loops); links to files are, unless
they lead out of the project, and a file that is reachable in several ways is taken once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.config.settings import CONFIG_NAMES, ConfigError, Settings
from torchmigrate.files.paths import entries, exists, is_dir, is_file, project_of, repository_of
from torchmigrate.files.reading import UnreadableError, explain_os_error, is_below, read
from torchmigrate.findings import Problem, Trouble
from torchmigrate.source import other
from torchmigrate.source.kinds import DOCUMENTS, KINDS

if TYPE_CHECKING:
    from torchmigrate.files.git_index import Tracked
    from torchmigrate.files.globs import Patterns

SettingsIn = Callable[[Path], Settings]  # what holds in a directory
SUFFIXES = tuple(KINDS)
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
    ".torchmigrate_cache",
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


class Discovery(Struct, frozen=True):
    """What there is to check: files in order of their path, each once, and what could not be looked at."""

    files: list[Path]
    problems: list[Problem]


def discover_for(
    paths: Iterable[Path], settings_in: SettingsIn, suffixes: tuple[str, ...] = SUFFIXES
) -> Discovery:
    """Find the files to check in `paths`; files that are named are taken with any suffix.

    settings_in: the settings of a directory, which say what of it is excluded; those of a path say whether
        git's ignore files count.
    suffixes: of the Python files that are looked for; without them, Python and the kinds of `source.other`.
    Raises what `settings_in` raises. Missing paths, unreadable directories, bad patterns, broken links and
    those that lead out of the project become problems.
    """
    paths = list(paths)
    named = [os.path.realpath(path) for path in paths if is_dir(path)]
    walker = _Walker(settings_in, suffixes, named)
    for path in paths:
        walker.take(path)
    return walker.result()


def discover_real(
    directory: Path, settings_in: SettingsIn, suffixes: tuple[str, ...], most: int
) -> list[Path] | None:
    """The real paths of the files below a directory, sorted.

    most: files; None for a directory with more of them, or with so much else that to look at it takes long.
    """
    real = os.path.realpath(directory)
    walker = _Walker(settings_in, suffixes, [real], most)
    walker.walk(real, real)
    return None if walker.gave_up else [*map(Path, sorted(walker.found))]


def is_excluded(path: Path, settings_in: SettingsIn) -> bool:
    """Whether `force_exclude` leaves out a file, which need not exist (the text may come from stdin)."""
    return _Walker(settings_in).leaves_out(os.path.realpath(path), path, False)


def is_passed_over(path: Path, settings_in: SettingsIn, top: Path, *, any_kind: bool = False) -> bool:
    """Whether a run on a directory would not come to a file in it, which need not exist.

    top: the directory. any_kind: the name of the file does not matter.
    """
    return not _Walker(settings_in).comes_to(os.path.realpath(path), os.path.realpath(top), any_kind)


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
            # Files of any name may be looked for.
            return tracked(self.directories[0], ("",) if self.walker.all_kinds else self.walker.suffixes)
        except UnreadableError as error:
            self.walker.problem(
                self.top / ".git", (f"cannot tell which files git tracks: its index {error.reason}")
            )
            return Tracked()


class _Place(Struct, frozen=True):
    """A directory on the way.

    shown, real: its path as messages have it and as it is, with a slash at its end.
    exclusion: what is excluded in it. prefix: the path as its patterns see it, relative to its root.
    inside: the path relative to the top of the repository.
    ignored: of what is in it, only what is tracked is taken.
    """

    shown: str
    real: str
    exclusion: _Exclusion
    prefix: str
    chain: _Chain
    repository: _Repository | None
    inside: str
    ignored: bool = False


class _Exclusion:
    """What settings exclude."""

    def __init__(self, settings: Settings, problem: Callable[[str | Path, str], None]) -> None:
        self.settings = settings
        self.root = os.path.realpath(settings.root)
        self.root_as_given = str(settings.root.absolute())
        names = set()
        lines = []
        exclude = DEFAULT_EXCLUDE if settings.exclude is None else settings.exclude
        for pattern in [*exclude, *settings.extend_exclude]:
            if pattern and not any(character in _SPECIAL or character.isspace() for character in pattern):
                names.add(pattern)
            elif pattern.strip():
                lines.append(self._relative(pattern))
        self.names = frozenset(names)
        self.patterns = self._compiled(lines, "exclude", problem)
        include = [*(settings.include or ()), *settings.extend_include]
        lines = [self._relative(pattern) for pattern in include if pattern.strip()]
        self.included = self._compiled(lines, "include", problem)  # what is taken as well

    def _compiled(
        self, lines: Sequence[str], what: str, problem: Callable[[str | Path, str], None]
    ) -> Patterns | None:
        """Compiled patterns; invalid ones are reported. None: there are none, or too many."""
        if not lines:
            return None
        from torchmigrate.files.globs import Patterns, TooManyError

        try:
            patterns = Patterns(lines)
        except TooManyError:
            problem(self.root, f"too many {what} patterns with wildcards: ignoring all of them")
            return None
        for bad in reversed(patterns.bad):
            problem(self.root, f"invalid {what} pattern: {bad}")
        return patterns

    def wants(self, place: _Place, name: str) -> bool:
        """Whether a file in a directory is looked for, by its name."""
        if self.settings.include is None:
            if name.endswith(SUFFIXES) or (self.settings.embedded and name.endswith(tuple(DOCUMENTS))):
                return True
            if other.may_be_other(name):
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
        below = self.below_root(real)
        if below.startswith(OUTSIDE):
            return self.excludes(OUTSIDE, path.name, is_directory)
        prefix = ""
        parts = below.split("/") if below else []
        for index, part in enumerate(parts):
            if self.excludes(prefix, part, is_directory or index < len(parts) - 1):
                return True
            prefix += part + "/"
        return False

    def below_root(self, real: str) -> str:
        """Path relative to the root, with slashes, "" for the root itself.

        Outside it is OUTSIDE: a pattern without a slash matches there too, one with a slash does not.
        """
        if real == self.root:
            return ""
        head = _slash(self.root)
        return real[len(head) :].replace(os.sep, "/") if real.startswith(head) else OUTSIDE

    def prefix(self, real: str) -> str:
        """What patterns see of the path of a directory, before what is in it."""
        below = self.below_root(real)
        return f"{below.rstrip('/')}/" if below else ""


class _Walker:
    """A walk through directories.

    named: real paths of the given directories. most: files after which it gives up; None: all are taken.
    """

    def __init__(
        self,
        settings_in: SettingsIn,
        suffixes: tuple[str, ...] = SUFFIXES,
        named: Sequence[str] = (),
        most: int | None = None,
    ) -> None:
        self.settings_in = settings_in
        self.suffixes = suffixes
        self.all_kinds = suffixes is SUFFIXES  # else those alone
        self.exclusions: list[_Exclusion] = []
        self.named = named
        self.problems: list[Problem] = []
        self.found: dict[str, tuple[bool, str]] = {}  # real path -> (is a link, path as given)
        self.most = most
        self.gave_up = False

    def result(self) -> Discovery:
        files = sorted((Path(path) for _, path in self.found.values()), key=lambda path: path.parts)
        return Discovery(files, sorted(self.problems, key=lambda problem: problem.path.parts))

    def problem(self, path: str | Path, reason: str) -> None:
        self.problems.append(Problem(Path(path), reason, None, Trouble.UNREADABLE))

    # ---- what is excluded --------------------------------------------------------------------------

    def exclusion_in(self, directory: str) -> _Exclusion:
        """What is excluded in a directory, given by its real path."""
        settings = self.settings_in(Path(directory))
        for known in self.exclusions:
            if known.settings is settings:
                return known
        self.exclusions.append(_Exclusion(settings, self.problem))
        return self.exclusions[-1]

    def leaves_out(self, real: str, path: Path, is_directory: bool) -> bool:
        """Whether what is named is left out all the same: a walk from the top would not get to it.

        Asked are the settings that hold for it, and those around the directory that has these, up to the
        root of the repository.
        """
        directory = real if is_directory else os.path.dirname(real)  # noqa: PTH120
        exclusion = self.exclusion_in(directory)
        while True:
            if exclusion.settings.force_exclude and exclusion.excludes_path(real, path, is_directory):
                return True
            root = exclusion.root
            if not real.startswith(_slash(root)) or ".git" in entries(Path(root)):
                return False
            try:
                around = self.exclusion_in(os.path.dirname(root))  # noqa: PTH120
            except ConfigError:
                return False  # it holds for no file: `--select` may name rules that only those below have
            if not root.startswith(_slash(around.root)) or root == around.root:
                return False
            real, path, is_directory, exclusion = root, Path(root), True, around

    # ---- what is found -----------------------------------------------------------------------------

    def take(self, path: Path) -> None:
        try:
            real = os.path.realpath(path, strict=True)
            is_directory = Path(real).is_dir()
        except (OSError, ValueError) as error:
            reason = explain_os_error(error) if isinstance(error, OSError) else "not a path"
            self.problem(path, reason)
            return
        place = str(Path(os.path.realpath(path.parent)) / path.name) if path.is_symlink() else real
        if self.leaves_out(place, path, is_directory):
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
        first, project = self.begin("" if start == os.curdir else _slash(start), real)
        exclusion, respect_gitignore = first.exclusion, first.exclusion.settings.respect_gitignore
        stack = [first]
        inner = {str(project), exclusion.root, *self.named} - {os.sep}
        seen = 0
        while stack:
            if self.most is not None and (len(self.found) > self.most or seen > ENTRIES_A_FILE * self.most):
                self.gave_up = True
                return
            place = stack.pop()
            try:
                with os.scandir(place.real) as listing:
                    listed = list(listing)
            except OSError as error:
                reason = f"cannot read the directory: {explain_os_error(error)}"
                self.problem(place.shown or os.curdir, reason)
                continue
            seen += len(listed)
            names = {entry.name for entry in listed}
            place = self.looked_at(place, names, project, respect_gitignore)
            for entry in listed:
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

    def begin(self, start: str, real: str) -> tuple[_Place, Path]:
        """The directory to begin with, by its name and its real path; and its project."""
        exclusion = self.exclusion_in(real)
        project = project_of(Path(real))
        place = _Place(start, _slash(real), exclusion, exclusion.prefix(real), (), None, "")
        respect_gitignore = exclusion.settings.respect_gitignore
        return self.in_repository(place, project) if respect_gitignore else place, project

    def looked_at(
        self, place: _Place, names: Collection[str], project: Path, respect_gitignore: bool
    ) -> _Place:
        """A directory that has these names in it, with what they say of what is excluded."""
        if not CONFIG_NAMES.isdisjoint(names):
            exclusion = self.exclusion_in(place.real.rstrip(os.sep) or os.sep)
            prefix = exclusion.prefix(place.real.rstrip(os.sep) or os.sep)
            place = replace(place, exclusion=exclusion, prefix=prefix)
        if respect_gitignore and not place.ignored:
            chain, repository, inside = place.chain, place.repository, place.inside
            if ".git" in names:
                repository, inside = _Repository(Path(place.real), self), ""
                chain = repository.excludes()
            if ".gitignore" in names:
                chain = self.read_patterns(Path(place.real, ".gitignore"), project) + chain
            place = replace(place, chain=chain, repository=repository, inside=inside)
        return place

    def comes_to(self, real: str, top: str, any_kind: bool) -> bool:
        """Whether a walk from a directory comes to a file, both given by their real paths."""
        if not real.startswith(_slash(top)):
            return False
        place, project = self.begin(_slash(top), top)
        respect_gitignore = place.exclusion.settings.respect_gitignore
        *directories, name = Path(real).relative_to(top).parts
        for directory in directories:
            place = self.looked_at(place, entries(Path(place.real)), project, respect_gitignore)
            ignored = self.ignores(place, directory, True)
            if ignored is None:
                return False
            place = _entered(place, directory, ignored)
        place = self.looked_at(place, entries(Path(place.real)), project, respect_gitignore)
        return (any_kind or self.wants(place, name)) and self.ignores(place, name, False) is not None

    def wants(self, place: _Place, name: str) -> bool:
        """Whether a file in a directory is looked for, by its name."""
        return place.exclusion.wants(place, name) if self.all_kinds else name.endswith(self.suffixes)

    def ignores(self, place: _Place, name: str, is_directory: bool) -> bool | None:
        """None: an entry is left out; True: only what is tracked in it is not; False: it is taken."""
        if place.exclusion.excludes(place.prefix, name, is_directory):
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
            # A missing file that is not Python, or is elsewhere, is not reported.
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
            self.problem(shown, "points to something that is not a regular file")
        elif any(is_below(real, directory) for directory in inner):
            self.add(real, shown, True)
        else:
            self.problem(shown, "points outside of the project: not checked unless you name it")

    # ---- git ---------------------------------------------------------------------------------------

    def in_repository(self, place: _Place, project: Path) -> _Place:
        """A directory to begin with, with the ignore files of the repository above it, as they hold in it.

        If they ignore the directory itself, then they do not count: it was named explicitly.
        """
        real = Path(place.real)
        top = repository_of(real)
        if top is None or top == real:
            return place  # the walk reads them, or there is no repository
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
        return replace(place, chain=chain, repository=repository, inside=inside)

    def read_patterns(self, file: Path, within: Path) -> _Chain:
        """The patterns of a file, which need not be there. within: the directory that must contain it."""
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
            self.problem(file, "has too many patterns with wildcards: ignored")
            return ()
        return ((patterns, ""),) if patterns else ()


def _slash(directory: str) -> str:
    return directory if directory.endswith(os.sep) else directory + os.sep


def _entered(place: _Place, name: str, ignored: bool) -> _Place:
    """A directory in a directory."""
    return _Place(
        f"{place.shown}{name}{os.sep}",
        f"{place.real}{name}{os.sep}",
        place.exclusion,
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
