"""The oldest torch that a requirement allows: pip's, Poetry's and conda's ways to write one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from torchmigrate.versions.releases import PATCH_RELEASES, RELEASES, Version, show_version

# conda calls it pytorch, and so do people in requirements files that pip could not install.
_TORCH = frozenset(["torch", "pytorch", "pytorch-cpu", "pytorch-gpu"])
_LOWER = frozenset([">=", ">", "==", "===", "~="])
_LOCAL = re.compile(r"\+[\w.]+")
_NAME = re.compile(r"\s*(?:[\w./-]+::)?([\w.-]+)(?![\w.+:-])")
_CONDA = re.compile(
    r"(?s)(?:[\w./:-]+::)?(?P<name>[\w.-]+?)(?:\[(?P<keys>.*)\])?\s*(?P<version>[=<>!~\d*].*)?"
)
_CONDA_VERSION = re.compile(r"(?:^|,)\s*version\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^,]*))")


def of_requirement(text: str) -> Version | None:
    """The oldest release of torch that a line such as `torch>=1.7; python_version < "3.9"` allows.

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
        name = re.match(r"[\w.-]*", text)
        if name is not None and _is_torch(name[0]):
            raise ValueError(f"`{text}` is not a requirement: {str(error).splitlines()[0]}") from None
        return None
    if not _is_torch(requirement.name):
        return None
    if requirement.url is not None:
        return _of_wheel(requirement.url)
    return of_specifier(str(requirement.specifier))


def name_of(text: str) -> str:
    """The package that a requirement of pip or conda is about, as PyPI writes it; empty for an address."""
    match = _NAME.match(text)
    return "" if match is None else canonicalize_name(match[1])


def of_specifier(text: str) -> Version | None:
    """The oldest release that a specifier such as `>=1.7,<2` allows; None: it has no lower bound.

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
    for release in PATCH_RELEASES:
        if specifiers.contains(show_version(release), prereleases=True):
            return release[:2]
    # Allows none that we know: a release that never was, or one that is newer than this program.
    try:
        newest = max(PackageVersion(item.version.removesuffix(".*")) for item in bounds)
    except InvalidVersion:
        return None
    return max((newest.major, newest.minor), RELEASES[0])


def of_poetry(text: str) -> Version | None:
    """Like `of_specifier`, for Poetry's `^1.7`, `~1.7`, `1.7.1`, `*` and `^1.7 || ^2.0`.

    Raises:
        ValueError: it is not such a constraint.
    """
    return _lowest_of(_poetry_specifier(part) for part in text.split("||"))


def of_conda(text: str) -> Version | None:
    """Like `of_requirement`, for conda's `pytorch=1.7`, `pytorch >=1.7,<2`, `pytorch::pytorch=1.7=py38_0` or
    `pytorch[version='>=1.7']`.

    Raises:
        ValueError: it is about torch and cannot be read.
    """
    match = _CONDA.fullmatch(text.strip())
    if match is None or not _is_torch(match["name"]):
        return None
    version = match["version"]
    if match["keys"] and (key := _CONDA_VERSION.search(match["keys"])) is not None:
        version = next(filter(None, key.groups()), None)  # what is in brackets counts before what is not
    return _lowest_of(_conda_specifier(part) for part in version.split("|")) if version else None


def lowest(bounds: list[Version | None]) -> Version | None:
    """The lowest bound of several requirements that may hold; those without one say nothing."""
    return min((bound for bound in bounds if bound is not None), default=None)


def _lowest_of(specifiers: Iterable[str]) -> Version | None:
    """The lowest bound of alternatives; None if one of them has none."""
    bounds = [of_specifier(text) for text in specifiers]
    return None if None in bounds else lowest(bounds)


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
        # `=` means "starts with"; a bare version is exact, which is no different for a lower bound.
        found.append(f"=={version}.*" if sign in ("", "=") else sign + version)
    return ",".join(found)


def _of_wheel(url: str) -> Version | None:
    """The version in the address of a wheel of torch."""
    name = unquote(url.partition("#")[0].partition("?")[0].rpartition("/")[2])
    try:
        package, version, _, _ = parse_wheel_filename(name)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    return (version.major, version.minor) if _is_torch(package) else None


def _is_torch(name: str) -> bool:
    return canonicalize_name(name) in _TORCH
