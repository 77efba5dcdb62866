"""Findings that ask for one decision become one, which lists the other places."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding, Fix
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk


def decided_once(
    found: Sequence[Finding], rule_of: Callable[[str], Rule | None], source: Source
) -> list[Finding]:
    """The findings, those of a rule with `once` that give the same advice in one scope as one.

    It stands where the first of them is (the import, where that is one of them), and `places` are the others.
    Where all have a fix and these fit together, it makes all of them; a finding without one is not joined
    with findings that have one.

    Args:
        found: what is left of one file when suppressions have been heeded.
        rule_of: the rule of a code; None for those that are no entry of the catalogue.
    """
    by_code: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        by_code[finding.code].append(finding)
    rest: list[Finding] = []
    functions: _Functions | None = None
    for code, alike in by_code.items():
        rule = rule_of(code) if len(alike) > 1 else None
        if rule is None or rule.once is None:
            rest += alike
            continue
        groups: defaultdict[tuple[object, ...], list[Finding]] = defaultdict(list)
        for finding in alike:
            scope = 0
            if rule.once == "function":
                functions = functions or _Functions(source)
                scope = functions.around(finding.start)
            fix = finding.fix
            said = finding.blocked_by, finding.help
            key = (scope, said, fix and (fix.applicability, fix.held_by))
            groups[key].append(finding)
        for group in groups.values():
            rest += _joined(group)
    return rest


def _joined(group: list[Finding]) -> Iterator[Finding]:
    group.sort(key=lambda finding: (finding.start, finding.end))
    objects = {id(finding.fix): finding.fix for finding in group if finding.fix is not None}
    fixes = list(dict.fromkeys(objects.values()))
    fix = fixes[0] if len(fixes) == 1 else _together(fixes)
    if len(group) == 1 or (fixes and fix is None):
        yield from group
        return
    first, *others = group
    yield replace(first, fix=fix, places=tuple((finding.start, finding.end) for finding in others))


def _together(fixes: Sequence[Fix]) -> Fix | None:
    """One fix of several, None where they get in each other's way."""
    if not fixes:
        return None
    edits = sorted({edit for fix in fixes for edit in fix.edits})
    if any(edit.start < before.end or edit.start == before.start for before, edit in pairwise(edits)):
        return None
    requires = sorted({release for fix in fixes for release in fix.requires})
    return replace(
        fixes[0],
        edits=tuple(edits),
        releases=tuple(release for fix in fixes for release in fix.releases),
        requires=tuple(requires),
        unsafe=None,
        lesser=None,
    )


class _Functions:
    """The functions of a file that are in no other function, by what they span."""

    def __init__(self, source: Source) -> None:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        self._spans: list[tuple[int, int]] = []
        for span in sorted(source.span(node) for node in walk(source.parse()) if isinstance(node, kinds)):
            if not self._spans or span[0] >= self._spans[-1][1]:
                self._spans.append(span)

    def around(self, offset: int) -> int:
        """Where the function around an offset begins; -1 outside of functions."""
        index = bisect_right(self._spans, offset, key=itemgetter(0)) - 1
        inside = index >= 0 and offset < self._spans[index][1]
        return self._spans[index][0] if inside else -1
