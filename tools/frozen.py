"""Freeze what the program does with a list of repositories, and compare two such records.

    python tools/frozen.py examples DIRECTORY
    python tools/frozen.py record OUT --command PROGRAM DIRECTORY_OR_LIST...
    python tools/frozen.py compare OLD NEW [--command PROGRAM] [--rule CODE] [--samples 3]

A repository is a directory; a list is a text file with one directory per line. `record` runs PROGRAM, an
installed torchmigrate, on a copy of each directory and writes OUT/NAME.jsonl.gz: the findings of all rules,
what `--fix` and `--unsafe-fixes` change, the plan, exit codes and stderr. This depends on the program and the
content of the directory only. Repositories whose record is up to date are skipped, so an interrupted run can
be repeated. `compare` prints the differences by rule and kind; with `--command` it first records the
directories of OLD into NEW. `examples` writes the examples of all rules as a directory to record.
Exit codes: 0 done, and no differences; 1 differences, or a run that failed.
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
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
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

# ---- record ------------------------------------------------------------------------------------------------


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
        if done.returncode:
            raise click.UsageError(f"no torchmigrate package behind {script}: {done.stderr}")
        return done.stdout.strip()

    def run(self, options: Iterable[str], directory: Path, cache: Path) -> tuple[int, str, list[str]]:
        """The exit code, stdout, and the lines of stderr with relative paths.

        Raises:
            subprocess.TimeoutExpired: the run exceeded the limit.
        """
        command = [*self.command, *options, "--jobs", str(self.jobs)]
        if "check" in options:
            command += ["--cache-dir", str(cache)] if self.cached else ["--no-cache"]
            if self.cached:
                self._run([part for part in command if part != "--fix"], directory)
        code, out, errors = self._run(command, directory)
        return code, out, errors.replace(f"{directory}{os.sep}", "").splitlines()

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
                    printed = [*(plan(out) if name == "plan" else findings(out, tree))]
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


def _state(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def findings(out: str, tree: Path) -> Iterator[Row]:
    """A row for each finding, in the order of the program."""
    for line in out.splitlines():
        found = json.loads(line)
        yield {"kind": "finding", "path": os.path.relpath(found.pop("filename"), tree), **found}


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
        failed = [row["run"] for row in rows if row.get("exit") == -1]
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


# ---- compare -----------------------------------------------------------------------------------------------

SPAN = ("path", "code", "symbol", "cell", "location", "end_location")
KEYS = {"run": ("run",), "finding": SPAN, "text": ("run", "path", "row"), "place": SPAN, "plan": ("key",)}
SUBJECT = ("path", "code", "symbol", "message")  # of what may have moved
POSITIONS = frozenset(["location", "end_location", "row", "rows", "cell", "link", "kind"])


@dataclass(frozen=True)
class Difference:
    """One difference. rule: codes of rules, or `-`. old, new: what to show of either side."""

    rule: str
    kind: str
    place: str
    old: str = ""
    new: str = ""


def shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def paired(old: list[Row], new: list[Row], key: Iterable[str]) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows that agree in the fields of `key`, in their order; None for what the other side lacks."""
    groups: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((old, new)):
        for row in rows:
            groups[json.dumps([row.get(field) for field in key])][side].append(row)
    for left, right in groups.values():
        yield from zip_longest(left, right)


def changes(old: Row, new: Row) -> Iterator[tuple[str, str, str]]:
    """The kind and both sides of every field that differs; of a fix, of its fields."""
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        name = key.replace("_", " ")
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            yield from ((f"{name} {kind}", left, right) for kind, left, right in changes(before, after))
        elif key in ("fix", "unsafe_fix"):
            left, right = (None if fix is None else fix["applicability"] for fix in (before, after))
            yield f"{name} {left} -> {right}", shown(before), shown(after)
        elif key in ("severity", "applicability", "effect", "effort", "exit"):
            yield f"{name} {before} -> {after}", "", ""
        else:
            yield name, shown(before), shown(after)


def without_positions(value: Any) -> Any:
    if isinstance(value, list):
        return [without_positions(each) for each in value]
    if isinstance(value, dict):
        return {key: without_positions(each) for key, each in value.items() if key not in POSITIONS}
    return value


def codes_by_path(rows: Iterable[Row]) -> dict[str, list[tuple[int, int, str]]]:
    """For each file: first and last line of all places of findings and of their edits, with their codes."""
    found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for row in rows:
        edits = [edit for fix in (row["fix"], row["unsafe_fix"]) if fix is not None for edit in fix["edits"]]
        for span in (row, *row["places"], *edits):
            lines = span["location"]["row"], span["end_location"]["row"]
            # Rows in a notebook are those of a cell: every line of the file may be meant.
            found[row["path"]].append((*(lines if row["cell"] is None else (0, sys.maxsize)), row["code"]))
    return found


def compare_rows(old: list[Row], new: list[Row]) -> Iterator[Difference]:
    """All differences between two records of one repository."""
    codes = codes_by_path(row for row in (*old, *new) if row["kind"] == "finding")

    def difference(row: Row, kind: str, before: str, after: str) -> Difference:
        rule, place = row.get("code", "-"), str(row.get("path", row.get("run", row.get("key"))))
        if row["kind"] == "text":
            first, last = row["row"], row["last"]
            near = {code for start, end, code in codes.get(row["path"], ()) if start <= last and first <= end}
            rule, place = "/".join(sorted(near)[:3]) or "-", f"{place}:{first}"
        elif "location" in row:
            cell = "" if row.get("cell") is None else f"cell {row['cell']}:"
            place = f"{place}:{cell}{row['location']['row']}"
        what = {"text": f"text after {row.get('run')}", "place": "plan place"}.get(row["kind"], row["kind"])
        return Difference(rule, f"{what} {kind}", place, before, after)

    for name, key in KEYS.items():
        lost: list[Row] = []
        found: list[Row] = []
        before, after = ([row for row in rows if row["kind"] == name] for rows in (old, new))
        for left, right in paired(before, after, key):
            if left is None or right is None:
                lost += [left] if left is not None else []
                found += [right] if right is not None else []
            else:
                yield from (difference(left, *change) for change in changes(left, right))
        for left, right in paired(lost, found, SUBJECT if key is SPAN else key):
            if left is not None and right is not None:
                yield difference(left, "moved", "", difference(right, "", "", "").place)
                for change in changes(without_positions(left), without_positions(right)):
                    yield difference(right, *change)
            for row, kind in ((left, "lost"), (right, "new")):
                if row is not None and None in (left, right):
                    text = shown(row.get("message", row.get("value", row.get("lines"))))
                    yield difference(row, kind, *((text, "") if kind == "lost" else ("", text)))


def compare(old: Path, new: Path) -> Iterator[Difference]:
    """All differences between two directories of records; places begin with the name of the repository."""
    for name in sorted({path.name for side in (old, new) for path in side.glob("*.jsonl.gz")}):
        repository = name.removesuffix(".jsonl.gz")
        left, right = [*read(old / name)], [*read(new / name)]
        if not left or not right:
            yield Difference("-", f"repository only in {'OLD' if left else 'NEW'}", repository)
            continue
        if left[0]["content"] != right[0]["content"]:
            yield Difference("-", "repository content", repository)
        for each in compare_rows(with_texts(left[1:]), with_texts(right[1:])):
            yield Difference(each.rule, each.kind, f"{repository}:{each.place}", each.old, each.new)


def with_texts(rows: list[Row]) -> list[Row]:
    """The rows, and one for every change of a text."""
    for row in [row for row in rows if row["kind"] == "fixed"]:
        for first, before, after in row["hunks"]:
            last = first + max(len(before) - 1, 0)
            text = "\n".join(after) if after else "(deleted)"
            rows.append({**row, "kind": "text", "row": first, "last": last, "hunks": None, "lines": text})
    return rows


def report(differences: Iterable[Difference], samples: int) -> Iterator[str]:
    """The lines to print: counts by rule and kind, then samples of each."""
    groups: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    for each in differences:
        groups[each.rule, each.kind].append(each)
    for (rule, kind), members in sorted(groups.items()):
        yield f"{len(members):7} {rule:<8} {kind}"
    yield f"{sum(map(len, groups.values())):7} differences"
    for (rule, kind), members in sorted(groups.items()):
        yield f"\n{rule} {kind}: {len(members)}"
        for each in members[:samples]:
            yield f"  {each.place}"
            for sign, text in (("-", each.old), ("+", each.new)):
                yield from (f"    {sign} {line[:300]}" for line in text.split("\n")[:8] if text)


# ---- commands ----------------------------------------------------------------------------------------------


@click.group()
def main() -> None:
    """Freeze what the program does with a list of repositories."""


def directories_of(given: Iterable[Path]) -> list[Path]:
    """The directories that were given, and those in lists.

    Raises:
        click.UsageError: one does not exist, or two have the same name.
    """
    found: dict[str, Path] = {}
    for path in given:
        lines = [] if path.is_dir() else path.read_text(encoding="utf-8").splitlines()
        for directory in [path] if path.is_dir() else [path.parent / line for line in lines if line]:
            if not directory.is_dir():
                raise click.UsageError(f"{directory} is not a directory")
            if found.setdefault(directory.name, directory.resolve()) != directory.resolve():
                raise click.UsageError(f"two repositories are named {directory.name}")
    return [*found.values()]


def options_of_runs(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--workers", default=os.cpu_count() or 1, help="Repositories at the same time."),
        click.option("--jobs", default=1, help="The program's `--jobs`."),
        click.option("--cached", is_flag=True, help="Run `check` twice and record what the cache gives."),
        click.option("--limit", default=600.0, help="Seconds after which a run is stopped."),
    ):
        function = option(function)
    return function


@main.command("record")
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.argument("given", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--command", required=True, help="The program, as a shell would call it.")
@options_of_runs
def record_command(out: Path, given: tuple[Path, ...], command: str, workers: int, **how: Any) -> None:
    """Record what the program does with each directory, given or listed in a file, into OUT."""
    sys.exit(not record(out, Program(tuple(shlex.split(command)), **how), directories_of(given), workers))


@main.command("compare")
@click.argument("old", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("new", type=click.Path(file_okay=False, path_type=Path))
@click.option("--command", help="First record what this program does with the directories of OLD into NEW.")
@click.option("--rule", default="", help="Only differences of rules whose code begins with this.")
@click.option("--samples", default=3, help="Differences to show of each kind.")
@options_of_runs
def compare_command(
    old: Path, new: Path, command: str | None, rule: str, samples: int, workers: int, **how: Any
) -> None:
    """Print the differences between the records in OLD and NEW."""
    if command is not None:
        given = [Path(next(read(path))["directory"]) for path in sorted(old.glob("*.jsonl.gz"))]
        record(new, Program(tuple(shlex.split(command)), **how), directories_of(given), workers)
    found = [each for each in compare(old, new) if each.rule.startswith(rule)]
    for line in report(found, samples):
        click.echo(line.encode("utf-8", "backslashreplace").decode())
    sys.exit(bool(found))


@main.command("examples")
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
def examples_command(out: Path) -> None:
    """Write the examples of all rules, each as a project of its own, into OUT."""
    from torchmigrate.catalogue.loader import load_directory
    from torchmigrate.catalogue.store import rules_directory

    for item in load_directory(rules_directory()):
        for number, example in enumerate(item.examples, start=1):
            settings = {"minimum": example.minimum, "target": example.target}
            lines = [f'{key} = "{value}"\n' for key, value in settings.items() if value is not None]
            texts = {**example.beside, example.file or "example.py": example.before}
            for name, text in {"torchmigrate.toml": "".join(lines), **texts}.items():
                path = out / f"{item.rule.code}-{number}" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
