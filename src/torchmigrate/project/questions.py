"""Queries of a check about other files of the project, so that a later run can repeat them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

Plain = None | bool | int | str | list["Plain"]  # what JSON has
TEXT = "text"  # the question what another file holds
NO_ANSWER = object()  # stands for an answer that cannot be compared with another one


class Asked(Struct, array_like=True, frozen=True):
    """The queries for one file.

    states: the projects that were queried, with the digest of what they held (`listing.state_of`).
    questions: each with its arguments and the answer.
    again: whether all of them can be repeated. whole: whether there were no other queries.
    """

    states: dict[str, str]
    questions: list[tuple[str, list[Any], Any]]  # `Plain`, which `msgspec` cannot read
    again: bool = True
    whole: bool = True


class Questions:
    """Records every query about a file, and its answer."""

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, path: Path | None) -> None:
        """Attribute the following queries to this file."""
        self._path = path
        self._states: dict[str, str] = {}
        self._questions: dict[str, tuple[str, list[Any], Any]] = {}
        self._again = self._whole = True

    def of_state(self, root: Path, state: str) -> None:
        """Record a query about a project, which is in this state."""
        self._states[str(root)] = state

    def add(self, question: str, path: Path, arguments: tuple[object, ...], answer: object) -> None:
        """A question about a file was answered."""
        if path != self._path:  # an example in it
            self._again = False
            self._whole &= question != TEXT
        elif answer is NO_ANSWER:
            self._again = False
        else:
            given = [plain(each) for each in arguments]
            self._questions[f"{question} {given}"] = question, given, plain(answer)

    def taken(self) -> Asked:
        """All queries since `begin`."""
        return Asked(self._states, [*self._questions.values()], self._again, self._whole)


def plain(value: object) -> Plain:
    """A question's argument, or an answer, as JSON has it."""
    return to_builtins(value, order="deterministic", enc_hook=str)  # type: ignore[no-any-return]
