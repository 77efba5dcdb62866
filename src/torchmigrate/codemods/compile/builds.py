"""Where a file builds models: the assignments of calls that give one, or may."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmigrate.codemods.compile.events import Build
from torchmigrate.codemods.compile.kinds import Built, ModelKinds
from torchmigrate.semantics.flow.mentions import Spot, blocks, variable
from torchmigrate.semantics.model import BindingKind, Scope, SemanticModel
from torchmigrate.source.trees import last_name

# Methods that give back the model itself. The first group puts it somewhere or changes its type.
MOVES = frozenset("bfloat16 cpu cuda double float half hpu ipu mps npu to to_empty type xpu".split())
MODES = frozenset(["train", "eval"])
SAME_OBJECT = MOVES | MODES | {"apply", "requires_grad_"}
_PARAMETERS = ("parameters", "named_parameters")


class Builds:
    """The builds of one file.

    Args:
        names: what the resolver found in the file.
        kinds: what its calls give.
    """

    def __init__(self, names: SemanticModel, kinds: ModelKinds) -> None:
        self.names = names
        self.kinds = kinds
        # Where the call that builds a model does not tell that it does, only these variables are followed.
        self._with_parameters = frozenset(_asked_for_parameters(names))

    def scopes(self) -> list[Scope]:
        """The module and the functions in which something is assigned that may be a model."""
        found: dict[int, Scope] = {}
        for binding in self.names.bindings:
            if binding.kind is not BindingKind.ASSIGNMENT or id(binding.scope) in found:
                continue
            if not isinstance(binding.scope.node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for target, value in assigned(binding.statement):
                if target is not binding.node or not isinstance(target, ast.Name):
                    continue
                core = _core(value.body if isinstance(value, ast.IfExp) else value, [])
                if core is not None and self._may_be_model(target, core, binding.scope):
                    found[id(binding.scope)] = binding.scope
        return list(found.values())

    def of(self, scope: Scope) -> Iterator[Build]:
        """The builds in a module or function, in source order."""
        body: list[ast.stmt] = scope.node.body  # type: ignore[attr-defined]
        todo = [Spot(body, number) for number in reversed(range(len(body)))]
        while todo:
            spot = todo.pop()
            statement = spot.statement
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            if isinstance(statement, ast.Assign) and len(statement.targets) > 1:
                continue  # one model, several names
            for target, value in assigned(statement):
                yield from self._build(target, value, spot, scope)
            for block in reversed(list(blocks(statement))):
                todo += [Spot(block, number, spot) for number in reversed(range(len(block)))]

    def _build(self, target: ast.expr, value: ast.expr, spot: Spot, scope: Scope) -> Iterator[Build]:
        chain: list[str] = []
        if isinstance(value, ast.IfExp):
            other = value.orelse
            if not isinstance(other, ast.Call) or self.kinds.built(other, scope) is Built.OTHER:
                return
            value = value.body
        core = _core(value, chain)
        name = variable(target)
        if core is None or not name or not self._may_be_model(target, core, scope):
            return
        assert isinstance(target, (ast.Name, ast.Attribute)), "what else has a name"
        yield Build(name, target, core, tuple(chain), self.kinds.built(core, scope), spot)

    def _may_be_model(self, target: ast.expr, core: ast.Call, scope: Scope) -> bool:
        kind = self.kinds.built(core, scope)
        return kind is Built.MODEL or (kind is Built.UNKNOWN and last_name(target) in self._with_parameters)


def _core(value: ast.expr, chain: list[str]) -> ast.Call | None:
    """The call that makes an object, without the methods after it, whose names are added to `chain`."""
    while isinstance(value, ast.Call):
        if not is_method_of_same(value):
            return value
        assert isinstance(value.func, ast.Attribute)
        chain.append(value.func.attr)
        value = value.func.value
    return None


def assigned(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Target and value of each assignment that a statement makes, tuples taken apart."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield statement.target, statement.value
    elif isinstance(statement, ast.Assign):
        value = statement.value
        for target in statement.targets:
            if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
                if len(target.elts) == len(value.elts):
                    yield from zip(target.elts, value.elts, strict=True)
            else:
                yield target, value


def is_method_of_same(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in SAME_OBJECT


def _asked_for_parameters(names: SemanticModel) -> Iterator[str]:
    """The names in front of `.parameters` and `.module.parameters`."""
    for node in names.nodes(ast.Attribute):
        if node.attr in _PARAMETERS:
            owner = node.value
            if isinstance(owner, ast.Attribute) and owner.attr == "module":
                owner = owner.value
            yield last_name(owner)
