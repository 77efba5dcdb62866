"""The type of a literal decides where a parameter got another meaning."""

from __future__ import annotations

import pytest
from harness.program import fixed, run

CASES = [
    # The first argument was a flag, and is the name of a device type since torch 2.6.
    ('include_paths("cpu")', None),
    ('include_paths("cuda", True)', None),
    ("include_paths(kind)", None),
    ("include_paths(True)", 'include_paths(device_type="cuda")'),
    ("include_paths(not kind)", 'include_paths(device_type="cuda" if not kind else "cpu")'),
    (
        "include_paths(torch.cuda.is_available())",
        'include_paths(device_type="cuda" if torch.cuda.is_available() else "cpu")',
    ),
    ("include_paths(cuda=kind)", 'include_paths(device_type="cuda" if kind else "cpu")'),
    # `deterministic` has the place that `verbose` had.
    ("torch.backends.cudnn.flags(True, False, 10, True)", None),
    # `_use_dtensor` has the place, and the meaning, of `use_dtensor`.
    ("torch.distributed.fsdp.ShardedStateDictConfig(True, True)", None),
    ('torchvision.datasets.LSUN("data", "train")', None),
    # A builder takes weights in the place of the flag.
    ('torchvision.models.resnet50("DEFAULT")', 'torchvision.models.resnet50(weights="DEFAULT")'),
    (
        "detection.fasterrcnn_resnet50_fpn(FasterRCNN_ResNet50_FPN_Weights.DEFAULT)",
        "detection.fasterrcnn_resnet50_fpn(weights=FasterRCNN_ResNet50_FPN_Weights.DEFAULT)",
    ),
    (
        'detection.fasterrcnn_resnet50_fpn("DEFAULT")',
        'detection.fasterrcnn_resnet50_fpn(weights="DEFAULT")',
    ),
    (
        'detection.backbone_utils.resnet_fpn_backbone("resnet18", "DEFAULT")',
        'detection.backbone_utils.resnet_fpn_backbone(backbone_name="resnet18", weights="DEFAULT")',
    ),
]
HEAD = """import torch
import torchvision
from torch.utils.cpp_extension import include_paths
from torchvision.models import detection
from torchvision.models.detection import FasterRCNN_ResNet50_FPN_Weights

kind = choose()
x = {0}
"""


@pytest.mark.parametrize(("old", "new"), CASES)
def test_what_an_argument_is(old: str, new: str | None) -> None:
    text = HEAD.format(old)
    if new is None:
        assert run(text).findings == []
    else:
        assert fixed(text, "--fix") == HEAD.format(new)


@pytest.mark.parametrize(
    "old",
    [
        'torch.cuda.amp.autocast("cuda")',
        'torch.cuda.amp.autocast("cuda", dtype=torch.float16)',
        'torch.cuda.amp.GradScaler("cuda")',
        'torch.nn.MSELoss("mean")',
        'torch.nn.functional.cross_entropy(a, b, w, "sum")',
    ],
)
def test_a_string_in_the_place_of_another_type_is_only_reported(old: str) -> None:
    text = HEAD.format(old)
    assert len(run(text).findings) == 1
    assert fixed(text, "--fix", "--unsafe-fixes") == text


@pytest.mark.parametrize(
    "old", ["torchvision.models.resnet50(kind)", "detection.fasterrcnn_resnet50_fpn(kind)"]
)
def test_what_may_be_weights_already_is_not_safely_a_flag(old: str) -> None:
    assert fixed(HEAD.format(old), "--fix") == HEAD.format(old)
