"""Whether what the old code computed is what the new code computes."""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

RELATIVE = {torch.float64: 1e-9, torch.complex128: 1e-9}  # others: 1e-5
SIMPLE = (bool, int, str, bytes, type(None), torch.dtype, torch.device, torch.layout, torch.Size, enum.Enum)


def differences(old: Any, new: Any, where: str, requires_grad: bool = True) -> Iterator[str]:
    """Every respect in which two values differ, one line each; nothing if they are the same.

    Args:
        where: how the value is called in the lines.
        requires_grad: compare that flag of tensors as well.
    """
    if isinstance(old, Tensor) or isinstance(new, Tensor):
        yield from _tensors(old, new, where, requires_grad)
    elif isinstance(old, SIMPLE) or isinstance(new, SIMPLE):
        if type(old) is not type(new) or old != new:
            yield f"{where}: {old!r} became {new!r}"
    elif isinstance(old, float | complex):
        if type(old) is not type(new) or not _close(old, new):
            yield f"{where}: {old!r} became {new!r}"
    elif isinstance(old, tuple | list):
        yield from _sequences(old, new, where, requires_grad)
    elif isinstance(old, Mapping):
        yield from _mappings(old, new, where, requires_grad)
    elif isinstance(old, set | frozenset | range):
        if type(old) is not type(new) or old != new:
            yield f"{where}: {old!r} became {new!r}"
    elif isinstance(old, nn.Module):
        yield from _modules(old, new, where)
    elif _is_named(old):
        if not _same_named(old, new):
            yield f"{where}: {_qualified(old)} became {_qualified(new)}"
    elif isinstance(old, types.GeneratorType | map | zip | filter):
        yield f"{where}: an iterator cannot be compared; make a list of it in the example"
    else:
        yield from _objects(old, new, where, requires_grad)


def is_evidence(value: Any) -> bool:
    """Whether equality of such values says anything."""
    if isinstance(value, tuple | list):
        return any(is_evidence(item) for item in value)
    return value is not None and not isinstance(value, types.FunctionType)


def _close(old: Any, new: Any) -> bool:
    a, b = torch.tensor(old, dtype=torch.complex128), torch.tensor(new, dtype=torch.complex128)
    return torch.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)


def _tensors(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    if type(old) is not type(new):
        yield f"{where}: {type(old).__name__} became {type(new).__name__}"
        return
    for name in ("dtype", "shape", "device", "layout", "is_quantized"):
        a, b = getattr(old, name), getattr(new, name)
        if a != b:
            yield f"{where}: {name} {a} became {b}"
            return
    if requires_grad and old.requires_grad != new.requires_grad:
        yield f"{where}: requires_grad {old.requires_grad} became {new.requires_grad}"
    a, b = old.detach(), new.detach()
    if old.layout is not torch.strided:
        a, b = a.to_dense(), b.to_dense()
    if old.is_quantized:
        a, b = a.dequantize(), b.dequantize()
    if torch.equal(a, b):  # twenty times as fast as the comparison below, and models are large
        return
    rtol = RELATIVE.get(a.dtype, 1e-5)
    exact = not (a.is_floating_point() or a.is_complex())
    try:
        torch.testing.assert_close(b, a, rtol=0 if exact else rtol, atol=0 if exact else rtol, equal_nan=True)
    except AssertionError as error:
        yield f"{where}: other values: {' '.join(str(error).split())}"


def fields(value: Any) -> tuple[str, ...]:
    """The field names of a namedtuple, in Python or in C; () for a plain tuple."""
    names = getattr(type(value), "_fields", None) or getattr(type(value), "__match_args__", ())
    return tuple(names)


def _sequences(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    kind = tuple if isinstance(old, tuple) else list
    if not isinstance(new, kind):
        yield f"{where}: {type(old).__name__} became {type(new).__name__}"
        return
    if len(old) != len(new):
        yield f"{where}: {len(old)} items became {len(new)}"
        return
    for index, name in enumerate(fields(old)):
        if fields(new)[index : index + 1] != (name,):
            yield f"{where}: there is no field `{name}` any more"
    for index, (a, b) in enumerate(zip(old, new, strict=True)):
        yield from differences(a, b, f"{where}[{index}]", requires_grad)


def _mappings(old: Mapping[Any, Any], new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    if not isinstance(new, Mapping):
        yield f"{where}: {type(old).__name__} became {type(new).__name__}"
        return
    if list(old) != list(new):
        yield f"{where}: keys {list(old)} became {list(new)}"
        return
    for key in old:
        yield from differences(old[key], new[key], f"{where}[{key!r}]", requires_grad)


def _modules(old: nn.Module, new: Any, where: str) -> Iterator[str]:
    yield from _classes(old, new, where)
    if not isinstance(new, nn.Module):
        return
    yield from _mappings(old.state_dict(), new.state_dict(), f"{where}.state_dict()", True)
    if old.training != new.training:
        yield f"{where}: training {old.training} became {new.training}"
    if old.extra_repr() != new.extra_repr() or (type(old) is type(new) and repr(old) != repr(new)):
        yield f"{where}: {old!r} became {new!r}"


def _classes(old: Any, new: Any, where: str) -> Iterator[str]:
    """Classes may differ where one is a (deprecated) subclass of the other, or stands in for it."""
    a = getattr(type(old), "stands_for", _public(type(old)))
    b = _public(type(new))
    if not (issubclass(a, b) or issubclass(b, a)):
        yield f"{where}: {a.__module__}.{a.__qualname__} became {b.__module__}.{b.__qualname__}"


def _public(kind: type) -> type:
    """The class, or its first base that is not made for one object alone (as torch.fx does)."""
    return next(base for base in kind.__mro__ if "<locals>" not in base.__qualname__)


def _is_named(value: Any) -> bool:
    return isinstance(value, type | types.ModuleType) or (callable(value) and hasattr(value, "__qualname__"))


def _qualified(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    return f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', repr(value))}"


def _same_named(old: Any, new: Any) -> bool:
    """The same object, the same qualified name, or a stand-in for the new object."""
    if old is new or getattr(old, "stands_for", None) is new:
        return True
    if isinstance(old, types.MethodType) and isinstance(new, types.MethodType):
        return old.__func__ is new.__func__
    return type(old) is type(new) and _qualified(old) == _qualified(new)


def _objects(old: Any, new: Any, where: str, requires_grad: bool) -> Iterator[str]:
    """Anything else by class, and by its state as far as that consists of comparable values."""
    yield from _classes(old, new, where)
    if isinstance(old, torch.optim.Optimizer | torch.optim.lr_scheduler.LRScheduler):
        yield from _states(_settings(old), _settings(new), where)
    elif dataclasses.is_dataclass(old) or hasattr(old, "__dict__"):
        yield from _states(vars(old), vars(new) if hasattr(new, "__dict__") else {}, where)
    elif old != new:
        yield f"{where}: {old!r} became {new!r}"


def _states(old: Mapping[str, Any], new: Mapping[str, Any], where: str) -> Iterator[str]:
    for key, value in old.items():
        if key in new and _comparable(value):
            yield from differences(value, new[key], f"{where}.{key}")


def _settings(item: Any) -> dict[str, Any]:
    """The state of an optimiser or scheduler, without how it is executed."""
    state = dict(item.state_dict())
    execution = ("fused", "foreach")
    if "param_groups" in state:
        groups = state["param_groups"]
        state["param_groups"] = [{k: v for k, v in group.items() if k not in execution} for group in groups]
    return state


def _comparable(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_comparable(item) for item in value)
    if isinstance(value, Mapping):
        return all(_comparable(item) for item in value.values())
    return isinstance(value, (*SIMPLE, float, complex, Tensor))
