"""A class of the old kind, derived from `torch.autograd.Function`: what it is made of."""

from __future__ import annotations

import ast

from msgspec import Struct, field

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.source.trees import is_docstring, walk

Method = ast.FunctionDef
# What a context has as well, under the same name.
_CONTEXT = frozenset(
    ("saved_tensors", "save_for_backward", "mark_dirty", "mark_non_differentiable", "needs_input_grad")
) | {"set_materialize_grads", "saved_variables"}
# What an old function had and a context has not, or has for itself.
_GONE = frozenset(
    ("mark_shared_storage", "next_functions", "previous_functions", "register_hook", "to_save", "apply")
) | frozenset(("dirty_tensors", "non_differentiable", "metadata", "name", "__dict__", "__class__"))


class Parameter(Struct, eq=False):
    """A parameter of `__init__`, which becomes one of `forward`."""

    name: str
    annotation: ast.expr | None
    default: ast.expr | None

    @property
    def literal(self) -> bool:
        """Whether the default means the same everywhere."""
        return self.default is not None and is_literal(self.default)


class LegacyClass(Struct, eq=False):
    """An old function class, all parts of it understood.

    first: the parameters of `__init__` go before the inputs, since these are any number.
    dropped: statements of `__init__` that have no place in `forward`.
    """

    node: ast.ClassDef
    forward: Method
    backward: Method | None
    init: Method | None
    helpers: dict[str, Method]
    statics: frozenset[str]
    parameters: list[Parameter] = field(default_factory=list)
    inputs: int = 0  # those of forward without `*args`
    varargs: bool = False
    first: bool = False
    dropped: list[ast.stmt] = field(default_factory=list)
    attributes: frozenset[str] = frozenset()  # of the class itself
    carried: str | None = None  # an attribute that one call of an object leaves to the next

    @property
    def methods(self) -> list[Method]:
        """All methods that become static, `__init__` not among them."""
        some = [self.forward, *([self.backward] if self.backward else []), *self.helpers.values()]
        return sorted(some, key=lambda item: item.lineno)


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


def self_name(method: Method) -> str:
    """The name of a method's first parameter.

    Raises:
        Unclear: it has none.
    """
    arguments = [*method.args.posonlyargs, *method.args.args]
    if not arguments:
        raise Unclear(f"`{method.name}` has no `self`")
    return arguments[0].arg


def read_class(node: ast.ClassDef, local: TreeIndex) -> LegacyClass:
    """Take a class apart.

    Args:
        node: a class for which `legacy_forward` finds something.
        local: the names of the file.

    Raises:
        Unclear: there is something in it that has no counterpart.
    """
    forward = legacy_forward(node)
    assert forward is not None, "only called for old classes"
    backward = init = None
    helpers: dict[str, Method] = {}
    statics: set[str] = set()
    attributes: set[str] = set()
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            if is_static(item):
                statics.add(item.name)
            elif item.name == "__init__":
                init = item
            elif item.name == "backward":
                backward = item
            elif item.name == "forward":
                pass
            elif (
                item.name.startswith("__")
                or item.decorator_list
                or item.name in ("setup_context", "jvp", "vmap")
            ):
                raise Unclear(f"its method `{item.name}` has no place in the new class")
            else:
                helpers[item.name] = item
        elif isinstance(item, ast.Assign) and all(isinstance(target, ast.Name) for target in item.targets):
            attributes.update(target.id for target in item.targets if isinstance(target, ast.Name))
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            attributes.add(item.target.id)
        elif not isinstance(item, ast.Pass) and not is_docstring(item):
            raise Unclear("the class contains statements other than methods")
    if "backward" in statics:
        raise Unclear("`backward` is static, but `forward` is not")
    if node.decorator_list or node.keywords or len(node.bases) != 1:
        raise Unclear("the class has a decorator, a metaclass or several bases")
    found = LegacyClass(
        node, forward, backward, init, helpers, frozenset(statics), attributes=frozenset(attributes)
    )
    _read_forward(found)
    if init is not None:
        _read_init(found, init, local)
    _check_state(found, local)
    return found


def _read_forward(found: LegacyClass) -> None:
    arguments = found.forward.args
    if arguments.kwonlyargs or arguments.kwarg or arguments.posonlyargs:
        raise Unclear("`forward` has keyword parameters")
    self_name(found.forward)
    found.inputs = len(arguments.args) - 1
    found.varargs = arguments.vararg is not None
    if found.backward is not None:
        given = found.backward.args
        if given.kwonlyargs or given.kwarg or given.posonlyargs or given.defaults:
            raise Unclear("`backward` has keyword parameters")
    found.first = found.varargs or bool(arguments.defaults)


def _read_init(found: LegacyClass, init: Method, local: TreeIndex) -> None:
    arguments = init.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs or init.decorator_list:
        raise Unclear("`__init__` takes arbitrary arguments")
    own = self_name(init)
    plain = arguments.args[1:]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    defaults += arguments.defaults
    for argument, default in (
        *zip(plain, defaults[-len(plain) :] if plain else [], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ):
        found.parameters.append(Parameter(argument.arg, argument.annotation, default))
    required_after = False
    for parameter in reversed(found.parameters):
        if parameter.default is None:
            required_after = True
        elif required_after:
            raise Unclear("a parameter of `__init__` with a default comes before one without")
    for statement in init.body:
        if _calls_base_init(statement, own) or isinstance(statement, ast.Pass):
            found.dropped.append(statement)
    for node in walk(init):
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)):
            raise Unclear("`__init__` returns early")
        if (
            isinstance(node, ast.Name)
            and node.id == "super"
            and not any(local.statement_of(node) is item for item in found.dropped)
        ):
            raise Unclear("cannot analyze how `__init__` calls the base class")
    taken = {item.arg for item in found.forward.args.args}
    if found.forward.args.vararg is not None:
        taken.add(found.forward.args.vararg.arg)
    bound = {item.name for item in found.parameters} | {
        node.id for node in walk(init) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    clash = sorted(bound & taken)
    if clash:
        raise Unclear(f"`__init__` and `forward` both have a variable `{clash[0]}`")


def _calls_base_init(node: ast.stmt, own: str) -> bool:
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


def is_literal(node: ast.expr) -> bool:
    """An immutable literal: a number, a string, None, a tuple of those."""
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return not isinstance(node, (ast.List, ast.Dict, ast.Set))


def _check_state(found: LegacyClass, local: TreeIndex) -> None:
    """Whether every use of `self` is an attribute that a context can have."""
    stored: set[str] = set()
    read: dict[str, None] = {}
    everything = [*found.methods, *([found.init] if found.init else [])]
    for method in everything:
        own = self_name(method)
        for node in walk(method):
            if not isinstance(node, ast.Name) or node.id != own:
                if isinstance(node, ast.arg) and node.arg == own and node is not _first(method):
                    raise Unclear(f"`{own}` has another meaning inside of `{method.name}`")
                continue
            outer = local.parent(node)
            if any(local.statement_of(node) is item for item in found.dropped):
                continue
            if not isinstance(outer, ast.Attribute):
                raise Unclear(f"`{method.name}` passes the function object on")
            name = outer.attr
            if name in _GONE or (not isinstance(outer.ctx, ast.Load) and name in _CONTEXT):
                raise Unclear(f"a context has no `{own}.{name}`, or one with another meaning")
            if isinstance(outer.ctx, ast.Load):
                read[name] = None
            else:
                stored.add(name)
            called = local.parent(outer)
            if name in found.helpers or name in found.statics:
                if not isinstance(called, ast.Call) or called.func is not outer:
                    raise Unclear(f"`{own}.{name}` is passed on")
            elif name in ("forward", "backward", "__init__"):
                raise Unclear(f"`{method.name}` calls `{own}.{name}`")
    found.carried = _carried(found)
    both = sorted(stored & (found.attributes | found.helpers.keys() | found.statics))
    if both:
        raise Unclear(f"`{both[0]}` is both a class attribute and an instance attribute")
    known = stored | found.attributes | found.helpers.keys() | found.statics | _CONTEXT
    unknown = [name for name in read if name not in known]
    if unknown:
        raise Unclear(f"the class never sets `{unknown[0]}`")


def _carried(found: LegacyClass) -> str | None:
    """An attribute that `__init__` sets, and a call changes after it has, or may have, been read."""
    if found.init is None:
        return None
    forward = found.forward
    changed = set().union(*(_stored(method, method) for method in found.methods)) & _stored(
        found.init, found.init
    )
    settled: set[str] = set()
    for statement in forward.body:
        read = {item.attr for item in _attributes(statement, forward) if isinstance(item.ctx, ast.Load)}
        for node in walk(statement):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
                read.add(node.target.attr)
        late = read & changed - settled
        if late:
            return min(late)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        settled.update(item.attr for item in _attributes(statement, forward) if item in targets)
    return None


def _stored(node: ast.AST, method: Method) -> set[str]:
    return {item.attr for item in _attributes(node, method) if not isinstance(item.ctx, ast.Load)}


def _attributes(node: ast.AST, method: Method) -> list[ast.Attribute]:
    """The attributes of the object in a part of a method."""
    own = self_name(method)
    return [
        item
        for item in walk(node)
        if isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id == own
    ]


def _first(method: Method) -> ast.arg:
    return [*method.args.posonlyargs, *method.args.args][0]
