"""What may happen to a model that a scope builds: the events, and their places."""

from __future__ import annotations

import ast
import enum

from msgspec import Struct, field

from torchmigrate.codemods.compile.kinds import Built
from torchmigrate.semantics.flow.mentions import Mention, Spot


class Event(enum.Enum):
    """What a mention does with the model."""

    MOVE = "move"  # to a device or another type, or converts its layers
    TO_CPU = "to cpu"
    MODE = "mode"  # train(), eval()
    PREPARE = "prepare"  # apply(init), requires_grad_()
    LOOK = "look"  # printed, counted, frozen
    CHANGE = "change"  # assigns one of its attributes
    CALL = "call"
    WRAP = "wrap"
    COPIES = "copies"
    SHARD = "shard"
    STATE = "state"
    IDENTITY = "identity"
    PARAMETERS = "parameters"
    TRAINED = "trained"  # its parameters go to an optimizer
    USE = "use"  # given to something that trains or runs it
    GIVEN = "given"  # given to something else
    STORED = "stored"  # in another variable, an attribute, a container
    RETURNED = "returned"
    LEAVE = "leave"  # compiled, traced, exported, taken over


class ModelEvent(Struct, eq=False):
    """An event with the mention that makes it."""

    event: Event
    mention: Mention
    node: ast.AST  # the expression: the call, or what is done with the model


class Build(Struct, eq=False):
    """An assignment of a new model to a variable: a name, or an attribute of `self`."""

    name: str
    target: ast.Name | ast.Attribute
    core: ast.Call  # the call that makes the model, without the `.to(device)` after it
    chain: tuple[str, ...]  # the methods after it
    kind: Built
    spot: Spot


class Life(Struct, eq=False):
    """A variable of a scope, or of the objects of a class, that holds a model.

    It has the builds and all that happens to the model, in source order.
    """

    name: str
    builds: list[Build]
    happenings: list[ModelEvent] = field(default_factory=list)
    # id() of the statements that bind the same model again, with the name
    rebinds: set[tuple[int, str]] = field(default_factory=set)

    def statements(self) -> set[int]:
        """id() of the statements that assign the model to its variable."""
        again = {statement for statement, name in self.rebinds if name == self.name}
        return again | {id(build.spot.statement) for build in self.builds}

    def has(self, *events: Event) -> bool:
        return any(item.event in events for item in self.happenings)
