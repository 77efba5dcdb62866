"""What changed between two releases of a library, as text: where the next rules come from."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from torchmigrate.match.signature import Parameter, Signature, parse_signature
from torchmigrate.versions.releases import Version, show_version
from torchmigrate.versions.surface import Surface, private, published
from torchmigrate.versions.surface_model import ApiEntry, EntryKind, Status

_CALLED = (EntryKind.FUNCTION, EntryKind.CLASS)


@dataclass(slots=True)
class Changes:
    """What changed, by public name. Of a new or removed module or class, the members are left out.

    moved: removed names, and where the same thing is now.
    deprecated: newly deprecated names, and what the library says.
    parameters: a line for each change in the parameters of a function or class.
    unsure: names that the later release may have, but not where they can be read.
    """

    added: dict[str, ApiEntry] = field(default_factory=dict)
    removed: dict[str, ApiEntry] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    deprecated: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, list[str]] = field(default_factory=dict)
    unsure: list[str] = field(default_factory=list)


def changes(surface: Surface, old: Version, new: Version) -> Changes:
    """Compare two releases of a library by what a program can name in them.

    Raises:
        ValueError: a release is not in the data.
    """
    before, after = PublicNames(surface, old), PublicNames(surface, new)
    found = Changes()
    removed, added = [], []
    for name in before.names:
        status = surface.status(name, new)
        if status is Status.ABSENT:
            removed.append(name)
        elif status is Status.UNKNOWN:
            found.unsure.append(name)
    added = [name for name in after.names if surface.status(name, old) is Status.ABSENT]
    found.added = {name: after.names[name] for name in after.once(_outermost(added))}
    for name in before.once(_outermost(removed)):
        now = _moved_to(name, before, after, added)
        if now is None:
            found.removed[name] = before.names[name]
        else:
            found.moved[name] = now
    for name in after.once(name for name in after.names if name in before.names):
        was, now_is = before.names[name], after.names[name]
        if now_is.deprecated is not None and was.deprecated is None:
            found.deprecated[name] = now_is.deprecated
        lines = [*_parameters(was, now_is), *_deprecated_parameters(was, now_is)]
        if lines:
            found.parameters[name] = lines
    _settings(surface, old, new, found)
    return found


def _settings(surface: Surface, old: Version, new: Version, found: Changes) -> None:
    """Adds the settings of configuration modules, which are private by name, that went or are deprecated."""
    before, after = surface.release(old), surface.release(new)
    modules = [name for name, entry in before.items() if entry.kind is EntryKind.MODULE and entry.bases]
    for name, was in before.items():
        if was.kind is EntryKind.VALUE and any(name.startswith(f"{module}.") for module in modules):
            now_is = after.get(name)
            if now_is is None:
                found.removed[name] = was
            elif now_is.deprecated is not None and was.deprecated is None:
                found.deprecated[name] = now_is.deprecated


def _deprecated_parameters(was: ApiEntry, now: ApiEntry) -> Iterator[str]:
    known = {parameter.test for parameter in was.parameters}
    yield from (f"{test}: {said}" for test, said in now.parameters if test not in known)


def render(library: str, old: Version, new: Version, found: Changes) -> str:
    """Changes as text, by kind and within it by module or class."""
    sections = [
        ("Removed", {name: [_shown(entry)] for name, entry in found.removed.items()}),
        ("Moved", {name: [f" -> {now}"] for name, now in found.moved.items()}),
        ("Newly deprecated", {name: [f": {text}"] for name, text in found.deprecated.items()}),
        ("Parameters", {name: [f": {line}" for line in lines] for name, lines in found.parameters.items()}),
        ("Added", {name: [_shown(entry)] for name, entry in found.added.items()}),
        (
            "May have gone: their module or class has names that cannot be read",
            {n: [""] for n in found.unsure},
        ),
    ]
    lines = [f"{library} {show_version(old)} -> {show_version(new)}"]
    for title, names in sections:
        if not names:
            continue
        lines += ["", f"{title} ({len(names)})"]
        module = None
        for name in sorted(names, key=lambda name: name.rpartition(".")[::2]):
            owner, _, last = name.rpartition(".")
            if owner != module:
                lines.append(f"  {owner}")
                module = owner
            lines += [f"    {last}{text}" for text in names[name]]
    if len(lines) == 1:
        lines.append("No changes.")
    return "\n".join(lines) + "\n"


class PublicNames:
    """The names of one release that a program may use, and what is known under several of them."""

    def __init__(self, surface: Surface, version: Version) -> None:
        self.names: dict[str, ApiEntry] = {}
        self.definitions: dict[str, str] = {}
        classes: dict[str, str] = {}  # public names of classes by their definition, the shortest of each
        release = surface.release(version)
        for name in sorted(release, key=_length):
            if private(name) or not published(name, release[name]):
                continue
            entry = surface.entry(name, version)
            parent = surface.entry(name.rpartition(".")[0], version)
            of_class = parent is not None and parent.kind is EntryKind.CLASS
            if entry is None or entry.gone or of_class:
                continue
            self._add(surface, version, name, entry)
            if entry.kind is EntryKind.CLASS:
                classes.setdefault(self.definitions[name], name)
        for definition, name in classes.items():
            bases = (surface.definition(base, version) for base in self.names[name].bases)
            parents = [classes[base] for base in bases if base in classes]
            for last in sorted(surface.members(name, version)):
                member = f"{name}.{last}"
                place = surface.definition(member, version) or ""
                owner = place.rpartition(".")[0]
                # What a class with a public name hands down is a member of that one.
                if private(last) or (owner != definition and owner in classes):
                    continue
                handed = (surface.definition(f"{parent}.{last}", version) for parent in parents)
                entry = surface.entry(member, version)
                if entry is not None and not entry.gone and (owner == definition or place not in handed):
                    self._add(surface, version, member, entry)

    def _add(self, surface: Surface, version: Version, name: str, entry: ApiEntry) -> None:
        self.names[name] = entry
        self.definitions[name] = surface.definition(name, version) or name

    def once(self, names: Iterable[str]) -> Iterator[str]:
        """Of several names of one thing, the shortest."""
        seen = set()
        for name in sorted(names, key=_length):
            if self.definitions[name] not in seen:
                seen.add(self.definitions[name])
                yield name


def _length(name: str) -> tuple[int, str]:
    return name.count("."), name


def _outermost(names: Iterable[str]) -> Iterator[str]:
    """Names whose module or class is not among them."""
    every = set(names)
    return (name for name in every if name.rpartition(".")[0] not in every)


def _moved_to(name: str, before: PublicNames, after: PublicNames, added: Iterable[str]) -> str | None:
    """Where what was `name` is now: another name that it had already, or a new one that looks the same."""
    last = name.rpartition(".")[2]
    was = before.names[name]
    others = [
        other
        for other, definition in before.definitions.items()
        if definition == before.definitions[name] and other != name and other in after.names
    ]
    new = [other for other in added if other.rpartition(".")[2] == last and _alike(was, after.names[other])]
    return min(others or new, key=_length, default=None)


def _alike(one: ApiEntry, other: ApiEntry) -> bool:
    return one.kind is other.kind and one.signatures == other.signatures


def _shown(entry: ApiEntry) -> str:
    if entry.kind in _CALLED:
        return " or ".join(entry.signatures) if entry.signatures else "(?)"
    return f"  [{entry.kind.value}]"


def _parameters(was: ApiEntry, now: ApiEntry) -> Iterator[str]:
    """What changed in the parameters; nothing where they cannot be read."""
    if was.signatures == now.signatures or not was.signatures or not now.signatures:
        return
    if was.kind not in _CALLED or now.kind not in _CALLED:
        return
    if len(was.signatures) == len(now.signatures) == 1:
        try:
            yield from _compare(parse_signature(was.signatures[0]), parse_signature(now.signatures[0]))
            return
        except ValueError:
            pass  # not Python, as it happens in docstrings: shown as it is
    yield from (f"no longer {text}" for text in was.signatures if text not in now.signatures)
    yield from (f"now also {text}" for text in now.signatures if text not in was.signatures)


def _compare(was: Signature, now: Signature) -> Iterator[str]:
    for parameter in was.parameters:
        if parameter.name not in now.by_name:
            yield f"- {_written(parameter)}"
    yield from _moves(was, now)
    for parameter in now.parameters:
        other = was.by_name.get(parameter.name)
        if other is None:
            yield f"+ {_written(parameter)}"
            continue
        defaults = [
            None if item.default is None else ast.unparse(item.default) for item in (other, parameter)
        ]
        if defaults[0] != defaults[1]:
            yield f"{parameter.name}: default {defaults[0] or 'none'} -> {defaults[1] or 'none'}"
        if other.kind != parameter.kind and "keyword-only" not in parameter.kind:
            yield f"{parameter.name} is {parameter.kind}, was {other.kind}"


def _moves(was: Signature, now: Signature) -> Iterator[str]:
    """Positional parameters that are elsewhere; neighbours that moved together are one line."""
    places = {parameter.name: place for place, parameter in enumerate(now.positional)}
    shifted: list[tuple[int, int]] = []  # place and by how much
    for place, parameter in enumerate(was.positional):
        new_place = places.get(parameter.name)
        if new_place is not None:
            shifted.append((place, new_place - place))
        elif parameter.name in now.by_name:
            yield f"{parameter.name} is keyword-only"
    for shift, run in groupby(shifted, key=lambda item: item[1]):
        if shift:
            moved = [place for place, _ in run]
            first, last = (was.positional[moved[at]].name for at in (0, -1))
            names = first if len(moved) == 1 else f"{first} to {last}"
            yield f"{names} moved by {shift:+} from place {moved[0] + 1}"


def _written(parameter: Parameter) -> str:
    stars = {"variadic": "*", "keywords": "**"}.get(parameter.kind, "")
    default = "" if parameter.default is None else f"={ast.unparse(parameter.default)}"
    kind = " (keyword-only)" if parameter.kind == "keyword-only" else ""
    return f"{stars}{parameter.name}{default}{kind}"
