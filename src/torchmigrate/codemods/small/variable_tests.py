"""TM330: `torch.autograd.Variable`, where a test asks whether something is one.

`isinstance(x, Variable)` takes tensors. The type of a tensor is never `Variable`: a comparison of types has
had the same answer since torch 0.4.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Applicability, Finding, Fix, Severity, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.nodes import has_comment, name_replaced, replaced
from torchmigrate.semantics.model import Role
from torchmigrate.semantics.values.slots import UNKNOWN
from torchmigrate.semantics.values.types import STATED, level
from torchmigrate.versions.range import applicability, required

_VOLATILE = "volatile.variables"  # the codemod of TM331
_TENSOR = "torch.Tensor"
_IS, _IS_NOT = "isinstance($x, $tensor)", "not isinstance($x, $tensor)"
_ASK_FOR_TENSORS = frozenset([_TENSOR, "torch.is_tensor"])
_POSITIVE, _NEGATIVE = (ast.Eq, ast.Is, ast.In), (ast.NotEq, ast.IsNot, ast.NotIn)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """Every hit as a finding, but for volatile variables; the cases of the rule fix what is not a test.

    The fixes for `volatile` remove the wrapper as well.
    """
    volatile = {id(hit.use.call) for hit in file.hits if hit.rule.codemod == _VOLATILE and hit.use.call}
    tests: list[tuple[RuleMatch, _TypeTest | None]] = []
    others: list[RuleMatch] = []
    for hit in hits:
        if hit.use.role is Role.IMPORT and _only_asks_engine(hit, file):
            continue
        if id(hit.use.call) in volatile:
            continue
        asked, test = _test(hit, file)
        if asked or test is not None:
            tests.append((hit, test))
        else:
            others.append(hit)
    yield from file.fixes.findings(others)
    for hit, test in tests:
        finding = file.fixes.finding(hit, _fix(rule, hit, test, file))
        yield finding if test is None or test.takes_tensors else _with_answer(finding, test)


def _with_answer(finding: Finding, test: _TypeTest) -> Finding:
    """The finding of a test that has always the same answer, which is worse than an outdated name."""
    about = "" if test.alone else " for tensors"
    why = "since torch 0.4 the type of a tensor is never `Variable`"
    said = f"`{test.shown}` is always {test.negative}{about}: {why}"
    assert finding.timeline is not None, "the rule is about a release"
    changed = replace(finding.timeline, changed=finding.timeline.outdated)
    return replace(finding, message=said, severity=Severity.WARNING, timeline=changed)


def _only_asks_engine(hit: RuleMatch, file: FileContext) -> bool:
    """Whether an import is there for `Variable._execution_engine` alone, which nothing replaces.

    torch 2.13 itself writes so, in `torch/distributed/fsdp/_runtime_utils.py`.
    """
    binding = hit.use.binding
    if binding is None or binding.exported or "_execution_engine" not in file.source.text:
        return False
    uses = [use for use in file.names.uses if binding in use.origins and use.role is not Role.IMPORT]
    return len({use.start for use in uses}) == len(set(binding.uses)) > 0 and all(
        f"{name}.".startswith(f"{binding.target}._execution_engine.")
        for use in uses
        for name in use.candidates
    )


class _TypeTest(Struct, frozen=True):
    """A test of the type of something, such as `type(x) == Variable` or `x.__class__ in (list, Variable)`.

    node: what asks. subject: what it asks about. negative: whether it asks for another type.
    alone: whether the test names no other type, so that the answer is always the same.
    takes_tensors: whether the test also takes tensors, as in `type(x) in (Variable, torch.Tensor)`.
    """

    node: ast.Compare | ast.Call
    subject: ast.expr
    negative: bool
    alone: bool
    takes_tensors: bool
    shown: str


def _test(hit: RuleMatch, file: FileContext) -> tuple[bool, _TypeTest | None]:
    """Whether `isinstance` asks for the class, or the test of a type for it."""
    use = hit.use
    if use.role is not Role.REFERENCE:
        return False, None
    node: ast.AST = use.node
    parent = hit.place.parents(node)
    group = parent if isinstance(parent, ast.Tuple | ast.List | ast.Set) else None
    if group is not None:
        node, parent = group, hit.place.parents(group)
    alone = group is None or len(group.elts) == 1
    subject, negative = None, False
    if isinstance(parent, ast.Compare) and len(parent.ops) == 1:
        operator, sides = parent.ops[0], [parent.left, parent.comparators[0]]
        fits = isinstance(operator, ast.In | ast.NotIn) == (group is not None) and node is not (
            group and sides[0]
        )
        if fits and isinstance(operator, _POSITIVE + _NEGATIVE):
            negative = isinstance(operator, _NEGATIVE)
            subject = next((found for side in sides if (found := _typed(side, hit, file)) is not None), None)
    elif isinstance(parent, ast.Call) and len(parent.args) == 2 and parent.args[1] is node:
        if _is_call(parent, "isinstance", 2, hit, file):
            return True, None
        if _is_call(parent, "issubclass", 2, hit, file):
            subject = _typed(parent.args[0], hit, file)
    if subject is None:
        return False, None
    assert isinstance(parent, ast.Compare | ast.Call)
    around = hit.place.parents(parent)
    whole = around if isinstance(around, ast.BoolOp) else parent
    start, end = file.source.span(whole)
    tensors = any(
        start <= other.start < end and not _ASK_FOR_TENSORS.isdisjoint(other.candidates)
        for other in file.names.uses
    )
    shown = ast.unparse(parent)
    return False, _TypeTest(parent, subject, negative, alone, tensors, shown)


def _typed(node: ast.expr, hit: RuleMatch, file: FileContext) -> ast.expr | None:
    """What an expression takes the type of; None: it takes none."""
    if isinstance(node, ast.Call) and _is_call(node, "type", 1, hit, file):
        return node.args[0]
    return node.value if isinstance(node, ast.Attribute) and node.attr == "__class__" else None


def _is_call(node: ast.expr, name: str, count: int, hit: RuleMatch, file: FileContext) -> bool:
    """Whether an expression is a call of a builtin function with so many positional arguments."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        and len(node.args) == count
        and not node.keywords
        and not isinstance(node.args[0], ast.Starred)
        and file.imports.scopes.scope_of(name, hit.use.scope) is None
    )


def _fix(rule: Rule, hit: RuleMatch, test: _TypeTest | None, file: FileContext) -> Fix | None:
    use = hit.use
    if not file.fixes.may_fix(hit) or (test is not None and test.takes_tensors):
        return None
    spelling = file.imports.spell(_TENSOR, use)
    if isinstance(spelling, Refusal):
        return None
    case = rule.cases[0]
    level, reasons = applicability(
        replace(case, applicability=Applicability.SAFE, reason=None), rule, file.versions
    )
    edit, title = name_replaced(use, spelling.text), f"Replace with `{_TENSOR}`"
    if test is not None:
        if _asks_for_release(test, hit, file):
            return None
        if test.alone:
            if has_comment(file.source, test.node):
                return None
            new = code(_IS_NOT if test.negative else _IS, x=test.subject, tensor=spelling.text)
            edit, title = replaced(file.source, test.node, new), "Ask with `isinstance`"
        level = min(level, Applicability.UNSAFE)
        reasons = because(
            "since torch 0.4, the type of a tensor is never `Variable`: code that was skipped runs again"
        )
    edits = (edit, *spelling.edits)
    return file.fixes.fix(
        rule, title, level, reasons, edits, file.imports.releases(use), required(case, rule)
    )


def _asks_for_release(test: _TypeTest, hit: RuleMatch, file: FileContext) -> bool:
    """Whether it is known what x of `type(x) == Variable` is, so that the test asks which torch this is.

    `isinstance` would give the other answer.
    """
    subject = test.subject
    known = level(file.names.values.get(id(subject), UNKNOWN)) >= STATED
    return known or hit.use.scope.kind == "module" or isinstance(subject, ast.Call)
