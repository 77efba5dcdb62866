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
        # an epoch counted from 0 skips nothing; one counted from elsewhere may or may not
        ("for e in range(3):\n    sched.step(e)\n    opt.step()\n", 0),
        ("for e in range(0, 3):\n    sched.step(epoch=e)\n    opt.step()\n", 0),
        ("for e in range(start, 3):\n    sched.step(e)\n    opt.step()\n", 0),
        ("for e in epochs:\n    sched.step(e)\n    opt.step()\n", 0),
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
        "for e in range(1, 3):\n    sched.step(e)\n    opt.step()\n",  # TM453 comes first
        "for e in range(3):\n    sched.step(e + 1)\n    opt.step()\n",
        "for e in range(3):\n    sched.step()\n    if e: continue\n    opt.step()\n",
        "for e in range(3):\n    sched.step(); opt.zero_grad()\n    opt.step()\n",
        "for e in range(3): sched.step(); opt.step()\n",
        "for e in range(3):\n    sched.step()\n    opt.step()",  # no newline at the end
        "def train():\n    sched.step()\n    opt.step()\n",  # where the epoch ends is not seen
    ],
)
def test_not_rewritten(text: str) -> None:
    assert check(text) == (1, text)


LOOP = "for e in range(3):\n    "


@pytest.mark.parametrize(
    ("text", "after"),
    [
        # counted as the scheduler does
        (f"{LOOP}train(opt)\n    sched.step(e + 1)\n", f"{LOOP}train(opt)\n    sched.step()\n"),
        (f"{LOOP}sched.step(e + 1)\n    train(opt)\n", f"{LOOP}sched.step()\n    train(opt)\n"),
        ("for e in range(1, 9):\n    sched.step(epoch=e)\n", "for e in range(1, 9):\n    sched.step()\n"),
        # from 0 and first: moved
        (f"{LOOP}sched.step(e)\n    train(opt)\n", f"{LOOP}train(opt)\n    sched.step()\n"),
        (f"{LOOP}sched.step(e)  # rate\n    train(opt)\n", f"{LOOP}train(opt)\n    sched.step()  # rate\n"),
        (f"{LOOP}print(e)\n    sched.step(e)\n    go()\n", f"{LOOP}print(e)\n    go()\n    sched.step()\n"),
        (
            f"{LOOP}sched.step(e)\n    for b in data:\n        if bad(b): continue\n        train(b)\n",
            f"{LOOP}for b in data:\n        if bad(b): continue\n        train(b)\n    sched.step()\n",
        ),
        # anything else would be another schedule
        (f"{LOOP}train(opt)\n    sched.step(e)\n", None),
        (f"{LOOP}train(opt)\n    sched.step(e)\n    log()\n", None),
        (f"{LOOP}sched.step(e)\n    if bad(): continue\n    train(opt)\n", None),
        ("for e in range(start, 9):\n    sched.step(e)\n    train(opt)\n", None),
        ("for e in range(0, 9, 2):\n    sched.step(e)\n    train(opt)\n", None),
        (f"{LOOP}e += 1\n    sched.step(e)\n    train(opt)\n", None),
        (f"{LOOP}if e: sched.step(e)\n    train(opt)\n", None),
        (f"{LOOP}for b in range(9):\n        sched.step(e + b / 9)\n        opt.step()\n", None),
        ("def train(e):\n    sched.step(e)\n    opt.step()\n", None),
    ],
)
def test_the_epoch(text: str, after: str | None) -> None:
    found, new = checked_and_fixed(START + text, ["TM453"])
    assert len(found) == 1
    assert new == START + (after or text)
