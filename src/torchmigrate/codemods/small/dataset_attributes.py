"""TM773: former attributes of torchvision's datasets, on datasets that are chosen by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import renamed
from torchmigrate.semantics.flow.domain import UNKNOWN, Domain, Values
from torchmigrate.semantics.flow.values import ValueFlow

_MODULE = "torchvision.datasets"
_NEW = {"train_data": "data", "test_data": "data", "train_labels": "targets", "test_labels": "targets"}
_HOLDERS = frozenset(["torch.utils.data.DataLoader", "torch.utils.data.Subset"])
_DATASET = "dataset"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such attribute that the resolver does not know the dataset of."""
    datasets = file.once(_Datasets, lambda: _Datasets(file.flow, frozenset(rule.symbols)))
    for node in file.names.nodes(ast.Attribute):
        if node.attr not in _NEW or not isinstance(node.ctx, ast.Load) or file.names.qualified(node):
            continue
        if any(use.node is node for use in file.names.uses):
            continue
        if datasets.is_first_read(node):
            symbol = f"{_MODULE}.MNIST.{node.attr}"
            yield finding_at(rule, file, file.source.span(node), symbol=symbol, fix=None)
            continue
        if not datasets.is_surely(node.value, _DATASET):
            continue
        new = _NEW[node.attr]
        edit = renamed(file.source, node, node.attr, new)
        fix = fix_by(rule, file, f"Replace with `.{new}`", edit) if edit is not None else None
        symbol = f"{_MODULE}.MNIST.{node.attr}"
        yield finding_at(rule, file, file.source.span(node), symbol=symbol, fix=fix)


class _Datasets(Domain[str]):
    """What is an object of one of the classes that had the attributes, or of one that is chosen by name."""

    def __init__(self, flow: ValueFlow, symbols: frozenset[str]) -> None:
        super().__init__(flow)
        self._classes = frozenset(symbol.rpartition(".")[0] for symbol in symbols)

    def is_first_read(self, node: ast.Attribute) -> bool:
        """Whether a subclass reads an attribute to give it a new value, and has not set it before."""
        owner = self.flow.classes.owner_of(node.value)
        bases = [base for each in self.flow.classes.lineage(owner) for base in each.bases] if owner else []
        if owner is None or not any(self.flow.names.qualified(base) in self._classes for base in bases):
            return False
        written = self.flow.classes.members.get((owner, node.attr), ())
        lines = [getattr(target, "lineno", 0) for target, _ in written]
        return bool(lines) and node.lineno <= min(lines)

    def start(self, node: ast.AST) -> str | None:
        if not isinstance(node, ast.Call):
            return None
        if self.flow.names.qualified(node.func) in self._classes:
            return _DATASET
        made = self.flow.origins(node.func)
        return _DATASET if made and all(self._is_class(step.node) for step in made if not step.open) else None

    def _is_class(self, node: ast.AST | None) -> bool:
        if isinstance(node, ast.Call):
            named = self.flow.builtin(node.func) == "getattr" and len(node.args) == 2
            return named and self.flow.names.qualified(node.args[0]) == _MODULE
        if isinstance(node, ast.alias):
            statement = self.flow.names.parents.get(node)
            return (
                isinstance(statement, ast.ImportFrom) and f"{statement.module}.{node.name}" in self._classes
            )
        return node is not None and self.flow.names.qualified(node) in self._classes

    def through(self, node: ast.AST) -> Values[str]:
        if isinstance(node, ast.Attribute) and node.attr == "dataset":
            made = self.flow.only_origin(node.value)
            if isinstance(made, ast.Call) and self.flow.names.qualified(made.func) in _HOLDERS:
                given = [*made.args[:1], *(item.value for item in made.keywords if item.arg == "dataset")]
                return self.of(given[0]) if given else frozenset([UNKNOWN])
        return frozenset([UNKNOWN])
