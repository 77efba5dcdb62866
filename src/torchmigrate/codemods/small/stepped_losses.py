"""TM363: a loss whose `backward` comes after a step of an optimizer that changed parameters of its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext
from torchmigrate.source.trees import walk

_MOST = 256  # expressions of a graph
_OPTIMIZERS = "torch.optim."
# The graph ends at these.
_CUTS = frozenset(["detach", "item", "data", "numpy", "tolist", "no_grad", "inference_mode"])
_WEIGHTED = pattern(r"torch\.nn\.(Linear|Conv\w+|LSTM|GRU|RNN|Transformer\w*)")
_SEQUENTIAL = "torch.nn.Sequential"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such `backward`."""
    steps = _Steps(file)
    for call in file.names.nodes(ast.Call):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
            continue
        step = steps.before(call)
        if step is not None:
            span = file.source.span(call)
            finding = finding_at(rule, file, span, symbol="torch.Tensor.backward", fix=None)
            yield replace(finding, places=(file.source.span(step),))


class _Steps:
    """The steps of the optimizers of one file."""

    def __init__(self, file: FileContext) -> None:
        self._names = file.names
        self._flow = file.flow

    def before(self, backward: ast.Call) -> ast.Call | None:
        """The step that makes a `backward` fail, if there surely is one."""
        assert isinstance(backward.func, ast.Attribute), "it is a method"
        statement = self._names.parents.get(backward)
        block = self._flow.index.block_of(statement) if isinstance(statement, ast.Expr) else None
        if block is None or not isinstance(statement, ast.stmt):
            return None
        index = {id(item): number for number, item in enumerate(block)}
        end = index[id(statement)]
        losses = [node for node in walk(backward.func.value) if isinstance(node, ast.Name)]
        for number in range(end - 1, -1, -1):
            step = self._step(block[number])
            if step is None:
                continue
            modules = self._modules_of(step[1])
            for name in losses if modules else ():
                if self._needs(name, modules, index, number):
                    return step[0]
        return None

    def _step(self, statement: ast.stmt) -> tuple[ast.Call, ast.expr] | None:
        """The call and the optimizer of `optimizer.step()`, or of `scaler.step(optimizer)`."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.keywords:
            return None
        if call.func.attr != "step" or len(call.args) > 1:
            return None
        return call, call.args[0] if call.args else call.func.value

    def _modules_of(self, optimizer: ast.expr) -> list[ast.expr]:
        """The modules all of whose parameters an optimizer of torch changes; none where that is not sure."""
        found = self._flow.origins(optimizer)
        (only,) = found if len(found) == 1 else (None,)
        made = only.node if only is not None and not only.path else None
        if not isinstance(made, ast.Call) or not made.args:
            return []
        name = self._names.qualified(made.func) or ""
        if not name.startswith(_OPTIMIZERS) or "lr_scheduler" in name:
            return []
        return [
            node.func.value
            for node in walk(made.args[0])
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if node.func.attr == "parameters"
        ]

    def _needs(self, loss: ast.Name, modules: list[ast.expr], index: dict[int, int], step: int) -> bool:
        """Whether a loss was computed before a step with modules that it changes, and needs their values."""
        return any(
            self._is_one_of(call.func, modules)
            and (self._is_deep(call.func) or any(self._is_trained(arg, index, step) for arg in call.args))
            for call in self._graph(loss, index, step)
        )

    def _graph(self, node: ast.expr, index: dict[int, int], step: int) -> Iterator[ast.Call]:
        """The calls that an expression is computed with, all of them before the step in its block."""
        seen: set[ast.AST] = set()
        todo: list[ast.AST] = [node]
        while todo:
            here = todo.pop()
            if here in seen or len(seen) > _MOST or isinstance(here, (ast.Lambda, ast.comprehension)):
                continue
            seen.add(here)
            if isinstance(here, ast.Attribute) and here.attr in _CUTS:
                continue
            if isinstance(here, ast.Name):
                steps = self._flow.sources(here)
                made = steps[0].node if len(steps) == 1 else None
                statement = self._flow.index.statement_of(made) if made is not None else None
                if made is not None and statement is not None and index.get(id(statement), step) < step:
                    todo.append(made)
                continue
            if isinstance(here, ast.Call):
                if isinstance(here.func, ast.Attribute) and here.func.attr in _CUTS:
                    continue
                yield here
                if isinstance(here.func, ast.Attribute):
                    todo.append(here.func.value)
                todo += [*here.args, *(item.value for item in here.keywords)]
                continue
            if isinstance(here, ast.AugAssign):
                todo.append(here.value)
                continue
            todo += ast.iter_child_nodes(here)

    def _is_trained(self, node: ast.expr, index: dict[int, int], step: int) -> bool:
        """Whether an expression is computed with another module of the file that an optimizer changes."""
        return any(self._is_one_of(call.func, self._trained) for call in self._graph(node, index, step))

    @property
    def _trained(self) -> list[ast.expr]:
        return [
            call.func.value
            for call in self._names.nodes(ast.Call)
            if isinstance(call.func, ast.Attribute) and call.func.attr == "parameters"
        ]

    def _is_one_of(self, function: ast.expr, modules: list[ast.expr]) -> bool:
        if not isinstance(function, (ast.Name, ast.Attribute)):
            return False
        text = ast.dump(function)
        mine = self._flow.origins(function)
        if any(step.node is None and not step.open for step in mine):
            return False
        return any(ast.dump(module) == text and self._flow.origins(module) == mine for module in modules)

    def _is_deep(self, function: ast.expr) -> bool:
        """Whether a module surely has several layers, so that its gradients need its weights."""
        made = self._flow.class_of(function)
        found = self._flow.origins(function)
        (only,) = found if len(found) == 1 else (None,)
        call = only.node if only is not None and not only.path else None
        if isinstance(call, ast.Call) and self._names.qualified(call.func) == _SEQUENTIAL:
            return self._layers(call) > 1
        init = self._flow.classes.method(made, "__init__") if made is not None else None
        return init is not None and self._layers(init) > 1

    def _layers(self, node: ast.AST) -> int:
        return sum(
            isinstance(item, ast.Call)
            and _WEIGHTED.fullmatch(self._names.qualified(item.func) or "") is not None
            for item in walk(node)
        )
