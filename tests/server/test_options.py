"""What an editor may ask for, and what is read from files: everything that is open follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.editor import Editor
from lsprotocol import types

OLD = (
    "import torch\n"
    "\n"
    "x = torch.ger(a, b)\n"
    "L, V = torch.symeig(x, eigenvectors=True)\n"
    "with torch.cuda.amp.autocast():\n"
    "    pass\n"
)


def codes(found: Any) -> list[str]:
    return [str(each.code) for each in found]


def configure(editor: Editor, settings: Any) -> None:
    params = types.DidChangeConfigurationParams(settings)
    editor.do(lambda: editor.client.workspace_did_change_configuration(params))


def test_options_of_the_start(tmp_path: Path) -> None:
    with Editor(tmp_path, options={"settings": {"select": ["TM110", "removed-api"]}}) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        assert codes(editor.diagnostics(name)) == ["TM110"]
        assert not editor.messages


def test_every_option(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('select = ["TM201"]\n')
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        assert codes(editor.diagnostics(name)) == ["TM110", "TM100", "TM201"]
        for options, found in (
            ({"target": "1.8"}, ["TM110"]),
            ({"torchmigrate": {"ignore": ["TM1"]}}, ["TM201"]),
            ({"select": ["TM1"], "ignore": ["TM110"], "extendSelect": ["TM201"]}, ["TM100", "TM201"]),
            ({"enable": False}, []),
            ({"configuration": "other.toml"}, ["TM201"]),
            ({"exclude": ["a.py"]}, []),
            ({"enable": True}, ["TM110", "TM100", "TM201"]),
        ):
            before = editor.sent(name)
            configure(editor, options)
            assert codes(editor.diagnostics(name, after=before)) == found, options
        assert not editor.messages


def test_the_editor_comes_after_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "torchmigrate.toml").write_text('select = ["TM1"]\ntarget = "1.8"\n')
    with Editor(tmp_path, options={"target": "2.6"}) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        assert codes(editor.diagnostics(name)) == ["TM110", "TM100"]


def test_options_change(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        assert len(editor.diagnostics(name)) == 3
        before = editor.sent(name)
        configure(editor, {"torchmigrate": {"select": ["TM201"]}})
        assert codes(editor.diagnostics(name, after=before)) == ["TM201"]
        configure(editor, {"pylsp": {"plugins": {}}})  # of another server
        before = editor.sent(name)
        configure(editor, None)
        assert len(editor.diagnostics(name, after=before)) == 3
        assert editor.sent(name) == before + 1 and not editor.messages


def test_a_client_is_asked_for_its_options(tmp_path: Path) -> None:
    with Editor(tmp_path, settings={"select": ["TM201"]}) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        editor.until(lambda: codes(editor.diagnostics(name)) == ["TM201"])
        editor.settings = {"select": ["TM100"]}
        before = editor.sent(name)
        configure(editor, None)
        assert codes(editor.diagnostics(name, after=before)) == ["TM100"]


def test_settings_that_say_nothing_leave_the_options_of_the_start(tmp_path: Path) -> None:
    """Eglot sends empty settings, and answers null when it is asked, whatever the options were."""
    for settings in (None, {}, {"torchmigrate": None}):
        with Editor(tmp_path, options={"select": ["TM201"]}, settings=settings) as editor:
            name = editor.open(tmp_path / "a.py", OLD)
            assert codes(editor.diagnostics(name)) == ["TM201"]
            for given in (None, {}, {"torchmigrate": {}}, {"torchmigrate": {"target": None}}):
                before = editor.sent(name)
                configure(editor, given)
                assert codes(editor.diagnostics(name, after=before)) == ["TM201"], given
            before = editor.sent(name)
            configure(editor, {"torchmigrate": {"select": ["TM100"]}})
            assert codes(editor.diagnostics(name, after=before)) == ["TM100"]


def test_wrong_options_are_named(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        one, two = (editor.open(tmp_path / file, OLD) for file in ("a.py", "b.py"))
        for name in (one, two):
            assert len(editor.diagnostics(name)) == 3
        for options, said in (
            ({"targt": "2.6"}, "torchmigrate.targt: unknown option; did you mean `target`?"),
            ({"target": "2.99"}, "torchmigrate.target: torch 2.99 is unknown"),
            ({"target": 2.1}, 'torchmigrate.target: must be quoted, such as "2.1"'),
            ({"enable": "yes"}, "torchmigrate.enable: must be true or false"),
            ({"extendSelect": "TM110"}, "torchmigrate.extendSelect: must be a list of strings"),
            ({"select": ["TM99999"]}, "torchmigrate.select: unknown rule `TM99999`"),
            ({"configuration": "none.toml"}, "none.toml: "),
            ({"configuration": 1}, "torchmigrate.configuration: must be the path of a file"),
        ):
            before = {name: editor.sent(name) for name in (one, two)}
            editor.messages.clear()
            configure(editor, {"torchmigrate": options})
            for name in (one, two):
                editor.diagnostics(name, after=before[name])
            (message,) = editor.messages  # once, however many documents there are
            assert said in message.message and "\n" not in message.message
            assert message.type == types.MessageType.Error


def test_a_configuration_that_cannot_be_used_is_named_until_it_can(tmp_path: Path) -> None:
    config = tmp_path / "torchmigrate.toml"
    config.write_text("select = 1\n")
    with Editor(tmp_path, watches=True) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        assert editor.diagnostics(name) == []
        assert f"{config}: select: must be a list of strings" in editor.messages[0].message
        config.write_text('select = ["TM110"]\n')
        before = editor.sent(name)
        editor.touched(config)
        assert codes(editor.diagnostics(name, after=before)) == ["TM110"]


def test_files_are_watched(tmp_path: Path) -> None:
    with Editor(tmp_path, watches=True) as editor:
        editor.until(lambda: bool(editor.watched))
        assert {"**/pyproject.toml", "**/torchmigrate.toml", "**/*.txt"} <= set(editor.watched)
        one = editor.open(tmp_path / "a.py", OLD)
        two = editor.open(tmp_path / "b.py", OLD)
        for name in (one, two):
            assert len(editor.diagnostics(name)) == 3
        (action, *_) = editor.actions(one)
        assert "unsafe" not in action.title
        before = {name: editor.sent(name) for name in (one, two)}
        (tmp_path / "requirements.txt").write_text("torch>=1.5\n")
        editor.touched(tmp_path / "requirements.txt")
        for name in (one, two):
            editor.diagnostics(name, after=before[name])
        (action, *_) = editor.actions(one)
        assert "the project supports torch 1.5" in action.title
        before = {name: editor.sent(name) for name in (one, two)}
        (tmp_path / "pyproject.toml").write_text('[tool.torchmigrate]\nselect = ["TM201"]\n')
        editor.touched(tmp_path / "picture.png")
        editor.touched(tmp_path / "pyproject.toml")
        for name in (one, two):
            assert codes(editor.diagnostics(name, after=before[name])) == ["TM201"]
            assert editor.sent(name) == before[name] + 1


def test_a_client_that_does_not_watch_says_what_it_saves(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        assert len(editor.diagnostics(name)) == 3
        config = editor.open(tmp_path / "pyproject.toml", "", "toml")
        (tmp_path / "pyproject.toml").write_text('[tool.torchmigrate]\nselect = ["TM201"]\n')
        before = editor.sent(name)
        editor.save(config)
        assert codes(editor.diagnostics(name, after=before)) == ["TM201"]


def test_what_other_files_say_counts_once_it_is_saved(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from torch import ger\n")
    user = "from a import ger\nger(x, y)\n"
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", "from torch import ger\nger(x, y)\n")
        assert len(editor.diagnostics(name)) == 2
        (fix, *_) = editor.actions(name, only=["source.fixAll"])
        editor.apply(fix.edit)
        assert "import ger" not in editor.texts[name]
        (tmp_path / "b.py").write_text(user)
        other = editor.open(tmp_path / "b.py", user)
        before = editor.sent(name)
        editor.save(other)
        editor.diagnostics(name, after=before)
        fixes = editor.actions(name, only=["source.fixAll"])
        editor.texts[name] = "from torch import ger\nger(x, y)\n"
        for each in fixes:
            editor.apply(each.edit)
        assert "ger" in editor.texts[name].partition("\n")[0], "b.py takes it from there"


def test_a_client_that_asks_is_told_to_ask_again(tmp_path: Path) -> None:
    with Editor(tmp_path, pull=True) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        full = editor.pull(name)
        configure(editor, {"torchmigrate": {"select": ["TM201"]}})
        editor.until(lambda: editor.refreshes == 1)
        assert codes(editor.pull(name, full.result_id).items) == ["TM201"]
