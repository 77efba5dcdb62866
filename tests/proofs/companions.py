"""torchvision and torchaudio for the proofs, beside a CPU build of torch and with their old names.

Their wheels on PyPI are made for CUDA: the compiled part does not load here. torchvision can be imported once
the operators exist whose meaning it describes in Python; torchaudio once it does not see its own libraries. No
weights are downloaded: a model that is given weights is marked with their name instead.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import types
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from old_torch import companions as marks
from torch import nn

from proofs import references, stubs
from proofs.patches import Used, adapter

LIBRARIES = ("torchvision", "torchaudio")
_OPERATORS = ("nms", "qnms")
Put = Callable[[Any, str, Any], Any]  # target, name, value


def used_in(code: str) -> list[str]:
    """The companion libraries that a piece of code mentions."""
    return [name for name in LIBRARIES if re.search(rf"\b{name}\b", code)]


def missing(code: str) -> list[str]:
    """Those of them that are not installed."""
    return [name for name in used_in(code) if find_spec(name) is None]


@contextlib.contextmanager
def prepared(code: str) -> Iterator[None]:
    """Make the libraries that code mentions importable, and their weights a mark on the model."""
    with contextlib.ExitStack() as stack:
        if "torchaudio" in used_in(code) and not missing("torchaudio"):
            _import_torchaudio()
        if "torchvision" in used_in(code) and not missing("torchvision"):
            _declare_operators()
            from torchvision.models import WeightsEnum

            stack.enter_context(
                mock.patch.object(WeightsEnum, "get_state_dict", lambda self, **_: marks.Weights(self.url))
            )
        stack.enter_context(marks.prepared(code))
        yield


@contextlib.contextmanager
def old_companions(code: str, used: Used) -> Iterator[None]:
    """Give the libraries that code mentions the names that they lost."""
    with contextlib.ExitStack() as stack:
        put = lambda target, name, value: stack.enter_context(  # noqa: E731 (only a shorter name)
            mock.patch.object(target, name, value, create=True)
        )
        for name in used_in(code):
            if not missing(name):
                modules = {"torchvision": _old_torchvision, "torchaudio": _old_torchaudio}[name](put, used)
                stack.enter_context(stubs.modules(modules))
        yield


@functools.cache
def _declare_operators() -> torch.library.Library | None:
    """Declare what `torchvision._meta_registrations` refers to; kept alive by the cache."""
    if hasattr(torch.ops.torchvision, "nms"):
        return None
    library = torch.library.Library("torchvision", "DEF")
    for name in _OPERATORS:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


@functools.cache
def _import_torchaudio() -> None:
    """Import it as if it had been built without its extension, for which it is prepared."""
    glob = Path.glob

    def glob_elsewhere(self: Path, *args: Any, **options: Any) -> Iterator[Path]:
        return iter(()) if self.parts[-2:] == ("torchaudio", "lib") else glob(self, *args, **options)

    with mock.patch.object(Path, "glob", glob_elsewhere):
        importlib.import_module("torchaudio")


# ---- torchvision ---------------------------------------------------------------------------------------


def _old_torchvision(put: Put, used: Used) -> dict[str, types.ModuleType]:
    """Old names as the last release that had each of them defines it."""
    import torchvision
    from torchvision import models, ops, transforms, tv_tensors
    from torchvision.transforms import _functional_pil, _functional_tensor, functional, v2

    class Scale(transforms.Resize):
        pass

    class RandomSizedCrop(transforms.RandomResizedCrop):
        pass

    class ConvBNReLU(nn.Sequential):  # 0.8
        def __init__(
            self, in_planes: int, out_planes: int, kernel_size: int = 3, stride: int = 1, groups: int = 1,
            norm_layer: Any = None,
        ) -> None:  # fmt: skip
            padding = (kernel_size - 1) // 2
            super().__init__(
                nn.Conv2d(in_planes, out_planes, kernel_size, stride, padding, groups=groups, bias=False),
                (norm_layer or nn.BatchNorm2d)(out_planes),
                nn.ReLU6(inplace=True),
            )

    put(transforms, "Scale", Scale)
    put(transforms, "RandomSizedCrop", RandomSizedCrop)
    put(functional, "scale", functional.resize)
    sides = {"i": "top", "j": "left", "h": "height", "w": "width"}
    for name in ("crop", "resized_crop"):
        put(functional, name, _renaming(getattr(functional, name), sides))
    for name in ("rotate", "affine"):
        put(functional, name, _resampling(getattr(functional, name)))
    for kind in (transforms.RandomRotation, transforms.RandomAffine):
        put(kind, "__init__", _resampling(kind.__init__))
    put(torchvision.utils, "make_grid", _renaming(torchvision.utils.make_grid, {"range": "value_range"}))
    put(models.mobilenetv2, "ConvBNReLU", ConvBNReLU)
    for name in ("Conv2d", "ConvTranspose2d", "BatchNorm2d"):
        put(ops.misc, name, type(name, (getattr(nn, name),), {}))
    put(
        ops.misc.FrozenBatchNorm2d,
        "__init__",
        _renaming(ops.misc.FrozenBatchNorm2d.__init__, {"n": "num_features"}),
    )
    put(ops, "_new_empty_tensor", lambda x, shape: x.new_empty(shape))
    put(v2, "ClampBoundingBox", v2.ClampBoundingBoxes)
    put(v2, "SanitizeBoundingBox", v2.SanitizeBoundingBoxes)
    put(v2, "ToImageTensor", v2.ToImage)
    put(v2, "ToImagePIL", v2.ToPILImage)
    put(v2, "ConvertDtype", v2.ConvertImageDtype)
    datapoints = types.ModuleType("torchvision.datapoints")
    vars(datapoints).update(vars(tv_tensors))
    datapoints.BoundingBox = _renaming(tv_tensors.BoundingBoxes, {"spatial_size": "canvas_size"})  # type: ignore[attr-defined]
    found = {
        "torchvision.datapoints": datapoints,
        "torchvision.models.segmentation.segmentation": models.segmentation,
        "torchvision.transforms.functional_pil": _functional_pil,
        "torchvision.transforms.functional_tensor": _functional_tensor,
    }
    put(torchvision, "datapoints", datapoints)
    put(transforms, "functional_pil", _functional_pil)
    put(transforms, "functional_tensor", _functional_tensor)
    return found


def _renaming(function: Callable[..., Any], keywords: dict[str, str]) -> Callable[..., Any]:
    """The function with old keywords."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{keywords.get(name, name): value for name, value in kwargs.items()})

    return call


def _resampling(function: Callable[..., Any]) -> Callable[..., Any]:
    """Rotations as of 0.13: `resample` is a number of PIL, and None counts as not given; so does `fillcolor`."""
    modes = ["NEAREST", "LANCZOS", "BILINEAR", "BICUBIC", "BOX", "HAMMING"]

    def call(*args: Any, resample: Any = None, fillcolor: Any = None, **kwargs: Any) -> Any:
        from torchvision.transforms import InterpolationMode

        if resample is not None:
            kwargs["interpolation"] = InterpolationMode[modes[int(resample)]]
        if fillcolor is not None:
            kwargs["fill"] = fillcolor
        return function(*args, **kwargs)

    return call


# ---- torchaudio ----------------------------------------------------------------------------------------


def _old_torchaudio(put: Put, used: Used) -> dict[str, types.ModuleType]:
    import torchaudio
    from torchaudio import functional

    def istft(stft_matrix: Any, *args: Any, pad_mode: Any = None, **kwargs: Any) -> Any:
        return references.istft(stft_matrix, *args, **kwargs)

    def complex_norm(complex_tensor: Any, power: float = 1.0) -> Any:
        return np.abs(_complex(complex_tensor)) ** power

    def angle(complex_tensor: Any) -> Any:
        return np.angle(_complex(complex_tensor))

    def magphase(complex_tensor: Any, power: float = 1.0) -> Any:
        return complex_norm(complex_tensor, power), angle(complex_tensor)

    for function in (istft, complex_norm, angle, magphase):
        put(functional, function.__name__, adapter(function.__name__, function, used))
    put(functional, "create_fb_matrix", functional.melscale_fbanks)
    put(functional, "sliding_window_cmn", _renaming(functional.sliding_window_cmn, {"waveform": "specgram"}))
    put(torchaudio.compliance.kaldi, "resample_waveform", functional.resample)
    return {}


def _complex(pairs: Any) -> Any:
    return pairs[..., 0] + 1j * pairs[..., 1]
