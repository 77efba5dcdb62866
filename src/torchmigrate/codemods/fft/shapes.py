"""Forms of expressions: calls, sizes and indices as they are written."""

from __future__ import annotations

import ast

from torchmigrate.codemods.base.operations import number


def plain_call(node: ast.Call) -> bool:
    """Whether a call has no `**`, and `*` in front of other arguments only."""
    starred = bool(node.args) and isinstance(node.args[-1], ast.Starred)
    return not starred and all(item.arg is not None for item in node.keywords)


def operation(node: ast.Call, qualified: str | None) -> tuple[str, list[ast.expr]]:
    """The last part of the name of a function of torch or of a method, "" for anything else; and the
    arguments by position, that of a method in front."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if qualified is not None:
        name = qualified.rpartition(".")[2] if qualified.startswith("torch.") else ""
    method = qualified is None or qualified.startswith("torch.Tensor.")
    first = [node.func.value] if method and isinstance(node.func, ast.Attribute) else []
    return name, [*first, *node.args]


def ends_with(arguments: list[ast.expr], value: int) -> bool:
    """Whether the last of several sizes is this one."""
    return len(arguments) > 1 and number(arguments[-1]) == value


def keeps_last(arguments: list[ast.expr]) -> bool:
    """Whether the dimensions that `permute` is given, one by one, leave the last in its place."""
    dims = [number(item) for item in arguments]
    count = len(dims)
    return (
        count > 1
        and sorted(dim if dim is not None else -1 for dim in dims) == [*range(count)]
        and dims[-1] == count - 1
    )


def dimension(node: ast.Call, index: int, *more: str) -> int | float | None:
    """The literal dimension that a call is given by position or as `dim`."""
    if index < len(node.args):
        return number(node.args[index])
    return next((number(item.value) for item in node.keywords if item.arg in ("dim", *more)), None)


def is_last_dimension(node: ast.Call, element: ast.expr) -> bool:
    """Whether the dimension of a `stack` is `x.dim()` of its first element: the one after all others."""
    given = node.args[1:2] or [item.value for item in node.keywords if item.arg in ("dim", "axis")]
    dim = given[0] if given else None
    if not isinstance(dim, ast.Call) or not isinstance(dim.func, ast.Attribute) or dim.args:
        return False
    whose = dim.func.value
    return dim.func.attr == "dim" and isinstance(whose, ast.Name) and ast.dump(whose) == ast.dump(element)


def is_ellipsis(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def is_whole(node: ast.expr) -> bool:
    """Whether an index is `:`."""
    return isinstance(node, ast.Slice) and not (node.lower or node.upper or node.step)


def last_part(node: ast.Subscript) -> bool:
    """Whether an index is `[..., 0]` or `[..., 1]`, to be read."""
    if (
        not isinstance(node.slice, ast.Tuple)
        or len(node.slice.elts) != 2
        or not isinstance(node.ctx, ast.Load)
    ):
        return False
    return is_ellipsis(node.slice.elts[0]) and number(node.slice.elts[1]) in (0, 1)


def sliced(node: ast.Subscript) -> list[ast.expr] | None:
    """The indices of `x[..., a, :]` before the last; None for another form."""
    if not isinstance(node.slice, ast.Tuple):
        return None
    items = node.slice.elts
    middle = items[1:-1]
    if len(items) < 2 or not is_ellipsis(items[0]) or not is_whole(items[-1]):
        return None
    if not all(isinstance(item, ast.Slice) or isinstance(number(item), int) for item in middle):
        return None
    return items[:-1]


def full_slices(node: ast.Subscript) -> int | None:
    """How many `:` stand before the last index, if nothing else does."""
    if not isinstance(node.slice, ast.Tuple):
        return None
    before = node.slice.elts[:-1]
    return len(before) if before and all(map(is_whole, before)) else None


def adds_dimension(node: ast.expr) -> bool:
    """Whether an expression is `x[..., None]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return False
    items = node.slice.elts
    last = items[-1]
    return len(items) == 2 and is_ellipsis(items[0]) and isinstance(last, ast.Constant) and last.value is None


def inside_column(node: ast.expr) -> ast.expr | None:
    """`x` of `x.unsqueeze(-1)` and `x[..., None]`."""
    if isinstance(node, ast.Subscript) and adds_dimension(node):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "unsqueeze":
        return node.func.value if dimension(node, 0) == -1 else None
    return None
