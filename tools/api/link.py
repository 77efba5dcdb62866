"""From what modules bind to entries: aliases and bases followed, signatures and marks handed on."""

from __future__ import annotations

import re

from msgspec.structs import replace

from api.bound import Bound, Deprecation, Field, ModuleNames
from api.modules import Modules
from api.scope import Patch
from api.signatures import of_fields, without_first
from api.tree import Tree
from torchmigrate.versions.surface_model import ApiEntry, DeprecatedParameter, EntryKind

_DEPTH = 30  # of aliases that lead to aliases
_KEPT_DUNDERS = {"__version__", "__git_version__", "__cuda__"}
# Bases that add no public member, so that a class with one is still known whole.
_PLAIN_BASES = {
    "builtins.object",
    "abc.ABC",
    "typing.Generic",
    "typing.Protocol",
    "typing_extensions.Generic",
    "typing_extensions.Protocol",
}
_ENUMS = {"enum.Enum", "enum.IntEnum", "enum.Flag", "enum.IntFlag", "enum.StrEnum"}
_WARNS_FOR_OTHERS = re.compile(r"^_?warn_|_warn$|deprecat|_warning$")  # functions that are not deprecated
_METACLASSES = {"", "builtins.type", "abc.ABCMeta", "enum.EnumMeta", "enum.EnumType"}


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _KEPT_DUNDERS


class Linker:
    """Makes the entries of a library from its modules."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self.tree: Tree = modules.tree
        self.entries: dict[str, ApiEntry] = {}
        self.instance_only: set[str] = set()
        self._resolved: dict[str, str | None] = {}
        self._waiting: list[str] = []  # classes in hidden modules that something refers to

    def link(self) -> dict[str, ApiEntry]:
        listed = self.tree.listed()
        for name in listed:
            self.modules[name]
        self._patch(self.modules.patches)
        for name in self.tree.hidden_tops():
            package = name.rpartition(".")[0]
            if package.rpartition(".")[2].startswith("_"):
                self.modules[package].open = True  # inside of what is private
            else:
                self.entries[name] = ApiEntry(EntryKind.MODULE, open=True)
        for name in listed:
            self._module(name, self.modules[name])
        while self._waiting:
            name = self._waiting.pop()
            bound = self.bound(name)
            if bound is not None and name not in self.entries:
                self._class(name, bound)
        return self.entries

    # names

    def resolve(self, name: str, depth: int = 0) -> str | None:
        """The qualified name of what `name` is, through every alias, in the library or out of it.

        None if the library has no such name.
        """
        if name in self._resolved:
            return self._resolved[name]
        if depth > _DEPTH:
            return None
        found = self._resolve(name, depth)
        if depth == 0:
            self._resolved[name] = found
        return found

    def _resolve(self, name: str, depth: int) -> str | None:
        parts = name.split(".")
        if parts[0] != self.tree.library:
            return name
        place, index = parts[0], 1
        while index < len(parts):
            if place not in self.modules:
                return None
            part, rest = parts[index], parts[index + 1 :]
            inner = f"{place}.{part}"
            bound = self.modules[place].names.get(part)
            if bound is None or (bound.kind is EntryKind.ALIAS and bound.target == inner):
                if inner not in self.modules:
                    return None
            elif bound.kind is EntryKind.ALIAS:
                if not (rest and inner in self.modules and self.resolve(bound.target, depth + 1) != inner):
                    return self.resolve(".".join([bound.target, *rest]), depth + 1)
            elif bound.kind is EntryKind.CLASS and rest:
                return self._member(inner, bound, rest, depth + 1)
            elif not rest:
                return inner
            elif inner not in self.modules:
                return None
            place, index = inner, index + 1
        return place if place in self.modules else None

    def _member(self, name: str, owner: Bound, rest: list[str], depth: int) -> str | None:
        if depth > _DEPTH:
            return None
        found = owner.members.get(rest[0])
        inner = f"{name}.{rest[0]}"
        if found is None:
            for base in owner.bases:
                at = self.resolve(base, depth + 1)
                bound = self.bound(at) if at is not None else None
                if at is not None and bound is not None and bound.kind is EntryKind.CLASS:
                    through = self._member(at, bound, rest, depth + 1)
                    if through is not None:
                        return through
            return None
        if found.kind is EntryKind.ALIAS:
            return self.resolve(".".join([found.target, *rest[1:]]), depth + 1)
        if len(rest) == 1:
            return inner
        return self._member(inner, found, rest[1:], depth) if found.kind is EntryKind.CLASS else None

    def bound(self, name: str) -> Bound | None:
        """What a resolved name is bound to; None for a module."""
        parts = name.split(".")
        for end in range(len(parts) - 1, 0, -1):
            place = ".".join(parts[:end])
            if place in self.modules:
                found = self.modules[place].names.get(parts[end])
                for part in parts[end + 1 :]:
                    found = found.members.get(part) if found is not None else None
                if found is not None:
                    return found
        return None

    # entries

    def _module(self, name: str, module: ModuleNames) -> None:
        # Its package may give the name to something else: then that has it.
        settings = self.resolve(module.made_into) if module.made_into else None
        entry = ApiEntry(
            EntryKind.MODULE,
            bases=(settings,) if settings is not None else (),
            open=module.open or (bool(module.made_into) and settings is None),
            gone=module.gone,
        )
        self.entries.setdefault(name, self._saying(entry, module.deprecated))
        for key, bound in module.names.items():
            full = f"{name}.{key}"
            if is_dunder(key) or (bound.kind is EntryKind.ALIAS and bound.target == full):
                continue
            if full in self.tree and bound.kind is EntryKind.VALUE:
                continue  # a value that is also a submodule is rather the submodule
            self._emit(full, bound, taken=full in self.tree)

    def _emit(self, name: str, bound: Bound, taken: bool = False, inside: bool = False) -> None:
        """Adds the entry of a name and its members. `taken`: a module has that name too."""
        match bound.kind:
            case EntryKind.ALIAS:
                self._alias(name, bound, taken, inside)
            case EntryKind.CLASS:
                self._class(name, bound)
            case EntryKind.FUNCTION:
                entry = self._like_class(bound) or self.function(bound, inside)
                if _WARNS_FOR_OTHERS.search(name.rpartition(".")[2]):
                    entry = replace(entry, deprecated=None, warns=False)
                self.entries[name] = entry
            case _ if self._maker(bound) is not None:
                made = self._maker(bound) or bound
                self.entries[name] = self.function(made, inside, as_method=inside)
            case _:
                entry = ApiEntry(EntryKind.VALUE, bound.target, gone=bound.gone)
                self.entries[name] = self._saying(entry, bound.deprecated)
        if bound.instance:
            self.instance_only.add(name)

    def _alias(self, name: str, bound: Bound, taken: bool, inside: bool) -> None:
        at = self.resolve(bound.target) if bound.target else None
        if at == name:
            return
        if at is not None and at.partition(".")[0] != self.tree.library:
            self.entries[name] = ApiEntry(EntryKind.VALUE) if taken else ApiEntry(EntryKind.ALIAS, target=at)
            return
        found = self.bound(at) if at is not None else None
        if at is None and bound.fallback is not None:
            self._emit(name, bound.fallback, taken, inside)
        elif at is None or (found is None and at not in self.modules):
            if not taken:  # what leads nowhere is rather the submodule
                self.entries.setdefault(name, ApiEntry(EntryKind.VALUE))
        elif found is None or (at in self.tree.modules and found.kind is EntryKind.VALUE):
            hidden = self.tree.hidden(at) not in (None, at)
            if not taken:
                self.entries[name] = (
                    ApiEntry(EntryKind.MODULE, open=True) if hidden else ApiEntry(EntryKind.ALIAS, at)
                )
        elif found.kind is EntryKind.FUNCTION and (inside or taken or self._unlisted(at)):
            as_method = inside and self._is_free(at)
            self.entries[name] = self.function(found, inside, as_method)
        elif found.kind is EntryKind.CLASS:
            if self._unlisted(at):
                self._waiting.append(at)
            if taken:
                entry = ApiEntry(
                    EntryKind.CLASS, signatures=self.constructor(found), bases=(at,), gone=found.gone
                )
                self.entries[name] = self._saying(entry, found.deprecated)
            else:
                self.entries[name] = ApiEntry(EntryKind.ALIAS, target=at)
        elif taken or self._unlisted(at) or inside:
            self.entries[name] = self._saying(ApiEntry(found.kind, gone=found.gone), found.deprecated)
        else:
            self.entries[name] = ApiEntry(EntryKind.ALIAS, target=at)

    def _unlisted(self, name: str) -> bool:
        return self.tree.hidden(name) is not None

    def _is_free(self, name: str) -> bool:
        """Whether a function is defined in a module, not in a class."""
        return name.rpartition(".")[0] in self.modules

    def _maker(self, bound: Bound) -> Bound | None:
        """The function that a value is, as the result of one that makes it."""
        at = self.resolve(bound.made_by) if bound.made_by else None
        found = self.bound(at) if at is not None else None
        return found.makes if found is not None else None

    def _like_class(self, bound: Bound) -> ApiEntry | None:
        """`Old = deprecated(New)` of a class is a class."""
        at = self.resolve(bound.like) if bound.like and not bound.signatures else None
        found = self.bound(at) if at is not None else None
        if at is None or found is None or found.kind is not EntryKind.CLASS:
            return None
        entry = ApiEntry(EntryKind.CLASS, signatures=self.constructor(found), bases=(at,))
        return self._saying(entry, bound.deprecated)

    def _saying(self, entry: ApiEntry, deprecation: Deprecation | None) -> ApiEntry:
        """The entry with what the library says about it."""
        if deprecation is None:
            return entry
        said = deprecation.said
        if deprecation.by:
            at = self.resolve(deprecation.by)
            helper = self.bound(at) if at is not None else None
            if helper is not None and helper.deprecated is not None:
                first, *parts = helper.deprecated.said.split("{}")
                if len(parts) <= len(deprecation.given) or not parts:
                    texts = zip(deprecation.given, parts, strict=False)
                    said = first + "".join(f"{given}{part}" for given, part in texts)
        return replace(entry, deprecated=said, warns=deprecation.warns)

    def function(self, bound: Bound, inside: bool = False, as_method: bool = False) -> ApiEntry:
        found, gone, parameters = bound.signatures, bound.gone, bound.parameters
        if not found and bound.like:
            at = self.resolve(bound.like)
            like = self.bound(at) if at is not None else None
            if at is not None and like is not None and like is not bound:
                entry = self.function(like)
                found, gone, parameters = entry.signatures, gone or entry.gone, entry.parameters
                as_method = as_method or (inside and bound.bind != "static" and self._is_free(at))
        if as_method:
            found = tuple(without_first(signature) for signature in found)
        entry = ApiEntry(
            EntryKind.FUNCTION, signatures=found, gone=gone or self._ends_gone(bound), parameters=parameters
        )
        return self._saying(entry, bound.deprecated)

    def _ends_gone(self, bound: Bound) -> bool:
        """Whether all that a function does is to call one that only raises."""
        for _ in range(3):
            at = self.resolve(bound.hands_on) if bound.hands_on else None
            found = self.bound(at) if at is not None else None
            if found is None or found.kind is not EntryKind.FUNCTION:
                return False
            if found.gone:
                return True
            bound = found
        return False

    def constructor(self, bound: Bound) -> tuple[str, ...]:
        found: tuple[str, ...] = ()
        for name in ("__init__", "__new__"):
            made = bound.members.get(name)
            if made is not None and made.kind is EntryKind.FUNCTION:
                found = made.signatures
                if found != ("(*args, **kwargs)",):
                    break
        if found:
            return found
        fields = self.fields(bound)
        return (of_fields(fields),) if fields is not None else self._inherited(bound)

    def _parameters(self, bound: Bound, depth: int = 0) -> tuple[DeprecatedParameter, ...]:
        """The deprecated parameters of a constructor, its own or that of the first base."""
        if bound.parameters or {"__init__", "__new__"} & bound.members.keys() or depth > _DEPTH:
            return bound.parameters
        at = self.resolve(bound.bases[0]) if bound.bases else None
        owner = self.bound(at) if at is not None else None
        return self._parameters(owner, depth + 1) if owner is not None else ()

    def _inherited(self, bound: Bound, depth: int = 0) -> tuple[str, ...]:
        """The constructor of the first base that has one; none if that is in another library."""
        if depth > _DEPTH or bound.metaclass or {"__init__", "__new__"} & bound.members.keys():
            return ()
        for base in bound.bases:
            if base in _PLAIN_BASES:
                continue
            at = self.resolve(base)
            owner = self.bound(at) if at is not None else None
            if owner is None or owner.kind is not EntryKind.CLASS:
                return ()
            if {"__init__", "__new__"} & owner.members.keys() or owner.fields is not None:
                return self.constructor(owner)
            found = self._inherited(owner, depth + 1)
            if found or not set(owner.bases) <= _PLAIN_BASES:
                return found
        return ()

    def fields(self, bound: Bound, depth: int = 0) -> list[Field] | None:
        """The fields of a dataclass, inherited ones first."""
        if bound.fields is None or depth > _DEPTH:
            return None
        found: dict[str, Field] = {}
        for base in reversed(bound.bases):
            at = self.resolve(base)
            owner = self.bound(at) if at is not None else None
            for field in (self.fields(owner, depth + 1) if owner is not None else None) or ():
                found[field.name] = field
        for field in bound.fields:
            found[field.name] = field
        return list(found.values())

    def _class(self, name: str, bound: Bound) -> None:
        bases = []
        is_open = bound.open or not self._plain_metaclass(bound.metaclass)
        members = {**self._members_of_metaclass(bound.metaclass), **bound.members}
        for base in bound.bases:
            at = self.resolve(base)
            owner = self.bound(at) if at is not None else None
            if at is not None and owner is not None and owner.kind is EntryKind.CLASS and at != name:
                bases.append(at)
                if self._unlisted(at):
                    self._waiting.append(at)
            elif base in _ENUMS:
                for key in ("name", "value"):
                    members.setdefault(key, Bound(EntryKind.VALUE, instance=True))
            elif base not in _PLAIN_BASES:
                elsewhere = at is not None and at.partition(".")[0] != self.tree.library
                bases.append(at if at is not None and elsewhere else "?")
                is_open = True
        entry = ApiEntry(
            EntryKind.CLASS,
            signatures=self.constructor(bound),
            bases=tuple(bases),
            open=is_open,
            gone=bound.gone,
            parameters=self._parameters(bound),
        )
        self.entries[name] = self._saying(entry, bound.deprecated)
        for key, member in members.items():
            if not key.startswith("__"):  # dunder or mangled
                self._emit(f"{name}.{key}", member, inside=True)

    def _members_of_metaclass(self, name: str) -> dict[str, Bound]:
        """What a class has by its metaclass: `torch.distributed.group.WORLD`."""
        at = self.resolve(name) if name else None
        found = self.bound(at) if at is not None else None
        return {} if found is None else {key: item for key, item in found.members.items() if key != "mro"}

    def _plain_metaclass(self, name: str) -> bool:
        at = self.resolve(name) if name else None
        found = self.bound(at) if at is not None else None
        if found is not None:
            return not found.open and all(base in _METACLASSES for base in found.bases)
        return name in _METACLASSES

    def _patch(self, patches: list[Patch]) -> None:
        """Puts in place what modules set on classes and modules from outside."""
        for patch in patches:
            at = self.resolve(patch.owner)
            if at is None:
                continue
            owner = self.bound(at)
            if owner is not None and owner.kind is EntryKind.CLASS:
                if patch.name:
                    owner.members.setdefault(patch.name, patch.bound)
                else:
                    owner.open = True
            elif owner is None and at in self.modules and self.tree.hidden(at) is None:
                if patch.name:
                    self.modules[at].names.setdefault(patch.name, patch.bound)
                else:
                    self.modules[at].open = True
