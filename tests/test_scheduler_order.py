"""TM454: a scheduler that steps before its optimizer."""

from __future__ import annotations

import textwrap

import pytest
from harness.fixing import checked_and_fixed

CODE = "TM454"
START = "import torch\nopt = torch.optim.SGD(p, lr=1)\nsched = torch.optim.lr_scheduler.StepLR(opt, 3)\n"


def check(text: str, *, start: str = START) -> tuple[int, str]:
    """How many findings there are, and the fixed text."""
    found, new = checked_and_fixed(start + textwrap.dedent(text), [CODE])
    return len(found), new[len(start) :]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("while True:\n    sched.step()\n    opt.step()\n", 1),
        ("for e in range(3):\n    sched.step()\n    for b in data:\n        opt.step()\n", 1),
        ("for e in range(3):\n    sched.step()\n    scaler.step(opt)\n", 1),
        ("def train():\n    sched.step()\n    opt.step()\n", 1),
        # in the right order, or somewhere that is not seen
        ("for e in range(3):\n    opt.step()\n    sched.step()\n", 0),
        ("for e in range(3):\n    sched.step()\n    train(opt)\n", 0),
        ("for e in range(3):\n    if e:\n        sched.step()\n    opt.step()\n", 0),
        ("for e in range(3):\n    if e: opt.step()\n    sched.step()\n    opt.step()\n", 0),
        ("opt.step()\nfor e in range(3):\n    sched.step()\n    opt.step()\n", 0),
        ("def first():\n    opt.step()\ndef train():\n    sched.step()\n    opt.step()\n", 0),
        ("sched.step()\nopt.step()\n", 0),
        # another optimizer, or nobody knows which
        ("for e in range(3):\n    sched.step()\n    other.step()\n", 0),
        ("sched = build()\nfor e in range(3):\n    sched.step()\n    opt.step()\n", 0),
        ("rate = sched.step\nfor e in range(3):\n    rate()\n    opt.step()\n", 0),
    ],
)
def test_found(text: str, expected: int) -> None:
    assert check(text)[0] == expected


def test_other_schedulers() -> None:
    body = "for e in range(3):\n    sched.step(loss)\n    opt.step()\n"
    plateau = START.replace("StepLR(opt, 3)", "ReduceLROnPlateau(opt)")
    assert check(body, start=plateau)[0] == 0
    assert check(body, start=START.replace("torch.optim.lr_scheduler", "mylib"))[0] == 0


def test_the_step_moves_with_its_comment() -> None:
    text = "for e in range(3):\n    sched.step()  # decay\n\n    for b in data:\n        opt.step()  # all\nprint(e)\n"
    after = "for e in range(3):\n\n    for b in data:\n        opt.step()  # all\n    sched.step()  # decay\nprint(e)\n"
    assert check(text) == (1, after)


@pytest.mark.parametrize(
    "text",
    [
        "for e in range(3):\n    sched.step(e)\n    opt.step()\n",  # TM453 comes first
        "for e in range(3):\n    sched.step()\n    if e: continue\n    opt.step()\n",
        "for e in range(3):\n    sched.step(); opt.zero_grad()\n    opt.step()\n",
        "for e in range(3): sched.step(); opt.step()\n",
        "for e in range(3):\n    sched.step()\n    opt.step()",  # no newline at the end
        "def train():\n    sched.step()\n    opt.step()\n",  # where the epoch ends is not seen
    ],
)
def test_not_rewritten(text: str) -> None:
    assert check(text) == (1, text)
