"""What docs/editors.md shows is what the server takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from harness.editor import Editor

from torchmigrate.files.formats import read_toml
from torchmigrate.server.options import are_ours, read_options

PAGE = (Path(__file__).parents[2] / "docs" / "editors.md").read_text("utf-8")
EDITORS = ("VS Code", "Neovim", "Helix", "Zed", "Emacs", "PyCharm")
OLD = "import torch\nx = torch.ger(a, b)\n"


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def blocks(title: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", section(title), re.DOTALL | re.MULTILINE)


def test_every_editor_is_told_how_to_start_the_server() -> None:
    for editor in EDITORS:
        text = section(editor)
        assert "torchmigrate" in text and "server" in text
        assert "target" in text and "2.9" in text, "with an option"


def test_every_option_is_described() -> None:
    from torchmigrate.server import options

    rows = re.findall(r"^\| (`.*?) \|", section("Options"), re.MULTILINE)
    described = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert described == {*options._OF_CHECK, *options._OWN}


def test_what_is_shown_is_taken(tmp_path: Path) -> None:
    code, on_save = map(json.loads, blocks("VS Code", "json"))
    (helix,) = (read_toml(block.encode()) for block in blocks("Helix", "toml"))
    (zed,) = map(json.loads, blocks("Zed", "json"))
    (pycharm,) = map(json.loads, blocks("PyCharm", "json"))
    own: Any = helix["language-server"]["torchmigrate"]
    as_pylsp = zed["lsp"]["pylsp"]
    commands = [
        [code["glspc.server.command"], *code["glspc.server.commandArguments"]],
        [own["command"], *own["args"]],
        [as_pylsp["binary"]["path"], *as_pylsp["binary"]["arguments"]],
        re.findall(r'"(\w+)"', re.findall(r"cmd = \{(.*?)\}", section("Neovim"))[0]),
        *(
            re.findall(r'"(\w+)"', found)
            for found in re.findall(r'\("torchmigrate" "server"', section("Emacs"))
        ),
        re.findall(r"\*Command\* \| `(.*?)`", section("PyCharm"))[0].split(),
    ]
    assert commands == [["torchmigrate", "server"]] * 7
    for given in (
        code["glspc.server.initializationOptions"],
        own["config"],
        as_pylsp["initialization_options"],
        pycharm,
    ):
        options, wrong = read_options(given)
        assert are_ours(given) and not wrong
        assert options.layer.target == "2.9"
    (kind,) = on_save["[python]"]["editor.codeActionsOnSave"]
    with Editor(tmp_path, options=pycharm) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        (action,) = editor.actions(name, only=[kind])
        assert action.kind == kind
        assert editor.server.execute_command_provider is not None
        for command in editor.server.execute_command_provider.commands:
            assert f"`{command}`" in PAGE


def test_brackets_are_balanced() -> None:
    """Of what no parser here reads."""
    found = [*blocks("Neovim", "lua"), *blocks("Emacs", "elisp")]
    assert len(found) == 3
    for block in found:
        plain = re.sub(r'"[^"\n]*"', "", block)
        for pair in ("()", "{}", "[]"):
            assert plain.count(pair[0]) == plain.count(pair[1])
