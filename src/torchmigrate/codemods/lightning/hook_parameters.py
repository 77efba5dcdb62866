"""TM886: parameters of overridden hooks that Lightning no longer gives."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.variants import rule_for_symbol
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.codemods.base.subclasses import Method
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.lightning.modules import attributes, names_in, subclasses
from torchmigrate.findings import Edit, Finding, Reason
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import name_span
from torchmigrate.rewrite.parameters import parameters_dropped
from torchmigrate.rewrite.statements import Crowded


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every hook with such a parameter."""
    for symbol, variables in rule.symbols.items():
        owner, _, name = symbol.rpartition(".")
        for item in subclasses(file, owner.rpartition(".")[2]):
            method = item.method(name)
            gone = [] if method is None else _gone(method, variables["gone"])
            if method is None or not gone:
                continue
            own, fix = rule_for_symbol(rule, symbol), None
            blocked_by: tuple[Reason, ...] = ()
            try:
                fix = fix_by(own, file, f"Remove {_listed(gone)}", *_edits(method, gone, file))
            except (Unclear, Crowded) as error:
                blocked_by = error.reasons
            span = name_span(file.source, method)
            yield replace(finding_at(own, file, span, symbol=symbol, fix=fix), blocked_by=blocked_by)


def _gone(method: Method, words: str) -> list[ast.arg]:
    """The parameters of a method that are among some words, unless it works without what they get.

    It does if all of them have defaults, and no other parameter comes after them; but Lightning refuses a
    training step with one.
    """
    plain, names = method.args.args, words.split(", ")
    if method.decorator_list or method.args.vararg is not None:
        return []
    found = [item for item in (*plain, *method.args.kwonlyargs) if item.arg in names]
    needed = plain[: len(plain) - len(method.args.defaults)]
    last = max((number for number, item in enumerate(plain) if item.arg not in names), default=0)
    shifts = any(item.arg in names for item in (*needed, *plain[:last]))
    return found if shifts or method.name == "training_step" else []


def _listed(parameters: Sequence[ast.arg]) -> str:
    return " and ".join(f"`{item.arg}`" for item in parameters)


def _edits(method: Method, gone: Sequence[ast.arg], file: FileContext) -> list[Edit]:
    """The method without the parameters, and without what it gives its base. Raises Unclear, Crowded."""
    names = {item.arg for item in gone}
    rewriting = file.rewriting()
    rewriting.record(parameters_dropped(file.source, method, gone))
    passed: set[int] = set()
    for node in attributes(file, method.name):
        call = next((item for item in file.names.nodes(ast.Call) if item.func is node), None)
        if call is None or not _is_super(node.value):
            raise Unclear(f"the file calls `{method.name}` itself", node)
        editor = CallEditor(file.source, call)
        everything: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        for given in everything:
            value = given.value if isinstance(given, ast.keyword) else given
            if isinstance(value, ast.Name) and value.id in names:
                editor.drop(given)
                passed.add(id(value))
        rewriting.record(editor.edits())
    for name in sorted(names):
        used = [node for node in names_in(method, name) if id(node) not in passed]
        if used:
            raise Unclear(f"`{name}` is used", used[0])
    return rewriting.edits()


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
