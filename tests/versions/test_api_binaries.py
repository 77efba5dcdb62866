"""What real releases answered corrects what their sources say, so that TM005 is silent where it was wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from api import binaries
from click.testing import CliRunner
from harness.summary import HAS_TORCH

from torchmigrate.cli.commands import commands
from torchmigrate.versions.releases import parse_version
from torchmigrate.versions.surface import Surface, surface_of
from torchmigrate.versions.surface_file import encode
from torchmigrate.versions.surface_model import ApiEntry, EntryKind, Status

CLASS = ApiEntry(EntryKind.CLASS)
MODULE = ApiEntry(EntryKind.MODULE)


def function(*signatures: str) -> ApiEntry:
    return ApiEntry(EntryKind.FUNCTION, signatures=signatures)


def needs_newer(tmp_path: Path, text: str, minimum: str) -> list[str]:
    """What TM005 says of a text, as a user sees it."""
    path = tmp_path / "model.py"
    path.write_text(f"import torch\nx = torch.zeros(3)\n{text}\n", encoding="utf-8")
    run = CliRunner().invoke(
        commands,
        f"check --isolated --select TM005 --minimum {minimum} --output-format concise {path}".split(),
    )
    assert run.exit_code in (0, 1), run.output
    return [line for line in run.stdout.splitlines() if "TM005" in line]


@pytest.mark.parametrize(
    ("text", "minimum"),
    [
        ("x.new(3)", "1.0"),
        ("x.map2_(x, x, f)", "1.0"),
        ("x.add_(x, alpha=2)", "1.0"),
        ("x.add(x, alpha=2)", "1.1"),
        ("x.sub(x, alpha=2)", "1.1"),
        ("torch.add(x, x, alpha=2)", "1.1"),
        ("torch.Tensor.sub_(x, x, alpha=2)", "1.1"),
        ("x.to('cpu', memory_format=torch.channels_last)", "1.4"),
        ("x.to('cpu', memory_format=torch.channels_last)", "1.13"),
        ("torch.zeros(3, pin_memory=True)", "1.1"),
        ("torch.rand(3, pin_memory=True)", "1.6"),
        ("torch.full((3,), 1.0, pin_memory=True)", "1.7"),
        ("x._values()", "1.0"),
        ("x.is_floating_point()", "1.0"),
        ("x.clamp_min(0)", "1.0"),
        ("x.as_strided((1,), (1,))", "1.0"),
        ("x.record_stream(s)", "1.1"),
        ("torch.mm(x, mat2=x)", "1.0"),
    ],
)
def test_what_the_release_has_is_not_reported(tmp_path: Path, text: str, minimum: str) -> None:
    assert needs_newer(tmp_path, text, minimum) == []


@pytest.mark.parametrize(
    ("text", "minimum", "since"),
    [
        ("x.to('cpu', memory_format=torch.preserve_format)", "1.3", "1.4"),
        ("torch.is_autocast_enabled()", "1.5", "1.6"),
        ("torch.isin(x, x)", "1.9", "1.10"),
        ("x.movedim(0, 1)", "1.6", "1.7"),
        ("torch.func.vmap(f)", "1.12", "2.0"),
    ],
)
def test_what_it_lacks_is_reported_still(tmp_path: Path, text: str, minimum: str, since: str) -> None:
    lines = needs_newer(tmp_path, text, minimum)
    assert lines and all(f"since torch {since}, " in line for line in lines), lines


def test_every_recorded_release_agrees_with_the_data() -> None:
    data = surface_of("torch")
    assert data is not None
    asked, facts = binaries.read("torch")
    assert {parse_version(text) for text in ("1.1", "1.4", "1.7", "1.12", "2.13")} <= set(asked)
    known = [name for name in facts if not name.endswith(")") and data.known(name)]
    wrong = [
        (name, version)
        for name in known
        for version in facts[name]
        if data.entry(name, version) is None and data.status(name, version) is Status.ABSENT
    ]
    assert len(known) > 1500
    assert wrong == []


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1.1, 1.2 and 1.4 were asked; 1.3 was not, nor what came after."""
    monkeypatch.setattr(binaries, "DIRECTORY", tmp_path)
    old = ["add", "map", "only"]
    for version, names, taken in (
        ("1.1", [*old], ["other"]),
        ("1.2", [*old, "late"], ["other", "alpha"]),
        ("1.4", [*old, "late"], ["other", "alpha"]),
    ):
        binaries.record("torch", parse_version(version), {"torch": names}, {"torch.add": taken})


def corrected(recorded: None) -> Surface:
    source = {"torch": MODULE, "torch.add": function("(other)"), "torch.late": function("()")}
    later = {**source, "torch.map": function("(x)"), "torch.add": function("(other, alpha=1)")}
    releases = [(parse_version(f"1.{minor}"), dict(later if minor > 4 else source)) for minor in range(1, 7)]
    return Surface(encode("torch", binaries.corrected("torch", releases)))


def test_names_and_keywords_are_shifted_down(recorded: None) -> None:
    data = corrected(recorded)
    assert data.spans("torch.map") == (((1, 1), None),)
    assert data.spans("torch.late") == (((1, 2), None),), "the sources had it too early"
    assert data.status("torch.only", (1, 4)) is Status.ABSENT, "no release says what it is"
    forms = {minor: data.entry("torch.add", (1, minor)).signatures for minor in range(1, 7)}
    assert forms[1] == ("(other)",)
    assert forms[2] == forms[3] == forms[4] == ("(other)", "(*, alpha=None)")
    assert forms[5] == forms[6] == ("(other, alpha=1)",)


def test_the_file_is_read_as_it_was_written(recorded: None) -> None:
    before = binaries._path("torch").read_text(encoding="utf-8")
    assert "torch.add 1.1-1.4; alpha 1.2-1.4; other\n" in before
    binaries.record(
        "torch", (1, 4), {"torch": ["add", "map", "only", "late"]}, {"torch.add": ["other", "alpha"]}
    )
    assert binaries._path("torch").read_text(encoding="utf-8") == before


if HAS_TORCH:

    def test_the_installed_torch_answers() -> None:
        surface = surface_of("torch")
        assert surface is not None
        version, names, keywords = binaries.ask(sys.executable, surface)
        assert "add" in names["torch"] and "map2_" in names["torch.Tensor"]
        assert {"other", "alpha", "out"} <= set(keywords["torch.add"])
        assert {"dtype", "memory_format"} <= set(keywords["torch.Tensor.to"])
        assert "vec2" in keywords["torch.ger"] and "value" not in keywords["torch.Tensor.add"]
        assert version == parse_version(__import__("torch").__version__)


def test_a_python_without_torch_is_an_error(tmp_path: Path) -> None:
    surface = surface_of("torch")
    assert surface is not None
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError):
        binaries.ask(str(broken), surface)
