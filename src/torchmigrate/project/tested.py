"""Which names in tests a file has from other files of its project: `if utils.TORCH_IS_NEW:`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from torchmigrate.project.mentions import Name
from torchmigrate.semantics.guards.tests import may_mark
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Binding, BindingKind, SemanticModel
from torchmigrate.source.trees import last_name

# A name that seems to say which release there is: `TORCH_GE_1_8`, `is_torch_version`, `skip_if_torch_lt`.
_PROMISES = re.compile(
    "torch.*(?:[0-9]|version|greater|less|higher|lower|newer|older|later|min|max|after|before|_[gl][te])"
    "|(?:version|_[gl][te]_|min|max).*torch"
)


def tested_names(names: SemanticModel, path: Path, *, promising: bool = False) -> dict[str, Name]:
    """The imported names of which a test, or a decorator, of a file asks, by what they are called there.

    promising: none, unless one of them seems to be about a version by its name.
    """
    foreign = [binding for binding in names.imports if not _is_of_library(binding)]
    if promising and not any(_PROMISES.search(binding.name.lower()) for binding in foreign):
        return {}
    asked = {name for test in names.asked for name in _asked(test)}
    found = {}
    for binding in foreign:
        name = _imported(binding, path.parent.parts) if binding.name in asked else None
        if name is not None:
            found[binding.name] = name
    return found


def _is_of_library(binding: Binding) -> bool:
    return (binding.target or "").partition(".")[0] in LIBRARY_ROOTS


def _asked(test: ast.expr) -> Iterator[str]:
    """The names of which the outcome of a test may be that of versions: not what functions are given."""
    waiting = [test]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute | ast.Subscript | ast.NamedExpr):
            waiting.append(node.value)
        elif isinstance(node, ast.BoolOp):
            waiting += node.values
        elif isinstance(node, ast.UnaryOp):
            waiting.append(node.operand)
        elif isinstance(node, ast.Compare):
            waiting += (node.left, *node.comparators)
        elif isinstance(node, ast.Call):
            waiting.append(node.func)
            if may_mark(last_name(node.func)):
                waiting += (*node.args, *(keyword.value for keyword in node.keywords))


def _imported(binding: Binding, directory: tuple[str, ...]) -> Name | None:
    """What an import binds; None for the first part of `import a.b`."""
    target = binding.target or ""
    inside = target.lstrip(".")
    level = len(target) - len(inside)
    if not inside or (binding.kind is BindingKind.IMPORT and binding.module != target):
        return None
    base = directory[: len(directory) - level + 1] if level else None
    return Name(base, tuple(inside.split(".")))
