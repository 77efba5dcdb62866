"""Pins that exclude the target; raised all together, or not at all, where several are installed together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Edit, Finding, Fix, because
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.spans import replaced
from torchmigrate.source.other import DOCKER, MARKDOWN
from torchmigrate.texts.file import TextFile
from torchmigrate.texts.pins import Group, Pin
from torchmigrate.versions.releases import (
    ABSENT,
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
_CONDA_ENDED = (2, 6)  # the first torch that is not in the channel


def find(rule: Rule, file: TextFile) -> Iterator[Finding | None]:
    """A finding for every requirement that the target is not among."""
    target = parse_version(file.versions.target)
    for group in file.pins:
        excluding = [pin for pin in group.pins if not _allows(pin, target)]
        if not excluding:
            continue
        fix, why = _raised(rule, group, excluding, target, file)
        for pin in excluding:
            values = {"name": pin.written, "new": _wanted(pin.library, target)}
            yield file.finding(
                rule,
                values["name"],
                (pin.first, pin.end),
                fix=fix,
                values=values,
                blocked_by=because(why) if why else (),
                excluded=_first_excluded(pin, target),
            )
    if file.kind == DOCKER:
        for found in _IMAGE.finditer(file.source.text):
            if parse_version(found[2]) < target:
                values = {"name": found[1], "new": _wanted("torch", target)}
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
    rule: Rule, group: Group, pins: list[Pin], target: Version, file: TextFile
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
        spec = _spec(pin, target)
        if spec is None:
            return None, f"`{pin.spec}` is not a single release or a single upper bound"
        edits.append(replaced(pin.start, pin.end, spec))
    return file.fix(rule, f"Raise to torch {show_version(target)}", edits), ""


def _line(text: str, offset: int) -> str:
    """The line that a place is in, up to there."""
    return text[text.rfind("\n", 0, offset) + 1 : offset]


def _spec(pin: Pin, target: Version) -> str | None:
    """The versions of a pin with the target in the place of the old release."""
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
    upper = [*re.finditer(r"<=?[ \t]*\d[\w.]*", pin.spec)]
    if len(upper) != 1 or "==" in pin.spec or "!=" in pin.spec:
        return None
    major, minor = wanted[:2]
    found = upper[0]
    return f"{pin.spec[: found.start()]}<{major}.{minor + 1}{pin.spec[found.end() :]}"
