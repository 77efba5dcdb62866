"""The calls of an old function class: `MyF(a)(x)` becomes `MyF.apply(x, a)`."""

from __future__ import annotations

import ast

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.legacy_function.classes import LegacyClass, calls_base_init, carried
from torchmigrate.rewrite.calls import CallEditor, arguments_removed
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.nodes import has_comment, replaced_around
from torchmigrate.rewrite.statements import Crowded, Rewriting
from torchmigrate.semantics.flow.calls import argument_of
from torchmigrate.semantics.flow.values import ValueFlow


class CallSites:
    """Reads every mention of a class, and rewrites its calls.

    Args:
        found: the class; its name means nothing else anywhere in the file.

    places: where an object is made or called.
    """

    def __init__(self, found: LegacyClass, rewriting: Rewriting, flow: ValueFlow) -> None:
        self.found = found
        self.rewriting = rewriting
        self.source = rewriting.source
        self.flow = flow
        self.local = flow.index
        self.places: list[ast.expr] = []

    def write(self) -> None:
        """Rewrite all calls.

        Raises:
            Unclear: the class is used in another way.
            Crowded: as Rewriting says, or a comment or an f-string is in the way.
        """
        for name in self.found.state:
            for read in self.local.attributes(name):
                if self.flow.class_of(read.value) is self.found.node:
                    raise Unclear.at(read.lineno, f"`{name}` of an object is used")
        for node in self.local.named(self.found.node.name):
            statement = self.local.statement_of(node)
            if statement is None or not calls_base_init(statement, "self"):
                self._mention(node)
        if not self.places:
            raise Unclear("the calls are in other files")

    def _mention(self, node: ast.Name) -> None:
        name, maker = node.id, self.local.parent(node)
        if getattr(maker, "attr", "") == "apply":
            raise Unclear(f"the code uses both `{name}.apply` and `{name}(...)`")
        if not isinstance(maker, ast.Call) or maker.func is not node:
            raise Unclear(f"`{name}` is used without being called")
        if has_comment(self.source, maker) or self.local.in_fstring(node):
            raise Crowded(f"`{name}(...)` is in an f-string, or has a comment")
        self.places.append(maker)
        outer = self.local.parent(maker)
        given = self._given(maker)
        if isinstance(outer, ast.Call) and outer.func is maker:
            self._extend(outer, given)
        elif isinstance(outer, ast.Assign) and outer.value is maker and len(outer.targets) == 1:
            self._kept(maker, outer.targets[0], given)
        else:
            raise Unclear(f"an object of `{name}` is passed on")
        self.rewriting.record(replaced_around(self.source, node, code("$f.apply", f=node), kept=node))
        self.rewriting.record(arguments_removed(self.source, maker))

    def _given(self, maker: ast.Call) -> list[ast.expr]:
        """What the settings are in a call of the class, without defaults at the end."""
        settings, keywords = self.found.settings, {item.arg for item in maker.keywords}
        unclear = Unclear(f"cannot analyze the arguments of `{self.found.node.name}(...)`")
        if (
            any(isinstance(item, ast.Starred) for item in maker.args)
            or len(maker.args) > len(settings)
            or not keywords <= {item.arg for item in settings[len(maker.args) :]}
        ):
            raise unclear
        every = [argument_of(maker, item.arg, number) for number, item in enumerate(settings)]
        last = max((number for number, value in enumerate(every) if value is not None), default=-1)
        if any(
            value is None and self.found.default(item) is None
            for item, value in zip(settings, every, strict=True)
        ):
            raise unclear
        found: list[ast.expr] = []
        for setting, value in zip(settings[: last + 1], every, strict=False):
            default = self.found.default(setting)
            if value is None and (default is None or not is_literal(default)):
                raise Unclear("a default of `__init__` is not a literal")
            found += [item for item in (value or default,) if item is not None]
        return found

    def _extend(self, call: ast.Call, given: list[ast.expr]) -> None:
        """The settings as further arguments of a call."""
        starred = any(isinstance(item, (ast.Starred, ast.GeneratorExp)) for item in call.args)
        if call.keywords or (given and (starred or len(call.args) != self.found.inputs or not call.args)):
            raise Unclear("the inputs in a call differ from those of `forward`")
        if self.local.in_fstring(call):
            raise Crowded("it is called in an f-string")
        if given:
            editor = CallEditor(self.source, call)
            for item in given:
                editor.add_behind(
                    call.args[-1], code("($x)" if isinstance(item, ast.NamedExpr) else "$x", x=item)
                )
            self.rewriting.record(editor.edits())

    def _kept(self, maker: ast.Call, target: ast.expr, given: list[ast.expr]) -> None:
        """`f = MyF(a)` with `f(x)` everywhere after it, or `self.f = MyF()` with whatever calls."""
        state = carried(self.found, self.local)
        if state is not None:
            raise Unclear(f"`forward` changes `self.{state}`, which the object keeps between calls")
        if isinstance(target, ast.Attribute) and not given:
            return
        if not isinstance(target, ast.Name) or len(self.local.binders(target.id)) != 1:
            raise Unclear(f"`{self.source.shown(target)}` is assigned several times, or an attribute")
        if not all(self._lasts(item, maker) for item in given):
            raise Unclear(
                f"an argument of `{self.found.node.name}(...)` may change before `{target.id}` is called"
            )
        for mention in self.local.named(target.id):
            if mention is not target:
                call = self.local.parent(mention)
                if not isinstance(call, ast.Call) or call.func is not mention:
                    raise Unclear(f"`{target.id}` is passed on")
                self.places.append(call)
                self._extend(call, given)

    def _lasts(self, item: ast.expr, maker: ast.Call) -> bool:
        """Whether an expression means the same wherever the object is called."""
        binders = self.local.binders(item.id) if isinstance(item, ast.Name) else []
        here = self.local.function_of(maker)
        return is_literal(item) or (
            len(binders) == 1 and (binders[0].node is here or binders[0].kind == "module")
        )


def is_literal(node: ast.expr) -> bool:
    """An immutable literal: a number, a string, None, a tuple of those."""
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return not isinstance(node, (ast.List, ast.Dict, ast.Set))
