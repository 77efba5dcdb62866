"""The words in which a rule's `prove:` describes its inputs.

Each value is a Python expression over the functions below, `torch`, `np` and the variables before it:

    prove: {A: "symmetric(5)", B: "tensor(5, 2)", model: "linear(3, 4)"}

Every variable has a seed of its own, taken from its name, so that a new variable changes no other. Tensors
are float64 on the CPU unless the expression converts them; leading sizes are batch sizes.

Old releases are handed this module as it is (`tools/old_torch/`): it must load on torch 1.0 and Python 3.7.
"""

from __future__ import annotations

import copy
import functools
import os
import re
import tempfile
import wave
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

WORDS: dict[str, Any] = {"os": os, "torch": torch, "np": np, "copy": copy, "nn": nn}


def word(function: Any) -> Any:
    """Make a function available to `prove:`."""
    WORDS[function.__name__] = function
    return function


def evaluate(prove: Mapping[str, str]) -> dict[str, Any]:
    """The input variables of an example, in the order in which they are written.

    Raises:
        Exception: whatever an expression raises; the caller names the example.
    """
    values: dict[str, Any] = {}
    for name, expression in prove.items():
        seed_all(zlib.crc32(name.encode()))
        values[name] = eval(expression, dict(WORDS), values)
    return values


def seed_all(seed: int = 0) -> None:
    """Reset every random generator that code on the CPU draws from."""
    import random

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


# ---- numbers -----------------------------------------------------------------------------------------


@word
def tensor(*shape: int) -> Tensor:
    """Normally distributed: no symmetry, no order, negative numbers too."""
    return torch.randn(*shape, dtype=torch.float64)


@word
def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64) * (high - low) + low


@word
def positive(*shape: int) -> Tensor:
    """Between 0.1 and 2.1: safe for logarithms, roots and divisions."""
    return uniform(*shape, low=0.1, high=2.1)


@word
def complex_(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.complex128)


@word
def pairs(*shape: int) -> Tensor:
    """Complex numbers as they were before complex tensors: a real tensor with a last dimension of 2."""
    return tensor(*shape, 2)


@word
def integers(*shape: int, low: int = 0, high: int = 10) -> Tensor:
    return torch.randint(low, high, shape)


@word
def booleans(*shape: int) -> Tensor:
    """A boolean mask with both values in it, where there is room for both."""
    mask = torch.rand(*shape) < 0.5
    flat = mask.view(-1)
    if flat.numel() > 1:
        flat[0], flat[-1] = True, False
    return mask


@word
def with_nan(*shape: int) -> Tensor:
    values = tensor(*shape)
    values.view(-1)[0] = float("nan")
    return values


# ---- matrices ----------------------------------------------------------------------------------------


@word
def square(*shape: int) -> Tensor:
    """Well-conditioned, with no symmetry: `square(4)`, `square(2, 4)` for a batch of two."""
    n = shape[-1]
    return tensor(*shape, n) / n**0.5 + 2 * torch.eye(n, dtype=torch.float64)


@word
def symmetric(*shape: int) -> Tensor:
    """Symmetric with distinct eigenvalues of both signs."""
    a = tensor(*shape, shape[-1])
    spread = torch.diag(torch.arange(shape[-1], dtype=torch.float64) - 1)
    return (a + a.transpose(-1, -2)) / 2 + spread


def _adjoint(a: Tensor) -> Tensor:
    return a.conj().transpose(-1, -2)


@word
def hermitian(*shape: int) -> Tensor:
    a = complex_(*shape, shape[-1])
    return (a + _adjoint(a)) / 2 + torch.diag(torch.arange(shape[-1], dtype=torch.float64) - 1)


@word
def spd(*shape: int) -> Tensor:
    """Symmetric, positive definite."""
    a = tensor(*shape, shape[-1])
    return a @ a.transpose(-1, -2) + torch.eye(shape[-1], dtype=torch.float64)


@word
def hpd(*shape: int) -> Tensor:
    """Hermitian, positive definite, complex."""
    a = complex_(*shape, shape[-1])
    return a @ _adjoint(a) + torch.eye(shape[-1], dtype=torch.complex128)


@word
def lower(*shape: int) -> Tensor:
    """Lower triangular with a positive diagonal: a Cholesky factor."""
    return square(*shape).tril() + torch.eye(shape[-1], dtype=torch.float64)


@word
def upper(*shape: int) -> Tensor:
    return lower(*shape).transpose(-1, -2).contiguous()


@word
def low_rank(m: int, n: int, rank: int) -> Tensor:
    return tensor(m, rank) @ tensor(rank, n)


@word
def real_spectrum(n: int) -> Tensor:
    """Not symmetric, with real and distinct eigenvalues."""
    q = square(n)
    return q @ torch.diag(torch.arange(1, n + 1, dtype=torch.float64)) @ torch.inverse(q)


# ---- other inputs of the same kind (`wide.py`) ---------------------------------------------------------


@word
def strided(x: Tensor) -> Tensor:
    """The same numbers, every other element of a larger tensor."""
    return torch.stack((x, torch.ones_like(x)), -1)[..., 0]


@word
def backwards(x: Tensor) -> Tensor:
    """The same numbers, with the memory in the reverse order of dimensions."""
    dims = list(range(x.dim()))[::-1]
    return x.permute(*dims).contiguous().permute(*dims) if x.dim() > 1 else x


@word
def batch(x: Tensor, count: int = 2) -> Tensor:
    """Different tensors of this shape, in a new first dimension."""
    return torch.stack([x * (1 + k / 7) for k in range(count)])


@word
def copies(x: Tensor) -> Tensor:
    """A batch of as many as the last dimension but one has elements (or the last, if there is one)."""
    return batch(x, x.shape[-2] if x.dim() > 1 else x.shape[-1])


@word
def expanded(x: Tensor) -> Tensor:
    """A batch of two without memory for the second."""
    return x.unsqueeze(0).expand(2, *x.shape)


@word
def single(x: Tensor) -> Tensor:
    return x.to(torch.complex64 if x.is_complex() else torch.float32)


@word
def half(x: Tensor) -> Tensor:
    return x if x.is_complex() else x.half()


@word
def complexed(x: Tensor) -> Tensor:
    """With an imaginary part."""
    return x if x.is_complex() else torch.complex(x, noise(x))


@word
def noise(x: Tensor) -> Tensor:
    """Normally distributed, in the place of any structure."""
    return torch.randn(x.shape, dtype=x.dtype)


@word
def singular(x: Tensor) -> Tensor:
    """With two rows that are the same, or with a zero."""
    x = x.clone()
    if x.dim() > 1:
        x[..., -1:, :] = x[..., :1, :]
    else:
        x[-1:] = 0
    return x


@word
def zeros(x: Tensor) -> Tensor:
    return torch.zeros_like(x)


@word
def shorter(x: Tensor) -> Tensor:
    """Without the first row."""
    return x[..., 1:, :] if x.dim() > 1 else x[1:]


@word
def narrower(x: Tensor) -> Tensor:
    """Without the last row and the last column."""
    return x[..., :-1, :-1] if x.dim() > 1 else x[:-1]


@word
def longer(x: Tensor) -> Tensor:
    """With the first row once more."""
    return torch.cat((x, x[..., :1, :]), -2) if x.dim() > 1 else torch.cat((x, x[:1]))


@word
def one(x: Tensor) -> Tensor:
    """One element of each dimension but those of two."""
    return x[tuple(slice(0, 2 if size == 2 else 1) for size in x.shape)]


@word
def empty(x: Tensor) -> Tensor:
    """No elements along the first dimension."""
    return x[:0]


@word
def none(x: Tensor) -> Tensor:
    """No elements along the last dimension."""
    return x[..., :0]


@word
def whole(x: Tensor) -> Tensor:
    """Integers."""
    return x if x.is_complex() else (x * 3).round().long()


@word
def vector(x: Tensor) -> Tensor:
    """The first row of a matrix."""
    return x[..., 0, :] if x.dim() > 1 else x


@word
def column(x: Tensor) -> Tensor:
    """The first column of a matrix."""
    return x[..., 0]


@word
def vectors(x: Tensor) -> Tensor:
    """As many vectors as each has elements."""
    return copies(x[..., 0] if x.dim() > 1 else x)


# ---- signals, classes --------------------------------------------------------------------------------


@word
def signal(*shape: int) -> Tensor:
    """Two sines and some noise along the last dimension."""
    t = torch.arange(shape[-1], dtype=torch.float64)
    return torch.sin(t / 3) + 0.5 * torch.cos(t / 7) + 0.1 * tensor(*shape)


@word
def window(n: int) -> Tensor:
    return torch.hann_window(n, dtype=torch.float64)


@word
def labels(n: int, classes: int) -> Tensor:
    return integers(n, high=classes)


@word
def signs(*shape: int) -> Tensor:
    """Targets of margin losses: 1.0 and -1.0."""
    return booleans(*shape).double() * 2 - 1


@word
def probabilities(*shape: int) -> Tensor:
    return torch.softmax(tensor(*shape), -1)


@word
def log_probabilities(*shape: int) -> Tensor:
    return torch.log_softmax(tensor(*shape), -1)


@word
def images(*shape: int) -> Tensor:
    """N, C, H, W between 0 and 1."""
    return uniform(*shape)


# ---- modules, optimisers -----------------------------------------------------------------------------


@word
def linear(inputs: int = 3, outputs: int = 2) -> nn.Module:
    return nn.Linear(inputs, outputs).double()


@word
def conv(inputs: int = 3, outputs: int = 4, kernel: int = 3) -> nn.Module:
    return nn.Conv2d(inputs, outputs, kernel).double()


@word
def batch_norm_model(channels: int = 3) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).double()


@word
def parameters(*shape: int) -> list[nn.Parameter]:
    return [nn.Parameter(tensor(*(shape or (3,))))]


@word
def with_gradients(items: Any) -> Any:
    """The same parameters (or module), each with a gradient larger than 1 in norm."""
    for item in items.parameters() if isinstance(items, nn.Module) else items:
        item.grad = torch.randn_like(item) * 5
    return items


@word
def sgd(items: Any = None, lr: float = 0.1) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters() if items is None else items, lr=lr)


@word
def prepared_fx() -> nn.Module:
    """A model of one linear layer that `prepare_fx` prepared, and that has seen data."""
    from torch.ao import quantization
    from torch.ao.quantization.quantize_fx import prepare_fx

    model, config = nn.Sequential(nn.Linear(3, 2)).eval(), {"": quantization.get_default_qconfig("fbgemm")}
    example = tensor(4, 3).float()
    try:
        prepared = prepare_fx(model, config, example_inputs=(example,))
    except TypeError:  # before torch 1.13
        prepared = prepare_fx(model, config)
    prepared(example)
    return prepared


@word
def tracing_only() -> None:
    """From now on `torch.compile` traces the code and runs what it traced: no compiler is needed for that."""
    torch.compile = functools.partial(torch.compile, backend="eager")


# ---- files, processes, objects -----------------------------------------------------------------------


@word
def text_file(name: str = "some.txt") -> str:
    """A small file in the working directory, which is a temporary one."""
    Path(name).write_text("one\ntwo\n")
    return name


@word
def saved(value: Any, path: str) -> None:
    """`torch.save` before the example runs, as another program did."""
    torch.save(value, path)


@word
def picture(name: str = "picture.png") -> str:
    """A file with a picture of 24 by 20 pixels, the same everywhere."""
    from PIL import Image

    values = (np.arange(24 * 20 * 3) * 7 % 256).astype(np.uint8)
    Image.fromarray(values.reshape(20, 24, 3)).save(name)
    return name


@word
def image_folder() -> str:
    """The directory of a data set of pictures in two classes."""
    for kind in ("cat", "dog"):
        Path("pictures", kind).mkdir(parents=True, exist_ok=True)
        picture(f"pictures/{kind}/one.png")
    return "pictures"


@word
def digits() -> str:
    """The directory of an MNIST of two pictures, in the format of its files."""
    for folder in ("MNIST/raw", "MNIST/processed"):
        Path(folder).mkdir(parents=True, exist_ok=True)
    for kind in ("train", "t10k"):
        head = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2])
        Path(f"MNIST/raw/{kind}-images-idx3-ubyte").write_bytes(head + bytes(range(8)))
        Path(f"MNIST/raw/{kind}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
    for name in ("training", "test"):
        parts = torch.arange(8, dtype=torch.uint8).reshape(2, 2, 2), torch.tensor([7, 9])
        torch.save(parts, f"MNIST/processed/{name}.pt")
    return "."


@word
def imagenet_files() -> str:
    """The directory of an ImageNet of two classes, each with a picture to validate by."""
    kinds = {"n01440764": ("tench", "Tinca tinca"), "n01443537": ("goldfish", "Carassius auratus")}
    for kind in kinds:
        Path("val", kind).mkdir(parents=True, exist_ok=True)
        picture(f"val/{kind}/one.png")
    torch.save((kinds, list(kinds)), "meta.bin")
    return "."


@word
def audio_file(name: str = "sound.wav", count: int = 64) -> str:
    """A file of 16-bit samples on one channel, 8,000 a second, the same everywhere."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    with wave.open(name, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((np.arange(count) * 777 % 4001 - 2000).astype("<i2").tobytes())
    return name


@word
def yesno_files() -> str:
    """The directory of a YESNO data set of two recordings; until torchaudio 0.3 they were processed into one."""
    names = ("0_0_0_0_1_1_1_1", "0_1_0_1_0_1_0_1")
    for name in names:
        audio_file(f"waves_yesno/{name}.wav")
    Path("yesno/processed").mkdir(parents=True, exist_ok=True)
    answers = [[int(answer) for answer in name.split("_")] for name in names]
    torch.save(([torch.zeros(64, 1) for _ in names], answers), "yesno/processed/yesno.pt")
    return "."


@word
def hub_repository(name: str, code: str) -> str:
    """What `torch.hub` keeps of a repository that it fetched before: `code` is its `hubconf.py`.

    Args:
        name: owner, repository and release, `pytorch/vision:v0.6.0`.
    """
    directory = Path("hub", re.sub("[/:]", "_", name))
    directory.mkdir(parents=True, exist_ok=True)
    Path(directory, "hubconf.py").write_text(code)
    torch.hub.set_dir(str(Path("hub").resolve()))
    return name


@word
def process_group() -> None:
    """The default process group, of this process alone; None means this group."""
    if not torch.distributed.is_initialized():
        path = Path(tempfile.mkdtemp(), "store")
        torch.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=0, world_size=1)


@word
def fields(**values: Any) -> Any:
    """An object with these attributes, as `argparse` gives."""
    import argparse

    return argparse.Namespace(**values)


@word
def data_pipe(count: int = 4) -> Any:
    from torch.utils.data.datapipes.iter import IterableWrapper

    return IterableWrapper(list(range(count)))
