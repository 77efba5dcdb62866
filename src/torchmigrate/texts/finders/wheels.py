"""Pins of torch for a Python that has no wheels of it, or of a release that there never was."""

from __future__ import annotations

from collections.abc import Iterator

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.texts.file import TextFile
from torchmigrate.texts.pins import torches
from torchmigrate.versions.releases import FIRST, PYTHONS, show_version


def find(rule: Rule, file: TextFile) -> Iterator[Finding | None]:
    """A finding for every torch that is older than the first one for the Python of the file."""
    for group in file.pins:
        if group.python not in PYTHONS:
            continue
        releases = torches(group)
        first = PYTHONS[group.python]
        if releases and releases[-1][:2] < first:
            for pin in group.of("torch"):
                values = {
                    "name": pin.written,
                    "python": show_version(group.python),
                    "new": show_version(first),
                }
                yield file.finding(rule, values["name"], (pin.first, pin.end), values=values, excluded=FIRST)
