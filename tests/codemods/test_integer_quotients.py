"""TM128 and TM133: quotients of integer tensors that are used as integers."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed
from harness.summary import HAS_TORCH

CODES = ("TM128", "TM133")
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
RAISES = {
    "index": "i = torch.arange(4) / 2\na = torch.ones(4)[i]\n",
    "pair": "s, i = torch.ones(8).topk(3)\na = torch.ones(8)[i / n]\n",
    "item of a call": "i = y.topk(3)[1]\na = torch.ones(8)[i / n]\n",
    "bound": "h = torch.tensor(6) / 2\na = torch.ones(8)[:h]\n",
    "range": "for i in range(torch.tensor(6) / 2):\n    print(i)\n",
    "size": "a = torch.ones(4).view(torch.tensor(4) / 2, -1)\n",
    "factory": "a = torch.zeros(torch.tensor(4) / 2)\n",
    "gather": "a = torch.gather(y, 1, torch.arange(4)[None] / 2)\nb = y.gather(index=torch.arange(4) / 2, dim=0)\n",
    "embedding": "e = nn.Embedding(4, 2)\na = e(torch.arange(4) / 2)\nb = F.embedding(torch.arange(4) / 2, y)\n",
    "sum": "i = torch.arange(4) / 2 + 1\na = torch.ones(4)[i]\n",
    "kept": "class A:\n    def f(self, y):\n        self.i = torch.argmax(y, 1) / 2\n        return y[self.i]\n",
}
PREPARED = """\
x = torch.ones(3, 8)
n = torch.tensor(4)
lengths = torch.tensor([6, 4, 4])


def cut(values, size):
    return values[:, :size]


"""
# What torch 1.4 ran, and torch 1.6 and later do not.
RAN = {
    "tuple": "r = torch.zeros((n / 2, 3))",
    "keyword": "r = torch.zeros(size=[n / 2])",
    "new": "r = x.new_zeros(n / 2)",
    "full": "r = torch.full((n / 2,), 0.5)",
    "eye": "r = torch.eye(n / 2)",
    "steps": "r = torch.linspace(0, 1, steps=n / 2)",
    "narrow": "r = x.narrow(0, 0, n / 2)",
    "topk": "r = x.topk(n / 2)[0]",
    "diagonal": "r = torch.triu(x, diagonal=n / 2)",
    "repeats": "r = x.repeat_interleave(lengths / 2, 0)",
    "padding": "r = F.pad(x, (0, n / 2))",
    "resized": "r = F.interpolate(x[None, None], size=(n / 2, 4))",
    "lengths": "r = nn.CTCLoss()(torch.zeros(5, 3, 4), torch.ones(3, 2).long(), lengths / 2, lengths // 4)",
    "lengths of a function": "r = F.ctc_loss(x.view(8, 3, 1) * 0, lengths * 0, lengths // 4, lengths / lengths)",
    "elements": "half = lengths / 2\nr = [x[i, :k] for i, k in enumerate(half)]",
    "zipped": "r = [row[:k] for row, k in zip(x, lengths / 2)]",
    "element": "half = lengths / 2\nr = [x[i, : half[i]] for i in range(3)]",
    "numbers": "r = [x[0, :k] for k in (lengths / 2).tolist()]",
    "number": "r = x[:, (n / 2).item()]",
    "longest": "r = x[:, : (lengths / 2).max()]",
    "longest of a function": "r = torch.zeros(torch.max(lengths / 2), 2)",
    "longest of several": "r = torch.zeros(max(lengths / 2), 2)",
    "all": "r = torch.zeros((lengths / 2).sum(), 2)",
    "values of a maximum": "r = x[:, : (lengths / 2).max(0)[0]]",
    "more": "half = n / 2\nhalf += 1\nr = x[:, :half]",
    "helper": "r = cut(x, n / 2)",
    "element of an attribute": "class A:\n    def __init__(self, n):\n        self.n = n\n\n    def cut(self):\n"
    "        return [x[:, : n / 2] for n in self.n]\n\n\nr = A(torch.tensor([4, 2])).cut()",
    "call of a module": "class A(nn.Module):\n    def forward(self, x, n):\n        return x[:, : n / 2]\n\n\n"
    "module = A()\nr = module(x, torch.tensor(4))",
    "helper that divides": "def half(number):\n    return number / 2\n\n\nr = x[:, : half(n)]",
    "kept in an object": "class A:\n    def __init__(self, n):\n        self.half = n / 2\n\n    def cut(self):\n"
    "        return x[:, : self.half]\n\n\nr = A(torch.tensor(4)).cut()",
}
CAST = (
    "(torch.arange(4) / 2).long()",
    "(y.topk(3)[1] / y.size(1)).int()",
    "(y.argmax(1) / y.shape[-1]).to(torch.long)",
    "(y.argmax(1) / vocab_size).type(torch.LongTensor)",
    "(y.argmax(1) / (2 * model.stride[0]) + 1).long()",
    "(y.long() / len(y)).view(-1).long()",
    "(torch.arange(4) / torch.arange(1, 5)).long()",
)
CLEAN = (
    "a = (torch.arange(4) / 2).float()",
    "a = (torch.arange(4) / scale).long()",
    "a = (torch.arange(4) / 2.0).long()",
    "a = (torch.arange(4) / 2).round().long()",
    "a = (torch.arange(4) / 2 * 0.5).long()",
    "a = (y / 2).long()",
    "a = (y.float() / 2).long()",
    "a = y[(torch.arange(4) // 2)]",
    "d = {}\nd[torch.arange(4) / 2] = 1",
    "d = dict()\nd[torch.arange(4) / 2] = 1",
    "a = (torch.arange(4) / 2).mean()",
    "print(torch.arange(4) / 2)",
    "a = torch.div(torch.arange(4), 2)",
    "a = torch.div(torch.arange(4), 2, out=torch.ones(4))",
    "a = torch.div(torch.arange(4), 2, rounding_mode='floor', out=torch.arange(4))",
    "a = F.linear(torch.arange(4) / 2, y)",
    "x = torch.arange(4) if flag else y\na = (x / 2).long()",
    "a = y[(torch.arange(4) / 2).max(0)[1]]",
    "a, i = (torch.arange(4) / 2).max(0)\nb = y[i]",
    "a = torch.arange(torch.tensor(4) / 2)",
    "a = other.take(torch.arange(4) / 2)",
    "a = torch.ones(4) * (torch.arange(4) / 2).sum()",
)


@pytest.mark.parametrize("text", RAISES.values(), ids=RAISES)
def test_quotient_where_an_integer_is_needed(text: str) -> None:
    found, fixed = checked_and_fixed(HEAD + text, CODES)
    assert {item.code for item in found} == {"TM128"}
    assert fixed == HEAD + text.replace(" / ", " // ")


@pytest.mark.parametrize("code", RAN.values(), ids=RAN)
def test_a_program_is_found_and_fixed(code: str) -> None:
    text = HEAD + PREPARED + code + "\n"
    found, fixed = checked_and_fixed(text, CODES)
    assert [item.code for item in found] == ["TM128"]
    assert fixed == text.replace(" / ", " // ")


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
@pytest.mark.parametrize("code", RAN.values(), ids=RAN)
def test_fixed_program_runs(code: str) -> None:
    text = HEAD + PREPARED + code + "\n"
    with pytest.raises((TypeError, IndexError, RuntimeError)):
        exec(text, {})
    exec(checked_and_fixed(text, CODES)[1], {"__name__": "fixed"})


@pytest.mark.parametrize("code", CAST)
def test_quotient_that_is_converted(code: str) -> None:
    text = HEAD + f"def f(model, vocab_size):\n    y = torch.ones(3, 4)\n    a = {code}\n    return a\n"
    found, fixed = checked_and_fixed(text, CODES)
    assert [item.code for item in found] == ["TM133"]
    assert fixed == text.replace(" / ", " // ")


@pytest.mark.parametrize("text", CLEAN)
def test_other_quotients_are_not_reported(text: str) -> None:
    assert checked_and_fixed(HEAD + text + "\n", CODES)[0] == []


def test_integer_out_of_div_is_reported() -> None:
    text = "out = torch.zeros(4).long()\ntorch.div(torch.arange(4), n, out=out)\ni = y.topk(4)[1]\ntorch.div(i, n, out=i)\n"
    assert [item.code for item in checked_and_fixed(HEAD + text, CODES)[0]] == ["TM128"] * 2
