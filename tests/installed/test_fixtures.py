"""Life-like files: tests/fixtures/NAME/before.py, and what becomes of it.

after.py         with --fix; absent: nothing changes
after_unsafe.py  with --fix --unsafe-fixes; absent: the same as after.py
findings.txt     what is found in before.py, `line:column CODE` each; absent: nothing
select.txt       codes of rules that are off by default and on for this one; absent: none

The program runs as a user runs it, over copies of all of them. After a change of behaviour,
`python tests/installed/test_fixtures.py [NAME...]` writes the first three anew; read the diff before committing it.
"""

from __future__ import annotations

import ast
import functools
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from harness.launcher import launch

FIXTURES = sorted(path.parent for path in (Path(__file__).parents[1] / "fixtures").glob("*/before.py"))
SAFE, UNSAFE = ("--fix",), ("--fix", "--unsafe-fixes")
PLACE = re.compile(r"(.+?)\.py:(\d+:\d+): (\w+) .*\n")


def selected(directory: Path) -> str:
    """The rules that a fixture selects beside the default ones, as `--extend-select` takes them."""
    listed = directory / "select.txt"
    return ",".join(listed.read_text().split()) if listed.exists() else ""


def torchmigrate(directory: Path, names: Sequence[str], *options: str) -> str:
    """What a run over some of the fixtures in a directory prints."""
    done = launch(
        directory,
        *("check", "--isolated", "--exit-zero", "--output-format", "concise"),
        *options,
        *names,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_all(directory: Path, *options: str) -> dict[str, list[str]]:
    """Run over the copies of all fixtures in a directory; what is found in each, as in findings.txt."""
    found: dict[str, list[str]] = {fixture.name: [] for fixture in FIXTURES}
    for selection in sorted(set(map(selected, FIXTURES))):
        names = [f"{fixture.name}.py" for fixture in FIXTURES if selected(fixture) == selection]
        extended = ("--extend-select", selection) if selection else ()
        for line in torchmigrate(directory, names, *extended, *options).splitlines(keepends=True):
            place = PLACE.fullmatch(line)
            assert place is not None, line
            found[place[1]].append(f"{place[2]} {place[3]}")
    return found


@functools.cache
def results(options: tuple[str, ...]) -> tuple[dict[str, list[str]], dict[str, bytes], dict[str, bytes]]:
    """Of a run with these options: what is found (and left), each file, and each file after a second run."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for fixture in FIXTURES:
            shutil.copy(fixture / "before.py", directory / f"{fixture.name}.py")
        found = run_all(directory, *options)
        once = texts(directory)
        if options:
            run_all(directory, *options)
        return found, once, texts(directory)


def texts(directory: Path) -> dict[str, bytes]:
    return {fixture.name: (directory / f"{fixture.name}.py").read_bytes() for fixture in FIXTURES}


def expected(directory: Path, *, unsafe: bool) -> bytes:
    names = ["after_unsafe.py"] * unsafe + ["after.py", "before.py"]
    return next(path for name in names if (path := directory / name).exists()).read_bytes()


@pytest.mark.parametrize("directory", FIXTURES, ids=lambda path: path.name)
def test_findings(directory: Path):
    listed = directory / "findings.txt"
    found, _, _ = results(())
    assert found[directory.name] == (listed.read_text().splitlines() if listed.exists() else [])


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("directory", FIXTURES, ids=lambda path: path.name)
def test_fixes(directory: Path, unsafe: bool):
    _, once, twice = results(UNSAFE if unsafe else SAFE)
    data = once[directory.name]
    assert data.decode() == expected(directory, unsafe=unsafe).decode()
    ast.parse(data)
    assert twice[directory.name] == data


def update(directory: Path) -> None:
    """Write what is expected of a fixture from what happens now."""
    path = directory / "before.py"
    listed = "".join(line + "\n" for line in results(())[0][directory.name])
    (directory / "findings.txt").write_text(listed) if listed else (directory / "findings.txt").unlink(
        missing_ok=True
    )
    before = path.read_bytes()
    for name, options in (("after.py", SAFE), ("after_unsafe.py", UNSAFE)):
        data = results(options)[1][directory.name]
        target = directory / name
        if data == before:
            target.unlink(missing_ok=True)
        else:
            target.write_bytes(data)
            before = data


if __name__ == "__main__":
    for directory in FIXTURES:
        if not sys.argv[1:] or directory.name in sys.argv[1:]:
            update(directory)
