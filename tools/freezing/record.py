"""Records of what the program does with repositories: one compressed file of JSON lines for each.

The first row is the header; the others have a `kind`: `run` (exit code and stderr of one run), `finding`,
`place` and `plan` (of the plan), and `fixed` (a file that a run changed, with its changed lines).
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

Row = dict[str, Any]  # one line of a record

FORMAT = 1
CHECK = ("check", "--output-format", "json-lines")
# In this order. Runs with `--fix` change the copy, which is then restored.
RUNS = {
    "findings": (*CHECK, "--select", "ALL"),
    "plan": ("plan", "--output-format", "json"),
    "safe fixes": (*CHECK, "--fix"),
    "unsafe fixes": (*CHECK, "--fix", "--unsafe-fixes"),
    "fixes of all rules": (*CHECK, "--fix", "--unsafe-fixes", "--select", "ALL"),
}
# Prints a digest of the package that an interpreter imports, of its libraries, and of a checkout's rules.
FINGERPRINT = """
import hashlib, importlib.metadata, importlib.util, pathlib, sys
package = pathlib.Path(importlib.util.find_spec("torchmigrate").submodule_search_locations[0])
names = ("click", "libcst", "msgspec", "packaging", "PyYAML")
libraries = [(name, importlib.metadata.version(name)) for name in names]
digest = hashlib.sha256(f"{sys.version} {libraries}".encode())
for top in (package, package.parent.parent / "rules"):
    for path in sorted(top.rglob("*")):
        if path.is_file() and path.suffix not in (".pyc", ".rules"):
            digest.update(f"{path.relative_to(top)} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
print(digest.hexdigest())
"""


@dataclass(frozen=True)
class Program:
    """An installed torchmigrate and how to run it.

    jobs: its `--jobs`. cached: whether to record the output of a second run, from the cache. limit: seconds.
    """

    command: tuple[str, ...]
    jobs: int
    cached: bool
    limit: float

    def fingerprint(self) -> str:
        """A digest of what is installed.

        Raises:
            click.UsageError: the command does not lead to an interpreter that has the package.
        """
        script = Path(shutil.which(self.command[0]) or self.command[0])
        with script.open("rb") as file:
            first = file.readline(4096)
        python = shlex.split(first[2:].decode()) if first.startswith(b"#!") else [str(script)]
        done = subprocess.run([*python, "-c", FINGERPRINT], capture_output=True, text=True)
        if not done.stdout:
            raise click.UsageError(f"no torchmigrate package behind {script}: {done.stderr}")
        return done.stdout.strip()

    def run(self, options: Iterable[str], directory: Path, cache: Path) -> tuple[int, str, list[str]]:
        """The exit code, stdout and the lines of stderr, with relative paths.

        Raises:
            subprocess.TimeoutExpired: the run exceeded the limit.
        """
        command = [*self.command, *options, "--jobs", str(self.jobs)]
        if "check" in options:
            command += ["--cache-dir", str(cache)] if self.cached else ["--no-cache"]
            if self.cached:
                self._run([part for part in command if part != "--fix"], directory)
        code, out, errors = self._run(command, directory)
        here = f"{directory}{os.sep}"
        return code, out.replace(here, ""), errors.replace(here, "").splitlines()

    def _run(self, command: list[str], directory: Path) -> tuple[int, str, str]:
        unset = ("TORCHMIGRATE_", "GITHUB_", "FORCE_COLOR", "COLUMNS")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(unset)}
        # A session of its own, so that its worker processes can be stopped too.
        with subprocess.Popen(
            command,
            cwd=directory,
            env={**kept, "PYTHONIOENCODING": "utf-8:backslashreplace"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                out, errors = process.communicate(timeout=self.limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return process.returncode, out.decode("utf-8", "replace"), errors.decode("utf-8", "replace")


def files_of(directory: Path) -> list[Path]:
    """The regular files below a directory, sorted, without version control and links."""
    found = []
    for place, directories, names in os.walk(directory):
        directories[:] = [name for name in directories if name != ".git"]
        paths = (Path(place, name) for name in names)
        found += [path for path in paths if path.is_file() and not path.is_symlink()]
    return sorted(found)


def digest_of(directory: Path) -> str:
    """A digest of the paths and contents that a record depends on."""
    digest = hashlib.sha256(str((directory / ".git").exists()).encode())
    for path in files_of(directory):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(os.fsencode(f"{path.relative_to(directory)} {content}\n"))
    return digest.hexdigest()


def copy(directory: Path, target: Path) -> None:
    """Copy the files. A clone gets an empty `.git`, which still marks the root of a repository."""
    target.mkdir()
    if (directory / ".git").exists():
        (target / ".git").mkdir()
    for path in files_of(directory):
        place = target / path.relative_to(directory)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


def rows_of(program: Program, directory: Path) -> Iterator[Row]:
    """The record of a repository; a run that was stopped or printed no JSON has the exit code -1."""
    with tempfile.TemporaryDirectory(prefix="frozen-") as scratch:
        tree = Path(os.path.realpath(scratch), directory.name)
        copy(directory, tree)
        before = {path: _state(path) for path in files_of(tree)}
        for name, options in RUNS.items():
            errors: list[str] = []
            printed: list[Row] = []
            try:
                code, out, errors = program.run(options, tree, Path(scratch, "cache"))
                if "--fix" not in options:
                    printed = [*(plan(out) if name == "plan" else findings(out))]
            except (subprocess.TimeoutExpired, ValueError) as error:
                code, errors = -1, [*errors, f"frozen: {type(error).__name__}"]
            yield {"kind": "run", "run": name, "exit": code, "stderr": errors}
            yield from printed
            for path in files_of(tree):
                if before.get(path) != _state(path):
                    place = path.relative_to(tree)
                    hunks = [*changed_lines(directory / place, path)]
                    yield {"kind": "fixed", "run": name, "path": place.as_posix(), "hunks": hunks}
                    path.unlink()
                    if path in before:
                        shutil.copyfile(directory / place, path)
                        before[path] = _state(path)


def _has_failed(run: Row) -> bool:
    return run["exit"] not in (0, 1, 2) or any(line.startswith("Traceback") for line in run["stderr"])


def _state(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def findings(out: str) -> Iterator[Row]:
    """A row for each finding, in the order of the program."""
    for line in out.splitlines():
        found = json.loads(line)
        yield {"kind": "finding", "path": found.pop("filename"), **found}


def plan(out: str) -> Iterator[Row]:
    """A row for each place of the plan, each group of releases, and each other value."""
    whole = json.loads(out)
    for place in whole.pop("places"):
        yield {"kind": "place", **place}
    releases = {f"releases {each['first']} to {each['last']}": each for each in whole.pop("releases")}
    for key, value in {**releases, **whole}.items():
        yield {"kind": "plan", "key": key, "value": value}


def changed_lines(old: Path, new: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """The number of the first old line (1-based), the old lines and the new ones, of every change."""
    sides = [path.read_bytes() if path.exists() else b"" for path in (old, new)]
    before, after = (side.decode("utf-8", "surrogateescape").split("\n") for side in sides)
    for tag, first, last, new_first, new_last in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag != "equal":
            yield first + 1, before[first:last], after[new_first:new_last]


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write a record in one step; the same rows give the same bytes."""
    part = path.with_suffix(".part")
    with part.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
        file.writelines(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)
    part.replace(path)


def read(path: Path) -> Iterator[Row]:
    """The rows of a record, its header first; none if it does not exist."""
    if path.exists():
        with gzip.open(path, "rt", encoding="ascii") as file:
            yield from map(json.loads, file)


def record(out: Path, program: Program, directories: list[Path], workers: int) -> bool:
    """Record every directory whose record is not up to date; whether all runs came to an end."""
    out.mkdir(parents=True, exist_ok=True)
    fingerprint = program.fingerprint()
    started = time.monotonic()

    def work(directory: Path) -> bool:
        began = time.monotonic()
        path = out / f"{directory.name}.jsonl.gz"
        header: Row = {
            "format": FORMAT,
            "program": fingerprint,
            "content": digest_of(directory),
            "finished": True,
        }
        if {**next(read(path), {}), "directory": ""} == {**header, "directory": ""}:
            return True
        try:
            rows = [*rows_of(program, directory)]
        except Exception as error:  # of one repository: the others are recorded
            rows = [{"kind": "run", "run": "record", "exit": -1, "stderr": [f"frozen: {error!r}"]}]
        failed = [row["run"] for row in rows if row["kind"] == "run" and _has_failed(row)]
        write(path, [{**header, "finished": not failed, "directory": str(directory)}, *rows])
        count = sum(row["kind"] == "finding" for row in rows)
        problem = f", FAILED: {', '.join(failed)}" if failed else ""
        click.echo(f"{directory.name}: {count} findings, {time.monotonic() - began:.0f} s{problem}", err=True)
        return not failed

    sizes = {path: sum(file.stat().st_size for file in files_of(path)) for path in directories}
    with ThreadPoolExecutor(workers) as pool:
        try:  # the biggest first, so that none is left for the end
            ended = [*pool.map(work, sorted(directories, key=lambda path: -sizes[path]))]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    used = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    cpu = sum(each.ru_utime + each.ru_stime for each in used)
    click.echo(
        f"{len(ended)} repositories in {time.monotonic() - started:.0f} s, {cpu:.0f} s of CPU", err=True
    )
    return all(ended)
