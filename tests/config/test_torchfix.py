"""TorchFix's codes: what they report is found by the rules that stand for them, hidden by their noqa, selected."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness.catalogue import catalogue
from harness.program import only
from harness.program import run as checked

from torchmigrate.catalogue.codes import UNUSED_SUPPRESSION as UNUSED
from torchmigrate.config.selection import SelectorError, codes_of
from torchmigrate.config.torchfix_codes import CODES, LATER_NAMES, TorchFixCode, ours
from torchmigrate.findings import Finding
from torchmigrate.semantics.libraries import LIBRARY_ROOTS

ROOT = Path(__file__).parents[2]
EVERY = {code: code for code in (*(rule.code for rule in catalogue().rules), UNUSED)}


def found(text: str, codes: frozenset[str]) -> list[Finding]:
    return checked(text, *only(codes)).findings


def rows(text: str, codes: frozenset[str]) -> list[int]:
    return [text.count("\n", 0, item.start) + 1 for item in found(text, codes)]


def calls_and_imports() -> list[tuple[str, str]]:
    """Code and program for every name that TorchFix reports wherever it is called or imported."""
    programs = []
    for code in ("TOR001", "TOR101", "TOR104"):
        for name in CODES[code].rules:
            programs.append((code, f"import {name.partition('.')[0]}\ny = {name}(a, b, c)\n"))
    for code in ("TOR004", "TOR103", "TOR105"):
        for name in CODES[code].rules:
            module, _, last = name.rpartition(".")
            programs.append((code, f"import torch\nfrom {module} import {last}\n"))
    return programs


# What TorchFix reports is always in the second line.
PROGRAMS = [
    *calls_and_imports(),
    ("TOR002", "import torch\nparameter.require_grad = False\n"),
    ("TOR003", "import torch.utils.checkpoint\ntorch.utils.checkpoint.checkpoint(f, x)\n"),
    ("TOR102", "import torch\ntorch.load(path)\n"),
    ("TOR106", "import torch\ntorch.log(1 + x)\n"),
    ("TOR106", "import torch\ntorch.log(x + 1.0)\n"),
    ("TOR107", "import torch\ntorch.exp(x) - 1\n"),
    ("TOR108", "import torch\ntorch.log(torch.sum(torch.exp(x), 1, keepdim=True))\n"),
    ("TOR201", "from torchvision import models\nmodels.resnet18(True)\n"),
    ("TOR201", "from torchvision import models\nmodels.regnet_y_128gf(pretrained=flag)\n"),
    (
        "TOR201",
        "from torchvision.models import detection\ndetection.maskrcnn_resnet50_fpn(pretrained=True)\n",
    ),
    (
        "TOR201",
        "from torchvision.models import segmentation as s\ns.fcn_resnet50(pretrained_backbone=False)\n",
    ),
    ("TOR202", "from torchvision.transforms import v2\nv2.Compose([v2.ToTensor()])\n"),
    ("TOR202", "import torch\nfrom torchvision.transforms.v2 import ToTensor\n"),
    ("TOR203", "import torch\nimport torchvision.models as models\n"),
    ("TOR203", "import torch\nimport torchvision.datasets as datasets, os\n"),
    ("TOR203", "import torch\nimport torchvision.transforms as transforms\n"),
    ("TOR401", "from torch.utils.data import DataLoader\nDataLoader(data)\n"),
    ("TOR401", "from torch.utils.data import DataLoader\nDataLoader(data, 1, False, None, None, 0)\n"),
    ("TOR402", "import torch\nmodel.zero_grad(set_to_none=False)\n"),
    ("TOR402", "import torch\nmodel.zero_grad(False)\n"),
    ("TOR901", "import torch, pytest\ntorch.library.Library('a', 'DEF')\n"),
]


@pytest.mark.parametrize(("code", "program"), PROGRAMS)
def test_what_torchfix_reports(code: str, program: str) -> None:
    assert set(rows(program, ours(code))) == {2}
    hidden = program.rstrip("\n") + f"  # noqa: {code}\n"
    assert found(hidden, ours(code) | {UNUSED}) == []


def test_every_code_has_a_program() -> None:
    assert {code for code, _ in PROGRAMS} == set(CODES)


def test_every_name_is_in_the_catalogue() -> None:
    for code, entry in CODES.items():
        assert entry.rules, code
        for what, codes in entry.rules.items():
            known = {rule.code for rule, _ in catalogue().for_name(what)}
            assert what.partition(".")[0] not in LIBRARY_ROOTS or set(codes) <= known, what
            assert set(codes) <= EVERY.keys(), what
    assert len(LATER_NAMES) == 4


# ---- noqa -------------------------------------------------------------------------------------------


QR, LOAD = "import torch\ntorch.qr(a)", "import torch\ntorch.load(a)"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{QR}  # noqa: TOR101", []),
        (f"{QR}  # noqa: E501,TOR101", []),
        (f"{QR}  # noqa: tor101", []),
        (f"{QR}  # noqa: TOR1", []),
        (f"{QR}  # NOQA:TOR103 the old cluster", []),
        (f"{QR}  # noqa: TOR102", ["TM104"]),
        (f"{QR}  # noqa: TOR2", ["TM104"]),
        (f"{QR}  # noqa: TORX101", ["TM104"]),
        (f"{QR}\n# noqa: TOR101", ["TM104"]),
        (f"{LOAD}  # noqa: TOR102", []),
        (f"{LOAD}  # noqa: TOR101", ["TM600"]),
    ],
)
def test_noqa(line: str, expected: list[str]) -> None:
    codes = frozenset(EVERY)
    assert [item.code for item in found(f"{line}\n", codes)] == expected


def test_noqa_that_hides_nothing_is_theirs() -> None:
    assert found("import torch\ntorch.linalg.qr(a)  # noqa: TOR101\n", frozenset(EVERY)) == []
    assert [item.code for item in found("import torch\nx = 1  # noqa: TM104\n", frozenset(EVERY))] == [UNUSED]


def test_ours_do_not_take_theirs() -> None:
    text = "import torch\ntorch.qr(a)  # torchmigrate: ignore[TOR101]\n"
    assert [item.code for item in found(text, frozenset(["TM104"]))] == ["TM104"]


# ---- selection --------------------------------------------------------------------------------------


def test_selecting() -> None:
    heads = catalogue().heads
    assert codes_of("TOR106", heads)[1] == {"TM990"}
    assert codes_of("TOR00", heads)[1] == ours("TOR001") | ours("TOR002") | ours("TOR003")
    assert codes_of("TOR", heads)[1] == frozenset().union(*(entry.ours for entry in CODES.values()))
    some = [head for head in heads if head.code == "TM104"]
    assert codes_of("TOR101", some)[1] == {"TM104"}
    for unknown in ("TOR109", "TOR3", "TO", "TORCH"):
        with pytest.raises(SelectorError):
            codes_of(unknown, heads)


def test_our_code_is_more_specific() -> None:
    heads = catalogue().heads
    assert codes_of("TOR101", heads)[0] < codes_of("TM104", heads)[0]
    assert codes_of("TOR1", heads)[0] < codes_of("TOR101", heads)[0]


def test_a_code_stands_for_each_of_ours_once() -> None:
    entry = TorchFixCode("some", {"a": ("TM104", "TM100"), "b": ("TM104",)})
    assert entry.ours == ("TM100", "TM104")


# ---- texts ------------------------------------------------------------------------------------------


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchmigrate", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_explain() -> None:
    done = run("explain", "TOR203")
    assert done.returncode == 0
    assert done.stdout.startswith("TOR203 `import torchvision.models as models`\n\nTorchFix 0.7.0.\n")
    assert "TM996  torchvision-import-as  " in done.stdout
    assert "torchvision.models -> TM996" in done.stdout
    assert "not yet in a release" in run("explain", "tor402").stdout
    done = run("explain", "TOR109")
    assert done.returncode == 2
    assert done.stderr == "error: unknown rule `TOR109`; did you mean `TOR108`?\n"


def test_page_of_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The site builds it; here, that it names every code of theirs, and ours with their page."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import torchfix_table

    page = torchfix_table.page()
    assert set(CODES) <= set(re.findall(r"\bTOR\d{3}\b", page))
    for entry in CODES.values():
        assert all(f"[{code}](rules/{code}.md)" in page for code in entry.ours)
