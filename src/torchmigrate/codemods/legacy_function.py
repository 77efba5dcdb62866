"""TM332: subclasses of `torch.autograd.Function` that are made and called as objects.

A `forward` that is not static is found only where the file shows that the class is used in the old way: its
`__init__` has parameters, or an object of it is called. `F.apply(x)` works with an ordinary method too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.fixes import FixPlanner
from torchmigrate.hits import Hit
from torchmigrate.model import Edit, Finding, Fix
from torchmigrate.names.model import Role
from torchmigrate.versions.range import applicability

NEEDS_HITS = True  # a file without a hit of the rule has nothing for it
_METHODS = frozenset(["forward", "backward"])
# What a context has by itself. The attributes of the class are not on it.
_CONTEXT = frozenset(
    "save_for_backward saved_tensors saved_variables needs_input_grad mark_dirty mark_non_differentiable "
    "mark_shared_storage set_materialize_grads".split()
)


def find(rule: Rule, hits: Sequence[Hit], planner: FixPlanner) -> Iterator[Finding]:
    """A finding at the base of every legacy class; a fix if each object of it is made where it is called."""
    parents: dict[ast.AST, ast.AST] | None = None
    for hit in hits:
        node = hit.use.statement
        if hit.use.role is not Role.BASE or not hit.use.sure or not isinstance(node, ast.ClassDef):
            continue
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        if not any(method.name == "forward" and not method.decorator_list for method in methods):
            continue
        if parents is None:
            parents = {
                child: parent
                for parent in ast.walk(planner.names.tree)
                for child in ast.iter_child_nodes(parent)
            }
        if sum(binding.name == node.name for binding in planner.names.bindings) > 1:
            continue  # another class, perhaps the new one for another release
        names = _names(node, planner)
        called = [call for call in (_called(name, parents) for name in names) if call is not None]
        if not called and not any(map(_takes_values, methods)):
            continue
        fix = None
        if planner.may_fix(hit) and len(node.bases) == 1 and len(called) == len(names):
            fix = _fix(rule, node, called, planner)
        yield planner.finding(hit, fix)


def _names(node: ast.ClassDef, planner: FixPlanner) -> list[ast.Name]:
    """Where the class, the only thing of its name in the file, is used."""
    return [
        each for each in ast.walk(planner.names.tree) if isinstance(each, ast.Name) and each.id == node.name
    ]


def _called(name: ast.Name, parents: dict[ast.AST, ast.AST]) -> ast.Call | None:
    """The `F(...)` of `F(...)(x)`."""
    made = parents.get(name)
    if not isinstance(made, ast.Call) or made.func is not name:
        return None
    outer = parents.get(made)
    return made if isinstance(outer, ast.Call) and outer.func is made else None


def _takes_values(method: ast.FunctionDef) -> bool:
    return method.name == "__init__" and len(method.args.args) > 1


def _fix(rule: Rule, node: ast.ClassDef, called: Sequence[ast.Call], planner: FixPlanner) -> Fix | None:
    """Static methods and `apply`: the first parameter, whatever its name, is the context then."""
    source = planner.source
    edits: list[Edit] = []
    stored: set[str] = set()
    loaded: set[str] = set()
    for statement in node.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # the docstring
        if not isinstance(statement, ast.FunctionDef) or statement.name not in _METHODS:
            return None
        arguments = statement.args.posonlyargs + statement.args.args
        if statement.decorator_list or not arguments:
            return None
        start, _ = source.span(statement)
        line = source.line_start(statement.lineno)
        indent = source.text[line:start]
        if indent.strip():
            return None
        newline = "\r\n" if source.text[:line].endswith("\r\n") else "\n"
        edits.append(Edit(start, start, f"@staticmethod{newline}{indent}"))
        if not _attributes_only(statement, arguments[0].arg, stored, loaded):
            return None
    if not loaded <= stored | _CONTEXT:
        return None
    for call in called:
        _, name_end = source.span(call.func)
        _, end = source.span(call)
        if source.text[name_end:end] != "()":
            return None
        edits.append(Edit(name_end, end, ".apply"))
    if not called:
        return None
    level, reason = applicability(rule.cases[0], rule, planner.versions)
    return planner.fix(rule, "Make the methods static, call `apply`", level, reason, edits)


def _attributes_only(method: ast.FunctionDef, context: str, stored: set[str], loaded: set[str]) -> bool:
    """Collect the attributes of the context that a method uses; False if it does anything else with it."""
    others = 0  # uses of the context that are no attributes
    for node in ast.walk(method):
        if isinstance(node, ast.Name) and node.id in ("super", "__class__"):
            return False
        if _is(node, context):
            others += 1
        elif isinstance(node, ast.Attribute) and _is(node.value, context):
            others -= 1
            (loaded if isinstance(node.ctx, ast.Load) else stored).add(node.attr)
    return others == 0


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
