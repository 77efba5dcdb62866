"""`tools/new_release.py` in a checkout with an invented torch: two releases, a few rules."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import click
import new_release
import pytest
import yaml
from api.reader import read_release

from torchmigrate.versions.releases import NEWEST, RELEASES, show_version
from torchmigrate.versions.surface_file import decode, encode

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).parents[2]
NEXT = (RELEASES[-1][0], RELEASES[-1][1] + 1)
VERSION = show_version(NEXT)

OLD = """\
import warnings

def total(input, dim=None): ...
summed = total
def mean(input): ...
def average(input): ...
def rounded(input, digits=0): ...
def scaled(input, factor=1): ...
def filtered(input, strict=False): ...
def fused(conv, norm): ...
def dropped(input): ...
def nearly(input):
    warnings.warn("nearly is deprecated", FutureWarning)
def still(input):
    warnings.warn("still is deprecated", FutureWarning)

class Filter:
    def __init__(self, size): ...
    def push(self, x): ...
    def feed(self, x): ...
"""
NEW = """\
import warnings

def total(input, dim=None): ...
def mean(input): ...
def average(input):
    warnings.warn("`torch.maths.average` is deprecated. Use `torch.maths.mean` instead", FutureWarning)
def rounded(input, digits=2): ...
def scaled(input, scale=1): ...
def filtered(input, strict=False):
    if strict:
        warnings.warn("strict is deprecated", FutureWarning)
def fused(conv, norm, training): ...
def still(input): ...

class Filter:
    def __init__(self, size): ...
    def push(self, x):
        warnings.warn("`Filter.push` is deprecated, use `Filter.feed` instead", FutureWarning)
    def feed(self, x): ...
"""
RULE = """\
- code: {code}
  name: maths-{name}
  summary: "`{{name}}` is deprecated"
  why: It will be removed.
  library: torch
  deprecated: "2.12"
  symbols: [torch.maths.{name}]
  advice: remove it
  references: ["https://example.org/"]
  examples:
    - report_only: |
        import torch
        torch.maths.{name}(x)
    - clean: |
        import torch
        torch.maths.total(x)
"""


def wheel(directory: Path, text: str) -> Path:
    path = directory / f"torch-{VERSION}.0-py3-none-any.whl"
    information = f"torch-{VERSION}.0.dist-info"
    files = {
        "torch/__init__.py": "from torch import maths\n",
        "torch/maths.py": text,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}.0\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout that knows the old release, and the wheel of the new one beside it."""
    root = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("__pycache__", "*.gz", "_compiled.rules", "torch.txt")
    shutil.copytree(ROOT / "src" / "torchmigrate", root / "src" / "torchmigrate", ignore=ignored)
    for name in ("api", "drafts", "fact_coverage"):
        shutil.copytree(ROOT / "tools" / name, root / "tools" / name, ignore=ignored)
    for name in ("api_data.py", "coverage.py", "new_release.py"):
        shutil.copy(ROOT / "tools" / name, root / "tools")
    (root / "tools" / "releases").mkdir()
    (root / "rules" / "torch").mkdir(parents=True)
    rules = [RULE.format(code="TM120", name="nearly"), RULE.format(code="TM121", name="still")]
    (root / "rules" / "torch" / "maths.yaml").write_text("\n".join(rules), "utf-8")
    sources = root / "sources" / "torch"
    sources.mkdir(parents=True)
    (sources / "__init__.py").write_text("from torch import maths\n", "utf-8")
    (sources / "maths.py").write_text(OLD, "utf-8")
    data = root / "src" / "torchmigrate" / "versions" / "api" / "torch.gz"
    releases = [(RELEASES[-1], read_release("torch", sources.parent))]
    data.write_bytes(encode("torch", releases))
    wheel(root, NEW)
    return root


def run(root: Path, *arguments: str, code: int = 0) -> str:
    """Runs Python in the checkout, with the directory of the wheel as the package index."""
    index = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(root)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={**os.environ, **index, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def root(made: Path) -> Path:
    """The checkout after the tool has run."""
    assert run(made, "tools/new_release.py", "--newest").splitlines()[0] == VERSION
    out = run(made, "tools/new_release.py", VERSION, "--report", "report.md")
    assert f"torch {VERSION}: 6 rules drafted, 2 changed; see report.md\n" in out
    return made


def drafts(root: Path) -> dict[str, dict[str, Any]]:
    text = (root / "rules" / "torch" / f"new_{VERSION.replace('.', '_')}.yaml").read_text("utf-8")
    return {rule["name"]: rule for rule in yaml.safe_load(text)}


def test_the_release_is_known(root: Path) -> None:
    data = root / "src" / "torchmigrate" / "versions" / "api" / "torch.gz"
    assert [version for version, _ in decode(data.read_bytes())] == [RELEASES[-1], NEXT]
    assert run(root, "tools/new_release.py", "--newest") == ""
    code = "from torchmigrate.versions.releases import *; print(RELEASES[-1], NEWEST)"
    assert run(root, "-c", code) == f"{NEXT} {VERSION}\n"


def test_renamed_names(root: Path) -> None:
    same, advised = drafts(root)["maths-summed"], drafts(root)["maths-average"]
    assert same["symbols"] == {"torch.maths.summed": "torch.maths.total"}
    assert (same["removed"], "applicability" in same) == (VERSION, False)  # it is the same function
    assert same["examples"][0]["after"] == "from torch.maths import total\ntotal(input)\n"
    assert advised["symbols"] == {"torch.maths.average": "torch.maths.mean"}
    assert (advised["deprecated"], advised["applicability"]) == (VERSION, "unsafe")
    assert "Use `torch.maths.mean` instead" in advised["why"]
    method = drafts(root)["filter-push"]
    assert method["symbols"] == {"torch.maths.Filter.push": "torch.maths.Filter.feed"}


def test_parameters(root: Path) -> None:
    found = drafts(root)
    assert found["maths-scaled-factor"]["cases"][0]["arguments"] == {"keywords": {"factor": "scale"}}
    default = found["maths-rounded-digits"]
    assert (default["changed"], default["missing"]) == (VERSION, ["digits"])
    assert default["cases"] == [{"arguments": {"add": {"digits": "0"}}}]
    assert found["maths-filtered-strict"]["match"] == {"strict": {"not": False}}


def test_codes_are_free_ones_of_the_topic(root: Path) -> None:
    codes = [rule["code"] for rule in drafts(root).values()]
    assert len({*codes, "TM120", "TM121"}) == 8
    assert all(code.startswith("TM1") for code in codes)


def test_rules_that_are_there_are_changed(root: Path) -> None:
    nearly, still = yaml.safe_load((root / "rules" / "torch" / "maths.yaml").read_text("utf-8"))
    assert (nearly["deprecated"], nearly["removed"]) == ("2.12", VERSION)
    assert (still["deprecated"], still["outdated"]) == ("2.12", VERSION)  # it does not warn any longer


def test_examples_of_the_drafts_hold(root: Path) -> None:
    assert "of 6 rules: all hold." in run(root, "-m", "torchmigrate", "test-rules", "rules/torch/" + newest())


def newest() -> str:
    return f"new_{VERSION.replace('.', '_')}.yaml"


def test_every_change_in_the_list_is_found(root: Path) -> None:
    path = f"tools/releases/torch-{VERSION}.yaml"
    changes = [item["change"] for item in yaml.safe_load((root / path).read_text("utf-8"))["items"]]
    assert "`torch.maths.dropped` was removed" in changes  # TM001 finds it
    assert "`torch.maths.fused` requires `training`" in changes  # TM003 does
    assert "`torch.maths.nearly` was removed" in changes  # a rule that is there does
    assert len(changes) == 9
    assert run(root, "tools/coverage.py", path, "--class", "not found") == ""


def test_the_report_says_what_is_left(root: Path) -> None:
    report = (root / "report.md").read_text("utf-8")
    assert f"# torch {VERSION}\n\n6 drafts of rules in `rules/torch/{newest()}`" in report
    assert "`torch.maths.summed` was removed; use `torch.maths.total` (by identity)" in report
    assert (
        "## Reported by TM001 without advice: is there a replacement? (1)\n\n- `torch.maths.dropped`"
        in report
    )
    assert "- Read the release notes" in report


def test_a_program_is_checked_for_the_new_release(root: Path) -> None:
    (root / "program.py").write_text("import torch\ny = torch.maths.summed(x)\n", "utf-8")
    out = run(root, "-m", "torchmigrate", "check", "--isolated", "--diff", "program.py", code=1)
    assert "+y = torch.maths.total(x)" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a VERSION, or use --newest"),
        (["99.0"], f"99.0 does not follow {NEWEST}"),
        (["0.99", "--library", "torchvision"], "No matching distribution found for torchvision==0.99"),
    ],
)
def test_what_is_refused(made: Path, arguments: list[str], message: str) -> None:
    tables = made / "src" / "torchmigrate" / "versions" / "releases.py"
    before = tables.read_text("utf-8")
    code = 2 if not arguments else 1
    message = message.replace(NEWEST, before.partition('NEWEST = "')[2].partition('"')[0])
    assert message in run(made, "tools/new_release.py", *arguments, code=code)
    assert tables.read_text("utf-8") == before


def test_the_table_of_a_companion() -> None:
    tables = new_release.TABLES.read_text("utf-8")
    assert new_release.with_new_release(tables, "torchvision", (0, 28)) == tables  # it is there
    with pytest.raises(click.ClickException, match="add the release of torch that goes with it first"):
        new_release.with_new_release(tables, "torchvision", (0, 99))
    earlier = re.sub(r" [\d.]+ [\d.]+\",", '",', tables, count=1)
    assert earlier != tables
    changed = new_release.with_new_release(earlier, "torchvision", (0, 99))
    (row,) = re.findall(r'"torchvision": _lines\([^)]*', changed)
    assert row.split()[-3:] == ["0.28", "0.28", '0.99",']
