"""Test whether a text may contain one of several words."""

from __future__ import annotations

from torchmigrate.catalogue.prefilter import has_any


class Words:
    """Some words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def are_in(self, text: str) -> bool:
        """Whether one of the words occurs."""
        return has_any(text, self.words)
