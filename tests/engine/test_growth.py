"""Runs that end: what once took exponential time, or did not end at all, and answers that need no order."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.fixing import checked_and_fixed
from harness.launcher import launch

from torchmigrate.project.mentions import Mentions, Name
from torchmigrate.semantics.flow.answers import Answers

ENDS = 120  # seconds, of which each takes one or two; without the cure they took hours

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom torch.autograd import Variable\n"


def function(*lines: str, times: int = 60, end: str = "return 1 - (x > mid), torch.ger(x, y)") -> str:
    start = "x = torch.rand(3); y = x; low = x.min(); high = x.max(); mid = high - low"
    body = [start, *itertools.chain.from_iterable([lines] * times), end]
    return HEAD + "\n\ndef work(k, items, model):\n" + "".join(f"    {line}\n" for line in body)


def nested(head: str, depth: int) -> str:
    lines = [" " * level + head.replace("{i}", str(level)) for level in range(depth)]
    return function(*lines, " " * depth + "x = torch.rfft(Variable(x, volatile=True), 1)", times=1)


PROGRAMS = {
    "bounds through branches": function(
        "if (x > mid).sum() > k:", "    low = mid", "else:", "    high = mid", "mid = high - low"
    ),
    "a sum of itself": function("mid = mid + mid - (x > mid)"),
    "two of each other": function("low = high - mid", "high = mid + low", "mid = low * high"),
    "swapped": function("low, high = high, low", "mid = low | high"),
    "keys of a dictionary that is made": f"""{HEAD}
class Trainer:
    def train(self, losses=None, loss=None):
        if losses is None:
            losses = dict(l2=loss)
        self.evaluate(losses)

    def evaluate(self, losses):
        with torch.cuda.device(0):
            for name, each in losses.items():
                found[name] += each
""",
    "masks": function("if k:", "    mid = ~mid", "else:", "    mid = mid & (x > mid)", "y = 1 - mid"),
    "moved in branches": function(
        "if k:", "    x = x.cuda()", "x = torch.rfft(x, 1)", "y = x[..., 0] + x[..., 1]"
    ),
    "transforms of each other": function("x = torch.rfft(x, 1) + y", "y = torch.irfft(x, 1) * x - y"),
    "losses of each other": function(
        "low = high + mid", "high = low * mid", "mid = low + high", "print(mid.data[0])", end="mid.backward()"
    ),
    "a scale of itself": function(
        "mid = mid * mid", times=60, end="return F.softmax(torch.matmul(x, y.transpose(1, 2)) * mid, -1) @ x"
    ),
    "names that go backwards": HEAD
    + "".join(f"def f{i}():\n    return a{i} - (a{i} > 1)\na{i} = a{i + 1} + a{i + 1}\n" for i in range(400))
    + "a400 = torch.rand(3)\n",
    "for in for": nested("for item{i} in items:", 19),
    "while in while": nested("while x.sum() > {i}:", 19),
    "if in if": nested("if x.sum() > {i}:", 60),
    "with in with": nested("with torch.no_grad():", 19),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_program_ends(program: str, tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(program)
    command = ["check", "--isolated", "--select", "ALL"]
    for options in ([], ["--fix", "--unsafe-fixes"]):
        run = launch(tmp_path, *command, *options, file, timeout=ENDS)
        assert run.returncode in (0, 1), run.stderr
        assert "nested too deeply" not in run.stderr


def test_sums_of_lists_in_setup_py(tmp_path: Path) -> None:
    lines = ["from setuptools import setup", 'a0 = ["torch>=1.5"]']
    lines += [f"a{i + 1} = a{i} + a{i}" for i in range(45)]
    (tmp_path / "setup.py").write_text("\n".join([*lines, "setup(install_requires=a45)", ""]))
    run = launch(tmp_path, "check", "-v", tmp_path, timeout=ENDS)
    assert "minimum: torch 1.5" in run.stderr


def test_the_usual_attention_of_language_models_is_found() -> None:
    code = """\
import math
import torch
import torch.nn.functional as F

def attend(query, key, value):
    key = key.transpose(1, 2)
    s = torch.matmul(query, key) / math.sqrt(64)
    s = F.softmax(s, dim=-1, dtype=torch.float32).to(query.dtype)
    return torch.matmul(s, value)
"""
    findings, _ = checked_and_fixed(code, ["TM901"])
    assert [finding.code for finding in findings] == ["TM901"]


def test_a_mask_is_known_through_a_long_chain() -> None:
    chain = "".join(f"m{i + 1} = m{i} | m{i}\n" for i in range(500))
    code = f"import torch\nx = torch.rand(3)\nm0 = x > 0\n{chain}y = 1 - m500\n"
    findings, _ = checked_and_fixed(code, ["TM032"])
    assert [finding.start for finding in findings] == [code.index("1 - m500")]


def test_elif_chains_of_a_thousand_branches_are_done(tmp_path: Path) -> None:
    branches = "".join(f"    elif k == {i}:\n        x = torch.ger(x, x)\n" for i in range(1200))
    file = tmp_path / "m.py"
    file.write_text(f"import torch\ndef f(k, x):\n    if k < 0:\n        pass\n{branches}    return x\n")
    run = launch(tmp_path, "check", "--isolated", "--select", "TM110", "--fix", file, timeout=ENDS)
    assert (run.returncode, run.stderr.split(" in ")[0]) == (0, "Fixed 1200 findings")
    assert "torch.ger" not in file.read_text()


@pytest.mark.parametrize("again", ["a = a.b\n", "from m{i} import x as a\nb{i} = a\na.c{i}\n"])
def test_an_alias_that_is_bound_often_is_followed_no_further(again: str) -> None:
    code = "import m as a\n" + "".join(again.replace("{i}", str(i)) for i in range(1000)) + "a.last = 1\n"
    found = Mentions(ast.parse(code), ())
    assert sum(len(name.parts) for name in found.names) < 10_000
    assert Name(None, ("m",)) in found.dynamic
    assert "last" in found.patched_anywhere


@pytest.mark.parametrize(("between", "found"), [(10, ["self.x.ger"]), (300, [])])
def test_what_a_class_inherits_is_known_from_some_others(between: int, found: list[str]) -> None:
    chain = "".join(f"class C{i + 1}(C{i}, C{max(i - 1, 0)}):\n    pass\n" for i in range(between))
    first = "class C0(nn.Module):\n    def __init__(self):\n        self.x = torch.rand(3)\n"
    last = f"class Last(C{between}):\n    def forward(self, y):\n        return self.x.ger(y)\n"
    code = f"{HEAD}{first}{chain}{last}"
    findings, _ = checked_and_fixed(code, ["TM110"])
    assert [code[finding.start : finding.end] for finding in findings] == found


# ---- answers -----------------------------------------------------------------------------------------


def reached(graph: dict[str, str], asked: list[str]) -> Callable[[str], bool]:
    """Whether a `!` is reached; the names of a node's value are its successors."""
    answers: Answers[str, bool]

    def work_out(key: str) -> bool:
        asked.append(key)
        return "!" in graph[key] or True in [answers(item) for item in graph[key]]

    answers = Answers(work_out, False)
    return answers


@pytest.mark.parametrize(
    "graph",
    [
        {"a": "b", "b": "ac", "c": "d!", "d": "b"},
        {"a": "bc", "b": "ca", "c": "ab!"},
        {"a": "b", "b": "c", "c": "ad", "d": "!"},
        {"a": "a", "b": "ba", "c": "bd", "d": "c"},
    ],
)
def test_the_order_of_questions_does_not_matter(graph: dict[str, str]) -> None:
    graph = {**graph, "!": ""}
    first = {key: reached(graph, [])(key) for key in graph}
    for order in itertools.permutations(graph):
        answers = reached(graph, [])
        assert {key: answers(key) for key in order} == first


def test_each_is_worked_out_twice_at_most() -> None:
    asked: list[int] = []
    answers: Answers[int, int]

    def work_out(key: int) -> int:
        asked.append(key)
        return 1 if key == 0 else (answers(key - 1) + answers(key - 1)) % 1009

    answers = Answers(work_out, 0)
    assert answers(20_000) == pow(2, 20_000, 1009)
    assert len(asked) <= 2 * 20_001


def test_answers_that_take_each_other_back_come_to_rest() -> None:
    answers: Answers[str, frozenset[str]]

    def work_out(key: str) -> frozenset[str]:
        if key == "b":
            return answers("a")
        return frozenset() if answers("b") else frozenset("a")

    answers = Answers(work_out, frozenset(), restless=frozenset(["unknown"]))
    assert answers("b") == {"unknown"}


def test_a_question_that_asks_for_ever_new_things_has_no_answer() -> None:
    answers: Answers[int, bool]

    def work_out(key: int) -> bool:
        return answers(key + 1)

    answers = Answers(work_out, False)
    assert not answers(0)
