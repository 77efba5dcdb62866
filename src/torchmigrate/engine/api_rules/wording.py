"""Findings of the API rules in words."""

from __future__ import annotations

from torchmigrate.catalogue.api_rules import RULES
from torchmigrate.catalogue.pages import page_of
from torchmigrate.engine.api_rules.api import Api, Version
from torchmigrate.findings import Finding, Obstacle, Reason, Severity, Timeline
from torchmigrate.versions.releases import show_version

_RULES = {rule.code: rule for rule in RULES}


def library_of(name: str) -> str:
    """The library to which a dotted name belongs."""
    return name.partition(".")[0]


def release(name: str, version: Version) -> str:
    """A release of the library of a name: "torch 1.8"."""
    return f"{library_of(name)} {show_version(version)}"


def needs(name: str, since: Version) -> str:
    """What to do about a name that is newer than the minimum: the same for all of a release."""
    return f"raise the minimum to {release(name, since)}, or check the torch version before you use it"


def lacking(api: Api, name: str) -> Reason:
    """Which release that is supported is older than a name."""
    assert api.floor is not None, "there is nothing older"
    kind = Obstacle.MINIMUM if api.minimum else Obstacle.TARGET
    return Reason(kind, has=show_version(api.floor.version(name)))


def finding(
    code: str,
    message: str,
    severity: Severity,
    span: tuple[int, int],
    symbol: str,
    timeline: Timeline,
    help_text: str | None = None,
    lacking: Reason | None = None,
) -> Finding:
    """A finding of one of these rules, with the rule's advice where there is nothing better."""
    rule = _RULES[code]
    return Finding(
        code=code,
        name=rule.name,
        message=message,
        severity=severity,
        start=span[0],
        end=span[1],
        help=help_text or rule.advice,
        url=page_of(code),
        symbol=symbol,
        timeline=timeline,
        lacking=lacking,
    )
