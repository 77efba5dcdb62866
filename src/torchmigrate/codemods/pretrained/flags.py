"""TM722, TM725, TM726: flags of torchvision's builders, also of builders in variables and tables.

What a builder is given directly is rewritten by the cases of the rule. A builder in a variable or a table
gets weights by their name as a string, which is right for every builder that has weights of that name. A flag
in a dict that a call unpacks, or of a `functools.partial`, is only reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.pretrained.choice import Choice, ModelChoices
from torchmigrate.codemods.pretrained.flag_edits import argument_edits, flag_argument
from torchmigrate.findings import Applicability, Finding, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.values import PARTIAL
from torchmigrate.semantics.guards.formulas import is_handled
from torchmigrate.semantics.model import Via
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability, required

_CHOICES = "choices of models"
_BEST = because(
    'the original weights of the models have different names; `"DEFAULT"` selects the best weights of each'
)


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings of one of the rules about a flag of builders."""
    hits = [_with_weights_by_name(hit) for hit in hits if not _is_passed_on(hit, file)]
    seen: set[ast.AST | None] = set()
    if "pretrained" in file.source.text:
        search = _Search(rule, hits, file, file.once(_CHOICES, lambda: ModelChoices(file.flow)))
        yield from search.findings()
        seen = search.seen
    yield from file.fixes.findings([hit for hit in hits if hit.use.call not in seen])


def _is_passed_on(hit: RuleMatch, file: FileContext) -> bool:
    """Whether the flag is one of the `**keywords` of a function, whose calls are looked at themselves."""
    call = hit.use.call
    if call is None or (hit.match.start, hit.match.end) in map(hit.place.span, (*call.args, *call.keywords)):
        return False
    options = [keyword.value for keyword in call.keywords if keyword.arg is None]
    return any(isinstance(file.flow.only_origin(item), ast.arg) for item in options)


def _with_weights_by_name(hit: RuleMatch) -> RuleMatch:
    """The hit; if weights are given in the place of the flag already, only their name is missing."""
    call, parameter = hit.use.call, hit.match.parameter
    at = hit.match.start, hit.match.end
    given = next((node for node in call.args if hit.place.span(node) == at), None) if call else None
    if not isinstance(given, ast.Attribute) or not isinstance(given.value, (ast.Name, ast.Attribute)):
        return hit
    owner = given.value.id if isinstance(given.value, ast.Name) else given.value.attr
    named = [case for case in hit.rule.cases if parameter in case.when and parameter in case.keywords]
    if not owner.endswith("_Weights") or not named:
        return hit
    case = replace(named[-1], set={}, applicability=Applicability.SAFE, reason=None)
    return replace(hit, rule=replace(hit.rule, cases=(case,)))


class _Search:
    """The flags that one rule finds in one file, where a builder is in a variable or a table."""

    def __init__(
        self, rule: Rule, hits: Sequence[RuleMatch], file: FileContext, choices: ModelChoices
    ) -> None:
        self.rule = rule
        self.file = file
        self.choices = choices
        self.old = rule.parameters[0]
        self.new = self.old.replace("pretrained", "weights")
        self.seen: set[ast.AST | None] = set()
        self._calls = {hit.use.call for hit in hits}
        self._uses = {id(use.node): use for use in file.names.uses}

    def findings(self) -> Iterator[Finding]:
        """The findings; `seen` has their calls afterwards."""
        index, first = self.file.flow.index, "first" in self.rule.parameters
        for node in self.file.names.nodes(ast.Call):
            partial = self.file.flow.imported(node.func) == PARTIAL and bool(node.args)
            given = flag_argument(node, self.old, int(partial) if first else None)
            if given is None or index.in_fstring(node):
                continue
            use = self._uses.get(id(node.func))
            if use is not None and use.call is node and (use.via is Via.IMPORT or node not in self._calls):
                continue  # given directly, or the guards around it take care of it
            choice = self.choices.of(node.args[0] if partial else node.func, self.rule.symbols)
            if not choice.symbols or self._gives_weights(node) or self._is_handled(node):
                continue
            if not choice.rebound or choice.whole:  # else, it may well be the other one at this place
                self.seen.add(node)
                yield self._finding(node, given, choice, partial=partial)

    def _finding(
        self, node: ast.Call, given: ast.keyword | ast.expr, choice: Choice, *, partial: bool
    ) -> Finding:
        members = {self.rule.symbols[symbol]["W"].rpartition(".")[2] for symbol in choice.symbols}
        weights = f'"{members.pop()}"' if len(members) == 1 else '"DEFAULT"'
        edits = None
        alone = isinstance(given, ast.keyword) or (len(node.args) == 1 and not choice.by_keyword)
        if choice.whole and alone and not partial:
            edits = argument_edits(given, self.new, weights, self.file.source, node)
        fix = None
        if edits is not None:
            level, reasons = applicability(self.rule.cases[0], self.rule, self.file.versions)
            if weights == '"DEFAULT"' and level is Applicability.SAFE:
                level, reasons = Applicability.UNSAFE, _BEST
            needs = required(self.rule.cases[0], self.rule)
            fix = self.file.fixes.fix(self.rule, f"Pass `{self.new}`", level, reasons, edits, requires=needs)
        span = self.file.source.span(given)
        found = finding_at(self.rule, self.file, span, symbol=choice.symbols[0], fix=fix)
        if choice.whole:
            return found
        function = ast.unparse(node.args[0] if partial else node.func)
        return replace(
            found,
            help=f"`{function}` may also be another function that takes `{self.old}`: pass "
            f"`{self.new}={weights}` if it is a torchvision builder",
        )

    def _gives_weights(self, node: ast.Call) -> bool:
        return any(keyword.arg == self.new for keyword in node.keywords)

    def _is_handled(self, node: ast.Call) -> bool:
        """Whether a place runs on old releases only, by its guards or since there is one for new releases."""
        if is_handled(
            self.file.names.guarded.of(node),
            target=lambda library: self.file.versions.of(library)[0],
            old=self.rule.symbols,
            new=[variables["W"] for variables in self.rule.symbols.values()],
        ):
            return True
        function = self.file.flow.index.function_of(node) or self.file.names.tree
        callee = ast.dump(node.func)
        return any(
            isinstance(other, ast.Call) and self._gives_weights(other) and ast.dump(other.func) == callee
            for other in walk(function)
        )
