"""Functions of the file that only answer a test.

`def newer(version): return Version(torch.__version__) >= Version(version)`
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator

from torchmigrate.semantics.guards.formulas import (
    FALSE,
    UNKNOWN,
    Formula,
    HasName,
    Known,
    all_of,
    any_of,
    both,
    negate,
)
from torchmigrate.semantics.guards.version_values import Evaluate
from torchmigrate.semantics.model import OPAQUE, Const, Foreign, Local, QualifiedName, Value
from torchmigrate.source.trees import walk

Parse = Callable[[ast.expr, Evaluate], Formula]  # what a test says
Function = ast.FunctionDef | ast.Lambda

# A function that answers a test is short; and what is followed must end.
_MOST_NODES = 200
_DEEPEST = 3
_BEFORE = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
_ANSWERS = (ast.Return, ast.If, ast.Try)
# What a test may be of which something is known.
_TESTS = (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Name, ast.Attribute, ast.NamedExpr)


class Inside:
    """Evaluates expressions in the body of a function: its own names first, then those around the call.

    held: what parameters and local names hold; or an argument, of which `value` gives the value when it is
        first asked for. depth: how many functions were entered on the way.
    """

    def __init__(
        self, outer: Evaluate, held: dict[str, Value | ast.expr], value: Evaluate | None = None
    ) -> None:
        self.outer = outer
        self.held = held
        self.depth: int = getattr(outer, "depth", 0) + 1
        self._value = value or outer
        self._values: dict[ast.expr, Value] = {}

    def __call__(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Name) and node.id in self.held:
            held = self.held[node.id]
            if not isinstance(held, ast.expr):
                return held
            if held not in self._values:
                self._values[held] = self._value(held)
            return self._values[held]
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


def entered(function: ast.AST, call: ast.Call | None, evaluate: Evaluate, value: Evaluate) -> Inside | None:
    """The inside of a function that is called so; None where that cannot be followed.

    call: None for a property. value: the value of an argument, also of one that is about versions.
    """
    if not isinstance(function, Function) or getattr(evaluate, "depth", 0) >= _DEEPEST:
        return None
    if not may_answer(function):
        return None
    parameters = function.args
    names = [item.arg for item in (*parameters.posonlyargs, *parameters.args)]
    held: dict[str, Value | ast.expr] = dict.fromkeys(names, (OPAQUE,))
    held |= {item.arg: (OPAQUE,) for item in parameters.kwonlyargs}
    for rest in (parameters.vararg, parameters.kwarg):
        if rest is not None:
            held[rest.arg] = (OPAQUE,)
    # Not parameters of a method: `self` means there what it means here.
    if names[:1] in (["self"], ["cls"]):
        held.pop(names.pop(0))
    defaults = zip(reversed(names), reversed(parameters.defaults), strict=False)
    by_keyword = zip((item.arg for item in parameters.kwonlyargs), parameters.kw_defaults, strict=True)
    for name, default in (*defaults, *by_keyword):
        if default is not None:
            held[name] = default
    given = call.args if call is not None else []
    keywords = call.keywords if call is not None else []
    if len(given) > len(names) and parameters.vararg is None:
        return None
    for name, argument in zip(names, given, strict=False):
        if isinstance(argument, ast.Starred):
            return None
        held[name] = argument
    for keyword in keywords:
        if keyword.arg is None:
            return None
        held[keyword.arg] = keyword.value
    return Inside(evaluate, held, value)


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
            if _is_silent(node):
                continue
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
            elif isinstance(node, ast.Try) and not node.orelse and not node.finalbody:
                # The handler is there for a version that cannot be read.
                if not all(_gives_up(handler.body) for handler in node.handlers):
                    return UNKNOWN
                demanded = self._demanded(node)
                if demanded is not None:
                    return demanded
                return self.says([*node.body, *block[number + 1 :]])
            else:
                return UNKNOWN
        return None

    def _demanded(self, node: ast.Try) -> Formula | None:
        """What `try: torch.f; return True / except ...: return False` says; None: it is something else."""
        *before, last = node.body
        ends = [handler.body[-1] for handler in node.handlers]
        if not (_is_true(last) and before) or any(map(_is_true, ends)):
            return None
        names: list[str] = []
        for statement in before:
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
        return all_of([HasName(name) for name in names])

    def _choice(self, node: ast.If, after: list[ast.stmt]) -> Formula | None:
        if isinstance(node.body[-1], ast.Raise) and len(node.body) == 1:
            return self.says([*node.orelse, *after])  # whoever gets an answer comes past it
        test = self.parse(node.test, self.inside)
        before = self.inside.held
        sides = []
        changed: set[str] = set()
        for side in (node.body, node.orelse):
            self.inside.held = dict(before)
            sides.append(self.says(side))
            changed |= {name for name, held in self.inside.held.items() if before.get(name) != held}
        self.inside.held = before | dict.fromkeys(changed, (OPAQUE,))
        if None in sides:
            rest = self.says(after)
            sides = [rest if side is None else side for side in sides]
            if None in sides:
                return UNKNOWN
        positive, negative = sides
        assert positive is not None and negative is not None, "just looked"
        return any_of((both(test, positive), both(negate(test), negative)))


def _is_silent(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Pass, ast.Global)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)  # its docstring
    )


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
