"""Calls that no longer do anything: the fix removes the statement.

For functions called for their effect alone, such as `torchaudio.set_audio_backend`. A call whose result is
used, or whose arguments may do something, is only reported; and so is a setting of the whole process that is
not a literal, because a choice of the user would be ignored.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Applicability, Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.comments import COMMENT_LOST
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.lines import logical_line
from torchmigrate.rewrite.nodes import has_comment
from torchmigrate.semantics.facts.file_facts import NOT_CONSTANT
from torchmigrate.semantics.model import Role
from torchmigrate.source.trees import has_effects
from torchmigrate.versions.range import applicability


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> list[Finding]:
    """The findings of a rule that names this codemod; its sole case says how safe the fix is."""
    fixes: dict[int, Fix] = {}
    blocks: dict[int, list[RuleMatch]] = defaultdict(list)
    for hit in hits:
        if _removable(hit, file):
            blocks[id(hit.use.block)].append(hit)
    for found in blocks.values():  # together, since a block must not become empty
        fix = _removal(rule, found, file)
        fixes.update((id(hit), fix) for hit in found)
    for hit in hits:
        if hit.use.role is Role.IMPORT:
            users = [user for user in hits if user is not hit and user.use.binding is hit.use.binding]
            shared = {fixes.get(id(user)) for user in users}
            binding = hit.use.binding
            if binding is not None and len(shared) == 1 and len(users) == len(binding.uses):
                fix_of_all = shared.pop()
                if fix_of_all is not None:
                    fixes[id(hit)] = fix_of_all
    return [file.fixes.finding(hit, fixes.get(id(hit))) for hit in hits]


def _removable(hit: RuleMatch, file: FileContext) -> bool:
    """Whether the use is a statement of its own that computes nothing else."""
    use, statement = hit.use, hit.use.statement
    if use.role is not Role.CALL or use.call is None or not file.fixes.may_fix(hit):
        return False
    if not isinstance(statement, ast.Expr) or statement.value is not use.call:
        return False
    if use.method:
        return not any(map(has_effects, (*use.call.args, *use.call.keywords)))
    given = [*use.call.args, *(keyword.value for keyword in use.call.keywords)]
    return all(hit.place.value(item) is not NOT_CONSTANT for item in given)


def _removal(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Fix:
    """One fix for all calls in a block."""
    edits = file.fixes.remove(hits[0].use.block, [hit.use.statement for hit in hits])
    level, reasons = applicability(rule.cases[0], rule, file.versions)
    if level is Applicability.SAFE and any(_has_comment(hit, file) for hit in hits):
        level, reasons = Applicability.UNSAFE, (COMMENT_LOST,)
    releases = tuple(release for hit in hits for release in file.imports.releases(hit.use))
    return file.fixes.fix(rule, "Remove the call", level, reasons, edits, releases)


def _has_comment(hit: RuleMatch, file: FileContext) -> bool:
    """Whether a comment is on a line of the call or between its arguments."""
    line = logical_line(file.source, hit.use.block, hit.use.statement)
    return bool(line.comment) or has_comment(file.source, hit.use.statement)
