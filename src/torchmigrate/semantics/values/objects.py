"""Classes of the libraries: which derives from which, and under which names a method is known."""

from __future__ import annotations

from functools import lru_cache

from torchmigrate.semantics.public_names import public_name
from torchmigrate.semantics.values.class_api import DERIVED, OTHER_CONTRACT

TENSOR = "torch.Tensor"
MODULE = "torch.nn.Module"
FUNCTION = "torch.autograd.Function"
OPTIMIZER = "torch.optim.Optimizer"
SCHEDULER = "torch.optim.lr_scheduler.LRScheduler"
DISTRIBUTION = "torch.distributions.Distribution"
LOADER = "torch.utils.data.DataLoader"

TENSOR_CLASSES = frozenset(
    f"torch.{device}{kind}Tensor"
    for device in ("", "cuda.", "sparse.", "cuda.sparse.")
    for kind in ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool", "")
) | {"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.autograd.Variable", "torch.nn.Buffer"}

# What the classes of a package are, unless the table says otherwise. The table holds the release that it was
# made from; this also holds for classes that were removed, or are new.
_PACKAGES = {
    "torch.nn": MODULE,
    "torch.nn.parallel": MODULE,
    "torch.optim": OPTIMIZER,
    "torch.optim.lr_scheduler": SCHEDULER,
    "torch.distributions": DISTRIBUTION,
    "torchvision.ops": MODULE,
    "apex.optimizers": OPTIMIZER,
    "apex.normalization": MODULE,
    "apex.parallel": MODULE,
}
_MODULES_BELOW = (
    "torch.nn.modules.",
    "torch.nn.quantized.",
    "torch.nn.qat.",
    "torch.nn.intrinsic.",
    "torch.nn.quantizable.",
    "torch.ao.nn.",
    "torchvision.models.",
    "torchaudio.models.",
    "torchaudio.transforms.",
)
_NO_MODULES = ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer")
# Classes of other libraries that are known to derive from torch's Module.
_OUTSIDE = ("LightningModule", "PreTrainedModel")
_OUTSIDE_ROOTS = ("pytorch_lightning", "lightning", "transformers")
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
    package, _, last = name.rpartition(".")
    if not last.lstrip("_")[:1].isupper():
        return None
    base = _PACKAGES.get(package)
    if base is None and name.startswith(_MODULES_BELOW):
        base = MODULE
    if package.startswith("torch.distributions") and last.endswith("Transform"):
        base = "torch.distributions.Transform"
    elif package in ("torch", "torch.cuda") and last.endswith("Storage") and last != "UntypedStorage":
        base = "torch.TypedStorage"
    elif package == "torch.nn" and last in _NO_MODULES:
        base = None
    return base if base != name else None


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
    """The torch class that objects of a class are treated as; the name itself for most."""
    if name in TENSOR_CLASSES:
        return TENSOR
    root, _, rest = name.partition(".")
    return MODULE if root in _OUTSIDE_ROOTS and rest.rpartition(".")[2] in _OUTSIDE else name


@lru_cache(maxsize=4096)
def ancestors(cls: str) -> tuple[str, ...]:
    """A class by its public name, then all that it derives from, nearest first."""
    name: str | None = public_name(cls)
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
    parameters is its own: `ReduceLROnPlateau.step` is not `LRScheduler.step`.
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
