"""What a recorder looks for: the names that rules are about."""

from __future__ import annotations

from torchmigrate.catalogue.index import Catalogue


def recorded_names(catalogue: Catalogue) -> frozenset[str]:
    """The last part of the qualified name of every function, class, method and attribute of a rule.

    Modules are left out: what is used of them has a name of its own.
    """
    names = (
        symbol.rpartition(".")[2] for head in catalogue.heads if not head.files for symbol in head.symbols
    )
    return frozenset(name for name in names if not name.startswith("__"))
