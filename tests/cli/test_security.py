"""The table in SECURITY.md: it has every command, and every command does what its row says."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from harness.project import Project
from harness.repository import Repository

from torchmigrate.cli.commands import commands
from torchmigrate.fleet.store import Store

ROOT = Path(__file__).parents[2]
OLD = "import torch\n\nx = torch.ger(a, b)\n"
# What of a project would run if a command imported or executed it.
TRAP = "open('ran', 'w')\n"
RUN = "20260101T000000Z"
# A row, the commands that are tried, the programs that they start, and the files that they write. What the rows of
# `fleet run`, `record`, `server` and `upgrade` say is tested where their processes are.
ROWS: dict[str, tuple[list[str], set[str], str]] = {
    "baseline": (["baseline ."], set(), r"\.torchmigrate-baseline\.json"),
    "check": (
        [
            *("check .", "check . --output-file out/report", "check . --diff", "check . --show-files"),
            *("check . --show-settings", "check . --add-noqa", "check . --ignore-noqa --fix-only"),
        ],
        set(),
        r"\.torchmigrate_cache/.*|out/report|old\.py",
    ),
    "check --changed-since": (["check . --changed-since HEAD"], {"git"}, r"\.torchmigrate_cache/.*"),
    "clean": (["clean"], set(), ""),
    "config": (["config old.py"], set(), ""),
    "explain": (["explain TM110"], set(), ""),
    "fleet compare": (["fleet compare --results results"], set(), ""),
    "fleet query": (["fleet query rules --results results"], set(), ""),
    "plan": (["plan .", "plan . --output-format html --output out/page"], set(), "out/page"),
    "rule": (["rule TM110"], set(), ""),
    "rules": (["rules"], set(), ""),
    "suppress": (["suppress ."], set(), r"old\.py"),
    "test-rules": (["test-rules rules", "test-rules --new new"], set(), r"new/rules\.yaml"),
    "version": (["version"], set(), ""),
    "upgrade --dry-run": (["upgrade . --to 2.13 --dry-run"], {"git"}, ""),
}
# The tests of a row: of what it reads and runs of hostile projects, and of what it writes.
TESTS = {
    "baseline": ("cli/test_hostile.py", "cli/test_hostile_git.py", "baseline"),
    "check": ("cli/test_hostile.py", "cli/test_hostile_git.py", "cli/test_changed_since.py"),
    "clean": ("cli/test_hostile_git.py", "cache"),
    "config": ("cli/test_hostile_git.py", "cli/test_config_command.py"),
    "explain": ("cli/test_hostile_git.py",),
    "fleet compare": ("fleet/test_fleet.py",),
    "fleet query": ("fleet/test_fleet.py",),
    "fleet run": ("cli/test_hostile_git.py", "fleet/test_fleet.py", "fleet/test_work.py"),
    "mcp": ("cli/test_hostile_git.py", "server/test_mcp.py"),
    "plan": ("cli/test_hostile.py", "cli/test_hostile_git.py", "planning"),
    "record": ("cli/test_hostile_git.py", "evidence/test_record.py"),
    "rule": ("cli/test_ruff_habits.py",),
    "rules": ("cli/test_hostile_git.py",),
    "server": ("cli/test_hostile_git.py", "server/test_process.py"),
    "suppress": ("cli/test_hostile_git.py", "cli/test_suppress.py"),
    "test-rules": ("cli/test_hostile_git.py", "cli/test_own_rules.py", "authoring"),
    "upgrade": ("upgrade/test_upgrade.py",),
    "version": ("cli/test_ruff_habits.py",),
    "upgrade --dry-run": ("cli/test_hostile_git.py", "upgrade/test_upgrade.py"),
}


def rows() -> dict[str, list[str]]:
    """The rows of the table, by command."""
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    found = re.findall(r"^\| `(.+?)` \| (.+) \|$", text, re.MULTILINE)
    return {name: rest.split(" | ") for name, rest in found}


def names() -> Iterator[str]:
    """Every command of the command line."""
    with click.Context(commands) as context:
        for name in commands.list_commands(context):
            command = commands.get_command(context, name)
            inner = getattr(command, "commands", None)
            yield from (f"{name} {each}" for each in inner) if inner else (name,)


def test_every_command_has_a_row_and_every_row_has_its_tests() -> None:
    assert [*rows()] == sorted([*names(), "upgrade --dry-run"])
    assert sorted(TESTS) == [*rows()]
    for places in TESTS.values():
        assert all((ROOT / "tests" / place).exists() for place in places)
    assert all(len(row) == 5 for row in rows().values())


def test_the_rows_that_are_tried_agree_with_the_table() -> None:
    for name, (_, programs, written) in ROWS.items():
        if name in rows():
            runs, _, writes, network, git = rows()[name]
            assert (runs, network) == ("nothing", "none"), name
            assert (git == "reads") == bool(programs) or name == "check", name
            assert (writes in ("nothing", "removes the caches")) == (not written), name


class Watch:
    """What a command does, as Python reports it: programs that it starts, addresses, files that it writes."""

    def __init__(self) -> None:
        self.is_on = False
        self.programs: set[str] = set()
        self.addresses: list[str] = []
        self.written: set[str] = set()
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.is_on:
            return
        if event == "subprocess.Popen":
            self.programs.add(Path(os.fsdecode(arguments[0])).name)  # type: ignore[arg-type]
        elif event in ("os.system", "os.exec", "os.posix_spawn", "os.spawn"):
            self.programs.add(event)
        elif event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
            self.addresses.append(f"{event} {arguments[1:]}")
        elif event == "open" and isinstance(arguments[0], (str, bytes)):
            flags = arguments[2]
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
                self.written.add(str(Path(os.fsdecode(arguments[0])).absolute()))
        elif event == "os.rename":
            self.written.add(str(Path(os.fsdecode(arguments[1])).absolute()))  # type: ignore[arg-type]

    @contextmanager
    def on(self) -> Iterator[None]:
        self.programs, self.addresses, self.written = set(), [], set()
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


WATCH = Watch()


@pytest.mark.parametrize("name", ROWS)
def test_a_command_does_what_its_row_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traps = ("setup", "conftest", "sitecustomize", "torch/__init__", "yaml")
    repository = Repository(tmp_path, {"old.py": OLD, **{f"{trap}.py": TRAP for trap in traps}})
    root = Path(os.path.realpath(repository.path))
    (root / "out").mkdir()
    (root / "rules").mkdir()
    shutil.copy(ROOT / "rules/torch/linalg.yaml", root / "rules")
    Store(root / "results").write_run(RUN, [("runs", {"run": RUN, "target": "2.13"})])
    Store(root / "results").write_run(RUN.replace("01T", "02T"), [("runs", {"run": RUN, "target": "2.13"})])
    monkeypatch.setattr(
        sys, "dont_write_bytecode", True
    )  # of modules that the command is the first to import
    project = Project(root, monkeypatch)
    commands, programs, written = ROWS[name]
    for each in commands:
        with WATCH.on():
            done = project.run(*each.split())
        assert WATCH.programs <= programs, each
        assert WATCH.addresses == [], each
        temporary = re.compile(r"/dev/null|.*/torchmigrate-[^/]*(/.*)?")
        for path in WATCH.written:
            if path.startswith(f"{root}{os.sep}"):
                inside = re.sub(
                    r"\.[^/]*\.(tmp|part)|\.tmp[^/]*", "", Path(path).relative_to(root).as_posix()
                )
                assert re.fullmatch(written, inside) or inside.endswith("/") or not inside, (each, path)
            else:
                assert temporary.fullmatch(path), (each, path)
        assert not (root / "ran").exists(), each
        assert done.returncode in (0, 1), (each, done.stderr)
