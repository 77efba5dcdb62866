"""Leaves that need a gradient, such as parameters, the layers that have some, and views of leaves."""

from __future__ import annotations

import ast

from torchmigrate.patterns import pattern
from torchmigrate.semantics.facts.dtypes import NUMBER, ValueFacts
from torchmigrate.semantics.flow.domain import NOTHING, UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.steps import EACH, Key, Path
from torchmigrate.semantics.flow.values import ValueFlow

_NUMBER = frozenset([NUMBER])
LEAF, VIEW, LAYER = "leaf", "view", "layer"

FACTORIES = frozenset(
    f"torch.{name}" for name in "zeros ones empty full rand randn tensor eye linspace arange".split()
)
_VIEWS = frozenset(
    "view view_as t transpose permute narrow select squeeze unsqueeze diagonal chunk split unbind".split()
)  # which never copy
_PARAMETERS = frozenset(["torch.nn.Parameter", "torch.nn.parameter.Parameter"])
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding "
        "EmbeddingBag LayerNorm RNN LSTM GRU RNNCell LSTMCell GRUCell"
    ).split()
)
MAKERS = FACTORIES | _PARAMETERS | _LAYERS  # what makes leaves and layers
_LAYER_PARAMETERS = pattern(r"(weight|bias)(_(ih|hh)(_l\d+(_reverse)?)?)?")
_STILL_LAYER = frozenset("cuda cpu to float double half train eval".split())


class Leaves(Domain[str]):
    """What is a leaf that needs a gradient, a view of such, or a layer whose parameters are leaves.

    Args:
        facts: what is a number: an index with one gives a view.
    """

    def __init__(self, flow: ValueFlow, facts: ValueFacts) -> None:
        super().__init__(flow)
        self._facts = facts

    def start(self, node: ast.AST) -> str | None:
        if not isinstance(node, ast.Call):
            return None
        name = self.flow.names.qualified(node.func)
        if name in _LAYERS:
            return LAYER
        given = {item.arg: item.value for item in node.keywords}
        if None in given or any(isinstance(item, ast.Starred) for item in node.args):
            return None
        needs = given.get("requires_grad")
        stated = isinstance(needs, ast.Constant) and needs.value is True
        if name in _PARAMETERS:
            return LEAF if len(node.args) < 2 and (needs is None or stated) else None
        if name in FACTORIES:
            return LEAF if stated else None
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "requires_grad_"
            and not given
            and not node.args
        ):
            return LEAF if self._is_plain_tensor(node.func.value) else None
        return None

    def _is_plain_tensor(self, node: ast.expr) -> bool:
        made = {
            step.node.func if isinstance(step.node, ast.Call) else None for step in self.flow.origins(node)
        }
        return all(func is not None and self.flow.names.qualified(func) in FACTORIES for func in made)

    def through(self, node: ast.AST) -> Values[str]:
        if isinstance(node, ast.Attribute):
            of = self.of(node.value)
            if node.attr in ("T", "mT"):
                return _mapped(of, {LEAF: VIEW, VIEW: VIEW})
            if _LAYER_PARAMETERS.fullmatch(node.attr) is None:
                return frozenset([UNKNOWN])
            return _mapped(of, {LAYER: LEAF}) | self.join(*self.flow.classes.outside.get(node.attr, ()))
        if isinstance(node, ast.Subscript):
            basic = self._is_basic(node.slice)
            return _mapped(self.of(node.value), {LEAF: VIEW, VIEW: VIEW}) if basic else frozenset([UNKNOWN])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = self.of(node.func.value)
            if node.func.attr in _VIEWS:
                return _mapped(of, {LEAF: VIEW, VIEW: VIEW})
            if node.func.attr in _STILL_LAYER:
                return _mapped(of, {LAYER: LAYER})
        return frozenset([UNKNOWN])

    def part(self, node: ast.AST, path: Path) -> Values[str]:
        views = all(self._is_item(key) for key in path)
        return _mapped(self.of(node), {LEAF: VIEW, VIEW: VIEW}) if views else frozenset([UNKNOWN])

    def _is_item(self, key: Key) -> bool:
        return isinstance(key, int) or key is EACH or (isinstance(key, ast.expr) and self._is_basic(key))

    def _is_basic(self, index: ast.expr) -> bool:
        """Whether an index gives a view: integers, slices, `None` and `...`."""
        return all(self._is_plain(item) for item in (index.elts if isinstance(index, ast.Tuple) else [index]))

    def _is_plain(self, item: ast.expr) -> bool:
        if isinstance(item, ast.Slice):
            return True
        if isinstance(item, ast.Constant):
            return type(item.value) is int or item.value is None or item.value is ...
        return NUMBER in self._facts.of(item, _NUMBER) or self._is_counted(item)

    def _is_counted(self, item: ast.expr) -> bool:
        """Whether a name is nothing but the variable of a loop over `range(...)`."""
        found = self.flow.origins(item)
        return bool(found) and all(
            isinstance(step.node, ast.Call)
            and isinstance(step.node.func, ast.Name)
            and step.node.func.id == "range"
            and step.path == (EACH,)
            for step in found
        )


def _mapped(values: Values[str], wanted: dict[str, str]) -> Values[str]:
    """What an operation makes of values: of those that are not in `wanted`, it is not known."""
    return NOTHING.union(
        *[[value if not isinstance(value, str) else wanted.get(value, UNKNOWN)] for value in values]
    )
