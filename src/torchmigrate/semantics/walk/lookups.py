"""What names hold in the current frame, and the record of the uses of library names."""

from __future__ import annotations

import ast
import builtins
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from torchmigrate.semantics.model import (
    OPAQUE,
    REFERENCE,
    Binding,
    BindingKind,
    Candidate,
    Const,
    Flag,
    Guards,
    Instance,
    Local,
    Operation,
    QualifiedName,
    Role,
    Scope,
    Use,
    Value,
    VersionOf,
)
from torchmigrate.semantics.values.classes import ClassInfo
from torchmigrate.semantics.values.slots import UNBOUND_SLOT, UNKNOWN, UNKNOWN_SLOT, Frame, Slot

if TYPE_CHECKING:
    from torchmigrate.semantics.guards.formulas import Formula

FSTRINGS_HAVE_PLACES = sys.version_info >= (3, 12)
_BUILTINS = frozenset(dir(builtins))


class SourceLike(Protocol):
    """The part of `Source` that the resolver needs."""

    text: str

    def offset(self, line: int, column: int) -> int: ...


class Lookups(ABC):
    """The state of the walk: names are looked up here, and uses recorded."""

    __slots__ = (
        "bindings",
        "block",
        "classes",
        "frame",
        "fstring",
        "guards",
        "imports_torch",
        "lazy",
        "lookalikes",
        "mentions",
        "nested",
        "operations",
        "other_star",
        "returns",
        "role",
        "roots",
        "scopes",
        "source",
        "stars",
        "statement",
        "string_base",
        "tests",
        "unknown_star",
        "uses",
        "values",
    )

    def __init__(self, source: SourceLike, roots: frozenset[str]) -> None:
        self.source = source
        self.roots = roots
        self.uses: list[Use] = []
        self.values: dict[int, Value] = {}
        self.operations: list[Operation] = []
        self.bindings: list[Binding] = []
        self.scopes: list[Scope] = []
        self.guards = Guards()
        self.tests: dict[int, Formula] = {}  # of `if`s, by the id of their expressions
        self.statement: ast.stmt = ast.Pass()
        self.block: list[ast.stmt] = []
        self.frame: Frame
        self.stars: list[tuple[str, int]] = []  # star-imported modules of the file, and where
        self.unknown_star = False
        self.other_star = False  # of a module that is no library's
        self.imports_torch = False
        self.lookalikes = False  # the file imports a library whose tensors have torch's methods
        self.lazy = False  # or lazy matrices
        self.classes: dict[ast.AST, ClassInfo] = {}
        self.returns: dict[ast.AST, Value] = {}  # of functions, as far as that was asked for
        self.mentions: dict[ast.AST, list[Guards]] = {}  # of the file's functions: where they are read
        self.role = REFERENCE  # what a name is used for where nothing else says so
        self.string_base: int | None = None  # offset of a string annotation that is being read
        self.fstring: ast.JoinedStr | None = None
        self.nested = 0  # how many conditions are around this place: `a and (b or (c and ...))`

    # ---- names ---------------------------------------------------------------------------------------

    def offset(self, node: ast.AST) -> int:
        if self.string_base is not None:
            return self.string_base + node.col_offset  # type: ignore[attr-defined, no-any-return]
        return self.source.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end_offset(self, node: ast.AST) -> int:
        if self.string_base is not None:
            return self.string_base + node.end_col_offset  # type: ignore[attr-defined, no-any-return]
        return self.source.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def lookup(self, name: str) -> Slot:
        """What a name holds here, by Python's rules for scopes."""
        frame: Frame | None = self.frame
        assert frame is not None
        slot = frame.env.get(name)
        if slot is not None:
            return slot
        if name in frame.local and name not in frame.scope.globals and name not in frame.scope.nonlocals:
            return UNBOUND_SLOT
        live = frame.live
        to_module = name in frame.scope.globals
        frame = frame.parent
        while frame is not None:
            outer = frame.parent
            if not (to_module and outer is not None) and frame.scope.kind != "class":
                slot = (frame.env if live else frame.every).get(name)
                if slot is not None:
                    return slot
                if name in frame.local and outer is not None:
                    return UNBOUND_SLOT
            live = live and frame.live
            frame = outer
        return self._star(name)

    def _star(self, name: str) -> Slot:
        if self.other_star and name in self.roots:
            # A module that passes on all of its names passes on its `torch`, which is nothing else.
            return (QualifiedName(name, False, "star"),), ()
        if not self.stars or self.unknown_star or name in _BUILTINS:
            return UNKNOWN_SLOT
        return tuple(QualifiedName(f"{module}.{name}", False, "star") for module, _ in self.stars), ()

    def _record(
        self,
        node: ast.AST,
        names: tuple[str, ...],
        sure: bool,
        role: Role,
        call: ast.Call | None,
        decorates: ast.AST | None,
        binding: Binding | None,
        rest: str,
        via: str,
        origins: tuple[Binding, ...] = (),
        stated: bool = False,
    ) -> None:
        place = node
        in_fstring = self.fstring is not None and not FSTRINGS_HAVE_PLACES
        if in_fstring and self.fstring is not None:
            place = self.fstring
        if role is REFERENCE:
            role = self.role
        # By position, in the order of the class: there are many of them.
        self.uses.append(
            Use(
                node, names, sure, role, self.offset(place), self.end_offset(place), self.statement,
                self.block, self.frame.scope, self.guards, call, decorates, binding, origins, rest,
                via == "method", self.string_base is not None, in_fstring, via, stated,
            )
        )  # fmt: skip
        if self.guards.attempt is not None or self.guards.around is not None:
            self.note_try(names, call)

    def note_try(self, names: tuple[str, ...], call: ast.Call | None = None) -> None:
        """Remember what the parts of the try statements around this place use."""
        guards: Guards | None = self.guards
        attempt = self.guards.attempt
        if attempt is None and self.guards.around is None:
            return
        given = frozenset(keyword.arg or "**" for keyword in call.keywords) if call is not None else None
        if attempt is not None and self.block is attempt.node.body and len(names) == 1:
            attempt.always.update(names)
        while guards is not None and (names, given) not in guards.noted:
            attempt = guards.attempt
            if attempt is not None:
                guards.noted.add((names, given))  # and so were those around it
                attempt.names.setdefault(guards.part, set()).update(names)
                if given is not None:
                    attempt.calls.setdefault(guards.part, set()).update((name, given) for name in names)
            guards = guards.around

    def mention(self, value: Value) -> None:
        """Remember where a function of this file is read."""
        if len(value) == 1 and isinstance(value[0], Local):
            self.mentions.setdefault(value[0].node, []).append(self.guards)

    def peek(self, node: ast.expr) -> Value:
        """The value of a simple expression, without recording a use: what guards ask for."""
        kind = node.__class__
        if kind is ast.Name:
            value = self.lookup(node.id)[0]  # type: ignore[attr-defined]
            if len(value) > 1:
                # `HAS_X = False` before a try that sets it: the try decides.
                flags = tuple(item for item in value if isinstance(item, Flag))
                if flags and all(isinstance(item, (Flag, Const)) for item in value):
                    return flags
            return value
        if kind is ast.Attribute:
            out: list[Candidate] = []
            held = self._own_attribute(node)  # type: ignore[arg-type]
            if held is not None:
                return held
            around = self.peek(node.value)  # type: ignore[attr-defined]
            if around is UNKNOWN:  # most are
                return UNKNOWN
            for item in around:
                if isinstance(item, QualifiedName):
                    out.append(QualifiedName(f"{item.name}.{node.attr}", item.sure, item.via))  # type: ignore[attr-defined]
                elif isinstance(item, Instance):
                    out.extend(self._peek_member(item, node.attr))  # type: ignore[attr-defined]
                elif isinstance(item, Local):
                    info = self.classes.get(item.node)
                    out.extend(_about_versions(info.find(node.attr) or UNKNOWN) if info else UNKNOWN)  # type: ignore[attr-defined]
                elif item is OPAQUE:
                    out.append(OPAQUE)
            return tuple(out) or UNKNOWN
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

    def _peek_member(self, item: Instance, attr: str) -> Value:
        """What an attribute of an object of this file's classes says about versions: a flag or a method."""
        info = self.classes.get(item.local.node) if item.local is not None else None
        if info is None or info.pending.get(attr):
            return UNKNOWN
        return _about_versions(info.find(attr) or UNKNOWN)

    def _own_attribute(self, node: ast.Attribute) -> Value | None:
        """What an attribute of `self` says that this method sets, at this place."""
        frame = self.frame
        if node.attr not in frame.stored:
            return None
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        if name != frame.self_name:
            return None
        return _about_versions(self.frame.env[f"{name}.{node.attr}"][0])

    # ---- what the other classes of the walk supply ---------------------------------------------------

    @abstractmethod
    def eval(self, node: ast.expr) -> Value:
        """What an expression may be; in `Expressions`."""

    @abstractmethod
    def returned(self, node: ast.AST) -> Value:
        """What a call of a function of this file gives; in `Annotations`."""

    @abstractmethod
    def new_binding(self, name: str, kind: BindingKind, node: ast.AST) -> Binding:
        """A binding of a name in the current scope; in `Definitions`."""

    @abstractmethod
    def bind(self, name: str, value: Value, kind: BindingKind, node: ast.AST) -> Binding:
        """Bind a name to a value from here on; in `Definitions`."""


def _about_versions(held: Value) -> Value:
    """The value of an attribute as far as guards are concerned."""
    return held if all(isinstance(item, (Flag, VersionOf, Const, Local)) for item in held) else UNKNOWN
