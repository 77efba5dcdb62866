"""`x.data[0]` -> `x.item()`: what must hold one number, since something computed from it is differentiated."""

from __future__ import annotations

import textwrap

import pytest
import torch
from harness.fixing import checked_and_fixed

from torchmigrate.findings import Applicability

CODES = frozenset(["TM053"])
SURE, PERHAPS = Applicability.SAFE, Applicability.UNSAFE


def found(body: str) -> dict[str, Applicability | None]:
    """Which `x.data[0]` of a function are found, by x: how safe the fix is."""
    text = "import torch\n\n\ndef f(a, b, c, w, out, self):\n" + textwrap.indent(
        textwrap.dedent(body), "    "
    )
    return {
        text[item.start : item.end].removesuffix(".data[0]"): item.fix.applicability if item.fix else None
        for item in checked_and_fixed(text, CODES)[0]
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("t = a + b\nt.backward()\nout(a.data[0], b.data[0])", {"a": SURE, "b": SURE}),
        ("(a - b).backward()\nout(a.data[0], t.data[0])", {"a": SURE}),
        (
            "t = -a + w * b\nt.backward()\nout(a.data[0], b.data[0], w.data[0])",
            {"a": SURE, "b": PERHAPS, "w": PERHAPS},
        ),
        ("t = a / w\nt += b\nt /= 2\nt.backward()\nout(a.data[0], b.data[0])", {"a": PERHAPS, "b": SURE}),
        ("t = 0\nfor x in c:\n    t = t + a\nt.backward()\nout(a.data[0])", {"a": SURE}),
        ("t = w * (a + b)\nu = t + c\nu.backward()\nout(t.data[0], a.data[0])", {"t": SURE, "a": PERHAPS}),
        ("a.t = a.x + b\na.t.backward()\nout(a.x.data[0], b.data[0])", {"a.x": SURE, "b": SURE}),
        (
            "if w:\n    t = a\nelse:\n    t = b + c\nt.backward()\nout(a.data[0], b.data[0])",
            {"a": SURE, "b": SURE},
        ),
        ("x, y = c()\n(x + w).backward()\nout(x.data[0], y.data[0])", {"x": SURE}),
        ("t = a + b\nt.backward(retain_graph=True)\nout([each for each in c if a.data[0]])", {"a": SURE}),
        ("criterion = torch.nn.L1Loss()\nt = criterion(a, b)\nout(t.data[0])", {"t": SURE}),
        ("criterion = torch.nn.L1Loss(reduce=False)\nt = criterion(a, b)\nout(t.data[0])", {"t": PERHAPS}),
        ("def g(x):\n    x.backward()\nt = a + b\ng(t)\nout(t.data[0], b.data[0])", {"t": SURE, "b": SURE}),
        ("def g():\n    t = a + b\n    t.backward()\n    return t\nx = g()\nout(x.data[0])", {"x": SURE}),
        (
            "t = []\nt.append(a + b)\nfor x in t:\n    x.backward()\nout(a.data[0], b.data[0])",
            {"a": SURE, "b": SURE},
        ),
        # It may be something else by then, or was.
        ("t = a + b\nout(a.data[0])\nt = c.mean()\nt.backward()", {}),
        ("for x in c:\n    out(x.data[0])\nx = b\n(x + a).backward()", {}),
        ("x = b\nout(x.data[0])\nx = c\n(x + a).backward()", {}),
        ("x = b\nout(x.data[0])\nx @= w\n(x + a).backward()", {}),
        # What is computed otherwise says nothing of the parts, nor does a gradient that is given.
        ("t = (a @ b) + c.sum() + b[0] + a**2\nt.backward()\nout(a.data[0], b.data[0], c.data[0])", {}),
        ("t = a + b\nt.backward(w)\nout(a.data[0])", {}),
        ("t = a + b\nout.backward(t)\nout(a.data[0])", {}),
        ("def g():\n    t = a + b\n    t.backward()\nout(a.data[0])", {}),
        ("def g():\n    a = b\n    a.backward()\nout(a.data[0])", {}),
        ("t = a + b\ndef g():\n    t.backward()\nout(a.data[0])", {"a": SURE}),
    ],
)
def test_parts_of_what_is_differentiated(body: str, expected: dict[str, Applicability]) -> None:
    assert found(body) == expected


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ("-(torch.max(a) - 2 * torch.min(a))", True),
        ("torch.sum(a) / 3.0", True),
        ("torch.sum(a) / w", False),
        ("torch.sum(a) - torch.sum(b, 0)", False),
        ("1 - 2", False),
    ],
)
def test_arithmetic_of_reductions(code: str, is_one: bool) -> None:
    assert found(f"t = {code}\nplot(t.data[0])") == ({"t": SURE} if is_one else {})


@pytest.mark.parametrize("shape", [(2,), (2, 1), (3, 1, 2)])
@pytest.mark.parametrize("combine", [torch.add, torch.sub, torch.mul, torch.div])
def test_parts_with_more_elements_cannot_be_differentiated(combine, shape) -> None:
    one = torch.ones((), requires_grad=True)
    for pair in ((one, torch.ones(shape)), (torch.ones(shape), one)):
        with pytest.raises(RuntimeError, match="scalar outputs"):
            combine(*pair).backward()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_part_is_its_number(shape) -> None:
    part = torch.full(shape, 2.5, requires_grad=True)
    (part + 3 * torch.ones(1)).backward()
    assert part.item() == 2.5


@pytest.mark.parametrize(("sure", "made"), [(True, "self.loss"), (False, "self.loss.mean()")])
def test_attributes_of_an_object(sure: bool, made: str) -> None:
    text = f"""\
import torch


class Trainer:
    def step(self, batch):
        self.loss = self.model(batch)
        {made}.backward()

    def report(self):
        return self.loss.data[0] + 1
"""
    levels = [item.fix.applicability for item in checked_and_fixed(text, CODES)[0] if item.fix]
    assert levels == [SURE if sure else PERHAPS]
