"""Assignments that fixes leave without a purpose: `x = x`, `self.x = self.x`, `x, y = x, y`."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from torchmigrate.findings import Edit, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.apply import splice
from torchmigrate.rewrite.lines import logical_line
from torchmigrate.source.text import Source

_DOTTED = pattern(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def remove_idle(
    found: list[tuple[RuleMatch, Fix | None]],
    source: Source,
    remove: Callable[[list[ast.stmt], list[ast.stmt]], tuple[Edit, ...]],
) -> None:
    """Replace the fixes of one rule that leave such an assignment, alone or together, by one that removes it.

    Args:
        found: hits with their fixes, changed in place.
        remove: gives the edits that remove statements of a block.
    """
    groups: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for number, (hit, fix) in enumerate(found):
        if fix is not None and isinstance(hit.use.statement, ast.Assign):
            groups[id(hit.use.statement), hit.rule.code].append(number)
    for numbers in groups.values():
        fixes = list({id(fix): fix for number in numbers if (fix := found[number][1]) is not None}.values())
        use = found[numbers[0]][0].use
        if not _becomes_idle(use.statement, use.block, {edit for fix in fixes for edit in fix.edits}, source):
            continue
        both = replace(
            min(fixes, key=lambda fix: fix.applicability),
            edits=remove(use.block, [use.statement]),
            releases=tuple(release for fix in fixes for release in fix.releases),
            requires=tuple(sorted({name for fix in fixes for name in fix.requires})),
        )
        for number in numbers:
            found[number] = found[number][0], both


def _becomes_idle(statement: ast.stmt, block: list[ast.stmt], edits: Iterable[Edit], source: Source) -> bool:
    """Whether edits inside an assignment leave variables assigned to themselves, and no comment is lost."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [ast.unparse(part) for part in parts]
    start, end = source.span(statement)
    inside = sorted(Edit(edit.start - start, edit.end - start, edit.text) for edit in edits)
    if not all(map(_DOTTED.fullmatch, names)) or any(
        edit.start < 0 or edit.end > end - start for edit in inside
    ):
        return False
    line = logical_line(source, block, statement)
    if line.indent is None or (line.comment and line.statements == (statement,)):
        return False
    after = splice(source.text[start:end], inside)
    if "#" in after:  # there is no other code in it than names: a comment
        return False
    try:
        (made,) = ast.parse(after).body
    except (SyntaxError, ValueError):
        return False
    return isinstance(made, ast.Assign) and ast.unparse(made.value) == ast.unparse(target)
