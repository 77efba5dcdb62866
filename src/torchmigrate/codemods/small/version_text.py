"""TM091: releases of torch that are compared as text, as floats or by their first characters."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced
from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.semantics.guards.version_values import literal_value
from torchmigrate.source.trees import walk
from torchmigrate.versions.releases import RELEASES, show_version

_TORCH = "torch"
_VERSION = f"{_TORCH}.__version__"  # which compares as a version itself, since torch 1.10
_MOST = 32  # places that a version goes to
_METHODS = frozenset(["split", "rsplit", "partition", "strip", "rstrip", "lstrip", "replace"])
_CONVERSIONS: dict[str, Callable[[Any], object]] = {
    "str": str,
    "float": float,
    "tuple": tuple,
    "list": list,
}
_OPERATORS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}


class _Unclear(Exception):
    """It is not known what an expression gives."""


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every comparison that is wrong for a release."""
    seen: set[ast.Compare] = set()
    for version, name in _versions(rule, file):
        for compare, side in _comparisons(version, file):
            if compare in seen or (side is version and name == _VERSION):
                continue
            seen.add(compare)
            try:
                wrong = _wrong_releases(compare, side, version, file)
            except _Unclear:
                continue
            if not wrong:
                continue
            at_target = wrong[-1] == file.target(_TORCH)
            since = show_version(wrong[0])
            one = replace(rule, changed=since) if at_target else replace(rule, changed=None, outdated=since)
            fix = _fix(one, compare, side, version, file) if name == _VERSION else None
            yield finding_at(one, file, file.source.span(compare), symbol=_VERSION, fix=fix)


def _versions(rule: Rule, file: FileContext) -> Iterator[tuple[ast.expr, str]]:
    """The places where the file reads the version of torch, each with its qualified name."""
    nodes: list[ast.expr] = [node for node in file.names.nodes(ast.Attribute) if node.attr == "__version__"]
    bound = {item.asname or item.name for item in file.names.nodes(ast.alias) if item.name == "__version__"}
    for node in (*nodes, *(name for each in bound for name in file.flow.index.named(each))):
        outer = file.names.parents.get(node)  # `torch.__version__.split` is one name
        known = ((outer and file.names.qualified(outer)) or "").rpartition(".")[0]
        name = file.names.qualified(node) or known
        if name in rule.symbols and not file.flow.index.in_fstring(node):
            yield node, name


def _comparisons(version: ast.AST, file: FileContext) -> Iterator[tuple[ast.Compare, ast.expr]]:
    """The comparisons of a version, or of what is made of it, each with the side that it is on."""
    parents, forward = file.names.parents, Forward(file.flow)
    seen: list[ast.AST] = [version]
    for place in seen:
        outer = parents.get(place)
        further: list[ast.AST] = [*forward.of(place)]
        if isinstance(outer, ast.Compare) and isinstance(place, ast.expr) and len(outer.ops) == 1:
            yield outer, place
        if isinstance(outer, ast.Attribute) and outer.attr in _METHODS:
            further.append(parents[outer])
        if isinstance(outer, ast.Call) and outer.func is not place and len(outer.args) == 1:
            further.append(outer)
        if isinstance(outer, ast.Subscript) and outer.value is place:
            further.append(outer)
        if len(seen) < _MOST:
            seen += [use for use in further if use not in seen]


def _wrong_releases(
    compare: ast.Compare, side: ast.expr, version: ast.AST, file: FileContext
) -> list[tuple[int, ...]]:
    """The releases from the minimum to the target for which a comparison is wrong, the oldest first."""
    other, kind = compare.comparators[0], type(compare.ops[0])
    if other is side:
        other, kind = compare.left, _MIRRORED.get(kind, kind)
    compares = _OPERATORS.get(kind)
    wanted = _constant(other)
    written = literal_value(tuple(wanted) if isinstance(wanted, list) else wanted)
    if compares is None or written is None or written.pre:
        raise _Unclear
    numbers = written.release
    target, minimum = file.versions.of(_TORCH)
    found = []
    for release in RELEASES:
        if release > target or (minimum is not None and release < minimum):
            continue
        text = f"{show_version(release)}.0"
        value = _value(side, version, text, file)
        try:
            result = compares(value, wanted)
        except TypeError as error:
            raise _Unclear from error
        whole = (*release, 0)[: max(3, len(numbers))]
        padded = (*numbers, 0, 0)[: len(whole)]
        if result not in (compares(whole, padded), compares(whole[: len(numbers)], numbers)):
            found.append(release)
    return found


def _value(node: ast.AST, version: ast.AST, text: str, file: FileContext) -> object:
    """What an expression gives for a release, whose `__version__` is `text`."""
    if node is version:
        return text
    if isinstance(node, ast.Name):
        steps = file.flow.sources(node)
        if len(steps) == 1 and steps[0].node is not None and not steps[0].path:
            return _value(steps[0].node, version, text, file)
        raise _Unclear
    try:
        if isinstance(node, ast.Subscript):
            return _value(node.value, version, text, file)[_index(node.slice)]  # type: ignore[index]
        if isinstance(node, ast.Call) and not node.keywords:
            function = node.func
            if isinstance(function, ast.Attribute) and function.attr == "join" and len(node.args) == 1:
                held = _value(node.args[0], version, text, file)
                return str(_constant(function.value)).join(held)  # type: ignore[arg-type]
            if isinstance(function, ast.Attribute) and function.attr in _METHODS:
                of = _value(function.value, version, text, file)
                if isinstance(of, str):
                    return getattr(of, function.attr)(*map(_constant, node.args))
            name = file.flow.builtin(function)
            if name in _CONVERSIONS and len(node.args) == 1:
                return _CONVERSIONS[name](_value(node.args[0], version, text, file))
    except (IndexError, TypeError, ValueError) as error:
        raise _Unclear from error
    raise _Unclear


def _index(node: ast.expr) -> object:
    if isinstance(node, ast.Slice):
        return slice(
            *(None if part is None else _constant(part) for part in (node.lower, node.upper, node.step))
        )
    return _constant(node)


def _constant(node: ast.expr) -> object:
    """The value of a literal."""
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise _Unclear from error


def _fix(
    rule: Rule, compare: ast.Compare, side: ast.expr, version: ast.expr, file: FileContext
) -> Fix | None:
    """The fix that compares `torch.__version__` itself.

    Its `>` and `<=` count 2.7.1 and 2.7.0+cpu as greater than 2.7, so that only `>=` and `<` mean the same.
    """
    other = compare.comparators[0]
    if compare.left is not side or not isinstance(compare.ops[0], (ast.GtE, ast.Lt)):
        return None
    if not isinstance(other, ast.Constant) or not any(node is version for node in walk(side)):
        return None  # it has a name
    wanted = other.value
    if not isinstance(wanted, (str, float)):
        return None
    if isinstance(wanted, float) and other.end_col_offset != other.col_offset + len(repr(wanted)):
        return None  # 1.10 is 1.1
    edits = [replaced(file.source, side, code("$version", version=version))]
    if not isinstance(wanted, str):
        edits.append(replaced(file.source, other, code("$release", release=repr(str(wanted)))))
    return fix_by(rule, file, "Compare `torch.__version__` itself", *edits)
