"""TM128 and TM133: quotients of integers that are used as integers.

TM128 is about uses that raise an error: an index, a bound of a slice, a size, an embedding, an integer `out`.
TM133 is about quotients that are converted to integers, or computed together with the remainder.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import has_comment, replaced
from torchmigrate.semantics.facts.dtypes import INTEGER, INTEGERS, TENSOR, ValueFacts, is_whole
from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.semantics.flow.steps import Step

_MOST = 64  # places that a quotient goes to, or comes from
_RAISES, _CAST = "raises", "cast"
_CASTS = frozenset("long int short char byte".split())
_SIZES = frozenset("view reshape repeat expand".split())
_FACTORIES = frozenset(f"torch.{name}" for name in "zeros ones empty rand randn".split())
_EMBEDDINGS = frozenset(["torch.nn.Embedding", "torch.nn.EmbeddingBag"])
_LOOKUPS = frozenset(["torch.nn.functional.embedding", "torch.nn.functional.one_hot"])
# Methods and functions of torch that take an index after the dimension.
_INDEXED = frozenset("index_select gather scatter scatter_ index_add_ index_copy_ index_fill_".split())
_KEEP = frozenset(
    "view reshape unsqueeze squeeze expand repeat contiguous clone detach cuda cpu flatten t".split()
)
_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every division whose quotient is used as an integer."""
    quotients = file.once(_Quotients, lambda: _Quotients(file))
    wanted = _RAISES if rule.name == "divided-index" else _CAST
    for node, _, fstring in file.names.operations:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or fstring is not None:
            continue
        if isinstance(node.left, ast.Constant) or quotients.used_as(node) != wanted:
            continue
        if file.runs_elsewhere(node):
            continue
        fix = None
        if not has_comment(file.source, node):
            new = code("$left // $right", left=node.left, right=node.right)
            fix = fix_by(rule, file, "Replace with `//`", replaced(file.source, node, new))
        span, seen = file.source.span(node), quotients.is_seen(node)
        yield finding_at(rule, file, span, symbol="torch.Tensor.__truediv__", fix=fix, seen=seen)
    for hit in hits:
        if hit.use.call is not None and wanted == _RAISES and quotients.is_given_integers(hit.use.call):
            yield file.fixes.finding(hit, None)


def _sides(node: ast.BinOp) -> tuple[str, str]:
    return ast.dump(node.left), ast.dump(node.right)


class _Quotients:
    """The quotients of one file."""

    def __init__(self, file: FileContext) -> None:
        self._file = file
        self._flow = file.flow
        self._forward = Forward(file.flow)
        self._kinds = file.once(ValueFacts, lambda: ValueFacts(file.names, file.around))
        self._used: dict[ast.BinOp, str] = {}

    def used_as(self, node: ast.BinOp) -> str:
        """How the quotient of integers is used; empty for other quotients, and other uses."""
        known = self._used.get(node)
        if known is None:
            known = ""
            if self._is_integer(node.left, node):
                uses = self._uses(node)
                if self._has_remainder(node) and _RAISES not in uses:
                    known = _CAST
                if _RAISES in uses or (_CAST in uses and self._is_integer(node.right, node, number=True)):
                    known = _RAISES if _RAISES in uses else _CAST
            self._used[node] = known
        return known

    def _has_remainder(self, node: ast.BinOp) -> bool:
        """Whether the function computes the remainder of the same division, as for a row and a column."""
        sides = _sides(node)
        return any(
            isinstance(other.op, ast.Mod) and _sides(other) == sides
            for other in self._file.names.nodes(ast.BinOp)
        )

    def is_given_integers(self, call: ast.Call) -> bool:
        """Whether a call of `div` writes the quotient of integers to a tensor of integers."""
        given = {item.arg: item.value for item in call.keywords}
        out = given.get("out")
        if out is None or None in given or "rounding_mode" in given:
            return False
        first = call.args[0] if call.args else given.get("input")
        if first is None or isinstance(first, ast.Starred):
            return False
        return INTEGER in self._of(first) and INTEGER in self._of(out)

    def _of(self, node: ast.expr, kind: str = INTEGER) -> frozenset[str]:
        return self._kinds.of_operand(node, frozenset([kind]))

    def is_seen(self, node: ast.BinOp) -> bool:
        """Whether only a recording shows that the left operand is a tensor of integers."""
        wanted = frozenset([INTEGER])
        return INTEGER in self._kinds.seen(node.left) and INTEGER not in self._kinds.of(node.left, wanted)

    def _is_integer(
        self,
        node: ast.AST | None,
        quotient: ast.BinOp,
        *,
        number: bool = False,
        seen: set[ast.AST] | None = None,
    ) -> bool:
        """Whether an expression is a tensor of integers, but for what comes from the quotient in a loop.

        number: an integer of Python will do as well. seen: what is looked at already.
        """
        seen = {quotient} if seen is None else seen
        if node in seen or len(seen) > _MOST:
            return node is quotient
        if not isinstance(node, ast.expr):
            return False
        seen.add(node)
        if INTEGER in self._of(node) or (number and is_whole(node)):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, _WHOLE):
            sides = (node.left, node.right), (node.right, node.left)
            return any(
                self._is_integer(one, quotient, number=number, seen=seen)
                and self._is_integer(other, quotient, number=True, seen=seen)
                for one, other in sides
            )
        if not isinstance(node, ast.Name):
            return False
        # In a loop, one of them comes from the quotient.
        steps = [step for step in self._flow.sources(node) if not self._holds(step.node, quotient)]
        return bool(steps) and all(
            not step.path and self._is_integer(step.node, quotient, number=number, seen=seen)
            for step in steps
        )

    def _holds(self, node: ast.AST | None, quotient: ast.BinOp) -> bool:
        """Whether an expression is made of the quotient by adding to it, or multiplying it."""
        while isinstance(node, ast.BinOp) and node is not quotient:
            node = node.left
        return node is quotient

    def _uses(self, quotient: ast.BinOp) -> set[str]:
        """How the quotient is used, wherever it goes."""
        parents = self._file.names.parents
        found: set[str] = set()
        seen: list[ast.AST] = [quotient]
        for place in seen:
            outer = parents.get(place)
            further = [*self._forward.of(place)]
            if isinstance(outer, ast.BinOp) and isinstance(outer.op, (ast.Add, ast.Sub, ast.Mult)):
                other = outer.right if outer.left is place else outer.left
                if is_whole(other) or INTEGER in self._of(other):
                    further.append(outer)
            call = parents.get(outer) if isinstance(outer, ast.Attribute) else None
            if isinstance(outer, ast.Attribute) and isinstance(call, ast.Call) and call.func is outer:
                if self._is_cast(call):
                    found.add(_CAST)
                elif outer.attr in _KEEP:
                    further.append(call)
            if self._raises(place):
                found.add(_RAISES)
            if len(seen) < _MOST:
                seen += [use for use in further if use not in seen]
        return found

    def _is_cast(self, call: ast.Call) -> bool:
        """Whether it is `.long()`, `.to(torch.int32)`."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name in _CASTS:
            return not call.args and not call.keywords
        return name in ("to", "type") and self._kinds.made(call) in INTEGERS

    def _raises(self, place: ast.AST) -> bool:
        """Whether only integers may stand at a place."""
        parents = self._file.names.parents
        outer = parents.get(place)
        index = place
        while isinstance(outer, (ast.Slice, ast.Tuple)):
            index, outer = outer, parents.get(outer)
        if isinstance(outer, ast.Subscript) and outer.slice is index:
            return not any(map(self._is_dict, self._flow.origins(outer.value)))
        call = parents.get(place)
        if isinstance(call, ast.keyword):
            keyword, call = call.arg, parents.get(call)
            return (
                isinstance(call, ast.Call)
                and keyword == "index"
                and getattr(call.func, "attr", "") in _INDEXED
            )
        if not isinstance(call, ast.Call) or place not in call.args:
            return False
        number = call.args.index(place)
        if any(isinstance(item, ast.Starred) for item in call.args):
            return False
        if self._flow.builtin(call.func) == "range":
            return True
        name = self._file.names.qualified(call.func) or ""
        if name in _FACTORIES:
            return True
        if name in _LOOKUPS:
            return number == 0
        if isinstance(call.func, ast.Attribute) and call.func.attr in (*_SIZES, *_INDEXED):
            if call.func.attr in _INDEXED:
                return number == (2 if name == f"torch.{call.func.attr}" else 1)
            return TENSOR in self._of(call.func.value, TENSOR)
        made = self._flow.origins(call.func)
        return (
            number == 0
            and bool(made)
            and all(
                isinstance(step.node, ast.Call)
                and not step.path
                and self._file.names.qualified(step.node.func) in _EMBEDDINGS
                for step in made
            )
        )

    def _is_dict(self, step: Step) -> bool:
        """Whether an origin is a dictionary, which may have any keys."""
        made = step.node
        if isinstance(made, ast.Call):
            name = getattr(made.func, "attr", getattr(made.func, "id", "")).lower()
            return "dict" in name or name == "counter"
        return isinstance(made, (ast.Dict, ast.DictComp))
