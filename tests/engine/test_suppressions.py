"""Comments that hide findings."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchmigrate.catalogue.builtin import COMMENTS
from torchmigrate.catalogue.codes import INVALID_SUPPRESSION as INVALID
from torchmigrate.catalogue.codes import UNUSED_SUPPRESSION as UNUSED
from torchmigrate.engine.suppressions import Suppressions
from torchmigrate.findings import Applicability, Finding, Severity
from torchmigrate.report.reasons import help_of, message_of
from torchmigrate.rewrite import apply as edits
from torchmigrate.source.text import Source

KNOWN = {
    "TM100": "TM100",
    "symeig": "TM100",
    "TM200": "TM200",
    "cuda-amp": "TM200",
    **{key: rule.code for rule in COMMENTS for key in (rule.code, rule.name)},
}
EVERY = frozenset(KNOWN.values())


def suppressions(text: str) -> Suppressions:
    return Suppressions.of(Source.from_text(text, Path("a.py")))


def hidden_rows(text: str, code: str = "TM100", name: str = "symeig") -> list[int]:
    found = suppressions(text)
    return [row for row in range(1, len(text.splitlines()) + 1) if found.hides(code, name, row)]


def faults(text: str, code: str) -> list[Finding]:
    return [finding for finding in suppressions(text).findings(EVERY, KNOWN) if finding.code == code]


@pytest.mark.parametrize(
    "comment",
    [
        "# torchmigrate: ignore[TM100]",
        "#torchmigrate: ignore[TM100] the old one is needed here",
        "# torchmigrate: ignore[TM200, symeig]",
        "# torchmigrate: ignore[ TM200 TM100 ]",
        "# type: ignore  # torchmigrate: ignore[TM100]",
        "# torchmigrate: ignore[TM200]  # torchmigrate: ignore[TM100]",
        "# noqa",
        "#noqa",
        "# NOQA",
        "# noqa: TM100",
        "# noqa:TM100",
        "# noqa: E501,TM100",
        "# noqa: E501 TM100 for a reason",
        "# noqa: tm100",
        "# noqa: TM1",
        "# noqa: for a reason",
        "# pylint: disable=all # noqa: TM100",
    ],
)
def test_hides(comment: str) -> None:
    assert hidden_rows(f"a = 1\nb = f(a)  {comment}\nc = 2\n") == [2]


@pytest.mark.parametrize(
    "comment",
    [
        "# torchmigrate: ignore[TM200]",
        "# torchmigrate: ignore[TM1]",
        "# torchmigrate: ignore",
        "# torchmigrate: ignore[]",
        "# torchmigrate: ignored[TM100]",
        "# noqa: E501",
        "# noqa: TM2",
        "# noqa-able",
        "# nothing to see",
        "# ask torchmigrate: ignore[TM100]",
    ],
)
def test_does_not_hide(comment: str) -> None:
    assert hidden_rows(f"a = 1\nb = f(a)  {comment}\nc = 2\n") == []


def test_text_in_a_string_is_no_comment() -> None:
    assert hidden_rows("a = '''\n# noqa\n'''; b = '# torchmigrate: ignore[TM100]'\n") == []


def test_all_lines_of_a_statement() -> None:
    text = dedent("""\
        a = 1
        b = f(
            a,  # torchmigrate: ignore[TM100]
            2,
        )
        c = f(
            a,
        )  # noqa: TM100
        d = 1 + \\
            f(a)  # noqa: TM100
    """)
    assert hidden_rows(text) == [2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_only_the_header_of_a_statement_with_a_body() -> None:
    text = dedent("""\
        with f(
            a
        ):  # torchmigrate: ignore[TM100]
            f(a)
        if a: f(a)  # torchmigrate: ignore[TM100]
        else: f(a)
    """)
    assert hidden_rows(text) == [1, 2, 3, 5]


def test_a_header_of_several_lines() -> None:
    text = dedent("""\
        @f(a)  # torchmigrate: ignore[TM100]
        @f(
            a
        )
        def g(
            b=f(a),
        ):  # torchmigrate: ignore[TM100]
            # torchmigrate: ignore[TM100]
            f(a)
        def h(
            b=f(a)): return f(a)  # torchmigrate: ignore[TM100]
        class C(
            f(a)):
            @f(a)  # torchmigrate: ignore[TM100]
            def m(self): f(a)
    """)
    assert hidden_rows(text) == [1, 5, 6, 7, 8, 10, 11, 14]


def test_comment_lines_inside_brackets_count_and_others_do_not() -> None:
    text = "f(\n    # torchmigrate: ignore[TM100]\n    a)\n# torchmigrate: ignore[TM100]\nf(a)\n"
    assert hidden_rows(text) == [1, 2, 3, 4]
    assert "line of its own" in faults(text, INVALID)[0].message


def test_whole_file() -> None:
    text = "f(a)\n\n# torchmigrate: ignore-file[symeig] too old\n\ng(a)\n"
    assert hidden_rows(text) == [1, 2, 3, 4, 5]
    assert hidden_rows(text, "TM200", "cuda-amp") == []


def test_carriage_returns_and_wide_characters() -> None:
    text = "名 = '名'; f(a)  # torchmigrate: ignore[TM9999]\r\n" * 2 + "é = 1  # torchmigrate: x\rb = 1\r"
    found = faults(text, INVALID)
    assert [text[each.start : each.end] for each in found] == [
        "# torchmigrate: ignore[TM9999]",
        "# torchmigrate: ignore[TM9999]",
        "# torchmigrate: x",
    ]
    assert [Source.from_text(text, Path()).position(each.start)[0] for each in found] == [1, 2, 3]


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# torchmigrate: ignore", "`ignore` without a code suppresses nothing; add the code of the rule"),
        ("# torchmigrate: ignore[ ]", "`ignore` without a code suppresses nothing; add the code of the rule"),
        (
            "# torchmigrate: ignore-file",
            "`ignore-file` without a code suppresses nothing; add the code of the rule",
        ),
        ("# torchmigrate: skip", "`skip` is not a valid suppression and suppresses nothing"),
        ("# torchmigrate: ignore[TM109]", "unknown rule `TM109` in a suppression; did you mean `TM100`?"),
        (
            "# torchmigrate: ignore[symeigs]",
            "unknown rule `symeigs` in a suppression; did you mean `symeig`?",
        ),
    ],
)
def test_refused_with_a_message(comment: str, message: str) -> None:
    (finding,) = faults(f"a = 1  {comment}\n", INVALID)
    assert message_of(finding) == message
    assert (finding.name, finding.severity, finding.fix) == ("invalid-suppression", Severity.WARNING, None)
    assert help_of(finding) is not None and "ignore[CODE]" in help_of(finding)
    assert faults(f"a = 1  {comment}\n", UNUSED) == []


def remove_unused(text: str, *used: tuple[str, int]) -> str:
    found = suppressions(text)
    for code, row in used:
        assert found.hides(code, "some-name", row)
    unused = [finding for finding in found.findings(EVERY, KNOWN) if finding.code == UNUSED]
    fixes = [finding.fix for finding in unused if finding.fix is not None]
    assert len(fixes) == len(unused)
    assert all(fix.applicability is Applicability.SAFE for fix in fixes)
    return edits.apply(text, fixes).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1  # torchmigrate: ignore[TM100] why\nb\n", "a = 1\nb\n"),
        ("a = 1\t# torchmigrate: ignore[TM100]", "a = 1"),
        ("a = 1  # noqa: TM100\r\nb\r\n", "a = 1\r\nb\r\n"),
        ("a = 1  # noqa: E501, TM100\n", "a = 1  # noqa: E501\n"),
        ("a = 1  # noqa: TM100,E501,TM200\n", "a = 1  # noqa: E501\n"),
        ("a = 1  # noqa: TM100 E501 W1\n", "a = 1  # noqa: E501 W1\n"),
        ("a = 1  # noqa: E501\n", "a = 1  # noqa: E501\n"),
        ("a = 1  # noqa\n", "a = 1  # noqa\n"),
        ("a = 1  # type: ignore # torchmigrate: ignore[TM100]\n", "a = 1  # type: ignore\n"),
        ("a = 1  # torchmigrate: ignore[TM100]  # type: ignore\n", "a = 1  # type: ignore\n"),
        ("# torchmigrate: ignore-file[TM100]\na = 1\n", "a = 1\n"),
        ("if a:\n    # torchmigrate: ignore-file[TM100]\n    a = 1\n", "if a:\n    a = 1\n"),
        ("a = 1\n# torchmigrate: ignore-file[TM100]", "a = 1\n"),
    ],
)
def test_unused_is_reported_and_removed(before: str, after: str) -> None:
    assert remove_unused(before) == after


def test_what_is_used_stays() -> None:
    text = "a = 1  # torchmigrate: ignore[TM100, TM200] why\nb = 1  # noqa: TM100\n"
    assert remove_unused(text, ("TM200", 1), ("TM100", 2)) == (
        "a = 1  # torchmigrate: ignore[TM200] why\nb = 1  # noqa: TM100\n"
    )


def test_unused_names_what_is_unused() -> None:
    (finding,) = faults("a = 1  # torchmigrate: ignore[TM100, cuda-amp]\n", UNUSED)
    assert message_of(finding) == "nothing to suppress for `TM100`, `cuda-amp` on this line"
    assert finding.severity is Severity.INFO


def test_not_unused_if_the_rule_was_not_looked_for() -> None:
    found = suppressions("a = 1  # torchmigrate: ignore[TM100]\n")
    assert found.findings(EVERY - {"TM100"}, KNOWN) == []


def test_rules_about_comments_can_be_turned_off() -> None:
    found = suppressions("a = 1  # torchmigrate: ignore[TM100]\nb = 1  # torchmigrate: ignore\n")
    assert found.findings(EVERY - {INVALID, UNUSED}, KNOWN) == []


def test_filter() -> None:
    text = "f(a)\nf(b)  # torchmigrate: ignore[TM100]\nf(c)  # torchmigrate: ignore[TM100]\nd\n"
    found = [
        Finding("TM100", "symeig", "old", Severity.ERROR, text.index(call), text.index(call) + 4)
        for call in ("f(a)", "f(b)")
    ]
    left = suppressions(text).filter(found, EVERY, KNOWN)
    assert [(each.code, each.start) for each in left] == [("TM100", 0), (UNUSED, text.rindex("#"))]


def test_files_without_a_comment_of_ours_are_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenize.generate_tokens", lambda readline: pytest.fail("tokenized"))
    found = suppressions("import os  # noqa: F401\nimport sys  # noqa\n")
    assert found.filter([], EVERY, KNOWN) == []
    assert not suppressions("a = 1\n").hides("TM100", "symeig", 1)
