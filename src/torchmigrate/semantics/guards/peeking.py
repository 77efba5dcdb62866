"""The values of simple expressions: what tests of versions and names ask for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec import Struct, field

from torchmigrate.semantics.guards.flags import only_flags
from torchmigrate.semantics.model import (
    OPAQUE,
    Candidate,
    Const,
    Flag,
    Foreign,
    Instance,
    Local,
    Mark,
    QualifiedName,
    Value,
    VersionOf,
)
from torchmigrate.semantics.values.slots import UNKNOWN

if TYPE_CHECKING:
    from torchmigrate.semantics.formulas import TryGuard
    from torchmigrate.semantics.model import SemanticModel
    from torchmigrate.semantics.values.classes import ClassInfo


class Walked(Struct):
    """What the walk of a file remembers for the tests in it.

    text: the source.
    bases: id of the name that a chain begins with -> what it held there, if that is known.
    held: all that each name of the module ever held.
    classes: those of the file. mentions: of its functions, where they are read.
    left: ids of the blocks whose end is never reached, and of the calls, as statements, after which nothing
        runs.
    attempts: id of the body of a `try` with a handler for what is missing -> that statement.
    """

    text: str
    bases: dict[int, Value] = field(default_factory=dict)
    held: dict[str, Value] = field(default_factory=dict)
    classes: dict[ast.AST, ClassInfo] = field(default_factory=dict)
    mentions: dict[ast.AST, list[ast.AST]] = field(default_factory=dict)
    left: set[int] = field(default_factory=set)
    attempts: dict[int, TryGuard] = field(default_factory=dict)


class Peeking:
    """Evaluates names, attributes and constants, and records no use of them.

    Attributes:
        classes: those of the file.
    """

    __slots__ = ()
    classes: dict[ast.AST, ClassInfo]

    def name(self, node: ast.Name) -> Value:
        """What a name holds at its place."""
        raise NotImplementedError

    def own(self, node: ast.Attribute) -> Value | None:
        """What an attribute of `self` holds that the method around it sets; None: it is none of those."""
        raise NotImplementedError

    def peek(self, node: ast.expr) -> Value:
        """The value of a simple expression; `UNKNOWN` for any other."""
        kind = node.__class__
        if kind is ast.Name:
            value = self.name(node)  # type: ignore[arg-type]
            return value if len(value) < 2 else only_flags(value)
        if kind is ast.Attribute:
            return self._attribute(node)  # type: ignore[arg-type]
        if kind is ast.Constant:
            return (Const(node.value),)  # type: ignore[attr-defined]
        if kind is ast.Tuple or kind is ast.List:
            parts: list[object] = []
            for element in node.elts:  # type: ignore[attr-defined]
                value = self.peek(element)
                if len(value) != 1 or not isinstance(value[0], Const):
                    return UNKNOWN
                parts.append(value[0].value)
            return (Const(tuple(parts)),)
        return UNKNOWN

    def _attribute(self, node: ast.Attribute) -> Value:
        held = self.own(node)
        if held is not None:
            return only_flags(_about_versions(held))
        around = self.peek(node.value)
        if around is UNKNOWN:  # most are
            return UNKNOWN
        out: list[Candidate] = []
        for item in around:
            if isinstance(item, QualifiedName):
                out.append(QualifiedName(f"{item.name}.{node.attr}", item.sure, item.via))
            elif isinstance(item, Instance):
                out.extend(self._member(item, node.attr))
            elif isinstance(item, Local):
                info = self.classes.get(item.node)
                out.extend(_about_versions(info.find(node.attr) or UNKNOWN) if info else UNKNOWN)
            elif isinstance(item, Foreign):
                out.extend(_about_versions(item.evaluate(ast.Name(node.attr, ast.Load()))))
            elif item is OPAQUE:
                out.append(OPAQUE)
        return (tuple(out) if len(out) < 2 else only_flags(tuple(out))) or UNKNOWN

    def _member(self, item: Instance, attr: str) -> Value:
        """What an attribute of an object of this file's classes says about versions: a flag or a method."""
        info = self.classes.get(item.local.node) if item.local is not None else None
        if info is None or info.pending.get(attr):
            return UNKNOWN
        return _about_versions(info.find(attr) or UNKNOWN)


class Recorded(Peeking):
    """Evaluates expressions of a file that was walked, with what the walk found there."""

    __slots__ = ("classes", "names", "walked")

    def __init__(self, names: SemanticModel, walked: Walked) -> None:
        self.classes = walked.classes
        self.names = names
        self.walked = walked

    def name(self, node: ast.Name) -> Value:
        value = self.walked.bases.get(id(node)) or self.names.values.get(id(node))
        if value is not None:
            return value
        # A test in a string is not in the tree: `skipif("torch.__version__ < '1.8'")`.
        return UNKNOWN if node in self.names.parents else self.walked.held.get(node.id, UNKNOWN)

    def own(self, node: ast.Attribute) -> Value | None:
        return self.walked.bases.get(id(node))


def _about_versions(held: Value) -> Value:
    """The value of an attribute as far as guards are concerned."""
    known = (Flag, VersionOf, Const, Local, Foreign, Mark)
    return held if all(isinstance(item, known) for item in held) else UNKNOWN
