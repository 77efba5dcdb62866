"""`tools/api_data.py` on small invented wheels."""

from __future__ import annotations

import zipfile
from pathlib import Path

import api_data
import pytest
from api import sources, wheels
from click.testing import CliRunner

from torchmigrate.versions import surface as surface_module

OLD = "def pipe(source, size=1):\n    pass\n"
NEW = "def pipe(source, *, size=1, seed=None):\n    pass\n\n\nclass Loader:\n    def __init__(self, pipe):\n        pass\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An empty directory for data files."""
    directory = tmp_path / "data"
    monkeypatch.setattr(api_data, "DATA", directory)
    monkeypatch.setattr(surface_module, "DATA", directory)
    surface_module._load.cache_clear()
    yield directory
    surface_module._load.cache_clear()


def wheel(directory: Path, name: str, text: str) -> Path:
    package = directory / name / name.partition("-")[0]
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(text)
    return package.parent


def run(*arguments: object) -> str:
    result = CliRunner().invoke(api_data.main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.output


def test_build_update_changes_show(tmp_path, data):
    wheel(tmp_path / "wheels", "torchdata-0.3.0", "")
    wheel(tmp_path / "wheels", "torchdata-0.10.1", OLD)
    assert "torchdata 0.10: 3 names\n" in run(
        "build", "torchdata", "--sources", tmp_path / "wheels", "--jobs", 1
    )
    newest = wheel(tmp_path, "torchdata-0.11.0", NEW)
    assert run("update", "torchdata", "0.11", "--sources", newest).splitlines()[1:] == [
        "torchdata 0.10 -> 0.11",
        "",
        "Parameters (1)",
        "  torchdata",
        "    pipe: size is keyword-only",
        "    pipe: + seed=None (keyword-only)",
        "",
        "Added (1)",
        "  torchdata",
        "    Loader(pipe)",
    ]
    assert "Added (1)\n  torchdata\n    pipe(source, size=1)" in run("changes", "torchdata", "0.3", "0.10")
    assert run("show", "torchdata.pipe").splitlines() == [
        "torchdata 0.3",
        "  absent",
        "torchdata 0.10",
        "  present",
        "  function",
        "  (source, size=1)",
        "  defined as torchdata.pipe",
        "torchdata 0.11",
        "  present",
        "  function",
        "  (source, *, size=1, seed=None)",
        "  defined as torchdata.pipe",
    ]


FIRST = """
def gone(x): pass
def same(x): pass
def renamed(x, old=1): pass
def longer(x): pass
class Base:
    def gone(self): pass
    def same(self): pass
class Kept(Base): pass
"""
LAST = """
def same(x): pass
def renamed(x, new=1): pass
def longer(x, y=2): pass
def added(): pass
class Base:
    def same(self): pass
class Kept(Base): pass
"""


def test_of_a_neighbor_only_the_differences_are_recorded(tmp_path, data):
    wheel(tmp_path / "wheels", "torchcodec-0.1.0", FIRST)
    wheel(tmp_path / "wheels", "torchcodec-0.2.0", LAST)
    run("build", "torchcodec", "--sources", tmp_path / "wheels", "--jobs", 1)
    surface = surface_module.surface_of("torchcodec")
    named = [
        "gone",
        "renamed",
        "same",
        "longer",
        "added",
        "Base",
        "Base.gone",
        "Base.same",
        "Kept",
        "Kept.gone",
    ]
    assert {name: surface.status(f"torchcodec.{name}", (0, 2)).value for name in named} == {
        "gone": "absent",
        "renamed": "present",
        "same": "unknown",
        "longer": "unknown",
        "added": "unknown",
        "Base": "present",
        "Base.gone": "absent",
        "Base.same": "unknown",
        "Kept": "unknown",
        "Kept.gone": "unknown",
    }
    assert surface.status("torchcodec.gone", (0, 1)).value == "present"
    assert surface.entry("torchcodec.renamed", (0, 1)).signatures == ("(x, old=1)",)
    assert CliRunner().invoke(api_data.main, ["update", "torchcodec", "0.3"]).exit_code == 2


def test_a_release_that_nobody_knows(tmp_path, data):
    wheel(tmp_path / "wheels", "torchdata-0.3.0", "")
    run("build", "torchdata", "--sources", tmp_path / "wheels", "--jobs", 1)
    result = CliRunner().invoke(api_data.main, ["changes", "torchdata", "0.3", "0.4"])
    assert result.exit_code == 1
    assert "no data about torchdata 0.4" in result.output
    assert CliRunner().invoke(api_data.main, ["show", "numpy.zeros"]).exit_code == 1


def test_unpacked_wheels(tmp_path):
    for name in (
        "torch-1.9.1",
        "torch-1.13.1",
        "torch-2.0.0",
        "torch-2.0.1",
        "functorch-0.2.1",
        "functorch-1.13.1",
    ):
        (tmp_path / name).mkdir()
    assert sources.unpacked("torch", tmp_path) == {
        (1, 9): tmp_path / "torch-1.9.1",
        (1, 13): tmp_path / "torch-1.13.1",
        (2, 0): tmp_path / "torch-2.0.1",
    }
    # The wheel of functorch 1.13 is empty.
    assert sources.unpacked("functorch", tmp_path) == {
        (0, 2): tmp_path / "functorch-0.2.1",
        (1, 13): tmp_path / "torch-1.13.1",
        (2, 0): tmp_path / "torch-2.0.1",
    }


def test_the_wheel_of_torch_has_functorch(tmp_path, data, monkeypatch):
    wheel(tmp_path / "wheels", "functorch-0.2.1", OLD)
    run("build", "functorch", "--sources", tmp_path / "wheels", "--jobs", 1)
    asked = []

    def download(package, version, into):
        asked.append((package, version))
        path = into / "torch-1.13.1-cp39.whl"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("functorch/__init__.py", NEW)
            packed.writestr("torch/lib/libtorch.dylib", "")
        return path

    monkeypatch.setattr(wheels, "download", download)
    assert "functorch 0.2 -> 1.13\n" in run("update", "functorch", "1.13")
    assert asked == [("torch", "1.13")]


def test_fetch(tmp_path, data, monkeypatch):
    sources_directory = tmp_path / "wheels"
    wheel(sources_directory, "torchdata-0.3.0", OLD)
    wheel(sources_directory, "torchdata-0.11.0", NEW)
    run("build", "torchdata", "--sources", sources_directory, "--jobs", 1)
    (sources_directory / "torchdata-0.3.0").rename(tmp_path / "elsewhere")

    def download(package, version, into):
        path = into / f"{package}-{version}.1-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("torchdata/__init__.py", OLD)
        return path

    monkeypatch.setattr(wheels, "download", download)
    assert run("fetch", "torchdata", "--sources", sources_directory).startswith("torchdata 0.3: ")
    assert (sources_directory / "torchdata-0.3.1/torchdata/__init__.py").read_text() == OLD
    assert run("fetch", "torchdata", "--sources", sources_directory) == ""


def test_a_release_without_a_wheel(data, monkeypatch):
    def download(package, version, into):
        raise wheels.NoWheel(f"{package}=={version}: pip found nothing")

    monkeypatch.setattr(wheels, "download", download)
    result = CliRunner().invoke(api_data.main, ["update", "torch", "9.9"])
    assert result.exit_code == 1
    assert result.output == "Error: torch==9.9: pip found nothing\n"
