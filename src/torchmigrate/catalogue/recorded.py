"""What a recorder looks for: the names that rules are about."""

from __future__ import annotations

from torchmigrate.catalogue.index import Catalogue

_TENSOR = "torch.Tensor."
# What every program calls all the time, and hardly ever on an object of torch.
_OF_CONTAINERS = frozenset(name for kind in (list, dict, set, str) for name in dir(kind))


def recorded_names(catalogue: Catalogue) -> frozenset[str]:
    """The last part of the qualified name of every function, class, method, attribute or operator of a rule.

    Modules are left out: what is used of them has a name of its own.
    """
    from torchmigrate.evidence.inject.torchmigrate_recorder import OPERATORS  # which is long

    symbols = [symbol for head in catalogue.heads if not head.files for symbol in head.symbols]
    names = {symbol.rpartition(".")[2]: symbol for symbol in sorted(symbols)}
    names.update((symbol.removeprefix(_TENSOR), symbol) for symbol in symbols if symbol.startswith(_TENSOR))
    return frozenset(
        name
        for name, symbol in names.items()
        if (not name.startswith("__") and (name not in _OF_CONTAINERS or symbol.startswith(_TENSOR)))
        or (name in OPERATORS and symbol.startswith(_TENSOR))
    )
