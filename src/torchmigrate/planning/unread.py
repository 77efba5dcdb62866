"""What a plan did not read, by kind: the plan has no information about these files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from torchmigrate.config.settings import Settings
from torchmigrate.files.reading import MEGABYTE, UnreadableError, read
from torchmigrate.findings import Problem
from torchmigrate.patterns import pattern
from torchmigrate.planning.model import Unread
from torchmigrate.report.base import shown_path

MOST_EXAMPLES = 3
FAILED = "could not be read or parsed"
MOST_READ = 20 * MEGABYTE  # of a file of another kind; a notebook holds its pictures
_TORCH = pattern(rb"torch")
# Old extensions include the headers of the libraries below torch.
_TORCH_OR_BELOW = pattern(rb"torch|ATen|\bTHC?\b|\bTHC?[A-Z_]|\bcaffe2\b")
# A script that only installs torch, or names a file after it, runs with any.
_STARTS = pattern(rb"-m[ \t]+torch\.|\bimport torch\b|\bfrom torch\b")
# Directories that are excluded by default, and may be a project's own all the same.
_OUTPUTS = frozenset(["_build", "buck-out", "build", "dist"])
_MENTIONS = "they mention torch"
_MENTION = "it mentions torch"


class Kind(Struct, frozen=True):
    """A kind of file that may use torch.

    one, more: what a file, or several, are called. ends: how their names end. words: what those have that use
    torch. decides: what those have that decide if a project runs; None: none does.
    """

    one: str
    more: str
    ends: tuple[str, ...]
    decides: re.Pattern[bytes] | None = None
    words: re.Pattern[bytes] = _TORCH


# The read ones are not listed here: they are not among the files that were looked at.
KINDS = (
    Kind("Python file", "Python files", (".py", ".pyi")),
    Kind("notebook", "notebooks", (".ipynb",), _TORCH),
    Kind(
        "C++ or CUDA file",
        "C++ and CUDA files",
        (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp"),
        _TORCH_OR_BELOW,
        _TORCH_OR_BELOW,
    ),
    Kind("Cython file", "Cython files", (".pyx", ".pxd"), _TORCH),
    Kind("shell script", "shell scripts", (".sh", ".bash", ".zsh", ".slurm", ".sbatch"), _STARTS),
    Kind("Makefile", "Makefiles", ("Makefile", ".mk"), _STARTS),
    Kind("Dockerfile", "Dockerfiles", ("Dockerfile", ".dockerfile"), _STARTS),
    Kind("YAML file", "YAML files", (".yaml", ".yml")),
    Kind("Markdown or reST file", "Markdown and reST files", (".md", ".rst")),
)


def not_read(
    paths: Sequence[Path],
    settings: Settings,
    files: Collection[Path],
    problems: Iterable[Problem],
    here: Path,
) -> list[Unread]:
    """What was not read below some paths, in order of kind.

    Args:
        paths: as they were given.
        settings: of the run; what git ignores, and what is in no project's own directories, does not count.
        files: those that were looked at.
        problems: those of them, and other paths, that could not be done.
        here: the directory that paths are shown relative to.
    """
    found: list[Unread] = []
    failed = sorted({problem.path for problem in problems})
    if failed:
        noun = "file" if len(failed) == 1 else "files"
        found.append(_unread(noun, failed, FAILED, here))
    read_already = {*files, *failed}
    others = [path for path in _others(paths, settings) if path not in read_already]
    for kind in KINDS:
        mine = [path for path in others if path.name.endswith(kind.ends) and _has(path, kind.words)]
        if not mine:
            continue
        noun = kind.one if len(mine) == 1 else kind.more
        why = _MENTION if len(mine) == 1 else _MENTIONS
        if kind is KINDS[0]:
            why = "excluded"
        decides = kind.decides
        matters = decides is not None and (decides is kind.words or any(_has(path, decides) for path in mine))
        found.append(_unread(noun, mine, why, here, matters))
    return found


def _others(paths: Sequence[Path], settings: Settings) -> list[Path]:
    """The files of all kinds, those too that the configuration excludes."""
    from torchmigrate.project.discover import DEFAULT_EXCLUDE, discover_for

    every = Settings(
        root=settings.root,
        exclude=tuple(name for name in DEFAULT_EXCLUDE if name not in _OUTPUTS),
        respect_gitignore=settings.respect_gitignore,
    )
    return discover_for(paths, lambda _: every, tuple(end for kind in KINDS for end in kind.ends)).files


def _has(path: Path, words: re.Pattern[bytes]) -> bool:
    try:
        return words.search(read(path, MOST_READ)) is not None
    except UnreadableError:
        return True  # unknown


def _unread(kind: str, paths: Sequence[Path], why: str, here: Path, matters: bool = True) -> Unread:
    examples = tuple(shown_path(path, here) for path in paths[:MOST_EXAMPLES])
    return Unread(kind, len(paths), why, examples, matters)
