"""Under which conditions a place runs: found on demand, by climbing from it.

The walk of a file remembers what names hold, and which blocks are left. A test is read from that when a
finding needs it; most tests of a file are never read.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct

from torchmigrate.semantics.formulas import FALSE, TRUE, UNKNOWN, Formula, TryGuard, negate, taken
from torchmigrate.semantics.guards.formulas import lower_bound
from torchmigrate.semantics.guards.helpers import demanded
from torchmigrate.semantics.guards.peeking import Recorded, Walked
from torchmigrate.semantics.guards.tests import demanded_by, mark_of, parse_test
from torchmigrate.semantics.model import NO_GUARDS, Binding, Guards, Scope, SemanticModel, Use
from torchmigrate.semantics.values.classes import MAKES_OBJECTS, SETUP, ClassInfo
from torchmigrate.source.trees import block_of, chain_of, last_name, walk

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_OF_CLASS = frozenset(("staticmethod", "classmethod"))
_MOST_NESTED = 16  # conditions within each other that are followed
_MOST_DEMANDS = 8  # of a class or a module: each of its functions is under all of them
Place = tuple[int, int]  # line and column, as in the syntax tree


class _Used(NamedTuple):
    """What a statement uses: qualified names, and the keywords of the call that one is, if it is one."""

    place: Place
    block: list[ast.stmt]
    names: tuple[str, ...]
    given: frozenset[str] | None


class _Block(Struct):
    """The guards of the statements of one block.

    after: the places of those after which other guards hold. guards: those at the beginning, and after each.
    """

    after: list[Place]
    guards: list[Guards]

    def at(self, statement: ast.stmt) -> Guards:
        return self.guards[bisect_left(self.after, _place(statement))]


class GuardMaker:
    """Makes the guards of the places of one file."""

    def __init__(self) -> None:
        self._names: SemanticModel | None = None

    def begin(self, names: SemanticModel, walked: Walked) -> None:
        """Answer questions from here on, since the walk is done."""
        self._names, self._walked = names, walked
        self._peek = Recorded(names, walked).peek
        self._blocks: dict[int, _Block] = {}
        self._inside: dict[tuple[int, int], Guards] = {}  # parts of expressions
        self._said: dict[int, Formula] = {}
        self._noted: set[int] = set()  # bodies of those `try` statements whose uses are known
        self._demands: dict[int, list[Formula]] = {}
        self._callers: dict[int, list[Guards]] = {}

    def end(self) -> None:
        """Let go of the file."""
        self.__dict__.clear()
        self._names = None

    @property
    def names(self) -> SemanticModel:
        """What the walk found."""
        assert self._names is not None, "the walk is done before the first question"
        return self._names

    @cached_property
    def _scopes(self) -> dict[ast.AST, Scope]:
        return {scope.node: scope for scope in self.names.scopes}

    @cached_property
    def _places(self) -> list[_Used]:
        return used(self.names.uses, self.names.imports)

    @cached_property
    def _words(self) -> Counter[str]:
        return Counter(re.findall(r"\w+", self._walked.text))

    # ---- tests -----------------------------------------------------------------------------------------

    def said(self, test: ast.expr) -> Formula:
        """What a test of the file says of versions and names."""
        found = self._said.get(id(test))
        if found is None:
            found = self._said[id(test)] = parse_test(test, self._peek)
        return found

    # ---- places ----------------------------------------------------------------------------------------

    def of(
        self, node: ast.AST, statement: ast.stmt | None = None, block: list[ast.stmt] | None = None
    ) -> Guards:
        """The guards of a node, or of its statement where the node is in no tree (in a string)."""
        if self._names is None:
            return NO_GUARDS
        parents = self._names.parents
        if node not in parents:
            if statement is None or statement not in parents:
                return NO_GUARDS
            if isinstance(statement, _Function) and block is statement.body:
                return self._block(statement, block).guards[0]
            return self._at(statement)
        inner: list[tuple[ast.AST, ast.AST]] = []
        before = node
        while not isinstance(node, ast.stmt):
            outer = parents.get(node)
            if outer is None:
                return NO_GUARDS
            if isinstance(outer, _Function) and (
                node is outer.returns or (isinstance(node, ast.arguments) and isinstance(before, ast.arg))
            ):
                guards = self._block(outer, outer.body).guards[0]
                break
            if isinstance(outer, (ast.BoolOp, ast.IfExp)):
                inner.append((outer, node))
            before, node = node, outer
        else:
            guards = self._at(node)
        nested = 0
        for outer, part in reversed(inner):
            if isinstance(outer, ast.BoolOp):
                nested += 1
                if nested <= _MOST_NESTED:
                    guards = self._operand(outer, part, guards)
            elif isinstance(outer, ast.IfExp) and part is not outer.test:
                guards = self._side(outer, part is outer.body, guards)
        return guards

    def _side(self, node: ast.IfExp, positive: bool, guards: Guards) -> Guards:
        key = id(node), int(positive)
        if key not in self._inside:
            test = self.said(node.test)
            self._inside[key] = Guards(formula=test if positive else negate(test), outer=guards)
        return self._inside[key]

    def _operand(self, node: ast.BoolOp, part: ast.AST, guards: Guards) -> Guards:
        """Later operands run only when the earlier ones did not decide."""
        if (id(node), 0) not in self._inside:
            both = isinstance(node.op, ast.And)
            for number, operand in enumerate(node.values):
                self._inside[id(node), number] = guards
                test = self.said(operand) if number < len(node.values) - 1 else UNKNOWN
                if test is not UNKNOWN:  # some conditions have thousands of operands
                    guards = Guards(formula=test if both else negate(test), outer=guards)
        return self._inside[id(node), next(n for n, operand in enumerate(node.values) if operand is part)]

    def _at(self, statement: ast.stmt) -> Guards:
        outer = self.names.parents[statement]
        return self._block(outer, block_of(outer, statement)).at(statement)

    def _block(self, outer: ast.AST, block: list[ast.stmt]) -> _Block:
        """The guards in a block, which `outer` holds."""
        parents = self.names.parents
        path = []
        while (known := self._blocks.get(id(block))) is None:
            # `elif` chains are climbed in a loop: some are thousands long.
            path.append((outer, block))
            if not isinstance(outer, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                break
            statement = outer if isinstance(outer, ast.stmt) else parents[outer]
            assert isinstance(statement, ast.stmt), "handlers and cases are parts of statements"
            outer = parents[statement]
            block = block_of(outer, statement)
        for outer, block in reversed(path):
            guards = NO_GUARDS
            if known is not None:
                statement = outer if isinstance(outer, ast.stmt) else parents[outer]
                assert isinstance(statement, ast.stmt), "as above"
                guards = self._first(outer, block, statement, known.at(statement))
            known = self._blocks[id(block)] = self._narrowed(block, guards)
        assert known is not None, "at least one was found or made"
        return known

    def _first(self, outer: ast.AST, block: list[ast.stmt], statement: ast.stmt, guards: Guards) -> Guards:
        """The guards at the beginning of a block of a statement, which is under others itself."""
        if isinstance(outer, _Function):
            return self._of_function(outer, guards)
        if isinstance(outer, ast.If):
            test = self.said(outer.test)
            return Guards(formula=test if block is outer.body else negate(test), outer=guards)
        if isinstance(outer, ast.While) and block is outer.body:
            return Guards(formula=self.said(outer.test), outer=guards)
        body = getattr(statement, "body", None)
        attempt = self._walked.attempts.get(id(body))
        if attempt is None or block is getattr(outer, "finalbody", None):
            return guards
        part = "handler" if outer is not statement else "body" if block is body else "else"
        return Guards(attempt=self._read(attempt), part=part, outer=guards)

    def _narrowed(self, block: list[ast.stmt], guards: Guards) -> _Block:
        found = _Block([], [guards])
        for statement in block:
            after = self._after(statement, guards)
            if after is not guards:
                found.after.append(_place(statement))
                found.guards.append(after)
                guards = after
        return found

    def _after(self, statement: ast.stmt, guards: Guards) -> Guards:
        """The guards after a statement: its own, or more."""
        if isinstance(statement, _LEAVES):
            return Guards(formula=FALSE, outer=guards)
        if isinstance(statement, ast.Assert):
            return _under([self.said(statement.test)], guards)
        if isinstance(statement, ast.If):
            return self._after_if(statement, guards)
        if isinstance(statement, (ast.Expr, ast.Assign)):
            if isinstance(statement.value, ast.Call):
                asked = isinstance(statement, ast.Expr)
                guards = _under([self._demanded_by(statement.value, asked=asked)], guards)
            return Guards(formula=FALSE, outer=guards) if id(statement) in self._walked.left else guards
        attempt = self._walked.attempts.get(id(getattr(statement, "body", None)))
        if attempt is None or attempt.rest is None:
            return guards
        return Guards(attempt=self._read(attempt), part="handler", outer=guards)

    def _after_if(self, node: ast.If, guards: Guards) -> Guards:
        """After `if old: return ...`, the rest of the block runs under the negated test."""
        left = self._walked.left
        chain = chain_of(node)
        other = chain[-1].orelse
        ended = [id(branch.body) in left for branch in chain]
        if other and id(other) in left:
            if all(ended):
                return guards
            if len(chain) == 1:
                return Guards(formula=self.said(node.test), outer=guards)
        tests = [branch.test for branch, is_left in zip(chain, ended, strict=True) if is_left]
        return _under((negate(self.said(test)) for test in tests), guards)

    def _demanded_by(self, call: ast.Call, *, asked: bool) -> Formula:
        """What holds after a call, since it skips, or ends in an error, otherwise."""
        name = last_name(call.func)
        if name == "importorskip":
            return demanded(call, self._peek)
        if not asked or name in SETUP or name in MAKES_OBJECTS:
            return UNKNOWN
        return demanded_by(call, self._peek)

    # ---- functions -------------------------------------------------------------------------------------

    def _of_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, guards: Guards) -> Guards:
        """The guards in a function: by its decorators, and by what its module and its class demand."""
        names = self.names
        bounds = (lower_bound(test) for test in self._demands_of(names.tree.body))
        guards = _under(self._marks(node), guards)
        guards = _under([bound for bound in bounds if bound is not TRUE][:_MOST_DEMANDS], guards)
        info = self._walked.classes.get(names.parents[node])
        return guards if info is None else _under(self._demanded_of(info, node), guards)

    def _marks(self, node: ast.stmt) -> list[Formula]:
        """What decorators say of a function, and those and `pytestmark` around it."""
        names = self.names
        within = [node]
        outer = names.parents.get(node)
        while outer is not None and not isinstance(outer, _Function):
            if isinstance(outer, ast.ClassDef):
                within.append(outer)
            outer = names.parents.get(outer)
        marks: list[ast.expr] = [] if outer is not None else self._marked_all(names.tree, within[-1])
        for inner, definition in zip([None, *within], within, strict=False):
            held = list(definition.decorator_list)  # type: ignore[attr-defined]
            if inner is not None:
                held += self._marked_all(definition, inner)
            marks += held
        return [mark_of(mark, self._peek) for mark in marks]

    def _marked_all(self, outer: ast.AST, before: ast.stmt) -> list[ast.expr]:
        """The marks of `pytestmark = ...` in a module or class, before a definition in it."""
        scope = self._scopes.get(outer)
        for binding in reversed(scope.bindings.get("pytestmark", ()) if scope is not None else ()):
            statement = binding.statement
            if isinstance(statement, ast.Assign) and _place(statement) < _place(before):
                value = statement.value
                return value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
        return []

    def _demanded_of(self, info: ClassInfo, node: ast.AST) -> list[Formula]:
        """What holds in a method, also by what the classes above its own demand."""
        found: list[Formula] = []
        marks = {mark.id for mark in getattr(node, "decorator_list", ()) if isinstance(mark, ast.Name)}
        # Whether what makes an object, and what sets it up, also runs what the next class does.
        makes, sets_up = _OF_CLASS.isdisjoint(marks), True
        for item in (info, *info.above):
            if makes:
                found += self._demands_in(item, MAKES_OBJECTS, node)
            if sets_up:
                found += self._demands_in(item, [name for name in SETUP if name not in MAKES_OBJECTS], node)
            makes = makes and item.keeps(MAKES_OBJECTS)
            sets_up = sets_up and item.keeps(SETUP)
        return found

    def _demands_in(self, info: ClassInfo, methods: Iterable[str], but: ast.AST) -> list[Formula]:
        """What has to hold for some methods of a class not to raise."""
        scope = self._scopes.get(info.node)
        found: list[Formula] = []
        for method in methods:
            for binding in scope.bindings.get(method, ()) if scope is not None else ():
                if isinstance(binding.node, ast.FunctionDef) and binding.node is not but:
                    found += self._demands_of(binding.node.body)
        return found[:_MOST_DEMANDS]

    def _demands_of(self, block: list[ast.stmt]) -> list[Formula]:
        """What has to hold for the statements of a block not to raise."""
        if id(block) not in self._demands:
            self._demands[id(block)] = [test for test in self._demands_at(block) if test is not UNKNOWN]
        return self._demands[id(block)]

    def _demands_at(self, block: list[ast.stmt]) -> Iterator[Formula]:
        for statement in block:
            if isinstance(statement, ast.Assert):
                yield self.said(statement.test)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                if last_name(statement.value.func) != "importorskip":
                    yield self._demanded_by(statement.value, asked=True)
            elif isinstance(statement, ast.If):
                chain = chain_of(statement)
                blocks = [branch.body for branch in chain] + [chain[-1].orelse]
                refusing = [self._refuses(inner) for inner in blocks]
                if any(refusing):
                    under = taken(self.said(branch.test) for branch in chain)
                    yield from (
                        negate(test) for test, refuses in zip(under, refusing, strict=True) if refuses
                    )

    def _refuses(self, block: list[ast.stmt]) -> bool:
        """Whether a block ends in an error, or in the end of the program."""
        if not block or id(block) not in self._walked.left:
            return False
        return isinstance(block[-1], ast.Raise) or id(block[-1]) in self._walked.left

    # ---- attempts --------------------------------------------------------------------------------------

    def _read(self, attempt: TryGuard) -> TryGuard:
        """Note what the parts of a `try` use."""
        if id(attempt.node.body) in self._noted:
            return attempt
        self._noted.add(id(attempt.node.body))
        read_attempt(attempt, self._places)
        tests = (
            node.test
            for statement in _handled_by(attempt, self.names)
            for node in walk(statement)
            if isinstance(node, (ast.If, ast.Assert, ast.IfExp))
        )
        attempt.asks = any(self.said(test) is not UNKNOWN for test in tests)
        return attempt

    def attempt(self, body: list[ast.stmt]) -> TryGuard | None:
        """The `try` with this body, if a handler of it runs where something is missing."""
        return self._walked.attempts.get(id(body))

    # ---- callers ---------------------------------------------------------------------------------------

    def callers(self, scope: Scope) -> list[Guards]:
        """The guards of every place that may call a private function; none if they are not all known."""
        if id(scope) not in self._callers:
            self._callers[id(scope)] = list(self._called_at(scope.node))
        return self._callers[id(scope)]

    def _called_at(self, node: ast.AST) -> Iterable[Guards]:
        read = self._walked.mentions.get(node, [])
        if not read or not isinstance(node, _Function):
            return ()
        name = node.name
        if not name.startswith("_") or name.endswith("__"):
            return ()
        if any(ast.unparse(mark) not in _OF_CLASS for mark in node.decorator_list):
            return ()
        return map(self.of, read) if self._words[name] == len(read) + 1 else ()


def used(uses: Iterable[Use], imports: Iterable[Binding]) -> list[_Used]:
    """What the statements of a file use, in source order."""
    found = []
    recorded = set()
    for use in uses:
        call = use.call
        given = None if call is None else frozenset(keyword.arg or "**" for keyword in call.keywords)
        found.append(_Used(_place(use.statement), use.block, use.candidates, given))
        if use.binding is not None and isinstance(use.node, ast.alias):
            recorded.add(use.binding.id)
    for binding in imports:
        if binding.id not in recorded and binding.target is not None:
            found.append(_Used(_place(binding.statement), binding.block, (binding.target,), None))
    return sorted(found, key=itemgetter(0))


def read_attempt(attempt: TryGuard, places: Sequence[_Used]) -> None:
    """Note what the parts of a `try` use.

    Args:
        places: what `used` found in the file.
    """
    node = attempt.node
    parts = [("body", _start(node.body), _end(node.body)), ("else", _start(node.orelse), _end(node.orelse))]
    parts += [("handler", _start(handler.body), _end(handler.body)) for handler in node.handlers]
    if attempt.rest is not None:
        parts.append(("handler", _end_of(attempt), _end([attempt.rest])))
    for part, start, end in parts:
        names = attempt.names.setdefault(part, set())
        calls = attempt.calls.setdefault(part, set())
        for item in places[bisect_left(places, start, key=itemgetter(0)) :]:
            if item.place > end:
                break
            names.update(item.names)
            if item.given is not None:
                calls.update((name, item.given) for name in item.names)
            if part == "body" and item.block is node.body and len(item.names) == 1:
                attempt.always.update(item.names)


def _handled_by(attempt: TryGuard, names: SemanticModel) -> Iterator[ast.stmt]:
    """The statements that only run where the handler of a `try` does."""
    for handler in attempt.node.handlers:
        yield from handler.body
    if attempt.rest is not None:
        end = _end_of(attempt)
        block = block_of(names.parents[attempt.rest], attempt.rest)
        yield from (statement for statement in block if _place(statement) > end)


def _under(tests: Iterable[Formula], guards: Guards) -> Guards:
    """The guards of a place that is under some tests more."""
    for test in tests:
        if test is not UNKNOWN:
            guards = Guards(formula=test, outer=guards)
    return guards


def _place(node: ast.stmt) -> Place:
    return node.lineno, node.col_offset


def _start(block: list[ast.stmt]) -> Place:
    return _place(block[0]) if block else (0, 0)


def _end(block: list[ast.stmt]) -> Place:
    last = block[-1] if block else None
    return (last.end_lineno or 0, last.end_col_offset or 0) if last is not None else (-1, 0)


def _end_of(attempt: TryGuard) -> Place:
    """Where a `try` ends; the one that stands for `with suppress(...)` has no place of its own."""
    node = attempt.node
    blocks = [node.body, node.orelse, node.finalbody, *(handler.body for handler in node.handlers)]
    return max(_end(block) for block in blocks)
