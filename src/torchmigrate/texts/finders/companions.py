"""Pins of companions that do not belong to the torch in the same list."""

from __future__ import annotations

from collections.abc import Iterator

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.texts.file import TextFile
from torchmigrate.texts.pins import fitting, needed_torch, torches
from torchmigrate.versions.releases import FIRST, companion, show_version


def find(rule: Rule, file: TextFile) -> Iterator[Finding | None]:
    """A finding for every companion that fits none of the required releases of torch."""
    for group in file.pins:
        releases = torches(group)
        if not releases:
            continue
        for pin in group.pins:
            needed = None if pin.library == "torch" or fitting(pin, releases) else needed_torch(pin)
            if needed is None:
                continue
            first = group.of("torch")[0]
            right = companion(pin.library, releases[-1][:2])
            values = {
                "name": pin.written,
                "needs": show_version(needed),
                "torch": first.written,
                "new": f"{pin.library} {show_version(right)}"
                if len(right) > 1
                else (f"no release of {pin.library}"),
                "release": show_version(releases[-1][:2]),
            }
            yield file.finding(rule, values["name"], (pin.first, pin.end), values=values, excluded=FIRST)
