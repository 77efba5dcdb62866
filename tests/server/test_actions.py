"""What an editor offers to do about findings, and what that makes of the texts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from harness.editor import Editor
from harness.launcher import quick_command
from harness.project import environment
from lsprotocol import types
from pygls.exceptions import JsonRpcException

OLD = (
    "import torch\n"
    "from torch import ger\n"
    "\n"
    "x = torch.ger(a, b)\n"
    "y = ger(a, b)\n"
    "L, V = torch.symeig(x, eigenvectors=True)\n"
)
ALL = "source.fixAll.torchmigrate"
QUICK = "quickfix"


def fixed(directory: Path, name: str, text: str, *options: str) -> str:
    """What `check --fix` makes of a text."""
    path = directory / name
    path.write_bytes(text.encode())
    subprocess.run(
        quick_command("check", "--fix", *options, path), cwd=directory, env=environment(), capture_output=True
    )
    new = path.read_bytes().decode()
    path.unlink()
    return new


def titles(found: list[types.CodeAction]) -> list[str]:
    return [each.title for each in found]


@pytest.mark.parametrize("resolve", [False, True], ids=["at once", "resolved"])
def test_a_fix_for_one_finding(tmp_path: Path, resolve: bool) -> None:
    with Editor(tmp_path, resolve=resolve) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        here = editor.area(name, "torch.ger")
        fix, suppress, *rest = editor.actions(name, here)
        assert fix.title == "torchmigrate (TM110): Replace with `torch.outer`"
        assert (fix.kind, fix.is_preferred) == (QUICK, True)
        assert [each.code for each in fix.diagnostics or ()] == ["TM110"]
        assert suppress.title == "torchmigrate (TM110): Suppress on this line"
        assert suppress.is_preferred is None
        assert [each.kind for each in rest] == [ALL]
        assert (fix.edit is None) is resolve
        editor.apply(editor.resolved(fix).edit if resolve else fix.edit)
        assert editor.texts[name] == OLD.replace("torch.ger", "torch.outer")


def quick_fix(editor: Editor, name: str, part: str, end: str) -> str:
    """The text after the quick fix at a part of it whose title ends so."""
    found = [each for each in editor.actions(name, editor.area(name, part), [QUICK]) if end in each.title]
    (action,) = found
    before = editor.texts[name]
    editor.apply(editor.resolved(action).edit if action.edit is None else action.edit)
    new, editor.texts[name] = editor.texts[name], before
    return new


@pytest.mark.parametrize("resolve", [False, True], ids=["at once", "resolved"])
def test_a_quick_fix_removes_the_import_that_it_leaves_unused(tmp_path: Path, resolve: bool) -> None:
    """As `--fix` does, and as long as something else uses it, it stays."""
    head, use = "import torch\nimport functorch", "y = functorch.vmap(f)(a)"
    one = f"{head}\n\n{use}\n"
    two = f"{one}z = functorch.vmap(f)(b)\n"
    new_use = "y = torch.func.vmap(f)(a)"
    with Editor(tmp_path, resolve=resolve) as editor:
        name = editor.open(tmp_path / "a.py", one)
        new = quick_fix(editor, name, "functorch.vmap", "`torch.func.vmap`")
        assert new == fixed(tmp_path, "b.py", one) == f"import torch\n\n{new_use}\n"
        name = editor.open(tmp_path / "c.py", two)
        assert quick_fix(editor, name, "functorch.vmap", "`torch.func.vmap`") == two.replace(use, new_use)
        first, second = editor.open_notebook("file:///a.ipynb", ("python", head), ("python", use))
        action = editor.actions(second, only=[QUICK])[0]
        editor.apply(editor.resolved(action).edit if resolve else action.edit)
        assert (editor.texts[first], editor.texts[second]) == ("import torch", new_use)


def test_a_quick_fix_is_about_one_of_two_examples_that_are_alike(tmp_path: Path) -> None:
    text = "# Use\n\n" + "```python\nimport torch\nx = torch.ger(a, b)\n```\n\n" * 2
    with Editor(tmp_path, options={"embedded": True}) as editor:
        name = editor.open(tmp_path / "README.md", text, "markdown")
        first, second = (each.range for each in editor.diagnostics(name))
        (fix,) = editor.actions(name, second, [QUICK])
        editor.apply(fix.edit)
        head, tail = text[: len(text) // 2], text[len(text) // 2 :]
        assert editor.texts[name] == head + tail.replace("ger", "outer")
        assert first != second


def test_a_quick_fix_comes_with_those_that_only_make_sense_together(tmp_path: Path) -> None:
    text = (
        "import torch.nn as nn\nfrom torch.nn.utils import remove_weight_norm, weight_norm\n\n\n"
        "layer = weight_norm(nn.Linear(2, 2))\nremove_weight_norm(layer)\n"
    )
    rules = ["weight-norm", "remove-weight-norm"]
    new = fixed(tmp_path, "b.py", text, "--unsafe-fixes", "--select", ",".join(rules))
    with Editor(tmp_path, options={"select": rules}) as editor:
        name = editor.open(tmp_path / "a.py", text)
        assert quick_fix(editor, name, "remove_weight_norm", "(unsafe") == new != text


def test_the_safe_and_the_unsafe_fix_of_a_place(tmp_path: Path) -> None:
    text = "import torch\n\n\ndef f(x):\n    y = torch.rfft(x, 2)\n    return torch.irfft(y, 2)\n"
    safe, unsafe = fixed(tmp_path, "b.py", text), fixed(tmp_path, "b.py", text, "--unsafe-fixes")
    assert safe != unsafe
    for preferred in (False, True):
        with Editor(tmp_path, options={"unsafeFixes": preferred}) as editor:
            name = editor.open(tmp_path / "a.py", text)
            found = editor.actions(name, editor.area(name, "torch.rfft"), [QUICK])
            assert [("(unsafe" in each.title, each.is_preferred) for each in found[:2]] == (
                [(True, True), (False, None)] if preferred else [(False, True), (True, None)]
            )
            assert quick_fix(editor, name, "torch.rfft", "around the transform") == safe
            assert quick_fix(editor, name, "torch.rfft", "Compute with complex") == unsafe


def test_a_fix_is_offered_where_the_finding_is(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        inside = types.Position(3, 6)
        assert any("TM110" in title for title in titles(editor.actions(name, types.Range(inside, inside))))
        elsewhere = types.Position(2, 0)
        assert titles(editor.actions(name, types.Range(elsewhere, elsewhere), [QUICK])) == []


def test_an_unsafe_fix_says_why(tmp_path: Path) -> None:
    text = "import torch\nx = torch.ger(a, b)\n"
    with Editor(tmp_path, options={"minimum": "1.5"}) as editor:
        name = editor.open(tmp_path / "a.py", text)
        fix, _ = editor.actions(name)
        assert fix.title == (
            "torchmigrate (TM110): Replace with `torch.outer`"
            " (unsafe: needs torch 1.7, but the project supports torch 1.5)"
        )
        assert fix.is_preferred is None
        assert editor.actions(name, only=[ALL]) == []
        editor.apply(fix.edit)
        assert "torch.outer" in editor.texts[name]
    with Editor(tmp_path, options={"minimum": "1.5", "unsafeFixes": True}) as editor:
        name = editor.open(tmp_path / "a.py", text)
        fix, _, every = editor.actions(name)
        assert "(unsafe: " in fix.title
        assert fix.is_preferred is True
        assert every.title == "torchmigrate: Apply all fixes"


def test_a_comment_hides_one_finding(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", "import torch\nx = torch.ger(torch.symeig(a)[0], b)\n")
        for code in ("TM110", "TM100"):
            (action,) = [
                each
                for each in editor.actions(name)
                if each.title.endswith(f"({code}): Suppress on this line")
            ]
            before = editor.texts[name]
            editor.apply(action.edit)
            new = editor.texts[name]
            editor.texts[name] = before
            editor.change(name, (None, new))
        assert editor.texts[name].endswith("  # torchmigrate: ignore[TM110, TM100]\n")
        assert editor.diagnostics(name) == []


def test_no_comment_where_none_can_be(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(
            tmp_path / "README.md", "```bash\npython -m torch.distributed.launch a.py\n```\n", "markdown"
        )
        assert len(editor.diagnostics(name)) == 1
        assert not any("Suppress" in title for title in titles(editor.actions(name)))


def test_a_line_that_takes_no_comment_is_named(tmp_path: Path) -> None:
    text = "cat <<EOF\nhello\nEOF\npython -m torch.distributed.launch a.py\n"
    with Editor(tmp_path, resolve=True) as editor:
        name = editor.open(tmp_path / "run.sh", text, "shellscript")
        found = [each for each in editor.actions(name) if "Suppress" in each.title]
        assert found
        editor.apply(editor.resolved(found[0]).edit)
        assert editor.texts[name] == text
        (said,) = editor.messages
        assert said.message.endswith(": a comment would change the meaning of the line")


@pytest.mark.parametrize("resolve", [False, True], ids=["at once", "resolved"])
def test_all_safe_fixes(tmp_path: Path, resolve: bool) -> None:
    new = fixed(tmp_path, "b.py", OLD)
    assert "from torch import outer" in new
    with Editor(tmp_path, resolve=resolve) as editor:
        for kind in ("source", "source.fixAll", ALL):
            name = editor.open(tmp_path / "a.py", OLD)
            (action,) = editor.actions(name, only=[kind])
            assert (action.kind, action.title) == (ALL, "torchmigrate: Apply all safe fixes")
            editor.apply(editor.resolved(action).edit if resolve else action.edit)
            assert editor.texts[name] == new
            editor.leave(name)


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        assert {each.kind for each in editor.actions(name, only=[QUICK])} == {QUICK}
        assert editor.actions(name, only=["source.organizeImports", "refactor"]) == []
        clean = editor.open(tmp_path / "b.py", "import torch\n")
        assert editor.actions(clean) == []


def test_edits_keep_the_rest(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        for number, end in enumerate(("\n", "\r\n", "\r")):
            text = OLD.replace("\n", end)
            name = editor.open(tmp_path / f"a{number}.py", text)
            (action,) = editor.actions(name, only=[ALL])
            editor.apply(action.edit)
            assert editor.texts[name] == fixed(tmp_path, "b.py", text)


def test_a_command_does_the_same(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        assert editor.server.execute_command_provider is not None
        assert list(editor.server.execute_command_provider.commands) == ["torchmigrate.applyAllFixes"]
        one, two = (editor.open(tmp_path / file, OLD) for file in ("a.py", "b.py"))
        new = fixed(tmp_path, "c.py", OLD)
        editor.run("torchmigrate.applyAllFixes", one)
        editor.run("torchmigrate.applyAllFixes", {"uri": two, "version": 1})
        assert editor.texts == {one: new, two: new}
        editor.run("torchmigrate.applyAllFixes", "file:///not/open.py")
        editor.run("torchmigrate.applyAllFixes", 1, None)
        assert len(editor.edits) == 2


def test_an_action_for_another_version_is_refused(tmp_path: Path) -> None:
    with Editor(tmp_path, resolve=True) as editor:
        name = editor.open(tmp_path / "a.py", OLD)
        fix, *_ = editor.actions(name)
        editor.change(name, (types.Range(types.Position(0, 0), types.Position(0, 0)), "\n"))
        with pytest.raises(JsonRpcException) as refused:
            editor.resolved(fix)
        assert refused.value.code == types.LSPErrorCodes.ContentModified
        fix, *_ = editor.actions(name)
        assert editor.resolved(fix).edit is not None


def test_examples_in_documentation_are_fixed(tmp_path: Path) -> None:
    text = "# Use\n\n```python\nimport torch\n\nx = torch.ger(a, b)\n```\n"
    with Editor(tmp_path, options={"embedded": True}) as editor:
        name = editor.open(tmp_path / "README.md", text, "markdown")
        (found,) = editor.diagnostics(name)
        assert editor.inside(name, found.range) == "torch.ger"
        (fix,) = editor.actions(name, only=[QUICK])
        editor.apply(fix.edit)
        assert editor.texts[name] == text.replace("ger", "outer")
        (every,) = editor.actions(name, only=[ALL])
        editor.texts[name] = text
        editor.apply(every.edit)
        assert editor.texts[name] == text.replace("ger", "outer")
