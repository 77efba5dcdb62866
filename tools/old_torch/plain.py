"""Values as plain data: what code computed, in a form that JSON holds and every release writes alike.

Numbers are rounded to twelve digits, relative to the largest of their tensor, so that noise of the last bits
is not recorded; large tensors become a few weighted sums.
"""

from __future__ import annotations

import enum
import hashlib
import math
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

DIGITS = 12
MOST_NUMBERS = 48  # a larger tensor is recorded by sums
SUMS = 4
MOST_ENTRIES = 16  # of a state dict; a larger one is recorded as a whole
# How an optimiser is executed, and not what it computes; and what releases keep about it.
EXECUTION = frozenset(
    "fused foreach capturable differentiable maximize decoupled_weight_decay initial_lr".split()
)
_SIMPLE = (bool, int, str, bytes, type(None))


class Unknown(Exception):
    """A value has no plain form."""


def plain(value: Any) -> Any:
    """The plain form of a value.

    Raises:
        Unknown: it is an iterator, or something of which nothing can be said.
    """
    if isinstance(value, enum.Enum):
        return {"kind": "enum", "name": f"{type(value).__name__}.{value.name}"}
    if isinstance(value, bytes):
        return {"kind": "bytes", "text": value.hex()}
    if type(value) in _SIMPLE:
        return value
    if isinstance(value, float):
        return {"kind": "float", "value": _number(float(value))}
    if isinstance(value, complex):
        return {"kind": "complex", "value": [_number(value.real), _number(value.imag)]}
    if isinstance(value, (bool, int, str)):
        return {"kind": "simple", "text": str(value)}
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return dict(
            _numbers(np.asarray(value)), kind="array", dtype=str(value.dtype), shape=list(np.shape(value))
        )
    if isinstance(value, (torch.dtype, torch.device, torch.layout)):
        return {"kind": "word", "name": str(value)}
    if isinstance(value, torch.Size):
        return {"kind": "size", "items": list(value)}
    if isinstance(value, (tuple, list)):
        return {
            "kind": "tuple" if isinstance(value, tuple) else "list",
            "fields": list(fields(value)),
            "items": [plain(item) for item in value],
        }
    if isinstance(value, (set, frozenset)):
        return {"kind": "set", "items": sorted(repr(item) for item in value)}
    if isinstance(value, range):
        return {"kind": "range", "name": repr(value)}
    if isinstance(value, Mapping):
        return {"kind": "dict", "items": [[plain(key), plain(item)] for key, item in value.items()]}
    if isinstance(value, nn.Module):
        return {
            "kind": "module",
            "classes": _classes(type(value)),
            "training": value.training,
            "state": _state(value),
        }
    if isinstance(value, (types.GeneratorType, map, zip, filter)):
        raise Unknown("an iterator cannot be recorded; make a list of it in the example")
    if isinstance(value, (type, types.ModuleType)) or (callable(value) and hasattr(value, "__qualname__")):
        return {"kind": "named", "name": _named(value)}
    if type(value).__module__.startswith("PIL."):
        return dict(plain(np.asarray(value)), kind="picture")
    return _object(value)


def plain_values(outcome: Any) -> dict[str, Any]:
    """Everything that an `Outcome` left behind, by name; paths that were given to it are of one machine.

    Raises:
        Unknown: one of the values has no plain form.
    """
    left_out = {name for name, value in outcome.inputs.items() if isinstance(value, str)}
    return {name: plain(value) for name, value in sorted(outcome.values().items()) if name not in left_out}


def fields(value: Any) -> tuple[str, ...]:
    """The field names of a named tuple, in Python or in C; () for a plain tuple."""
    if hasattr(type(value), "_fields"):
        return tuple(type(value)._fields)
    if type(value).__module__ == "torch.return_types":
        kind = type(value)
        found = {
            name: index
            for name in vars(kind)
            for index, item in enumerate(value)
            if not name.startswith("_") and getattr(value, name, None) is item
        }
        return tuple(sorted(found, key=lambda name: found[name]))
    return ()


def _state(value: nn.Module) -> Any:
    """The state dict; of a large module its names and shapes as a digest, and sums over all numbers."""
    state = value.state_dict()
    if len(state) <= MOST_ENTRIES:
        return {"kind": "state", "items": [[key, plain(item)] for key, item in state.items()]}
    tensors = {
        key: item for key, item in state.items() if isinstance(item, Tensor)
    }  # quantizers hold words, too
    names = repr([(key, tuple(item.shape), str(item.dtype)) for key, item in tensors.items()])
    flat = [item.detach().reshape(-1) for item in tensors.values()]
    return {
        "kind": "sums",
        "entries": len(state),
        "names": hashlib.sha256(names.encode()).hexdigest()[:16],
        "sums": _sums(*[_array(item) for item in flat]),
        "dtype": "torch.float32",
    }


def _array(flat: Tensor) -> Any:
    """The numbers of a flat tensor; NumPy has no type for some."""
    return (flat if str(flat.dtype) in ("torch.float32", "torch.int64") else flat.double()).numpy()


def _object(value: Any) -> dict[str, Any]:
    """Anything else by class, and by its state as far as that consists of plain values."""
    form: dict[str, Any] = {"kind": "object", "classes": _classes(type(value))}
    if isinstance(value, torch.optim.Optimizer):
        groups = [_settings(group) for group in value.param_groups]
        form["state"] = {"groups": {"kind": "groups", "items": groups}}
    elif hasattr(value, "state_dict"):
        form["state"] = _settings(value.state_dict())
    else:
        form["state"] = _settings(getattr(value, "__dict__", {}))
    return form


def _settings(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(key): plain(value)
        for key, value in sorted(state.items())
        if key not in EXECUTION and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_is_plain(item) for item in value)
    if isinstance(value, Mapping):
        return all(_is_plain(item) for item in value.values())
    return isinstance(
        value, (bool, int, float, complex, str, bytes, type(None), Tensor, torch.dtype, torch.Size)
    )


def _classes(kind: type) -> list[str]:
    """The class and its bases, as far as a library defines them; the first is public."""
    names = [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__[:-1]]
    return [name for name in names if "<locals>" not in name]


def _named(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    return "{}.{}".format(getattr(value, "__module__", None), value.__qualname__)


# ---- numbers -------------------------------------------------------------------------------------------


def _tensor(value: Tensor) -> dict[str, Any]:
    form: dict[str, Any] = {
        "kind": "tensor",
        "class": type(value).__name__,
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "requires_grad": bool(value.requires_grad),
    }
    layout = str(getattr(value, "layout", torch.strided))
    if layout != "torch.strided":
        form["layout"] = layout
    data = value.detach()
    if getattr(data, "is_quantized", False):
        data = data.dequantize()
    if layout != "torch.strided":
        data = data.to_dense()
    for name in ("resolve_conj", "resolve_neg"):
        if hasattr(data, name):
            data = getattr(data, name)()
    if data.device.type == "meta":
        return dict(form, device="meta")
    if str(data.dtype) in ("torch.bfloat16", "torch.float16"):
        data = data.float()
    form.update(_numbers(data.numpy()))
    return form


def _numbers(array: Any) -> dict[str, Any]:
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    if array.dtype.kind not in "iufc":
        return {"values": [str(item) for item in array.reshape(-1)]}
    flat = array.reshape(-1)
    if flat.size > MOST_NUMBERS:
        return {"sums": _sums(flat)}
    if array.dtype.kind in "iu":
        return {"values": [int(item) for item in flat]}
    return {"values": _rounded(flat)}


def _sums(*parts: Any) -> list[Any]:
    """Weighted sums that see every element and their order; numbers that are not finite are counted.

    parts: flat arrays, of which the numbers are those of one array after the other.
    """
    is_complex = any(part.dtype.kind == "c" for part in parts)
    sums = np.zeros(SUMS, np.complex128 if is_complex else np.float64)
    squares, holes, start = 0.0, 0.0, 1
    for part in parts:
        if part.size and part.dtype.kind in "iuf" and np.isfinite(part[0]) and (part == part[0]).all():
            value = float(part[0])
            sums += [value * _sum_of_weights(k, start, part.size) for k in range(SUMS)]
            squares += value * value * part.size
        else:
            wide = part.astype(sums.dtype)
            finite = np.isfinite(wide)
            wide = np.where(finite, wide, 0)
            index = np.arange(start, start + part.size, dtype=np.float64)
            weights = [np.sin(index * (1 + k / 7)) for k in range(SUMS)]
            sums += [(wide * weight).sum() for weight in weights]
            squares += float((np.abs(wide) ** 2).sum())
            holes += float(((~finite) * weights[0]).sum())
        start += part.size
    norm = math.sqrt(squares)
    decimals = DIGITS - 1 - math.floor(math.log10(norm)) if norm > 0 else DIGITS
    numbers = [each for item in sums for each in ((item.real, item.imag) if is_complex else (item,))]
    return [_round(each, decimals) for each in [*map(float, numbers), norm]] + [round(holes, 9)]


def _sum_of_weights(k: int, start: int, count: int) -> float:
    """The sum of the weights of `count` elements, without a look at each: large models have millions."""
    step = 1 + k / 7
    return math.sin(step * (start + (count - 1) / 2)) * math.sin(step * count / 2) / math.sin(step / 2)


def _rounded(flat: Any) -> list[Any]:
    """Rounded to the digits of the largest; complex numbers as pairs."""
    digits = DIGITS if flat.dtype.itemsize >= 8 and flat.dtype != np.complex64 else 7
    finite = np.abs(flat[np.isfinite(flat)])
    largest = float(finite.max()) if finite.size else 0.0
    decimals = digits - 1 - math.floor(math.log10(largest)) if largest > 0 else digits
    if flat.dtype.kind == "c":
        return [[_round(float(item.real), decimals), _round(float(item.imag), decimals)] for item in flat]
    return [_round(float(item), decimals) for item in flat]


def _round(value: float, decimals: int) -> Any:
    if value != value or value in (math.inf, -math.inf):
        return str(value)
    rounded = round(value, decimals)
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


def _number(value: float) -> Any:
    return str(value) if value != value or value in (math.inf, -math.inf) else float(f"{value:.12g}")


# ---- inputs --------------------------------------------------------------------------------------------


def given(value: Any) -> Any | None:
    """An input as plain data from which another release makes the same; None: by its expression alone."""
    if type(value) in (Tensor, nn.Parameter):
        return _given_tensor(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        return {"kind": "array", "tensor": _given_tensor(torch.from_numpy(value.copy()))}
    if type(value) in (list, tuple) and not any(isinstance(item, nn.Module) for item in value):
        items = [given(item) for item in value]
        if any(item is None for item in items):
            return None
        return {"kind": type(value).__name__, "items": items}
    if isinstance(value, nn.Module):
        return {"kind": "state", "items": [_given_tensor(item) for item in _held(value)]}
    if isinstance(value, torch.optim.Optimizer):
        held = [item for group in value.param_groups for item in group["params"]]
        return {"kind": "state", "items": [_given_tensor(item) for item in held]}
    return None


def _held(value: nn.Module) -> list[Tensor]:
    return [*value.parameters(), *value.buffers()]


def _given_tensor(value: Tensor) -> dict[str, Any]:
    data = value.detach()
    if value.dtype in (torch.bfloat16, torch.float16):
        data = data.float()
    array = data.numpy()
    pairs = array.dtype.kind == "c"
    flat = np.stack([array.real, array.imag], -1).reshape(-1) if pairs else array.reshape(-1)
    form: dict[str, Any] = {
        "kind": "parameter" if isinstance(value, nn.Parameter) else "tensor",
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "requires_grad": value.requires_grad,
        "data": [str(item) if isinstance(item, float) and item != item else item for item in flat.tolist()],
    }
    if not value.is_contiguous():
        form["strides"] = list(value.stride())
    if value.is_leaf and value.grad is not None:
        form["grad"] = _given_tensor(value.grad)
    return form


def made(form: Any, expression: Any) -> Any:
    """The input again; `expression` is called for what plain data does not say.

    Raises:
        AttributeError: this release has no such dtype.
    """
    if form is None:
        return expression()
    if form["kind"] in ("tensor", "parameter"):
        return _made_tensor(form)
    if form["kind"] == "array":
        return _made_tensor(form["tensor"]).numpy()
    if form["kind"] in ("list", "tuple"):
        items = [made(item, expression) for item in form["items"]]
        return items if form["kind"] == "list" else tuple(items)
    value = expression()
    held = (
        _held(value) if isinstance(value, nn.Module) else [p for g in value.param_groups for p in g["params"]]
    )
    with torch.no_grad():
        for target, source in zip(held, form["items"]):
            tensor = _made_tensor(source)
            target.data.copy_(tensor.detach())
            target.grad = tensor.grad
    return value


def _made_tensor(form: Mapping[str, Any]) -> Tensor:
    dtype = getattr(torch, form["dtype"].split(".")[1])
    shape = form["shape"]
    data = [float(item) if isinstance(item, str) else item for item in form["data"]]
    if form["dtype"].startswith("torch.complex"):
        wide = torch.tensor(data, dtype=torch.float64).reshape([*shape, 2])
        tensor = torch.view_as_complex(wide).to(dtype)
    else:
        tensor = torch.tensor(data, dtype=dtype).reshape(shape)
    if "strides" in form:
        tensor = _laid_out(tensor, form["strides"])
    if form["kind"] == "parameter":
        tensor = nn.Parameter(tensor, requires_grad=form["requires_grad"])
    elif form["requires_grad"]:
        tensor.requires_grad_()
    if "grad" in form:
        tensor.grad = _made_tensor(form["grad"])
    return tensor


def _laid_out(value: Tensor, strides: list[int]) -> Tensor:
    """The tensor with other strides; dimensions of stride 0 repeat one element."""
    index = tuple(slice(0, 1 if stride == 0 else None) for stride in strides)
    kept = value[index]
    extent = 1 + sum((size - 1) * stride for size, stride in zip(kept.shape, strides)) if kept.numel() else 0
    memory = torch.zeros(extent, dtype=value.dtype)
    tensor = memory.as_strided(kept.shape, strides)
    tensor.copy_(kept)
    return tensor.expand(value.shape)


# ---- gradients -----------------------------------------------------------------------------------------


def differentiable(value: Any) -> bool:
    """Whether an input is a tensor whose gradient a proof compares."""
    return (
        type(value) is Tensor
        and str(value.dtype).split(".")[1].startswith(("float", "complex"))
        and not getattr(value, "is_quantized", False)
        and value.layout is torch.strided
    )


def loss(values: Mapping[str, Any], without: set[str]) -> tuple[Tensor | None, dict[str, bool]]:
    """A weighted sum of all results, and which tensors require gradients, by their place.

    Args:
        without: names whose values count only for the flags.
    """
    total: Tensor | None = None
    flags: dict[str, bool] = {}
    for name, value in sorted(values.items()):
        for part, item in tensors(value, name):
            flags[part] = bool(item.requires_grad)
            is_complex = str(item.dtype).startswith("torch.complex")
            if name in without or not (item.is_floating_point() or is_complex):
                continue
            weighted = (item.to_dense() if item.layout is not torch.strided else item) * weights(item)
            term = weighted.sum()
            term = (torch.view_as_real(term)[..., 0] if is_complex else term).double()
            total = term if total is None else total + term
    return total, flags


def weights(item: Tensor) -> Tensor:
    """The same for each shape, and different for each element: a plain sum often has no gradient."""
    index = torch.arange(1, item.numel() + 1, dtype=torch.float64)
    return torch.sin(index).reshape(item.shape).to(item.dtype)


def tensors(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """All tensors of a value that is one or consists of some, with their places."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            for found in tensors(item, f"{name}[{index}]"):
                yield found
    elif isinstance(value, dict):
        for key, item in value.items():
            for found in tensors(item, f"{name}[{key!r}]"):
                yield found


def inputs(values: Mapping[str, Any]) -> dict[str, Any]:
    """What tells one set of inputs from another, by name: a few digits of every tensor."""
    found = {}
    for name, value in values.items():
        parts = [item for _, item in tensors(value, name)]
        if isinstance(value, nn.Module):
            parts = _held(value)
        if parts:
            sums = [
                _sums(item.detach().to_dense().reshape(-1).numpy())[:1]
                for item in parts
                if _plain_dtype(item)
            ]
            found[name] = [round(float(item[0]), 6) for item in sums]
    return found


def _plain_dtype(item: Tensor) -> bool:
    return str(item.dtype) not in ("torch.bfloat16", "torch.float16") and not item.is_quantized
