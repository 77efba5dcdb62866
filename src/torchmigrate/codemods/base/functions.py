"""The functions of the file that codemods look at."""

from __future__ import annotations

import ast

from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.functions import Functions

_PLAN = "functions of the file"
_SCRIPTS = frozenset(
    f"torch.jit.{name}" for name in ("script", "script_method", "export", "script_if_tracing")
)


def functions_of(file: FileContext) -> Functions:
    """The functions of a file, which is read once."""
    return file.once(_PLAN, lambda: Functions(file.tree))


def is_scripted(node: ast.AST, file: FileContext) -> bool:
    """Whether a node is in a function or class that a decorator gives to TorchScript."""
    home = file.flow.index.home_of(node)
    while home is not None:
        if any(file.names.qualified(mark) in _SCRIPTS for mark in getattr(home, "decorator_list", ())):
            return True
        home = file.flow.index.home_of(home)
    return False
