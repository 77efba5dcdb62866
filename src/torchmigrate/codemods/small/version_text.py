"""TM091: releases that are compared as text, as floats or by their first characters."""

from __future__ import annotations

import ast
import operator
import re
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
from torchmigrate.versions.releases import ABSENT, RELEASES, companion, show_version

_VERSION = "torch.__version__"  # which compares as a version itself, since torch 1.10
_LIBRARIES = ("torch", "torchvision", "torchaudio")
_NAMES = {
    f"{library}.{name}": library for library in _LIBRARIES for name in ("__version__", "version.__version__")
}
_READS = frozenset(
    ["importlib.metadata.version", "importlib_metadata.version", "pkg_resources.get_distribution"]
)
_MATCHES = frozenset(["re.match", "re.search"])
_MOST = 32  # places that a version goes to, and steps that are taken to compute one
_METHODS = frozenset(["split", "rsplit", "partition", "strip", "rstrip", "lstrip", "replace"])
_CONVERSIONS: dict[str, Callable[[Any], object]] = {
    "str": str,
    "float": float,
    "int": int,
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
    seen: set[ast.expr] = set()
    for version, name, library in _versions(file):
        for test, side in _tests(version, file):
            compares = isinstance(test, ast.Compare)  # as a version, if it is `torch.__version__` itself
            if test in seen or (side is version and name == _VERSION and compares):
                continue
            seen.add(test)
            try:
                wrong = _wrong_releases(test, side, version, library, file)
            except _Unclear:
                continue
            if not wrong:
                continue
            at_target = wrong[-1] == file.target(library)
            since = show_version(wrong[0])
            one = replace(rule, library=library)
            one = replace(one, changed=since) if at_target else replace(one, changed=None, outdated=since)
            fix = None
            if name == _VERSION and isinstance(test, ast.Compare):
                fix = _fix(one, test, side, version, file)
            yield finding_at(one, file, file.source.span(test), symbol=name, fix=fix)


def _versions(file: FileContext) -> Iterator[tuple[ast.expr, str, str]]:
    """The places where the file reads the version of a library, each with its name and the library."""
    nodes: list[ast.expr] = [node for node in file.names.nodes(ast.Attribute) if node.attr == "__version__"]
    bound = {item.asname or item.name for item in file.names.nodes(ast.alias) if item.name == "__version__"}
    for node in (*nodes, *(name for each in bound for name in file.flow.index.named(each))):
        outer = file.names.parents.get(node)  # `torch.__version__.split` is one name
        known = ((outer and file.names.qualified(outer)) or "").rpartition(".")[0]
        name = file.names.qualified(node) or known
        if name in _NAMES and not file.flow.index.in_fstring(node):
            yield node, name, _NAMES[name]
    for call in file.names.nodes(ast.Call):
        of = call.args[0].value if len(call.args) == 1 and isinstance(call.args[0], ast.Constant) else None
        if of not in _LIBRARIES or (called := file.flow.imported(call.func)) not in _READS:
            continue
        outer = file.names.parents.get(call)
        if not called.endswith("get_distribution"):
            yield call, f"{of}.__version__ ", str(of)
        elif isinstance(outer, ast.Attribute) and outer.attr == "version":
            yield outer, f"{of}.__version__ ", str(of)


def _tests(version: ast.AST, file: FileContext) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The tests of a version, or of what is made of it, each with the expression that is tested."""
    parents, forward = file.names.parents, Forward(file.flow)
    seen: list[ast.AST] = [version]
    for place in seen:
        outer = parents.get(place)
        further: list[ast.AST] = [*forward.of(place)]
        if isinstance(outer, ast.Compare) and isinstance(place, ast.expr) and len(outer.ops) == 1:
            yield outer, place
        if isinstance(outer, ast.Attribute):
            call = parents.get(outer)
            if outer.attr == "startswith" and isinstance(call, ast.Call) and isinstance(place, ast.expr):
                yield call, place
            if outer.attr in (*_METHODS, "group") and call is not None:
                further.append(call)
        if isinstance(outer, ast.Call) and outer.func is not place and len(outer.args) in (1, 2):
            further.append(outer)
        if isinstance(outer, ast.Subscript) and outer.value is place:
            further.append(outer)
        if isinstance(outer, ast.Starred):
            further += [item for item in [parents.get(outer)] if isinstance(item, ast.List)]
        if len(seen) < _MOST:
            seen += [use for use in further if use not in seen]


def _wrong_releases(
    test: ast.expr, side: ast.expr, version: ast.AST, library: str, file: FileContext
) -> list[tuple[int, ...]]:
    """The releases from the minimum to the target for which a test is wrong, the oldest first."""
    target, minimum = file.versions.of(library)
    found: list[tuple[int, ...]] = []
    for release in dict.fromkeys(companion(library, each) for each in RELEASES):
        if release <= ABSENT or release > target or (minimum is not None and release < minimum):
            continue
        value = _Values(version, f"{show_version(release)}.0", file)
        right = _is_right(test, side, release, value)
        if not right and not (found and found[-1] >= release):
            found.append(release)
    return found


def _is_right(test: ast.expr, side: ast.expr, release: tuple[int, ...], value: _Values) -> bool:
    """Whether a test of a release gives what the comparison of the numbers gives."""
    if isinstance(test, ast.Call):
        prefix = _constant(test.args[0]) if len(test.args) == 1 and not test.keywords else None
        start = literal_value(prefix)
        if not isinstance(prefix, str) or start is None:
            raise _Unclear
        fits = (*release, 0)[: len(start.release)] == start.release
        return str(value.of(side)).startswith(prefix) == fits
    if not isinstance(test, ast.Compare):
        raise _Unclear
    other, kind = test.comparators[0], type(test.ops[0])
    if other is side:
        other, kind = test.left, _MIRRORED.get(kind, kind)
    compares = _OPERATORS.get(kind)
    wanted = _constant(other)
    written = literal_value(tuple(wanted) if isinstance(wanted, list) else wanted)
    if compares is None or written is None or written.pre:
        raise _Unclear
    numbers = written.release
    result = value.of(side)
    if isinstance(wanted, int) and _Values(value.version, "7.31.5", value.file).of(side) not in (7, 7.31, 31):
        raise _Unclear  # a digit, which is tested together with the first one
    try:
        found = compares(result, wanted)
    except TypeError as error:
        raise _Unclear from error
    whole = (*release, 0)[: max(3, len(numbers))]
    if len(numbers) == 1:
        whole = _component(side, value)(whole)
    padded = (*numbers, 0, 0)[: len(whole)]
    return found in (compares(whole, padded), compares(whole[: len(numbers)], numbers))


def _component(side: ast.expr, value: _Values) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """Which part of a release an expression gives: the major or minor number, or all."""
    first = _Values(value.version, "7.3.5", value.file).of(side)
    if str(first) in ("7", "7.3", "7.3.5"):
        return lambda whole: whole
    if str(first) == "3":
        return lambda whole: whole[1:2]
    raise _Unclear


class _Values:
    """What expressions give for a release, whose `__version__` is `text`."""

    def __init__(self, version: ast.AST, text: str, file: FileContext) -> None:
        self.version = version
        self.file = file
        self._text = text
        self._steps = 0

    def of(self, node: ast.AST) -> object:
        """The value of an expression.

        Raises:
            _Unclear: it is not known.
        """
        self._steps += 1
        if node is self.version:
            return self._text
        if self._steps > _MOST:
            raise _Unclear
        try:
            if isinstance(node, ast.Subscript):
                return self.of(node.value)[_index(node.slice)]  # type: ignore[index]
            if isinstance(node, ast.List) and len(node.elts) == 1 and isinstance(node.elts[0], ast.Starred):
                return [*self.of(node.elts[0].value)]  # type: ignore[misc]
            if isinstance(node, ast.Call) and not node.keywords:
                return self._called(node)
        except (IndexError, TypeError, ValueError, re.error) as error:
            raise _Unclear from error
        return self._traced(node)

    def _called(self, node: ast.Call) -> object:
        function = node.func
        if isinstance(function, ast.Attribute):
            if function.attr == "join" and len(node.args) == 1:
                return str(_constant(function.value)).join(self.of(node.args[0]))  # type: ignore[arg-type]
            if function.attr in _METHODS:
                of = self.of(function.value)
                return getattr(of, function.attr)(*map(_constant, node.args)) if isinstance(of, str) else of
            if function.attr == "group" and isinstance(function.value, ast.Call):
                return self._matched(function.value, [_constant(item) for item in node.args])
        name = self.file.flow.builtin(function)
        if name in _CONVERSIONS and len(node.args) == 1:
            return _CONVERSIONS[name](self.of(node.args[0]))
        return self._traced(node)

    def _matched(self, call: ast.Call, groups: list[object]) -> object:
        """What `re.match(pattern, version).group(...)` gives."""
        if self.file.flow.imported(call.func) not in _MATCHES or len(call.args) != 2 or len(groups) > 1:
            raise _Unclear
        text = self.of(call.args[1])
        pattern = _constant(call.args[0])
        if not isinstance(text, str) or not isinstance(pattern, str) or len(pattern) > _MOST:
            raise _Unclear
        found = getattr(re, getattr(call.func, "attr", getattr(call.func, "id", "")))(pattern, text)
        if found is None:
            raise _Unclear
        return found.group(*groups)

    def _traced(self, node: ast.AST) -> object:
        """The value of what an expression comes from, which may be several that are equal."""
        steps = self.file.flow.sources(node) if isinstance(node, (ast.Name, ast.Attribute, ast.Call)) else ()
        if not steps or any(step.node is None or step.path for step in steps):
            raise _Unclear
        values = [self.of(step.node) for step in steps if step.node is not None]
        if any(value != values[0] for value in values):
            raise _Unclear
        return values[0]


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
