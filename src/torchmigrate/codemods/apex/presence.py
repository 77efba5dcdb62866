"""Rewrite the imports of apex.amp, and the tests whether it is installed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from torchmigrate.codemods.apex.objects import Objects
from torchmigrate.codemods.apex.uses import Uses
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.rewrite.code import code, code_of
from torchmigrate.rewrite.imports.edits import ImportStatement
from torchmigrate.rewrite.lines import is_elif
from torchmigrate.rewrite.statements import Rewriting
from torchmigrate.semantics.flow.functions import Function, Functions, own
from torchmigrate.semantics.flow.mentions import Spot
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
        self.chosen: list[ast.expr] = []  # tests of `amp` that are false where an option says so
        self.tries: list[ast.Try] = []
        self._true: set[int] = set()
        self._assumed: set[int] = set()  # true where the rest of apex is there, too
        self._whole_tries()
        self._sentinels()

    # ---- the truth of tests ---------------------------------------------------------------------------

    def truth(self, node: ast.expr, *, assumed: bool = False) -> bool | None:
        """Whether an expression is surely true or false once apex is not imported; None: unknown.

        Args:
            assumed: with all that apex.amp needed, although the file still imports other parts of apex.
        """
        if id(node) in self._true or (assumed and id(node) in self._assumed):
            return True
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand, assumed=assumed)
            return None if inner is None else not inner
        if isinstance(node, ast.Compare) and id(node.left) in self._true and len(node.ops) == 1:
            return isinstance(node.ops[0], (ast.IsNot, ast.NotEq))
        if isinstance(node, ast.BoolOp):
            found = [self.truth(value, assumed=assumed) for value in node.values]
            decisive = isinstance(node.op, ast.Or)
            if decisive in found:
                return decisive
            return None if None in found else not decisive
        return None

    def left_of(self, node: ast.expr, *, assumed: bool = False) -> ast.expr | None:
        """A test without the parts that are true, itself if there are none; None: nothing is left of it."""
        known = self.truth(node, assumed=assumed)
        if known is not None:
            return None if known else ast.Constant(False)
        if isinstance(node, ast.BoolOp):
            kept = [value for value in node.values if self.truth(value, assumed=assumed) is None]
            if len(kept) < len(node.values):
                left = [self.left_of(value, assumed=assumed) or ast.Constant(True) for value in kept]
                return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
        return node

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
        wanted = [node for node in self.uses.tests if node not in self.chosen]
        for node in (*wanted, *(load for loads in self.flags.values() for load in loads)):
            statement = self.functions.statement_of(node)
            if any(statement is item for item in self.gone) or self._in_gone(statement):
                continue
            self._test(node, statement)
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

    def _test(self, node: ast.expr, statement: ast.stmt) -> None:
        is_flag = isinstance(node, ast.Name) and node.id in self.flags
        if isinstance(statement, ast.Assert) and self.truth(statement.test) is True:
            self.gone.append(statement)
            return
        if isinstance(statement, ast.If) and _holds(statement.test, node):
            known = self.truth(statement.test)
            if known is None:
                left = self.left_of(statement.test)
                if left is not statement.test:
                    self.rewriting.replace_node(statement.test, code_of(left or ast.Constant(True)))
                    self._seen(node)
                    return
            elif not is_elif(self.rewriting.source, statement) and not (
                statement.orelse and _has_elif(statement)
            ):
                block = statement.body if known else statement.orelse
                if not block:
                    self.gone.append(statement)
                else:
                    self.rewriting.unwrap(statement, block)
                self._seen(node)
                return
        if is_flag:
            whole = node
            while isinstance(outer := self.functions.around.get(id(whole)), (ast.BoolOp, ast.UnaryOp)):
                whole = outer
            left = self.left_of(whole)
            if isinstance(statement, ast.Assign) and left is not None and left is not whole:
                self.rewriting.replace_node(whole, code_of(left))
                self._seen(node)
            else:
                self._true.discard(id(node))  # the flag stays
            return
        raise Unclear.at(statement.lineno, "cannot analyze this check for `amp`")

    def _seen(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name) and node.id in self.flags:
            self.flags[node.id].remove(node)

    def _in_gone(self, statement: ast.stmt) -> bool:
        spot: Spot | None = self.functions.spots[id(statement)]
        while spot is not None:
            if any(spot.statement is item for item in self.gone):
                return True
            spot = spot.outer
        return False

    def _remove_try(self, attempt: ast.Try) -> None:
        """The `try` goes; flags that are still read are set in its place."""
        kept = []
        for item in (*attempt.body, *attempt.orelse):
            flag = _flag(item)
            if flag is not None and self._still_read(flag[0], attempt):
                kept.append(code("$flag = $value", flag=flag[0], value=repr(flag[1])))
                self.remarks.append(f"`{flag[0]}` is always {flag[1]} from now on")
        for assignment in kept:
            self.rewriting.add_before(attempt, assignment)
        self.gone.append(attempt)

    def _still_read(self, name: str, attempt: ast.Try) -> bool:
        inside = {id(node) for node in walk(attempt)}
        return any(
            isinstance(node.ctx, ast.Load)
            and id(node) not in inside
            and not self._in_gone(self.functions.statement_of(node))
            and not self._was_in_test(node)
            for node in self.flow.index.named(name)
        )

    def _was_in_test(self, node: ast.Name) -> bool:
        return id(node) in self._true and all(node is not item for item in self.flags.get(node.id, ()))

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


def _holds(test: ast.expr, node: ast.expr) -> bool:
    return any(inner is node for inner in _conditions(test))


def _conditions(test: ast.expr) -> Iterator[ast.expr]:
    yield test
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _conditions(value)
    elif isinstance(test, ast.UnaryOp):
        yield from _conditions(test.operand)
    elif isinstance(test, ast.Compare):
        yield test.left


def _has_elif(statement: ast.If) -> bool:
    rest = statement.orelse
    return len(rest) == 1 and isinstance(rest[0], ast.If) and rest[0].col_offset == statement.col_offset
