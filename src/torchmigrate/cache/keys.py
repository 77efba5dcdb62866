"""What the result of a file depends on, apart from other files: all of it is in its key.

Whatever a rule reads from the machine must be here or in `project.questions`; otherwise an old result is
taken for a new one.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import asdict

import torchmigrate
from torchmigrate.catalogue.store import rules_directory
from torchmigrate.config.settings import Settings
from torchmigrate.engine.api_rules.beside import is_directory_beside
from torchmigrate.engine.api_rules.own import held_libraries
from torchmigrate.evidence import location
from torchmigrate.files.digests import blake2b, digest_of
from torchmigrate.files.paths import entries, remembered
from torchmigrate.files.reading import MEGABYTE, UnreadableError, read
from torchmigrate.project.listing import project_around
from torchmigrate.project.own_packages import own_packages
from torchmigrate.project.questions import plain
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.source.kinds import KINDS

FORMAT = "1"  # of what is stored
_PACKAGE = Path(torchmigrate.__file__).parent
# What reads code and configurations for us: another release of it may read them otherwise.
_LIBRARIES = ("libcst", "yaml", "packaging", "tomli")
_DISTRIBUTIONS = ("libcst-", "pyyaml-", "packaging-", "tomli-")
# What says which files are checked, and where settings are from, changes nothing in the result of one.
_OF_NO_RESULT = frozenset(
    [
        *("fix", "exclude", "extend_exclude", "include", "extend_include", "respect_gitignore"),
        *("force_exclude", "detect", "minimum_from", "cache_dir", "baseline", "keeps_line_length"),
    ]
)
_EVIDENCE = 16 * MEGABYTE  # bytes that are read of it


@functools.cache
def program() -> str:
    """The fingerprint of this program, its rules, data and libraries, and of the Python that runs it."""
    parts = [FORMAT, torchmigrate.__version__, sys.implementation.name, sys.version]
    parts += sorted(set(_distributions()))
    parts += sorted(_installed() or _checkout())
    return _digest(parts)


def _distributions() -> Iterator[str]:
    """The installed releases of the libraries."""
    for library in _LIBRARIES:
        spec = importlib.util.find_spec(library)
        if spec is not None and spec.origin is not None:
            for name in entries(Path(spec.origin).parent.parent):
                if name.lower().startswith(_DISTRIBUTIONS):
                    yield name


def _installed() -> list[str]:
    """The files of the package with their hashes, as the installer recorded them; none in a checkout."""
    name = f"torchmigrate-{torchmigrate.__version__}.dist-info"
    if name not in entries(_PACKAGE.parent):
        return []
    try:
        record = read(_PACKAGE.parent / name / "RECORD", 10 * MEGABYTE).decode("utf-8", "replace")
    except UnreadableError:
        return []
    return [line for line in record.splitlines() if line.startswith("torchmigrate/") and "sha256=" in line]


def _checkout() -> Iterator[str]:
    """The files of the package, and the rules, with the time of their last change."""
    for top in (_PACKAGE, rules_directory()):
        for place, names, files in os.walk(top):
            if "__pycache__" in names:
                names.remove("__pycache__")
            for name in files:
                path = os.path.join(place, name)  # noqa: PTH118 (of some hundred files)
                found = os.stat(path)  # noqa: PTH116
                yield f"{path}:{found.st_mtime_ns}:{found.st_size}"


def key_of_settings(settings: Settings, rules: str) -> str:
    """The fingerprint of the program with some settings.

    Args:
        rules: a digest of the project's own rules.
    """
    fields = {
        key: sorted(value.items()) if key == "known" else plain(value)
        for key, value in asdict(settings).items()
        if key not in _OF_NO_RESULT
    }
    fields["per_file_ignores"] = [[pattern, sorted(codes)] for pattern, codes in settings.per_file_ignores]
    fields["root"] = str(settings.root.absolute())
    return _digest([program(), rules, json.dumps(fields, sort_keys=True)])


def key_of_file(path: Path, absolute: str, real_directory: str, settings: Settings, digest: bytes) -> bytes:
    """The key of a file, its surroundings and the settings that apply to it.

    Args:
        absolute: its path.
        digest: the digest of its content.
    """
    around = _around(os.path.dirname(path), settings.root, settings.evidence)  # noqa: PTH120 (of every file)
    more: object = None
    if path.stem in LIBRARY_ROOTS:  # it may be what is imported there itself
        more = sorted(own_packages(path))
    if path.suffix not in KINDS or path.name == "setup.py":  # what names other files
        more = more, project_around(path, settings.root)
    parts = f"{absolute}\0{real_directory}\0{around}\0{more}"
    return blake2b(os.fsencode(parts) + digest, digest_size=16).digest()


@remembered
def _around(given: str, root: Path, evidence: bool) -> str:
    """What is around the files of a directory: libraries, packages, and a digest of the evidence."""
    directory = Path(given).absolute()
    return repr(
        (
            sorted(own_packages(directory / "-")),
            sorted(held_libraries(directory)),
            is_directory_beside(Path(given), directory, root.absolute()),
            _evidence(directory) if evidence else "",
        )
    )


def _evidence(directory: Path) -> str:
    path = location.find(directory)
    if path is None:
        return ""
    try:
        return f"{path} {digest_of(read(path, _EVIDENCE, within=path.parent.parent)).hex()}"
    except UnreadableError as error:
        return f"{path} {error.reason}"


def _digest(parts: list[str]) -> str:
    return blake2b("\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
