"""Documents that no editor should open: the server answers all the same."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from harness.editor import Editor
from lsprotocol import types

OLD = "import torch\n\ny = torch.ger(a, b)\n"
URIS = {
    "NUL": "file:///tmp/a%00b.py",
    "NUL directory": "file:///tmp/a%00b/c.py",
    "long name": "file:///" + "a" * 100_000 + ".py",
    "many directories": "file:///" + "d/" * 5000 + "a.py",
    "other scheme": "ssh://host/a.py",
    "git": "git:/tmp/a.py?%7B%7D",
    "untitled": "untitled:Untitled-1",
    "untitled NUL": "untitled:a%00b",
    "long untitled": "untitled:" + "a" * 100_000,
    "no scheme": "a.py",
    "empty path": "file://",
    "percent": "file:///tmp/%zz%%%e4.py",
    "no text": "file:///tmp/%ff%fe.py",
    "host": "file://host/share/a.py",
    "control": "file:///tmp/%0a%1b%5b31m.py",
    "up": "file:///../../a/../b.py",
    "directory": "file:///tmp",
    "device": "file:///dev/zero",
}


def _hover(editor: Editor, name: str, line: int = 2, character: int = 6) -> types.Hover | None:
    where = types.HoverParams(types.TextDocumentIdentifier(name), types.Position(line, character))
    return editor.wait(editor.client.text_document_hover_async(where))


@pytest.mark.parametrize("name", URIS.values(), ids=URIS)
def test_a_uri_that_is_no_file(tmp_path: Path, name: str) -> None:
    with Editor(tmp_path, pull=True) as editor:
        editor.open(name, OLD)
        asked = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(name))
        report = editor.wait(editor.client.text_document_diagnostic_async(asked))
        assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
        assert [each.code for each in report.items] == ["TM110"] or name == URIS["device"]
        _hover(editor, name)
        area = types.Range(types.Position(2, 0), types.Position(2, 9))
        context = types.CodeActionContext([])
        editor.wait(
            editor.client.text_document_code_action_async(
                types.CodeActionParams(types.TextDocumentIdentifier(name), area, context)
            )
        )
        editor.save(name)
        editor.leave(name)
        assert not [each for each in (*editor.logged, *map(str, editor.messages)) if "internal" in each]


def test_a_uri_that_cannot_be_read_costs_nothing_else(tmp_path: Path) -> None:
    with Editor(tmp_path, pull=True) as editor:
        editor.open("http://[", OLD)
        name = editor.open(tmp_path / "a.py", OLD)
        assert _hover(editor, name) is not None
        assert not [each for each in editor.logged if "internal" in each]


def test_a_huge_line_has_nobody_else_wait(tmp_path: Path) -> None:
    line = "import torch\n\nx = [" + "torch.ger(a, b), " * 60_000 + "]\n"
    with Editor(tmp_path, pull=True) as editor:
        small = editor.open(tmp_path / "small.py", OLD)
        assert _hover(editor, small) is not None
        huge = editor.open(tmp_path / "huge.py", line)
        asked = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(huge))
        waiting = asyncio.run_coroutine_threadsafe(
            editor.client.text_document_diagnostic_async(asked), editor._loop
        )
        longest = 0.0
        for number in range(5):
            other = editor.open(tmp_path / f"other{number}.py", OLD)
            begun = time.monotonic()
            assert _hover(editor, other) is not None
            longest = max(longest, time.monotonic() - begun)
            assert not waiting.done() or number
        report = waiting.result(120)
        assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
        assert len(report.items) == 1000
        editor.until(lambda: any("more than 1,000 findings" in each for each in editor.logged))
        print(f"longest wait {longest:.2f} s")
        assert longest < 10, "a second on an idle machine"
