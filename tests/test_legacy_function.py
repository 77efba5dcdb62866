"""Functions that are called as objects: what is found, what is rewritten, and that the new code runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.catalogue import catalogue

from torchmigrate.config import Settings
from torchmigrate.engine import Engine
from torchmigrate.source import Source

NAME = Path("example.py")
BODY = """
    def forward(self, x):
        self.factor = 3
        return x * self.factor
    def backward(self, grad):
        return grad * self.factor
"""
HEAD = "import torch\nclass Triple(torch.autograd.Function):"
ADVICE = {
    "an object is kept": f"{HEAD}{BODY}f = Triple()\ny = f(x)\nz = Triple()(x)\n",
    "made with values": f"{HEAD}{BODY}y = Triple(3)(x)\n",
    "attribute of the class": f"{HEAD}\n    factor = 3{BODY}y = Triple()(x)\n",
    "the context is handed on": HEAD
    + BODY.replace("return x", "note(self)\n        return x")
    + "y = Triple()(x)\n",
}
CLEAN = {
    "applied": f"{HEAD}{BODY}y = Triple.apply(x)\n",
    "used elsewhere": f"{HEAD}{BODY}",
    "two of that name": f"{HEAD}{BODY}class Triple:\n    pass\ny = Triple()(x)\n",
}


def check(text: str) -> tuple[str | None, list[str]]:
    settings = Settings(codes=frozenset(["TM332"]), known={}, fix=True)
    result = Engine(catalogue(), settings).check_source(Source.from_bytes(text.encode(), NAME), NAME)
    return result.new_text, [found.code for found in result.findings]


def test_the_new_code_computes_what_the_old_one_did() -> None:
    torch = pytest.importorskip("torch")
    text, _ = check(f"{HEAD}{BODY}y = Triple()(x)\n")
    assert text is not None
    space = {"x": torch.ones(2, requires_grad=True)}
    exec(text, space)
    space["y"].sum().backward()
    assert space["y"].tolist() == space["x"].grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("text", ADVICE.values(), ids=ADVICE)
def test_it_is_only_reported(text: str) -> None:
    new, codes = check(text)
    assert new in (None, text)
    assert codes == ["TM332"]


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN)
def test_it_is_not_found(text: str) -> None:
    assert check(text) == (None, []) or check(text) == (text, [])
