"""Old functions in the place where they were, for as long as the old side of an example runs."""

from __future__ import annotations

import collections.abc
import contextlib
import inspect
import math
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from proofs import references, stubs

# Names that are gone from, or only raise in, the torch of the proofs; all were methods of tensors as well.
FUNCTIONS = (
    "symeig eig matrix_rank solve gesv lstsq gels trtrs potrf potrs potri btrifact btrifact_with_info"
    " btrisolve btriunpack rfft irfft ifft"
).split()
# Their derivative is defined along symmetric changes of the matrix only, since they read one triangle.
SYMMETRIC = frozenset("symeig potrf".split())


class Used(set[str]):
    """The names of the references that were called."""

    @property
    def symmetric(self) -> bool:
        return bool(self & SYMMETRIC)


@contextlib.contextmanager
def old_torch() -> Iterator[Used]:
    """Give torch its old functions back; yields the (growing) set of those that were called."""
    used = Used()
    with contextlib.ExitStack() as stack:
        put = lambda target, name, value: stack.enter_context(  # noqa: E731 (only a shorter name)
            mock.patch.object(target, name, value, create=True)
        )
        for name in FUNCTIONS:
            function = adapter(name, getattr(references, name), used)
            put(torch, name, function)
            put(Tensor, name, function)
        fft = adapter("fft", references.fft, used)
        put(Tensor, "fft", fft)
        stack.enter_context(_callable_module("torch.fft", fft))
        for name in ("stft", "istft"):
            function = _only_without_complex(name, adapter(name, getattr(references, name), used))
            put(torch, name, function)
            put(Tensor, name, function)
        for scheduler in _schedulers():
            put(scheduler, "__init__", _with_verbose(scheduler.__init__))
        put(torch, "set_deterministic", lambda d: torch.use_deterministic_algorithms(d))
        put(torch, "is_deterministic", lambda: torch.are_deterministic_algorithms_enabled())
        six = _six()
        stack.enter_context(stubs.modules({"torch._six": six}))
        put(torch, "_six", six)
        yield used


# ---- numpy to torch and back ---------------------------------------------------------------------------


def adapter(name: str, function: Callable[..., Any], used: Used) -> Callable[..., Any]:
    """A reference in numpy as a function of tensors, which notes that it was used."""

    def call(*args: Any, out: None = None, **kwargs: Any) -> Any:
        used.add(name)
        given = [_to_numpy(item) for item in args]
        result = _to_torch(function(*given, **{key: _to_numpy(item) for key, item in kwargs.items()}))
        if name in ("symeig", "eig") and result[1].numel():
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            result = type(result)(result[0], _PHASES[name](result, **bound.arguments))
        return result

    call.__name__ = call.__qualname__ = name
    return call


def _to_numpy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().resolve_conj().resolve_neg().cpu().numpy()
    return value


def _to_torch(value: Any) -> Any:
    if isinstance(value, tuple):
        items = [_to_torch(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return (
        torch.from_numpy(np.ascontiguousarray(value).reshape(value.shape))
        if isinstance(value, np.ndarray)
        else value
    )


def _symeig_phases(result: Any, input: Tensor, eigenvectors: bool, upper: bool) -> Tensor:
    """An eigenvector is unique up to its phase: take the phase that LAPACK in torch takes."""
    like = torch.linalg.eigh(input.detach(), UPLO="U" if upper else "L").eigenvectors
    inner = (result.eigenvectors.conj() * like).sum(-2, keepdim=True)
    return result.eigenvectors * torch.where(inner.abs() > 1e-6, inner / inner.abs(), torch.ones_like(inner))


def _eig_phases(result: Any, input: Tensor, eigenvectors: bool) -> Tensor:
    like = torch.linalg.eig(input.detach()).eigenvectors
    packed = result.eigenvectors.clone()
    imaginary = result.eigenvalues[:, 1]
    for column in range(len(packed)):
        if imaginary[column] > 0:
            vector = torch.complex(packed[:, column], packed[:, column + 1])
            inner = (vector.conj() * like[:, column]).sum()
            vector = vector * (inner / inner.abs())
            packed[:, column], packed[:, column + 1] = vector.real, vector.imag
        elif imaginary[column] == 0:
            packed[:, column] *= torch.sign((packed[:, column] * like[:, column].real).sum())
    return packed


_PHASES: dict[str, Callable[..., Tensor]] = {"symeig": _symeig_phases, "eig": _eig_phases}


# ---- other shapes of change ----------------------------------------------------------------------------


@contextlib.contextmanager
def _callable_module(name: str, function: Callable[..., Any]) -> Iterator[None]:
    """`torch.fft` was a function; the module of that name has to stay importable."""
    module = sys.modules[name]
    kind = type(module)
    module.__class__ = type(
        "module", (types.ModuleType,), {"__call__": lambda _, *args, **kwargs: function(*args, **kwargs)}
    )
    try:
        yield
    finally:
        module.__class__ = kind


def _only_without_complex(name: str, old: Callable[..., Any]) -> Callable[..., Any]:
    """The old meaning where no `return_complex` is given and nothing is complex."""
    new = getattr(torch, name)

    def call(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        window = kwargs.get("window")
        if "return_complex" in kwargs or input.is_complex() or (window is not None and window.is_complex()):
            return new(input, *args, **kwargs)
        return old(input, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


def _schedulers() -> list[type]:
    module = torch.optim.lr_scheduler
    return [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, module.LRScheduler) and "__init__" in vars(item)
    ]


def _with_verbose(init: Callable[..., None]) -> Callable[..., None]:
    """Until 2.6 every scheduler took `verbose` as its last parameter; it only printed."""
    count = len(inspect.signature(init).parameters)

    def call(self: Any, *args: Any, verbose: Any = False, **kwargs: Any) -> None:
        init(self, *args[: count - 1], **kwargs)

    return call


def _six() -> types.ModuleType:
    """torch._six as of 1.7, the last release with all of these names."""
    module = types.ModuleType("torch._six")
    vars(module).update(
        inf=math.inf,
        nan=math.nan,
        string_classes=(str, bytes),
        int_classes=int,
        FileNotFoundError=FileNotFoundError,
        container_abcs=collections.abc,
        PY3=True,
        PY37=True,
        istuple=lambda value: isinstance(value, tuple),
        with_metaclass=lambda meta, *bases: meta("metaclass", bases, {}),
        raise_from=_raise_from,
    )
    return module


def _raise_from(value: BaseException, cause: BaseException | None) -> None:
    raise value from cause
