"""TM330: `torch.autograd.Variable`, where a test asks whether something is one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Applicability, Edit, Finding, Fix, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.fix_maker import required
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.nodes import has_comment, name_replaced, replaced
from torchmigrate.semantics.model import Role
from torchmigrate.semantics.values.slots import UNKNOWN
from torchmigrate.semantics.values.types import STATED, level
from torchmigrate.source.text import Source
from torchmigrate.versions.range import applicability

_VOLATILE = "volatile.variables"  # the codemod of TM331
_TENSOR = "torch.Tensor"
_IS, _IS_NOT = "isinstance($x, $tensor)", "not isinstance($x, $tensor)"
_EQUAL = {ast.Eq: _IS, ast.Is: _IS, ast.NotEq: _IS_NOT, ast.IsNot: _IS_NOT}


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """Every hit as a finding, but for volatile variables; the cases of the rule fix what is no test.

    What is said of `volatile` takes the wrapper along.
    """
    volatile = {id(hit.use.call) for hit in file.hits if hit.rule.codemod == _VOLATILE and hit.use.call}
    tests: list[tuple[RuleMatch, ast.Compare | None]] = []
    others: list[RuleMatch] = []
    for hit in hits:
        if hit.use.role is Role.IMPORT and _only_asks_engine(hit, file):
            continue
        if id(hit.use.call) in volatile:
            continue
        asked, comparison = _test(hit, file)
        if asked or comparison is not None:
            tests.append((hit, comparison))
        else:
            others.append(hit)
    yield from file.fixes.findings(others)
    for hit, comparison in tests:
        yield file.fixes.finding(hit, _fix(rule, hit, comparison, file))


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


def _test(hit: RuleMatch, file: FileContext) -> tuple[bool, ast.Compare | None]:
    """Whether `isinstance` asks for the class, or the comparison of a type with it."""
    use = hit.use
    if use.role is not Role.REFERENCE:
        return False, None
    node: ast.AST = use.node
    parent = hit.place.parents(node)
    if isinstance(parent, ast.Compare) and len(parent.ops) == 1 and type(parent.ops[0]) in _EQUAL:
        sides = [parent.left, parent.comparators[0]]
        return False, parent if any(_is_call(side, "type", 1, hit, file) for side in sides) else None
    if isinstance(parent, ast.Tuple):
        node, parent = parent, hit.place.parents(parent)
    asked = isinstance(parent, ast.expr) and _is_call(parent, "isinstance", 2, hit, file)
    return asked and isinstance(parent, ast.Call) and parent.args[1] is node, None


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


def _fix(rule: Rule, hit: RuleMatch, comparison: ast.Compare | None, file: FileContext) -> Fix | None:
    use = hit.use
    if not file.fixes.may_fix(hit):
        return None
    spelling = file.imports.spell(_TENSOR, use)
    if isinstance(spelling, Refusal):
        return None
    case = rule.cases[0]
    level, reasons = applicability(
        replace(case, applicability=Applicability.SAFE, reason=None), rule, file.versions
    )
    if comparison is None:
        edit = name_replaced(use, spelling.text)
        title = f"Replace with `{_TENSOR}`"
    else:
        if _asks_for_release(comparison, hit, file):
            return None
        made = _instance_test(comparison, spelling.text, hit, file.source)
        if made is None:
            return None
        edit, title = made, "Ask with `isinstance`"
        level = min(level, Applicability.UNSAFE)
        reasons = because(
            "since torch 0.4, the type of a tensor is never `Variable`: code that was skipped runs again"
        )
    edits = (edit, *spelling.edits)
    return file.fixes.fix(
        rule, title, level, reasons, edits, file.imports.releases(use), required(case, rule)
    )


def _asks_for_release(comparison: ast.Compare, hit: RuleMatch, file: FileContext) -> bool:
    """Whether it is known what x of `type(x) == Variable` is, so that the test asks which torch this is.

    `isinstance` would give the other answer.
    """
    call = comparison.comparators[0] if comparison.left is hit.use.node else comparison.left
    assert isinstance(call, ast.Call), "one side is the name, the other the call"
    (subject,) = call.args
    known = level(file.names.values.get(id(subject), UNKNOWN)) >= STATED
    return known or hit.use.scope.kind == "module" or isinstance(subject, ast.Call)


def _instance_test(comparison: ast.Compare, tensor: str, hit: RuleMatch, source: Source) -> Edit | None:
    """`type(x) == Variable` as `isinstance(x, torch.Tensor)`; None: a comment would be lost."""
    call = comparison.comparators[0] if comparison.left is hit.use.node else comparison.left
    assert isinstance(call, ast.Call), "one side is the name, the other the call"
    if has_comment(source, comparison):
        return None
    new = code(_EQUAL[type(comparison.ops[0])], x=call.args[0], tensor=tensor)
    return replaced(source, comparison, new)
