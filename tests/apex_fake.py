"""A stand-in for apex.amp on the CPU, as documented: what O1 did, with bfloat16 in the place of half precision."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import torch

MEMBERS = ("initialize", "scale_loss", "master_params", "state_dict", "load_state_dict")


class FakeAmp:
    """Mixed precision everywhere after `initialize`, dynamic loss scaling, steps that are left out.

    Args:
        half: without it everything is computed in single precision, and only the loss is scaled.
    """

    def __init__(self, half: bool = True) -> None:
        self.half = half
        self.scale = 2.0**16
        self.on = False
        self.region: Any = None
        self.skip: set[int] = set()
        self.scaled = False  # whether gradients were left scaled

    def initialize(
        self, models: Any, optimizers: Any = None, enabled: bool = True, opt_level: str = "O1", **_: Any
    ) -> Any:
        self.on = enabled and opt_level != "O0"
        if self.on and self.half and self.region is None:
            # Without a cache of casts, which would hold the weights of the first iteration.
            self.region = torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False)
            self.region.__enter__()
        for optimizer in optimizers if isinstance(optimizers, list) else filter(None, [optimizers]):
            self._patch(optimizer)
        return models if optimizers is None else (models, optimizers)

    def _patch(self, optimizer: Any) -> None:
        step = optimizer.step

        def guarded(_: Any, *args: Any, **kwargs: Any) -> Any:
            if id(optimizer) in self.skip:
                self.skip.discard(id(optimizer))
                return None
            return step(*args, **kwargs)

        optimizer.step = types.MethodType(guarded, optimizer)

    @contextlib.contextmanager
    def scale_loss(
        self, loss: torch.Tensor, optimizers: Any, loss_id: int = 0, delay_unscale: bool = False, **_: Any
    ) -> Iterator[torch.Tensor]:
        if not self.on:
            yield loss
            return
        every = optimizers if isinstance(optimizers, (list, tuple)) else [optimizers]
        params = [p for optimizer in every for p in self.master_params(optimizer)]
        stashed = [None if self.scaled else p.grad for p in params]
        for p in params:
            p.grad = p.grad if self.scaled else None
        with torch.autocast("cpu", enabled=False):  # the backward pass was not patched
            yield loss.float() * self.scale
        self.scaled = delay_unscale
        if delay_unscale:
            return
        fine = True
        for p, old in zip(params, stashed, strict=True):
            if p.grad is not None:
                p.grad = p.grad / self.scale
                fine = fine and bool(torch.isfinite(p.grad).all())
            if old is not None:
                p.grad = old if p.grad is None else p.grad + old
        if not fine:
            self.scale /= 2
            self.skip.update(id(optimizer) for optimizer in every)

    def master_params(self, optimizer: Any) -> Iterator[torch.Tensor]:
        for group in optimizer.param_groups:
            yield from group["params"]

    def state_dict(self) -> dict[str, Any]:
        return {"loss_scaler0": {"loss_scale": self.scale, "unskipped": 0}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.scale = state["loss_scaler0"]["loss_scale"]


class FakeScaler:
    """`amp._amp_state.loss_scalers[0]`."""

    def __init__(self, fake: FakeAmp) -> None:
        self.fake = fake

    def loss_scale(self) -> float:
        return self.fake.scale

    @property
    def _loss_scale(self) -> float:
        return self.fake.scale

    @_loss_scale.setter
    def _loss_scale(self, value: float) -> None:
        self.fake.scale = float(value)


class FakeFP16Optimizer:
    """`fp16_utils.FP16_Optimizer`, with weights in single precision."""

    def __init__(self, optimizer: Any, static_loss_scale: float = 1.0, **_: Any) -> None:
        self.optimizer = optimizer
        self.loss_scale = static_loss_scale

    def __getattr__(self, name: str) -> Any:
        return getattr(self.optimizer, name)

    def backward(self, loss: torch.Tensor) -> None:
        loss.float().backward()

    def clip_master_grads(self, most: float) -> Any:
        params = [p for group in self.optimizer.param_groups for p in group["params"]]
        return torch.nn.utils.clip_grad_norm_(params, most)


def _modules(fake: FakeAmp) -> dict[str, types.ModuleType]:
    names = ("amp", "parallel", "fp16_utils", "optimizers", "multi_tensor_apply")
    found = {name: types.ModuleType(f"apex.{name}") for name in names}
    members: dict[str, dict[str, Any]] = {
        "amp": {name: getattr(fake, name) for name in MEMBERS},
        "parallel": {
            "DistributedDataParallel": torch.nn.parallel.DistributedDataParallel,
            "convert_syncbn_model": lambda model: model,
        },
        "fp16_utils": {
            "FP16_Optimizer": FakeFP16Optimizer,
            "network_to_half": lambda model: model,
            "to_python_float": lambda value: value.item() if hasattr(value, "item") else value[0],
        },
        "optimizers": {"FusedSGD": torch.optim.SGD, "FusedAdam": torch.optim.AdamW},
        "multi_tensor_apply": {"multi_tensor_applier": None},
    }
    members["amp"]["_amp_state"] = types.SimpleNamespace(loss_scalers=[FakeScaler(fake)])
    for name, module in found.items():
        module.__dict__.update(members[name])
    package = types.ModuleType("apex")
    package.__dict__.update(found)
    return {"apex": package, **{module.__name__: module for module in found.values()}}


@contextlib.contextmanager
def installed() -> Iterator[FakeAmp]:
    """The stand-in as `apex.amp`, and what else of apex is common."""
    fake = FakeAmp()
    modules = _modules(fake)
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield fake
    finally:
        if fake.region is not None:
            fake.region.__exit__(None, None, None)
        for name, old in before.items():
            if old is None:
                del sys.modules[name]
            else:
                sys.modules[name] = old
