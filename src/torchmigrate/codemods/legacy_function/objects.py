"""An old function class whose objects keep something: it becomes a plain class, with an autograd function.

An object of the class is made and called as before, and hands itself to the new function. Its attributes stay
its own, so that callers can read them; what belongs to one call goes to the context of that call.
"""

from __future__ import annotations

import ast

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.legacy_function.classes import (
    CONTEXT,
    OF_CALLS,
    calls_base_init,
    first_parameter,
    is_static,
    members_of,
)
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.statements import NewFunction, Rewriting
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.source.trees import walk

_FORWARD = """

class {node}({base}):
{step}@staticmethod
{step}def forward(ctx, function, *inputs):
{step}{step}ctx.function = function
{step}{step}return function.forward(ctx, *inputs)
"""
_BACKWARD = """
{step}@staticmethod
{step}def backward(ctx, *grads):
{step}{step}grads = ctx.function.backward(ctx, *grads)
{step}{step}return (None, *grads) if isinstance(grads, tuple) else (None, grads)
"""


def keep_objects(node: ast.ClassDef, rewriting: Rewriting, flow: ValueFlow) -> None:
    """Rewrite a class so that its objects can be used as before.

    Raises:
        Unclear: it does something that neither an object nor a context can do.
        Crowded: as Rewriting says.
    """
    graph = f"_{node.name.lstrip('_')}Node"
    if flow.index.named(graph) or flow.index.bindings(graph):
        raise Unclear(f"`{graph}` has another meaning there")
    members = {getattr(item, "name", "") for item in node.body} | {
        getattr(target, "id", "")
        for item in node.body
        for target in getattr(item, "targets", [getattr(item, "target", None)])
    }
    base = ast.unparse(node.bases[0])
    for mention in flow.index.named(node.name):
        outer = flow.names.parents.get(mention)
        given = isinstance(outer, ast.Call) and outer.func is mention and (outer.args or outer.keywords)
        if "__init__" not in members and (given or base.endswith("InplaceFunction")):
            raise Unclear(f"`{base}` takes the arguments of `{node.name}(...)`")
        if isinstance(outer, ast.ClassDef):
            raise Unclear(f"`{outer.name}` derives from `{node.name}`")
        if getattr(outer, "attr", "") == "apply":
            raise Unclear(f"the code uses both `{node.name}.apply` and objects of `{node.name}`")
    for name in OF_CALLS:
        for used in flow.index.attributes(name):
            if flow.class_of(used.value) is node:
                raise Unclear.at(used.lineno, f"`{name}` of an object is used")
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not is_static(method):
            _use_context(method, members, rewriting, flow)
    rewriting.replace_node(node.bases[0], code("object"))
    call = code("return $graph.apply(self, *inputs)", graph=graph)
    rewriting.add_function(node.body[-1], NewFunction("__call__", ("self", "*inputs"), (call,)))
    text = _FORWARD + (_BACKWARD if "backward" in members else "")
    rewriting.add_lines(node, text.format(node=graph, base=base, step=rewriting.step))


def _use_context(method: ast.FunctionDef, members: set[str], rewriting: Rewriting, flow: ValueFlow) -> None:
    """Give `forward` and `backward` a context, and take from it what belongs to one call.

    Args:
        members: the names that the class defines.
    """
    from torchmigrate.rewrite.parameters import NewParameter, parameters_added  # with LibCST

    has_context = method.name in ("forward", "backward")
    owner = flow.names.parents.get(method)
    if method.name == "__call__" or (has_context and method.decorator_list):
        raise Unclear(f"its method `{method.name}` has no place in the new class")
    own = first_parameter(method)
    context = "context" if own.arg == "ctx" else "ctx"
    if any("context" in (getattr(item, "id", ""), getattr(item, "arg", "")) for item in walk(method)):
        raise Unclear("`context` has another meaning there")
    for member in members_of(method, flow.index, looked_up=True):
        name, item = member.attr, flow.names.parents.get(member)
        sets = any(
            isinstance(other.ctx, ast.Store) and flow.classes.owner_of(other.value) in (owner, None)
            for other in flow.index.attributes(name)
        )
        if name in CONTEXT and not has_context:
            raise Unclear(f"`{method.name}` uses `{ast.unparse(member)}`, which belongs to one call")
        if not sets and name not in CONTEXT and name not in members:
            raise Unclear(f"the class never sets `{name}`")
        number = getattr(getattr(item, "slice", None), "value", None)
        if name == "needs_input_grad" and isinstance(item, ast.Subscript) and type(number) is int:
            rewriting.replace_node(item, code("$ctx.needs_input_grad[$n]", ctx=context, n=str(number + 1)))
        elif name == "needs_input_grad":  # whose first entry is for the object
            rewriting.replace_node(member, code("$ctx.needs_input_grad[1:]", ctx=context))
        elif name in CONTEXT:
            name = "saved_tensors" if name == "saved_variables" else name
            rewriting.replace_node(member, code("$ctx.$name", ctx=context, name=name))
    if has_context:
        rewriting.record(parameters_added(rewriting.source, method, own, [NewParameter(context)]))
    for statement in method.body:
        base = statement.value.func if calls_base_init(statement, own.arg) else None  # type: ignore[attr-defined]
        if isinstance(base, ast.Attribute) and not isinstance(base.value, ast.Call):
            rewriting.replace_node(statement, code("super().__init__()"))
