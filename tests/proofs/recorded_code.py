"""Whole programs that have recordings of old releases: the fixtures, each with a driver that calls what is in it.

A driver, `tests/recorded_programs/NAME.py`, imports the program of the fixture NAME as `program`, and assigns
`results`, what came out, and `raised`, what did not run. Recorded is what `before.py` gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
DRIVERS = TESTS / "recorded_programs"
FIXTURES = TESTS / "fixtures"
SUPPORT = DRIVERS / "support.py"

# Both files are imported from the working directory, which is empty and thrown away.
WRITTEN = """\
_ = __import__("sys").path.insert(0, "")
with open("program.py", "wb") as _:
    _.write({program!r})
with open("support.py", "wb") as _:
    _.write({support!r})
"""


def drivers() -> dict[str, Path]:
    """The driver of every fixture that has one."""
    return {path.stem: path for path in sorted(DRIVERS.glob("*.py")) if path != SUPPORT}


def driven(name: str, file: str = "before.py") -> str:
    """Code that runs one of the files of a fixture through its driver."""
    text = WRITTEN.format(program=(FIXTURES / name / file).read_bytes(), support=SUPPORT.read_bytes())
    return text + drivers()[name].read_text("utf-8")


def cases() -> Iterator[tuple[str, str]]:
    """The name of every such program, and the code that runs it."""
    for name in drivers():
        yield name, driven(name)
