"""How a version in a test compares with the target, which stands for all of its patch releases."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

Release = tuple[int, ...]
Signs = frozenset[int]  # what comparing the target with a version may give: -1, 0, 1
_ANY_SIGN: Signs = frozenset((-1, 0, 1))
_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def holds(op: str, part: str, version: Release, target: Release) -> bool | None:
    """Whether the comparison is true at `target`; None where the target's releases differ in it.

    op, part and version are those of a `VersionTest`.
    """
    if op == "startswith":
        return _starts_with(target, version)
    if op == "series":
        known = len(version) <= len(target)
        same = target[: len(version)] == version[: len(target)]
        return same if known or not same else None
    if op == "contains":
        return _contains(target, version)
    answers = {_HOLDS[op](sign, 0) for sign in _signs(part, target, version)}
    return answers.pop() if len(answers) == 1 else None


def _starts_with(target: Release, prefix: Release) -> bool | None:
    *head, last = prefix
    if list(target[: len(head)]) != head[: len(target)]:
        return False
    return str(target[len(head)]).startswith(str(last)) if len(head) < len(target) else None


def _contains(target: Release, text: Release) -> bool | None:
    """Whether "1.8" occurs in the target's version string, whose end is not known."""
    starts = _starts_with(target, text)
    if starts is False and any(str(part).endswith(str(text[0])) for part in target[1:]):
        return None
    return starts


def _sign(left: Any, right: Any) -> Signs:
    return frozenset(((left > right) - (left < right),))


def _signs(part: str, target: Release, version: Release) -> Signs:
    if part == "full":
        return _full_signs(target, version)
    if part == "text":
        # Strings compare "1.10" < "1.8": settled only where comparing as text and as numbers agree.
        length = min(len(target), len(version))
        as_text = [str(number) for number in target[:length]], [str(number) for number in version[:length]]
        signs = _full_signs(target, version)
        if as_text[0] == as_text[1]:
            return signs
        return signs | {1 if as_text[0] > as_text[1] else -1}
    if part.startswith("parts"):
        return _parts_signs(target, version, int(part[5:] or 3))
    index = {"major": 0, "minor": 1, "micro": 2}.get(part)
    if index is not None:
        return _sign(target[index], version[0]) if index < len(target) else _ANY_SIGN
    if len(target) < 2:
        return _ANY_SIGN
    digit = str(target[1])[0]
    if part == "digit":
        return _sign(int(digit), version[0])
    number = float(".".join(map(str, version[:2])))
    as_float = _sign(float(f"{target[0]}.{digit}"), number)  # float(v[:3]): 2.15 gives 2.1
    as_decimal = _sign(float(f"{target[0]}.{target[1]}"), number)
    return {"float": as_float, "decimal": as_decimal, "number": as_float | as_decimal}.get(part, _ANY_SIGN)


def _full_signs(target: Release, version: Release) -> Signs:
    """Compare as versions; the target stands for each of its patch releases and local builds."""
    padded = version + (0,) * (len(target) - len(version))
    head, rest = padded[: len(target)], padded[len(target) :]
    if head != target:
        return _sign(target, head)
    return _ANY_SIGN if any(rest) else frozenset((0, 1))


def _parts_signs(target: Release, version: Release, count: int) -> Signs:
    """Compare as tuples; the target's has `count` parts, the last perhaps unknown."""
    if count <= len(target):
        return _sign(target[:count], version)
    head, rest = version[: len(target)], version[len(target) :]
    if head != target:
        return _sign(target, head)
    if not rest:
        return frozenset((1,))
    return frozenset((0, 1)) if rest == (0,) else _ANY_SIGN
