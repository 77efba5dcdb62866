"""TM029, TM030, TM031 and TM215: uint8 masks, fixed where they are made or where they are used."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

CODES = ("TM029", "TM030", "TM031", "TM215")
HEAD = "import torch\n\n\n"
# A function, and the same one with the mask made as a bool tensor.
MADE_BOOL = {
    "comparison": (
        "def f(x, y):\n    m = (y > 0).unsqueeze(0).byte()\n    return x.masked_fill(m, 0)\n",
        "(y > 0).unsqueeze(0).bool()",
    ),
    "dtype": (
        "def f(x, n):\n    m = torch.zeros(n, n, dtype=torch.uint8)\n    m[0] = 1\n    return x.masked_fill(m, 0)\n",
        "torch.zeros(n, n, dtype=torch.bool)",
    ),
    "sizes": (
        "def f(x, n):\n    m = torch.ByteTensor(n, n).zero_()\n    m[0, 1:] = 1\n"
        "    return x.masked_scatter(m.cuda(), x)\n",
        "torch.BoolTensor(n, n).zero_()",
    ),
    "cast": (
        "def f(x, y):\n    m = y.eq(0)\n    m = m.view(-1, 1).to(torch.uint8)\n    return torch.masked_select(x, m)\n",
        ".to(torch.bool)",
    ),
    "type": (
        "def f(x, y):\n    m = (y == 0).type(torch.ByteTensor)\n    return torch.where(m, x, y)\n",
        ".type(torch.BoolTensor)",
    ),
    "private helper": (
        "def _mask(n):\n    return torch.ones(n, n).triu(1).byte()\n\n\n"
        "def f(x):\n    return x.masked_fill(_mask(3)[None], 0)\n",
        "torch.ones(n, n).triu(1).bool()",
    ),
    "either": (
        "def f(x, y, flag):\n    m = (y > 0).byte() if flag else (y < 0).byte()\n    return x.masked_fill(m, 0)\n",
        "(y > 0).bool() if flag else (y < 0).bool()",
    ),
    "described": (
        "def f(x, y):\n    m = (y > 0).byte()\n    if m is None or m.size(0) == 1:\n        return x\n"
        "    return x.masked_fill(m == 0, 0).masked_fill(m, 1)\n",
        "(y > 0).bool()",
    ),
}
# A function with a mask that has to stay: the use gets `.bool()`.
USED_BOOL = {
    "numbers between 0 and 1": "def f(x, y):\n    m = y.byte()\n    return x.masked_fill(m, 0)\n",
    "elements": "def f(x, y):\n    m = torch.ByteTensor(y)\n    return x.masked_fill(m, 0)\n",
    "counted": "def f(x, y):\n    m = (y > 0).byte()\n    return x.masked_fill(m, 0), m + m\n",
    "changed": "def f(x, y):\n    m = (y > 0).byte()\n    m |= y\n    return x.masked_fill(m, 0)\n",
    "handed on": "def f(x, y):\n    m = (y > 0).byte()\n    g(m)\n    return x.masked_fill(m, 0)\n",
    "returned": "def f(x, y):\n    m = (y > 0).byte()\n    return x.masked_fill(m, 0), m\n",
    "kept": "class A:\n    def f(self, x, y):\n        self.m = (y > 0).byte()\n        return x.masked_fill(self.m, 0)\n",
    "captured": (
        "def f(x, y):\n    m = (y > 0).byte()\n    def g():\n        return m + 1\n    return x.masked_fill(m, 0), g\n"
    ),
    "written numbers": (
        "def f(x, n):\n    m = torch.zeros(n, dtype=torch.uint8)\n    m[0] = x.sum()\n    return x.masked_fill(m, 0)\n"
    ),
}
MADE_ELSEWHERE = {
    "buffer": (
        "class A(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.register_buffer('m', torch.ones(n, n).tril().byte())\n\n"
        "    def forward(self, x):\n        return x.masked_fill(self.m[:3, :3], 0)\n",
        7,
    ),
    "public helper": (
        "def mask(n):\n    m = torch.ByteTensor(n)\n    return m\n\n\n"
        "def f(x, n):\n    m = mask(n)\n    return x.data.masked_fill_(m, 0)\n",
        5,
    ),
    "argument": (
        "def f(x, m):\n    return x.masked_fill(m, 0)\n\n\nf(torch.ones(3), torch.ones(3).byte())\n",
        8,
    ),
}
CLEAN = (
    "def f(x, m):\n    return x.masked_fill(m, 0)\n\n\nf(x, m.byte())\nf(x, m.bool())\n",
    "def f(x, m):\n    m = m.byte()\n    m = m == 1\n    return x.masked_fill(m, 0)\n",
    "def f(x, m):\n    m = m.byte().bool()\n    return x[m]\n",
)


@pytest.mark.parametrize(("text", "made"), MADE_BOOL.values(), ids=MADE_BOOL)
def test_mask_is_made_as_a_bool_tensor(text: str, made: str) -> None:
    found, fixed = checked_and_fixed(HEAD + text, CODES)
    assert made in fixed
    assert ".bool()" in made or ".bool()" not in fixed
    assert found[0].fix is not None
    assert checked_and_fixed(fixed, CODES) == ([], fixed)


@pytest.mark.parametrize("text", USED_BOOL.values(), ids=USED_BOOL)
def test_mask_that_is_used_otherwise_stays(text: str) -> None:
    found, fixed = checked_and_fixed(HEAD + text, CODES)
    used = "self.m" if "self.m" in text else "m"
    assert len(found) == 1
    assert fixed == HEAD + text.replace(f"masked_fill({used},", f"masked_fill({used}.bool(),")


@pytest.mark.parametrize(("text", "line"), MADE_ELSEWHERE.values(), ids=MADE_ELSEWHERE)
def test_finding_lists_where_the_mask_is_made(text: str, line: int) -> None:
    text = HEAD + text
    found, fixed = checked_and_fixed(text, CODES)
    assert [text.count("\n", 0, start) + 1 for start, _ in found[0].places] == [line]
    assert fixed.count(".bool()") == 1


@pytest.mark.parametrize("text", CLEAN)
def test_other_masks_are_not_reported(text: str) -> None:
    assert checked_and_fixed(HEAD + text, CODES)[0] == []


def test_uses_of_one_mask_are_one_finding() -> None:
    text = (
        "def f(x, y):\n    m = (y > 0).byte()\n    x = x.masked_fill(m, 0)\n    return x.masked_fill(m, 1)\n"
    )
    found, _ = checked_and_fixed(HEAD + text, CODES)
    assert [len(item.places) for item in found] == [2]


@pytest.mark.parametrize("mark", ["torch.jit.script", "torch.jit.export"])
def test_torchscript_has_no_method_bool(mark: str) -> None:
    text = (
        f"{HEAD}@{mark}\ndef f(x: torch.Tensor, m: torch.Tensor):\n"
        "    return x.masked_fill((m > 0).byte(), 0.0)\n"
    )
    found, fixed = checked_and_fixed(text, ["TM029"])
    assert fixed == text
    (finding,) = found
    assert "use `.to(torch.bool)`" in finding.blocked_by[0].text


@pytest.mark.parametrize("place", ["device", "torch.device('cuda')", "'cuda', non_blocking=True", "x.device"])
def test_a_mask_stays_one_on_another_device_and_where_more_are_added(place: str) -> None:
    text = (
        f"def f(x, y, device):\n    m = torch.zeros(9, dtype=torch.uint8).to({place})\n    for row in y:\n"
        "        m = torch.max(m, row > 0.5)\n    return torch.ones(9)[1 - m]\n"
    )
    found, fixed = checked_and_fixed(HEAD + text, ["TM031"])
    assert len(found) == 1
    assert "torch.ones(9)[(1 - m).bool()]" in fixed


@pytest.mark.parametrize("made", [".to(kind)", ".to(y)", ".to(*kind)"])
def test_a_mask_may_be_converted(made: str) -> None:
    text = (
        f"def f(x, y, kind):\n    m = torch.zeros(9, dtype=torch.uint8){made}\n    return torch.ones(9)[m]\n"
    )
    assert checked_and_fixed(HEAD + text, CODES)[0] == []
