"""Where the sources of a release are: directories of unpacked wheels, and wheels from PyPI."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from torchmigrate.versions.releases import Version, parse_version, show_version

# Since torch 1.13, functorch is a package in the wheel of torch and follows its number.
_IN_TORCH: dict[str, Version] = {"functorch": (1, 13)}
# The wheels for macOS are small and hold all sources. pip takes a wheel for an older system or processor as
# well; the first Python for which there is one will do.
_PLATFORMS = ("macosx_15_0_arm64", "macosx_15_0_x86_64", "any")
_PYTHONS = ("3.12", "3.10", "3.9", "3.8", "3.7", "3.6")


class NoWheelError(Exception):
    """PyPI has no wheel of this release, or cannot be reached; the message is pip's."""


def unpacked(library: str, directory: Path) -> dict[Version, Path]:
    """The releases of a library whose wheels were unpacked as `directory/LIBRARY-VERSION`, oldest first.

    Of several patch releases of one release, the newest counts.
    """
    found: dict[Version, tuple[tuple[int, ...], Path]] = {}
    first = _IN_TORCH.get(library)
    for path in directory.iterdir():
        owner, _, number = path.name.rpartition("-")
        if owner not in (library, "torch") or not path.is_dir():
            continue
        version = parse_version(number)
        in_torch = first is not None and version >= first
        if owner != ("torch" if in_torch else library):
            continue
        patch = tuple(int(part) for part in number.split(".")[:3] if part.isdigit())
        if version not in found or found[version][0] < patch:
            found[version] = (patch, path)
    return {version: found[version][1] for version in sorted(found)}


def download(library: str, version: Version, to: Path) -> Path:
    """Unpack the sources in the newest wheel of a release into a directory in `to`.

    Raises:
        NoWheelError: there is no such wheel.
    """
    package = "torch" if version >= _IN_TORCH.get(library, (10**9,)) else library
    answer = ""
    for python in _PYTHONS:
        answer = _pip(f"{package}=={show_version(version)}.*", python, to)
        wheels = sorted(to.glob("*.whl"))
        if wheels:
            target = to / wheels[0].name.partition("-")[0]
            with zipfile.ZipFile(wheels[0]) as wheel:
                wheel.extractall(
                    target, [name for name in wheel.namelist() if name.endswith((".py", ".pyi"))]
                )
            return target
    raise NoWheelError(answer.strip())


def _pip(requirement: str, python: str, to: Path) -> str:
    """Let pip download a wheel; what it says if it does not."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--python-version", python]
    command += [f"--platform={platform}" for platform in _PLATFORMS]
    result = subprocess.run(
        [*command, "--dest", str(to), requirement], capture_output=True, text=True, check=False
    )
    return result.stderr
