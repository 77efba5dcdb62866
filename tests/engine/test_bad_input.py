"""Input that cannot be checked: one clear line for each, and the rest is still done."""

from __future__ import annotations

import ast
import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchmigrate.config.settings import Settings
from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Problem
from torchmigrate.project import discover as discovering
from torchmigrate.project.discover import Discovery, discover_for
from torchmigrate.rewrite.apply import write_atomic
from torchmigrate.run.runner import run
from torchmigrate.source.text import Source, SourceError


def discovered(paths: list[Path]) -> Discovery:
    settings = Settings()
    return discover_for(paths, lambda _: settings)


def check(path: Path) -> FileResult:
    try:
        Source.read(path).parse()
    except SourceError as error:
        return FileResult(path, problems=[Problem(path, error.reason, error.line)])
    return FileResult(path)


def problem(path: Path) -> tuple[str, int | None]:
    (only,) = check(path).problems
    assert only.reason
    assert "\n" not in only.reason
    return only.reason, only.line


BAD = {
    "binary.py": (bytes(range(256)), "contains NUL bytes: not Python source", 1),
    "compiled.py": (b"\xa7\r\r\n\0\0\0\0", "contains NUL bytes: not Python source", 3),
    "picture.py": (b"\x89PNG\r\n\x1a\n\xff\xd8", "not utf-8 text: byte 0x89 cannot be decoded", 1),
    "latin.py": (b"# caf\xe9\n", "not utf-8 text: byte 0xe9 cannot be decoded", 1),
    "cookie.py": (b"# coding: klingon\nx = 1\n", "unknown encoding: klingon", 1),
    "python2.py": (
        b"import torch\nprint torch.ger(a, b)\n",
        "Python 2 code (print statement): convert it to Python 3 first",
        2,
    ),
    "syntax.py": (b"x = (1,\n", "syntax error: '(' was never closed", 1),
    "template.py": (b"import {{ module }}\n", "syntax error", 1),
    "conflict.py": (b"<<<<<<< HEAD\nx = 1\n=======\n", "syntax error", 1),
    "tabs.py": (
        b"if x:\n\ty = 1\n        z = 2\n",
        "syntax error: inconsistent use of tabs and spaces in indentation",
        3,
    ),
}
GOOD = {
    "empty.py": b"",
    "newline.py": b"\n",
    "comment.py": b"# nothing",
    "bom.py": b"\xef\xbb\xbf",
    "feed.py": b"\x0c",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, (data, _, _) in BAD.items():
        (tmp_path / name).write_bytes(data)
    for name, data in GOOD.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_bad_file_has_its_line_and_the_rest_is_done(tree: Path, jobs: int) -> None:
    found = discovered([tree])
    results = list(run(found.files, check, jobs))
    assert [result.path.name for result in results] == sorted([*BAD, *GOOD])
    for result in results:
        expected = BAD.get(result.path.name)
        if expected is None:
            assert result.problems == []
        else:
            (only,) = result.problems
            assert (only.path, only.line) == (result.path, expected[2])
            assert only.reason == expected[1] or only.reason.startswith(expected[1] + ":")


def test_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "d.py").mkdir()
    (tmp_path / "loop.py").symlink_to("loop.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert problem(tmp_path / "d.py") == ("is a directory", None)
    assert problem(tmp_path / "loop.py") == ("cannot read: too many levels of symbolic links", None)
    assert problem(tmp_path / "pipe.py") == ("is not a regular file", None)
    assert discovered([tmp_path]).files == []  # and nothing waits for the pipe


def test_vanished_file(tree: Path) -> None:
    found = discovered([tree])
    (tree / "empty.py").unlink()
    assert problem(tree / "empty.py") == ("cannot read: no such file or directory", None)
    assert len(list(run(found.files, check, 1))) == len(found.files)


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.py"
    path.write_text("x = 1\n")
    path.chmod(0)
    # Root reads it all the same.
    reasons = [item.reason for item in check(path).problems]
    assert reasons == ([] if os.geteuid() == 0 else ["cannot read: permission denied"])

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("torchmigrate.files.reading.os.open", refuse)
    assert problem(path) == ("cannot read: permission denied", None)


def test_missing_paths(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    found = discovered([tmp_path / "none", tmp_path / "m.py", tmp_path / "loop", tmp_path / "m.py/x"])
    assert found.files == [tmp_path / "m.py"]
    assert [(item.path, item.reason) for item in found.problems] == [
        (tmp_path / "loop", "too many levels of symbolic links"),
        (tmp_path / "m.py/x", "not a directory"),
        (tmp_path / "none", "no such file or directory"),
    ]


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("")
    (tmp_path / "self").symlink_to(".", target_is_directory=True)
    (tmp_path / "a.py").symlink_to("b.py")
    (tmp_path / "b.py").symlink_to("a.py")
    (tmp_path / "gone.py").symlink_to("nowhere.py")
    found = discovered([tmp_path])
    assert found.files == [tmp_path / "m.py"]
    assert [(item.path.name, item.reason) for item in found.problems] == [
        ("a.py", "broken symbolic link: too many levels of symbolic links"),
        ("b.py", "broken symbolic link: too many levels of symbolic links"),
        ("gone.py", "broken symbolic link: no such file or directory"),
    ]


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "closed"
    directory.mkdir()
    (directory / "x.py").write_text("")
    (tmp_path / "y.py").write_text("")
    directory.chmod(0)
    yield directory
    directory.chmod(0o755)


def test_directory_without_permission(closed: Path) -> None:
    found = discovered([closed.parent])
    if os.geteuid() == 0:  # root enters it all the same
        assert [path.name for path in found.files] == ["x.py", "y.py"]
        assert found.problems == []
    else:
        assert [path.name for path in found.files] == ["y.py"]
        assert [(item.path, item.reason) for item in found.problems] == [
            (closed, "cannot read the directory: permission denied")
        ]


def test_directory_that_cannot_be_listed(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refuse(path: str) -> object:
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(discovering.os, "scandir", refuse)
    found = discovered([closed.parent])
    assert [path.name for path in found.files] == ["y.py"]
    assert [(item.path, item.reason) for item in found.problems] == [
        (closed, "cannot read the directory: permission denied")
    ]


def test_read_only_file_and_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.py"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(SourceError, match=r"^cannot write: the file is read-only$"):
        write_atomic(path, b"new")
    path.chmod(0o644)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SourceError, match=r"^cannot write: no space left on device$"):
        write_atomic(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


DEEP = {
    "sum": "+".join(["a"] * 100_000),
    "power": "**".join(["a"] * 20_000),
    "attributes": "a" + ".b" * 50_000,
    "calls": "a" + "()" * 50_000,
    "parentheses": "(" * 5_000 + ")" * 5_000,
    "brackets": "[" * 150 + "]" * 150,
    "minus": "-" * 50_000 + "1",
    "not": "not " * 5_000 + "a",
    "lambda": "lambda: " * 3_000 + "a",
    "elif": "if a: pass\n" + "elif a: pass\n" * 5_000,
    "blocks": "".join(" " * depth + "if a:\n" for depth in range(101)) + " " * 101 + "pass",
    "strings": "x = (" + "'a'\n" * 20_000 + ")",
}


@pytest.mark.parametrize("name", DEEP)
def test_deeply_nested(tmp_path: Path, name: str) -> None:
    """Python itself refuses some of these, which differ from one version to the next; none may crash."""
    path = tmp_path / "m.py"
    path.write_text(DEEP[name])
    for item in check(path).problems:
        assert item.reason == "nested too deeply for Python's own parser" or item.reason.startswith(
            ("syntax error: too many nested parentheses", "syntax error: too many levels of indentation")
        )


def test_long_file(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(
        b"".join(b"x%d = torch.f('\xc3\xa9')  # \xe2\x82\xac\r\n" % number for number in range(100_000))
    )
    source = Source.read(path)
    tree = source.parse()
    assert source.line_count == 100_000
    for node in tree.body[::997]:
        assert isinstance(node, ast.Assign)
        assert source.segment(node.value) == "torch.f('é')"
        assert source.position(source.span(node)[0]) == (node.lineno, 1)
    assert source.encode(source.text) == source.data


def test_long_line(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("x = ['é', " + "name, " * 100_000 + "'é']\n", "utf-8")
    source = Source.read(path)
    names = [node for node in ast.walk(source.parse()) if isinstance(node, ast.Name)]
    assert len(names) == 100_001
    assert {source.segment(node) for node in names} == {"x", "name"}


def test_noise(tmp_path: Path) -> None:
    """Whatever the bytes are: a text that is written back exactly, or one line that says why not."""
    chance = random.Random(5)
    pieces = [
        b"x = 1",
        b"\n",
        b"\r\n",
        b"\r",
        b"\x0c",
        b"\t",
        b"'",
        b'"""',
        b"\\",
        b"(",
        b"\xff",
        b"\xc3\xa9",
        b"\xef\xbb\xbf",
    ]
    pieces += [
        b"# coding: latin-1",
        b"# coding: utf-7",
        b"# coding: punycode",
        b"# coding: unicode_escape",
        b"\0",
        b"\x1a",
    ]
    pieces += [
        b"# coding: idna",
        b"# coding: undefined",
        b"# coding: utf-16",
        b"+AGE-",
        b"\\ud800",
        b"if x:",
        b"print x",
        b"async=",
    ]
    readable = 0
    for _ in range(3000):
        data = b"".join(chance.choice(pieces) for _ in range(chance.randrange(8)))
        try:
            source = Source.from_bytes(data, tmp_path)
            readable += 1
            assert source.encode(source.text) == data
            source.parse()
        except SourceError as error:
            assert error.reason
            assert "\n" not in error.reason
    assert readable > 1000
