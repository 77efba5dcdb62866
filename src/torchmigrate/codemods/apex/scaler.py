"""The GradScaler that takes the place of `amp.initialize`: where it is made, and how it reaches its users."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from torchmigrate.codemods.apex.conditions import as_bool, every_one, implies, mixes, negation, renamed
from torchmigrate.codemods.apex.objects import AMP, Objects
from torchmigrate.codemods.apex.presence import Presence
from torchmigrate.codemods.apex.uses import MAKE, Initialize
from torchmigrate.codemods.base.truth import is_bool
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.match.conditions import binds_or_waits
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.lines import is_elif
from torchmigrate.rewrite.statements import Rewriting
from torchmigrate.semantics.flow.answers import Answers
from torchmigrate.semantics.flow.functions import Function, arguments, key_of
from torchmigrate.semantics.flow.mentions import Spot, common_block
from torchmigrate.source.trees import walk

_NAMES = ("scaler", "grad_scaler", "amp_scaler", "torch_scaler")
_NOT_GIVEN = (
    f"{{name}} needs the scaler, but some of its calls may not be visible: {MAKE} {{name}} as an "
    "additional argument"
)
_OUTSIDE = (
    "code outside of the function that calls `amp.initialize` needs the scaler: create it where both "
    "can use it"
)


class Scaler:
    """The scaler of a file.

    Args:
        first: the (only) call of `amp.initialize`.
        receivers: parameters that are given `amp` until now.
        presence: knows which tests are true.
    """

    def __init__(
        self,
        first: Initialize,
        receivers: dict[ast.arg, Function],
        objects: Objects,
        presence: Presence,
        rewriting: Rewriting,
        tree: ast.Module,
    ) -> None:
        self.first = first
        self.receivers = receivers
        self.objects = objects
        self.functions = objects.functions
        self.presence = presence
        self.rewriting = rewriting
        self.home = first.function
        names = ("id", "arg", "attr", "name")
        used = {getattr(node, field, None) for node in walk(tree) for field in names}
        name = next((item for item in _NAMES if item not in used), None)
        if name is None:
            raise Unclear("all usual names for a scaler are in use")
        self.name = name
        self.in_class: ast.ClassDef | None = None
        self.receives: set[int] = set()
        self.made_before = first.statement  # in the home
        self.places: list[ast.stmt] = [first.statement]  # in the home, that need the scaler
        self.level = self._level()
        self._climbed: list[tuple[Function, ast.stmt, ast.Call]] = []
        self._ways = [self.home]  # from there outwards
        self._distances: Answers[Function, int] = Answers(self._distance, 0)

    # ---- functions with a scaler ----------------------------------------------------------------------

    def reach(self, wanted: Iterable[Function]) -> None:
        """Make the scaler known in functions.

        Raises:
            Unclear: one of them cannot be given it.
        """
        needed = list(wanted)
        if not self.receives:
            self._climb(needed)
        method = self.home.method()
        owner = method.owner if method is not None else None
        others = [function.method() for function in needed if not function.within(self.home)]
        shared = owner is not None and any(item is not None and item.owner is owner for item in others)
        if shared and self._always_made() and not self.receives:
            self.in_class = owner
        try:
            for function in needed:
                self._give(function, 0)
        except Unclear:
            if not shared or self.in_class is not None:
                raise
            raise Unclear(
                f"`{self.home.name}` calls `amp.initialize`, but may not run: create the scaler in "
                "`__init__`, with the condition as `enabled=`"
            ) from None

    def _climb(self, needed: Sequence[Function]) -> None:
        """Make the scaler where the function that calls `amp.initialize` is called, if it is needed there."""
        ways = [self.home]
        calls: list[tuple[Function, ast.stmt, ast.Call]] = []
        while len(found := self.objects.calls_to(ways[-1])) == 1 and found[0][0] not in ways:
            calls += found
            ways.append(found[0][0])
        self._ways = ways
        self._distances.clear()
        for caller, statement, call in calls[: max(map(self._distances, needed), default=0)]:
            self._climbed.append((self.home, self.made_before, call))
            self.home, self.made_before = caller, statement
            self.places = [statement]

    def _distance(self, function: Function) -> int:
        """How many calls away from the home the function is from which a function can be given the scaler."""
        methods = [way.method() for way in self._ways]
        owners = [item.owner if item is not None else None for item in methods]
        method = function.method()
        if method is not None and method.owner in owners:
            return owners.index(method.owner)
        if function in self._ways:
            return self._ways.index(function)
        callers = {call[0] for call in self.objects.calls_to(function)}
        if not callers and function.outer not in (None, self.functions.module):
            callers = {function.outer}
        return max(map(self._distances, callers), default=0)

    def text(self, function: Function) -> str | None:
        """How the scaler is written in a function; None: it is not known there."""
        method = function.method()
        if self.in_class is not None and method is not None and method.owner is self.in_class:
            return f"self.{self.name}"
        here: Function | None = function
        while here is not None:
            if (here is self.home and self.in_class is None) or id(here) in self.receives:
                return self.name
            here = here.outer
        return None

    def known(self, function: Function) -> str:
        """The same where it is known."""
        return self.text(function) or self.name

    def _give(self, function: Function, depth: int) -> None:
        if self.text(function) is not None:
            return
        if function.outer is None or depth > 6:
            raise Unclear(_OUTSIDE)
        if function.owner is None and function.outer is not self.functions.module:
            self._give(function.outer, depth + 1)  # it sees what the function around it has
            return
        calls = self.objects.calls_to(function)
        if function.name == "__init__" or not calls or not self._only_called(function, calls):
            raise Unclear(_NOT_GIVEN.format(name=f"`{function.name}`"))
        self.receives.add(id(function))
        for caller, statement, call in calls:
            self._give(caller, depth + 1)
            self.need(caller, statement)
            self._pass(call, function, self.known(caller))
        for argument, owner in self.receivers.items():
            if owner is function:
                self.rewriting.rename(argument, self.name)
                return
        self._accept(function)

    def need(self, function: Function, statement: ast.stmt) -> None:
        """Note that a statement uses the scaler, which must be made before."""
        if function is self.home:
            self.places.append(statement)
        elif self.in_class is None and function.within(self.home) and function is not self.home:
            here = function
            while here.outer is not None and here.outer is not self.home:
                here = here.outer
            if here.outer is self.home and isinstance(here.node, ast.stmt) and self.home.outer is not None:
                calls = [item[1] for item in self.objects.calls_to(here) if item[0] is self.home]
                self.places += calls or [here.node]

    def reaches(self, statement: ast.stmt) -> bool:
        """Whether a statement of the home stands in the block that the other uses of the scaler share."""
        common = common_block([self.functions.spots[id(item)] for item in self.places])
        return self.in_class is not None or (
            common is not None and self.functions.spots[id(statement)].within(common[0].block) is not None
        )

    def _only_called(self, function: Function, calls: Sequence[tuple[Function, ast.stmt, ast.Call]]) -> bool:
        node, index = function.node, self.objects.flow.index
        assert not isinstance(node, ast.Module), "a function"
        marks = {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}
        if not marks <= {"no_grad()", "enable_grad()", "staticmethod"}:
            return False
        parents = self.objects.flow.names.parents
        for item in self.objects.flow.names.nodes(ast.Constant):
            if item.value == function.name and _looks_up(parents.get(item)):
                return False
        known = {call.func for _, _, call in calls}
        mentions: list[ast.expr] = [*index.named(function.name)]
        if function.owner is not None:
            mentions = [
                item
                for item in index.attributes(function.name)
                if not self._is_other(item.value, function.owner)
            ]
        return known.issuperset(mentions)

    def _is_other(self, node: ast.expr, owner: ast.ClassDef) -> bool:
        """Whether an object is surely none of a class."""
        if self.objects.kinds(node):
            return True
        made = [step.node for step in self.objects.flow.origins(node)]
        classes = [self.objects.flow.class_of(item) for item in made if item is not None]
        return (
            bool(classes) and owner not in classes and self.objects.flow.classes.owner_of(node) is not owner
        )

    def _accept(self, function: Function) -> None:
        node, rewriting = function.node, self.rewriting
        assert not isinstance(node, ast.Module), "a function"
        if not rewriting.add_parameter(node, self.name):
            raise Unclear(f"`{function.name}` needs the scaler, but takes no arguments so far")

    def _pass(self, call: ast.Call, function: Function, text: str) -> None:
        node, rewriting = function.node, self.rewriting
        assert not isinstance(node, ast.Module), "a function"
        unclear = Unclear.at(call.lineno, f"cannot analyze the arguments of `{function.name}`")
        editor = CallEditor(rewriting.source, call)
        parameter = next((item for item, owner in self.receivers.items() if owner is function), None)
        if parameter is not None:
            given = [item for item, name in arguments(call, function) if name == parameter.arg]
            if not given or AMP not in self.objects.kinds(given[0]):
                raise Unclear.at(call.lineno, f"`{function.name}` is not given `amp`")
            keyword = next((item for item in call.keywords if item.value is given[0]), None)
            editor.set(keyword or given[0], code("$scaler", scaler=text), self.name if keyword else None)
            rewriting.record(editor.edits())
            return
        by_name = node.args.defaults or node.args.kwonlyargs or node.args.vararg or call.keywords
        every: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        if not every or any(isinstance(item, (ast.GeneratorExp, ast.Starred)) for item in call.args):
            raise unclear
        if any(item.arg is None for item in call.keywords):
            raise unclear
        editor.add(code("$scaler", scaler=text), self.name if by_name else None)
        rewriting.record(editor.edits())

    # ---- where it is made -----------------------------------------------------------------------------

    def enabled(self) -> tuple[ast.expr | None, ast.stmt]:
        """The condition of the scaler (None: always), and the statement before which it is made.

        Raises:
            Unclear: it would not be made before it is used.
        """
        tests: list[ast.expr] = []
        for function, statement, call in self._climbed:
            tests = self._at_call(function, statement, call, tests)
        init = self.functions.spots[id(self.made_before)]
        common = common_block([self.functions.spots[id(statement)] for statement in self.places])
        if common is None and self.in_class is None:
            raise Unclear("the scaler would be used before it is created")
        top = init.chain()[0]
        here = self._outwards(init, common[0] if common and self.in_class is None else top, tests)
        # An `if` directly around would leave the scaler unmade elsewhere.
        while (
            here.outer is not None
            and isinstance(here.outer.statement, ast.If)
            and self._only_init(here.outer)
        ):
            here = self._outwards(here, here.outer, tests)
        for statement in self.places[1:]:
            spot = self.functions.spots[id(statement)].within(here.block)
            before = spot is None or spot.index < here.index
            if before and self.in_class is None:
                raise Unclear(f"line {statement.lineno} runs before `amp.initialize`", line=statement.lineno)
        parts = [*tests[::-1]]
        parts += [level for level in self.level if not implies(every_one(parts), level)]
        if here.statement is not self.made_before:
            self._check_names(here.statement, [*tests, *self.level])
        return every_one(map(self._bool, parts)), here.statement

    def _outwards(self, here: Spot, end: Spot, tests: list[ast.expr]) -> Spot:
        """The statement around one that stands in the block of `end`; `tests` gets the conditions on the way.

        Raises:
            Unclear: one of them is not plain.
        """
        while here.block is not end.block and here.outer is not None:
            inner, here = here, here.outer
            statement = here.statement
            if not isinstance(statement, ast.If):
                raise Unclear.at(
                    statement.lineno, "`amp.initialize` may not run, but is used outside of this"
                )
            if binds_or_waits(statement.test):
                raise Unclear.at(statement.lineno, "the condition assigns a name")
            if is_elif(self.rewriting.source, statement):
                raise Unclear.at(statement.lineno, "only one of several branches calls `amp.initialize`")
            left = self.presence.reduced(statement.test, assumed=True)
            if inner.block is statement.orelse:
                left = not left if isinstance(left, bool) else negation(left)
            if left is not True:
                tests.append(left or ast.Constant(False))
        return here

    def _at_call(
        self, function: Function, statement: ast.stmt, call: ast.Call, inner: list[ast.expr]
    ) -> list[ast.expr]:
        """The conditions around a statement, as they are written where its function is called.

        Raises:
            Unclear: they depend on what is not known there.
        """
        found = list(inner)
        here = self.functions.spots[id(statement)]
        self._outwards(here, here.chain()[0], found)
        given = {name: argument for argument, name in arguments(call, function)}
        self._check_names(function.node, [*found, *self.level])

        def there(test: ast.expr) -> ast.expr:
            own = {node.id for node in walk(test) if isinstance(node, ast.Name)} & function.bound
            if all(getattr(given.get(name), "id", "") == name for name in own):
                return test
            new = renamed(test, given)
            if new is None or not all(key_of(given.get(name)) for name in own):
                raise Unclear(
                    f"`{function.name}` calls `amp.initialize` under a condition that is not known where it "
                    "is called: return a scaler from there as well"
                )
            return new

        self.level = [*map(there, self.level)]
        return [*map(there, found)]

    def _always_made(self) -> bool:
        """Whether the method that makes the scaler always runs before the others."""
        if self.home.name in ("__init__", "setUp", "setup"):
            return True
        calls = self.objects.calls_to(self.home)
        return bool(calls) and all(self.functions.spots[id(item[1])].outer is None for item in calls)

    def _bool(self, test: ast.expr) -> ast.expr:
        """A condition as a bool, which is all that autocast takes."""
        return test if is_bool(test, self.functions.module.node) else as_bool(test)

    def _only_init(self, spot: Spot) -> bool:
        """Whether an `if` is there for `amp.initialize` alone, so that the scaler belongs before it."""
        chains = [
            self.functions.spots[id(place)].chain() for place in self.places if place is not self.made_before
        ]
        return not any(item.statement is spot.statement for chain in chains for item in chain)

    def _check_names(self, outermost: ast.AST, nodes: list[ast.expr]) -> None:
        read = {
            ast.unparse(inner)
            for node in nodes
            for inner in walk(node)
            if isinstance(inner, (ast.Name, ast.Attribute))
        }
        for inner in walk(outermost):
            if not isinstance(inner, (ast.Name, ast.Attribute)) or not isinstance(inner.ctx, ast.Store):
                continue
            if ast.unparse(inner) in read:
                raise Unclear.at(inner.lineno, f"`{ast.unparse(inner)}` changes before `amp.initialize`")

    def _level(self) -> list[ast.expr]:
        """What the arguments of `amp.initialize` say about whether mixed precision is used."""
        found: list[ast.expr] = []
        given = self.first.given
        enabled, level = given.get("enabled"), given.get("opt_level")
        if isinstance(enabled, ast.Constant):
            if not enabled.value:
                return [ast.Constant(False)]
        elif enabled is not None:
            found.append(enabled)
        if isinstance(level, ast.Constant):
            if level.value not in ("O0", "O1", "O2", "O3"):
                raise Unclear.at(level.lineno, f"there is no opt level {level.value!r}")
            return [ast.Constant(False)] if level.value == "O0" else found
        if level is not None:
            found.append(mixes(level))
        return found


def _looks_up(node: ast.AST | None) -> bool:
    """Whether a name given as text is looked up: `getattr(module, "train")`, `globals()["train"]`."""
    if isinstance(node, ast.Subscript):
        node = node.value
        return isinstance(node, ast.Call) and ast.unparse(node.func) in ("globals", "locals", "vars")
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr", "setattr")
