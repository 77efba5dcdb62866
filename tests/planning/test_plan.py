"""Upgrade plans: what is computed, and every format but how the page behaves (see test_plan_html.py)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness.launcher import launch
from harness.project import Project, environment
from plan_support import LOAD, RFFT, SCALER, SYMEIG, UGLY, place, write_project

from torchmigrate.findings import Timeline
from torchmigrate.planning.compute import headline, make_plan, since
from torchmigrate.planning.document import document_of
from torchmigrate.planning.json import as_json
from torchmigrate.planning.links import Links
from torchmigrate.planning.model import Effect, Effort, Place, Plan, Unread
from torchmigrate.report.document import as_markdown, as_text, escape, markdown_text
from torchmigrate.report.style import Style
from torchmigrate.versions.releases import NEWEST, RELEASES, Version

ROOT = Path(__file__).parents[2]
LINKS = Links(None, root=Path("/p"), near=Path("/p"))


def plan(*places: Place, minimum: Version | None = (1, 8), target: Version = (2, 6)) -> Plan:
    return make_plan("demo", places, target=target, minimum=minimum, files=3)


def numbers(made: Plan, effect: Effect) -> dict[str, tuple[int, int]]:
    """Release -> places, new ones; where there are any."""
    return {
        f"{row.release[0]}.{row.release[1]}": (row.effects[effect].places, row.begins[effect].places)
        for row in made.rows
        if row.effects[effect].places or row.begins[effect].places
    }


# ---- what is computed -------------------------------------------------------------------------------


def test_releases_of_companions_count_as_those_of_torch() -> None:
    found = since(Timeline("torchvision", deprecated="0.13", removed="0.15", added="0.9"))
    assert (found.warns, found.breaks, found.needs) == ((1, 12), (2, 0), (1, 8))
    assert since(Timeline("torchaudio", outdated="0.12", changed="2.8")).known == [(1, 12), (2, 8)]
    assert since(Timeline("functorch", removed="2.0")).breaks == (2, 0)
    assert since(Timeline("torch", removed="1.10")).breaks == (1, 10)
    assert since(Timeline("torchtext", removed="0.19")).breaks is None  # 0.18 is its last release
    assert since(Timeline("somebody", removed="3.0")).breaks == RELEASES[0]  # not known: it counts as reached


def test_a_place_has_its_worst_effect() -> None:
    found = place(outdated="1.5", warns="1.9", changes="2.0", breaks="2.2").since
    expected = {(1, 4): None, (1, 5): Effect.OUTDATED, (1, 10): Effect.WARNS, (2, 1): Effect.CHANGES}
    assert {release: found.effect(release) for release in expected} == expected
    assert found.effect((2, 2)) is Effect.RAISES and found.effect((2, 15)) is Effect.RAISES


def test_rows_are_cumulative_and_say_what_is_new() -> None:
    made = plan(
        place(warns="1.9", breaks="2.0"),
        place(warns="1.9"),
        place(warns="1.4"),
        place(changes="2.6"),
        place(breaks="2.7"),
        place(outdated="1.8"),
    )
    assert [row.release for row in made.rows] == [each for each in RELEASES if (1, 8) <= each <= (2, 6)]
    warns = numbers(made, Effect.WARNS)
    assert warns["1.8"] == (1, 0) and warns["1.9"] == (3, 2)
    assert warns["1.10"] == (3, 0) and warns["2.0"] == warns["2.6"] == (2, 0)
    assert numbers(made, Effect.RAISES)["2.0"] == (1, 1) and numbers(made, Effect.RAISES)["2.6"] == (1, 0)
    assert numbers(made, Effect.CHANGES) == {"2.6": (1, 1)}
    assert made.last.places == 4 and made.runs == ((1, 8), (1, 13))


def test_effort_counts_fixes_that_work_there() -> None:
    made = plan(
        place(warns="1.9", effort=Effort.SAFE),
        place(warns="1.9", effort=Effort.SAFE, fix_needs="2.3"),
        place(warns="1.9", effort=Effort.UNSAFE),
        place(breaks="2.0"),
    )
    efforts = {row.release: [row.of(effort) for effort in Effort] for row in made.rows}
    assert efforts[1, 9] == [1, 1, 1] and efforts[2, 2] == [1, 1, 2] and efforts[2, 3] == [2, 1, 1]


@pytest.mark.parametrize(
    ("minimum", "first"), [((1, 8), (1, 8)), ((0, 4), (1, 0)), ((2, 6), (2, 6)), (None, (1, 10))]
)
def test_the_first_release(minimum: Version | None, first: Version) -> None:
    assert plan(place(warns="1.11", breaks="2.0"), minimum=minimum).first == first


def test_the_first_release_that_runs_it_if_there_is_no_minimum() -> None:
    made = plan(place(warns="1.2"), place(needs="1.13"), place(needs="1.9"), minimum=None)
    assert made.first == (1, 13) and made.runs == ((1, 13), (2, 6)) and made.lacking == []
    assert [place.since.needs for place in made.listed] == [None, (1, 13)]
    assert "1 place needs torch 1.13\n" in as_text(document_of(made, LINKS, step=True), Style())


def test_without_places_there_is_the_target() -> None:
    assert [row.release for row in plan(minimum=None).rows] == [(2, 5), (2, 6)]
    assert len(plan(minimum=(2, 0)).rows) == 7


def test_releases_that_nobody_knows_yet() -> None:
    made = plan(place(breaks="2.0"), minimum=(2, 14), target=(3, 1))
    assert [row.release for row in made.rows] == [(2, 14), (2, 15), (3, 1)]


@pytest.mark.parametrize(
    ("places", "minimum", "text"),
    [
        ([], (1, 8), "Works unchanged on torch 1.8 to 2.6 (based on 3 files)."),
        (
            [],
            None,
            "Works unchanged up to torch 2.6 (based on 3 files), with no known minimum.",
        ),
        ([], (2, 6), "Works unchanged on torch 2.6 only (based on 3 files)."),
        (
            [place(breaks="2.0")],
            (1, 8),
            "Works unchanged on torch 1.8 to 1.13 (based on 3 files); torch 2.0 breaks 1 place.",
        ),
        (
            [place(breaks="2.0"), place(on_import="2.0"), place(breaks="2.3")],
            None,
            "Works unchanged up to torch 1.13 (based on 3 files), with no known minimum;"
            " torch 2.0 breaks 2 places, 1 of them on import; 2.6 breaks 3.",
        ),
        (
            [place(warns="1.9"), place(changes="2.6"), place(may_raise="2.6"), place(may_differ="1.9")],
            (1, 8),
            "Works unchanged on torch 1.8 to 2.6 (based on 3 files); 1 place may raise on 2.6;"
            " 1 place silently changes its results on 2.6; 1 place warns on 2.6.",
        ),
        (
            [place(needs="1.10"), place(needs="1.12")],
            (1, 8),
            "Works unchanged on torch 1.12 to 2.6 (based on 3 files);"
            " 2 places need a newer release than 1.8.",
        ),
        (
            [place(breaks="1.8"), place(breaks="2.0")],
            (1, 8),
            "Does not work unchanged on torch 1.8: 1 place breaks there."
            " The newest release on which nothing breaks is 1.7.",
        ),
        (
            [place(breaks="1.8"), place(needs="2.0")],
            (1, 7),
            "No release of torch from 1.0 to 2.6 runs these 3 files unchanged:"
            " 1 place needs torch 2.0 or newer and 1 place breaks from 1.8 on.",
        ),
        (
            [place(breaks="0.4")],
            (1, 8),
            "No release of torch from 1.0 to 2.6 runs these 3 files unchanged: 1 place breaks from 0.4 on.",
        ),
    ],
)
def test_headline(places: list[Place], minimum: Version | None, text: str) -> None:
    assert headline(plan(*places, minimum=minimum)) == text


@pytest.mark.parametrize(
    ("files", "concerned", "unread", "text"),
    [
        (0, 0, (), "Nothing was checked: no file under the given paths could be read."),
        (1, 0, (), "The only file that was read does not mention torch or its companions."),
        (4, 0, (), "None of the 4 files that were read mentions torch or its companions."),
        (
            4,
            1,
            (Unread("notebook", 1, "it mentions torch"), Unread("YAML files", 3, "", matters=False)),
            "Nothing breaks on torch 1.8 to 1.13 in 1 file; torch 2.0 breaks 1 place."
            " It is unknown whether the project runs: 1 notebook was not read.",
        ),
        (
            4,
            0,
            (Unread("notebooks", 2, ""), Unread("C++ and CUDA files", 3, "")),
            "None of the 4 files that were read mentions torch or its companions."
            " It is unknown whether the project runs: 2 notebooks and 3 C++ and CUDA files were not read.",
        ),
    ],
)
def test_nothing_is_said_of_what_was_not_read(
    files: int, concerned: int, unread: tuple[Unread, ...], text: str
) -> None:
    places = [place(breaks="2.0")] if concerned else []
    made = make_plan(
        "demo", places, target=(2, 6), minimum=(1, 8), files=files, concerned=concerned, unread=unread
    )
    assert headline(made) == text


def test_releases_of_which_the_same_is_said_are_one_row() -> None:
    made = plan(place(warns="1.9", breaks="2.0"), place(changes="2.0"), place(breaks="2.3"))
    assert [span.shown for span in made.spans] == ["1.8", "1.9 to 1.13", "2.0 to 2.2", "2.3 to 2.6"]
    assert [(span.index, span.size) for span in made.spans][1:3] == [(1, 5), (6, 3)]


def test_what_removes_one_place_and_adds_another_is_a_row_of_its_own() -> None:
    made = plan(place(warns="1.9", outdated="2.0"), place(warns="2.0"))
    assert [span.shown for span in made.spans] == ["1.8", "1.9 to 1.13", "2.0 to 2.6"]


def test_what_the_minimum_lacks() -> None:
    made = plan(place(needs="1.10"), place("TM151", breaks="2.0"))
    assert [row.lacking for row in made.rows[:3]] == [1, 1, 0] and made.runs == ((1, 10), (1, 13))
    assert not made.rows[0].runs and made.rows[2].runs
    table = as_text(document_of(made, LINKS, step=True), Style())
    assert (
        "NEEDS NEWER\n1 place uses names that torch 1.8 does not have yet\n  a.py:1:1  `TM100` in row 1\n"
        in table
    )
    assert json.loads(as_json(made, LINKS))["releases"][0]["needs_newer"] == 1
    assert "## Needs newer\n\n1 place uses names that torch 1.8" in as_markdown(
        document_of(made, LINKS, step=True)
    )


# ---- links --------------------------------------------------------------------------------------------


def test_links() -> None:
    made = place(path="src/" + UGLY, row=7)
    assert LINKS.to(made) == "src/a%20%3Cb%3E%231%2520%27%22%26.py#L7"
    assert Links(None, root=Path("/p"), near=Path("/p/out/html")).to(made).startswith("../../src/a%20")
    template = Links("https://host/o/r/blob/main/{path}#L{line}", root=Path("/p"), near=Path("/p"))
    assert template.to(made) == "https://host/o/r/blob/main/src/a%20%3Cb%3E%231%2520%27%22%26.py#L7"


@pytest.mark.parametrize(
    "template",
    [
        "https://host/{file}",
        "https://host/",
        "https://host/{path",
        "https://host/{path!r}",
        "https://host/{path:>10}",
        "https://host/{path.__class__}",
        "https://host/{0}",
        "javascript:alert('{path}')",
        " javascript:{path}",
        "data:text/html,{path}",
        'https://host/{path}"onclick=1',
    ],
)
def test_templates_that_cannot_be_used(template: str) -> None:
    with pytest.raises(ValueError, match=r"\{path\}|template|begin|character|only"):
        Links(template, root=Path(), near=Path())


def test_markdown_means_nothing_in_names() -> None:
    assert markdown_text("a_b*c [x](y) <i> `torch._C`") == r"a\_b\*c \[x\](y) \<i\> `torch._C`"


# ---- the command ----------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    write_project(tmp_path / "demo")
    return Project(tmp_path / "demo", monkeypatch)


def test_table(project: Project) -> None:
    done = project.run("plan", "--ignore", "TM00", code=0)
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "demo: Works unchanged on torch 1.5 to 1.7 (based on 2 files);"
        f" torch 1.8 breaks 1 place on import; {NEWEST} breaks 2; 1 place may raise on {NEWEST}.",
        "",
        f"To torch {NEWEST}: 4 places in 2 files: 3 unsafe fixes, 1 by hand",
    ]
    hand = lines.index("BY HAND")
    assert lines[hand + 1].startswith(f"  src/{UGLY}:3:5  breaks on import ") and lines[hand + 2] == ""
    assert lines[hand + 3] == "RELEASES"
    assert re.split("  +", lines[hand + 4]) == [
        *("TORCH", "ON IMPORT", "RAISES", "MAY RAISE", "CHANGES", "WARNS"),
        *("SAFE FIX", "UNSAFE FIX", "BY HAND"),
    ]
    rows = {(cells := re.split(r"  +", line))[0]: cells[1:] for line in lines[hand + 5 :]}
    assert rows == {
        "1.5 to 1.6": ["·"] * 8,
        "1.7": ["·", "·", "·", "·", "1 (+1)", "·", "·", "1"],
        "1.8": ["1 (+1)", "·", "·", "·", "·", "·", "·", "1"],
        "1.9 to 1.13": ["1", "·", "·", "·", "1 (+1)", "·", "1", "1"],
        "2.0 to 2.3": ["2 (+1)", "·", "·", "·", "·", "·", "1", "1"],
        "2.4 to 2.5": ["2", "·", "·", "·", "2 (+2)", "·", "3", "1"],
        f"2.6 to {NEWEST}": ["2", "·", "1 (+1)", "·", "1", "·", "3", "1"],
    }
    assert done.stderr == ""


def test_one_step(project: Project) -> None:
    out = project.run("plan", "--to", "2.4", "--ignore", "TM00", code=0).stdout
    assert "\n2.4  " in out and "2.5" not in out
    assert "To torch 2.4: 4 places in 2 files: 3 unsafe fixes, 1 by hand\n" in out
    assert "2 unsafe fixes are safe if torch 2.3 is the minimum.\n" in out
    assert (
        f"\nBREAKS ON IMPORT\n{SYMEIG} symeig (since 2.0): 1 unsafe fix\n  src/train.py:4:19  unsafe fix  `torch."
        in out
    )
    assert f"\n{RFFT} " in out and f"\n\nWARNS\n{SCALER} " in out
    assert f"\n{LOAD} load-weights-only (since 2.4): 1 unsafe fix\n" in out  # changes with 2.6
    files = out.rpartition("FILE ")[2].splitlines()[1:]
    assert [re.split(r"  +", line) for line in files] == [
        [f"src/{UGLY}", "1", "·", "·", "·", "·", "·", "·", "1"],
        ["src/train.py", "1", "·", "·", "·", "2", "·", "3", "·"],
    ]


def test_target_is_another_name_of_to(project: Project) -> None:
    to, target = (project.run("plan", name, "2.4", code=0).stdout for name in ("--to", "--target"))
    assert to == target


def test_fixes_follow_the_minimum(project: Project) -> None:
    out = project.run("plan", "--minimum", "2.3", "--to", "2.6", "--ignore", "TM00", code=0).stdout
    assert out.startswith("demo: Does not work unchanged on torch 2.3: 2 places break there. The newest")
    assert "2 safe fixes, 1 unsafe fix, 1 by hand" in out and "is the minimum" not in out


def test_json(project: Project) -> None:
    made = json.loads(project.run("plan", "--output-format", "json", "--ignore", "TM00", code=0).stdout)
    assert {key: made[key] for key in ("project", "minimum", "from", "to", "runs", "files")} == {
        "project": "demo",
        "minimum": "1.5",
        "from": "1.5",
        "to": NEWEST,
        "runs": {"first": "1.5", "last": "1.7"},
        "files": 3,  # the list of requirements, too
    }
    last = made["releases"][-1]
    assert (last["first"], last["last"], last["runs"]) == ("2.6", NEWEST, False)
    assert last["breaks_on_import"] == {"places": 2, "safe": 0, "unsafe": 1, "by_hand": 1}
    assert made["effort"] == {"safe": 0, "unsafe": 3, "by_hand": 1} and made["files_with_torch"] == 2
    assert made["not_read"] == [] and made["is_whole"] is True and made["may_differ"] == 0
    found = {item["code"]: item for item in made["places"]}
    assert sorted(found) == sorted([SCALER, SYMEIG, LOAD, RFFT])  # the suppression that hides nothing is none
    assert found[SYMEIG]["since"] == {
        "outdated": None,
        "may_differ": None,
        "warns": "1.9",
        "changes": None,
        "may_raise": None,
        "raises": None,
        "breaks_on_import": "2.0",
        "needs": None,
        "pinned": None,
    }
    assert found[SCALER]["fix"]["needs"] == "2.3" and found[SCALER]["effort"] == "unsafe"
    assert found[RFFT]["path"] == f"src/{UGLY}" and found[RFFT]["location"] == {"row": 3, "column": 5}
    assert found[RFFT]["effect"] == "breaks_on_import" and found[RFFT]["fix"] is None


def test_markdown(project: Project) -> None:
    out = project.run("plan", "--output-format", "markdown", "--ignore", "TM00", code=0).stdout
    assert out.startswith("# Upgrade plan: demo\n\nWorks unchanged on torch 1.5 to 1.7 (based on 2 files")
    assert "| 1.8: does not run | 1 (+1) |  |  |  |  |  |  | 1 |\n| 1.9 to 1.13: does not run | 1 |  |" in out
    assert "## To torch" not in out and f"/{UGLY}" not in out.partition("## Releases")[2]
    assert "**breaks on import**: TM151 `torch.rfft` was removed" in out.partition("## Releases")[0]
    template = "https://host/o/r/blob/main/{path}#L{line}"
    arguments = (
        "--to",
        "2.4",
        "--output-format",
        "markdown",
        "--link-template",
        template,
        "--ignore",
        "TM00",
    )
    step = project.run("plan", *arguments, code=0).stdout
    assert (
        "- [src/train.py:4](https://host/o/r/blob/main/src/train.py#L4), **unsafe fix**: `torch.symeig` was removed"
        in step
    )
    assert "[src/a \\<b\\>\\#1%20'\"\\&.py:3](https://host/o/r/blob/main/src/a%20%3Cb%3E%231%2520%27" in step
    assert f"| src/{escape(UGLY)} | 1 |" in step


def test_places_in_notebooks_have_cells(project: Project) -> None:
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
        for source in (["import torch\n"], ["y = torch.gels(b, a)\n"])
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    project.write("a.ipynb", json.dumps(notebook, indent=1))

    def made(form: str) -> str:
        return project.run("plan", "--to", "2.13", "--output-format", form, code=0).stdout

    assert "\n  a.ipynb:cell 2:1:" in made("table").partition("BY HAND")[2].partition("\n\n")[0]
    assert "a.ipynb:cell 2:1" in made("markdown")
    places = json.loads(made("json"))["places"]
    assert [(each["cell"], each["location"]["row"]) for each in places if each["path"] == "a.ipynb"] == [
        (2, 1)
    ]
    page = made("html")
    assert page.count("a.ipynb:cell 2<wbr>:1</a>") == 2  # in both lists
    assert "a.ipynb<wbr>:" not in page


def test_output_is_written_in_one_step(project: Project) -> None:
    written = project.path / "out" / "plan.md"
    written.parent.mkdir()
    arguments = ("plan", "--output-format", "markdown", "--to", "2.6", "--output", "out/plan.md")
    done = project.run(*arguments, code=0)
    assert (done.stdout, done.stderr) == ("", "")
    first = written.read_bytes()
    assert b"(../src/train.py#L4)" in first  # relative to where the plan is
    written.write_text("old")
    written.chmod(0o640)
    project.run(*arguments, code=0)
    assert written.read_bytes() == first and written.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in written.parent.iterdir()) == ["plan.md"]


def test_output_that_cannot_be_written(project: Project) -> None:
    done = project.run("plan", "--output", "missing/plan.txt", code=2)
    assert done.stderr.startswith("error: missing/plan.txt: cannot write: ") and done.stdout == ""
    (project.path / "locked.txt").write_text("kept")
    (project.path / "locked.txt").chmod(0o444)
    done = project.run("plan", "--output", "locked.txt", code=2)
    assert "read-only" in done.stderr and (project.path / "locked.txt").read_text() == "kept"


def test_files_that_cannot_be_done_do_not_hide_the_others(project: Project) -> None:
    project.write("broken.py", "import torch\ndef\n")
    done = project.run("plan", "--to", "2.4", "missing.py", ".", code=2)
    assert "src/train.py:4:19" in done.stdout
    errors = done.stderr.splitlines()
    assert errors[0].startswith("error: broken.py:2: ") and errors[1].startswith("error: missing.py: ")
    assert errors[2] == "2 files could not be processed."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "2"], "Invalid value for '--to' / '--target'"),
        (["--to", "1.4", "--minimum", "1.5"], "the minimum, torch 1.5, is newer than the target"),
        (["--link-template", "javascript:{path}"], "Invalid value for --link-template"),
        (["--select", "TM"], None),
        (["--select", "NOPE"], "unknown rule `NOPE`"),
    ],
)
def test_bad_usage(project: Project, arguments: list[str], message: str | None) -> None:
    done = project.run("plan", *arguments, code=0 if message is None else 2)
    assert message is None or message in done.stderr


def test_no_files(project: Project) -> None:
    (project.path / "docs").mkdir()
    done = project.run("plan", "docs", code=0)
    assert done.stdout.startswith("docs: Nothing was checked: no file under the given paths")
    assert done.stderr == "warning: no Python files found under the given paths\n"


def test_configuration_and_selection(project: Project) -> None:
    project.write("torchmigrate.toml", f'target = "2.0"\nignore = ["{SYMEIG}"]\n')
    made = json.loads(project.run("plan", "--output-format", "json", "--ignore", "TM00", code=0).stdout)
    assert made["to"] == NEWEST and {item["code"] for item in made["places"]} == {SCALER, LOAD, RFFT}
    only = project.run("plan", "--isolated", "--select", SYMEIG, "--output-format", "json", code=0).stdout
    made = json.loads(only)
    assert made["minimum"] is None and {item["code"] for item in made["places"]} == {SYMEIG}
    assert made["from"] == "1.8" and "no known minimum" in made["headline"]  # it warns since 1.9


def test_the_keyword_that_python_took(project: Project) -> None:
    project.write("src/old.py", "import torch\nx = torch.ones(3).cuda(async=True)\n")
    made = json.loads(project.run("plan", "--select", "TM012", "--output-format", "json", code=0).stdout)
    assert made["runs"] == {"first": "1.5", "last": "1.10"} and made["places"][0]["effort"] == "safe"


def test_the_name_of_the_project(project: Project) -> None:
    assert project.run("plan", "src", "--title", "My <project>").stdout.startswith("My <project>: ")
    assert project.run("plan", "src").stdout.startswith("src: ")
    (project.path / ".git").mkdir()
    assert project.run("plan", "src").stdout.startswith("demo: ")


def test_what_the_code_needs_is_the_newest_of_what_begins_at_one_place(project: Project) -> None:
    project.write("new.py", "import torch\nf = lambda x: torch.fft.rfft(x).real\n")  # of 1.7 and of 1.4
    out = project.run("plan", "--isolated", "new.py").stdout
    assert f"Works unchanged on torch 1.7 to {NEWEST}" in out


def test_what_the_code_needs_is_found_without_a_minimum(project: Project) -> None:
    project.write("new.py", "import torch\nf = torch.func.vmap(g)\n")
    arguments = ("plan", "--isolated", "new.py", "--output-format", "json")
    made = json.loads(project.run(*arguments, code=0).stdout)
    assert made["minimum"] is None and made["from"] == "2.0"
    assert [item["message"] for item in made["places"]] == ["`torch.func` exists since torch 2.0"]
    assert made["headline"] == f"Works unchanged on torch 2.0 to {NEWEST} (based on 1 file)."
    known = json.loads(project.run(*arguments, "--minimum", "1.13", code=0).stdout)
    (found,) = known["places"]
    assert found["since"]["needs"] == "2.0" and found["effect"] is None
    assert [row["needs_newer"] for row in known["releases"]] == [1, 0]
    old = json.loads(project.run(*arguments, "--to", "1.12", code=0).stdout)
    assert old["runs"] is None and [item["since"]["needs"] for item in old["places"]] == ["2.0"]
    assert old["headline"].startswith(
        "No release of torch from 1.0 to 1.12 runs this file unchanged: 1 place needs"
    )


@pytest.mark.parametrize("minimum", ["1.0", "1.4", None])
def test_what_a_module_had_later_is_needed_too(project: Project, minimum: str | None) -> None:
    # The module is there since 1.5, the name in it since 1.6; that it is deprecated hides nothing of that.
    project.write("new.py", "from torch.cuda.amp import autocast\n\nwith autocast():\n    pass\n")
    known = () if minimum is None else ("--minimum", minimum)
    arguments = ("plan", "--isolated", "new.py", "--output-format", "json", *known)
    made = json.loads(project.run(*arguments, code=0).stdout)
    assert made["runs"] == {"first": "1.6", "last": NEWEST}
    assert [item["since"]["needs"] for item in made["places"] if item["code"] == "TM005"] == ["1.6"]


def test_files_that_were_not_read_are_told(project: Project) -> None:
    project.write("broken.py", "import torch\ndef\n")
    made = json.loads(project.run("plan", "--output-format", "json", code=2).stdout)
    (unread,) = made["not_read"]
    assert (unread["kind"], unread["files"], unread["examples"]) == ("file", 1, ["broken.py"])
    assert unread["why"] == "could not be read or parsed" and made["is_whole"] is False
    assert made["headline"].endswith(" It is unknown whether the project runs: 1 file was not read.")


@pytest.mark.parametrize("output_format", ["table", "markdown", "json", "html"])
def test_the_same_bytes_every_time(project: Project, output_format: str) -> None:
    for number in range(12):
        project.write(f"many/{number % 7}/m{number}.py", (project.path / "src/train.py").read_bytes())
    found = set()
    for jobs, seed in (("1", "0"), ("3", "1")):
        arguments = ("plan", "--to", "2.6", "--output-format", output_format, "--jobs", jobs)
        done = launch(project.path, *arguments, PYTHONHASHSEED=seed)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1 and len(found.pop()) > 1000


def test_page(project: Project) -> None:
    """What holds without a browser: it is escaped, it is one file, and its policy lets nothing in."""
    page = project.run("plan", "--output-format", "html", "--title", "</title><script>x</script>").stdout
    assert page.startswith("<!DOCTYPE html>\n") and page.endswith("</html>\n")
    assert page.count("<script>") == 1 and "<b>#" not in page and "window.hacked" in page
    assert "&lt;script&gt;window.hacked = 1&lt;/script&gt;&amp;amp;" in page
    assert "<title>Upgrade plan: &lt;/title&gt;&lt;script&gt;x&lt;/script&gt;</title>" in page
    assert not re.search(r"""\s(?:src|style|on\w+)\s*=\s*["']""", page)
    outside = set(re.findall(r"https?://[^\s\"'<&]+", page)) - set(
        re.findall(r'href="(https://[^"]+)"', page)
    )
    assert outside == set()
    assert "default-src 'none'" in page and "unsafe-inline" not in page


def test_heavy_modules_are_imported_when_needed(project: Project) -> None:
    code = (
        "import sys, torchmigrate.cli.program; print(sorted({'jinja2', 'json', 'libcst'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_the_title_is_the_nearest_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path / "all", monkeypatch)
    project.write("packages/a/pyproject.toml", "")
    project.write("packages/a/src/a.py", "import torch\n")
    project.write("tools/b.py", "import torch\n")
    (project.path / ".git").mkdir()
    for path, title in (("packages/a", "a"), ("packages/a/src/a.py", "a"), ("tools", "all"), (".", "all")):
        assert project.run("plan", path, code=0).stdout.startswith(f"{title}: "), path


def test_the_example_is_worth_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    done = Project(ROOT, monkeypatch).run("plan", "examples/training", "--isolated", "--to", "2.6", code=0)
    for effect in ("RAISES WHEN REACHED", "WARNS", "OUTDATED"):
        assert f"\n{effect}\n" in done.stdout
    assert "torch 2.0 breaks 1 place" in done.stdout


# ---- pins, and what is not Python ---------------------------------------------------------------------


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def planned(project: Project, *options: str) -> dict[str, Any]:
    done = project.run("plan", "--output-format", "json", *options, code=0)
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def test_pins_are_counted_apart_with_the_first_release_that_they_exclude(empty: Project) -> None:
    empty.write("a.py", "import torch\n")
    empty.write("requirements.txt", "torch>=1.4,<2.2\ntorchvision==0.16.0\n")
    empty.write("ci/Dockerfile", "FROM python:3.11\nRUN pip install torch==1.12.1 torchvision==0.12\n")
    made = planned(empty)
    found = {(each["code"], each["path"]): each for each in made["places"]}
    below, wheels = found["TM984", "requirements.txt"], found["TM985", "ci/Dockerfile"]
    assert (below["effect"], below["since"]["pinned"], below["effort"]) == ("pinned", "2.2", "unsafe")
    assert below["rows"] == [2]  # raised together
    assert "`torch>=1.4,<2.2` excludes torch 2.15" in below["message"]
    assert (wheels["effect"], wheels["since"]["pinned"]) == ("pinned", "1.0")
    assert ("TM983", "ci/Dockerfile") in found and ("TM984", "ci/Dockerfile") in found
    assert made["pinned"] == 4 and made["effort"] == {"safe": 0, "unsafe": 0, "by_hand": 0}
    # torchvision 0.16 goes with torch 2.1.
    assert made["runs"]["last"] == "2.15" and made["headline"].startswith(
        "Works unchanged on torch 2.1 to 2.15"
    )
    assert planned(empty, "--to", "2.1")["pinned"] == 3  # the range of requirements.txt has it


@pytest.mark.parametrize("version", ["1.4.0", "2.1.0"])
def test_a_pin_is_said_to_exclude_the_release_that_is_moved_to(empty: Project, version: str) -> None:
    empty.write("requirements.txt", f"torch=={version}\n")
    (place,) = planned(empty, "--to", "2.6")["places"]
    assert place["message"] == f"`torch=={version}` excludes torch 2.6, the release this project migrates to"


def test_pins_in_all_formats(empty: Project) -> None:
    empty.write("a.py", "import torch\n")
    empty.write("requirements.txt", "torch==1.4.0\n")
    empty.write("other/requirements.txt", "torch==1.4.0 --hash=sha256:0\n")
    line = "2 pins keep torch 2.6 from being installed: 1 raised by `--fix-pins`, 1 by hand."
    table = empty.run("plan", "--to", "2.6", code=0).stdout
    assert (
        line in table
        and "\nPINNED\nTM984 pinned-below-target (since 1.5): 1 unsafe fix, 1 by hand\n" in table
    )
    assert line in empty.run("plan", code=0).stdout.replace("2.15", "2.6")
    text = empty.run("plan", "--to", "2.6", "--output-format", "markdown", code=0).stdout
    assert line in text and "## Pinned\n" in text
    page = empty.run("plan", "--to", "2.6", "--output-format", "html", code=0).stdout
    assert "2 pins keep torch 2.6 from being installed" in page and 'data-effect="pinned"' in page
    # `--fix-pins` does what the plan says.
    empty.run("check", "--fix-pins", "--target", "2.6")
    assert planned(empty, "--to", "2.6")["pinned"] == 1


def test_instructions_keep_nothing_from_being_installed(empty: Project) -> None:
    empty.write("README.md", "```\npip install torch==1.4.0 torchvision==0.6.0\n```\n")
    assert planned(empty)["places"] == []
    assert "README.md:2:" in empty.run("check", "--select", "TM983,TM984", code=1).stdout


def test_a_project_may_leave_pins_out(empty: Project) -> None:
    empty.write("requirements.txt", "torch==1.4.0\n")
    empty.write("torchmigrate.toml", 'ignore = ["TM984"]\n')
    assert planned(empty)["places"] == []


def test_what_is_not_python_is_in_the_classes(empty: Project) -> None:
    empty.write("run.sh", "export AOT_DYNAMIC_SHAPES=1\npython -m torch.utils.bottleneck a.py\n")
    empty.write("Makefile", "t:\n\tpython -m torch.distributed.launch --use_env a.py\n")
    empty.write("a.cu", "#include <torch/extension.h>\n#include <THC/THC.h>\nvoid f() { AT_CHECK(true); }\n")
    empty.write("a.py", "import torch\n")
    found = {
        each["code"]: (each["effect"], each["since"][each["effect"]]) for each in planned(empty)["places"]
    }
    assert found == {
        "TM970": ("warns", "1.9"),
        "TM972": ("changes", "2.1"),
        "TM973": ("raises", "2.10"),
        "TM975": ("raises", "1.5"),
        "TM980": ("raises", "1.11"),
    }
    assert planned(empty, "--to", "2.6")["runs"]["last"] == "1.4"


# ---- files that cannot be imported since others cannot ------------------------------------------------

BREAKS = "from torch._six import string_classes\n"
PROJECT = {
    "pyproject.toml": "[project]\nname = 'a'\n",
    "pkg/__init__.py": "",
    "pkg/compat.py": BREAKS,
    "pkg/first.py": "from . import compat\n",
    "pkg/second.py": "import os\nfrom pkg.first import x\n\n\nclass A:\n    pass\n",
    "pkg/in_class.py": "class A:\n    from .first import x\n",
    "pkg/deep/__init__.py": BREAKS,
    "pkg/deep/inside.py": "import os\n",
    "train.py": "import pkg.second as s\n",
    "tests/test_a.py": "from pkg import first\n",
    # what does not break, or not for sure
    "guarded.py": "try:\n    import pkg.first\nexcept Exception:\n    pass\n",
    "later.py": "def f():\n    import pkg.first\n",
    "conditional.py": "import sys\nif sys.argv:\n    import pkg.first\n",
    "checked.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg import compat\n",
    "named.py": "first = 'pkg.first'\nimport pkg\n",
    "other.py": "import compat\nfrom elsewhere import first\n",
}
THROUGH = {
    "pkg/compat.py": None,
    "pkg/deep/__init__.py": None,
    "pkg/deep/inside.py": "pkg/deep/__init__.py",
    "pkg/first.py": "pkg/compat.py",
    "pkg/in_class.py": "pkg/compat.py",
    "pkg/second.py": "pkg/compat.py",
    "tests/test_a.py": "pkg/compat.py",
    "train.py": "pkg/compat.py",
}


def test_what_imports_a_file_that_breaks_breaks_too(empty: Project) -> None:
    for name, text in PROJECT.items():
        empty.write(name, text)
    made = planned(empty)
    assert {each["path"]: each["through"] for each in made["cannot_be_imported"]} == THROUGH
    assert {each["since"] for each in made["cannot_be_imported"]} == {"2.0"}
    assert planned(empty, "--to", "1.13")["cannot_be_imported"] == []
    line = "6 more files cannot be imported on torch 2.15, because of pkg/compat.py (5), pkg/deep/__init__.py (1)."
    assert line in empty.run("plan", code=0).stdout
    assert line in empty.run("plan", "--output-format", "html", code=0).stdout
    text = empty.run("plan", "--output-format", "markdown", code=0).stdout
    assert line in text.replace("\\_", "_")


def test_files_that_were_not_looked_at_are_not_told_of(empty: Project) -> None:
    for name, text in PROJECT.items():
        empty.write(name, text)
    made = planned(empty, "pkg/compat.py", "pkg/first.py")
    assert [each["path"] for each in made["cannot_be_imported"]] == ["pkg/compat.py", "pkg/first.py"]


def test_the_first_release_counts(empty: Project) -> None:
    empty.write("a.py", "from torch import rfft\n")
    empty.write("b.py", BREAKS)
    empty.write("c.py", "import a\nimport b\n")
    empty.write("d.py", "import c\nimport d\n")
    found = {each["path"]: (each["since"], each["through"]) for each in planned(empty)["cannot_be_imported"]}
    assert found["c.py"] == found["d.py"] == ("1.8", "a.py")
