"""Life-like files: tests/fixtures/NAME/before.py, and what becomes of it.

after.py         with --fix; absent: nothing changes
after_unsafe.py  with --fix --unsafe-fixes; absent: the same as after.py
findings.txt     what is found in before.py, `line:column CODE` each; absent: nothing
select.txt       codes of rules that are off by default and on for this one; absent: none

After a change of behaviour, `python tests/test_fixtures.py [NAME...]` writes the first three anew; read the
diff before committing it.
"""

from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "src")]

from harness.catalogue import catalogue

from torchmigrate.config import Settings
from torchmigrate.engine import Engine
from torchmigrate.selection import default_codes
from torchmigrate.source import Source

FIXTURES = sorted(path.parent for path in Path(__file__).with_name("fixtures").glob("*/before.py"))


def engine(directory: Path = Path(__file__).parent, **options: bool) -> Engine:
    """All rules that are on by default, and those that the fixture in the directory selects, if it is one."""
    rules = catalogue().rules
    known = {key: rule.code for rule in rules for key in (rule.code, rule.name)}
    listed = directory / "select.txt"
    codes = default_codes(rules) | set(listed.read_text().split() if listed.exists() else ())
    return Engine(catalogue(), Settings(codes=codes, known=known, **options))


def found(path: Path) -> list[str]:
    """The findings in a file as the lines of findings.txt."""
    source = Source.read(path)
    result = engine(path.parent).check_source(source, path)
    assert not result.problems
    return [":".join(map(str, source.position(item.start))) + f" {item.code}" for item in result.findings]


def fixed(path: Path, *, unsafe: bool) -> bytes:
    """The bytes of a file after its fixes were applied."""
    source = Source.read(path)
    result = engine(path.parent, fix=True, unsafe_fixes=unsafe).check_source(source, path)
    assert not result.problems
    return source.data if result.new_text is None else source.encode(result.new_text)


def expected(directory: Path, *, unsafe: bool) -> bytes:
    names = ["after_unsafe.py"] * unsafe + ["after.py", "before.py"]
    return next(path for name in names if (path := directory / name).exists()).read_bytes()


@pytest.mark.parametrize("directory", FIXTURES, ids=lambda path: path.name)
def test_findings(directory: Path):
    listed = directory / "findings.txt"
    assert found(directory / "before.py") == (listed.read_text().splitlines() if listed.exists() else [])


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("directory", FIXTURES, ids=lambda path: path.name)
def test_fixes(directory: Path, unsafe: bool, tmp_path: Path):
    data = fixed(directory / "before.py", unsafe=unsafe)
    assert data.decode() == expected(directory, unsafe=unsafe).decode()
    ast.parse(data)
    again = tmp_path / "before.py"
    again.write_bytes(data)
    if (directory / "select.txt").exists():
        shutil.copy(directory / "select.txt", tmp_path)
    assert fixed(again, unsafe=unsafe) == data


def update(directory: Path) -> None:
    """Write what is expected of a fixture from what happens now."""
    path = directory / "before.py"
    listed = "".join(line + "\n" for line in found(path))
    (directory / "findings.txt").write_text(listed) if listed else (directory / "findings.txt").unlink(
        missing_ok=True
    )
    before = path.read_bytes()
    for name, unsafe in (("after.py", False), ("after_unsafe.py", True)):
        data = fixed(path, unsafe=unsafe)
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
