"""The surface of codemods in installed packages: what it is called, and what it takes, stays."""

from __future__ import annotations

import inspect
from pathlib import Path

import torchmigrate.plugins as plugins

PAGE = Path(__file__).parents[2] / "docs/own-rules.md"
SIGNATURES = {
    "finding": "(rule: Rule, hit: Hit, file: File, *edits: Edit, title: str = '', new_name: str | None = None) -> Finding",
    "replace": "(file: File, node: ast.expr | ast.stmt, new: Code) -> Edit",
    "code": "(template: str, /, **parts: Parts) -> Code",
    "CallEditor": "(source: Source, call: ast.Call) -> None",
}
METHODS = {
    "add": "(self, value: Code, keyword: str | None = None) -> None",
    "drop": "(self, argument: Given) -> None",
    "edits": "(self) -> tuple[Edit, ...] | None",
    "rename": "(self, argument: Given, keyword: str | None) -> None",
    "set": "(self, argument: Given, value: Code, keyword: str | None = None) -> None",
}
ATTRIBUTES = {
    "Rule": {"code", "name", "symbols"},
    "Hit": {"name", "symbol", "use"},
    "File": {"tree"},
}


def signature(value: object) -> str:
    return str(inspect.signature(value)).replace('"', "").replace("'Rule'", "Rule")  # type: ignore[arg-type]


def plain(text: str) -> str:
    return text.replace("'", "").replace('"', "")


def test_the_names() -> None:
    assert plugins.__all__ == [
        *("CallEditor", "Code", "Edit", "File", "Finding", "Hit", "Rule", "code", "finding", "replace")
    ]


def test_the_signatures() -> None:
    for name, shown in SIGNATURES.items():
        assert plain(signature(getattr(plugins, name))) == plain(shown), name
    for name, shown in METHODS.items():
        assert plain(signature(getattr(plugins.CallEditor, name))) == plain(shown), name


def test_the_attributes() -> None:
    for name, wanted in ATTRIBUTES.items():
        assert wanted <= set(dir(getattr(plugins, name))), name
    (use,) = (each for each in plugins.Hit.__struct_fields__ if each == "use")
    assert use
    from torchmigrate.semantics.model import SemanticModel, Use

    assert {"node", "call", "statement"} <= set(Use.__struct_fields__)
    assert callable(SemanticModel.nodes)
    parameters = inspect.signature(plugins.File).parameters
    assert {"source", "path"} <= set(parameters)


def test_everything_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    shown = text[text.index("### What a codemod may use") :]
    for name in (*plugins.__all__, *METHODS):
        assert f"`{name}" in shown, name
    assert plugins.__doc__ is not None
    for name in ("finding", "replace"):
        assert "Args:" in (getattr(plugins, name).__doc__ or "")
        assert "Raises:" in (getattr(plugins, name).__doc__ or "")
