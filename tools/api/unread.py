"""Settings of configuration modules that nothing in the library reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from api.tree import Tree
from torchmigrate.versions.surface_model import ApiEntry, EntryKind

_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"#.*")
# What C++ reads, of all that no Python does: searched for in the library of torch 2.13.
_READ_BY_COMPILED = frozenset(["max_saved_pointers_for_recursive_dict_tags_check"])


def unread(entries: Mapping[str, ApiEntry], tree: Tree) -> dict[str, ApiEntry]:
    """The entries of the settings whose names are in no module but their own, and there only once, so marked.

    One that is another name of a setting is read for that.
    """
    modules = {
        name: tree.modules[name]
        for name, entry in entries.items()
        if entry.kind is EntryKind.MODULE and entry.bases and name in tree.modules
    }
    if not modules:
        return {}
    own: Counter[str] = Counter()
    for path in modules.values():
        own.update(_WORD.findall(_COMMENT.sub("", _text(path))))
    elsewhere: set[str] = set()
    for name, path in tree.modules.items():
        if name not in modules:
            elsewhere.update(_WORD.findall(_text(path)))
    return {
        name: replace(entry, unread=True)
        for name, entry in entries.items()
        if entry.kind is EntryKind.VALUE
        and not entry.target
        and any(name.startswith(f"{module}.") for module in modules)
        and own[last := name.rpartition(".")[2]] == 1
        and last not in elsewhere
        and last not in _READ_BY_COMPILED
    }


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
