"""The API data that is shipped: complete, and right about what is known of it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from harness.summary import HAS_TORCH

from torchmigrate.match.signature import parse_signature
from torchmigrate.versions.releases import (
    COMPANIONS,
    NEIGHBORS,
    NEWEST,
    RELEASES,
    parse_version,
    show_version,
)
from torchmigrate.versions.surface import DATA, Surface, surface_of
from torchmigrate.versions.surface_file import decode
from torchmigrate.versions.surface_model import Status

ROOT = Path(__file__).parents[2]
HISTORY = yaml.safe_load((ROOT / "tests" / "api_history.yaml").read_text(encoding="utf-8"))


def surface(library: str) -> Surface:
    found = surface_of(library)
    assert found is not None, f"no data about {library}"
    return found


def cases() -> Iterator[object]:
    for group in HISTORY:
        library, version = group["release"].split(" ")
        for change in ("added", "removed"):
            for name in group.get(change, ()):
                yield pytest.param(
                    name, library, parse_version(version), change, id=f"{name}-{change}-{version}"
                )


def exists(data: Surface, name: str, version: tuple[int, ...]) -> bool:
    """Whether a name, or `name(parameter)`, is in a release; an answer that is not sure is a failure."""
    name, _, parameter = name.rstrip(")").partition("(")
    status = data.status(name, version)
    assert status is not Status.UNKNOWN, f"not known at {show_version(version)}"
    if not parameter:
        return status is Status.PRESENT
    entry = data.entry(name, version)
    assert entry is not None and entry.signatures, f"no signature at {show_version(version)}"
    return any(parameter in parse_signature(text).by_name for text in entry.signatures)


def test_torch_has_every_release():
    assert surface("torch").versions == RELEASES
    assert show_version(RELEASES[-1]) == NEWEST


@pytest.mark.parametrize("library", COMPANIONS)
def test_companions_have_every_release_that_goes_with_torch(library):
    assert set(COMPANIONS[library].values()) <= set(surface(library).versions)
    assert COMPANIONS[library][RELEASES[-1]] == surface(library).versions[-1]


@pytest.mark.parametrize("library", NEIGHBORS)
def test_neighbors_have_the_newest_release_for_each_torch(library):
    versions = surface(library).versions
    assert {release for release in NEIGHBORS[library].values() if release >= versions[0]} <= set(versions)
    assert NEIGHBORS[library][RELEASES[-1]] == surface(library).versions[-1]


def test_the_history_is_long_enough():
    names = [name for group in HISTORY for change in ("added", "removed") for name in group.get(change, ())]
    assert len(names) >= 200
    assert all(group["evidence"].startswith("https://") for group in HISTORY)


@pytest.mark.parametrize(("name", "library", "version", "change"), cases())
def test_history(name, library, version, change):
    data = surface(library)
    before = data.versions[data.versions.index(version) - 1]
    assert exists(data, name, version) is (change == "added")
    assert exists(data, name, before) is (change == "removed")


if HAS_TORCH:

    @pytest.fixture(scope="module")
    def checked(tmp_path_factory):
        """What `check` prints of the installed torch, its exit status, and the entries that it read."""
        # In a process of its own: what other tests compiled in this one stays in torch's modules.
        out = tmp_path_factory.mktemp("api") / "read.gz"
        command = [sys.executable, ROOT / "tools" / "api_data.py", "check", "torch", "--out", out]
        done = subprocess.run(command, capture_output=True, text=True)
        ((_, read),) = decode(out.read_bytes())
        return done, read

    def test_the_data_is_what_is_installed(checked):
        import torch

        _, read = checked
        data = dict(decode((DATA / "torch.gz").read_bytes()))[parse_version(torch.__version__)]
        names = data.keys() | read.keys()
        differing = sorted(name for name in names if data.get(name) != read.get(name))
        # The data comes from the wheel for another system.
        assert len(differing) * 1000 < len(names), differing

    def test_what_is_read_is_what_an_import_gives(checked):
        done, _ = checked
        assert done.returncode == 0, done.stdout + done.stderr
        compared, disagree = re.search(
            r"^(\d+) names and \d+ signatures compared, (\d+) disagree", done.stdout, re.MULTILINE
        ).groups()
        assert int(compared) > 40_000
        assert disagree == "0", done.stdout
