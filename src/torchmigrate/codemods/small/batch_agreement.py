"""TM578: processes that agree by `all_reduce` on how many batches they have."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.functions import functions_of
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.functions import Function
from torchmigrate.semantics.model import Role
from torchmigrate.source.trees import last_name, walk

_BOUNDS = frozenset(("range", "islice"))
_TENSORS = frozenset("tensor LongTensor IntTensor as_tensor full to cuda".split())
_STOPS = "StopIteration"
_MOST = 16  # calls of a function that are looked at: for each, all of its statements are
_WRITES = frozenset(("fill_", "zero_", "add_"))


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `all_reduce` of a length that bounds a loop, or of a flag that ends one."""
    calls = [hit for hit in hits if hit.use.role is Role.CALL and hit.use.call is not None]
    if not calls:
        return
    functions = functions_of(file)
    asked: Counter[int] = Counter()
    for hit in calls:
        call = hit.use.call
        assert call is not None, "only calls were taken"
        named = (item.value for item in call.keywords if item.arg == "tensor")
        given = call.args[0] if call.args else next(named, None)
        function = functions.owners[id(functions.statement_of(call))]
        asked[id(function)] += 1
        if asked[id(function)] > _MOST or not isinstance(given, ast.Name):
            continue
        if _agrees(given.id, function, call):
            yield file.fixes.finding(hit, None)


def _agrees(name: str, function: Function, call: ast.Call) -> bool:
    """Whether a variable of a function holds a number of batches, or says that there are no more."""
    lengths: set[str] = set()  # variables that hold the length of something
    for item in function.statements:
        if isinstance(item, ast.Assign) and _is_len(item.value):
            lengths.update(target.id for target in item.targets if isinstance(target, ast.Name))
    values = (
        item.value for item in function.statements if isinstance(item, ast.Assign) and _gives(item, name)
    )
    if any(_is_length(value, lengths) for value in values):
        return _bounds_loop(name, function)
    statements = function.statements
    if any(isinstance(item, ast.Try) and _ends(name, item) for item in statements):
        return True
    return any(isinstance(item, ast.While) and _asks(name, item, call) for item in statements)


def _gives(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


def _is_len(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len"


def _is_length(value: ast.expr, lengths: Container[str]) -> bool:
    """Whether a value is a tensor of the length of something: `torch.tensor([len(loader)])`."""
    if not isinstance(value, ast.Call) or last_name(value.func) not in _TENSORS:
        return False
    return any(_is_len(item) or (isinstance(item, ast.Name) and item.id in lengths) for item in walk(value))


def _ends(name: str, statement: ast.Try) -> bool:
    """Whether a variable is set where an iterator has no more."""
    kinds = (handler for handler in statement.handlers if handler.type is not None)
    return any(
        last_name(kind.type) == _STOPS and _sets(name, kind) for kind in kinds if kind.type is not None
    )


def _asks(name: str, loop: ast.While, call: ast.Call) -> bool:
    """Whether a loop over an iterator agrees on a flag in every turn, and ends when the flag is set."""
    inside = walk(loop)
    if call not in inside or not any(
        isinstance(item, ast.Call) and getattr(item.func, "id", "") == "next" for item in inside
    ):
        return False
    return any(isinstance(item, ast.If) and _breaks_by(item, {name}) for item in inside)


def _breaks_by(statement: ast.If, names: set[str]) -> bool:
    return _mentions(statement.test, names) and any(isinstance(item, ast.Break) for item in statement.body)


def _bounds_loop(name: str, function: Function) -> bool:
    """Whether a loop runs as often as a variable says, or as what is read from it does."""
    names = {name}
    for item in function.statements:
        if isinstance(item, ast.Assign) and _mentions(item.value, {name}):
            names.update(target.id for target in item.targets if isinstance(target, ast.Name))
    for item in function.statements:
        if isinstance(item, ast.For) and isinstance(item.iter, ast.Call):
            calls = [node for node in walk(item.iter) if isinstance(node, ast.Call)]
            bounds = [node for node in calls if last_name(node.func) in _BOUNDS]
            if any(_mentions(argument, names) for node in bounds for argument in node.args):
                return True
        if isinstance(item, ast.While) and _mentions(item.test, names):
            return True
        if isinstance(item, ast.If) and _breaks_by(item, names):
            return True
    return False


def _mentions(node: ast.expr, names: set[str]) -> bool:
    return any(isinstance(item, ast.Name) and item.id in names for item in walk(node))


def _sets(name: str, node: ast.AST) -> bool:
    """Whether a variable, or an element of it, is set in some statements."""
    for item in walk(node):
        target: ast.AST | None = None
        if isinstance(item, (ast.Name, ast.Subscript)) and not isinstance(item.ctx, ast.Load):
            target = item.value if isinstance(item, ast.Subscript) else item
        elif (
            isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr in _WRITES
        ):
            target = item.func.value
        if isinstance(target, ast.Name) and target.id == name:
            return True
    return False
