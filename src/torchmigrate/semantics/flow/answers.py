"""Answers about variables that depend on answers about other variables.

What a variable holds follows from what it is given, and that may be computed from other variables, or from
itself in a loop. Asked for one after the other by plain recursion, that takes exponential time where each is
computed from two others, and has no end where they go in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import MethodType
from typing import Generic, TypeVar, cast
from weakref import WeakMethod

_MOST_CHANGES = 16
_MOST_WORK = 200_000  # for one question: if each thing asks for a new one, there is no end
Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


class Answers(Generic[Key, Answer]):
    """One question about many things, each worked out once, however long the way from one to the next is.

    Args:
        work_out: the answer for a key; asks this object for others. It is called again with more of them
            known, so it must depend on nothing else that changes, and where it needs many it should ask for
            all at once: `False not in [...]`, not `all(...)`. A method of the object that holds this one.
        unknown: the answer for what depends on nothing but itself. Others may turn it into something else,
            but not back: then answers do not depend on the order of the questions.
        restless: an answer may turn into others more than once, as sets that grow do. This is the answer
            for what does not come to rest: of those that go in a circle, one may take back another.
    """

    def __init__(
        self, work_out: Callable[[Key], Answer], unknown: Answer, *, restless: Answer | None = None
    ) -> None:
        # The object holds this one: in a circle of the two, all that it knows of a file would wait for the
        # garbage collector.
        self._work_out = WeakMethod(work_out) if isinstance(work_out, MethodType) else lambda: work_out
        self._unknown = unknown
        self._restless = restless
        self._known: dict[Key, Answer] = {}
        self._asked: list[Key] | None = None  # by the work under way

    def __call__(self, key: Key) -> Answer:
        if self._asked is not None:
            self._asked.append(key)
            return self._known.get(key, self._unknown)
        if key not in self._known:
            self._settle(key)
        return self._known[key]

    def clear(self) -> None:
        """Forget everything, since what it follows from has changed."""
        self._known.clear()

    def _settle(self, key: Key) -> None:
        known = self._known
        stack = [key]
        waiting: set[Key] = set()  # those for which others are worked out first: the way to the present one
        readers: dict[Key, list[Key]] = {}
        again: dict[Key, None] = {}  # as a stack
        changes: dict[Key, int] = {}
        work = 0
        while stack or again:
            work += 1
            if work > _MOST_WORK:
                rest = self._unknown if self._restless is None else self._restless
                known.update(dict.fromkeys((key, *again), rest))
                return
            if not stack:
                item, _ = again.popitem()
                if self._restless is None and known[item] != self._unknown:
                    continue
                if changes.get(item, 0) > _MOST_CHANGES:
                    continue
                answer, asked = self._work(item)
                for each in asked:
                    if item not in readers.setdefault(each, []):
                        readers[each].append(item)
                stack = [each for each in asked if each not in known]
                if stack:
                    again[item] = None  # once those are known
                elif answer != known[item]:
                    changes[item] = changes.get(item, 0) + 1
                    rests = self._restless is None or changes[item] <= _MOST_CHANGES
                    known[item] = answer if rests else cast(Answer, self._restless)
                    again.update(dict.fromkeys(readers.get(item, ())))
                continue
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            answer, asked = self._work(top)
            first = [item for item in asked if item not in known and item not in waiting and item != top]
            if first:
                waiting.add(top)
                stack += first
                continue
            stack.pop()
            known[top] = answer
            if answer != self._unknown:
                again.update(
                    dict.fromkeys(readers.get(top, ()))
                )  # they are in a circle with it, and took it for unknown
            for item in asked:
                readers.setdefault(item, []).append(top)

    def _work(self, key: Key) -> tuple[Answer, list[Key]]:
        asked: list[Key] = []
        self._asked = asked
        try:
            work_out = self._work_out()
            assert work_out is not None, "the object that asks is there"
            return work_out(key), list(dict.fromkeys(asked))
        finally:
            self._asked = None
