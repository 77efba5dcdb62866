"""A class of the old kind, derived from `torch.autograd.Function`: what it is made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct, field

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.rewrite.statements import Crowded
from torchmigrate.semantics.flow.calls import default_of
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.source.trees import is_docstring, walk

Method = ast.FunctionDef
# What a context has as well, under the same name.
CONTEXT = frozenset(
    ("saved_tensors", "save_for_backward", "mark_dirty", "mark_non_differentiable", "needs_input_grad")
) | {"set_materialize_grads", "saved_variables"}
# What an old function had and a context has not, or has for itself.
_GONE = frozenset(
    ("mark_shared_storage", "next_functions", "previous_functions", "register_hook", "to_save", "apply")
) | frozenset(("dirty_tensors", "non_differentiable", "metadata", "name", "__dict__", "__class__"))
_BOTH = ("forward", "backward")
# What an object had, and only a call has now.
OF_CALLS = sorted(CONTEXT | _GONE | {*_BOTH})


class LegacyClass(Struct, eq=False):
    """An old function class, all parts of it understood.

    settings: the parameters of `__init__`, which become some of `forward`. state: attributes of an object.
    """

    node: ast.ClassDef
    forward: Method
    backward: Method | None
    init: Method | None
    settings: list[ast.arg] = field(default_factory=list)
    state: set[str] = field(default_factory=set)

    @property
    def methods(self) -> list[Method]:
        """`forward` and `backward`."""
        return [self.forward, *([self.backward] if self.backward else [])]

    @property
    def inputs(self) -> int:
        return len(self.forward.args.args) - 1

    def default(self, setting: ast.arg) -> ast.expr | None:
        return default_of(self.init, setting.arg) if self.init is not None else None


def is_static(node: ast.FunctionDef) -> bool:
    """Whether a method is static or a class method."""
    return any(
        isinstance(mark, ast.Name) and mark.id in ("staticmethod", "classmethod")
        for mark in node.decorator_list
    )


def legacy_forward(node: ast.ClassDef) -> Method | None:
    """The instance method `forward` of a class, if it has one."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "forward":
            return None if is_static(item) else item
    return None


def first_parameter(method: Method) -> ast.arg:
    """The first parameter of a method, `self`.

    Raises:
        Unclear: it has none.
    """
    arguments = [*method.args.posonlyargs, *method.args.args]
    if not arguments:
        raise Unclear(f"`{method.name}` has no `self`")
    return arguments[0]


def members_of(method: Method, local: TreeIndex, *, looked_up: bool = False) -> Iterator[ast.Attribute]:
    """Every `self.x` of a method, without the call of the base's `__init__`.

    looked_up: attributes that belong to no call may be found by name: `getattr(self, "bound_" + side)`.

    Raises:
        Unclear: there is something in it that has no counterpart.
        Crowded: it is used in an f-string.
    """
    own = first_parameter(method)
    skipped = {node for item in method.body if calls_base_init(item, own.arg) for node in walk(item)}
    for node in walk(method):
        if isinstance(node, ast.arg) and node.arg == own.arg and node is not own:
            raise Unclear(f"`{own.arg}` has another meaning inside of `{method.name}`")
        if own.arg != "ctx" and getattr(node, "id", getattr(node, "arg", "")) == "ctx":
            raise Unclear("`ctx` has another meaning there")
        if not isinstance(node, ast.Name) or node in skipped or node.id not in (own.arg, "super"):
            continue
        outer = local.parent(node)
        if node.id == "super":
            raise Unclear(f"cannot analyze how `{method.name}` calls the base class")
        if looked_up and _is_lookup(outer, node):
            continue
        if not isinstance(outer, ast.Attribute):
            raise Unclear(f"`{method.name}` passes the function object on")
        if outer.attr in _GONE or (not isinstance(outer.ctx, ast.Load) and outer.attr in CONTEXT):
            raise Unclear(f"a context has no `{own.arg}.{outer.attr}`, or one with another meaning")
        if outer.attr in (*_BOTH, "__init__"):
            raise Unclear(f"`{method.name}` calls `{own.arg}.{outer.attr}`")
        if local.in_fstring(node):
            raise Crowded(f"`{own.arg}` is used in an f-string")
        yield outer


def _is_lookup(call: ast.AST | None, own: ast.expr) -> bool:
    """Whether a call gets or sets an attribute of an object by its name, and none that belongs to a call."""
    if not isinstance(call, ast.Call) or len(call.args) < 2 or call.args[0] is not own:
        return False
    name = call.args[1]
    start = name.left if isinstance(name, ast.BinOp) and isinstance(name.op, ast.Add) else name
    if not isinstance(start, ast.Constant) or not isinstance(start.value, str):
        return False
    of_calls = any(
        each == start.value if start is name else each.startswith(start.value) for each in OF_CALLS
    )
    return getattr(call.func, "id", "") in ("getattr", "hasattr", "setattr") and not of_calls


def read_class(node: ast.ClassDef, local: TreeIndex) -> LegacyClass:
    """Take a class apart that has nothing but `__init__`, `forward` and `backward`.

    Args:
        node: a class for which `legacy_forward` finds something.
        local: the names of the file.

    Raises:
        Unclear: there is something in it that static methods cannot do.
    """
    found: dict[str, Method] = {}
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name in (*_BOTH, "__init__"):
            found[item.name] = item
            if item.decorator_list or item.args.kwarg or item.args.posonlyargs:
                raise Unclear(f"`{item.name}` has a decorator or unusual parameters")
        elif not isinstance(item, ast.Pass) and not is_docstring(item):
            raise Unclear("the class has more than `__init__`, `forward` and `backward`")
    forward, backward, init = found["forward"], found.get("backward"), found.get("__init__")
    made = LegacyClass(node, forward, backward, init)
    if any(item.args.kwonlyargs or item.args.defaults for item in made.methods):
        raise Unclear("`forward` or `backward` has parameters with defaults")
    if init is not None:
        _read_init(made, init)
    stored: dict[Method, set[str]] = {}
    read: set[str] = set()
    for method in (*made.methods, *([init] if init else [])):
        stored[method] = set()
        for member in members_of(method, local):
            (read if isinstance(member.ctx, ast.Load) else stored[method]).add(member.attr)
    made.state = set().union(*stored.values())
    unknown = sorted(read - made.state - CONTEXT)
    if unknown:
        raise Unclear(f"the class never sets `{unknown[0]}`")
    return made


def _read_init(found: LegacyClass, init: Method) -> None:
    if init.args.vararg:
        raise Unclear("`__init__` takes any number of arguments")
    found.settings = [*init.args.args[1:], *init.args.kwonlyargs]
    if found.settings and found.forward.args.vararg is not None:
        raise Unclear("`forward` takes any number of inputs")
    given = [found.default(item) is not None for item in found.settings]
    if given != sorted(given):
        raise Unclear("a parameter of `__init__` with a default comes before one without")
    if any(isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)) for node in walk(init)):
        raise Unclear("`__init__` returns early")
    taken = {item.arg for item in found.forward.args.args[1:]}
    bound = {item.arg for item in found.settings} | {
        node.id for node in walk(init) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if bound & taken:
        raise Unclear(f"`__init__` and `forward` both have a variable `{min(bound & taken)}`")


def calls_base_init(node: ast.stmt, own: str) -> bool:
    """`super().__init__()`, `super(Mine, self).__init__()`, `Function.__init__(self)`."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    call = node.value
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "__init__" or call.keywords:
        return False
    base = call.func.value
    if isinstance(base, ast.Call):
        return isinstance(base.func, ast.Name) and base.func.id == "super" and not call.args
    return len(call.args) == 1 and isinstance(call.args[0], ast.Name) and call.args[0].id == own


def carried(found: LegacyClass, local: TreeIndex) -> str | None:
    """An attribute that `__init__` sets, and a call changes after it has, or may have, been read."""
    if found.init is None:
        return None
    made = {item.attr for item in members_of(found.init, local) if not isinstance(item.ctx, ast.Load)}
    members = [item for method in found.methods for item in members_of(method, local)]
    changed = made & {item.attr for item in members if not isinstance(item.ctx, ast.Load)}
    settled: set[str] = set()
    for statement in found.forward.body:
        here = [item for item in members if item in walk(statement)]
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        # `self.x += 1` reads, too.
        late = {item.attr for item in here if item not in targets} & changed - settled
        if late:
            return min(late)
        settled.update(item.attr for item in here if item in targets)
    return None
