"""`if fp16: ... else: ...`: two ways to train that are one with a scaler, which can be switched off."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Sequence

from torchmigrate.codemods.apex.presence import Presence
from torchmigrate.codemods.apex.uses import Uses
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.rewrite.lines import is_elif
from torchmigrate.rewrite.statements import Rewriting
from torchmigrate.semantics.flow.functions import Functions
from torchmigrate.semantics.flow.mentions import Spot
from torchmigrate.source.trees import walk


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
        # What the calls of apex are without it.
        self._plain: dict[int, ast.expr | None] = {id(item.node): None for item in uses.of("master")}
        for item in uses.scaled:
            self._plain.update((id(call.func.value), item.loss) for call in item.backward)  # type: ignore[attr-defined]
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
                known = self.presence.reduced(outer.test)
                # Where apex is there, `presence` takes the test away.
                unknown = not isinstance(known, bool)
                wrong = not unknown and known is not (spot.block is outer.body)
                if wrong or (unknown and self._same(spot.block, other)):
                    unclear = (
                        "a branch for when it is not installed" if wrong else "only one of several branches"
                    )
                    if wrong or is_elif(self.rewriting.source, outer):
                        raise Unclear.at(outer.lineno, f"apex is used in {unclear}")
                    self.rewriting.unwrap(outer, spot.block)
                elif unknown:
                    if id(statement) in self._scaled:
                        self.kept.append((outer, statement))
                    spot = spot.outer
                    continue
                self.joined.add(id(outer))
                self.dropped |= {id(node) for item in other for node in walk(item)}
                return
            spot = spot.outer

    def _same(self, apex: Sequence[ast.stmt], plain: Sequence[ast.stmt]) -> bool:
        """Whether two blocks do the same, one with apex and the other without."""
        masters: list[ast.Call] = []
        calls: list[ast.Call] = []
        if self._shape(list(apex), masters) != self._shape(list(plain), calls) or len(masters) != len(calls):
            return False
        self.parameters.update((id(one), other) for one, other in zip(masters, calls, strict=True))
        return True

    def _shape(self, node: object, parameters: list[ast.Call]) -> Hashable:
        """What code is without apex, to be compared; `parameters` gets the calls that give those to clip."""
        if isinstance(node, list):
            return tuple(self._shape(item, parameters) for part in node for item in self._opened(part))
        if not isinstance(node, ast.AST):
            return node if isinstance(node, Hashable) else None
        given = self._plain.get(id(node), node)
        method = getattr(given, "func", None)
        if given is None or (getattr(method, "attr", "") == "parameters" and not getattr(given, "args", ())):
            assert isinstance(node, ast.Call), "what gives the parameters"
            parameters.append(node)
            return "parameters"
        assert given is not None, "seen before"
        fields = ((name, self._shape(value, parameters)) for name, value in ast.iter_fields(given))
        return (type(given), *fields)

    def _opened(self, node: object) -> list[object]:
        """The statements under `amp.scale_loss`, in the place of it; what imports apex is left out."""
        scaled = self._scaled.get(id(node))
        if node in self.presence.tries:
            return []
        if scaled is None:
            return [node]
        return list(scaled.statement.body)
