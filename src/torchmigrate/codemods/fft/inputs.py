"""What a transform is given: how it becomes complex, and where its size can be read."""

from __future__ import annotations

import ast

from torchmigrate.codemods.fft.calls import Measure
from torchmigrate.codemods.fft.values import FILLED, Values, only_argument
from torchmigrate.rewrite.code import Code, code

_LAID_OUT = FILLED | {"torch.stack", "torch.view_as_real"}  # `cat` may keep another order of dimensions


def as_complex(node: ast.expr, values: Values, function: str) -> Code:
    """A pair from elsewhere as a complex tensor; `view_as_complex` needs both parts side by side."""
    if _laid_out(node, values):
        return code("$function($x)", function=function, x=node)
    return code("$function($x.contiguous())", function=function, x=node)


def _laid_out(node: ast.expr, values: Values) -> bool:
    """Whether both parts of every number surely lie together, as `view_as_complex` needs them."""
    if isinstance(node, ast.Name):
        seen = values.reaching.of(node)
        return bool(seen) and all(
            isinstance(item.value, ast.Call) and _laid_out(item.value, values) for item in seen
        )
    if not isinstance(node, ast.Call):
        return False
    transform = values.transforms.get(id(node))
    if transform is not None:
        return transform.gives_pairs
    name = values.qualified(node.func)
    if name in _LAID_OUT or node.args or node.keywords or not isinstance(node.func, ast.Attribute):
        return name in _LAID_OUT
    method = node.func.attr if name in (None, f"torch.Tensor.{node.func.attr}") else ""
    return method == "contiguous" or (method == "clone" and _laid_out(node.func.value, values))


def real_only(node: ast.expr, values: Values) -> ast.expr | None:
    """The real part of `torch.stack((x, torch.zeros_like(x)), -1)`."""
    stacked = values.stacked(node)
    if stacked is None:
        return None
    real, imaginary = stacked
    if not isinstance(imaginary, ast.Call) or len(imaginary.args) != 1 or imaginary.keywords:
        return None
    same = ast.dump(imaginary.args[0]) == ast.dump(real) and isinstance(real, ast.Name)
    return real if same and values.qualified(imaginary.func) == "torch.zeros_like" else None


def measure(node: ast.expr, values: Values, trailing: int) -> Measure | None:
    """Where to read the number of frequencies of a pair without evaluating it twice.

    trailing: 1 where variables that hold pairs stay what they are, 0 where they become complex.
    """
    if isinstance(node, (ast.Name, ast.Attribute)):
        return Measure(node, trailing)
    if isinstance(node, ast.Call) and values.qualified(node.func) == "torch.view_as_real":
        inner = only_argument(node)
        return Measure(inner, 0) if isinstance(inner, (ast.Name, ast.Attribute)) else None
    stacked = values.stacked(node)
    if stacked is None:
        return None
    part = values.part(stacked[0])
    if part is not None:
        return Measure(part.pair, trailing) if isinstance(part.pair, ast.Name) else None
    return Measure(stacked[0], 0) if isinstance(stacked[0], ast.Name) else None
