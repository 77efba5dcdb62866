"""TM364: writes into one of several views."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

CODES = ("TM364",)
HEAD = "import torch\nfrom torch import nn\n\nhead = nn.Linear(4, 4)\nx = torch.ones(2, 4)\n"
FIXED = {
    "u, v = head(x).chunk(2, 1)\nv *= 2\n": "u, v = head(x).chunk(2, 1)\nv = v * 2\n",
    "u, v = torch.split(head(x), 2, 1)\nu += v\n": "u, v = torch.split(head(x), 2, 1)\nu = u + v\n",
    "y = head(x).relu()\nu, v = y.unbind()\nu -= 1\n": "y = head(x).relu()\nu, v = y.unbind()\nu = u - 1\n",
}
REPORTED = (
    "u, v = head(x).chunk(2, 1)\nu.mul_(2)\n",
    "for row in head(x).unbind():\n    row.add_(1)\n",
    "for part in head(x).split(2, 1):\n    part.zero_()\n",
    "w = torch.ones(2, 4, requires_grad=True)\nfor row, s in zip(w.clone(), [1, 2]):\n    row.mul_(s)\n",
)
QUIET = (
    "u, v = x.chunk(2, 1)\nu *= 2\n",
    "y = head(x)\ny *= 2\n",
    "u, v = head(x).detach().chunk(2, 1)\nu *= 2\n",
    "u, v = (part.clone() for part in head(x).chunk(2, 1))\nu *= 2\n",
    "with torch.no_grad():\n    u, v = head(x).chunk(2, 1)\n    u *= 2\n",
    "u, v = other(x).chunk(2, 1)\nu *= 2\n",
    "for name in names:\n    name += 1\n",
)


@pytest.mark.parametrize(("text", "new"), FIXED.items())
def test_write_with_an_operator(text: str, new: str) -> None:
    found, fixed = checked_and_fixed(HEAD + text, CODES)
    assert [item.code for item in found] == ["TM364"]
    assert fixed == HEAD + new


@pytest.mark.parametrize("text", REPORTED)
def test_write_by_a_method(text: str) -> None:
    assert [item.code for item in checked_and_fixed(HEAD + text, CODES)[0]] == ["TM364"]


@pytest.mark.parametrize("text", QUIET)
def test_other_write(text: str) -> None:
    assert checked_and_fixed(HEAD + text, CODES)[0] == []
