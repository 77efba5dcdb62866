"""The opt-in rules that look at a file themselves, and those that are about a pattern."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.program import FIX, only, run

NAME = Path("example.py")


def check(text: str, code: str, *, fix: bool = False) -> tuple[int, str]:
    """How many findings there are, and the fixed text."""
    text = f"import torch\n{text}\n"
    result = run(text, *only([code]), *FIX * fix, "--unsafe-fixes")
    return len(result.findings), (result.new_text or text).partition("\n")[2].rstrip("\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p.require_grad = True", 1),
        ("a = p.require_grad = True", 1),
        ("p.require_grad: bool = True", 1),
        ("p.require_grad |= flag", 1),
        ("(p.require_grad, q.require_grad) = flags", 2),
        ("for p.require_grad in flags: pass", 1),
        ("setattr(p, 'require_grad', True)", 1),
        ("setattr(p, name, True)\np.require_grad = 1", 1),
        ("p.require_grad = True\nif p.require_grad: pass", 0),
        ("p.require_grad = True\nprint(getattr(p, 'require_grad'))", 0),
        ("p.require_grad = True\nprint(hasattr(p, 'require_grad'))", 0),
        ("class P:\n    require_grad = False\np.require_grad = True", 0),
        ("class P:\n    require_grad: bool\np.require_grad = True", 0),
        ("class P:\n    def require_grad(self, value): pass\np.require_grad = True", 0),
        ("require_grad = True\nf(require_grad=require_grad)", 0),
        ("p.requires_grad = True  # require_grad", 0),
        ("del p.require_grad", 0),
    ],
)
def test_require_grad(text: str, expected: int) -> None:
    assert check(text, "TM995")[0] == expected


def test_require_grad_is_rewritten() -> None:
    assert check("p . require_grad = True  # off", "TM995", fix=True)[1] == "p . requires_grad = True  # off"
    assert check("a.b().require_grad=1", "TM995", fix=True)[1] == "a.b().requires_grad=1"
    assert check("setattr(p, 'require_grad', 1)", "TM995", fix=True)[0] == 1


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("o.zero_grad(set_to_none=False)", "o.zero_grad(set_to_none=True)"),
        ("o.zero_grad( set_to_none = False , )", "o.zero_grad( set_to_none = True , )"),
        (
            "self.opt[0].zero_grad(\n    set_to_none=False\n)",
            "self.opt[0].zero_grad(\n    set_to_none=True\n)",
        ),
        ("o.zero_grad(set_to_none=(False))", "o.zero_grad(set_to_none=(True))"),
    ],
)
def test_zero_grad(text: str, after: str) -> None:
    assert check(text, "TM994")[0] == 1
    assert check(text, "TM994", fix=True) == (0, after)


@pytest.mark.parametrize(
    "text", ['f"{o.zero_grad(set_to_none=False)}"', 'x = f"""\n{1}{o.zero_grad(set_to_none=False)}\n"""']
)
def test_zero_grad_in_an_fstring(text: str) -> None:
    """Before Python 3.12 nobody knows where it stands: it is found, and nothing else is touched."""
    found, after = check(text, "TM994", fix=True)
    assert (found, after) in [(1, text), (0, text.replace("False", "True"))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("o.zero_grad(False)", 1),
        ("o.zero_grad(0)", 0),
        ("o.zero_grad(True)", 0),
        ("o.zero_grad(x, False)", 0),
        ("o.zero_grad(set_to_none=None)", 0),
        ("o.zero_grad(*a)", 0),
        ("o.zero_grad(**k)", 0),
        ("zero_grad(set_to_none=False)", 0),
        ("o.zero_grad", 0),
    ],
)
def test_zero_grad_is_left_alone(text: str, expected: int) -> None:
    assert check(text, "TM994", fix=True) == (expected, text)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("import torchvision.models as models", "from torchvision import models"),
        ("import torchvision.transforms as T", "from torchvision import transforms as T"),
        ("import torchvision . datasets as \\\n    datasets", "from torchvision import datasets"),
        (
            "try:\n    import torchvision.models as m\nexcept ImportError:\n    m = None",
            "try:\n    from torchvision import models as m\nexcept ImportError:\n    m = None",
        ),
        (
            "if 1: import torchvision.models as m; m.vgg16()",
            "if 1: from torchvision import models as m; m.vgg16()",
        ),
    ],
)
def test_torchvision_import(text: str, after: str) -> None:
    assert check(text, "TM996")[0] == 1
    assert check(text, "TM996", fix=True) == (0, after)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torchvision.models as m, os", 1),
        ("import torchvision.models", 0),
        ("import torchvision as models", 0),
        ("import torchvision.models.vgg as vgg", 0),
        ("from torchvision import models", 0),
    ],
)
def test_torchvision_import_is_left_alone(text: str, expected: int) -> None:
    assert check(text, "TM996", fix=True) == (expected, text)


@pytest.mark.parametrize(
    ("code", "text", "after"),
    [
        ("TM990", "torch.log((a if b else c) + 1)", "torch.log1p(a if b else c)"),
        ("TM990", "torch.log(1 + a + 1)", "torch.log1p(1 + a)"),
        ("TM990", "-torch.log(\n    1\n    + x\n)", "-torch.log1p(x)"),
        ("TM990", "x = torch.ones(3)\ny = (1 + x @ x).log()", "x = torch.ones(3)\ny = (x @ x).log1p()"),
        ("TM990", "from torch import log\nlog(1 + x)", "torch.log1p(x)"),
        ("TM991", "y ** (torch.exp(-x) - 1)", "y ** (torch.expm1(-x))"),
        ("TM991", "y - torch.exp(x) * 2 - 1", None),
        ("TM991", "(torch.exp(x) - 1) - 1", "(torch.expm1(x)) - 1"),
        ("TM990", "torch.log(1 + x, out=y)", None),
        ("TM990", "torch.log(True + x)", None),
        ("TM990", "torch.log(1)", None),
        ("TM990", "f = torch.log", None),
        ("TM992", "torch.log(torch.sum(torch.exp(x), 1, dtype=d))", None),
    ],
)
def test_patterns(code: str, text: str, after: str | None) -> None:
    assert check(text, code)[0] == (after is not None)
    assert check(text, code, fix=True) == (0, text if after is None else after)


@pytest.mark.parametrize("text", ["f = torch.log\nf(1 + x)", "torch.log(torch.sum(torch.exp(x), dim))"])
def test_pattern_that_is_only_reported(text: str) -> None:
    code = "TM992" if "sum" in text else "TM990"
    assert check(text, code, fix=True) == (1, text)
