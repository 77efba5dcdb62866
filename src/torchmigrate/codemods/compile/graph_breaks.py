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
from torchmigrate.codemods.compile.compiled import uses_by_node
from torchmigrate.codemods.compile.kinds import ModelKinds, below
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.model import Scope
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
    for scope in file.names.scopes:
        node = scope.node
        if not isinstance(node, ast.ClassDef) or not finder.is_module(node):
            continue
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "forward":
                for place, what, text in sorted(finder.of(method), key=lambda found: found[0].lineno):
                    span = file.source.span(place)
                    yield replace(finding_at(rule, file, span, symbol=what, fix=None), help=text)


Break = tuple[ast.expr, str, str]


class _Breaks:
    """Answers about one file."""

    def __init__(self, file: FileContext) -> None:
        self.names = file.names
        self.kinds = ModelKinds(file.names, file.source)
        self.known = uses_by_node(file.names)
        self.scopes: dict[int, Scope] = self.kinds.scopes

    def is_module(self, node: ast.ClassDef, depth: int = 0) -> bool:
        """Whether a class surely derives from `torch.nn.Module`, and not from one of Lightning's."""
        scope = self._scope_of(node)
        found = False
        for base in node.bases:
            own = self.kinds.definition(base, scope)
            if isinstance(own, ast.ClassDef) and own is not node and depth < 8:
                found = found or self.is_module(own, depth + 1)
            elif self.kinds.leaves(base, scope) or "Lightning" in ast.unparse(base):
                return False
            else:
                name = self.known.get(id(base), "")
                found = found or below(name, ("torch.nn.",))
        return found

    def _scope_of(self, node: ast.ClassDef) -> Scope:
        own = self.scopes.get(id(node))
        return own.parent if own is not None and own.parent is not None else self.names.module

    def of(self, method: ast.FunctionDef) -> Iterator[Break]:
        """What breaks the graph in one method; what may be off while compiled is left out."""
        if any(self._is_off(mark) for mark in method.decorator_list):
            return
        scope = self.scopes[id(method)]
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
                if self._is_data(node.test, scope):
                    yield node.test, "a branch on the values of a tensor", _BRANCH
                    todo += [(child, True) for child in children(node) if child is not node.test]
                    continue
                todo += [(child, True) for child in children(node)]
                continue
            if isinstance(node, ast.Call):
                found = self._call(node, scope, guarded)
                if found is not None:
                    yield found
            todo += [(child, guarded) for child in children(node)]

    def _is_off(self, mark: ast.expr) -> bool:
        name = self.known.get(id(mark.func if isinstance(mark, ast.Call) else mark), "")
        return _OFF.fullmatch(name) is not None

    def _asks_mode(self, test: ast.expr) -> bool:
        return any(
            isinstance(node, (ast.Attribute, ast.Name)) and _OFF.fullmatch(self.known.get(id(node), ""))
            for node in walk(test)
        )

    def _is_tensor(self, node: ast.expr) -> bool:
        return level(self.names.values.get(id(node), UNKNOWN)) >= STATED

    def _is_data(self, test: ast.expr, scope: Scope) -> bool:
        """Whether the truth of an expression is that of a tensor."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._is_data(test.operand, scope)
        if isinstance(test, ast.BoolOp):
            return any(self._is_data(value, scope) for value in test.values)
        if isinstance(test, ast.Compare):
            if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in test.ops):
                return False
            sides = (test.left, *test.comparators)
            return any(self._is_tensor(side) or _is_reduced(side, scope) for side in sides)
        if isinstance(test, ast.Call) and self.known.get(id(test.func)) in _TRUTHS:
            return True
        return self._is_tensor(test) or _is_reduced(test, scope)

    def _call(self, node: ast.Call, scope: Scope, guarded: bool) -> Break | None:
        function = node.func
        if isinstance(function, ast.Name):
            if self.kinds.holder(function.id, scope) is not None:
                return None
            if function.id == "print" and not guarded:
                return node, "`print`", _PRINT
            plain = len(node.args) == 1 and not node.keywords
            if function.id in ("float", "int", "bool") and plain and self._is_tensor(node.args[0]):
                return node, f"`{function.id}` of a tensor", _READ
        elif (text := self._speaks(function, scope)) and not guarded:
            return node, f"`{ast.unparse(function)}`", text
        if not isinstance(function, ast.Attribute):
            return None
        if not node.args and not node.keywords and function.attr in ("item", "tolist"):
            if id(function) in self.known and not self.known[id(function)].startswith("torch.Tensor."):
                return None
            return node, f"`.{function.attr}()`", _READ if function.attr == "item" else _LIST
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        roots = {name.partition(".")[0] for name in self.kinds.qualified(function, scope)}
        if roots and roots <= _OTHER_LIBRARIES and any(map(_is_array, given)):
            return node, "`.numpy()` for another library", _ARRAY
        return None

    def _speaks(self, function: ast.expr, scope: Scope) -> str | None:
        """What to do about a call that tells a person something: a warning, a log, a clock."""
        names = set(self.kinds.qualified(function, scope))
        if names and names <= _CLOCKS:
            return _CLOCK
        if names == {"warnings.warn"} or (names and all(name in _LOG_FUNCTIONS for name in names)):
            return _PRINT
        if not isinstance(function, ast.Attribute) or function.attr not in _LOGS:
            return None
        logger = function.value
        held = self.kinds.holder(logger.id, scope) if isinstance(logger, ast.Name) else None
        if held is None or not isinstance(logger, ast.Name):
            return None
        values = [getattr(binding.statement, "value", None) for binding in held.bindings[logger.id]]
        made = [
            isinstance(value, ast.Call) and "logging.getLogger" in self.kinds.qualified(value.func, held)
            for value in values
        ]
        return _PRINT if all(made) else None


def _is_reduced(node: ast.expr, scope: Scope) -> bool:
    """`x.abs().max()` or `(mask == 0).any()` of a variable: a tensor, or an array, which is traced as one."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr not in _REDUCTIONS or not isinstance(scope.node, ast.FunctionDef):
        return False
    root: ast.expr = node.func.value
    while True:
        if isinstance(root, ast.Compare):
            root = root.left
        elif isinstance(root, ast.Subscript):
            root = root.value
        elif isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
            root = root.func.value
        else:
            break
    return isinstance(root, ast.Name) and root.id != "self" and root.id in scope.bindings


def _is_array(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
