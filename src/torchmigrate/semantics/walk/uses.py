"""The record of the uses of library names."""

from __future__ import annotations

import ast

from torchmigrate.semantics.model import REFERENCE, VIA_METHOD, Binding, Local, Role, Use, Value, Via
from torchmigrate.semantics.walk.state import FSTRINGS_HAVE_PLACES, State


class Uses:
    """Records uses, and where the functions of the file are read."""

    __slots__ = ("state",)

    def __init__(self, state: State) -> None:
        self.state = state

    def record(
        self,
        node: ast.AST,
        names: tuple[str, ...],
        sure: bool,
        role: Role,
        call: ast.Call | None,
        decorates: ast.AST | None,
        binding: Binding | None,
        rest: str,
        via: Via,
        origins: tuple[Binding, ...] = (),
        stated: bool = False,
    ) -> None:
        state = self.state
        place = node
        in_fstring = state.fstring is not None and not FSTRINGS_HAVE_PLACES
        if in_fstring and state.fstring is not None:
            place = state.fstring
        if role is REFERENCE:
            role = state.role
        # By position, in the order of the class: there are many of them.
        state.uses.append(
            Use(
                node, names, sure, role, state.offset(place), state.end_offset(place), state.statement,
                state.block, state.frame.scope, state.guarded, call, decorates, binding, origins, rest,
                via is VIA_METHOD, state.string_base is not None, in_fstring, via, stated,
            )
        )  # fmt: skip

    def mention(self, node: ast.AST, value: Value) -> None:
        """Remember where a function of this file is read."""
        if len(value) == 1 and isinstance(value[0], Local):
            self.state.walked.mentions.setdefault(value[0].node, []).append(
                node if self.state.string_base is None else self.state.statement
            )
