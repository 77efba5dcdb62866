"""Whether a rule says what the API data says: versions, signatures and replacements.

Asked in the tests of the catalogue and by `torchmigrate test-rules`. Where the data cannot tell (compiled
code, libraries that are not in it), nothing is held against a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.catalogue.variants import STATUS, at
from torchmigrate.hits import dotted_names, new_names
from torchmigrate.match.signature import parse_signature
from torchmigrate.versions.range import requirement
from torchmigrate.versions.releases import (
    COUNTED_AS_TORCH,
    RELEASES,
    Version,
    companion,
    parse_version,
    show_version,
)
from torchmigrate.versions.surface import Surface, surface_of
from torchmigrate.versions.surface_model import EntryKind, Status


def contradictions(rule: Rule) -> list[str]:
    """What the data has against a rule, a line each; empty if nothing."""
    found: list[str] = []
    for symbol in rule.symbols:
        found += _symbol(at(rule, symbol), symbol)
    for module, new in rule.modules.items():
        names = [module] if rule.members is None else [f"{module}.{member}" for member in rule.members]
        for name in names:
            found += _name(rule, name)
        if new is not None:
            found += _replacement(rule, new, _first(rule), "moved to")
    return list(dict.fromkeys(found))


def _symbol(rule: Rule, symbol: str) -> Iterator[str]:
    yield from _name(rule, symbol)
    yield from _parameters(rule, symbol)
    since = _first(rule)
    for name in new_names(rule, symbol):
        yield from _replacement(rule, name, since, "replaced by")
    for case in rule.cases:
        yield from _requirement(rule, symbol, case)


def _name(rule: Rule, name: str) -> Iterator[str]:
    """Whether a name is there before `removed`, and not after."""
    surface = _surface(rule, name)
    if surface is None:
        return
    spans = surface.spans(name)
    newest = surface.versions[-1]
    if not spans:
        if surface.status(name, newest) is Status.ABSENT and not surface.known(name):
            yield f"`{name}` is in no release of {surface.library}"
        return
    about_arguments = bool(rule.parameters or rule.missing or rule.match)
    gone = spans[-1][1]
    if about_arguments:
        return
    if rule.removed is not None:
        removed = parse_version(rule.removed)
        if gone is None and removed <= newest and surface.status(name, newest) is Status.PRESENT:
            yield f"`{name}` is not removed: it is there in {surface.library} {show_version(newest)}"
        elif gone is not None and gone != removed and _covered(surface, removed):
            yield f"`{name}` is gone since {show_version(gone)}, not {rule.removed}"
    elif gone is not None:
        yield f"`{name}` is gone since {show_version(gone)}: `removed` is missing"


def _covered(surface: Surface, version: Version) -> bool:
    """Whether the data holds the release before a version, so that it can tell what changed in it."""
    return any(late == version for _, late in pairwise(surface.versions))


def _parameters(rule: Rule, symbol: str) -> Iterator[str]:
    """Whether the parameters of a rule ever existed, and go when it says."""
    surface = _surface(rule, symbol)
    if surface is None:
        return
    taken = {
        version: accepted
        for version in surface.versions
        if (accepted := parameters_of(surface, symbol, version)) is not None
    }
    if not taken:
        return
    ever = frozenset().union(*taken.values())
    for name in rule.parameters:
        if name not in ever:
            yield f"`{symbol}` never took `{name}`"
            continue
        last = max(version for version, accepted in taken.items() if name in accepted)
        later = [version for version in taken if version > last]
        if rule.removed is not None and not later and parse_version(rule.removed) <= surface.versions[-1]:
            yield f"`{symbol}` still takes `{name}` in {surface.library} {show_version(last)}"
        elif later and rule.removed is None and not rule.changed:
            yield f"`{symbol}` no longer takes `{name}` since {show_version(later[0])}: `removed` is missing"
        elif later and rule.removed is not None and parse_version(rule.removed) != later[0]:
            yield f"`{symbol}` takes no `{name}` since {show_version(later[0])}, not {rule.removed}"


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
    variables = rule.symbols.get(symbol, {})
    for text in (case.rename, case.template):
        for name in dotted_names(text, variables) if text else ():
            surface = surface_of(name)
            if surface is None or surface.library != library or version < surface.versions[0]:
                continue
            if surface.status(name, version) is Status.ABSENT:
                yield f"`{name}` does not exist in {library} {show_version(version)}, which is required"


def _replacement(rule: Rule, name: str, since: Version | None, words: str) -> Iterator[str]:
    """Whether a replacement exists in the newest release."""
    surface = surface_of(name)
    if surface is None or since is None:
        return
    newest = surface.versions[-1]
    if surface.status(name, newest) is Status.ABSENT:
        yield f"{words} `{name}`, which does not exist in {surface.library} {show_version(newest)}"


def _first(rule: Rule) -> Version | None:
    """The first release in which a rule has something to say."""
    given = [parse_version(text) for status in STATUS if (text := getattr(rule, status))]
    return min(given, default=None)


def _surface(rule: Rule, name: str) -> Surface | None:
    """The data for a name, if the rule counts in its releases."""
    surface = surface_of(name)
    if surface is None:
        return None
    counted = "torch" if rule.library in COUNTED_AS_TORCH else rule.library
    return surface if surface.library == counted else None
