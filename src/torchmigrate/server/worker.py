"""A thread in which documents are checked, one after the other, so that the client is always heard."""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
SOON, LATER = 0, 1  # a caller waits for it, or none does
_STACK = 16 << 20  # bytes; some systems give threads less than calls in calls need, to Python 3.10 above all


class Worker:
    """A thread that ends with the process, whatever it is at."""

    def __init__(self) -> None:
        self._jobs: queue.PriorityQueue[tuple[int, int, Callable[[], None]]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        size = threading.stack_size(_STACK)
        try:
            threading.Thread(target=self._run, name="torchmigrate checks", daemon=True).start()
        finally:
            threading.stack_size(size)

    async def do(self, job: Callable[[], T], urgency: int = SOON) -> T:
        """Have a job done, and wait for its result; of those that are as urgent, the first comes first.

        Raises what the job raises. A job that no caller waits for is not begun.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def done(result: Any, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def run() -> None:
            if future.cancelled():
                return
            result: Any = None
            error: BaseException | None = None
            try:
                result = job()
            except BaseException as raised:
                error = raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(done, result, error)

        self._jobs.put((urgency, next(self._numbers), run))
        return await future

    def _run(self) -> None:
        while True:
            _, _, job = self._jobs.get()
            try:
                job()
            except RuntimeError:  # the loop has just been closed
                return
