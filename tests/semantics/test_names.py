"""What a name means at a place: each case is a small file and the library names that it uses."""

from __future__ import annotations

import ast
import sys
import textwrap
from pathlib import Path

import pytest

from torchmigrate.semantics.model import SemanticModel, Use
from torchmigrate.semantics.walk.resolver import resolve
from torchmigrate.source.text import Source


def names_of(code: str) -> tuple[SemanticModel, str]:
    text = textwrap.dedent(code).lstrip("\n")
    return resolve(ast.parse(text), Source.from_text(text, Path("case.py"))), text


def found(code: str, *, imports: bool = False) -> list[str]:
    """Each use as `source text = candidates`, with a `?` where it is not sure; import lines on request."""
    names, text = names_of(code)
    return [
        f"{text[use.start : use.end]} = {' | '.join(use.candidates)}{'' if use.sure else ' ?'}"
        for use in names.uses
        if imports or use.role.value != "import"
    ]


def only(code: str) -> Use:
    names, _ = names_of(code)
    uses = [use for use in names.uses if use.role.value != "import"]
    assert len(uses) == 1, uses
    return uses[0]


# Syntax that older versions of Python cannot parse.
NEW_SYNTAX: list[tuple[str, list[str]]] = (
    [("import torch\ndef f[torch](x: torch): torch.qr", [])] if sys.version_info >= (3, 12) else []
)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        *NEW_SYNTAX,
        ("import torch\ntorch.qr(A)", ["torch.qr = torch.qr"]),
        ("import torch as th\nth.linalg.qr(A)", ["th.linalg.qr = torch.linalg.qr"]),
        ("import torch.nn.functional as F\nF.tanh(x)", ["F.tanh = torch.nn.functional.tanh"]),
        ("import torch.nn\ntorch.nn.Linear(1, 2)", ["torch.nn.Linear = torch.nn.Linear"]),
        ("from torch import qr\nqr(A)", ["qr = torch.qr"]),
        ("from torch import qr as q\nq(A)", ["q = torch.qr"]),
        ("from torch.cuda import amp\namp.autocast()", ["amp.autocast = torch.cuda.amp.autocast"]),
        ("from torch import *\nqr()", ["qr = torch.qr ?"]),
        ("from torch import *\nprint(A)", ["A = torch.A ?"]),
        ("from torch import *\nfrom mine import *\nqr(A)", []),
        ("import torch\nt = torch\nt.qr(A)", ["t.qr = torch.qr"]),
        ("import torch\nF = torch.nn.functional\nF.tanh(x)", ["torch.nn.functional = torch.nn.functional",
                                                              "F.tanh = torch.nn.functional.tanh"]),
        ('import torch\ngetattr(torch, "ger")(a, b)', ['getattr(torch, "ger") = torch.ger ?']),
        ("import torch\ngetattr(torch, name)(a, b)", []),
        ("from . import torch\ntorch.qr(A)", []),
        ("from mylib import torch\ntorch.qr(A)", []),
        ("from .torch import qr\nqr(A)", []),
        ("import mylib.torch\nmylib.torch.qr(A)", []),
        ("def f(torch):\n    torch.qr(A)\nimport torch", []),
        ("import torch\ndef f():\n    torch = other\n    torch.qr(A)", []),
        ("import torch\ndef f():\n    torch.qr(A)\n    torch = other", []),
        ("import torch\ntorch = None\ntorch.qr(A)", []),
        ("import torch\n[torch.qr(A) for torch in x]\ntorch.cat(x)", ["torch.cat = torch.cat"]),
        ("import torch\nlambda torch: torch.qr(A)", []),
        ("import torch\nclass C:\n    torch = 1\n    def f(self):\n        torch.qr(A)", ["torch.qr = torch.qr"]),
        ("import torch\nclass C:\n    torch = 1\n    x = torch.qr(A)", []),
        ("import torch\nfor torch in x:\n    torch.qr(A)", []),
        ("import torch\nwith x as torch:\n    torch.qr(A)", []),
        ("import torch\ntry:\n    pass\nexcept E as torch:\n    torch.qr(A)", []),
        ("import torch\nmatch x:\n    case torch:\n        torch.qr(A)", []),
        ("import torch\nif (torch := x):\n    torch.qr(A)", []),
        ("import torch\ndel torch\ntorch.qr(A)", []),
        ("import torch\ntorch.f().g(A)", ["torch.f = torch.f"]),
        ("import torch\ntorch.zeros(3).qr()", ["torch.zeros = torch.zeros", "torch.zeros(3).qr = torch.Tensor.qr"]),
        ("def f():\n    global torch\n    import torch\ndef g():\n    torch.qr(A)", ["torch.qr = torch.qr"]),
        ("def f():\n    import torch\n    def g():\n        nonlocal torch\n        torch.qr(A)", ["torch.qr = torch.qr"]),
        ("def f():\n    import torch\ndef g():\n    torch.qr(A)", []),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\ntorch.qr(A)", ["torch.qr = torch.qr"]),
        ("import torch, numpy\nm = torch if x else numpy\nm.qr(A)", ["m.qr = torch.qr ?"]),
        ("if x:\n    from torch import qr\nelse:\n    from mine import qr\nqr(A)", ["qr = torch.qr ?"]),
        ("import torch\nf = torch.qr\nfor i in x:\n    f(A)\n    f = other", ["torch.qr = torch.qr", "f = torch.qr ?"]),
        ("import torch\n@torch.no_grad()\ndef f(): pass", ["torch.no_grad = torch.no_grad"]),
        ("import torch\nx: 'torch.Tensor' = 1", ["torch.Tensor = torch.Tensor"]),
        ("import torch\ndef f(x: 'torch.Tensor') -> \"torch.Size\": pass", ["torch.Tensor = torch.Tensor",
                                                                            "torch.Size = torch.Size"]),
        ("import torch\nwith mock.patch('torch.qr'): pass", ["'torch.qr' = torch.qr ?"]),
        (
            "from importlib import import_module\nfft = import_module('torch.fft')\nfft.fft(x)",
            ["'torch.fft' = torch.fft ?", "fft.fft = torch.fft.fft ?"],
        ),
        ("import importlib\nimportlib.import_module('.fft', 'torch')", []),
        ("import torch\nx = f'{y}' + str(torch.qr(A))", ["torch.qr = torch.qr"]),
        ("import torch\nhasattr(torch, 'qr')", []),
        ("from torch import qr\nx = {'a': qr, **{b: qr}}", ["qr = torch.qr", "qr = torch.qr"]),
        ("import torch\nasync def f():\n    await torch.qr(A)\n    return (yield torch.ger)",
         ["torch.qr = torch.qr", "torch.ger = torch.ger"]),
    ],
)  # fmt: skip
def test_what_names_mean(code: str, expected: list[str]) -> None:
    assert found(code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import torch\nx = torch.rand(3)\nx.qr()", "x.qr = torch.Tensor.qr"),
        ("import torch\nx = torch.rand(3) + y\nx.T.qr()", "x.T.qr = torch.Tensor.qr"),
        ("import torch\nx = -torch.rand(3)[0]\nx.qr()", "x.qr = torch.Tensor.qr"),
        ("import torch\nu, s, v = torch.svd(A)\nv.qr()", "v.qr = torch.Tensor.qr"),
        ("import torch\ndef f(x: torch.Tensor):\n    x.qr()", "x.qr = torch.Tensor.qr ?"),
        ("from torch import Tensor\ndef f(x: Tensor):\n    x.clone().qr()", "x.clone().qr = torch.Tensor.qr ?"),
        ("import torch\nclass N(torch.nn.Module):\n    def forward(self, x):\n        x.qr()", "x.qr = torch.Tensor.qr ?"),
        ("import torch\nclass N:\n    def __init__(self):\n        self.w = torch.eye(3)\n    def g(self):\n"
         "        self.w.qr()", "self.w.qr = torch.Tensor.qr"),
        ("import torch\ndef f(x):\n    x.potrf()", "x.potrf = torch.Tensor.potrf ?"),
        ("import torch.nn.functional as F\nF.relu(y).qr()", "F.relu(y).qr = torch.Tensor.qr"),
    ],
)  # fmt: skip
def test_methods_of_known_tensors(code: str, expected: str) -> None:
    assert expected in found(code)


@pytest.mark.parametrize(
    "code",
    [
        "import torch\ndef f(x):\n    x.qr()",
        "import torch, numpy as np\nx = np.ones(3)\nx.qr()",
        "import torch\nx = torch.load(f)\nx.qr()",
        "import torch\nx = torch.rand(3)\nx = g(x)\nx.qr()",
        "import torch\nx = torch.rand(3).tolist()\nx.qr()",
        "def f(x):\n    x.potrf()",
    ],
)
def test_other_receivers_are_left_alone(code: str) -> None:
    assert not [line for line in found(code) if ("Tensor." in line and ".qr" in line) or "potrf" in line]


def test_roles() -> None:
    names, text = names_of(
        """
        import torch
        from torch import nn

        @torch.jit.script
        class N(nn.Module):
            x: torch.Tensor = torch.zeros(3)
            y = torch.ger
        """
    )
    roles = [(text[use.start : use.end], use.role.value) for use in names.uses]
    assert roles == [
        ("torch", "import"),
        ("nn", "import"),
        ("torch.jit.script", "decorator"),
        ("nn.Module", "base"),
        ("torch.Tensor", "annotation"),
        ("torch.zeros", "call"),
        ("torch.ger", "reference"),
    ]


def test_a_called_decorator_is_a_call_that_decorates() -> None:
    use = only("import torch\n@torch.no_grad()\ndef f(): pass")
    assert use.role.value == "call"
    assert isinstance(use.decorates, ast.FunctionDef)


def test_bindings_know_their_uses() -> None:
    names, text = names_of("from torch import qr, cat\nqr(qr(A))\ndef f():\n    return qr\n")
    qr, cat = names.bindings[0], names.bindings[1]
    assert (qr.name, qr.target, qr.module) == ("qr", "torch.qr", "torch")
    assert sorted(qr.uses) == [index for index in range(26, len(text)) if text.startswith("qr", index)]
    assert cat.uses == []


def test_all_marks_exports() -> None:
    names, _ = names_of("from torch import qr, cat, ger as ger\n__all__ = ['qr']\n")
    assert [binding.exported for binding in names.bindings if binding.is_import] == [True, False, True]


def test_string_annotation_offsets() -> None:
    code = "import torch\ndef f(x: 'List[torch.Tensor]'): pass\n"
    use = only(code)
    assert code[use.start : use.end] == "torch.Tensor"
    assert use.in_string


def test_f_strings() -> None:
    code = "import torch\nx = f'{torch.ger(a, b)} {y!r:>{torch.w}}'\n"
    names, _ = names_of(code)
    uses = [use for use in names.uses if use.role.value != "import"]
    assert [use.candidates for use in uses] == [("torch.ger",), ("torch.w",)]
    if sys.version_info < (3, 12):
        assert all(use.in_fstring for use in uses)


def test_long_else_if_chains_are_walked_in_a_loop() -> None:
    code = "import torch\nif a:\n    pass\n" + "elif b:\n    torch.ger(a, b)\n" * 400
    assert len(found(code)) == 400


def test_long_sums_are_walked_in_a_loop() -> None:
    code = "import torch\nx = " + " + ".join(["torch.ger(a, b)"] * 900)
    assert len(found(code)) == 900
