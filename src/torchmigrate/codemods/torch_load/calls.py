"""Calls of `torch.load` and `torch.save`: what they read and write, and where."""

from __future__ import annotations

import ast

from torchmigrate.project.checkpoints import keyword_value
from torchmigrate.source.trees import walk

# Calls that give the same each time.
_STEADY = frozenset(["join", "joinpath", "format", "str", "Path", "abspath", "realpath", "expanduser"])


def called_name(call: ast.Call) -> str:
    """The last name of what is called."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def path_of(call: ast.Call) -> ast.expr | None:
    """Where `torch.save` writes to."""
    return call.args[1] if len(call.args) > 1 else keyword_value(call, "f")


def written_by(call: ast.Call) -> ast.expr | None:
    """What `torch.save` writes."""
    return call.args[0] if call.args else keyword_value(call, "obj")


def read_from(call: ast.Call) -> ast.expr | None:
    """Where `torch.load` reads."""
    return call.args[0] if call.args else keyword_value(call, "f")


def steady_path(call: ast.Call) -> str | None:
    """Where `torch.load` reads, as text, where it is the same each time that it is worked out."""
    path = read_from(call)
    return ast.dump(path) if path is not None and is_steady(path) else None


def is_steady(path: ast.expr) -> bool:
    """Whether a path is the same each time that it is worked out."""
    return all(called_name(node) in _STEADY for node in walk(path) if isinstance(node, ast.Call))
