"""TM364: writes into one of several views that one function gives, such as a chunk of a layer's output."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.codemods.base.in_place import changed_by_call
from torchmigrate.codemods.small.leaves import FACTORIES, LAYER, LEAF, VIEW, Leaves
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced
from torchmigrate.semantics.flow.domain import OPEN, UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.steps import EACH, Path
from torchmigrate.semantics.flow.values import ValueFlow

_RECORDED, _VIEWS, _PART = "recorded", "views", "part"
_SPLITS = frozenset("chunk split unbind split_with_sizes tensor_split".split())
_KEEP = frozenset(
    "view reshape flatten squeeze unsqueeze permute transpose contiguous clone float relu tanh sigmoid exp "
    "cuda to cpu mul add sub div".split()
)  # whose result needs gradients if the tensor does
_NEW: dict[type[ast.operator], str] = {
    ast.Add: "$target = $target + $value",
    ast.Sub: "$target = $target - $value",
    ast.Mult: "$target = $target * $value",
    ast.Div: "$target = $target / $value",
}
_SWITCHES = ("no_grad", "set_grad_enabled", "inference_mode")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every write that is sure to raise while gradients are recorded."""
    if not file.names.called.isdisjoint(_SWITCHES) or _is_switched(file):
        return
    views = file.once(_Views, lambda: _Views(file.flow, Leaves(file.flow, file.facts)))
    for node in file.names.nodes(ast.AugAssign):
        target = node.target
        if not isinstance(target, ast.Name) or type(node.op) not in _NEW or not views.is_part(target):
            continue
        new = code(_NEW[type(node.op)], target=target, value=node.value)
        fix = fix_by(rule, file, "Compute a new tensor", replaced(file.source, node, new))
        yield finding_at(rule, file, file.source.span(node), symbol=next(iter(rule.symbols)), fix=fix)
    for call in file.names.nodes(ast.Call):
        changed = changed_by_call(call)
        if isinstance(changed, ast.Name) and views.is_part(changed):
            yield finding_at(rule, file, file.source.span(call), symbol=next(iter(rule.symbols)), fix=None)


def _is_switched(file: FileContext) -> bool:
    """Whether the file turns the recording of gradients off anywhere."""
    return any(node.attr in _SWITCHES for node in file.names.nodes(ast.Attribute)) or any(
        node.id in _SWITCHES for node in file.names.nodes(ast.Name)
    )


class _Views(Domain[str]):
    """What needs gradients, and what is one of several views of such a tensor."""

    def __init__(self, flow: ValueFlow, leaves: Leaves) -> None:
        super().__init__(flow)
        self._leaves = leaves

    def is_part(self, node: ast.expr) -> bool:
        return self.is_surely(node, _PART)

    def start(self, node: ast.AST) -> str | None:
        if not isinstance(node, ast.Call):
            return None
        if self.flow.called(node) is None and self._leaves.is_only(node.func, LAYER):
            return _RECORDED
        if self.flow.names.qualified(node.func) in FACTORIES and self._leaves.is_only(node, LEAF):
            return _RECORDED
        return None

    def through(self, node: ast.AST) -> Values[str]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = self._of_tensor(node.func.value)
            if node.func.attr in _SPLITS:
                name = self.flow.names.qualified(node.func) or ""
                if name.startswith("torch.") and not name.startswith("torch.Tensor."):
                    of = self._of_tensor(node.args[0]) if node.args else of
                return _mapped(of, {_RECORDED: _VIEWS})
            return _mapped(of, {_RECORDED: _RECORDED}) if node.func.attr in _KEEP else frozenset([UNKNOWN])
        if isinstance(node, ast.BinOp):
            sides = self._of_tensor(node.left) | self._of_tensor(node.right)
            return frozenset([_RECORDED]) if _RECORDED in sides else frozenset([UNKNOWN])
        if isinstance(node, ast.Subscript):
            return _mapped(self._of_tensor(node.value), {_RECORDED: _RECORDED})
        return frozenset([UNKNOWN])

    def part(self, node: ast.AST, path: Path) -> Values[str]:
        of = self._of_tensor(node)
        if path == (EACH,):  # a loop over a tensor, which is `unbind`
            return _mapped(of, {_RECORDED: _PART, _VIEWS: _PART})
        if len(path) == 1 and isinstance(path[0], int):
            return _mapped(of, {_VIEWS: _PART, _RECORDED: _RECORDED})
        if path[-1] is EACH and all(isinstance(key, int) for key in path[:-1]):
            return _mapped(of, {_RECORDED: _PART})
        return frozenset([UNKNOWN])

    def _of_tensor(self, node: ast.AST) -> Values[str]:
        """The same of an operand, which may be a leaf."""
        if isinstance(node, ast.expr) and not self._leaves.of(node).isdisjoint((LEAF, VIEW)):
            return frozenset([_RECORDED])
        return self.of(node)


def _mapped(values: Values[str], wanted: dict[str, str]) -> Values[str]:
    return frozenset(
        each if each is OPEN else wanted.get(each, UNKNOWN) if isinstance(each, str) else UNKNOWN
        for each in values
    )
