"""`rewrite/` is the only room that makes edits: a codemod says what becomes of a node, never where in the text.

So a codemod makes no `Edit`, takes no part out of a source's text and searches it with no pattern; new code is a
`code("template with $names", ...)`, of which the template is written out, and whose parts are names, literals and
nodes, not text that was put together. That functions of `rewrite/` take such code and no plain text is what mypy
says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

import torchmigrate

pytestmark = pytest.mark.one_python

ROOT = Path(torchmigrate.__file__).parent
CODEMODS = sorted(ROOT.glob("codemods/**/*.py"))
OTHERS = sorted({*ROOT.glob("**/*.py")} - {*CODEMODS, *ROOT.glob("rewrite/**/*.py")})
# Lays examples of rules out in other ways, for the tests of their fixes.
LAYOUTS = ROOT / "authoring" / "variations.py"
# These show, or read back, what was made there.
SHOWN = (ROOT / "api.py", ROOT / "cache" / "records.py")

_PATTERN_METHODS = frozenset("findall finditer fullmatch match search split sub subn".split())
_SLICES = frozenset(("segment", "line_text"))  # methods of `Source` that give a part of its text
_Values: TypeAlias = dict[str, list[ast.expr]]
_MADE = (ast.JoinedStr, ast.BinOp)  # text that is put together


def offences(tree: ast.Module) -> Iterator[str]:
    """What a module does that is for `rewrite/` alone, each with its line."""
    constants, editing = _values(_own(tree)), _from_rewrite(tree)
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for scope in (tree, *scopes):
        nodes = _own(scope)
        texts, values = _texts(nodes), {**constants, **_values(nodes)}
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and any(alias.name == "splice" for alias in node.names):
                yield f"line {node.lineno}: puts edits into a text"
            elif isinstance(node, ast.Subscript) and _is_text(node.value, texts):
                yield f"line {node.lineno}: takes a part of the text"
            elif isinstance(node, ast.Call):
                yield from _offences_of(node, texts, values)
                if _last(node.func) in editing and any(isinstance(item, _MADE) for item in node.args):
                    yield f"line {node.lineno}: gives `rewrite/` text that is put together"


def _from_rewrite(tree: ast.Module) -> set[str]:
    """The functions of `rewrite/` that a module takes; what is raised is for people."""
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torchmigrate.rewrite")
        for alias in node.names
        if alias.name not in ("Crowded", "CannotFix", "Refusal")
    }


def _own(scope: ast.AST) -> list[ast.AST]:
    """The nodes of a function, or of the module, without those of functions inside."""
    found: list[ast.AST] = []
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef):
            todo += ast.iter_child_nodes(node)
    return found


def _offences_of(call: ast.Call, texts: set[str], values: _Values) -> Iterator[str]:
    name = _last(call.func)
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if name in ("Edit", "Code"):
        yield f"line {call.lineno}: makes an `{name}` itself"
    elif name in _SLICES and isinstance(call.func, ast.Attribute):
        yield f"line {call.lineno}: takes a part of the text"
    elif name in _PATTERN_METHODS and any(_is_text(item, texts) for item in given):
        yield f"line {call.lineno}: searches the text with a pattern"
    elif isinstance(call.func, ast.Attribute) and name in (
        "split",
        "splitlines",
        "partition",
        "index",
        "find",
    ):
        if _is_text(call.func.value, texts):
            yield f"line {call.lineno}: searches the text"
    elif name == "code":
        if not _is_written_out(call.args[0], values):
            yield f"line {call.lineno}: puts a template together"
        if any(map(_is_put_together, given[1:])):
            yield f"line {call.lineno}: puts a part of new code together"
    elif name == "Argument" and any(map(_is_put_together, given)):
        yield f"line {call.lineno}: puts a part of new code together"


def _texts(nodes: list[ast.AST]) -> set[str]:
    """The variables that are given the text of a source."""
    return {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign)
        for target, value in _pairs(node)
        if isinstance(target, ast.Name) and _is_text(value, set())
    }


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _is_text(node: ast.expr, texts: set[str]) -> bool:
    """Whether an expression is the text of a source, or of an editor of one."""
    if isinstance(node, ast.Name):
        return node.id in texts
    if not isinstance(node, ast.Attribute) or node.attr != "text":
        return False
    return _last(node.value).strip("_") in ("source", "rewriting", "file", "editor")


def _values(nodes: list[ast.AST]) -> _Values:
    """What every variable is given."""
    found: _Values = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target, value in _pairs(node):
                found.setdefault(_last(target), []).append(value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            found.setdefault(_last(node.target), []).append(node.value)
    return found


def _is_written_out(node: ast.expr, values: _Values) -> bool:
    """Whether a template stands in the code: as a string, one of several, or what a variable is given."""
    if isinstance(node, ast.IfExp):
        return _is_written_out(node.body, values) and _is_written_out(node.orelse, values)
    if isinstance(node, ast.Subscript):
        return _is_written_out(node.value, values)
    if isinstance(node, ast.Dict):
        return all(_is_written_out(value, values) for value in node.values)
    if isinstance(node, ast.Name):
        given = values.get(node.id, [])
        return bool(given) and all(_is_written_out(value, values) for value in given)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_put_together(node: ast.expr) -> bool:
    joined = isinstance(node, ast.Call) and _last(node.func) in ("join", "format", "shown", "unparse")
    return isinstance(node, _MADE) or joined


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", CODEMODS, ids=_name)
def test_codemods_say_what_and_not_where(path: Path) -> None:
    assert list(offences(ast.parse(path.read_text("utf-8")))) == []


@pytest.mark.parametrize("path", [item for item in OTHERS if item not in (LAYOUTS, *SHOWN)], ids=_name)
def test_no_other_room_makes_edits(path: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    assert [call.lineno for call in calls if _last(call.func) == "Edit"] == []


@pytest.mark.parametrize(
    "line",
    [
        "edit = Edit(start, end, 'x')",
        "from torchmigrate.rewrite.apply import splice",
        "part = self.source.text[1:2]",
        "text = file.source.text\npart = text[1:]",
        "names, text = file.names, file.source.text\npart = text[1:]",
        "part = file.source.segment(node)",
        "found = re.search(PATTERN, source.text)",
        "text = source.text\nfound = _PATTERN.match(text, 3)",
        "found = source.text.index('def', 3)",
        "new = Code('f(x)', {})",
        "new = code(f'{function}($x)', x=node)",
        "new = code(template, x=node)",
        "template = f'{function}($x)'\nnew = code(template, x=node)",
        "new = code('$f($x)', f=f'{module}.f', x=node)",
        "new = code('$f', f=', '.join(names))",
        "new = Argument(f'{x} + 1', 'dim')",
        "new = code('$f($x)', f=source.shown(node.func), x=node)",
        "from torchmigrate.rewrite.nodes import renamed\nedit = renamed(source, node, f'{old}_', new)",
    ],
)
def test_what_is_found(line: str) -> None:
    assert list(offences(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "new = code('$f($x)' if plain else '$f()', f=spelling.text, x=node)",
        "_FLIPPED = {ast.Eq: '$x == 1'}\nnew = code(_FLIPPED[type(node.op)], x=node)",
        "found = 'pretrained' in file.source.text",
        "found = _NAME.search(ast.unparse(node.func))",
        "parts = spelling.text.partition('.')",
        "message = f'{ast.unparse(node)} is gone'",
    ],
)
def test_what_is_allowed(line: str) -> None:
    assert not list(offences(ast.parse(line)))
