"""Name and attribute chains: what they mean in the current frame, and the uses that they are."""

from __future__ import annotations

import ast
import builtins
import sys
from typing import Protocol

from torchmigrate.names import types
from torchmigrate.names.classes import ClassInfo
from torchmigrate.names.flow import NOTHING, UNBOUND_SLOT, UNKNOWN, UNKNOWN_SLOT, Frame, Slot
from torchmigrate.names.model import (
    OPAQUE,
    Binding,
    Candidate,
    Const,
    Flag,
    Guards,
    Instance,
    Items,
    Kind,
    Local,
    Qual,
    Role,
    Scope,
    Use,
    Value,
)
from torchmigrate.names.objects import TENSOR, common_class

FSTRINGS_HAVE_PLACES = sys.version_info >= (3, 12)
_NONE = Const(None)
_BUILTINS = frozenset(dir(builtins))


class SourceLike(Protocol):
    """The part of `Source` that the resolver needs."""

    text: str

    def offset(self, line: int, column: int) -> int: ...


class Chains:
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
        self.lookalikes = False  # the file imports a library whose tensors have torch's methods
        self.classes: dict[ast.AST, ClassInfo] = {}
        self.returns: dict[ast.AST, Value] = {}  # of functions, as far as that was asked for
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
            frame = self.frame
            if attrs and name == frame.self_name and attrs[-1] in frame.stored:
                value, bindings = frame.env[f"{name}.{attrs.pop()}"]
                if not attrs:
                    return self._attribute_value(node, value, role, call, decorates)
        else:
            value = self.eval(base)
        if value is UNKNOWN:
            if attrs and attrs[0] in types.ONLY and self.imports_torch:
                self._only(node, attrs[0], role, call, decorates, bindings)
            return UNKNOWN
        for binding in bindings:
            if binding.target is not None:
                binding.uses.append(self.offset(base))
                if self.string_base is not None:
                    binding.in_string = True
        if len(value) == 1:
            item = value[0]
            kind = item.__class__
            if kind is Qual:
                if item.via != "method":
                    return self._library_chain(node, value, attrs, role, call, decorates, bindings)
            elif kind is not Instance and item != _NONE:
                if attrs and kind is Items:
                    return (Qual(f"items.{attrs[0]}", True, "method", item),) if len(attrs) == 1 else UNKNOWN
                return UNKNOWN if attrs else value
        if not value:
            return NOTHING
        if not attrs and not any(item.__class__ is Qual for item in value):
            return value
        attrs.reverse()
        return self._follow(node, value, attrs, role, call, decorates, bindings)

    def _attribute_value(
        self, node: ast.expr, value: Value, role: Role, call: ast.Call | None, decorates: ast.AST | None
    ) -> Value:
        """What an attribute of `self` holds that this function has set."""
        if any(item.__class__ is Qual for item in value):
            return self._follow(node, value, [], role, call, decorates, ())
        return value

    def _only(
        self,
        node: ast.expr,
        attr: str,
        role: Role,
        call: ast.Call | None,
        decorates: ast.AST | None,
        bindings: tuple[Binding, ...],
    ) -> None:
        """Record an attribute that only objects of one class have, of an object of which nothing is known."""
        if call is None and attr not in types.ONLY_ATTRIBUTES:
            return
        if self.lookalikes or any(binding.is_import for binding in bindings):
            return  # `scipy.linalg.lu_solve(...)`
        self._record(node, (f"{types.ONLY[attr]}.{attr}",), False, role, call, decorates, None, "", "method")

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
        """Apply the attributes to each candidate of the chain's base, and record the uses.

        An attribute of an object is a use of its own (`x.data` in `x.data.norm()`); of a chain that starts at a
        library's module, the whole is.
        """
        imported = [binding for binding in bindings if binding.target is not None]
        last = len(attrs) - 1
        for number, attr in enumerate(attrs):
            out: list[Candidate] = []
            members: list[str] = []
            sure = True
            for item in value:
                kind = item.__class__
                if kind is Instance:
                    if item.cls == "number":
                        continue
                    found, member = self.member(item, attr)
                    sure = sure and item.sure
                    if member:
                        members.append(member)
                    else:
                        sure = False
                    out.extend(one for one in found if one not in out)
                elif kind is Qual and item.via != "method":
                    out.append(Qual(f"{item.name}.{attr}", item.sure, item.via))
                    sure = False
                elif kind is Const and (item.value is None or _is_plain_number(item.value, attr)):
                    continue  # or this would raise
                else:
                    out.append(OPAQUE)
                    sure = False
            if members:
                inner = node
                for _ in range(last - number):
                    inner = inner.value  # type: ignore[attr-defined]
                names, certain = _one_name(members)
                here = (role, call, decorates) if number == last else (Role.REFERENCE, None, None)
                if number == last or attr not in types.ORDINARY:
                    self._record(inner, names, sure and certain, *here, None, attr, "method", bindings)
            value = tuple(out) or UNKNOWN
            if value == UNKNOWN:
                return UNKNOWN
        names = tuple(
            dict.fromkeys(
                item.name
                for item in value
                if item.__class__ is Qual
                and item.via != "method"
                and "." in item.name
                and item.name.partition(".")[0] in self.roots
            )
        )
        if names:
            used = [item for item in value if item != _NONE]
            sure = len(used) == 1 and used[0].sure
            via = next(item.via for item in reversed(value) if item.__class__ is Qual)
            if via == "import" and bindings and not imported:
                via = "alias"
            sole = imported[0] if len(imported) == 1 and len(bindings) == 1 else None
            self._record(node, names, sure, role, call, decorates, sole, ".".join(attrs), via, bindings)
        return value

    def member(self, item: Instance, attr: str) -> tuple[Value, str]:
        """What an attribute of an object is, and its qualified name if it is a library's."""
        local = item.local
        if local is not None:
            info = self.classes.get(local.node)
            found = info.find(attr) if info is not None else UNKNOWN
            if found is not None:
                return self.read(found), ""
        cls = item.cls
        if not cls or (attr.startswith("__") and cls != TENSOR):
            return UNKNOWN, ""
        value = types.attribute(cls, attr, item.sure)
        if value.__class__ is Qual and types.gives_itself(cls, attr):
            value = Qual(value.name, value.sure, "method", item)  # type: ignore[union-attr]
        return (value,), f"{cls}.{attr}" if cls.partition(".")[0] in self.roots else ""

    def read(self, held: Value) -> Value:
        """What reading an attribute that holds this gives: a property is called."""
        for item in held:
            if item.__class__ is Local and is_property(item.node):  # type: ignore[union-attr]
                return self.returned(item.node)  # type: ignore[union-attr]
        return held

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

    # ---- what the other halves of the walk know ------------------------------------------------------

    def eval(self, node: ast.expr) -> Value:
        raise NotImplementedError

    def returned(self, node: ast.AST) -> Value:
        raise NotImplementedError

    def new_binding(self, name: str, kind: Kind, node: ast.AST) -> Binding:
        raise NotImplementedError

    def bind(self, name: str, value: Value, kind: Kind, node: ast.AST) -> Binding:
        raise NotImplementedError


def is_property(node: ast.AST) -> bool:
    """Whether a function of a class is called when it is read."""
    for mark in getattr(node, "decorator_list", ()):
        name = mark.id if isinstance(mark, ast.Name) else mark.attr if isinstance(mark, ast.Attribute) else ""
        if name in ("property", "cached_property", "lazy_property", "abstractproperty", "setter", "getter"):
            return True
    return False


def _is_plain_number(value: object, attr: str) -> bool:
    return isinstance(value, (int, float)) and not hasattr(value, attr)


def _one_name(members: list[str]) -> tuple[tuple[str, ...], bool]:
    """The name of a member that objects of several classes have: that of their common base."""
    names = tuple(dict.fromkeys(members))
    if len(names) == 1:
        return names, True
    cls, _, member = names[0].rpartition(".")
    common: str | None = cls
    for name in names[1:]:
        common = common_class(common, name.rpartition(".")[0]) if common else None
    return ((f"{common}.{member}",), True) if common else (names, False)
