"""Name and attribute chains: what they mean in the current frame, and the uses that they are."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torchmigrate.semantics.guards.functions import is_property
from torchmigrate.semantics.model import (
    CALL,
    OPAQUE,
    REFERENCE,
    VIA_IMPORT,
    VIA_METHOD,
    Binding,
    Candidate,
    Const,
    Instance,
    Items,
    Local,
    QualifiedName,
    Role,
    Use,
    Value,
    Via,
)
from torchmigrate.semantics.values import by_arguments, distinctive, tensor_api, types
from torchmigrate.semantics.values.objects import MODULE, TENSOR, common_class
from torchmigrate.semantics.values.slots import NOTHING, UNKNOWN, believed, met, stated
from torchmigrate.semantics.walk.results import Results

_NONE = Const(None)


def _named_as_module(node: ast.expr) -> bool:
    """Whether it is named as a library handed over as an object (`def f(torch, x): torch.symeig(x)`)."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.strip("_") in distinctive.MODULES_AS_OBJECTS


def _of_others(node: ast.expr) -> bool:
    """Whether it is named as what is computed later, or made by a call that no tensor has.

    `mvn.lazy_covariance_matrix`, `kernel(x)`, `kernel(x).add_jitter(1e-4)`: matrices of other libraries.
    """
    if isinstance(node, ast.Call):
        made = node.func
        if not isinstance(made, ast.Attribute):
            return True
        return made.attr not in tensor_api.METHODS or _of_others(made.value)
    if isinstance(node, ast.Attribute):
        return node.attr.startswith("lazy_") or _of_others(node.value)
    return isinstance(node, ast.Name) and node.id.startswith("lazy_")


def _is_open(value: Value) -> bool:
    """Whether a value may be a tensor, and nothing else that is known."""
    if value is UNKNOWN:
        return True
    return all(
        item is OPAQUE or (item.__class__ is Instance and item.cls == TENSOR and not item.sure)
        for item in value
    )


class Chain(NamedTuple):
    """A chain as it is written. bindings: of its first name."""

    node: ast.expr
    role: Role = REFERENCE
    call: ast.Call | None = None
    bindings: tuple[Binding, ...] = ()


class Chains(Results):
    """Follows chains from the current frame, and attributes of objects."""

    __slots__ = ()

    def record_only(self, chain: Chain, attr: str) -> None:
        """Record an attribute that only objects of one class have, on an unknown object."""
        node, role, call, bindings = chain
        if call is None and attr not in distinctive.ONLY_ATTRIBUTES:
            return
        told = attr not in distinctive.ONLY
        if told and not self._tells(attr, call):
            return
        if (
            (self.lazy and attr in distinctive.LAZY)
            or self.lookalikes
            or any(binding.is_import for binding in bindings)
            or (
                isinstance(node, ast.Attribute)
                and (_named_as_module(node.value) or (told and _of_others(node.value)))
            )
        ):
            return  # `scipy.linalg.lu_solve(...)`
        name = f"{distinctive.ONLY.get(attr, TENSOR)}.{attr}"
        self.record(node, (name,), False, role, call, None, "", VIA_METHOD)
        self.uses[-1].told = told

    def _tells(self, attr: str, call: ast.Call | None) -> bool:
        """Whether a method of an object that may be anything is called as only a tensor's is."""
        return (
            call is not None
            and attr in by_arguments.NAMES
            and not (self.lazy or self.lookalikes)
            and by_arguments.tells(attr, call, self.statement)
        )

    def record_storage(self, node: ast.expr) -> None:
        """Record the `x.storage` of `x.storage().resize_(0)`: only storages of tensors have such methods."""
        made = node.value if isinstance(node, ast.Attribute) else None
        if isinstance(made, ast.Call) and not made.args and not made.keywords:
            function = made.func
            if isinstance(function, ast.Attribute) and function.attr == "storage":
                names = (f"{TENSOR}.storage",)
                self.record(function, names, False, CALL, made, None, "storage", VIA_METHOD)

    def follow(self, chain: Chain, value: Value, attrs: list[str]) -> Value:
        """Apply the attributes to each candidate of the chain's base, and record the uses.

        An attribute of an object is a use of its own (`x.data` in `x.data.norm()`); of a chain that starts at
        a library's module, the whole is.
        """
        last = len(attrs) - 1
        start = 0  # the first attribute after the last object
        for number, attr in enumerate(attrs):
            before = value
            value, names, sure, known = self._step(value, attr)
            if names:
                start = number + 1
                if number:
                    chain = Chain(chain.node, chain.role, chain.call)
                node, role, call, bindings = chain
                if number == last:
                    self.record(node, names, sure, role, call, None, attr, VIA_METHOD, bindings, known)
                    if not sure and self._tells(attr, call):
                        self.uses[-1].told = True
                elif attr not in distinctive.ORDINARY:
                    for _ in range(last - number):
                        assert isinstance(node, ast.Attribute), "there are as many as there are attributes"
                        node = node.value
                    self.record(node, names, sure, REFERENCE, None, None, attr, VIA_METHOD, bindings, known)
            if value is UNKNOWN:
                unknown = number < last or (not names and self._is_unknown(before, attr))
                if unknown and attrs[-1] in distinctive.ONLY and self.imports_torch:
                    self.record_only(chain, attrs[-1])
                return UNKNOWN
        if start <= last:
            self.record_names(chain, value, attrs[start:])
        return value

    def _step(self, value: Value, attr: str) -> tuple[Value, tuple[str, ...], bool, bool]:
        """One attribute of each candidate; its qualified names where objects have it; is that sure?

        And is it not sure only because an annotation alone says of what class an object is?
        """
        if len(value) == 1 and isinstance(value[0], Instance) and value[0].cls != "number":  # most are that
            found, member = self.member(value[0], attr)
            return found, (member,) if member else (), value[0].sure, value[0].stated
        out: list[Candidate] = []
        members: list[str] = []
        sure = known = True
        for item in value:
            if isinstance(item, Instance):
                if item.cls == "number":
                    continue
                found, member = self.member(item, attr)
                if member:
                    members.append(member)
                sure = sure and bool(member) and item.sure
                known = known and bool(member) and (item.sure or item.stated)
                out.extend(one for one in found if one not in out)
            elif isinstance(item, QualifiedName) and item.via is not VIA_METHOD:
                out.append(QualifiedName(f"{item.name}.{attr}", item.sure, item.via, taken=item.taken))
                sure = known = False
            elif not (isinstance(item, Const) and _raises(item.value, attr)):
                out.append(OPAQUE)
                sure = known = False
        if not members:
            return (tuple(out) if out and out != [OPAQUE] else UNKNOWN), (), False, False
        names, certain = _one_name(members)
        sure, known = sure and certain, known and certain and not sure
        return (tuple(out) if out != [OPAQUE] else UNKNOWN), names, sure, known

    def _is_unknown(self, value: Value, attr: str) -> bool:
        """Whether an object may be of an unknown class, and have an attribute from there."""
        for item in value:
            if isinstance(item, Instance):
                info = self.classes.get(item.local.node) if item.local is not None else None
                if info is not None and not info.library and not info.certain and info.find(attr) is None:
                    return True
            elif item is OPAQUE or (isinstance(item, QualifiedName) and item.via is VIA_METHOD):
                return True
        return False

    def record_names(self, chain: Chain, value: Value, attrs: list[str]) -> None:
        """Record the candidates of a chain that are library names."""
        found = [item for item in value if isinstance(item, QualifiedName) and item.via is not VIA_METHOD]
        names = [
            item.name for item in found if "." in item.name and item.name.partition(".")[0] in self.roots
        ]
        if not names:
            return
        sure = found[0].sure and all(item is found[0] or item == _NONE for item in value)
        self._record_chain(chain, tuple(dict.fromkeys(names)), sure, ".".join(attrs), found[-1].via)
        places: dict[str, tuple[Use, ...]] = {}
        for item in found:  # the same name may be a sure candidate and one that is not
            held = places.get(item.name, item.taken)
            places[item.name] = met(held, item.taken)
        self.uses[-1].taken = {name: taken for name, taken in places.items() if taken}

    def _record_chain(self, chain: Chain, names: tuple[str, ...], sure: bool, rest: str, via: Via) -> None:
        """Record a chain that begins with a library's name."""
        bindings = chain.bindings
        if via is VIA_IMPORT and bindings and all(binding.target is None for binding in bindings):
            via = Via.ALIAS
        sole = bindings[0] if len(bindings) == 1 and bindings[0].target is not None else None
        self.record(chain.node, names, sure, chain.role, chain.call, sole, rest, via, bindings)

    def member(self, item: Instance, attr: str) -> tuple[Value, str]:
        """What an attribute of an object is, and its qualified name if it is a library's."""
        if item.stated:
            held, name = self.member(believed(item), attr)
            return stated(held), name
        if item.local is not None:
            info = self.classes.get(item.local.node)
            found = info.find(attr) if info is not None else UNKNOWN
            if found is not None:
                return self.read(found), ""
        cls = item.cls
        if not cls or (attr.startswith("__") and cls != TENSOR and (attr != "__init__" or cls == MODULE)):
            return UNKNOWN, ""
        if self.lookalikes and cls == TENSOR and attr in distinctive.OF_STAND_INS:
            return UNKNOWN, ""  # `torch.stack` of dicts of tensors gives another one
        result = types.attribute(cls, attr, item.sure)
        if result is OPAQUE:
            return UNKNOWN, ""
        if isinstance(result, QualifiedName) and types.gives_itself(cls, attr):
            result = QualifiedName(result.name, result.sure, VIA_METHOD, item)
        return (result,), f"{cls}.{attr}" if cls.partition(".")[0] in self.roots else ""

    def read(self, held: Value) -> Value:
        """What reading an attribute that holds this gives: a property is called."""
        for item in held:
            if isinstance(item, Local) and is_property(item.node):
                return self.result_of(item.node)
        return held

    def chain(self, node: ast.expr, role: Role = REFERENCE, call: ast.Call | None = None) -> Value:
        """The value of a name or attribute chain; records its use where it is a library's."""
        attrs: list[str] = []
        base: ast.expr = node
        while base.__class__ is ast.Attribute:
            attrs.append(base.attr)
            base = base.value
        bindings: tuple[Binding, ...] = ()
        if base.__class__ is ast.Name:
            name: str = base.id
            frame = self.frame
            value, bindings = frame.env.get(name) or self.lookup(name)
            if attrs and name == frame.self_name and attrs[-1] in frame.stored:
                value, bindings = frame.env[f"{name}.{attrs.pop()}"]
                if not attrs:
                    self.bases[id(node)] = value
            elif value is not UNKNOWN:
                self.bases[id(base)] = value
        else:
            value = self.eval(base)
        if value is UNKNOWN and not (attrs and attrs[0] in distinctive.NAMED):  # most are
            return UNKNOWN
        return self.chain_of(Chain(node, role, call, bindings), base, value, attrs)

    def chain_of(self, chain: Chain, base: ast.expr, value: Value, attrs: list[str]) -> Value:
        """The value of a chain whose first part, `base`, holds `value`; the last of `attrs` comes first."""
        node, _, call, bindings = chain
        if len(attrs) == 1 and attrs[0] in distinctive.TELLING and call is not None and _is_open(value):
            value = self._infer_tensor(base, value, bindings)
        if value is UNKNOWN:
            if attrs and self.imports_torch:
                return self._of_unknown(chain, attrs)
            return UNKNOWN
        for binding in bindings:
            if binding.target is not None:
                binding.uses.append(self.offset(base))
                if self.string_base is not None:
                    binding.in_string = True
        if len(value) == 1:
            item = value[0]
            if isinstance(item, QualifiedName):
                if item.via is not VIA_METHOD:
                    return self._library_chain(chain, item, attrs)
            elif not isinstance(item, Instance) and item != _NONE:
                if isinstance(item, Items) and len(attrs) == 1:
                    return (QualifiedName(f"items.{attrs[0]}", True, VIA_METHOD, item),)
                if attrs:
                    return UNKNOWN
                self.mention(node, value)
                return value
        if not value:
            return NOTHING
        if not attrs:
            if len(value) > 1:
                self.record_names(chain, value, attrs)
            return value
        attrs.reverse()
        value = self.follow(chain, value, attrs)
        self.mention(node, value)
        return value

    def _of_unknown(self, chain: Chain, attrs: list[str]) -> Value:
        """What the name of the last attribute tells about an unknown object."""
        last = attrs[0]
        if last in distinctive.ONLY or last in by_arguments.NAMES:
            self.record_only(chain, last)
        elif len(attrs) == 1 and last in distinctive.OF_STORAGES:
            self.record_storage(chain.node)
        cls = distinctive.GIVING.get(last)
        if cls is None or self.lookalikes or (chain.call is None) != (last in distinctive.GIVING_ATTRIBUTES):
            return UNKNOWN
        return stated((types.attribute(cls, last, True),))

    def _infer_tensor(self, base: ast.expr, value: Value, bindings: tuple[Binding, ...]) -> Value:
        """What a name holds, one of whose methods only tensors have; it holds that from here on.

        Not where the call may be the one that a test has let through, of several kinds of objects.
        """
        if (
            not isinstance(base, ast.Name)
            or not self.imports_torch
            or self.uncertain
            or self.lookalikes
            or self.lazy
            or any(binding.is_import for binding in bindings)
        ):
            return value
        name = base.id
        frame = self.frame
        if name in frame.env and name != frame.self_name:
            value = (Instance(TENSOR),)
            frame.env[name] = (value, bindings)
        return value

    def _library_chain(self, chain: Chain, item: QualifiedName, attrs: list[str]) -> Value:
        """The value where the one candidate is of a library; the last of `attrs` comes first."""
        rest = ""
        name = item.name
        value: Value = (item,)
        if attrs:
            attrs.reverse()
            rest = ".".join(attrs)
            name = f"{name}.{rest}"
            value = (QualifiedName(name, item.sure, item.via, taken=item.taken),)
        if name.partition(".")[0] in self.roots and "." in name:
            self._record_chain(chain, (name,), item.sure, rest, item.via)
            if item.taken:
                self.uses[-1].taken = {name: item.taken}
        return value


def _raises(value: object, attr: str) -> bool:
    """Whether reading an attribute of None or a number would raise, so that it is something else here."""
    return value is None or (isinstance(value, (int, float)) and not hasattr(value, attr))


def _one_name(members: list[str]) -> tuple[tuple[str, ...], bool]:
    """The name of a member that objects of several classes have: the name in their common base."""
    names = tuple(dict.fromkeys(members))
    if len(names) == 1:
        return names, True
    cls, _, member = names[0].rpartition(".")
    common: str | None = cls
    for name in names[1:]:
        common = common_class(common, name.rpartition(".")[0]) if common else None
    return ((f"{common}.{member}",), True) if common else (names, False)
