"""Edits of texts that have no syntax tree: a part of the text, by its place, becomes another."""

from __future__ import annotations

from torchmigrate.findings import Edit


def replaced(start: int, end: int, text: str) -> Edit:
    """Put `text` in the place of what is between two offsets."""
    return Edit(start, end, text)
