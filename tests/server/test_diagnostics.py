"""What an editor is told of a document, while it is opened, typed in, saved and closed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from harness.editor import ENCODINGS, Editor
from lsprotocol import types

from torchmigrate.catalogue.pages import page_of

OLD = (
    "import torch\n"
    "\n"
    "x = torch.ger(a, b)\n"
    "L, V = torch.symeig(x, eigenvectors=True)\n"
    "with torch.cuda.amp.autocast():\n"
    "    pass\n"
)


def codes(found: list[types.Diagnostic]) -> list[str]:
    return [str(each.code) for each in found]


def at(line: int, character: int, end: int | None = None) -> types.Range:
    """A range in a line."""
    last = character if end is None else end
    return types.Range(types.Position(line, character), types.Position(line, last))


# ---- what a diagnostic is ----------------------------------------------------------------------------


def test_a_finding_is_a_diagnostic(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        outdated, gone, warns = editor.diagnostics(name)
        assert editor.inside(name, outdated.range) == "torch.ger"
        assert outdated.message == "`torch.ger` is deprecated; use `torch.outer`"
        assert (outdated.source, outdated.code) == ("torchmigrate", "TM110")
        assert outdated.code_description is not None
        assert outdated.code_description.href == page_of("TM110")
        assert outdated.severity == types.DiagnosticSeverity.Information
        assert outdated.tags is None
        assert gone.severity == types.DiagnosticSeverity.Error
        assert list(gone.tags or ()) == [types.DiagnosticTag.Deprecated]
        assert warns.severity == types.DiagnosticSeverity.Warning
        assert list(warns.tags or ()) == [types.DiagnosticTag.Deprecated]
        assert not editor.logged and not editor.messages


def test_without_a_fix_it_says_what_to_do(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", "import torch\ntorch.symeig(*args)\n")
        (found,) = editor.diagnostics(name)
        message, advice = found.message.split("\n")
        assert message == "`torch.symeig` was removed; use `torch.linalg.eigh` or `eigvalsh`"
        assert advice.startswith("help: ")


def test_other_places_of_a_finding_are_related(tmp_path: Path) -> None:
    line = "python -m torch.distributed.launch train.py\n"
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "run.sh", f"{line}echo done\n{line}", "shellscript")
        (found,) = editor.diagnostics(name)
        (place,) = found.related_information or ()
        assert place.location.uri == name
        assert editor.inside(name, place.location.range) == editor.inside(name, found.range)
        assert (found.range.start.line, place.location.range.start.line) == (0, 2)


# ---- while typing ------------------------------------------------------------------------------------


def test_typing_is_followed(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", "import torch\n\n")
        assert editor.diagnostics(name) == []
        editor.change(name, (at(1, 0), "x = torch.ge(a, b)\n"))
        assert editor.diagnostics(name) == []
        editor.change(name, (at(1, 12), "r"), (at(0, 0), "# one more line\n"))
        (found,) = editor.diagnostics(name)
        assert found.range == at(2, 4, 13)
        editor.change(name, (at(2, 4, 13), "torch.outer"))
        assert editor.diagnostics(name) == []
        editor.change(name, (None, OLD))
        assert codes(editor.diagnostics(name)) == ["TM110", "TM100", "TM201"]


def test_the_last_of_many_versions_counts(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        editor.diagnostics(name)
        before = editor.sent(name)
        for number in range(200):
            editor.change(name, (at(1, number), "#"))
        editor.change(name, (at(2, 10, 13), "outer"))
        assert codes(editor.diagnostics(name)) == ["TM100", "TM201"]
        assert editor.sent(name) - before < 200


def test_what_is_closed_has_none(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        assert editor.diagnostics(name)
        before = editor.sent(name)
        editor.leave(name)
        assert editor.diagnostics(name, after=before) == []


def test_a_client_that_asks_is_answered_and_sent_nothing(tmp_path: Path) -> None:
    with Editor(tmp_path, pull=True) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        full = editor.pull(name)
        assert codes(full.items) == ["TM110", "TM100", "TM201"]
        again = editor.pull(name, full.result_id)
        assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
        editor.change(name, (at(2, 10, 13), "outer"))
        after = editor.pull(name, full.result_id)
        assert codes(after.items) == ["TM100", "TM201"]
        editor.leave(name)
        assert editor.pull(name).items in ([], ())
        assert editor.sent(name) == 0


# ---- how places are counted --------------------------------------------------------------------------

HARD = 'import torch\r\n\x0c\r\ns = "\u2028 \N{CLAPPER BOARD} e\u0301 \u0634"; x = torch.ger(a, b)  # \N{PARTY POPPER}\r\n'


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "bom"])
def test_characters_are_counted_as_agreed(tmp_path: Path, encoding: str, mark: str) -> None:
    with Editor(tmp_path, encodings=[encoding], resolve=True) as editor:
        assert editor.encoding == encoding
        first = f"{mark}import torch; y = torch.ger(a, b)\r\n"
        name = editor.open(tmp_path / "a.py", first + HARD)
        found = editor.diagnostics(name)
        assert [editor.inside(name, each.range) for each in found] == ["torch.ger", "torch.ger"]
        editor.change(name, (editor.area(name, "\u0634"), "\N{CLAPPER BOARD}\N{CLAPPER BOARD}\u0635"))
        found = editor.diagnostics(name)
        assert [editor.inside(name, each.range) for each in found] == ["torch.ger", "torch.ger"]
        (action,) = editor.actions(name, only=["source.fixAll"])
        expected = editor.texts[name].replace("torch.ger", "torch.outer")
        assert editor.apply(editor.resolved(action).edit) == {name: expected}


def test_what_the_client_likes_best_is_agreed_on(tmp_path: Path) -> None:
    with Editor(tmp_path, encodings=["utf-7", "utf-32", "utf-8"]) as editor:
        assert editor.encoding == "utf-32"
    with Editor(tmp_path) as editor:
        assert editor.encoding == "utf-16"


# ---- which documents ---------------------------------------------------------------------------------


def test_what_is_not_python_is_checked(tmp_path: Path) -> None:
    line = "python -m torch.distributed.launch train.py\n"
    with Editor(tmp_path) as editor:
        for file, language, text in (
            ("run.sh", "shellscript", line),
            ("launch", "shellscript", line),
            ("ci.yml", "yaml", f"steps:\n  - run: {line}"),
            ("Dockerfile", "dockerfile", f"RUN {line}"),
            ("README.md", "markdown", f"```bash\n{line}```\n"),
            ("ops.cpp", "cpp", "void f(at::Tensor x) { AT_CHECK(x.defined()); }\n"),
        ):
            on_disk = editor.open(tmp_path / file, text, language)
            new = editor.open(f"untitled:{language}", text, language)
            assert len(editor.diagnostics(on_disk)) == 1, file
            assert codes(editor.diagnostics(new)) == codes(editor.diagnostics(on_disk))


def test_requirements_are_checked(tmp_path: Path) -> None:
    with Editor(tmp_path, options={"select": ["ALL"], "target": "2.9"}) as editor:
        name = editor.open(tmp_path / "requirements.txt", "torch<2\n", "pip-requirements")
        (found,) = editor.diagnostics(name)
        assert editor.inside(name, found.range).startswith("torch")


def test_python_is_what_its_name_or_the_editor_says(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        script = editor.open(tmp_path / "train", OLD, "python")
        new = editor.open("untitled:Untitled-1", OLD, "python")
        stub = editor.open(tmp_path / "a.pyi", OLD, "plaintext")
        for name in (script, new, stub):
            assert len(editor.diagnostics(name)) == 3
        for file, language in (("notes.txt", "plaintext"), ("a.rb", "ruby")):
            assert editor.diagnostics(editor.open(tmp_path / file, OLD, language)) == []


def test_what_a_run_leaves_out_has_none(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("generated/\n")
    (tmp_path / "pyproject.toml").write_text('[tool.torchmigrate]\nextend-exclude = ["old_*.py"]\n')
    for directory in ("generated", "src", ".venv/lib"):
        (tmp_path / directory).mkdir(parents=True)
    with Editor(tmp_path) as editor:
        for file in ("generated/a.py", "old_a.py", ".venv/lib/a.py", "src/old_b.py"):
            assert editor.diagnostics(editor.open(tmp_path / file, OLD)) == [], file
        assert editor.diagnostics(editor.open(tmp_path / "src" / "a.py", OLD))


def test_what_is_installed_elsewhere_has_none(tmp_path: Path) -> None:
    root, library = tmp_path / "project", tmp_path / "lib" / "site-packages" / "thing"
    root.mkdir()
    library.mkdir(parents=True)
    with Editor(root) as editor:
        assert editor.diagnostics(editor.open(library / "a.py", OLD)) == []
        assert editor.diagnostics(editor.open(tmp_path / "lib" / "a.py", OLD))


def test_each_file_has_its_own_configuration(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    (one / "part").mkdir(parents=True)
    two.mkdir()
    (one / "torchmigrate.toml").write_text('select = ["TM110"]\n')
    (one / "part" / "torchmigrate.toml").write_text('select = ["TM201"]\n')
    (two / "pyproject.toml").write_text('[tool.torchmigrate]\nselect = ["TM100"]\n')
    with Editor(one, two) as editor:
        found = {
            path: codes(editor.diagnostics(editor.open(path / "a.py", OLD)))
            for path in (one, one / "part", two, tmp_path)
        }
    assert found == {
        one: ["TM110"],
        one / "part": ["TM201"],
        two: ["TM100"],
        tmp_path: ["TM110", "TM100", "TM201"],
    }


def test_a_baseline_hides_what_it_accepts(tmp_path: Path) -> None:
    import subprocess

    from harness.launcher import quick_command
    from harness.project import environment

    (tmp_path / "pyproject.toml").write_text('[tool.torchmigrate]\nbaseline = "accepted.json"\n')
    (tmp_path / "a.py").write_text(OLD)
    subprocess.run(
        quick_command("baseline"), cwd=tmp_path, env=environment(), check=True, capture_output=True
    )
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        assert editor.diagnostics(name) == []
        editor.change(name, (at(0, 12), "\nz = torch.ger(c, d)"))
        (found,) = editor.diagnostics(name)
        assert found.range.start.line == 1


# ---- what goes wrong ---------------------------------------------------------------------------------


def test_what_does_not_parse_has_one(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        assert len(editor.diagnostics(name)) == 3
        editor.change(name, (at(2, 4), "("))
        (found,) = editor.diagnostics(name)
        assert found.code == "invalid-syntax"
        assert found.severity == types.DiagnosticSeverity.Error
        assert found.range.start.line == 2
        assert editor.actions(name) == []
        assert editor.hover(name, 2, 6) is None
        editor.change(name, (at(2, 4, 5), ""))
        assert len(editor.diagnostics(name)) == 3
        assert not editor.logged and not editor.messages


def test_syntax_errors_may_be_left_to_others(tmp_path: Path) -> None:
    with Editor(tmp_path, options={"showSyntaxErrors": False}) as editor:
        assert editor.diagnostics(editor.open(tmp_path / "a.py", "import torch\nx = (\n")) == []


def test_no_text_ends_the_server(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        for text in ("\0", "\ud800", "x = '" + "(" * 5000, "(" * 300, "#" * 3_000_000):
            name = editor.open(tmp_path / "a.py", f"import torch\n{text}\n")
            editor.diagnostics(name)
            editor.leave(name)
        assert len(editor.diagnostics(editor.open(tmp_path / "b.py", OLD))) == 3
        assert not any("internal error" in line for line in editor.logged)


def test_a_rule_that_raises_costs_its_findings_only(tmp_path: Path) -> None:
    script = (
        "import sys; import torchmigrate.codemods.small.removed_call as m; m.find = lambda *_: 1 / 0;"
        "from torchmigrate.__main__ import main; sys.argv = ['torchmigrate', 'server']; main()"
    )
    text = f"{OLD}import torchaudio\ntorchaudio.set_audio_backend('sox')\n"
    with Editor(tmp_path) as editor:
        every = codes(editor.diagnostics(editor.open(tmp_path / "a.py", text)))
    with Editor(tmp_path, program=[sys.executable, "-c", script]) as editor:
        name = editor.open(tmp_path / "a.py", text)
        found = codes(editor.diagnostics(name))
        assert set(found) < set(every) and "TM110" in found
        assert [line for line in editor.logged if "the rule failed (ZeroDivisionError" in line]
        logged = len(editor.logged)
        editor.change(name, (at(1, 0), "\n"))
        assert codes(editor.diagnostics(name)) == found
        assert len(editor.logged) == logged, "it is said once"
