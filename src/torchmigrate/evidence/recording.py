"""A recording of a command: what its environment needs, and what is kept of it.

`torchmigrate record`, the plugin of pytest and all other code that runs a project use it in the same way:

    recording = begin(root, names)
    subprocess.run(command, env=recording.environment(os.environ))
    recording.end()
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from torchmigrate.evidence.inject import torchmigrate_recorder as recorder
from torchmigrate.evidence.location import DIRECTORY, FILE
from torchmigrate.files.reading import UnreadableError, explain_os_error

INJECTED = Path(recorder.__file__).parent
_PARTS, _SETTINGS = "record", "settings.json"
_OPTIONS_WITH_VALUE = frozenset(["-W", "-X", "--check-hash-based-pycs"])


class Recording(Struct, frozen=True):
    """A recording under way. root: the directory of the project, of whose files places are recorded."""

    root: Path

    @property
    def settings(self) -> Path:
        """The file that tells the recorder what to look for."""
        return self.root / DIRECTORY / _PARTS / _SETTINGS

    @property
    def evidence(self) -> Path:
        """Where what was seen is kept."""
        return self.root / DIRECTORY / FILE

    def environment(self, around: Mapping[str, str]) -> dict[str, str]:
        """The variables of a process in which, and in whose children, every Python records."""
        paths = [str(INJECTED), *filter(None, [around.get("PYTHONPATH")])]
        return {**around, "PYTHONPATH": os.pathsep.join(paths), recorder.SETTINGS: str(self.settings)}

    def start(self) -> None:
        """Record in this process, and in those that it starts from here on."""
        os.environ.update(self.environment(os.environ))
        recorder.start(str(self.settings))

    def end(self) -> int:
        """Put what all processes saw to what was known; how many places are known now.

        Raises UnreadableError where it cannot be written.
        """
        recorder.finish()  # where this process was recorded itself
        try:
            return recorder.merge(str(self.root))
        except OSError as error:
            raise UnreadableError(f"cannot write: {explain_os_error(error)}") from None


def is_under_way() -> bool:
    """Whether this process is recorded already, as a part of what somebody else began."""
    return recorder.SETTINGS in os.environ


def begin(root: Path, names: Iterable[str]) -> Recording:
    """Prepare a directory for a recording.

    names: of attributes and functions that are looked for.

    Raises UnreadableError where that cannot be, with the reason.
    """
    recording = Recording(Path(os.path.realpath(root)))
    directory = recording.root / DIRECTORY
    parts = recording.settings.parent
    try:
        for place in (directory, parts):
            if place.is_symlink():
                raise UnreadableError(f"{place.name} is a symbolic link: not written")
            place.mkdir(exist_ok=True)
        ignored = directory / ".gitignore"
        if not os.path.lexists(ignored):
            ignored.write_text("*\n")
        recorder.write_json(
            str(recording.settings), {"root": str(recording.root), "names": sorted(set(names))}
        )
    except OSError as error:
        raise UnreadableError(f"cannot write: {explain_os_error(error)}") from None
    return recording


def recorded_command(command: Sequence[str]) -> list[str]:
    """A command, with what lets Python record the script that it runs itself: `python train.py`.

    All else that a Python imports is recorded without.
    """
    found = list(command)
    name = Path(found[0]).name.removesuffix(".exe") if found else ""
    if name.rstrip("0123456789.") != "python":
        return found
    number = 1
    while number < len(found) and found[number].startswith("-"):
        option = found[number]
        if option in ("-", "--") or option.startswith(("-m", "-c")):
            return found
        number += 2 if option in _OPTIONS_WITH_VALUE else 1
    if number < len(found) and found[number].endswith(".py"):
        found.insert(number, str(INJECTED / "run_script.py"))
    return found
