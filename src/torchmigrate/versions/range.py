"""The range of torch releases that code is for, and what it means for rules and fixes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Protocol

from torchmigrate.findings import Applicability, Obstacle, Reason, Severity, Timeline, because
from torchmigrate.versions.releases import (
    ABSENT,
    COUNTED_AS_TORCH,
    NEIGHBORS,
    NEWEST,
    UNKNOWN,
    Version,
    companion,
    parse_version,
    show_version,
)

__all__ = [
    "VersionRange",
    "Versioned",
    "applicability",
    "parse_version",
    "required",
    "requirement",
    "severity",
    "timeline",
]

_version = lru_cache(maxsize=None)(parse_version)
_FIRST_LOOSE_TORCHDATA: Version = (0, 7)  # 0.7.1 and later ask for torch>=2


class Versioned(Protocol):
    """A rule, or the head of one."""

    @property
    def library(self) -> str: ...
    @property
    def outdated(self) -> str | None: ...
    @property
    def deprecated(self) -> str | None: ...
    @property
    def changed(self) -> str | None: ...
    @property
    def removed(self) -> str | None: ...
    @property
    def until(self) -> str | None: ...


class Replacement(Protocol):
    """The new code of a rule: a case of it."""

    @property
    def applicability(self) -> Applicability: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def requires(self) -> str | None: ...
    @property
    def safe_from(self) -> str | None: ...


class VersionRange:
    """`minimum`..`target`: the oldest torch that the code must run on, and the one that it moves to.

    minimum None: not known, only the target counts.
    written_for: the oldest torch that the code has run on, where that is older than it must run on now.
    companions: the oldest release of other libraries that the project declares. The minimum of a library that
        is not among them is the release that goes with `minimum`; of a neighbor of torch it is not known.

    Raises:
        ValueError: one of them is not a release, or the minimum is newer than the target.
    """

    __slots__ = ("companions", "minimum", "target", "written_for")

    def __init__(
        self,
        target: str = NEWEST,
        minimum: str | None = None,
        written_for: str | None = None,
        companions: Collection[tuple[str, Version]] | Mapping[str, Version] = (),
    ) -> None:
        if parse_version(target) < parse_version(minimum or target):
            raise ValueError(f"the minimum, torch {minimum}, is newer than the target, torch {target}")
        self.target = target
        self.minimum = minimum
        self.written_for = written_for or minimum
        self.companions = dict(companions)

    def of(self, library: str) -> tuple[Version, Version | None]:
        """Target and minimum in releases of `library`, the minimum None if it is not known."""
        target, derived = _companions(self.target, self.minimum, library)
        if library in NEIGHBORS:
            declared = self.companions.get(library)
            return max(target, declared or target), declared
        return target, self._declared(library, derived, target)

    def known_to(self, library: str) -> Version | None:
        """The release of `library` up to which the code lives with every change; None if it is not known."""
        if library in NEIGHBORS:
            return self.companions.get(library)
        oldest = None if self.written_for is None else companion(library, _version(self.written_for))
        if self.written_for == self.minimum and oldest != UNKNOWN:
            return self._declared(library, oldest, self.of(library)[0])
        return None if oldest == UNKNOWN else oldest

    def _declared(self, library: str, derived: Version | None, target: Version) -> Version | None:
        """The minimum of a library: what the project declares, but nothing that torch's minimum excludes.

        Only torchdata has releases that do not pin torch.
        """
        declared = self.companions.get(library)
        if declared is None or declared > target:
            return derived
        if library == "torchdata" and derived is not None:
            derived = min(derived, _FIRST_LOOSE_TORCHDATA)
        return max(declared, derived or declared)


@lru_cache(maxsize=1024)  # called for each use of a file
def _companions(target: str, minimum: str | None, library: str) -> tuple[Version, Version | None]:
    oldest = None if minimum is None else companion(library, _version(minimum))
    return companion(library, _version(target)), None if oldest == UNKNOWN else oldest


def timeline(rule: Versioned, versions: VersionRange) -> Timeline:
    """The releases of a rule that concern a project with this range.

    A change that is in the oldest torch for which the code was written does not: the project lives with it.
    What was deprecated before it warned that it would come, and no longer does; what is deprecated since then
    or later still warns.
    """
    known = versions.known_to(rule.library)
    deprecated, changed = _concerning(known, rule.deprecated, rule.changed)
    return Timeline(rule.library, rule.outdated, deprecated, changed, rule.removed)


def _concerning(
    known: Version | None, deprecated: str | None, changed: str | None
) -> tuple[str | None, str | None]:
    """When a rule was deprecated and changed, as far as that is newer than what the code lives with."""
    if changed is not None and known is not None and _version(changed) <= known:
        if deprecated is not None and _version(deprecated) < _version(changed):
            deprecated = None
        changed = None
    return deprecated, changed


def severity(rule: Versioned, versions: VersionRange) -> Severity | None:
    """How bad a finding of `rule` is in a range; None: nothing happens that concerns it, not to be reported.

    What is only outdated in a later release than it was deprecated in has ceased to warn.
    """
    if rule.until is not None and _version(rule.until) <= versions.of(rule.library)[0]:
        return None
    known = versions.known_to(rule.library) if rule.changed is not None else None
    return _severity(
        versions.of(rule.library)[0], known, rule.outdated, rule.deprecated, rule.changed, rule.removed
    )


@lru_cache(maxsize=4096)  # called for each use of a file
def _severity(
    target: Version,
    known: Version | None,
    outdated: str | None,
    deprecated: str | None,
    changed: str | None,
    removed: str | None,
) -> Severity | None:
    deprecated, changed = _concerning(known, deprecated, changed)

    def reached(version: str | None) -> bool:
        return version is not None and _version(version) <= target

    if reached(removed):
        return Severity.ERROR
    if reached(changed):
        return Severity.WARNING
    if reached(deprecated) and not (reached(outdated) and _ceased(deprecated, outdated)):
        return Severity.WARNING
    return Severity.INFO if reached(outdated) else None


def _ceased(deprecated: str | None, outdated: str | None) -> bool:
    """Whether what once warned does so no more."""
    return deprecated is not None and outdated is not None and _version(outdated) > _version(deprecated)


def applicability(
    case: Replacement, rule: Versioned, versions: VersionRange
) -> tuple[Applicability, tuple[Reason, ...]]:
    """Who may apply a fix of `case` in this range, and why it is not safe (nothing when it is).

    What the target lacks cannot be applied at all; what only the minimum lacks is not safe.
    """
    level, reasons = case.applicability, because(case.reason) if case.reason else ()
    if _lives_with_change(rule, versions) and level is Applicability.SAFE:
        level, reasons = (
            Applicability.UNSAFE,
            because(f"{rule.library} {rule.changed} made something else of it"),
        )
    known = versions.known_to(rule.library)
    if case.safe_from is not None and known is not None and known >= _version(case.safe_from):
        level, reasons = Applicability.SAFE, ()
    if case.requires is None:
        return level, reasons
    library, needed = requirement(case.requires, rule.library)
    target, minimum = versions.of(library)
    needs = _named(library, needed)
    if needed > target:
        return Applicability.DISPLAY, (Reason(Obstacle.TARGET, needs=needs, has=_named(library, target)),)
    if minimum is not None and needed > minimum and level is not Applicability.DISPLAY:
        lacks = Reason(Obstacle.MINIMUM, needs=needs, has=_named(library, minimum))
        return Applicability.UNSAFE, (lacks, *reasons)
    return level, reasons


def requirement(text: str, library: str) -> tuple[str, Version]:
    """The library and release of `Case.requires`: "0.13", of the rule's library, or "torch 1.6"."""
    name, _, version = text.rpartition(" ")
    name = name or library
    return "torch" if name in COUNTED_AS_TORCH else name, _version(version)


def required(case: Replacement, rule: Versioned) -> set[str]:
    """What the new code of a case needs, for `Fix.requires`."""
    if case.requires is None:
        return set()
    library, version = requirement(case.requires, rule.library)
    return {f"{library} {show_version(version)}"}


def _lives_with_change(rule: Versioned, versions: VersionRange) -> bool:
    """Whether what a rule calls removed does something else in the oldest release of the project."""
    if rule.changed is None or rule.removed is None:
        return False
    _, minimum = versions.of(rule.library)
    return minimum is not None and _version(rule.changed) <= minimum < _version(rule.removed)


def _named(library: str, version: Version) -> str:
    return f"no {library}" if version == ABSENT else f"{library} {show_version(version)}"
