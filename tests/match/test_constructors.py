"""Rules on the arguments of a class, where a subclass calls its constructor."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

CODES = ["TM400", "TM416", "TM418", "TM451"]
HEAD = "import torch\nfrom torch import nn\n"


@pytest.mark.parametrize(
    ("base", "call", "fixed"),
    [
        ("nn.MSELoss", "super().__init__(size_average=False)", 'super().__init__(reduction="sum")'),
        ("nn.MSELoss", "super(Mine, self).__init__(False)", 'super(Mine, self).__init__(reduction="sum")'),
        ("nn.MSELoss", "nn.MSELoss.__init__(self, False)", 'nn.MSELoss.__init__(self, reduction="sum")'),
        ("nn.KLDivLoss", "super().__init__()", 'super().__init__(reduction="batchmean")'),
        ("nn.Softmax", "super().__init__()", "super().__init__(dim=1)"),
        (
            "torch.optim.lr_scheduler.StepLR",
            "super().__init__(optimizer, 3, verbose=False)",
            "super().__init__(optimizer, 3)",
        ),
    ],
)
def test_fixed(base: str, call: str, fixed: str) -> None:
    def text(line: str) -> str:
        return f"{HEAD}class Mine({base}):\n    def __init__(self, optimizer):\n        {line}\n"

    findings, new = checked_and_fixed(text(call), CODES)
    assert len(findings) == 1
    assert new == text(fixed)


@pytest.mark.parametrize(
    "text",
    [
        # of a mixin nobody knows to whom it passes them on
        "class Mine(Mixin, nn.MSELoss):\n    def __init__(self):\n        super().__init__(size_average=False)\n",
        "class Mine(nn.MSELoss):\n    def __init__(self, **options):\n        super().__init__(**options)\n",
        "class Mine(nn.KLDivLoss):\n    def __init__(self, *given):\n        super().__init__(*given)\n",
        "class Mine(nn.MSELoss):\n    def __init__(self):\n        self.inner.__init__(size_average=False)\n",
    ],
)
def test_left_alone(text: str) -> None:
    assert checked_and_fixed(HEAD + text, CODES)[0] == []


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("partial(torch.optim.lr_scheduler.StepLR, step_size=3, verbose=True)", ["TM451"]),
        ("partial(torch.optim.lr_scheduler.StepLR, step_size=3, **{'verbose': True})", ["TM451"]),
        ("partial(torch.optim.lr_scheduler.StepLR, optimizer, 3, 0.1, -1, True)", ["TM451"]),
        ("partial(torch.optim.lr_scheduler.StepLR, step_size=3)", []),
        ("partial(torch.optim.lr_scheduler.StepLR, *given)", []),
        ("partial(nn.Softmax)", []),  # `dim` may be given later
    ],
)
def test_arguments_that_partial_prepares(call: str, found: list[str]) -> None:
    text = f"{HEAD}from functools import partial\nmake = {call}\n"
    findings, new = checked_and_fixed(text, CODES)
    assert [finding.code for finding in findings] == found
    assert new == text, "there is no fix"
