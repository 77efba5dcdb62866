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
        "torchcodec",
        "torchmetrics",
        "transformers",
        "lightning",
        "pytorch_lightning",
        "torchx",
        "fairscale",
        "tensorboardX",
        "torcharrow",
        "optimum",
        "pytorch_quantization",
        "torch_tensorrt",
        "caffe2",
        "torchdynamo",
        "torchelastic",
        "torio",
    ]
)
# In a text without these, none of the roots occurs.
_PARTS = [root for root in LIBRARY_ROOTS if not any(other in root for other in LIBRARY_ROOTS - {root})]


def mentions_library(text: str) -> bool:
    """Whether the name of a library occurs at all."""
    return any(part in text for part in _PARTS)
