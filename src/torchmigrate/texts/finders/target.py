"""Pins that exclude the target; raised all together, or not at all, where several are installed together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Edit, Finding, Fix, because
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.spans import replaced
from torchmigrate.source.other import DOCKER, MARKDOWN, SETUP
from torchmigrate.texts.file import TextFile
from torchmigrate.texts.pins import Pin, PinGroup
from torchmigrate.versions.releases import (
    ABSENT,
    COMPANIONS,
    PATCH_RELEASES,
    RELEASES,
    Version,
    companion,
    companion_patches,
    parse_version,
    show_version,
)

_IMAGE = pattern(r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)?(pytorch/pytorch:(\d+\.\d+(?:\.\d+)?)\S*)", re.MULTILINE)
_MADE = pattern(r"^[ \t]*#.*\b(?:auto-?)?generated (?:by|with|from)\b", re.IGNORECASE | re.MULTILINE)
_OLDEST = pattern(r"\bmin(?:imum|imal)?\b|\boldest\b|\blowest\b", re.IGNORECASE)
_LOWER = pattern(r">=?(?P<blank>[ \t]*)\d[\w.]*")
_PUT_TOGETHER = pattern(  # f"torch>={minimum}", "torch==" + version
    r"[\"'](?P<name>torch(?:vision|audio|text|data)?[ \t]*(?:[=~!<>]=|[<>])[ \t]*(?:\{[\w.]+\})?)[\"',]"
)
_CONDA_ENDED = (2, 6)  # the first torch that is not in the channel


def find(rule: Rule, file: TextFile) -> Iterator[Finding | None]:
    """A finding for every requirement that the target is not among.

    Also for each that allows an older release, where the target is the minimum of the project.
    """
    target = parse_version(file.versions.target)
    is_minimum = file.versions.minimum is not None and parse_version(file.versions.minimum) == target
    for group in file.pins:
        excluding = [pin for pin in group.pins if not _allows(pin, target)]
        older = [
            pin for pin in group.pins if is_minimum and pin not in excluding and _allows_older(pin, target)
        ]
        if file.kind == MARKDOWN:
            older = []
        if not excluding and not older:
            continue
        fix, why = _raised(rule, group, [*excluding, *older], target, file)
        for pin in (*excluding, *older):
            allows = "also allows releases older than" if pin in older else "excludes"
            values = {"name": pin.written, "allows": allows, "new": _wanted(pin.library, target)}
            yield file.finding(
                rule,
                values["name"],
                (pin.first, pin.end),
                fix=fix,
                values=values,
                blocked_by=because(why) if why else (),
                excluded=None if pin in older else _first_excluded(pin, target),
            )
    if file.kind == SETUP:
        for found in _PUT_TOGETHER.finditer(file.source.text):
            values = {"name": found["name"], "allows": "may exclude", "new": _wanted("torch", target)}
            put_together = because("the program puts its version together")
            yield file.finding(
                rule, values["name"], found.span("name"), values=values, blocked_by=put_together
            )
    if file.kind == DOCKER:
        for found in _IMAGE.finditer(file.source.text):
            if parse_version(found[2]) < target:
                values = {"name": found[1], "allows": "excludes", "new": _wanted("torch", target)}
                why = "its tag also names the CUDA and cuDNN releases"
                after = next(each for each in RELEASES if each > parse_version(found[2])[:2])
                yield file.finding(
                    rule,
                    found[1],
                    found.span(1),
                    values=values,
                    blocked_by=because(why),
                    excluded=show_version(after),
                )


def _allows(pin: Pin, target: Version) -> bool:
    if pin.versions is None:
        return True
    return companion(pin.library, target) == ABSENT or pin.goes_with(target)


def _allows_older(pin: Pin, target: Version) -> bool:
    """Whether a requirement has a lower bound that allows a release before those that go with the target."""
    wanted = companion(pin.library, target)
    if wanted == ABSENT or pin.exact is not None or not _LOWER.search(pin.spec):
        return False
    return any(pin.allows_minor(each) for each in _releases(pin.library) if each < wanted[:2])


def _releases(library: str) -> Iterable[Version]:
    return (
        RELEASES
        if library == "torch"
        else {each[:2] for each in COMPANIONS[library].values() if each != ABSENT}
    )


def _first_excluded(pin: Pin, target: Version) -> str:
    """The first release of torch after all those that a requirement allows."""
    first = target
    for release in reversed([each for each in RELEASES if each <= target]):
        if _allows(pin, release):
            break
        first = release
    return show_version(first)


def _wanted(library: str, target: Version) -> str:
    return f"{library} {show_version(companion(library, target))}"


def _raised(
    rule: Rule, group: PinGroup, pins: list[Pin], target: Version, file: TextFile
) -> tuple[Fix | None, str]:
    """What raises the pins of a group, or why that is done by hand."""
    if file.kind == MARKDOWN:
        return None, "the requirement is in instructions for people, which may describe an older release"
    edits: list[Edit] = []
    if _MADE.search(file.source.text, 0, 1000):
        return None, "the file is generated from another file; raise it there"
    for pin in group.pins:
        if _OLDEST.search(_line(file.source.text, pin.first)):
            return None, "the line is about the oldest supported release"
        if pin.hashed:
            return None, "the hashes belong to the old release"
        if pin.local:
            return (
                None,
                (
                    f"`{pin.spec.lstrip('=')}` is a build for a specific CUDA release, which the new "
                    "release may not have"
                ),
            )
        if pin.indexed:
            return None, "it comes from the package index on the same line"
        if pin.conda and target >= _CONDA_ENDED:
            return None, "PyTorch is no longer in its conda channel since torch 2.6: install it with pip"
        if companion(pin.library, target) == ABSENT or (pin.library == "torchtext" and target > (2, 3)):
            return None, f"{pin.library} has no release for torch {show_version(target)}"
    for pin in pins:
        spec = _spec(pin, target, is_minimum=file.versions.minimum == file.versions.target)
        if spec is None:
            return None, f"`{pin.spec}` is not a single release or a single upper bound"
        edits.append(replaced(pin.start, pin.end, spec))
    return file.fix(rule, f"Raise to torch {show_version(target)}", edits), ""


def _line(text: str, offset: int) -> str:
    """The line that a place is in, up to there."""
    return text[text.rfind("\n", 0, offset) + 1 : offset]


def _spec(pin: Pin, target: Version, *, is_minimum: bool) -> str | None:
    """The versions of a pin with the target in the place of the old release.

    is_minimum: a lower bound is raised as well.
    """
    wanted = companion(pin.library, target)
    exact = pin.exact
    if exact is not None:
        operator, old, star = exact.groups()
        head = pin.spec[: exact.start(2)]
        # The first patch release of a companion may go with the torch before: it may be any other.
        first = pin.library == "torch" or 0 in companion_patches(pin.library, target)
        if star or pin.conda or (old.count(".") == 1 and (first or operator in ("^", "~", "~="))):
            return f"{head}{show_version(wanted)}{star or ''}"
        if pin.library == "torch":
            patch = max(release for release in PATCH_RELEASES if release[:2] == target)
            return f"{head}{show_version(patch)}"
        # The wheels of the companion say which patch release goes with which torch.
        return f"{head}{show_version(wanted)}.{'0' if operator in ('^', '~', '~=') else '*'}"
    lower = [*_LOWER.finditer(pin.spec)]
    if is_minimum and lower:
        bound = f">={lower[0]['blank']}{show_version(wanted[:2])}"
        others = [clause for clause in pin.spec.split(",") if not re.match(r"[ \t]*(?:>|!=)", clause)]
        spec = ",".join([bound, *others])
        if _allows(replace(pin, spec=spec), target):
            return spec
        upper = [*re.finditer(r"<=?[ \t]*\d[\w.]*", spec)]
        return f"{spec[: upper[0].start()]}<{wanted[0]}.{wanted[1] + 1}" if len(upper) == 1 else None
    upper = [*re.finditer(r"<=?[ \t]*\d[\w.]*", pin.spec)]
    if len(upper) != 1 or "==" in pin.spec or "!=" in pin.spec:
        return None
    major, minor = wanted[:2]
    found = upper[0]
    return f"{pin.spec[: found.start()]}<{major}.{minor + 1}{pin.spec[found.end() :]}"
