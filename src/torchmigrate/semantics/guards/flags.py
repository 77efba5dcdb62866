"""Flags that are set on some paths only: what they say where the paths meet.

`NEW = False`, and then `if Version(torch.__version__) >= Version("1.10"): NEW = True`
"""

from __future__ import annotations

from collections.abc import Iterable

from torchmigrate.semantics.formulas import FALSE, TRUE, UNKNOWN, Formula, Known, any_of, both
from torchmigrate.semantics.model import Const, Flag, Value


def said_by(value: Value) -> Formula | None:
    """What a name says as a test; None if it may be anything but the outcome of one."""
    flags = []
    for item in value:
        if isinstance(item, Flag):
            flags.append(item.formula)
        elif not isinstance(item, Const) or not (item.value is None or isinstance(item.value, bool)):
            return None
    if flags:  # a constant before the statement that sets it
        return flags[0] if len(flags) == 1 else UNKNOWN
    constants = {bool(item.value) for item in value if isinstance(item, Const)}
    if len(constants) != 1:
        return UNKNOWN if constants else None
    return TRUE if True in constants else FALSE


def where_paths_meet(paths: Iterable[tuple[Formula, Value]]) -> Value | None:
    """What a name holds that was set on several paths; None if it may be anything but the outcome of a test.

    Args:
        paths: under which test each is taken, and what the name holds at its end.
    """
    parts = []
    for taken, value in paths:
        said = said_by(value)
        if said is None:
            return None
        parts.append(both(taken, said))
    formula = any_of(parts)
    return (Const(formula.value) if isinstance(formula, Known) else Flag(formula),)


def with_flag(held: Value, flag: Value) -> Value:
    """All that a name ever held, once it is known what it says at the end; `held` if it was more."""
    if said_by(held) is None:
        return held
    return tuple(item for item in held if isinstance(item, Const)) + flag


def only_flags(value: Value) -> Value:
    """What decides where a name has a constant before the statement that sets it: `NEW = False`."""
    if len(value) < 2:
        return value
    flags = tuple(item for item in value if isinstance(item, Flag))
    return flags if flags and all(isinstance(item, (Flag, Const)) for item in value) else value
