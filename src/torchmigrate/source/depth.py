"""Room for code that is nested deeply: `elif` chains of a thousand branches, sums of a thousand strings.

What walks a tree calls itself for what is inside, which Python allows a thousand times: enough for all but
generated files. More needs a larger stack, which only a new thread can have.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")

LIMIT = 6000  # calls in calls; some walks take time by the square of the depth, so that it is not more
_STACK = 64 << 20  # bytes; what is not used is not taken


def has_room() -> bool:
    """Whether this runs in `with_room`."""
    return sys.getrecursionlimit() >= LIMIT


def with_room(work: Callable[[], _Result]) -> _Result:
    """What `work` gives, or raises, with room for more calls in calls.

    Raises:
        RecursionError: it is still not enough.
    """
    done: list[_Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    try:
        sys.setrecursionlimit(LIMIT)
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if failed:
        raise failed[0]
    return done[0]
