"""What targets of assignments hold from then on."""

from __future__ import annotations

import ast

from torchmigrate.semantics.guards.tests import evaluate_special, unpack_version
from torchmigrate.semantics.model import (
    BindingKind,
    Value,
)
from torchmigrate.semantics.values.classes import as_attribute
from torchmigrate.semantics.values.operators import unpacked
from torchmigrate.semantics.values.slots import (
    UNKNOWN,
)
from torchmigrate.semantics.walk.bindings import Bindings
from torchmigrate.semantics.walk.expressions import Expressions, has_objects
from torchmigrate.semantics.walk.lookups import Lookups
from torchmigrate.semantics.walk.state import State


class Assignments:
    """Assigns values to targets."""

    __slots__ = ("bindings", "expressions", "lookups", "state")

    def __init__(self, state: State, lookups: Lookups, bindings: Bindings, expressions: Expressions) -> None:
        self.state = state
        self.lookups = lookups
        self.bindings = bindings
        self.expressions = expressions

    def assign(
        self, target: ast.expr, value: Value, kind: BindingKind, source: ast.expr | None = None
    ) -> None:
        """Bind an assignment target to a value; `source` is the expression, where there is one."""
        if isinstance(target, ast.Name):
            self.bindings.bind(target.id, value, kind, target)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, kind, source)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, UNKNOWN, kind)
        elif isinstance(target, ast.Attribute):
            frame = self.state.frame
            holder = target.value
            if isinstance(holder, ast.Name) and frame.owner is not None and holder.id == frame.self_name:
                value = as_attribute(value)
                if target.attr in frame.stored:
                    frame.env[f"{holder.id}.{target.attr}"] = (value, ())
                frame.owner.store(target.attr, value)
            else:
                self.expressions.eval(holder)
        else:
            self.expressions.eval(target)

    def _unpack(
        self, target: ast.Tuple | ast.List, value: Value, kind: BindingKind, source: ast.expr | None
    ) -> None:
        elements = target.elts
        starred = any(isinstance(element, ast.Starred) for element in elements)
        values: list[Value] | None = None
        if source is not None and not starred:
            if isinstance(source, (ast.Tuple, ast.List)) and len(source.elts) == len(elements):
                parts = unpacked(value, len(elements))
                values = [
                    self.special(item) or (part if has_objects(part) else self.lookups.peek(item))
                    for item, part in zip(source.elts, parts, strict=True)
                ]
            else:
                values = unpack_version(source, self.lookups.peek, len(elements))
        if values is None and value is not UNKNOWN and not starred:
            values = unpacked(value, len(elements))
        for number, element in enumerate(elements):
            self.assign(element, values[number] if values else UNKNOWN, kind)

    def special(self, node: ast.expr) -> Value | None:
        return evaluate_special(node, self.lookups.peek)
