"""Files with several hard links, and files with more findings than anybody reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from harness.project import Project, environment

from torchmigrate.report import FORMATS

OLD = "import torch\n\ny = torch.ger(a, b)\n"
# Runs the command line, and writes the most memory that it had, in kilobytes. What `resource` says of a child
# counts the memory of the process that started it.
_PEAK = """
import re, sys
from torchmigrate.__main__ import main

try:
    main()
finally:
    print(re.search("VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
"""
_KEPT = "warning: old.py: other hard links to this file keep the old content\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


# ---- hard links ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("check", "--fix"), ("suppress", "--reason", "x"), ("baseline",)])
def test_other_links_keep_the_old_content(project: Project, arguments: tuple[str, ...]) -> None:
    """In the cache of an installer, say: what is shared is not written to. It is said."""
    name = ".torchmigrate-baseline.json" if arguments == ("baseline",) else "old.py"
    project.write("old.py", OLD)
    project.write("torchmigrate.toml", 'baseline = ".torchmigrate-baseline.json"\n')
    project.write(".torchmigrate-baseline.json", '{"version": 1, "findings": [null]}\n')
    before = (project.path / name).read_bytes()
    os.link(project.path / name, project.path / "other")
    done = project.run(*arguments, ".")
    assert done.stderr.count(_KEPT.replace("old.py", name)) == 1
    assert (project.path / "other").read_bytes() == before != (project.path / name).read_bytes()
    project.run("check", "--fix", ".", "--no-cache")
    assert "hard links" not in project.run("check", "--fix", ".").stderr


def test_nothing_is_said_of_files_that_stay(project: Project) -> None:
    project.write("old.py", "import torch\n")
    os.link(project.path / "old.py", project.path / "other.py")
    assert "hard links" not in project.run("check", "--fix", ".").stderr
    assert "hard links" not in project.run("check", "--diff", ".").stderr


# ---- caps ------------------------------------------------------------------------------------------------


def many(count: int, line: str = "y = torch.ger(a, b)\n") -> str:
    return "import torch\n\n" + line * count


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_thousand_findings_are_listed(project: Project, output_format: str) -> None:
    project.write("old.py", many(1500))
    done = project.run("check", "old.py", "--output-format", output_format, code=1)
    said = "has more than 1,000 findings: only the first 1,000 are listed"
    assert done.stderr.count(f"warning: old.py: {said}\n") == 1
    if output_format == "json":
        assert [item["code"] for item in json.loads(done.stdout)].count("TM110") == 1000
    if output_format in ("full", "concise", "grouped"):
        assert done.stdout.count("TM110") == 1000
    else:
        assert done.stdout.count(said) >= 1 and "too-many-findings" in done.stdout
    if output_format == "junit":
        assert len(list(ElementTree.fromstring(done.stdout).iter("failure"))) == 1001
    if output_format == "sarif":
        levels = [item["level"] for item in json.loads(done.stdout)["runs"][0]["results"]]
        assert (levels.count("warning"), len(levels)) == (1, 1001)
    again = project.run("check", "old.py", "--output-format", output_format, code=1)
    assert (again.stdout, again.stderr) == (done.stdout, done.stderr), "with the cache"


def test_a_thousand_are_no_more(project: Project) -> None:
    project.write("old.py", many(1000))
    assert "more than" not in project.run("check", ".", code=1).stderr
    project.write("old.py", many(1001))
    assert "more than" in project.run("check", ".", code=1).stderr
    assert project.run("check", ".", "--exit-zero", code=0).stdout


def test_what_is_hidden_does_not_count(project: Project) -> None:
    project.write("old.py", many(1100, "y = torch.ger(a, b)  # noqa: TM110\n") + "torch.ger(a, b)\n")
    done = project.run("check", ".", "--output-format", "concise", code=1)
    assert done.stdout.count("\n") == 1 and done.stdout.startswith("old.py:1103:1: TM110")
    project.write("old.py", many(1100) + "torch.symeig(a)\n")
    done = project.run("check", ".", "--output-format", "concise", "--ignore", "TM110", code=1)
    assert done.stdout.count("\n") == 1 and "more than" not in done.stderr
    project.write("torchmigrate.toml", 'per-file-ignores = { "old.py" = ["TM110"] }\n')
    done = project.run("check", ".", "--output-format", "concise", code=1)
    assert done.stdout.count("\n") == 1 and "more than" not in done.stderr


def test_what_a_baseline_hides_does_not_count(project: Project) -> None:
    project.write("old.py", many(1500))
    done = project.run("baseline", ".", code=0)
    assert "Wrote 1500 findings" in done.stderr
    project.write("old.py", many(1500) + "torch.symeig(a)\n")
    done = project.run("check", ".", "--baseline", ".torchmigrate-baseline.json", code=1)
    assert "Found 1 finding " in done.stderr and "more than" not in done.stderr
    project.write("old.py", many(1500, "z = torch.ger(b, a)\n"))
    done = project.run("check", ".", "--baseline", ".torchmigrate-baseline.json", code=1)
    assert "Found 1000 findings" in done.stderr and "more than 1,000" in done.stderr


def test_all_are_fixed_and_all_are_suppressed(project: Project) -> None:
    project.write("old.py", many(1500))
    assert "Suppressed 1500 findings" in project.run("suppress", ".", "--reason", "x", code=0).stderr
    project.write("old.py", many(1500))
    assert "Fixed 1500 findings" in project.run("check", ".", "--fix", code=0).stderr
    assert "torch.ger" not in (project.path / "old.py").read_text()


@pytest.mark.parametrize("text", [many(2500), many(2100, "torch.symeig(x)\n") + "y = torch.ger(a, b)\n"])
def test_fixes_go_on_where_many_places_are_left(project: Project, text: str) -> None:
    project.monkeypatch.setattr("torchmigrate.engine.engine._AT_ONCE", 1)
    project.write("old.py", text)
    done = project.run("check", ".", "--fix", "--output-format", "concise")
    assert "torch.ger" not in (project.path / "old.py").read_text()
    assert done.stdout.count("\n") in (0, 1000)


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not tell the peak of memory"
)
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (many(15_000), ()),
        (many(15_000), ("--fix",)),
        ("import torch\n\n" + "torch.ger(a, b); " * 10_000 + "\n", ("--diff",)),
    ],
    ids=["check", "fix", "diff"],
)
def test_60000_findings_take_no_more_than_600_megabytes(
    project: Project, text: str, arguments: tuple[str, ...]
) -> None:
    """Memory grows with the findings: a quarter of them may take a quarter of what the program adds."""

    def peak() -> int:
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, "check", "old.py", "--no-cache", *arguments],
            cwd=project.path,
            env=environment(),
            capture_output=True,
            text=True,
        )
        return int(done.stderr.splitlines()[-1])

    project.write("old.py", many(1))
    start = peak()
    project.write("old.py", text)
    assert peak() < start + (600_000 - start) / 4
    assert ("torch.ger" in (project.path / "old.py").read_text()) == (arguments != ("--fix",))
