"""TM353 and TM533: methods of subclasses that the library calls otherwise, or not any more.

A symbol of the rule is a base class. Its variable `methods` names what subclasses may define; `argument` is
the parameter that such a method has to take; without it the library does not call the method at all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import name_span
from torchmigrate.semantics.model import Role


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding at the name of every such method."""
    for hit in hits:
        cls = hit.use.statement
        if hit.use.role is not Role.BASE or not isinstance(cls, ast.ClassDef):
            continue
        variables = rule.symbols[hit.symbol]
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.name in variables["methods"].split():
                argument = variables.get("argument")
                if not argument or not _takes(method.args, argument):
                    span = name_span(file.source, method)
                    yield finding_at(rule, file, span, symbol=f"{hit.symbol}.{method.name}", fix=None)


def _takes(arguments: ast.arguments, name: str) -> bool:
    named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return arguments.kwarg is not None or any(one.arg == name for one in named)
