"""Whole migrations, which no pattern can say: a folder each, loaded when a file has something for it.

A rule names its codemod as FOLDER.MODULE, and the module has the function `find` of `base.protocol.Codemod`.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torchmigrate.codemods.base.protocol import Codemod


@functools.cache  # called for every file
def codemod(name: str) -> Codemod:
    """The codemod of this name. Raises ImportError if there is none."""
    return cast("Codemod", importlib.import_module(f"{__name__}.{name}"))
