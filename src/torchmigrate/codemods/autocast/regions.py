"""Where a file computes in mixed precision: `with autocast(...)`, and functions that it decorates."""

from __future__ import annotations

import ast
from functools import cached_property

from msgspec import Struct

from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.public_names import public_name

_DEVICES = {"torch.cuda.amp.autocast": "cuda", "torch.cpu.amp.autocast": "cpu", "torch.amp.autocast": None}
AnyWith = ast.With | ast.AsyncWith
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


class Region(Struct, frozen=True):
    """One region.

    device: "cuda", "cpu" and so on; None where the file does not say.
    dtype: the qualified name of the requested type; "" for none, None for one that is not known.
    disabled: whether it surely switches mixed precision off.
    on_request: whether it does unless a caller asks for it: `enabled=` is a parameter, False by default.
    """

    device: str | None
    dtype: str | None
    disabled: bool
    on_request: bool = False


class Regions:
    """The regions of one file."""

    def __init__(self, file: FileContext) -> None:
        self._names = file.names  # not the file, which keeps this
        self._around = file.around
        self._values: dict[str, list[ast.expr]] = {}
        for node in file.names.nodes(ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._values.setdefault(target.id, []).append(node.value)

    def around(self, node: ast.AST) -> Region | None:
        """The innermost region that a node runs in, as far as its own function says; None: in none."""
        parents = self._names.parents
        inner, outer = node, parents.get(node)
        while outer is not None:
            if isinstance(outer, AnyWith) and isinstance(inner, ast.stmt):
                for item in reversed(outer.items):
                    found = self.entered(item.context_expr)
                    if found is not None:
                        return found
            elif isinstance(outer, AnyFunction):
                if not isinstance(inner, ast.stmt):
                    return None
                marks = (self.entered(mark) for mark in outer.decorator_list)
                return next((mark for mark in marks if mark is not None), None)
            elif isinstance(outer, (ast.Lambda, ast.ClassDef)):
                return None
            inner, outer = outer, parents.get(outer)
        return None

    @cached_property
    def every(self) -> list[Region]:
        """All that the file enters, or decorates functions with."""
        nodes = self._names.nodes
        opened = [item.context_expr for node in nodes(ast.With) for item in node.items]
        opened += [item.context_expr for node in nodes(ast.AsyncWith) for item in node.items]
        opened += [mark for node in nodes(ast.FunctionDef) for mark in node.decorator_list]
        opened += [mark for node in nodes(ast.AsyncFunctionDef) for mark in node.decorator_list]
        return [*filter(None, map(self.entered, opened))]

    def entered(self, node: ast.expr) -> Region | None:
        """The region that an expression opens, also where it is chosen by a condition, or has a name."""
        if isinstance(node, ast.IfExp):
            return self.entered(node.body) or self.entered(node.orelse)
        if isinstance(node, ast.Name):
            given = self._values.get(node.id, [])
            known = len(given) == 1 and isinstance(given[0], (ast.Call, ast.IfExp))
            return self.entered(given[0]) if known else None
        if not isinstance(node, ast.Call):
            name = self._name(node)
            return Region(_DEVICES[name], "", disabled=False) if name is not None else None
        name = self._name(node.func)
        if name is None:
            return None
        named = {item.arg: item.value for item in node.keywords}
        device, order = _DEVICES[name], ["enabled", "dtype"]
        if device is None:
            order = ["device_type", "dtype", "enabled"]
        named |= dict(zip(order, node.args, strict=False))
        kind = named.get("device_type")
        if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
            device = kind.value.partition(":")[0]
        dtype, enabled = named.get("dtype"), named.get("enabled")
        unclear = None in named or any(isinstance(item, ast.Starred) for item in node.args)
        return Region(
            device,
            None if unclear else self._around.qualified(dtype) if dtype is not None else "",
            disabled=_is_false(enabled),
            on_request=isinstance(enabled, ast.Name) and self._is_off(enabled),
        )

    def _is_off(self, node: ast.Name) -> bool:
        """Whether a name is a parameter that is False where nothing is given."""
        outer: ast.AST | None = node
        while outer is not None and not isinstance(outer, AnyFunction):
            outer = self._names.parents.get(outer)
        if outer is None:
            return False
        parameters = outer.args
        positional = [*parameters.posonlyargs, *parameters.args][::-1]
        defaults = [
            *zip(positional, parameters.defaults[::-1], strict=False),
            *zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True),
        ]
        return any(item.arg == node.id and _is_false(default) for item, default in defaults)

    def _name(self, node: ast.expr) -> str | None:
        name = self._around.qualified(node)
        public = public_name(name) if name is not None else None
        return public if public in _DEVICES else None


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def regions_of(file: FileContext) -> Regions:
    """The regions of a file, for all that ask."""
    return file.once(Regions, lambda: Regions(file))
