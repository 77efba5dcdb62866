"""The tests of a project: run for a commit, once, and remembered.

Whatever command runs pytest in the end (`pytest`, `make test`, `tox` in the same environment) loads the
observer because of environment variables, so that the outcome of every test is known as it comes. A command
that does not run pytest counts as one test, by its exit code.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import to_builtins

from torchmigrate.evidence.carried import forget_warnings
from torchmigrate.evidence.recording import INJECTED, Recording, begin
from torchmigrate.files.reading import UnreadableError
from torchmigrate.patterns import pattern
from torchmigrate.upgrade.environment import Environment
from torchmigrate.upgrade.model import Frame, Outcome, Result, TestRun, UpgradeError, Warned
from torchmigrate.upgrade.processes import Clock, cpu_of_children, run, size_of, tail
from torchmigrate.upgrade.reach import Reach
from torchmigrate.upgrade.workspace import Workspace
from torchmigrate.versions.releases import parse_version

COMMAND = "the test command"
_STARTS = 25  # how often a run is begun anew after a test that hung or crashed
_COLLECTING = 600.0  # seconds without a sign of life while no test runs
_OBSERVING = Path(__file__).with_name("observing")  # on the path of the environment
_BY_CPP = "Triggered internally at"  # the end of what the compiled part of torch warns
_MOST_OUTPUT = 200_000  # bytes of the end of an output that is searched for errors
_MOST_SAID = 300  # characters of a line of it
_PYTHONPATH_REPLACED = pattern(r"\bPYTHONPATH=(?!\S*\$\{?PYTHONPATH)")
_BUILTINS = frozenset(["cd", "source", ".", "export", "set", "unset", "alias", "ulimit"])
_ESCAPE = pattern(r"\x1b\[[0-9;]*[A-Za-z]")
# The lines that say what went wrong: the first kind that there is, and of this the last one.
_TELLING = (
    pattern(r"Fatal Python error: (?P<said>\S.*)"),
    pattern(r"E   (?P<said>\S.*)"),  # of pytest, of an error in a file of tests or in a conftest.py
    pattern(r"(?:\S.*: )?(?:fatal )?error: (?P<said>\S.*)"),  # of argparse, of a compiler
    # Of pytest; unittest has the name of a test there, before the error.
    pattern(r"ERROR:? (?!usage:|\w+ \([\w.]+\)\Z)(?P<said>\S.*)"),
    pattern(r"(?P<said>(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Warning)(?:: .*)?)\Z"),  # of Python
    pattern(r"(?P<said>\S+: No module named .+)"),
)
# What make and Python add after the error.
_BY_THE_WAY = pattern(r"g?make(\[\d+\])?: |Extension modules: ")
_FRAME = pattern(
    r"^ *File \"(?P<path>[^<\"\n][^\"\n]*)\", line (?P<line>\d+)|^(?P<file>[^\s:][^:\n]*\.py):(?P<row>\d+): ",
    re.MULTILINE,
)
_LIBRARIES = ("torch", "torchvision", "torchaudio", "torchtext", "torchdata", "functorch")


class Suite:
    """Runs the tests in one environment.

    Args:
        command: as it is typed; it is run without a shell, in the project's directory.
        limit: seconds that a single test may take.
        name: of the environment, in records.
        names: what is recorded when all tests run; None: nothing is.

    Attributes:
        unstable: the tests that gave different outcomes for the same code.
        cpu: seconds of all runs so far, those of an earlier process included.
    """

    def __init__(
        self,
        command: str,
        space: Workspace,
        environment: Environment,
        clock: Clock,
        *,
        limit: float,
        name: str,
        names: Collection[str] | None = None,
    ) -> None:
        self.space = space
        self.environment = environment
        self.clock = clock
        self.limit = limit
        self.name = name
        self.names = names
        self.cpu = 0.0
        self._counted: set[str] = set()  # the runs in it
        self._recording: Recording | None = None
        self.unstable: set[str] = set()
        # (tree, whether all tests ran, test) -> whether it passed: the order of tests may matter.
        self._outcomes: dict[tuple[str, bool, str], bool] = {}
        self.command = command
        self.words = words_of(command)

    def run(
        self,
        commit: str,
        only: Collection[str] | None = None,
        *,
        attempt: int = 0,
        since: tuple[str, TestRun] | None = None,
    ) -> TestRun:
        """The tests at a commit, all or some of them.

        A first run of all is recorded: what it shows of outdated places is kept for those that come back to
        this commit.

        attempt: another number is another run of the same tests.
        since: an earlier commit and a run of it; tests that what changed since cannot affect keep their
        results.
        Raises OutOfTime, and UpgradeError where the command cannot be started.
        """
        key = self._key(commit, only) + (f"-{attempt}" if attempt else "")
        found = self.space.recalled(key, TestRun)
        if found is None:
            self.space.go_to(commit)
            if only is not None or attempt:
                found = self.run_here(only)
            else:
                found = self._whole(commit, since)
            self.space.note(key, to_builtins(found))
        if key not in self._counted:
            self._counted.add(key)
            self.cpu += found.cpu
        tree = self.space.git.tree_of(commit)
        for name, result in found.results.items():
            if result.outcome is Outcome.PASSED or result.outcome.is_bad:
                passed = result.outcome is Outcome.PASSED
                if self._outcomes.setdefault((tree, only is None, name), passed) is not passed:
                    self.unstable.add(name)
        return found

    def _key(self, commit: str, only: Collection[str] | None) -> str:
        where = [str(self.environment.directory), self.environment.python, self.environment.torch]
        parts = [
            self.space.git.tree_of(commit),
            *where,
            *self.words,
            *sorted(["*"] if only is None else only),
        ]
        return f"run-{self.name}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]}"

    def _whole(self, commit: str, since: tuple[str, TestRun] | None) -> TestRun:
        """All tests of the tree, which is at a commit; recorded, if that is wanted."""
        kept, files, used = (
            (TestRun(), set(), frozenset()) if since is None else self._unaffected(commit, *since)
        )
        found = TestRun(torch=kept.torch)
        try:
            if self.names is not None:
                forget_warnings(self.space.tree, used)
                self._recording = begin(self.space.tree, self.names)
            if since is None or len(kept.results) < len(since[1].results):
                found = self.run_here(skip=sorted(files))
            if self._recording is not None:
                self._recording.end()
        except UnreadableError as error:
            raise UpgradeError(f"{self.space.tree}: {error.reason}") from None
        finally:
            self._recording = None
        self.space.keep_evidence(commit)
        found.results = {**kept.results, **found.results}
        found.warned = {**kept.warned, **found.warned}
        found.kept = len(kept.results)
        return found

    def _unaffected(
        self, commit: str, start: str, before: TestRun
    ) -> tuple[TestRun, set[str], frozenset[str]]:
        """What is known of the tests that no change since a commit can affect, and their files.

        Also the files of the tree that only they use.

        Nothing is known where files are new or gone, or where the run is not whole.
        """
        said = self.space.git.run("diff", "--name-status", "-z", "--no-renames", start, commit).split("\0")
        if not before.collected or before.trouble or not {"M", ""}.issuperset(said[::2]):
            return TestRun(), set(), frozenset()
        place = self.space.project.relative_to(self.space.tree)
        listed = self.space.git.run("ls-files", "-z").split("\0")
        paths = {(place / name.partition("::")[0]).as_posix() for name in before.results}
        reach = Reach(self.space.tree, listed)
        affected = reach.affected(set(said[1::2]), paths)
        used = reach.paths.difference(*map(reach.used, affected))
        known = paths.intersection(listed) - affected
        files = {PurePosixPath(path).relative_to(place.as_posix()).as_posix() for path in known}
        results = {name: each for name, each in before.results.items() if name.partition("::")[0] in files}
        warned = {name: each for name, each in before.warned.items() if name in files}
        return TestRun(results, warned, torch=before.torch), files, used

    def run_here(self, only: Collection[str] | None = None, skip: Sequence[str] = ()) -> TestRun:
        """The tests of the tree as it is. skip: files whose tests are not run."""
        started, cpu = time.monotonic(), cpu_of_children()
        found = TestRun(collected=False)
        wanted = None if only is None or COMMAND in only else sorted(only)
        self._stopped: Result | None = None
        pythons: list[Any] = []
        for attempt in range(_STARTS):
            lines, code = self._once(wanted, [*skip, *sorted(found.results)], f"outcomes-{attempt}.jsonl")
            pythons += [line for line in lines if line.get("kind") == "python"]
            ended_by = self._read(lines, found, code)
            if ended_by is None:
                break
        else:
            found.trouble = f"tests hung or crashed {_STARTS} times: the remaining tests did not run"
        if code and self._stopped is not None:
            found.collected = bool(found.results)
            found.results[COMMAND] = self._stopped
        elif not found.collected:
            result = Result(Outcome.PASSED)
            if code:
                said = self._output()
                line = telling_line(said)
                what = f"{_end(code)}: {line}" if line else _end(code)
                result = Result(Outcome.FAILED, what, self._frames(_frames_in(said)))
            found.results = {COMMAND: result}
        elif not found.results:
            found.trouble = found.trouble or telling_line(self._output())
        found.torch = self._torch_of(pythons)
        found.seconds, found.cpu = time.monotonic() - started, cpu_of_children() - cpu
        return found

    def _torch_of(self, pythons: Sequence[Any]) -> str | None:
        """The torch that the tests imported, as their Python reported; None: none, or no Python reported it.

        Raises UpgradeError where it is not the torch of the environment.
        """
        own = self.environment
        here = os.path.realpath(own.prefix)
        of_pytest = [each for each in pythons if each["pytest"]]
        for each in of_pytest:
            if os.path.realpath(each["prefix"]) != here:
                raise UpgradeError(
                    f"`{self.command}` ran pytest with {each['executable']}, not with the Python of the "
                    f"environment; is pytest installed there? {own.interpreter} -m pip install pytest"
                )
        imported = {each["torch"]: each["executable"] for each in of_pytest or pythons if each["torch"]}
        for version in sorted(imported, key=lambda version: version != own.torch):
            if parse_version(version)[:2] == parse_version(own.torch)[:2]:
                return str(version)
        for version, executable in imported.items():
            raise UpgradeError(
                f"`{self.command}` ran with torch {version} of {executable}, not with torch {own.torch} of "
                "the environment"
            )
        return None

    def _output(self) -> str:
        """The end of what the command printed when it was last started."""
        said = tail(self.space.log, self._log_start, _MOST_OUTPUT)
        return said[1:].partition("\n")[2] if said.startswith("\n$ ") else said  # without the command itself

    # ---- one start of the command ------------------------------------------------------------------------

    def _once(self, only: Sequence[str] | None, skip: Sequence[str], name: str) -> tuple[list[Any], int]:
        """What the observer wrote, and the exit code."""
        outcomes = self.space.directory / name
        outcomes.unlink(missing_ok=True)
        self._log_start = size_of(self.space.log)
        variables = self.environment.variables(self.space.project, [INJECTED, _OBSERVING])
        variables["TORCHMIGRATE_OUTCOMES"] = str(outcomes)
        for variable, listed in (("ONLY", only), ("SKIP", skip)):
            if listed:
                path = self.space.directory / f"{variable.lower()}.json"
                path.write_text(json.dumps(listed), encoding="utf-8")
                variables[f"TORCHMIGRATE_{variable}"] = str(path)
        given = os.environ.get("PYTEST_ADDOPTS", "")
        report = self.space.directory / "junit.xml"
        options = ["-p", "torchmigrate_observer", f"--junitxml={report}"]
        options += ["-o", f"cache_dir={self.space.directory / 'pytest_cache'}"]
        variables["PYTEST_ADDOPTS"] = f"{given} {shlex.join(options)}".strip()
        if self._recording is not None:
            variables = self._recording.environment(variables)
        watch = _Watch(outcomes, self.limit)
        code = run(
            self.environment.found(self.words, self.space.project),
            directory=self.space.project,
            log=self.space.log,
            clock=self.clock,
            environment=variables,
            watch=watch,
        )
        lines = list(_lines(outcomes))
        if watch.ended is not None:
            lines.append({"kind": "hung", "id": watch.ended})
        outcomes.unlink(missing_ok=True)
        return lines, code

    def _read(self, lines: list[Any], found: TestRun, code: int) -> str | None:
        """Add the output of one start; return its error, if tests are left that it did not reach."""
        running: list[str] = []
        hung: str | None = None
        finished = False
        for line in lines:
            kind, name = line.get("kind"), line.get("id")
            if kind == "python":
                continue
            if kind == "stopped":  # an error that is none of a test or of a file with tests
                self._stopped = Result(Outcome.FAILED, line["message"], self._frames(line["frames"]))
                continue
            found.collected = True
            if kind == "start":
                running.append(name)
            elif kind == "end":
                running = [other for other in running if other != name]
            elif kind in ("outcome", "unloaded"):
                outcome = Outcome.ERROR if kind == "unloaded" else Outcome(line["outcome"])
                before = found.results.get(name)
                if before is None or not before.outcome.is_bad:
                    found.results[name] = Result(outcome, line["message"], self._frames(line["frames"]))
            elif kind == "warning" and _is_of_torch(line):
                place = self._frames([[line["path"], line["line"]]])[0]
                warned = Warned(line["category"], line["message"], place.path, place.line)
                found.warned.setdefault(line["test"], []).append(warned)
            elif kind == "hung":
                hung = name
            elif kind == "finished":
                finished = True
        if hung is not None and hung in running:
            found.results[hung] = Result(Outcome.HUNG, f"took longer than {self.limit:g} s")
            return hung
        if hung is not None:
            found.trouble = f"no test finished for {max(self.limit, _COLLECTING):g} s: the run was stopped"
            return None
        if running and not finished and found.collected:
            for name in running:
                found.results[name] = Result(Outcome.CRASHED, f"the interpreter exited: {_end(code)}")
            return running[0]
        return None

    def _frames(self, frames: Sequence[Sequence[Any]]) -> tuple[Frame, ...]:
        """Frames with paths relative to the tree, where they are in it."""
        found = []
        for path, line in frames:
            place = Path(os.path.normpath(self.space.project / path))
            inside = place.is_relative_to(self.space.tree)
            shown = place.relative_to(self.space.tree).as_posix() if inside else str(place)
            found.append(Frame(shown, int(line or 0)))
        return tuple(found)


class _Watch:
    """Ends a run in which a test takes too long. ended: that test; "": none was running."""

    def __init__(self, outcomes: Path, limit: float) -> None:
        self.outcomes = outcomes
        self.limit = limit
        self.ended: str | None = None
        self._read = 0
        self._running: dict[str, float] = {}
        self._last = time.monotonic()

    def __call__(self) -> bool:
        now = time.monotonic()
        if size_of(self.outcomes) > self._read:
            self._last = now
            with self.outcomes.open("rb") as stream:
                stream.seek(self._read)
                data = stream.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read += len(whole)
            for line in _parsed(whole):
                if line.get("kind") == "start":
                    self._running[line["id"]] = now
                elif line.get("kind") == "end":
                    self._running.pop(line["id"], None)
                elif line.get("kind") == "finished":
                    self._running.clear()
        for name, since in self._running.items():
            if now - since > self.limit:
                self.ended = name
                return False
        if not self._running and now - self._last > max(self.limit, _COLLECTING):
            self.ended = ""
            return False
        return True


def _lines(path: Path) -> Iterator[Any]:
    try:
        yield from _parsed(path.read_bytes())
    except OSError:
        return


def _parsed(data: bytes) -> Iterator[Any]:
    for line in data.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue  # the line that was being written when the program ended
        if isinstance(value, dict):
            yield value


def _is_of_torch(line: dict[str, Any]) -> bool:
    """Whether a warning is one of torch or its companions, by where it was given or what it says."""
    parts = Path(str(line["path"])).parts
    if "site-packages" in parts and parts[parts.index("site-packages") + 1] in _LIBRARIES:
        return True
    words = [*(f"{name}." for name in _LIBRARIES), "autocast", _BY_CPP]
    return any(word in line["message"] for word in words)


def words_of(command: str) -> list[str]:
    """The words of a test command, which no shell runs.

    Raises UpgradeError where they cannot be run so.
    """
    try:
        words = shlex.split(command)
        lexer = shlex.shlex(command, posix=True, punctuation_chars="&|;<>")
        lexer.commenters = ""
        shell = [word for word in lexer if word and not word.strip("&|;<>")]
    except ValueError as error:
        raise UpgradeError(f"cannot parse the test command `{command}`: {error}") from None
    if not words:
        raise UpgradeError("the test command is empty")
    if _PYTHONPATH_REPLACED.search(command):  # which brings the observer
        raise UpgradeError(
            "the test command replaces PYTHONPATH, which torchmigrate sets: add to it, as in "
            "`sh -c 'PYTHONPATH=lib:$PYTHONPATH python -m pytest'`"
        )
    if "=" in words[0]:
        raise UpgradeError(f"the test command starts with `{words[0]}`: use `env {command}`")
    if shell or words[0] in _BUILTINS:
        raise UpgradeError(
            f"the test command is not run by a shell, which `{shell[0] if shell else words[0]}` needs: "
            f"use `sh -c {shlex.quote(command)}`"
        )
    return words


def telling_line(text: str) -> str:
    """The line of the output of pytest, of Python or of another program that says what went wrong."""
    lines = [_ESCAPE.sub("", line).rstrip() for line in text.splitlines()]
    lines = [re.sub(r"^INTERNALERROR> ?", "", line) for line in lines if line.strip(" =-_")]
    lines = [line for line in lines if not _BY_THE_WAY.match(line)] or lines
    for kind in _TELLING:
        found = [match for match in map(kind.match, lines) if match]
        if found:
            return found[-1]["said"].strip()[:_MOST_SAID]
    return lines[-1].strip(" =-_")[:_MOST_SAID] if lines else ""


def _end(code: int) -> str:
    """How a program ended; negative for a signal."""
    names = {each.value: each.name for each in signal.Signals}
    return f"signal {names.get(-code, -code)}" if code < 0 else f"exit code {code}"


def _frames_in(text: str) -> list[tuple[str, int]]:
    """The lines of the tracebacks in an output, as Python and pytest print them."""
    return [
        (match["path"] or match["file"], int(match["line"] or match["row"]))
        for match in _FRAME.finditer(text)
    ]
