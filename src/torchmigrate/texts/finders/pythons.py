"""Pythons that a project says it runs on, and for which there is no torch that is the target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Edit, Finding, because
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.spans import replaced
from torchmigrate.source.other import INI, SETUP, TOML
from torchmigrate.texts.file import TextFile
from torchmigrate.versions.releases import OLDEST_PYTHONS, Version, parse_version, show_version

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

_REQUIRED = {
    TOML: pattern(r"^[ \t]*requires-python[ \t]*=[ \t]*[\"'](?P<spec>[^\"'\n]+)[\"']", re.MULTILINE),
    INI: pattern(r"^[ \t]*python_requires[ \t]*=[ \t]*(?P<spec>[^\r\n#;]*[\w*])", re.MULTILINE),
    SETUP: pattern(r"\bpython_requires[ \t]*=[ \t]*[\"'](?P<spec>[^\"'\n]+)[\"']"),
}
_POETRY = pattern(
    r"^\[tool\.poetry\.dependencies\][^\[]*?^python[ \t]*=[ \t]*[\"'](?P<spec>[^\"'\n]+)[\"']", re.MULTILINE
)
_LOWER = pattern(r"(?:>=?|~=|\^)[ \t]*(\d+(?:\.\d+)*)")
# A line of its own, in a list of strings or in a value of several lines.
_CLASSIFIER = pattern(
    r"^[ \t]*(?P<quote>[\"']?)(?P<name>Programming Language :: Python :: (?P<python>\d+(?:\.\d+)?))"
    r"(?P=quote),?[ \t]*(?:\r?\n|\Z)",
    re.MULTILINE,
)
_MINORS = 30  # of Python 3 that are looked at


def find(rule: Rule, file: TextFile) -> Iterator[Finding | None]:
    """A finding for what is required of Python, and for each classifier of one that is too old."""
    oldest = OLDEST_PYTHONS[
        max(torch for torch in OLDEST_PYTHONS if torch <= parse_version(file.versions.target))
    ]
    text = file.source.text
    required = [*_REQUIRED[file.kind].finditer(text)]
    if file.kind == TOML:
        required += _POETRY.finditer(text)
    for found in required:
        allowed = _minors(found["spec"])
        if not allowed or allowed[0] >= oldest:
            continue
        values = {"name": found["spec"].strip(), "python": show_version(oldest)}
        lower = _LOWER.findall(found["spec"])
        fix, why = None, ""
        if allowed[-1] < oldest:
            why = "it excludes newer Pythons"
        elif len(lower) != 1:
            why = "it is not a single lower bound"
        else:
            place = _LOWER.search(text, found.start("spec"))
            assert place is not None, "found in the specification"
            edit = replaced(place.start(1), place.end(1), show_version(oldest))
            fix = file.fix(rule, f"Raise to Python {show_version(oldest)}", [edit])
        yield file.finding(
            rule,
            values["name"],
            found.span("spec"),
            fix=fix,
            values=values,
            blocked_by=because(why) if why else (),
        )
    yield from _classified(rule, file, oldest)


def _classified(rule: Rule, file: TextFile, oldest: Version) -> Iterator[Finding | None]:
    """A finding for each classifier of a Python that is too old; all of them go together."""
    found = [(each, _release(each["python"])) for each in _CLASSIFIER.finditer(file.source.text)]
    old = [(each, python) for each, python in found if python < oldest[: len(python)]]
    if not old:
        return
    edits: list[Edit] = [replaced(each.start(), each.end(), "") for each, _ in old]
    if not any(len(python) > 1 and python >= oldest for _, python in found):
        newest = max(range(len(old)), key=lambda number: old[number][1])
        edits[newest] = replaced(*old[newest][0].span("python"), show_version(oldest))
    fix = file.fix(rule, f"Raise to Python {show_version(oldest)}", edits)
    for each, _ in old:
        values = {"name": each["name"], "python": show_version(oldest)}
        yield file.finding(rule, values["name"], each.span("name"), fix=fix, values=values)


def _release(text: str) -> Version:
    return tuple(map(int, text.split(".")))


def _minors(spec: str) -> list[Version]:
    """The releases of Python 3 that a specification allows, in order; none where it is not understood."""
    specifiers = _specifiers(spec)
    if specifiers is None:
        return []
    patches = range(0, 20, 19)
    return [
        (3, minor)
        for minor in range(_MINORS)
        if any(specifiers.contains(f"3.{minor}.{patch}") for patch in patches)
    ]


def _specifiers(spec: str) -> SpecifierSet | None:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    clauses = []
    for clause in spec.split(","):
        caret = re.fullmatch(r"[ \t]*\^[ \t]*(\d+)([\d.]*)[ \t]*", clause)
        clauses.append(f">={caret[1]}{caret[2]},<{int(caret[1]) + 1}" if caret else clause)
    try:
        return SpecifierSet(",".join(clauses))
    except InvalidSpecifier:
        return None
