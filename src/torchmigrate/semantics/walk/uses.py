"""The record of the uses of library names."""

from __future__ import annotations

import ast

from torchmigrate.semantics.model import REFERENCE, VIA_METHOD, Binding, Guards, Local, Role, Use, Value, Via
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
                state.block, state.frame.scope, state.guards, call, decorates, binding, origins, rest,
                via is VIA_METHOD, state.string_base is not None, in_fstring, via, stated,
            )
        )  # fmt: skip
        if state.guards.attempt is not None or state.guards.around is not None:
            self.note_try(names, call)

    def note_try(self, names: tuple[str, ...], call: ast.Call | None = None) -> None:
        """Remember what the parts of the try statements around this place use."""
        state = self.state
        guards: Guards | None = state.guards
        attempt = state.guards.attempt
        if attempt is None and state.guards.around is None:
            return
        given = frozenset(keyword.arg or "**" for keyword in call.keywords) if call is not None else None
        if attempt is not None and state.block is attempt.node.body and len(names) == 1:
            attempt.always.update(names)
        while guards is not None and (guards.noted is None or (names, given) not in guards.noted):
            attempt = guards.attempt
            if attempt is not None:
                if guards.noted is None:
                    guards.noted = set()
                guards.noted.add((names, given))  # and so were those around it
                attempt.names.setdefault(guards.part, set()).update(names)
                if given is not None:
                    attempt.calls.setdefault(guards.part, set()).update((name, given) for name in names)
            guards = guards.around

    def mention(self, value: Value) -> None:
        """Remember where a function of this file is read."""
        state = self.state
        if len(value) == 1 and isinstance(value[0], Local):
            state.mentions.setdefault(value[0].node, []).append(state.guards)
