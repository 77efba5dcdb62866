"""What is tried where a project has no tests: its modules are imported, its scripts run with `--help`."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torchmigrate.files.reading import SOURCE, UnreadableError, read
from torchmigrate.patterns import pattern
from torchmigrate.upgrade.workspace import Workspace

_SCRIPT = Path(__file__).with_name("observing") / "torchmigrate_smoke.py"
_ASKS = pattern(rb"\b(?:argparse|click|fire|typer|absl|docopt|optparse|ArgumentParser)\b")
_TESTS = pattern(r"test_[^/]*\.py|[^/]*_test\.py")
# What a module may do when it is imported without being a program.
_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete)
Item = tuple[Any, ...]  # as `observing/torchmigrate_smoke.py` describes them
_SETUP = frozenset(["setup.py", "conf.py", "noxfile.py", "fabfile.py"])


def has_tests(files: Iterable[Path]) -> bool:
    """Whether there are files that pytest would take, with a test in them."""
    for path in files:
        if path.suffix == ".py" and _TESTS.fullmatch(path.name):
            data = _data(path)
            if re.search(rb"^\s*(?:async\s+)?def test|^class \w*Test|TestCase", data, re.MULTILINE):
                return True
    return False


def items(space: Workspace, files: Iterable[Path]) -> tuple[list[Item], int]:
    """What is imported and run in the environment instead of tests, and how many files are left out: they do
    their work when they are imported, and have no help."""
    listed: list[Item] = []
    left_out = 0
    for path in files:
        if path.suffix != ".py" or path.name in _SETUP or _TESTS.fullmatch(path.name):
            continue
        found = list(_items(path, space.project))
        listed += found
        left_out += not found
    return listed, left_out


def command(space: Workspace, listed: Sequence[Item], results: Path | None = None) -> str:
    """What does so. results: the file for the results of functions, in the old environment."""
    text = json.dumps(listed)
    place = space.directory / f"modules-{hashlib.sha256(text.encode()).hexdigest()[:8]}.json"
    place.write_text(text, encoding="utf-8")
    return shlex.join(["python", str(_SCRIPT), str(place), *([] if results is None else [str(results)])])


def calls(project: Path, listed: Iterable[Item], checkout: Path) -> list[Item]:
    """The functions of the imported modules that can be called safely on made inputs.

    checkout: the project where the user may have recorded it.
    """
    from torchmigrate.upgrade.calls import Calls

    modules = {what: path for kind, what, path, *_ in listed if kind == "import"}
    finder = Calls(
        {module: project / path for module, path in modules.items()},
        {module: checkout / path for module, path in modules.items()},
    )
    return [
        ("call", name, path, plan) for module, path in modules.items() for name, plan in finder.of(module)
    ]


def compared(listed: Iterable[Item], results: Path, torch: str) -> list[Item]:
    """The same functions, with what each gave in the old environment; without those that gave nothing."""
    data = results.read_bytes() if results.exists() else b""
    known = {each["id"]: each["old"] for each in map(json.loads, data.splitlines())}
    return [
        (kind, name, path, {**plan, "old": known[name], "torch": torch})
        for kind, name, path, plan in listed
        if name in known
    ]


def _items(path: Path, project: Path) -> Iterator[Item]:
    data = _data(path)
    shown = path.relative_to(project)
    try:
        statements = ast.parse(data).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        statements = []  # its import will report it
    guard = any(_is_guard(statement) for statement in statements)
    if guard and _ASKS.search(data):
        yield "help", shown.as_posix(), shown.as_posix()
    module = _module(shown)
    if module and all(_is_quiet(statement) for statement in statements):
        yield "import", module, shown.as_posix()


def _is_quiet(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, (ast.Constant, ast.Call)) and not _works(statement.value)
    if isinstance(statement, ast.If):
        return _is_guard(statement) or all(map(_is_quiet, [*statement.body, *statement.orelse]))
    return isinstance(statement, (*_DEFINITIONS, *_ASSIGNMENTS, ast.Try, ast.Pass))


def _works(node: ast.expr) -> bool:
    """Whether a call as a statement may be what a program is for: `main()`, not `sys.path.append(...)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _is_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test)


def _module(shown: Path) -> str | None:
    parts = list(shown.with_suffix("").parts)
    if parts[0] == "src":
        parts = parts[1:]
    if parts and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None


def _data(path: Path) -> bytes:
    try:
        return read(path, SOURCE)
    except UnreadableError:
        return b""
