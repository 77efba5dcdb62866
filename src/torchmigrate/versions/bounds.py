"""The oldest torch that a requirement allows: pip's, Poetry's and conda's ways to write one.

A requirement of torchvision or torchaudio says it as well: each of their wheels asks for one torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from torchmigrate.patterns import pattern
from torchmigrate.versions.releases import (
    COMPANIONS,
    MOST_PATCHES,
    NEIGHBORS,
    PATCH_RELEASES,
    PYTHONS,
    RELEASES,
    Version,
    companion_patches,
    show_version,
    torch_release,
)

# conda calls it pytorch, and so do people in requirements files that pip could not install.
_LIBRARIES: dict[str, str] = {
    **dict.fromkeys(["torch", "pytorch", "pytorch-cpu", "pytorch-gpu"], "torch"),
    **{name: name for name in ("torchvision", "torchaudio", "torchtext", "torchdata")},
    **{canonicalize_name(name): name for name in NEIGHBORS},
}
# Libraries with releases that do not pin torch: a bound of them says nothing about torch.
_LOOSE = frozenset(["torchtext", "torchdata", *NEIGHBORS])
# torchvision 0.2 was Python alone, and asks for any torch: in addition to a bound of torch it says nothing.
_LAST_WITH_LOOSE_COMPANIONS = (1, 0)
_PYTHON_PATCHES = range(40)  # more than any Python 3 has had
_LOWER = frozenset([">=", ">", "==", "===", "~="])
_LOCAL = pattern(r"\+[\w.]+")
_NAME = pattern(r"\s*(?:[\w./-]+::)?([\w.-]+)(?![\w.+:-])")
_CONDA = pattern(r"(?s)(?:[\w./:-]+::)?(?P<name>[\w.-]+?)(?:\[(?P<keys>.*)\])?\s*(?P<version>[=<>!~\d*].*)?")
# `Pytorch: 1.7`, `torch 1.7.1`, `torch=1.7`: not in pip's syntax, but clear.
_LIST = pattern(r"(?:[*-] )?(?P<name>[\w.-]+?)(?: ?[:=] ?| )v?(?P<version>\d+(?:\.\d+)+[\w.+]*),?")
_CONDA_VERSION = pattern(r"(?:^|,)\s*version\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^,]*))")


class Bound(Struct, frozen=True):
    """What a requirement says of torch.

    oldest: the oldest release that is allowed; for a requirement of a companion, that goes with a release
    which is allowed. newest: likewise. conditional: it may not hold, because of a marker or an extra.
    library: the package that is required. least: its oldest release that is allowed.
    """

    oldest: Version
    newest: Version
    library: str = "torch"
    least: Version = ()
    conditional: bool = False

    @property
    def companion(self) -> bool:
        """Whether the requirement is about another package than torch."""
        return self.library != "torch"

    @property
    def is_about_torch(self) -> bool:
        """Whether the requirement limits the releases of torch."""
        return self.library not in _LOOSE


def of_requirement(text: str) -> Bound | None:
    """The bound of a line such as `torch>=1.7; python_version < "3.9"`.

    None: it is about something else, or has no lower bound. A wheel's address counts as its version;
    a marker does not matter, since the line may hold somewhere.

    Raises:
        ValueError: it is about torch and cannot be read.
    """
    text = text.strip()
    if re.match(r"(?:https?|file):", text):
        return _of_wheel(text)
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        listed = _LIST.fullmatch(" ".join(text.split()))
        if listed is not None and (library := library_of(listed["name"])) is not None:
            return of_specifier(f"=={listed['version']}", library)
        name = re.match(r"[\w.-]*", text)
        if name is not None and library_of(name[0]) == "torch":
            raise ValueError(f"`{text}` is not a requirement: {str(error).splitlines()[0]}") from None
        return None
    library = library_of(requirement.name)
    if library is None:
        return None
    if requirement.url is not None:
        return _of_wheel(requirement.url)
    bound = of_specifier(str(requirement.specifier), library)
    return bound if bound is None or requirement.marker is None else replace(bound, conditional=True)


def name_of(text: str) -> str:
    """The package that a requirement of pip or conda is about, as PyPI writes it; empty for an address."""
    match = _NAME.match(text)
    return "" if match is None else canonicalize_name(match[1])


def of_specifier(text: str, library: str = "torch") -> Bound | None:
    """The bound of a specifier such as `>=1.7,<2`; None: it has no lower one.

    Raises:
        ValueError: it is not a specifier.
    """
    try:
        # `==1.7.1+cu110` is 1.7.1, built for a certain CUDA.
        specifiers = SpecifierSet(_LOCAL.sub("", text))
    except InvalidSpecifier as error:
        raise ValueError(str(error)) from None
    bounds = [item for item in specifiers if item.operator in _LOWER]
    if not bounds:
        return None

    if library in NEIGHBORS:
        return _of_neighbor([item.version for item in bounds], library)

    def allowed(release: Version) -> bool:
        return specifiers.contains(show_version(release), prereleases=True)

    if library != "torch":
        table = COMPANIONS[library]
        found = [
            torch
            for torch, release in table.items()
            if len(release) > 1
            and any(allowed((*release, patch)) for patch in companion_patches(library, torch))
        ]
        if found:
            # A release that goes with no release of torch in the table has its neighbor's place.
            known = sorted({release for release in table.values() if len(release) > 1})
            patches = [(release, patch) for release in known for patch in range(MOST_PATCHES)]
            least = next(release for release, patch in patches if allowed((*release, patch)))
            return Bound(found[0], found[-1], library, least)
    else:
        releases = [release for release in PATCH_RELEASES if allowed(release)]
        if releases:
            return Bound(releases[0][:2], releases[-1][:2])
    # Allows none that we know: a release that never was, or one that is newer than this program.
    try:
        newest = max(PackageVersion(item.version.removesuffix(".*")) for item in bounds)
    except InvalidVersion:
        return None
    version = newest.major, newest.minor
    if library == "torch":
        oldest = max(version, RELEASES[0])
        return Bound(oldest, oldest)
    torch = torch_release(library, version)
    return None if torch is None else Bound(torch, torch, library, version)


def _of_neighbor(versions: Iterable[str], library: str) -> Bound | None:
    """The bound of a library that says nothing about torch, from the lower bounds of a specifier."""
    try:
        newest = max(PackageVersion(version.removesuffix(".*")) for version in versions)
    except InvalidVersion:
        return None
    return Bound(RELEASES[0], RELEASES[-1], library, (newest.major, newest.minor))


def of_poetry(text: str, library: str = "torch") -> Bound | None:
    """Like `of_specifier`, for Poetry's `^1.7`, `~1.7`, `1.7.1`, `*` and `^1.7 || ^2.0`.

    Raises:
        ValueError: it is not such a constraint.
    """
    return _either((_poetry_specifier(part) for part in text.split("||")), library)


def of_conda(text: str) -> Bound | None:
    """Like `of_requirement`, for conda's `pytorch=1.7`, `pytorch >=1.7,<2`, `pytorch::pytorch=1.7=py38_0` or
    `pytorch[version='>=1.7']`.

    Raises:
        ValueError: it is about torch and cannot be read.
    """
    match = _CONDA.fullmatch(text.strip())
    library = None if match is None else library_of(match["name"])
    if match is None or library is None:
        return None
    version = match["version"]
    if match["keys"] and (key := _CONDA_VERSION.search(match["keys"])) is not None:
        version = next(filter(None, key.groups()), None)  # what is in brackets counts before what is not
    return _either((_conda_specifier(part) for part in version.split("|")), library) if version else None


def oldest_python(text: str) -> Version | None:
    """The oldest Python that a specifier such as `>=3.10,<4` or Poetry's `^3.10` allows, of those that torch
    has been built for; None: any, or it is not a specifier.
    """
    try:
        specifiers = [SpecifierSet(_poetry_specifier(part)) for part in text.split("||")]
    except InvalidSpecifier:
        return None
    for python in PYTHONS:
        versions = [f"{show_version(python)}.{patch}" for patch in _PYTHON_PATCHES]
        if any(item.contains(version) for item in specifiers for version in versions):
            return python
    return None


def together(bounds: Sequence[Bound]) -> list[Bound]:
    """What requirements say that hold at the same time: torchvision 0.8 asks for more than `torch>=1.6`.

    If they contradict each other, it is unknown which of them holds.
    """
    companions = [bound.oldest for bound in bounds if bound.companion and not bound.conditional]
    asked = max(companions, default=RELEASES[0])
    return [
        replace(bound, oldest=asked)
        if not bound.companion and bound.oldest < asked <= bound.newest
        else bound
        for bound in bounds
    ]


def lowest(bounds: Sequence[Bound]) -> tuple[Version | None, Bound | None]:
    """The oldest torch that several requirements allow, and the requirement that sets it.

    Each requirement may hold or not. What goes with torchvision or torchaudio counts where torch itself has
    no bound, and where it is older than that, so that they contradict each other: it is unknown which one
    holds.
    """
    own = [(bound.oldest, bound) for bound in bounds if not bound.companion]
    others = [bound for bound in bounds if bound.companion]
    if own:
        own += [(bound.newest, bound) for bound in others if bound.newest > _LAST_WITH_LOOSE_COMPANIONS]
    else:
        own = [(bound.oldest, bound) for bound in others]
    return min(own, key=lambda item: item[0], default=(None, None))


def library_of(name: str) -> str | None:
    """The library that a package's name means, if it is torch or has releases that go with those of torch."""
    return _LIBRARIES.get(canonicalize_name(name))


def _either(specifiers: Iterable[str], library: str) -> Bound | None:
    """The bound of alternatives; None if one of them has none."""
    bounds = [of_specifier(text, library) for text in specifiers]
    stated = [bound for bound in bounds if bound is not None]
    if not stated or len(stated) < len(bounds):
        return None
    return Bound(
        min(bound.oldest for bound in stated),
        max(bound.newest for bound in stated),
        library,
        min(bound.least for bound in stated),
    )


def _poetry_specifier(text: str) -> str:
    parts = re.sub(r"([<>=~^!])\s+", r"\1", text.strip()).replace(",", " ").split()
    found = []
    for part in parts:
        if part == "*":
            continue
        if part[0] == "^" or (part[0] == "~" and not part.startswith("~=")):
            found.append(f">={part[1:]}")
        elif part[0].isdigit():
            found.append(f"=={part}")
        elif part[0] == "=" and not part.startswith("=="):
            found.append(f"={part}")
        else:
            found.append(part)
    return ",".join(found)


def _conda_specifier(text: str) -> str:
    """`1.7.*`, `=1.7`, `==1.7` or `>=1.7,<2`; a build may follow (`=1.7=py38_0`, `1.7 py38_0`)."""
    text = re.sub(r"([<>=!~])\s+", r"\1", text.strip()).split(" ")[0]
    found = []
    for part in filter(None, text.split(",")):
        operator = re.match(r"[<>=!~]*", part)
        sign = operator[0] if operator is not None else ""
        version = part[len(sign) :].partition("=")[0]
        if version in ("", "*"):
            continue
        version = version.removesuffix("*").removesuffix(".")
        # `=` means "starts with"; a bare version is exact, which is the same for a lower bound.
        found.append(f"=={version}.*" if sign in ("", "=") else sign + version)
    return ",".join(found)


def _of_wheel(url: str) -> Bound | None:
    """The version in the address of a wheel."""
    name = unquote(url.partition("#")[0].partition("?")[0].rpartition("/")[2])
    try:
        package, version, _, _ = parse_wheel_filename(name)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    library = library_of(package)
    return None if library is None else of_specifier(f"=={version.base_version}", library)
