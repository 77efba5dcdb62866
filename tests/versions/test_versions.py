"""Releases, version ranges, and the minimum that a project's dependencies state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.files.paths import entries, shared_directories, work_tree_of
from torchmigrate.findings import Applicability, Severity
from torchmigrate.report.reasons import sentence
from torchmigrate.versions.bounds import Bound, name_of, of_conda, of_poetry, of_requirement
from torchmigrate.versions.detect import Required, Requirements
from torchmigrate.versions.range import VersionRange, applicability, severity
from torchmigrate.versions.releases import (
    COMPANIONS,
    NEWEST,
    RELEASES,
    companion,
    parse_version,
    show_version,
)


def rule(library: str = "torch", **versions: str) -> Rule:
    return Rule(code="TM100", name="x", summary="x", library=library, symbols={}, **versions)


# ---- releases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.6", (2, 6)),
        ("1.10", (1, 10)),
        ("2.6.1+cu118", (2, 6)),
        (" 1.13.1 ", (1, 13)),
        ("v2.0.0", (2, 0)),
        ("1.13.0a0+d0d6b1f", (1, 13)),
        ("2.0.0.dev20230101+cpu", (2, 0)),
        ("1.8.0rc2", (1, 8)),
        ("1.7.1.post2", (1, 7)),
    ],
)
def test_parse_version(text: str, version: tuple[int, int]) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize("text", ["", "2", "two", "2.x", ">=2.0", "2.0 or later", "2.0.", "1,10"])
def test_parse_version_says_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a release such as 2\.6, 1\.10 or 2\.6\.1\+cu118"):
        parse_version(text)


def test_releases_in_order_without_gaps_within_a_major() -> None:
    assert list(RELEASES) == sorted(RELEASES)
    assert RELEASES[0] == (1, 0)
    assert RELEASES[-1] == parse_version(NEWEST) == (2, 15)
    assert (1, 13) in RELEASES
    assert (1, 14) not in RELEASES


@pytest.mark.parametrize(
    ("library", "torch", "release"),
    [
        # Requires-Dist of the wheels
        ("torchvision", "1.1", "0.3"),
        ("torchvision", "1.2", "0.4"),
        ("torchvision", "1.3", "0.4"),
        ("torchvision", "1.4", "0.5"),
        ("torchvision", "1.13", "0.14"),
        ("torchvision", "2.0", "0.15"),
        ("torchvision", "2.10", "0.25"),
        ("torchvision", "2.14", "0.29"),
        ("torchvision", "2.15", "0.29"),
        ("torchaudio", "1.2", "0.3"),
        ("torchaudio", "1.3", "0.3"),
        ("torchaudio", "1.4", "0.4"),
        ("torchaudio", "1.13", "0.13"),
        ("torchaudio", "2.0", "2.0"),
        ("torchaudio", "2.11", "2.11"),
        ("torchaudio", "2.15", "2.11"),
        ("torchtext", "1.7", "0.8"),
        ("torchtext", "1.8", "0.9"),
        ("torchtext", "2.2", "0.17"),
        ("torchtext", "2.3", "0.18"),
        ("torchtext", "2.15", "0.18"),
        ("torchdata", "1.11", "0.3"),
        ("torchdata", "2.1", "0.7"),
        ("torchdata", "2.4", "0.8"),
        ("torchdata", "2.15", "0.11"),
        ("functorch", "1.11", "0.1"),
        ("functorch", "1.12", "0.2"),
        ("functorch", "1.13", "1.13"),
        ("functorch", "2.13", "2.13"),  # functorch.__version__ is torch.__version__
        ("torch", "1.7", "1.7"),
        ("apex", "1.7", "1.7"),
    ],
)
def test_companions(library: str, torch: str, release: str) -> None:
    assert show_version(companion(library, parse_version(torch))) == release


def test_companions_never_go_back() -> None:
    for table in COMPANIONS.values():
        versions = [table[torch] for torch in sorted(table)]
        assert versions == sorted(versions)
        assert max(table) == RELEASES[-1]


def test_torch_newer_than_the_table() -> None:
    assert companion("torchvision", (2, 99)) == companion("torchvision", RELEASES[-1])
    assert companion("functorch", (2, 99)) == (2, 99)


# ---- ranges -----------------------------------------------------------------------------------------


def test_range_of_libraries() -> None:
    versions = VersionRange("2.6", "1.10")
    assert versions.of("torch") == ((2, 6), (1, 10))
    assert versions.of("torchvision") == ((0, 21), (0, 11))
    assert versions.of("apex") == ((2, 6), (1, 10))
    assert VersionRange().of("torch") == ((2, 15), None)
    assert VersionRange(minimum="1.6").of("functorch") == ((2, 15), (0,))


def test_range_is_checked() -> None:
    with pytest.raises(ValueError, match=r"minimum, torch 2\.0, is newer than the target, torch 1\.13"):
        VersionRange("1.13", "2.0")
    with pytest.raises(ValueError, match="`new` is not a release"):
        VersionRange("new")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("1.6", None),
        ("1.7", Severity.INFO),
        ("1.8", Severity.INFO),
        ("1.9", Severity.WARNING),
        ("1.10", Severity.WARNING),
        ("2.0", Severity.ERROR),
    ],
)
def test_severity(target: str, expected: Severity | None) -> None:
    assert severity(rule(outdated="1.7", deprecated="1.9", removed="2.0"), VersionRange(target)) is expected


def test_severity_of_changed_and_of_other_libraries() -> None:
    assert severity(rule(changed="2.6"), VersionRange("2.6")) is Severity.WARNING
    assert severity(rule(changed="2.6"), VersionRange("2.5")) is None
    assert severity(rule(changed="2.6"), VersionRange("2.9", "2.5")) is Severity.WARNING
    assert severity(rule(changed="2.6"), VersionRange("2.9", "2.6")) is None
    assert severity(rule(deprecated="2.4", changed="2.6"), VersionRange("2.9", "2.6")) is None
    assert severity(rule(deprecated="2.6", changed="2.6"), VersionRange("2.9", "2.7")) is Severity.WARNING
    assert severity(rule(outdated="2.6", changed="2.6"), VersionRange("2.9", "2.6")) is Severity.INFO
    assert severity(rule(changed="2.6", removed="2.9"), VersionRange("2.9", "2.6")) is Severity.ERROR
    assert severity(rule("torchvision", changed="0.17"), VersionRange("2.9", "2.2")) is None
    assert severity(rule("torchvision", changed="0.17"), VersionRange("2.9", "2.1")) is Severity.WARNING
    assert severity(rule("torchvision", removed="0.15"), VersionRange("1.13")) is None
    assert severity(rule("torchvision", removed="0.15"), VersionRange("2.0")) is Severity.ERROR
    assert severity(rule("functorch", deprecated="2.0"), VersionRange("1.9")) is None
    assert severity(rule("somebodys_library", removed="3.0"), VersionRange("1.9")) is Severity.ERROR


def told(case: Case, of: Rule, versions: VersionRange) -> tuple[Applicability, str | None]:
    level, reasons = applicability(case, of, versions)
    return level, sentence(reasons)


def test_applicability() -> None:
    safe = Case(rename="torch.outer", requires="1.8")
    assert told(safe, rule(), VersionRange()) == (Applicability.SAFE, None)
    assert told(safe, rule(), VersionRange(minimum="1.8")) == (Applicability.SAFE, None)
    assert told(safe, rule(), VersionRange(minimum="1.6")) == (
        Applicability.UNSAFE,
        "needs torch 1.8, but the project supports torch 1.6",
    )
    assert told(safe, rule(), VersionRange("1.7")) == (
        Applicability.DISPLAY,
        "needs torch 1.8, but the target is torch 1.7",
    )
    assert told(Case(), rule(), VersionRange("1.0", "1.0")) == (Applicability.SAFE, None)


def test_applicability_keeps_a_reason_of_its_own() -> None:
    case = Case(requires="1.8", applicability=Applicability.UNSAFE, reason="copies")
    assert told(case, rule(), VersionRange(minimum="1.8")) == (Applicability.UNSAFE, "copies")
    lacks = "needs torch 1.8, but the project supports torch 1.6; copies"
    assert told(case, rule(), VersionRange(minimum="1.6")) == (Applicability.UNSAFE, lacks)
    shown = replace(case, applicability=Applicability.DISPLAY)
    assert told(shown, rule(), VersionRange(minimum="1.6")) == (Applicability.DISPLAY, "copies")


def test_a_fix_of_what_the_minimum_does_otherwise_is_not_safe() -> None:
    ignored = rule("torchvision", deprecated="0.9", changed="0.14", removed="0.16")
    other = "torchvision 0.14 made something else of it"
    assert told(Case(), ignored, VersionRange()) == (Applicability.SAFE, None)
    assert told(Case(), ignored, VersionRange(minimum="1.12")) == (Applicability.SAFE, None)
    assert told(Case(), ignored, VersionRange(minimum="1.13")) == (Applicability.UNSAFE, other)
    assert told(Case(), ignored, VersionRange(minimum="2.0")) == (Applicability.UNSAFE, other)
    assert told(Case(), ignored, VersionRange(minimum="2.1")) == (Applicability.SAFE, None)


def test_applicability_counts_in_the_rules_library_or_the_one_that_is_named() -> None:
    own = Case(requires="0.13")
    assert told(own, rule("torchvision"), VersionRange(minimum="1.11")) == (
        Applicability.UNSAFE,
        "needs torchvision 0.13, but the project supports torchvision 0.12",
    )
    named = Case(requires="torch 2.0")
    assert told(named, rule("functorch"), VersionRange(minimum="1.13"))[0] is Applicability.UNSAFE
    assert told(named, rule("torchaudio"), VersionRange(minimum="2.0"))[0] is Applicability.SAFE
    assert told(Case(requires="1.6"), rule("apex"), VersionRange(minimum="1.5")) == (
        Applicability.UNSAFE,
        "needs torch 1.6, but the project supports torch 1.5",
    )
    assert told(Case(requires="0.2"), rule("functorch"), VersionRange(minimum="1.5")) == (
        Applicability.UNSAFE,
        "needs functorch 0.2, but the project supports no functorch",
    )


# ---- what a requirement allows ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "minimum"),
    [
        ("torch>=1.7", (1, 7)),
        ("torch==1.7.1", (1, 7)),
        ("torch==1.7.1+cu110", (1, 7)),
        ("torch==1.10.*", (1, 10)),
        ("torch>1.7", (1, 7)),  # 1.7.1
        ("torch>1.7.1", (1, 8)),
        ("torch>1.6", (1, 7)),
        ("torch~=1.8", (1, 8)),
        ("torch~=2.0.0", (2, 0)),
        ("torch>=1.8,!=1.8.0,!=1.8.1", (1, 9)),
        ("torch!=1.8.0", None),
        ("torch<2", None),
        ("torch", None),
        ("Torch >= 1.4 , < 2.0", (1, 4)),
        ("torch[opt-einsum]>=2.2", (2, 2)),
        ('torch>=1.12; python_version < "3.9"', (1, 12)),
        ("torch (>=1.9)", (1, 9)),
        ("torch>=0.4.1", (1, 0)),
        ("torch==0.4", (1, 0)),
        ("torch>=3.0", (3, 0)),
        ("torch>=2.6.0.dev20241112", (2, 6)),
        (
            "torch @ https://download.pytorch.org/whl/cu113/torch-1.10.0%2Bcu113-cp38-cp38-linux_x86_64.whl",
            (1, 10),
        ),
        ("https://download.pytorch.org/whl/torch-2.1.0-cp310-none-macosx_11_0_arm64.whl", (2, 1)),
        ("torch @ git+https://github.com/pytorch/pytorch", None),
        ("torchvision>=0.8", (1, 7)),
        ("torchvision==0.9.1", (1, 8)),
        ("torchvision~=0.4.0", (1, 2)),
        ("torchvision==0.4.0", (1, 2)),
        ("torchvision>=0.4.1", (1, 3)),
        ("torchvision==0.4.2", (1, 3)),
        ("torchvision>0.4.0", (1, 3)),
        ("torchvision>=0.4", (1, 2)),
        ("torchaudio==0.3.0", (1, 2)),
        ("torchaudio==0.3.1", (1, 3)),
        ("torchaudio>=0.3.2", (1, 3)),
        ("torchvision==0.1.8", (1, 0)),
        ("torchvision>=9", None),
        ("torchvision<0.9", None),
        ("torchaudio==2.1.0", (2, 1)),
        ("https://download.pytorch.org/whl/torchvision-0.16.0-cp310-none-macosx_11_0_arm64.whl", (2, 1)),
        ("Pytorch: 1.7", (1, 7)),
        ("Torchvision: 0.8.1", (1, 7)),
        ("torch 1.7.1", (1, 7)),
        ("torch = 1.10.2+cu113", (1, 10)),
        ("- pytorch   v2.1", (2, 1)),
        ("numpy 1.26", None),
        ("git+https://github.com/x/torch", None),
        ("./local", None),
        ("", None),
    ],
)
def test_of_requirement(text: str, minimum: tuple[int, int] | None) -> None:
    assert oldest(of_requirement(text)) == minimum


def oldest(bound: Bound | None) -> tuple[int, ...] | None:
    return None if bound is None else bound.oldest


def test_of_requirement_that_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="`torch>=new` is not a requirement"):
        of_requirement("torch>=new")


@pytest.mark.parametrize(
    ("text", "minimum"),
    [
        ("^1.7", (1, 7)),
        ("~1.10.1", (1, 10)),
        ("~=1.10", (1, 10)),
        ("1.7.1", (1, 7)),
        ("=1.7.1", (1, 7)),
        ("2.*", (2, 0)),
        ("*", None),
        (">=1.8 <2.0", (1, 8)),
        (">= 1.8, < 2.0", (1, 8)),
        ("^1.7 || ^2.0", (1, 7)),
        ("<1.7 || ^2.0", None),
    ],
)
def test_of_poetry(text: str, minimum: tuple[int, int] | None) -> None:
    assert oldest(of_poetry(text)) == minimum


@pytest.mark.parametrize(
    ("text", "minimum"),
    [
        ("pytorch>=1.7", (1, 7)),
        ("pytorch >=1.7,<2", (1, 7)),
        ("pytorch=1.7", (1, 7)),
        ("pytorch==1.7.1", (1, 7)),
        ("pytorch=1.10.2=py3.8_cuda11.3_cudnn8.2.0_0", (1, 10)),
        ("pytorch 1.9.* py38_0", (1, 9)),
        ("pytorch::pytorch=2.1", (2, 1)),
        ("conda-forge::pytorch-cpu >=2.0.*", (2, 0)),
        ("pytorch=1.8|2.0.*", (1, 8)),
        ("pytorch==1.7.1=py3.8_cuda11.0.221_cudnn8.0.5_0", (1, 7)),
        ("pytorch::pytorch=1.12", (1, 12)),
        ("pytorch>=1.8=cuda*", (1, 8)),
        ("nvidia/label/cuda-11.8::pytorch = 2.0", (2, 0)),
        ("https://conda.anaconda.org/pytorch::pytorch=1.9", (1, 9)),
        ("pytorch[version='>=1.8,<2',build=cuda*]", (1, 8)),
        ('conda-forge::pytorch[build=cuda*, version="1.10.*"]', (1, 10)),
        ("pytorch[build=cuda*]", None),
        ("conda-forge::pytorch", None),
        ("pytorch<2", None),
        ("pytorch", None),
        ("pytorch-cuda=12.1", None),
        ("pytorch=*=cuda*", None),
        ("python>=3.8", None),
    ],
)
def test_of_conda(text: str, minimum: tuple[int, int] | None) -> None:
    assert oldest(of_conda(text)) == minimum


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("torchcodec>=0.1", "torchcodec"),
        ("TorchCodec [x] ; python_version > '3.9'", "torchcodec"),
        ("torchcodec @ https://x/y.whl", "torchcodec"),
        ("conda-forge::torchcodec=0.2", "torchcodec"),
        ("git+https://github.com/pytorch/torchcodec", ""),
        ("https://x/torchcodec-0.2-py3-none-any.whl", ""),
        ("torchcodec-nightly", "torchcodec-nightly"),
        ("", ""),
    ],
)
def test_name_of(text: str, name: str) -> None:
    assert name_of(text) == name


# ---- files ------------------------------------------------------------------------------------------

PYPROJECT = """
[project]
name = "x"
dependencies = ["numpy", {!r}]
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def required(directory: Path, **told: Any) -> Required:
    """What counts for a file in a directory, in a run that begins now."""
    for cache in (entries, work_tree_of, shared_directories):
        cache.cache_clear()
    return Requirements(**told).of(directory / "train.py")


def minimum(directory: Path) -> tuple[str, str] | None:
    found = required(directory)
    return (
        None
        if found.minimum is None or found.path is None
        else (show_version(found.minimum), found.path.name)
    )


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pyproject.toml", PYPROJECT.format("torch>=1.10"), "1.10"),
        ("pyproject.toml", PYPROJECT.format("torch"), None),
        (
            "pyproject.toml",
            '[project.optional-dependencies]\na = ["torch>=2.1"]\nb = ["torch>=1.9"]\n',
            "1.9",
        ),
        ("pyproject.toml", '[dependency-groups]\ndev = ["torch==2.3.0", {include-group = "a"}]\n', "2.3"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^1.13"\n', "1.13"),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntorch = {version = "~1.12", optional = true}\n',
            "1.12",
        ),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntorch = [{version = "2.0", python = "<3.12"}, {version = "2.2"}]\n',
            "2.0",
        ),
        ("pyproject.toml", '[tool.poetry.group.gpu.dependencies]\ntorch = ">=2.4"\n', "2.4"),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.6  \n", "1.6"),
        ("setup.cfg", "[options.extras_require]\nall =\n  torch>=1.5\n", "1.5"),
        (
            "setup.py",
            "from setuptools import setup\nsetup(install_requires=['numpy', 'torch>=1.4'])\n",
            "1.4",
        ),
        (
            "setup.py",
            "import setuptools\nBASE = ['torch>=1.3']\nREQ: list = BASE + ['numpy']\nREQ += ['x']\n"
            "setuptools.setup(install_requires=REQ)\n",
            "1.3",
        ),
        ("setup.py", "setup(extras_require={'torch': ('torch~=1.11',)})\n", "1.11"),
        ("setup.py", "setup(install_requires=open('requirements.txt').readlines() or 'torch>=1.2')\n", None),
        (
            "setup.py",
            "_deps = ['numpy', 'torch>=1.0', 'torch.cuda']\ndeps = table(_deps)\nsetup(install_requires=[deps['numpy']])\n",
            "1.0",
        ),
        ("setup.py", "a = b\nb = a\nsetup(install_requires=a)  # torch>=1.2\n", None),
        (
            "requirements.txt",
            "# torch>=1.0\nnumpy\ntorch==1.7.1 --hash=sha256:ab \\\n  --hash=sha256:cd # why\n",
            "1.7",
        ),
        ("requirements-dev.txt", "-e .\n--extra-index-url https://x/torch\ntorch >= 1.8\n", "1.8"),
        ("requirements.txt", "torch>=2.0\ntorchvision>=0.8\n", "2.0"),
        ("requirements.txt", "torch>=1.6\ntorchvision>=0.8\n", "1.7"),
        ("requirements.txt", "torch>=1.6\ntorchvision>=0.8\ntorchaudio==0.10.0\n", "1.10"),
        ("requirements.txt", 'torch>=1.6\ntorchvision>=0.8; python_version >= "3.8"\n', "1.6"),
        ("requirements.txt", "torch==1.6.0\ntorchvision>=0.8\n", "1.6"),  # they do not fit
        ("setup.py", "setup(install_requires=['torch>=1.6', 'torchvision>=0.8'])\n", "1.7"),
        (
            "setup.py",
            "setup(install_requires=['torch>=1.6'], extras_require={'v': ['torchvision>=0.8']})\n",
            "1.6",
        ),
        ("setup.py", "setup(extras_require={'t': ['torch>=1.6'], 'v': ['torchvision>=0.8']})\n", "1.6"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^1.6"\ntorchvision = "^0.8"\n', "1.7"),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntorch = "^1.6"\ntorchvision = {version = "^0.8", optional = true}\n',
            "1.6",
        ),
        ("requirements.txt", "torch==1.13.1\ntorchvision==0.9.1\n", "1.8"),  # they do not fit
        ("requirements.txt", "torch==1.7.0\ntorchvision==0.2.1\n", "1.7"),  # goes with every torch
        ("requirements.txt", "torchvision==0.2.1\n", "1.0"),
        ("requirements.txt", "torch\ntorchaudio==0.10.0\n", "1.10"),
        ("requirements.txt", "Python: 3.7\nPytorch: 1.7\nTorchvision: 0.8.1\n", "1.7"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorchvision = "^0.14"\n', "1.13"),
        ("environment.yml", "dependencies:\n  - python=3.8\n  - pytorch=1.9\n", "1.9"),
        ("environment.yml", "dependencies:\n  - pytorch\n  - torchvision=0.8\n", "1.7"),
        ("cog.yaml", "build:\n  gpu: true\n  python_packages:\n    - torch==1.8.1\n", "1.8"),
        ("cog.yaml", "build: true\n", None),
        ("environment.yaml", "dependencies:\n  - pip:\n    - torch==1.12.1\n    - numpy\n", "1.12"),
    ],
)
def test_find_minimum(repository: Path, name: str, text: str, expected: str | None) -> None:
    (repository / name).write_text(text)
    assert minimum(repository) == (None if expected is None else (expected, name))


def test_oldest_directory_wins_and_pyproject_within_one(repository: Path) -> None:
    inner = repository / "examples" / "one"
    inner.mkdir(parents=True)
    (repository / "pyproject.toml").write_text(PYPROJECT.format("torch>=1.10"))
    (repository / "requirements.txt").write_text("torch==1.5\n")
    assert minimum(inner) == ("1.10", "pyproject.toml")
    (inner / "requirements.txt").write_text("torch==1.6\n")
    assert required(inner) == Required((1, 6), inner / "requirements.txt")
    assert minimum(repository) == ("1.10", "pyproject.toml")


def test_a_file_without_a_bound_is_passed_over(repository: Path) -> None:
    (repository / "pyproject.toml").write_text(PYPROJECT.format("torch"))
    (repository / "requirements.txt").write_text("torch==1.5.1\n")
    assert minimum(repository) == ("1.5", "requirements.txt")


def test_requirements_that_include_others(repository: Path) -> None:
    (repository / "requirements").mkdir()
    (repository / "requirements.txt").write_text("-r requirements/base.txt\n-r gone.txt\n")
    (repository / "requirements" / "base.txt").write_text("-r ../requirements.txt\ntorch>=1.9\n")
    notes: list[str] = []
    found = required(repository, note=notes.append)
    assert found == Required((1, 9), repository / "requirements.txt")
    assert notes == [f"{repository / 'requirements.txt'}: gone.txt: cannot read: no such file or directory"]


def test_what_goes_with_another_library_lowers_no_bound_of_torch(repository: Path) -> None:
    """`torchaudio>=0.13.1` in a list for tests, and at the root of a part, beside `torch>=2.2`."""
    (repository / "requirements").mkdir()
    (repository / "requirements" / "test.txt").write_text("torchaudio>=0.13.1\n")
    (repository / "requirements" / "requirements.txt").write_text("torch>=2.2,<=2.5\n")
    part = repository / "part"
    part.mkdir()
    (part / "setup.py").write_text("setup(install_requires=['torchaudio>=0.12'])\n")
    assert minimum(part) == minimum(repository) == ("2.2", "requirements.txt")
    (part / "requirements.txt").write_text("torchvision==0.14.1\n")
    assert minimum(part) == ("2.2", "requirements.txt")  # of which setup.py comes first
    (part / "setup.py").unlink()
    assert minimum(part) == ("1.13", "requirements.txt")  # does not fit


@pytest.mark.parametrize("name", ["requirements", "dependencies"])
def test_requirements_directory(repository: Path, name: str) -> None:
    (repository / name).mkdir()
    (repository / name / "gpu.txt").write_text("torch>=2.1\n")
    (repository / name / "cpu.txt").write_text("torch>=2.0\n")
    assert minimum(repository) == ("2.0", "cpu.txt")


def test_the_search_ends_at_the_repository(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.5\n")
    inner = tmp_path / "repository"
    (inner / ".git").mkdir(parents=True)
    assert minimum(inner) is None


def test_the_search_ends_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "requirements.txt").write_text("torch==1.5\n")
    (tmp_path / "code").mkdir()
    assert minimum(tmp_path / "code") is None


def test_requirements_as_powershell_writes_them(repository: Path) -> None:
    (repository / "requirements.txt").write_bytes("torch==1.13.1\r\n".encode("utf-16"))
    assert minimum(repository) == ("1.13", "requirements.txt")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("pyproject.toml", b'[project\ndependencies = ["torch>=1.7"]'),
        ("pyproject.toml", b"\xff torch"),
        ("setup.cfg", b"torch\n[options\n"),
        ("setup.py", b"print 'torch'\n"),
        ("setup.py", b"torch = '\0'"),
        ("requirements.txt", b"torch>=new\n"),
        ("environment.yml", b"dependencies: [pytorch\n"),
        ("environment.yml", b"dependencies: ['pytorch>=new']\n"),
    ],
)
def test_malformed_files_are_left_out_with_a_note(repository: Path, name: str, data: bytes) -> None:
    (repository / name).write_bytes(data)
    notes: list[str] = []
    troubles: list[tuple[Path, str, bool]] = []
    found = required(repository, note=notes.append, trouble=lambda *trouble: troubles.append(trouble))
    assert found == Required()
    notes += [f"{path}: {reason}" for path, reason, refused in troubles if not refused]
    assert len(notes) == 1
    assert notes[0].startswith(str(repository / name))
    assert "\n" not in notes[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "project = 'torch'\n[tool]\npoetry = 3\n"),
        ("pyproject.toml", "[project]\ndependencies = 'torch>=1.7'\n[dependency-groups]\na = 1\n"),
        ("environment.yml", "- torch\n"),
        ("environment.yml", "dependencies: torch\n"),
        ("environment.yml", "dependencies: [{pip: torch}, 3, null]\n"),
    ],
)
def test_files_of_another_shape(repository: Path, name: str, text: str) -> None:
    (repository / name).write_text(text)
    assert required(repository) == Required()
