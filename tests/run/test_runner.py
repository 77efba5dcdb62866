"""Many files: order, processes, and what becomes of failures."""

from __future__ import annotations

import functools
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest
from harness.catalogue import loaded_rules
from harness.program import attempt, heed_interrupts

import torchmigrate
from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Finding, Problem, Severity
from torchmigrate.rewrite.fix_maker import FixMaker
from torchmigrate.run import runner
from torchmigrate.run.runner import default_jobs, run
from torchmigrate.semantics.model import SemanticModel


class Marked:
    """What a weak reference can be made of."""


def interrupt() -> None:
    raise KeyboardInterrupt


def job(path: Path) -> FileResult:
    """What happens is said by the content of the file."""
    text = path.read_text()
    if text.startswith("raise"):
        raise ValueError("first line\nsecond line")
    if text.startswith("recursion"):
        return job(path)
    if text.startswith("memory"):
        raise MemoryError
    if text.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    if text.startswith("exit"):
        os._exit(3)
    if text.startswith("slow"):
        time.sleep(0.3)
    if text.startswith(("mark", "slow")):
        with (path.parent / "log").open("a") as log:
            log.write(f"{path.name}\n")
    if text.startswith("interrupt"):
        raise KeyboardInterrupt
    if text.startswith("ignored interrupt"):
        weakref.finalize(Marked(), interrupt)
    finding = Finding("TM000", "name", text, Severity.INFO, 0, len(text))
    result = FileResult(path, [finding], new_text=str(os.getpid()))
    if text.startswith("local"):
        result.old_text = lambda: None  # type: ignore[assignment]
    return result


def environment() -> dict[str, str]:
    """Of a process that shall find the package that is being tested."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(torchmigrate.__file__).parents[1]), *sys.path]),
    }


def files(directory: Path, *texts: str) -> list[Path]:
    paths = []
    for number, text in enumerate(texts):
        path = directory / f"f{number:03}.py"
        path.write_text(text)
        paths.append(path)
    return paths


def reasons(results: list[FileResult]) -> list[str]:
    return [result.problems[0].reason if result.problems else "" for result in results]


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_in_order(tmp_path: Path, jobs: int) -> None:
    paths = files(tmp_path, *(f"{'x' * (number * 37 % 50)}{number}" for number in range(100)))
    done: list[tuple[int, int]] = []
    results = list(run(paths, job, jobs, progress=lambda *state: done.append(state)))
    assert [result.path for result in results] == paths
    assert [result.findings[0].message for result in results] == [path.read_text() for path in paths]
    assert done == [(number, 100) for number in range(1, 101)]
    processes = {result.new_text for result in results}
    assert (str(os.getpid()) in processes) == (jobs == 1)
    assert len(processes) <= jobs


def test_same_results_with_any_number_of_jobs(tmp_path: Path) -> None:
    paths = files(
        tmp_path, *("raise" if number % 7 == 3 else "memory" * (number % 2) for number in range(40))
    )
    one, two, three = (reasons(list(run(paths, job, jobs))) for jobs in (1, 2, 3))
    assert one == two == three
    assert any(one)


def test_nothing_to_do(tmp_path: Path) -> None:
    assert list(run([], job)) == []
    assert list(run([], job, 4)) == []
    (path,) = files(tmp_path, "x")
    assert [result.path for result in run([path, path], job, 2)] == [path]


@pytest.mark.parametrize("jobs", [1, 2])
def test_exceptions_become_problems(tmp_path: Path, jobs: int) -> None:
    paths = files(tmp_path, "ok", "raise", "recursion", "memory", "ok")
    results = list(run(paths, job, jobs))
    assert [result.path for result in results] == paths
    ok, error, deep, memory, last = reasons(results)
    assert (ok, last) == ("", "")
    assert error.startswith("internal error: ValueError: first line second line (test_runner.py:")
    assert error.endswith("); please report this")
    assert deep == "nested too deeply: not checked"
    assert memory == "not enough memory to check this file"


def test_result_that_cannot_be_sent(tmp_path: Path) -> None:
    results = list(run(files(tmp_path, "ok", "local", "ok"), job, 2))
    first, second, third = reasons(results)
    assert (first, third) == ("", "")
    assert second.startswith("internal error: ")
    assert "lambda" in second


def test_a_process_that_dies_costs_one_file(tmp_path: Path) -> None:
    texts = ["mark"] * 60
    texts[10], texts[30], texts[59] = "kill", "exit", "kill"
    paths = files(tmp_path, *texts)
    results = list(run(paths, job, 2))
    assert [result.path for result in results] == paths
    found = {number: reason for number, reason in enumerate(reasons(results)) if reason}
    assert found == {
        10: "internal error: its process was terminated by SIGKILL; please report this",
        30: "internal error: its process exited with code 3; please report this",
        59: "internal error: its process was terminated by SIGKILL; please report this",
    }
    log = (tmp_path / "log").read_text().split()
    assert sorted(log) == [path.name for path, text in zip(paths, texts, strict=True) if text == "mark"]


def test_without_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process can be started, this one does the work."""

    def refuse(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(runner, "_Worker", refuse)
    paths = files(tmp_path, "a", "b", "c")
    assert {result.new_text for result in run(paths, job, 2)} == {str(os.getpid())}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 imports from the current directory first")
def test_a_process_imports_nothing_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_forks", lambda: False)
    monkeypatch.chdir(tmp_path)
    for name in ("multiprocessing", "pickle", "random"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\n")
    paths = files(tmp_path, "a", "b", "c")
    results = list(run(paths, functools.partial(job), 2))
    assert [result.path for result in results] == paths
    assert str(os.getpid()) not in {result.new_text for result in results}, "they are processes"
    assert not (tmp_path / "ran").exists() and "PYTHONSAFEPATH" not in os.environ


def test_in_fresh_interpreters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_forks", lambda: False)
    paths = files(tmp_path, "a", "b", "kill", *"c" * 40)
    results = list(run(paths, functools.partial(job), 2))
    assert [result.path for result in results] == paths
    assert [bool(result.problems) for result in results] == [number == 2 for number in range(43)]
    unpicklable = list(run(paths[:2], lambda path: FileResult(path), 2))
    assert [result.path for result in unpicklable] == paths[:2]


def test_fork_only_without_threads() -> None:
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    assert not runner._forks()
    event.set()
    thread.join()
    assert runner._forks() == (sys.platform == "linux")


def test_interrupt_is_left_to_the_caller(tmp_path: Path) -> None:
    results = run(files(tmp_path, "ok", "interrupt"), job, 1)
    assert next(results).findings
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert gc.isenabled()


def test_giving_up_waits_for_the_files_at_work(tmp_path: Path) -> None:
    paths = files(tmp_path, *["slow"] * 60)
    results = run(paths, job, 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert 1 <= len((tmp_path / "log").read_text().splitlines()) < 30
    assert gc.isenabled()


def test_control_c_in_a_terminal(tmp_path: Path) -> None:
    """The signal reaches all processes; the first raises, none prints, none stays."""
    paths = files(tmp_path, *["slow"] * 200)
    (tmp_path / "script.py").write_text(
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from torchmigrate.engine.results import FileResult\n"
        "from torchmigrate.run.runner import run\n"
        "def job(path):\n"
        "    time.sleep(0.1)\n"
        "    return FileResult(path, old_text=str(os.getpid()))\n"
        "try:\n"
        "    for result in run([Path(name) for name in sys.argv[1:]], job, 2):\n"
        "        print(result.old_text, flush=True)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), *map(str, paths)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment(),
        preexec_fn=heed_interrupts,
    )
    assert process.stdout is not None
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, "")
    for worker in set(output.split()):
        with pytest.raises(ProcessLookupError):
            os.kill(int(worker), 0)


def test_an_interrupt_that_python_ignores_ends_the_run(tmp_path: Path) -> None:
    """One that comes within a callback of a weak reference is told by `sys.unraisablehook` only."""
    hook = sys.unraisablehook
    paths = files(tmp_path, "a", "ignored interrupt", "b", "c")
    done = []
    with pytest.raises(KeyboardInterrupt):
        for result in run(paths, job, 1):
            done.append(result.path)
    assert done == paths[:2] and sys.unraisablehook is hook


def test_default_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "processors", lambda: 4)
    monkeypatch.setattr(runner, "_forks", lambda: True)
    small = files(tmp_path, *["x = 1\n"] * 50)
    assert default_jobs(small) == 1
    assert default_jobs([]) == 1
    assert default_jobs([tmp_path / "none"]) == 1
    for path in small:
        path.write_bytes(b"#" * 16_000)  # 800 kB
    assert default_jobs(small) == 2
    for path in small:
        path.write_bytes(b"#" * 160_000)
    assert default_jobs(small) == 4
    assert default_jobs(small[:3]) == 1
    monkeypatch.setattr(runner, "_forks", lambda: False)
    assert default_jobs(small) == 4
    assert default_jobs(small[:30]) == 2


def test_one_job_does_not_import_multiprocessing(tmp_path: Path) -> None:
    (path,) = files(tmp_path, "x")
    code = (
        "import sys; from pathlib import Path; from torchmigrate.run.runner import run; "
        "from torchmigrate.engine.results import FileResult; "
        f"list(run([Path({str(path)!r})], FileResult)); print('multiprocessing' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment()
    )
    assert done.stdout == "False\n"


def test_garbage_is_bounded(tmp_path: Path) -> None:
    """Cycles that jobs leave behind are collected now and then, not only at the end."""
    alive: list[int] = []

    class Node:
        def __init__(self) -> None:
            self.self = self

    def wasteful(path: Path) -> FileResult:
        for _ in range(10_000):
            Node()
        alive.append(gc.get_count()[0])
        return FileResult(path)

    assert gc.isenabled()
    for result in run(files(tmp_path, *["x"] * 60), wasteful, 1):
        assert isinstance(result, FileResult)
        assert not gc.isenabled()
    assert gc.isenabled()
    assert max(alive) < runner.GARBAGE + 50_000
    assert gc.get_freeze_count() == 0


def test_files_leave_no_garbage() -> None:
    """What is known of a file is freed with it, so that there is hardly anything to collect."""
    left: set[str] = set()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for item in loaded_rules():
            for example in item.examples if item.rule.codemod else ():
                attempt(example.before)
                left.update(
                    item.rule.code
                    for thing in gc.get_objects()
                    if isinstance(thing, SemanticModel | FixMaker)
                )
                gc.freeze()
    finally:
        gc.unfreeze()
        gc.enable()
    assert not left


def test_problems_travel(tmp_path: Path) -> None:
    paths = files(tmp_path, "a", "b")
    results = list(run(paths, failed, 2))
    assert [result.problems for result in results] == [[Problem(path, "why", 3)] for path in paths]


def failed(path: Path) -> FileResult:
    return FileResult(path, problems=[Problem(path, "why", 3)])


class Interrupting:
    """An attribute for which a Ctrl-C comes while its class is made."""

    def __set_name__(self, owner: type, name: str) -> None:
        raise KeyboardInterrupt


def job_that_makes_a_class(path: Path) -> FileResult:
    type("Made", (), {"attribute": Interrupting()})
    return FileResult(path)


def test_an_interrupt_while_a_class_is_made_ends_the_run() -> None:
    # Before Python 3.12, it becomes a RuntimeError.
    with pytest.raises(KeyboardInterrupt):
        runner.attempt(job_that_makes_a_class, Path("a.py"))
