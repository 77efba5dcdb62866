"""The calls of an old function class: `MyF(a)(x)` becomes `MyF.apply(x, a)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.legacy_function.classes import LegacyClass, Parameter, is_literal
from torchmigrate.rewrite.calls import CallEditor, arguments_removed
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.lines import is_alone
from torchmigrate.rewrite.nodes import has_comment, replaced_around
from torchmigrate.rewrite.statements import Rewriting
from torchmigrate.semantics.flow.tree_index import TreeIndex


class CallSites:
    """Reads every mention of a class, and rewrites its calls.

    Args:
        found: the class; its name means nothing else anywhere in the file.
    """

    def __init__(self, found: LegacyClass, rewriting: Rewriting, local: TreeIndex) -> None:
        self.found = found
        self.rewriting = rewriting
        self.source = rewriting.source
        self.local = local
        self.places: list[ast.expr] = []  # where an object is made or called

    def write(self) -> None:
        """Rewrite all calls.

        Raises:
            Unclear: the class is used in another way.
            Crowded: as Rewriting says.
        """
        for node in self.local.named(self.found.node.name):
            if not self._is_own_super(node):
                self._mention(node)

    def _is_own_super(self, node: ast.Name) -> bool:
        return any(self.local.statement_of(node) is item for item in self.found.dropped)

    def _mention(self, node: ast.Name) -> None:
        name = node.id
        if self.local.in_fstring(node):
            raise Unclear(f"`{name}` is used in an f-string")
        maker = self.local.parent(node)
        if isinstance(maker, ast.Attribute) and maker.attr in self.found.statics | self.found.attributes:
            return
        if isinstance(maker, ast.Attribute) and maker.attr == "apply":
            raise Unclear(f"the code uses both `{name}.apply` and `{name}(...)`")
        if not isinstance(maker, ast.Call) or maker.func is not node:
            raise Unclear(f"`{name}` is used without being called")
        self.places.append(maker)
        outer = self.local.parent(maker)
        if isinstance(outer, ast.Call) and outer.func is maker:
            given = self._given(maker)
            self._apply(node, maker)
            self._extend(outer, list(map(_value, given)))
            return
        if isinstance(outer, ast.Assign) and outer.value is maker and len(outer.targets) == 1:
            check_fresh(self.found)
            target = outer.targets[0]
            if isinstance(target, ast.Name):
                self._variable(node, maker, target)
                return
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                self._attribute(node, maker, outer, target)
                return
        raise Unclear(f"an object of `{name}` is passed on")

    def _apply(self, node: ast.Name, maker: ast.Call) -> None:
        if has_comment(self.source, maker):
            raise Unclear("the fix would remove a comment between arguments")
        self.rewriting.record(replaced_around(self.source, node, code("$f.apply", f=node), kept=node))
        self.rewriting.record(arguments_removed(self.source, maker))

    def _given(self, maker: ast.Call) -> list[ast.expr | Parameter]:
        """What the settings are in a call of the class; a parameter stands for its default."""
        parameters = self.found.parameters
        by_name: dict[str, ast.expr] = {}
        if any(isinstance(item, ast.Starred) for item in maker.args) or len(maker.args) > len(parameters):
            raise Unclear(f"cannot analyze the arguments of `{self.found.node.name}(...)`")
        for parameter, value in zip(parameters, maker.args, strict=False):
            by_name[parameter.name] = value
        for keyword in maker.keywords:
            if keyword.arg is None or keyword.arg in by_name:
                raise Unclear(f"cannot analyze the arguments of `{self.found.node.name}(...)`")
            by_name[keyword.arg] = keyword.value
        found: list[ast.expr | Parameter] = []
        for parameter in parameters:
            value_or_none = by_name.pop(parameter.name, None)
            if value_or_none is None and parameter.default is None:
                raise Unclear(f"`{self.found.node.name}(...)` is called without `{parameter.name}`")
            found.append(parameter if value_or_none is None else value_or_none)
        if by_name:
            raise Unclear(f"`{self.found.node.name}(...)` has no parameter `{min(by_name)}`")
        if not self.found.first:
            while found and isinstance(found[-1], Parameter):
                found.pop()
        if any(isinstance(item, Parameter) and not item.literal for item in found):
            raise Unclear("a default of `__init__` is not a literal")
        return found

    def _extend(self, call: ast.Call, given: Sequence[Code]) -> None:
        """The settings as further arguments of a call."""
        count = len(call.args)
        if call.keywords:
            raise Unclear("a function object is called with keywords")
        starred = any(isinstance(item, ast.Starred) for item in call.args)
        if not self.found.first and not starred and count != self.found.inputs:
            raise Unclear("the number of inputs in a call differs from `forward`")
        if self.local.in_fstring(call):
            raise Unclear("it is called in an f-string")
        if not given:
            return
        if any(isinstance(item, ast.GeneratorExp) for item in call.args):
            raise Unclear("an input is a generator")
        editor = CallEditor(self.source, call)
        if self.found.first or not call.args:
            for value in reversed(given):
                editor.insert(value)
        else:
            for value in given:
                editor.add_behind(call.args[-1], value)
        self.rewriting.record(editor.edits())

    # ---- objects in variables ------------------------------------------------------------------------

    def _variable(self, node: ast.Name, maker: ast.Call, target: ast.Name) -> None:
        """`f = MyF(a)` with `f(x)` everywhere after it."""
        name = target.id
        if len(self.local.binders(name)) != 1:
            raise Unclear(f"`{name}` is assigned several times")
        given = self._given(maker)
        for item in given:
            if isinstance(item, ast.expr) and not self._lasts(item, maker):
                raise Unclear(
                    f"an argument of `{self.found.node.name}(...)` may change before `{name}` is called"
                )
        self._apply(node, maker)
        values = list(map(_value, given))
        for mention in self.local.named(name):
            if mention is not target:
                self._called(mention, values, f"`{name}`")

    def _called(self, mention: ast.expr, given: Sequence[Code], what: str) -> None:
        call = self.local.parent(mention)
        if not isinstance(call, ast.Call) or call.func is not mention:
            raise Unclear(f"{what} is passed on")
        self.places.append(call)
        self._extend(call, given)

    def _lasts(self, item: ast.expr, maker: ast.Call) -> bool:
        """Whether an expression means the same wherever the object is called."""
        if is_literal(item):
            return True
        root = item
        while isinstance(root, ast.Attribute):
            if any(not isinstance(other.ctx, ast.Load) for other in self.local.attributes(root.attr)):
                return False
            root = root.value
        if not isinstance(root, ast.Name):
            return False
        binders = self.local.binders(root.id)
        here = self.local.function_of(maker)
        return len(binders) == 1 and (binders[0].node is here or binders[0].kind == "module")

    def _attribute(
        self, node: ast.Name, maker: ast.Call, statement: ast.Assign, target: ast.Attribute
    ) -> None:
        """`self.f = MyF(a)` with `self.f(x)` in the methods of the class."""
        name, owner = target.attr, self._class_of(target)
        if owner is None:
            raise Unclear(f"`{self.source.shown(target)}` is not an attribute of `self`")
        values = [
            self._lasting(number, item, statement, owner) for number, item in enumerate(self._given(maker))
        ]
        self._apply(node, maker)
        for mention in self.local.attributes(name):
            if mention is target:
                continue
            if self._class_of(mention) is owner:
                self._called(mention, values, f"`self.{name}`")
            elif not self._is_of_another(mention, bool(values)):
                raise Unclear(f"`.{name}` is used outside of its class")

    def _lasting(
        self, number: int, item: ast.expr | Parameter, statement: ast.Assign, owner: ast.ClassDef
    ) -> Code:
        """A setting as all methods of a class can read it; what only stands here is kept in an attribute."""
        if isinstance(item, Parameter) or is_literal(item):
            return _value(item)
        block = self.local.block_of(statement) or [statement]
        kept = self._kept(item, block, owner)
        if kept is None:
            name = self.found.parameters[number].name
            kept = f"self.{name}"
            if self._stores(name, owner, read=True):
                raise Unclear(f"found no name for an argument of `{self.found.node.name}(...)`")
            if not is_alone(self.source, block, statement):
                raise Unclear("several statements are on one line")
            self.rewriting.add_before(statement, code("$kept = $value", kept=kept, value=item))
        return code("$kept", kept=kept)

    def _is_of_another(self, mention: ast.Attribute, changes: bool) -> bool:
        """Whether `x.sign` is a method of a tensor, say, or it makes no difference."""
        around = self.local.parent(mention)
        if changes:
            return isinstance(around, ast.Call) and around.func is mention and not around.args
        return not isinstance(around, ast.Attribute)

    def _kept(self, item: ast.expr, block: Sequence[ast.stmt], owner: ast.ClassDef) -> str | None:
        """The attribute of `self` that holds a value for good: from `self.k = k`, or the value itself."""
        wanted = ast.dump(item)
        for statement in block:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id == "self"
                    and (ast.dump(statement.value) == wanted or _same_place(target, item))
                    and self._stores(target.attr, owner) == 1
                ):
                    return f"self.{target.attr}"
        return None

    def _stores(self, name: str, owner: ast.ClassDef, *, read: bool = False) -> int:
        """How often an attribute of a class is set (or read), or one that may be it, of another object."""
        methods = {item.name for item in owner.body if isinstance(item, ast.FunctionDef)}
        return (name in methods) + sum(
            (read or not isinstance(item.ctx, ast.Load)) and self._class_of(item) in (owner, None)
            for item in self.local.attributes(name)
        )

    def _class_of(self, node: ast.Attribute) -> ast.ClassDef | None:
        """The class whose method contains `self.x`."""
        if not isinstance(node.value, ast.Name) or node.value.id != "self":
            return None
        method = self.local.function_of(node)
        while isinstance(method, ast.Lambda):
            method = self.local.function_of(method)
        owner = self.local.parent(method) if method is not None else None
        return owner if isinstance(owner, ast.ClassDef) else None


def check_fresh(found: LegacyClass) -> None:
    """Make sure that an object that is kept is as new for each call.

    Raises:
        Unclear: it is not; every call of the new function has a context of its own.
    """
    if found.carried is not None:
        raise Unclear(
            f"`forward` changes `self.{found.carried}`, which the object keeps between calls: pass it to "
            "`forward` as an argument, and store it in the caller"
        )


def _same_place(target: ast.Attribute, item: ast.expr) -> bool:
    return isinstance(item, ast.Attribute) and ast.unparse(target) == ast.unparse(item)


def _value(item: ast.expr | Parameter) -> Code:
    """What is given, or the default."""
    value = item.default if isinstance(item, Parameter) else item
    assert value is not None, "checked before"
    return code("($x)" if isinstance(value, ast.NamedExpr) else "$x", x=value)
