"""TM131, TM132, TM361 and TM362: what is changed in place, and may not be any more.

What is reported is run on the torch that is installed, if one is: it raises; what is not, does not.
"""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed
from harness.summary import HAS_TORCH

from torchmigrate.findings import Applicability

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")

INTEGERS = ("TM131", "TM132")
LEAVES = ("TM361",)
SAVED = ("TM362",)

INTEGER_TENSORS = (
    "torch.tensor([5, -3, 7])",
    "torch.arange(3)",
    "torch.zeros(3, dtype=torch.int32)",
    "torch.ones(3).long()",
    "torch.ones(3).argsort()",
    "(torch.ones(3, 3) > 0).sum(0)",
    "torch.ones(3, 3).long().prod(dim=0)",
)
RAISE_ERRORS = (
    "x += 0.5",
    "x -= 1 / 2",
    "x *= 2.0",
    "x *= float('2')",
    "x %= 2.5",
    "x //= 2.0",
    "x /= 2",
    "x /= 2.5",
    "x /= x.sum()",
    "x[0] += 0.5",
    "x[:2] *= -1.5",
    "x[x > 0] /= 2",
    "x.add_(0.5)",
    "x.mul_(other=0.5)",
    "x.div_(2)",
    "x.clamp_(min=0.5)",
    "x.pow_(0.5)",
    "rate = 0.5\nx *= rate",
    "n = 3\nx.add_(2 * n - 1.5)",
    "for k in range(2):\n    x += k / 2",
    "x += 1\nx += 0.5",
)
WORK = (
    "x += 1",
    "x *= True",
    "x //= 2",
    "x.add_(1)",
    "x.div_(2, rounding_mode='floor')",
    "x.clamp_(1, 2)",
    "x = x / 2\nx += 0.5",
    "x = x.float()\nx /= 2",
    "x = x + 0.5",
    "y = x.double()\ny /= 2",
    "x.fill_(0.5)",
    "rate = 0.5\nrate = 2\nx *= rate",
    "n = 3\nx.add_(2 * n - 1)",
    "x[0] = 0.5",
    "for x in [1, 2]:\n    x /= 2",
    "def f(x):\n    x /= 2\nf(torch.ones(3))",
)
# On the left what torch 1.4 ran, on the right what the fix makes of it.
DIVISIONS = {
    "x /= 2": "x.div_(2, rounding_mode='trunc')",
    "x /= len(x)": "x.div_(len(x), rounding_mode='trunc')",
    "x /= x.size(0)": "x.div_(x.size(0), rounding_mode='trunc')",
    "x /= torch.tensor([2, 3, 4])": "x.div_(torch.tensor([2, 3, 4]), rounding_mode='trunc')",
    "x[0] /= 2": "x[0] = x[0].div(2, rounding_mode='trunc')",
    "x[x > 0] /= 2  # half": "x[x > 0] = x[x > 0].div(2, rounding_mode='trunc')  # half",
    "x.div_(2)": "x.div_(2, rounding_mode='trunc')",
    "x += 3.0": "x += 3",
    "x *= (-2.0)": "x *= (-2)",
    "x /= 2.5": None,
    "x /= number": None,
    "x[next(places)] /= 2": None,
    "x += 0.5": None,
    "x.pow_(2.0)": None,
}

HEADER = "import torch\nfrom torch import nn\n"
RAISE_ERRORS_FOR_LEAVES = (
    "w = nn.Parameter(torch.ones(3, 2))\nw[0] = 1",
    "w = nn.Parameter(torch.ones(3, 2), requires_grad=True)\nw[:, 1] += 1",
    "w = torch.zeros(3, 2, requires_grad=True)\nw[0].fill_(1)",
    "w = torch.zeros(3, 2).requires_grad_()\nw.t().mul_(2)",
    "w = nn.Parameter(torch.ones(3, 2))\nw.view(-1)[0] = 1",
    "w = nn.Parameter(torch.ones(4))\nw.chunk(2)[0].zero_()",
    "m = nn.Linear(2, 3)\nm.weight[0] = 1",
    "m = nn.LSTM(2, 4).train()\nm.bias_ih_l0[4:8].fill_(1)",
    "m = nn.Embedding(5, 2)\nfor i in range(2):\n    m.weight[i] = 1",
    "def f():\n    w = nn.Parameter(torch.ones(2))\n    if True:\n        w[0] = 1\nf()",
    "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.w = nn.Parameter(torch.ones(2))\n        self.w[0] = 1\nM()",
    "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.f = nn.Linear(2, 2)\n        self.f.bias[0] = 1\nM()",
)
WORK_FOR_LEAVES = (
    "w = torch.ones(3, 2)\nw[0] = 1",
    "w = nn.Parameter(torch.ones(3, 2))\nwith torch.no_grad():\n    w[0] = 1",
    "w = nn.Parameter(torch.ones(3, 2))\nw.data[0] = 1",
    "w = nn.Parameter(torch.ones(3, 2))\nw[0].data.fill_(1)",
    "w = nn.Parameter(torch.ones(3, 2), requires_grad=False)\nw[0] = 1",
    "w = nn.Parameter(torch.ones(3, 2))\nw = w * 2\nw[0] = 1",
    "m = nn.Linear(2, 3)\nm.weight.requires_grad = False\nm.weight[0] = 1",
    "m = nn.Linear(2, 3).requires_grad_(False)\nm.weight[0] = 1",
    "m = nn.Linear(2, 3)\nm.weight = nn.Parameter(torch.ones(3, 2), False)\nm.weight[0] = 1",
    "m = nn.Embedding(5, 2, _freeze=True)\nm.weight[0] = 1",
    "@torch.no_grad()\ndef f():\n    w = nn.Parameter(torch.ones(2))\n    w[0] = 1\nf()",
    "def f():\n    w = nn.Parameter(torch.ones(2))\n    w[0] = 1\nwith torch.no_grad():\n    f()",
    "torch.set_grad_enabled(False)\nw = nn.Parameter(torch.ones(2))\nw[0] = 1\ntorch.set_grad_enabled(True)",
    "w = nn.Parameter(torch.ones(2))\ntry:\n    w[0] = 1\nexcept RuntimeError:\n    pass",
    "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.w = nn.Parameter(torch.ones(2))\n        self.w[0] = 1\n"
    "with torch.no_grad():\n    M()",
    "nn.init.zeros_(nn.Parameter(torch.ones(2))[0])",
)
FUNCTION = """\
import torch
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward({saved})
        return y
    @staticmethod
    def backward(ctx, grad):
        {body}
"""
# What is saved, and the body of `backward`.
CHANGED = (
    ("x", "x, = ctx.saved_tensors; x.mul_(2); return grad * x"),
    ("x, y", "x, y = ctx.saved_tensors; x[x < 0] = 0; return grad * x"),
    ("x", "x = ctx.saved_tensors[0]; x += 1; return grad * x"),
    ("x, y", "saved = ctx.saved_tensors; x = saved[0]; x.mul_(2); return grad * x"),
    ("x", "x, = ctx.saved_tensors; z = x; z[z < 0] = 0; return grad * z"),
    ("x", "x, = ctx.saved_tensors\n        for _ in range(2):\n            x += 1\n        return grad * x"),
    ("y", "y, = ctx.saved_tensors; y.zero_()\n        return grad * ctx.saved_tensors[0]"),
)
UNCHANGED = (
    ("x", "x, = ctx.saved_tensors; x = x.mul(2); return grad * x"),
    ("x", "x, = ctx.saved_tensors; x = x * 1; x += 1; return grad * x"),
    ("x", "x, = ctx.saved_tensors; z, x = x, grad.clone(); x += 1; return grad * z"),
    (
        "x",
        "x, = ctx.saved_tensors\n        x = x.clone() if grad is not None else x\n        x += 1\n        return x",
    ),
    ("x", "x, = ctx.saved_tensors; z = x.clone(); z[z < 0] = 0; return grad * z"),
    ("x", "x, = ctx.saved_tensors; grad = grad.clone(); grad[x < 0] = 0; return grad"),
    ("y", "y, = ctx.saved_tensors; y += 1; return grad * y"),
)


def _raises(text: str) -> bool:
    """Whether a program raises what torch does."""
    try:
        exec(compile(text, "program", "exec"), {"number": 2, "places": iter([0, 1])})
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("statement", [*RAISE_ERRORS, *WORK])
@pytest.mark.parametrize("tensor", INTEGER_TENSORS)
def test_integers_are_found_where_they_surely_raise(tensor, statement):
    text = f"import torch\nx = {tensor}\n{statement}\n"
    findings, _ = checked_and_fixed(text, INTEGERS)
    # A name that is bound to something else as well is nothing that is sure.
    assert bool(findings) == (statement in RAISE_ERRORS)


@needs_torch
@pytest.mark.parametrize("statement", [*RAISE_ERRORS, *WORK])
def test_integers_that_are_found_raise(statement):
    assert _raises(f"import torch\nx = torch.tensor([5, 3, 7])\n{statement}\n") == (statement in RAISE_ERRORS)


@pytest.mark.parametrize("old", DIVISIONS)
def test_divisions_keep_integers(old):
    text = "import torch\nx = torch.tensor([5, -3, 7])\n"
    findings, fixed = checked_and_fixed(f"{text}{old}\n", INTEGERS)
    new = DIVISIONS[old]
    assert findings
    assert fixed == (f"{text}{new}\n" if new is not None else f"{text}{old}\n")


@needs_torch
@pytest.mark.parametrize("old", [old for old, new in DIVISIONS.items() if new is not None])
def test_fixed_divisions_run(old):
    assert not _raises(f"import torch\nx = torch.tensor([5, -3, 7])\n{DIVISIONS[old]}\n")


def test_what_an_older_release_accepts_is_not_found_there():
    text = "import torch\nx = torch.arange(3)\nx.clamp_(max=0.5)\nx += 0.5\n"
    findings, _ = checked_and_fixed(text, INTEGERS)
    assert [finding.symbol for finding in findings] == ["torch.Tensor.clamp_", "torch.Tensor.__iadd__"]


@pytest.mark.parametrize("program", [*RAISE_ERRORS_FOR_LEAVES, *WORK_FOR_LEAVES])
def test_leaves_are_found_where_they_surely_raise(program):
    findings, fixed = checked_and_fixed(f"{HEADER}{program}\n", LEAVES)
    assert bool(findings) == (program in RAISE_ERRORS_FOR_LEAVES)
    assert ("with torch.no_grad():" in fixed) or not findings


@needs_torch
@pytest.mark.parametrize("program", [*RAISE_ERRORS_FOR_LEAVES, *WORK_FOR_LEAVES])
def test_leaves_that_are_found_raise_until_they_are_fixed(program):
    text = f"{HEADER}{program}\n"
    assert _raises(text) == (program in RAISE_ERRORS_FOR_LEAVES)
    assert not _raises(checked_and_fixed(text, LEAVES)[1])


def test_values_that_may_need_a_gradient_make_the_fix_unsafe():
    text = f"{HEADER}w = nn.Parameter(torch.ones(2, 2))\nw[0] = VALUE\n"
    applicabilities = {
        value: checked_and_fixed(text.replace("VALUE", value), LEAVES)[0][0].fix.applicability
        for value in ("1", "-0.5", "torch.zeros(2)", "x.detach()", "x.data", "x", "f(x)")
    }
    assert applicabilities == {
        **dict.fromkeys(["1", "-0.5", "torch.zeros(2)", "x.detach()", "x.data"], Applicability.SAFE),
        **dict.fromkeys(["x", "f(x)"], Applicability.UNSAFE),
    }


@pytest.mark.parametrize(("saved", "body"), [*CHANGED, *UNCHANGED])
def test_saved_tensors(saved, body):
    text = FUNCTION.format(saved=saved, body=body)
    assert bool(checked_and_fixed(text, SAVED)[0]) == ((saved, body) in CHANGED)


@needs_torch
@pytest.mark.parametrize(("saved", "body"), [*CHANGED, *UNCHANGED])
def test_saved_tensors_that_are_found_raise(saved, body):
    # `exp` needs its result again, which is the input of the function.
    use = "x = torch.ones(3, requires_grad=True)\nF.apply(x.exp()).sum().backward()\n"
    assert _raises(FUNCTION.format(saved=saved, body=body) + use) == ((saved, body) in CHANGED)


@needs_torch
def test_a_copy_of_a_saved_tensor_may_be_changed():
    body = "x, = ctx.saved_tensors\n        x.mul_(2)\n        return grad * x"
    text = FUNCTION.format(saved="x", body=body)
    use = "x = torch.ones(3, requires_grad=True)\nF.apply(x.exp()).sum().backward()\n"
    fixed = checked_and_fixed(text, SAVED)[1]
    assert "        x = x.clone()\n" in fixed
    assert _raises(text + use)
    assert not _raises(fixed + use)
