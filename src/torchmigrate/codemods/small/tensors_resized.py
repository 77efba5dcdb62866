"""TM774: `Resize` after `ToTensor` in a `Compose`, which antialiases since torchvision 0.17."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

_COMPOSE = frozenset(["torchvision.transforms.Compose", "torchvision.transforms.v2.Compose"])
_TO_TENSOR = frozenset(
    f"torchvision.transforms.{name}" for name in ("ToTensor", "PILToTensor", "v2.ToTensor", "v2.ToImage")
)
_TO_IMAGE = frozenset(["torchvision.transforms.ToPILImage", "torchvision.transforms.v2.ToPILImage"])


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every transform that surely gets tensors."""
    tensors = set(_of_tensors(file)) if hits else set()
    for hit in hits:
        if hit.use.call in tensors:
            yield from file.fixes.findings([hit])


def _of_tensors(file: FileContext) -> Iterator[ast.AST]:
    """The transforms that follow one that makes tensors."""
    for call in file.names.nodes(ast.Call):
        if file.names.qualified(call.func) not in _COMPOSE or not call.args:
            continue
        made = file.flow.only_origin(call.args[0])
        is_tensor = False
        for item in made.elts if isinstance(made, (ast.List, ast.Tuple)) else ():
            name = file.names.qualified(item.func) if isinstance(item, ast.Call) else None
            if is_tensor:
                yield item
            if name in _TO_TENSOR:
                is_tensor = True
            elif name in _TO_IMAGE or name is None:
                is_tensor = False
