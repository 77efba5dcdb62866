"""The process: a server on stdin and stdout."""

from __future__ import annotations

import logging
import os
import sys
from typing import BinaryIO

from torchmigrate.server.features import made_server

_CLOSED, _LOST = 0, 1  # exit codes of the protocol: after a shutdown, without one


def serve() -> int:
    """Serve the client on stdin and stdout until it ends that; the exit code of the protocol."""
    # Messages of pygls go to the client or are dropped: they would be tracebacks.
    log = logging.getLogger("pygls")
    log.propagate = False
    log.addHandler(logging.NullHandler())
    stdin, stdout = _own_streams()
    server = made_server()
    server.start_io(stdin, stdout)
    return _CLOSED if server.was_shut_down else _LOST


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """The streams of the protocol. What else is written to stdout goes to stderr; nothing else reads
    stdin."""
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return stdin, stdout
