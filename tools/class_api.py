"""Write src/torchmigrate/names/class_api.py from the classes of an installed torch.

Usage: python tools/class_api.py   (in an environment that has torch)
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

from torchmigrate.semantics.public_names import public_name
from torchmigrate.semantics.values.objects import usual_base

OUT = Path(__file__).parent.parent / "src" / "torchmigrate" / "names" / "class_api.py"

# Where the classes are published whose objects programs hold.
MODULES = """
torch torch.nn torch.nn.parallel torch.nn.utils.parametrize torch.optim torch.optim.lr_scheduler
torch.optim.swa_utils torch.autograd torch.utils.data torch.utils.data.distributed torch.distributions
torch.distributions.transforms torch.amp torch.cuda.amp torch.cpu.amp torch.jit torch.nn.quantized
torch.nn.quantized.dynamic torch.nn.qat torch.nn.intrinsic torch.nn.intrinsic.qat torch.nn.intrinsic.quantized
torch.ao.nn.quantized torch.ao.nn.quantized.dynamic torch.ao.nn.qat torch.ao.nn.intrinsic
torch.ao.nn.intrinsic.qat torch.ao.nn.intrinsic.quantized torch.quantization torch.ao.quantization
torch.distributed.fsdp torch.distributed.optim torch.distributed.pipelining torch.fx
""".split()
# Only what derives from one of these is of interest.
ROOTS = """
torch.nn.Module torch.optim.Optimizer torch.optim.lr_scheduler.LRScheduler torch.autograd.Function
torch.utils.data.Dataset torch.utils.data.Sampler torch.distributions.Distribution
torch.distributions.Transform torch.amp.GradScaler torch.TypedStorage
""".split()
# A signature like the base's, and another meaning: `step(epoch)` is what this scheduler is for.
OWN_MEANING = {"torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.step"}
# Single tensors that no annotation promises, and that depend on an argument (`return_indices`).
SINGLE = {f"{kind}Pool{dim}d" for kind in ("Max", "AdaptiveMax", "FractionalMax") for dim in (1, 2, 3)}
TUPLES = {"RNN", "LSTM", "GRU", "LSTMCell", "MultiheadAttention"}


def published() -> dict[type, list[str]]:
    """Every class of the modules with its public names, the best first."""
    found: dict[type, set[str]] = defaultdict(set)
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:  # TensorBoard is not installed
            continue
        for last, value in sorted(vars(module).items()):
            if not inspect.isclass(value) or last.startswith("_") or not last[0].isupper():
                continue
            if value.__module__.startswith("torch"):
                found[value].add(public_name(f"{name}.{last}"))
    return {cls: sorted(names, key=rank) for cls, names in found.items()}


def rank(name: str) -> tuple[bool, int, str]:
    """Roots are known by the names that they have there; otherwise the shortest name is best."""
    return name not in ROOTS, name.count("."), name


def other_contract(cls: type, base: type) -> set[str]:
    """Methods that a class overrides with other parameters: what is said of the base's does not hold."""
    found = set()
    for name, own in vars(cls).items():
        theirs = getattr(base, name, None)
        if name.startswith("_") or not inspect.isfunction(own) or not inspect.isfunction(theirs):
            continue
        if name != "forward" and parameters(own) != parameters(theirs):
            found.add(name)
    return found


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def tensor_attributes(layers: list[type]) -> set[str]:
    """Attributes of layers that are annotated as tensors."""
    found = {"weight", "bias", "running_mean", "running_var"}
    for layer in layers:
        for cls in layer.__mro__:
            for attr, kind in vars(cls).get("__annotations__", {}).items():
                if re.search(r"\bTensor\b|\bParameter\b", str(kind)) and not attr.startswith("_"):
                    found.add(attr)
    return found


def block(name: str, doc: str, words: set[str]) -> str:
    body = textwrap.fill(" ".join(sorted(words)), 104, initial_indent="    ", subsequent_indent="    ")
    return f'# {doc}\n{name} = frozenset(\n    """\n{body}\n    """.split()\n)\n'


def main() -> None:
    import torch

    classes = published()
    roots = {cls for cls, names in classes.items() if names[0] in ROOTS}
    by_base: dict[str, set[str]] = defaultdict(set)
    contracts: set[str] = set(OWN_MEANING)
    layers = []
    for cls, names in classes.items():
        if not roots.intersection(cls.__mro__):
            continue
        if issubclass(cls, torch.nn.Module) and re.fullmatch(r"torch\.nn\.\w+", names[0]):
            layers.append(cls)
        base = next((other for other in cls.__mro__[1:] if other in classes), None)
        if base is None or cls in roots:
            continue
        for name in names:
            if usual_base(name) != classes[base][0]:
                by_base[classes[base][0]].add(name)
            contracts |= {f"{name}.{method}" for method in other_contract(cls, base)}
    single = {
        classes[cls][0].rpartition(".")[2]
        for cls in layers
        if getattr(cls.forward, "__annotations__", {}).get("return") in (torch.Tensor, "Tensor")
    }
    lines = []
    for parent in sorted(by_base):
        words = f"{parent}: {' '.join(sorted(by_base[parent]))}"
        lines.append(
            textwrap.fill(words, 106, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        )
    parts = [
        '"""Which classes of torch derive from which, and what calling a layer gives.\n\n'
        'Made by tools/class_api.py from torch; do not edit.\n"""\n',
        "# base: the classes that derive from it, unless `objects.usual_base` says so\n"
        'DERIVED = """\n' + "\n".join(lines) + '\n"""\n',
        block(
            "OTHER_CONTRACT", "Overridden with other parameters: what is true of the base's is not", contracts
        ),
        block("SINGLE_LAYERS", "torch.nn.NAME(...)(x) is one tensor", single | SINGLE),
        block("TUPLE_LAYERS", "torch.nn.NAME(...)(x) is a tuple of tensors", TUPLES),
        block(
            "LAYER_TENSORS",
            "Attributes that are tensors on every layer that has them",
            tensor_attributes(layers),
        ),
    ]
    OUT.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
