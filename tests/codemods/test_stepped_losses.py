"""TM363: `backward()` after a step that changed parameters of its graph.

What is reported raises an error on the torch that is installed, if one is; what is not, does not.
"""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed
from harness.summary import HAS_TORCH

CODES = ("TM363",)
HEAD = """\
import itertools
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.first = nn.Linear(a, 16)
        self.second = nn.Linear(16, b)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


G, D, E = Net(5, 8), Net(8, 1), Net(5, 8)
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3)
opt_both = torch.optim.SGD(itertools.chain(G.parameters(), E.parameters()), lr=0.1)
real, noise = torch.rand(4, 8), torch.randn(4, 5)
"""
RAISE_ERRORS = {
    "shared output": (
        "fake = G(noise)\nscore = D(fake)\nd_loss = (score**2).mean()\ng_loss = -score.mean()\n"
        "d_loss.backward(retain_graph=True)\nopt_d.step()\ng_loss.backward()\n"
    ),
    "computed twice": (
        "fake = G(noise)\nd_loss = D(fake.detach()).mean() - D(real).mean()\ng_loss = -D(fake).mean()\n"
        "opt_d.zero_grad()\nd_loss.backward()\nopt_d.step()\nopt_g.zero_grad()\ng_loss.backward()\nopt_g.step()\n"
    ),
    "sum": (
        "fake = G(noise)\ng_loss = -D(fake).mean()\npenalty = fake.pow(2).mean()\n"
        "D(real).mean().backward()\nopt_d.step()\n(g_loss + penalty).backward()\n"
    ),
    "other way round": (
        "fake = G(noise)\nd_loss = D(fake).mean()\ng_loss = fake.pow(2).mean()\n"
        "g_loss.backward(retain_graph=True)\nopt_g.step()\nd_loss.backward()\n"
    ),
    "several modules": (
        "code = E(noise)\nloss = code.mean()\nG(noise).mean().backward()\ncode.sum().backward(retain_graph=True)\n"
        "opt_both.step()\nloss.backward()\n"
    ),
    "loop": (
        "for _ in range(2):\n    fake = G(noise)\n    g_loss = -D(fake).mean()\n    D(real).mean().backward()\n"
        "    opt_d.step()\n    g_loss.backward()\n    opt_g.step()\n"
    ),
    "object": (
        "class Trainer:\n    def __init__(self):\n        self.g, self.d = G, D\n        self.net = D\n"
        "        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)\n\n"
        "    def run(self):\n        fake = G(noise)\n        loss = self.net(fake).mean()\n"
        "        self.net(real).mean().backward()\n        self.opt.step()\n        loss.backward()\n\n\nTrainer().run()\n"
    ),
}
RUN = {
    "steps at the end": (
        "score = D(G(noise))\n(score**2).mean().backward(retain_graph=True)\n(-score.mean()).backward()\n"
        "opt_d.step()\nopt_g.step()\n"
    ),
    "computed again": (
        "fake = G(noise)\nloss = D(fake.detach()).mean()\nloss.backward()\nopt_d.step()\n"
        "loss = -D(fake).mean()\nloss.backward()\nopt_g.step()\n"
    ),
    "another optimizer": (
        "fake = G(noise)\nloss = fake.mean()\nD(real).mean().backward()\nopt_d.step()\nloss.backward()\n"
    ),
    "computed in the call": "D(real).mean().backward()\nopt_d.step()\n(-D(G(noise))).mean().backward()\n",
    "detached": (
        "w = torch.ones(1, requires_grad=True)\nscore = D(G(noise)).detach()\nloss = (w * score).mean()\n"
        "D(real).mean().backward()\nopt_d.step()\nloss.backward()\n"
    ),
    "one layer": (
        "line = nn.Linear(8, 1)\nopt = torch.optim.SGD(line.parameters(), lr=0.1)\nscore = line(real)\n"
        "loss = score.mean()\nscore.sum().backward(retain_graph=True)\nopt.step()\nloss.backward()\n"
    ),
    "sometimes": (
        "fake = G(noise)\nloss = -D(fake).mean()\nD(real).mean().backward()\nif len(fake) > 9:\n    opt_d.step()\n"
        "loss.backward()\n"
    ),
    "last iteration": (
        "loss = torch.ones(1, requires_grad=True).sum()\nfor _ in range(2):\n    loss.backward()\n"
        "    D(real).mean().backward()\n    opt_d.step()\n    loss = -D(G(noise)).mean()\n"
    ),
}


def _raises(code: str) -> bool:
    try:
        exec(compile(code, "case", "exec"), {})
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return True
    return False


@pytest.mark.parametrize("code", RAISE_ERRORS.values(), ids=RAISE_ERRORS)
def test_backward_after_a_step_is_reported(code: str) -> None:
    found, _ = checked_and_fixed(HEAD + code, CODES)
    assert len(found) == 1
    (place,) = found[0].places
    assert (HEAD + code)[slice(*place)].endswith(".step()")
    assert not HAS_TORCH or _raises(HEAD + code)


@pytest.mark.parametrize("code", RUN.values(), ids=RUN)
def test_what_runs_is_not_reported(code: str) -> None:
    assert checked_and_fixed(HEAD + code, CODES)[0] == []
    assert not HAS_TORCH or not _raises(HEAD + code)
