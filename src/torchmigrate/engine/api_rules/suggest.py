"""What to use in place of a missing name: what it was another name for, the same or a similar name."""

from __future__ import annotations

from torchmigrate.engine.api_rules.api import Api, Signatures, signatures
from torchmigrate.versions.releases import Version
from torchmigrate.versions.surface import Surface, surface_of
from torchmigrate.versions.surface_model import ApiEntry, EntryKind, Status

# What TorchDynamo logs is set by `torch._logging` since torch 2.1.
_LOGS = {
    "torch._dynamo.config.log_level": "dynamo=logging.DEBUG",
    "torch._dynamo.config.output_code": "output_code=True",
    "torch._dynamo.config.output_graph_code": "graph_code=True",
    "torch._dynamo.config.print_graph_breaks": "graph_breaks=True",
}


def help_of(api: Api, name: str) -> str | None:
    """What to use in place of a name that is missing at the target, in words; None: nothing is known."""
    surface = surface_of(name)
    found = _last_entry(surface, name, api) if surface is not None else None
    if surface is None or found is None:
        return None
    entry, version = found
    if entry.kind is EntryKind.ALIAS and not entry.target.startswith(surface.library + "."):
        owner, _, last = entry.target.rpartition(".")
        return f"import `{last}` from `{owner}`" if owner else f"import `{entry.target}` directly"
    other = same_object(api, surface, name, version)
    if other is not None:
        return f"use `{other}`: this was another name for it"
    other = _same_name(api, surface, name, entry, signatures(surface, name, version))
    return f"`{other}` has the same name" if other is not None else None


def same_object(api: Api, surface: Surface, name: str, version: Version) -> str | None:
    """The public name at the target of what was also known as `name` in a release; None: it has none."""
    origin = surface.definition(name, version)
    other = _public_name(surface, origin, api.target.version(name)) if origin not in (None, name) else None
    return other if other != name else None


def _public_name(surface: Surface, origin: str | None, version: Version) -> str | None:
    """The shortest public name of what is defined somewhere; None: it is not there."""
    if origin is None:
        return None
    definition = surface.definition(origin, version) or origin
    names = surface.names_ending(origin.rpartition(".")[2], version)
    public = (name for name in names if surface.definition(name, version) == definition)
    return next(public, origin if surface.status(origin, version) is Status.PRESENT else None)


def _same_name(api: Api, surface: Surface, name: str, entry: ApiEntry, old: Signatures) -> str | None:
    """A module, function or class of the same subpackage with the same last part; None: there is none.

    It takes like arguments. What takes none is only offered where it is the one of its kind and name. If the
    subpackage is not there any more, any other one will do for what takes arguments.
    """
    target = api.target.version(name)
    owner, _, last = name.rpartition(".")
    if entry.kind is EntryKind.VALUE or _kind(surface, owner) is EntryKind.CLASS:
        return None
    package = _subpackage(name)
    elsewhere = bool(old) and surface.status(package, target) is Status.ABSENT
    like: list[str] = []
    definitions: set[str | None] = set()
    for other in surface.names_ending(last, target):
        there = surface.entry(other, target)
        definition = surface.definition(other, target)
        if (
            other == name
            or there is None
            or there.kind is not entry.kind
            or not (elsewhere or _subpackage(other) == package)
            or (definition or "").rpartition(".")[2] != last
            or _kind(surface, other.rpartition(".")[0]) is EntryKind.CLASS
        ):
            continue
        if not old or _alike(old, api.target.signatures(other)):
            like.append(other)
            definitions.add(definition)
    if not like or (not old and len(definitions) > 1):
        return None
    return like[0]  # the shortest comes first


def _subpackage(name: str) -> str:
    """The part of a library with a name: `torch.nn` for all below it, `torch` for its own names."""
    return ".".join(name.split(".")[:-1][:2])


def _kind(surface: Surface, name: str) -> EntryKind | None:
    """What a name was in the last release that had it."""
    entry = next((entry for _, entry in reversed(list(surface.entries(name))) if entry is not None), None)
    return entry.kind if entry is not None else None


def help_of_setting(api: Api, name: str) -> str | None:
    """What to use in place of a setting that is missing at the target, in words; None: nothing is known."""
    if name in _LOGS:
        return f"call `torch._logging.set_logs({_LOGS[name]})` instead"
    other = same_setting(api, name)
    return f"`{other}` has the same name" if other is not None else None


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


def _last_entry(surface: Surface, name: str, api: Api) -> tuple[ApiEntry, Version] | None:
    """What a name was in the last release before the target that had it, and which one that is."""
    target = api.target.version(name)
    for version in reversed(surface.versions):
        if version <= target:
            entry = surface.entry(name, version)
            if entry is not None and not entry.gone:
                return entry, version
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
