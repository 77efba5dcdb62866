"""The packages whose names are looked at."""

from __future__ import annotations

LIBRARY_ROOTS = frozenset(
    [
        "torch",
        "torchvision",
        "torchaudio",
        "torchtext",
        "torchdata",
        "functorch",
        "apex",
        "torchao",
        "fairscale",
        "tensorboardX",
        "caffe2",
        "torchdynamo",
        "torchelastic",
    ]
)
