"""Many files: one job for each, in this process or in several, results in order."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Problem

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

FileJob = Callable[[Path], FileResult]
Progress = Callable[[int, int], None]  # (files done, all files)

# How many objects may wait for the garbage collector, which has little to do: what is known of a file is
# freed with it, apart from a few cycles.
GARBAGE = 300_000
# A process must get this many bytes of source to be worth starting; starting a fresh interpreter and
# loading the catalogue again (no fork) takes ten times as long as a fork.
WORTH_A_FORK = 300_000
WORTH_A_SPAWN = 2_000_000
# A chunk is what a process takes at once: small, so that all finish at the same time.
CHUNK_FILES = 16
CHUNKS_PER_JOB = 16
MANY = 4  # processes: what each would do, one does before they are forked
PATIENCE = 1.0  # seconds for all processes to finish their files when the run is given up


def default_jobs(files: Sequence[Path]) -> int:
    """How many processes pay off: at most one per available processor, 1 for few or small files."""
    return _jobs_for(_sizes(files), processors())


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def run(
    files: Sequence[Path],
    job: FileJob,
    jobs: int | None = None,
    progress: Progress | None = None,
    share: Callable[[], None] = lambda: None,
) -> Iterator[FileResult]:
    """Run `job` on every file; results come in the order of `files`, as soon as they can.

    job: can be pickled, unless `jobs` is 1. An exception of it, or the end of its process, becomes a
        Problem of the file it was busy with; nothing is raised but KeyboardInterrupt, after the
        processes have finished their files.
    jobs: number of processes; 1 is this one, None is `default_jobs`.
    progress: called after every file, in the order in which they are finished.
    share: works out before many processes are forked what each of them would.
    """
    files = list(dict.fromkeys(files))
    sizes = _sizes(files) if jobs is None or jobs > 1 else {}
    if jobs is None:
        jobs = _jobs_for(sizes, processors())
    if sys.platform == "win32":
        jobs = min(jobs, 60)  # as many as it can wait for
    with _little_collection(), _lost_interrupts() as lost:
        if jobs <= 1 or len(files) <= 1:
            results = _run_here(files, job)
        else:
            if jobs >= MANY and _forks():
                with suppress(Exception):  # those that need it say what is wrong
                    share()
            results = _Pool(files, job, jobs, sizes).run()
        # Results may come in any order; each is held until those before it have come.
        waiting: dict[Path, FileResult] = {}
        position = 0
        for done, (path, result) in enumerate(results, 1):
            waiting[path] = result
            if progress is not None:
                progress(done, len(files))
            while position < len(files) and files[position] in waiting:
                yield waiting.pop(files[position])
                position += 1
            if lost:
                raise lost[0]


def attempt(job: FileJob, path: Path) -> FileResult:
    """Run a job; whatever it raises becomes a problem of the file, in one line."""
    try:
        return job(path)
    except RecursionError:
        return FileResult(path, problems=[Problem(path, "nested too deeply: not checked")])
    except MemoryError:
        return FileResult(path, problems=[Problem(path, "not enough memory to check this file")])
    except Exception as error:  # a mistake of ours in one file must not end the run for the others
        from torchmigrate.files.signals import interrupt_in

        if (interrupt := interrupt_in(error)) is not None:
            raise interrupt from None
        return _internal_error(path, _describe(error))


def _internal_error(path: Path, what: str) -> FileResult:
    return FileResult(path, problems=[Problem(path, f"internal error: {what}; please report this")])


def _describe(error: BaseException) -> str:
    place = ""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None:
        place = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}{place}" if text else f"{type(error).__name__}{place}"


@contextmanager
def _little_collection() -> Iterator[None]:
    """Leave what exists (modules, the catalogue) out of garbage collection, and collect seldom.

    Otherwise the collector would scan the whole catalogue repeatedly.
    """
    enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        # What the run leaves is kept until the end: as new objects, all would be looked at once more.
        gc.freeze()
        gc.unfreeze()
        if enabled:
            gc.enable()


@contextmanager
def _lost_interrupts() -> Iterator[list[type[BaseException]]]:
    """The interrupts that Python ignores: those within a callback of a weak reference or a finalizer."""
    lost: list[type[BaseException]] = []
    before = sys.unraisablehook

    def keep(ignored: sys.UnraisableHookArgs) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            lost.append(ignored.exc_type)
        else:
            before(ignored)

    sys.unraisablehook = keep
    try:
        yield lost
    finally:
        sys.unraisablehook = before


def _collect() -> None:
    if gc.get_count()[0] > GARBAGE:
        gc.collect()
        gc.freeze()  # what is left is known for the rest of the run, and need not be looked at again


def _run_here(files: Sequence[Path], job: FileJob) -> Iterator[tuple[Path, FileResult]]:
    for path in files:
        yield path, attempt(job, path)
        _collect()


def _sizes(files: Sequence[Path]) -> dict[Path, int]:
    sizes = {}
    for path in files:
        try:
            sizes[path] = path.stat().st_size
        except (OSError, ValueError):  # the job will say what is wrong with it
            sizes[path] = 0
    return sizes


def _forks() -> bool:
    # A fork shares the catalogue; but it copies locks that other threads hold.
    return sys.platform == "linux" and threading.active_count() == 1


def _jobs_for(sizes: dict[Path, int], limit: int) -> int:
    worth = WORTH_A_FORK if _forks() else WORTH_A_SPAWN
    return max(1, min(limit, sum(sizes.values()) // worth, len(sizes)))


# ---- several processes ------------------------------------------------------------------------------
#
# Not concurrent.futures: when one of its processes dies, all that is under way is lost, and it is unknown
# which file it was. Here every process has a pipe of its own, so the file is known, and files that were
# already fixed are not fixed again. `signal` and `multiprocessing`, which a run of one process does not need,
# are imported where they are used.


def _work(pipe: Connection[Any, Any], job: FileJob, others: list[Connection[Any, Any]]) -> None:
    """What a process does: receive lists of paths, send a result for each; None is the end."""
    import signal

    # Control-C goes to all processes of the terminal; the first one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):  # held while it was started
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for other in others:  # inherited by the fork; open, they would hide from their owners that we ended
        other.close()
    with suppress(EOFError, OSError), _little_collection():  # the first process has ended: nothing to do
        pipe.send(None)
        while True:
            chunk: list[Path] | None = pipe.recv()
            if chunk is None:
                return
            for path in chunk:
                result = attempt(job, path)
                try:
                    pipe.send(result)
                except OSError:
                    raise
                except Exception as error:  # it cannot be pickled
                    pipe.send(_internal_error(path, _describe(error)))
                _collect()


class _Worker:
    """A process as the first one sees it."""

    def __init__(self, context: BaseContext, job: FileJob, others: list[Connection[Any, Any]]) -> None:
        self.pipe, far = context.Pipe()
        self.ready = False
        self.todo: deque[Path] = deque()  # sent and not answered, in order
        self.process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=_work, args=(far, job, [*others, self.pipe] if _is_fork(context) else []), daemon=True
        )
        from torchmigrate.files.signals import held

        try:
            with held(), _safe_path():
                self.process.start()
        except BaseException:
            self.pipe.close()
            raise
        finally:
            far.close()

    def give(self, chunk: list[Path]) -> None:
        self.todo.extend(chunk)
        # If it has ended, the next attempt to read from it fails.
        with suppress(OSError):
            self.pipe.send(chunk)

    def end(self, patience: float = PATIENCE) -> str:
        """Wait for the end of the process, so many seconds, and say how it ended."""
        self.pipe.close()
        self.process.join(max(patience, 0.01))
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        code = self.process.exitcode or 0
        if code < 0:
            import signal

            with suppress(ValueError):
                return f"its process was terminated by {signal.Signals(-code).name}"
        return f"its process exited with code {code}"


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep a process that Python spawns from importing what is in the current directory (Python 3.11)."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _is_fork(context: BaseContext) -> bool:
    return context.get_start_method() == "fork"


class _Pool:
    def __init__(self, files: Sequence[Path], job: FileJob, jobs: int, sizes: dict[Path, int]) -> None:
        self.job = job
        self.chunks = deque(_chunks(files, sizes, jobs))
        self.jobs = min(jobs, len(self.chunks))
        self.workers: dict[Connection[Any, Any], _Worker] = {}
        self.finished: list[_Worker] = []

    def run(self) -> Iterator[tuple[Path, FileResult]]:
        import multiprocessing
        from multiprocessing.connection import wait

        from torchmigrate.files.signals import catch_sigterm

        catch_sigterm()
        context = multiprocessing.get_context("fork" if _forks() else "spawn")
        try:
            for _ in range(self.jobs):
                self.start(context)
            while self.workers:
                for pipe in wait(list(self.workers)):
                    yield from self.answer(self.workers[pipe], context)  # type: ignore[index]
            # No process could be started, or none got as far as the first file.
            for chunk in self.chunks:
                yield from _run_here(chunk, self.job)
        finally:
            self.stop()

    def start(self, context: BaseContext) -> None:
        try:
            worker = _Worker(context, self.job, list(self.workers))
        except Exception:  # no more processes allowed, no pickling of the job: fewer will do, or none
            return
        self.workers[worker.pipe] = worker

    def answer(self, worker: _Worker, context: BaseContext) -> Iterator[tuple[Path, FileResult]]:
        try:
            result: FileResult | None = worker.pipe.recv()
        except (EOFError, OSError):
            yield from self.lost(worker, context)
            return
        if result is None:
            worker.ready = True
        else:
            yield worker.todo.popleft(), result
        if not worker.todo:
            if self.chunks:
                worker.give(self.chunks.popleft())
            else:
                with suppress(OSError):
                    worker.pipe.send(None)
                del self.workers[worker.pipe]
                self.finished.append(worker)

    def lost(self, worker: _Worker, context: BaseContext) -> Iterator[tuple[Path, FileResult]]:
        """A process ended unexpectedly: report the file it was at, do the others in a new one."""
        del self.workers[worker.pipe]
        how = worker.end()
        if not worker.ready:
            return  # it cannot start here; the others, or this process, do its part
        if worker.todo:
            path = worker.todo.popleft()
            yield path, _internal_error(path, how)
        if worker.todo:
            self.chunks.appendleft(list(worker.todo))
        if self.chunks:
            self.start(context)

    def stop(self) -> None:
        """Let processes that are still at work finish their file, so that no file is half written."""
        workers = [*self.finished, *self.workers.values()]
        for worker in workers:
            worker.pipe.close()
        deadline = time.monotonic() + PATIENCE
        for worker in workers:
            worker.end(deadline - time.monotonic())
        self.workers.clear()
        self.finished.clear()


def _chunks(files: Sequence[Path], sizes: dict[Path, int], jobs: int) -> Iterator[list[Path]]:
    """Parts of about equal size, the largest files first: the last to be started are short."""
    limit = sum(sizes.values()) // (jobs * CHUNKS_PER_JOB)
    chunk: list[Path] = []
    size = 0
    for path in sorted(files, key=lambda path: -sizes[path]):
        chunk.append(path)
        size += sizes[path]
        if size >= limit or len(chunk) >= CHUNK_FILES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
