"""Name and attribute chains: what they mean in the current frame, and the uses that they are."""

from __future__ import annotations

import ast
import builtins
import sys
from abc import ABC, abstractmethod
from typing import Protocol

from torchmigrate.names import types
from torchmigrate.names.flow import NOTHING, UNBOUND_SLOT, UNKNOWN, UNKNOWN_SLOT, Frame, Slot
from torchmigrate.names.model import (
    OPAQUE,
    Binding,
    Candidate,
    Const,
    Flag,
    Guards,
    Instance,
    Kind,
    Local,
    Qual,
    Role,
    Scope,
    Use,
    Value,
)

FSTRINGS_HAVE_PLACES = sys.version_info >= (3, 12)
_NONE = Const(None)
_BUILTINS = frozenset(dir(builtins))


class SourceLike(Protocol):
    """The part of `Source` that the resolver needs."""

    text: str

    def offset(self, line: int, column: int) -> int: ...


class Chains(ABC):
    """Follows chains from the current frame and records the uses of library names."""

    def __init__(self, source: SourceLike, roots: frozenset[str]) -> None:
        self.source = source
        self.roots = roots
        self.uses: list[Use] = []
        self.bindings: list[Binding] = []
        self.scopes: list[Scope] = []
        self.guards = Guards()
        self.statement: ast.stmt = ast.Pass()
        self.block: list[ast.stmt] = []
        self.frame: Frame
        self.stars: list[tuple[str, int]] = []  # star-imported modules of the file, and where
        self.unknown_star = False
        self.other_star = False  # of a module that is no library's
        self.imports_torch = False
        self.role = Role.REFERENCE  # what a name is used for where nothing else says so
        self.string_base: int | None = None  # offset of a string annotation that is being read
        self.fstring: ast.AST | None = None

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
            return (Qual(name, False, "star"),), ()
        if not self.stars or self.unknown_star or name in _BUILTINS:
            return UNKNOWN_SLOT
        return tuple(Qual(f"{module}.{name}", False, "star") for module, _ in self.stars), ()

    def chain(
        self, node: ast.expr, role: Role, call: ast.Call | None = None, decorates: ast.AST | None = None
    ) -> Value:
        """The value of a name or attribute chain; records its use where it is a library's."""
        attrs: list[str] = []
        base: ast.expr = node
        while base.__class__ is ast.Attribute:
            attrs.append(base.attr)
            base = base.value
        bindings: tuple[Binding, ...] = ()
        if base.__class__ is ast.Name:
            name: str = base.id
            value, bindings = self.lookup(name)
            if attrs and self.frame.self_name == name and self.frame.owner is not None:
                held = self.frame.owner.attributes.get(attrs[-1])
                if held is not None:
                    value, bindings = _unsure(held), ()
                    attrs.pop()
        else:
            value = self.eval(base)
        if value is UNKNOWN:
            if (
                call is not None
                and attrs
                and attrs[0] in types.ONLY_TENSOR_METHODS
                and self.imports_torch
                and not any(binding.is_import for binding in bindings)  # `scipy.linalg.lu_solve(...)`
            ):
                self._record(
                    node, (f"torch.Tensor.{attrs[0]}",), False, role, call, decorates, None, "", "method"
                )
            return UNKNOWN
        for binding in bindings:
            if binding.target is not None:
                binding.uses.append(self.offset(base))
                if self.string_base is not None:
                    binding.in_string = True
        if len(value) == 1:
            item = value[0]
            if isinstance(item, Qual) and item.via != "method":
                return self._library_chain(node, value, attrs, role, call, decorates, bindings)
            if not isinstance(item, (Qual, Instance)) and item != _NONE:
                return UNKNOWN if attrs else value
        if not value:
            return NOTHING
        attrs.reverse()
        return self._follow(node, value, attrs, role, call, decorates, bindings)

    def _library_chain(
        self,
        node: ast.expr,
        value: Value,
        attrs: list[str],
        role: Role,
        call: ast.Call | None,
        decorates: ast.AST | None,
        bindings: tuple[Binding, ...],
    ) -> Value:
        """`_follow` where the one candidate is of a library; the last of `attrs` comes first."""
        (item,) = value
        assert isinstance(item, Qual)
        rest = ""
        name = item.name
        if attrs:
            attrs.reverse()
            rest = ".".join(attrs)
            name = f"{name}.{rest}"
            value = (Qual(name, item.sure, item.via),)
        if name.partition(".")[0] in self.roots and "." in name:
            sole = bindings[0] if len(bindings) == 1 and bindings[0].target is not None else None
            via = item.via
            if via == "import" and bindings and all(binding.target is None for binding in bindings):
                via = "alias"
            self._record(node, (name,), item.sure, role, call, decorates, sole, rest, via)
        return value

    def _follow(
        self,
        node: ast.expr,
        value: Value,
        attrs: list[str],
        role: Role,
        call: ast.Call | None,
        decorates: ast.AST | None,
        bindings: tuple[Binding, ...],
    ) -> Value:
        """Apply the attributes to each candidate of the chain's base, and record the use."""
        out: list[Candidate] = []
        names: list[str] = []
        used = [item for item in value if not (isinstance(item, Const) and item.value is None)]
        sure = len(used) == 1
        via = "import"
        for item in used:
            held: Candidate = item
            for attr in attrs:
                if isinstance(held, Qual):
                    if held.name.startswith("torch.Tensor.") and held.via == "method":
                        held = OPAQUE
                    else:
                        held = Qual(f"{held.name}.{attr}", held.sure, held.via)
                elif isinstance(held, Instance):
                    held = types.attribute(held.cls, attr, held.sure)
                else:
                    held = OPAQUE
                    break
            out.append(held)
            if isinstance(held, Qual) and "." in held.name and held.name.partition(".")[0] in self.roots:
                if held.name not in names:
                    names.append(held.name)
                sure = sure and held.sure
                via = held.via
        if via == "import" and bindings and not any(binding.target is not None for binding in bindings):
            via = "alias"
        if names:
            rest = ".".join(attrs)
            imports = [binding for binding in bindings if binding.target is not None]
            sole = imports[0] if len(imports) == 1 and len(bindings) == 1 else None
            sure = sure and len(names) == 1
            self._record(node, tuple(names), sure, role, call, decorates, sole, rest, via, bindings)
        return tuple(out) or UNKNOWN

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
    ) -> None:
        place = node
        in_fstring = self.fstring is not None and not FSTRINGS_HAVE_PLACES
        if in_fstring and self.fstring is not None:
            place = self.fstring
        if role is Role.REFERENCE:
            role = self.role
        self.uses.append(
            Use(
                node=node,
                candidates=names,
                sure=sure,
                role=role,
                start=self.offset(place),
                end=self.end_offset(place),
                statement=self.statement,
                block=self.block,
                scope=self.frame.scope,
                guards=self.guards,
                call=call,
                decorates=decorates,
                binding=binding,
                origins=origins,
                rest=rest,
                method=via == "method",
                in_string=self.string_base is not None,
                in_fstring=in_fstring,
                via=via,
            )
        )
        self.note_try(names)

    def note_try(self, names: tuple[str, ...]) -> None:
        """Remember what the parts of the try statements around this place use."""
        guards: Guards | None = self.guards
        while guards is not None:
            if guards.attempt is not None:
                guards.attempt.names.setdefault(guards.part, set()).update(names)
            guards = guards.outer

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
            for item in self.peek(node.value):  # type: ignore[attr-defined]
                if isinstance(item, Qual):
                    out.append(Qual(f"{item.name}.{node.attr}", item.sure, item.via))  # type: ignore[attr-defined]
                elif isinstance(item, Local) or item is OPAQUE:
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

    # ---- what the other classes of the walk supply ---------------------------------------------------

    @abstractmethod
    def eval(self, node: ast.expr) -> Value:
        """What an expression may be; in `Expressions`."""

    @abstractmethod
    def new_binding(self, name: str, kind: Kind, node: ast.AST) -> Binding:
        """A binding of a name in the current scope; in `Definitions`."""

    @abstractmethod
    def bind(self, name: str, value: Value, kind: Kind, node: ast.AST) -> Binding:
        """Bind a name to a value from here on; in `Definitions`."""


def _unsure(value: Value) -> Value:
    return tuple(
        Qual(item.name, False, "self")
        if isinstance(item, Qual)
        else Instance(item.cls, False)
        if isinstance(item, Instance)
        else item
        for item in value
    )
