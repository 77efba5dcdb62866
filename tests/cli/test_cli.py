"""The command line, from options to exit codes, on a small project."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest
from harness.launcher import launch
from harness.program import heed_interrupts
from harness.project import Project, environment

import torchmigrate
from torchmigrate.report.console import Console

# Safe fix (warning); report only, since there never was such a transform (error); safe fix (info).
OLD = dedent("""\
    import torch
    import torch.nn as nn

    scaler = torch.cuda.amp.GradScaler()
    y = torch.rfft(x, 4)
    z = nn.UpsamplingNearest2d(2)(y)
""")
FIXED = OLD.replace("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler("cuda")').replace(
    "nn.UpsamplingNearest2d(2)", 'nn.Upsample(2, mode="nearest")'
)
FIXTURES = Path(__file__).parents[1] / "fixtures"
CLEAN = "import torch\n\nx = torch.linalg.eigh(y)\n"
# The end of every run without a minimum; and of one that fixed what is above.
UNKNOWN = (
    "Checked for torch 2.15. No minimum found, so fixes may not work on older releases;"
    " set `minimum` in pyproject.toml."
)
NEEDS = "The fixed file needs torch 2.3 or newer."
SCALER, RFFT, UPSAMPLING = "TM202", "TM151", "TM495"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path, monkeypatch)
    made.write("old.py", OLD)
    made.write("pkg/clean.py", CLEAN)
    return made


def err_lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    return done.stderr.splitlines()


# ---- check --------------------------------------------------------------------------------------------


def test_findings_on_stdout_and_the_summary_on_stderr(project: Project) -> None:
    done = project.run("check", "--output-format", "concise", code=1)
    assert [line.split(" ")[:2] for line in done.stdout.splitlines()] == [
        ["old.py:4:10:", SCALER],
        ["old.py:5:5:", RFFT],
        ["old.py:6:5:", UPSAMPLING],
    ]
    found = "Found 3 findings (1 error, 1 warning, 1 info). 2 fixable with `--fix`."
    assert err_lines(done) == [found, UNKNOWN]


def test_full_is_the_default(project: Project) -> None:
    done = project.run("check", "old.py", code=1)
    assert done.stdout.startswith(f"old.py:4:10: {SCALER} [*] `torch.cuda.amp.GradScaler` is deprecated")
    assert (
        "4 | scaler = torch.cuda.amp.GradScaler()\n  |          ^^^^^^^^^^^^^^^^^^^^^^^^^ warning\n"
        in done.stdout
    )


def test_clean(project: Project) -> None:
    done = project.run("check", "pkg", code=0)
    assert (done.stdout, done.stderr) == ("", f"All checks passed!\n{UNKNOWN}\n")


def test_json(project: Project) -> None:
    items = json.loads(project.run("check", "--output-format", "json", code=1).stdout)
    assert [(item["code"], item["severity"], item["location"]) for item in items] == [
        (SCALER, "warning", {"row": 4, "column": 10}),
        (RFFT, "error", {"row": 5, "column": 5}),
        (UPSAMPLING, "info", {"row": 6, "column": 5}),
    ]
    assert [item["symbol"] for item in items][:2] == ["torch.cuda.amp.GradScaler", "torch.rfft"]
    assert {item["filename"] for item in items} == {str(project.path / "old.py")}
    assert items[1]["fix"] is None and items[0]["fix"]["applicability"] == "safe"
    assert json.loads(project.run("check", "--output-format", "json", "pkg", code=0).stdout) == []


def test_github(project: Project) -> None:
    lines = project.run("check", "--output-format", "github", code=1).stdout.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::warning", "::error", "::notice"]
    assert lines[1].startswith("::error file=old.py,line=5,col=5,endLine=5,endColumn=15,title=torchmigrate")


def test_exit_zero(project: Project) -> None:
    assert project.run("check", "--exit-zero", code=0).stdout


def test_statistics(project: Project) -> None:
    project.write("more.py", "import torch\ntorch.rfft(x, 5)\n")
    done = project.run("check", "--statistics", code=1)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(line[0], line[1], line[2]) for line in lines] == [
        ("2", RFFT, "[ ]"),
        ("1", SCALER, "[*]"),
        ("1", UPSAMPLING, "[*]"),
    ]
    table = json.loads(project.run("check", "--statistics", "--output-format", "json", code=1).stdout)
    assert (table[0]["code"], table[0]["count"], table[0]["fixable"]) == (RFFT, 2, 0)


def test_quiet(project: Project) -> None:
    done = project.run("check", "--quiet", "--output-format", "concise", code=1)
    assert len(done.stdout.splitlines()) == 3 and done.stderr == ""
    assert project.run("check", "-q", "missing", code=2).stderr.startswith("error: missing: ")


def test_results_do_not_depend_on_jobs_or_hash_seed(project: Project) -> None:
    for number in range(40):
        project.write(f"many/{number % 7}/m{number}.py", OLD)
    outputs = {
        launch(
            project.path, "check", "--output-format", "concise", "--jobs", jobs, PYTHONHASHSEED=seed
        ).stdout
        for jobs, seed in (("1", "0"), ("2", "1"), ("3", "2"))
    }
    assert len(outputs) == 1
    paths = [line.partition(":")[0] for line in outputs.pop().splitlines()]
    assert paths == sorted(paths, key=lambda path: Path(path).parts) and len(paths) == 123


def test_what_is_said_of_fixes_does_not_depend_on_the_hash_seed(project: Project) -> None:
    for before in FIXTURES.glob("*/before.py"):
        project.write(f"many/{before.parent.name}.py", before.read_bytes())
    # One fix that imports three names at one place.
    project.write(
        "many/norms.py",
        "import torch\n"
        "from torch.nn.utils import remove_weight_norm, spectral_norm, weight_norm\n\n"
        "layer = weight_norm(spectral_norm(torch.nn.Linear(2, 2)))\n"
        "remove_weight_norm(layer)\n",
    )
    outputs: dict[str, set[str]] = {}
    for (
        seed
    ) in "0123":  # each checks the files once, and takes the findings for the other formats from its cache
        cache = ("--cache-dir", project.path / f"cache-{seed}")
        for output_format in ("full", "json", "sarif", "rdjson", "gitlab"):
            arguments = ("check", "--verbose", "--output-format", output_format, *cache, "many")
            done = launch(project.path, *arguments, PYTHONHASHSEED=seed)
            outputs.setdefault(output_format, set()).add(done.stdout)
            assert ("cache: 0 of " in done.stderr) == (output_format == "full")
    assert all(len(found) == 1 and len(found.pop()) > 10_000 for found in outputs.values())


def test_paths_are_shown_relative_to_the_current_directory(project: Project) -> None:
    for argument in ("old.py", "./old.py", project.path, project.path / "pkg/../old.py"):
        done = project.run("check", "--output-format", "concise", argument, code=1)
        assert done.stdout.startswith("old.py:4:10:")


def test_a_directory_without_python_files_is_said_to_be_one(project: Project) -> None:
    project.write("docs/a.txt", "")
    done = project.run("check", "docs", code=0)
    assert err_lines(done)[0] == "warning: no Python files found under the given paths"


# ---- fixes --------------------------------------------------------------------------------------------


def test_fix(project: Project) -> None:
    done = project.run("check", "--fix", "--output-format", "concise", code=1)
    assert (project.path / "old.py").read_text() == FIXED
    assert done.stdout.startswith(f"old.py:{FIXED.splitlines().index('y = torch.rfft(x, 4)') + 1}:5: {RFFT} ")
    assert err_lines(done) == ["Fixed 2 findings in 1 file.", "Found 1 finding (1 error).", UNKNOWN, NEEDS]
    again = project.run("check", "--fix", "--output-format", "concise", code=1)
    assert (again.stdout, err_lines(again)) == (done.stdout, ["Found 1 finding (1 error).", UNKNOWN])


def test_nothing_left_after_fix(project: Project) -> None:
    done = project.run("check", "--fix", "--ignore", RFFT, code=0)
    assert err_lines(done) == ["Fixed 2 findings in 1 file.", "No findings left.", UNKNOWN, NEEDS]
    project.write("old.py", OLD)
    project.run("check", "--fix", "--ignore", RFFT, "--exit-non-zero-on-fix", code=1)
    project.run("check", "--fix", "--ignore", RFFT, "--exit-non-zero-on-fix", code=0)


def test_show_fixes(project: Project) -> None:
    done = project.run("check", "--fix", "--show-fixes", "--exit-zero", code=0)
    assert err_lines(done)[:4] == [
        "Fixed 2 findings in 1 file.",
        "- old.py:",
        f"    1 × {SCALER} (cuda-amp-grad-scaler)",
        f"    1 × {UPSAMPLING} (upsampling-nearest-2d)",
    ]


def test_fix_keeps_every_other_byte(project: Project) -> None:
    text = "# -*- coding: latin-1 -*-\r\n# caf\xe9\r\nimport torch\r\ns = torch.cuda.amp.GradScaler()\t# \xa7"
    path = project.write("latin.py", text.encode("latin-1"))
    path.chmod(0o755)
    project.run("check", "--fix", "latin.py", code=0)
    expected = text.replace("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler("cuda")')
    assert path.read_bytes() == expected.encode("latin-1")
    assert path.stat().st_mode & 0o777 == 0o755


def test_diff(project: Project) -> None:
    done = project.run("check", "--diff", code=1)
    assert (project.path / "old.py").read_text() == OLD
    assert done.stdout.startswith("--- a/old.py\n+++ b/old.py\n@@ ")
    assert "\n-scaler = torch.cuda.amp.GradScaler()\n" in done.stdout
    would = NEEDS.replace("needs", "would need")
    assert err_lines(done) == ["Would fix 2 findings in 1 file, and leave 1 (1 error).", UNKNOWN, would]
    subprocess.run(["git", "apply"], input=done.stdout.encode(), cwd=project.path, check=True)
    assert (project.path / "old.py").read_text() == FIXED
    done = project.run("check", "--diff", code=0)
    assert (done.stdout, err_lines(done)) == ("", ["Would fix nothing, and leave 1 (1 error).", UNKNOWN])


def test_diff_can_be_applied_whatever_the_encoding(project: Project) -> None:
    body = "import torch\r\ns = torch.cuda.amp.GradScaler()  # é\r\n"
    project.write("bom.py", "\ufeff".encode() + body.encode())
    project.write("latin.py", b"# coding: latin-1\r\n" + body.encode("latin-1"))
    done = project.run_bytes("check", "--diff", "bom.py", "latin.py")
    assert done.returncode == 1
    subprocess.run(["git", "apply"], input=done.stdout, cwd=project.path, check=True)
    fixed = body.replace("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler("cuda")')
    assert (project.path / "bom.py").read_bytes() == "\ufeff".encode() + fixed.encode()
    assert (project.path / "latin.py").read_bytes() == b"# coding: latin-1\r\n" + fixed.encode("latin-1")


UNSAFE = "import torch\nx = torch.eig(A)[0]\n"


def test_unsafe_fixes(project: Project) -> None:
    path = project.write("unsafe.py", UNSAFE)
    done = project.run("check", "--fix", "unsafe.py", code=1)
    assert path.read_text() == UNSAFE
    assert err_lines(done) == [
        "Found 1 finding (1 error). 1 fixable with `--fix --unsafe-fixes`.",
        UNKNOWN,
    ]
    assert "[*]" in project.run("check", "--unsafe-fixes", "unsafe.py", code=1).stdout
    project.run("check", "--fix", "--unsafe-fixes", "unsafe.py", code=0)
    assert "torch.linalg.eigvals(A)" in path.read_text()


def test_unsafe_fixes_in_the_configuration(project: Project) -> None:
    path = project.write("unsafe.py", UNSAFE)
    project.write("torchmigrate.toml", "unsafe-fixes = true\n")
    project.run("check", "--fix", "--no-unsafe-fixes", "unsafe.py", code=1)
    assert path.read_text() == UNSAFE
    project.run("check", "--fix", "unsafe.py", code=0)
    assert path.read_text() != UNSAFE


def test_extend_safe_and_unsafe_fixes(project: Project) -> None:
    project.write("unsafe.py", UNSAFE)
    project.write("torchmigrate.toml", f'extend-safe-fixes = ["eig"]\nextend-unsafe-fixes = ["{SCALER}"]\n')
    project.run("check", "--fix", "--quiet", "--exit-zero", code=0)
    assert "eigvals" in (project.path / "unsafe.py").read_text()
    assert "torch.cuda.amp" in (project.path / "old.py").read_text()


def test_a_read_only_file_is_reported_as_it_is(project: Project) -> None:
    path = project.path / "old.py"
    path.chmod(0o444)
    done = project.run("check", "--fix", "--output-format", "concise", code=2)
    assert path.read_text() == OLD
    assert len(done.stdout.splitlines()) == 3
    assert err_lines(done)[0] == "error: old.py: cannot write: the file is read-only"


# ---- stdin --------------------------------------------------------------------------------------------


def test_stdin(project: Project) -> None:
    done = project.run("check", "-", "--output-format", "concise", stdin=OLD, code=1)
    assert done.stdout.startswith(f"<stdin>:4:10: {SCALER}")
    done = project.run(
        "check", "-", "--stdin-filename", "pkg/new.py", "--output-format", "json", stdin=OLD, code=1
    )
    assert json.loads(done.stdout)[0]["filename"] == str(project.path / "pkg/new.py")
    project.run("check", "-", stdin=CLEAN, code=0)


def test_stdin_fixed(project: Project) -> None:
    done = project.run("check", "-", "--fix", "--output-format", "concise", stdin=OLD, code=1)
    assert done.stdout == FIXED
    assert err_lines(done)[0].startswith("<stdin>:") and RFFT in err_lines(done)[0]
    assert err_lines(done)[1:] == [
        "Fixed 2 findings in 1 file.",
        "Found 1 finding (1 error).",
        UNKNOWN,
        NEEDS,
    ]
    assert project.run("check", "-", "--fix", stdin=CLEAN, code=0).stdout == CLEAN


def test_stdin_comes_back_byte_for_byte(project: Project) -> None:
    for data in (b"\xef\xbb\xbfx = 1\r\n", b"# coding: latin-1\r\n'\xe9'", b"print 'x'\n", b"\xff\n", b""):
        assert project.run_bytes("check", "-", "--fix", stdin=data).stdout == data


def test_stdin_diff(project: Project) -> None:
    done = project.run("check", "-", "--diff", "--stdin-filename", "a.py", stdin=OLD, code=1)
    assert done.stdout.startswith("--- a/a.py\n+++ b/a.py\n")


def test_stdin_of_an_excluded_file(project: Project) -> None:
    project.write("torchmigrate.toml", 'extend-exclude = ["gen"]\n')
    arguments = ("check", "-", "--stdin-filename", "gen/a.py")
    project.run(*arguments, stdin=OLD, code=1)
    project.run(*arguments, "--force-exclude", stdin=OLD, code=0)
    assert project.run(*arguments, "--force-exclude", "--fix", stdin=OLD, code=0).stdout == OLD


def test_stdin_that_is_not_python(project: Project) -> None:
    done = project.run("check", "-", stdin="import torch\ntorch.rfft(\n", code=2)
    assert err_lines(done)[0].startswith("error: <stdin>:2: syntax error")
    assert "NUL" in project.run("check", "-", stdin="import torch\0", code=2).stderr


# ---- selection ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--select", SCALER], [SCALER]),
        (["--select", f"{SCALER},{RFFT}"], [SCALER, RFFT]),
        (["--select", SCALER, "--select", "upsampling-nearest-2d"], [SCALER, UPSAMPLING]),
        (["--select", "TM2, TM4"], [SCALER, UPSAMPLING]),
        (["--ignore", "TM2"], [RFFT, UPSAMPLING]),
        (["--ignore", SCALER, "--extend-ignore", UPSAMPLING], [RFFT]),
        (["--select", "TM2", "--extend-select", "TM15"], [SCALER, RFFT]),
        (["--select", "ALL"], [SCALER, RFFT, UPSAMPLING]),
    ],
)
def test_selection(project: Project, arguments: list[str], expected: list[str]) -> None:
    assert project.codes("old.py", *arguments) == expected


def test_unknown_selector(project: Project) -> None:
    done = project.run("check", "--select", "TM20,cuda-amp-autocats", code=2)
    assert done.stdout == ""
    assert (
        done.stderr
        == "error: --select: unknown rule `cuda-amp-autocats`; did you mean `cuda-amp-autocast`?\n"
    )
    done = project.run("check", "--extend-ignore", "X1", code=2)
    assert done.stderr == "error: --ignore: unknown rule `X1`\n"


def test_suppressed(project: Project) -> None:
    lines = OLD.replace("GradScaler()", f"GradScaler()  # torchmigrate: ignore[{SCALER}] old GPU")
    project.write("old.py", lines.replace("x, 4)", f"x, 4)  # noqa: {RFFT}"))
    assert project.codes("old.py") == [UPSAMPLING]
    assert project.codes("old.py", "--target", "1.5") == [UPSAMPLING]


def test_unused_suppression_is_found_and_removed(project: Project) -> None:
    path = project.write("a.py", f"import torch\ny = torch.outer(a, b)  # torchmigrate: ignore[{RFFT}]\n")
    assert project.codes("a.py") == ["TM011"]
    project.run("check", "--fix", "a.py", code=0)
    assert path.read_text() == "import torch\ny = torch.outer(a, b)\n"


def test_invalid_suppression(project: Project) -> None:
    project.write("a.py", "y = f()  # torchmigrate: ignore\n")
    done = project.run("check", "a.py", code=1)
    assert "a.py:1:10: TM010 `ignore` without a code suppresses nothing" in done.stdout


# ---- versions -----------------------------------------------------------------------------------------


def test_target(project: Project) -> None:
    assert project.codes("old.py", "--target", "2.0") == [RFFT, UPSAMPLING]
    assert project.codes("old.py", "--target", "1.5") == [UPSAMPLING]


def test_minimum_makes_fixes_unsafe(project: Project) -> None:
    done = project.run("check", "old.py", "--minimum", "2.0", "--select", SCALER, code=1)
    assert "unsafe fix: " in done.stdout and "2.3" in done.stdout
    assert (
        "  = fix: " in project.run("check", "old.py", "--minimum", "2.3", "--select", SCALER, code=1).stdout
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "new"], "Invalid value for '--target': must be a release of torch such as"),
        (["--minimum", ">=1.8"], "Invalid value for '--minimum': must be a release of torch such as"),
        (["--minimum", "2.1", "--target", "1.9"], "is newer than the target"),
    ],
)
def test_bad_versions(project: Project, arguments: list[str], message: str) -> None:
    assert message in project.run("check", *arguments, code=2).stderr


def test_minimum_from_the_project(project: Project) -> None:
    project.write("requirements.txt", "numpy\ntorch>=1.8,<3\n")
    done = project.run("check", "--verbose", "--select", SCALER, code=1)
    assert f"minimum: torch 1.8, from {project.path / 'requirements.txt'}" in done.stderr
    assert "unsafe fix: " in done.stdout
    done = project.run("check", "--verbose", "--isolated", "--select", SCALER, code=1)
    assert "minimum: unknown" in done.stderr and "  = fix: " in done.stdout
    done = project.run("check", "--verbose", "--target", "1.7", code=1)
    assert ", which is newer than the target" in done.stderr


# ---- files --------------------------------------------------------------------------------------------


def test_excludes(project: Project) -> None:
    project.write("vendor/a.py", OLD)
    project.write(".venv/a.py", OLD)
    count = len(project.codes("--select", RFFT))
    assert count == 2
    assert len(project.codes("--select", RFFT, "--extend-exclude", "vendor")) == 1
    assert len(project.codes("--select", RFFT, "--extend-exclude", "vendor/*.py,old.py")) == 0
    assert len(project.codes("--select", RFFT, "--exclude", "vendor")) == 2
    assert len(project.codes("--select", RFFT, "--extend-exclude", "vendor", "vendor/a.py")) == 1
    assert (
        len(project.codes("--select", RFFT, "--extend-exclude", "vendor", "--force-exclude", "vendor/a.py"))
        == 0
    )


def test_excludes_are_relative_to_where_they_are_written(project: Project) -> None:
    project.write("sub/torchmigrate.toml", 'extend-exclude = ["gen/*.py"]\n')
    project.write("sub/gen/a.py", OLD)
    project.write("sub/b/a.py", OLD)
    assert len(project.codes("--select", RFFT, "sub")) == 1
    assert len(project.codes("--select", RFFT, "sub", "--extend-exclude", "sub/b/*.py")) == 0


def test_gitignore(project: Project) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project.path, check=True)
    project.write(".gitignore", "old.py\n")
    assert project.codes() == []
    assert project.codes("--no-respect-gitignore") == [SCALER, RFFT, UPSAMPLING]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("py2.py", b"import torch\nprint torch.rfft(x, 4)\n", "py2.py:2: Python 2 code (print statement)"),
        ("bad.py", b"import torch\ntorch.rfft(\n", "bad.py:2: syntax error: "),
        ("enc.py", b"# coding: klingon\nimport torch\n", "enc.py:1: unknown encoding: klingon"),
        ("nul.py", b"import torch\n\0", "nul.py:2: contains NUL bytes"),
        ("bin.py", bytes(range(128, 256)), "bin.py:1: not utf-8 text"),
        ("async.py", b"import torch\nasync = torch.rfft(x, 4)\n", "`async` is a keyword since Python 3.7"),
    ],
)
def test_bad_files_do_not_hide_the_others(project: Project, name: str, data: bytes, message: str) -> None:
    project.write(name, data)
    done = project.run("check", "--output-format", "concise", code=2)
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr.startswith("error: ") and message in done.stderr.splitlines()[0]
    assert project.run("check", "--exit-zero", code=2).returncode == 2


def test_missing_path(project: Project) -> None:
    done = project.run("check", "nowhere.py", code=2)
    assert done.stderr.startswith("error: nowhere.py: no such file or directory\n")


# ---- configuration ------------------------------------------------------------------------------------


def test_configuration_is_found_and_can_be_chosen(project: Project) -> None:
    project.write("pyproject.toml", f'[tool.torchmigrate]\nselect = ["{RFFT}"]\n')
    chosen = project.write("elsewhere/mine.toml", f'select = ["{UPSAMPLING}"]\n')
    assert project.codes() == [RFFT]
    assert project.codes("--config", "elsewhere/mine.toml") == [UPSAMPLING]
    assert project.codes("--isolated") == [SCALER, RFFT, UPSAMPLING]
    assert project.codes("--select", SCALER) == [SCALER]
    done = project.run("check", "--verbose", "--config", chosen, code=1)
    assert f"configuration: {chosen}" in done.stderr


def test_configuration_of_another_directory(project: Project) -> None:
    project.write("a/pyproject.toml", f'[tool.torchmigrate]\nignore = ["{RFFT}"]\n')
    project.write("a/b/old.py", OLD)
    assert project.codes("a/b") == [SCALER, UPSAMPLING]
    assert project.codes("a/b", "old.py") == [SCALER, UPSAMPLING, SCALER, RFFT, UPSAMPLING]


def test_per_file_ignores(project: Project) -> None:
    project.write("torchmigrate.toml", f'[per-file-ignores]\n"pkg/*" = ["{RFFT}", "TM4"]\n')
    project.write("pkg/old.py", OLD)
    assert project.codes("pkg") == [SCALER]
    assert project.codes("old.py") == [SCALER, RFFT, UPSAMPLING]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.torchmigrate]\ntargt = 1\n",
            "[tool.torchmigrate] targt: unknown key; did you mean `target`?",
        ),
        ("[tool.torchmigrate]\ntarget = 2.1\n", "[tool.torchmigrate] target: must be quoted"),
        ("[tool.torchmigrate]\nselect = ['X']\n", "[tool.torchmigrate] select: unknown rule `X`"),
        ("[tool.torchmigrate]\nrules = ['none']\n", "none: is not a directory with rules"),
        ("[tool.torchmigrate\n", "not TOML: "),
    ],
)
def test_bad_configuration(project: Project, text: str, message: str) -> None:
    path = project.write("pyproject.toml", text)
    done = project.run("check", code=2)
    lines = done.stderr.splitlines()
    assert done.stdout == "" and (
        len(lines) == 1 or [line.strip() for line in lines[2:]] == ["| " + " " * 18 + "^"]
    )
    assert done.stderr.startswith("error: ") and message in done.stderr
    assert str(path) in done.stderr or "is not a directory" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense"], "No such option"),
        (["--output-format", "xml"], "is not one of"),
        (["--jobs", "0"], "0 is not in the range x>=1"),
        (["-", "old.py"], "`-` (stdin) cannot be combined with other paths."),
        (["--stdin-filename", "a.py", "old.py"], "--stdin-filename requires `-`"),
        (["--config", "none.toml"], "does not exist"),
    ],
)
def test_bad_usage(project: Project, arguments: list[str], message: str) -> None:
    assert message in project.run("check", *arguments, code=2).stderr


@pytest.mark.parametrize("version", ["v2.13", "2.13.0", "2.13.0+cu126", "2.13.0a0+git1"])
def test_a_release_as_people_write_it(project: Project, version: str) -> None:
    done = project.run("check", "--target", version, "pkg", code=0)
    assert "Checked for torch 2.13. " in done.stderr


def test_a_release_that_nobody_knows(project: Project) -> None:
    done = project.run("check", "--target", "9.9", code=2)
    assert (
        "torch 9.9 is unknown; the newest release that this version of torchmigrate knows is 2.15"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("half.py", "x = (\n", "half.py:1: syntax error: '(' was never closed"),
        (
            "d.txt",
            "Title\nimport torch\nsome text\n",
            "d.txt:3: not a Python file (its name ends with `.txt`)",
        ),
    ],
)
def test_what_is_no_code_is_said_to_be_none(project: Project, name: str, text: str, message: str) -> None:
    project.write(name, text)
    assert project.run("check", name, code=2).stderr.splitlines()[0] == f"error: {message}"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python has that syntax")
def test_syntax_of_a_newer_python(project: Project) -> None:
    project.write("new.py", "import torch\ntype X = int\n")
    done = project.run("check", "new.py", code=2)
    assert "new.py:2: needs Python 3.12, but torchmigrate runs on Python 3." in done.stderr


def test_the_beginning_of_codes_in_a_suppression(project: Project) -> None:
    project.write("part.py", "import torch\ny = torch.ger(a, b)  # torchmigrate: ignore[TM1]\n")
    done = project.run("check", "part.py", code=1)
    assert "`TM1` is a prefix, but a suppression needs whole codes" in done.stdout


def test_flake8_noqa_is_for_the_whole_file(project: Project) -> None:
    project.write("quiet.py", f"# flake8: noqa\n{OLD}")
    project.run("check", "quiet.py", code=0)
    project.write("quiet.py", f"# flake8: noqa: {RFFT}\n{OLD}")
    assert project.codes("quiet.py") == [SCALER, UPSAMPLING]


# ---- rules --------------------------------------------------------------------------------------------

RULE = """\
- code: ACM001
  name: acme-old
  summary: "`{name}` is ours no longer; use `{new}`"
  why: We moved.
  library: torch
  deprecated: "1.0"
  symbols: {torch.ger: torch.outer}
  references: [https://example.com/]
  examples:
    - before: |
        import torch
        torch.ger(a, b)
      after: |
        import torch
        torch.outer(a, b)
      no_proof: not a real rule
    - report_only: |
        from torch import *
        ger(a, b)
    - clean: |
        from mylib import torch
        torch.ger(a, b)
"""


def test_rules_of_a_user(project: Project) -> None:
    project.write("lint/acme.yaml", RULE)
    project.write("torchmigrate.toml", 'rules = ["lint"]\nselect = ["ACM"]\n')
    project.write("a.py", "import torch\ntorch.ger(a, b)\n")
    assert project.codes("a.py") == ["ACM001"]
    assert "acme-old" in project.run("explain", "ACM001", code=0).stdout
    assert "ACM001  acme-old" in project.run("rules", code=0).stdout
    assert "ACM001" not in project.run("rules", "--isolated", code=0).stdout


def test_test_rules(project: Project) -> None:
    path = project.write("lint/acme.yaml", RULE)
    done = project.run("test-rules", "lint", code=0)
    assert (done.stdout, done.stderr) == ("", "3 examples of 1 rule: all hold.\n")
    assert project.run("test-rules", path, code=0).stderr == done.stderr
    wrong = RULE.replace("torch.outer(a, b)\n      no", "torch.outer(b, a)\n      no")
    wrong = wrong.replace("from torch import *\n        ger", "import torch\n        torch.ger")
    wrong = wrong.replace("from mylib import torch", "import torch")
    project.write("lint/acme.yaml", wrong)
    done = project.run("test-rules", "lint", code=1)
    assert [line.split(": ")[:3] for line in done.stdout.splitlines() if "ACM001: " in line] == [
        [f"{Path('lint/acme.yaml')}:10", "ACM001", "fix"],
        [f"{Path('lint/acme.yaml')}:17", "ACM001", "findings"],
        [f"{Path('lint/acme.yaml')}:20", "ACM001", "findings"],
    ]
    assert "    -torch.outer(b, a)\n    +torch.outer(a, b)\n" in done.stdout
    assert done.stderr == "3 examples of 1 rule: 3 failed.\n"


def test_test_rules_that_do_not_load(project: Project) -> None:
    project.write("lint/acme.yaml", RULE.replace("deprecated", "deprecatd"))
    done = project.run("test-rules", "lint", code=2)
    assert f"error: {Path('lint/acme.yaml')}:6: unknown key `deprecatd`" in done.stderr
    assert "does not exist" in project.run("test-rules", "nowhere", code=2).stderr
    project.run("test-rules", "pkg", code=2)


@pytest.mark.parametrize("key", [SCALER, SCALER.lower(), "cuda-amp-grad-scaler"])
def test_explain(project: Project, key: str) -> None:
    text = project.run("explain", key, code=0).stdout
    assert text.startswith(f"{SCALER} cuda-amp-grad-scaler\n\n`torch.cuda.amp.GradScaler`")
    for part in (
        "\ntorch: deprecated in 2.4\n",
        "\nWhy\n",
        "\nWhat it finds\n  torch.cuda.amp.GradScaler\n",
        "\nWhat the fix does\n  condition  ",
        "\n  called, and `init_scale` is not   `torch.amp.GradScaler`, pass      safe (1)\n",
        "\n\n  (1) unsafe if the code must also run on a release before torch 2.3\n",
        "\nBefore\n",
        "\nAfter\n",
        "\nFound, but not fixed\n",
        "\nLinks\n  https://",
        f"\nHow to suppress it\n  # torchmigrate: ignore[{SCALER}] reason\n",
    ):
        assert part in text


def test_explain_the_rules_about_comments(project: Project) -> None:
    assert "\nBefore\n" in project.run("explain", "unused-suppression", code=0).stdout
    assert "\nFound, but not fixed\n" in project.run("explain", "TM010", code=0).stdout


@pytest.mark.parametrize("prefix", ["TM2", "tm20"])
def test_explain_lists_the_rules_of_a_prefix(project: Project, prefix: str) -> None:
    head, *rows = project.run("explain", prefix, code=0).stdout.splitlines()
    assert head.startswith("CODE")
    assert any(row.startswith("TM201  cuda-amp-autocast") for row in rows)
    assert all(row.startswith(prefix.upper()) for row in rows)


@pytest.mark.parametrize("key", ["symeig", "x.symeig", "torch.Tensor.symeig", "linalg-x.symeig"])
def test_explain_finds_a_method(project: Project, key: str) -> None:
    assert project.run("explain", key, code=0).stdout.startswith("TM100 symeig\n")


@pytest.mark.parametrize("key", ["torch.load", "TM600"])
def test_explain_finds_a_function(project: Project, key: str) -> None:
    assert project.run("explain", key, code=0).stdout.startswith("TM600 load-weights-only\n")


@pytest.mark.parametrize("key", ["MSELoss.size_average", "torch.nn.MSELoss.size_average"])
def test_explain_finds_a_parameter_of_a_function(project: Project, key: str) -> None:
    assert project.run("explain", key, code=0).stdout.startswith("TM400 loss-reduction\n")


@pytest.mark.parametrize(
    ("key", "codes"),
    [("size_average", ["TM400", "TM418"]), ("torch.cuda.amp.GradScaler", ["TM202", "TM205"])],
)
def test_explain_lists_rules_about_the_same(project: Project, key: str, codes: list[str]) -> None:
    head, *rows = project.run("explain", key, code=0).stdout.splitlines()
    assert head.startswith("CODE")
    assert [row.split()[0] for row in rows] == codes


def test_explain_ends_with_the_page_of_our_own_rules(project: Project) -> None:
    project.write("lint/acme.yaml", RULE)
    project.write("torchmigrate.toml", 'rules = ["lint"]\nselect = ["ACM"]\n')
    project.write("a.py", "import torch\ntorch.ger(a, b)\n")
    last = "\n\nDocumentation: https://torchmigrate.github.io/torchmigrate/rules/{}/\n"
    for code in (SCALER, "TM001", "TM011", "TM970"):
        assert project.run("explain", code, code=0).stdout.endswith(last.format(code))
    assert "Documentation" not in project.run("explain", "ACM001", code=0).stdout
    (found,) = json.loads(project.run("check", "a.py", "--output-format", "json", code=1).stdout)
    assert (found["url"], found["references"]) == ("https://example.com/", ["https://example.com/"])


@pytest.mark.parametrize("key", ["torch.cuda.amp.autocats", "model.no_such_method", "no_such_parameter"])
def test_explain_unknown_names(project: Project, key: str) -> None:
    assert project.run("explain", key, code=2).stderr.startswith(f"error: unknown rule `{key}`")


def test_explain_unknown(project: Project) -> None:
    done = project.run("explain", "cuda-amp-autocats", code=2)
    assert done.stderr == "error: unknown rule `cuda-amp-autocats`; did you mean `cuda-amp-autocast`?\n"


def test_every_rule_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    from torchmigrate.catalogue.builtin import RULES
    from torchmigrate.cli.explain import explanation
    from torchmigrate.cli.session import examples
    from torchmigrate.report.style import Style
    from torchmigrate.run.configurations import load_rules

    for rule in [*load_rules()[0].rules, *RULES]:
        text = explanation(rule, examples(rule), Style())
        assert rule.name in text and "{name}" not in text and "{new}" not in text


def test_rules(project: Project) -> None:
    lines = project.run("rules", code=0).stdout.splitlines()
    assert lines[0].split() == ["CODE", "NAME", "VERSIONS", "FIX", "SUMMARY"]
    codes = [line.split()[0] for line in lines[1:]]
    assert codes == sorted(codes) and {"TM010", "TM011", SCALER} <= set(codes)
    table = json.loads(project.run("rules", "--output-format", "json", code=0).stdout)
    assert [rule["code"] for rule in table] == codes
    (scaler,) = [rule for rule in table if rule["code"] == SCALER]
    assert (scaler["fix"], scaler["deprecated"], scaler["removed"]) == ("safe", "2.4", None)
    assert "torch.cuda.amp.GradScaler" in scaler["symbols"] and scaler["references"]


# ---- the rest -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--target", "2.6"], "On torch 2.6: error; the fix is safe."),
        (
            ["--target", "2.6", "--minimum", "1.7"],
            "On torch 2.6, with torch 1.7 as the minimum: error; the fix is unsafe.",
        ),
        (["--target", "1.9"], "On torch 1.9: warning; the fix is safe."),
        (["--target", "1.8"], "On torch 1.8: no finding yet."),
    ],
)
def test_explain_for_a_range(project: Project, arguments: list[str], expected: str) -> None:
    assert f"\n\n{expected}\n\n" in project.run("explain", "symeig", *arguments, code=0).stdout
    assert "On torch" not in project.run("explain", "TM011", *arguments, code=0).stdout


def test_rules_for_a_range(project: Project) -> None:
    def listed(*arguments: str) -> dict[str, tuple[str, str]]:
        done = project.run("rules", "--output-format", "json", *arguments, code=0)
        return {item["code"]: (item["severity"], item["fix"]) for item in json.loads(done.stdout)}

    assert listed("--target", "2.6")["TM100"] == ("error", "safe")
    assert listed("--target", "1.9", "--minimum", "1.7")["TM100"] == ("warning", "unsafe")
    old = listed("--target", "1.8")
    assert "TM100" not in old and old["TM011"] == (None, "safe") and old[RFFT][0] == "error"
    assert "  SEVERITY  FIX " in project.run("rules", "--target", "1.8", code=0).stdout.splitlines()[0]
    assert "--minimum requires --target." in project.run("rules", "--minimum", "1.8", code=2).stderr
    done = project.run("explain", "symeig", "--target", "1.8", "--minimum", "2.0", code=2)
    assert "the minimum, torch 2.0, is newer than the target, torch 1.8." in done.stderr


def test_version(project: Project) -> None:
    assert project.run("--version", code=0).stdout == f"torchmigrate {torchmigrate.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["check"], ["explain"], ["rules"], ["test-rules"]])
def test_help(project: Project, arguments: list[str]) -> None:
    text = project.run(*arguments, "--help", code=0).stdout
    assert text.startswith("Usage: torchmigrate")
    assert text == project.run(*arguments, "-h", code=0).stdout


ALL_OPTIONS = """
    --fix --no-fix --fix-only --ignore-noqa --show-files --show-settings --fixable --unfixable
    --diff --unsafe-fixes --no-unsafe-fixes --show-fixes --exit-zero --exit-non-zero-on-fix --jobs
    --select --extend-select --ignore --extend-ignore --target --minimum
    --exclude --extend-exclude --force-exclude --respect-gitignore --no-respect-gitignore --embedded --no-embedded
    --stdin-filename
    --output-format --statistics --quiet --verbose --color --config --isolated
"""


def test_help_of_check_has_every_option(project: Project) -> None:
    text = project.run("check", "--help", code=0).stdout
    for heading in ("Options", "Rule selection", "Versions", "File selection", "Output", "Configuration"):
        assert f"\n{heading}:\n" in text
    for option in ALL_OPTIONS.split():
        assert f"{option} " in text or f"{option}\n" in text


def test_no_command_shows_the_help(project: Project) -> None:
    done = project.run(code=2)
    assert (done.stdout + done.stderr).count("Usage: torchmigrate") == 1


def test_colour(project: Project) -> None:
    plain = project.run("check", code=1)
    assert "\x1b" not in plain.stdout + plain.stderr
    assert "\x1b[" in project.run("check", "--color", "always", code=1).stdout
    assert "\x1b[" in project.run("check", code=1, FORCE_COLOR="1").stdout
    assert "\x1b[" not in project.run("check", "--color", "never", code=1, FORCE_COLOR="1").stdout
    assert "\x1b[" not in project.run("check", code=1, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_a_terminal_that_knows_ascii_only(project: Project) -> None:
    project.write("名.py", "import torch\n名 = torch.rfft('é', 2)\n")
    process = project.start("check", "名.py", env=environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0"))
    out, err = process.communicate()
    assert process.returncode == 1, err
    assert b"\\u540d.py:2:5: " in out


HEAVY = (
    "libcst",
    "yaml",
    "jsonschema",
    "packaging",
    "multiprocessing",
    "tomllib",
    "json",
    "difflib",
    "signal",
    "torchmigrate.catalogue.model",
    "torchmigrate.files.globs",
    "torchmigrate.files.signals",
)


def loaded(project: Project, *arguments: str) -> set[str]:
    """Modules that a command imports, among the heavy ones."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "torchmigrate", *arguments],
        cwd=project.path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    names = {
        line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time")
    }
    if sys.version_info < (3, 11):  # there, click's `uuid` brings it
        names.discard("signal")
    return {name for name in HEAVY if name in names}


def test_heavy_modules_are_imported_when_needed(project: Project) -> None:
    assert loaded(project, "--help") == set()
    assert loaded(project, "check", "--help") == set()
    project.write("plain/a.py", "import os\n")
    assert loaded(project, "check", "--isolated", "--no-cache", "plain/a.py") == set()
    assert "torchmigrate.files.signals" in loaded(project, "check", "--isolated", "plain/a.py")  # the cache
    assert loaded(project, "check", "--isolated", "plain/a.py") == {"json"}
    rules = {"json", "torchmigrate.catalogue.model"}  # the compiled catalogue
    assert loaded(project, "check", "--isolated", "--no-cache", "pkg/clean.py") <= rules
    project.write("renamed.py", "import torch\n\n\ndef outer(a, b):\n    return torch.ger(a, b)\n")
    assert "libcst" not in loaded(project, "check", "--isolated", "renamed.py")
    project.write(
        "rewritten.py", "import torch\nfrom torch.autograd import Variable\n\nx = Variable(torch.ones(2))\n"
    )
    assert "libcst" in loaded(project, "check", "--isolated", "rewritten.py")


@pytest.mark.skipif(os.name == "nt", reason="signals and pipes of POSIX")
class TestInterruptions:
    def test_reader_that_goes_away(self, project: Project) -> None:
        for number in range(200):
            project.write(f"many/m{number}.py", OLD)
        for arguments in (["check"], ["check", "--diff"], ["rules"], ["rules", "--output-format", "json"]):
            process = project.start(*arguments)
            assert process.stdout is not None and process.stderr is not None
            process.stdout.read(10)
            process.stdout.close()
            errors = process.stderr.read().decode()
            process.stderr.close()
            assert process.wait(60) == (1 if arguments[0] == "check" else 0)
            assert "Traceback" not in errors and "Broken" not in errors

    def test_fixes_are_made_even_if_nobody_reads(self, project: Project) -> None:
        read, write = os.pipe()
        os.close(read)
        process = project.start("check", "--fix", stdout=write, stderr=write)
        os.close(write)
        assert process.wait(60) == 1
        assert (project.path / "old.py").read_text() == FIXED

    def test_control_c(self, project: Project) -> None:
        for number in range(3000):
            project.write(f"many/m{number}.py", OLD)
        for jobs in ("1", "2"):
            process = project.start(
                "check",
                "--verbose",
                "--jobs",
                jobs,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=heed_interrupts,
            )
            assert process.stderr is not None
            assert process.stderr.readline().startswith(b"configuration")
            time.sleep(0.3)
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 130
            assert "Traceback" not in errors.decode()
            assert "Interrupted." in errors.decode()


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
def test_a_terminal_gets_colour(project: Project) -> None:
    from harness.terminal import in_terminal

    text = in_terminal(["check", "--output-format", "concise"], project.path)
    assert "\x1b[1;31m" in text


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
def test_what_is_shown_fits_the_terminal(project: Project) -> None:
    from harness.terminal import in_terminal

    long = ", ".join(f"argument_{number}" for number in range(30))
    project.write("wide.py", f"import torch\n\nx = torch.load({long})\ny = torch.ger({long})\n")
    arguments = ["check", "--isolated", "--color", "never", "--quiet", "--no-cache", "wide.py"]
    for columns in (60, 90, 200):
        lines = in_terminal(arguments, project.path, columns=columns).splitlines()
        shown = [line for line in lines if not line.startswith("wide.py:")]
        assert shown and max(map(len, shown)) <= min(columns, 120)
        assert max(map(len, shown)) > min(columns, 110) - 25


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def progress(monkeypatch: pytest.MonkeyPatch, *, seconds: float, quiet: bool = False) -> str:
    """What the progress bar writes during a run of ten files that takes so long."""
    terminal = _Terminal()
    now = 100.0
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with Console("never", quiet=quiet).progress() as tell:
        for done in range(1, 11):
            now += seconds / 10
            if tell is not None:
                tell(done, 10)
    return terminal.getvalue()


def test_a_bar_appears_on_a_terminal_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress(monkeypatch, seconds=0.9) == ""
    assert "Checking" in progress(monkeypatch, seconds=3)
    assert "100%" in progress(monkeypatch, seconds=3)
    assert progress(monkeypatch, seconds=3, quiet=True) == ""
    monkeypatch.setattr(_Terminal, "isatty", lambda self: False)
    assert progress(monkeypatch, seconds=3) == ""
