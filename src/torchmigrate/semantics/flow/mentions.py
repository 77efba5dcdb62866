"""Every mention of some variables in a scope: where it stands, what is around it, whether it is in a loop.

A variable is a name, or an attribute of `self` in a class: `self.model`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from torchmigrate.source.text import Source
from torchmigrate.source.trees import children, walk

Position = tuple[int, int, int, int]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NONE: frozenset[int] = frozenset()


class Spot(Struct, frozen=True, eq=False):
    """A statement as the block that holds it and its number there; `outer` is the statement around it."""

    block: list[ast.stmt]
    index: int
    outer: Spot | None = None

    @property
    def statement(self) -> ast.stmt:
        return self.block[self.index]

    def chain(self) -> list[Spot]:
        """The spots from the scope's own block inwards, this one last."""
        found: list[Spot] = []
        here: Spot | None = self
        while here is not None:
            found.append(here)
            here = here.outer
        return found[::-1]

    def within(self, block: list[ast.stmt]) -> Spot | None:
        """The statement of `block` that this one is, or stands in; None: it is elsewhere."""
        here: Spot | None = self
        while here is not None and here.block is not block:
            here = here.outer
        return here


def common_block(spots: Sequence[Spot]) -> list[Spot] | None:
    """The statements of the innermost common block that these stand in; None: there is none."""
    for candidate in reversed(spots[0].chain()):
        found = [spot.within(candidate.block) for spot in spots]
        if all(item is not None for item in found):
            return [item for item in found if item is not None]
    return None


class Mention(Struct, frozen=True, eq=False):
    """A place where a variable is read.

    loops: id() of the loops and comprehensions of its own function around it. nested: inside a function or
    class that is defined in the scope, so that it is unknown when it runs.
    """

    node: ast.Name | ast.Attribute
    spot: Spot
    loops: frozenset[int]
    nested: bool

    @property
    def position(self) -> Position:
        return position(self.spot, self.node)


def variable(node: ast.AST) -> str:
    """How a variable is written, `model` or `self.model`; else empty."""
    if isinstance(node, ast.Name):
        return node.id
    owner = node.value if isinstance(node, ast.Attribute) else None
    return f"self.{node.attr}" if isinstance(owner, ast.Name) and owner.id == "self" else ""  # type: ignore[attr-defined]


def position(spot: Spot, node: ast.Name | ast.Attribute) -> Position:
    """What names are in order by: first the statement, since names in f-strings may be misplaced."""
    statement = spot.statement
    return (statement.lineno, statement.col_offset, node.lineno, node.col_offset)


class Mentions:
    """The mentions of variables in one scope, by name and in source order, with the nodes around each.

    Args:
        source: the text, so that statements without any of the names are not walked.
        body: the statements of the scope.
        wanted: the variables.
        hidden: which names a nested function does not take from here, since it binds them itself.
        method: for a class, the function that is not counted as nested: what runs in it runs in this order.
    """

    def __init__(
        self,
        source: Source,
        body: list[ast.stmt],
        wanted: frozenset[str],
        hidden: Callable[[ast.AST], frozenset[str]],
        method: ast.AST | None = None,
    ) -> None:
        self.of: dict[str, list[Mention]] = {name: [] for name in wanted}
        self._parents: dict[ast.AST, ast.AST] = {}
        self._source = source
        self._wanted = wanted
        # Not by recursion: some `elif` chains are thousands of branches deep.
        todo = [(spot, wanted, _NONE, False) for spot in _spots(body, None)]
        todo.reverse()
        while todo:
            spot, names, loops, nested = todo.pop()
            statement = spot.statement
            if not self._names_one(statement):
                continue
            self._expressions(spot, names, loops, nested)
            inner, deeper = names, nested
            if isinstance(statement, _FUNCTIONS):
                inner, loops = names - hidden(statement), _NONE
                deeper = deeper or statement is not method
            elif isinstance(statement, ast.ClassDef):
                deeper = True
            elif isinstance(statement, LOOPS):
                loops |= {id(statement)}
            for block in reversed(list(blocks(statement))):
                todo += [(below, inner, loops, deeper) for below in reversed(list(_spots(block, spot)))]
        for mentions in self.of.values():
            mentions.sort(key=lambda mention: mention.position)

    def _names_one(self, statement: ast.stmt) -> bool:
        """Whether the lines of a statement have one of the names, be it as a part of another."""
        first = min(
            (mark.lineno for mark in getattr(statement, "decorator_list", ())), default=statement.lineno
        )
        last = statement.end_lineno or statement.lineno
        start, end = self._source.offset(first, 0), self._source.offset(last + 1, 0)
        return any(self._source.text.find(name, start, end) >= 0 for name in self._wanted)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around an expression; a statement has none."""
        return self._parents.get(node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around an expression, the nearest first, up to its statement."""
        outer = self._parents.get(node)
        while outer is not None:
            yield outer
            outer = self._parents.get(outer)

    def _expressions(self, spot: Spot, names: frozenset[str], loops: frozenset[int], nested: bool) -> None:
        if isinstance(spot.statement, ast.While):
            loops |= {id(spot.statement)}
        todo: list[tuple[ast.AST, frozenset[str], frozenset[int]]] = [(spot.statement, names, loops)]
        while todo:
            node, names, loops = todo.pop()
            for child in children(node):
                if isinstance(child, ast.stmt):
                    continue  # it has a spot of its own
                self._parents[child] = node
                if isinstance(child, (ast.Name, ast.Attribute)):
                    name = variable(child)
                    if name in names and isinstance(child.ctx, ast.Load):
                        self.of[name].append(Mention(child, spot, loops, nested))
                    if isinstance(child, ast.Name):
                        continue
                if isinstance(child, ast.Lambda):
                    todo.append((child, names - parameters(child.args), loops))
                elif isinstance(child, _COMPREHENSIONS):
                    todo.append((child, names - _targets(child), loops | {id(child)}))
                else:
                    todo.append((child, names, loops))


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks inside a compound statement, in source order."""
    body = getattr(statement, "body", None)
    if body:
        yield body
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body
    for name in ("orelse", "finalbody"):
        block = getattr(statement, name, None)
        if block:
            yield block


def parameters(arguments: ast.arguments) -> frozenset[str]:
    """The names of all parameters."""
    single = [item for item in (arguments.vararg, arguments.kwarg) if item is not None]
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *single)
    return frozenset(item.arg for item in every)


def spots(body: list[ast.stmt]) -> Iterator[Spot]:
    """All statements of a body, those of the functions and classes in it included."""
    todo = [*_spots(body, None)]
    while todo:
        spot = todo.pop()
        yield spot
        for block in blocks(spot.statement):
            todo += _spots(block, spot)


def _spots(block: Sequence[ast.stmt], outer: Spot | None) -> Iterator[Spot]:
    assert isinstance(block, list), "the parser makes lists"
    return (Spot(block, index, outer) for index in range(len(block)))


def _targets(node: ast.AST) -> frozenset[str]:
    return frozenset(
        inner.id
        for part in getattr(node, "generators", ())
        for inner in walk(part.target)
        if isinstance(inner, ast.Name)
    )
