"""Opens a Dask cluster: the one that is given, or workers on this machine."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from torchmigrate import __version__
from torchmigrate.fleet.model import FleetError

if TYPE_CHECKING:
    from distributed import Client

_SILENT = {"logging.distributed": "critical"}
# A repository is given up when more workers than these died of it.
DEATHS = 2


@contextmanager
def opened(scheduler: str | None, workers: int | None) -> Iterator[Client]:
    """A client of a cluster, closed in the end.

    Args:
        scheduler: its address; None: workers on this machine.
        workers: how many; None: as many as there are processors.

    Raises FleetError: there is no such scheduler, or the workers cannot be started.
    """
    import dask
    from distributed import Client

    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with dask.config.set({**_SILENT, "distributed.scheduler.allowed-failures": DEATHS}):
        if scheduler is None:
            with _local(workers) as cluster, Client(cluster, set_as_default=False) as client:
                yield client
            return
        try:
            client = Client(scheduler, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise FleetError(f"no Dask scheduler answers at {scheduler}: {_short(error)}") from None
        with client:
            _check_versions(client, scheduler)
            yield client


@contextmanager
def _local(workers: int | None) -> Iterator[Any]:
    import dask
    from distributed import LocalCluster

    # A process that Python spawns would import from the current directory, which may be a repository.
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        with (
            _ignoring_sigint(),
            dask.config.set({"distributed.worker.preload": ["torchmigrate.fleet.ignore_sigint"]}),
        ):
            cluster = LocalCluster(
                n_workers=workers or _processors(),
                threads_per_worker=1,
                memory_limit=0,  # what examines a repository is a process of its own, with a limit
                dashboard_address=None,
                # Without a dashboard it serves HTTP all the same, else on a port that another run may have.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                # Anyone who can connect to a worker can run code on it, including other users of this
                # machine.
                security=True,
                silence_logs=logging.CRITICAL,
            )
    except (OSError, RuntimeError, TimeoutError) as error:
        raise FleetError(f"the workers cannot be started: {_short(error)}") from None
    try:
        yield cluster
    finally:
        with suppress(Exception):  # a worker that has ended already
            cluster.close()


@contextmanager
def _ignoring_sigint() -> Iterator[None]:
    """Start processes that ignore Control-C from their first moment on."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _check_versions(client: Client, scheduler: str) -> None:
    """Raises FleetError unless all workers have this torchmigrate."""
    try:
        found = client.run(version)
    except Exception:  # whatever cannot be loaded there
        raise FleetError(
            f"the workers of {scheduler} cannot import torchmigrate: install torchmigrate[fleet] on them"
        ) from None
    for worker, other in sorted(found.items()):
        if other != __version__:
            raise FleetError(f"{worker} has torchmigrate {other}, and not {__version__} as here")


def version() -> str:
    """The version of torchmigrate where this runs."""
    return __version__


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _short(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
