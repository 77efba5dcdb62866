"""Stand-ins for libraries that cannot be installed beside a CPU build of torch.

Only what examples call, each with the meaning that its documentation gives. A class that stands in for one
of torch says so with `stands_for`, so that an object of it may become one of that class.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import apex_fake
import torch
from torch import nn


class FusedAdam(torch.optim.AdamW):
    """apex.optimizers.FusedAdam: AdamW unless `adam_w_mode=False`; no amsgrad."""

    stands_for = torch.optim.AdamW

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        adam_w_mode: bool = True,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        set_grad_none: bool = True,
    ) -> None:
        if amsgrad:
            raise RuntimeError("FusedAdam does not support the AMSGrad variant.")
        if not bias_correction or not adam_w_mode:
            raise NotImplementedError("this stand-in is AdamW with bias correction only")
        super().__init__(params, lr, betas, eps, weight_decay)


class FusedSGD(torch.optim.SGD):
    """apex.optimizers.FusedSGD: plain SGD in one kernel."""

    stands_for = torch.optim.SGD


class FusedLayerNorm(nn.LayerNorm):
    """apex.normalization.FusedLayerNorm: LayerNorm in one kernel."""

    stands_for = nn.LayerNorm


class FusedRMSNorm(nn.RMSNorm):
    """apex.normalization.FusedRMSNorm: `eps` is 1e-5 by default."""

    stands_for = nn.RMSNorm

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine)


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> torch.Tensor:
    """apex.contrib.clip_grad.clip_grad_norm_: torch's with one kernel per dtype."""
    return torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


def convert_syncbn_model(
    module: nn.Module, process_group: Any = None, channel_last: bool = False
) -> nn.Module:
    """apex.parallel.convert_syncbn_model: every batch norm becomes one that is synchronised."""
    return nn.SyncBatchNorm.convert_sync_batchnorm(module, process_group)


MODULES: dict[str, dict[str, Any]] = {
    "apex": {},
    "apex.amp": {},
    "apex.optimizers": {"FusedAdam": FusedAdam, "FusedSGD": FusedSGD},
    "apex.normalization": {"FusedLayerNorm": FusedLayerNorm, "FusedRMSNorm": FusedRMSNorm},
    "apex.parallel": {"convert_syncbn_model": convert_syncbn_model, "SyncBatchNorm": nn.SyncBatchNorm},
    "apex.contrib": {},
    "apex.contrib.clip_grad": {"clip_grad_norm_": clip_grad_norm_},
}


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Make the stand-ins importable, except of libraries that are really there."""
    made: dict[str, types.ModuleType] = {}
    for name, members in MODULES.items():
        root, _, _ = name.partition(".")
        if root not in made and root not in sys.modules and find_spec(root) is not None:
            continue
        module = types.ModuleType(name)
        module.__path__ = []  # a package, so that its submodules can be imported
        vars(module).update(members)
        made[name] = module
        if name == "apex.amp":
            # As on a machine without GPUs, on which the new side computes in single precision.
            fake = apex_fake.FakeAmp(half=False)
            vars(module).update({item: getattr(fake, item) for item in apex_fake.MEMBERS})
        parent, _, last = name.rpartition(".")
        if parent in made:
            setattr(made[parent], last, module)
    with modules(made):
        yield


@contextlib.contextmanager
def modules(made: Mapping[str, types.ModuleType]) -> Iterator[None]:
    """Make modules importable, and forget them afterwards; what they replace comes back."""
    before = {name: sys.modules.get(name) for name in made}
    sys.modules.update(made)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
