"""TM029, TM030, TM031 and TM215: uint8 masks, where they are used and where they are made.

The fix makes the mask a bool tensor where that gives the same mask and no other use of it is in sight;
elsewhere it adds `.bool()` to the use. There is no fix in TorchScript, whose tensors have no `bool`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, safety
from torchmigrate.codemods.base.functions import is_scripted
from torchmigrate.findings import Edit, Finding, Fix, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import renamed, replaced_around
from torchmigrate.semantics.facts.dtypes import NUMBER, TENSOR, ValueFacts
from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.versions.range import applicability

_MOST = 64  # places that a mask goes to
_UINT8 = "uint8"
_A_MASK, _A_TENSOR, _A_NUMBER = frozenset([_UINT8]), frozenset([TENSOR]), frozenset([NUMBER])
_MASKED = frozenset("masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select".split())
# Methods whose result has the elements of their tensor.
_KEEP = frozenset(
    "view reshape unsqueeze squeeze t transpose permute expand expand_as repeat contiguous clone detach cpu "
    "cuda flatten index_select narrow flip roll view_as unsqueeze_ squeeze_ t_ transpose_ pin_memory".split()
)
_TRIANGLES = frozenset(["tril", "triu"])
_DESCRIBED = frozenset("shape device is_cuda ndim size dim numel ndimension nelement bool".split())
# Factories of nothing but zeros and ones.
_BINARY = frozenset("zeros ones eye zeros_like ones_like new_zeros new_ones".split())
_TRUTH = frozenset("eq ne lt gt le ge isnan isinf isfinite logical_and logical_or logical_not".split())
_OF_MASKS = ("byte", "uint8", "ByteTensor")  # one of these is in a file that makes a mask of uint8
_IN_SCRIPT = because("tensors of TorchScript have no method `bool`; use `.to(torch.bool)`")
_NUMBERS = (ast.Lt, ast.Gt, ast.LtE, ast.GtE, ast.Eq, ast.NotEq)
_Def = (ast.FunctionDef, ast.AsyncFunctionDef)


class _Use(Struct, frozen=True):
    """A use of a mask as a finding, which has the fix of the use."""

    finding: Finding
    mask: ast.expr
    hit: RuleMatch | None = None


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every use of a uint8 mask, or one for all uses of a mask that is made a bool tensor."""
    masks = file.once(_Masks, lambda: _Masks(file))
    together: dict[tuple[ast.Call, ...], list[_Use]] = {}
    for use in (*_called(hits, file), *_indexed(rule, file)):
        origins = masks.origins(use.mask)
        if use.finding.fix is not None and is_scripted(use.mask, file):
            use = replace(use, finding=replace(use.finding, fix=None, help=None, blocked_by=_IN_SCRIPT))
        if use.finding.fix is not None and origins and all(map(masks.may_change, origins)):
            together.setdefault(tuple(origins), []).append(use)
            continue
        yield _with_places(use.finding, [file.source.span(item) for item in origins], file)
    for made, uses in together.items():
        edits = [edit for item in made if (edit := masks.edit(item)) is not None]
        level, reasons = applicability(rule.cases[0], rule, file.versions)
        fixes = [use.finding.fix for use in uses if use.finding.fix is not None]
        worst = min(fixes, key=lambda fix: fix.applicability)
        if worst.applicability < level:
            level, reasons = worst.applicability, worst.held_by
        fix = file.fixes.fix(rule, "Make it a bool mask", level, reasons, edits)
        first, *others = sorted((_refixed(use, fix, file) for use in uses), key=lambda item: item.start)
        places = [(item.start, item.end) for item in others]
        yield _with_places(first, [*places, *(file.source.span(item) for item in made)], file)


def _refixed(use: _Use, fix: Fix, file: FileContext) -> Finding:
    return file.fixes.finding(use.hit, fix) if use.hit is not None else replace(use.finding, fix=fix)


def _with_places(finding: Finding, places: list[tuple[int, int]], file: FileContext) -> Finding:
    """A finding with those of some places that are on other lines."""
    line = file.source.position(finding.start)[0]
    others = {place for place in places if file.source.position(place[0])[0] != line}
    return replace(finding, places=tuple(sorted({*finding.places, *others})))


# ---- uses ----------------------------------------------------------------------------------------------


def _called(hits: Sequence[RuleMatch], file: FileContext) -> Iterator[_Use]:
    """The calls that take a mask."""
    # `torch.Tensor.__getitem__` by its name says nothing of what it is given.
    for hit in hits:
        if hit.symbol.endswith("__"):
            continue
        mask = _mask_of(hit.use.call) if hit.use.call is not None else None
        for finding in file.fixes.findings([hit]):
            yield _Use(finding, mask if mask is not None else ast.Constant(None), hit)


def _mask_of(call: ast.Call) -> ast.expr | None:
    """The mask, or condition, of a call of a function or a method."""
    given = next((item.value for item in call.keywords if item.arg in ("mask", "condition")), None)
    if given is not None or not call.args or any(isinstance(item, ast.Starred) for item in call.args):
        return given
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name == "where":
        return call.args[0]
    is_function = isinstance(call.func, ast.Name) or len(call.args) > (1 if name == "masked_select" else 2)
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        is_function = is_function or call.func.value.id == "torch"
    return call.args[1] if is_function and len(call.args) > 1 else call.args[0]


def _indexed(rule: Rule, file: FileContext) -> Iterator[_Use]:
    """The subscripts whose index is a uint8 mask, for the two rules about those."""
    if not any(symbol.endswith("__") for symbol in rule.symbols):
        return
    if not file.names.seen and not any(word in file.source.text for word in _OF_MASKS):
        return
    kinds = file.once(ValueFacts, lambda: ValueFacts(file.names, file.around))
    for node, _, fstring in file.names.operations:
        if not isinstance(node, ast.Subscript) or fstring is not None:
            continue
        if isinstance(node.value, (ast.Dict, ast.Constant, ast.List)):
            continue
        for index in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(index, (ast.Slice, ast.Constant)) or _UINT8 not in kinds.of_operand(index, _A_MASK):
                continue
            seen = _UINT8 not in kinds.of(index, _A_MASK)
            if _takes_number(node, kinds, file) is not ("torch.Tensor.__getitem__" not in rule.symbols):
                continue
            if file.runs_elsewhere(node):
                break
            fix = None
            # Anything but a tensor may make more of an index, and other calls may give another index.
            sure = TENSOR in kinds.of(node.value, _A_TENSOR) and kinds.dtype(index) == _UINT8
            if seen or sure:
                level, reason = safety(rule, file, seen=seen)
                edits = replaced_around(file.source, index, code("$index.bool()", index=index), index)
                fix = file.fixes.fix(rule, "Add `.bool()`", level, reason, edits)
            method = "__getitem__" if isinstance(node.ctx, ast.Load) else "__setitem__"
            span = file.source.span(index)
            yield _Use(
                finding_at(rule, file, span, symbol=f"torch.Tensor.{method}", fix=fix, seen=seen), index
            )


def _takes_number(node: ast.Subscript, kinds: ValueFacts, file: FileContext) -> bool:
    """Whether it is the `x[mask]` of `x[mask] = 0`, which is done by `masked_fill_`."""
    statement = file.names.parents.get(node)
    if not isinstance(node.ctx, ast.Store) or not isinstance(statement, ast.Assign):
        return False
    return NUMBER in kinds.of(statement.value, _A_NUMBER) or _is_made_number(statement.value)


def _is_made_number(node: ast.expr) -> bool:
    """Whether it is a call such as `float("-inf")`."""
    if isinstance(node, ast.UnaryOp):
        return _is_made_number(node.operand)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("float", "int")


# ---- where masks are made ------------------------------------------------------------------------------


class _Masks:
    """The uint8 tensors of one file: where they are made, and whether they may be bool tensors."""

    def __init__(self, file: FileContext) -> None:
        self._file = file
        self._flow = file.flow
        self._forward = Forward(file.flow)
        self._parents = file.names.parents
        self._kinds = file.once(ValueFacts, lambda: ValueFacts(file.names, file.around))
        self._may_change: dict[ast.AST, bool] = {}

    def origins(self, mask: ast.expr) -> list[ast.Call]:
        """The calls that make a mask uint8; none where one of them is not known."""
        found: list[ast.Call] = []
        todo: list[ast.AST] = [mask]
        for node in todo:
            for step in self._flow.origins(node):
                made = step.node
                if made is None:
                    if not step.open:
                        return []
                elif isinstance(made, ast.Call) and self._kinds.made(made) == _UINT8:
                    if made not in found:
                        found.append(made)
                elif isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
                    inner = made.func.value
                    if made.func.attr not in _KEEP or inner in todo or len(todo) > _MOST:
                        return []
                    todo.append(inner)
                elif isinstance(made, ast.Subscript):
                    todo.append(made.value)
                elif step.path or not (isinstance(made, ast.Constant) and made.value is None):
                    return []
        return sorted(found, key=lambda call: (call.lineno, call.col_offset))

    def may_change(self, origin: ast.Call) -> bool:
        """Whether a mask may be made as a bool tensor: its elements stay, and it is nothing but a mask."""
        known = self._may_change.get(origin)
        if known is None:
            known = self._may_change[origin] = (
                self.edit(origin) is not None and self._is_exact(origin) and self._is_only_mask(origin)
            )
        return known

    def edit(self, origin: ast.Call) -> Edit | None:
        """The edit that makes a bool tensor; None where the code is written otherwise."""
        source, function = self._file.source, origin.func
        if self._flow.index.in_fstring(origin) or not isinstance(function, ast.Attribute):
            return None
        if function.attr == "byte":
            return renamed(source, function, "byte", "bool")
        if function.attr == "ByteTensor":
            return renamed(source, function, "ByteTensor", "BoolTensor")
        given = [item.value for item in origin.keywords if item.arg == "dtype"]
        if not given and function.attr in ("to", "type") and len(origin.args) == 1:
            given = origin.args
        if len(given) != 1 or not isinstance(given[0], ast.Attribute):
            return None
        if given[0].attr == "ByteTensor":
            return renamed(source, given[0], "ByteTensor", "BoolTensor")
        return renamed(source, given[0], _UINT8, "bool")

    def _is_exact(self, origin: ast.Call) -> bool:
        """Whether the elements that are not zero stay the same: 0.5 and 256 are zero as uint8."""
        function = origin.func
        assert isinstance(function, ast.Attribute), "there is an edit"
        if function.attr in ("byte", "to", "type"):
            return self._is_binary(function.value)
        if any(isinstance(item, ast.Starred) for item in origin.args):
            return False
        if function.attr == "ByteTensor":  # of sizes, or of elements
            return len(origin.args) != 1 or _is_of_bytes(origin.args[0])
        if function.attr == "tensor":
            return bool(origin.args) and _is_of_bytes(origin.args[0])
        return function.attr in _BINARY

    def _is_binary(self, node: ast.AST) -> bool:
        """Whether an expression is a tensor of nothing but zeros and ones, or truth values."""
        while isinstance(node, ast.Call):
            name = self._file.names.qualified(node.func) or ""
            last = name.rpartition(".")[2] or getattr(node.func, "attr", "")
            if last in _TRUTH or (last in _BINARY and name):
                return True
            of_argument = name == f"torch.{last}" and node.args
            if last not in _TRIANGLES and (last not in _KEEP or of_argument):
                break
            inner = node.args[0] if of_argument else getattr(node.func, "value", None)
            if inner is None:
                return False
            node = inner
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self._is_compared(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            return self._is_compared(node.left) and self._is_compared(node.right)
        return self._is_compared(node)

    def _is_compared(self, node: ast.AST) -> bool:
        """Whether an expression is a bool tensor: a comparison, or one by what the file says."""
        found = self._flow.origins(node)
        if found and all(_gives_truth(step.node) and not step.path for step in found):
            return True
        return isinstance(node, ast.expr) and self._kinds.dtype(node) == "bool"

    # ---- where masks go ------------------------------------------------------------------------------

    def _is_only_mask(self, origin: ast.expr) -> bool:
        seen: list[ast.AST] = [origin]
        for place in seen:
            further = self._uses(place)
            if further is None or len(seen) > _MOST:
                return False
            seen += [use for use in further if use not in seen]
        return True

    def _uses(self, place: ast.AST) -> list[ast.AST] | None:
        """Where a mask goes on; None for what is done to no mask, or is not followed."""
        outer = self._parents.get(place)
        if isinstance(outer, (ast.Expr, ast.Delete)):
            return []
        if isinstance(outer, ast.Assign):
            return self._assigned(place, outer)
        if isinstance(outer, ast.Attribute):
            return self._of_attribute(outer)
        if isinstance(outer, ast.Subscript) and outer.value is place:
            return self._of_item(outer)
        if isinstance(outer, ast.IfExp) and outer.test is not place:
            return [outer]
        if isinstance(outer, ast.Compare):
            return [] if self._is_test(outer, place) else None
        if isinstance(outer, ast.Return):
            function = self._flow.index.home_of(outer)
            calls, closed = self._flow.calls_of(function) if isinstance(function, _Def) else ([], False)
            return [call for call, _ in calls] if closed else None
        if isinstance(outer, ast.keyword):
            outer = self._parents.get(outer)
        if isinstance(outer, ast.Call) and outer.func is not place:
            return [] if _takes_mask(outer) and _mask_of(outer) is place else None
        return [] if self._is_index(place, outer) else None

    def _assigned(self, place: ast.AST, statement: ast.Assign) -> list[ast.AST] | None:
        index = self._flow.index
        for target in statement.targets:
            if not isinstance(target, ast.Name):
                return None
            home = index.home_of(target)
            scope = index.scope_at(home)
            if isinstance(home, ast.ClassDef) or target.id in (*scope.globals, *scope.nonlocals):
                return None
            if home is None and any(map(self._file.exports.takes, scope.bindings[target.id])):
                return None
            for name in index.named(target.id):
                if not index.binds(name, home):
                    continue
                if isinstance(self._parents.get(name), ast.AugAssign):
                    return None
                if index.home_of(name) is not home and len(scope.bindings[target.id]) != 1:
                    return None
        return list(self._forward.of(place))

    def _of_attribute(self, attribute: ast.Attribute) -> list[ast.AST] | None:
        call = self._parents.get(attribute)
        if attribute.attr in _DESCRIBED:
            return []
        if not isinstance(call, ast.Call) or call.func is not attribute:
            return None
        if attribute.attr in _MASKED or attribute.attr == "where":
            return None  # what is masked by another
        if attribute.attr in ("eq", "ne"):
            return [] if len(call.args) == 1 and _is_zero(call.args[0]) else None
        if attribute.attr == "zero_" or (
            attribute.attr == "fill_" and len(call.args) == 1 and _is_of_bytes(call.args[0])
        ):
            return [call]
        return [call] if attribute.attr in _KEEP else None

    def _of_item(self, item: ast.Subscript) -> list[ast.AST] | None:
        if isinstance(item.ctx, ast.Load):
            return [item]
        statement = self._parents.get(item)
        return [] if isinstance(statement, ast.Assign) and _is_of_bytes(statement.value) else None

    def _is_test(self, node: ast.Compare, place: ast.AST) -> bool:
        """Whether it is `mask is None`, or `mask == 0`, which holds for bool and for uint8 masks alike."""
        if len(node.ops) != 1 or node.left is not place:
            return False
        operator = node.ops[0]
        if isinstance(operator, (ast.Is, ast.IsNot)):
            return True
        return isinstance(operator, (ast.Eq, ast.NotEq)) and _is_zero(node.comparators[0])

    def _is_index(self, place: ast.AST, outer: ast.AST | None) -> bool:
        if isinstance(outer, ast.Tuple):
            place, outer = outer, self._parents.get(outer)
        if not isinstance(outer, ast.Subscript) or outer.slice is not place:
            return False
        return TENSOR in self._kinds.of(outer.value, _A_TENSOR)


def _gives_truth(node: ast.AST | None) -> bool:
    if isinstance(node, ast.Call):
        return getattr(node.func, "attr", "") in _TRUTH
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], _NUMBERS)


def _takes_mask(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name in _MASKED or (name == "where" and len(call.args) + len(call.keywords) > 1)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0


def _is_of_bytes(node: ast.expr) -> bool:
    """Whether an expression is a number from 0 to 255, a truth value, or lists of such."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(map(_is_of_bytes, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and 0 <= node.value < 256
