"""Uses for the tests of matching and rewriting, made by the real resolver from small files."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from torchmigrate.catalogue.model import Case, Condition, ResultUse, Rule
from torchmigrate.match.context import Match, MatchContext, Rewrite
from torchmigrate.match.matching import matches
from torchmigrate.match.rule_matches import make_place
from torchmigrate.rewrite.apply import splice
from torchmigrate.rewrite.cases.rewriting import rewrite
from torchmigrate.semantics.facts.dtypes import ValueFacts
from torchmigrate.semantics.facts.file_facts import FileFacts
from torchmigrate.semantics.walk.resolver import resolve
from torchmigrate.source.text import Source


def make_rule(
    *cases: Case, symbols: Mapping[str, Mapping[str, str]] | list[str] | None = None, **others: Any
) -> Rule:
    """A rule for `torch.old(a, b=1, c=None)` unless said otherwise."""
    named = symbols or ["torch.old", "torch.Tensor.symeig"]
    variables = dict(named) if isinstance(named, Mapping) else {name: {} for name in named}
    others.setdefault("signature", "(a, b=1, c=None)")
    return Rule("TM999", "test", "", "torch", variables, cases=cases, **others)


def is_(*values: object) -> Condition:
    return Condition("value", values)


GIVEN, ABSENT, ANY = Condition("given"), Condition("absent"), Condition("any")


def source_of(code: str) -> Source:
    # Since Python 3.14, `dedent` changes the ends of empty lines.
    plain = code if "\r" in code else textwrap.dedent(code)
    return Source.from_text(plain.lstrip("\n"), Path("case.py"))


def places(
    source: Source, rule: Rule, spell: Callable[[str], str | None] | None = None
) -> list[MatchContext]:
    """Every use that the rule knows by name, in source order."""
    names = resolve(ast.parse(source.text), source)
    kinds = ValueFacts(names, FileFacts(names))
    return [
        make_place(use, source, kinds, spell or (lambda name: name))
        for use in names.uses
        if any(candidate in rule.symbols for candidate in use.candidates) and use.role.value != "import"
    ]


def first_match(code: str, rule: Rule) -> tuple[Match, str] | None:
    """What the rule finds first, and the text that the finding points at."""
    source = source_of(code)
    for place in places(source, rule):
        match = matches(rule, place)
        if match is not None:
            return match, source.text[match.start : match.end]
    return None


def first_rewrite(
    code: str, rule: Rule, spell: Callable[[str], str | None] | None = None
) -> tuple[Rewrite, Source] | None:
    """The rewrite of the first use that the rule applies to."""
    source = source_of(code)
    for place in places(source, rule, spell):
        match = matches(rule, place)
        if match is not None:
            variables = rule.symbols.get(match.symbol, {})
            made = rewrite(rule, variables, place, match)
            return None if made is None else (made, source)
    return None


def apply(made: Rewrite, source: Source) -> str:
    """The text after a rewrite, which must be minimal, in order, and parse."""
    end = -1
    for edit in made.edits:
        assert end < edit.start <= edit.end, "edits are sorted and do not touch"
        assert source.text[edit.start : edit.end] != edit.text, "every edit changes something"
        end = edit.end
    text = splice(source.text, made.edits)
    ast.parse(text)
    return text


def fixed(code: str, rule: Rule, spell: Callable[[str], str | None] | None = None) -> str | None:
    """The text after the rewrite of the first use; None where there is no fix."""
    found = first_rewrite(code, rule, spell)
    return None if found is None else apply(*found)


def call(code: str, *cases: Case, **others: Any) -> str | None:
    """The fixed form of one expression or statement, in a file that imports torch and has a tensor `x`."""
    rule = make_rule(*cases, **others)
    head = "import torch\nx = torch.zeros(3, 3)\n"
    newline = "\r\n" if "\r\n" in code else "\n"
    head = head.replace("\n", newline)
    found = first_rewrite(head + code, rule)
    if found is None:
        return None
    text = apply(*found)
    assert text.startswith(head)
    return text[len(head) :]


def with_result(case: Case, **result: Any) -> Case:
    """A case that is about the use of the result."""
    return replace(case, result=ResultUse(**result))
