"""The lines that a fix removes and adds, as `full` shows them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from torchmigrate.findings import Applicability, Edit, Fix
from torchmigrate.report.replacement import MOST_LINES, MOST_PLACES, ReplacedPlace, Replacements
from torchmigrate.rewrite.apply import apply
from torchmigrate.source.text import Source


def fix_of(edits: Sequence[Edit]) -> Fix:
    return Fix("Do it", Applicability.SAFE, tuple(edits))


def replaced(text: str, *changes: tuple[str, str], at: str = "") -> tuple[list[ReplacedPlace], int]:
    """What is shown of a fix that writes other texts for some, for a finding where `at` stands."""
    edits = [
        Edit(found.start(), found.end(), new)
        for old, new in changes
        for found in re.finditer(re.escape(old), text)
    ]
    return Replacements(Source.from_text(text, Path("a.py"))).of(fix_of(edits), text.index(at))


def drawn(places: Sequence[ReplacedPlace]) -> list[str]:
    return [f"{line.number or ''}{line.sign}{line.text}" for place in places for line in place.lines]


def test_a_line() -> None:
    places, more = replaced("a\nb = f(x)\nc\nd\n", ("f(x)", "g(x)"))
    assert (drawn(places), more) == (["1 a", "-b = f(x)", "2+b = g(x)", "3 c"], 0)


def test_insertions_at_one_place_stand_as_they_are_applied() -> None:
    text = "a\nb\n"
    lines = [Edit(2, 2, f"import {name}\n", mergeable=True) for name in ("z", "y", "x")]
    fix = fix_of([Edit(2, 2, "added\n"), *lines])
    for edits in (fix.edits, fix.edits[::-1]):
        places, _ = Replacements(Source.from_text(text, Path("a.py"))).of(fix_of(edits), 0)
        assert drawn(places) == ["1 a", "2+import x", "3+import y", "4+import z", "5+added", "6 b"]
    assert apply(text, [fix]).text == "a\nimport x\nimport y\nimport z\nadded\nb\n"


def test_at_the_ends_of_a_file() -> None:
    assert drawn(replaced("f\na", ("f", "g"))[0]) == ["-f", "1+g", "2 a"]
    assert drawn(replaced("a\nf", ("f", "g"))[0]) == ["1 a", "-f", "2+g"]
    assert drawn(replaced("f", ("f", ""))[0]) == ["-f"]


def test_lines_that_come_and_go() -> None:
    assert drawn(replaced("a\nb\nc\n", ("b\n", ""))[0]) == ["1 a", "-b", "2 c"]
    assert drawn(replaced("a\nb\nc\n", ("b", "new\nb"))[0]) == ["1 a", "2+new", "3 b"]
    assert drawn(replaced("a\r\nb\r\nc\r\n", ("b", "new\r\nb"))[0]) == ["1 a", "2+new", "3 b"]


def test_rows_are_those_of_the_fixed_file() -> None:
    text = "a\nb\n" + "x\n" * 10 + "c\n"
    places, _ = replaced(text, ("b", "b\nnew"), ("c", "d"), at="c")
    assert drawn(places) == ["2 b", "3+new", "4 x", "13 x", "-c", "14+d"]
    assert len(places) == 2


def test_places_near_each_other_are_one() -> None:
    places, _ = replaced("a\n1\n2\nb\n1\n2\n3\nc\n", ("a", "A"), ("b", "B"), ("c", "C"))
    assert [len(place.lines) for place in places] == [7, 3]


def test_of_many_places_those_near_the_finding_are_shown() -> None:
    text = "".join(f"x{number:03} = f(a)\n\n\n\n\n" for number in range(100))
    places, more = replaced(text, ("f(", "g("), at="x050")
    assert more == 100 - MOST_PLACES
    assert [place.lines[-2].text for place in places] == [
        f"x{number:03} = g(a)" for number in (48, 49, 50, 51)
    ]
    for at, first in (("x000", "x000"), ("x099", "x096")):
        places, _ = replaced(text, ("f(", "g("), at=at)
        assert (len(places), places[0].lines[-2].text[:4]) == (MOST_PLACES, first)


def test_what_was_shown_is_shown_again_where_the_finding_is() -> None:
    text = "f(a)\n\n\n\n\nf(b)\n\n\n\n\nf(c)\n"
    fix = fix_of([Edit(found.start(), found.end(), "g") for found in re.finditer("f", text)])
    replacements = Replacements(Source.from_text(text, Path("a.py")))
    assert len(replacements.of(fix, 0)[0]) == 3
    places, more = replacements.of(fix, text.index("f(b)"))
    assert (drawn(places), more) == (["5 ", "-f(b)", "6+g(b)", "7 "], 2)


def test_long_places_are_cut() -> None:
    text = "if a:\n" + "".join(f"    b{number}\n" for number in range(50))
    (place,), _ = replaced(text, ("    ", "        "))
    assert place.cut and [line.sign for line in place.lines].count("-") == MOST_LINES
    assert replaced("f(" + "x, " * 100_000 + ")\n", ("f(", "g("))[0] == []  # nobody reads that


@pytest.mark.parametrize("seed", range(200))
def test_numbered_lines_are_those_of_the_fixed_text(seed: int) -> None:
    """Whatever the edits are; what is removed is in the old text."""
    chance = random.Random(seed)
    ending = chance.choice(["\n", "\r\n", "\r"])
    text = "".join(chance.choice(["a", "b c", "  d", ""]) + ending for _ in range(chance.randrange(1, 30)))
    if chance.random() < 0.5:
        text += "end"
    ends = sorted({chance.randrange(len(text) + 1) for _ in range(2 * chance.randrange(1, 5))})
    edits = [
        Edit(start, end, chance.choice(["", "n", f"n{ending}", f"{ending}n{ending}m"]))
        for start, end in zip(ends[::2], ends[1::2], strict=False)
    ]
    if ending == "\r\n":  # which no fix takes apart
        edits = [
            edit
            for edit in edits
            if "\n" not in (text[edit.start : edit.start + 1], text[edit.end : edit.end + 1])
        ]
    if not edits:
        return
    fixed = apply(text, [fix_of(edits)]).text
    old, new = (re.split(r"\r\n|\r|\n", each) for each in (text, fixed))
    places, more = Replacements(Source.from_text(text, Path("a.py"))).of(fix_of(edits), 0)
    assert more == 0 or len(places) < len(edits)
    shown = [line for place in places for line in place.lines]
    for line in shown:
        if line.number is None:
            assert line.text in old
        else:
            assert new[line.number - 1] == line.text
    if not any(place.cut for place in places):
        added = {line.number for line in shown if line.sign == "+"}
        removed = [line.text for line in shown if line.sign == "-"]
        kept = sorted(line for number, line in enumerate(new, 1) if number not in added)
        # But for the empty line behind the last newline, which is no line.
        assert sorted(filter(None, kept)) == sorted(filter(None, _without(old, removed)))


def _without(lines: list[str], removed: list[str]) -> list[str]:
    left = list(lines)
    for line in removed:
        left.remove(line)
    return left
