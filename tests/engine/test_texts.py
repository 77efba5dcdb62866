"""Findings name what they are about, and fixes say what they change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness.catalogue import loaded_rules

from torchmigrate.cli.commands import commands
from torchmigrate.report.rule_texts import generic


def shown(tmp_path: Path, text: str, code: str) -> str:
    path = tmp_path / "model.py"
    path.write_text(text + "\n", encoding="utf-8")
    run = CliRunner().invoke(commands, ["check", "--isolated", f"--select={code}", str(path)])
    assert code in run.stdout, run.output
    return " ".join(run.stdout.split())


@pytest.mark.parametrize(
    ("code", "text", "said"),
    [
        ("TM650", "import torch\ntorch.onnx.export(m, x, f, aten=True)", "no longer takes `aten`"),
        ("TM655", "import torch\ntorch.onnx.export(m, x, f, custom_opsets={'a': 1})", "`custom_opsets` of"),
        ("TM666", "import torch\ntorch.export.export(m, x, constraints=c)", "no longer takes `constraints`"),
        ("TM805", "import torchaudio\ntorchaudio.load(p, buffer_size=1)", "ignores `buffer_size`"),
        ("TM820", "import torchaudio\ntorchaudio.functional.resample(x, 1, 2, resampling_method='kaiser_window')",
         "`resampling_method` of"),
        ("TM844", "import torchaudio\ntorchaudio.datasets.YESNO(r, transform=t)", "`transform` of"),
        ("TM858", "import torchtext\ntorchtext.datasets.WikiText2(text_field=t)", "`text_field` of"),
        ("TM660", "import torch\ntorch.onnx.ONNXProgram(model_proto=p)", "no longer takes `model_proto`"),
        ("TM400", "import torch\ntorch.nn.BCELoss(size_average=False)", "fix: "),
        ("TM400", "import torch\ntorch.nn.BCELoss(size_average=self.mean)",
         '`reduction="mean" if self.mean else "sum"`'),
        ("TM154", "import torch\ndef f(x: torch.Tensor): x.add_(1 - b, x)", "fix: Write `alpha=1 - b`"),
        ("TM154", "import torch\ndef f(x: torch.Tensor): x.add_(-b * an_expression_of_more['than forty characters'], x)",
         "`alpha=-b * an_expression_of_more['than fort...`"),
        ("TM021", "import torch\nisinstance(x, torch._six.string_classes)", "fix: Replace with `(str, bytes)`"),
        ("TM545", "import torch\ntorch.distributed.optim.ZeroRedundancyOptimizer(p, group=g)",
         "fix: Write `process_group=...` for `group`"),
        ("TM540", "import torch\ntorch.distributed.init_process_group('gloo', group_name='a')",
         "fix: Drop `group_name`"),
        ("TM096", "import torch\ntorch.range(0, 3)", "fix: "),
        ("TM658", "import torch\ntorch.onnx._export(m, x, f)", "call `torch.onnx.export(model, args, path)`"),
        ("TM068", "from torch.utils.dlpack import DLDeviceType as D\nD.kDLGPU", "kDLCUDA"),
        ("TM767", "import torchvision.transforms.functional as F\nF._get_image_size(i)", "get_image_size"),
    ],
)  # fmt: skip
def test_what_is_said(tmp_path: Path, code: str, text: str, said: str) -> None:
    assert said in shown(tmp_path, text, code)


def test_no_text_leaves_out_what_it_is_about() -> None:
    vague = re.compile(
        r"\b(this|an?) argument\b|^(argument|parameter)s? of|such argument|other parameters now", re.I
    )
    assert [item.rule.code for item in loaded_rules() if vague.search(item.rule.summary)] == []
    texts = [generic(item.rule, text) for item in loaded_rules() for text in (item.rule.summary,)]
    assert not [text for text in texts if re.search(r"\{(argument|name|new)\}", text)]
