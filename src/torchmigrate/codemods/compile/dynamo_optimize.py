"""TM941: `torch._dynamo.optimize(backend)(model)`, and the same as a decorator, as `torch.compile`.

What `optimize` gives can also be a context manager, or be kept and used again; `torch.compile` without a
model gives a plain function. So only a call of it on the spot, and a decorator, are rewritten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import Argument, code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.nodes import has_comment, replaced
from torchmigrate.semantics.model import Role
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability, required

_COMPILE = "torch.compile"
# `nopython=` is the only keyword with another name; guard functions have no public counterpart.
_KEYWORDS = {"backend": "backend", "nopython": "fullgraph", "dynamic": "dynamic", "disable": "disable"}


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every use."""
    around: dict[int, ast.Call] = {}
    if hits:
        around = {id(node.func): node for node in walk(file.names.tree) if isinstance(node, ast.Call)}
    for hit in hits:
        yield file.fixes.finding(hit, _fix(rule, hit, around, file))


def _fix(rule: Rule, hit: RuleMatch, around: dict[int, ast.Call], file: FileContext) -> Fix | None:
    use, call = hit.use, hit.use.call
    if use.role is not Role.CALL or call is None or not file.fixes.may_fix(hit):
        return None
    given = _arguments(call, file)
    outer = around.get(id(call))
    if given is None or (outer is None and use.decorates is None):
        return None
    if outer is not None:
        if outer.keywords or len(outer.args) != 1 or isinstance(outer.args[0], ast.Starred):
            return None
        given.insert(0, Argument(outer.args[0]))
    whole = outer or call
    if has_comment(file.source, whole):
        return None  # a comment would be lost
    spelling = file.imports.spell(_COMPILE, use)
    if isinstance(spelling, Refusal):
        return None
    # `@torch.compile` needs no call; with one, it takes what follows all the same.
    plain = outer is None and not given
    new = code("$compile" if plain else "$compile(*$given)", compile=spelling.text, given=given)
    # What `torch` was bound by is still used by the new name.
    releases = () if _root(spelling.text) == _root(ast.unparse(use.node)) else file.imports.releases(use)
    level, reason = applicability(rule.cases[0], rule, file.versions)
    return file.fixes.fix(
        rule,
        f"Replace with `{_COMPILE}`",
        level,
        reason,
        (replaced(file.source, whole, new), *spelling.edits),
        releases,
        required(rule.cases[0], rule),
    )


def _root(name: str) -> str:
    return name.partition(".")[0]


def _arguments(call: ast.Call, file: FileContext) -> list[Argument] | None:
    """The arguments as `torch.compile` has them, in their order; None: one of them it does not have."""
    if len(call.args) > 1 or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(isinstance(item, (ast.NamedExpr, ast.Yield, ast.Await)) for item in values):
        return None  # they may need brackets
    found = [Argument(item, "backend") for item in call.args]
    for keyword in call.keywords:
        name = _KEYWORDS.get(keyword.arg or "")
        if name is None:
            return None
        found.append(Argument(keyword.value, name))
    return found
