"""The lists of what each release changed: all that they call found is found."""

from __future__ import annotations

import functools
from pathlib import Path

import coverage as tool
import pytest
from click.testing import CliRunner
from fact_coverage import releases
from fact_coverage.releases import Checker, Item, Outcome, ReleaseList, lists, outcome

pytestmark = pytest.mark.one_python

LISTS = tuple(lists())
HEAD = "release: torch 2.99\nread: ['the notes']\nitems:\n"


@functools.cache
def checker() -> Checker:
    return Checker()


@pytest.mark.parametrize("read", LISTS, ids=[each.release for each in LISTS])
def test_what_a_list_calls_found_is_found(read: ReleaseList):
    missed = [item.change for item in read.items if outcome(item, checker()) is Outcome.MISSED]
    assert not missed


def item(**values: object) -> Item:
    given = {"found": (), "code": None, "left_out": None, "target": None} | values
    return Item(change="a change", kind="removed", origin="notes", **given)


SYMEIG = "import torch\na = torch.symeig(x)  # here\nprint(a)\n"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"left_out": "a reason"}, Outcome.LEFT_OUT),
        ({"found": ("TM100",)}, Outcome.RULE),
        ({"found": ("TM100",), "code": SYMEIG}, Outcome.RULE),
        ({"found": ("TM101", "TM100"), "code": SYMEIG}, Outcome.RULE),
        ({"found": ("TM101",), "code": SYMEIG}, Outcome.MISSED),
        ({"found": ("TM100",), "code": SYMEIG.replace("  # here", "")}, Outcome.MISSED),
        ({"found": ("TM100",), "code": SYMEIG, "target": "1.7"}, Outcome.MISSED),
        ({"found": ("TM100",), "code": SYMEIG + "b = torch.symeig(y)  # here\n"}, Outcome.RULE),
        ({"found": ("TM100",), "code": SYMEIG + "b = torch.lstsq(x, y)  # here\n"}, Outcome.MISSED),
        ({"found": ("TM001",)}, Outcome.DATA),
    ],
)
def test_what_becomes_of_an_item(values, expected):
    assert outcome(item(**values), checker()) is expected


def test_a_code_that_no_rule_has_is_refused():
    with pytest.raises(ValueError, match="there is no rule TM000"):
        outcome(item(found=("TM000",)), checker())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("release: torch 2.99\nitems: []\n", "wants `release`, `read` and `items`"),
        ("release: torch 2.98\nread: [x]\nitems: []\n", "is about torch 2.98"),
        ("release: torch 2.99\nread: []\nitems: []\n", "`read` names the texts"),
        (HEAD + "- {change: x, kind: removed, from: notes}\n", "either `found` or `left_out`"),
        (HEAD + "- {change: x, kind: removed, from: notes, found: TM100, left_out: y}\n", "either `found`"),
        (HEAD + "- {change: x, kind: gone, from: notes, left_out: y}\n", "`kind` is one of"),
        (HEAD + "- {change: x, kind: removed, from: memory, left_out: y}\n", "`from` is one of"),
        (HEAD + "- {change: x, kind: removed, from: notes, left_out: y, rule: z}\n", "unknown: rule"),
        (HEAD + 2 * "- {change: x, kind: removed, from: notes, left_out: y}\n", "twice in the list: x"),
    ],
)
def test_a_list_that_is_not_in_its_form_is_refused(tmp_path: Path, text, message):
    path = tmp_path / "torch-2.99.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        list(lists((path,)))


def test_the_command_counts_the_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "torch-2.99.yaml").write_text(
        HEAD
        + f"- {{change: gone, kind: removed, from: notes, found: TM100, code: {SYMEIG!r}}}\n".replace(
            "'", '"'
        )
        + "- {change: internal, kind: removed, from: sources, left_out: a reason}\n"
    )
    (tmp_path / "torch-2.100.yaml").write_text("release: torch 2.100\nread: [x]\nitems: []\n")
    monkeypatch.setattr(releases, "DIRECTORY", tmp_path)
    lines = CliRunner().invoke(tool.main, []).output.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["torch", "2.99", "1", "0", "0", "1", "0", "2"],
        ["torch", "2.100", "0", "0", "0", "0", "0", "0"],
        ["all", "1", "0", "0", "1", "0", "2"],
    ]
    assert "internal" in CliRunner().invoke(tool.main, ["--class", "left out"]).output
