"""What a plan says of a project, beside what happens on the torch that is installed.

    python tools/plan_claims.py PROJECT [--tests tests --tests more] [--skip setup.py] [--json FILE]

PROJECT is a checkout. Its plan is made with `--to` the release of torch that is installed here. Then every
module of it is imported in a process of its own, and its tests run with pytest, with the lines of all places
watched. What the project needs besides torch must be installed. Printed are:

- places that the plan says break on import: whether the import of their module raises at one of their lines;
- files that the plan says cannot be imported since others break: whether that is so;
- imports that raise in torch, or for what torch lacks, at lines of which the plan says nothing;
- places that the plan says raise when they are reached, may raise or change their results: how many tests
  come there, and of these, how many raise there, fail elsewhere, and pass;
- lines at which tests fail in torch, or for what torch lacks, and of which the plan says nothing.

Exit codes: 0 all that could be seen agrees, 1 something does not, 2 nothing could be seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).parent
JUDGED = ("raises", "may_raise", "changes")
TIME_FOR_TESTS = 900  # seconds


@dataclass
class Claim:
    """A place of the plan, with the lines of its decision, and what was seen there."""

    path: str
    rows: frozenset[int]
    effect: str
    code: str
    message: str
    reached: set[str] = field(default_factory=set)  # tests
    raised: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)  # elsewhere

    @property
    def passed(self) -> set[str]:
        return self.reached - self.raised - self.failed

    def __str__(self) -> str:
        return f"{self.path}:{min(self.rows)} {self.code} {self.message}"


def claims_of(project: Path, release: str) -> tuple[list[Claim], dict[str, str]]:
    """What the plan says of a project: of places, and which files cannot be imported through which others."""
    command = [sys.executable, "-m", "torchmigrate", "plan", ".", "--to", release, "--output-format", "json"]
    made = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    if not made.stdout:
        raise click.ClickException(made.stderr.strip())
    plan = json.loads(made.stdout)
    print(plan["headline"])
    through = {
        each["path"]: each["through"] for each in plan["cannot_be_imported"] if each["through"] is not None
    }
    return [
        Claim(
            place["path"],
            frozenset([place["location"]["row"], *place["rows"]]),
            place["effect"],
            place["code"],
            place["message"],
        )
        for place in plan["places"]
        if place["effect"] is not None
    ], through


def modules_of(project: Path, skipped: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """The modules of a project with their dotted names, seen from beside their outermost package."""
    for path in sorted(project.rglob("*.py")):
        inside = path.relative_to(project).as_posix()
        if any(inside == name or inside.startswith(name.rstrip("/") + "/") for name in skipped):
            continue
        top = path.parent
        while (top / "__init__.py").exists():
            top = top.parent
        name = ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__")
        if all(part.isidentifier() for part in name.split(".")):
            yield name, path


def seen(command: str, project: Path, *arguments: str) -> list[dict[str, Any]]:
    """What the watcher beside this file has to tell, one object a line."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "seen.jsonl")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(HERE / "claims"), str(project), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
            "PLAN_CLAIMS_OUT": str(out),
            "PLAN_CLAIMS_PROJECT": str(project),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        whole = [sys.executable, *command.split(), *arguments]
        try:
            done = subprocess.run(
                whole,
                cwd=project,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIME_FOR_TESTS,
                check=False,
            )
            said = done.stdout[-300:] + done.stderr[-300:]
        except subprocess.TimeoutExpired:
            said = "it took too long"
        if not out.exists():
            raise click.ClickException(said)
        return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def imports(
    project: Path, claims: list[Claim], through: dict[str, str], skipped: tuple[str, ...]
) -> list[str]:
    """Compares the imports; the lines that nobody spoke of."""
    modules = list(modules_of(project, skipped))
    names = json.dumps([[name, str(path)] for name, path in modules])
    results = seen("-m watch_imports", project, names)
    raised: dict[tuple[str, int], str] = {}
    others: Counter[str] = Counter()
    for result in results:
        if not result["error"]:
            continue
        if result["about_torch"]:
            for path, row in result["frames"]:
                raised.setdefault((path, row), result["error"])
        else:
            others[result["error"][:100]] += 1
    failed = sum(result["about_torch"] for result in results)
    print(
        f"\nimports: {len(results)} modules, {failed} raise because of torch,"
        f" {sum(others.values())} for other reasons"
    )
    for error, count in others.most_common(5):
        print(f"  not about torch ({count}): {error}")
    tried = {result["path"] for result in results}
    blocked = {result["path"] for result in results if result["error"]}
    wrong = []
    mine = [claim for claim in claims if claim.effect == "breaks_on_import"]
    for claim in mine:
        found = any((claim.path, row) in raised for row in claim.rows)
        claim.raised = {"import"} if found else set()
        why = "as it does" if found else "NOT SEEN"
        if not found and (claim.path not in tried or claim.path in blocked):
            why = "not known: the module could not be imported, or fails before"
        elif not found:
            wrong.append(f"false: {claim}")
        print(f"  breaks on import, {why}: {claim}")
    imported = {result["path"] for result in results if not result["error"]}
    false = sorted(imported.intersection(through))
    print(f"  cannot be imported through others: {len(through)}, of which {len(false)} can")
    wrong += [f"false: {path} can be imported, also with {through[path]}" for path in false]
    known = {(claim.path, row) for claim in mine for row in claim.rows}
    # Of a chain of imports, the last line in the project is where it raises.
    last = {
        tuple(result["frames"][-1]): result["error"]
        for result in results
        if result["about_torch"] and result["frames"]
    }
    missed = [
        f"missed: {path}:{row} {error[:150]}"
        for (path, row), error in sorted(last.items())
        if (path, row) not in known
    ]
    for line in missed:
        print(f"  {line}")
    return wrong + missed


def tests(project: Path, claims: list[Claim], paths: tuple[str, ...], options: tuple[str, ...]) -> list[str]:
    """Compares what the tests say; what was false and what was missed."""
    watched: defaultdict[str, set[int]] = defaultdict(set)
    for claim in claims:
        watched[claim.path] |= claim.rows
    lines = json.dumps({path: sorted(rows) for path, rows in watched.items()})
    os.environ["PLAN_CLAIMS_LINES"] = lines
    options = ("-p", "watch_tests", "-p", "no:cacheprovider", "-q", "-o", "addopts=", *options)
    results = seen("-m pytest --continue-on-collection-errors", project, *options, *paths)
    at: defaultdict[tuple[str, int], list[Claim]] = defaultdict(list)
    for claim in claims:
        for row in claim.rows:
            at[claim.path, row].append(claim)
    counts = Counter(result["outcome"] for result in results)
    print(f"\ntests: {dict(counts)}")
    missed: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for result in results:
        for path, row in result["reached"]:
            for claim in at[path, row]:
                claim.reached.add(result["id"])
        if result["outcome"] != "failed":
            continue
        frames = [tuple(frame) for frame in result["frames"]]
        here = [claim for frame in frames for claim in at[frame] if claim.effect != "warns"]
        for claim in claims:
            if result["id"] in claim.reached or claim in here:
                (claim.raised if claim in here else claim.failed).add(result["id"])
                claim.reached.add(result["id"])
        # What raises in a property, or under a `try`, shows as another error elsewhere.
        behind = any(result["id"] in claim.reached for claim in claims if claim.effect == "raises")
        if result["about_torch"] and not here and not behind and frames:
            path, row = frames[-1]
            missed[f"missed: {path}:{row} {result['error'][:150]}"] += 1
        elif not here and not behind:
            others[result["error"][:100]] += 1
    wrong = []
    for claim in claims:
        if claim.effect in JUDGED:
            print(
                f"  {claim.effect}: reached by {len(claim.reached)} tests, {len(claim.raised)} raise there,"
                f" {len(claim.failed)} fail elsewhere, {len(claim.passed)} pass: {claim}"
            )
        if claim.effect == "raises" and claim.passed and not claim.raised:
            wrong.append(f"false: {claim}")
    for error, count in others.most_common(5):
        print(f"  not about torch ({count}): {error}")
    for line, count in missed.most_common(30):
        print(f"  {line} ({count} tests)")
    return wrong + list(missed)


@click.command(help=__doc__)
@click.argument("project", type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True))
@click.option("--tests", "test_paths", multiple=True, help="What pytest runs. [default: nothing]")
@click.option("--skip", multiple=True, help="A file or directory of which no module is imported.")
@click.option("--option", multiple=True, help="An option for pytest.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the numbers to this file.")
def main(
    project: Path,
    test_paths: tuple[str, ...],
    skip: tuple[str, ...],
    option: tuple[str, ...],
    output: Path | None,
) -> None:
    import importlib.metadata

    release = ".".join(importlib.metadata.version("torch").split(".")[:2])
    claims, through = claims_of(project, release)
    print(f"plan: {dict(Counter(claim.effect for claim in claims))}")
    wrong = imports(project, claims, through, skip)
    if test_paths:
        wrong += tests(project, claims, test_paths, option)
    print(f"\n{len(wrong)} that do not agree")
    for line in wrong:
        print(f"  {line}")
    if output is not None:
        numbers = {
            "claimed": Counter(claim.effect for claim in claims),
            "seen": Counter(claim.effect for claim in claims if claim.raised),
            "reached": Counter(claim.effect for claim in claims if claim.reached),
            "wrong": wrong,
        }
        output.write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
