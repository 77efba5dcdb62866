"""Applying fixes: what fits together, what waits, and what is written."""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from torchmigrate.findings import Applicability, Edit, Fix
from torchmigrate.rewrite.apply import (
    Applied,
    apply,
    map_offset,
    save,
    splice,
    unified_diff,
    write_atomic,
)
from torchmigrate.source.text import Source, SourceError


def fix(*edits: Edit, title: str = "") -> Fix:
    return Fix(title, Applicability.SAFE, edits)


def replace(text: str, old: str, new: str) -> Edit:
    start = text.index(old)
    return Edit(start, start + len(old), new)


def line(offset: int, text: str) -> Edit:
    return Edit(offset, offset, text, mergeable=True)


# ---- apply ------------------------------------------------------------------------------------------


def test_all_that_fit_are_applied() -> None:
    text = "ger(a, b) + qr(c)"
    one, other = fix(replace(text, "ger", "outer")), fix(replace(text, "qr", "linalg.qr"))
    done = apply(text, [other, one])
    assert done.text == "outer(a, b) + linalg.qr(c)"
    assert (done.applied, done.deferred) == ([one, other], [])
    assert apply(text, []) == Applied(text)


def test_overlap_waits_and_the_fix_waits_as_a_whole() -> None:
    text = "solve(solve(a, b), c); d"
    outer = fix(replace(text, "solve(solve(a, b), c)", "new(c, solve(a, b))"))
    inner = fix(replace(text, "solve(a", "new(a"), replace(text, "d", "e"))
    done = apply(text, [inner, outer])
    assert done.text == "new(c, solve(a, b)); d"
    assert (done.applied, done.deferred) == ([outer], [inner])


def test_neighbours_wait() -> None:
    text = "from m import a, b"
    done = apply(text, [fix(replace(text, "a, ", "")), fix(replace(text, "b", ""))])
    assert done.text == "from m import b"
    assert len(done.deferred) == 1
    done = apply("x", [fix(Edit(0, 0, "f(")), fix(Edit(0, 1, "y"))])
    assert (done.text, len(done.deferred)) == ("f(x", 1)


def test_insertions_at_one_place_of_two_fixes_conflict() -> None:
    done = apply("x", [fix(Edit(0, 0, "f("), Edit(1, 1, ")")), fix(Edit(0, 0, "g("), Edit(1, 1, ")"))])
    assert done.text == "f(x)"
    assert len(done.deferred) == 1


def test_equal_fixes_are_one() -> None:
    shared = fix(Edit(0, 1, "y"))
    done = apply("x", [shared, fix(Edit(0, 1, "y")), shared])
    assert (done.text, done.applied, done.deferred) == ("y", [shared], [])


def test_imports_merge() -> None:
    text = "import torch\ng(a); h(b)\n"
    place = text.index("g(")
    one = fix(line(place, "import z\n"), replace(text, "g(", "z.g("))
    two = fix(line(place, "import z\n"), line(place, "import y\n"), replace(text, "h(", "y.h("))
    done = apply(text, [two, one])
    assert done.text == "import torch\nimport y\nimport z\nz.g(a); y.h(b)\n"
    assert done.applied == [one, two]


def test_import_before_an_insertion_at_the_same_place() -> None:
    done = apply("x", [fix(Edit(0, 0, "f("), line(0, "import f\n"), Edit(1, 1, ")"))])
    assert done.text == "import f\nf(x)"


def test_mergeable_replacements() -> None:
    text = "from m import a\na; a"
    head = Edit(0, 15, "from n import a", mergeable=True)
    same = [fix(head, Edit(16, 17, "b")), fix(head, Edit(19, 20, "c"))]
    assert apply(text, same).text == "from n import a\nb; c"
    other = fix(Edit(0, 15, "import n", mergeable=True), Edit(19, 20, "c"))
    done = apply(text, [same[0], other])
    assert (done.text, done.deferred) == ("from n import a\nb; a", [other])
    inside = fix(line(5, "x"))
    assert apply(text, [same[0], inside]).deferred == [same[0]]
    plain = fix(Edit(0, 15, "from n import a"))  # not mergeable: it must be the only one
    assert apply(text, [same[0], plain]).deferred == [same[0]]


def test_order_does_not_depend_on_the_order_given() -> None:
    chance = random.Random(1)
    text = "abcdefghijklmnopqrstuvwxyz" * 4
    fixes = []
    for number in range(60):
        edits = []
        position = chance.randrange(80)
        for _ in range(chance.randrange(1, 4)):
            position += chance.randrange(1, 6)
            length = chance.randrange(0, 4)
            edits.append(Edit(position, position + length, f"<{number}>", chance.random() < 0.2))
            position += length
        fixes.append(fix(*edits, title=str(number)))
    first = apply(text, fixes)
    assert first.applied
    assert first.deferred
    assert set(first.applied) | set(first.deferred) == set(fixes)
    for _ in range(20):
        chance.shuffle(fixes)
        assert apply(text, fixes) == first


def test_random_fixes_leave_every_other_character() -> None:
    chance = random.Random(2)
    for _ in range(200):
        text = "".join(chance.choice("ab \r\n\té\u2028🙂'") for _ in range(chance.randrange(60)))
        fixes = []
        for number in range(chance.randrange(1, 12)):
            start = chance.randrange(len(text) + 1)
            end = min(len(text), start + chance.randrange(4))
            fixes.append(fix(Edit(start, end, f"<{number}>", chance.random() < 0.3)))
        done = apply(text, fixes)
        assert len(done.applied) + len(done.deferred) == len(set(fixes))
        touched = set()
        position = 0
        rebuilt = ""
        for edit in done.edits:
            assert edit.start >= position  # no overlap
            rebuilt += text[position : edit.start] + edit.text
            position = edit.end
            touched.update(range(edit.start, edit.end))
        assert done.text == rebuilt + text[position:] == splice(text, done.edits)
        for offset, character in enumerate(text):
            if offset not in touched:
                assert done.text[map_offset(done.edits, offset)] == character
        assert map_offset(done.edits, len(text)) == len(done.text)
        alone = [edit for wanted in done.applied for edit in wanted.edits]
        assert set(done.edits) == set(alone)


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(0, 3, "x"), Edit(2, 4, "y")],
        [Edit(0, 3, "x"), Edit(1, 1, "y")],
        [Edit(1, 1, "x"), Edit(1, 1, "y")],
        [Edit(3, 2, "x")],
        [Edit(-1, 2, "x")],
        [Edit(4, 6, "x")],
        [],
    ],
)
def test_a_fix_must_make_sense(edits: list[Edit]) -> None:
    with pytest.raises(ValueError, match="TM000 'Bad'"):
        apply("abcde", [Fix("Bad", Applicability.SAFE, tuple(edits), code="TM000")])


def test_map_offset_in_a_replacement() -> None:
    edits = [Edit(2, 4, "xyz"), Edit(6, 6, "++")]
    assert [map_offset(edits, offset) for offset in range(8)] == [0, 1, 2, 2, 5, 6, 9, 10]


def test_many_fixes_are_fast() -> None:
    text = "abc " * 5000
    done = apply(text, [fix(Edit(at, at + 3, "z"), line(0, "import z\n")) for at in range(0, len(text), 4)])
    assert done.text == "import z\n" + "z " * 5000


# ---- diff -------------------------------------------------------------------------------------------

TEXTS = [
    "",
    "a\n",
    "a",
    "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n",
    "a\nb\nc\nX\ne\nf\ng\nh\ni\nJ",
    "a\r\nb\r\n",
    "a\r\nx\r\n",
    "a\x0cb\nc\u2028d\n",
    "a\x0cb\nc\u2028e",
    "a\rb\rc",
    "\n\n\n",
]


@pytest.mark.parametrize("name", ["m.py", "a dir/m.py", 'q"uo\\te.py', "tab\t.py", "é.py"])
def test_git_applies_the_diff(tmp_path: Path, name: str) -> None:
    git = shutil.which("git")
    assert git is not None
    for old in TEXTS:
        for new in TEXTS:
            if old == new or not old or not new:  # git tells creating a file from filling one
                continue
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(old.encode())
            diff = unified_diff(Path(name), old, new)
            command = [git, "apply", "-p1", "--whitespace=nowarn", "-"]
            done = subprocess.run(command, cwd=tmp_path, input=diff.encode(), capture_output=True)
            assert done.returncode == 0, (old, new, diff, done.stderr)
            assert path.read_bytes() == new.encode()


def test_diff_text() -> None:
    assert unified_diff("a/b.py", "x\ny\n", "x\nz") == (
        "--- a/a/b.py\n+++ b/a/b.py\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n\\ No newline at end of file\n"
    )
    assert unified_diff(Path("/abs/m.py"), "x\n", "y\n").startswith(
        "--- a/abs/m.py\n+++ b/abs/m.py\n@@ -1 +1 @@\n"
    )
    assert unified_diff("m.py", "x\n", "x\n") == ""


# ---- writing ----------------------------------------------------------------------------------------


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "m.py"
    path.write_bytes(b"old\r\n")
    return path


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def refused(path: Path) -> str:
    """Why it was not written; nothing changed and nothing is left behind."""
    content, listing = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(SourceError) as error:
        write_atomic(path, b"new\n")
    assert path.read_bytes() == content
    assert sorted(path.parent.iterdir()) == listing
    return error.value.reason


def test_write(target: Path) -> None:
    target.chmod(0o640)
    before = target.stat()
    write_atomic(target, b"new\r\n\xff")
    assert target.read_bytes() == b"new\r\n\xff"
    after = target.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert list(target.parent.iterdir()) == [target]


def test_write_keeps_the_owner(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(os, "chown", lambda path, uid, gid: asked.append((uid, gid)))
    write_atomic(target, b"new")
    assert asked == [(target.stat().st_uid, target.stat().st_gid)]
    monkeypatch.setattr(os, "chown", failing(errno.EPERM))
    write_atomic(target, b"newer")
    assert target.read_bytes() == b"newer"


def test_write_through_links(target: Path, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    link, second = tmp_path / "d/link.py", tmp_path / "second.py"
    link.symlink_to("../m.py")
    second.symlink_to("d/link.py")
    write_atomic(second, b"new")
    assert target.read_bytes() == b"new"
    assert link.is_symlink()
    assert second.is_symlink()
    assert list((tmp_path / "d").iterdir()) == [link]


def test_read_only_file(target: Path) -> None:
    target.chmod(0o444)
    assert refused(target) == "cannot write: the file is read-only"
    assert stat.S_IMODE(target.stat().st_mode) == 0o444


def test_read_only_directory(target: Path) -> None:
    target.parent.chmod(0o555)
    try:
        assert refused(target) == "cannot write: the directory is read-only"
    finally:
        target.parent.chmod(0o755)


@pytest.mark.parametrize(
    ("function", "number", "reason"),
    [
        ("os.fsync", errno.ENOSPC, "cannot write: no space left on device"),
        ("os.fsync", errno.EIO, "cannot write: input/output error"),
        ("pathlib.Path.replace", errno.EROFS, "cannot write: read-only file system"),
        ("os.open", errno.ENOSPC, "cannot write: no space left on device"),
    ],
)
def test_failures_leave_everything(
    target: Path, monkeypatch: pytest.MonkeyPatch, function: str, number: int, reason: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(function, failing(number))
        with pytest.raises(SourceError) as error:
            write_atomic(target, b"new")
    assert error.value.reason == reason
    assert target.read_bytes() == b"old\r\n"
    assert list(target.parent.iterdir()) == [target]


def test_interrupt_leaves_no_temporary_file(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old\r\n"
    assert list(target.parent.iterdir()) == [target]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "d.py").mkdir()
    (tmp_path / "loop.py").symlink_to("loop.py")
    reasons = []
    for name in ("none.py", "d.py", "loop.py", "none/m.py"):
        with pytest.raises(SourceError) as error:
            write_atomic(tmp_path / name, b"")
        reasons.append(error.value.reason)
    assert reasons == [
        "cannot write: no such file or directory",
        "cannot write: is not a regular file",
        "cannot write: too many levels of symbolic links",
        "cannot write: no such file or directory",
    ]


def test_save(target: Path) -> None:
    data = "\ufeff# coding: utf-8\r\nger = 'é'\r\n".encode()
    target.write_bytes(data)
    source = Source.read(target)
    save(target, source.with_text(source.text.replace("ger", "outer")))
    assert target.read_bytes() == data.replace(b"ger", b"outer")
    with pytest.raises(SourceError, match="changed while torchmigrate was checking it: not written"):
        save(target, source.with_text(""))
    target.write_bytes(b"# coding: latin-1\nger = '\xe9'\n")
    source = Source.read(target)
    save(target, source.with_text(source.text.replace("ger", "outer")))
    assert target.read_bytes() == b"# coding: latin-1\nouter = '\xe9'\n"
