"""Several projects in one run: every file has its own configuration, and every run says at its end what held."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness.project import Project

OLD = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\ny = torch.rfft(x, 4)\n"
SCALER, RFFT = "TM202", "TM151"
UNKNOWN = "No minimum found, so fixes may not work on older releases; set `minimum` in pyproject.toml."

RULE = """\
- code: ACM001
  name: acme-old
  summary: "`{name}` is ours no longer"
  why: We moved.
  library: torch
  deprecated: "1.0"
  symbols: [torch.zeros_like]
  references: [https://example.com/]
  examples:
    - report_only: |
        import torch
        torch.zeros_like(a)
    - clean: |
        import torch
        torch.ones(1)
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """One without a configuration at the top, one in each of two parts, and files beside them."""
    made = Project(tmp_path, monkeypatch)
    made.write(".git/HEAD", "ref: refs/heads/main\n")
    made.write("a/pyproject.toml", f'[tool.torchmigrate]\nignore = ["{RFFT}"]\ntarget = "2.9"\n')
    made.write("b/torchmigrate.toml", f'select = ["{RFFT}"]\nminimum = "1.7"\n')
    for name in ("top.py", "a/old.py", "a/deep/er/old.py", "b/old.py", "b/gen/old.py"):
        made.write(name, OLD)
    return made


def found(project: Project, *arguments: str | Path, stdin: str = "") -> dict[str, list[str]]:
    """File -> codes."""
    done = project.run("check", "--output-format", "json", *arguments, stdin=stdin)
    codes: dict[str, list[str]] = {}
    for item in json.loads(done.stdout):
        codes.setdefault(Path(item["filename"]).relative_to(project.path).as_posix(), []).append(item["code"])
    return codes


EACH = {
    "a/deep/er/old.py": [SCALER],
    "a/old.py": [SCALER],
    "b/gen/old.py": [RFFT],
    "b/old.py": [RFFT],
    "top.py": [SCALER, RFFT],
}


def test_every_file_has_its_own_whatever_else_is_given(repository: Project) -> None:
    assert found(repository) == EACH
    for name, codes in EACH.items():
        assert found(repository, name) == {name: codes}
        assert found(repository, repository.path / name, "b/old.py") == {name: codes, "b/old.py": [RFFT]}
        stdin = found(repository, "-", "--stdin-filename", name, stdin=OLD)
        assert stdin == {name: codes}
    assert found(repository, "--jobs", "3") == EACH
    assert found(repository, "--select", SCALER) == {name: [SCALER] for name in EACH}
    assert found(repository, "--isolated") == {name: [SCALER, RFFT] for name in EACH}
    assert found(repository, "--config", "b/torchmigrate.toml") == {name: [RFFT] for name in EACH}


def test_the_working_directory_does_not_matter(repository: Project) -> None:
    (repository.path.parent / "link").unlink(missing_ok=True)
    command = [sys.executable, "-m", "torchmigrate", "check", "--output-format", "json"]
    for here in ("", "a", "b/gen"):
        paths = [os.path.relpath(repository.path / name, repository.path / here) for name in EACH]
        done = subprocess.run(
            [*command, *paths], cwd=repository.path / here, capture_output=True, text=True, check=False
        )
        codes: dict[str, list[str]] = {}
        for item in json.loads(done.stdout):
            name = Path(item["filename"]).relative_to(repository.path).as_posix()
            codes.setdefault(name, []).append(item["code"])
        assert codes == EACH


def test_patterns_are_those_of_the_file(repository: Project) -> None:
    repository.write("b/torchmigrate.toml", 'extend-exclude = ["gen/*.py"]\n')
    repository.write("a/gen/old.py", OLD)
    assert set(found(repository)) == {*EACH, "a/gen/old.py"} - {"b/gen/old.py"}
    # What is named is checked, unless `force-exclude` says otherwise, which a part says for itself.
    assert "b/gen/old.py" in found(repository, "b/gen/old.py")
    text = f'extend-exclude = ["gen/*.py"]\nforce-exclude = true\n[per-file-ignores]\n"*.py" = ["{RFFT}"]\n'
    repository.write("b/torchmigrate.toml", text)
    assert set(found(repository, "b/gen/old.py", "a/gen/old.py", "b/old.py")) == {"a/gen/old.py", "b/old.py"}
    assert found(repository, "b") == {"b/old.py": [SCALER]}


def test_the_pattern_of_a_part_around_holds_with_force_exclude(repository: Project) -> None:
    repository.write("torchmigrate.toml", 'extend-exclude = ["b"]\nforce-exclude = true\n')
    assert set(found(repository, "b/old.py", "a/old.py")) == set(found(repository)) - {
        "top.py",
        "a/deep/er/old.py",
    }


def test_rules_of_a_part_are_for_its_files(repository: Project) -> None:
    repository.write("a/lint/acme.yaml", RULE)
    repository.write("a/pyproject.toml", '[tool.torchmigrate]\nselect = ["ACM001"]\nrules = ["lint"]\n')
    for name in ("a/x.py", "b/x.py"):
        repository.write(name, "import torch\ntorch.zeros_like(a)\n")
    assert found(repository, "a/x.py", "b/x.py") == {"a/x.py": ["ACM001"]}


def test_fixes_are_those_of_the_file(repository: Project) -> None:
    repository.write("b/torchmigrate.toml", 'minimum = "1.7"\n')
    repository.run("check", "--fix", code=1)
    new = 'torch.amp.GradScaler("cuda")'
    assert new in (repository.path / "a/old.py").read_text()
    assert new in (repository.path / "top.py").read_text()
    assert (repository.path / "b/old.py").read_text() == OLD


@pytest.mark.parametrize("text", ["select = 1\n", "select = [\n", 'select = ["TM9999"]\n', 'extend = "x"\n'])
def test_a_broken_configuration_ends_the_run_before_anything_is_changed(
    repository: Project, text: str
) -> None:
    path = repository.write("b/torchmigrate.toml", text)
    for arguments in (["--fix"], ["a", "b"], ["top.py", "b/old.py"], ["b/gen"]):
        done = repository.run("check", *arguments, code=2)
        shown = ["1 | select = [", "  |           ^"] if text == "select = [\n" else []
        assert done.stdout == "" and done.stderr.splitlines()[1:] == shown, done.stderr
        assert done.stderr.startswith(f"error: {path}: ")
    assert repository.run("plan", ".", code=2).stderr.startswith(f"error: {path}: ")
    # Nobody asks for it where it does not hold, or where it is excluded.
    assert found(repository, "a", "top.py") == {key: EACH[key] for key in EACH if key[0] != "b"}
    assert "a/old.py" in found(repository, "--extend-exclude", "b")
    assert (repository.path / "a/old.py").read_text() == OLD


def test_a_configuration_extends_another(repository: Project) -> None:
    repository.write(
        "torchmigrate.toml",
        f'ignore = ["{RFFT}"]\nextend-exclude = ["a/deep/**", "gen"]\n[per-file-ignores]\n"b/old.py" = ["TM2"]\n',
    )
    repository.write("a/pyproject.toml", '[tool.torchmigrate]\nextend = "../torchmigrate.toml"\n')
    repository.write("b/torchmigrate.toml", f'extend = "../torchmigrate.toml"\nextend-select = ["{RFFT}"]\n')
    assert found(repository) == {"a/old.py": [SCALER], "b/old.py": [RFFT], "top.py": [SCALER]}
    repository.write("torchmigrate.toml", 'extend = "b/torchmigrate.toml"\n')
    done = repository.run("check", "b", code=2)
    assert done.stderr.endswith("extend: the files extend each other in a cycle\n")
    repository.write("b/torchmigrate.toml", 'extend = "/etc/hostname"\n')
    done = repository.run("check", "b", code=2)
    assert "'/etc/hostname' is outside of the project; pass this file with `--config`" in done.stderr


def test_a_plan_has_the_configuration_of_each_file(repository: Project) -> None:
    plan = json.loads(repository.run("plan", ".", "--output-format", "json", code=0).stdout)
    codes = {(place["path"], place["code"]) for place in plan["places"]}
    assert ("a/old.py", SCALER) in codes and ("a/old.py", RFFT) not in codes
    assert ("b/old.py", RFFT) in codes and ("b/old.py", SCALER) not in codes


# ---- the end of a run ---------------------------------------------------------------------------------


def end(project: Project, *arguments: str, **options: Any) -> list[str]:
    """What is said after the counts of findings."""
    lines = project.run("check", *arguments, **options).stderr.splitlines()
    return [line for line in lines if not line.startswith(("Found ", "Fixed ", "Would fix ", "error: "))]


def test_target_and_minimum_with_where_they_are_from(repository: Project) -> None:
    assert end(repository, "top.py") == [f"Checked for torch 2.15. {UNKNOWN}"]
    assert end(repository, "b/old.py") == ["Target torch 2.15, minimum torch 1.7 (b/torchmigrate.toml)."]
    assert end(repository, "b/old.py", "--minimum", "2.4") == [
        "Target torch 2.15, minimum torch 2.4 (--minimum)."
    ]
    assert end(repository) == [
        "Target torch 2.9 (2 files), torch 2.15 (3 files); minimum torch 1.7 (b/torchmigrate.toml; 2 files),"
        " unknown (3 files, with fixes that are only safe for the target)."
    ]
    assert end(repository, "top.py", "--quiet") == []


def test_the_file_that_requires_the_minimum(repository: Project) -> None:
    repository.write("a/deep/requirements.txt", "torch>=2.1\n")
    assert end(repository, "a/deep/er/old.py")[0] == (
        "Target torch 2.9, minimum torch 2.1 (a/deep/requirements.txt)."
    )


def test_fixes_that_a_newer_minimum_would_make_safe(repository: Project) -> None:
    more = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n" + "torch.ger(a, b)\n" * 3
    repository.write("top.py", more)
    assert end(repository, "top.py", "--minimum", "1.5")[1:] == [
        "3 more fixes would be safe with `--minimum 1.7`, 4 with `--minimum 2.3`."
    ]
    assert end(repository, "top.py", "--minimum", "2.2")[1:] == [
        "1 more fix would be safe with `--minimum 2.3`."
    ]
    assert end(repository, "top.py", "--minimum", "2.2", "--unsafe-fixes")[1:] == []


def test_the_torch_that_fixed_code_needs(repository: Project) -> None:
    assert end(repository, "top.py", "--diff")[1:] == ["The fixed file would need torch 2.3 or newer."]
    assert end(repository, "top.py", "--diff", "--minimum", "2.0", "--unsafe-fixes")[1:] == [
        "The fixed file would need torch 2.3 or newer, which is newer than the minimum."
    ]
    # Not by the fix, but by what else is in the file.
    repository.write("top.py", "import torch\n\ntorch.ger(a, b)\ntorch.func.vmap(f)\n")
    assert end(repository, "top.py", "a/old.py", "--fix")[-1:] == ["The fixed files need torch 2.3 or newer."]
    repository.write("top.py", "import torch\n\ntorch.ger(a, b)\ntorch.func.vmap(f)\n")
    assert end(repository, "top.py", "--fix")[-1:] == ["The fixed file needs torch 2.0 or newer."]


# ---- what could not be done, for programs -------------------------------------------------------------


def test_what_could_not_be_done_is_an_entry(repository: Project) -> None:
    repository.write("bad.py", "import torch\nx = (\n")
    repository.write("two.py", "import torch\nprint torch.rfft(x, 4)\n")
    repository.write("z.py", b"# coding: klingon\nimport torch\n")
    done = repository.run(
        "check", "top.py", "bad.py", "two.py", "z.py", "gone.py", "--output-format", "json", code=2
    )
    items = [item for item in json.loads(done.stdout) if not item["code"].startswith("TM")]
    told = [(Path(item["filename"]).name, item["code"], item["location"]["row"]) for item in items]
    assert told == [
        ("bad.py", "invalid-syntax", 2),
        ("gone.py", "io-error", 1),
        ("two.py", "invalid-syntax", 2),
        ("z.py", "io-error", 1),
    ]
    assert items[0]["message"] == "syntax error: '(' was never closed"
    assert {item["severity"] for item in items} == {"error"} and {item["fix"] for item in items} == {None}
    assert len({tuple(item) for item in json.loads(done.stdout)}) == 1  # the same fields as a finding
    assert done.stderr.startswith("error: bad.py:2: syntax error")
    done = repository.run("check", "bad.py", "two.py", "top.py", "--statistics", code=2)
    assert "2\tinvalid-syntax\t[ ]\tinvalid-syntax\n" in done.stdout
    done = repository.run("check", "bad.py", "-e", "--statistics", "--output-format", "json", code=2)
    assert json.loads(done.stdout)[0]["count"] == 1
    done = repository.run("check", "-", "--output-format", "json", stdin="x = (\n", code=2)
    assert [item["code"] for item in json.loads(done.stdout)] == ["invalid-syntax"]


def test_paths_for_github_are_those_of_the_repository(
    repository: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("b/bad.py", "import torch\nx = (\n")
    command = [sys.executable, "-m", "torchmigrate", "check", "--output-format", "github"]
    for here, path in (("", "b"), ("b", "."), ("a/deep", "../../b")):
        done = subprocess.run(
            [*command, path], cwd=repository.path / here, capture_output=True, text=True, check=False
        )
        files = [line.partition("file=")[2].partition(",")[0] for line in done.stdout.splitlines()]
        assert files == ["b/bad.py", "b/gen/old.py", "b/old.py"]
        bad = done.stdout.splitlines()[0]
        assert bad.startswith("::error file=b/bad.py,line=2,title=torchmigrate (invalid-syntax)::")


def test_paths_for_github_without_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path, monkeypatch)
    project.write("src/old.py", OLD)
    done = project.run("check", "src", "--output-format", "github", GITHUB_WORKSPACE=str(tmp_path / "src"))
    assert done.stdout.startswith("::warning file=old.py,line=3")
