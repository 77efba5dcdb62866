"""Caches that somebody else wrote: they neither hide findings nor make any."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.launcher import launch
from harness.project import environment

from torchmigrate.cache.trust import seal, unseal

OLD = "import torch\n\ny = torch.ger(a, b)\nz = torch.ger(b, a)\n"
DIRECTORY = ".torchmigrate_cache"


class Victim:
    """A project with a cache, and a user with a home."""

    def __init__(self, path: Path) -> None:
        self.path = path / "project"
        self.output = path
        self.environ = {"HOME": str(path / "home"), "XDG_CACHE_HOME": "", "TMPDIR": str(path / "tmp")}
        for directory in (self.path, path / "home", path / "tmp"):
            directory.mkdir()
        self.write("old.py", OLD)

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def run(self, *options: str, where: str = ".", **environ: str) -> subprocess.CompletedProcess[str]:
        found = {**self.environ, **environ}
        done = launch(self.path / where, "check", "-v", *options, **found)
        assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
        return done

    def git(self, *arguments: str, where: str = ".") -> None:
        names = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "protocol.file.allow=always")
        subprocess.run(["git", *names, *arguments], cwd=self.path / where, check=True, capture_output=True)

    def finds(self, *options: str, where: str = ".", **environ: str) -> str:
        """Both findings are there; what stderr says."""
        done = self.run("--output-format", "concise", *options, where=where, **environ)
        assert done.stdout.count("TM110") == 2 and done.returncode == 1, (done.stdout, done.stderr)
        return done.stderr

    @property
    def cache(self) -> Path:
        return self.path / DIRECTORY

    @property
    def store(self) -> Path:
        (store,) = self.cache.glob("?" * 32 + ".json")
        return store

    @property
    def secret(self) -> Path:
        return self.output / "home" / ".cache" / "torchmigrate" / "secret"


@pytest.fixture
def victim(tmp_path: Path) -> Victim:
    return Victim(tmp_path)


def _edited(victim: Victim, change: Callable[[list[Any]], None], *, sealed: bool) -> None:
    """Change the entry of the file. sealed: as the user would, else as a stranger can."""
    path = victim.store
    content = json.loads(path.read_bytes())
    for entry in content["files"].values():
        change(entry)
    if not sealed:
        path.write_text(json.dumps(content, separators=(",", ":")))
        return
    del content["mac"]
    data = json.dumps(content, separators=(",", ":")).encode()
    path.write_bytes(seal(path, data, victim.secret.read_bytes()))


def _nothing_found(entry: list[Any]) -> None:
    entry[2] = None


def _nothing_asked(entry: list[Any]) -> None:
    entry[2] = entry[3] = None


def _foreign_edits(entry: list[Any]) -> None:
    for fix, _ in entry[2][1]:
        fix[2] = [[0, 0, "import os\n", False]]


@pytest.mark.parametrize("change", [_nothing_found, _nothing_asked, _foreign_edits])
@pytest.mark.parametrize("committed", [True, False])
def test_a_forged_entry(victim: Victim, change: Callable[[list[Any]], None], committed: bool) -> None:
    victim.finds()
    _edited(victim, change, sealed=False)
    if committed:
        victim.git("init", "-q")
        victim.git("add", "-f", ".")
    assert ("git tracks it" in victim.finds()) is committed
    assert "import os" not in victim.run("--diff").stdout
    assert "Fixed 2 findings" in victim.run("--fix").stderr
    assert (victim.path / "old.py").read_text() == OLD.replace("ger", "outer")


def test_a_forged_digest_of_a_file(victim: Victim) -> None:
    """contents.json says that a file holds what it held when nothing was found in it."""
    victim.write("old.py", "import torch\n")
    time.sleep(2.1)  # a file that was written just now may be written once more
    victim.run()
    contents = victim.cache / "contents.json"
    forged = json.loads(contents.read_bytes())
    victim.write("old.py", OLD)
    found = (victim.path / "old.py").stat()
    state = [found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino]
    known = forged["files"][str(victim.path / "old.py")]
    known[:4] = state
    contents.write_text(json.dumps(forged))
    victim.finds()


def test_a_file_of_a_cache_counts_in_its_place_alone(victim: Victim) -> None:
    victim.finds()
    _edited(victim, _nothing_found, sealed=True)
    key, data = victim.secret.read_bytes(), victim.store.read_bytes()
    assert unseal(victim.store, data, key)
    for other in (victim.cache / f"{'0' * 32}.json", victim.path / "x" / victim.store.name):
        with pytest.raises(ValueError, match="sealed"):
            unseal(other, data, key)
    victim.store.write_bytes(seal(victim.cache / "contents.json", b"{" + data[78:], key))
    victim.finds()


@pytest.mark.parametrize(
    "spelling", [DIRECTORY, DIRECTORY.upper(), DIRECTORY.title(), ".torchmigrate\u200c_cache"]
)
def test_other_spellings_of_a_committed_cache(victim: Victim, spelling: str) -> None:
    """Some file systems take them for the same."""
    victim.git("init", "-q")
    victim.finds()
    kept = victim.cache.rename(victim.path / "kept")
    (victim.path / spelling).mkdir()
    (victim.path / spelling / "any").write_text("x")
    victim.git("add", "-f", spelling)
    shutil.rmtree(victim.path / spelling)
    kept.rename(victim.cache)
    assert "git tracks it" in victim.finds()


@pytest.mark.parametrize("version", ["2", "4"])
def test_a_cache_within_a_submodule(victim: Victim, tmp_path: Path, version: str) -> None:
    inner = Victim(tmp_path / "other") if (tmp_path / "other").mkdir() is None else victim
    inner.write("torchmigrate.toml", "")
    inner.finds()
    inner.git("init", "-q")
    inner.git("config", "index.version", version)
    inner.git("add", "-f", ".")
    inner.git("commit", "-q", "-m", "x")
    victim.git("init", "-q")
    victim.git("submodule", "add", "-q", str(inner.path), "sub")
    victim.git("clone", "-q", str(inner.path), "nested")
    for place in ("sub", "nested"):
        assert (victim.path / place / DIRECTORY).is_dir()
        assert "git tracks it" in victim.finds(where=place)


def test_a_configured_directory_that_is_committed(victim: Victim) -> None:
    victim.write("torchmigrate.toml", 'cache-dir = "data/c"\n')
    victim.finds()
    assert (victim.path / "data/c").is_dir()
    victim.git("init", "-q")
    victim.git("add", "-f", "data")
    assert "git tracks it" in victim.finds()


def test_a_configured_directory_of_code_gets_no_patterns(victim: Victim) -> None:
    """`*` in a .gitignore would hide the code from the next run."""
    victim.write("torchmigrate.toml", 'cache-dir = "src"\n')
    victim.write("src/more.py", "x = 1\n")
    victim.finds()
    assert not (victim.path / "src" / ".gitignore").exists()


@pytest.mark.parametrize("where", ["in its place", "above it"])
def test_a_link_to_a_cache(victim: Victim, where: str) -> None:
    (victim.path / "data").mkdir()
    if where == "above it":
        (victim.path / "link").symlink_to("data")
        victim.write("torchmigrate.toml", 'cache-dir = "link/c"\n')
    else:
        victim.cache.symlink_to("data")
    said = victim.finds()
    assert "a symbolic link leads to it" in said
    assert not list((victim.path / "data").iterdir())


def test_an_index_that_cannot_be_read(victim: Victim) -> None:
    victim.git("init", "-q")
    (victim.path / ".git" / "index").write_bytes(b"DIRC\0\0\0\x09")
    assert "cannot tell whether git tracks it" in victim.finds()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (0, "TM110\n::stop-commands::x"),
        (0, "TM999"),
        (1, "another-name"),
        (2, "text\x1b[31m"),
        (2, "\u202etext"),
        (3, 9),
        (5, 10_000),
        (9, "javascript:alert(1)"),
        (9, "https://example.com/ x"),
    ],
)
def test_what_an_entry_says_is_checked_all_the_same(victim: Victim, part: int, value: object) -> None:
    victim.finds()

    def change(entry: list[Any]) -> None:
        entry[2][0][0][0][part] = value

    _edited(victim, change, sealed=True)
    assert "cache: 0 of 1 file" in victim.finds()


# ---- the key ---------------------------------------------------------------------------------------------


def test_the_key_is_the_users_alone(victim: Victim) -> None:
    assert "0 of 1" in victim.finds()
    assert "1 of 1" in victim.finds()
    assert victim.secret.stat().st_mode & 0o777 == 0o600 and victim.secret.stat().st_size == 32
    assert [path.name for path in victim.secret.parent.iterdir()] == ["secret"]


@pytest.mark.parametrize("home", ["/nonexistent", "closed", "relative", "project"])
def test_without_a_home_the_key_is_with_the_temporary_files(victim: Victim, home: str) -> None:
    if home == "closed":
        (victim.output / "file").write_text("")
        home = str(victim.output / "file")
    if home == "project":
        home = str(victim.path / "sub")
        victim.write("sub/.cache/torchmigrate/secret", "s" * 32)
        (victim.path / "sub/.cache/torchmigrate/secret").chmod(0o600)
    if os.geteuid() == 0 and home == "/nonexistent":
        home = "/proc/nonexistent"
    assert "0 of 1" in victim.finds(HOME=home)
    assert "1 of 1" in victim.finds(HOME=home)
    (directory,) = (victim.output / "tmp").iterdir()
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "secret").stat().st_mode & 0o777 == 0o600
    data = (victim.cache / "contents.json") if (victim.cache / "contents.json").exists() else victim.store
    unseal(data, data.read_bytes(), (directory / "secret").read_bytes())


def test_a_key_inside_of_the_project_is_not_used(victim: Victim) -> None:
    """The project could bring it along, with a cache that fits."""
    inside = str(victim.path / "c")
    said = victim.finds(XDG_CACHE_HOME=inside, TMPDIR=inside)
    assert "cache: not used" in said and "set XDG_CACHE_HOME" in said
    assert not victim.cache.exists()


def test_a_repository_around_the_project_may_not_bring_the_key(victim: Victim) -> None:
    victim.git("init", "-q")
    victim.write("sub/torchmigrate.toml", "")
    victim.write("sub/old.py", OLD)
    inside = str(victim.path / "c")
    assert "cache: not used" in victim.finds(XDG_CACHE_HOME=inside, TMPDIR=inside, where="sub")


@pytest.mark.parametrize("wrong", ["mode", "short", "long", "link", "directory"])
def test_a_key_that_is_not_what_the_program_makes(victim: Victim, wrong: str) -> None:
    victim.secret.parent.mkdir(parents=True)
    if wrong == "directory":
        victim.secret.mkdir()
    elif wrong == "link":
        (victim.output / "target").write_bytes(b"s" * 32)
        (victim.output / "target").chmod(0o600)
        victim.secret.symlink_to(victim.output / "target")
    else:
        victim.secret.write_bytes(b"s" * {"short": 5, "long": 50}.get(wrong, 32))
        victim.secret.chmod(0o644 if wrong == "mode" else 0o600)
    victim.finds()
    assert "1 of 1" in victim.finds()
    assert len(list((victim.output / "tmp").iterdir())) == 1, "it is with the temporary files"


@pytest.mark.parametrize("wrong", ["open", "link", "file"])
def test_a_temporary_directory_that_others_can_write_is_not_used(victim: Victim, wrong: str) -> None:
    place = victim.output / "tmp" / f"torchmigrate-{os.geteuid()}"
    if wrong == "open":
        place.mkdir()
        place.chmod(0o777)
    elif wrong == "link":
        (victim.output / "other").mkdir(mode=0o700)
        place.symlink_to(victim.output / "other")
    else:
        place.write_text("")
    assert "cache: not used" in victim.finds(HOME="/proc/nonexistent")


def test_processes_at_once_agree_on_the_key(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from torchmigrate.cache.trust import key_for;"
        f"print(key_for(Path({str(tmp_path)!r}) / 'p/c', Path({str(tmp_path)!r}) / 'p').hex())"
    )
    environ = environment(HOME=str(tmp_path / "home"), XDG_CACHE_HOME="")
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    assert len({process.communicate()[0] for process in started}) == 1
    assert [path.name for path in (tmp_path / "home/.cache/torchmigrate").iterdir()] == ["secret"]
