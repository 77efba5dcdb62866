"""TM332: old autograd functions, run by a stand-in for what torch did before 1.5, against the rewritten ones."""

from __future__ import annotations

import copy
import textwrap
from types import SimpleNamespace

import pytest
import torch
from harness.fixing import checked_and_fixed

from torchmigrate.findings import Applicability, Finding
from torchmigrate.report.reasons import help_of

HEAD = "import torch\nfrom torch.autograd import Function\n\n"


class OldFunction:
    """What an object of an old `Function` did when it was called."""

    needs_input_grad: tuple[bool, ...]
    saved_tensors: tuple[torch.Tensor, ...] = ()

    def save_for_backward(self, *tensors: torch.Tensor) -> None:
        self.saved_tensors = tensors

    @property
    def saved_variables(self) -> tuple[torch.Tensor, ...]:
        return self.saved_tensors

    def mark_non_differentiable(self, *tensors: torch.Tensor) -> None:
        self.marked = tensors

    def __call__(self, *inputs: torch.Tensor) -> object:
        return _Runner.apply(self, *inputs)


class _Runner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, *inputs):
        function.needs_input_grad = ctx.needs_input_grad[1:]
        found = function.forward(*inputs)
        ctx.function = copy.copy(function)  # an object was meant to be called once
        return found

    @staticmethod
    def backward(ctx, *grads):
        found = ctx.function.backward(*grads)
        found = found if isinstance(found, tuple) else (found,)
        assert len(found) == len(ctx.function.needs_input_grad)
        return None, *found


def check(text: str) -> tuple[list[Finding], str]:
    """The findings, and the text after unsafe fixes, which a second run leaves as it is."""
    return checked_and_fixed(text, ["TM332"])


def run(text: str, *, old: bool) -> list[torch.Tensor]:
    """`go(x, y)` of a text, and the gradients of both."""
    torch.manual_seed(0)
    space: dict[str, object] = {}
    exec(compile(text, "example.py", "exec"), _space(space, old=old))
    x, y = (torch.randn(4, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    out = space["go"](x, y)  # type: ignore[operator]
    outs = out if isinstance(out, tuple) else (out,)
    weights = torch.linspace(0, 1, 16, dtype=torch.float64).view(4, 4)
    sum((item * weights).sum() for item in outs if item.requires_grad).backward()
    zeros = torch.zeros(4, 4, dtype=torch.float64)
    return [*outs, x.grad if x.grad is not None else zeros, y.grad if y.grad is not None else zeros]


def _space(space: dict[str, object], *, old: bool) -> dict[str, object]:
    if old:
        fake = SimpleNamespace(Function=OldFunction)
        modules = {"torch.autograd": fake}

        def load(name: str, *rest: object) -> object:
            return modules.get(name) or __import__(name, *rest)  # type: ignore[arg-type]

        space["__builtins__"] = {**vars(__import__("builtins")), "__import__": load}
    return space


PLAIN = """
class Scale(Function):
    def __init__(self, factor, bias=0.5):
        super(Scale, self).__init__()
        self.factor = factor
        self.bias = bias
    def forward(self, x):
        self.save_for_backward(x)
        return x * x * self.factor + self.bias
    def backward(self, grad):
        x, = self.saved_tensors
        return grad * 2 * x * self.factor
"""

WORKING = {
    "settings": PLAIN + "def go(x, y):\n    return Scale(3.0)(x) + Scale(factor=2.0, bias=1.0)(y)\n",
    "state that is new for each call": PLAIN.replace("return x * x", "self.factor += 1\n        return x * x")
    + "def go(x, y):\n    return Scale(3.0)(x) + Scale(2.0)(y)\n",
    "keyword in the middle": """
class Scale(Function):
    def __init__(self, factor=1.0, bias=0.5, power=2):
        self.factor, self.bias = factor, bias
        self.power = power
    def forward(self, x):
        return x * self.factor + self.bias * self.power
    def backward(self, grad):
        return grad * self.factor
def go(x, y):
    return Scale(power=4)(x) + Scale()(y)
""",
    "variable": PLAIN + "def go(x, y):\n    f = Scale(3.0)\n    return f(x) + f(y)\n",
    "module level variable": PLAIN + "scale = Scale(3.0)\ndef go(x, y):\n    return scale(x) + scale(y)\n",
    "attribute": PLAIN
    + """
class Layer(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.scale = Scale(factor * 2, 1.5)
    def forward(self, x):
        return self.scale(x)
def go(x, y):
    return Layer(4.0)(x) * y
""",
    "attribute that is kept": PLAIN
    + """
class Layer(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.k = factor
        self.scale = Scale(factor)
    def forward(self, x):
        return self.scale(x)
def go(x, y):
    return Layer(4.0)(x) * y
""",
    "two inputs, both ways to return": """
class Product(Function):
    def __init__(self, sign):
        self.sign = sign
    def forward(self, a, b):
        self.save_for_backward(a, b)
        return self.sign * a * b
    def backward(self, grad):
        a, b = self.saved_variables
        if self.sign > 0:
            grads = (grad * b * self.sign, grad * a * self.sign)
            return grads
        if not self.needs_input_grad[1]:
            return (grad * b * self.sign), None
        return (
            grad * b * self.sign,
            grad * a * self.sign,  # of b
        )
def go(x, y):
    return Product(-2.0)(x, y) + Product(3.0)(x, y.detach()) + Product(-1.0)(x, y.detach())
""",
    "any number of inputs": """
class Total(Function):
    def __init__(self, weight, power):
        self.weight = weight
        self.power = power
    def forward(self, *inputs):
        self.save_for_backward(*inputs)
        return sum(item ** self.power for item in inputs) * self.weight
    def backward(self, grad):
        found = []
        for number, item in enumerate(self.saved_tensors):
            if self.needs_input_grad[0] and any(self.needs_input_grad):
                found.append(grad * self.weight * self.power * item ** (self.power - 1))
            else:
                found.append(None)
        return tuple(found)
def go(x, y):
    return Total(0.5, power=3)(*[x, y])
""",
    "an input with a default": """
class Affine(Function):
    def __init__(self, scale=2.0):
        self.scale = scale
    def forward(self, x, bias=None):
        self.biased = bias is not None
        return x * self.scale + (bias if self.biased else 0)
    def backward(self, grad):
        if self.biased:
            return grad * self.scale, grad
        return (grad * self.scale,)
def go(x, y):
    return Affine()(x) + Affine(3.0)(x, y)
""",
    "helpers, class attributes, comments": '''
class Clip(Function):
    """Clipped."""

    limit = 0.5
    # What `forward` multiplies with.
    def __init__(self, factor):
        # kept for backward
        self.factor = factor  # a number

    # Runs it.
    def forward(self, x):
        # the mask of what is small
        self.mask = self._mask(x)
        return x * self.mask * self.factor

    def _mask(self, x):
        return (x.abs() < self.limit).to(x.dtype) * self.one()

    @staticmethod
    def one():
        return 1.0

    def backward(self, grad):
        return -grad * self.mask * self.factor


def go(x, y):
    return Clip(2.0)((x)) + Clip(y.detach().mean().item())(
        y,
    )
''',
    "__init__ at the end": """
class Flip(Function):
    def forward(self, x):
        '''Turned.'''
        return x.flip(self.dim)

    def backward(self, grad):
        return grad.flip(self.dim)

    def __init__(self, dim):
        super().__init__()
        if dim < 0:
            dim = dim + 2
        self.dim = dim


def go(x, y):
    return Flip(-1)(x) * y
""",
    "nothing to keep": """
class Reverse(Function):
    def forward(self, x):
        return x.clone()
    def backward(self, grad):
        return grad.neg()
def reverse(x):
    return Reverse()(x)
def go(x, y):
    return reverse(x) * y
""",
}


STATE = PLAIN.replace("self.save_for_backward(x)", "self.save_for_backward(x); self.mean = x.mean()")
COUNTING = STATE.replace("return x * x", "self.factor += 1\n        return x * x")
OBJECTS = {
    "handed on": PLAIN + "layers = [Scale(1.0)]\ndef go(x, y):\n    return layers[0](x) * y\n",
    "settings read afterwards": (
        PLAIN + "def go(x, y):\n    f = Scale(2.0)\n    return f(x) * y * f.factor\n"
    ),
    "results read afterwards": (
        STATE + "def go(x, y):\n    f = Scale(2.0)\n    out = f(x)\n    return out * y, f.mean\n"
    ),
    "results read by a caller": (
        STATE + "def run(x):\n    f = Scale(2.0)\n    return f(x), f\n"
        "def go(x, y):\n    out, f = run(x)\n    return out * y, f.mean\n"
    ),
    "results read of an attribute": STATE
    + """
class Layer(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.scale = Scale(factor * 2, 1.5)
    def forward(self, x):
        out = self.scale(x)
        self.mean = self.scale.mean
        return out
def go(x, y):
    layer = Layer(3.0)
    return layer(x) * y, layer.mean
""",
    "state from call to call": (
        COUNTING + "def go(x, y):\n    f = Scale(1.0)\n    with torch.no_grad():\n        a = f(y)\n"
        "    return f(x) * y, a, torch.tensor(f.factor)\n"
    ),
    "assigned several times": (PLAIN + "def go(x, y, f=None):\n    f = Scale(1.0)\n    return f(x) * y\n"),
    "settings in a list": PLAIN + "def go(x, y, *a):\n    return Scale(*[1.0, 2.0])(x) * y\n",
    "settings called like an input": (
        PLAIN.replace("factor, bias=0.5", "x, bias=0.5").replace("= factor", "= x")
        + "def go(x, y):\n    return Scale(2.0)(x) * y\n"
    ),
    "settings looked up by name": (
        PLAIN.replace(
            "    def backward",
            "    def get(self, start):\n        return getattr(self, 'fac' + start)\n\n    def backward",
        )
        + "def go(x, y):\n    f = Scale(3.0)\n    return f(x) * f.get('tor') + f(y) * getattr(f, 'factor')\n"
    ),
    "settings that change": (
        PLAIN + "def go(x, y):\n    k = 1\n    f = Scale(k)\n    k = 2\n    return f(x) * y * k\n"
    ),
    "a gradient that a library computes": (
        "from copy import copy\n"
        + PLAIN.replace("return grad * 2 * x * self.factor", "return copy(grad * 2 * x * self.factor)")
        + "def go(x, y):\n    return Scale(2.0)(x) * y\n"
    ),
    "an object called like the context": (
        STATE.replace("self", "ctx")
        + "def go(x, y):\n    f = Scale(2.0)\n    out = f(x)\n    return out * y, f.mean\n"
    ),
    "the base class by its name, which inputs need gradients": """
class Product(Function):
    sign = -1
    calls = 0
    def __init__(self):
        Function.__init__(self)
    def forward(self, a, b):
        self.save_for_backward(a, b)
        self.calls = self.calls + self.weight()
        return a * b * self.sign
    def weight(self):
        return self.sign
    def backward(self, grad):
        a, b = self.saved_variables
        none = None if not all(self.needs_input_grad) else grad * a * self.sign
        return grad * b * self.sign if self.needs_input_grad[0] else None, none
def go(x, y):
    f, g = Product(), Product()
    return f(x, y) + g(x, y.detach()), torch.tensor(f.calls)
""",
}


def _comments(text: str) -> list[str]:
    return sorted(line.partition("#")[2] for line in text.splitlines() if "#" in line)


@pytest.mark.parametrize("body", [*WORKING.values(), *OBJECTS.values()], ids=[*WORKING, *OBJECTS])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_old_against_new(body: str, newline: str):
    before = HEAD + body.lstrip()
    findings, after = check(before.replace("\n", newline))
    assert findings and all(item.fix is findings[0].fix for item in findings)
    assert newline == "\n" or "\n" not in after.replace("\r\n", "")
    assert _comments(after) == _comments(before)
    for one, other in zip(run(before, old=True), run(after, old=False), strict=True):
        torch.testing.assert_close(one, other)


def test_gradcheck():
    _, after = check(HEAD + WORKING["settings"])
    space: dict[str, object] = {}
    exec(after, space)
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda item: space["Scale"].apply(item, 3.0), (x,))  # type: ignore[attr-defined]


REFUSED = {
    "both ways": (PLAIN + "def go(x):\n    return Scale(1.0)(x) + Scale.apply(x, 2.0)\n", "uses both"),
    "derived": (PLAIN + "class Twice(Scale):\n    pass\n", "used without being called"),
    "self handed on": (
        PLAIN.replace("x, = self.saved_tensors", "x, = load(self)") + "Scale(1.0)(1)\n",
        "passes the function object on",
    ),
    "unknown state": (
        PLAIN.replace("self.factor + self.bias", "self.other") + "Scale(1.0)(1)\n",
        "never sets `other`",
    ),
    "state of the base class": (
        PLAIN.replace("__init__()", "__init__(True)") + "Scale(1.0)(1)\n",
        "how `__init__` calls the base class",
    ),
    "state of the base class that another class has too": (
        PLAIN.replace("(Function)", "(torch.autograd.function.InplaceFunction)").replace(
            "self.factor + self.bias", "self.inplace"
        )
        + "class Layer:\n    def __init__(self):\n        self.inplace = True\nScale(1.0)(1)\n",
        "never sets `inplace`",
    ),
    "arguments of the base class": (
        "class Same(torch.autograd.function.InplaceFunction):\n    def forward(self, x):\n        return x\n"
        "f = [Same(True)]\n",
        "cannot analyze the arguments",
    ),
    "what belongs to a call read from outside": (
        PLAIN + "def go(x):\n    f = Scale(1.0)\n    f(x)\n    return f.saved_tensors\n",
        "`f` is passed on",
    ),
    "a method of the old kind": (
        PLAIN.replace("self.save_for_backward(x)", "self.mark_shared_storage((x, x))") + "Scale(1.0)(1)\n",
        "a context has no",
    ),
}


@pytest.mark.parametrize(("body", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_as_a_whole(body: str, why: str):
    findings, after = check(HEAD + body)
    assert after == HEAD + body
    assert findings and all(item.fix is None for item in findings)
    assert all(why in (help_of(item) or "") for item in findings)


def test_calls_in_other_files_stay_as_they_are():
    before = HEAD + PLAIN
    findings, after = check(before)
    assert len(findings) == 4  # the class and its methods
    for finding in findings:
        assert finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE
    caller = "def go(x, y):\n    f = Scale(3.0)\n    return f(x) + Scale(2.0, bias=1.0)(y)\n"
    for one, other in zip(run(before + caller, old=True), run(after + caller, old=False), strict=True):
        torch.testing.assert_close(one, other)


CLEAN = [
    "class F(Function):\n    def forward(ctx, x):\n        return x\ny = F.apply(x)\n",
    "class F(Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x\n",
    "class F(Function):\n    def forward(self, x):\n        return x\n",
    "class F(Function):\n    def forward(self, x):\n        return x\nclass F:\n    pass\ny = F()(x)\n",
    "class Base(Function):\n    scale = 1\n",
    "class Function:\n    pass\nclass F(Function):\n    def forward(self, x):\n        return x\n",
]


@pytest.mark.parametrize("body", CLEAN)
def test_nothing_to_find(body: str):
    findings, _ = check(HEAD + textwrap.dedent(body))
    assert not findings
