"""Generates, fixes, compares: the parts of the check put together."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from torchmigrate.canonical import canonical
from torchmigrate.catalogue.store import default_catalogue
from working.library import Pair
from working.lines import Library, Line, files

TOOLS = Path(__file__).parents[1]
MEANT = Path(__file__).with_name("meant.yaml")
_CRASHES = 20  # modules that may end the process that imports them


class Outcome(NamedTuple):
    """What a check found. differences: what a line was and became, and what is wrong with it."""

    lines: int
    changed: int
    differences: list[str]


def read_library() -> Library:
    """Every module that can be imported, by a process of its own."""
    left_out: list[str] = []
    text = ""
    for _ in range(_CRASHES):
        done = _worker("names", json.dumps(left_out))
        text = done.stdout
        begun = text.rpartition("\n")[2]
        if not begun and not done.returncode:
            break
        left_out.append(begun.partition('"module": "')[2].partition('"')[0])
    else:
        raise RuntimeError(f"importing ends the process: {', '.join(left_out)}")
    found = [json.loads(line) for line in text.splitlines()]
    return {item["module"]: item["names"] for item in found if item["names"] is not None}


def named_by_rules() -> Callable[[str], bool]:
    """Whether a rule names a qualified name, in one of its spellings."""
    rules = default_catalogue()
    named = rules.by_symbol.keys() | rules.by_module.keys()
    return lambda name: name in named or canonical(name) in named


def check(lines: Sequence[Line], command: Sequence[str], directory: Path) -> Outcome:
    """Fix lines by a program (`torchmigrate check --fix` and what else it is given), and run what changed.

    directory: an empty one, for the files.

    Raises:
        RuntimeError: the program failed.
    """
    old: dict[Path, str] = {}
    for number, text in enumerate(files(lines)):
        path = directory / f"lines{number}.py"
        path.write_text(text, encoding="utf-8")
        old[path] = text
    done = subprocess.run(
        [*command, "--statistics", str(directory)], capture_output=True, text=True, cwd=directory, check=False
    )
    if done.returncode > 1 or "error:" in done.stderr:
        raise RuntimeError(done.stderr or done.stdout)
    pairs: list[Pair] = []
    for path, text in old.items():
        new = path.read_text(encoding="utf-8")
        pairs += _changed(path.stem, text, new) if new != text else ()
    listed = yaml.safe_load(MEANT.read_text(encoding="utf-8"))
    meant = [pair for item in listed for pair in item["names"].items()]
    answers = _worker("compare", "".join(f"{json.dumps(item)}\n" for item in (meant, *pairs)))
    if answers.returncode:
        raise RuntimeError(answers.stderr)
    by_label = {pair.label: pair for pair in pairs}
    differences = []
    for line in answers.stdout.splitlines():
        answer = json.loads(line)
        pair = by_label[answer["label"]]
        differences.append(
            f"{_shown(pair.old)}  ->  {_shown(pair.new, pair.imports)}  {answer['difference']}"
        )
    return Outcome(len(lines), len(pairs), sorted(differences))


def _worker(task: str, given: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(TOOLS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, "-m", "working.library", task],
        input=given,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def _changed(label: str, old: str, new: str) -> Iterator[Pair]:
    """The functions that are not what they were."""
    before = {node.name: node for node in ast.parse(old).body if isinstance(node, ast.FunctionDef)}
    top = [node for node in ast.parse(new).body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in ast.parse(new).body:
        if isinstance(node, ast.FunctionDef) and ast.dump(node) != ast.dump(before[node.name]):
            used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            imports = [
                ast.unparse(statement)
                for statement in top
                if any((alias.asname or alias.name.partition(".")[0]) in used for alias in statement.names)
            ]
            yield Pair(
                f"{label}.{node.name}", ast.unparse(before[node.name]), ast.unparse(node), "\n".join(imports)
            )


def _shown(function: str, imports: str = "") -> str:
    body = [line.strip() for line in function.splitlines()[1:]]
    return "; ".join([*imports.splitlines(), *body])
