"""Patterns: an expression with metavariables, headed by the symbol of a rule, such as `torch.svd($x)[2]`.

Matching is structural, on `ast`: white space, comments, quotes and parentheses do not count.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from typing import TypeGuard

from msgspec import Struct

from torchmigrate.match.context import MatchContext
from torchmigrate.patterns import pattern
from torchmigrate.semantics.model import Use
from torchmigrate.source.trees import children

METAVARIABLE = pattern(r"\$([A-Za-z_]\w*)")
PREFIX = "__tm_"  # marks a metavariable in code that Python can parse

Captures = dict[str, "ast.expr | list[ast.AST]"]


class Pattern(Struct, frozen=True):
    """A pattern for one symbol. depth: how many nodes are around its head."""

    root: ast.expr
    head: ast.expr
    depth: int


def mark(text: str) -> str:
    """A template or pattern with its metavariables as names."""
    return METAVARIABLE.sub(PREFIX + r"\1", text)


def metavariable(node: object) -> str | None:
    """The name of the metavariable that an `ast` node stands for."""
    if isinstance(node, ast.Name) and node.id.startswith(PREFIX):
        return node.id[len(PREFIX) :]
    return None


@cache
def compile_pattern(text: str, symbol: str, method: bool) -> Pattern | None:
    """Read a pattern for a symbol; None if the symbol is not in it.

    As a method the symbol is an attribute of an expression that is not a plain name: `$x.svd()[2]` for
    `torch.Tensor.svd`, `(1 + $x).log()` for `torch.Tensor.log`.
    Raises ValueError if the pattern is not an expression.
    """
    try:
        root = ast.parse(mark(text).strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"not a pattern: {text}") from error
    last = symbol.rpartition(".")[2]
    stack: list[tuple[ast.AST, int]] = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, (ast.Attribute, ast.Name)):
            as_method = isinstance(node, ast.Attribute) and node.attr == last and dotted(node) is None
            if as_method if method else dotted(node) == symbol:
                return Pattern(root, node, depth)
        stack.extend((child, depth + 1) for child in reversed(list(children(node))))
    return None


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` of a chain of plain names; None for anything else and for metavariables."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or metavariable(node):
        return None
    return ".".join([node.id, *reversed(parts)])


def match_pattern(text: str, symbol: str, place: MatchContext) -> tuple[ast.expr, Captures] | None:
    """The expression around the use that a pattern matches, and what its metavariables stand for.

    Everything that `$_` stands for is a list under `_`.
    """
    use = place.use
    pattern = compile_pattern(text, symbol, use.method)
    if pattern is None:
        return None
    root: ast.AST = use.node
    for _ in range(pattern.depth):
        outer = place.parents(root)
        if outer is None:
            return None
        root = outer
    if not isinstance(root, ast.expr) or not isinstance(getattr(root, "ctx", ast.Load()), ast.Load):
        return None
    captures: Captures = {}
    matcher = _Matcher(pattern, use, place, captures)
    return (root, captures) if matcher.match(pattern.root, root) else None


class _Matcher:
    def __init__(self, pattern: Pattern, use: Use, place: MatchContext, captures: Captures) -> None:
        self.pattern = pattern
        self.use = use
        self.place = place
        self.captures = captures

    def match(self, wanted: object, found: object) -> bool:
        """Whether a part of the file is what a part of the pattern asks for."""
        if wanted is self.pattern.head:
            if found is not self.use.node:
                return False
            if self.use.method and isinstance(wanted, ast.Attribute) and isinstance(found, ast.Attribute):
                return self.match(wanted.value, found.value)
            return True
        name = metavariable(wanted)
        if name is not None:
            return _is_value(found) and self.capture(name, found)
        if isinstance(wanted, (ast.Attribute, ast.Name)):
            qualified = dotted(wanted)
            if qualified is not None and isinstance(wanted, ast.Attribute):
                return isinstance(found, ast.expr) and self.place.qualified(found) == qualified
        if isinstance(wanted, ast.Call):
            return isinstance(found, ast.Call) and self._calls(wanted, found)
        if isinstance(wanted, ast.Constant):
            return (
                isinstance(found, ast.Constant)
                and type(wanted.value) is type(found.value)
                and wanted.value == found.value
            )
        if isinstance(wanted, ast.AST):
            if type(wanted) is not type(found):
                return False
            fields = [name for name in wanted._fields if name not in ("ctx", "kind")]
            return all(self.match(getattr(wanted, name), getattr(found, name)) for name in fields)
        if isinstance(wanted, list):
            return isinstance(found, list) and self._sequence(wanted, found)
        return wanted == found

    def capture(self, name: str, found: ast.expr | list[ast.AST]) -> bool:
        """Let a metavariable stand for something; it must be the same everywhere."""
        if name == "_":
            ignored = self.captures.setdefault(name, [])
            if isinstance(ignored, list):
                ignored += found if isinstance(found, list) else [found]
            return True
        if name in self.captures:
            return _code(self.captures[name]) == _code(found)
        self.captures[name] = found
        return True

    def _sequence(self, wanted: list[object], found: Sequence[object]) -> bool:
        """A list of expressions; one of them may be `*$xs`, which stands for any number."""
        rest = next((i for i, item in enumerate(wanted) if _starred(item)), None)
        if rest is None:
            return len(wanted) == len(found) and all(map(self.match, wanted, found))
        after = len(wanted) - rest - 1
        if len(found) < rest + after:
            return False
        end = len(found) - after
        name = _starred(wanted[rest])
        middle = [item for item in found[rest:end] if isinstance(item, ast.AST)]
        return (
            all(map(self.match, wanted[:rest], found[:rest]))
            and name is not None
            and self.capture(name, middle)
            and all(map(self.match, wanted[rest + 1 :], found[end:]))
        )

    def _calls(self, wanted: ast.Call, found: ast.Call) -> bool:
        if not self.match(wanted.func, found.func) or not self._sequence(list(wanted.args), found.args):
            return False
        left = {id(keyword): keyword for keyword in found.keywords}
        rest = None
        for keyword in wanted.keywords:
            if keyword.arg is None:
                rest = metavariable(keyword.value)
                if rest is not None:
                    continue
            given = next((item for item in left.values() if item.arg == keyword.arg), None)
            if given is None or not self.match(keyword.value, given.value):
                return False
            del left[id(given)]
        return self.capture(rest, list(left.values())) if rest is not None else not left


def _is_value(node: object) -> TypeGuard[ast.expr]:
    return isinstance(node, ast.expr) and not isinstance(node, ast.Starred)


def _starred(node: object) -> str | None:
    return metavariable(node.value) if isinstance(node, ast.Starred) else None


def _code(found: ast.expr | list[ast.AST]) -> object:
    """What is compared where a metavariable stands twice."""
    if isinstance(found, list):
        return [ast.dump(item) for item in found]
    return ast.dump(found)
