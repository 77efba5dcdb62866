"""The output formats."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from torchmigrate.findings import Applicability, Edit, Finding, Fix, Obstacle, Reason, Severity, because
from torchmigrate.printing import printable
from torchmigrate.report import reporter_for
from torchmigrate.report.base import FileFindings, Tally, shown_path
from torchmigrate.report.full import excerpt
from torchmigrate.report.style import WIDTH, Style, wants_color
from torchmigrate.report.summary import (
    diff_line,
    fixed_line,
    fixed_list,
    statistics,
    statistics_json,
    summary,
)
from torchmigrate.source.text import Source

PATH = Path("src/train.py")


def finding(
    text: str, marked: str, fix: Applicability | None = Applicability.SAFE, **values: object
) -> Finding:
    """A finding at the first place of `marked` in a text, with a fix that makes it `new`."""
    start = text.index(marked)
    end = start + len(marked)
    made = None
    if fix is not None:
        reason = None if fix is Applicability.SAFE else "the order may differ"
        made = Fix("Replace with `new`", fix, (Edit(start, end, "new"),), because(reason) if reason else ())
    settings = {
        "code": "TM100",
        "name": "symeig",
        "message": "`symeig` was removed",
        "severity": Severity.ERROR,
    }
    return Finding(**{**settings, "start": start, "end": end, "fix": made, **values})  # type: ignore[arg-type]


def file(
    text: str,
    *findings: Finding,
    least: Applicability = Applicability.SAFE,
    shown: str = "",
    path: Path = PATH,
) -> FileFindings:
    return FileFindings(path, shown or str(PATH), Source.from_text(text, PATH), findings, least)


def report(output_format: str, *files: FileFindings, colour: bool = False) -> str:
    reporter = reporter_for(output_format, Style(colour), lambda code: None)
    return reporter.whole([reporter.piece(each) for each in files])


TEXT = "import torch\n\ne, v = torch.symeig(A)\nprint(e)\n"


# ---- full ---------------------------------------------------------------------------------------------


def test_full() -> None:
    assert report("full", file(TEXT, finding(TEXT, "torch.symeig"))) == (
        "src/train.py:3:8: TM100 [*] `symeig` was removed\n"
        "  |\n"
        "2 |\n"
        "3 | e, v = torch.symeig(A)\n"
        "  |        ^^^^^^^^^^^^ error\n"
        "4 | print(e)\n"
        "  |\n"
        "  = fix: Replace with `new`\n"
        "  |\n"
        "2 |\n"
        "  - e, v = torch.symeig(A)\n"
        "3 + e, v = new(A)\n"
        "4 | print(e)\n"
        "  |\n"
        "\n"
    )


def test_full_first_and_last_line_without_a_newline() -> None:
    text = "torch.symeig"
    assert report("full", file(text, finding(text, text, None, help="do it by hand"))) == (
        "src/train.py:1:1: TM100 `symeig` was removed\n"
        "  |\n"
        "1 | torch.symeig\n"
        "  | ^^^^^^^^^^^^ error\n"
        "  |\n"
        "  = help: do it by hand\n"
        "\n"
    )


def test_full_says_why_a_fix_is_unsafe() -> None:
    unsafe = finding(TEXT, "torch.symeig", Applicability.UNSAFE, severity=Severity.WARNING)
    text = report("full", file(TEXT, unsafe))
    assert "src/train.py:3:8: TM100 `symeig` was removed\n" in text
    assert "^ warning\n" in text
    assert "  = unsafe fix: Replace with `new` (the order may differ)\n" in text
    assert "TM100 [*]" in report("full", file(TEXT, unsafe, least=Applicability.UNSAFE))


def test_full_shows_a_suggestion_and_the_advice() -> None:
    shown = finding(TEXT, "torch.symeig", Applicability.DISPLAY, help="think first", severity=Severity.INFO)
    text = report("full", file(TEXT, shown, least=Applicability.UNSAFE))
    assert "[*]" not in text
    assert "  = suggestion: Replace with `new` (the order may differ)\n  |\n" in text
    assert text.endswith("4 | print(e)\n  |\n  = help: think first\n\n")


def test_full_wraps_long_help() -> None:
    text = report("full", file(TEXT, finding(TEXT, "torch.symeig", None, help="use `it` " * 20 + "once")))
    lines = text.splitlines()
    assert lines[7].startswith("  = help: use `it`") and lines[8].startswith("      `it` use")
    assert max(map(len, lines)) <= WIDTH + 4
    assert " ".join(" ".join(lines[7:]).split()) == "= help: " + "use `it` " * 20 + "once"


def test_no_help_where_a_safe_fix_says_it() -> None:
    assert "help" not in report("full", file(TEXT, finding(TEXT, "torch.symeig", help="by hand")))
    unsafe = finding(TEXT, "torch.symeig", Applicability.UNSAFE, help="by hand")
    assert "  = help: by hand\n" in report("full", file(TEXT, unsafe))


def test_full_over_several_lines() -> None:
    text = "a = f(\n\n    b,\n  )  # c\n"
    assert report("full", file(text, finding(text, "f(\n\n    b,\n  )"))).splitlines()[1:9] == [
        "  |",
        "1 | a = f(",
        "  |     ^^",
        "2 |",
        "3 |     b,",
        "  |     ^^",
        "4 |   )  # c",
        "  |   ^ error",
    ]


def test_full_leaves_out_the_middle_of_a_long_finding() -> None:
    text = "a = [\n" + "".join(f"    {number},\n" for number in range(20)) + "]\n"
    lines = report("full", file(text, finding(text, text[4:-1]))).splitlines()
    fix = next(index for index, line in enumerate(lines) if "= fix" in line)
    lines = [*lines[:fix], "", ""]
    assert [line[:3].strip() for line in lines if "|" in line and line[:2].strip()] == [
        "1",
        "2",
        "3",
        "4",
        "5",
        "22",
    ]
    assert sum("…" in line for line in lines) == 1
    assert lines[-5:-3] == ["22 | ]", "   | ^ error"]


def test_row_numbers_are_aligned() -> None:
    text = "\n" * 8 + "a\ntorch.symeig\n"
    lines = report("full", file(text, finding(text, "torch.symeig"))).splitlines()
    assert lines[1:5] == ["   |", " 9 | a", "10 | torch.symeig", "   | ^^^^^^^^^^^^ error"]


def caret_line(text: str, marked: str) -> tuple[str, str]:
    lines = report("full", file(text, finding(text, marked))).splitlines()
    at = next(index for index, line in enumerate(lines) if "^" in line)
    return lines[at - 1].partition("| ")[2], lines[at].partition("| ")[2].removesuffix(" error")


@pytest.mark.parametrize(
    ("text", "marked", "shown", "carets"),
    [
        ("\tx = f(a)", "f", "    x = f(a)", "        ^"),
        ("x\t= f(a)", "f", "x    = f(a)", "       ^"),
        ("名 = f(a)", "f", "名 = f(a)", "     ^"),
        ("f(名前)", "名前", "f(名前)", "  ^^^^"),
        ("x = 'e\u0301'; f(a)", "f", "x = 'e\u0301'; f(a)", "         ^"),
        ("x = '\x1b[31m'; f(a)", "f", "x = '\\x1b[31m'; f(a)", "                ^"),
        ("x = '\u202e'; f(a)", "f", "x = '\\u202e'; f(a)", "              ^"),
        ("\x0cf(a)", "f", "\\x0cf(a)", "    ^"),
    ],
)
def test_tabs_wide_and_control_characters(text: str, marked: str, shown: str, carets: str) -> None:
    assert caret_line(text, marked) == (shown, carets)


def test_long_lines_are_cut_around_the_place() -> None:
    text = "x = [" + "1, " * 100 + "torch.symeig(A), " + "2, " * 100 + "]"
    shown, carets = caret_line(text, "torch.symeig")
    assert len(shown) <= WIDTH + 2
    assert shown.startswith("…") and shown.endswith("…")
    place = carets.index("^")
    assert shown[place : place + carets.count("^")] == "torch.symeig"
    start = "torch.symeig(A)" + " + 1" * 100
    shown, carets = caret_line(start, "torch.symeig")
    assert shown == start[:WIDTH] + "…" and carets == "^" * 12


def test_a_range_that_is_too_long_is_cut() -> None:
    text = "f(" + "x" * 500 + ")"
    shown, before, width = excerpt(text, 2, 502, WIDTH)
    assert (shown[:4], before, width) == ("f(xx", 2, WIDTH - 2)
    assert excerpt("f()", 0, 3, WIDTH) == ("f()", 0, 3)


def test_colour() -> None:
    text = report("full", file(TEXT, finding(TEXT, "torch.symeig")), colour=True)
    assert "\x1b[1;31mTM100\x1b[0m" in text and "\x1b[1;31m^^^^^^^^^^^^ error\x1b[0m" in text
    assert "\x1b" not in report("full", file(TEXT, finding(TEXT, "torch.symeig")))


# ---- the others ---------------------------------------------------------------------------------------


def test_concise() -> None:
    found = [finding(TEXT, "torch.symeig"), finding(TEXT, "print", None, message="two\nlines")]
    assert report("concise", file(TEXT, *found)) == (
        "src/train.py:3:8: TM100 [*] `symeig` was removed\nsrc/train.py:4:1: TM100 two\\nlines\n"
    )


def test_json() -> None:
    text = "é = '名'; torch.symeig(A)\r\nx\r\n"
    unsafe = finding(
        text,
        "torch.symeig(A)\r\nx",
        Applicability.UNSAFE,
        url="https://a.b/",
        symbol="torch.symeig",
        help="h",
    )
    (item,) = json.loads(report("json", file(text, unsafe)))
    assert item == {
        "code": "TM100",
        "name": "symeig",
        "message": "`symeig` was removed",
        "severity": "error",
        "filename": str(Path.cwd() / PATH),
        "cell": None,
        "location": {"row": 1, "column": 10},
        "end_location": {"row": 2, "column": 2},
        "places": [],
        "url": "https://a.b/",
        "references": [],
        "symbol": "torch.symeig",
        "help": "h",
        "blocked_by": [],
        "fix": {
            "applicability": "unsafe",
            "message": "Replace with `new`",
            "reason": "the order may differ",
            "held_by": [{"kind": "words", "text": "the order may differ"}],
            "edits": [
                {
                    "content": "new",
                    "location": {"row": 1, "column": 10},
                    "end_location": {"row": 2, "column": 2},
                }
            ],
        },
        "unsafe_fix": None,
    }


def test_json_of_what_is_in_the_way() -> None:
    held = (
        Reason(Obstacle.MINIMUM, needs="torch 2.3", has="torch 1.8"),
        Reason(Obstacle.PATCH, name="torch.load", path=Path("conftest.py")),
    )
    more = Fix("Do more", Applicability.UNSAFE, (), because("it rounds"))
    fix = Fix("Do it", Applicability.UNSAFE, (), held, unsafe=more)
    blocked = replace(
        finding(TEXT, "print", None, help="by hand"),
        fix=fix,
        blocked_by=because("line 4: it is not clear", line=4),
    )
    (item,) = json.loads(report("json", file(TEXT, blocked)))
    assert item["help"] == "line 4: it is not clear; by hand"
    assert item["blocked_by"] == [{"kind": "words", "text": "line 4: it is not clear", "row": 4}]
    assert item["fix"]["held_by"] == [
        {"kind": "minimum", "needs": "torch 2.3", "has": "torch 1.8"},
        {"kind": "patch", "name": "torch.load", "path": "conftest.py"},
    ]
    assert item["fix"]["reason"] == (
        "needs torch 2.3, but the project supports torch 1.8; conftest.py replaces `torch.load`, and the new "
        "code would not use the replacement"
    )
    assert item["unsafe_fix"]["message"] == "Do more" and item["unsafe_fix"]["reason"] == "it rounds"


def test_json_is_one_list_and_ascii() -> None:
    assert report("json") == "[]\n"
    one = file(TEXT, finding(TEXT, "torch.symeig", message="名"), finding(TEXT, "print", None))
    text = report("json", one, one)
    assert text.isascii()
    items = json.loads(text)
    assert [item["message"] for item in items[:2]] == ["名", "`symeig` was removed"]
    assert len(items) == 4 and items[1]["fix"] is None


def test_json_of_a_name_that_is_no_text() -> None:
    path = Path(os.fsdecode(b"a\xff.py"))
    found = FileFindings(path, "a", Source.from_text(TEXT, path), [finding(TEXT, "print")])
    assert os.fsencode(json.loads(report("json", found))[0]["filename"]).endswith(b"a\xff.py")


def test_github() -> None:
    message = "100% gone:\r\nreally"
    found = [
        finding(TEXT, "torch.symeig", Applicability.UNSAFE, message=message, help="h"),
        finding(TEXT, "print", None, severity=Severity.WARNING),
        finding(TEXT, "print(e)\n", None, severity=Severity.INFO),
    ]
    assert report("github", file(TEXT, *found, path=Path("/a,b:c.py"), shown="a,b:c.py")) == (
        "::error file=a%2Cb%3Ac.py,line=3,col=8,endLine=3,endColumn=20,title=torchmigrate (TM100)"
        "::a,b:c.py:3:8: TM100 100%25 gone:\\r\\nreally%0A"
        "  unsafe fix: Replace with `new` (the order may differ)%0A  help: h\n"
        "::warning file=a%2Cb%3Ac.py,line=4,col=1,endLine=4,endColumn=6,title=torchmigrate (TM100)"
        "::a,b:c.py:4:1: TM100 `symeig` was removed\n"
        "::notice file=a%2Cb%3Ac.py,line=4,endLine=5,title=torchmigrate (TM100)"
        "::a,b:c.py:4:1: TM100 `symeig` was removed\n"
    )


# ---- counts -------------------------------------------------------------------------------------------


def tally(*found: Finding, least: Applicability = Applicability.SAFE) -> Tally:
    counted = Tally()
    counted.add(found, least)
    return counted


SAFE = finding(TEXT, "torch.symeig")
UNSAFE = finding(TEXT, "torch.symeig", Applicability.UNSAFE, severity=Severity.WARNING)
SHOWN = finding(TEXT, "print", Applicability.DISPLAY, severity=Severity.INFO, code="TM101", name="eig")
BARE = finding(TEXT, "print", None, severity=Severity.WARNING, code="TM101", name="eig")


@pytest.mark.parametrize(
    ("found", "least", "text"),
    [
        ([], Applicability.SAFE, "All checks passed!"),
        ([BARE], Applicability.SAFE, "Found 1 finding (1 warning)."),
        ([SHOWN], Applicability.UNSAFE, "Found 1 finding (1 info)."),
        ([SAFE, SAFE], Applicability.SAFE, "Found 2 findings (2 errors). 2 fixable with `--fix`."),
        (
            [SAFE, UNSAFE, BARE, SHOWN],
            Applicability.SAFE,
            "Found 4 findings (1 error, 2 warnings, 1 info). "
            "1 fixable with `--fix` (1 more with `--unsafe-fixes`).",
        ),
        ([UNSAFE], Applicability.SAFE, "Found 1 finding (1 warning). 1 fixable with `--fix --unsafe-fixes`."),
        (
            [SAFE, UNSAFE],
            Applicability.UNSAFE,
            "Found 2 findings (1 error, 1 warning). 2 fixable with `--fix`.",
        ),
    ],
)
def test_summary(found: list[Finding], least: Applicability, text: str) -> None:
    assert summary(tally(*found, least=least)) == text


def test_fixed() -> None:
    counted = tally()
    counted.fixed["b.py"] = {"TM101": 1, "TM100": 2}  # type: ignore[assignment]
    assert fixed_line(counted) == "Fixed 3 findings in 1 file."
    counted.fixed["a.py"] = {"TM100": 1}  # type: ignore[assignment]
    assert fixed_line(counted) == "Fixed 4 findings in 2 files."
    assert diff_line(counted) == "Would fix 4 findings in 2 files."
    assert summary(counted) == "No findings left."
    assert fixed_list(counted, {"TM100": "symeig", "TM101": "eig"}) == (
        "- a.py:\n    1 × TM100 (symeig)\n- b.py:\n    2 × TM100 (symeig)\n    1 × TM101 (eig)"
    )


def test_diff_line() -> None:
    assert diff_line(tally()) == "Would fix nothing."
    assert diff_line(tally(BARE, UNSAFE)) == (
        "Would fix nothing, and leave 2 (2 warnings); 1 more fixable with `--unsafe-fixes`."
    )


def test_statistics() -> None:
    counted = tally(SAFE, UNSAFE, *[BARE] * 10, SHOWN)
    assert statistics(counted, Style()) == "11\tTM101\t[ ]\teig\n 2\tTM100\t[-]\tsymeig\n"
    assert statistics(tally(SAFE), Style()) == "1\tTM100\t[*]\tsymeig\n"
    assert statistics(tally(), Style()) == ""
    assert json.loads(statistics_json(counted)) == [
        {"code": "TM101", "name": "eig", "count": 11, "fixable": 0},
        {"code": "TM100", "name": "symeig", "count": 2, "fixable": 1},
    ]


# ---- paths and colour ---------------------------------------------------------------------------------


def test_paths_are_relative_below_the_directory(tmp_path: Path) -> None:
    assert shown_path(tmp_path / "a/b.py", tmp_path) == str(Path("a/b.py"))
    assert shown_path(tmp_path / "b.py", tmp_path / "a") == str(tmp_path / "b.py")
    assert shown_path(tmp_path / "aa" / "b.py", tmp_path / "a") == str(tmp_path / "aa/b.py")
    assert shown_path(tmp_path / "a\nb\x1b.py", tmp_path) == "a\\nb\\x1b.py"


class _Stream:
    def __init__(self, terminal: bool) -> None:
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("choice", "environment", "terminal", "expected"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, True, False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_when_to_colour(
    choice: str, environment: dict[str, str], terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_color(choice, _Stream(terminal)) is expected  # type: ignore[arg-type]


def test_printable() -> None:
    assert printable("a\tb\n\x00\x9b\u2028é名") == "a\tb\\n\\x00\\x9b\\u2028é名"
