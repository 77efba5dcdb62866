"""Walking trees: the same nodes in the same order as with the standard library."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchmigrate.semantics.walk.resolver import resolve
from torchmigrate.source.text import Source
from torchmigrate.source.trees import Nodes, children, walk

FILES = sorted(Path(__file__).parents[1].glob("*/test_*.py"))
ODD = """
import a.b as c
from . import (d, e as f)
type_less: int
def g(h, /, i: int = 1, *j, k, l=2, **m) -> None:
    global n
    with o as p, q: yield {**r, 's': t}
    try: del u[1:2:3]
    except* (V, W) as x: raise Y from z
async def aa():
    async for ab in ac: await ad
    return [ae async for ae in af if ag], lambda *ah: (ai := f"{aj!r:>{ak}}")
match al:
    case [1, *am] | {"an": ao, **ap} | aq(ar=1) as at if not au < 1 <= av: pass
"""


def _without_contexts(nodes: list[ast.AST]) -> list[ast.AST]:
    return [node for node in nodes if not isinstance(node, ast.expr_context)]


def _trees() -> list[ast.AST]:
    texts = [path.read_text(encoding="utf-8") for path in FILES[:20]]
    odd = ODD if hasattr(ast, "TryStar") else ODD.replace("except*", "except")
    return [ast.parse(text) for text in (*texts, odd)]


@pytest.mark.parametrize("tree", _trees())
def test_walk_gives_what_ast_walk_gives(tree: ast.AST) -> None:
    expected = _without_contexts(list(ast.walk(tree)))
    found = walk(tree)
    assert len(found) == len(expected)
    assert all(one is other for one, other in zip(found, expected, strict=True))
    for node in expected:
        assert children(node) == _without_contexts(list(ast.iter_child_nodes(node)))


def test_nodes_by_class() -> None:
    tree = ast.parse("a = b = f(1)\nf(2)\nclass C:\n    c = f(g(3))\n")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert Nodes(tree)(ast.Call) == calls
    source = Source.from_text(ast.unparse(tree), Path("x.py"))
    names = resolve(tree, source)
    assert names.nodes(ast.Call) == calls
    assert names.nodes(ast.Await) == []


def test_a_node_made_by_hand_may_lack_fields() -> None:
    assert children(ast.Return()) == []
