"""What is a loss, an error or an accuracy by its name, and used as one number."""

from __future__ import annotations

import ast
import re

from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.model import Instance, QualifiedName

_NUMBER = pattern(
    r"(?:^|_)(?:nll|elbo|kld?|mse|bce|acc|accuracy|err|error|cost|ppl|entropy)(?:_|$|[A-Z]|\d)|^err[A-Z]"
)
_LOSSES = pattern(r"(?:^|[._])loss(?:es|_(?:list|values|dict))?(?:\.(?:values|items)\(\))?$", re.IGNORECASE)
_LOSS = pattern(r"loss(?!es)", re.IGNORECASE)
_GIVES_LOSS = pattern(r"loss(?!es)|criterion|criteria|objective|(?:^|_)crit$", re.IGNORECASE)
_SAME_SHAPE = frozenset("double float half cpu cuda clone detach sqrt exp log abs neg".split())
_REDUCTIONS = frozenset(["mean", "sum", "norm"])
_SHOWS = pattern(
    r"print|format|append|update|add|add_scalar|write|float|int|log\w*|info|debug|set_postfix|assert\w+|"
    r"record\w*|exp|isnan|isinf|round|str"
)
_NUMPY = frozenset(["np", "numpy"])
_ARRAYS = pattern(r"numpy|array|image|img|row|dataset", re.IGNORECASE)


class Likely:
    """Says of `x.data[0]` in one file whether x is likely to hold one number."""

    def __init__(self, file: FileContext) -> None:
        names = file.names
        self._values = names.values
        self._torch = any((item.target or "").partition(".")[0] == "torch" for item in names.imports)
        self._parents = names.parents
        self._flow = file.flow

    def holds_one_number(self, node: ast.Subscript, tensor: ast.expr) -> bool:
        """Whether `tensor`, read by `node` as `tensor.data[0]`, holds one number by name and use."""
        if not self._torch or self._is_other(tensor):
            return False
        while (  # `loss.double()`
            isinstance(tensor, ast.Call)
            and isinstance(tensor.func, ast.Attribute)
            and tensor.func.attr in _SAME_SHAPE
            and not (tensor.args or tensor.keywords)
        ):
            tensor = tensor.func.value
        if isinstance(tensor, ast.Call):
            return self._gives_one(tensor)
        if isinstance(tensor, ast.Name):
            made = self._flow.sources(tensor)
            if self._flow.index.comprehension_target(tensor) is not None:
                return any(step.node and _LOSSES.search(ast.unparse(step.node)) for step in made)
            calls = [step.node for step in made if isinstance(step.node, ast.Call) and not step.path]
            if made and len(calls) == len(made):
                if all(map(self._gives_one, calls)):
                    return True
                if any(_keeps_all(call) or _ARRAYS.search(ast.unparse(call.func)) for call in calls):
                    return False
            return self._is_name_of_one(tensor.id) and self._is_shown(node)
        if isinstance(tensor, ast.Attribute):
            return self._is_name_of_one(tensor.attr) and self._is_shown(node)
        if isinstance(tensor, ast.Subscript):
            return self._is_element(tensor) and self._is_shown(node)
        return False

    def _is_other(self, tensor: ast.expr) -> bool:
        """Whether an object surely is not a tensor."""
        value = self._values.get(id(tensor), ())
        return bool(value) and all(
            (isinstance(item, Instance) and item.cls != "torch.Tensor") or isinstance(item, QualifiedName)
            for item in value
        )

    def _gives_one(self, call: ast.Call) -> bool:
        """Whether a call is one of a criterion, or `x.mean()`."""
        if _keeps_all(call):
            return False
        function = call.func
        last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if isinstance(function, ast.Attribute) and last in _REDUCTIONS:
            root: ast.expr = function
            while isinstance(root, (ast.Attribute, ast.Call, ast.Subscript)):
                root = root.func if isinstance(root, ast.Call) else root.value
            return not (call.args or call.keywords) and getattr(root, "id", "") not in _NUMPY
        return bool(_GIVES_LOSS.search(last)) and bool(call.args)

    def _is_name_of_one(self, name: str) -> bool:
        return bool(_LOSS.search(name) or _NUMBER.search(name))

    def _is_element(self, node: ast.Subscript) -> bool:
        """An element of a dict: `outputs["loss"]`, `losses[name]`."""
        index = node.slice
        if isinstance(index, ast.Constant):
            return isinstance(index.value, str) and self._is_name_of_one(index.value)
        holder = node.value
        name = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
        key = getattr(index, "id", "")
        return "loss" in name.lower() and bool(re.search(r"name|key|loss|\Ak\Z", key))

    def _is_shown(self, node: ast.expr) -> bool:
        """Whether a value is accumulated, printed, stored as a number, or part of a sum."""
        here: ast.AST = node
        while True:
            outer = self._parents.get(here)
            if isinstance(outer, ast.AugAssign):
                return outer.value is here
            if isinstance(outer, (ast.Return, ast.FormattedValue)):
                return True
            if isinstance(outer, ast.Assign):
                return self._is_name_of_one(ast.unparse(outer.targets[0])) or isinstance(here, ast.BinOp)
            if isinstance(outer, ast.Call):
                function = outer.func
                last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                return here is not function and _SHOWS.fullmatch(last) is not None
            text = isinstance(outer, ast.BinOp) and isinstance(outer.left, ast.Constant)
            if text and isinstance(getattr(getattr(outer, "left", None), "value", None), str):
                return True
            if isinstance(outer, ast.Dict) and isinstance(here, ast.expr) and here in outer.values:
                key = outer.keys[outer.values.index(here)]
                if isinstance(key, ast.Constant) and self._is_name_of_one(str(key.value)):
                    return True
            if not isinstance(outer, (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.keyword, ast.List, ast.Dict)):
                return False
            here = outer


def _keeps_all(call: ast.Call) -> bool:
    """Whether a loss keeps an element for each sample, or may."""
    return any(item.arg in (None, "reduction", "reduce", "dim", "axis") for item in call.keywords)
