"""What users of ruff type."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from harness.project import Project
from harness.repository import Repository
from harness.terminal import Terminal

import torchmigrate

GER, SYMEIG, EIG = "TM110", "TM100", "TM101"
OLD = "import torch\n\nx = torch.ger(a, b)\nL, V = torch.symeig(A, eigenvectors=True)\n"
FIXED = OLD.replace("torch.ger", "torch.outer").replace(
    "torch.symeig(A, eigenvectors=True)", 'torch.linalg.eigh(A, UPLO="U")'
)
CONFIG = "torchmigrate.toml"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path, monkeypatch)
    project.write("old.py", OLD)
    return project


def text_of(project: Project, name: str = "old.py") -> str:
    return (project.path / name).read_text()


# ---- what would be checked, and how -----------------------------------------------------------------------


def test_show_files_lists_what_would_be_checked(project: Project) -> None:
    project.write("pkg/b.py", "")
    project.write("pkg/.venv/c.py", "")
    project.write("pkg/notes.txt", "")
    done = project.run("check", "--show-files", code=0)
    assert done.stdout.splitlines() == ["old.py", "pkg/b.py"] and done.stderr == ""
    assert project.run("check", "--show-files", "pkg", code=0).stdout == "pkg/b.py\n"
    assert project.run("check", "--show-files", "--exclude", "pkg", code=0).stdout == "old.py\n"
    assert project.run("check", "--show-files", ".", "--fix", code=0).stdout == "old.py\npkg/b.py\n"
    assert text_of(project) == OLD
    assert project.run("check", "--show-files", "none.py", code=2).stdout == ""
    assert "--show-files requires paths" in project.run("check", "--show-files", "-", code=2).stderr


def test_show_files_that_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository(tmp_path, {"a.py": OLD, "b.py": OLD})
    project = Project(repository.path, monkeypatch)
    project.write("b.py", OLD + "\n")
    assert project.run("check", "--show-files", "--changed-since", "HEAD", code=0).stdout == "b.py\n"
    assert project.run("check", "--show-files", "--changed-since", "none", code=2).stdout == ""


def test_show_files_prints_one_line_for_a_file(project: Project) -> None:
    project.write("line\nbreak.py", "")
    assert project.run("check", "--show-files", code=0).stdout.splitlines() == ["line\\nbreak.py", "old.py"]


def test_show_settings_is_the_command_config(project: Project) -> None:
    project.write(CONFIG, "target = '2.9'\nfix = true\n")
    for path in ("old.py", "."):
        shown = project.run("check", "--show-settings", path, code=0)
        assert shown.stdout == project.run("config", path, code=0).stdout
    assert project.run("check", "--show-settings", code=0).stdout == project.run("config", code=0).stdout
    given = project.run(
        *("check", "--show-settings", "--unfixable", GER, "--output-format", "json", "old.py"), code=0
    )
    settings = json.loads(given.stdout)["settings"]
    assert settings["unfixable"] == {"value": [GER], "from": ["command line"]}
    assert settings["fix"] == {"value": True, "from": [str(project.path / CONFIG)]}
    assert text_of(project) == OLD


# ---- fixes ------------------------------------------------------------------------------------------------


def test_fix_only_reports_nothing_that_is_left(project: Project) -> None:
    project.write("old.py", OLD + "torch.symeig(*args)\n")
    done = project.run("check", "--fix-only", code=0)
    assert done.stdout == "" and done.stderr.startswith("Fixed 2 findings in 1 file.\n")
    assert "Found" not in done.stderr
    assert text_of(project) == FIXED + "torch.symeig(*args)\n"
    again = project.run("check", "--fix-only", "--output-format", "json", code=0)
    assert json.loads(again.stdout) == [] and again.stderr.startswith("Nothing to fix.\n")
    project.run("check", "--fix-only", "--exit-non-zero-on-fix", code=0)
    project.write("old.py", OLD)
    project.run("check", "--fix-only", "--exit-non-zero-on-fix", code=1)
    project.write("bad.py", "import torch\nx = (\n")
    assert "bad.py" in project.run("check", "--fix-only", code=2).stderr


def test_fix_only_of_stdin(project: Project) -> None:
    done = project.run("check", "-", "--fix-only", stdin=OLD + "torch.symeig(*args)\n", code=0)
    assert done.stdout == FIXED + "torch.symeig(*args)\n"
    assert "symeig" not in done.stderr


def test_fix_in_the_configuration(project: Project) -> None:
    project.write(CONFIG, "fix = true\n")
    project.run("check", "--no-fix", code=1)
    assert text_of(project) == OLD
    project.run("check", "--diff", code=1)
    project.run("check", "--config", "fix=false", code=1)
    for command in ("plan", "baseline", "config"):
        project.run(command)
    assert text_of(project) == OLD
    (project.path / ".torchmigrate-baseline.json").unlink()
    assert "Fixed 2 findings in 1 file." in project.run("check", code=0).stderr
    assert text_of(project) == FIXED


def test_only_the_configuration_at_the_start_makes_a_run_fix(project: Project) -> None:
    project.write("other/old.py", OLD)
    project.write(f"other/{CONFIG}", "fix = true\noutput-format = 'json'\n")
    assert project.run("check", code=1).stdout.startswith("old.py:3:5:")
    assert text_of(project, "other/old.py") == OLD
    project.run("check", "--isolated", "other", code=1)
    project.run("check", "--config", f"other/{CONFIG}", "--no-fix", "old.py", code=1)
    assert text_of(project, "other/old.py") == OLD
    assert json.loads(project.run("check", "other/old.py", code=0).stdout) == []
    assert text_of(project, "other/old.py") == FIXED and text_of(project) == OLD


def test_a_configuration_that_says_no_is_overridden(project: Project) -> None:
    project.write(CONFIG, "fix = false\n")
    project.run("check", "--fix", code=0)
    assert text_of(project) == FIXED
    assert (
        "--no-fix cannot be used with --fix-only"
        in project.run("check", "--no-fix", "--fix-only", code=2).stderr
    )


@pytest.mark.parametrize(
    ("arguments", "config", "fixed"),
    [
        (["--unfixable", GER], "", {SYMEIG}),
        (["--fixable", GER], "", {GER}),
        (["--fixable", "ger"], "", {GER}),
        (["--fixable", "TM1", "--unfixable", "TM11"], "", {SYMEIG}),
        (["--fixable", "TM11", "--unfixable", "TM1"], "", {GER}),
        (["--unfixable", "ALL"], "", set()),
        ([], "fixable = ['TM11']\n", {GER}),
        ([], "unfixable = ['TM10']\n", {GER}),
        (["--extend-fixable", SYMEIG], "fixable = ['TM11']\n", {GER, SYMEIG}),
        ([], "fixable = ['TM11']\nextend-fixable = ['TM100']\n", {GER, SYMEIG}),
        (["--fixable", "ALL"], "unfixable = ['TM10']\n", {GER, SYMEIG}),
        (["--unfixable", GER], "fixable = ['TM1']\n", {SYMEIG}),
        (["--config", "unfixable=['TM1']"], "", set()),
    ],
)
def test_which_rules_are_fixable(
    project: Project, arguments: list[str], config: str, fixed: set[str]
) -> None:
    project.write(CONFIG, config)
    before = project.run("check", "--output-format", "concise", *arguments, code=1)
    marked = {line.split()[1] for line in before.stdout.splitlines() if "[*]" in line}
    assert marked == fixed
    done = project.run("check", "--fix", "--output-format", "json", *arguments)
    assert {item["code"] for item in json.loads(done.stdout)} == {GER, SYMEIG} - fixed
    text = text_of(project)
    assert ("outer" in text, "eigh" in text) == (GER in fixed, SYMEIG in fixed)
    again = project.run("check", "--fix", *arguments)
    assert text_of(project) == text and again.returncode == (0 if len(fixed) == 2 else 1)


def test_a_fix_that_is_turned_off_says_so(project: Project) -> None:
    project.write(CONFIG, f"unfixable = ['{GER}']\n")
    shown = project.run("check", code=1).stdout
    assert "suggestion: Replace with `torch.outer` (`fixable` or `unfixable` excludes its rule)" in shown
    done = project.run("check", "--unsafe-fixes", "--diff", code=1)
    assert "outer" not in done.stdout and "eigh" in done.stdout
    project.write("requirements.txt", "torch<2\n")
    arguments = ("--fix-pins", "--unfixable", "ALL")
    project.run("check", *arguments, code=1)
    assert text_of(project, "requirements.txt") == "torch<2\n"


def test_the_cache_knows_which_rules_are_fixable(project: Project) -> None:
    for arguments in ([], ["--unfixable", GER], ["--ignore-noqa"], []):
        cold = project.run("check", "--no-cache", *arguments, code=1)
        for _ in range(2):
            assert project.run("check", *arguments, code=1).stdout == cold.stdout
    unknown = project.run("check", "--unfixable", "TM999", code=2).stderr
    assert unknown.startswith("error: --unfixable: unknown rule `TM999`")


@pytest.mark.parametrize("unfixable", ["TM497", "TM498"])
def test_fixes_that_belong_together_are_off_together(project: Project, unfixable: str) -> None:
    norm = "import torch\n\nx = torch.nn.utils.weight_norm(a)\ntorch.nn.utils.remove_weight_norm(x)\n"
    project.write("old.py", norm)
    project.run("check", "--fix", "--unsafe-fixes", "--unfixable", unfixable, code=1)
    assert text_of(project) == norm
    project.run("check", "--fix", "--unsafe-fixes", code=0)
    assert text_of(project).count("torch.nn.utils.parametri") == 2


# ---- suppressions -----------------------------------------------------------------------------------------


def test_add_noqa_is_the_command_suppress(project: Project) -> None:
    added = project.run("check", "--add-noqa", code=0)
    assert added.stdout == "" and added.stderr == "Suppressed 2 findings in 1 file.\n"
    text = text_of(project)
    project.write("old.py", OLD)
    project.run("suppress", code=0)
    assert text_of(project) == text
    project.run("check", code=0)
    assert "--add-noqa only writes comments" in project.run("check", "--add-noqa", "--fix", code=2).stderr


def test_add_noqa_does_not_fix_although_the_configuration_says_so(project: Project) -> None:
    project.write(CONFIG, "fix = true\n")
    project.run("check", "--add-noqa", "--select", GER, code=0)
    assert text_of(project) == OLD.replace("b)", f"b)  # torchmigrate: ignore[{GER}]")


@pytest.mark.parametrize("comment", ["# noqa", f"# noqa: {GER}", f"# torchmigrate: ignore[{GER}] needed"])
def test_ignore_noqa(project: Project, comment: str) -> None:
    text = f"import torch\nx = torch.ger(a, b)  {comment}\n"
    project.write("old.py", text)
    project.run("check", code=0)
    assert project.codes("--ignore-noqa") == [GER]
    project.run("check", code=0)
    project.run("check", "--ignore-noqa", "--fix", code=0)
    assert text_of(project) == text.replace("ger(", "outer(")


def test_ignore_noqa_in_files_of_every_kind(project: Project) -> None:
    project.write("old.py", f"# flake8: noqa\n# torchmigrate: ignore-file[{GER}]\n{OLD}")
    project.write(
        "doc.md",
        f"<!-- torchmigrate: ignore-file[{GER}] -->\n\n```python\nimport torch\ntorch.ger(a, b)\n```\n",
    )
    project.write("run.sh", "python -m torch.distributed.launch a.py  # torchmigrate: ignore[TM970]\n")
    project.run("check", "--embedded", code=0)
    assert project.codes("--embedded", "--ignore-noqa") == [GER, GER, SYMEIG, "TM970"]


@pytest.mark.parametrize(
    ("comment", "hidden"),
    [
        ("# ruff: noqa", True),
        ("#ruff:noqa", True),
        ("# ruff : NOQA", True),
        ("# ruff: noqa - generated", True),
        ("# ruff: noqa F401", True),
        ("# copied # ruff: noqa # as it is", True),
        (f"# ruff: noqa: {GER}", True),
        (f"# ruff: noqa : {GER}", True),
        (f"# ruff: noqa:{GER} generated", True),
        (f"# ruff: noqa: F401, {GER}", True),
        (f"# ruff: noqa: F401 {GER}", True),
        ("# ruff: noqa: F401", False),
        (f"# ruff: noqa: F401 # {GER}", False),
        ("# ruff: noqa: tm110", False),
        ("# ruff: noqa: generated", False),
        ("# ruff: noqa:", False),
        ("# ruff: noqa-x", False),
        (f"# ruff: noqa{GER}", False),
        ("# RUFF: noqa", False),
        ("# ruff = noqa", False),
        ("# ruff noqa", False),
        ("# ruff: isort: skip_file", False),
    ],
)
def test_comments_of_ruff_for_a_file(project: Project, comment: str, hidden: bool) -> None:
    code = "import torch\n\n\ndef f():\n    return torch.ger(a, b)\n"
    for text in (f"{comment}\n{code}", f"{code}\n\nif f():\n    {comment}\n    pass\n"):
        project.write("old.py", text)
        assert project.codes("old.py") == ([] if hidden else [GER]), text
        assert project.codes("old.py", "--ignore-noqa") == [GER]
    for text in (f'"""\n{comment}\n"""\n{code}', code.replace("b)", f"b)  {comment}")):
        project.write("old.py", text)
        assert project.codes("old.py") == [GER], text


def test_a_comment_of_ruff_that_hides_nothing(project: Project) -> None:
    project.write("old.py", f"# ruff: noqa: F401, {EIG}\nimport torch\n")
    assert project.codes() == ["TM011"]
    project.run("check", "--fix", code=0)
    assert text_of(project) == "# ruff: noqa: F401\nimport torch\n"


# ---- the configuration on the command line ---------------------------------------------------------------


def test_values_on_the_command_line(project: Project) -> None:
    project.write(CONFIG, f"select = ['{GER}']\ntarget = '2.9'\n")
    assert project.codes("--config", f"select=['{SYMEIG}']") == [SYMEIG]
    assert project.codes("--config", f"select=['{SYMEIG}']", "--select", GER) == [GER]
    assert project.codes("--config", f"extend-select = ['{SYMEIG}']", "--config", "target='1.6'") == []
    assert project.codes("--config", f"extend-select = ['{SYMEIG}']", "--config", "target='1.9'") == [
        GER,
        SYMEIG,
    ]
    assert project.codes("--isolated", "--config", f"ignore=['{GER}']") == [SYMEIG]
    assert project.codes("--config", f"per-file-ignores.'old*'=['{GER}']") == []
    assert project.codes("--config", f"ignore=['{GER}']", "--config", "ignore=[]") == [GER]
    project.write("mine.toml", f"select = ['{SYMEIG}', '{GER}']\n")
    assert project.codes("--config", "mine.toml") == [GER, SYMEIG]
    assert project.codes("--config", "mine.toml", "--config", f"ignore=['{GER}']") == [SYMEIG]
    project.write("a=b.toml", f"select = ['{SYMEIG}']\n")
    assert project.codes("--config", "a=b.toml") == [SYMEIG]


@pytest.mark.parametrize(
    "command", ["check", "config", "rules", "explain TM110", "plan", "baseline", "clean"]
)
def test_every_command_takes_values(project: Project, command: str) -> None:
    done = project.run(*command.split(), "--config", "targt='2.9'", code=2)
    assert "--config: targt: unknown key; did you mean `target`?" in done.stderr
    assert project.run(*command.split(), "--config", "target='2.9'").returncode in (0, 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("target=2.9", "error: --config: target: must be quoted"),
        ("fix=1", "error: --config: fix: must be true or false"),
        ("output-format='xml'", "error: --config: output-format: must be one of full, concise"),
        ("extend='a.toml'", "error: --config: extend: is only for configuration files"),
        ("select=['TM999']", "error: --config: select: unknown rule `TM999`"),
        ("select=[", "error: --config: not TOML"),
        ("none.toml", "File 'none.toml' does not exist"),
        (".", "is a directory"),
    ],
)
def test_wrong_values(project: Project, value: str, message: str) -> None:
    assert message in project.run("check", "--config", value, code=2).stderr


def test_only_one_file(project: Project) -> None:
    project.write("a.toml", "")
    assert "only one file" in project.run("check", "--config", "a.toml", "--config", "a.toml", code=2).stderr


def test_values_have_their_origin(project: Project) -> None:
    done = project.run("config", "--config", "minimum='1.8'", "--output-format", "json", "old.py", code=0)
    minimum = json.loads(done.stdout)["settings"]["minimum"]
    assert minimum == {"value": "1.8", "from": ["command line"]}
    assert (
        "minimum torch 1.8 (--config: minimum)"
        in project.run("check", "--config", "minimum='1.8'", code=1).stderr
    )


def test_rules_of_ones_own_on_the_command_line(project: Project) -> None:
    assert (
        "none: is not a directory with rules"
        in project.run("check", "--config", "rules=['none']", code=2).stderr
    )


def test_per_file_ignores_on_the_command_line(project: Project) -> None:
    project.write("pkg/old.py", OLD)
    assert project.codes("--per-file-ignores", f"pkg/*:{GER}") == [GER, SYMEIG, SYMEIG]
    assert project.codes("--per-file-ignores", f"pkg/*:{GER},old.py:TM1") == []
    assert project.codes(
        "--extend-per-file-ignores", f"!pkg/*:{GER}", "--per-file-ignores", "pkg/**:symeig"
    ) == [
        SYMEIG,
        GER,
    ]
    project.write(CONFIG, f"[per-file-ignores]\n'pkg/*' = ['{GER}']\n")
    assert project.codes("--per-file-ignores", "pkg/*:symeig") == [GER, SYMEIG]
    for wrong in (GER, f":{GER}", "pkg/*:"):
        done = project.run("check", "--per-file-ignores", wrong, code=2)
        assert "must be PATTERN:RULE" in done.stderr
    assert "unknown rule `TM999`" in project.run("check", "--per-file-ignores", "a:TM999", code=2).stderr


def test_output_format_in_the_configuration(project: Project) -> None:
    project.write(CONFIG, "output-format = 'concise'\n")
    concise = project.run("check", "--isolated", "--output-format", "concise", code=1).stdout
    assert project.run("check", code=1).stdout == concise
    full = project.run("check", "--output-format", "full", code=1).stdout
    assert full != concise
    assert project.run("check", code=1, TORCHMIGRATE_OUTPUT_FORMAT="full").stdout == full
    assert project.run("check", "--config", "output-format='full'", code=1).stdout == full
    project.write(CONFIG, "output-format = 'sarif'\n")
    assert "--statistics supports the formats" in project.run("check", "--statistics", code=2).stderr
    project.write(CONFIG, "output-format = 'xml'\n")
    assert "output-format: must be one of full, " in project.run("check", code=2).stderr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("target = '2.9'\nselect = [TM1]\n", ["2 | select = [TM1]", "  |           ^"]),
        ("select = ['TM1'\n", ["1 | select = ['TM1'", "  |                ^"]),
        ("\tfix = yes\r\n", ["1 |  fix = yes", "  |        ^"]),
        ("x = '" + "a" * 300 + "' y\n", ["1 | " + "a" * 78 + "' y", "  | " + " " * 80 + "^"]),
        ("x = \x1b[31m\n", ["1 | x = ", "  |     ^"]),
        ("::stop-commands::x = = 1\n", ["1 | ", "  | ^"]),
    ],
)
def test_a_toml_error_shows_the_line(project: Project, text: str, shown: list[str]) -> None:
    project.write(CONFIG, text)
    done = project.run("check", code=2)
    assert done.stdout == "" and "\x1b" not in done.stderr and "\n::" not in done.stderr
    first, line, caret = done.stderr.splitlines()
    assert first.startswith(f"error: {project.path / CONFIG}: not TOML: ")
    assert line.startswith(shown[0]) and caret == shown[1]


def test_a_toml_error_of_an_extended_file_shows_its_line(project: Project) -> None:
    project.write(CONFIG, "extend = 'base.toml'\n")
    project.write("base.toml", "select = [TM1]\n")
    lines = project.run("check", code=2).stderr.splitlines()
    assert f"extend: {project.path / 'base.toml'}: not TOML" in lines[0]
    assert lines[1:] == ["1 | select = [TM1]", "  |           ^"]


@pytest.mark.parametrize("leads_out", ["extend", "link"])
def test_a_toml_error_shows_no_line_from_outside_of_the_project(project: Project, leads_out: str) -> None:
    secret = project.write("secret", "password hunter2\n")
    inside = Project(project.path / "inside", project.monkeypatch)
    if leads_out == "link":
        inside.path.mkdir()
        (inside.path / CONFIG).symlink_to(secret)
    else:
        inside.write(CONFIG, "extend = '../secret'\n")
    for arguments in ([], ["--config", CONFIG]):
        done = inside.run("check", *arguments, code=2)
        assert "hunter2" not in done.stderr and len(done.stderr.splitlines()) == 1


# ---- commands ---------------------------------------------------------------------------------------------


def test_rule_is_explain(project: Project) -> None:
    assert project.run("rule", GER, code=0).stdout == project.run("explain", GER, code=0).stdout
    assert project.run("rule", "TM999", code=2).stderr.startswith("error: unknown rule `TM999`")
    rules = json.loads(project.run("rules", "--output-format", "json", code=0).stdout)
    for key in (GER, "ger", "torch.ger"):
        found = json.loads(project.run("rule", key, "--output-format", "json", code=0).stdout)
        assert found == next(rule for rule in rules if rule["code"] == GER)
    several = json.loads(project.run("explain", "TM11", "--output-format", "json", code=0).stdout)
    assert several == [rule for rule in rules if rule["code"].startswith("TM11")]
    of_torchfix = json.loads(project.run("rule", "TOR101", "--output-format", "json", code=0).stdout)
    assert {rule["code"] for rule in of_torchfix} < {rule["code"] for rule in rules}
    at = json.loads(project.run("rule", GER, "--output-format", "json", "--target", "2.9", code=0).stdout)
    assert at["severity"] == "info"


def test_version(project: Project) -> None:
    wanted = f"torchmigrate {torchmigrate.__version__}\n"
    assert [project.run(each, code=0).stdout for each in ("version", "-V", "--version")] == [wanted] * 3
    shown = project.run("version", "--output-format", "json", code=0).stdout
    assert json.loads(shown) == {"version": torchmigrate.__version__}


@pytest.mark.parametrize("command", ["explain", "clean", "version"])
def test_an_option_that_is_a_command_here(project: Project, command: str) -> None:
    done = project.run("check", f"--{command}", code=2)
    assert f"No such option '--{command}'. Did you mean `torchmigrate {command}`?" in done.stderr


# ---- many findings in a terminal --------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="a terminal of POSIX")
class TestManyFindings:
    @pytest.fixture
    def many(self, project: Project) -> Project:
        project.write("old.py", "import torch\n" + "torch.ger(a, b)\n" * 150)
        project.write("pkg/more.py", "import torch\n" + "torch.ger(a, b)\n" * 50 + "torch.symeig(A)\n")
        return project

    @staticmethod
    def shown(project: Project, *arguments: str) -> list[str]:
        terminal = Terminal(("check", "--color", "never", *arguments), project.path, columns=200)
        assert terminal.end() == 1, terminal.shown
        return [line.rstrip() for line in terminal.shown.splitlines()]

    def test_they_are_grouped(self, many: Project) -> None:
        lines = self.shown(many)
        assert lines[:5] == [
            f"{GER} [*] ger: 200 in 2 files",
            "    old.py: 150 (lines 2, 3, 4, 5, 6, 7, ...)",
            "    pkg/more.py: 50 (lines 2, 3, 4, 5, 6, 7, ...)",
            f"{SYMEIG} [*] symeig: 1 in 1 file",
            "    pkg/more.py: 1 (line 52)",
        ]
        assert lines[-1] == (
            "Grouped by rule and file; `--output-format full` or `concise` lists all 201 findings."
        )
        assert any(line.startswith("Found 201 findings") for line in lines)

    def test_they_are_not_where_somebody_wants_a_format(self, many: Project) -> None:
        assert len(self.shown(many, "--output-format", "concise")) > 201
        assert len(self.shown(many, "-q")) > 201
        assert len(self.shown(many, "--config", "output-format='concise'")) > 201

    def test_they_are_not_for_programs_or_up_to_two_hundred(self, many: Project) -> None:
        assert len(many.run("check", code=1).stdout.splitlines()) > 1000
        assert len(self.shown(many, "--ignore", SYMEIG)) > 1000
