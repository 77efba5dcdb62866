"""Findings that ask for one decision become one, which lists the other places."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding, Fix
from torchmigrate.rewrite.joined import joined_title
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk

if TYPE_CHECKING:
    from torchmigrate.rewrite.context import FileContext
    from torchmigrate.semantics.model import Binding, Use

_Span = tuple[int, int]


def decided_once(
    found: Sequence[Finding],
    rule_of: Callable[[str], Rule | None],
    source: Source,
    file: FileContext | None = None,
) -> list[Finding]:
    """The findings, those that give the same advice in one scope as one.

    The scope is that of a rule with `once`; of any rule, an import and the uses of what it binds. The finding
    stands where the first of them is (the import, where that is one of them), `places` are the others, and it
    is as severe as the worst one. Where all have a fix and these fit together, it makes all of them; one that
    has no fix is not joined with those that have one.

    Args:
        found: what is left of one file when suppressions have been heeded.
        rule_of: the rule of a code; None for those without an entry in the catalogue.
        file: what is known of the file; None: imports are findings of their own.
    """
    by_code: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        by_code[finding.code].append(finding)
    rest: list[Finding] = []
    functions: _Functions | None = None
    imports: _Imports | None = None
    for code, alike in by_code.items():
        rule = rule_of(code) if len(alike) > 1 else None
        if rule is not None and rule.once is not None:
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
            alike = [
                finding for group in groups.values() for finding in _joined(sorted(group, key=_span)) or group
            ]
        if len(alike) > 1 and file is not None:
            imports = imports or _Imports(file)
            alike = imports.joined(alike)
        rest += alike
    return rest


def _joined(group: list[Finding]) -> list[Finding]:
    """Join a group into its first finding; an empty list if their fixes do not fit together."""
    objects = {id(finding.fix): finding.fix for finding in group if finding.fix is not None}
    fixes = list(dict.fromkeys(objects.values()))
    fix = fixes[0] if len(fixes) == 1 else _together(fixes)
    if not group or (fixes and fix is None):
        return []
    first, *others = group
    places = {*first.places, *(place for other in others for place in (_span(other), *other.places))}
    severity = max(finding.severity for finding in group)
    return [replace(first, fix=fix, severity=severity, places=tuple(sorted(places - {_span(first)})))]


def _span(finding: Finding) -> _Span:
    return finding.start, finding.end


def _together(fixes: Sequence[Fix]) -> Fix | None:
    """One fix of several that are equally safe; None where they get in each other's way."""
    if not fixes:
        return None
    edits = sorted({edit for fix in fixes for edit in fix.edits})
    for before, edit in pairwise(edits):
        inserted = before.mergeable and edit.mergeable and before.end == edit.end
        if edit.start < before.end or (edit.start == before.start and not inserted):
            return None
    unsafe = _together([fix.unsafe or fix for fix in fixes]) if any(fix.unsafe for fix in fixes) else None
    lesser = _together([fix.lesser or fix for fix in fixes]) if any(fix.lesser for fix in fixes) else None
    return replace(
        fixes[0],
        title=joined_title(list(dict.fromkeys(fix.title for fix in fixes))),
        edits=tuple(edits),
        held_by=tuple(dict.fromkeys(reason for fix in fixes for reason in fix.held_by)),
        releases=tuple(dict.fromkeys(release for fix in fixes for release in fix.releases)),
        requires=tuple(sorted({release for fix in fixes for release in fix.requires})),
        unsafe=unsafe,
        lesser=lesser,
    )


class _Imports:
    """The imports of a file, and the uses of what they bind."""

    def __init__(self, file: FileContext) -> None:
        self._file = file
        # The API rules report uses as they are, the rules of the catalogue have places of their own.
        self._uses = {(use.start, use.end): use for use in file.names.uses if use.binding is not None}
        self._hits = {
            (hit.rule.code, hit.match.start, hit.match.end): hit.use
            for hit in file.hits
            if hit.use.binding is not None
        }

    def joined(self, alike: list[Finding]) -> list[Finding]:
        """The findings of one rule, those of imports joined with those of their uses."""
        uses: defaultdict[Hashable, list[Finding]] = defaultdict(list)
        imports: list[tuple[Finding, Binding]] = []
        for finding in alike:
            use = self._use(finding.code, _span(finding))
            if use is None or use.binding is None or finding.symbol is None:
                continue
            if use.node is use.binding.node:
                imports.append((finding, use.binding))
            else:
                uses[_bound(use.binding)].append(finding)
        left = {id(finding): finding for finding in alike}
        for finding, binding in imports:
            users = [
                user
                for user in uses.get(_bound(binding), ())
                if id(user) in left and f"{user.symbol}.".startswith(f"{finding.symbol}.")
            ]
            group = self._group(finding, binding, users) if users else []
            for one in _joined(group):
                for each in group:
                    del left[id(each)]
                left[id(one)] = one
        return list(left.values())

    def _use(self, code: str, span: _Span) -> Use | None:
        return self._hits.get((code, *span)) or self._uses.get(span)

    def _group(self, finding: Finding, binding: Binding, users: list[Finding]) -> list[Finding]:
        """The finding of an import, and those of its uses that are one with it; an empty list: none are.

        Where each use has advice of its own, that is the first one of them.
        """
        own = _advice(finding, finding)
        group = [finding, *(user for user in users if _advice(user, finding) == own)]
        if len(group) == 1 and self._are_all(users, finding, binding):
            first = min(users, key=_span)
            group = [first, finding] if set(finding.blocked_by) <= set(first.blocked_by) else []
        if len(group) < 2:
            return []
        if finding.fix is None and any(user.fix is not None for user in users):
            # With the fixes of all uses, the import is removed.
            levels = {user.fix and user.fix.applicability for user in users}
            removed = (
                len(levels) == 1
                and self._are_all(users, finding, binding)
                and not self._file.exports.takes(binding)
            )
            return group if removed else []
        return group if len({each.fix and each.fix.applicability for each in group}) == 1 else []

    def _are_all(self, users: list[Finding], finding: Finding, binding: Binding) -> bool:
        """Whether each use of what was found is reported."""
        reported = {
            use.start
            for user in users
            for span in (_span(user), *user.places)
            if (use := self._use(user.code, span)) is not None
        }
        if binding.target == finding.symbol:
            return reported.issuperset(binding.uses)
        bound = _bound(binding)  # of `import a.b`, by which `a` has other uses
        return all(
            use.start in reported
            for use in self._uses.values()
            if use.binding is not None
            and _bound(use.binding) == bound
            and use.node is not use.binding.node
            and any(f"{name}.".startswith(f"{finding.symbol}.") for name in use.candidates)
        )


def _bound(binding: Binding) -> Hashable:
    """What the imports have in common that bind one module: `import a.b` and `import a.c` bind `a`."""
    return (id(binding.scope), binding.name) if binding.target == binding.name else binding.id


def _advice(finding: Finding, of: Finding) -> Hashable:
    """What a finding says, in the terms of one about the same name, or about a module that has it."""
    member = (finding.symbol or "")[len(of.symbol or "") :]

    def general(text: str | None) -> str | None:
        return text.replace(f"{member}`", "`") if text and member else text

    return general(finding.message), general(finding.help), finding.timeline, finding.lacking


class _Functions:
    """The functions of a file that are in no other function, by what they span."""

    def __init__(self, source: Source) -> None:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        self._spans: list[_Span] = []
        for span in sorted(source.span(node) for node in walk(source.parse()) if isinstance(node, kinds)):
            if not self._spans or span[0] >= self._spans[-1][1]:
                self._spans.append(span)

    def around(self, offset: int) -> int:
        """Where the function around an offset begins; -1 outside of functions."""
        index = bisect_right(self._spans, offset, key=itemgetter(0)) - 1
        inside = index >= 0 and offset < self._spans[index][1]
        return self._spans[index][0] if inside else -1
