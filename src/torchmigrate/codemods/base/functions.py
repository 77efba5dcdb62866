"""The functions of the file that codemods look at."""

from __future__ import annotations

from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.functions import Functions

_PLAN = "functions of the file"


def functions_of(file: FileContext) -> Functions:
    """The functions of a file, which is read once."""
    return file.once(_PLAN, lambda: Functions(file.tree))
