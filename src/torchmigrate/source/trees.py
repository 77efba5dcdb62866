"""Walking syntax trees: what `ast.walk` and `ast.iter_child_nodes` give, in a third of the time.

Both differ in one thing: the contexts (`ast.Load`, `ast.Store`, `ast.Del`), which stand for no place, are
left out.
"""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)

# Fields, as a docstring says: `If(expr test, stmt* body, stmt* orelse)`, or, since Python 3.14, `expr?*`.
_FIELD = re.compile(r"(\w+)([*?]*) (\w+)")
_NO_NODES = frozenset(["identifier", "int", "string", "constant", "expr_context", "type_ignore"])


class _Fields(dict[type, "tuple[tuple[str, bool], ...]"]):
    """The fields of each class of nodes that hold other nodes, and whether it is a list of them.

    Worked out when a class first comes up.
    """

    def __missing__(self, kind: type[ast.AST]) -> tuple[tuple[str, bool], ...]:
        listed = _FIELD.findall(kind.__doc__ or "")
        assert [name for _, _, name in listed] == list(kind._fields), f"{kind} is described as before"
        self[kind] = fields = tuple(
            (name, "*" in mark) for held, mark, name in listed if held not in _NO_NODES
        )
        return fields


_FIELDS = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node, in source order."""
    found: list[ast.AST] = []
    for name, many in _FIELDS[node.__class__]:
        value = getattr(node, name)
        if many:
            # Of a dict `{**x}` there is no key, nor has every parameter a default.
            found += value if None not in value else [item for item in value if item is not None]
        elif value is not None:
            found.append(value)
    return found


def walk(tree: ast.AST, most: int = sys.maxsize) -> list[ast.AST]:
    """A node and all that are below it, those nearer to it first; some of them if they are over `most`."""
    found = [tree]
    add = found.append
    fields = _FIELDS
    for node in found:
        for name, many in fields[node.__class__]:
            value = getattr(node, name)
            if many:
                for item in value:
                    if item is not None:
                        add(item)
            elif value is not None:
                add(value)
        if len(found) > most:
            break
    return found


class Nodes:
    """The nodes that `walk` gives, by their class.

    Attributes:
        parents: node -> the one around it.
    """

    def __init__(self, tree: ast.AST) -> None:
        held: dict[type[ast.AST], list[ast.AST]] = {}
        parents: dict[ast.AST, ast.AST] = {}
        found = [tree]
        add = found.append
        fields = _FIELDS
        for node in found:
            kind = node.__class__
            if kind in held:
                held[kind].append(node)
            else:
                held[kind] = [node]
            for name, many in fields[kind]:
                value = getattr(node, name)
                if many:
                    for item in value:
                        if item is not None:
                            add(item)
                            parents[item] = node
                elif value is not None:
                    add(value)
                    parents[value] = node
        self._held = held
        self.parents = parents

    def __iter__(self) -> Iterator[ast.AST]:
        return chain.from_iterable(self._held.values())

    def __call__(self, kind: type[Node]) -> list[Node]:
        """Those of one class, and not of those below it."""
        return self._held.get(kind, [])  # type: ignore[return-value]  # grouped by class


def is_below(node: ast.AST, outer: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a node is in another one, or is that; `parents` as `Nodes` has them."""
    here: ast.AST | None = node
    while here is not None and here is not outer:
        here = parents.get(here)
    return here is not None


def statement_at(
    tree: ast.Module, offset: int, span: Callable[[ast.stmt], tuple[int, int]]
) -> ast.stmt | None:
    """The innermost statement at an offset, or the next one in its block; None: it is in no block.

    Args:
        span: where a statement starts and ends.
    """
    found: ast.stmt | None = None
    blocks: list[list[ast.stmt]] = [tree.body]
    while blocks:
        inside = [block for block in blocks if span(block[0])[0] <= offset]
        if not inside:
            break
        block = inside[-1]
        number = bisect_right(block, offset, key=lambda statement: span(statement)[0]) - 1
        if span(block[number])[1] <= offset:
            return block[number + 1] if number + 1 < len(block) else found
        found = block[number]
        parts = [found, *getattr(found, "handlers", ()), *getattr(found, "cases", ())]
        held = [getattr(part, name, None) for name in ("body", "orelse", "finalbody") for part in parts]
        blocks = sorted((block for block in held if isinstance(block, list) and block), key=_line)
    return found


def _line(block: list[ast.stmt]) -> tuple[int, int]:
    return block[0].lineno, block[0].col_offset


def block_of(outer: ast.AST | None, statement: ast.stmt) -> list[ast.stmt]:
    """The block of `outer` that a statement is in; empty if it is in none of its own."""
    here = statement.lineno, statement.col_offset
    for name in ("body", "orelse", "finalbody"):
        block = getattr(outer, name, None)
        if isinstance(block, list) and block and _line(block) <= here:
            last = block[-1]
            if here <= (last.lineno, last.col_offset):
                return block
    return []


def chain_of(node: ast.If) -> list[ast.If]:
    """An `if` and those that are its `elif` branches."""
    chain = [node]
    while len(chain[-1].orelse) == 1 and isinstance(chain[-1].orelse[0], ast.If):
        chain.append(chain[-1].orelse[0])
    return chain


def walk_own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes below some, in no order, without what is in functions and classes that are defined there."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo += children(node)


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a string."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def has_effects(node: ast.AST, harmless: Container[str] = ()) -> bool:
    """Whether evaluating an expression may do something that must not be lost.

    harmless: last names of functions that may be called.
    """
    effects = (ast.Call, ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom)
    return any(
        isinstance(inner, effects) and not (isinstance(inner, ast.Call) and last_name(inner.func) in harmless)
        for inner in ast.walk(node)
    )


def names_attribute(node: ast.AST, name: str) -> bool:
    """Whether something below a node sets an attribute or a variable of a name, or has it as a string."""
    return any(
        (isinstance(item, ast.Attribute) and item.attr == name and not isinstance(item.ctx, ast.Load))
        or (isinstance(item, ast.Name) and item.id == name and not isinstance(item.ctx, ast.Load))
        or (isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and item.name == name)
        or (isinstance(item, ast.Constant) and item.value == name)
        for item in walk(node)
    )


def last_name(node: ast.AST) -> str:
    """The last part of `a.b.c`; empty for anything but a chain of names and attributes."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
