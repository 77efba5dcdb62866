"""The scale of hand-written attention: `scaled_dot_product_attention` takes a number, not a tensor."""

from __future__ import annotations

import ast

from torchmigrate.codemods.attention.sites import Site
from torchmigrate.codemods.base.operations import Reader, is_self, number, same
from torchmigrate.semantics.flow.answers import Answers
from torchmigrate.source.trees import walk

# Expressions, and their operators, that hold no other scale.
_PLAIN = (
    *(ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.Compare, ast.Attribute),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
_NUMBERS = ("math.sqrt", "numpy.sqrt", "math.pow", "numpy.power")
_BUILTINS = ("float", "int", "len", "max", "min", "round", "pow")
_ROOTS = ("math.sqrt", "numpy.sqrt")
_DEPTH = 12  # of an expression


class Numbers:
    """Knows which expressions of the function of a site surely are Python numbers.

    Arguments of `__init__` are taken for numbers.
    """

    def __init__(self, site: Site, reader: Reader) -> None:
        self.site = site
        self.reader = reader
        self._names = Answers(self._is_number_name, False)
        self._others = Answers(self._may_be_other, False)

    def is_one(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether an expression is; not known of what is very deep."""
        if depth > _DEPTH:
            return False
        if isinstance(node, ast.Constant):
            return type(node.value) in (int, float)
        if isinstance(node, ast.UnaryOp):
            return self.is_one(node.operand, depth + 1)
        if isinstance(node, ast.BinOp):
            return not isinstance(node.op, ast.MatMult) and self._all(depth, node.left, node.right)
        if isinstance(node, ast.BoolOp):
            return self._all(depth, *node.values)
        if isinstance(node, ast.IfExp):
            return self._all(depth, node.body, node.orelse)
        if isinstance(node, ast.Subscript):  # `x.shape[-1]`
            return _is_size(node.value) and isinstance(node.slice, (ast.Constant, ast.UnaryOp))
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "size":
                return len(node.args) == 1
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            return name in _BUILTINS or function_name(node, self.reader) in _NUMBERS
        if isinstance(node, ast.Name):
            return self._names(node.id)
        if isinstance(node, ast.Attribute) and is_self(node.value) and self.site.owner is not None:
            known = self.reader.layers(self.site.owner).values
            return bool(known.get(node.attr)) and not self._others(node.attr)
        return False

    def _all(self, depth: int, *nodes: ast.expr) -> bool:
        return False not in [self.is_one(item, depth + 1) for item in nodes]

    def _is_number_name(self, name: str) -> bool:
        """Whether a local name only ever is a number."""
        found = False
        values: list[ast.expr] = []
        for statement in walk(self.site.function):
            if not isinstance(statement, ast.Assign):
                continue
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    if target.id == name:
                        values.append(statement.value)
                elif any(isinstance(inner, ast.Name) and inner.id == name for inner in walk(target)):
                    if not (isinstance(target, ast.Tuple) and _gives_sizes(statement.value)):
                        return False
                    found = True
        if found or values:
            return self._all(-1, *values)
        arguments = self.site.function.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.arg == name:
                annotation = argument.annotation
                return isinstance(annotation, ast.Name) and annotation.id in ("int", "float")
        return False

    def _may_be_other(self, attribute: str) -> bool:
        """Whether a class may give an attribute something that is not computed from numbers alone."""
        assert self.site.owner is not None, "otherwise this is not called"
        values = self.reader.layers(self.site.owner).values.get(attribute, [])
        return True in [self._is_other(inner) for value in values for inner in walk(value)]

    def _is_other(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            return name not in _BUILTINS and function_name(node, self.reader) not in _NUMBERS
        if isinstance(node, ast.Attribute) and is_self(node.value):
            return self._others(node.attr)
        parts = (
            ast.Constant,
            ast.Name,
            ast.BinOp,
            ast.UnaryOp,
            ast.BoolOp,
            ast.IfExp,
            ast.Compare,
            ast.Attribute,
        )
        return not isinstance(node, (*parts, ast.operator, ast.unaryop, ast.boolop, ast.cmpop))


def _is_size(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "shape") or (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "size"
        and not node.args
    )


def _gives_sizes(node: ast.expr) -> bool:
    """Whether what is unpacked is a shape: `x.shape`, `x.size()`, `*x.shape, h`."""
    if isinstance(node, ast.Tuple):
        return all(
            _is_size(item.value) if isinstance(item, ast.Starred) else not isinstance(item, ast.Call)
            for item in node.elts
        )
    return _is_size(node) or (isinstance(node, ast.Subscript) and _is_size(node.value))


def function_name(call: ast.Call, reader: Reader) -> str:
    """The qualified name of a function of `math` or `numpy`, as the file most probably imports them."""
    known = reader.qualified(call.func)
    if known is not None:
        return known
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        module = {"np": "numpy", "numpy": "numpy", "math": "math"}.get(function.value.id, "")
        return f"{module}.{function.attr}"
    return "math.sqrt" if isinstance(function, ast.Name) and function.id == "sqrt" else ""


def is_positive(scale: ast.expr, reader: Reader) -> bool:
    """Whether a scale is surely positive: a number, a root, or a power of a size."""
    value = number(scale)
    if value is not None:
        return value > 0
    if isinstance(scale, ast.BinOp) and isinstance(scale.op, ast.Div):
        return is_positive(scale.left, reader) and is_positive(scale.right, reader)
    if isinstance(scale, ast.BinOp) and isinstance(scale.op, ast.Pow):
        return number(scale.right) in (0.5, -0.5)
    return isinstance(scale, ast.Call) and function_name(scale, reader) in _ROOTS


def is_default(
    scale: ast.expr, divided: bool, query: ast.expr | None, key: ast.expr | None, site: Site, reader: Reader
) -> bool:
    """Whether a scale is one over the root of the last size of query or key, which is the default.

    Args:
        query, key: the operands of the product, None where their dimensions are moved before.
    """
    if not divided:
        if isinstance(scale, ast.BinOp) and isinstance(scale.op, ast.Div) and number(scale.left) == 1:
            return is_default(scale.right, True, query, key, site, reader)
        if isinstance(scale, ast.BinOp) and isinstance(scale.op, ast.Pow) and number(scale.right) == -0.5:
            return _is_last_size(scale.left, query, key, site)
        return False
    if isinstance(scale, ast.BinOp) and isinstance(scale.op, ast.Pow) and number(scale.right) == 0.5:
        return _is_last_size(scale.left, query, key, site)
    if isinstance(scale, ast.Call) and function_name(scale, reader) in _ROOTS and len(scale.args) == 1:
        return _is_last_size(scale.args[0], query, key, site)
    return False


def _is_last_size(node: ast.expr, query: ast.expr | None, key: ast.expr | None, site: Site) -> bool:
    if isinstance(node, ast.Name):
        values = [
            statement.value
            for statement in walk(site.function)
            if isinstance(statement, ast.Assign)
            and any(
                isinstance(inner, ast.Name) and inner.id == node.id
                for target in statement.targets
                for inner in walk(target)
            )
        ]
        return (
            len(values) == 1
            and not isinstance(values[0], ast.Name)
            and _is_last_size(values[0], query, key, site)
        )
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        owner, last = node.value.value, node.value.attr == "shape" and number(node.slice) == -1
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        owner, last = node.func.value, len(node.args) == 1 and number(node.args[0]) == -1
    else:
        return False
    return last and any(operand is not None and same(owner, operand) for operand in (query, key))
