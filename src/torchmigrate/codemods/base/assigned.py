"""What a name of the scope around a use is assigned."""

from __future__ import annotations

import ast

from torchmigrate.match.rule_matches import RuleMatch


def assigned(name: str, hit: RuleMatch) -> list[ast.expr | None]:
    """The value of every binding of a name in that scope; None for a binding that is not a plain
    assignment."""
    return [
        statement.value
        if isinstance(statement := binding.statement, ast.Assign)
        and any(item is binding.node for item in statement.targets)
        else None
        for binding in hit.use.scope.bindings.get(name, ())
    ]


def only_value(name: str, hit: RuleMatch) -> ast.expr | None:
    """What the name is assigned, if it is bound there just once."""
    values = assigned(name, hit)
    return values[0] if len(values) == 1 else None
