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


def kinds(code: str) -> set[str]:
    """What the last expression of some code surely is."""
    text = "import torch\nimport numpy as np\n" + textwrap.dedent(code)
    tree = ast.parse(text)
    names = resolve(tree, Source.from_text(text, Path("case.py")))
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    return set(ValueFacts(names, FileFacts(names)).of(last.value, names.module))


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
