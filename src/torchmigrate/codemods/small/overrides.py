"""Methods by which classes of the file override a method that a library now calls differently.

Of its rules, symbols are methods of library classes. With the variable `parameter`, the library gives an
argument of this name, which an old override does not take. With `new`, it calls the method by this name, so
that an override of the old one is no longer called: it is renamed, unless the class has both. With neither,
nothing calls it now.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.variants import rule_for_symbol
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.codemods.base.subclasses import Method, Subclass, subclass_of, takes
from torchmigrate.findings import Edit, Finding, Fix
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import name_span, renamed, word_replaced
from torchmigrate.semantics.model import Role
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import severity
from torchmigrate.versions.surface import surface_of


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every override."""
    yield from file.fixes.findings([hit for hit in hits if hit.use.role is not Role.BASE])
    bases = [use for use in file.names.uses if use.role is Role.BASE and not file.runs_elsewhere(use.node)]
    members = {symbol.rpartition(".")[2] for symbol in rule.symbols}
    for use in bases:
        item = subclass_of(use)
        overrides = [name for name in sorted(members) if item is not None and item.method(name) is not None]
        for name in overrides:
            assert item is not None, "it has a method"
            symbol = _overridden(rule, name, use.candidates[0], file)
            if symbol is not None:
                yield from _finding(rule_for_symbol(rule, symbol), symbol, item, file)


def _overridden(rule: Rule, name: str, cls: str, file: FileContext) -> str | None:
    """The symbol that a method of this name overrides in a class derived from `cls`."""
    target, surface = file.target(cls.partition(".")[0]), surface_of(cls)
    if target is None or surface is None:
        return None
    above = surface.ancestry(cls, target)
    for symbol in rule.symbols:
        owner, _, member = symbol.rpartition(".")
        if member == name and surface.definition(owner, target) in above:
            return symbol
    return None


def _finding(rule: Rule, symbol: str, item: Subclass, file: FileContext) -> Iterator[Finding]:
    variables = rule.symbols[symbol]
    method = item.method(symbol.rpartition(".")[2])
    if method is None or severity(rule, file.versions) is None:
        return
    fix = None
    if "parameter" in variables:
        if takes(method, variables["parameter"]):
            return
    elif "new" in variables:
        new = variables["new"].rpartition(".")[2]
        if item.method(new) is not None or _is_called(method.name, item):
            return  # the old one is for older releases, or is what the new one calls
        fix = _renaming(rule, method, new, item, file) if item.base is not None and item.base.sure else None
    yield finding_at(rule, file, name_span(file.source, method), symbol=symbol, fix=fix)


def _is_called(name: str, item: Subclass) -> bool:
    """Whether something else in the class calls a method, so that it is not there for the library alone."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == name and not _is_super(node.value)
        for node in walk(item.node)
    )


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _renaming(rule: Rule, method: Method, new: str, item: Subclass, file: FileContext) -> Fix:
    """The method by its new name, with what it calls of the base."""
    old = method.name
    edits = [word_replaced(name_span(file.source, method)[0], old, new)]
    for node in walk(item.node):
        if isinstance(node, ast.Attribute) and node.attr == old and _is_super(node.value):
            edit: Edit | None = renamed(file.source, node, old, new)
            edits += [edit] if edit is not None else []
    return fix_by(rule, file, f"Rename to `{new}`", *edits)
