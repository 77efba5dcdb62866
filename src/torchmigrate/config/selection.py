"""Which rules a run looks for: codes, prefixes, names, groups and `ALL`, in layers, as in ruff."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from torchmigrate.patterns import pattern

ALL = "ALL"
_PREFIX = pattern(r"([A-Z]+)[0-9]*")


class Selectable(Protocol):
    """What selecting needs to know of a rule."""

    @property
    def code(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def opt_in(self) -> bool: ...
    @property
    def group(self) -> str | None: ...


class SelectorError(ValueError):
    """A selector that fits no rule."""


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A suggestion to append to a message: "; did you mean `x`?", or nothing."""
    import difflib

    if len(word) > 100:
        return ""
    folded = {key.lower(): key for key in known}
    close = difflib.get_close_matches(word.lower(), list(folded), n=1)
    return f"; did you mean `{folded[close[0]]}`?" if close else ""


def codes_of(selector: str, rules: Iterable[Selectable]) -> tuple[int, frozenset[str]]:
    """How specific a selector is (more is more) and the codes that it stands for.

    Raises SelectorError, with a suggestion, when it stands for none.
    """
    rules = list(rules)
    if selector == ALL:
        return 0, frozenset(rule.code for rule in rules)
    exact = frozenset(rule.code for rule in rules if selector in (rule.code, rule.name))
    if exact:
        return 1000, exact
    grouped = frozenset(rule.code for rule in rules if selector == rule.group)
    if grouped:
        return 100, grouped
    prefix = _PREFIX.fullmatch(selector)
    if prefix:
        # "T" is not a prefix of TM131: the letters name the tool and are not divided.
        fitting = frozenset(
            rule.code
            for rule in rules
            if rule.code.startswith(selector) and not rule.code[len(prefix.group(1))].isalpha()
        )
        fitting = fitting or _of_torchfix(selector, rules)
        if fitting:
            return len(selector), fitting
    if "." in selector:
        raise SelectorError(
            f"unknown rule `{selector}`: `torchmigrate explain {selector}` says which rule finds it"
        )
    raise SelectorError(f"unknown rule `{selector}`{did_you_mean(selector, [*selectors(rules), ALL])}")


def selectors(rules: Iterable[Selectable]) -> dict[str, None]:
    """What selects rules, besides prefixes and `ALL`: every code, name and group."""
    return dict.fromkeys(key for rule in rules for key in (rule.code, rule.name, rule.group) if key)


def _of_torchfix(selector: str, rules: Iterable[Selectable]) -> frozenset[str]:
    """The codes that a code of TorchFix, or the beginning of one, stands for."""
    if not selector.startswith("TOR"):
        return frozenset()
    from torchmigrate.config.torchfix_codes import ours

    return ours(selector) & {rule.code for rule in rules}


def union(selectors: Iterable[str], rules: Sequence[Selectable]) -> frozenset[str]:
    """All codes that any of the selectors stands for. Raises SelectorError."""
    return frozenset().union(*(codes_of(selector, rules)[1] for selector in selectors))


def default_codes(rules: Iterable[Selectable]) -> frozenset[str]:
    """What is looked for when nothing is selected."""
    return frozenset(rule.code for rule in rules if not rule.opt_in)


def apply_layer(
    current: frozenset[str],
    rules: Sequence[Selectable],
    *,
    select: Sequence[str] | None,
    extend_select: Sequence[str],
    ignore: Sequence[str],
) -> frozenset[str]:
    """What is selected after one layer (a configuration file, then the command line).

    `select` starts afresh; without it the layer changes what the layers before have left. Within a layer
    the more specific selector wins, and `ignore` wins among equals. Raises SelectorError.
    """
    wanted: list[tuple[int, bool, frozenset[str]]] = []  # how specific, ignored?, codes; the last one wins
    for selector in (*(select or ()), *extend_select):
        specific, codes = codes_of(selector, rules)
        wanted.append((specific, False, codes))
    for selector in ignore:
        specific, codes = codes_of(selector, rules)
        wanted.append((specific, True, codes))
    chosen = set(current) if select is None else set()
    for _, ignored, codes in sorted(wanted, key=lambda entry: entry[:2]):
        if ignored:
            chosen -= codes
        else:
            chosen |= codes
    return frozenset(chosen)
