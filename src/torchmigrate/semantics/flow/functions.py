"""The functions of a file, and the statements of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeVar

from msgspec import Struct, field

from torchmigrate.semantics.flow.mentions import LOOPS, Spot, blocks, common_block
from torchmigrate.source.trees import children

_Node = TypeVar("_Node", bound=ast.AST)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Function(Struct, eq=False):
    """A function, or the module: its statements run in one go."""

    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
    outer: Function | None = None
    owner: ast.ClassDef | None = None  # the class, of a method
    bound: set[str] = field(default_factory=set)  # names that are its own
    statements: list[ast.stmt] = field(default_factory=list)  # in source order, those of its blocks too
    calls: list[tuple[ast.stmt, ast.Call]] = field(default_factory=list)  # with the statements they stand in

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "<module>")

    @property
    def parameters(self) -> list[str]:
        """The names of positional parameters, without the object (`self` or `cls`)."""
        if isinstance(self.node, ast.Module):
            return []
        names = [item.arg for item in (*self.node.args.posonlyargs, *self.node.args.args)]
        static = any(getattr(mark, "id", "") == "staticmethod" for mark in self.node.decorator_list)
        return names[1:] if self.owner is not None and not static else names

    def method(self) -> Function | None:
        """The method that this is, or is defined in."""
        here: Function | None = self
        while here is not None and here.owner is None:
            here = here.outer
        return here

    def within(self, other: Function) -> bool:
        """Whether this is `other`, or is defined in it."""
        here: Function | None = self
        while here is not None and here is not other:
            here = here.outer
        return here is not None


class Functions:
    """The functions of one file.

    spots: every statement (by id()) with its place; owners: the function of every statement; around: the
    node around each expression, and the statement around those on top; by_node: the functions by `node`.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.module = Function(tree)
        self.every = [self.module]
        self.spots: dict[int, Spot] = {}
        self.owners: dict[int, Function] = {}
        self.around: dict[int, ast.AST] = {}
        self._read(tree.body, self.module, None, None)
        self.by_node: dict[ast.AST | None, Function] = {item.node: item for item in self.every}

    def _read(
        self, block: list[ast.stmt], function: Function, outer: Spot | None, owner: ast.ClassDef | None
    ) -> None:
        for index, statement in enumerate(block):
            spot = Spot(block, index, outer)
            self.spots[id(statement)] = spot
            self.owners[id(statement)] = function
            function.statements.append(statement)
            self._expressions(statement, function)
            if isinstance(statement, _FUNCTIONS):
                if owner is None:
                    function.bound.add(statement.name)
                inner = Function(statement, function, owner)
                arguments = statement.args
                single = [item for item in (arguments.vararg, arguments.kwarg) if item is not None]
                every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *single)
                inner.bound.update(item.arg for item in every)
                self.every.append(inner)
                self._read(statement.body, inner, None, None)
                continue
            inside = statement if isinstance(statement, ast.ClassDef) else None
            if inside is not None:
                function.bound.add(inside.name)
            for below in blocks(statement):
                self._read(below, function, spot, inside or owner)

    def _expressions(self, statement: ast.stmt, function: Function) -> None:
        todo: list[ast.AST] = [statement]
        shared: set[str] = set()
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Call):
                function.calls.append((statement, node))
            for child in children(node):
                if isinstance(child, ast.stmt):
                    continue
                self.around[id(child)] = node
                todo.append(child)
                if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
                    function.bound.add(child.id)
                elif isinstance(child, ast.alias):
                    function.bound.add(child.asname or child.name.partition(".")[0])
                elif isinstance(child, ast.ExceptHandler) and child.name:
                    function.bound.add(child.name)
        if isinstance(statement, (ast.Global, ast.Nonlocal)):
            shared.update(statement.names)
        function.bound -= shared

    def home(self, name: str, function: Function) -> Function:
        """The function, or the module, whose name a name is."""
        here = function
        while here.outer is not None and name not in here.bound:
            here = here.outer
        return here

    def apart(self, one: ast.stmt, other: ast.stmt) -> bool:
        """Whether two statements stand in both branches of an `if`."""
        common = common_block([self.spots[id(one)], self.spots[id(other)]])
        return (
            common is not None
            and one is not other
            and common[0].statement is common[1].statement
            and isinstance(common[0].statement, ast.If)
        )

    def loops(self, statement: ast.stmt) -> list[ast.stmt]:
        """The loops around a statement, the innermost last; itself if it is one."""
        return [
            spot.statement for spot in self.spots[id(statement)].chain() if isinstance(spot.statement, LOOPS)
        ]

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The statement that an expression stands in."""
        while not isinstance(node, ast.stmt):
            node = self.around[id(node)]
        return node


def key_of(node: ast.expr | None) -> str | None:
    """`model`, `self.model` or `models[0]` as text; None for anything but a plain name of an object."""
    here = node
    while isinstance(here, ast.Attribute) or (
        isinstance(here, ast.Subscript) and isinstance(here.slice, ast.Constant)
    ):
        here = here.value
    return ast.unparse(node) if node is not None and isinstance(here, ast.Name) else None


def own(statement: ast.stmt, *kinds: type[_Node]) -> Iterator[_Node]:
    """The nodes of some kinds in the expressions of a statement, not those of statements inside it."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, kinds):
            yield node
        todo += [child for child in children(node) if not isinstance(child, ast.stmt)]


def arguments(call: ast.Call, called: Function) -> Iterator[tuple[ast.expr, str]]:
    """The arguments of a call with the parameters they are for, as far as that is plain."""
    names = called.parameters
    for argument, name in zip(call.args, names, strict=False):
        if isinstance(argument, ast.Starred):
            break
        yield argument, name
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.value, keyword.arg
