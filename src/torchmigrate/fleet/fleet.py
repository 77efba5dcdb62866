"""A run over a fleet: repositories go to a cluster, what comes back is kept, and written as tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from torchmigrate import __version__
from torchmigrate.files.signals import held
from torchmigrate.fleet.cluster import opened
from torchmigrate.fleet.model import (
    Done,
    Examined,
    Failed,
    FleetError,
    FleetSettings,
    Job,
    Large,
    Limits,
    Record,
    Repository,
    RepositoryPart,
    Trouble,
    Unchanged,
)
from torchmigrate.fleet.repositories import file_name, shown_address
from torchmigrate.fleet.schema import VERSION
from torchmigrate.fleet.store import Store, page_of
from torchmigrate.fleet.work import work, work_together

if TYPE_CHECKING:
    from distributed import Client, Future

Progress = Callable[[int, int], None]


class FleetRequest(Struct, frozen=True):
    """The options of a run.

    output: the directory of the results. scheduler: the address of a Dask scheduler; None: workers on this
    machine. workers: how many of these; None: one for each processor. clones: the directory of clones, on
    the workers; None: a cache. resume: use results of earlier runs where nothing has changed.
    retries: how often a repository that could not be examined is tried again.
    """

    repositories: list[Repository]
    settings: FleetSettings
    output: Path
    limits: Limits = field(default_factory=Limits)
    scheduler: str | None = None
    workers: int | None = None
    clones: str | None = None
    resume: bool = True
    retries: int = 1


class Outcome(Struct):
    """What became of a run.

    name: of the run. reused: repositories whose earlier result holds. page: the page that was written.
    interrupted: not all repositories were examined.
    """

    name: str
    started: datetime
    examined: set[str] = field(default_factory=set)
    reused: set[str] = field(default_factory=set)
    failed: dict[str, Failed] = field(default_factory=dict)
    workers: int = 0
    interrupted: bool = False
    page: Path | None = None

    @property
    def finished(self) -> int:
        """How many repositories nothing is left to do for."""
        return len(self.examined) + len(self.reused) + len(self.failed)


class Fleet:
    """A run.

    said: is called with the name of each finished repository, and its result.
    noted: is called with what the user should know while waiting.
    """

    def __init__(
        self,
        request: FleetRequest,
        said: Callable[[str, str], None] = lambda name, what: None,
        noted: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.request = request
        self.store = Store(request.output)
        self._said = said
        self._noted = noted
        asked = {"version": __version__, "schema": VERSION, "settings": to_builtins(request.settings)}
        self._key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]

    def run(self, progress: Progress | None = None) -> Outcome:
        """Examine the repositories; what was found is in the directory of the results afterwards.

        After Control-C, too: what is done by then becomes a run, which is marked, and the exception goes on.

        Args:
            progress: is called with how many repositories are done, and how many there are.

        Raises:
            FleetError: there is no cluster, or nothing can be written. What was kept stays.
            KeyboardInterrupt: as above; `outcome` says what became of the run.
        """
        started = datetime.now(timezone.utc)
        self.outcome = Outcome(self._new_name(started), started)
        try:
            with self.store.locked():
                try:
                    self._examine(progress)
                except KeyboardInterrupt:
                    self.outcome.interrupted = True
                    with held():
                        self._finish()
                    raise
                self._finish()
        except OSError as error:
            where = f"{error.filename}: " if error.filename else f"{self.request.output}: "
            raise FleetError(
                f"{where}{error.strerror or error}; what was done is kept, and the same command goes on"
            ) from None
        return self.outcome

    def _new_name(self, started: datetime) -> str:
        """The name of a run; of two in one second, the later one comes later in order."""
        name = started.strftime("%Y%m%dT%H%M%SZ")
        taken = set(self.store.runs())
        while name in taken:
            name += "+"
        return name

    # ---- the work ------------------------------------------------------------------------------------

    def _examine(self, progress: Progress | None) -> None:
        from distributed import as_completed

        with opened(self.request.scheduler, self.request.workers) as client:
            if not client.nthreads():
                self._noted(f"the scheduler at {self.request.scheduler} has no workers: waiting for one")
            waiting: dict[Any, Repository] = {}
            futures = []
            for repository in self.request.repositories:
                future = self._submit(client, repository)
                waiting[future.key] = repository
                futures.append(future)
            results = as_completed(futures, loop=client.loop)
            del futures, future  # a result is let go when it is kept
            try:
                for future in results:
                    repository = waiting.pop(future.key)
                    more = self._take(client, repository, future)
                    if more is not None:
                        waiting[more.key] = repository
                        results.add(more)
                    elif progress is not None:
                        progress(self.outcome.finished, len(self.request.repositories))
                    future.release()
                self.outcome.workers = len(client.nthreads())
            except BaseException:
                with suppress(Exception):
                    client.cancel(list(results.futures), force=True)
                raise

    def _submit(self, client: Client, repository: Repository) -> Future[Any]:
        kept = self.store.kept(repository) if self.request.resume else None
        known = kept.state if kept is not None and kept.key == self._key else None
        return client.submit(work, self._job(repository, known), key=self._name(repository), **self._trying)

    def _job(self, repository: Repository, known: str | None = None) -> Job:
        asked = self.request
        return Job(repository, asked.settings, asked.limits, asked.clones, known)

    def _name(self, repository: Repository, *parts: object) -> str:
        return "-".join(map(str, (file_name(repository.name), *parts, self.outcome.name)))

    @property
    def _trying(self) -> dict[str, Any]:
        return {"pure": False, "retries": self.request.retries}

    def _take(self, client: Client, repository: Repository, future: Future[Any]) -> Future[Any] | None:
        """Keep the result of a worker; return the next future to wait for."""
        try:
            done = future.result()
        except Failed as error:
            self._fail(repository, error)
            return None
        except (CancelledError, Exception) as error:
            self._fail(repository, Failed(Trouble.WORKER, _why(error)))
            return None
        assert isinstance(done, Done)
        if done.version != __version__:  # a worker that came later
            why = f"a worker has torchmigrate {done.version}, and not {__version__} as here"
            self._fail(repository, Failed(Trouble.WORKER, why))
            return None
        match done.what:
            case Failed() as failed:
                self._fail(repository, failed)
            case Large(parts, state):
                return self._split(client, repository, parts, state)
            case Unchanged():
                self.outcome.reused.add(repository.name)
                self._said(repository.name, "unchanged")
            case Examined() as examined:
                self.store.keep(repository, examined, self._key, done.usage)
                self.outcome.examined.add(repository.name)
                (row,) = examined.tables["repositories"]
                self._said(repository.name, row["headline"])
        return None

    def _split(self, client: Client, repository: Repository, parts: int, state: str) -> Future[Any]:
        """Examine a large repository in parts, by several workers."""
        job = replace(self._job(repository), state=state)
        shares = [
            client.submit(
                work,
                replace(job, part=RepositoryPart(number, parts)),
                key=self._name(repository, number),
                **self._trying,
            )
            for number in range(parts)
        ]
        return client.submit(work_together, job, shares, key=self._name(repository, "whole"), **self._trying)

    def _fail(self, repository: Repository, error: Failed) -> None:
        self.outcome.failed[repository.name] = error
        self._said(repository.name, f"failed: {error.why}")

    # ---- the end -------------------------------------------------------------------------------------

    def _finish(self) -> None:
        from torchmigrate.fleet.page import as_html
        from torchmigrate.fleet.queries import page_of_run

        self.store.write_run(self.outcome.name, self._rows())
        self.store.describe()
        self.outcome.page = self.store.write_page(as_html(page_of_run(self.store)))

    def _rows(self) -> Iterator[tuple[str, Record]]:
        outcome, run = self.outcome, {"run": self.outcome.name}
        for repository in self.request.repositories:
            name = repository.name
            of = {**run, "repository": name}
            listed = {
                **of,
                "owner": repository.owner,
                "address": shown_address(repository.address),
                "revision": repository.revision,
            }
            failed = outcome.failed.get(name)
            if failed is not None:
                trouble = {"status": "failed", "trouble": failed.trouble.value, "why": failed.why}
                yield "repositories", {**listed, **trouble, "target": self.request.settings.target}
            elif name in outcome.examined or name in outcome.reused:
                yield from self._rows_of(repository, of, listed)
        yield (
            "runs",
            {
                **run,
                "schema": VERSION,
                "version": __version__,
                "started": outcome.started.replace(tzinfo=None),
                "finished": datetime.now(timezone.utc).replace(tzinfo=None),
                "target": self.request.settings.target,
                "settings": json.dumps(to_builtins(self.request.settings), sort_keys=True),
                "interrupted": outcome.interrupted,
                "workers": outcome.workers,
                "listed": len(self.request.repositories),
                "examined": len(outcome.examined),
                "reused": len(outcome.reused),
                "failed": len(outcome.failed),
            },
        )

    def _rows_of(self, repository: Repository, of: Record, listed: Record) -> Iterator[tuple[str, Record]]:
        kept = self.store.kept(repository)
        if kept is None:
            raise OSError(None, "was removed meanwhile", page_of(repository))
        for name, rows in kept.tables.items():
            for row in rows:
                match name:
                    case "repositories":
                        how = {
                            "state": kept.state,
                            "status": "done",
                            "reused": repository.name in self.outcome.reused,
                            "seconds": kept.usage.seconds,
                            "megabytes": kept.usage.megabytes,
                            "page": page_of(repository),
                        }
                        yield name, {**listed, **how, **row}
                    case "findings":
                        yield name, {**of, "owner": repository.owner, **row}
                    case _:
                        yield name, {**of, **row}


def _why(error: BaseException) -> str:
    """What a worker could not do, in one line."""
    name = type(error).__name__
    if name == "KilledWorker":
        return "every worker that examined it died"
    if isinstance(error, CancelledError):
        return "the cluster lost it"
    text = " ".join(str(error).split())[:300]
    return f"{name}: {text}" if text else name
