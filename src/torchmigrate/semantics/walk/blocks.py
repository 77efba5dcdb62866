"""Blocks and branches: the statements in the order in which they run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from torchmigrate.semantics.formulas import UNKNOWN as UNKNOWN_TEST
from torchmigrate.semantics.formulas import TryGuard, taken
from torchmigrate.semantics.guards.flags import where_paths_meet, with_flag
from torchmigrate.semantics.guards.tests import catches_missing, parse_test
from torchmigrate.semantics.model import OTHER, Const, Flag, QualifiedName, Value
from torchmigrate.semantics.values import types
from torchmigrate.semantics.values.slots import UNKNOWN, Changes, Slot, join_slots, weaken
from torchmigrate.semantics.walk.bound import bound_names, only_augmented, pattern_names
from torchmigrate.semantics.walk.definitions import Definitions
from torchmigrate.semantics.walk.expressions import has_objects
from torchmigrate.source.trees import chain_of, walk

_SUPPRESS = QualifiedName("contextlib.suppress")


class Blocks(Definitions):
    """Walks statements."""

    __slots__ = ()

    def visit_block(self, block: list[ast.stmt]) -> bool:
        """Walk statements in order; True when the end of the block is never reached."""
        outer_block = self.block
        ended = False
        for statement in block:
            self.statement, self.block = statement, block
            kind = statement.__class__
            visit = _VISIT.get(kind, Blocks.visit_children)
            if visit(self, statement):
                ended = True
                if kind is ast.Expr:
                    self.walked.left.add(id(statement))
        if ended:
            self.walked.left.add(id(block))
        self.block = outer_block
        return ended

    def _branch(
        self,
        block: list[ast.stmt],
        test: tuple[ast.expr, bool] | None = None,
        start: Mapping[str, Slot | None] | None = None,
    ) -> tuple[Changes, bool]:
        """Walk a block; what it changes, and whether its end is never reached.

        test: what decides whether the block runs, if nothing else does, and what has to come out of it.
        start: changes before it, which are part of what is given back.
        """
        env, statement = self.frame.env, self.statement
        outer_test, self.branch_test = self.branch_test, test
        outer = env.open()
        if start:
            env.apply(start)
        self.conditional += 1
        ended = self.visit_block(block)
        self.conditional -= 1
        changes = env.close(outer)
        self.statement = statement
        self.branch_test = outer_test
        return changes, ended

    def _if(self, node: ast.If) -> bool:
        # `elif` chains are walked in a loop: some are thousands long.
        chain = chain_of(node)
        env = self.frame.env
        self.eval(node.test)
        before = env.open()  # what the tests say, as far as they came out negative
        ends: list[Changes] = []
        taken: list[int] = []  # after which branch each of them is reached
        all_ended = True
        for number, branch in enumerate(chain):
            if branch is not node:
                self.statement = branch
                self.eval(branch.test)
            self.asked.append(branch.test)
            checking = self._is_type_checking(branch.test)
            self.type_checking += checking
            positive, negative = self.narrowed(branch.test)
            alone = (branch.test, True) if len(chain) == 1 else None
            after, ended = self._branch(branch.body, alone, positive)
            self.type_checking -= checking
            if not ended:
                ends.append({**env.changed(), **after})
                taken.append(number)
                all_ended = False
            self.narrow(negative)
        last = chain[-1]
        alone = (last.test, False) if len(chain) == 1 else None
        after, ended = self._branch(last.orelse, alone) if last.orelse else ({}, False)
        self.statement = node
        if not ended:
            ends.append({**env.changed(), **after})
            taken.append(len(chain))
            all_ended = False
        env.close(before)
        flags = self._flags(ends, chain, taken) if any(map(_may_set_flags, ends)) else {}
        env.meet(ends)
        self._set_flags(flags)
        return all_ended

    def _flags(self, ends: list[Changes], chain: list[ast.If], numbers: list[int]) -> dict[str, Value]:
        """What flags say that an `if` sets, by the branches after which each end is reached."""
        env = self.frame.env
        found: dict[str, Value] = {}
        asked: set[str] = set()
        tests = [parse_test(branch.test, self.peek) for branch in chain]
        under = list(taken(tests))
        reached = [under[number] for number in numbers]
        # Under other tests, a constant says nothing.
        telling = (Flag,) if all(test is UNKNOWN_TEST for test in reached) else (Flag, Const)
        for changes in ends:
            for name, slot in changes.items():
                if slot is None or not slot[0] or slot[0][0].__class__ not in telling or name in asked:
                    continue
                asked.add(name)
                slots = [end.get(name, env.get(name)) for end in ends]
                held = [each[0] for each in slots if each is not None]
                flag = where_paths_meet(zip(reached, held, strict=True)) if len(held) == len(ends) else None
                if flag is not None and isinstance(flag[0], Flag) and flag[0].formula is not UNKNOWN_TEST:
                    found[name] = flag
        return found

    def _set_flags(self, flags: Mapping[str, Value]) -> None:
        """Let names hold what they say after an `if`."""
        frame = self.frame
        prefix = f"{frame.self_name}."
        for name, flag in flags.items():
            held = frame.env.get(name)
            if held is None:
                continue
            frame.env[name] = (flag, held[1])
            if name in frame.every:
                value, bindings = frame.every[name]
                frame.every[name] = (with_flag(value, flag), bindings)
            elif frame.owner is not None and name.startswith(prefix):
                attributes = frame.owner.attributes
                attribute = name.removeprefix(prefix)
                attributes[attribute] = with_flag(attributes.get(attribute, flag), flag)

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
        env.apply(self._branch(node.body)[0])
        env.meet([{}, env.close(before)])
        if node.orelse:
            env.apply(self._branch(node.orelse)[0])

    def _while(self, node: ast.While) -> None:
        env = self.frame.env
        before = env.open()
        self._loop_start(node.body)
        self.eval(node.test)
        self.asked.append(node.test)
        env.apply(self._branch(node.body)[0])
        env.meet([{}, env.close(before)])
        if node.orelse:
            env.apply(self._branch(node.orelse)[0])

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
        line, column = node.end_lineno or 0, node.end_col_offset or 0
        passes = ast.Pass(lineno=line, col_offset=column, end_lineno=line, end_col_offset=column)
        handler = ast.ExceptHandler(kinds, None, [passes])
        guard = TryGuard(ast.Try(node.body, [handler], [], []))
        if not catches_missing(guard.node):
            self.visit_block(node.body)
            return False
        self.walked.attempts[id(node.body)] = guard
        after, ended = self._branch(node.body)
        self.frame.env.meet([{}, after])
        if ended:
            guard.rest = self.block[-1]
        return False

    def _try(self, node: ast.Try) -> bool:
        written = self._with_known_errors(node)
        guard = TryGuard(written) if catches_missing(written) else None
        env = self.frame.env
        if guard is not None:
            self.walked.attempts[id(node.body)] = guard
            self.tries.append((guard, "body"))
        after_body, body_ended = self._branch(node.body)
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
            after, ended = self._branch(handler.body)
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
            after_body, ended = self._branch(node.orelse, start=after_body)
            if guard is not None:
                self.tries.pop()
            ended = ended or body_ended
        if not ended:
            ends.insert(0, after_body)
        env.meet(ends)
        if node.finalbody:
            after, final_ended = self._branch(node.finalbody, start=None if ends else raised)
            env.apply(after)
            if final_ended:
                return True
        if ended and not handlers_ended and guard is not None:
            # `try: return new(); except ImportError: pass`: what follows belongs to the handler.
            guard.rest = self.block[-1]
        return ended and handlers_ended

    def _with_known_errors(self, node: ast.Try) -> ast.Try:
        """The statement, with `except ERRORS:` written out where the file says which they are."""
        handlers = []
        for handler in node.handlers:
            kinds = self._known_errors(handler.type)
            if kinds is handler.type:
                handlers.append(handler)
            else:
                known = ast.ExceptHandler(kinds, handler.name, handler.body)
                handlers.append(ast.copy_location(known, handler))
        if handlers == node.handlers:
            return node
        return ast.copy_location(ast.Try(node.body, handlers, node.orelse, node.finalbody), node)

    def _known_errors(self, kind: ast.expr | None) -> ast.expr | None:
        """The errors that a name of the file stands for."""
        bound = self.lookup(kind.id)[1] if isinstance(kind, ast.Name) else ()
        statement = bound[0].statement if len(bound) == 1 else None
        if isinstance(statement, ast.Assign) and isinstance(
            statement.value, (ast.Tuple, ast.Name, ast.Attribute)
        ):
            return statement.value
        return kind

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
            after, ended = self._branch(case.body)
            env.apply(after)
            after = env.close(before)
            if not ended:
                ends.append(after)
        env.meet(ends)
        return False

    def _pattern(self, pattern: ast.pattern) -> None:
        for child in walk(pattern):
            if isinstance(child, ast.MatchValue):
                self.eval(child.value)
            elif isinstance(child, ast.MatchClass):
                self.eval(child.cls)


def _may_set_flags(changes: Changes) -> bool:
    """Whether a branch sets a name to a flag, or to a constant that says as much as one."""
    for slot in changes.values():
        if slot is not None and slot[0]:
            first = slot[0][0]
            if first.__class__ is Flag or (
                first.__class__ is Const and (first.value is None or first.value.__class__ is bool)
            ):
                return True
    return False


_VISIT: dict[type, Callable[..., bool | None]] = {
    ast.Expr: Blocks.visit_expr,
    ast.Assign: Blocks.visit_assign,
    ast.AugAssign: Blocks.visit_aug_assign,
    ast.AnnAssign: Blocks.visit_ann_assign,
    ast.Delete: Blocks.visit_delete,
    ast.Assert: Blocks.visit_assert,
    ast.Return: Blocks.visit_return,
    ast.Raise: Blocks.visit_leaving,
    ast.Break: Blocks.visit_leaving,
    ast.Continue: Blocks.visit_leaving,
    ast.Global: Blocks.visit_global,
    ast.Nonlocal: Blocks.visit_nonlocal,
    ast.Import: Blocks.visit_import,
    ast.ImportFrom: Blocks.visit_import_from,
    ast.FunctionDef: Blocks.visit_function,
    ast.AsyncFunctionDef: Blocks.visit_function,
    ast.ClassDef: Blocks.visit_class,
    ast.If: Blocks._if,
    ast.For: Blocks._for,
    ast.AsyncFor: Blocks._for,
    ast.While: Blocks._while,
    ast.With: Blocks._with,
    ast.AsyncWith: Blocks._with,
    ast.Try: Blocks._try,
    ast.Match: Blocks._match,
}
if hasattr(ast, "TryStar"):
    _VISIT[ast.TryStar] = Blocks._try
if hasattr(ast, "TypeAlias"):  # Python 3.12
    _VISIT[ast.TypeAlias] = Blocks.visit_type_alias
