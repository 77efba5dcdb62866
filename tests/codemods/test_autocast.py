"""Binary cross entropy in mixed precision: sigmoid and loss change together, or neither."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

CODES = ["TM204"]
HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F
from torch.cuda.amp import autocast
torch.manual_seed(0)
"""

FIXED = {
    "on the spot": (
        "with autocast():\n    loss = F.binary_cross_entropy(torch.sigmoid(a + b), y, weight=w)\n",
        "with autocast():\n    loss = F.binary_cross_entropy_with_logits(a + b, y, weight=w)\n",
    ),
    "before a method": (
        "with autocast():\n    loss = F.binary_cross_entropy(torch.sigmoid(a + b).view(-1), y)\n",
        "with autocast():\n    loss = F.binary_cross_entropy_with_logits((a + b).view(-1), y)\n",
    ),
    "a variable for the loss alone": (
        "def f(x, y):\n    p = x.sigmoid()\n    with autocast():\n        return F.binary_cross_entropy(p, y)\n",
        "def f(x, y):\n    p = x\n    with autocast():\n        return F.binary_cross_entropy_with_logits(p, y)\n",
    ),
    "a variable for more than the loss": (
        "def f(x, y):\n    with autocast():\n        p = torch.sigmoid(x)\n"
        "        return F.binary_cross_entropy(p, y), p\n",
        "def f(x, y):\n    with autocast():\n        p = torch.sigmoid(x)\n"
        "        return F.binary_cross_entropy_with_logits(x, y), p\n",
    ),
    "a layer of the class": (
        "class T:\n    def __init__(self):\n        self.act = nn.Sigmoid()\n        self.bce = nn.BCELoss()\n"
        "    def step(self, x, y):\n        with autocast():\n            return self.bce(self.act(x), y)\n",
        "class T:\n    def __init__(self):\n        self.act = nn.Sigmoid()\n"
        "        self.bce = nn.BCEWithLogitsLoss()\n"
        "    def step(self, x, y):\n        with autocast():\n            return self.bce(x, y)\n",
    ),
    "the end of a model's forward": (
        "class Net(nn.Module):\n    def forward(self, x):\n        return torch.sigmoid(x - 1).view(-1)\n"
        "def main(x, y):\n    net = Net().cuda()\n    loss = nn.BCELoss()\n"
        "    with autocast():\n        out = net(x)\n        return loss(out, y)\n",
        "class Net(nn.Module):\n    def forward(self, x):\n        return (x - 1).view(-1)\n"
        "def main(x, y):\n    net = Net().cuda()\n    loss = nn.BCEWithLogitsLoss()\n"
        "    with autocast():\n        out = net(x)\n        return loss(out, y)\n",
    ),
    "a variable at the end of forward": (
        "class Net(nn.Module):\n    def forward(self, x):\n        x = x * 2\n        x = torch.sigmoid(x)\n"
        "        return x\n"
        "def main(x, y):\n    net = Net()\n"
        "    with autocast():\n        return F.binary_cross_entropy(net(x), y)\n",
        "class Net(nn.Module):\n    def forward(self, x):\n        x = x * 2\n        return x\n"
        "def main(x, y):\n    net = Net()\n"
        "    with autocast():\n        return F.binary_cross_entropy_with_logits(net(x), y)\n",
    ),
    "layers in a row": (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.Sequential(nn.Linear(3, 1), nn.Sigmoid())\n"
        "    def forward(self, x):\n        return self.layers(x).squeeze(1)\n"
        "def main(x, y):\n    net = Net()\n"
        "    with autocast():\n        return F.binary_cross_entropy(net(x), y)\n",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.Sequential(nn.Linear(3, 1))\n"
        "    def forward(self, x):\n        return self.layers(x).squeeze(1)\n"
        "def main(x, y):\n    net = Net()\n"
        "    with autocast():\n        return F.binary_cross_entropy_with_logits(net(x), y)\n",
    ),
    "a variable with an annotation": (
        "loss: nn.Module = nn.BCELoss()\nwith autocast():\n    loss(torch.sigmoid(x), y)\n",
        "loss: nn.Module = nn.BCEWithLogitsLoss()\nwith autocast():\n    loss(x, y)\n",
    ),
    "a decorated function": (
        "@torch.autocast('cuda')\ndef f(x, y):\n    return F.binary_cross_entropy(x.sigmoid(), y)\n",
        "@torch.autocast('cuda')\ndef f(x, y):\n    return F.binary_cross_entropy_with_logits(x, y)\n",
    ),
    "a region that is chosen": (
        "region = autocast() if fp16 else nullcontext()\nwith region:\n"
        "    F.binary_cross_entropy(torch.sigmoid(x), y)\n",
        "region = autocast() if fp16 else nullcontext()\nwith region:\n"
        "    F.binary_cross_entropy_with_logits(x, y)\n",
    ),
}
REPORTED = {
    "by default": (
        "def f(p, y, mixed=True):\n    with autocast(enabled=mixed):\n"
        "        return F.binary_cross_entropy(p, y)\n"
    ),
    "probabilities of a parameter": (
        "def f(p, y):\n    with autocast():\n        return F.binary_cross_entropy(p, y)\n"
    ),
    "the model is used elsewhere": (
        "class Net(nn.Module):\n    def forward(self, x):\n        return torch.sigmoid(x)\n"
        "def main(x, y):\n    net = Net()\n    with autocast():\n        p = net(x)\n"
        "        loss = F.binary_cross_entropy(p, y)\n    return loss, evaluate(net)\n"
    ),
    "what the model gives is used for more": (
        "class Net(nn.Module):\n    def forward(self, x):\n        return torch.sigmoid(x)\n"
        "def main(x, y):\n    net = Net()\n    with autocast():\n        p = net(x)\n"
        "        loss = F.binary_cross_entropy(p, y)\n    return loss, p > 0.5\n"
    ),
    "another loss of the same object has probabilities": (
        "loss = nn.BCELoss()\ndef f(x, p, y):\n    with autocast():\n"
        "        return loss(torch.sigmoid(x), y) + loss(p, y)\n"
    ),
    "the logits change in between": (
        "def f(x, y):\n    with autocast():\n        p = torch.sigmoid(x)\n        x = x * 2\n"
        "        return F.binary_cross_entropy(p, y), p, x\n"
    ),
    "the loss is chosen": (
        "loss = nn.BCELoss() if binary else nn.MSELoss()\nwith autocast():\n    loss(torch.sigmoid(x), y)\n"
    ),
    "the loss is passed to a function": (
        "def step(p, y, loss):\n    with autocast():\n        return loss(p, y)\n"
        "def main(p, y):\n    loss = nn.BCELoss()\n    step(p, y, loss=loss)\n"
    ),
    "the loss is passed to an object": (
        "class T:\n    def __init__(self, model, loss):\n        self.loss = loss\n"
        "    def step(self, p, y):\n        with autocast():\n            return self.loss(p, y)\n"
        "def main(model):\n    loss = nn.BCELoss()\n    return T(model, loss)\n"
    ),
    "the loss is passed on": (
        "def f(x, y):\n    loss = nn.BCELoss()\n    with autocast():\n"
        "        loss(torch.sigmoid(x), y)\n    return loss\n"
    ),
}
CLEAN = {
    "on request": (
        "def f(p, y, mixed=False):\n    with autocast(enabled=mixed):\n"
        "        return F.binary_cross_entropy(p, y)\n"
    ),
    "on request by keyword": (
        "def f(p, y, *, mixed=False):\n    with torch.amp.autocast('cuda', enabled=mixed):\n"
        "        return F.binary_cross_entropy(p, y)\n"
    ),
    "without a region": "F.binary_cross_entropy(p, y)\n",
    "the inner region is off": (
        "with autocast():\n    with autocast(enabled=False):\n        F.binary_cross_entropy(p, y)\n"
    ),
    "a region of the CPU": "with torch.autocast('cpu'):\n    F.binary_cross_entropy(p, y)\n",
    "a function that is only defined there": (
        "with autocast():\n    def f(p, y):\n        return F.binary_cross_entropy(p, y)\n"
    ),
    "another loss is passed to the function": (
        "def step(p, y, loss):\n    with autocast():\n        return loss(p, y)\n"
        "def main(p, y):\n    loss = nn.BCELoss()\n    step(p, y, nn.BCEWithLogitsLoss())\n    loss(p, y)\n"
    ),
    "another autocast": ("from mine import autocast\nwith autocast():\n    F.binary_cross_entropy(p, y)\n"),
}


@pytest.mark.parametrize("name", FIXED)
def test_both_places_change(name):
    before, after = FIXED[name]
    found, text = checked_and_fixed(HEAD + before, CODES)
    assert text == HEAD + after
    assert found


@pytest.mark.parametrize("name", REPORTED)
def test_only_reported(name):
    found, text = checked_and_fixed(HEAD + REPORTED[name], CODES)
    assert text == HEAD + REPORTED[name]
    assert found
    assert all(finding.fix is None for finding in found)


@pytest.mark.parametrize("name", CLEAN)
def test_not_found(name):
    found, text = checked_and_fixed(HEAD + CLEAN[name], CODES)
    assert (found, text) == ([], HEAD + CLEAN[name])
