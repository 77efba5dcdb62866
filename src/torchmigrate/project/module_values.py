"""What a module says of versions, and of what there is, to the files that import it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torchmigrate.project.own_packages import own_packages
from torchmigrate.project.screening import may_ask
from torchmigrate.semantics.formulas import HasName
from torchmigrate.semantics.guards.functions import may_answer, may_refuse
from torchmigrate.semantics.guards.spellings import compares_versions
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Const, Flag, Foreign, Local, Mark, QualifiedName, Value, VersionOf
from torchmigrate.semantics.walk.resolver import module_values
from torchmigrate.source.text import Source, SourceError
from torchmigrate.source.trees import last_name, walk

NO_TREE = ast.Module([], [])  # of a module that is only read for its names
_ASKS = frozenset(["hasattr", "getattr", "find_spec", "signature", "importlib"])


class ModuleValues:
    """What names are in a module, for other files: its functions are theirs to call."""

    def __init__(self, values: Callable[[ast.expr], Value]) -> None:
        self._values = values
        self._telling: dict[ast.FunctionDef, bool] = {}

    def __call__(self, node: ast.expr) -> Value:
        value = self._values(node)
        if (name := _maybe_missing(value)) is not None:
            return (Flag(HasName(name)),)  # what asks whether it is None asks that
        return tuple(
            Foreign(item.name, item.node, self)
            if isinstance(item, Local) and isinstance(item.node, ast.FunctionDef) and self._tells(item.node)
            else item
            for item in value
        )

    def _tells(self, function: ast.FunctionDef) -> bool:
        """Whether a function answers a test of versions, or of what there is."""
        if function not in self._telling:
            self._telling[function] = False  # of one that calls itself
            asks = may_answer(function) or may_refuse(function)
            self._telling[function] = asks and any(map(self._is_telling, walk(function)))
        return self._telling[function]

    def _is_telling(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call) and compares_versions(last_name(node.func)):
            return True  # which may be from yet another file
        if isinstance(node, ast.Attribute):
            return node.attr == "__version__"
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return node.id in _ASKS or any(
                isinstance(item, (Flag, VersionOf, Mark, Foreign)) for item in self(node)
            )
        return isinstance(node, ast.Try)


def _maybe_missing(value: Value) -> str | None:
    """`vmap` after `try: from torch.func import vmap / except ImportError: vmap = None`."""
    names = {item.name for item in value if isinstance(item, QualifiedName)}
    rest = [item for item in value if not isinstance(item, QualifiedName)]
    if len(names) != 1 or rest != [Const(None)]:
        return None
    (name,) = names
    return name if name.partition(".")[0] in LIBRARY_ROOTS else None


def values_of(path: Path, data: bytes | None) -> ModuleValues | None:
    """What the names of a module are, by its content; None where it tests nothing, or cannot be parsed."""
    if data is None or not may_ask(data):
        return None
    try:
        source = Source.from_bytes(data, path)
        roots = LIBRARY_ROOTS - own_packages(path)
        return ModuleValues(module_values(source.parse(), source, roots=roots))
    except (SourceError, RecursionError):
        return None


def by_local(said: Mapping[str, Value]) -> dict[str, Value]:
    """What imported names are, where `package.compat.NEW` is what a test asks of one of them."""
    found = {name: value for name, value in said.items() if "." not in name}
    for name, value in said.items():
        local, *attributes = name.split(".")
        if attributes:
            found[local] = _with(found.get(local, ()), attributes, value)
    return found


def _with(held: Value, attributes: Sequence[str], value: Value) -> Value:
    """A module with its known value, extended by what is below it."""
    before = held[0].evaluate if len(held) == 1 and isinstance(held[0], Foreign) else None
    name, rest = attributes[0], attributes[1:]

    def evaluate(node: ast.expr) -> Value:
        known = before(node) if before is not None else ()
        if not isinstance(node, ast.Name) or node.id != name:
            return known
        return _with(known, rest, value) if rest else value

    return (Foreign(name, NO_TREE, evaluate),)


def is_about_tests(value: Value) -> bool:
    """Whether all that a name may be is for tests: of versions, of what there is, or constants."""
    return bool(value) and all(isinstance(item, (Flag, VersionOf, Mark, Const, Foreign)) for item in value)


def is_telling(value: Value) -> bool:
    """Whether that says more than a switch does; `MINIMUM = (1, 8)` is what a version is compared with."""
    return any(not isinstance(item, Const) or _is_version(item.value) for item in value)


def _is_version(value: object) -> bool:
    return value is not None and not isinstance(value, bool)
