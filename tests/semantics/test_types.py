"""What the local type inference says of objects: surely a tensor, maybe one, or nothing."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from torchmigrate.semantics.model import Use
from torchmigrate.semantics.values.objects import ancestors, inherited
from torchmigrate.semantics.walk.resolver import resolve
from torchmigrate.source.text import Source

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
import numpy as np
"""
SURE, STATED, MAYBE, NOT = "sure", "stated", "maybe", "not"


def uses_of(code: str, last: str) -> list[Use]:
    """The uses of attributes of objects in some code whose name ends so."""
    text = HEAD + textwrap.dedent(code)
    names = resolve(ast.parse(text), Source.from_text(text, Path("case.py")))
    return [use for use in names.uses if use.method and use.candidates[0].rpartition(".")[2] == last]


def members(code: str, last: str) -> list[str]:
    """The same as names, with a `?` where that is not sure, `:` where only an annotation says so."""
    marks = {True: "", False: " ?"}
    return [
        f"{' | '.join(use.candidates)}{' :' if use.stated else marks[use.sure]}"
        for use in uses_of(code, last)
    ]


def level(code: str) -> str:
    """How sure it is that `x` is a tensor where `x.qr()` is called in some code."""
    found = [name for name in members(code, "qr") if name.startswith("torch.Tensor.")]
    assert len(found) <= 1, found
    return {"?": MAYBE, ":": STATED}.get(found[0][-1], SURE) if found else NOT


@pytest.mark.parametrize(
    "expression",
    [
        "torch.zeros(3)",
        "torch.FloatTensor(3)",
        "torch.cuda.LongTensor(3)",
        "torch.sparse.FloatTensor(i, v)",
        "torch.autograd.Variable(y)",
        "nn.Parameter(y)",
        "torch.from_numpy(np.ones(3))",
        "torch.einsum('ij,jk', y, z)",
        "torch.norm(y)",
        "torch.fft.rfft(y)",
        "torch.special.expit(y)",
        "torch.linalg.inv(y)",
        "F.cross_entropy(y, z)",
        "F.max_pool2d(y, 2)",
        "F.max_pool2d(y, 2, return_indices=True)[0]",
        "nn.Linear(2, 3)(y)",
        "nn.MSELoss()(y, z)",
        "nn.MaxPool2d(2)(y)",
        "nn.MaxPool2d(2, return_indices=True)(y)[1]",
        "nn.Sequential(nn.Linear(2, 3), nn.ReLU())(y)",
        "nn.LSTM(2, 3)(y)[0]",
        "nn.utils.clip_grad_norm_(p, 1)",
        "nn.utils.rnn.pad_sequence(ys)",
        "nn.utils.rnn.pad_packed_sequence(y)[0]",
        "nn.utils.rnn.pack_padded_sequence(y, n).data",
        "nn.init.xavier_uniform_(w)",
        "torch.distributions.Normal(0, 1).sample()",
        "torch.distributions.Normal(0, 1).mean",
        "torch.distributions.kl_divergence(p, q)",
        "torch.autograd.grad(y, z)[0]",
        "torch.max(y, z.unsqueeze(0))[0]",
        "torch.max(y)",
        "torch.max(y, torch.zeros(3))",
        "torch.max(y, 1)[1]",
        "torch.max(y, dim=1).values",
        "torch.zeros(3).max(0)[0]",
        "torch.zeros(3).max()",
        "torch.zeros(3).max(dim=0).indices",
        "torch.zeros(3).sort()[1]",
        "torch.zeros(3).nonzero()",
        "torch.zeros(3).nonzero(as_tuple=True)[0]",
        "torch.zeros(3).unique()",
        "torch.zeros(3).split(1)[0]",
        "torch.zeros(3).split(1)[1:][0]",
        "torch.where(y)[0]",
        "torch.where(y, a, b)",
        "torch.zeros(3).data",
        "torch.zeros(3).grad.data",
        "torch.zeros(3).cuda().view(1, -1).type(torch.float)",
        "torch.zeros(3)[0, ..., None]",
        "-torch.zeros(3)",
        "~torch.zeros(3).bool()",
        "torch.zeros(3) < y",
        "0 < torch.zeros(3)",
        "2 * torch.zeros(3)",
        "y * torch.zeros(3)",
        "torch.zeros(3) @ y",
        "torch.zeros(3) % 2",
        "1 - torch.zeros(3) / 2 + y",
        "(torch.zeros(3) if y else torch.ones(3))",
        "(torch.zeros(3) if y else None)",
        "(y := torch.zeros(3))",
        "[torch.zeros(3), torch.ones(3)][0]",
        "(1, torch.zeros(3))[1]",
        "{'a': torch.zeros(3)}['a']",
        "[torch.zeros(i) for i in y][0]",
        "next(iter(nn.Linear(2, 3).parameters()))",
        "nn.Linear(2, 3).weight.data",
        "nn.BatchNorm1d(2).running_mean",
        "nn.Linear(2, 3).cuda()(y)",
        "nn.Linear(2, 3).to(device).eval()(y)",
        "optim.SGD(p, 0.1).param_groups[0]['params'][0]",
    ],
)
def test_surely_a_tensor(expression: str) -> None:
    assert level(f"({expression}).qr()") == SURE
    assert level(f"def f():\n    x = {expression}\n    x.qr()") == SURE


@pytest.mark.parametrize(
    "expression",
    [
        "nn.Sequential(nn.Linear(2, 3), nn.LSTM(3, 3))(y)",
        "nn.DataParallel(y)(z)",
        "(y if z else torch.zeros(3))",
        "(torch.zeros(3) or y)",
        "y % torch.zeros(3)",
        "nn.Linear(2, 3).state_dict()['weight']",
    ],
)
def test_maybe_a_tensor(expression: str) -> None:
    assert level(f"x = {expression}\nx.qr()") == MAYBE


@pytest.mark.parametrize(
    "expression",
    [
        "np.linalg.qr(y)",
        "np.ones(3)",
        "np.ones(3) + 1",
        "torch.zeros(3).numpy()",
        "torch.zeros(3).cpu().detach().numpy().T",
        "torch.zeros(3).tolist()",
        "torch.zeros(3).item()",
        "torch.zeros(3).item() * y",
        "torch.zeros(3).shape",
        "torch.zeros(3).size()",
        "torch.zeros(3).size(0)",
        "torch.zeros(3).type()",
        "torch.zeros(3).dtype",
        "torch.zeros(3).norm",
        "torch.zeros(3) is y",
        "(not torch.zeros(3))",
        "torch.zeros(3) in y",
        "'%s' % torch.zeros(3)",
        "f'{torch.zeros(3)}'",
        "len(torch.zeros(3))",
        "float(torch.zeros(3))",
        "torch.load(y)",
        "torch.allclose(y, z)",
        "torch.max(y, 1)",
        "torch.zeros(3).max(1)",
        "torch.svd(y)",
        "nn.LSTM(2, 3)(y)",
        "nn.Linear(2, 3)",
        "nn.Sequential(nn.Linear(2, 3))",
        "torch.device('cpu')",
        "[torch.zeros(3)]",
        "(torch.zeros(3), 1)[1]",
        "{'a': torch.zeros(3)}",
        "optim.SGD(p, 0.1).param_groups[0]['lr']",
        "tf.Variable(y)",
        "tf.constant(y) + 1",
        "jnp.zeros(3)",
        "pd.DataFrame(y)",
        "cupy.zeros(3)",
        "mine.zeros(3)",
        "Tensor(y)",
        "y.zeros(3)",
    ],
)
def test_no_tensor(expression: str) -> None:
    head = "import tensorflow as tf\nimport jax.numpy as jnp\nimport pandas as pd\nimport cupy\nimport mine\n"
    assert level(f"{head}({expression}).qr()") == NOT
    assert level(f"{head}def f():\n    x = {expression}\n    x.qr()") == NOT


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(x: torch.Tensor): x.qr()", STATED),
        ("def f(x: 'torch.Tensor'): x.qr()", STATED),
        ("from torch import Tensor\ndef f(x: Tensor = None): x.qr()", STATED),
        ("def f(x: torch.LongTensor): x.qr()", STATED),
        ("from typing import Optional\ndef f(x: Optional[torch.Tensor]): x.qr()", STATED),
        ("def f(x: torch.Tensor | None = None): x.qr()", STATED),
        ("from typing import Union\ndef f(x: Union[torch.Tensor, float]): x.qr()", STATED),
        ("from typing import Union\ndef f(x: Union[torch.Tensor, np.ndarray]): x.qr()", MAYBE),
        ("def f(x: np.ndarray | torch.Tensor): x.qr()", MAYBE),
        ("from typing import List\ndef f(xs: List[torch.Tensor]):\n    for x in xs: x.qr()", STATED),
        ("def f(xs: tuple[int, torch.Tensor]):\n    n, x = xs\n    x.qr()", STATED),
        ("def f(xs: tuple[int, torch.Tensor]):\n    x = xs[0]\n    x.qr()", NOT),
        ("def f(xs: tuple[torch.Tensor, ...]): xs[3].qr()", STATED),
        ("def f(xs: dict[str, torch.Tensor]): xs['a'].qr()", STATED),
        ("def f(xs: dict[str, torch.Tensor]):\n    for x in xs: x.qr()", NOT),
        ("def f(xs: dict[str, torch.Tensor]):\n    for x in xs.values(): x.qr()", STATED),
        ("def f(xs: dict[str, torch.Tensor]):\n    for k, x in xs.items(): x.qr()", STATED),
        ("def f(*xs: torch.Tensor): xs[0].qr()", STATED),
        ("def f(*xs: torch.Tensor): xs.qr()", NOT),
        ("def f(**xs: torch.Tensor): xs['a'].qr()", STATED),
        ("def f(x: np.ndarray): x.qr()", NOT),
        ("def f(x: int): x.qr()", NOT),
        ("def f(x: 'Tensor'): x.qr()", NOT),
        ("def f():\n    x: torch.Tensor = g()\n    x.qr()", STATED),
        ("def f():\n    x: torch.Tensor\n    x = g()\n    x.qr()", NOT),
        ("def g() -> torch.Tensor: ...\ndef f(): g().qr()", STATED),
        ("def g() -> 'torch.Tensor': ...\ndef f(): g().qr()", NOT),
        ("def g() -> tuple[torch.Tensor, int]: ...\ndef f():\n    x, n = g()\n    x.qr()", STATED),
        ("def g(): return torch.zeros(3)\ndef f(): g().qr()", SURE),
        ("async def g() -> torch.Tensor: ...\ndef f(): g().qr()", NOT),
        ("@mine\ndef g() -> torch.Tensor: ...\ndef f(): g().qr()", MAYBE),
        ("@torch.no_grad()\ndef g() -> torch.Tensor: ...\ndef f(): g().qr()", STATED),
    ],
)
def test_annotations(code: str, expected: str) -> None:
    assert level(code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # rebinding
        ("x = torch.zeros(3)\nx = x.numpy()\nx.qr()", NOT),
        ("x = torch.zeros(3)\nx = g(x)\nx.qr()", NOT),
        ("x = np.zeros(3)\nx = torch.from_numpy(x)\nx.qr()", SURE),
        ("x = torch.zeros(3)\nif a:\n    x = x.numpy()\nx.qr()", MAYBE),
        ("x = torch.zeros(3)\nif a:\n    x = x.cuda()\nx.qr()", SURE),
        ("x = None\nif a:\n    x = torch.zeros(3)\nx.qr()", SURE),
        ("x = torch.zeros(3)\nfor i in y:\n    x.qr()\n    x = g(x)", MAYBE),
        ("x = torch.zeros(3)\nfor i in y:\n    x.qr()", SURE),
        ("x = torch.zeros(3)\nfor x in y:\n    pass\nx.qr()", MAYBE),
        ("x = torch.zeros(3)\ndef f(x): x.qr()", NOT),
        ("x = torch.zeros(3)\ndef f(): x.qr()", SURE),
        ("x = torch.zeros(3)\ndef g():\n    global x\n    x = h()\ndef f(): x.qr()", MAYBE),
        ("x = torch.zeros(3)\nlambda x: x.qr()", NOT),
        ("x = torch.zeros(3)\ny = [x.qr() for x in z]", NOT),
        ("x = torch.zeros(3)\nclass C:\n    x = 1\n    def f(self): x.qr()", SURE),
        ("try:\n    x = torch.zeros(3)\nexcept E:\n    x = h()\nx.qr()", MAYBE),
        ("with h() as x:\n    x.qr()", NOT),
        ("x = torch.zeros(3)\ndel x\nx.qr()", NOT),
        # what is added up
        ("def f():\n    x = 0\n    for b in y:\n        x += F.mse_loss(b, z)\n    x.qr()", SURE),
        ("def f():\n    x = 0\n    for b in y:\n        x = x + F.mse_loss(b, z)\n    x.qr()", SURE),
        ("def f():\n    x = []\n    for b in y:\n        x += F.mse_loss(b, z)\n    x.qr()", MAYBE),
        ("def f():\n    x = 0\n    for b in y:\n        x += F.mse_loss(b, z).item()\n    x.qr()", NOT),
        ("x = torch.zeros(3)\nx += y\nx.qr()", SURE),
        ("x = y\nx += torch.zeros(3)\nx.qr()", MAYBE),
        # unpacking
        ("x, y = torch.zeros(3), np.ones(3)\nx.qr()", SURE),
        ("y, x = torch.zeros(3), np.ones(3)\nx.qr()", NOT),
        ("u, s, x = torch.svd(A)\nx.qr()", SURE),
        ("v, x = torch.zeros(3).max(dim)\nx.qr()", SURE),
        ("y, (h, x) = nn.LSTM(2, 3)(A)\nx.qr()", SURE),
        ("y, *x = torch.zeros(3)\nx.qr()", NOT),
        ("x, = torch.autograd.grad(A, B)\nx.qr()", SURE),
        # loops
        ("for x in torch.zeros(3): x.qr()", SURE),
        ("for x in nn.Linear(2, 3).parameters(): x.grad.data.qr()", SURE),
        ("for n, x in nn.Linear(2, 3).named_parameters(): x.qr()", SURE),
        ("for i, x in enumerate(torch.zeros(3)): x.qr()", SURE),
        ("for i, x in enumerate(torch.zeros(3)): i.qr()", NOT),
        ("for a, x in zip(y, torch.zeros(3)): x.qr()", SURE),
        ("for a, x in zip(torch.zeros(3), y): x.qr()", NOT),
        ("for x, y in torch.utils.data.DataLoader(d): x.qr()", STATED),
        ("for i, (x, y) in enumerate(torch.utils.data.DataLoader(d)): x.qr()", STATED),
        ("from tqdm import tqdm\nfor x in tqdm(torch.utils.data.DataLoader(d)): x['a'].qr()", STATED),
        ("[x.qr() for x in torch.zeros(3)]", SURE),
        ("[x.qr() for a, x in zip(y, torch.zeros(3))]", SURE),
        ("for group in optim.SGD(p, 1).param_groups:\n    for x in group['params']: x.grad.qr()", SURE),
        # tests
        ("def f(x):\n    if isinstance(x, torch.Tensor): x.qr()", SURE),
        ("def f(x):\n    if isinstance(x, torch.Tensor): pass\n    x.qr()", MAYBE),
        ("def f(x):\n    if torch.is_tensor(x): x.qr()", SURE),
        ("def f(x):\n    if not isinstance(x, torch.Tensor): return\n    x.qr()", SURE),
        ("def f(x):\n    if not isinstance(x, torch.Tensor): x = torch.tensor(x)\n    x.qr()", SURE),
        ("def f(x):\n    if isinstance(x, np.ndarray): x.qr()", NOT),
        ("def f(x):\n    if isinstance(x, np.ndarray): x = torch.from_numpy(x)\n    x.qr()", MAYBE),
        ("def f(x):\n    if isinstance(x, (torch.Tensor, np.ndarray)): x.qr()", MAYBE),
        ("def f(x):\n    if isinstance(x, (torch.Tensor, nn.Parameter)): x.qr()", SURE),
        ("def f(x):\n    if isinstance(x, list): pass\n    elif isinstance(x, torch.Tensor): x.qr()", SURE),
        ("def f(x: torch.Tensor):\n    if isinstance(x, list): x.qr()", NOT),
        ("def f(x):\n    assert isinstance(x, torch.Tensor)\n    x.qr()", SURE),
        ("def f(x):\n    if isinstance(x, torch.Tensor) and y: x.qr()", SURE),
        ("def f(x):\n    if isinstance(x, torch.Tensor) or y: x.qr()", NOT),
        ("def f(x):\n    return isinstance(x, torch.Tensor) and x.qr()", SURE),
        ("def f(x):\n    return not isinstance(x, torch.Tensor) or x.qr()", SURE),
        ("def f(x):\n    return x.qr() if isinstance(x, torch.Tensor) else x", SURE),
        ("def f(x):\n    return x if isinstance(x, torch.Tensor) else x.qr()", NOT),
        ("def f(y):\n    return [x.qr() for x in y if isinstance(x, torch.Tensor)]", SURE),
        ("def f(x):\n    if type(x) is torch.Tensor: x.qr()", SURE),
        ("def f(x):\n    if type(x) == np.ndarray: x.qr()", NOT),
        ("def f(x):\n    while not isinstance(x, torch.Tensor): x = x[0]\n    x.qr()", NOT),
    ],
)
def test_flow(code: str, expected: str) -> None:
    assert level(code) == expected


def in_module(body: str, base: str = "nn.Module") -> str:
    return f"class Net({base}):\n" + textwrap.indent(textwrap.dedent(body), "    ")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def forward(self, x): x.qr()", MAYBE),
        ("def forward(self, x: torch.Tensor): x.qr()", STATED),
        ("def forward(self, x: list): x.qr()", NOT),
        ("def forward(self, x):\n    x = F.relu(x)\n    x.qr()", SURE),
        ("def forward(self, x):\n    x = x + 1\n    x.qr()", MAYBE),
        ("def forward(self, *x): x.qr()", NOT),
        ("def forward(self, *x): x[0].qr()", MAYBE),
        ("def forward(*x): x[0].qr()", MAYBE),
        ("def forward(self, *x: list): x[0].qr()", NOT),
        ("def other(self, x): x.qr()", NOT),
        ("def __init__(self): self.w = nn.Parameter(y)\ndef f(self): self.w.qr()", SURE),
        ("def __init__(self): self.register_buffer('w', y)\ndef f(self): self.w.qr()", SURE),
        ("def __init__(self): self.register_parameter('w', None)\ndef f(self): self.w.qr()", SURE),
        ("def __init__(self): self.fc = nn.Linear(2, 3)\ndef f(self, y): self.fc(y).qr()", SURE),
        ("def __init__(self): self.fc = nn.Linear(2, 3)\ndef f(self, y): self.fc.weight.qr()", SURE),
        ("def __init__(self): self.add_module('fc', nn.Linear(2, 3))\ndef f(self): self.fc(y).qr()", SURE),
        ("def __init__(self): self.fc = mine(2, 3)\ndef f(self, y): self.fc(y).qr()", NOT),
        ("def f(self): self.w.qr()\ndef __init__(self): self.w = torch.eye(3)", SURE),
        ("def __init__(self): self.w = torch.eye(3)\ndef f(self): self.w.qr()\ndef g(self): self.w = h()", MAYBE),
        ("def __init__(self): self.w = torch.eye(3)\ndef g(self): self.w = h()\ndef f(self): self.w.qr()", MAYBE),
        ("def __init__(self): self.w = None\ndef g(self): self.w = torch.eye(3)\ndef f(self): self.w.qr()", SURE),
        ("def __init__(self): self.w = y\ndef f(self): self.w.qr()", NOT),
        ("def __init__(self):\n    self.w = torch.eye(3)\n    self.w = self.w.numpy()\ndef f(self): self.w.qr()", MAYBE),
        ("def __init__(self):\n    self.w = torch.eye(3)\n    self.w.qr()\n    self.w = self.w.numpy()", SURE),
        ("def __init__(self):\n    self.w = torch.eye(3)\n    self.w = self.w.numpy()\n    self.w.qr()", NOT),
        ("def f(self):\n    self.w = torch.eye(3)\n    self.w.qr()", SURE),
        ("def f(self):\n    if y: self.w = torch.eye(3)\n    self.w.qr()", MAYBE),
        ("def f(self):\n    self.w = 0\n    for b in y: self.w += F.mse_loss(b, b)\n    self.w.qr()", SURE),
        ("w: torch.Tensor\ndef f(self): self.w.qr()", STATED),
        ("w = torch.eye(3)\ndef f(self): self.w.qr()", SURE),
        ("w = 3\ndef f(self): self.w.qr()", NOT),
        ("@property\ndef w(self) -> torch.Tensor: ...\ndef f(self): self.w.qr()", STATED),
        ("@property\ndef w(self): ...\ndef f(self): self.w.qr()", NOT),
        ("def w(self) -> torch.Tensor: ...\ndef f(self): self.w().qr()", STATED),
        ("def w(self) -> torch.Tensor: ...\ndef f(self): self.w.qr()", NOT),
        ("def qr(self): ...\ndef f(self): self.qr()", NOT),
        ("def forward(self, x) -> torch.Tensor: ...\ndef f(self, y): self(y).qr()", STATED),
        ("def forward(self, x): ...\ndef f(self, y): self(y).qr()", MAYBE),
        ("def f(self):\n    for p in self.parameters(): p.data.qr()", SURE),
        ("def __init__(self): self.w = torch.eye(3)\ndef f(self):\n    def g(): self.w.qr()\n    return g", SURE),
        ("def __init__(this): this.w = torch.eye(3)\ndef f(it): it.w.qr()", SURE),
        ("@staticmethod\ndef f(self): self.w.qr()\ndef __init__(self): self.w = torch.eye(3)", NOT),
    ],
)  # fmt: skip
def test_modules_of_the_file(body: str, expected: str) -> None:
    assert level(in_module(body)) == expected


@pytest.mark.parametrize(
    ("base", "own", "expected"),
    [
        ("nn.Module", "", SURE),
        ("nn.Module", "def register_buffer(self, name, value): setattr(self, name, value)\n", NOT),
        ("object", "", NOT),
        ("Unknown", "", MAYBE),
    ],
)
def test_what_registers_buffers_is_a_module(base: str, own: str, expected: str) -> None:
    """Samplers of diffusion models have a method of that name, and keep arrays of NumPy by it."""
    body = f"{own}def make(self): self.register_buffer('w', y)\ndef f(self): self.w.qr()"
    assert level(in_module(body, base)) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("class A:\n    def __init__(self): self.w = torch.eye(3)\nA().w.qr()", NOT),  # not walked yet
        ("class A:\n    def __init__(self): self.w = torch.eye(3)\ndef f(): A().w.qr()", SURE),
        ("class A:\n    w: torch.Tensor\ndef f(a: A): a.w.qr()", STATED),
        ("class A:\n    w: torch.Tensor\nclass B(A): pass\ndef f(a: B): a.w.qr()", STATED),
        ("class A:\n    w: torch.Tensor\nclass B(A):\n    w = 1\ndef f(a: B): a.w.qr()", NOT),
        ("class A:\n    def qr(self): ...\ndef f(): A().qr()", NOT),
        ("class A(nn.Module):\n    def qr(self): ...\ndef f(): A().qr()", NOT),
        ("class A(torch.Tensor):\n    def g(self): self.qr()", SURE),
        ("class A(torch.Tensor):\n    def qr(self): super().qr()", SURE),
        ("class A(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x): x.qr()", MAYBE),
        ("class A(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, x): x.qr()", SURE),
        ("class A(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, g):\n"
         "        x, y = ctx.saved_tensors\n        x.qr()", SURE),
        ("class A(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, g): ctx.x.qr()", NOT),
        ("class A(optim.Optimizer):\n    def step(self):\n        for g in self.param_groups:\n"
         "            for p in g['params']: p.grad.data.qr()", SURE),
        ("import pytorch_lightning as pl\nclass A(pl.LightningModule):\n    def f(self):\n"
         "        for p in self.parameters(): p.qr()", SURE),
    ],
)  # fmt: skip
def test_classes_of_the_file(code: str, expected: str) -> None:
    assert level(code) == expected


HOOK = "torch.nn.Module.register_backward_hook"


@pytest.mark.parametrize(
    ("code", "last", "expected"),
    [
        ("nn.Linear(2, 3).register_backward_hook(h)", "register_backward_hook",
         ["torch.nn.Linear.register_backward_hook"]),
        ("class A(nn.Module):\n    def f(self): self.register_backward_hook(h)", "register_backward_hook", [HOOK]),
        ("class A(nn.Module):\n    def f(self): super().register_backward_hook(h)", "register_backward_hook", [HOOK]),
        ("class A(nn.Module): pass\nA().register_backward_hook(h)", "register_backward_hook", [HOOK]),
        ("class A(nn.Module): pass\nclass B(A): pass\nB().cuda().register_backward_hook(h)",
         "register_backward_hook", [HOOK]),
        ("class A(Mine, nn.Module): pass\nA().register_backward_hook(h)", "register_backward_hook", [f"{HOOK} ?"]),
        ("class A(nn.Module, Mine): pass\nA().register_backward_hook(h)", "register_backward_hook", [HOOK]),
        ("class A(nn.Module):\n    def register_backward_hook(self, h): ...\ndef f(): A().register_backward_hook(h)",
         "register_backward_hook", []),
        ("class A(Mine):\n    def f(self): self.register_backward_hook(h)", "register_backward_hook", [f"{HOOK} ?"]),
        ("def f(m): m.register_backward_hook(h)", "register_backward_hook", [f"{HOOK} ?"]),
        ("def f(m: nn.Module): m.register_backward_hook(h)", "register_backward_hook", [f"{HOOK} :"]),
        ("for m in nn.Sequential(a).modules(): m.register_backward_hook(h)", "register_backward_hook", [HOOK]),
        ("def f(m):\n    if isinstance(m, nn.Conv2d): m.register_backward_hook(h)", "register_backward_hook",
         ["torch.nn.Conv2d.register_backward_hook"]),
        ("def f(m):\n    if isinstance(m, (nn.Conv2d, nn.Linear)): m.register_backward_hook(h)",
         "register_backward_hook", [HOOK]),
        ("import torchvision\ntorchvision.models.resnet18().register_backward_hook(h)", "register_backward_hook",
         [HOOK]),
        ("import torchvision\ntorchvision.models.resnet18(True).layer1.register_backward_hook(h)",
         "register_backward_hook", [f"{HOOK} ?"]),
        ("o = optim.SGD(p, 0.1)\no.zero_grad()", "zero_grad", ["torch.optim.SGD.zero_grad"]),
        ("if a:\n    o = optim.SGD(p, 0.1)\nelse:\n    o = optim.Adam(p)\no.zero_grad()", "zero_grad",
         ["torch.optim.Optimizer.zero_grad"]),
        ("if a:\n    o = optim.SGD(p, 0.1)\nelse:\n    o = mine(p)\no.zero_grad()", "zero_grad",
         ["torch.optim.SGD.zero_grad ?"]),
        ("class A:\n    def __init__(self): self.o = optim.SGD(p, 0.1)\n    def f(self): self.o.zero_grad()",
         "zero_grad", ["torch.optim.SGD.zero_grad"]),
        ("from torch.optim.lr_scheduler import StepLR\nStepLR(o, 3).get_lr()", "get_lr",
         ["torch.optim.lr_scheduler.StepLR.get_lr"]),
        ("class A(optim.lr_scheduler._LRScheduler):\n    def f(self): self.print_lr()", "print_lr",
         ["torch.optim.lr_scheduler._LRScheduler.print_lr"]),
        ("class A(optim.lr_scheduler._LRScheduler):\n    def get_lr(self): ...\n    def f(self): self.get_lr()",
         "get_lr", []),
        ("torch.cuda.amp.GradScaler().step(o)", "step", ["torch.cuda.amp.GradScaler.step"]),
        ("torch.zeros(3).storage().pin_memory()", "pin_memory", ["torch.TypedStorage.pin_memory"]),
        ("torch.FloatStorage(3).pin_memory()", "pin_memory", ["torch.FloatStorage.pin_memory"]),
        ("torch.Generator().seed()", "seed", ["torch.Generator.seed"]),
        ("torch.zeros(3).device.type", "type", ["torch.device.type"]),
        ("torch.distributions.Normal(0, 1).sample_n(3)", "sample_n", ["torch.distributions.Normal.sample_n"]),
        ("from torch.utils.tensorboard import SummaryWriter\nwith SummaryWriter() as w: w.close()", "close",
         ["torch.utils.tensorboard.SummaryWriter.close"]),
        ("from tensorboardX import SummaryWriter\nSummaryWriter().close()", "close", []),
        ("from torch.utils.data import DataLoader\ndef f(d: DataLoader[int]): d.dataset", "dataset",
         ["torch.utils.data.DataLoader.dataset :"]),
        ("class A(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, g):\n"
         "        x, = ctx.saved_variables", "saved_variables", ["torch.autograd.Function.saved_variables"]),
        ("def backward(ctx, g):\n    x, = ctx.saved_variables", "saved_variables",
         ["torch.autograd.Function.saved_variables ?"]),
        ("import torchvision\ntorchvision.datasets.MNIST('.').train_data.shape", "train_data",
         ["torchvision.datasets.MNIST.train_data"]),
        ("import torchvision\nn = torchvision.datasets.MNIST('.').train_data\nn(n)", "train_data",
         ["torchvision.datasets.MNIST.train_data"]),
        ("loss = F.mse_loss(a, b)\nloss.data[0]", "data", ["torch.Tensor.data"]),
        ("x = torch.zeros(3)\nx.data.norm()", "data", ["torch.Tensor.data"]),
        ("x = torch.zeros(3)\nx.T.qr()", "T", ["torch.Tensor.T"]),
    ],
)  # fmt: skip
def test_members_of_other_objects(code: str, last: str, expected: list[str]) -> None:
    assert members(code, last) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("state['exp_avg'].mul_(b).add_(1 - b, g)", ["torch.Tensor.add_ ?"]),
        ("def f(x): x.add_(1, y)", ["torch.Tensor.add_ ?"]),
        ("class A:\n    def f(self): self.x.add_(1, y)", ["torch.Tensor.add_ ?"]),
        ("x.add_", []),  # not called
        ("import ops\nops.add_(x, y)", []),
        ("import paddle\ndef f(x): x.add_(1, y)", []),
        ("def add_(x, y): ...\nadd_(x, y)", []),
    ],
)
def test_methods_that_only_tensors_have(code: str, expected: list[str]) -> None:
    assert members(code, "add_") == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(x): x.symeig()", ["torch.Tensor.symeig ?"]),
        ("from gpytorch.lazy import LazyTensor\ndef f(x): x.symeig()", []),
        ("from ..lazy_tensor import base\ndef f(x): x.symeig()", []),
        ("from .matrices import LazyMatrix\ndef f(x): x.symeig()", []),
        ("from gpytorch.lazy import LazyTensor\ntorch.eye(3).symeig()", ["torch.Tensor.symeig"]),
        ("import scipy.linalg as sl\nsl.symeig(x)", []),
        ("def f(torch, x): torch.symeig(x)", []),
        ("def f(self, x): self.backend.symeig(x)", []),
        ("from botorch.models import SingleTaskGP\ndef f(x): x.symeig()", []),
        ("from gpytorch import kernels\ndef f(K): (K + torch.eye(3)).symeig()", ["torch.Tensor.symeig ?"]),
    ],
)
def test_methods_that_lazy_matrices_have_too(code: str, expected: list[str]) -> None:
    assert members(code, "symeig") == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(noise): noise.cholesky()", ["torch.Tensor.cholesky ?"]),
        ("def f(mvn): mvn.covariance_matrix.cholesky()", ["torch.Tensor.cholesky ?"]),
        ("def f(mvn): mvn.lazy_covariance_matrix.cholesky()", []),
        ("def f(mvn): mvn.lazy_covariance_matrix.clone().cholesky()", []),
        ("def f(lazy_covariance): lazy_covariance.cholesky()", []),
        ("def f(kernel, x): kernel(x).cholesky()", []),
        ("def f(kernel, x): kernel(x).add_jitter(1e-4).cholesky()", []),
        ("def f(likelihood, x): likelihood.noise_covar(shape=x.shape).cholesky()", []),
        ("def f(x): x.t().mm(x).cholesky()", ["torch.Tensor.cholesky ?"]),
        (
            "from gpytorch import kernels\ndef f(K): (K + torch.eye(3)).cholesky()",
            ["torch.Tensor.cholesky ?"],
        ),
        (
            "from gpytorch import kernels\ntorch.eye(3).add(torch.eye(3)).cholesky()",
            ["torch.Tensor.cholesky"],
        ),
        ("def f(K): (K + torch.eye(3)).cholesky()", ["torch.Tensor.cholesky"]),
    ],
)
def test_matrices_of_other_libraries_are_no_tensors(code: str, expected: list[str]) -> None:
    assert members(code, "cholesky") == expected


def test_objects_of_a_file_without_torch_are_nothing() -> None:
    text = "def f(x): x.add_(1, y)"
    assert resolve(ast.parse(text), Source.from_text(text, Path("case.py"))).uses == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch.optim.SGD.zero_grad", "torch.optim.Optimizer.zero_grad"),
        ("torch.optim.sgd.SGD.zero_grad", "torch.optim.Optimizer.zero_grad"),
        ("torch.nn.Conv2d.register_backward_hook", HOOK),
        ("torch.nn.modules.conv.Conv2d.register_backward_hook", HOOK),
        ("torch.nn.GRU.forward_impl", "torch.nn.RNNBase.forward_impl"),
        ("torch.optim.lr_scheduler.StepLR.get_lr", "torch.optim.lr_scheduler.LRScheduler.get_lr"),
        ("torch.optim.lr_scheduler.StepLR.get_lr", "torch.optim.lr_scheduler._LRScheduler.get_lr"),
        ("torch.optim.lr_scheduler._LRScheduler.get_lr", "torch.optim.lr_scheduler.LRScheduler.get_lr"),
        ("torch.optim.lr_scheduler.StepLR.step", "torch.optim.lr_scheduler.LRScheduler.step"),
        ("torch.distributions.Normal.sample_n", "torch.distributions.Distribution.sample_n"),
        ("torch.FloatStorage.is_pinned", "torch.TypedStorage.is_pinned"),
        ("torch.cuda.amp.GradScaler.step", "torch.GradScaler.step"),
        ("torch.nn.quantized.Linear.forward", "torch.nn.Module.forward"),
    ],
)
def test_members_are_inherited(name: str, expected: str) -> None:
    assert expected in inherited(name)


@pytest.mark.parametrize(
    "name",
    [
        "torch.optim.lr_scheduler.ReduceLROnPlateau.step",  # takes the metrics
        "torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.step",  # is meant to be given the epoch
        "torch.optim.lr_scheduler.ChainedScheduler.step",
    ],
)
def test_members_with_another_contract_are_not_inherited(name: str) -> None:
    assert "torch.optim.lr_scheduler.LRScheduler.step" not in inherited(name)


@pytest.mark.parametrize(
    "name", ["torch.nn.functional.relu", "torch.zeros", "numpy.ndarray.qr", "torch.Tensor.qr"]
)
def test_nothing_else_is_inherited(name: str) -> None:
    assert inherited(name) == ()


def test_classes_are_known_by_their_ancestors() -> None:
    assert ancestors("torch.optim.adamw.AdamW") == (
        "torch.optim.AdamW",
        "torch.optim.Adam",
        "torch.optim.Optimizer",
    )
    assert ancestors("torch.nn.Parameter") == ("torch.nn.Parameter",)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(): g().qr()\ndef g(): return torch.zeros(3)", SURE),
        ("def g(y):\n    if y: return None\n    return torch.zeros(3)\ndef f(): g(1).qr()", SURE),
        ("def g(y):\n    if y: return 1\n    return torch.zeros(3)\ndef f(): g(1).qr()", MAYBE),
        ("def g(y):\n    yield torch.zeros(3)\n    return torch.zeros(3)\ndef f(): g(1).qr()", NOT),
        ("async def g(): return torch.zeros(3)\ndef f(): g().qr()", NOT),
        ("@other\ndef g(): return torch.zeros(3)\ndef f(): g().qr()", MAYBE),
        ("@torch.no_grad()\ndef g(): return torch.zeros(3)\ndef f(): g().qr()", SURE),
        ("def g(): return torch.zeros(3), 1\ndef f():\n    x, n = g()\n    x.qr()", SURE),
        ("def g(): return [torch.zeros(3)]\ndef f():\n    for x in g(): x.qr()", SURE),
        ("def g(n): return g(n - 1) if n else torch.zeros(3)\ndef f(): g(3).qr()", MAYBE),
        ("def g() -> int: return torch.zeros(3)\ndef f(): g().qr()", SURE),
        ("def g() -> torch.Tensor: return h()\ndef f(): g().qr()", STATED),
        ("def f():\n    def g(): return torch.zeros(3)\n    g().qr()", NOT),  # it may see what comes later
        ("x = g().qr()\ndef g(): return torch.zeros(3)", NOT),
        ("class A:\n    def f(self): self.g().qr()\n    def g(self): return torch.zeros(3)", SURE),
        ("class A:\n    def f(self): self.g.qr()\n    @property\n    def g(self): return torch.zeros(3)", SURE),
        ("class A(nn.Module):\n    def forward(self, y): return torch.relu(y)\nA()(y).qr()", MAYBE),
        ("class A(nn.Module):\n    def forward(self, y): return torch.relu(y)\ndef f(): A()(y).qr()", SURE),
        ("class A(nn.Linear):\n    def forward(self, y): super().forward(y).qr()", SURE),
        ("class A(nn.Module):\n    def forward(self, y): return torch.relu(y)\n"
         "class B(A):\n    def forward(self, y): super().forward(y).qr()", SURE),
        ("def f(): return torch.qr\ndef g(): f()(torch.zeros(3))[0].qr()", NOT),
    ],
)  # fmt: skip
def test_results_of_the_files_own_functions(code: str, expected: str) -> None:
    assert level(code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(x):\n    y = x.unsqueeze(0)\n    x.qr()", SURE),
        ("def f(x):\n    x.unsqueeze(0).qr()", SURE),
        ("def f(x):\n    x.qr()\n    y = x.unsqueeze(0)", NOT),
        ("def f(x, a):\n    y = x.unsqueeze(0) if a else x\n    x.qr()", NOT),
        ("def f(x, a):\n    y = a and x.unsqueeze(0)\n    x.qr()", NOT),
        ("def f(x, a):\n    if a: x.unsqueeze(0)\n    x.qr()", MAYBE),
        ("def f(x, a):\n    if a:\n        x.unsqueeze(0)\n        x.qr()", SURE),
        ("def f(x):\n    y = x.flatten()\n    x.qr()", NOT),  # NumPy's arrays have it
        ("import paddle\ndef f(x):\n    y = x.unsqueeze(0)\n    x.qr()", NOT),
        ("import gpytorch\ndef f(x):\n    y = x.unsqueeze(0)\n    x.qr()", NOT),
        ("def f(x):\n    np.unsqueeze(x)\n    x.qr()", NOT),
        ("class A(nn.Module):\n    def forward(self, x):\n        x.masked_fill(x > 0, 0)\n        x.qr()", SURE),
    ],
)  # fmt: skip
def test_a_method_that_only_tensors_have_tells_what_a_name_holds(code: str, expected: str) -> None:
    assert level(code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(model):\n    for x in model.parameters(): x.qr()", STATED),
        ("def f(model):\n    for n, x in model.named_parameters(): x.qr()", STATED),
        ("def f(model):\n    [x.qr() for x in filter(lambda p: p.requires_grad, model.parameters())]", STATED),
        ("def f(optimizer):\n    for g in optimizer.param_groups:\n        for x in g['params']: x.qr()", STATED),
        ("def f(signature):\n    for x in signature.parameters: x.qr()", NOT),
        ("import paddle\ndef f(model):\n    for x in model.parameters(): x.qr()", NOT),
    ],
)  # fmt: skip
def test_what_models_give_of_which_nothing_is_known(code: str, expected: str) -> None:
    assert level(code) == expected


@pytest.mark.parametrize(
    "call",
    [
        "x.fft(2)", "x.fft(signal_ndim=1)", "x.ifft(1)", "x.rfft(1)", "x.rfft(1, False, False)",
        "x.rfft(n, onesided=False)", "x.irfft(2, signal_sizes=s)", "x.cholesky()", "x.cholesky(upper=True)",
        "x.eig(eigenvectors=True)", "x.eig(True)", "x.lstsq(A)", "x.ger(y)", "x.qr(some=False)", "x.svd(some=False)",
        "q, r = x.qr()", "u, s, v = x.svd()", "x.lu(get_infos=True)",
    ],
)  # fmt: skip
def test_calls_that_only_tensors_take(call: str) -> None:
    assert [
        use.sure for use in uses_of(f"def f(x, y, n, s, A): {call}", call.split(".")[1].split("(")[0])
    ] == [False]


@pytest.mark.parametrize(
    "call",
    [
        "x.fft(y)", "x.rfft(y, 1)", "x.rfft(8)", "x.rfft()", "x.irfft(y, n=3)", "x.ifft(1, axis=0)", "x.cholesky(y)",
        "x.cholesky(hermitian=True)", "x.eig(y)", "x.eig()", "x.lstsq(A, y)", "x.ger(1.0, y, A)", "x.ger()",
        "x.qr(mode='r')", "x.qr()", "x.svd()", "q, r, p = x.qr()", "x.svd(full_matrices=False)", "x.ger(*y)",
        "np.fft.rfft(2)", "np.linalg.cholesky()", "x.linalg.lstsq(y)", "x.fft.rfft(1)", "x.eig(**y)",
    ],
)  # fmt: skip
def test_calls_that_other_objects_take(call: str) -> None:
    assert uses_of(f"def f(x, y, n, s, A): {call}", call.split("(")[0].rpartition(".")[2]) == []
