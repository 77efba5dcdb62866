"""Whole migrations, which no pattern can say: a folder each, loaded when a file has something for it.

A rule names its codemod as FOLDER.MODULE, and the module has the function `find` of `base.protocol.Codemod`.
Installed packages bring others, under such names (`catalogue.installed`).
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
    try:
        return cast("Codemod", importlib.import_module(f"{__name__}.{name}"))
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith(__name__):
            raise
    from torchmigrate.codemods.base.installed import Installed

    return cast("Codemod", Installed(name))
