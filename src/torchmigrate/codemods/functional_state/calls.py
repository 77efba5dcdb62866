"""Calls: of functional models, of functions of the file, of transforms, and of what is known of libraries."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchmigrate.codemods.functional_state.cells import Cell, innermost
from torchmigrate.codemods.functional_state.kinds import (
    STATE,
    Def,
    Kind,
    Many,
    Model,
    Partial,
    State,
    Wrap,
)
from torchmigrate.codemods.functional_state.loops import Comprehensions
from torchmigrate.rewrite.code import code
from torchmigrate.semantics.model import Scope

_TRANSFORMS = {
    "vmap": "vmap",
    "grad": "grad",
    "grad_and_value": "value",
    "jacrev": "jac",
    "jacfwd": "jac",
}
_HOMES = ("functorch", "torch.func", "torch", "functorch.experimental", "torch._functorch.apis")
_TREE_MAPS = frozenset(("torch.utils._pytree.tree_map", "torch.utils.pytree.tree_map"))
_ITERATING = frozenset(("zip", "enumerate", "sum", "any", "all", "list", "tuple", "map", "iter"))
_TAKING_ANY = frozenset(("len", "print", "id", "bool"))
_TAKING_TENSORS = frozenset(
    f"torch.nn.utils.{name}"
    for name in ("clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "get_total_norm")
)


class Calls(Comprehensions):
    """Reads calls."""

    def _call(self, node: ast.Call, scope: Scope, wanted: Kind) -> Kind:
        make = self.makes.get(id(node))
        if make is not None:
            for argument in (*node.args, *(item.value for item in node.keywords)):
                self.read(argument, scope)
            if self.final and id(node) not in self.made:
                self.fail(node, "is not assigned")
            return make.kind
        name = self.qualified(node.func)
        head, _, last = name.rpartition(".")
        if last in _TRANSFORMS and head in _HOMES and node.args:
            return self._transform(_TRANSFORMS[last], node, scope)
        if name == "functools.partial":
            return self._partial(node, scope)
        special = self._special(name, node, scope, wanted)
        if special is not None:
            return special if isinstance(special, State) else None
        if isinstance(node.func, ast.Attribute):
            base = self.read(node.func.value, scope) if self.owner(node.func, scope) is None else None
            if isinstance(base, Model) and node.func.attr in ("eval", "train"):
                self.as_value |= False
                for argument in node.args:
                    self.read(argument, scope)
                self.writer.module_methods.append(node)
                return None
            if isinstance(base, State) and node.func.attr == "append" and self.writer.is_append(node):
                for argument in node.args:
                    self.read(argument, scope)
                return None
        callee = self.read(node.func, scope)
        if isinstance(callee, (Def, Wrap, Partial, Model)):
            if isinstance(callee, Model) and self.final:
                self.calls.append(node)
            return self._called(callee, node, scope, wanted)
        for argument in node.args:
            kind = self.read(argument, scope)
            if self.tracked(kind):
                self.fail(
                    argument,
                    (f"is passed to `{self.writer.source.shown(node.func)}`, which is not in this file"),
                )
        for keyword in node.keywords:
            if self.tracked(self.read(keyword.value, scope)):
                self.fail(
                    keyword.value,
                    (f"is passed to `{self.writer.source.shown(node.func)}`, which cannot be analyzed"),
                )
        return None

    def _special(self, name: str, node: ast.Call, scope: Scope, wanted: Kind) -> Kind | bool:
        """Functions that are known; True: it gives nothing of interest; None: it is another one."""
        arguments = [*node.args, *(item.value for item in node.keywords)]
        if name in ("list", "tuple") and isinstance(wanted, State) and len(node.args) == 1:
            only = node.args[0]
            if isinstance(only, (ast.GeneratorExp, ast.ListComp)):
                return self.keyed_comprehension(only, scope, node)
            if isinstance(self.read(only, scope), State):
                self.writer.replace(node.func, code("dict"), self.final)
                return STATE
            return True
        if name in _ITERATING:
            for argument in arguments:
                kind = self.read(argument, scope)
                if isinstance(kind, State):
                    self.writer.values(argument, self.final)
                elif self.tracked(kind):
                    self.fail(argument, f"goes to `{name}`")
            return True
        if name in _TAKING_ANY:
            for argument in arguments:
                self.read(argument, scope)
            return True
        if name in _TREE_MAPS and len(node.args) > 1:
            self.read(node.args[0], scope)
            kinds = [self.read(argument, scope, wanted) for argument in node.args[1:]]
            if any(isinstance(kind, State) for kind in kinds):
                for argument in node.args[1:]:
                    self.read(argument, scope, STATE)
                return STATE
            return True
        if name in ("copy.deepcopy", "copy.copy") and len(node.args) == 1:
            kind = self.read(node.args[0], scope, wanted if isinstance(wanted, State) else None)
            if isinstance(kind, State):
                return STATE
            if self.tracked(kind):
                self.fail(node, "copies a functional model")
            return True
        inputs = name == "torch.autograd.grad" or (
            isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
        )
        if inputs or name.startswith("torch.optim.") or name in _TAKING_TENSORS:
            if inputs and isinstance(node.func, ast.Attribute):
                self.read(node.func.value, scope) if name != "torch.autograd.grad" else None
            for argument in arguments:
                kind = self.read(argument, scope)
                if isinstance(kind, State):
                    (self.writer.tupled if inputs else self.writer.values)(argument, self.final)
                elif self.tracked(kind):
                    self.fail(argument, f"goes to `{name}`")
            return True
        return None

    def _transform(self, how: str, node: ast.Call, scope: Scope) -> Kind:
        inner = self.read(node.args[0], scope)
        if isinstance(inner, Model):
            self.as_value = True
        rest = {item.arg: item.value for item in node.keywords}
        second = node.args[1] if len(node.args) > 1 else rest.get("in_dims" if how == "vmap" else "argnums")
        third = node.args[2] if len(node.args) > 2 else rest.get("has_aux")
        for item in (*node.args[1:], *(keyword.value for keyword in node.keywords)):
            self.read(item, scope)
        if how == "vmap":
            return Wrap(how, inner, dims=second)
        aux = _literal(third, False)
        return Wrap(how, inner, _argnums(second), aux if isinstance(aux, bool) else None)

    def _partial(self, node: ast.Call, scope: Scope) -> Kind:
        if not node.args:
            self._plain(node, scope)
            return None
        inner = self.read(node.args[0], scope)
        if not isinstance(inner, (Def, Wrap, Partial, Model)):
            for argument in (*node.args[1:], *(item.value for item in node.keywords)):
                if self.tracked(self.read(argument, scope)):
                    self.fail(argument, "is bound to a function that is not in this file")
            return None
        if isinstance(inner, Model):
            self.as_value = True
        given = self._arguments(inner, node.args[1:], node.keywords, scope)
        return Partial(inner, tuple(given))

    def _called(self, callee: Kind, node: ast.Call, scope: Scope, wanted: Kind) -> Kind:
        kinds = self._arguments(callee, node.args, node.keywords, scope)
        self._check_dims(callee, node, kinds)
        return self._result(callee, kinds, wanted, node)

    def _arguments(
        self, callee: Kind, args: Sequence[ast.expr], keywords: Sequence[ast.keyword], scope: Scope
    ) -> list[Kind]:
        kinds: list[Kind] = []
        for number, argument in enumerate(args):
            if isinstance(argument, ast.Starred):
                self.read(argument, scope)
                for index in range(number, number + 8):
                    cell = self._parameter(callee, index)
                    if self._is_state(self.cells.get(cell) if cell else None):
                        self.fail(argument, "hides the arguments")
                break
            kinds.append(self._argument(callee, number, argument, scope))
        for keyword in keywords:
            if keyword.arg is None:
                self.read(keyword.value, scope)
                continue
            self._argument(callee, keyword.arg, keyword.value, scope)
        return kinds

    def _argument(self, callee: Kind, which: int | str, node: ast.expr, scope: Scope) -> Kind:
        """Read an argument as what the function expects, and tell the function what it is given."""
        model = innermost(callee)
        if isinstance(model, Model) and isinstance(which, int):
            number = which + _bound(callee)
            if number < model.states:
                return self.read(node, scope, STATE)
        cell = self._parameter(callee, which)
        kind = self.read(node, scope, self.cells.get(cell) if cell else None)
        if cell is not None:
            self.put(cell, kind)
        elif self.tracked(kind):
            self.fail(node, "is passed to a function in an unsupported way")
        return kind

    def _parameter(self, callee: Kind, which: int | str) -> Cell | None:
        """The variable that an argument of a function is bound to."""
        function = innermost(callee)
        if not isinstance(function, Def):
            return None
        self.used.add(id(function.node))
        scope = self.scopes.get(id(function.node))
        arguments = function.node.args
        if scope is None:
            return None
        plain = [*arguments.posonlyargs, *arguments.args]
        if isinstance(which, str):
            every = {item.arg for item in (*plain, *arguments.kwonlyargs)}
            return ("variable", id(scope), which) if which in every else None
        number = which + _bound(callee)
        return ("variable", id(scope), plain[number].arg) if number < len(plain) else None

    def _check_dims(self, callee: Kind, node: ast.Call, kinds: Sequence[Kind]) -> None:
        """`in_dims` must not say something of each parameter, since it would have to be a dict then."""
        while isinstance(callee, (Wrap, Partial)):
            if isinstance(callee, Wrap) and callee.how == "vmap" and callee.dims is not None:
                dims = callee.dims
                for number, kind in enumerate(kinds):
                    if not self.tracked(kind):
                        continue
                    entry = dims
                    if isinstance(dims, (ast.Tuple, ast.List)):
                        entry = dims.elts[number] if number < len(dims.elts) else dims
                    if not _is_dim(entry):
                        self.fail(node, "is mapped over dimensions that cannot be analyzed")
            callee = callee.inner

    def _result(self, callee: Kind, kinds: Sequence[Kind], wanted: Kind, node: ast.Call) -> Kind:
        if isinstance(callee, Partial):
            return self._result(callee.inner, [*callee.given, *kinds], wanted, node)
        if isinstance(callee, Def):
            self.used.add(id(callee.node))
            cell = ("result", id(callee.node), "")
            if self._is_state(wanted):
                self.put(cell, wanted)
            return self.cells.get(cell)
        if not isinstance(callee, Wrap):
            return None
        if callee.how == "vmap":
            return self._result(callee.inner, kinds, wanted, node)
        value = self._result(callee.inner, kinds, None, node)
        if callee.argnums is None or callee.aux is None:
            if any(map(self.tracked, kinds)):
                self.fail(node, "takes gradients of unknown arguments")
            return None
        gradient: Kind
        if isinstance(callee.argnums, tuple):
            each = tuple(self._gradient(kinds, number) for number in callee.argnums)
            gradient = Many(each) if any(each) else None
        else:
            gradient = self._gradient(kinds, callee.argnums)
        aux = value.items[1] if isinstance(value, Many) and len(value.items) == 2 else None
        if callee.how == "value":
            return Many((gradient, Many((None, aux)) if callee.aux else None))
        return Many((gradient, aux)) if callee.aux else gradient

    def _gradient(self, kinds: Sequence[Kind], number: int) -> Kind:
        kind = kinds[number] if -len(kinds) <= number < len(kinds) else None
        return kind if isinstance(kind, (State, Many)) else None


def _bound(kind: Kind) -> int:
    """How many of the innermost function's parameters are given before the first argument."""
    number = 0
    while isinstance(kind, (Wrap, Partial)):
        if isinstance(kind, Partial):
            number += len(kind.given)
        kind = kind.inner
    return number + (kind.bound if isinstance(kind, Def) else 0)


def _literal(node: ast.expr | None, absent: object) -> object:
    if node is None:
        return absent
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _argnums(node: ast.expr | None) -> int | tuple[int, ...] | None:
    """The literal numbers of arguments."""
    found = _literal(node, 0)
    if isinstance(found, int):
        return found
    if isinstance(found, (tuple, list)) and all(isinstance(number, int) for number in found):
        return tuple(found)
    return None


def _is_dim(node: ast.expr) -> bool:
    """An int or None."""
    return isinstance(_literal(node, None), int) or (isinstance(node, ast.Constant) and node.value is None)
