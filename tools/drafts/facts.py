"""What a new release changed for a program that names it: the facts from which rules are drafted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from api.changes import PublicNames, changes

from torchmigrate.engine.api_rules import suggest
from torchmigrate.engine.api_rules.api import Api, Version
from torchmigrate.engine.api_rules.deprecated import replacement
from torchmigrate.match.signature import Parameter, Signature, parse_signature, required
from torchmigrate.versions.range import VersionRange
from torchmigrate.versions.surface import Surface, private
from torchmigrate.versions.surface_model import ApiEntry, EntryKind, Status

CALLED = (EntryKind.FUNCTION, EntryKind.CLASS)
_PLAIN = ("positional", "keyword-only")  # kinds of parameters that can be given by name


@dataclass(slots=True)
class Fact:
    """One change.

    kind: "removed", "deprecated" or "kept" (of a name; the last: it warned, and does not any longer);
        "parameter removed", "parameter renamed", "parameter deprecated", "default" or "required".
    names: the public names of what changed, the shortest first, or its private one.
    was: what it was before. said: the library's own words.
    new: the name, or the parameter, that takes its place. how: why that is believed; "identity" is certain.
    parameter: its name. default: the one before. now: the new default.
    owner: what the name belongs to. same_signature: whether the new name takes the same arguments.
    """

    kind: str
    names: list[str]
    was: ApiEntry
    said: str = ""
    new: str | None = None
    how: str = ""
    parameter: str = ""
    default: str | None = None
    now: str | None = None
    owner: EntryKind = EntryKind.MODULE
    same_signature: bool = False


@dataclass(slots=True)
class Facts:
    """All facts, and what the API rules report without a draft, in words."""

    facts: list[Fact] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)


class Reader:
    """Compares two releases of a library. torch: the release of torch that goes with the new one."""

    def __init__(self, surface: Surface, old: Version, new: Version, torch: str) -> None:
        self.surface = surface
        self.old, self.new = old, new
        self.api = Api(VersionRange(target=torch))
        self.before = PublicNames(surface, old)
        self.after = PublicNames(surface, new)
        self.changes = changes(surface, old, new)

    def facts(self) -> Facts:
        unsure = set(self.changes.unsure)
        found = Facts(unsure=[name for name in self.changes.unsure if name.rpartition(".")[0] not in unsure])
        for name, was in [*self.changes.removed.items(), *((n, None) for n in self.changes.moved)]:
            if self._is_setting(name):
                found.settings.append(f"`{name}` was removed")
            else:
                found.facts.append(self._removed(name, was or self.before.names[name]))
        for name, entry in self.changes.added.items():
            if entry.warns and entry.deprecated is not None:
                found.facts.append(self._deprecated(name))
        for name in self.after.names.keys() & self.before.names.keys():
            was = self.before.names[name]
            if was.warns and was.deprecated is not None and self.after.names[name].deprecated is None:
                found.facts.append(self._fact("kept", name, was))
        for name, said in self.changes.deprecated.items():
            if self._is_setting(name):
                found.settings.append(f"`{name}` is deprecated: {said}")
            else:
                found.facts.append(self._deprecated(name))
        found.facts += self._private()
        found.facts += self._renamed_in_modules()
        for name in self.changes.parameters:
            found.facts += self._parameters(name)
        return found

    def _is_setting(self, name: str) -> bool:
        """Whether a name is in a configuration module, or in a group of one."""
        owner = self.surface.entry(name.rpartition(".")[0], self.old)
        in_module = owner is not None and owner.kind is EntryKind.MODULE and bool(owner.bases)
        return in_module or (".config." in name and private(name))

    def _spellings(self, name: str) -> list[str]:
        """Every public name before of what has this name, the shortest first."""
        owner, _, last = name.rpartition(".")
        definitions = self.before.definitions
        same = {other for other, at in definitions.items() if at == definitions.get(name)}
        same |= {
            f"{other}.{last}"
            for other, at in definitions.items()
            if at == definitions.get(owner) and self._owner(name) is EntryKind.CLASS
        }
        return sorted(same | {name}, key=lambda each: (each.count("."), each))

    def _owner(self, name: str) -> EntryKind:
        entry = self.surface.entry(name.rpartition(".")[0], self.old)
        return entry.kind if entry is not None else EntryKind.MODULE

    def _fact(self, kind: str, name: str, was: ApiEntry, **more: str | None) -> Fact:
        return Fact(kind, self._spellings(name), was, owner=self._owner(name), **more)  # type: ignore[arg-type]

    # ---- names ---------------------------------------------------------------------------------------

    def _removed(self, name: str, was: ApiEntry) -> Fact:
        fact = self._fact("removed", name, was, said=was.deprecated or "")
        at = self.before.definitions[name]
        own = at.startswith(name.rpartition(".")[0] + ".")
        if own:  # others only use it there: TM001 says where it is
            fact.new = suggest.same_object(self.api, self.surface, name, self.old)
        fact.how = "identity" if fact.new else ""
        if fact.new is None:
            fact.new = replacement(self.api, name, was)
            fact.how = "the library's words" if fact.new else ""
        if fact.new is None:
            fact.new = self.changes.moved.get(name) if own else None
            fact.how = "the same name and signature" if fact.new else ""
        fact.names = [each for each in fact.names if self._is_gone(each)]
        return self._with_signature(fact)

    def _with_signature(self, fact: Fact) -> Fact:
        at = self.surface.definition(fact.new, self.new) if fact.new is not None else None
        if at is not None and fact.owner is not EntryKind.CLASS:
            # What others import is no place to import it from.
            public = [
                name
                for name, definition in self.after.definitions.items()
                if definition == at and at.startswith(name.rpartition(".")[0] + ".")
            ]
            fact.new = min(public, key=lambda name: (name.count("."), name), default=fact.new)
        entry = self.surface.entry(fact.new, self.new) if fact.new is not None else None
        fact.same_signature = (
            entry is not None
            and entry.kind is fact.was.kind
            and entry.kind in CALLED
            and entry.signatures == fact.was.signatures
        )
        return fact

    def _is_gone(self, name: str) -> bool:
        return self.surface.status(name, self.new) is Status.ABSENT

    def _deprecated(self, name: str) -> Fact:
        entry = self.surface.entry(name, self.new)
        assert entry is not None, "it is deprecated there"
        fact = self._fact("deprecated", name, entry, said=entry.deprecated or "")
        fact.new = replacement(self.api, name, entry)
        fact.how = "the library's words" if fact.new else ""
        return self._with_signature(fact)

    def _private(self) -> Iterator[Fact]:
        """Functions and classes in private modules that warn, as those in public ones do."""
        old = self.surface.release(self.old)
        for name, entry in self.surface.release(self.new).items():
            was = old.get(name)
            if (
                entry.kind in CALLED
                and entry.warns
                and private(name)
                and was is not None
                and was.deprecated is None
                and name not in self.changes.deprecated
                and name not in self.after.definitions.values()
            ):
                yield self._deprecated(name)

    def _renamed_in_modules(self) -> Iterator[Fact]:
        """What a newly deprecated module has from elsewhere, under another name."""
        old = self.surface.release(self.old)
        for module, entry in self.surface.release(self.new).items():
            was = old.get(module)
            if (
                entry.kind is not EntryKind.MODULE
                or entry.deprecated is None
                or was is None
                or was.deprecated
            ):
                continue
            for last in sorted(self.surface.members(module, self.old)):
                name = f"{module}.{last}"
                there, now = self.surface.definition(name, self.old), self.surface.definition(name, self.new)
                if there == name and now not in (None, name):
                    before = self.surface.entry(name, self.old)
                    assert before is not None, "it is defined there"
                    yield Fact("deprecated", [name], before, entry.deprecated, now, "identity")

    # ---- parameters ----------------------------------------------------------------------------------

    def _parameters(self, name: str) -> Iterator[Fact]:
        was, now = self.before.names[name], self.after.names[name]
        known = {parameter.test for parameter in was.parameters}
        for test, text in now.parameters:
            if test not in known:
                yield self._fact("parameter deprecated", name, now, parameter=_tested(test), said=text)
        if not (len(was.signatures) == len(now.signatures) == 1):
            return
        try:
            old, new = parse_signature(was.signatures[0]), parse_signature(now.signatures[0])
        except ValueError:
            return
        said = {_tested(test): text for test, text in was.parameters}
        for parameter in old.parameters:
            if parameter.kind not in _PLAIN or parameter.name.startswith("_"):
                continue
            later = new.by_name.get(parameter.name)
            if later is None and new.keywords is None:
                fact = self._fact("parameter removed", name, was, parameter=parameter.name)
                fact.said, fact.default = said.get(parameter.name, ""), _default(parameter)
                fact.new = _renamed(parameter, old, new)
                if fact.new is not None:
                    fact.kind, fact.how = "parameter renamed", "the same place and default"
                yield fact
            elif later is not None and later.default is not None and parameter.default is not None:
                default, changed = _default(parameter), _default(later)
                if default != changed and "..." not in (default, changed):
                    fact = self._fact("default", name, was, parameter=parameter.name, default=default)
                    fact.now = changed
                    yield fact
        for parameter_name in set(required(new)) - set(required(old)):
            yield self._fact("required", name, was, parameter=parameter_name)


def _tested(test: str) -> str:
    """The parameter that the test of a deprecated one is about."""
    return test.removeprefix("not ").split(" ")[0]


def _default(parameter: Parameter) -> str | None:
    return None if parameter.default is None else ast.unparse(parameter.default)


def _renamed(parameter: Parameter, old: Signature, new: Signature) -> str | None:
    """The new parameter at the place of one that went, with its kind and default; None: there is none."""

    def alike(one: Signature, other: Signature) -> list[tuple[int, str]]:
        return [
            (place if item.kind == "positional" else -1, item.name)
            for place, item in enumerate(one.parameters)
            if item.name not in other.by_name
            and item.kind == parameter.kind
            and _default(item) == _default(parameter)
        ]

    went, came = alike(old, new), alike(new, old)
    same = [(one, other) for one in went for other in came if one[0] == other[0]]
    mine = [other for one, (_, other) in same if one[1] == parameter.name]
    return mine[0] if len(mine) == 1 and len(same) == 1 else None
