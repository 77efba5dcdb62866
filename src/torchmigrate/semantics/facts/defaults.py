"""Names that are only taken where there is nothing newer: a default that the next lines replace."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterator

from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.guards.formulas import MISSING_NAME, survives
from torchmigrate.semantics.model import Guards, QualifiedName, Role, Use
from torchmigrate.source.trees import walk


class Defaults:
    """What the file does with the names that it binds to library names."""

    def __init__(self, around: FileFacts) -> None:
        self.around = around
        self._mentions: dict[int, dict[str, list[int]]] = {}

    def is_given_to_getattr(self, use: Use, exists: Callable[[str], bool]) -> bool:
        """Whether a use is the default of `getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)`.

        exists: whether a name exists at the target; called with the name that `getattr` reads.
        """
        call = self.around.parent(use.node, use.statement)
        if not isinstance(call, ast.Call) or len(call.args) != 3 or call.args[2] is not use.node:
            return False
        function, name = call.func, call.args[1]
        owner = self._named(call.args[0])
        return (
            isinstance(function, ast.Name)
            and function.id == "getattr"
            and isinstance(name, ast.Constant)
            and isinstance(name.value, str)
            and owner is not None
            and exists(f"{owner}.{name.value}")
        )

    def _named(self, node: ast.expr) -> str | None:
        """The library name that an expression surely is; also the name of a whole library, which is not a
        use."""
        value = self.around.names.values.get(id(node), ())
        only = value[0] if len(value) == 1 else None
        return only.name if isinstance(only, QualifiedName) and only.sure else None

    def is_only_looked_at(self, use: Use) -> bool:
        """Whether code only asks if a name is there, in a `try` that goes on without it, or wraps a function.

        `getattr(torch.cuda.amp, "autocast") is not None`, or `torch.cuda.amp.autocast` as a statement;
        `F.upsample = counted(F.upsample)`.
        """
        statement = use.statement
        if isinstance(statement, ast.Assign) and isinstance(use.node, ast.Attribute) and not use.method:
            given = self.around.parent(use.node, statement)
            places = [item for item in statement.targets if isinstance(item, ast.Attribute)]
            if isinstance(given, (ast.Call, ast.keyword)) and any(
                ast.unparse(item) == ast.unparse(use.node) for item in places
            ):
                return True
        if use.role is Role.IMPORT or not survives(use.guards, MISSING_NAME):
            return False
        around = self.around.parent(use.node, use.statement)
        if isinstance(around, ast.Compare):
            return isinstance(around.ops[0], (ast.Is, ast.IsNot))
        return isinstance(around, ast.Expr)

    def is_tested(self, use: Use) -> bool:
        """Whether code only asks if a name has a value: `if amp is not None`, `if amp and fast`."""
        around = self.around.parent(use.node, use.statement)
        if isinstance(around, ast.Compare):
            other = around.comparators[0] if around.left is use.node else around.left
            is_none = isinstance(other, ast.Constant) and other.value is None
            return len(around.ops) == 1 and is_none
        if isinstance(around, (ast.If, ast.IfExp, ast.While)):
            return around.test is use.node
        return isinstance(around, (ast.BoolOp, ast.UnaryOp))

    def is_overridden(self, use: Use, surely_runs: Callable[[Guards], bool]) -> bool:
        """Whether what a use binds is replaced before anything reads it, in a branch that runs at the target.

        `norm = utils.weight_norm` before `if hasattr(parametrizations, "weight_norm"): norm = ...`

        surely_runs: whether a block under such guards runs whenever the statement of the use did.
        """
        key = _bound(use)
        scope = use.binding.scope if use.role is Role.IMPORT and use.binding is not None else use.scope
        if key is None or len(scope.bindings.get(key, ())) == 1:
            return False
        places = self._where(use.block).get(key, ())
        line = use.statement.lineno
        index = bisect_left(places, line, key=lambda number: use.block[number].lineno)
        while index < len(places) and use.block[places[index]] is not use.statement:
            if use.block[places[index]].lineno != line:
                return False  # it is not a statement of the block: an `elif`
            index += 1
        node = use.block[places[index + 1]] if index + 1 < len(places) else None
        if not isinstance(node, (ast.If, ast.Try)) or (
            isinstance(node, ast.If) and key in _mentioned(node.test)
        ):
            return False
        first = next((inner for inner in node.body if key in _mentioned(inner)), None)
        return (
            first is not None
            and _replaces(first, key)
            and surely_runs(self.around.names.guarded.of(node.body[0]))
        )

    def _where(self, block: list[ast.stmt]) -> dict[str, list[int]]:
        """The statements of a block that mention a name, or an attribute of `self`, by their number."""
        found = self._mentions.get(id(block))
        if found is None:
            found = self._mentions[id(block)] = {}
            for number, node in enumerate(block):
                for key in set(_mentioned(node)):
                    found.setdefault(key, []).append(number)
        return found


def _bound(use: Use) -> str | None:
    """What a statement binds to the use, which is all that it does."""
    statement = use.statement
    if use.role is Role.IMPORT:
        return use.binding.name if use.binding is not None else None
    if isinstance(statement, ast.AnnAssign):
        targets: list[ast.expr] = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = statement.targets
    else:
        return None
    return _key(targets[0]) if len(targets) == 1 and statement.value is use.node else None


def _key(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return None


def _mentioned(node: ast.AST) -> Iterator[str]:
    for inner in walk(node):
        if isinstance(inner, ast.alias):
            yield inner.asname or inner.name.partition(".")[0]
        else:
            key = _key(inner)
            if key is not None:
                yield key


def _replaces(node: ast.stmt, key: str) -> bool:
    """Whether a statement binds something to a name without reading it."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return True
    return (
        isinstance(node, ast.Assign)
        and [_key(target) for target in node.targets] == [key]
        and key not in _mentioned(node.value)
    )
