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

from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.semantics.public_names import public_name
from working.library import Pair
from working.lines import Library, Line, Members, files

TOOLS = Path(__file__).parents[1]
MEANT = Path(__file__).with_name("meant.yaml")
_CRASHES = 20  # modules that may end the process that imports them


class Outcome(NamedTuple):
    """What a check found. differences: what a line was and became, and what is wrong with it."""

    lines: int
    changed: int
    differences: list[str]


def read_library(python: str = sys.executable) -> Library:
    """Every module that an interpreter can import."""
    left_out: list[str] = []
    text = ""
    for _ in range(_CRASHES):
        done = _worker(python, "names", json.dumps(left_out))
        text = done.stdout
        begun = text.rpartition("\n")[2]
        if not begun and not done.returncode:
            break
        left_out.append(begun.partition('"module": "')[2].partition('"')[0])
    else:
        raise RuntimeError(f"importing ends the process: {', '.join(left_out)}")
    found = [json.loads(line) for line in text.splitlines()]
    return {item["module"]: Members(*item["names"]) for item in found if item["names"] is not None}


def installed_release(python: str = sys.executable) -> str:
    """The release of torch that an interpreter has, such as "2.13": what is newer than it cannot be run.

    Raises:
        subprocess.CalledProcessError: there is none.
    """
    code = "import importlib.metadata as m; print(m.version('torch'))"
    text = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    return ".".join(text.split(".")[:2])


def named_by_rules() -> Callable[[str], bool]:
    """Whether a rule names a qualified name, in one of its spellings, or a module that it is in."""
    rules = default_catalogue()

    def named(name: str) -> bool:
        if name in rules.by_symbol or public_name(name) in rules.by_symbol:
            return True
        parts = name.split(".")
        return any(".".join(parts[:end]) in rules.by_module for end in range(1, len(parts) + 1))

    return named


def check(
    lines: Sequence[Line], command: Sequence[str], directory: Path, python: str = sys.executable
) -> Outcome:
    """Fix lines by a program (`torchmigrate check --fix` and what else it is given), and run what changed.

    directory: an empty one, for the files.

    Raises:
        RuntimeError: the program failed.
    """
    pairs = changes(lines, command, directory)
    return Outcome(len(lines), len(pairs), differences(pairs, python))


def changes(lines: Sequence[Line], command: Sequence[str], directory: Path) -> list[Pair]:
    """The functions that a program fixes. Arguments and errors are those of `check`."""
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
        pairs += _changed(str(path.with_suffix("")), text, new) if new != text else ()
    return pairs


def differences(pairs: Sequence[Pair], python: str = sys.executable) -> list[str]:
    """What functions were and became that give another result after their fix, and what is wrong with it."""
    listed = yaml.safe_load(MEANT.read_text(encoding="utf-8"))
    meant = [pair for item in listed for pair in item["names"].items()]
    answers = _worker(python, "compare", "".join(f"{json.dumps(item)}\n" for item in (meant, *pairs)))
    if answers.returncode:
        raise RuntimeError(answers.stderr)
    by_label = {pair.label: pair for pair in pairs}
    found = []
    for line in answers.stdout.splitlines():
        answer = json.loads(line)
        pair = by_label[answer["label"]]
        found.append(
            f"{_shown(pair.old, pair.before)}  ->  {_shown(pair.new, pair.imports)}  {answer['difference']}"
        )
    return sorted(found)


def _worker(python: str, task: str, given: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(TOOLS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [python, "-m", "working.library", task],
        input=given,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def _changed(label: str, old: str, new: str) -> Iterator[Pair]:
    """The functions that are not what they were."""
    first, second = ast.parse(old), ast.parse(new)
    before = {node.name: node for node in first.body if isinstance(node, ast.FunctionDef)}
    changed_top = _imports(first, None) != [item for item in _imports(second, None) if "*" in item]
    for node in second.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        old_node = before[node.name]
        new_code, old_code = ast.unparse(node), ast.unparse(old_node)
        if changed_top or new_code != old_code:
            label_of = f"{label}.{node.name}"
            tops = ("\n".join(_imports(tree, item)) for tree, item in ((first, old_node), (second, node)))
            yield Pair(label_of, old_code, new_code, *tops)


def _imports(tree: ast.Module, function: ast.FunctionDef | None) -> list[str]:
    """The imports at the top of a file; those that a function uses, if one is given."""
    used = {name.id for name in ast.walk(function) if isinstance(name, ast.Name)} if function else set()
    return [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and (
            function is None
            or any(
                alias.name == "*" or (alias.asname or alias.name.partition(".")[0]) in used
                for alias in node.names
            )
        )
    ]


def _shown(function: str, imports: str = "") -> str:
    body = [line.strip() for line in function.splitlines()[1:]]
    return "; ".join([*imports.splitlines(), *body])
