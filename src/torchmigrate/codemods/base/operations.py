"""What an expression does, whichever way it is spelled: `F.softmax(x, -1)`, `x.softmax(dim=-1)`, a layer."""

from __future__ import annotations

import ast

from msgspec import Struct, field

from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.source.trees import walk

# Qualified names of functions, by what they do. Methods of the same name do the same to their object.
_FUNCTIONS = {
    "torch.matmul": "matmul",
    "torch.bmm": "matmul",
    "torch.baddbmm": "baddbmm",
    "torch.einsum": "einsum",
    "torch.functional.einsum": "einsum",
    "torch.softmax": "softmax",
    "torch.special.softmax": "softmax",
    "torch.nn.functional.softmax": "softmax",
    "torch.dropout": "dropout",
    "torch.nn.functional.dropout": "dropout",
    "torch.transpose": "transpose",
    "torch.swapaxes": "transpose",
    "torch.swapdims": "transpose",
    "torch.permute": "permute",
    "torch.where": "where",
    "torch.masked_fill": "masked_fill",
    "torch.mul": "mul",
    "torch.div": "div",
    "torch.add": "add",
    "torch.logical_not": "logical_not",
}
_METHODS = {
    "matmul": "matmul",
    "bmm": "matmul",
    "softmax": "softmax",
    "transpose": "transpose",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "permute": "permute",
    "masked_fill": "masked_fill",
    "masked_fill_": "masked_fill",
    "mul": "mul",
    "mul_": "mul",
    "div": "div",
    "div_": "div",
    "add": "add",
    "add_": "add",
    "logical_not": "logical_not",
    "contiguous": "same",
    **dict.fromkeys(("to", "type", "type_as", "float", "half", "bfloat16", "double"), "cast"),
    **dict.fromkeys(
        ("view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "squeeze", "unsqueeze"),
        "reshape",
    ),
}
_BINARY: dict[type[ast.operator], str] = {
    ast.MatMult: "matmul",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Add: "add",
    ast.Sub: "sub",
}
_LAYERS = {"torch.nn.Softmax": "softmax", "torch.nn.Dropout": "dropout"}
_SEQUENTIAL = "torch.nn.Sequential"
_EINOPS = "einops.einsum"  # whose pattern comes last


class Operation(Struct, frozen=True):
    """One operation of an expression.

    kind: such as "matmul".
    operands: the positional ones, the object of a method first.
    keywords: the named ones.
    layer: the `nn.Dropout(...)` that is called, where it is one; then `owner` is the `self.x` that holds it,
        None if it is made on the spot.
    then: the `nn.Dropout(...)` after a softmax in the same `nn.Sequential`.
    method: the name of the method, where it is one.
    """

    kind: str
    operands: tuple[ast.expr, ...]
    keywords: dict[str, ast.expr] = field(default_factory=dict)
    layer: ast.Call | None = None
    owner: ast.Attribute | None = None
    then: ast.Call | None = None
    method: str = ""

    def argument(self, number: int, *names: str) -> ast.expr | None:
        """An argument that may be given by position or by one of some names."""
        if number < len(self.operands):
            return self.operands[number]
        return next((self.keywords[name] for name in names if name in self.keywords), None)


class Reader:
    """Reads the expressions of one file."""

    def __init__(self, flow: ValueFlow) -> None:
        self.flow = flow
        self.qualified = flow.names.qualified

    def is_einops(self, function: ast.expr) -> bool:
        """Whether a function is `einops.einsum`, which names dimensions by words."""
        return isinstance(function, ast.Name) and self.flow.imported(function) == _EINOPS

    def operation(self, node: ast.AST) -> Operation | None:
        """What the outermost operation of an expression is."""
        if isinstance(node, ast.BinOp):
            kind = _BINARY.get(type(node.op))
            return Operation(kind, (node.left, node.right)) if kind else None
        if not isinstance(node, ast.Call):
            return None
        if any(isinstance(item, ast.Starred) for item in node.args):
            return None
        if any(item.arg is None for item in node.keywords):
            return None
        named = {item.arg: item.value for item in node.keywords if item.arg is not None}
        function = node.func
        name = self.qualified(function)
        if name in _FUNCTIONS:
            operands = tuple(node.args)
            for key in ("input", "query"):
                if not operands and key in named:
                    operands = (named.pop(key),)
            return Operation(_FUNCTIONS[name], operands, named)
        if self.is_einops(function) and len(node.args) == 3:
            return Operation("einsum", (node.args[2], *node.args[:2]), named)
        if isinstance(function, ast.Call):
            return self._of_layer(function, None, node, named)
        if not isinstance(function, ast.Attribute):
            return None
        if is_self(function.value):
            found = self._of_layer(self.flow.only_origin(function), function, node, named)
            if found is not None:
                return found
        if function.attr in _METHODS and (name is None or name.startswith("torch.Tensor.")):
            operands = (function.value, *node.args)
            return Operation(_METHODS[function.attr], operands, named, method=function.attr)
        return None

    def _of_layer(
        self, layer: ast.AST | None, owner: ast.Attribute | None, node: ast.Call, named: dict[str, ast.expr]
    ) -> Operation | None:
        """The operation of a softmax or dropout layer, or of both in a row."""
        if not isinstance(layer, ast.Call):
            return None
        made, then = self.qualified(layer.func), None
        if made == _SEQUENTIAL and owner is not None and len(layer.args) == 2 and not layer.keywords:
            first, second = layer.args
            if not isinstance(first, ast.Call) or not isinstance(second, ast.Call):
                return None
            kinds = [_LAYERS.get(self.qualified(item.func) or "") for item in (first, second)]
            if kinds != ["softmax", "dropout"]:
                return None
            made, layer, then = self.qualified(first.func), first, second
        if made not in _LAYERS:
            return None
        return Operation(_LAYERS[made], tuple(node.args), named, layer, owner, then)


def is_self(node: ast.expr) -> bool:
    """Whether an expression is the object of a method, by its usual name."""
    return isinstance(node, ast.Name) and node.id == "self"


def number(node: ast.expr | None) -> int | float | None:
    """The value of a literal number, which may have a sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    return None


def same(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are written alike."""
    return ast.dump(one) == ast.dump(other)


def names_in(node: ast.AST) -> set[str]:
    """The local names that an expression reads; `self.x` counts as itself too."""
    found = {inner.id for inner in walk(node) if isinstance(inner, ast.Name)}
    return found | {
        f"self.{inner.attr}"
        for inner in walk(node)
        if isinstance(inner, ast.Attribute) and is_self(inner.value)
    }
