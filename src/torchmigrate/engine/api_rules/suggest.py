"""Where a missing name may have gone: the same last part elsewhere, or a similar spelling."""

from __future__ import annotations

from torchmigrate.engine.api_rules.api import Api, Signatures, signatures
from torchmigrate.versions.surface import Surface, surface_of
from torchmigrate.versions.surface_model import Entry


def same_name(api: Api, name: str) -> str | None:
    """A name at the target with the same last part, that takes like arguments; None: there is none.

    What takes no arguments, as a module, is only offered where it is the one of its kind and name.
    """
    surface = surface_of(name)
    found = _last_entry(surface, name, api) if surface is not None else None
    if surface is None or found is None:
        return None
    entry, old = found
    target = api.target.version(name)
    like: list[str] = []
    definitions: set[str | None] = set()
    for other in surface.names_ending(name.rpartition(".")[2], target):
        there = surface.entry(other, target)
        if other == name or there is None or there.kind is not entry.kind:
            continue
        if not old or _alike(old, api.target.signatures(other)):
            like.append(other)
            definitions.add(surface.definition(other, target))
    if not like or (not old and len(definitions) > 1):
        return None
    return like[0]  # the shortest comes first


def same_setting(api: Api, name: str) -> str | None:
    """The one setting of another configuration module that has the same name at the target."""
    surface = surface_of(name)
    if surface is None:
        return None
    version = api.target.version(name)
    found = [
        other
        for other in surface.names_ending(name.rpartition(".")[2], version, hidden=True)
        if other != name and ".config." in other.replace("._config.", ".config.")
    ]
    return found[0] if len(found) == 1 else None


def nearest(api: Api, name: str) -> str | None:
    """The name in the same module or class that is spelt most like this one."""
    import difflib

    surface = surface_of(name)
    if surface is None:
        return None
    owner, _, last = name.rpartition(".")
    members = {item for item in surface.members(owner, api.target.version(name)) if item[:1] != "_"}
    close = difflib.get_close_matches(last, sorted(members), n=1, cutoff=0.7)
    return f"{owner}.{close[0]}" if close else None


def _last_entry(surface: Surface, name: str, api: Api) -> tuple[Entry, Signatures] | None:
    """What a name was in the last release before the target that had it."""
    target = api.target.version(name)
    for version in reversed(surface.versions):
        if version <= target:
            entry = surface.entry(name, version)
            if entry is not None and not entry.gone:
                return entry, signatures(surface, name, version)
    return None


def _alike(old: Signatures, new: Signatures) -> bool:
    """Whether two functions take mostly the same parameters in some of their forms."""
    for one in old:
        for other in new:
            first = {item.name for item in one.parameters}
            second = {item.name for item in other.parameters}
            same_start = bool(one.positional and other.positional) and (
                one.positional[0].name == other.positional[0].name
            )
            if first == second or (same_start and 2 * len(first & second) >= max(len(first), len(second))):
                return True
    return False
