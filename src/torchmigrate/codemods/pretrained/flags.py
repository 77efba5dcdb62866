"""TM722, TM725, TM726: flags of torchvision's builders, also on the way to them.

What a builder is given directly is rewritten by the cases of the rule. Here are the other ways: builders in
variables and tables, `functools.partial`, and dicts that a call unpacks. There, weights are given by their
name as a string, which is right for every builder that has weights of that name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.pretrained.choice import Choice, ModelChoices
from torchmigrate.codemods.pretrained.flag_edits import (
    argument_edits,
    entry_edits,
    flag_argument,
    keyword_edits,
)
from torchmigrate.codemods.pretrained.options import options_of
from torchmigrate.codemods.pretrained.tables import TableEntry, literal_entries
from torchmigrate.findings import Applicability, Edit, Finding, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.semantics.guards.formulas import is_handled
from torchmigrate.semantics.model import Guards, Scope, Use, Via
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability, required

_CHOICES = "choices of models"
_BEST = (
    'the original weights of the models have different names; `"DEFAULT"` selects the best weights of each'
)
_PASSED_ON = "callers of the partial object may also pass `{old}`"
_IMPORTED = "other files may use `{name}`"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """The findings of one of the rules about a flag of builders."""
    hits = [_with_weights_by_name(hit) for hit in hits if not _is_unpacked(hit)]
    if "pretrained" not in file.source.text:
        yield from file.fixes.findings(hits)
        return
    choices = file.once(_CHOICES, lambda: ModelChoices(file.flow))
    search = _Search(rule, hits, file, choices)
    search.run()
    yield from file.fixes.findings([hit for hit in hits if hit.use.call not in search.seen])
    yield from search.findings()


def _is_unpacked(hit: RuleMatch) -> bool:
    """Whether the flag is given by `**options`, which the search finds and rewrites."""
    call = hit.use.call
    if call is None or all(keyword.arg for keyword in call.keywords):
        return False
    return (hit.match.start, hit.match.end) not in map(hit.place.span, (*call.args, *call.keywords))


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


class _Place(Struct):
    """A flag on its way to a builder. edits: None where it is only reported, `help` says why."""

    start: int
    end: int
    symbol: str
    edits: tuple[Edit, ...] | None
    reason: str | None = None  # why the fix is not safe
    help: str | None = None


class _Search:
    """The flags of one rule in one file. groups: places that change together or not at all."""

    def __init__(
        self, rule: Rule, hits: Sequence[RuleMatch], file: FileContext, choices: ModelChoices
    ) -> None:
        self.rule = rule
        self.file = file
        self.choices = choices
        self.old = rule.parameters[0]
        self.new = self.old.replace("pretrained", "weights")
        self.seen: set[ast.AST | None] = set()
        self.groups: list[list[_Place]] = []
        self._by_partial: dict[ast.Call, list[_Place]] = {}
        self._calls = {hit.use.call for hit in hits}
        self._uses = {id(use.node): use for use in file.names.uses}
        self._options: set[tuple[int, str]] = set()

    def run(self) -> None:
        in_fstring = self.file.flow.index.in_fstring
        calls = [node for node in self.file.names.nodes(ast.Call) if not in_fstring(node)]
        for node in calls:
            if self.choices.is_partial(node):
                self._partial(node)
        for node in calls:
            given = flag_argument(node, self.old, 0 if "first" in self.rule.parameters else None)
            if given is not None:
                self._call(node, given)
            for keyword in node.keywords:
                if keyword.arg is None:
                    self._unpacked(node, keyword.value)

    def findings(self) -> Iterator[Finding]:
        case, versions = self.rule.cases[0], self.file.versions
        for places in self.groups:
            fix = None
            hidden = any(self.file.hides(self.rule.code, self.rule.name, place.start) for place in places)
            if not hidden and all(place.edits is not None for place in places):
                level, reasons = applicability(case, self.rule, versions)
                why = next((place.reason for place in places if place.reason), None)
                if why is not None and level is Applicability.SAFE:
                    level, reasons = Applicability.UNSAFE, because(why)
                edits = dict.fromkeys(edit for place in places for edit in place.edits or ())
                title = f"Pass `{self.new}`"
                requires = required(case, self.rule)
                fix = self.file.fixes.fix(self.rule, title, level, reasons, edits, requires=requires)
            for place in places:
                found = finding_at(
                    self.rule, self.file, (place.start, place.end), symbol=place.symbol, fix=fix
                )
                yield replace(found, help=place.help) if place.help else found

    # ---- builders in variables and tables ------------------------------------------------------------

    def _call(self, node: ast.Call, given: ast.keyword | ast.expr) -> None:
        use = self._uses.get(id(node.func))
        if use is not None and use.call is node and (use.via is Via.IMPORT or node not in self._calls):
            return  # given directly, or the guards around it take care of it
        choice = self.choices.of(node.func, self.rule.symbols)
        if not choice.symbols or self._given(node, self.new) or self._handled_at(node):
            return
        if choice.rebound and not choice.whole:
            return  # at this place it may well be the other one
        self.seen.add(node)
        place = self._place(given, choice.symbols[0])
        group = next((self._by_partial[call] for call in choice.partials if call in self._by_partial), None)
        if group is None:
            self.groups.append(group := [])
        group.append(place)
        weights, place.reason = self._weights(choice.symbols)
        if not choice.whole:
            place.help = (
                f"`{ast.unparse(node.func)}` may also be another function that takes `{self.old}`: pass "
                f"`{self.new}={weights}` if it is a torchvision builder"
            )
        elif isinstance(given, ast.keyword) or (len(node.args) == 1 and not choice.by_keyword):
            place.edits = argument_edits(given, self.new, weights, self.file.source, node)

    def _place(self, node: ast.keyword | ast.expr, symbol: str) -> _Place:
        start, end = self.file.source.span(node)
        return _Place(start, end, symbol, None)

    def _weights(self, symbols: Sequence[str]) -> tuple[str, str | None]:
        """The name of the weights that `True` stood for, and why that is not quite so."""
        members = {self.rule.symbols[symbol]["W"].rpartition(".")[2] for symbol in symbols}
        return (f'"{members.pop()}"', None) if len(members) == 1 else ('"DEFAULT"', _BEST)

    def _given(self, node: ast.Call, name: str) -> bool:
        return any(keyword.arg == name for keyword in node.keywords)

    def _handled_at(self, node: ast.Call) -> bool:
        """Whether a place runs on old releases only, by its guards or since there is one for new releases."""
        if self._old_only(node):
            return True
        function = self.file.flow.index.function_of(node) or self.file.names.tree
        callee = ast.dump(node.func)
        return any(
            isinstance(other, ast.Call) and self._given(other, self.new) and ast.dump(other.func) == callee
            for other in walk(function)
        )

    def _old_only(self, node: ast.AST) -> bool:
        """Whether the guards around a node say that it runs on old releases only."""
        return self._handled(self.file.names.guarded.of(node))

    def _handled(self, guards: Guards) -> bool:
        return is_handled(
            guards,
            target=lambda library: self.file.versions.of(library)[0],
            old=self.rule.symbols,
            new=[variables["W"] for variables in self.rule.symbols.values()],
        )

    # ---- functools.partial ---------------------------------------------------------------------------

    def _partial(self, node: ast.Call) -> None:
        given = flag_argument(node, self.old, 1 if "first" in self.rule.parameters else None)
        choice = self.choices.of(node.args[0], self.rule.symbols)
        if given is None or not choice.symbols or self._given(node, self.new) or self._handled_at(node):
            return
        place = self._place(given, choice.symbols[0])
        self.groups.append([place])
        self._by_partial[node] = self.groups[-1]
        weights, place.reason = self._weights(choice.symbols)
        use = self._uses.get(id(node.args[0]))
        spelled = self._spelled(choice.symbols[0], use) if len(choice.symbols) == 1 else None
        code, needed = spelled if spelled is not None else (weights, ())
        if not choice.whole:
            place.help = (
                f"`{ast.unparse(node.args[0])}` may also be another function that takes `{self.old}`: pass "
                f"`{self.new}={weights}` if it is a torchvision builder"
            )
        elif isinstance(given, ast.keyword) or len(node.args) == 2:
            edits = argument_edits(given, self.new, code, self.file.source, node)
            place.edits = (*edits, *needed) if edits is not None else None
        if not self._only_called(node):
            place.reason = place.reason or _PASSED_ON.format(old=self.old)

    def _spelled(self, symbol: str, use: Use | None) -> tuple[str, tuple[Edit, ...]] | None:
        """The enum member of one builder, where it can be written at its use."""
        if use is None or not use.sure or use.via is not Via.IMPORT:
            return None
        spelling = self.file.imports.spell(self.rule.symbols[symbol]["W"], use)
        return None if isinstance(spelling, Refusal) else (spelling.text, spelling.edits)

    def _only_called(self, node: ast.Call) -> bool:
        """Whether all calls of a partial object can be seen, and none may give the flag unseen."""
        local = self.file.flow.index
        outer = local.parent(node)
        calls = [outer] if isinstance(outer, ast.Call) and outer.func is node else None
        if (
            isinstance(outer, ast.Assign)
            and len(outer.targets) == 1
            and isinstance(outer.targets[0], ast.Name)
        ):
            name = outer.targets[0].id
            held = local.holder(outer.targets[0])
            if held is not None and held.kind == "function":
                mentions = [
                    mention
                    for mention in local.named(name)
                    if isinstance(mention.ctx, ast.Load) and local.holder(mention) is held
                ]
                callers = [local.parent(mention) for mention in mentions]
                calls = [
                    caller
                    for caller, mention in zip(callers, mentions, strict=True)
                    if isinstance(caller, ast.Call) and caller.func is mention
                ]
                if len(calls) != len(mentions):
                    return False
        return calls is not None and not any(
            call.args or any(keyword.arg is None for keyword in call.keywords) for call in calls
        )

    # ---- dicts that are unpacked ---------------------------------------------------------------------

    def _unpacked(self, node: ast.Call, value: ast.expr) -> None:
        entries = literal_entries(value)
        if entries is not None:
            choice = self.choices.of(node.func, self.rule.symbols)
            if choice.symbols and not self._handled_at(node):
                self._entries([entry for entry in entries if entry.name == self.old], [choice], None, None)
        elif isinstance(value, ast.Name):
            held = self.file.flow.index.holder(value)
            if held is not None and (id(held), value.id) not in self._options:
                self._options.add((id(held), value.id))
                self._named_options(value.id, held)

    def _named_options(self, name: str, held: Scope) -> None:
        options = options_of(name, held, self.file.flow.index, self.old)
        flags = options.named(self.old)
        if not flags or options.named(self.new) or self.new in options.keys:
            return  # with both, the file chooses between them itself
        choices = [self.choices.of(call.func, self.rule.symbols) for call in options.receivers]
        if not any(choice.symbols for choice in choices):
            return
        if any(self._handled(binding.guards) for binding in options.bindings):
            return
        if any(self._old_only(node) for node in (*options.receivers, *(flag.key for flag in flags))):
            return
        problem = None
        if options.other:
            problem = self._other_use(name, options.other[0])
        for call, choice in zip(options.receivers, choices, strict=True):
            if not choice.whole and problem is None:
                problem = f"line {call.lineno} also passes `{name}` to `{ast.unparse(call.func)}`"
        reason = _IMPORTED.format(name=name) if held.kind == "module" else None
        self._entries(flags, choices, problem, reason)

    def _other_use(self, name: str, node: ast.expr) -> str:
        if not hasattr(node, "lineno"):
            return f"`{name}` is a parameter, and its callers do not change"
        return f"line {node.lineno} also uses `{name}` in another way"

    def _entries(
        self, flags: Sequence[TableEntry], choices: Sequence[Choice], problem: str | None, reason: str | None
    ) -> None:
        """One group of the items of a dict that hold the flag."""
        symbols = list(dict.fromkeys(symbol for choice in choices for symbol in choice.symbols))
        weights, differ = self._weights(symbols)
        places: list[_Place] = []
        for flag in flags:
            place = self._place(flag.key, symbols[0])
            place.reason = differ or reason
            if problem is not None:
                place.help = (
                    f"{problem}; replace `{self.old}` and True with `{self.new}` and {weights} in both places"
                )
            elif isinstance(flag.key, ast.keyword):
                place.edits = keyword_edits(flag.key, self.new, weights, self.file.source)
            else:
                place.edits = entry_edits(flag.key, flag.value, self.new, weights, self.file.source)
            places.append(place)
        if places:
            self.groups.append(places)
