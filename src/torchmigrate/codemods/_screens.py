"""What tells from the text alone that a file may hold something for a codemod."""

from __future__ import annotations


class Words:
    """A screen that any of some words passes, with the method of a pattern.

    A pattern of alternatives, or one that starts with `\\b`, tries every place of a text in turn and takes
    twenty times as long; one that starts with plain letters is fine.
    """

    def __init__(self, *words: str) -> None:
        self.words = words

    def search(self, text: str) -> bool:
        """Whether one of the words occurs."""
        return any(word in text for word in self.words)


class AllWords(Words):
    """A screen that a text passes in which every word occurs."""

    def search(self, text: str) -> bool:
        """Whether all of the words occur."""
        return all(word in text for word in self.words)
