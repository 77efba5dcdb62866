"""An `if` whose only statement a fix removes goes with it, where its test only asks and no comment is lost."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

START = "from torch.autograd import Variable\ndef f(x, y):\n"


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("    if y:\n        x = Variable(x)\n    return x\n", "    return x\n"),
        ("    if isinstance(x, list) and y:\n        x = Variable(x)\n    return x\n", "    return x\n"),
        ("    if y:\n        if x:\n            x = Variable(x)\n    return x\n", "    return x\n"),
        ("    if y:\n        x = Variable(x)\n", "    pass\n"),
        ("    if y():\n        x = Variable(x)\n", "    if y():\n        pass\n"),
        ("    if y:  # why\n        x = Variable(x)\n", "    if y:  # why\n        pass\n"),
        (
            "    if y:\n        x = Variable(x)\n    else:\n        x = 3\n",
            "    if y:\n        pass\n    else:\n        x = 3\n",
        ),
        (
            "    if y:\n        x = 3\n    elif x:\n        x = Variable(x)\n",
            "    if y:\n        x = 3\n    elif x:\n        pass\n",
        ),
    ],
)
def test_an_if_without_a_purpose(body: str, after: str) -> None:
    new = checked_and_fixed(START + body, ["TM330"])[1]
    assert new == "def f(x, y):\n" + after


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("    x = (Variable(x))\n    return x\n", "    return x\n"),
        ("    x, y = (\n        Variable(x),\n        Variable(y),\n    )\n    return x\n", "    return x\n"),
        ("    (x, y) = Variable(x), \\\n        Variable(y)\n    return x\n", "    return x\n"),
        ("    x = (\n        Variable(x)  # why\n    )\n", "    x = (\n        x  # why\n    )\n"),
        ("    x = Variable(x); y = Variable(y)\n    return x\n", "    return x\n"),
        ("    print(x); x = Variable(x); y = 1  # why\n", "    print(x); y = 1  # why\n"),
        ("    print(x); x = Variable(x)  # why\n", "    print(x)  # why\n"),
        ("    if y: x = Variable(x); y = 1\n", "    if y: x = x; y = 1\n"),
        ("    x, y = (Variable(y), Variable(x))\n", "    x, y = (y, x)\n"),
        ("    x, y = [Variable(x), Variable(y)]\n", "    x, y = [x, y]\n"),
    ],
)
def test_variables_that_would_be_assigned_to_themselves(body: str, after: str) -> None:
    new = checked_and_fixed(START + body, ["TM330"])[1]
    assert new == "def f(x, y):\n" + after
