"""The process that examines a repository, and what is sent to it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from fleet_support import OLD
from harness.project import environment
from msgspec.structs import replace

from torchmigrate.fleet.model import (
    Examined,
    Failed,
    FleetSettings,
    Job,
    Limits,
    Repository,
    RepositoryPart,
    Trouble,
)
from torchmigrate.fleet.work import START, work, work_together


def test_it_ends_by_itself_while_its_worker_lives(tmp_path: Path) -> None:
    """A thread waits for the end of stdin meanwhile, which Python must not wait for."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.py").write_text(OLD, "utf-8")
    source, target = tmp_path / "job", tmp_path / "result"
    repository = Repository("a", str(tmp_path / "a"), is_directory=True)
    source.write_bytes(pickle.dumps(Job(repository, FleetSettings("2.13"), Limits())))
    with subprocess.Popen(
        [sys.executable, "-c", START, str(source), str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        assert (process.wait(60), said) == (0, b"")
    assert isinstance(pickle.loads(target.read_bytes()), Examined)


def test_a_password_is_not_in_what_dask_logs() -> None:
    repository = Repository("a", "https://user:secret@host.example/a.git")
    job = Job(repository, FleetSettings("2.13"), Limits(), seen=("secret = torch.ger(a, b)",))
    assert "secret" not in repr(job)


def test_parts_hold_no_source_and_give_the_same_fingerprints(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.py").write_text(OLD, "utf-8")
    repository = Repository("a", str(tmp_path / "a"), is_directory=True)
    whole = Job(repository, FleetSettings("2.13"), Limits())
    parts = [work(replace(whole, part=RepositoryPart(number, 2))) for number in range(2)]
    assert b"eigenvectors" not in pickle.dumps(parts)
    results = [
        work(whole).what,
        work_together(whole, parts).what,
        work(replace(whole, settings=FleetSettings("2.13", excerpts=True))).what,
    ]
    assert all(isinstance(each, Examined) for each in results)
    prints = [[row["fingerprint"] for row in each.tables["findings"]] for each in results]
    assert prints[0] == prints[1] == prints[2] and len(set(prints[0])) == len(prints[0]) > 1


def test_clones_that_cannot_be_written_are_said(tmp_path: Path) -> None:
    (tmp_path / "clones").write_text("a file")
    repository = Repository("a", "https://host.invalid/a.git", "0" * 40)
    with pytest.raises(Failed) as failed:
        work(Job(repository, FleetSettings("2.13"), Limits(), clones=str(tmp_path / "clones")))
    assert (failed.value.trouble, failed.value.why) == (Trouble.CLONE, "cannot write the clone: File exists")
