"""TM345 and TM346: operators and branches that give back what they were given.

The rules are about functions given to `torch.library.custom_op` and to `torch.cond`. A result is found
that is a parameter itself, which the function never binds anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.findings import Finding
from torchmigrate.match.matching import given_by, signature_of
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import replaced_around
from torchmigrate.semantics.flow.mentions import parameters
from torchmigrate.source.trees import walk

_TENSOR = "torch.Tensor"
_Definition = ast.FunctionDef | ast.Lambda


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every result that is one of the arguments; its fix copies it."""
    seen: set[ast.expr] = set()
    for hit in hits:
        for definition in _definitions(hit, file):
            for result in _returned(definition, hit):
                if result not in seen:
                    seen.add(result)
                    fix = None
                    if file.fixes.may_fix(hit):
                        copy = code("$result.clone()", result=result)
                        fix = fix_by(
                            rule, file, "Add `.clone()`", *replaced_around(file.source, result, copy, result)
                        )
                    yield finding_at(rule, file, file.source.span(result), symbol=hit.symbol, fix=fix)


def _definitions(hit: RuleMatch, file: FileContext) -> Iterator[_Definition]:
    """The functions that a use makes operators or branches of."""
    use = hit.use
    if isinstance(use.decorates, ast.FunctionDef):
        yield use.decorates
        return
    if use.call is None:
        return
    given = given_by(signature_of(hit.rule, hit.symbol), use)
    for name in ("fn", "true_fn", "false_fn"):
        function = given.expression(name)
        if isinstance(function, ast.Lambda):
            yield function
        elif isinstance(function, ast.Name):
            found = [node for node in file.names.nodes(ast.FunctionDef) if node.name == function.id]
            if len(found) == 1:
                yield found[0]


def _returned(definition: _Definition, hit: RuleMatch) -> Iterator[ast.expr]:
    """The results of a function that are its parameters."""
    given = set(parameters(definition.args))
    if isinstance(definition, ast.Lambda):
        yield from _among(definition.body, given)
        return
    if hit.symbol.startswith("torch.library"):  # their annotations are what the operator's schema is made of
        given = {
            one.arg
            for one in (*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs)
            if one.annotation is not None and hit.place.qualified(one.annotation) == _TENSOR
        }
    inner = {
        node for one in walk(definition) if one is not definition and _is_scope(one) for node in walk(one)
    }
    own = [node for node in walk(definition) if node not in inner]
    given -= {node.id for node in own if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    for node in own:
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _among(node.value, given)


def _is_scope(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))


def _among(result: ast.expr, names: set[str]) -> Iterator[ast.expr]:
    for item in result.elts if isinstance(result, (ast.Tuple, ast.List)) else [result]:
        if isinstance(item, ast.Name) and item.id in names:
            yield item
