"""Classes of the libraries: which derives from which, and under which names a method is known."""

from __future__ import annotations

import re
from functools import lru_cache

from torchmigrate.canonical import canonical
from torchmigrate.names.class_api import DERIVED, OTHER_CONTRACT

TENSOR = "torch.Tensor"
MODULE = "torch.nn.Module"
FUNCTION = "torch.autograd.Function"
OPTIMIZER = "torch.optim.Optimizer"
SCHEDULER = "torch.optim.lr_scheduler.LRScheduler"
DISTRIBUTION = "torch.distributions.Distribution"
LOADER = "torch.utils.data.DataLoader"

# What the classes of a package are, unless the table says otherwise. The table holds the releases that it was
# made from; this also holds for classes that are gone, or new.
_PACKAGES = [
    (re.compile(pattern), base)
    for pattern, base in (
        (r"torch\.nn\.(?!Parameter\b|Buffer\b|Uninitialized)(?:parallel\.)?[A-Z]\w*", MODULE),
        (r"torch\.(?:ao\.)?nn\.(?:quantized|qat|intrinsic|quantizable)\.(?:\w+\.)?[A-Z]\w*", MODULE),
        (r"torch\.optim\.lr_scheduler\._?[A-Z]\w*", SCHEDULER),
        (r"torch\.optim\.[A-Z]\w*", OPTIMIZER),
        (r"torch\.distributions\.(?:transforms\.)?\w*Transform", "torch.distributions.Transform"),
        (r"torch\.distributions\.(?:\w+\.)?[A-Z]\w*", DISTRIBUTION),
        (r"torch\.(?!Typed|Untyped)(?:cuda\.)?\w*Storage", "torch.TypedStorage"),
        (r"torchvision\.models\.(?:\w+\.)*[A-Z]\w*", MODULE),
        (r"torchvision\.ops\.[A-Z]\w*", MODULE),
        (r"torchaudio\.(?:transforms|models)\.(?:\w+\.)*[A-Z]\w*", MODULE),
        (r"apex\.optimizers\.[A-Z]\w*", OPTIMIZER),
        (r"apex\.(?:normalization|parallel)\.[A-Z]\w*", MODULE),
    )
]
# Classes of other libraries that are known to derive from one of torch's.
_OUTSIDE = re.compile(
    r"(?:pytorch_)?lightning\.(?:\w+\.)*LightningModule|transformers\.(?:\w+\.)*PreTrainedModel"
)
_ALIASES = {
    "torch.optim.lr_scheduler._LRScheduler": SCHEDULER,
    "torch.optim.swa_utils.LRScheduler": SCHEDULER,
    "torch.GradScaler": "torch.amp.GradScaler",
    "torch._TypedStorage": "torch.TypedStorage",
    "torch.storage.TypedStorage": "torch.TypedStorage",
    "torch.storage._TypedStorage": "torch.TypedStorage",
    "torch.storage.UntypedStorage": "torch.UntypedStorage",
}


def usual_base(name: str) -> str | None:
    """What a class derives from as most of its package do."""
    for pattern, base in _PACKAGES:
        if pattern.fullmatch(name):
            return base if base != name else None
    return None


def _table() -> dict[str, str]:
    base, bases = "", {}
    for word in DERIVED.split():
        if word.endswith(":"):
            base = word[:-1]
        else:
            bases[word] = base
    return bases


_BASES = _table()


def library_base(name: str) -> str:
    """The torch class that a class of another library is known to be; the name itself otherwise."""
    return MODULE if _OUTSIDE.fullmatch(name) else name


@lru_cache(maxsize=4096)
def ancestors(cls: str) -> tuple[str, ...]:
    """A class by its public name, then all that it derives from, nearest first."""
    name: str | None = canonical(cls)
    found: list[str] = []
    while name is not None and name not in found:
        name = _ALIASES.get(name, name)
        found.append(name)
        name = _BASES.get(name) or usual_base(name)
    return tuple(found)


def is_a(cls: str, base: str) -> bool:
    """Whether a class is, or derives from, another one."""
    return base in ancestors(cls)


def common_class(first: str, second: str) -> str | None:
    """The nearest class that two classes have in common."""
    theirs = ancestors(second)
    return next((name for name in ancestors(first) if name in theirs), None)


@lru_cache(maxsize=8192)
def inherited(name: str) -> tuple[str, ...]:
    """Under which other names the member `name` of a class is known: its bases', and older ones.

    `torch.optim.SGD.zero_grad` is `torch.optim.Optimizer.zero_grad`. What a class overrides with other
    parameters is its own: `ReduceLROnPlateau.step` is no `LRScheduler.step`.
    """
    cls, _, member = name.rpartition(".")
    if not cls.rpartition(".")[2].lstrip("_")[:1].isupper():
        return ()
    found: list[str] = []
    for owner in ancestors(cls):
        found.append(f"{owner}.{member}")
        found.extend(f"{old}.{member}" for old, new in _ALIASES.items() if new == owner)
        if f"{owner}.{member}" in OTHER_CONTRACT:
            break
    return tuple(other for other in dict.fromkeys(found) if other != name)
