"""When the code at a place runs: with the import of its module, when something calls it, or never."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.patterns import pattern
from torchmigrate.source.text import Positioned, Source
from torchmigrate.source.trees import walk

_WORD = pattern(r"\w+")
_ANYTHING = frozenset(["Exception", "BaseException"])
_TESTS_OF_CLASSES = frozenset(["isinstance", "issubclass"])


class Reach(Struct, frozen=True):
    """What is around a place.

    on_import: the import of the module runs it, as far as nothing that is not known decides that.
    never: nothing runs it: an annotation that is not evaluated, or what is only for type checkers.
    caught: names of the exceptions that are caught around it, and not raised again.
    is_called: it is a call, or in the arguments of one, or another expression that computes something.
    is_import: it is what an import statement takes.
    is_name: it is a name that is neither called nor tested, such as an argument or a base class.
    """

    on_import: bool = False
    never: bool = False
    caught: frozenset[str] = frozenset()
    is_called: bool = False
    is_import: bool = False
    is_name: bool = False

    def catches(self, *names: str) -> bool:
        """Whether one of these exceptions does not get out."""
        return not self.caught.isdisjoint(_ANYTHING.union(names))


class _State(Struct, frozen=True):
    on_import: bool
    never: bool = False
    in_function: bool = False
    in_annotation: bool = False
    caught: frozenset[str] = frozenset()


class Places:
    """Looks at places of one file; only the code around them is walked.

    importable: whether the file is a module; only modules run code on import.
    """

    def __init__(self, tree: ast.Module, source: Source, *, importable: bool = True) -> None:
        self.source = source
        self.tree = tree
        self.importable = importable
        self.lazy = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(alias.name == "annotations" for alias in node.names)
            for node in tree.body[:5]
        )
        self._spans: dict[int, tuple[int, int]] = {}

    def at(self, start: int, end: int) -> Reach:
        """What is around a range of the text (offsets in characters)."""
        state = _State(on_import=self.importable)
        way = list(self._way(start, end))
        for parent, field, node in way:
            state = self._entered(state, parent, field, node)
            if state.in_annotation and isinstance(node, ast.Constant):  # a string, which is not evaluated
                state = replace(state, never=True)
        return _with_kind(
            Reach(state.on_import and not state.never, state.never, state.caught), [node for *_, node in way]
        )

    def unit(self, start: int, end: int, kind: str) -> ast.AST | None:
        """The outermost class or function ("class", "function") around a place; None: there is none.

        Of a use of a class of this file, the class that is used.
        """
        if kind == "class":
            word = _WORD.match(self.source.text, start)
            named = None if word is None else self._classes.get(word[0])
            if named is not None:
                return named
        wanted = (ast.ClassDef,) if kind == "class" else (ast.FunctionDef, ast.AsyncFunctionDef)
        return next((node for _, _, node in self._way(start, end) if isinstance(node, wanted)), None)

    @cached_property
    def _classes(self) -> dict[str, ast.ClassDef]:
        """The classes of the module by name."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}

    # ---- the way down ------------------------------------------------------------------------------------

    def _way(self, start: int, end: int) -> Iterator[tuple[ast.AST, str, ast.AST]]:
        """The nodes around a range, each with its parent and the field in which that has it."""
        node: ast.AST = self.tree
        while True:
            for field, child in _children(node):
                if self._holds(child, start, end):
                    yield node, field, child
                    node = child
                    break
            else:
                return

    def _holds(self, node: ast.AST, start: int, end: int) -> bool:
        first, last = self._span(node)
        return first <= start and end <= last

    def _span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node is, with what its syntax tree leaves out: decorators, and nodes without a place."""
        if id(node) not in self._spans:
            spans = [self.source.span(node)] if _is_positioned(node) else []
            if not spans or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                spans += [self._span(child) for _, child in _children(node) if not _is_leaf(child)]
            self._spans[id(node)] = (
                (min(start for start, _ in spans), max(end for _, end in spans)) if spans else (0, -1)
            )
        return self._spans[id(node)]

    # ---- what runs ---------------------------------------------------------------------------------------

    def _entered(self, state: _State, parent: ast.AST, field: str, node: ast.AST) -> _State:
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if field == "body":
                # What is caught around a definition is not caught around its body.
                return _State(on_import=False, never=state.never, in_function=True)
            returns = field == "returns"
            return replace(
                state,
                never=state.never or (returns and self.lazy),
                in_annotation=state.in_annotation or returns,
            )
        if isinstance(parent, ast.arg) or (isinstance(parent, ast.AnnAssign) and field == "annotation"):
            lazy = self.lazy or (isinstance(parent, ast.AnnAssign) and state.in_function)
            return replace(state, never=state.never or lazy, in_annotation=True)
        if isinstance(parent, ast.Lambda):
            return _State(on_import=False, never=state.never, in_function=True) if field == "body" else state
        if isinstance(parent, ast.If) and field != "test":
            asked = _asks_for_checkers(parent.test)
            if asked is not None:
                return replace(state, never=state.never or asked is (field == "body"))
            return replace(state, on_import=False)
        if isinstance(parent, ast.IfExp) and field != "test":
            return replace(state, on_import=False)
        if isinstance(parent, ast.BoolOp) and node is not parent.values[0]:
            return replace(state, on_import=False)
        if isinstance(parent, ast.Try):
            if field == "body":
                return replace(state, caught=state.caught | _caught(parent))
            return replace(state, on_import=False) if field == "handlers" else state
        if isinstance(parent, ast.match_case) and field == "body":
            return replace(state, on_import=False)
        return state


def _with_kind(reach: Reach, way: list[ast.AST]) -> Reach:
    """The same with what the innermost node is."""
    nodes = [node for node in way if isinstance(node, (ast.expr, ast.stmt, ast.keyword))]
    if not nodes:
        return reach
    node, around = nodes[-1], nodes[-2] if len(nodes) > 1 else None
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return replace(reach, is_import=True)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return reach
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return replace(reach, is_called=True)
    asked = isinstance(around, ast.Compare)
    if isinstance(around, ast.Call):
        called = around.func
        asked = called is node or (isinstance(called, ast.Name) and called.id in _TESTS_OF_CLASSES)
    return replace(reach, is_called=asked, is_name=not asked)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield field, value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    yield field, item


def _is_positioned(node: ast.AST) -> TypeGuard[Positioned]:
    return hasattr(node, "lineno")


def _is_leaf(node: ast.AST) -> bool:
    return isinstance(node, (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop))


def _asks_for_checkers(test: ast.expr) -> bool | None:
    """Whether an `if` is one for type checkers (True), or for all but these (False); None: neither."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked = _asks_for_checkers(test.operand)
        return None if asked is None else not asked
    name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""
    return True if name == "TYPE_CHECKING" else None


def _caught(node: ast.Try) -> frozenset[str]:
    """The exceptions that a `try` handles, by the last parts of their names."""
    caught: set[str] = set()
    for handler in node.handlers:
        if any(isinstance(inner, ast.Raise) for item in handler.body for inner in walk(item)):
            continue
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in kinds:
            if kind is None:
                caught.add("BaseException")
            elif isinstance(kind, ast.Name):
                caught.add(kind.id)
            elif isinstance(kind, ast.Attribute):
                caught.add(kind.attr)
    return frozenset(caught)
