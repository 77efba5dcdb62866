"""Functions of the file that only answer a test.

`def newer(version): return Version(torch.__version__) >= Version(version)`
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator

from torchmigrate.patterns import pattern
from torchmigrate.semantics.formulas import (
    FALSE,
    TRUE,
    UNKNOWN,
    Formula,
    HasName,
    Known,
    all_of,
    any_of,
    both,
    negate,
)
from torchmigrate.semantics.guards.flags import where_paths_meet
from torchmigrate.semantics.guards.version_values import Evaluate
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import OPAQUE, Const, Foreign, Local, QualifiedName, Value
from torchmigrate.source.trees import last_name, walk

Parse = Callable[[ast.expr, Evaluate], Formula]  # what a test says
Function = ast.FunctionDef | ast.Lambda

# A function that answers a test is short; and what is followed must end.
_MOST_NODES = 200
_DEEPEST = 3
_BEFORE = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
_ANSWERS = (ast.Return, ast.If, ast.Try)
_CHECKS = pattern("version|torch|compat|require|support|check|verify", re.IGNORECASE)
# The kinds of tests that are understood.
_TESTS = (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Name, ast.Attribute, ast.NamedExpr)


class GivenParameter:
    """The argument for a parameter, or its default; its value is computed when it is first needed.

    evaluate: what expressions mean where it is written.
    """

    def __init__(self, node: ast.expr, evaluate: Evaluate) -> None:
        self.node = node
        self.evaluate = evaluate

    @functools.cached_property
    def value(self) -> Value:
        return self.evaluate(self.node)


class Inside:
    """Evaluates expressions in the body of a function: its own names first, then those around the call.

    held: what parameters and local names hold. depth: how many functions were entered on the way.
    """

    def __init__(self, outer: Evaluate, held: dict[str, Value | GivenParameter]) -> None:
        self.outer = outer
        self.held = held
        self.depth: int = getattr(outer, "depth", 0) + 1

    def __call__(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Name) and node.id in self.held:
            held = self.held[node.id]
            return _value_of(held)
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(node, ast.Attribute) and isinstance(root, ast.Name) and root.id in self.held:
            return tuple(
                QualifiedName(f"{item.name}.{node.attr}", item.sure, item.via)
                if isinstance(item, QualifiedName)
                else OPAQUE
                for item in self(node.value)
            )
        return self.outer(node)


def entered(
    function: ast.AST, call: ast.Call | None, evaluate: Evaluate, argument: Evaluate, default: Evaluate
) -> Inside | None:
    """The inside of a function that is called so; None where that cannot be followed.

    call: None for a property. argument, default: the value of what is given to a parameter, and of what it
        takes where nothing is given, also of one that is about versions. They may be of different files.
    """
    if not isinstance(function, Function) or getattr(evaluate, "depth", 0) >= _DEEPEST:
        return None
    parameters = function.args
    names = [item.arg for item in (*parameters.posonlyargs, *parameters.args)]
    held: dict[str, Value | GivenParameter] = dict.fromkeys(names, (OPAQUE,))
    held |= {item.arg: (OPAQUE,) for item in parameters.kwonlyargs}
    for rest in (parameters.vararg, parameters.kwarg):
        if rest is not None:
            held[rest.arg] = (OPAQUE,)
    # Not parameters of a method: `self` means there what it means here.
    if names[:1] in (["self"], ["cls"]):
        held.pop(names.pop(0))
    defaults = zip(reversed(names), reversed(parameters.defaults), strict=False)
    by_keyword = zip((item.arg for item in parameters.kwonlyargs), parameters.kw_defaults, strict=True)
    for name, written in (*defaults, *by_keyword):
        if written is not None:
            held[name] = GivenParameter(written, default)
    given = call.args if call is not None else []
    keywords = call.keywords if call is not None else []
    if len(given) > len(names) and parameters.vararg is None:
        return None
    for name, written in zip(names, given, strict=False):
        if isinstance(written, ast.Starred):
            return None
        held[name] = GivenParameter(written, argument)
    for keyword in keywords:
        if keyword.arg is None:
            return None
        held[keyword.arg] = GivenParameter(keyword.value, argument)
    return Inside(evaluate, held)


@functools.lru_cache(maxsize=256)  # one that is called is called often
def may_answer(function: Function) -> bool:
    """Whether a function is short, and begins as one that only answers a test does."""
    body = function.body if isinstance(function, ast.FunctionDef) else []
    if len(body) > _MOST_NODES:
        return False
    first = next((node for node in body if not isinstance(node, _BEFORE) and not _is_silent(node)), None)
    if isinstance(first, ast.Return) and not isinstance(first.value, _TESTS):
        return False
    if first is not None and not isinstance(first, _ANSWERS):
        return False
    return len(walk(function, _MOST_NODES)) <= _MOST_NODES


@functools.cache  # the same few names repeat
def may_check(name: str) -> bool:
    """Whether a function is called as one that may refuse a release."""
    return _CHECKS.search(name) is not None


@functools.lru_cache(maxsize=256)
def may_refuse(function: Function) -> bool:
    """Whether a function is short, and may end in an error by a test of its own, or of one that it calls."""
    body = function.body if isinstance(function, ast.FunctionDef) else []
    if len(body) > _MOST_NODES:
        return False
    return (
        any(
            isinstance(node, ast.Assert)
            or (isinstance(node, ast.If) and (_raises(node.body) or _raises(node.orelse)))
            or (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Call)
                and may_check(last_name(node.value.func))
            )
            for node in body
        )
        and len(walk(function, _MOST_NODES)) <= _MOST_NODES
    )


def what_it_demands(
    function: ast.AST,
    inside: Inside,
    parse: Parse,
    value: Callable[[ast.expr], Value],
    called: Callable[[ast.Call], Formula],
) -> Formula:
    """What holds once a function has returned, since it raises otherwise; `UNKNOWN` if that is nothing.

    called: the same of a call in it.
    """
    assert isinstance(function, ast.FunctionDef), "a lambda holds no statements"
    return _Body(inside, parse, value).demands(function.body, called)


def own_test(function: ast.AST, inside: Inside, parse: Parse, value: Callable[[ast.expr], Value]) -> Formula:
    """What a function of this file says, if all that it does is to answer a test."""
    if isinstance(function, ast.Lambda):
        formula: Formula | None = parse(function.body, inside)
    else:
        assert isinstance(function, ast.FunctionDef), "nothing else is entered"
        formula = _Body(inside, parse, value).says(function.body)
    # A constant may be what a person sets, or what another class returns otherwise.
    return UNKNOWN if formula is None or isinstance(formula, Known) else formula


def returned(function: ast.AST) -> ast.expr | None:
    """The only expression that a function returns, where it does nothing else."""
    if isinstance(function, ast.Lambda):
        return function.body
    body = [node for node in getattr(function, "body", []) if not _is_silent(node)]
    last = body[-1] if len(body) == 1 else None
    return last.value if isinstance(last, ast.Return) else None


class _Body:
    """Reads the statements of one function."""

    def __init__(self, inside: Inside, parse: Parse, value: Callable[[ast.expr], Value]) -> None:
        self.inside = inside
        self.parse = parse
        self.value = value

    def says(self, block: list[ast.stmt]) -> Formula | None:
        """What a block returns; None where its end is reached."""
        for number, node in enumerate(block):
            if _is_silent(node) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
                continue  # what it logs is not an answer
            if isinstance(node, ast.Return):
                return FALSE if node.value is None else self.parse(node.value, self.inside)
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.inside.held.update(_imported(node))
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                held = self.value(node.value)
                for target in targets:
                    if not isinstance(target, ast.Name):
                        return UNKNOWN
                    self.inside.held[target.id] = held
            elif isinstance(node, ast.If):
                return self._choice(node, block[number + 1 :])
            elif isinstance(node, ast.Try) and not node.finalbody:
                return self._attempt(node, [*node.orelse, *block[number + 1 :]])
            else:
                return UNKNOWN
        return None

    def demands(self, block: list[ast.stmt], called: Callable[[ast.Call], Formula]) -> Formula:
        """What holds at the end of a block."""
        found = []
        for node in block:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.inside.held.update(_imported(node))
            elif isinstance(node, ast.Assert):
                found.append(self.parse(node.test, self.inside))
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                found.append(called(node.value))
            elif isinstance(node, ast.If) and _raises(node.body):
                found.append(negate(self.parse(node.test, self.inside)))
                found.append(self.demands(node.orelse, called) if node.orelse else TRUE)
            elif isinstance(node, ast.If) and _raises(node.orelse):
                found.append(self.parse(node.test, self.inside))
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                held = self.value(node.value)
                names = _stored(node)
                self.inside.held.update(dict.fromkeys(names, held if len(names) == 1 else (OPAQUE,)))
            else:
                if any(isinstance(item, ast.Return) for item in walk(node)):
                    break  # what follows need not run
                self.inside.held.update(dict.fromkeys(_stored(node), (OPAQUE,)))
        return all_of(part for part in found if part is not UNKNOWN) if found else UNKNOWN

    def _attempt(self, node: ast.Try, after: list[ast.stmt]) -> Formula | None:
        """What a `try` says and what follows it: `try: torch.f / except AttributeError: return False`."""
        if not all(_gives_up(handler.body) for handler in node.handlers):
            return UNKNOWN
        ends = [handler.body[-1] for handler in node.handlers]
        *before, last = node.body
        if _is_true(last) and before and not any(map(_is_true, ends)):
            names = self._demanded(before)
            if names is not None:
                return all_of([HasName(name) for name in names])
        if all(isinstance(end, ast.Return) and not _is_true(end) for end in ends):
            names = self._demanded(node.body)
            if names and all(name.partition(".")[0] in LIBRARY_ROOTS for name in names):
                rest = self.says(after)
                return None if rest is None else all_of([*map(HasName, names), rest])
        # The handlers are there for a version that cannot be read.
        return self.says([*node.body, *after])

    def _demanded(self, block: list[ast.stmt]) -> list[str] | None:
        """The names without which a block fails; None: it does more than to ask for them."""
        names: list[str] = []
        for statement in block:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                found = [held for _, held in _imported(statement)]
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Attribute):
                found = [self.value(statement.value)]
            else:
                return None
            for held in found:
                only = held[0] if len(held) == 1 else None
                if not isinstance(only, QualifiedName):
                    return None
                names.append(only.name)
        return names

    def _choice(self, node: ast.If, after: list[ast.stmt]) -> Formula | None:
        if isinstance(node.body[-1], ast.Raise) and len(node.body) == 1:
            return self.says([*node.orelse, *after])  # a call that returns has passed this test
        test = self.parse(node.test, self.inside)
        before = self.inside.held
        sides = []
        going_on = []  # what names hold at the end of a side from which the function goes on
        for side, taken in ((node.body, test), (node.orelse, negate(test))):
            self.inside.held = dict(before)
            sides.append(self.says(side))
            if sides[-1] is None:
                going_on.append((taken, self.inside.held))
        if going_on:
            self.inside.held = self._met(going_on)
            rest = self.says(after)
            if rest is None:
                return None if len(going_on) == len(sides) else UNKNOWN
            sides = [rest if side is None else side for side in sides]
        positive, negative = sides
        assert positive is not None and negative is not None, "just looked"
        return any_of((both(test, positive), both(negate(test), negative)))

    def _met(
        self, paths: list[tuple[Formula, dict[str, Value | GivenParameter]]]
    ) -> dict[str, Value | GivenParameter]:
        """What names hold after a choice, by the tests under which each path is taken."""
        if len(paths) == 1:
            return paths[0][1]
        (test, one), (otherwise, other) = paths
        met: dict[str, Value | GivenParameter] = {}
        for name in {**one, **other}:
            left, right = one.get(name, (OPAQUE,)), other.get(name, (OPAQUE,))
            if left == right:
                met[name] = left
                continue
            flag = where_paths_meet([(test, _value_of(left)), (otherwise, _value_of(right))])
            met[name] = flag or (OPAQUE,)
        return met


def _value_of(held: Value | GivenParameter) -> Value:
    return held.value if isinstance(held, GivenParameter) else held


def _is_silent(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Pass, ast.Global)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)  # its docstring
    )


def _stored(node: ast.stmt) -> list[str]:
    """The names that a statement may set."""
    return [item.id for item in walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)]


def _raises(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Raise)


def _is_true(node: ast.stmt) -> bool:
    return isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and node.value.value is True


def _gives_up(handler: list[ast.stmt]) -> bool:
    (last, *others) = handler[::-1]
    constant = isinstance(last, ast.Return) and (last.value is None or isinstance(last.value, ast.Constant))
    return not others and (constant or isinstance(last, ast.Raise))


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Value]]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield alias.asname or alias.name, (QualifiedName(f"{module}.{alias.name}"),)
        else:
            root = alias.name.partition(".")[0]
            yield alias.asname or root, (QualifiedName(alias.name if alias.asname else root),)


class _Elsewhere:
    """What names mean in another file. depth: how many functions were entered on the way there."""

    def __init__(self, evaluate: Evaluate, depth: int) -> None:
        self.evaluate = evaluate
        self.depth = depth

    def __call__(self, node: ast.expr) -> Value:
        return self.evaluate(node)


def answering(value: Value, evaluate: Evaluate) -> tuple[ast.AST, Evaluate] | None:
    """The function of the project that a value surely is, and what the names in it mean.

    evaluate: what names mean in this file.
    """
    only = value[0] if len(value) == 1 else None
    if isinstance(only, Foreign):
        return only.node, _Elsewhere(only.evaluate, getattr(evaluate, "depth", 0))
    return (only.node, evaluate) if isinstance(only, Local) else None


def text_of(value: Value) -> str | None:
    """The string that a value surely is."""
    only = value[0] if len(value) == 1 else None
    return only.value if isinstance(only, Const) and isinstance(only.value, str) else None


def is_property(node: ast.AST) -> bool:
    """Whether a function of a class is called when it is read."""
    for mark in getattr(node, "decorator_list", ()):
        name = mark.id if isinstance(mark, ast.Name) else mark.attr if isinstance(mark, ast.Attribute) else ""
        if name in ("property", "cached_property", "lazy_property", "abstractproperty", "setter", "getter"):
            return True
    return False
