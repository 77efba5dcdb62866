"""TM439: an optimizer that loads a state without a copy, while another optimizer, or other code, holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import fix_by
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.nodes import replaced
from torchmigrate.semantics.flow.reaching import Reaching, reaching
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.semantics.model import Use
from torchmigrate.source.trees import is_below, last_name

_COPY = "copy.deepcopy"
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# Functions for which it makes no difference what the tensors hold.
_LOOKS = frozenset(["len", "isinstance", "type", "id", "bool", "list", "sorted", "set", "iter"])


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every `a.load_state_dict(b.state_dict())`, and for a state that is used again later."""
    uses: _Uses | None = None
    for hit in hits:
        call = hit.use.call
        given = call.args[0] if call is not None and call.args else None
        if call is None or given is None or not isinstance(hit.use.node, ast.Attribute):
            continue
        if isinstance(given, ast.Name):
            uses = uses or _Uses(file)
            shared = uses.is_shared(given, call, hit.use)
        else:
            shared = _is_state(given) and not _is_same(hit.use.node, given)
        if shared:
            yield file.fixes.finding(hit, _fix(rule, given, hit, file))


def _fix(rule: Rule, given: ast.expr, hit: RuleMatch, file: FileContext) -> Fix | None:
    # What only an annotation or a run says of the optimizer makes the fix unsafe (`FixMaker.finding`).
    if not (file.fixes.may_fix(hit) or hit.use.stated) or hit.use.in_fstring:
        return None
    spelling = file.imports.spell(_COPY, hit.use)
    if isinstance(spelling, Refusal):
        return None
    new = code("$copy($state)", copy=spelling.text, state=given)
    edit = replaced(file.source, given, new)
    return fix_by(rule, file, "Load a copy of the state", edit, *spelling.edits)


def _is_state(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
    )


def _is_same(method: ast.Attribute, given: ast.expr) -> bool:
    """Whether an optimizer loads what it has already."""
    assert isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute), "the caller looked"
    return ast.dump(method.value) == ast.dump(given.func.value)


class _Uses:
    """The uses of the states that a file loads."""

    def __init__(self, file: FileContext) -> None:
        self.source = file.source
        self.index = TreeIndex(file.names)
        self._flows: dict[int, Reaching] = {}

    def is_shared(self, given: ast.Name, call: ast.Call, use: Use) -> bool:
        """Whether something else has what a name holds: its optimizer, or what is done with it later."""
        body = use.scope.node
        if not isinstance(body, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if id(body) not in self._flows:
            arguments = None if isinstance(body, ast.Module) else body.args
            self._flows[id(body)] = reaching(body.body, arguments)
        flow = self._flows[id(body)]
        seen = flow.of(given)
        (definition, *others) = seen or (None,)
        if definition is None or definition.statement is None or definition.value is None or others:
            return False
        if _is_state(definition.value):
            assert isinstance(use.node, ast.Attribute), "the caller looked"
            return not _is_same(use.node, definition.value)
        around = [node for node in self.index.around(call) if isinstance(node, _LOOPS)]
        if around and not is_below(definition.statement, around[0], self.index.parents):
            return True  # each round loads what the one before it had
        return any(self._is_given(name, call) for name in flow.reads(seen))

    def _is_given(self, name: ast.Name, call: ast.Call) -> bool:
        """Whether a name is loaded again after a call, or given to something when steps were made."""
        user = self.index.parent(name)
        if not isinstance(user, ast.Call) or name not in user.args or not self._is_behind(name, call):
            return False
        if last_name(user.func) == "load_state_dict":
            return True
        between = range(self.source.span(call)[1], self.source.span(name)[0])
        steps = (self.source.span(node)[1] in between for node in self.index.attributes("step"))
        return last_name(user.func) not in _LOOKS and any(steps)

    def _is_behind(self, node: ast.AST, call: ast.Call) -> bool:
        """Whether a node is in a statement that follows the call, not in another branch."""
        statement = self.index.statement_of(call)
        while statement is not None:
            block = self.index.block_of(statement) or []
            end = self.source.span(statement)[1]
            following = [item for item in block if self.source.span(item)[0] >= end]
            if any(is_below(node, item, self.index.parents) for item in following):
                return True
            outer = self.index.parent(statement)
            statement = self.index.statement_of(outer) if outer is not None else None
        return False
