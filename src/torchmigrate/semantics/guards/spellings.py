"""What names like `TORCH_GE_1_8` and `is_torch_min_version("1.8")` promise.

Projects define such constants and helpers in one module and test them in all others, where only the name is
visible. The patterns ask for the library's name and, for constants, digits that are set apart: `TORCH_GE_18`
says nothing. A comparison in words may be missing: `TORCH_1_8` is what that release brought, so that later
ones have it too. `IS_TORCH_1_8` says nothing (at least, or exactly?).
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from torchmigrate.semantics.model import VersionOf

# Comparison in words -> operator.
_WORDS = {
    ">=": "ge gte geq gt_or_eq gt_or_equal greater_equal greater_equal_than greater_or_equal"
    " greater_or_equal_than greater_or_equal_to greater_than_or_equal greater_than_or_equal_to"
    " higher_equal higher_or_equal equal_or_greater equal_or_newer equal_or_higher newer_or_equal at_least"
    " after since",
    ">": "gt greater greater_than higher higher_than newer newer_than later_than",
    "<=": "le lte leq lt_or_eq lt_or_equal less_equal less_equal_than less_or_equal less_or_equal_than"
    " less_than_or_equal lower_equal lower_or_equal at_most",
    "<": "lt less less_than lesser lesser_than lower lower_than older older_than below before",
}
_OPERATORS = {word: op for op, words in _WORDS.items() for word in words.split()}
_WORD = "(?P<word>" + "|".join(sorted(_OPERATORS, key=len, reverse=True)) + ")"
_LIBRARY = "(?P<library>pytorch|torchvision|torchaudio|torchtext|torchdata|torch)"
_NUMBERS = r"(?P<numbers>\d+(?:_\d+){0,3})"

_OWNER = rf"_*(?:is_|has_|use_|check_)?{_LIBRARY}_"

# Patterns of lower-case names; compiled when the first candidate shows up, since that takes a while.
_CONSTANTS = (
    # _TORCH_GREATER_EQUAL_1_8, TORCH_VERSION_GE_2_4, is_torch_less_than_1_8, TORCHVISION_LT_0_13
    rf"{_OWNER}(?:version_)?(?:is_)?{_WORD}_{_NUMBERS}(?:_dev)?_*",
    # GE_TORCH_1_8, GT_OR_EQUAL_TORCH_VERSION_2_5
    rf"_*(?:is_|has_)?{_WORD}_{_LIBRARY}_(?:version_)?{_NUMBERS}_*",
    # TORCH_2_0_OR_NEWER, IS_TORCH_2_PLUS
    rf"{_OWNER}{_NUMBERS}_(?:plus|(?:or|and)_(?:newer|later|above|higher|up))_*",
    # TORCH_2_4, torch_1_10
    rf"_*(?:has_)?{_LIBRARY}_(?P<numbers>\d+_\d+(?:_\d+)?)_*",
)
_HELPERS = (
    # torch_version_ge, pytorch_after, is_torch_greater_or_equal_than
    rf"{_OWNER}(?:version_)?(?:is_)?{_WORD}(?:_version)?_*",
    # is_torch_min_version, min_torch_version
    rf"{_OWNER}min(?:imum)?_version_*",
    rf"_*(?:is_|has_|check_)?min(?:imum)?_{_LIBRARY}_version_*",
)
# Decorators: require_torch_version_greater_equal, require_torch_2_0, require_torch_min_version,
# needs_torch_ge; and those that skip: skip_if_torch_lt, skipIfBeforePyTorchVersion, skip_torch_gt_2_0.
_REQUIRES = r"_*(?:requires?|needs?|only|run)_(?:if_|for_|on_|with_)?(?:is_)?"
_SKIPS = r"_*skip_(?:test_)?(?:if_|for_|on_|when_)?(?:is_)?"
_COMPARED = (
    rf"{_LIBRARY}_(?:version_)?(?:is_)?{_WORD}(?:_version)?(?:_{_NUMBERS})?_*",
    rf"{_WORD}_{_LIBRARY}(?:_version)?(?:_{_NUMBERS})?_*",
    rf"(?:version_)?(?P<limit>min|max)(?:imum)?_{_LIBRARY}(?:_version)?_*",
    rf"{_LIBRARY}_(?:version_)?(?P<limit>min|max)(?:imum)?(?:_version)?_*",
)
_MARKS = tuple(start + end for start in (f"(?P<requires>{_REQUIRES})", _SKIPS) for end in _COMPARED)
_NUMBERED = rf"(?P<requires>{_REQUIRES}){_LIBRARY}_(?:version_)?{_NUMBERS}(?:_plus)?_*"
_LIMIT = rf"(?P<limit>min|max)_{_LIBRARY}(?:_version)?"
_WITH_LIMITS = r"_*(?:run|skip)_?if_*"
# required_torch_version(min_version=1.8), obsolete_torch_version(TORCH_VERSION, (1, 4))
_WITH_BOUNDS = rf"_*(?:is_|has_|check_)?(?:requires?_|required_)?{_LIBRARY}_version(?:_range)?_*"
_OBSOLETE = rf"_*(?:is_)?obsolete_{_LIBRARY}_version_*"
_WITH_OPERATOR = rf"_*(?:is|check|compare)?_*{_LIBRARY}_version_*"
_TWO_SIDED = (rf"_*{_WORD}_version_*", rf"_*version_{_WORD}_*")
_COMPARE = r"_*compare_versions?_*"
_CHECK = r"_*check_versions?_*"
_VERSION = (
    rf"_*(?:get_|installed_|current_|cur_|base_)*{_LIBRARY}_*ver(?:sions?|s)?"
    r"(?:_(?:tuple|info|parsed|str|string|number|num|float))?_*"
)
# TORCH_VERSION_2_11_0, VERSION_2_1, V_2_1: what a version is compared with.
_WRITTEN = (
    r"_*(?:py)?(?:torch(?:vision|audio)?_)?(?:min_|max_)?(?:v|ver|version)?_?(?P<numbers>\d+(?:_\d+){1,3})_*"
)
_PART = rf"_*(?:get_)?{_LIBRARY}_(?:ver_|version_)?(?P<part>major|minor)(?:_ver|_version)?_*"
_AVAILABLE = r"_*(?:is_|has_)?_*(?:module|package)_(?:is_)?(?:available|installed|exists)_*"

_DISTRIBUTIONS = {
    name: name
    for name in (
        *("torch", "torchvision", "torchaudio", "torchtext", "torchdata", "functorch"),
        *("torchao", "torchcodec", "torchmetrics", "transformers", "lightning", "pytorch_lightning"),
    )
} | {"pytorch": "torch", "pytorch-lightning": "pytorch_lightning"}


_compiled = cache(re.compile)


def _match(name: str, *patterns: str) -> dict[str, str] | None:
    """The groups of the first pattern that the whole name matches, whatever its case."""
    name = name.lower()
    for pattern in patterns:
        if _LIBRARY in pattern and "torch" not in name:  # to compile them takes a while
            continue
        if match := _compiled(pattern).fullmatch(name):
            return match.groupdict()
    return None


def distribution(name: object) -> str | None:
    """The library that a distribution name such as "torch" or "pytorch" means."""
    return _DISTRIBUTIONS.get(name) if isinstance(name, str) else None


def constant_test(name: str) -> tuple[str, str, tuple[int, ...]] | None:
    """What a constant promises: library, operator, version. `TORCH_GE_1_8`: ("torch", ">=", (1, 8))."""
    found = _match(name, *_CONSTANTS)
    if found is None:
        return None
    numbers = tuple(int(number) for number in found["numbers"].split("_"))
    if len(numbers) == 1 and numbers[0] > 9:  # TORCH_GE_18
        return None
    return _DISTRIBUTIONS[found["library"]], _OPERATORS.get(found.get("word", ""), ">="), numbers


def helper_test(name: str) -> tuple[str, str] | None:
    """What a function that is given a version compares: library and operator."""
    found = _match(name, *_HELPERS)
    return (_DISTRIBUTIONS[found["library"]], _OPERATORS.get(found.get("word", ""), ">=")) if found else None


def operator_helper(name: str) -> str | None:
    """The library of a function that is given an operator and a version: `is_torch_version(">=", "1.9")`."""
    found = _match(name, _WITH_OPERATOR)
    return _DISTRIBUTIONS[found["library"]] if found else None


def bounds_helper(name: str) -> str | None:
    """The library of a function that is given bounds: `required_torch_version(min_version=1.8)`."""
    found = _match(name, _WITH_BOUNDS)
    return _DISTRIBUTIONS[found["library"]] if found else None


def two_sided_helper(name: str) -> str | None:
    """The operator of a function that is given two versions: `version_ge(torch.__version__, "1.8")`.

    "compare": the operator is the second of three arguments; "check": `>=`, or what the text says.
    """
    if _match(name, _COMPARE) is not None:
        return "compare"
    if _match(name, _CHECK) is not None:
        return "check"
    if _match(name, _OBSOLETE) is not None:
        return "<="
    found = _match(name, *_TWO_SIDED)
    return _OPERATORS[found["word"]] if found else None


@cache  # the same few names repeat
def compares_versions(name: str) -> bool:
    """Whether a function promises, by its name, to compare the version of a library."""
    kinds = (helper_test, operator_helper, bounds_helper, two_sided_helper)
    return any(kind(name) is not None for kind in kinds)


def version_named(name: str) -> VersionOf | None:
    """The version that a name such as `TORCH_VERSION` or `torchaudio_major` stands for."""
    if found := _match(name, _VERSION):
        return VersionOf(_DISTRIBUTIONS[found["library"]], "text")
    if found := _match(name, _PART):
        return VersionOf(_DISTRIBUTIONS[found["library"]], found["part"])
    return None


def written_version(name: str) -> tuple[int, ...] | None:
    """The version that a constant is by its name, where a version is compared with it."""
    found = _match(name, _WRITTEN)
    return tuple(map(int, found["numbers"].split("_"))) if found else None


class MarkTest(Struct, frozen=True):
    """What a decorator promises; skips: it leaves out the releases for which the comparison holds."""

    library: str
    op: str
    numbers: tuple[int, ...]
    skips: bool


def mark_test(name: str) -> MarkTest | None:
    """What a decorator that is given a version, or has it in its name, compares."""
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("py_torch", "pytorch")
    if not spelled.lstrip("_").startswith(("require", "need", "only", "run", "skip")):
        return None
    found = _match(spelled, *_MARKS, _NUMBERED)
    if found is None:
        return None
    limits = {"min": ">=", "max": "<="}
    op = limits.get(found.get("limit") or "") or _OPERATORS.get(found.get("word") or "", ">=")
    text = found.get("numbers")
    numbers = tuple(int(number) for number in text.split("_")) if text else ()
    if len(numbers) == 1 and numbers[0] > 9:  # require_torch_18
        return None
    return MarkTest(_DISTRIBUTIONS[found["library"]], op, numbers, not found.get("requires"))


def has_limits(name: str) -> bool:
    """Whether a decorator is one that is given what must be there: `RunIf(min_torch="1.13")`."""
    return _match(name, _WITH_LIMITS) is not None


def limit(name: str) -> tuple[str, str] | None:
    """The library and the comparison of such an argument."""
    found = _match(name, _LIMIT)
    return (_DISTRIBUTIONS[found["library"]], {"min": ">=", "max": "<"}[found["limit"]]) if found else None


def asks_for_module(name: str) -> bool:
    """Whether a function is one that is given a module's name and says whether it is there."""
    return name in ("find_spec", "find_loader") or (
        ("available" in name or "installed" in name or "exists" in name)
        and _match(name, _AVAILABLE) is not None
    )
