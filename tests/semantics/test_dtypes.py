"""What the file says of the dtype of a tensor."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from torchmigrate.semantics.facts.dtypes import ValueFacts
from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.walk.resolver import resolve
from torchmigrate.source.text import Source


def asked(code: str) -> tuple[ValueFacts, ast.expr]:
    """The facts of some code, and its last expression."""
    text = "import torch\nimport numpy as np\n" + textwrap.dedent(code)
    tree = ast.parse(text)
    names = resolve(tree, Source.from_text(text, Path("case.py")))
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    return ValueFacts(names, FileFacts(names)), last.value


def kinds(code: str) -> set[str]:
    """What the last expression of some code surely is."""
    facts, last = asked(code)
    return set(facts.of(last))


@pytest.mark.parametrize(
    ("code", "dtype"),
    [
        ("torch.ByteTensor([1])", "uint8"),
        ("y.byte()", "uint8"),
        ("torch.zeros(3, dtype=torch.uint8)", "uint8"),
        ("torch.zeros(3).to(torch.uint8).unsqueeze(0)", "uint8"),
        ("torch.zeros(3).type('torch.ByteTensor')", "uint8"),
        ("m = torch.zeros(3).byte()\nm", "uint8"),
        ("y.to(torch.uint8)", "uint8"),
        ("def make():\n    return torch.ByteTensor(3)\nm = make().unsqueeze(0)\nm", "uint8"),
        ("masks = [y.byte(), y.byte()]\nmasks[1]", "uint8"),
        ("m = torch.zeros(3).byte()\nfor _ in y:\n    m = m.clone()\nm", "uint8"),
        ("_, index = y.topk(3)\nindex", "int64"),
        ("m = torch.zeros(3).byte()\n~m[0]", "uint8"),
        ("torch.zeros(3) > 0", "bool"),
        ("torch.zeros(3).eq(1)", "bool"),
        ("(torch.zeros(3) > 0) & (torch.zeros(3) < 1)", "bool"),
        ("(torch.zeros(3) > 0) + 1", "int64"),
        ("torch.arange(3)", "int64"),
        ("torch.tensor([[1, 2]])", "int64"),
        ("torch.zeros(3).argmax()", "int64"),
        ("torch.zeros_like(torch.arange(3))", "int64"),
        ("torch.arange(3) / torch.arange(3)", "floating"),
        ("torch.cat([torch.zeros(3), torch.ones(3)])", "floating"),
        ("torch.fft.rfft(y)", "complex"),
        ("torch.zeros(3, dtype=torch.cfloat)", "complex"),
        ("torch.polar(r, a).reshape(3)", "complex"),
        ("torch.fft.fft(y) * torch.ones(3)", "complex"),
        ("torch.fft.fft(y) / 2", "complex"),
        ("torch.stft(y, 512, return_complex=True)", "complex"),
        ("torch.fft.fft(y).sum()", "complex"),
        ("torch.mean(torch.polar(r, a))", "complex"),
        ("torch.fft.fft(y).abs()", "floating"),
    ],
)
def test_dtypes(code: str, dtype: str) -> None:
    assert {"tensor", dtype} <= kinds(code)


@pytest.mark.parametrize(
    "code",
    [
        "y > 0",
        "np.zeros(3) > 0",
        "np.zeros(3, dtype=np.uint8)",
        "y",
        "m = torch.zeros(3).byte()\nm = y\nm",
        "torch.arange(n)",
        "torch.zeros(3).to(device)",
        "np.sort(y)[1]",
        "torch.max(torch.ones(3), torch.zeros(3))[1]",
        "y.mode()[1]",
        "y.to(torch.float16)",  # a module
        "not torch.zeros(3).byte()",
        "torch.fft.irfft(y)",
        "torch.stft(y, 512)",
        "torch.fft.fft(y).real",
    ],
)
def test_nothing_is_known(code: str) -> None:
    assert kinds(code).isdisjoint({"uint8", "bool", "int64", "integer", "complex"})


def test_numbers() -> None:
    assert kinds("1.5") == {"number"}
    assert kinds("True") == set()


@pytest.mark.parametrize(
    "code",
    [
        "x = torch.ones(2, 3).cpu()\nx.detach()",
        "x = torch.ones(2, 3)\nif x.sum() > 1:\n    x = torch.eye(2)\nx",
        "def make(n):\n    return torch.rand(n, 2, 3)\nmake(4)",
        "a, b = torch.zeros(3), torch.zeros(1, 2, 3)\nb / a",
        "x = [torch.zeros(2, 3)]\nx[0] * 2 + 1",
        "x = torch.zeros(2, 3, 4)\nx[0]",
        "t = 0\nfor x in [torch.ones(3), torch.ones(3)]:\n    t += x.mean()\nt",
        "torch.nn.functional.mse_loss(torch.ones(3), torch.ones(3))",
        "criterion = torch.nn.BCELoss()\nloss = criterion(torch.ones(3), torch.ones(3))\n-loss",
        "torch.tensor([[1, 2]])",
        "torch.ones(6).view(1, 2, 3).float()",
    ],
)
def test_dimensions(code: str) -> None:
    torch = pytest.importorskip("torch")
    facts, last = asked(code)
    space = {"torch": torch}
    *statements, expression = code.split("\n")
    exec("\n".join(statements), space)
    assert facts.rank(last) == eval(expression, space).dim()


@pytest.mark.parametrize(
    "code",
    [
        "y",
        "1 - 2",
        "torch.ones(3) @ torch.ones(3)",
        "torch.ones(*sizes)",
        "x = torch.zeros(3)\nif y:\n    x = torch.eye(3)\nx",
        "x = torch.zeros(3)\nx.unsqueeze_(0)\nx",
        "x = torch.zeros(1, 3)\nz = x.squeeze_()\nz",
        "torch.zeros(2, 3)[torch.tensor([0, 1])]",
        "torch.nn.functional.mse_loss(y, y, reduction='none')",
        "torch.nn.functional.mse_loss(y, y, None, False)",
        "torch.nn.MSELoss(None, False)(y, y)",
        "torch.nn.CrossEntropyLoss(reduce=False)(y, y)",
        "torch.nn.AdaptiveLogSoftmaxWithLoss(5, 10, [3])(y, y)",
        "criterion = torch.nn.L1Loss() if y else model\ncriterion(y, y)",
    ],
)
def test_dimensions_are_not_known(code: str) -> None:
    facts, last = asked(code)
    assert facts.rank(last) is None
