"""Wheels on the package index: the last patch release of a minor one, and the sources in it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

# The wheels for macOS are the smallest that have all sources.
PLATFORMS = (
    *(f"macosx_10_{minor}_x86_64" for minor in range(6, 16)),
    *(f"macosx_{major}_0_{machine}" for major in range(11, 16) for machine in ("arm64", "x86_64")),
)
FALLBACK = ("manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64", "linux_x86_64")
PYTHONS = ("3.11", "3.9", "3.7", "3.13", "3.10", "3.12", "3.8", "3.6", "3.14")
_SOURCES = (".py", ".pyi")


class NoWheel(Exception):
    """The index has no wheel of this release that pip would take for any known platform and Python."""


def download(library: str, version: str, into: Path) -> Path:
    """Downloads one wheel of `library`: of "2.13" the last patch release, of "2.13.0" that one.

    Returns the path of the wheel. Raises NoWheel; needs the network.
    """
    wanted = f"{library}=={version}" if version.count(".") > 1 else f"{library}=={version}.*"
    errors = []
    for platforms in (PLATFORMS, FALLBACK):
        for python in PYTHONS:
            before = set(into.glob("*.whl"))
            done = subprocess.run(
                [*_command(python, platforms), "--dest", str(into), wanted],
                capture_output=True,
                text=True,
                check=False,
            )
            made = [path for path in into.glob("*.whl") if path not in before]
            if done.returncode == 0 and made:
                return made[0]
            errors += done.stderr.strip().splitlines()[-1:]
    raise NoWheel(f"{wanted}: {errors[-1] if errors else 'pip found nothing'}")


def _command(python: str, platforms: tuple[str, ...]) -> Iterator[str]:
    yield from (
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    )
    yield from ("--only-binary=:all:", "--python-version", python)
    for platform in platforms:
        yield from ("--platform", platform)


def unpack(wheel: Path, into: Path) -> Path:
    """Unpacks the sources and stubs of a wheel, nothing else; returns `into`.

    Raises ValueError if a name in the wheel leads out of `into`.
    """
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith(_SOURCES):
                continue
            target = (into / name).resolve()
            if not target.is_relative_to(into.resolve()):
                raise ValueError(f"{wheel.name} has a name that leads out of it: {name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))
    return into
