"""Which documents are checked when: the latest version of each, once, however fast somebody types."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pygls.workspace import PositionCodec

from torchmigrate.server.checks import Checked, Checker
from torchmigrate.server.documents import Snapshot
from torchmigrate.server.options import ServerOptions
from torchmigrate.server.worker import LATER, SOON, Worker

T = TypeVar("T")
LARGE = 100_000  # characters of a document that has others wait for at most a fraction of a second
QUIET = 0.01  # seconds without a change after which a document is checked, without a request

Stamp = tuple[int, int]  # how often everything, and how often the document, has changed


class _Lane:
    """A thread with what it knows of projects."""

    def __init__(self) -> None:
        self.worker = Worker()
        self._checker: tuple[int, Checker] | None = None  # its age and the checker; for the thread alone

    def checker(self, age: int, options: ServerOptions, roots: Sequence[Path]) -> Checker:
        if self._checker is None or self._checker[0] != age:
            self._checker = age, Checker(options, roots)
        return self._checker[1]


class Schedule:
    """Has documents checked, and remembers what was found until they change.

    Its methods are called in the loop that hears the client.

    Args:
        snapshot: what there is to check, by URI; None: it is not open.
    """

    def __init__(self, snapshot: Callable[[str], Snapshot | None]) -> None:
        self.snapshot = snapshot
        self._lanes = _Lane(), _Lane()  # for most documents, and for large ones, which may take long
        self.options = ServerOptions()
        self.roots: Sequence[Path] = ()
        self.codec = PositionCodec()
        self._age = 0
        self._changes: dict[str, int] = {}
        self._known: dict[str, tuple[Stamp, Checked]] = {}
        self._under_way: dict[str, tuple[Stamp, asyncio.Task[Checked]]] = {}

    def stamp(self, uri: str) -> Stamp:
        """What changes when a document, or anything that counts for all, has changed."""
        return self._age, self._changes.get(uri, 0)

    def everything_changed(self) -> None:
        """Look at configurations and projects anew."""
        self._age += 1

    def changed(self, uri: str) -> None:
        """A document has another text."""
        self._changes[uri] = self._changes.get(uri, 0) + 1

    def closed(self, uri: str) -> None:
        """A document is open no more; its number goes on, for what is still under way."""
        self.changed(uri)
        self._known.pop(uri, None)
        self._under_way.pop(uri, None)

    async def settled(self, uri: str, urgency: int = SOON) -> Checked | None:
        """What is found in a document if it does not change for a moment; None: it does, or is closed."""
        stamp = self.stamp(uri)
        await asyncio.sleep(QUIET)
        if stamp != self.stamp(uri):
            return None
        checked = await self._checked(uri, urgency)
        return checked if stamp == self.stamp(uri) else None

    async def latest(self, uri: str) -> tuple[Stamp, Checked] | None:
        """What is found in a document as it is when this is answered; None: it is not open."""
        while True:
            stamp = self.stamp(uri)
            checked = await self._checked(uri, SOON)
            if stamp == self.stamp(uri):
                return None if checked is None else (stamp, checked)

    async def do(self, checked: Checked, job: Callable[[], T]) -> T:
        """Work with what was found, in the thread that has found it."""
        return await self._lane(checked.snapshot).worker.do(job)

    def _lane(self, snapshot: Snapshot) -> _Lane:
        return self._lanes[sum(len(part.text) for part in snapshot.parts) > LARGE]

    async def warm_up(self) -> None:
        """Load what the first check needs."""
        age, options, roots = self._age, self.options, list(self.roots)
        lane = self._lanes[0]

        def load() -> None:
            lane.checker(age, options, roots).warm_up()
            gc.collect()
            gc.freeze()  # what is loaded is never garbage: no request should wait for a scan of it

        await lane.worker.do(load, LATER)

    async def _checked(self, uri: str, urgency: int) -> Checked | None:
        stamp = self.stamp(uri)
        known = self._known.get(uri)
        if known is not None and known[0] == stamp:
            return known[1]
        under_way = self._under_way.get(uri)
        if under_way is None or under_way[0] != stamp or under_way[1].cancelled():
            snapshot = self.snapshot(uri)
            if snapshot is None:
                return None
            task = asyncio.ensure_future(self._check(uri, stamp, snapshot, urgency))
            task.add_done_callback(_seen)
            under_way = self._under_way[uri] = stamp, task
        # Cancelling one waiting caller does not cancel it for the others.
        return await asyncio.shield(under_way[1])

    async def _check(self, uri: str, stamp: Stamp, snapshot: Snapshot, urgency: int) -> Checked:
        options, roots, codec = self.options, list(self.roots), self.codec
        lane = self._lane(snapshot)

        def check() -> Checked:
            if stamp != self.stamp(uri):  # it has changed while others were checked
                return Checked(snapshot, codec)
            checked = lane.checker(stamp[0], options, roots).check(snapshot, codec)
            _ = checked.placed  # worked out here
            return checked

        checked = await lane.worker.do(check, urgency)
        if stamp == self.stamp(uri):
            self._known[uri] = stamp, checked
            self._under_way.pop(uri, None)
        return checked


def _seen(task: asyncio.Task[Any]) -> None:
    """Look at how a task ended: asyncio would print the exception if no other code reads it."""
    if not task.cancelled():
        task.exception()


class Tasks:
    """Background tasks."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, coroutine: Coroutine[Any, Any, Any], failed: Callable[[Exception], None]) -> None:
        """Start one. failed: receives what it raises."""

        async def guarded() -> None:
            try:
                await coroutine
            except Exception as error:
                failed(error)

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
