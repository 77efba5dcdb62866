"""`if fp16: ... else: ...`: two ways to train that are one with a scaler, which can be switched off."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from torchmigrate.codemods.apex.presence import Presence
from torchmigrate.codemods.apex.uses import Scaled, Uses
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.rewrite.lines import is_elif
from torchmigrate.rewrite.statements import Rewriting
from torchmigrate.semantics.flow.functions import Functions
from torchmigrate.semantics.flow.mentions import Spot
from torchmigrate.source.trees import walk

_PARAMETERS = ast.Name("<parameters>", ast.Load())


class Branches:
    """The branches of a file that use apex, and the alternatives that do not.

    dropped: id() of the statements that go with their branch; joined: id() of the `if` statements whose
    branch with apex stays; parameters: by id() of a call of
    `amp.master_params`, the code of the other branch that corresponds to it.
    """

    def __init__(self, uses: Uses, functions: Functions, presence: Presence, rewriting: Rewriting) -> None:
        self.functions = functions
        self.presence = presence
        self.rewriting = rewriting
        self.dropped: set[int] = set()
        self.parameters: dict[int, ast.Call] = {}
        self.kept: list[tuple[ast.If, ast.stmt]] = []  # with the statement of apex inside
        self._scaled = {id(item.statement): item for item in uses.scaled}
        self._master = {id(item.call) for item in uses.master}
        self.joined: set[int] = set()
        for _, statement in uses.places:
            self._join(statement)

    def _join(self, statement: ast.stmt) -> None:
        spot: Spot | None = self.functions.spots[id(statement)]
        while spot is not None and spot.outer is not None:
            outer = spot.outer.statement
            if id(outer) in self.joined:
                return
            if isinstance(outer, ast.If) and outer.orelse:
                other = outer.orelse if spot.block is outer.body else outer.body
                known = self.presence.truth(outer.test)
                if known is not None:  # where apex is there; `presence` takes the test away
                    if known is not (spot.block is outer.body):
                        raise Unclear(
                            (f"line {outer.lineno}: apex is used in a branch for when it is not installed"),
                            line=outer.lineno,
                        )
                    self.joined.add(id(outer))
                    self.dropped |= {id(node) for item in other for node in walk(item)}
                    return
                if self._same(spot.block, other):
                    if is_elif(self.rewriting.source, outer):
                        raise Unclear(
                            (f"line {outer.lineno}: apex is used in only one of several branches"),
                            line=outer.lineno,
                        )
                    self.joined.add(id(outer))
                    self.rewriting.unwrap(outer, spot.block)
                    self.dropped |= {id(node) for item in other for node in walk(item)}
                    return
                if id(statement) in self._scaled:
                    self.kept.append((outer, statement))
            spot = spot.outer

    def _same(self, apex: Sequence[ast.stmt], plain: Sequence[ast.stmt]) -> bool:
        """Whether two blocks do the same, one with apex and the other without."""
        masters = [node for item in apex for node in walk(item) if id(node) in self._master]
        calls = [node for item in plain for node in walk(item) if _is_parameters(node)]
        one = [ast.dump(item) for statement in apex for item in self._plain(statement)]
        other = [ast.dump(_Plain().visit(copy.deepcopy(item))) for item in plain]
        if one != other or len(masters) != len(calls):
            return False
        for master, call in zip(masters, calls, strict=True):
            assert isinstance(call, ast.Call), "the nodes to look for"
            self.parameters[id(master)] = call
        return True

    def _plain(self, statement: ast.stmt) -> list[ast.stmt]:
        """What a statement is without apex."""
        found = [_Apex(self._scaled, self._master).visit(item) for item in self._opened([statement])]
        return [item for item in found if isinstance(item, ast.stmt)]

    def _opened(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A block with the statements under `amp.scale_loss` in the place of that."""
        found: list[ast.stmt] = []
        for statement in block:
            scaled = self._scaled.get(id(statement))
            if scaled is not None:
                body = [_of_loss(item, scaled) for item in scaled.statement.body]
                rest = [item for item in scaled.statement.items if item.context_expr is not scaled.call]
                found += [ast.With(rest, body)] if rest else body
                continue
            clone = copy.copy(statement)
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(statement, name, None)
                if inner:
                    setattr(clone, name, self._opened(inner))
            found.append(clone)
        return found


class _Apex(ast.NodeTransformer):
    """`amp.master_params(...)` as the mark for parameters. Works on copies of what it changes."""

    def __init__(self, scaled: dict[int, Scaled], master: set[int]) -> None:
        self.scaled = scaled
        self.master = master

    def visit(self, node: ast.AST) -> ast.AST:
        if id(node) in self.master:
            return _PARAMETERS
        clone = copy.copy(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(
                    clone, name, [self.visit(item) if isinstance(item, ast.AST) else item for item in value]
                )
            elif isinstance(value, ast.AST):
                setattr(clone, name, self.visit(value))
        return clone


class _Plain(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        return _PARAMETERS if _is_parameters(node) else self.generic_visit(node)


def _of_loss(statement: ast.stmt, scaled: Scaled) -> ast.stmt:
    """`scaled_loss.backward()` as `loss.backward()`; any other statement as it is."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not any(call is item for item in scaled.backward):
        return statement
    assert isinstance(call.func, ast.Attribute), "read before"
    function = copy.copy(call.func)
    function.value = scaled.loss
    clone = copy.copy(call)
    clone.func = function
    return ast.Expr(clone)


def _is_parameters(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "parameters"
        and not node.args
    )
