"""The imports of apex.amp, the tests whether it is installed, and the branches without it.

`if fp16: ... else: ...` is two ways to train that are one with a scaler, which can be switched off.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence

from torchmigrate.codemods.apex.objects import Objects
from torchmigrate.codemods.apex.uses import Uses
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.rewrite.code import code, code_of
from torchmigrate.rewrite.imports.edits import ImportStatement
from torchmigrate.rewrite.lines import is_elif
from torchmigrate.rewrite.statements import Rewriting
from torchmigrate.semantics.flow.functions import Function, Functions, own
from torchmigrate.semantics.model import Use, Via
from torchmigrate.source.trees import walk


class Presence:
    """The tests whether apex is installed: true from now on.

    flags: names that tell this, bound in a `try` around the import.
    """

    def __init__(self, uses: Uses, objects: Objects, rewriting: Rewriting) -> None:
        self.uses = uses
        self.flow = objects.flow
        self.functions = objects.functions
        self.rewriting = rewriting
        self.flags: dict[str, list[ast.Name]] = {}
        self.gone: list[ast.stmt] = []
        self.remarks: list[str] = []
        self._decided: set[int] = set()  # what is read in tests that go
        self.chosen: list[ast.expr] = []  # tests of `amp` that are false where an option says so
        self.tries: list[ast.Try] = []
        self._true: set[int] = set()
        self._assumed: set[int] = set()  # true where the rest of apex is there, too
        self._whole_tries()
        self._sentinels()

    # ---- the truth of tests ---------------------------------------------------------------------------

    def reduced(self, node: ast.expr, *, assumed: bool = False) -> ast.expr | bool:
        """A test without what is decided once apex is not imported; True or False if that is all of it.

        Args:
            assumed: with all that apex.amp needed, although the file still imports other parts of apex.
        """
        if id(node) in self._true or (assumed and id(node) in self._assumed):
            return True
        if isinstance(node, ast.Compare) and id(node.left) in self._true and len(node.ops) == 1:
            return isinstance(node.ops[0], (ast.IsNot, ast.NotEq))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.reduced(node.operand, assumed=assumed)
            return not inner if isinstance(inner, bool) else node
        if not isinstance(node, ast.BoolOp):
            return node
        decisive = isinstance(node.op, ast.Or)
        parts = [self.reduced(value, assumed=assumed) for value in node.values]
        left = [part for part in parts if not isinstance(part, bool)]
        if any(part is decisive for part in parts) or not left:
            return decisive if any(part is decisive for part in parts) else not decisive
        if left == node.values:
            return node
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    # ---- imports --------------------------------------------------------------------------------------

    def _whole_tries(self) -> None:
        """The `try` statements that are there for the import of apex.amp alone, and the flags they set."""
        imported = {id(use.statement) for use in self.uses.imports}
        aliases = {id(alias) for use in self.uses.imports for alias in _aliases(use)}
        for use in self.uses.imports:
            attempt = self._try_of(use)
            if attempt is None or attempt in self.tries:
                continue
            if attempt.finalbody:
                raise Unclear.at(attempt.lineno, "the `try` around the import has a `finally`")
            others = [item for item in attempt.body if id(item) not in imported]
            names = [item for item in attempt.body if isinstance(item, (ast.Import, ast.ImportFrom))]
            alone = all(id(alias) in aliases for item in names for alias in item.names)
            flags = [item for item in (*others, *attempt.orelse) if _flag(item) is not None]
            if not alone:  # the `try` stays for what else it imports
                for name, value in filter(None, map(_flag, flags)):
                    if value is True:
                        self._assumed.update(map(id, self._loads_of(name, attempt)))
                continue
            if len(flags) < len(others) + len(attempt.orelse):
                raise Unclear.at(attempt.lineno, "the `try` around the import contains other code")
            for handler in attempt.handlers:
                for item in handler.body:
                    if (
                        not isinstance(item, (ast.Raise, ast.Pass))
                        and _flag(item) is None
                        and not _is_call(item)
                    ):
                        raise Unclear.at(item.lineno, "cannot analyze the code that runs without apex")
            self.tries.append(attempt)
            for item in flags:
                name, value = _flag(item) or ("", None)
                if isinstance(value, bool) and value:
                    self.flags[name] = self._loads_of(name, attempt)
                    self._true.update(map(id, self.flags[name]))

    def _loads_of(self, name: str, attempt: ast.Try) -> list[ast.Name]:
        """Where a flag is read; nowhere if it is set anew."""
        inside = set(walk(attempt))
        home = self.flow.index.home_of(attempt)
        mentions = [
            node
            for node in self.flow.index.named(name)
            if node not in inside and self.flow.index.binds(node, home)
        ]
        loads = [node for node in mentions if isinstance(node.ctx, ast.Load)]
        anew = any(node.lineno > attempt.lineno for node in mentions if node not in loads)
        return [] if anew else loads

    def _try_of(self, use: Use) -> ast.Try | None:
        spot = self.functions.spots[id(use.statement)]
        outer = spot.outer.statement if spot.outer is not None else None
        if isinstance(outer, ast.Try):
            if spot.block is not outer.body:
                raise Unclear.at(use.statement.lineno, "apex is imported after something else failed")
            return outer
        return None

    def _sentinels(self) -> None:
        """`amp` itself may only be tested for its existence."""
        for node in self.uses.tests:
            line = node.lineno
            around = self.functions.around.get(id(node))
            asked = isinstance(around, ast.Compare) and _is_none_test(around, node)
            if isinstance(around, (ast.If, ast.Assert, ast.BoolOp, ast.UnaryOp)):
                asked = True
            if not asked:
                raise Unclear.at(line, "`amp` is passed on as an object")
            if any(self._is_chosen(step.node) for step in self.flow.origins(node)):
                self.chosen.append(node)
            else:
                self._true.add(id(node))

    def _is_chosen(self, node: ast.AST | None) -> bool:
        """Whether None is what an option makes of `amp`, and not the lack of apex."""
        if not isinstance(node, ast.Constant) or node.value is not None:
            return False
        statement = self.functions.statement_of(node)
        spot = self.functions.spots[id(statement)]
        beside = any(use.statement in spot.block for use in self.uses.imports)
        under_test = spot.outer is not None and isinstance(spot.outer.statement, ast.If) and not beside
        return _flag(statement) is None or under_test

    # ---- rewriting ------------------------------------------------------------------------------------

    def rewrite(self, text: Callable[[Function], str], dropped: Collection[int]) -> None:
        """Tests that are decided go, imports too; `self.gone` has what goes whole.

        Args:
            text: the scaler in a function.
            dropped: id() of the statements that go, and of those whose test goes.

        Raises:
            Unclear: a test stands where it cannot be taken out.
        """
        for node in self.chosen:
            statement = self.functions.statement_of(node)
            if id(statement) not in dropped:
                outer = self.functions.around[id(node)]
                no = isinstance(outer, ast.Compare) and isinstance(outer.ops[0], (ast.Is, ast.Eq))
                self.rewriting.replace_node(
                    outer if isinstance(outer, ast.Compare) else node,
                    code(
                        "not $scaler.is_enabled()" if no else "$scaler.is_enabled()",
                        scaler=text(self.functions.owners[id(statement)]),
                    ),
                )
        for node in self.uses.tests:
            statement = self.functions.statement_of(node)
            if node not in self.chosen and not self._in_gone(statement) and not self._decide(node, statement):
                raise Unclear.at(statement.lineno, "cannot analyze this check for `amp`")
        for load in (load for loads in self.flags.values() for load in loads):
            statement = self.functions.statement_of(load)
            if self._in_gone(statement) or self._decide(load, statement):
                self._decided.add(id(load))
        for attempt in self.tries:
            self._remove_try(attempt)
        self.gone += self._stand_ins()
        for use in self.uses.imports:
            around = self._try_of(use)
            if around is None or around not in self.tries:
                self._remove_alias(use)

    def _stand_ins(self) -> Iterator[ast.stmt]:
        """The statements that bind `amp` to None where apex is not used."""
        inside = {id(node) for attempt in self.tries for node in walk(attempt)}
        found = {binding.node for use in self.uses.every for binding in use.origins if not binding.is_import}
        for statement in {self.functions.statement_of(node) for node in found}:
            if _flag(statement) is not None and id(statement) not in inside:
                yield statement

    def _decide(self, node: ast.expr, statement: ast.stmt) -> bool:
        """Take a test out of a statement, if its place allows that."""
        source = self.rewriting.source
        if isinstance(statement, ast.Assert) and self.reduced(statement.test) is True:
            self.gone.append(statement)
            return True
        whole = node
        while isinstance(
            outer := self.functions.around.get(id(whole)), (ast.BoolOp, ast.UnaryOp, ast.Compare)
        ):
            whole = outer
        left = self.reduced(whole)
        if isinstance(left, ast.expr):
            if left is not whole and isinstance(statement, (ast.If, ast.Assign)):
                self.rewriting.replace_node(whole, code_of(left))
            return left is not whole and isinstance(statement, (ast.If, ast.Assign))
        if not isinstance(statement, ast.If) or statement.test is not whole or is_elif(source, statement):
            return False
        block = statement.body if left else statement.orelse
        if any(isinstance(item, ast.If) and is_elif(source, item) for item in statement.orelse):
            return False
        if block:
            self.rewriting.unwrap(statement, block)
        else:
            self.gone.append(statement)
        return True

    def _in_gone(self, statement: ast.stmt) -> bool:
        return any(spot.statement in self.gone for spot in self.functions.spots[id(statement)].chain())

    def _remove_try(self, attempt: ast.Try) -> None:
        """The `try` goes; flags that are still read are set in its place."""
        kept = []
        for item in (*attempt.body, *attempt.orelse):
            flag = _flag(item)
            if flag is not None and self._is_read(flag[0], attempt):
                kept.append(code("$flag = $value", flag=flag[0], value=repr(flag[1])))
                self.remarks.append(f"`{flag[0]}` is always {flag[1]} from now on")
        for assignment in kept:
            self.rewriting.add_before(attempt, assignment)
        self.gone.append(attempt)

    def _is_read(self, name: str, attempt: ast.Try) -> bool:
        """Whether a flag is still read."""
        inside = {*walk(attempt)}
        return any(
            isinstance(node.ctx, ast.Load)
            and node not in inside
            and id(node) not in self._decided
            and not self._in_gone(self.functions.statement_of(node))
            for node in self.flow.index.named(name)
        )

    def _remove_alias(self, use: Use) -> None:
        statement = use.statement
        assert isinstance(statement, (ast.Import, ast.ImportFrom)), "an import"
        mine = [item for item in self.uses.imports if item.statement is statement]
        if mine[0] is not use:
            return
        if len(mine) == len(statement.names):
            self.gone.append(statement)
            return
        indices = [
            number for number, alias in enumerate(statement.names) if any(alias is item.node for item in mine)
        ]
        self.rewriting.record(ImportStatement(self.rewriting.source, statement).cut(indices).edits)


class Branches:
    """The branches of a file that use apex, and the alternatives that do not.

    dropped: id() of the statements that go with their branch; joined: id() of the `if` statements whose
    branch with apex stays; parameters: by id() of a call of
    `amp.master_params`, the code of the other branch that corresponds to it.
    """

    def __init__(self, uses: Uses, functions: Functions, presence: Presence, rewriting: Rewriting) -> None:
        self.functions = functions
        self.presence = presence
        self.rewriting = rewriting
        self.dropped: set[int] = set()
        self.parameters: dict[int, ast.Call] = {}
        self.kept: list[tuple[ast.If, ast.stmt]] = []  # with the statement of apex inside
        self._scaled = {id(item.statement): item for item in uses.scaled}
        # What the calls of apex are without it.
        self._plain: dict[int, ast.expr | None] = {id(item.node): None for item in uses.of("master")}
        for item in uses.scaled:
            self._plain.update((id(call.func.value), item.loss) for call in item.backward)  # type: ignore[attr-defined]
        self.joined: set[int] = set()
        for _, statement in uses.places:
            self._join(statement)

    def _join(self, statement: ast.stmt) -> None:
        """Leave the branch with apex alone where it does what the other one does."""
        for spot in self.functions.spots[id(statement)].chain()[::-1]:
            outer = spot.outer.statement if spot.outer is not None else None
            if id(outer) in self.joined:
                return
            if not isinstance(outer, ast.If) or not outer.orelse:
                continue
            in_body = spot.block is outer.body
            other = outer.orelse if in_body else outer.body
            known = self.presence.reduced(outer.test)
            # Where apex is there, `presence` takes the test away.
            if isinstance(known, bool):
                if known is not in_body:
                    raise Unclear.at(outer.lineno, "apex is used in a branch for when it is not installed")
            elif self._same(spot.block, other):
                if is_elif(self.rewriting.source, outer):
                    raise Unclear.at(outer.lineno, "apex is used in only one of several branches")
                self.rewriting.unwrap(outer, spot.block)
            else:
                if id(statement) in self._scaled:
                    self.kept.append((outer, statement))
                continue
            self.joined.add(id(outer))
            self.dropped |= {id(node) for item in other for node in walk(item)}
            return

    def _same(self, apex: Sequence[ast.stmt], plain: Sequence[ast.stmt]) -> bool:
        """Whether two blocks do the same, one with apex and the other without."""
        masters: list[ast.Call] = []
        calls: list[ast.Call] = []
        if self._shape(list(apex), masters) != self._shape(list(plain), calls) or len(masters) != len(calls):
            return False
        self.parameters.update((id(one), other) for one, other in zip(masters, calls, strict=True))
        return True

    def _shape(self, node: object, parameters: list[ast.Call]) -> Hashable:
        """What code is without apex, to be compared; `parameters` gets the calls that give those to clip."""
        if isinstance(node, list):
            return tuple(self._shape(item, parameters) for part in node for item in self._opened(part))
        if not isinstance(node, ast.AST):
            return node if isinstance(node, Hashable) else None
        given = self._plain.get(id(node), node)
        method = getattr(given, "func", None)
        if given is None or (getattr(method, "attr", "") == "parameters" and not getattr(given, "args", ())):
            assert isinstance(node, ast.Call), "what gives the parameters"
            parameters.append(node)
            return "parameters"
        assert given is not None, "seen before"
        fields = ((name, self._shape(value, parameters)) for name, value in ast.iter_fields(given))
        return (type(given), *fields)

    def _opened(self, node: object) -> list[object]:
        """The statements under `amp.scale_loss`, in the place of it; what imports apex is left out."""
        scaled = self._scaled.get(id(node))
        if node in self.presence.tries:
            return []
        if scaled is None:
            return [node]
        return list(scaled.statement.body)


def prune(gone: list[ast.stmt], functions: Functions, rewriting: Rewriting) -> None:
    """Remove statements, and the `if` statements that become empty."""
    ids = {id(statement) for statement in gone}
    every = list({id(statement): statement for statement in gone}.values())
    todo = list(every)
    while todo:
        spot = functions.spots[id(todo.pop())]
        outer = spot.outer.statement if spot.outer is not None else None
        if (
            isinstance(outer, ast.If)
            and id(outer) not in ids
            and all(id(item) in ids for item in (*outer.body, *outer.orelse))
            and not any(True for _ in own(outer, ast.NamedExpr, ast.Await))
            and not is_elif(rewriting.source, outer)
        ):
            ids.add(id(outer))
            every.append(outer)
            todo.append(outer)
    for statement in every:
        spot = functions.spots[id(statement)]
        if spot.outer is not None and id(spot.outer.statement) in ids:
            continue
        empty = all(id(item) in ids for item in spot.block)
        if empty and statement is spot.block[0] and functions.module.node.body is not spot.block:
            rewriting.make_pass(statement)
        else:
            rewriting.remove(statement, remarks=not isinstance(statement, ast.Try))


def _aliases(use: Use) -> list[ast.alias]:
    """The parts of an import that a use is: all of a star import."""
    statement = use.statement
    every = statement.names if isinstance(statement, (ast.Import, ast.ImportFrom)) else []
    return [alias for alias in every if alias is use.node or use.via is Via.STAR]


def _flag(statement: ast.stmt) -> tuple[str, object] | None:
    """The name and the value of an assignment of a constant."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
            return target.id, value.value
    return None


def _is_call(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Call, ast.Constant))


def _is_none_test(node: ast.Compare, name: ast.AST) -> bool:
    return (
        node.left is name
        and len(node.ops) == 1
        and isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    )
