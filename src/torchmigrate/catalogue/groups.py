"""Groups of rules: names that select what belongs together, such as everything about `torch.compile`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torchmigrate.catalogue.model import Rule

# What each group of our own rules is for. Every rule that is off unless selected belongs to one of them.
PURPOSES = {
    "adopt-accelerator": "run on any accelerator through `torch.accelerator`, not only on CUDA",
    "adopt-compile": "compile models with `torch.compile`, and fix code that it compiles badly",
    "adopt-distributed": "replace `DataParallel`, FSDP1 and manual coordination of processes",
    "adopt-fused": "use optimizers that update all parameters in a single kernel",
    "adopt-options": "use options of newer releases that make code faster or shorter",
    "adopt-sdpa": "compute attention with `scaled_dot_product_attention`, a single kernel",
    "api-hints": "find misspelled names, settings without effect, and deprecations without a warning",
    "bfloat16": "find code that bfloat16 training does not need, or that prevents it",
    "changed-behavior": "review results and defaults that changed, on which the code may not depend",
    "explicit-defaults": "write out defaults that often surprise readers",
    "habits": "fix typing mistakes and unusual imports, as TorchFix does",
    "legacy-tensors": "replace legacy constructors, `.data`, uint8 masks and tensor classes as dtypes",
    "newer-names": "use the newer name or spelling of the same function",
    "pins": "raise requirements that exclude the target, or allow a Python that it does not support",
    "public-names": "replace private names and prototypes by public ones",
    "quantization-x86": "use the x86 backend for quantized models",
    "replace-apex": "replace layers and optimizers of apex by those of PyTorch",
    "replace-packages": "replace fairscale and tensorboardX by what PyTorch includes",
    "stable-math": "use functions that keep precision, such as `log1p` and `logsumexp`",
    "superseded": "replace APIs that work without a warning but have a successor",
    "tf32": "control TF32 precision, with the API of torch 2.9",
}


class RuleGroup(NamedTuple):
    """A group with its rules, in order of code. purpose: None for a group of a user's own rules."""

    name: str
    purpose: str | None
    rules: tuple[Rule, ...]


def groups(rules: Iterable[Rule]) -> list[RuleGroup]:
    """The groups of some rules, in order of name."""
    found: dict[str, list[Rule]] = {}
    for rule in sorted(rules, key=lambda rule: rule.code):
        if rule.group is not None:
            found.setdefault(rule.group, []).append(rule)
    return [RuleGroup(name, PURPOSES.get(name), tuple(found[name])) for name in sorted(found)]
