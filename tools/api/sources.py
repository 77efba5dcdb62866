"""Where the sources of a release are: which wheel has them, and which directory of unpacked wheels."""

from __future__ import annotations

from pathlib import Path

from torchmigrate.versions.releases import Version, parse_version

# Since torch 1.13, functorch is a package in the wheel of torch and follows its number.
_IN_TORCH: dict[str, Version] = {"functorch": (1, 13)}


def unpacked(library: str, directory: Path) -> dict[Version, Path]:
    """The releases of a library whose wheels were unpacked as `directory/LIBRARY-VERSION`, oldest first.

    Of several patch releases of one release, the newest counts.
    """
    found: dict[Version, tuple[tuple[int, ...], Path]] = {}
    for path in directory.iterdir():
        owner, _, number = path.name.rpartition("-")
        owner = owner.lower()
        if owner not in (library, "torch") or not path.is_dir():
            continue
        version = parse_version(number)
        if owner != package_of(library, version):
            continue
        patch = tuple(int(part) for part in number.split(".")[:3] if part.isdigit())
        if version not in found or found[version][0] < patch:
            found[version] = (patch, path)
    return {version: found[version][1] for version in sorted(found)}


def package_of(library: str, version: Version) -> str:
    """The package whose wheel has a release of a library."""
    return "torch" if version >= _IN_TORCH.get(library, (10**9,)) else library
