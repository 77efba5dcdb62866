"""Words of which one is in a text, faster than by a pattern."""

from __future__ import annotations

from torchmigrate.catalogue.prefilter import has_any


class Words:
    """Some words, with the method of a pattern."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def search(self, text: str) -> bool:
        """Whether one of the words occurs."""
        return has_any(text, self.words)
