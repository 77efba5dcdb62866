"""Functions that return volatile variables: what says whether they are, there and in a call."""

from __future__ import annotations

import ast

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.volatile.extent import stored_names
from torchmigrate.codemods.volatile.function import VolatilePart
from torchmigrate.semantics.flow.functions import Function


def parameter_of(part: VolatilePart, line: int) -> str | None:
    """The parameter that says whether what a function returns is volatile; None: it always is.

    Raises:
        Unclear: something else does.
    """
    sites = [part.sites[number] for number in sorted(part.returned)]
    if all(site.flag is None for site in sites):
        return None
    node = part.scope.node
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)), "only functions return"
    names = {item.arg for item in (*node.args.args, *node.args.kwonlyargs)}
    values = {
        ast.dump(site.value) if site.value is not None and site.flag is not None else None for site in sites
    }
    name = getattr(_plain(sites[0].value), "id", None)
    if len(values) != 1 or name is None or name not in names or name in stored_names(part.body):
        raise Unclear(
            f"line {line}: it is returned, and the callers of `{node.name}` do not know whether it is "
            "volatile",
            line=line,
        )
    return str(name)


def _plain(value: ast.expr | None) -> ast.expr | None:
    """What is negated, or the value itself."""
    return value.operand if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not) else value


def is_negated(part: VolatilePart) -> bool:
    return isinstance(part.sites[min(part.returned)].value, ast.UnaryOp)


def never(value: ast.expr | None, part: VolatilePart) -> bool:
    """Whether the value of the parameter of a function says that nothing is volatile."""
    if not isinstance(value, ast.Constant):
        return False
    return bool(value.value) is is_negated(part)


def argument_for(
    call: ast.Call, function: Function, parameter: str | None
) -> tuple[ast.expr | ast.keyword | None, ast.expr | None]:
    """What is given for a parameter: the argument, and its value or the value of the default.

    Raises:
        Unclear: it is not known.
    """
    if parameter is None:
        return None, None
    if any(isinstance(item, ast.Starred) for item in call.args) or any(
        item.arg is None for item in call.keywords
    ):
        raise Unclear(f"line {call.lineno}: cannot analyze the arguments of the call", line=call.lineno)
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword, keyword.value
    names = function.parameters
    if parameter in names and names.index(parameter) < len(call.args):
        argument = call.args[names.index(parameter)]
        return argument, argument
    assert isinstance(function.node, (ast.FunctionDef, ast.AsyncFunctionDef)), "only functions are called"
    arguments = function.node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    default = next((value for item, value in pairs if item.arg == parameter), None)
    if default is None:
        raise Unclear(f"line {call.lineno}: cannot analyze the arguments of the call", line=call.lineno)
    return None, default
