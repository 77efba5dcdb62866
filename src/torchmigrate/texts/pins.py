"""Which releases of torch and its companions a file asks for: lists of requirements, environments, commands.

What is looked for are names with versions where they are requirements: a line of a list, a string of
pyproject.toml or setup.py, a word of `pip install` or `conda install`. Nothing is resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.patterns import pattern
from torchmigrate.source.other import DOCKER, INI, REQUIREMENTS, SETUP, TOML, YAML
from torchmigrate.texts.commands import Command
from torchmigrate.versions.releases import (
    COMPANIONS,
    PATCH_RELEASES,
    Version,
    companion,
    companion_patches,
    parse_version,
)

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

_NAMES = {"torch": "torch", "pytorch": "torch", **{name: name for name in ("torchvision", "torchaudio")}}
_NAMES |= {"torchtext": "torchtext", "torchdata": "torchdata"}
_CLAUSE = r"(?:===?|~=|!=|<=|>=|<|>|=)[ \t]*[\w.*+!-]+"
_REQUIREMENT = pattern(
    rf"(?P<name>(?:py)?torch|torchvision|torchaudio|torchtext|torchdata)(?P<extras>\[[\w, -]{{0,99}}\])?"
    rf"[ \t]*\(?(?P<spec>{_CLAUSE}(?:[ \t]*,[ \t]*{_CLAUSE}){{0,9}})(?![\w.=<>!~])",
    re.IGNORECASE,
)
_LINE = pattern(r"^[ \t]*", re.MULTILINE)
# Also on the line of a key, of setup.cfg and tox.ini.
_INI_LINE = pattern(r"^[ \t]*(?:\w+[ \t]*=(?!=)[ \t]*)?", re.MULTILINE)
_ITEM = pattern(r"^[ \t]*-[ \t]+[\"']?(?:[\w-]+::)?", re.MULTILINE)
# As conda writes it, too: the version after a blank.
_CONDA_ITEM = pattern(
    r"^[ \t]*-[ \t]+(?:[\w-]+::)?(?P<name>pytorch|torchvision|torchaudio)[ \t]+"
    r"(?P<spec>\d+(?:\.\d+)*(?:\.?\*)?)(?=[ \t]*(?:\#[^\r\n]*)?\r?$)",
    re.MULTILINE,
)
_QUOTE = pattern(r"[\"']")
_POETRY = pattern(
    r"^(?:(?P<name>torch|torchvision|torchaudio|torchtext|torchdata)[ \t]*=[ \t]*"
    r"(?:\{[^}\n]{0,200}?version[ \t]*=[ \t]*)?"
    r"|\[tool\.poetry\.[\w.-]+\.(?P<table>torch|torchvision|torchaudio|torchtext|torchdata)\]"
    r"[ \t]*\r?\n(?:[^\[\n][^\n]*\n){0,9}?version[ \t]*=[ \t]*)"
    rf"[\"'](?P<spec>[\^~]?[ \t]*\d[\w.*+-]*|{_CLAUSE}(?:[ \t]*,[ \t]*{_CLAUSE}){{0,9}})[\"']",
    re.MULTILINE,
)
_PYTHON_ITEM = pattern(r"^[ \t]*-[ \t]+[\"']?python[ \t]*={1,2}[ \t]*(\d+\.\d+)", re.MULTILINE)
_PYTHON_IMAGE = pattern(r"^[ \t]*FROM[ \t]+(?:\S+/)?python:(\d+\.\d+)", re.MULTILINE | re.IGNORECASE)
_HASH = pattern(r"[^\n]*?(?:\\\r?\n[^\n]*?)*--hash")
# A separate index, not a mirror of PyPI.
_INDEX = pattern(r"(?:^|\s)(?:-f|-i|--find-links|--(?:extra-)?index-url)[\s=]+(?!\S*/simple)\S", re.MULTILINE)
_INSTALLERS = frozenset(["pip", "pip3", "conda", "mamba", "micromamba", "uv", "poetry", "pipenv", "pip2"])


class Pin(Struct, frozen=True):
    """One requirement. library: "torch" or a companion; spec: what versions; start, end: where that is.

    written: all of it, as it stands there; first: where that begins.
    conda: it is a requirement of conda, in which `=1.4` is `==1.4.*`.
    hashed: it has hashes. indexed: it comes from an index of its own. poetry: `^1.4`.
    """

    library: str
    spec: str
    written: str
    first: int
    start: int
    end: int
    conda: bool = False
    hashed: bool = False
    indexed: bool = False

    @property
    def local(self) -> bool:
        """Whether it is a build such as `1.4.0+cu100`."""
        return "+" in self.spec

    @property
    def versions(self) -> SpecifierSet | None:
        """What is allowed; None: it is not understood."""
        return _specifiers(self.spec, self.conda)

    def allows(self, release: Version) -> bool:
        """Whether one release with its patch number is allowed."""
        versions = self.versions
        return versions is None or versions.contains(".".join(map(str, release)), prereleases=True)

    def allows_minor(self, release: Version) -> bool:
        """Whether any patch release is allowed."""
        return any(self.allows((*release, patch)) for patch in range(10))

    def goes_with(self, torch: Version) -> bool:
        """Whether a release is allowed that goes with this release of torch."""
        release = companion(self.library, torch)
        if self.library not in COMPANIONS:
            return self.allows_minor(release)
        return len(release) > 1 and any(
            self.allows((*release, patch)) for patch in companion_patches(self.library, torch)
        )

    @property
    def exact(self) -> re.Match[str] | None:
        """The version, if one release is pinned."""
        return re.fullmatch(r"(={1,3}|\^|~|~=)?[ \t]*(\d+(?:\.\d+)*)(\.\*)?", self.spec)


class PinGroup(Struct, frozen=True):
    """Requirements that are installed together. python: for which Python, if the file says it."""

    pins: list[Pin]
    python: Version | None = None

    def of(self, library: str) -> list[Pin]:
        """Those of one library."""
        return [pin for pin in self.pins if pin.library == library]


@lru_cache(maxsize=1024)
def _specifiers(spec: str, conda: bool) -> SpecifierSet | None:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    text = re.sub(r"\+[\w.]+", "", spec).replace("===", "==")
    caret = re.fullmatch(r"\^[ \t]*(\d+)(?:\.(\d+))?.*", text)
    if caret is not None:
        top = f"<{int(caret[1]) + 1}" if int(caret[1]) else f"<0.{int(caret[2] or 0) + 1}"
        text = f">={text[1:].strip()},{top}"
    elif re.fullmatch(r"[ \t]*\d[\w.*]*", text):
        text = f"=={text}"
    elif re.fullmatch(r"~[ \t]*\d[\d.]*", text):
        text = f"~={text[1:]}"
    clauses = []
    for clause in text.split(","):
        clause = clause.strip()
        single = re.fullmatch(r"={1,2}[ \t]*(\d+(?:\.\d+)*)(?:\.?\*)?(?:=\S*)?", clause) if conda else None
        if single is not None:
            clause = f"=={single[1]}.*"
        clauses.append(clause)
    try:
        return SpecifierSet(",".join(clauses))
    except InvalidSpecifier:
        return None


def groups_of(text: str, kind: str, commands: Iterable[Command]) -> Iterator[PinGroup]:
    """The requirements of a file, by what is installed together."""
    if kind in (REQUIREMENTS, INI):
        if kind == INI and "install_requires" not in text and "deps" not in text:
            return
        index = _INDEX.search(text) is not None
        line = _INI_LINE if kind == INI else _LINE
        yield _whole(_found(text, line, hashes=True, index=index))
    elif kind in (TOML, SETUP):
        found = [pin for pin in _found(text, _QUOTE) if not _in_comment(text, pin.first)]
        if kind == TOML and ("poetry" in text or "[packages]" in text):
            found += _of_poetry(text)
        yield _whole(found)
    elif kind == YAML and ("dependencies" in text or "requirements:" in text):
        python = _PYTHON_ITEM.search(text)
        found = [replace(_pin(bare), conda=True) for bare in _CONDA_ITEM.finditer(text)]
        for pin in _found(text, _ITEM):
            equals = pin.spec.lstrip().startswith("=") and not pin.spec.startswith("==")
            written = text[pin.first : pin.start].lower()
            found.append(replace(pin, conda=equals or written.startswith("pytorch")))
        yield _whole(found, None if python is None else parse_version(python[1]))
    if kind not in (REQUIREMENTS, TOML, SETUP):
        python = _PYTHON_IMAGE.search(text) if kind == DOCKER else None
        version = None if python is None else parse_version(python[1])
        for command in commands:
            yield _whole(_of_command(text, command), version)


def _whole(pins: Iterable[Pin], python: Version | None = None) -> PinGroup:
    return PinGroup(list(pins), python)


def _found(text: str, before: re.Pattern[str], *, hashes: bool = False, index: bool = False) -> Iterator[Pin]:
    """The requirements after what a pattern stands for."""
    for place in before.finditer(text):
        found = _REQUIREMENT.match(text, place.end())
        if found is not None:
            hashed = hashes and _HASH.match(text, found.end()) is not None
            yield replace(_pin(found), hashed=hashed, indexed=index)


def _in_comment(text: str, offset: int) -> bool:
    return "#" in text[text.rfind("\n", 0, offset) + 1 : offset]


def _pin(found: re.Match[str]) -> Pin:
    return Pin(_NAMES[found["name"].lower()], found["spec"], found[0], found.start(), *found.span("spec"))


def _of_poetry(text: str) -> Iterator[Pin]:
    for found in _POETRY.finditer(text):
        spec, place = found["spec"], found.span("spec")
        if found["table"]:
            yield Pin(found["table"], spec, f"{found['table']} {spec}", place[0], *place)
        else:
            yield _pin(found)


def _of_command(text: str, command: Command) -> Iterator[Pin]:
    words = [word.text for word in command.words]
    if not ("install" in words or "create" in words or "add" in words):
        return
    names = {word.rpartition("/")[2] for word in words}
    if names.isdisjoint(_INSTALLERS) and "pip" not in " ".join(words):
        return
    conda = not names.isdisjoint(("conda", "mamba", "micromamba"))
    index = _INDEX.search(" ".join(words)) is not None
    for word in command.words:
        start = word.start + (1 if text[word.start] in "\"'" else 0)
        found = _REQUIREMENT.match(text, start, word.end)
        if found is not None:
            yield replace(_pin(found), conda=conda, indexed=index)


# ---- the table ------------------------------------------------------------------------------------------

# Releases of companions whose wheels name the torch that they need; of others, any may do.
_NAMING: dict[str, tuple[Version, Version]] = {
    "torchvision": ((0, 4), (0, 29)),
    "torchaudio": ((0, 3), (2, 10)),
    "torchtext": ((0, 8), (0, 17)),
    "torchdata": ((0, 3), (0, 6)),
}


def torches(group: PinGroup) -> list[Version]:
    """The releases of torch, with patch numbers, that the requirements of torch allow."""
    pins = group.of("torch")
    return [release for release in PATCH_RELEASES if any(pin.allows(release) for pin in pins)]


def fitting(pin: Pin, releases: Iterable[Version]) -> bool:
    """Whether a requirement of a companion allows one that goes with any of these releases of torch."""
    first, last = _NAMING[pin.library]
    known = sorted(set(COMPANIONS[pin.library].values()))
    allowed = [version for version in known if pin.allows_minor(version)]
    if not allowed or any(not first <= version <= last for version in allowed):
        return True  # nothing is known of it
    return any(pin.goes_with(release[:2]) for release in releases)


def needed_torch(pin: Pin) -> Version | None:
    """The newest release of torch that a pinned companion goes with."""
    return max(filter(pin.goes_with, COMPANIONS[pin.library]), default=None)
