"""The places that made a variable volatile: `Variable(x, volatile=...)` and `x.volatile = ...`."""

from __future__ import annotations

import ast
from collections.abc import Collection

from msgspec import Struct

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.nodes import has_comment
from torchmigrate.semantics.flow.calls import default_of
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.model import Scope
from torchmigrate.semantics.values.objects import TENSOR
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk

VARIABLE = "torch.autograd.Variable"
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.ListComp)
_CLOSED = (*_ATOMS, ast.Tuple, ast.GeneratorExp)  # as arguments
_Def = (ast.FunctionDef, ast.AsyncFunctionDef)
_NOT_PLAIN = (ast.Call, ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.Lambda, ast.JoinedStr)


class Site(Struct, frozen=True, eq=False):
    """A place that made a variable volatile.

    statement: which holds it. sources: the expressions that make it. call: `Variable(...)`, or a call of a
    function of the file that gives one; None for an assignment of `x.volatile`. data: what stays of the call;
    None: the call itself. flag: what says whether gradients are recorded; None: never. flag_names: the names
    in it. value: what says whether it is volatile.
    """

    statement: ast.stmt
    sources: tuple[ast.AST, ...]
    call: ast.Call | None = None
    data: ast.expr | None = None
    flag: Code | None = None
    flag_names: frozenset[str] = frozenset()
    value: ast.expr | None = None

    @property
    def flag_key(self) -> str | None:
        """The same for flags that say the same."""
        return ast.dump(self.value) if self.flag is not None and self.value is not None else None


class Setting(Struct, frozen=True, eq=False):
    """An assignment `x.volatile = value`; sure: of a tensor."""

    statement: ast.Assign
    target: ast.Attribute
    scope: Scope
    sure: bool


def site_of_call(hit: RuleMatch, scope: Scope, source: Source) -> Site:
    """`Variable(x, volatile=...)` as a site.

    Raises:
        Unclear: its arguments are not understood.
    """
    use = hit.use
    line = use.statement.lineno
    if use.call is None:
        raise Unclear.at(line, "it is not called here")
    data, value = _arguments(use.call, line)
    if has_comment(source, use.call):
        raise Unclear.at(line, "the fix would remove a comment")
    assert value is not None, "calls without it are not hits"
    if isinstance(value, ast.Attribute) and value.attr == "volatile":
        # Just what another variable is: what is computed with both needs nothing of its own.
        return Site(use.statement, (), use.call, data, value=value)
    flag, names = flag_of(value, scope, line)
    return Site(use.statement, (use.call,), use.call, data, flag, names, value)


def site_of_setting(setting: Setting, flow: ValueFlow) -> Site | None:
    """`x.volatile = ...` as a site; None for `x.volatile = False`.

    Raises:
        Unclear: x may be known elsewhere.
    """
    line, value, variable = setting.statement.lineno, setting.statement.value, setting.target.value
    if is_false(value):
        return None
    made = [step.node for step in flow.sources(variable)] if isinstance(variable, ast.Name) else []
    home = flow.index.home_of(variable)
    sources = tuple(node for node in made if isinstance(node, ast.Call) and flow.index.home_of(node) is home)
    if not sources or len(sources) < len(made):
        raise Unclear.at(line, f"`{ast.unparse(variable)}` is not created here, so the extent is unclear")
    flag, names = flag_of(value, setting.scope, line)
    return Site(setting.statement, sources, flag=flag, flag_names=names, value=value)


def settings(flow: ValueFlow, makers: Collection[ast.AST | None] = ()) -> list[Setting]:
    """Every `x.volatile = ...` in a file, where x surely is a tensor.

    Args:
        makers: functions that make volatile variables: there, x may be one as well.
    """
    found: list[Setting] = []
    for target in flow.index.attributes("volatile"):
        statement = flow.names.parents.get(target)
        if isinstance(statement, ast.Assign) and statement.targets == [target]:
            values = flow.names.values.get(id(target.value), ())
            sure = bool(values) and all(getattr(item, "cls", "") == TENSOR for item in values)
            if sure or (not values and flow.index.home_of(target) in makers):
                found.append(Setting(statement, target, flow.index.scope_of(target), sure))
    return sorted(found, key=lambda setting: setting.statement.lineno)


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def replacement(data: ast.expr) -> Code:
    """What stays of `Variable(data)`: its argument, in parentheses where it needs them."""
    return code("$data" if isinstance(data, _CLOSED) else "($data)", data=data)


def only_data(call: ast.Call, source: Source) -> ast.expr | None:
    """The argument of a `Variable(x)` that says nothing else; None for all others."""
    try:
        data, value = _arguments(call, 0)
    except Unclear:
        return None
    return data if (value is None or is_false(value)) and not has_comment(source, call) else None


def _arguments(call: ast.Call, line: int) -> tuple[ast.expr, ast.expr | None]:
    given: dict[str, ast.expr] = dict(zip(("data", "requires_grad", "volatile"), call.args, strict=False))
    given.update({item.arg: item.value for item in call.keywords if item.arg is not None})
    starred = any(isinstance(item, ast.Starred) for item in call.args)
    if starred or any(item.arg is None for item in call.keywords) or "data" not in given:
        raise Unclear.at(line, "cannot analyze the arguments of the call")
    recorded = given.get("requires_grad")
    if recorded is not None and not is_false(recorded):
        raise Unclear.at(line, "it is both volatile and `requires_grad`")
    return given["data"], given.get("volatile")


def flag_of(value: ast.expr, scope: Scope, line: int) -> tuple[Code | None, frozenset[str]]:
    """When gradients are recorded, and the names in it; None: never.

    Args:
        value: what says whether something is volatile.

    Raises:
        Unclear: it is more than names and operators.
    """
    if isinstance(value, ast.Constant):
        return None, frozenset()
    if any(isinstance(node, _NOT_PLAIN) for node in walk(value)):
        raise Unclear.at(line, "`volatile` is computed")
    names = frozenset(node.id for node in walk(value) if isinstance(node, ast.Name))
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        return code("$x" if _is_bool(value.operand, scope) else "bool($x)", x=value.operand), names
    return code("not $x" if isinstance(value, _ATOMS) else "not ($x)", x=value), names


def _is_bool(node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is a bool, as far as its name says: `set_grad_enabled` takes nothing else."""
    if isinstance(node, ast.Name):
        default = default_of(scope.node, node.id) if isinstance(scope.node, _Def) else None
        return "train" in node.id.lower() or isinstance(getattr(default, "value", None), bool)
    if isinstance(node, ast.Attribute):
        return "train" in node.attr.lower()
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
