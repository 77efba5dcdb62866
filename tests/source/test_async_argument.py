"""`async=` in calls: the file is checked and fixed although Python refuses it."""

from __future__ import annotations

import pytest
from harness.program import FIX, attempt

from torchmigrate.engine.results import FileResult
from torchmigrate.source.async_argument import async_arguments, mask

BEFORE = """\
import torch
from torch.autograd import Variable

data = [Variable(d.cuda(async=True)) for d in data]
other = d.to(device, async = True).cuda( async=flag )
Q, R = torch.qr(x)  # async=True
s = "x.cuda(async=True)"
"""
AFTER = """\
import torch
from torch.autograd import Variable

data = [Variable(d.cuda(non_blocking=True)) for d in data]
other = d.to(device, non_blocking = True).cuda( non_blocking=flag )
Q, R = torch.linalg.qr(x)  # async=True
s = "x.cuda(async=True)"
"""


def check(text: str, *, fix: bool, ignore: tuple[str, ...] = ()) -> FileResult:
    return attempt(text, *FIX * fix, *(part for code in ignore for part in ("--ignore", code)))


def test_found_with_everything_else() -> None:
    result = check(BEFORE, fix=False)
    assert result.problems == []
    assert [item.code for item in result.findings].count("TM012") == 3
    assert {"TM012", "TM330", "TM104"} <= {item.code for item in result.findings}


def test_fixed() -> None:
    result = check(BEFORE, fix=True)
    assert result.problems == []
    assert result.new_text == AFTER


def test_other_fixes_are_made_where_this_one_is_not_wanted() -> None:
    result = check(BEFORE, fix=True, ignore=("TM012",))
    assert result.new_text is not None
    assert "torch.linalg.qr(x)" in result.new_text
    assert "d.cuda(async=True)" in result.new_text


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx = mine(async=True)\ntorch.qr(x)\n",
        "import torch\nasync = 1\ntorch.qr(x)\n",
        "import torch\nx.cuda(async=True)\nprint 'old'\ntorch.qr(x)\n",
    ],
)
def test_what_is_broken_otherwise_is_a_problem(text: str) -> None:
    result = check(text, fix=True)
    assert result.findings == []
    assert len(result.problems) == 1


def test_positions_are_kept() -> None:
    text = "x.cuda(\r\n    0,\r\n    async=True)\r\n"
    (offset,) = async_arguments(text)
    assert text[offset : offset + 6] == "async="
    assert len(mask(text, (offset,))) == len(text)
