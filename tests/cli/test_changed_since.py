"""`check --changed-since REV`: findings in changed lines alone, in real repositories."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from harness.project import Project
from harness.repository import Repository

OLD = "import torch\n\nx = torch.ger(a, b)\n\n\n\ny = torch.ger(c, d)\n"
Item = tuple[str, str, int]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path, {"old.py": OLD, "pkg/other.py": OLD, "README.md": "text\n"})


@pytest.fixture
def project(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(repository.path, monkeypatch)


def found(project: Project, *arguments: str, since: str = "HEAD") -> list[Item]:
    done = project.run("check", "--changed-since", since, "--output-format", "json", *arguments)
    assert done.returncode in (0, 1), done.stderr
    return [
        (Path(item["filename"]).name, item["code"], item["location"]["row"])
        for item in json.loads(done.stdout)
    ]


def test_nothing_has_changed(project: Project) -> None:
    done = project.run("check", "--changed-since", "HEAD", "--verbose", code=0)
    assert "checked 0 files" in done.stderr
    assert len(project.codes()) == 4


def test_changed_lines_only_and_no_other_file(project: Project) -> None:
    project.write("old.py", OLD.replace("torch.ger(c, d)", "torch.ger(c, dd)"))
    assert found(project) == [("old.py", "TM110", 7)]
    assert "checked 1 file" in project.run("check", "--changed-since", "HEAD", "--verbose").stderr


def test_lines_that_only_moved_or_vanished(project: Project) -> None:
    project.write("old.py", "# new\n# lines\n" + OLD.replace("\n\n\n\n", "\n\n"))
    assert found(project) == []


def test_a_file_that_is_not_tracked_counts_whole(project: Project) -> None:
    project.write("new.py", OLD)
    project.write("größe a\tb.py", OLD)
    assert found(project, "new.py") == [("new.py", "TM110", 3), ("new.py", "TM110", 7)]
    assert len(found(project)) == 4


def test_names_that_git_quotes(project: Project, repository: Repository) -> None:
    for name in ('qu"ote.py', "a b.py", "tab\tin.py", "größe.py", "new\nline.py", "back\\slash.py", "[a].py"):
        project.write(name, OLD)
        repository.commit()
        project.write(name, OLD.replace("c, d", "c, dd"))
        assert found(project) == [(name, "TM110", 7)]
        repository.commit()


def test_staged_committed_and_the_merge_base(project: Project, repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "feature")
    project.write("old.py", OLD.replace("a, b", "a, bb"))
    repository.commit()
    repository.git("checkout", "--quiet", "main")
    project.write("pkg/other.py", OLD.replace("a, b", "a, bb"))
    repository.commit()
    repository.git("checkout", "--quiet", "feature")
    project.write("staged.py", OLD.replace("y = torch.ger(c, d)\n", ""))
    repository.git("add", "staged.py")
    assert found(project, since="main") == [("old.py", "TM110", 3), ("staged.py", "TM110", 3)]
    assert found(project, since="HEAD") == [("staged.py", "TM110", 3)]


def test_renames(project: Project, repository: Repository) -> None:
    repository.git("mv", "old.py", "renamed.py")
    repository.git("config", "diff.renames", "false")
    assert found(project) == []
    project.write("renamed.py", OLD.replace("c, d", "c, dd"))
    assert found(project) == [("renamed.py", "TM110", 7)]


def test_line_ends(project: Project, repository: Repository) -> None:
    project.write("crlf.py", OLD.replace("\n", "\r\n"))
    project.write("mac.py", OLD.replace("\n", "\r"))
    repository.commit()
    project.write("crlf.py", OLD.replace("c, d", "c, dd").replace("\n", "\r\n"))
    project.write("mac.py", OLD.replace("c, d", "c, dd").replace("\n", "\r"))
    lines = [("crlf.py", "TM110", 7)]
    assert found(project) == [*lines, ("mac.py", "TM110", 3), ("mac.py", "TM110", 7)], "git sees one line"


def test_a_finding_that_begins_in_another_line(project: Project, repository: Repository) -> None:
    text = "import torch.nn as nn\n\nm = nn.MSELoss(\n    size_average=False,\n    reduce=None,\n)\n"
    project.write("loss.py", text)
    repository.commit()
    project.write("loss.py", text.replace("size_average=False", "size_average=True"))
    assert len(found(project)) == 1
    project.write("loss.py", text.replace("m = nn", "mm = nn"))
    assert len(found(project)) in (0, 1)


def test_fixes_of_changed_lines_only(project: Project) -> None:
    text = "from torch import ger\n" + OLD.replace("c, d", "c, dd")
    project.write("old.py", text)
    before = (project.path / "pkg/other.py").read_bytes()
    project.run("check", "--changed-since", "HEAD", "--fix")
    after = (project.path / "old.py").read_text()
    assert "x = torch.ger(a, b)\n" in after
    assert "y = torch.outer(c, dd)\n" in after
    assert (project.path / "pkg/other.py").read_bytes() == before
    project.run("check", "--changed-since", "HEAD", "--fix")
    assert (project.path / "old.py").read_text() == after


def test_imports_that_a_fix_needs_may_be_elsewhere(project: Project, repository: Repository) -> None:
    text = "import os\nfrom torch import ger\n\nx = ger(a, b)\ny = 1\n"
    project.write("a.py", text)
    repository.commit()
    project.write("a.py", text.replace("y = 1", "y = ger(c, d)"))
    project.run("check", "--changed-since", "HEAD", "--fix", "a.py")
    after = (project.path / "a.py").read_text()
    assert "x = ger(a, b)\n" in after, "an unchanged use stays, and so does its import"
    assert "from torch import ger" in after
    project.run("check", "--changed-since", "HEAD", "--fix", "a.py")
    assert (project.path / "a.py").read_text() == after


def test_what_goes_together_is_fixed_as_a_whole_or_not_at_all(
    project: Project, repository: Repository
) -> None:
    text = (
        "import torch\n\ntorch.set_default_tensor_type('torch.cuda.FloatTensor')\n\n"
        "torch.set_default_tensor_type('torch.FloatTensor')\n"
    )
    project.write("a.py", text)
    repository.commit()
    project.write("a.py", text.replace("torch.FloatTensor')", "torch.FloatTensor')  # changed"))
    project.run("check", "--changed-since", "HEAD", "--fix", "--unsafe-fixes", "a.py")
    assert "'torch.cuda.FloatTensor'" in (project.path / "a.py").read_text()


def test_notebooks_and_examples(project: Project, repository: Repository) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}

    def book(second: str) -> str:
        cells = [
            {**cell, "source": ["import torch\n", "torch.ger(a, b)\n"]},
            {**cell, "source": ["x = 1\n", second]},
        ]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1)

    doc = '"""Doc.\n\n>>> import torch\n>>> torch.ger(a, b)\n\n>>> torch.ger(c, d)\n"""\n'
    project.write("book.ipynb", book("torch.ger(c, d)\n"))
    project.write("doc.py", doc)
    repository.commit()
    project.write("book.ipynb", book("torch.ger(c, dd)\n"))
    project.write("doc.py", doc.replace("c, d)", "c, dd)"))
    assert found(project, "--embedded") == [("book.ipynb", "TM110", 2), ("doc.py", "TM110", 6)]
    project.run("check", "--changed-since", "HEAD", "--fix", "--embedded")
    assert (project.path / "doc.py").read_text() == doc.replace("ger(c, d)", "outer(c, dd)")
    assert (project.path / "book.ipynb").read_text() == book("torch.outer(c, dd)\n")


def test_files_that_are_not_python(project: Project, repository: Repository) -> None:
    text = "python -m torch.distributed.launch a.py\n\n\npython -m torch.distributed.launch b.py\n"
    project.write("run.sh", text)
    repository.commit()
    project.write("run.sh", text.replace("b.py", "c.py"))
    assert {row for _, _, row in found(project)} == {4}


def test_submodules(project: Project, repository: Repository, tmp_path: Path) -> None:
    inner = Repository(tmp_path / "inner", {"sub.py": OLD, "sub2.py": OLD})
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "part")
    repository.commit()
    assert found(project) == []
    project.write("part/sub.py", OLD.replace("c, d", "c, dd"))
    assert found(project) == [("sub.py", "TM110", 7)]
    repository.git("commit", "--all", "--quiet", "--message=inner", at=repository.path / "part")
    assert found(project) == [("sub.py", "TM110", 7)], "compared with what the commit around has of it"
    repository.commit()
    assert found(project) == []
    assert len(found(project, since="HEAD~2")) == 4, "it was not there"


def test_jobs_and_a_baseline(project: Project) -> None:
    project.write("old.py", OLD.replace("c, d", "c, dd"))
    assert found(project, "-j", "2") == [("old.py", "TM110", 7)]
    project.run("baseline", code=0)
    before = (project.path / ".torchmigrate-baseline.json").read_bytes()
    project.write("old.py", OLD.replace("c, d", "c, ddd"))
    arguments = ("--changed-since", "HEAD", "--baseline", ".torchmigrate-baseline.json")
    done = project.run("check", *arguments, code=1)
    assert "gone" not in done.stderr
    project.run("check", *arguments, "--fix", code=0)
    assert (project.path / ".torchmigrate-baseline.json").read_bytes() == before, "most was not looked at"


def test_nothing_that_a_configuration_names_is_run(project: Project, repository: Repository) -> None:
    trap = project.path / "ran"
    repository.git("config", "diff.external", f"touch {trap};")
    repository.git("config", "diff.evil.command", f"touch {trap};")
    repository.git("config", "diff.evil.textconv", f"touch {trap};")
    repository.git("config", "filter.evil.clean", f"touch {trap};cat")
    repository.git("config", "filter.evil.process", f"touch {trap}")
    repository.git("config", "filter.evil.required", "true")
    repository.git("config", "core.fsmonitor", f"touch {trap};")
    repository.git("config", "diff.noprefix", "true")
    repository.git("config", "diff.interHunkContext", "9")
    repository.git("config", "color.ui", "always")
    trap.unlink(missing_ok=True)
    project.write(".gitattributes", "*.py diff=evil filter=evil\n")
    project.write("old.py", OLD.replace("c, d", "c, dd"))
    assert found(project) == [("old.py", "TM110", 7)]
    assert not trap.exists()


@pytest.mark.parametrize(
    "layout", ["linked", "inside", "separate", "split", "sha256", "packed", "shallow", "link", "other user"]
)
def test_every_layout_of_a_repository(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Repository
) -> None:
    path = tmp_path / "it is 'here'\n"
    if layout == "linked":
        repository.git("worktree", "add", "--quiet", "--detach", str(path))
    elif layout == "inside":
        path = repository.path / "trees" / "one"
        repository.git("worktree", "add", "--quiet", "--detach", str(path))
    elif layout == "separate":
        repository.git("clone", "--quiet", f"--separate-git-dir={tmp_path / 'git'}", ".", str(path))
    elif layout == "shallow":
        repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(path))
    elif layout == "sha256":
        shutil.rmtree(repository.path / ".git")
        repository.git("init", "--quiet", "--object-format=sha256")
        repository.commit()
        path = repository.path
    elif layout == "link":
        path.symlink_to(repository.path)
    else:
        path = repository.path
        if layout == "split":
            repository.git("update-index", "--split-index")
        elif layout == "packed":
            repository.git("pack-refs", "--all")
            repository.git("gc", "--quiet")
        elif getattr(os, "geteuid", lambda: 1)() == 0:
            for each in (path, path / ".git"):
                os.chown(each, 12345, 12345)
    project = Project(path, monkeypatch)
    assert found(project) == []
    project.write("old.py", OLD.replace("c, d", "c, dd"))
    assert found(project) == [("old.py", "TM110", 7)]
    if layout in ("shallow", "separate"):
        assert found(project, since="@{upstream}") == [("old.py", "TM110", 7)]


def test_a_partial_clone_is_not_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Repository
) -> None:
    repository.git("config", "uploadpack.allowFilter", "true")
    for text in ("c, dd", "c, ddd"):
        repository.write("old.py", OLD.replace("c, d", text))
        repository.commit()
    path = tmp_path / "part"
    repository.git("clone", "--quiet", "--filter=blob:none", f"file://{repository.path}", str(path))
    project = Project(path, monkeypatch)
    assert found(project) == []
    done = project.run("check", "--changed-since", "HEAD~1", code=2)
    assert done.stderr.count("\n") == 1
    assert (
        "the clone is partial, and torchmigrate fetches nothing: clone it without `--filter`" in done.stderr
    )


def test_what_cannot_be_done_is_one_line(tmp_path: Path, project: Project, repository: Repository) -> None:
    def error(*arguments: str, code: int = 2) -> str:
        done = project.run("check", *arguments, code=code)
        assert done.stdout == ""
        return done.stderr

    assert error("--changed-since", "no-such") == (
        f"error: --changed-since: there is no revision `no-such` in {repository.path}\n"
    )
    assert "there is no revision `--output=x`" in error("--changed-since", "--output=x")
    assert "requires files" in error("--changed-since", "HEAD", "-")
    repository.git("checkout", "--quiet", "--orphan", "alone")
    project.write("alone.py", "")
    repository.commit()
    assert "have no common commit" in error("--changed-since", "main")
    if hasattr(os, "mkfifo"):
        os.mkfifo(repository.path / ".gitattributes")
        assert error("--changed-since", "HEAD").endswith(".gitattributes is not a regular file\n")
        (repository.path / ".gitattributes").unlink()
    repository.git("config", "extensions.objectFormat", "$(touch ran)")
    assert error("--changed-since", "HEAD").endswith("does not know this value of extensions.objectformat\n")
    (repository.path / ".git/config").write_text("[core\n")
    assert "bad config line 1" in error("--changed-since", "HEAD")
    (repository.path / ".git/HEAD").unlink()
    assert error("--changed-since", "HEAD").endswith("is not in a git repository\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text(OLD)
    assert error("--changed-since", "HEAD", str(outside)) == (
        f"error: --changed-since: {outside} is not in a git repository\n"
    )


def test_no_git(project: Project, tmp_path: Path) -> None:
    done = project.run("check", "--changed-since", "HEAD", code=2, PATH=str(tmp_path))
    assert done.stderr == "error: --changed-since: git is not installed\n"
