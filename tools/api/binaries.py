"""What the compiled part of real releases has, where stubs and docstrings leave it out.

`binaries/LIBRARY.txt` keeps what `binary.py` was told by each release that was asked. A line is a name with
the releases that have it, and the keywords that it takes with theirs, where these are fewer:

    torch.Tensor.map2_ 1.0-1.12; callable; x; y
    torch.Tensor.to 1.0-1.12; copy; memory_format 1.4-1.12

A range is of the releases that were asked, which the first line lists.
"""

from __future__ import annotations

import json
import subprocess
from bisect import bisect
from collections.abc import Iterator
from keyword import iskeyword
from pathlib import Path

from msgspec.structs import replace

from torchmigrate.match.signature import parse_signature
from torchmigrate.versions.releases import Version, parse_version, show_version
from torchmigrate.versions.surface import Surface
from torchmigrate.versions.surface_file import encode
from torchmigrate.versions.surface_model import ApiEntry, EntryKind

DIRECTORY = Path(__file__).with_name("binaries")
OWNERS = ("torch", "torch.Tensor")

_RELEASES = "# releases:"
# Forms that the stubs of torch 2.7 and later leave out.
_FORMS = {"torch.Tensor.set_": "()"}
Facts = dict[str, set[Version]]  # `torch.Tensor.to` and `torch.Tensor.to(copy)` -> the releases that have it
Releases = list[tuple[Version, dict[str, ApiEntry]]]


# ---- asking ----------------------------------------------------------------------------------------------


def candidates(surface: Surface) -> dict[str, list[str]]:
    """The keywords that any release is known to take, by function: what is tried on each release."""
    found: dict[str, set[str]] = {}
    for version in surface.versions:
        for owner in OWNERS:
            for last in surface.members(owner, version):
                entry = surface.entry(f"{owner}.{last}", version)
                if entry is not None and entry.kind is EntryKind.FUNCTION:
                    found.setdefault(f"{owner}.{last}", set()).update(_keywords(entry))
    return {name: sorted(keywords) for name, keywords in sorted(found.items())}


def ask(python: str, surface: Surface) -> tuple[Version, dict[str, list[str]], dict[str, list[str]]]:
    """The release that is installed for a Python, its names by owner, and keywords by function.

    Raises:
        subprocess.CalledProcessError: that Python cannot import torch.
    """
    script = Path(__file__).with_name("binary.py")
    run = subprocess.run(
        [python, str(script), *OWNERS],
        input=json.dumps(candidates(surface)),
        stdout=subprocess.PIPE,
        check=True,
        encoding="utf-8",
    )
    answers = json.loads(run.stdout)
    return parse_version(answers["release"]), answers["names"], answers["keywords"]


def record(
    library: str, version: Version, names: dict[str, list[str]], keywords: dict[str, list[str]]
) -> None:
    """Write down what a release answered, in place of what it answered before."""
    asked, facts = read(library)
    for releases in facts.values():
        releases.discard(version)
    for owner, members in names.items():
        for last in members:
            facts.setdefault(f"{owner}.{last}", set()).add(version)
    for name, taken in keywords.items():
        for keyword in taken:
            facts.setdefault(f"{name}({keyword})", set()).add(version)
    _path(library).write_text(_text(sorted({*asked, version}), facts), encoding="utf-8")


# ---- the file --------------------------------------------------------------------------------------------


def read(library: str) -> tuple[list[Version], Facts]:
    """The releases that were asked, and the facts; both empty where none was."""
    path = _path(library)
    asked: list[Version] = []
    facts: Facts = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        if line.startswith(_RELEASES):
            asked = [parse_version(word) for word in line.removeprefix(_RELEASES).split()]
            continue
        (name, *ranges), *keywords = (part.split() for part in line.split(";"))
        facts[name] = _releases(ranges, asked)
        for keyword, *own in keywords:
            facts[f"{name}({keyword})"] = _releases(own, asked) if own else set(facts[name])
    return asked, facts


def _path(library: str) -> Path:
    return DIRECTORY / f"{library}.txt"


def _text(asked: list[Version], facts: Facts) -> str:
    lines = [f"{_RELEASES} {' '.join(map(show_version, asked))}"]
    keywords: dict[str, list[str]] = {}
    for fact in sorted(facts):
        name, _, keyword = fact.removesuffix(")").partition("(")
        if keyword and facts[fact]:
            keywords.setdefault(name, []).append(keyword)
    for name in sorted(fact for fact in facts if not fact.endswith(")") and facts[fact]):
        parts = [f"{name} {_ranges(facts[name], asked)}"]
        for keyword in keywords.get(name, ()):
            own = facts[f"{name}({keyword})"]
            parts.append(keyword if own == facts[name] else f"{keyword} {_ranges(own, asked)}")
        lines.append("; ".join(parts))
    return "\n".join(lines) + "\n"


def _ranges(releases: set[Version], asked: list[Version]) -> str:
    runs: list[list[Version]] = []
    for version in asked:
        if version in releases:
            if runs and asked.index(runs[-1][-1]) + 1 == asked.index(version):
                runs[-1].append(version)
            else:
                runs.append([version])
    return " ".join("-".join(map(show_version, dict.fromkeys([run[0], run[-1]]))) for run in runs)


def _releases(ranges: list[str], asked: list[Version]) -> set[Version]:
    found: set[Version] = set()
    for text in ranges:
        first, _, last = text.partition("-")
        low, high = parse_version(first), parse_version(last or first)
        found.update(version for version in asked if low <= version <= high)
    return found


# ---- what was read from sources, corrected ---------------------------------------------------------------


def corrected(library: str, releases: Releases) -> Releases:
    """The releases with what their compiled parts have, and without what they have not yet.

    A name that the sources of a release leave out is there as what it is elsewhere, without signatures; a
    keyword that they leave out is a form of its own, since its place is not known. Releases that were not
    asked have what the one asked before them has, if a later one has it as well; those after the last one
    asked have what that has.
    """
    asked, facts = read(library)
    if not asked:
        return releases
    surface = Surface(encode(library, releases))
    result = {version: dict(entries) for version, entries in releases}
    missing: dict[tuple[Version, str], list[str]] = {}
    for fact, having in facts.items():
        name, _, keyword = fact.removesuffix(")").partition("(")
        for version in result:
            there = _is_there(version, having, asked)
            if there is None:
                there = any(
                    _is_listed(surface, name, keyword, later) for later in surface.versions if later > version
                )
            if keyword:
                if there and not _is_listed(surface, name, keyword, version, unless_known=True):
                    missing.setdefault((version, name), []).append(keyword)
            elif there and surface.entry(name, version) is None:
                _add(result[version], surface, name, version)
            elif version in _before(having, asked, surface.versions):
                _remove(result[version], surface, name, version)
    for (version, name), keywords in missing.items():
        at = surface.definition(name, version)
        if at is not None and at in result[version]:
            form = f"(*, {', '.join(f'{keyword}=None' for keyword in sorted(keywords))})"
            entry = result[version][at]
            result[version][at] = replace(entry, signatures=(*entry.signatures, form))
    for name, form in _FORMS.items() if library == "torch" else ():
        for version, entries in result.items():
            at = surface.definition(name, version)
            known = entries.get(at or name)
            if at is not None and known is not None and form not in known.signatures:
                entries[at] = replace(known, signatures=(*known.signatures, form))
    return list(result.items())


def _is_there(version: Version, having: set[Version], asked: list[Version]) -> bool | None:
    """Whether a release has what those in `having` have; None: it was not asked, the one before has it."""
    place = bisect(asked, version)
    if not place or asked[place - 1] not in having:
        return False
    return True if version in asked or place == len(asked) or asked[place] in having else None


def _before(having: set[Version], asked: list[Version], versions: tuple[Version, ...]) -> set[Version]:
    """The releases that were asked before the first with a name; none if that is not surely the first."""
    first = min(having)
    place = versions.index(first)
    if place == 0 or versions[place - 1] not in asked:
        return set()
    return {version for version in asked if version < first}


def _is_compiled(at: str, name: str) -> bool:
    return at.startswith("torch._C.") or at == name


def _is_listed(
    surface: Surface, name: str, keyword: str, version: Version, *, unless_known: bool = False
) -> bool:
    """Whether the sources have a name, or say that a compiled function takes a keyword.

    unless_known: also where they say nothing certain of the function, so that there is nothing to correct.
    """
    entry, at = surface.entry(name, version), surface.definition(name, version)
    if entry is None or at is None or not keyword:
        return unless_known or entry is not None
    if entry.kind is not EntryKind.FUNCTION or entry.gone or iskeyword(keyword) or not _is_compiled(at, name):
        return unless_known
    known = [parse_signature(text) for text in entry.signatures]
    if any(keyword in one.by_name for one in known):
        return True
    return unless_known and (not known or any(one.keywords for one in known))


def _add(entries: dict[str, ApiEntry], surface: Surface, name: str, version: Version) -> None:
    owner, _, last = name.rpartition(".")
    # What is nearest says what it is: the releases after this one, then those before.
    others = [v for v in surface.versions if v > version] + [v for v in surface.versions[::-1] if v < version]
    found = next((entry for other in others if (entry := surface.entry(name, other)) is not None), None)
    place = surface.definition(owner, version)
    if found is None or found.kind is EntryKind.MODULE or place is None:
        return  # no name that a program could want
    bases = [base for base in entries[place].bases if base.startswith("torch._C.") and base in entries]
    kind = found.kind
    entries[f"{bases[0] if bases else place}.{last}"] = ApiEntry(kind, open=kind is EntryKind.CLASS)


def _remove(entries: dict[str, ApiEntry], surface: Surface, name: str, version: Version) -> None:
    entry, at = surface.entry(name, version), surface.definition(name, version)
    if entry is not None and at is not None and entry.kind is not EntryKind.MODULE and _is_compiled(at, name):
        entries.pop(name if name in entries else at)


def _keywords(entry: ApiEntry) -> Iterator[str]:
    for text in entry.signatures:
        yield from parse_signature(text).by_name
