"""What is published: packages that are the same wherever they are built, with the metadata of this release."""

from __future__ import annotations

import email.message
import email.parser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from torchmigrate import __version__
from torchmigrate.files.formats import read_toml

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).parents[2]
PROJECT = read_toml((ROOT / "pyproject.toml").read_bytes())
# What the image is built from: .dockerignore leaves out everything else.
CONTEXT = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)


def build(directory: Path, seed: str) -> Path:
    """Build both packages from a copy of the sources; the directory that they are in."""
    source = directory / "source"
    source.mkdir(parents=True)
    for name in CONTEXT:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "_compiled.rules")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory / "dist"), str(source)],
        cwd=directory,
        env={**kept, "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory / "dist"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("one"), "1")


@pytest.fixture(scope="module")
def metadata(packages: Path) -> email.message.Message:
    (wheel,) = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode("utf-8"))


def test_two_builds_are_the_same(packages: Path, tmp_path: Path) -> None:
    """In another directory, with another hash seed; the compiled rules are in the wheel."""
    other = build(tmp_path / "a longer name", "2")
    names = sorted(path.name for path in packages.iterdir())
    assert names == [f"torchmigrate-{__version__}-py3-none-any.whl", f"torchmigrate-{__version__}.tar.gz"]
    assert sorted(path.name for path in other.iterdir()) == names
    for name in names:
        assert (packages / name).read_bytes() == (other / name).read_bytes(), name


def test_metadata(metadata: email.message.Message) -> None:
    assert metadata["Name"] == "torchmigrate" and metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    urls = dict(each.split(", ") for each in metadata.get_all("Project-URL"))
    assert urls.keys() >= {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith("https://github.com/torchmigrate/torchmigrate") for url in urls.values())


def test_the_page_on_pypi(metadata: email.message.Message) -> None:
    """README.md, with links that lead to the files of this release."""
    text = metadata.get_payload()
    assert isinstance(text, str) and text.strip().startswith("# torchmigrate")
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    place = f"https://github.com/torchmigrate/torchmigrate/blob/v{__version__}/"
    files = [link.removeprefix(place).partition("#")[0] for link in links if link.startswith(place)]
    assert "docs/api.md" in files and all((ROOT / file).exists() for file in files)


def test_the_recipe_of_conda() -> None:
    """It asks for what pyproject.toml asks for."""
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text("utf-8"))
    assert recipe["context"]["version"] == __version__

    def plain(requirements: list[str]) -> list[str]:
        without_markers = (each.partition(";")[0] for each in requirements)
        return sorted(re.sub(r"\s", "", each).lower() for each in without_markers)

    run, host = recipe["requirements"]["run"], recipe["requirements"]["host"]
    assert run[0] == "python >=${{ python_min }}" and PROJECT["project"]["requires-python"] == ">=3.10"
    assert plain(run[1:]) == plain(PROJECT["project"]["dependencies"])
    assert plain(host[2:]) == plain(PROJECT["build-system"]["requires"])
    (script,) = recipe["build"]["python"]["entry_points"]
    assert script == f"torchmigrate = {PROJECT['project']['scripts']['torchmigrate']}"


# ---- scripts --------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much as the scripts read before they build."""
    path = tmp_path / "checkout"
    shutil.copytree(ROOT / ".ci", path / ".ci")
    (path / "src" / "torchmigrate").mkdir(parents=True)
    (path / "src" / "torchmigrate" / "__init__.py").write_text('__version__ = "0.2.0"\n', "utf-8")
    text = "# Changelog\n\n## 0.2.0 (2026-03-01)\n\n- Second.\n\n## 0.1.0 (not released yet)\n\n- First.\n"
    (path / "CHANGELOG.md").write_text(text, "utf-8")
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    for command in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message=all")):
        subprocess.run([*git, *command], cwd=path, check=True)
    return path


def script(checkout: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(checkout / command[0]), *command[1:]], capture_output=True, text=True)


def test_notes(checkout: Path) -> None:
    done = script(checkout, ".ci/release-notes", "v0.2.0")
    assert done.returncode == 0 and done.stdout.strip() == "- Second."


@pytest.mark.parametrize("tag", ["v0.1.0", "v0.2.1", "v0.2"])
def test_no_release_without_a_section_and_a_date(checkout: Path, tag: str) -> None:
    done = script(checkout, ".ci/release-notes", tag)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == f'.ci/release-notes: CHANGELOG.md has no section "## {tag[1:]} (YYYY-MM-DD)"\n'


def test_no_release_of_another_version(checkout: Path) -> None:
    done = script(checkout, ".ci/release", "v0.3.0")
    assert done.returncode == 1
    assert done.stderr == ".ci/release: the tag is v0.3.0, and the version is 0.2.0\n"
    (checkout / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 0.2.0 (not released yet)\n\n- Second.\n", "utf-8"
    )
    done = script(checkout, ".ci/release", "v0.2.0")
    assert done.returncode == 1 and "CHANGELOG.md has no section" in done.stderr


def test_the_changelog_is_about_this_version() -> None:
    first = re.search(r"^## (\S+) \(", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert first is not None and first[1] == __version__
