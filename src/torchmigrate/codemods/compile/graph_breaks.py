"""TM905: what ends the graph of `torch.compile` inside of `forward`.

What is listed was seen to break the graph, or to fail with `fullgraph=True`, on torch 2.13. Not listed is
what the compiler follows: `.numpy()` with NumPy after it, assertions, branches on shapes and Python values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.compile.kinds import ModelKinds, below
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.values.slots import UNKNOWN
from torchmigrate.semantics.values.types import STATED, level
from torchmigrate.source.trees import children, walk

_READ = "the result is a Python number, which ends the graph: keep it a tensor"
_LIST = "the elements are Python numbers, which end the graph: keep a tensor"
_PRINT = "remove it, or move it to a function with `@torch.compiler.disable`"
_BRANCH = "the branch depends on the values of a tensor: use `torch.where` or `torch.cond`"
_CLOCK = "measure outside of `forward`, around the call of the model"
_ARRAY = "the compiler cannot trace this library: call it outside of `forward`, or use torch instead"

_TRUTHS = frozenset(["torch.any", "torch.all", "torch.equal", "torch.allclose", "torch.is_nonzero"])
_REDUCTIONS = frozenset("all any max mean min norm prod std sum var".split())
_OTHER_LIBRARIES = frozenset("cv2 matplotlib networkx pandas PIL scipy skimage sklearn".split())
_LOGS = frozenset("critical debug error exception info log warn warning".split())
_LOG_FUNCTIONS = frozenset(f"logging.{name}" for name in _LOGS)
_CLOCKS = frozenset(f"time.{name}" for name in ("time", "perf_counter", "monotonic", "process_time"))
_OFF = pattern(r"torch(?:\.\w+)*\.(?:disable|ignore|unused|is_compiling|is_scripting|is_tracing|script\w*)")


def find(rule: Rule, hits: list[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding at every place in a `forward` that the compiler cannot follow; nothing is rewritten."""
    finder = _Breaks(file)
    for node in file.names.nodes(ast.ClassDef):
        for method in node.body if finder.is_module(node) else ():
            if isinstance(method, ast.FunctionDef) and method.name == "forward":
                for place, what, text in sorted(finder.of(method), key=lambda found: found[0].lineno):
                    span = file.source.span(place)
                    yield replace(finding_at(rule, file, span, symbol=what, fix=None), help=text)


Break = tuple[ast.expr, str, str]


class _Breaks:
    """Answers about one file."""

    def __init__(self, file: FileContext) -> None:
        self.names = file.names
        self.flow = file.flow
        self.kinds = ModelKinds(file.flow, file.source)

    def is_module(self, node: ast.ClassDef) -> bool:
        """Whether a class surely derives from `torch.nn.Module`, and not from one of Lightning's."""
        bases = [base for each in self.flow.classes.lineage(node) for base in each.bases]
        if any(self.kinds.leaves(base) or "Lightning" in ast.unparse(base) for base in bases):
            return False
        return any(below(self._known(base), ("torch.nn.",)) for base in bases)

    def _known(self, node: ast.AST) -> str:
        return self.names.qualified(node) or ""

    def of(self, method: ast.FunctionDef) -> Iterator[Break]:
        """What breaks the graph in one method; what may be off while compiled is left out."""
        if any(self._is_off(mark) for mark in method.decorator_list):
            return
        todo: list[tuple[ast.AST, bool]] = [(statement, False) for statement in method.body]
        while todo:
            node, guarded = todo.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                continue
            if isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr)):
                continue
            if isinstance(node, (ast.If, ast.IfExp, ast.While)):
                if self._asks_mode(node.test):
                    continue
                if self._is_data(node.test):
                    yield node.test, "a branch on the values of a tensor", _BRANCH
                    todo += [(child, True) for child in children(node) if child is not node.test]
                    continue
                todo += [(child, True) for child in children(node)]
                continue
            if isinstance(node, ast.Call):
                found = self._call(node, guarded)
                if found is not None:
                    yield found
            todo += [(child, guarded) for child in children(node)]

    def _is_off(self, mark: ast.expr) -> bool:
        name = self._known(mark.func if isinstance(mark, ast.Call) else mark)
        return _OFF.fullmatch(name) is not None

    def _asks_mode(self, test: ast.expr) -> bool:
        return any(
            isinstance(node, (ast.Attribute, ast.Name)) and _OFF.fullmatch(self._known(node))
            for node in walk(test)
        )

    def _is_tensor(self, node: ast.expr) -> bool:
        return level(self.names.values.get(id(node), UNKNOWN)) >= STATED

    def _is_data(self, test: ast.expr) -> bool:
        """Whether the truth of an expression is that of a tensor."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._is_data(test.operand)
        if isinstance(test, ast.BoolOp):
            return any(self._is_data(value) for value in test.values)
        if isinstance(test, ast.Compare):
            if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in test.ops):
                return False
            sides = (test.left, *test.comparators)
            return any(self._is_tensor(side) or self._is_reduced(side) for side in sides)
        if isinstance(test, ast.Call) and self._known(test.func) in _TRUTHS:
            return True
        return self._is_tensor(test) or self._is_reduced(test)

    def _call(self, node: ast.Call, guarded: bool) -> Break | None:
        function = node.func
        if isinstance(function, ast.Name):
            if self.flow.builtin(function) is None:
                return None
            if function.id == "print" and not guarded:
                return node, "`print`", _PRINT
            plain = len(node.args) == 1 and not node.keywords
            if function.id in ("float", "int", "bool") and plain and self._is_tensor(node.args[0]):
                return node, f"`{function.id}` of a tensor", _READ
        elif (text := self._speaks(function)) and not guarded:
            return node, f"`{ast.unparse(function)}`", text
        if not isinstance(function, ast.Attribute):
            return None
        if not node.args and not node.keywords and function.attr in ("item", "tolist"):
            if not (self._known(function) or "torch.Tensor.").startswith("torch.Tensor."):
                return None
            return node, f"`.{function.attr}()`", _READ if function.attr == "item" else _LIST
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        roots = {name.partition(".")[0] for name in self.kinds.qualified(function)}
        if roots and roots <= _OTHER_LIBRARIES and any(map(_is_array, given)):
            return node, "`.numpy()` for another library", _ARRAY
        return None

    def _speaks(self, function: ast.expr) -> str | None:
        """What to do about a call that tells a person something: a warning, a log, a clock."""
        names = set(self.kinds.qualified(function))
        if names and names <= _CLOCKS:
            return _CLOCK
        if names == {"warnings.warn"} or (names and all(name in _LOG_FUNCTIONS for name in names)):
            return _PRINT
        if not isinstance(function, ast.Attribute) or function.attr not in _LOGS:
            return None
        made = [step.node for step in self.flow.origins(function.value)]
        is_logger = [
            isinstance(node, ast.Call) and "logging.getLogger" in self.kinds.qualified(node.func)
            for node in made
        ]
        return _PRINT if all(is_logger) else None

    def _is_reduced(self, node: ast.expr) -> bool:
        """`x.abs().max()` or `(mask == 0).any()` of a variable: a tensor, or an array, traced as one."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        root = node.func.value
        while node.func.attr in _REDUCTIONS and not isinstance(root, ast.Name):
            if isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
                root = root.func.value
            elif isinstance(root, (ast.Compare, ast.Subscript)):
                root = root.left if isinstance(root, ast.Compare) else root.value
            else:
                break
        if node.func.attr not in _REDUCTIONS or not isinstance(root, ast.Name) or root.id == "self":
            return False
        holder = self.flow.index.holder(root)
        return holder is not None and holder is self.flow.index.scope_of(root)


def _is_array(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
