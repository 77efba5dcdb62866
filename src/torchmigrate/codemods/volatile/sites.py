"""The places that made a variable volatile: `Variable(x, volatile=...)` and `x.volatile = ...`."""

from __future__ import annotations

import ast
from collections.abc import Collection

from msgspec import Struct

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.nodes import has_comment
from torchmigrate.semantics.flow.mentions import blocks
from torchmigrate.semantics.model import BindingKind, Scope, SemanticModel
from torchmigrate.semantics.values.objects import TENSOR
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk

VARIABLE = "torch.autograd.Variable"
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.ListComp)
_CLOSED = (*_ATOMS, ast.Tuple, ast.GeneratorExp)  # as arguments
_NOT_PLAIN = (ast.Call, ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.Lambda, ast.JoinedStr)


class Site(Struct, frozen=True, eq=False):
    """A place that made a variable volatile.

    statement, block: where it stands. call: `Variable(...)`, or a call of a function of the file that gives
    one; None for an assignment of `x.volatile`. data: what stays of the call; None: the call itself.
    name: that x. flag: what says whether gradients are recorded; None: never. flag_names: the names in it.
    value: what says whether it is volatile.
    follows: it is just what another variable is, so that what is computed with both needs nothing of its own.
    """

    statement: ast.stmt
    block: list[ast.stmt]
    call: ast.Call | None
    data: ast.expr | None
    name: str | None
    flag: Code | None
    flag_names: frozenset[str]
    value: ast.expr | None = None
    follows: bool = False

    @property
    def flag_key(self) -> str | None:
        """The same for flags that say the same."""
        return ast.dump(self.value) if self.flag is not None and self.value is not None else None


class Setting(Struct, frozen=True, eq=False):
    """An assignment `x.volatile = value`; sure: of a tensor."""

    statement: ast.Assign
    target: ast.Attribute
    block: list[ast.stmt]
    scope: Scope
    sure: bool


def site_of_call(hit: RuleMatch, scope: Scope, source: Source) -> Site:
    """`Variable(x, volatile=...)` as a site.

    Raises:
        Unclear: its arguments are not understood.
    """
    use = hit.use
    line = f"line {use.statement.lineno}"
    if use.call is None:
        raise Unclear(f"{line}: it is not called here")
    data, value = _arguments(use.call, line)
    if has_comment(source, use.call):
        raise Unclear(f"{line}: the fix would remove a comment")
    assert value is not None, "calls without it are not hits"
    if isinstance(value, ast.Attribute) and value.attr == "volatile":
        return Site(use.statement, use.block, use.call, data, None, None, frozenset(), value, follows=True)
    flag, names = flag_of(value, scope, line)
    return Site(use.statement, use.block, use.call, data, None, flag, names, value)


def site_of_setting(setting: Setting) -> Site | None:
    """`x.volatile = ...` as a site; None for `x.volatile = False`, which says nothing.

    Raises:
        Unclear: x may be known elsewhere.
    """
    line = f"line {setting.statement.lineno}"
    value = setting.statement.value
    if isinstance(value, ast.Constant) and not value.value:
        return None
    name = getattr(setting.target.value, "id", "")
    bindings = setting.scope.bindings.get(name, [])
    if not bindings or not all(
        binding.kind is BindingKind.ASSIGNMENT
        and isinstance(getattr(binding.statement, "value", None), ast.Call)
        for binding in bindings
    ):
        shown = ast.unparse(setting.target.value)
        raise Unclear(f"{line}: `{shown}` is not created here, so the extent is unclear")
    flag, names = flag_of(value, setting.scope, line)
    return Site(setting.statement, setting.block, None, None, name, flag, names, value)


def settings(names: SemanticModel, makers: Collection[int] = ()) -> list[Setting]:
    """Every `x.volatile = ...` in a file, where x surely is a tensor.

    Args:
        makers: functions, by id(), that make volatile variables: there, x may be one as well.
    """
    scopes = {id(scope.node): scope for scope in names.scopes}
    found: list[Setting] = []
    todo: list[tuple[list[ast.stmt], Scope]] = [(names.tree.body, names.module)]
    while todo:
        block, scope = todo.pop()
        for statement in block:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Attribute) and target.attr == "volatile":
                value = names.values.get(id(target.value), ())
                alone = isinstance(statement, ast.Assign) and len(statement.targets) == 1
                sure = bool(value) and all(getattr(item, "cls", "") == TENSOR for item in value)
                if alone and (sure or (not value and id(scope.node) in makers)):
                    assert isinstance(statement, ast.Assign), "has targets"
                    found.append(Setting(statement, target, block, scope, sure))
            inner = scopes.get(id(statement), scope)
            todo += [(below, inner) for below in blocks(statement)]
    return sorted(found, key=lambda setting: setting.statement.lineno)


def replacement(data: ast.expr) -> Code:
    """What stays of `Variable(data)`: its argument, in parentheses where it needs them."""
    return code("$data" if isinstance(data, _CLOSED) else "($data)", data=data)


def only_data(call: ast.Call, source: Source) -> ast.expr | None:
    """The argument of a `Variable(x)` that says nothing else; None for all others."""
    try:
        data, value = _arguments(call, "")
    except Unclear:
        return None
    idle = value is None or (isinstance(value, ast.Constant) and not value.value)
    return data if idle and not has_comment(source, call) else None


def _arguments(call: ast.Call, line: str) -> tuple[ast.expr, ast.expr | None]:
    given: dict[str, ast.expr] = dict(zip(("data", "requires_grad", "volatile"), call.args, strict=False))
    given.update({item.arg: item.value for item in call.keywords if item.arg is not None})
    starred = any(isinstance(item, ast.Starred) for item in call.args)
    if starred or any(item.arg is None for item in call.keywords) or "data" not in given:
        raise Unclear(f"{line}: cannot analyze the arguments of the call")
    recorded = given.get("requires_grad")
    if recorded is not None and not (isinstance(recorded, ast.Constant) and not recorded.value):
        raise Unclear(f"{line}: it is both volatile and `requires_grad`")
    return given["data"], given.get("volatile")


def flag_of(value: ast.expr, scope: Scope, line: str) -> tuple[Code | None, frozenset[str]]:
    """When gradients are recorded, and the names in it; None: never.

    Args:
        value: what says whether something is volatile.

    Raises:
        Unclear: it is more than names and operators.
    """
    if isinstance(value, ast.Constant):
        return None, frozenset()
    if any(isinstance(node, _NOT_PLAIN) for node in walk(value)):
        raise Unclear(f"{line}: `volatile` is computed")
    names = frozenset(node.id for node in walk(value) if isinstance(node, ast.Name))
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        return code("$x" if _is_bool(value.operand, scope) else "bool($x)", x=value.operand), names
    return code("not $x" if isinstance(value, _ATOMS) else "not ($x)", x=value), names


def _is_bool(node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is a bool, as far as its name says: `set_grad_enabled` takes nothing else."""
    if isinstance(node, ast.Name):
        return "train" in node.id.lower() or _default_is_bool(node.id, scope.node)
    if isinstance(node, ast.Attribute):
        return "train" in node.attr.lower()
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _default_is_bool(name: str, node: ast.AST) -> bool:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return any(
        item.arg == name and isinstance(default, ast.Constant) and isinstance(default.value, bool)
        for item, default in pairs
    )
