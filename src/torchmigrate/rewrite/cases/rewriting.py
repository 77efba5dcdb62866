"""From a use that a rule applies to, to the edits of the first case that fits."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.findings import Edit, Reason, because
from torchmigrate.match.conditions import ArgumentValue, all_hold
from torchmigrate.match.context import CannotFix, DoesNotFit, MatchContext, Rewrite
from torchmigrate.match.matching import Match, given_by, matches, signature_of
from torchmigrate.match.pattern import METAVARIABLE, PREFIX, match_pattern
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.comments import COMMENT_LOST, lost_comments
from torchmigrate.rewrite.quotes import requoted
from torchmigrate.rewrite.spelling import spell_name
from torchmigrate.semantics.model import Role

if TYPE_CHECKING:
    from torchmigrate.rewrite.cases.result import Context

__all__ = ["Match", "MatchContext", "Rewrite", "matches", "rewrite"]

(COMMENT_MOVED,) = because("a comment would move to another argument")

_MOST_SHOWN = 40  # characters of an argument in the title of a fix
_ATOMS = (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript)
_TOUCHY = pattern(r"['\"\\#{}\r\n]")  # what may end or break a string that the code is in


def rewrite(rule: Rule, symbol_vars: Mapping[str, str], place: MatchContext, match: Match) -> Rewrite | None:
    """Rewrite a use by the first case of a rule that fits; None: report it only.

    Args:
        rule: one that applies to the use.
        symbol_vars: what `$new` and the other variables of the symbol stand for in the rule's templates.
        place: the use; its `spell` is called only for the case that is taken.
        match: what `matches` said.
    """
    if not _may_change(place):
        return None
    for case in rule.cases:
        try:
            return _Rewriting(rule, case, symbol_vars, place, match).run()
        except DoesNotFit:
            continue
        except CannotFix:
            return None
    return None


def _may_change(place: MatchContext) -> bool:
    use = place.use
    if not (use.sure or use.method) or use.in_fstring or use.role is Role.STRING:
        return False
    if isinstance(getattr(use.node, "ctx", None), (ast.Store, ast.Del)):
        return False
    if use.method:  # `f = x.symeig; f()` is one of a method, but not written as one
        return isinstance(use.node, ast.Attribute)
    return not (isinstance(use.node, ast.Call) and len(use.node.args) > 2)  # getattr with a default


class _Outcome(Struct):
    """Edits on the use and its call. callee: the name that stands where the old one stood."""

    edits: list[Edit]
    callee: str | None
    misplaced: bool = False


class _Rewriting:
    """One case at one use."""

    def __init__(
        self, rule: Rule, case: Case, variables: Mapping[str, str], place: MatchContext, match: Match
    ) -> None:
        self.rule = rule
        self.case = case
        self.variables = variables
        self.place = place
        self.match = match
        self.use = place.use
        self.given: ArgumentValue | None = None  # the arguments, once they are known

    def run(self) -> Rewrite:
        """Raises DoesNotFit if the case is about something else, CannotFix if there is no fix."""
        case, use, place = self.case, self.use, self.place
        if use.role.value not in case.roles:
            raise DoesNotFit("another role")
        if place.prepared is not None:
            raise CannotFix("`functools.partial` gives the arguments")
        signature = self.variables.get("signature", signature_of(self.rule, self.match.symbol))
        given = given_by(signature, use)
        root: ast.AST = use.call if use.call is not None else use.node
        if case.pattern is not None:
            found = match_pattern(self.text(case.pattern), self.match.symbol, place)
            if found is None:
                raise DoesNotFit("another expression")
            root, captures = found
            given = replace(given, captures=captures)
        self.given = given
        if case.when:
            if use.call is None and use.role is not Role.DECORATOR:
                raise DoesNotFit("no call")
            if not all_hold(case.when, given, place):
                raise DoesNotFit("other arguments")
        if use.role is Role.IMPORT:
            if case.rename is None:
                raise DoesNotFit("no new name")
            return self.finish([], self.text(case.rename), False, root)
        if case.result is None:
            outcome = self.outcome(root, given, None)
        else:
            from torchmigrate.rewrite.cases.result import context_of, fits, result_edits  # with LibCST

            if use.call is None or not isinstance(root, ast.expr):
                raise DoesNotFit("no result")
            context = context_of(case.result, root, place)
            if not fits(case.result, context, place):
                raise DoesNotFit("the code uses the result in another way")
            outcome = self.outcome(root, given, context)
            outcome.edits += result_edits(case.result, context, root, place, place.spell)
            root = context.outer if context.kind in ("index", "field") else root
        return self.finish(outcome.edits, outcome.callee, outcome.misplaced, root)

    def outcome(self, root: ast.AST, given: ArgumentValue, context: Context | None) -> _Outcome:
        return self.by_name(given) if self.case.template is None else self.by_template(root, given, context)

    def text(self, source: str) -> str:
        """A source of the rule with the symbol's variables put in."""
        return METAVARIABLE.sub(lambda found: self.variables.get(found[1], found[0]), source)

    def texts(self, sources: Mapping[str, str]) -> dict[str, str]:
        return {key: self.text(source) for key, source in sources.items()}

    def with_variables(self) -> Case:
        """The case with the symbol's variables put in, where operations have sources."""
        case = self.case
        return replace(
            case,
            add=self.texts(case.add),
            set=self.texts(case.set),
            insert=tuple(map(self.text, case.insert)),
            map={name: self.texts(items) for name, items in case.map.items()},
        )

    # ---- a new name, new arguments -------------------------------------------------------------------

    def by_name(self, given: ArgumentValue) -> _Outcome:
        case, use, place = self.case, self.use, self.place
        edits: list[Edit] = []
        callee = self.match.symbol
        misplaced = False
        if _has_operations(case):
            if use.call is None:
                raise DoesNotFit("no call")
            case = self.with_variables()
            from torchmigrate.rewrite.cases.new_code import by_operations  # with LibCST

            edits, misplaced = by_operations(case, use.call, given, place, self.match.symbol)
        if case.rename is not None:
            callee = self.text(case.rename)
            edits.append(self.renamed(callee))
        if not edits:
            raise DoesNotFit("nothing changes")
        return _Outcome(edits, callee, misplaced)

    def renamed(self, new: str) -> Edit:
        use = self.use
        if not use.method:
            return Edit(use.start, use.end, spell_name(new, self.place.spell))
        assert isinstance(use.node, ast.Attribute), "checked before"
        cls, _, name = new.rpartition(".")
        if cls != self.match.symbol.rpartition(".")[0]:
            raise DoesNotFit("the new name is not a method of the same class")
        start = use.end - len(use.node.attr)
        if self.place.source.text[start : use.end] != use.node.attr:
            raise CannotFix("the name is written in another way")
        return Edit(start, use.end, name)

    # ---- a template ----------------------------------------------------------------------------------

    def by_template(self, root: ast.AST, given: ArgumentValue, context: Context | None) -> _Outcome:
        from torchmigrate.rewrite.cases.new_code import by_template  # with LibCST

        case = self.with_variables()
        assert case.template is not None, "called for a template"
        text, symbol = self.text(case.template), self.match.symbol
        return _Outcome(*by_template(text, case, self.rule, root, given, context, self.place, symbol))

    # ---- the end -------------------------------------------------------------------------------------

    def finish(self, edits: list[Edit], callee: str | None, misplaced: bool, root: ast.AST) -> Rewrite:
        case, text = self.case, self.place.source.text
        start, end = (self.use.start, self.use.end) if root is self.use.node else self.place.span(root)
        edits = tidy(edits, text)
        if not edits and callee == self.match.symbol:
            raise DoesNotFit("nothing changes")
        edits = tidy(_with_spaces(edits, text, start, end), text)
        edits = [edit._replace(text=requoted(edit.text, text[start:end], text)) for edit in edits]
        if any(PREFIX in edit.text for edit in edits):
            raise CannotFix("a metavariable stands for nothing")
        if self.in_string() and any(_TOUCHY.search(edit.text) for edit in edits):
            raise CannotFix("the new code may contain the quote that ends the string")
        losses: list[Reason] = []
        if lost_comments(edits, text):
            losses.append(COMMENT_LOST)
        if misplaced:
            losses.append(COMMENT_MOVED)
        title = case.title or (f"Replace with `{callee}`" if callee and callee != self.match.symbol else None)
        if (
            title is None
            and [edit[:2] for edit in edits] == [(start, end)]
            and len(edits[0].text) <= _MOST_SHOWN
        ):
            title = f"Replace with `{edits[0].text}`"
        return Rewrite(tuple(edits), tuple(losses), title or self.changes(), case, callee)

    def changes(self) -> str:
        """What a case does to the arguments, in words."""
        case = self.case

        def is_given(name: str) -> bool:
            return self.given is None or self.given.state(name) == "given"

        def value(source: str) -> str:
            return METAVARIABLE.sub(lambda found: self.shown(found[1], found[0] == source), self.text(source))

        parts: list[str] = []
        dropped = [f"`{name}`" for name in case.drop if is_given(name) and name not in case.add]
        if dropped:
            parts.append(f"drop {', '.join(dropped)}")
        renamed = {old: new for old, new in case.keywords.items() if is_given(old)}
        set_to = {name: value(source) for name, source in case.set.items() if is_given(name)}
        for old, new in renamed.items():
            parts.append(f"write `{new}={set_to.pop(old, '...')}` for `{old}`")
        written = [*set_to.items(), *((name, value(source)) for name, source in case.add.items())]
        if written:
            parts.append(f"write {', '.join(f'`{name}={source}`' for name, source in written)}")
        if case.insert:
            parts.append(f"put {', '.join(f'`{value(source)}`' for source in case.insert)} first")
        mapped = [f"`{name}`" for name in case.map if is_given(name)]
        if mapped:
            parts.append(f"set the new value of {', '.join(mapped)}")
        named = [f"`{name}`" for name in case.to_keyword if is_given(name) and name not in renamed]
        if named and not parts:
            parts.append(f"pass {', '.join(named)} by keyword")
        text = " and ".join(parts) or (
            "change the call" if self.use.call is not None else "change the expression"
        )
        return text[0].upper() + text[1:]

    def shown(self, name: str, alone: bool) -> str:
        """What a metavariable stands for, as a title shows it; `alone`: with nothing around it."""
        given = self.given
        node = given.expression(name) if given is not None else None
        if given is None or node is None:
            default = given.default(name) if given is not None else None
            return name if default is None else ast.unparse(default)
        start, end = self.place.span(node)
        text = " ".join(self.place.source.text[start : min(end, start + _MOST_SHOWN + 1)].split())
        if end - start > _MOST_SHOWN:
            text = text[: _MOST_SHOWN - 3] + "..."
        return text if alone or isinstance(node, _ATOMS) else f"({text})"

    def in_string(self) -> bool:
        """Whether the use is in a string annotation or in an f-string."""
        if self.use.in_string:
            return True
        node: ast.AST | None = self.use.node
        while node is not None:
            if type(node).__name__ in ("JoinedStr", "TemplateStr"):
                return True
            node = self.place.parents(node)
        return False


def _has_operations(case: Case) -> bool:
    """Whether a case changes arguments one by one."""
    operations = (case.drop, case.keywords, case.add, case.insert, case.set, case.to_keyword, case.map)
    return case.template is None and any(operations)


def tidy(edits: Sequence[Edit], text: str) -> list[Edit]:
    """The same edits in order, those that touch as one, without those that change nothing."""
    found: list[Edit] = []
    for edit in sorted(edits, key=lambda item: (item.start, item.end)):
        if edit.start == edit.end and not edit.text:
            continue
        if found and edit.start <= found[-1].end:
            last = found.pop()
            edit = Edit(last.start, max(last.end, edit.end), last.text + edit.text)
        found.append(edit)
    return [edit for edit in found if text[edit.start : edit.end] != edit.text]


def splice(edits: Sequence[Edit], text: str, start: int, end: int) -> str:
    """`text[start:end]` with the edits that lie in it applied."""
    parts: list[str] = []
    for edit in edits:
        if start <= edit.start and edit.end <= end:
            parts += (text[start : edit.start], edit.text)
            start = edit.end
    return "".join([*parts, text[start:end]])


def _with_spaces(edits: Sequence[Edit], text: str, start: int, end: int) -> list[Edit]:
    """Edits with spaces where the new code would run into a word: `return(x).eig()`, `f(x)if y else z`."""
    new = splice(edits, text, start, end)
    found = list(edits)
    if start and _is_word(text[start - 1]) and _is_word(new[:1]) and not _is_word(text[start]):
        found.insert(0, Edit(start, start, " "))
    if _is_word(text[end : end + 1]) and _is_word(new[-1:]) and not _is_word(text[end - 1]):
        found.append(Edit(end, end, " "))
    return found


def _is_word(character: str) -> bool:
    return character.isalnum() or character in ("_", "'", '"')
