"""What a transform is given: how it becomes complex, and where its size can be read."""

from __future__ import annotations

import ast

from torchmigrate.codemods.fft.calls import Measure
from torchmigrate.codemods.fft.layouts import Layouts, only_argument
from torchmigrate.rewrite.code import Code, code


def as_complex(node: ast.expr, layouts: Layouts, function: str) -> Code:
    """A pair from elsewhere as a complex tensor; `view_as_complex` needs both parts side by side."""
    if layouts.laid_out.is_only(node, True):
        return code("$function($x)", function=function, x=node)
    return code("$function($x.contiguous())", function=function, x=node)


def real_only(node: ast.expr, layouts: Layouts) -> ast.expr | None:
    """The real part of `torch.stack((x, torch.zeros_like(x)), -1)`."""
    stacked = layouts.stacked(node)
    if stacked is None:
        return None
    real, imaginary = stacked
    if not isinstance(imaginary, ast.Call) or len(imaginary.args) != 1 or imaginary.keywords:
        return None
    same = ast.dump(imaginary.args[0]) == ast.dump(real) and isinstance(real, ast.Name)
    return real if same and layouts.qualified(imaginary.func) == "torch.zeros_like" else None


def measure(node: ast.expr, layouts: Layouts, trailing: int) -> Measure | None:
    """Where to read the number of frequencies of a pair without evaluating it twice.

    trailing: 1 where variables that hold pairs stay what they are, 0 where they become complex.
    """
    if isinstance(node, (ast.Name, ast.Attribute)):
        return Measure(node, trailing)
    if isinstance(node, ast.Call) and layouts.qualified(node.func) == "torch.view_as_real":
        inner = only_argument(node)
        return Measure(inner, 0) if isinstance(inner, (ast.Name, ast.Attribute)) else None
    stacked = layouts.stacked(node)
    if stacked is None:
        return None
    part = layouts.part_of(stacked[0])
    if part is not None:
        return Measure(part.pair, trailing) if isinstance(part.pair, ast.Name) else None
    return Measure(stacked[0], 0) if isinstance(stacked[0], ast.Name) else None
