"""TM127: code that refuses to run on the release of the target.

`assert torch.__version__.startswith("1.")`, or `if ...: raise`. The code after it counts as code for other
releases, so no other rule reports it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.formulas import All, Any_, Formula, Not, VersionTest
from torchmigrate.semantics.guards.formulas import Lookup, outcome
from torchmigrate.versions.releases import RELEASES, show_version

_TORCH = "torch"
# `raise pytest.skip(...)`, `raise unittest.SkipTest`, `raise self.skipTest(...)`
_SKIPS = pattern("skip|xfail", re.IGNORECASE)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every test that the target does not pass."""
    for node, wanted, statement in _demands(file):
        test = file.names.guarded.said(node)
        if not _is_of_versions(test):
            continue
        since = _refused_since(test, wanted, file)
        if since is not None:
            span = file.source.span(node)
            one = replace(rule, removed=since)
            fix = _without(statement, one, file) if statement is not None else None
            yield finding_at(one, file, span, symbol=f"{_TORCH}.__version__", fix=fix)


def _demands(file: FileContext) -> Iterator[tuple[ast.expr, bool, ast.stmt | None]]:
    """Tests, what has to come out of each so that the code goes on, and statements that are nothing else."""
    for statement in file.names.nodes(ast.Assert):
        yield statement.test, True, statement
    for branch in file.names.nodes(ast.If):
        if _refuses(branch.body):
            yield branch.test, False, None if branch.orelse else branch
        if _refuses(branch.orelse):
            yield branch.test, True, None


def _without(statement: ast.stmt, rule: Rule, file: FileContext) -> Fix | None:
    """The fix that removes a check of a whole module; a function may be for old releases only."""
    body = file.tree.body
    if not any(item is statement for item in body):
        return None
    return fix_by(rule, file, "Remove the check", *file.fixes.remove(body, [statement]))


def _refuses(body: list[ast.stmt]) -> bool:
    """Whether a block is nothing but an error (with a message before it); no test that is skipped."""
    last = body[-1] if body else None
    if not isinstance(last, ast.Raise) or last.exc is None or len(body) > 2:
        return False
    return not _SKIPS.search(ast.unparse(last.exc).partition("(")[0])


def _is_of_versions(test: Formula) -> bool:
    if isinstance(test, (All, Any_)):
        return all(map(_is_of_versions, test.parts))
    if isinstance(test, Not):
        return _is_of_versions(test.formula)
    return isinstance(test, VersionTest) and test.library == _TORCH


def _refused_since(test: Formula, wanted: bool, file: FileContext) -> str | None:
    """The first release from which on every release up to the target fails a test; None if the target
    passes."""
    target, since = file.target(_TORCH), None
    for release in reversed([release for release in RELEASES if target is not None and release <= target]):
        lookup = Lookup(lambda _, release=release: release, lambda _: None, lambda _: None)  # type: ignore[misc]
        if outcome(test, lookup) is not (not wanted):
            break
        since = show_version(release)
    return since
