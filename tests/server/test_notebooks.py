"""Notebooks: the cells are one program, and each is a text of the editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.editor import Editor
from lsprotocol import types

CELLS = (
    ("markdown", "# torch.ger"),
    ("python", "%matplotlib inline\nimport torch as t\nfrom torch import ger"),
    ("python", "!pip install torch\nx = t.ger(a, b)\ny = ger(a, b)\n"),
    ("shellscript", "torch.ger"),
    ("python", "L, V = t.symeig(x, eigenvectors=True)"),
)
NAME = "untitled:Untitled-1.ipynb"
FIXED = {
    1: "%matplotlib inline\nimport torch as t\nfrom torch import outer",
    2: "!pip install torch\nx = t.outer(a, b)\ny = outer(a, b)\n",
    4: 'L, V = t.linalg.eigh(x, UPLO="U")',
}


def found_in(editor: Editor, cells: list[str]) -> list[tuple[int, str, str]]:
    """The number of the cell, the code and the text of all findings."""
    return [
        (number, str(each.code), editor.inside(cell, each.range))
        for number, cell in enumerate(cells)
        for each in editor.diagnostics(cell)
    ]


@pytest.mark.parametrize("pull", [False, True], ids=["push", "pull"])
def test_names_live_across_cells(tmp_path: Path, pull: bool) -> None:
    with Editor(tmp_path, pull=pull) as editor:
        cells = editor.open_notebook((tmp_path / "a.ipynb").as_uri(), *CELLS)
        assert found_in(editor, cells) == [
            (1, "TM110", "ger"),
            (2, "TM110", "t.ger"),
            (2, "TM110", "ger"),
            (4, "TM100", "t.symeig"),
        ]
        for cell in cells:  # once is enough
            assert editor.pull(cell).items in ([], ())


def test_edits_go_to_the_right_cells(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        cells = editor.open_notebook(NAME, *CELLS)
        fix, suppress = editor.actions(cells[2], editor.area(cells[2], "t.ger"), ["quickfix"])
        before = dict(editor.texts)
        assert editor.apply(fix.edit) == {cells[2]: before[cells[2]].replace("t.ger", "t.outer")}
        editor.texts = dict(before)
        hidden = before[cells[2]].replace("t.ger(a, b)", "t.ger(a, b)  # torchmigrate: ignore[TM110]")
        assert editor.apply(suppress.edit) == {cells[2]: hidden}
        for kind in ("source.fixAll", "notebook.source.fixAll"):
            editor.texts = dict(before)
            (every,) = editor.actions(cells[4], only=[kind])
            assert every.kind == f"{kind}.torchmigrate"
            assert editor.apply(every.edit) == {cells[number]: text for number, text in FIXED.items()}


def test_the_fix_of_an_import_changes_two_cells(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        cells = editor.open_notebook(NAME, ("python", "from torch import ger"), ("python", "ger(a, b)"))
        fix, *_ = editor.actions(cells[1], only=["quickfix"])
        assert editor.apply(fix.edit) == {cells[0]: "from torch import outer", cells[1]: "outer(a, b)"}


def test_what_is_hovered_over_is_explained(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        cells = editor.open_notebook(NAME, *CELLS)
        shown = editor.hover(cells[4], 0, 10)
        assert shown is not None and shown.startswith("**TM100**")


def test_changes_of_cells(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        cells = editor.open_notebook(NAME, ("python", "import torch"), ("python", "x = torch.ger(a, b)"))
        assert found_in(editor, cells) == [(1, "TM110", "torch.ger")]
        where = types.VersionedTextDocumentIdentifier(2, cells[1])
        area = types.Range(types.Position(0, 0), types.Position(0, 0))
        editor.texts[cells[1]], editor.versions[cells[1]] = "\nx = torch.ger(a, b)", 2
        typed = types.NotebookDocumentCellContentChanges(
            where, [types.TextDocumentContentChangePartial(area, "\n")]
        )
        editor.change_notebook(NAME, 2, types.NotebookDocumentCellChanges(text_content=[typed]))
        (found,) = editor.diagnostics(cells[1])
        assert found.range.start.line == 1
        new = f"{cells[0]}-new"
        item = types.TextDocumentItem(new, "python", 1, "import numpy as torch")
        editor.texts[new], editor.versions[new] = item.text, 1
        added = types.NotebookDocumentCellChangeStructure(
            types.NotebookCellArrayChange(1, 0, [types.NotebookCell(types.NotebookCellKind.Code, new)]),
            did_open=[item],
        )
        before = editor.sent(cells[1])
        editor.change_notebook(NAME, 3, types.NotebookDocumentCellChanges(structure=added))
        assert editor.diagnostics(cells[1], after=before) == []
        removed = types.NotebookDocumentCellChangeStructure(
            types.NotebookCellArrayChange(1, 1), did_close=[types.TextDocumentIdentifier(new)]
        )
        before = editor.sent(cells[1])
        editor.change_notebook(NAME, 4, types.NotebookDocumentCellChanges(structure=removed))
        assert len(editor.diagnostics(cells[1], after=before)) == 1


def test_what_is_closed_has_none(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        cells = editor.open_notebook(NAME, *CELLS)
        assert editor.diagnostics(cells[4])
        before = editor.sent(cells[4])
        params = types.DidCloseNotebookDocumentParams(
            types.NotebookDocumentIdentifier(NAME), [types.TextDocumentIdentifier(cell) for cell in cells]
        )
        editor.do(lambda: editor.client.notebook_document_did_close(params))
        assert editor.diagnostics(cells[4], after=before) == []


def test_a_cell_that_does_not_parse(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        cells = editor.open_notebook(
            NAME, ("python", "import torch"), ("python", "\nx = ("), ("python", "y = torch.ger(a, b)")
        )
        assert [each[:2] for each in found_in(editor, cells)] == [(1, "invalid-syntax"), (2, "TM110")]
        (broken,) = editor.diagnostics(cells[1])
        assert broken.range.start.line == 1
        assert editor.actions(cells[2], only=["source.fixAll"]) == []


def test_the_file_itself_may_be_open(tmp_path: Path) -> None:
    text = '{"cells": [{"cell_type": "code", "source": ["import torch\\n", "torch.ger(a, b)"]}], "nbformat": 4}\n'
    text = text.replace('", "', '",\n"')
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.ipynb", text, "json")
        (found,) = editor.diagnostics(name)
        assert "torch.ger" in editor.inside(name, found.range)
        fix, *_ = editor.actions(name)
        editor.apply(fix.edit)
        assert editor.texts[name] == text.replace("ger", "outer")
