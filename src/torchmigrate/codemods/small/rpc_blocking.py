"""TM577: functions that run by RPC, and wait for another RPC."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence
from typing import TypeGuard

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.functions import functions_of
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.functions import Function, Functions
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.model import Role
from torchmigrate.source.trees import last_name

_SYNC, _ASYNC = "torch.distributed.rpc.rpc_sync", "torch.distributed.rpc.rpc_async"
_PROXIES = frozenset(("rpc_sync", "rpc_async", "remote"))  # of an RRef
_MARK = "async_execution"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every call that waits, in a function of the file that is passed to an RPC."""
    calls = {id(hit.use.call): hit for hit in hits if hit.use.role is Role.CALL and hit.use.call is not None}
    if not calls:
        return
    functions = _Named(functions_of(file), file.flow)
    remote = {
        id(item): item
        for hit in calls.values()
        for given in _passed(hit.use.call)
        for item in _functions(given, functions)
    }
    made = {last_name(given) for hit in calls.values() for given in _passed(hit.use.call)}
    for call in file.names.nodes(ast.Call):
        if _is_proxied(call.func):
            found = _methods(call.func.attr, made, functions)
            remote.update((id(item), item) for item in found)
    for function in remote.values():
        for call in _waiting(function, calls, functions):
            yield finding_at(rule, file, file.source.span(call.func), symbol=_SYNC, fix=None)


def _is_proxied(node: ast.expr) -> TypeGuard[ast.Attribute]:
    """Whether a function is a method of a remote object: `rref.rpc_async().step`."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Call):
        return False
    proxy = node.value.func
    return isinstance(proxy, ast.Attribute) and proxy.attr in _PROXIES and not node.value.args


def _passed(call: ast.Call | None) -> Iterator[ast.expr]:
    """The function that an RPC calls, and those that this is given: `call, args=(Server.step, rref)`."""
    assert call is not None, "only calls were taken"
    named = {item.arg: item.value for item in call.keywords}
    function = named.get("func", call.args[1] if len(call.args) > 1 else None)
    if function is not None:
        yield function
    arguments = named.get("args", call.args[2] if len(call.args) > 2 else None)
    if isinstance(arguments, (ast.Tuple, ast.List)):
        yield from (item for item in arguments.elts if isinstance(item, (ast.Attribute, ast.Name)))


class _Named:
    """The functions of a file by name, and what each calls."""

    def __init__(self, functions: Functions, flow: ValueFlow) -> None:
        self.module = functions.module
        self.every: dict[str, list[Function]] = {}
        self._by_node, self._flow = functions.by_node, flow
        for item in functions.every:
            self.every.setdefault(item.name, []).append(item)

    def called(self, call: ast.Call) -> Function | None:
        return self._by_node.get(self._flow.entered(call))


def _functions(node: ast.expr, functions: _Named) -> list[Function]:
    """The function or method of the file that a name, or `Class.method`, is."""
    if isinstance(node, ast.Attribute):
        return _methods(node.attr, {last_name(node.value)}, functions)
    named = functions.every.get(last_name(node), ())
    return _sole([item for item in named if item.outer is functions.module and item.owner is None])


def _methods(name: str, owners: Container[str], functions: _Named) -> list[Function]:
    """The method of this name, if one of some classes alone has such."""
    every = (item for item in functions.every.get(name, ()) if item.owner is not None)
    return _sole([item for item in every if item.owner and item.owner.name in owners])


def _sole(found: list[Function]) -> list[Function]:
    """The one that was found, unless it answers by a future."""
    marks = [mark for item in found for mark in getattr(item.node, "decorator_list", ())]
    answers = any(last_name(getattr(mark, "func", mark)) == _MARK for mark in marks)
    return found if len(found) == 1 and not answers else []


def _waiting(function: Function, calls: dict[int, RuleMatch], functions: _Named) -> Iterator[ast.Call]:
    """The calls in a function that wait: for an RPC, or for a helper of the file that does."""
    yield from _own_waits(function, calls)
    for _, call in function.calls:
        called = functions.called(call)
        if called is not None and called is not function and any(_own_waits(called, calls)):
            yield call


def _own_waits(function: Function, calls: dict[int, RuleMatch]) -> Iterator[ast.Call]:
    """`rpc_sync`, and `wait()` of what `rpc_async` gives."""
    futures: set[str] = set()
    for statement, call in function.calls:
        hit = calls.get(id(call))
        if hit is not None and hit.symbol == _ASYNC and isinstance(statement, ast.Assign):
            futures.update(item.id for item in statement.targets if isinstance(item, ast.Name))
    for _, call in function.calls:
        hit = calls.get(id(call))
        if hit is not None and hit.symbol == _SYNC:
            yield call
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "wait":
            future = call.func.value
            asked = calls.get(id(future))
            named = isinstance(future, ast.Name) and future.id in futures
            if named or (asked is not None and asked.symbol == _ASYNC):
                yield call
