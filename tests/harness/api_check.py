"""Whether a rule says what the API data says: versions, signatures and replacements.

Where the data cannot tell (compiled code, libraries that are not in it), nothing is held against a rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.catalogue.variants import rule_for_symbol
from torchmigrate.match.moves import dotted_names
from torchmigrate.match.rule_matches import new_names
from torchmigrate.match.signature import parse_signature
from torchmigrate.versions.range import requirement
from torchmigrate.versions.releases import COUNTED_AS_TORCH, Version, parse_version, show_version
from torchmigrate.versions.surface import DOCUMENTED, Surface, surface_of
from torchmigrate.versions.surface_model import EntryKind, Status


def contradictions(rule: Rule) -> list[str]:
    """What the data has against a rule, a line each; empty if nothing."""
    found: list[str] = []
    if rule.files:
        return found  # no names of Python
    for symbol in rule.symbols:
        found += _symbol(rule_for_symbol(rule, symbol), symbol)
    for module, new in rule.modules.items():
        if rule.members is None:
            found += _name(rule, module)
        if new is not None:
            found += _replacement(new, module)
    found += _members(rule)
    return list(dict.fromkeys(found))


def _symbol(rule: Rule, symbol: str) -> Iterator[str]:
    yield from _parameters(rule, symbol)
    if not (rule.parameters or rule.missing or rule.match):
        yield from _name(rule, symbol)
    for name in new_names(rule, symbol):
        yield from _replacement(name, symbol, {*rule.replaced_by, *rule.symbols})
    for case in rule.cases:
        yield from _requirement(rule, symbol, case)


def _name(rule: Rule, name: str) -> Iterator[str]:
    """Whether a name is there until `removed`, and not after."""
    surface = _surface(rule, name)
    if surface is None:
        return
    newest = surface.versions[-1]
    if not surface.known(name):
        if rule.removed is not None and parse_version(rule.removed) <= surface.versions[0]:
            return  # removed before the first release that was read
        if surface.status(name, newest) is Status.ABSENT:
            yield f"`{name}` does not exist in any release of {surface.library}"
        return
    spans = surface.spans(name)
    gone = spans[-1][1] if spans else None
    if rule.removed is None:
        # An override of a removed method stays in the class, and torch no longer calls it: behavior changed.
        changed = rule.changed if set(rule.roles) == {"base"} else None
        if gone is not None and (changed is None or parse_version(changed) > gone):
            yield f"`{name}` was removed in {show_version(gone)}: `removed` is missing"
        return
    removed = parse_version(rule.removed)
    before = _release_before(surface, removed)
    now, then = surface.entry(name, removed), surface.entry(name, surface.versions[0])
    replaced = now is not None and then is not None and now.kind is not then.kind  # torch.fft: now a module
    # One use of the name went, which the codemod or a pattern finds.
    some = (rule.codemod is not None or rule.only_in_patterns) and gone is None
    late = removed <= newest and surface.status(name, removed) is Status.PRESENT and not (replaced or some)
    early = before is not None and surface.status(name, before) is Status.ABSENT
    if late or early:
        yield f"`{name}` is not removed in {rule.removed}: {_until(gone)}"


def _until(gone: Version | None) -> str:
    return "it still exists" if gone is None else f"it was removed in {show_version(gone)}"


def _members(rule: Rule) -> Iterator[str]:
    """Whether every member was in one of the modules some time."""
    for member in rule.members or ():
        names = [f"{module}.{member}" for module in rule.modules]
        surfaces = [surface for name in names if (surface := _surface(rule, name)) is not None]
        if surfaces and not any(
            surface.known(name) or surface.status(name, surface.versions[0]) is Status.UNKNOWN
            for surface, name in zip(surfaces, names, strict=True)
        ):
            yield f"`{member}` does not exist in any release of {', '.join(rule.modules)}"


def _release_before(surface: Surface, version: Version) -> Version | None:
    earlier = [release for release in surface.versions if release < version]
    return earlier[-1] if earlier else None


def _parameters(rule: Rule, symbol: str) -> Iterator[str]:
    """Whether the parameters of a rule ever existed, and go when it says."""
    surface = _surface(rule, symbol)
    if surface is None or not rule.parameters or rule.match:  # about some values only
        return
    known = [parameters_of(surface, symbol, version) for version in surface.versions]
    taken = [accepted for accepted in known if accepted is not None]
    if not taken:
        return
    older = rule.removed is not None and parse_version(rule.removed) <= surface.versions[0]
    if len(taken) == len(known) and not older:
        for name in rule.parameters:
            if not any(name in accepted for accepted in taken):
                yield f"`{symbol}` never took `{name}`"
    if rule.removed is None:
        newest = known[-1]
        for name in rule.parameters:
            if newest is not None and name not in newest and not rule.changed:
                at_newest = show_version(surface.versions[-1])
                yield f"`{symbol}` takes no `{name}` in {at_newest}: `removed` is missing"
        return
    removed = parse_version(rule.removed)
    before = _release_before(surface, removed)
    now = parameters_of(surface, symbol, removed) if removed <= surface.versions[-1] else None
    then = parameters_of(surface, symbol, before) if before is not None else None
    if len(rule.parameters) > 1 and now is not None and then is not None:
        # Of several, the release is the first that removes one; in the end all are removed.
        late = [name for name in rule.parameters if known[-1] is not None and name in known[-1]]
        early = [] if any(name in then and name not in now for name in rule.parameters) else rule.parameters
    else:
        late = [name for name in rule.parameters if now is not None and name in now]
        early = [name for name in rule.parameters if then is not None and name not in then]
    if rule.deprecated is not None and before is not None and parse_version(rule.deprecated) <= before:
        early = []  # one of several implementations may have lost it since then
    if symbol.rpartition(".")[0] in DOCUMENTED:
        early = []  # the documentation had a new name before the function took it
    for name in late:
        yield f"`{symbol}` still takes `{name}` in {rule.removed}"
    for name in early:
        if any(name in accepted for accepted in taken):
            yield f"`{symbol}` takes no `{name}` before {rule.removed} already"


def parameters_of(surface: Surface, name: str, version: Version) -> frozenset[str] | None:
    """The parameters that a function or constructor takes; None: not known, or any (`**kwargs`)."""
    entry = surface.entry(name, version)
    if entry is None or entry.kind not in (EntryKind.FUNCTION, EntryKind.CLASS) or not entry.signatures:
        return None
    names: set[str] = set()
    for text in entry.signatures:
        signature = parse_signature(text)
        if signature.keywords is not None:
            return None
        names.update(signature.by_name)
    return frozenset(names)


def _requirement(rule: Rule, symbol: str, case: Case) -> Iterator[str]:
    """Whether what a case writes exists in the release that it requires."""
    if case.requires is None:
        return
    library, version = requirement(case.requires, rule.library)
    for text in (case.rename, case.template):
        for name in dotted_names(text) if text else ():
            surface = surface_of(name)
            if surface is None or surface.library != library or version < surface.versions[0]:
                continue
            if surface.status(name, version) is Status.ABSENT:
                yield f"`{name}` does not exist in {library} {show_version(version)}, which is required"


def _replacement(name: str, old: str, advised: Collection[str] = ()) -> Iterator[str]:
    """Whether a replacement exists in the newest release, and is not deprecated there itself.

    advised: names that are only spoken of, or looked at by the rule themselves.
    """
    surface = surface_of(name)
    if surface is None:
        return
    newest = f"{surface.library} {show_version(surface.versions[-1])}"
    if surface.status(name, surface.versions[-1]) is Status.ABSENT:
        yield f"replaced by `{name}`, which does not exist in {newest}"
    entry = surface.entry(name, surface.versions[-1])
    if entry is not None and entry.deprecated is not None and name != old and name not in advised:
        yield f"replaced by `{name}`, which is deprecated in {newest}"


def _surface(rule: Rule, name: str) -> Surface | None:
    """The data for a name, if the rule counts in its releases."""
    surface = surface_of(name)
    if surface is None:
        return None
    counted = "torch" if rule.library in COUNTED_AS_TORCH else rule.library
    return surface if surface.library == counted else None
