"""The methods of an old function class, made static: they get a context, and gradients for settings."""

from __future__ import annotations

import ast

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.legacy_function.classes import LegacyClass, Method, self_name
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.lines import is_alone, logical_line
from torchmigrate.rewrite.statements import Rewriting
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.source.trees import children, is_docstring, walk


class ClassRewriting:
    """Rewrites one class."""

    def __init__(self, found: LegacyClass, rewriting: Rewriting, local: TreeIndex) -> None:
        self.found = found
        self.rewriting = rewriting
        self.source = rewriting.source
        self.local = local
        self.none = ["None"] * len(found.parameters)  # gradients of settings

    def write(self) -> None:
        """Rewrite all methods.

        Raises:
            Unclear: the text does not allow it.
            Crowded: as Rewriting says.
        """
        found = self.found
        context = self._context()
        for method in found.methods:
            self.rewriting.decorate(method, code("staticmethod"))
            self.rewriting.rename([*method.args.posonlyargs, *method.args.args][0], context)
            self._rename(method, context)
        self._take_settings()
        if found.backward is not None and self.none:
            for statement in _returns(found.backward):
                self._return_gradients(statement, found.backward)
        if found.init is not None:
            self._drop_init(found.init, context)

    # ---- self becomes ctx ----------------------------------------------------------------------------

    def _context(self) -> str:
        """What the methods call their context; one name for all, since `__init__` moves into `forward`."""
        methods = [*self.found.methods, *([self.found.init] if self.found.init else [])]
        used = {node.id for item in methods for node in walk(item) if isinstance(node, ast.Name)}
        used |= {node.arg for item in methods for node in walk(item) if isinstance(node, ast.arg)}
        own = {self_name(item) for item in methods}
        if "ctx" in used and own != {"ctx"}:
            raise Unclear("`ctx` has another meaning there")
        return "ctx"

    def _rename(self, method: Method, context: str) -> None:
        """Give every `self.x` of a method its new form."""
        own = self_name(method)
        for node in walk(method):
            if isinstance(node, ast.Name) and node.id == own:
                if any(self.local.statement_of(node) is item for item in self.found.dropped):
                    continue
                if self.local.in_fstring(node):
                    raise Unclear(f"`{own}` is used in an f-string")
                outer = self.local.parent(node)
                assert isinstance(outer, ast.Attribute), "checked before"
                self._rename_member(node, outer, context)

    def _rename_member(self, node: ast.Name, outer: ast.Attribute, context: str) -> None:
        found, rewriting = self.found, self.rewriting
        around = self.local.parent(outer)
        if outer.attr in found.attributes or outer.attr in found.statics:
            rewriting.rename(node, found.node.name)
        elif outer.attr in found.helpers:
            rewriting.rename(node, found.node.name)
            assert isinstance(around, ast.Call), "checked before"
            call = CallEditor(self.source, around)
            call.insert(code("$context", context=context))
            rewriting.record(call.edits())
        elif outer.attr == "saved_variables":
            rewriting.replace_node(outer, code("$context.saved_tensors", context=context))
        elif outer.attr == "needs_input_grad" and self.none:
            self._rename_needs(outer, around, context)
        else:
            rewriting.rename(node, context)

    def _rename_needs(self, node: ast.Attribute, around: ast.AST | None, context: str) -> None:
        """`needs_input_grad` has an entry for each setting now."""
        count, first = len(self.none), self.found.first
        index = around.slice if isinstance(around, ast.Subscript) else None
        if isinstance(index, ast.Constant) and isinstance(index.value, int) and index.value >= 0:
            self.rewriting.replace_node(node, code("$context.needs_input_grad", context=context))
            if first:
                self.rewriting.replace_node(index, code("$number", number=str(index.value + count)))
            return
        part = "$context.needs_input_grad[$number:]" if first else "$context.needs_input_grad[:$number]"
        number = str(count if first else self.found.inputs)
        self.rewriting.replace_node(node, code(part, context=context, number=number))

    # ---- settings become parameters ------------------------------------------------------------------

    def _take_settings(self) -> None:
        """Make the parameters of `__init__` parameters of `forward`."""
        from torchmigrate.rewrite.parameters import NewParameter, parameters_added  # with LibCST

        found = self.found
        if not found.parameters:
            return
        arguments = found.forward.args.args
        new = [
            NewParameter(item.name, item.annotation, None if found.first else item.default)
            for item in found.parameters
        ]
        previous = arguments[0] if found.first else arguments[-1]
        self.rewriting.record(parameters_added(self.source, found.forward, previous, new))

    def _return_gradients(self, statement: ast.Return, backward: Method) -> None:
        """More gradients at the end of what is returned, or before it."""
        from torchmigrate.rewrite.returns import values_returned  # with LibCST

        found, value = self.found, statement.value
        if value is None:
            if found.inputs != 1 or found.varargs:
                raise Unclear("`backward` returns nothing")
            edits = values_returned(self.source, statement, ["None", *self.none])
        else:
            if isinstance(value, ast.Tuple) and not value.elts:
                raise Unclear("`backward` returns an empty tuple")
            unpacked = self._is_tuple(value, backward)
            edits = values_returned(self.source, statement, self.none, first=found.first, unpacked=unpacked)
        self.rewriting.record(edits)

    def _is_tuple(self, value: ast.expr, backward: Method) -> bool:
        """Whether the returned value is a tuple.

        Raises:
            Unclear: it is not known.
        """
        if isinstance(value, ast.Tuple):
            return True
        many = self.found.inputs + (2 if self.found.varargs else 0) > 1
        sure = tuple_or_not(value, backward)
        if sure is None and (not many or self.found.varargs):
            raise Unclear("cannot tell whether `backward` returns a tuple")
        if many and sure is False and not self.found.varargs:
            raise Unclear("`backward` returns one gradient for several inputs")
        return sure is not False

    # ---- __init__ ------------------------------------------------------------------------------------

    def _drop_init(self, init: Method, context: str) -> None:
        """Move what `__init__` does to the beginning of `forward`."""
        dropped, into = self.found.dropped, self.found.forward
        kept = [item for item in init.body if item not in dropped]
        if not kept:
            self.rewriting.remove(init)
            return
        self.rewriting.merge(init, into)
        if is_docstring(kept[0]) and is_docstring(into.body[0]):
            raise Unclear("`__init__` and `forward` both have a docstring")
        for item in dropped:
            if logical_line(self.source, init.body, item).comment:
                raise Unclear("the fix would remove a comment in `__init__`")
            if not is_alone(self.source, init.body, item):
                raise Unclear("several statements are on one line")
            self.rewriting.remove(item)
        self._rename(init, context)


def _returns(method: Method) -> list[ast.Return]:
    """The return statements of a method itself.

    Raises:
        Unclear: there is none, and it does not raise either.
    """
    found: list[ast.Return] = []
    todo: list[ast.AST] = list(method.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Return):
            found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo.extend(children(node))
    if not found and not isinstance(method.body[-1], ast.Raise):
        raise Unclear("`backward` returns nothing")
    return found


def tuple_or_not(value: ast.expr, method: Method, depth: int = 0) -> bool | None:
    """Whether an expression surely is a tuple (True), surely is something else, or None."""
    if isinstance(value, ast.Tuple):
        return True
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Name):
            return True if value.func.id == "tuple" else None
        return False  # a function of a library, or a method of a tensor
    if isinstance(value, ast.BinOp):
        sides = [tuple_or_not(side, method, depth + 1) for side in (value.left, value.right)]
        return isinstance(value.op, ast.Add) and True in sides
    if isinstance(value, (ast.UnaryOp, ast.Constant, ast.Compare)):
        return False
    if isinstance(value, ast.Name) and depth < 5:
        kinds: set[bool | None] = set()
        for node in walk(method):
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and target.id == value.id:
                        kinds.add(tuple_or_not(node.value, method, depth + 1))
                    elif any(isinstance(part, ast.Name) and part.id == value.id for part in walk(target)):
                        kinds.add(False)  # an element of something, or changed in place
            elif isinstance(node, ast.arg) and node.arg == value.id:
                kinds.add(node is method.args.vararg)
        return kinds.pop() if len(kinds) == 1 else None
    return None
