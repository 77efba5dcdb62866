"""Lets a worker on this machine ignore Control-C, which a terminal sends to all: the command ends it.

Dask imports this in each of its workers (`distributed.worker.preload`).
"""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
