"""Baselines as a user has them: written, used by `check`, shrunk, moved, merged and damaged."""

from __future__ import annotations

import json
import os
import re
import shlex
import threading
from pathlib import Path

import pytest
from harness.project import Project
from harness.repository import Repository

NAME = ".torchmigrate-baseline.json"
OLD = (
    "import torch\n\n\ndef f(a, b):\n    return torch.ger(a, b)\n\n\ndef g(a):\n    return torch.symeig(a)\n"
)
NEW = "\n\ndef h(a, b):\n    return a, torch.ger(b, a)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path, monkeypatch)
    made.write("pkg/old.py", OLD)
    made.write("torchmigrate.toml", f'baseline = "{NAME}"\n')
    made.run("baseline", code=0)
    return made


def entries(project: Project, name: str = NAME) -> list[tuple[str, str, int]]:
    listed = json.loads((project.path / name).read_text("utf-8"))["findings"]
    return [(item["path"], item["code"], item.get("count", 1)) for item in listed if item]


def found(project: Project, *arguments: str) -> list[tuple[str, str, int]]:
    done = project.run("check", "--output-format", "json", *arguments)
    return [
        (Path(item["filename"]).name, item["code"], item["location"]["row"])
        for item in json.loads(done.stdout)
    ]


# ---- what it hides --------------------------------------------------------------------------------------


def test_written_hidden_and_counted(project: Project) -> None:
    assert entries(project) == [("pkg/old.py", "TM100", 1), ("pkg/old.py", "TM110", 1)]
    done = project.run("check", code=0)
    assert done.stdout == ""
    assert done.stderr.splitlines()[:2] == ["All checks passed!", "The baseline hides 2 findings."]
    assert len(found(project, "--no-baseline")) == 2


def test_only_new_findings_fail(project: Project) -> None:
    project.write("pkg/old.py", OLD + NEW)
    assert found(project) == [("old.py", "TM110", 13)]
    done = project.run("check", "-j", "2", code=1)
    assert (
        "Found 1 finding (1 info). 1 fixable with `--fix`.\nThe baseline hides 2 findings.\n" in done.stderr
    )
    project.run("check", "--exit-zero", code=0)


def test_another_line_that_says_the_same_is_new(project: Project) -> None:
    project.write("pkg/old.py", OLD + "\n\ndef k(a, b):\n    return torch.ger(a, b)\n")
    assert found(project) == [("old.py", "TM110", 13)]


@pytest.mark.parametrize(
    "text",
    [
        "# moved\n\n\n" + OLD,
        OLD.replace("\n", "\r\n"),
        OLD.replace("\n", "\r"),
        "\ufeff" + OLD,
        OLD.replace("def f(a, b):\n    return", "if True:\n    def f(a, b):\n        return"),
        OLD.replace("torch.ger(a, b)", "torch.ger( a,  b )"),
        OLD.replace("    ", "\t"),
    ],
    ids=["moved", "crlf", "cr", "bom", "indented", "spaces", "tabs"],
)
def test_known_again(project: Project, text: str) -> None:
    project.write("pkg/old.py", text)
    assert found(project) == []


def test_renamed(project: Project) -> None:
    (project.path / "pkg/old.py").rename(project.path / "pkg/other.py")
    assert found(project) == []
    assert found(project, "pkg/other.py") == [], "also where only the new file is checked"
    project.write("pkg/third.py", OLD)
    assert found(project) == [("third.py", "TM110", 5), ("third.py", "TM100", 9)], "each is accepted once"


def test_a_file_that_is_there_gives_nothing_away(project: Project) -> None:
    project.write("pkg/copy.py", OLD)
    assert [name for name, *_ in found(project)] == ["copy.py", "copy.py"]


def test_formats_and_statistics(project: Project) -> None:
    project.write("pkg/old.py", OLD + NEW)
    for form in ("full", "concise", "github", "json"):
        done = project.run("check", "--output-format", form, code=1)
        assert "TM110" in done.stdout and "TM100" not in done.stdout
    assert project.run("check", "--statistics", code=1).stdout.split() == ["1", "TM110", "[*]", "ger"]


def test_stdin(project: Project) -> None:
    arguments = ("-", "--stdin-filename", "pkg/old.py", "--output-format", "json")
    done = project.run("check", *arguments, stdin=OLD + NEW, code=1)
    assert [item["location"]["row"] for item in json.loads(done.stdout)] == [13]
    assert "The baseline hides 2 findings." in done.stderr
    fixed = project.run("check", "--fix", "-", "--stdin-filename", "pkg/old.py", stdin=OLD, code=0)
    assert "torch.outer(a, b)" in fixed.stdout
    assert len(entries(project)) == 2, "nothing of the project was changed"
    (project.path / "pkg/old.py").unlink()
    done = project.run("check", "-", "--output-format", "json", stdin=OLD, code=1)
    assert len(json.loads(done.stdout)) == 2, "what has no name has got no new one"


def test_notebooks(project: Project) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**cell, "source": ["import torch\n", "torch.ger(a, b)\n"]}]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    project.write("book.ipynb", json.dumps(book))
    project.run("baseline", code=0)
    book["cells"] = [{**cell, "source": ["a = b = 1\n", "%time torch.ger(a, b)"]}, *cells]
    project.write("book.ipynb", json.dumps(book, indent=1))
    assert found(project) == []
    book["cells"] = [*cells, *cells]
    project.write("book.ipynb", json.dumps(book))
    assert found(project) == [("book.ipynb", "TM110", 2)]


def test_examples_in_docstrings(project: Project) -> None:
    text = '"""Doc.\n\n>>> import torch\n>>> torch.ger(a, b)\n"""\n'
    project.write("doc.py", text)
    project.run("baseline", "--embedded", code=0)
    assert ("doc.py", "TM110", 1) in entries(project)
    assert found(project, "--embedded") == []
    project.write("doc.py", text.replace(">>> torch", ">>> torch.ger(b, a)\n>>> torch"))
    assert found(project, "--embedded") == [("doc.py", "TM110", 4)]


def test_examples_stay_where_they_are_not_looked_at(project: Project) -> None:
    project.write("doc.py", '"""Doc.\n\n>>> import torch\n>>> torch.ger(a, b)\n"""\n')
    project.run("baseline", "--embedded", code=0)
    before = entries(project)
    project.run("baseline", "--prune", code=0)
    project.run("check", "--select", "TM100", "--fix", code=0)
    assert entries(project) == before
    project.run("check", "--embedded", code=0)


def test_one_decision_of_several_places(project: Project) -> None:
    lines = [
        "from torch.autograd import Variable\n",
        "x = Variable(a)\n",
        "y = Variable(b)\n",
        "z = Variable(c)\n",
    ]
    project.write("pkg/old.py", "".join(lines[:3]))
    project.run("baseline", code=0)
    assert found(project) == []
    project.write("pkg/old.py", lines[0] + lines[2])
    assert found(project) == []
    project.write("pkg/old.py", "".join(lines))
    assert "TM330" in {code for _, code, _ in found(project)}, "there is a new place"


# ---- where it is named ----------------------------------------------------------------------------------


def test_relative_to_its_configuration(project: Project) -> None:
    with project.monkeypatch.context() as patch:
        inner = Project(project.path / "pkg", patch)
        inner.run("check", code=0)
        inner.run("check", "--no-baseline", code=1)


def test_a_configuration_names_none_outside(project: Project, tmp_path: Path) -> None:
    project.write("inner/.git/HEAD", "ref: refs/heads/main\n")
    project.write("inner/torchmigrate.toml", f'baseline = "../{NAME}"\n')
    project.write("inner/a.py", OLD)
    done = project.run("check", "inner", code=2)
    assert "outside of the project" in done.stderr


def test_parts_of_a_project_have_their_own(project: Project) -> None:
    project.write("part/torchmigrate.toml", 'baseline = "accepted.json"\n')
    project.write("part/a.py", OLD)
    done = project.run("check", code=2)
    assert (
        done.stderr
        == "error: part/accepted.json: cannot read: no such file or directory; `torchmigrate baseline` writes one\n"
    )
    project.run("baseline", code=0)
    assert entries(project, "part/accepted.json") == [("a.py", "TM100", 1), ("a.py", "TM110", 1)]
    assert [path for path, *_ in entries(project)] == ["pkg/old.py", "pkg/old.py"]
    assert found(project) == []


def test_without_configuration_it_is_named_and_the_way_to_use_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path, monkeypatch)
    project.write("pkg/old.py", OLD)
    done = project.run("baseline", code=0)
    assert done.stderr.splitlines()[0] == f"Wrote 2 findings in 1 file to {NAME}."
    assert f"torchmigrate check --baseline {NAME}" in done.stderr
    project.run("check", code=1)
    project.run("check", "--baseline", NAME, code=0)
    project.run("baseline", "--output", "other.json", code=0)
    assert (project.path / "other.json").read_bytes() == (project.path / NAME).read_bytes()


# ---- where it is written --------------------------------------------------------------------------------

TABLE = "[tool.torchmigrate]\n"
PYPROJECT = '[project]\nname = "a"\nversion = "1"\n'
A, B = "packages/a", "packages/b"
HINT = re.compile(
    r"To hide them, run `torchmigrate (check [^`]*)`"
    r"(?:, or set `(baseline = [^`]*)` in (?:(\[tool\.torchmigrate\]) of )?(.*))?\.\n"
)


@pytest.mark.parametrize("git", [True, False], ids=["git", "no git"])
@pytest.mark.parametrize(
    ("files", "here", "paths", "written", "config"),
    [
        pytest.param(
            {f"{A}/pyproject.toml": PYPROJECT}, A, [], f"{A}/{NAME}", f"{A}/pyproject.toml", id="package"
        ),
        pytest.param(
            {f"{A}/pyproject.toml": PYPROJECT, "pyproject.toml": PYPROJECT},
            f"{A}/src",
            ["."],
            f"{A}/{NAME}",
            f"{A}/pyproject.toml",
            id="directory of a package, in a project of its own",
        ),
        pytest.param(
            {f"{A}/pyproject.toml": PYPROJECT, "pyproject.toml": PYPROJECT},
            "",
            [A],
            f"{A}/{NAME}",
            f"{A}/pyproject.toml",
            id="package by its path",
        ),
        pytest.param(
            {f"{A}/setup.py": ""},
            B,
            [f"../../{A}/src/old.py"],
            f"{A}/{NAME}",
            f"{A}/torchmigrate.toml",
            id="file",
        ),
        pytest.param(
            {f"{A}/pyproject.toml": PYPROJECT + TABLE},
            A,
            [],
            f"{A}/{NAME}",
            f"{A}/pyproject.toml",
            id="package with a configuration",
        ),
        pytest.param(
            {f"{A}/pyproject.toml": PYPROJECT, "pyproject.toml": TABLE},
            f"{A}/src",
            [],
            NAME,
            "pyproject.toml",
            id="configuration of all packages",
        ),
        pytest.param(
            {f"{A}/src/torchmigrate.toml": "", f"{A}/setup.cfg": ""},
            A,
            [],
            f"{A}/{NAME}",
            f"{A}/src/torchmigrate.toml",
            id="configuration of a directory",
        ),
        pytest.param({f"{A}/setup.py": ""}, A, [], f"{A}/{NAME}", f"{A}/torchmigrate.toml", id="setup.py"),
        pytest.param(
            {f"{A}/setup.cfg": "", "setup.py": ""}, "", ["packages/a", B], NAME, "torchmigrate.toml", id="two"
        ),
        pytest.param(
            {f"{A}/pyproject.toml": PYPROJECT, f"{B}/pyproject.toml": TABLE, "pyproject.toml": PYPROJECT},
            "",
            [],
            NAME,
            None,
            id="several configurations",
        ),
    ],
)
def test_beside_the_nearest_project_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    git: bool,
    files: dict[str, str],
    here: str,
    paths: list[str],
    written: str,
    config: str | None,
) -> None:
    """Its hints are true: the command hides all that was found, and so does the line in the configuration."""
    top = Project(tmp_path / "top", monkeypatch)
    for name, text in {f"{A}/src/old.py": OLD, f"{B}/old.py": OLD, **files}.items():
        top.write(name, text)
    if git:
        (top.path / ".git").mkdir()
    inside = Project(top.path / here, monkeypatch)
    done = inside.run("baseline", *paths, code=0)
    assert [path.relative_to(top.path) for path in top.path.rglob(NAME)] == [Path(written)]
    hint = HINT.search(done.stderr)
    assert hint is not None, done.stderr
    command, line, table, file = hint.groups()
    assert inside.run(*shlex.split(command), code=0).stderr.startswith("All checks passed!")
    if not git and config == f"{A}/src/torchmigrate.toml":
        config = None  # without a repository, its directory is the project, and the baseline is outside
    assert file == (config and shown(top.path / config, inside.path))
    if file is None:
        return
    target = inside.path / file
    text = target.read_text("utf-8") if target.exists() else ""
    if table is not None and table not in text:
        text += f"{table}\n"
    target.write_text(f"{text}{line}\n", "utf-8")
    assert inside.run("check", *paths, code=0).stderr.startswith("All checks passed!")
    given = [os.path.relpath(inside.path / path, top.path) for path in paths or ["."]]
    assert top.run("check", *given, code=0).stderr.startswith("All checks passed!")
    again = inside.run("baseline", *paths, code=0)
    assert "To hide them" not in again.stderr
    assert inside.run("baseline", "--prune", *paths, code=0).stderr.startswith("Removed 0 findings")
    assert [path.relative_to(top.path) for path in top.path.rglob(NAME)] == [Path(written)]


def shown(path: Path, here: Path) -> str:
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)


@pytest.mark.parametrize("git", [True, False], ids=["git", "no git"])
def test_without_a_project_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: bool) -> None:
    """It is at the root of the repository, or where the command runs."""
    top = Project(tmp_path / "top", monkeypatch)
    top.write("packages/a/old.py", OLD)
    if git:
        (top.path / ".git").mkdir()
    inside = Project(top.path / A, monkeypatch)
    done = inside.run("baseline", code=0)
    place = top.path / NAME if git else inside.path / NAME
    assert [*top.path.rglob(NAME)] == [place]
    config = shown(place.parent / "torchmigrate.toml", inside.path)
    assert f'or set `baseline = "{NAME}"` in {config}.\n' in done.stderr
    (inside.path / config).write_text(f'baseline = "{NAME}"\n', "utf-8")
    inside.run("check", code=0)
    top.run("check", code=0)


def test_several_packages_that_each_have_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run over all packages uses and writes the baseline of each."""
    top = Project(tmp_path, monkeypatch)
    for package in (A, B):
        top.write(f"{package}/pyproject.toml", f'{TABLE}baseline = "{NAME}"\n')
        top.write(f"{package}/old.py", OLD)
    done = top.run("baseline", A, B, code=0)
    assert "To hide them" not in done.stderr
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob(NAME)) == [
        Path(A, NAME),
        Path(B, NAME),
    ]
    top.run("check", code=0)
    Project(tmp_path / A, monkeypatch).run("check", code=0)


def test_hints_can_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path, monkeypatch)
    project.write("my code/old.py", OLD)
    project.write("pyproject.toml", TABLE)
    done = project.run("baseline", "my code", "--output", 'the "old" ones.json', code=0)
    hint = HINT.search(done.stderr)
    assert hint is not None, done.stderr
    project.run(*shlex.split(hint[1]), code=0)
    project.write("pyproject.toml", f"{TABLE}{hint[2]}\n")
    project.run("check", code=0)


def test_a_file_outside_of_the_project_can_only_be_named_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / "project", monkeypatch)
    project.write("old.py", OLD)
    (project.path / ".git").mkdir()
    done = project.run("baseline", "--output", "../accepted.json", code=0)
    hint = HINT.search(done.stderr)
    assert hint is not None and hint[2] is None, done.stderr
    project.run(*shlex.split(hint[1]), code=0)


# ---- how it shrinks -------------------------------------------------------------------------------------


def test_a_check_only_counts_what_is_gone(project: Project) -> None:
    before = (project.path / NAME).read_bytes()
    project.write("pkg/old.py", OLD.replace("torch.ger", "torch.outer"))
    done = project.run("check", code=0)
    assert (
        "1 finding in the baseline no longer exists: run `torchmigrate baseline --prune` to remove it."
        in done.stderr
    )
    project.run("check", "--diff", code=0)
    assert (project.path / NAME).read_bytes() == before


def test_prune_takes_out_and_never_adds(project: Project) -> None:
    project.write("pkg/old.py", OLD.replace("torch.ger", "torch.outer") + NEW)
    done = project.run("baseline", "--prune", code=0)
    assert done.stderr.splitlines()[0] == f"Removed 1 finding from {NAME}."
    assert entries(project) == [("pkg/old.py", "TM100", 1)]
    assert found(project) == [("old.py", "TM110", 13)]


def test_fixes_are_made_of_accepted_findings_too_and_shrink_it(project: Project) -> None:
    done = project.run("check", "--fix", code=0)
    assert "torch.outer(a, b)" in (project.path / "pkg/old.py").read_text()
    assert f"Removed 1 finding from {NAME}." in done.stderr
    assert entries(project) == [("pkg/old.py", "TM100", 1)]
    before = (project.path / NAME).read_bytes()
    project.run("check", "--fix", code=0)
    assert (project.path / NAME).read_bytes() == before


def test_what_a_fix_changes_around_an_accepted_finding_is_no_news(project: Project) -> None:
    project.write("pkg/old.py", "import torch\n\nx = torch.ger(a, torch.symeig(b)[0])\n")
    project.run("baseline", code=0)
    project.run("check", "--fix", "--select", "TM110,TM100", code=0)
    assert "torch.outer(" in (project.path / "pkg/old.py").read_text()
    project.run("check", "--select", "TM110,TM100", code=0)
    assert [code for _, code, _ in entries(project)] in (["TM100"], [])


def test_what_was_not_looked_at_stays(project: Project) -> None:
    project.write("pkg/old.py", "import torch\n")
    project.write("other.py", OLD)
    project.run("baseline", "other.py", code=0)
    assert len(entries(project)) == 4, "the entries of the other file stay"
    project.run("check", "--fix", "other.py", code=0)
    assert len(entries(project)) == 3
    project.run("baseline", "--prune", "--select", "TM110", code=0)
    assert entries(project) == [("other.py", "TM100", 1), ("pkg/old.py", "TM100", 1)]
    project.write("pkg/old.py", "import torch\ndef torch.ger(\n")
    project.run("baseline", "--prune", code=2)
    assert len(entries(project)) == 2
    project.write("pkg/old.py", "import torch\n")
    project.run("baseline", "--prune", "--target", "1.9", code=0)
    assert len(entries(project)) == 2, "an older release says less"
    project.run("baseline", "--prune", code=0)
    assert len(entries(project)) == 1


def test_a_file_that_was_deleted(project: Project) -> None:
    (project.path / "pkg/old.py").unlink()
    project.write("pkg/clean.py", "import torch\n")
    project.run("check", "--fix", "pkg/clean.py", code=0)
    assert len(entries(project)) == 2, "it may have another name that was not checked"
    project.run("baseline", "--prune", code=0)
    assert entries(project) == []
    project.run("check", code=0)


def test_a_renamed_file_keeps_its_entries(project: Project) -> None:
    (project.path / "pkg/old.py").rename(project.path / "pkg/other.py")
    project.run("baseline", "--prune", code=0)
    assert entries(project) == [("pkg/other.py", "TM100", 1), ("pkg/other.py", "TM110", 1)]
    (project.path / "pkg/other.py").rename(project.path / "third.py")
    project.run("check", "--fix", code=0)
    assert entries(project) == [("third.py", "TM100", 1)]


def test_changed_line_ends_of_the_baseline_itself(project: Project) -> None:
    path = project.path / NAME
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    project.run("check", code=0)


def test_a_baseline_that_cannot_be_written(project: Project) -> None:
    (project.path / NAME).chmod(0o444)
    done = project.run("check", "--fix", code=2)
    assert f"error: {NAME}: cannot write: the file is read-only" in done.stderr
    project.run("baseline", "--output", "no/such/dir.json", code=2)


def test_runs_at_the_same_time(project: Project) -> None:
    for number in range(6):
        project.write(f"many/a{number}.py", OLD)
    project.run("baseline", code=0)
    runs = [project.start("check", "--fix", f"many/a{number}.py") for number in range(6)]
    for run in runs:
        run.communicate()
    assert [path for path, code, _ in entries(project) if code == "TM110"] == ["pkg/old.py"]


# ---- the file -------------------------------------------------------------------------------------------


def test_one_line_for_an_entry_sorted_and_stable(project: Project) -> None:
    path = project.path / NAME
    lines = path.read_text("utf-8").splitlines()
    assert lines[5] == (
        '    {"path": "pkg/old.py", "code": "TM110", "symbol": "torch.ger", "line": "return torch.ger(a, b)"},'
    )
    before = path.read_bytes()
    project.run("baseline", code=0)
    assert path.read_bytes() == before
    names = {each.name for each in project.path.iterdir()} - {".torchmigrate_cache"}  # where it took seconds
    assert names == {NAME, "pkg", "torchmigrate.toml"}


def test_git_merges_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a", "c", "e", "g"]
    repository = Repository(tmp_path, {f"{name}.py": OLD for name in names})
    project = Project(repository.path, monkeypatch)
    project.run("baseline", code=0)
    repository.commit()
    repository.git("checkout", "--quiet", "-b", "other")
    project.write("b.py", OLD)
    project.run("baseline", code=0)
    repository.commit()
    repository.git("checkout", "--quiet", "main")
    project.write("z.py", OLD)
    project.run("baseline", code=0)
    project.write("e.py", "import torch\n")
    project.run("baseline", "--prune", code=0)
    repository.commit()
    repository.git("merge", "--quiet", "other")
    project.run("check", "--baseline", NAME, code=0)
    assert [path for path, code, _ in entries(project) if code == "TM100"] == [
        "a.py",
        "b.py",
        "c.py",
        "g.py",
        "z.py",
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "line 1 is not valid JSON"),
        (b"{", "line 1 is not valid JSON"),
        (b"[]", "it has no list of findings"),
        (b'{"version": 9, "findings": []}', "it was written by another version of torchmigrate"),
        (
            b'{"version": 1, "findings": [{"path": "a.py"}]}',
            "finding 1 has missing or unknown keys",
        ),
        (b'{"version": 1, "findings": ["a"]}', "finding 1 is not an object"),
        (b'{"version": 1, "findings": {}}', "its findings are not a list"),
        (b"{\n<<<<<<< HEAD\n=======\n>>>>>>> other\n}", "line 2 is a merge conflict marker"),
        (b"\xff\xfe{", "it is not UTF-8 text"),
        (b"[" * 100_000, "it is not valid JSON"),
        (
            b'{"version": 1, "findings": [], "x": ' + b"9" * 10_000 + b"}",
            "it is not valid JSON",
        ),
    ],
)
def test_damaged(project: Project, data: bytes, reason: str) -> None:
    project.write(NAME, data)
    before = (project.path / "pkg/old.py").read_bytes()
    for arguments in (["check"], ["check", "--fix"], ["baseline"], ["baseline", "--prune"]):
        done = project.run(*arguments, code=2)
        assert done.stdout == ""
        assert done.stderr == f"error: {NAME}: not a baseline: {reason}\n"
    assert (project.path / NAME).read_bytes() == data
    assert (project.path / "pkg/old.py").read_bytes() == before


def test_a_pipe_and_a_directory(project: Project) -> None:
    os.mkfifo(project.path / "pipe")
    assert "is not a regular file" in project.run("check", "--baseline", "pipe", code=2).stderr
    project.run("check", "--baseline", "pkg", code=2)


def test_names_and_lines_of_any_characters(project: Project) -> None:
    project.write("größe.py", 'import torch\n\ntorch.ger(a, b), "größe \U0001f600"\n')
    (project.path / os.fsdecode(b"\xff.py")).write_text(OLD)
    project.run("baseline", code=0)
    text = (project.path / NAME).read_text("utf-8")
    assert '"path": "größe.py"' in text and "größe 😀" in text and '"\\udcff.py"' in text
    assert found(project) == []


def test_a_kill_leaves_the_old_one(project: Project) -> None:
    """Whoever reads while others write sees a whole baseline."""
    stop = threading.Event()
    wrong: list[str] = []

    def read() -> None:
        while not stop.is_set():
            try:
                json.loads((project.path / NAME).read_text("utf-8"))
            except ValueError as error:
                wrong.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(6):
        project.write("pkg/more.py", OLD if number % 2 else "import torch\n")
        project.run("baseline", code=0)
    stop.set()
    thread.join()
    assert not wrong


def test_a_notebook_with_a_broken_cell_has_findings_that_can_be_accepted(project: Project) -> None:
    book = {
        "cells": [
            {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
            for source in (["import torch\n", "y = torch.ger(a, b)"], ["print 'no'"])
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    project.write("book.ipynb", json.dumps(book))
    project.run("baseline", code=2)
    assert ("book.ipynb", "TM110", 1) in entries(project)
    assert [each for each in found(project) if each[1] == "TM110"] == []
    project.run("baseline", "--prune", code=2)
    assert ("book.ipynb", "TM110", 1) in entries(project)
