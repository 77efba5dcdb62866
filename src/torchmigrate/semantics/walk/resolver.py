"""The statement half of the walk: blocks, branches and guards of a whole file.

Statements are walked in the order in which they run; each name holds, at each place, the candidates that
may have reached it. Function bodies are walked after the scope around them, and see everything that the
outer names ever hold, since nobody knows when they are called.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping

from torchmigrate.semantics.guards.formulas import FALSE, Formula, negate
from torchmigrate.semantics.guards.formulas import UNKNOWN as UNKNOWN_TEST
from torchmigrate.semantics.guards.tests import catches_missing, parse_test
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import OTHER, Guards, QualifiedName, Scope, SemanticModel, TryGuard
from torchmigrate.semantics.values import types
from torchmigrate.semantics.values.narrowing import narrowed
from torchmigrate.semantics.values.slots import UNKNOWN, Changes, Env, Frame, Slot, join_slots, unsure, weaken
from torchmigrate.semantics.walk.bound import bound_names, only_augmented, pattern_names, stored_names
from torchmigrate.semantics.walk.definitions import SETUP
from torchmigrate.semantics.walk.expressions import has_objects
from torchmigrate.semantics.walk.lookups import SourceLike
from torchmigrate.semantics.walk.statements import Statements

_MOST_REFUSED = 8  # tests of a class that are kept: each of its methods is under all of them
_SUPPRESS = QualifiedName("contextlib.suppress")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break, ast.Expr)


def resolve(tree: ast.Module, source: SourceLike, *, roots: frozenset[str] = LIBRARY_ROOTS) -> SemanticModel:
    """Resolve every library name in a file.

    Args:
        tree: the parsed file.
        source: its text and the way from `ast` places to offsets.
        roots: top-level packages whose names are recorded.

    Raises:
        RecursionError: for expressions nested deeper than the interpreter can walk.
    """
    return Resolver(source, roots).run(tree)


class Resolver(Statements):
    """Walks one file. Use `resolve`."""

    __slots__ = ()

    def run(self, tree: ast.Module) -> SemanticModel:
        module = Scope("module", tree, None)
        self.scopes.append(module)
        local = frozenset(bound_names(tree.body))
        self.frame = Frame(module, Env(), None, local, live=True)
        self.visit_block(tree.body)
        self._soften_globals()
        while self.queue:
            self._function_body(self.queue.popleft())
        self._private_mentions()
        for name in self.exports:
            for binding in module.bindings.get(name, ()):
                binding.exported = True
        self.uses.sort(key=lambda use: (use.start, use.end))
        return SemanticModel(
            tree,
            module,
            self.uses,
            self.bindings,
            self.scopes,
            frozenset(self.exports),
            self.values,
            self.operations,
            self.tested,
            self.tests,
        )

    def _soften_globals(self) -> None:
        """A function that rebinds a global name may run before any other: what it holds is not sure."""
        if "global " not in self.source.text:
            return
        every = self.frame.every
        for item in self.queue:
            for name in stored_names(item.local, "global "):
                slot = every.get(name)
                if slot is not None and has_objects(slot[0]):
                    every[name] = (unsure(slot[0]), slot[1])

    def _private_mentions(self) -> None:
        """Tell the scopes of private functions who reads them, where no reader can have been overlooked."""
        private: list[tuple[str, Scope]] = []
        for scope in self.scopes:
            node, read = scope.node, self.mentions.get(scope.node, [])
            if not read or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith("_") or node.name.endswith("__"):
                continue
            if any(guards.is_nothing() for guards in read):
                continue
            if all(ast.unparse(mark) in ("staticmethod", "classmethod") for mark in node.decorator_list):
                private.append((node.name, scope))
        text = self.source.text
        # A search for each of many names would take time that grows with both.
        words = Counter(re.findall(r"\w+", text)) if len(private) > _MOST_SEARCHES else None
        for name, scope in private:
            read = self.mentions[scope.node]
            if (words[name] if words else _occurrences(text, name)) == len(read) + 1:
                scope.mentions = read

    # ---- blocks and branches -------------------------------------------------------------------------

    def visit_block(self, block: list[ast.stmt]) -> bool:
        """Walk statements in order; True when the end of the block is never reached."""
        guards, outer_block = self.guards, self.block
        ended = False
        held = guards
        for statement in block:
            if self.guards is not held:  # after `if old: return` and its like
                self.note_test(statement, block[-1], held)
                held = self.guards
            self.statement, self.block = statement, block
            handler = _VISIT.get(statement.__class__)
            if handler is not None:
                if handler(self, statement):
                    ended = True
                    if isinstance(statement, _LEAVES):  # what is behind it never runs
                        self.guards = Guards(formula=FALSE, outer=self.guards)
            else:
                self._children(statement)
        self.guards, self.block = guards, outer_block
        return ended

    def _branch(
        self,
        block: list[ast.stmt],
        guards: Guards,
        test: Formula = UNKNOWN_TEST,
        start: Mapping[str, Slot | None] | None = None,
    ) -> tuple[Changes, bool]:
        """Walk a block; what it changes, and whether its end is never reached.

        test: what decides whether the block runs, if nothing else does. start: changes before it, which are
            part of what is given back.
        """
        env, outer_guards, statement = self.frame.env, self.guards, self.statement
        outer_test, self.branch_test = self.branch_test, test
        outer = env.open()
        if start:
            env.apply(start)
        self.guards = guards
        self.conditional += 1
        if block and guards is not outer_guards:
            self.note_test(block[0], block[-1], outer_guards)
        ended = self.visit_block(block)
        self.conditional -= 1
        changes = env.close(outer)
        self.guards, self.statement = outer_guards, statement
        self.branch_test = outer_test
        return changes, ended

    def _if(self, node: ast.If) -> bool:
        # `elif` chains are walked in a loop: some are thousands long.
        chain = [node]
        while len(chain[-1].orelse) == 1 and isinstance(chain[-1].orelse[0], ast.If):
            chain.append(chain[-1].orelse[0])
        outer = self.guards
        guards = outer
        rest = outer
        env = self.frame.env
        self.eval(node.test)
        before = env.open()  # what the tests say, as far as they came out negative
        ends: list[Changes] = []
        all_ended = True
        for branch in chain:
            self.guards = guards
            if branch is not node:
                self.statement = branch
                self.eval(branch.test)
            test = parse_test(branch.test, self.peek)
            if test is not UNKNOWN_TEST:
                self.tests[id(branch.test)] = test
            checking = self._is_type_checking(branch.test)
            self.type_checking += checking
            positive, negative = narrowed(branch.test, self)
            alone = test if len(chain) == 1 else UNKNOWN_TEST
            after, ended = self._branch(branch.body, Guards(formula=test, outer=guards), alone, positive)
            self.type_checking -= checking
            if not ended:
                ends.append({**env.changed(), **after})
                all_ended = False
            elif test is not UNKNOWN_TEST:  # functions with a thousand early returns have a short chain
                rest = Guards(formula=negate(test), outer=rest)
                self._refuse(branch.body[-1], negate(test) if len(chain) == 1 else UNKNOWN_TEST)
            self.narrow(negative)
            guards = Guards(formula=negate(test), outer=guards)
        last = chain[-1]
        after, ended = self._branch(last.orelse, guards, negate(alone)) if last.orelse else ({}, False)
        self.statement = node
        if not ended:
            ends.append({**env.changed(), **after})
            all_ended = False
        env.close(before)
        env.meet(ends)
        # After `if old: return ...`, the rest of the block runs under the negated test.
        self.guards = rest if not all_ended else outer
        if last.orelse and ended and len(ends) == 1 and len(chain) == 1:
            test = parse_test(node.test, self.peek)
            self.guards = Guards(formula=test, outer=outer)
        return all_ended

    def _refuse(self, last: ast.stmt, otherwise: Formula) -> None:
        """Remember what holds in all methods of a class, since its `setUp` or `__init__` fails otherwise."""
        node, owner = self.frame.scope.node, self.frame.owner
        if owner is None or otherwise is UNKNOWN_TEST or not isinstance(node, ast.FunctionDef):
            return
        fails = isinstance(last, ast.Raise) or (
            isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and self.ends(last.value)
        )
        known = len(owner.refused) < _MOST_REFUSED
        if fails and known and node.name in SETUP and self.block is node.body:
            owner.refused.append(otherwise)

    def _is_type_checking(self, test: ast.expr) -> bool:
        name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
        return name == "TYPE_CHECKING"

    def _loop_start(self, body: list[ast.stmt]) -> None:
        env = self.frame.env
        for name in bound_names(body):
            slot = env.get(name)
            if slot is not None:
                if types.is_number(slot[0]) and only_augmented(body, name):
                    env[name] = (types.A_NUMBER, slot[1])  # `total += loss`: a number, or what is added
                else:
                    env[name] = weaken(slot)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        value = self.eval(node.iter)
        env = self.frame.env
        before = env.open()
        self._loop_start(node.body)
        self.conditional += 1
        self.assign(node.target, types.elements(value), OTHER)
        self.conditional -= 1
        env.apply(self._branch(node.body, self.guards)[0])
        env.meet([{}, env.close(before)])
        if node.orelse:
            env.apply(self._branch(node.orelse, self.guards)[0])

    def _while(self, node: ast.While) -> None:
        env = self.frame.env
        before = env.open()
        self._loop_start(node.body)
        self.eval(node.test)
        test = parse_test(node.test, self.peek)
        env.apply(self._branch(node.body, Guards(formula=test, outer=self.guards))[0])
        env.meet([{}, env.close(before)])
        if node.orelse:
            env.apply(self._branch(node.orelse, self.guards)[0])

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        suppressed: list[ast.expr] = []
        for item in node.items:
            value = self.eval(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value if has_objects(value) else UNKNOWN, OTHER)
            call = item.context_expr
            if isinstance(call, ast.Call) and call.args and self.peek(call.func) == (_SUPPRESS,):
                suppressed += call.args
        if not suppressed:
            return self.visit_block(node.body)
        # A `try` with a handler that passes.
        kinds = ast.Tuple(suppressed, ast.Load())
        handler = ast.ExceptHandler(kinds, None, [ast.Pass()])
        guard = TryGuard(ast.Try(node.body, [handler], [], []))
        outer = self.guards
        if not catches_missing(guard.node):
            self.visit_block(node.body)
            return False
        after, ended = self._branch(node.body, Guards(attempt=guard, part="body", outer=outer))
        self.frame.env.meet([{}, after])
        if ended:
            self.guards = Guards(attempt=guard, part="handler", outer=outer)
        return False

    def _try(self, node: ast.Try) -> bool:
        outer = self.guards
        written = self._with_known_errors(node)
        guard = TryGuard(written) if catches_missing(written) else None

        def under(part: str) -> Guards:
            return Guards(attempt=guard, part=part, outer=outer) if guard is not None else outer

        env = self.frame.env
        if guard is not None:
            self.tries.append((guard, "body"))
        after_body, body_ended = self._branch(node.body, under("body"))
        if guard is not None:
            self.tries.pop()
        raised: Changes = {}  # where an exception may have come anywhere in the body
        for name, slot in after_body.items():
            held = env.get(name)
            raised[name] = join_slots(held, slot) if held is not None and slot is not None else held or slot
        ends: list[Changes] = []
        handlers_ended = True
        for handler in node.handlers:
            if handler.type is not None:
                self.eval(handler.type)
            before = env.open()
            env.apply(raised)
            if handler.name:
                self.bind(handler.name, UNKNOWN, OTHER, handler)
            if guard is not None:
                self.tries.append((guard, "handler"))
            after, ended = self._branch(handler.body, under("handler"))
            if guard is not None:
                self.tries.pop()
            env.apply(after)
            after = env.close(before)
            if not ended:
                ends.append(after)
                handlers_ended = False
        ended = body_ended
        if node.orelse:
            if guard is not None:
                self.tries.append((guard, "body"))
            after_body, ended = self._branch(node.orelse, under("else"), start=after_body)
            if guard is not None:
                self.tries.pop()
            ended = ended or body_ended
        if not ended:
            ends.insert(0, after_body)
        env.meet(ends)
        if node.finalbody:
            after, final_ended = self._branch(node.finalbody, outer, start=None if ends else raised)
            env.apply(after)
            if final_ended:
                return True
        if ended and not handlers_ended and guard is not None:
            # `try: return new(); except ImportError: pass`: what follows belongs to the handler.
            self.guards = Guards(attempt=guard, part="handler", outer=outer)
        return ended and handlers_ended

    def _with_known_errors(self, node: ast.Try) -> ast.Try:
        """The statement, with `except ERRORS:` written out where the file says which they are."""
        handlers = []
        for handler in node.handlers:
            bound = self.lookup(handler.type.id)[1] if isinstance(handler.type, ast.Name) else ()
            statement = bound[0].statement if len(bound) == 1 else None
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple):
                known = ast.ExceptHandler(statement.value, handler.name, handler.body)
                handlers.append(ast.copy_location(known, handler))
            else:
                handlers.append(handler)
        if handlers == node.handlers:
            return node
        return ast.copy_location(ast.Try(node.body, handlers, node.orelse, node.finalbody), node)

    def _match(self, node: ast.Match) -> bool:
        self.eval(node.subject)
        env = self.frame.env
        ends: list[Changes] = [{}]
        for case in node.cases:
            before = env.open()
            self._pattern(case.pattern)
            for name in pattern_names(case.pattern):
                self.bind(name, UNKNOWN, OTHER, case.pattern)
            if case.guard is not None:
                self.eval(case.guard)
            after, ended = self._branch(case.body, self.guards)
            env.apply(after)
            after = env.close(before)
            if not ended:
                ends.append(after)
        env.meet(ends)
        return False

    def _pattern(self, pattern: ast.pattern) -> None:
        for child in ast.walk(pattern):
            if isinstance(child, ast.MatchValue):
                self.eval(child.value)
            elif isinstance(child, ast.MatchClass):
                self.eval(child.cls)


_MOST_SEARCHES = 20


def _occurrences(text: str, name: str) -> int:
    """How often a name stands in a text as a word of its own."""
    found, start = 0, text.find(name)
    while start >= 0:
        end = start + len(name)
        found += not re.search(r"\w", text[max(start - 1, 0) : start] + text[end : end + 1])
        start = text.find(name, end)
    return found


_VISIT: dict[type, Callable[..., bool | None]] = {
    ast.If: Resolver._if,
    ast.For: Resolver._for,
    ast.AsyncFor: Resolver._for,
    ast.While: Resolver._while,
    ast.With: Resolver._with,
    ast.AsyncWith: Resolver._with,
    ast.Try: Resolver._try,
    ast.Match: Resolver._match,
    ast.Expr: Resolver._expr,
    ast.Assign: Resolver._assign,
    ast.AugAssign: Resolver._aug_assign,
    ast.AnnAssign: Resolver._ann_assign,
    ast.Delete: Resolver._delete,
    ast.Assert: Resolver._assert,
    ast.Return: Resolver._leave,
    ast.Raise: Resolver._leave,
    ast.Global: Resolver._global,
    ast.Nonlocal: Resolver._nonlocal,
    ast.Import: Resolver._import,
    ast.ImportFrom: Resolver._import_from,
    ast.FunctionDef: Resolver._function,
    ast.AsyncFunctionDef: Resolver._function,
    ast.ClassDef: Resolver._class,
    ast.Break: Resolver._leave,
    ast.Continue: Resolver._leave,
}
if hasattr(ast, "TryStar"):
    _VISIT[ast.TryStar] = Resolver._try
if hasattr(ast, "TypeAlias"):
    _VISIT[ast.TypeAlias] = Resolver._type_alias
