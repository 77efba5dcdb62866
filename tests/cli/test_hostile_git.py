"""Repositories whose configuration names programs: no command of torchmigrate makes git run one.

Every program leaves a mark, a file of its name in a directory. `test_plain_git_runs_them` shows that git runs them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.agent import Agent
from harness.editor import Editor
from harness.project import Project, environment
from harness.repository import Repository

from torchmigrate.fleet.clones import Checkout
from torchmigrate.fleet.model import Failed
from torchmigrate.fleet.model import Repository as Listed

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are for a shell of POSIX")

# What processes of a fleet import; Python 3.10 looks in the current directory for what starts some of them.
MODULES = (
    "torchmigrate/__init__",
    "pickle",
    "yaml",
    *(["multiprocessing"] if sys.version_info > (3, 11) else []),
)
OLD = "import torch\n\nx = torch.ger(a, b)\n"
ATTRIBUTES = (
    "*.py filter=evil diff=evil merge=evil\n*.txt filter=lasting\n*.md diff=binary\n*.cfg filter=included\n"
)
FILES = {
    ".gitattributes": ATTRIBUTES,
    "old.py": OLD,
    "conv.md": "text\n",
    "notes.txt": "text\n",
    "a.cfg": "[a]\n",
    "lost.sh": "# of this, the former text is lost\n",
}
HOOKS = ("post-checkout", "post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman")
CONFIG = """
[core]
    repositoryformatversion = 1
    fsmonitor = "touch {marks}/fsmonitor; false"
    hooksPath = {hooks}
    sshCommand = "touch {marks}/ssh; false"
    gitProxy = "touch {marks}/proxy; false"
    editor = "touch {marks}/editor; false"
    pager = "touch {marks}/pager; cat"
    askPass = {hooks}/askpass
    attributesFile = {hooks}/attributes
    alternateRefsCommand = "touch {marks}/alternates; false"
{worktree}
[extensions]
    partialClone = o
[remote "o"]
    url = /
    fetch = +refs/heads/*:refs/remotes/o/*
    promisor = true
    uploadpack = "touch {marks}/uploadpack; false"
    receivepack = "touch {marks}/receivepack; false"
[branch "main"]
    remote = o
    merge = refs/heads/main
[diff]
    external = "touch {marks}/external;"
    submodule = log
[diff "evil"]
    command = "touch {marks}/command;"
    textconv = "touch {marks}/textconv; cat"
[diff "binary"]
    textconv = "touch {marks}/textconv; cat"
[filter "evil"]
    clean = "touch {marks}/clean; cat"
    smudge = "touch {marks}/smudge; cat"
    required = true
[filter "lasting"]
    process = "touch {marks}/process; false"
[merge "evil"]
    driver = "touch {marks}/driver; false"
[log]
    showSignature = true
[gpg]
    program = {hooks}/gpg
[gpg "ssh"]
    program = {hooks}/gpg
[commit]
    gpgSign = true
[status]
    submoduleSummary = true
[submodule]
    recurse = true
[credential]
    helper = "!touch {marks}/credential; false"
[pager]
    diff = "touch {marks}/pager; cat"
    status = "touch {marks}/pager; cat"
[alias]
    status = "!touch {marks}/alias"
    ls-files = "!touch {marks}/alias"
[uploadpack]
    packObjectsHook = "touch {marks}/pack"
[include]
    path = {included}
[includeIf "gitdir:/"]
    path = {included}
"""
# Those that the commands of `test_plain_git_runs_them` come to.
SEEN = {
    "fsmonitor",
    "ssh",
    "uploadpack",
    "external",
    "command",
    "textconv",
    "clean",
    "smudge",
    "process",
    "gpg",
}
SEEN |= {"post-checkout", "post-index-change", "reference-transaction", "included"}


class Trap:
    """Where the programs of a hostile configuration leave their marks."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self.marks = where / "marks"
        self.hooks = where / "hooks"
        self.marks.mkdir(parents=True)
        self.hooks.mkdir()
        for name in (*HOOKS, "askpass", "gpg"):
            self.program(self.hooks / name, name)
        (self.hooks / "attributes").write_text(ATTRIBUTES)
        (where / "included").write_text(
            f'[filter "included"]\n\tclean = "touch {self.marks}/included; cat"\n'
        )

    def program(self, path: Path, name: str) -> None:
        path.write_text(f"#!/bin/sh\ntouch {self.marks}/{name}\n")
        path.chmod(0o755)

    def config(self, worktree: str = "") -> str:
        return CONFIG.format(
            marks=self.marks,
            hooks=self.hooks,
            included=self.where / "included",
            worktree=f"    worktree = {worktree}" if worktree else "",
        )

    def set_in(self, git: Path, worktree: str = "") -> None:
        """Make a repository's directory hostile."""
        with (git / "config").open("a") as file:
            file.write(self.config(worktree))
        shutil.copytree(self.hooks, git / "hooks", dirs_exist_ok=True)
        self.clear()

    def clear(self) -> None:
        for mark in self.marks.iterdir():
            mark.unlink()

    @property
    def found(self) -> set[str]:
        return {mark.name for mark in self.marks.iterdir()}


def changed(name: str) -> str:
    """A file with a change that git sees only by reading it, for which it runs filters."""
    return OLD.replace("a, b", "c, d") if name == "old.py" else FILES[name].swapcase()


def repository(where: Path) -> Repository:
    """Two commits, the second one signed; of the first one, an object is missing; all files are changed."""
    where.mkdir(parents=True, exist_ok=True)
    made = Repository(where, {**FILES, "lost.sh": "lost\n"})
    lost = made.git("rev-parse", "HEAD:lost.sh")
    for name, text in FILES.items():
        made.write(name, text)
    made.commit()
    text = made.git("cat-file", "commit", "HEAD")
    head, _, message = text.partition("\n\n")
    signed = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n{message}\n"
    (where / "commit").write_text(signed)
    commit = made.git("hash-object", "-t", "commit", "-w", str(where / "commit"))
    made.git("reset", "--quiet", "--soft", commit)
    (made.path / ".git/objects" / lost[:2] / lost[2:]).unlink()
    for name in FILES:
        if not name.startswith("."):
            made.write(name, changed(name))
    return made


def _top(trap: Trap) -> list[Path]:
    made = repository(trap.where / "top")
    trap.set_in(made.path / ".git")
    return [made.path]


def _elsewhere(trap: Trap) -> list[Path]:
    """Its work tree is said to be another one, without files."""
    made = repository(trap.where / "elsewhere")
    (trap.where / "nothing").mkdir()
    trap.set_in(made.path / ".git", str(trap.where / "nothing"))
    return [made.path]


def _embedded(trap: Trap) -> list[Path]:
    """Files of a repository look like a repository, whose commit must be fetched."""
    made = Repository(trap.where / "embedded", {"sub/m.py": OLD, "sub/objects/info/keep": ""})
    made.write("sub/HEAD", "ref: refs/heads/main\n")
    made.write("sub/refs/heads/main", "1" * 40 + "\n")
    (made.path / "sub/config").write_text(trap.config("."))
    (made.path / "sub/hooks").mkdir()
    shutil.copytree(trap.hooks, made.path / "sub/hooks", dirs_exist_ok=True)
    made.commit()
    trap.clear()
    return [made.path, made.path / "sub"]


def _submodule(trap: Trap) -> list[Path]:
    """A submodule is hostile, and so is one in it."""
    made = Repository(trap.where / "around", FILES)
    inner = repository(trap.where / "inner")
    allowed = ("-c", "protocol.file.allow=always", "-c", "fetch.fsckObjects=false")
    inner.git("reset", "--quiet", "--hard")
    inner.git("checkout", "--quiet", "--orphan", "whole")
    inner.commit()
    more = ("submodule", "--quiet", "add", "--branch", "whole", str(inner.path), "part")
    made.git(*allowed, *more)
    made.git(*allowed, *more[:-1], "deep", at=made.path / "part")
    made.commit()
    for git in (made.path / ".git/modules/part", made.path / ".git/modules/part/modules/deep"):
        trap.set_in(git)
    for name in FILES:
        if not name.startswith("."):
            made.write(f"part/{name}", changed(name))
            made.write(f"part/deep/{name}", changed(name))
    return [made.path, made.path / "part", made.path / "part/deep"]


def _linked(trap: Trap) -> list[Path]:
    """A linked work tree has a configuration of its own."""
    made = repository(trap.where / "main")
    made.git("stash", "--quiet")
    tree = made.path / "inside"
    made.git("worktree", "add", "--quiet", str(tree))
    other = trap.where / "outside"
    made.git("worktree", "add", "--quiet", str(other))
    made.git("config", "extensions.worktreeConfig", "true")
    trap.set_in(made.path / ".git")
    for place in (tree, other):
        (made.path / ".git/worktrees" / place.name / "config.worktree").write_text(trap.config())
        (place / "old.py").write_text(OLD + OLD)
        (place / "notes.txt").write_text(changed("notes.txt"))
    return [tree, other]


WAYS = {
    "top": _top,
    "elsewhere": _elsewhere,
    "embedded": _embedded,
    "submodule": _submodule,
    "linked": _linked,
}


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trap]:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        '[user]\n\tname = x\n\temail = x@example.com\n[protocol "file"]\n\tallow = always\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Trap(tmp_path / "trap")
    yield made


def test_plain_git_runs_them(trap: Trap) -> None:
    (top,) = _top(trap)
    commands = (
        "status --porcelain",
        "diff HEAD",
        "diff HEAD -- old.py",
        "diff HEAD -- conv.md",
        "-c diff.evil.command= diff HEAD -- old.py",
        "diff --no-ext-diff HEAD -- old.py",
        "diff --no-ext-diff HEAD~1 -- lost.sh",
        "log -1 --oneline",
        "fetch ssh://localhost:1/x",
        "checkout --force HEAD -- old.py",
        "update-ref refs/heads/other HEAD",
        "-c filter.lasting.process= checkout -b new",
        "-c filter.lasting.process= add conv.md",
    )
    for each in commands:
        subprocess.run(["git", *each.split()], cwd=top, capture_output=True, timeout=60)
    assert SEEN - trap.found == set()


@pytest.mark.parametrize("way", WAYS)
def test_no_command_runs_them(way: str, trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in WAYS[way](trap):
        project = Project(place, monkeypatch)
        for arguments in (
            "check .",
            "check . --diff",
            "check . --changed-since HEAD",
            "check . --changed-since HEAD~1 --isolated --no-cache",
            "check . --changed-since @{upstream}",
            "check . --statistics --output-format json --fix-pins",
            "plan .",
            "plan . --output-format html --output ../plan.html",
            "config old.py",
            "explain TM110",
            "rules",
            "upgrade . --to 2.13 --dry-run",
            f"upgrade .. --to 2.13 --dry-run --work {trap.where}/work",
            "baseline .",
            "suppress . --select TM110",
            "check . --fix --unsafe-fixes",
            "check . --fix --changed-since HEAD",
            f"record {sys.executable} -c pass",
            "clean .",
            "test-rules .",
        ):
            done = project.run(*arguments.split())
            assert trap.found == set(), (place, arguments)
            assert done.stderr.count("\n") < 12 or arguments.startswith("plan"), (arguments, done.stderr)
        for revision in (None, "HEAD", "main"):
            with monkeypatch.context() as patch:
                patch.chdir(place)
                checkout = Checkout(
                    Listed("x/y", str(place), revision, None, True), str(trap.where / "clones")
                )
                try:
                    checkout.fetch(checkout.state())
                except Failed as error:
                    assert way in ("embedded", "linked") or place.parts[-1] in ("part", "deep"), error
            assert trap.found == set(), (place, revision)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_repository_of_another_user_is_read_and_not_written(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Repository(trap.where, {"old.py": OLD})
    for path in (made.path, made.path / ".git"):
        os.chown(path, 12345, 12345)
    project = Project(made.path, monkeypatch)
    project.run("check", ".", "--changed-since", "HEAD", code=0)
    project.run("upgrade", ".", "--to", "2.13", "--dry-run", code=0)
    said = project.run("upgrade", ".", "--to", "2.13", code=2).stderr
    assert "detected dubious ownership in repository" in said and said.count("\n") == 1
    assert not made.work.exists()


def test_nor_does_the_language_server(trap: Trap) -> None:
    places = [place for make in WAYS.values() for place in make(trap)]
    with Editor(*places) as editor:
        for place in places:
            path = next(
                path for path in (place / "old.py", place / "m.py", place / "sub/m.py") if path.exists()
            )
            assert editor.diagnostics(editor.open(path, OLD))
    assert trap.found == set()


def test_nor_does_the_server_for_agents(trap: Trap) -> None:
    for place in [place for make in WAYS.values() for place in make(trap)]:
        agent = Agent(place, errors=trap.where / "errors")
        for answer in agent.calls(("check", {}), ("fix", {"write": True}), ("plan", {})):
            assert not answer.failed, answer.text
    assert trap.found == set()


def test_nor_does_a_fleet(trap: Trap) -> None:
    """Its processes start in a hostile repository, which has modules of theirs, too.

    Python 3.10 has no way to keep spawned processes from importing these, as SECURITY.md says.
    """
    (top,), (around, part, _), (_, linked) = _top(trap), _submodule(trap), _linked(trap)
    lines = (
        f"{top}",
        f"{around}",
        f"{part} HEAD",
        f"{linked} HEAD",
        f"file://{top} main",
        "ssh://localhost:1/x",
    )
    (trap.where / "repos.txt").write_text("\n".join(lines))
    for name in MODULES if sys.version_info >= (3, 11) else ():
        (top / name).parent.mkdir(exist_ok=True)
        (top / f"{name}.py").write_text(f"open({str(trap.marks / 'module')!r}, 'w')\n")
    start = "import sys; sys.path.remove(''); from torchmigrate.__main__ import main; main()"
    arguments = (str(trap.where / "repos.txt"), "--output", str(trap.where / "out"), "--retries", "0")
    done = subprocess.run(
        [sys.executable, "-c", start, "fleet", *arguments],
        cwd=top,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "6 repositories: 5 examined, 0 unchanged, 1 failed" in done.stderr, (done.stdout, done.stderr)
    assert trap.found == set()
