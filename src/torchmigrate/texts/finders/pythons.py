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
from torchmigrate.versions.releases import OLDEST_PYTHONS, PYTHONS, Version, parse_version, show_version

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
_LOWER = pattern(r"(?P<operator>>=?|~=|\^)[ \t]*(?P<python>\d+(?:\.\d+)*)")
_EXCLUDED = pattern(r"!=[ \t]*(?P<python>\d+(?:\.\d+)*)(?:\.\*)?")
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
        fix, why = None, ""
        if allowed[-1] < oldest:
            why = "it excludes newer Pythons"
        elif "||" in found["spec"]:
            why = "it is a choice of several ranges"
        else:
            edit = replaced(*found.span("spec"), _raised(found["spec"], oldest))
            fix = file.fix(rule, f"Raise to Python {show_version(oldest)}", [edit])
        yield file.finding(
            rule,
            values["name"],
            found.span("spec"),
            fix=fix,
            values=values,
            blocked_by=because(why) if why else (),
        )
    upper = _minors(required[0]["spec"])[-1:] if required else []
    yield from _classified(rule, file, oldest, upper[0] if upper else (3, _MINORS))


def _raised(spec: str, oldest: Version) -> str:
    """What is required of Python, with a new lower bound, and without exclusions of what is below it."""
    bound, others, blank = f">={show_version(oldest)}", [], ""
    for clause in spec.split(","):
        blank = " " if clause.startswith(" ") else blank
        lower, excluded = _LOWER.fullmatch(clause.strip()), _EXCLUDED.fullmatch(clause.strip())
        if lower is not None:
            if lower["operator"] in ("~=", "^"):
                bound = f"{lower['operator']}{show_version(oldest)}"
        elif excluded is None or _release(excluded["python"])[:2] >= oldest:
            others.append(clause.strip())
    return f",{blank}".join([bound, *others])


def _classified(rule: Rule, file: TextFile, oldest: Version, newest: Version) -> Iterator[Finding | None]:
    """A finding for each classifier of a Python that is too old; all of them go together.

    Where none of a release of Python is left, those that have wheels of the target come in their place.
    newest: the last Python that the project allows.
    """
    found = [(each, _release(each["python"])) for each in _CLASSIFIER.finditer(file.source.text)]
    old = [(each, python) for each, python in found if python < oldest[: len(python)]]
    if not old:
        return
    edits: list[Edit] = [replaced(each.start(), each.end(), "") for each, _ in old]
    if not any(len(python) > 1 and python >= oldest for _, python in found):
        target = parse_version(file.versions.target)
        wheels = [
            python for python, torch in PYTHONS.items() if torch <= target and oldest <= python <= newest
        ]
        last = max(range(len(old)), key=lambda number: old[number][1])
        line, place = old[last][0][0], old[last][0]
        begin, end = (offset - place.start() for offset in place.span("python"))
        new = "".join(f"{line[:begin]}{show_version(python)}{line[end:]}" for python in wheels)
        edits[last] = replaced(*place.span(), new)
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
