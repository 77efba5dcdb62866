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
        if self.on and self.half:
            # Without a cache of casts, which would hold the weights of the first iteration.
            self.region = torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False)
            self.region.__enter__()
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            self._patch(optimizer)
        return models if optimizers is None else (models, optimizers)

    def _patch(self, optimizer: Any) -> None:
        step = optimizer.step

        def guarded(*args: Any, **kwargs: Any) -> Any:
            if id(optimizer) in self.skip:
                self.skip.discard(id(optimizer))
                return None
            return step(*args, **kwargs)

        optimizer.step = guarded

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


@contextlib.contextmanager
def installed() -> Iterator[FakeAmp]:
    """The stand-in as `apex.amp`."""
    fake = FakeAmp()
    package, module = types.ModuleType("apex"), types.ModuleType("apex.amp")
    for name in MEMBERS:
        setattr(module, name, getattr(fake, name))
    package.amp = module  # type: ignore[attr-defined]
    before = {name: sys.modules.get(name) for name in ("apex", "apex.amp")}
    sys.modules.update({"apex": package, "apex.amp": module})
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
