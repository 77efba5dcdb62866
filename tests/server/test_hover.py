"""What an editor shows where the pointer rests."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.editor import Editor
from harness.launcher import quick_command
from harness.project import environment

TEXT = (
    "import torch\n"
    "x = torch.ger(a, b)\n"
    "y = torch.ger(a, b)  # torchmigrate: ignore[TM110] kept\n"
    "L, V = torch.symeig(torch.ger(a, b))  # torchmigrate: ignore[ger, TM100]\n"
    "z = torch.ger(a, b)  # noqa: E501, tm110\n"
    "w = torch.outer(a, b)  # TM110 is a code\n"
)


def explained(code: str, where: Path) -> list[str]:
    """The words of `explain`, line by line."""
    done = subprocess.run(
        quick_command("explain", code),
        cwd=where,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def test_a_finding_is_explained(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        shown = editor.hover(editor.open(tmp_path / "a.py", TEXT), 1, 8)
        assert shown is not None
        head, *rest = explained("TM110", tmp_path)
        assert shown.startswith("**TM110** `ger`\n") and head == "TM110 ger"
        for line in rest:
            assert line in shown
        assert "```python\nimport torch as th\nx = th.ger(a, vec2=b)\n```" in shown
        assert "On torch 2.15: info; the fix is safe." in shown


def test_a_suppression_is_explained(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", TEXT)
        for part, code in (
            ("# torchmigrate: ignore[TM110]", "TM110"),
            ("TM110] kept", "TM110"),
            ("ger, TM100", "TM110"),
            ("TM100]", "TM100"),
            ("tm110", "TM110"),
            ("torch.symeig", None),
            ("torch.outer", None),
            ("TM110 is", None),
            ("E501", None),
        ):
            start = editor.area(name, part).start
            shown = editor.hover(name, start.line, start.character + 1)
            assert (None if shown is None else shown[2:7]) == code, part


def test_other_files_are_explained(tmp_path: Path) -> None:
    text = "python -m torch.distributed.launch a.py\n"
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "run.sh", text, "shellscript")
        (found,) = editor.diagnostics(name)
        shown = editor.hover(name, 0, found.range.start.character + 1)
        assert shown is not None and shown.startswith(f"**{found.code}** ")
        assert "```\n" in shown and "```python" not in shown
