"""Attributes of objects: what they are, and the uses of library names that they are."""

from __future__ import annotations

import ast

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
    Local,
    QualifiedName,
    Role,
    Use,
    Value,
    Via,
)
from torchmigrate.semantics.values import by_arguments, distinctive, tensor_api, types
from torchmigrate.semantics.values.objects import MODULE, TENSOR, common_class
from torchmigrate.semantics.values.slots import UNKNOWN, believed, met, stated
from torchmigrate.semantics.walk.results import Results
from torchmigrate.semantics.walk.state import State
from torchmigrate.semantics.walk.uses import Uses

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


class Members:
    """Follows attributes of objects."""

    __slots__ = ("results", "state", "uses")

    def __init__(self, state: State, uses: Uses, results: Results) -> None:
        self.state = state
        self.uses = uses
        self.results = results

    def record_only(
        self,
        node: ast.expr,
        attr: str,
        role: Role,
        call: ast.Call | None,
        decorates: ast.AST | None,
        bindings: tuple[Binding, ...],
    ) -> None:
        """Record an attribute that only objects of one class have, on an unknown object."""
        state = self.state
        if call is None and attr not in distinctive.ONLY_ATTRIBUTES:
            return
        told = attr not in distinctive.ONLY
        if told and not self._tells(attr, call):
            return
        if (
            (state.lazy and attr in distinctive.LAZY)
            or state.lookalikes
            or any(binding.is_import for binding in bindings)
            or (
                isinstance(node, ast.Attribute)
                and (_named_as_module(node.value) or (told and _of_others(node.value)))
            )
        ):
            return  # `scipy.linalg.lu_solve(...)`
        name = f"{distinctive.ONLY.get(attr, TENSOR)}.{attr}"
        self.uses.record(node, (name,), False, role, call, decorates, None, "", VIA_METHOD)
        state.uses[-1].told = told

    def _tells(self, attr: str, call: ast.Call | None) -> bool:
        """Whether a method of an object that may be anything is called as only a tensor's is."""
        state = self.state
        return (
            call is not None
            and attr in by_arguments.NAMES
            and not (state.lazy or state.lookalikes)
            and by_arguments.tells(attr, call, state.statement)
        )

    def record_storage(self, node: ast.expr) -> None:
        """Record the `x.storage` of `x.storage().resize_(0)`: only storages of tensors have such methods."""
        made = node.value if isinstance(node, ast.Attribute) else None
        if isinstance(made, ast.Call) and not made.args and not made.keywords:
            function = made.func
            if isinstance(function, ast.Attribute) and function.attr == "storage":
                names = (f"{TENSOR}.storage",)
                self.uses.record(function, names, False, CALL, made, None, None, "storage", VIA_METHOD, ())

    def follow(
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

        An attribute of an object is a use of its own (`x.data` in `x.data.norm()`); of a chain that starts at
        a library's module, the whole is.
        """
        last = len(attrs) - 1
        start = 0  # the first attribute after the last object
        for number, attr in enumerate(attrs):
            before = value
            value, names, sure, known = self._step(value, attr)
            if names:
                start, bindings = number + 1, bindings if number == 0 else ()
                if number == last:
                    self.uses.record(
                        node, names, sure, role, call, decorates, None, attr, VIA_METHOD, bindings, known
                    )
                    if not sure and self._tells(attr, call):
                        self.state.uses[-1].told = True
                elif attr not in distinctive.ORDINARY:
                    inner: ast.expr = node
                    for _ in range(last - number):
                        assert isinstance(inner, ast.Attribute), "there are as many as there are attributes"
                        inner = inner.value
                    self.uses.record(
                        inner, names, sure, REFERENCE, None, None, None, attr, VIA_METHOD, bindings, known
                    )
            if value is UNKNOWN:
                unknown = number < last or (not names and self._is_unknown(before, attr))
                if unknown and attrs[-1] in distinctive.ONLY and self.state.imports_torch:
                    self.record_only(node, attrs[-1], role, call, decorates, bindings)
                return UNKNOWN
        if start <= last:
            self.record_names(node, value, attrs[start:], role, call, decorates, bindings)
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
                info = self.state.classes.get(item.local.node) if item.local is not None else None
                if info is not None and not info.library and not info.certain and info.find(attr) is None:
                    return True
            elif item is OPAQUE or (isinstance(item, QualifiedName) and item.via is VIA_METHOD):
                return True
        return False

    def record_names(
        self,
        node: ast.expr,
        value: Value,
        attrs: list[str],
        role: Role,
        call: ast.Call | None,
        decorates: ast.AST | None,
        bindings: tuple[Binding, ...],
    ) -> None:
        """Record the candidates of a chain that are library names."""
        state = self.state
        found = [item for item in value if isinstance(item, QualifiedName) and item.via is not VIA_METHOD]
        names = [
            item.name for item in found if "." in item.name and item.name.partition(".")[0] in state.roots
        ]
        if not names:
            return
        imported = [binding for binding in bindings if binding.target is not None]
        sure = found[0].sure and all(item is found[0] or item == _NONE for item in value)
        via = found[-1].via
        if via is VIA_IMPORT and bindings and not imported:
            via = Via.ALIAS
        sole = imported[0] if len(imported) == 1 and len(bindings) == 1 else None
        self.uses.record(
            node,
            tuple(dict.fromkeys(names)),
            sure,
            role,
            call,
            decorates,
            sole,
            ".".join(attrs),
            via,
            bindings,
        )
        places: dict[str, tuple[Use, ...]] = {}
        for item in found:  # the same name may be a sure candidate and one that is not
            held = places.get(item.name, item.taken)
            places[item.name] = met(held, item.taken)
        state.uses[-1].taken = {name: taken for name, taken in places.items() if taken}

    def member(self, item: Instance, attr: str) -> tuple[Value, str]:
        """What an attribute of an object is, and its qualified name if it is a library's."""
        state = self.state
        if item.stated:
            held, name = self.member(believed(item), attr)
            return stated(held), name
        if item.local is not None:
            info = state.classes.get(item.local.node)
            found = info.find(attr) if info is not None else UNKNOWN
            if found is not None:
                return self.read(found), ""
        cls = item.cls
        if not cls or (attr.startswith("__") and cls != TENSOR and (attr != "__init__" or cls == MODULE)):
            return UNKNOWN, ""
        if state.lookalikes and cls == TENSOR and attr in distinctive.OF_STAND_INS:
            return UNKNOWN, ""  # `torch.stack` of dicts of tensors gives another one
        result = types.attribute(cls, attr, item.sure)
        if result is OPAQUE:
            return UNKNOWN, ""
        if isinstance(result, QualifiedName) and types.gives_itself(cls, attr):
            result = QualifiedName(result.name, result.sure, VIA_METHOD, item)
        return (result,), f"{cls}.{attr}" if cls.partition(".")[0] in state.roots else ""

    def read(self, held: Value) -> Value:
        """What reading an attribute that holds this gives: a property is called."""
        for item in held:
            if isinstance(item, Local) and is_property(item.node):
                return self.results.returned(item.node)
        return held


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
