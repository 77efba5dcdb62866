"""`read_release`: what one release of a library offers.

Two things share a name when a package re-exports a function that is called like its submodule
(`torch.nn.parallel.data_parallel`). The entry is the function's then, and the names in the submodule are
listed below it all the same: a lookup tries the full name before it follows aliases or asks for members.

Dunder names are not listed, but for `__version__`. Members of classes in C++ modules are listed only where
something refers to them (`torch._C.TensorBase`).
"""

from __future__ import annotations

from pathlib import Path

from api.link import Linker
from api.modules import Modules
from api.tree import find
from api.unread import unread
from torchmigrate.versions.surface_model import ApiEntry, EntryKind

# Namespaces that look their names up when they are asked for.
_OPEN = {"torch": ("torch.ops", "torch.classes")}


def read_release(library: str, sources: Path) -> dict[str, ApiEntry]:
    """The names of `library`, read from `sources`, the directory where its wheel was unpacked.

    Raises FileNotFoundError if it is not there.
    """
    return link(library, sources).entries


def link(library: str, sources: Path) -> Linker:
    """The same, with what `check` wants to know beside the entries."""
    linker = Linker(Modules(find(library, sources)))
    linker.link()
    for name in _OPEN.get(library, ()):
        if name in linker.entries:
            linker.entries[name] = ApiEntry(EntryKind.MODULE, open=True)
    linker.entries.update(unread(linker.entries, linker.tree))
    return linker
