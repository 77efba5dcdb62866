"""From hits to findings with fixes: one use at a time, or an import together with everything it binds."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from torchmigrate.catalogue.model import Case, Rule
from torchmigrate.catalogue.pages import url_of
from torchmigrate.findings import (
    Applicability,
    DroppedUse,
    Edit,
    Finding,
    Fix,
    Obstacle,
    Reason,
    Severity,
    because,
)
from torchmigrate.match.moves import Moves
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.patterns import pattern
from torchmigrate.rewrite import identity
from torchmigrate.rewrite.comments import COMMENT_LOST
from torchmigrate.rewrite.imports.planner import ImportPlanner, Refusal
from torchmigrate.rewrite.joined import joined_fixes, joined_title
from torchmigrate.rewrite.lines import remove_statements
from torchmigrate.rewrite.oldest import range_at
from torchmigrate.rewrite.quotes import requoted, requoted_within
from torchmigrate.rewrite.self_assignments import remove_idle
from torchmigrate.rewrite.suites import Suites
from torchmigrate.semantics.guards.formulas import any_outwards, is_excluded
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Binding, BindingKind, Guards, Role, Use, Via
from torchmigrate.semantics.values.distinctive import DISTINCTIVE_METHODS
from torchmigrate.semantics.values.objects import TENSOR
from torchmigrate.source.ranges import Ranges
from torchmigrate.source.trees import statement_at
from torchmigrate.versions.range import applicability, required, severity, timeline

if TYPE_CHECKING:
    from torchmigrate.rewrite.context import FileContext

_OTHER_ROLES = because("the file also checks for the old name, which is a different object")
_TAKEN_FROM_HERE = because("other code may import the name from this file")
_FSTRING = pattern(r"[fF][rR]?['\"]|[rR][fF]['\"]")
# Edits, applicability, reasons, title, callee and what is required.
_Rewritten = tuple[tuple[Edit, ...], Applicability, tuple[Reason, ...], str, str | None, set[str]]
_FIXABLE_VIA = (Via.IMPORT, Via.ALIAS, Via.METHOD)


class _Move(Struct):
    """An import binding that is to mean the new name, and the uses that change with it."""

    first: RuleMatch  # the import line
    users: list[RuleMatch]
    binding: Binding
    new: str
    plain: Case | None  # the rule is a rename, whatever the arguments are
    whole: bool  # every use of the binding is among the users
    level: Applicability = Applicability.SAFE
    held_by: tuple[Reason, ...] = ()
    title: str = ""
    requires: set[str] = field(default_factory=set)

    @property
    def keeps_name(self) -> bool:
        """Whether the import has to keep its local name, which is not the name of what it imports."""
        old = self.binding.node.name if isinstance(self.binding.node, ast.alias) else self.binding.name
        return not self.whole and self.new.rpartition(".")[2] != old

    def lower(self, level: Applicability, reasons: tuple[Reason, ...]) -> None:
        if level < self.level:
            self.level, self.held_by = level, reasons

    def target(self, hit: RuleMatch, local: str) -> tuple[str, str]:
        """The new qualified name of a use, and how it is written."""
        rest = f".{hit.use.attribute_path}" if hit.use.attribute_path else ""
        return self.new + rest, local + rest


def _warns(hit: RuleMatch) -> bool:
    """Whether a use that is not an error has an effect: imports, annotations and type checks call nothing."""
    if hit.rule.warns == "access" or (hit.rule.warns is None and hit.symbol in hit.rule.modules):
        return True
    use = hit.use
    if use.role in (Role.IMPORT, Role.ANNOTATION):
        return False
    around = hit.place.parents(use.node) if use.role is Role.REFERENCE else None
    if isinstance(around, ast.Tuple):
        around = hit.place.parents(around)
    return not (
        isinstance(around, ast.Call)
        and isinstance(around.func, ast.Name)
        and around.func.id in ("isinstance", "issubclass")
        and around.func is not use.node
    )


class FixMaker:
    """Makes the findings of one file, and their fixes."""

    def __init__(self, file: FileContext) -> None:
        self.file = file
        self.names = file.names
        self.source = file.source
        self.versions = file.versions
        self.settings = file.settings
        self.failures = file.failures
        self.exports = file.exports
        self.moves = Moves(file.versions)
        self._compared: set[str] = set()  # symbols whose uses are compared with something
        self._forbidden: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        # id() of fixes that rest on annotations, or on what was seen, alone -> the reason that tells so
        self._stated: dict[int, Reason] = {}
        # id() of a hit -> the hit, which keeps its id, and how it is rewritten.
        self._made: dict[int, tuple[RuleMatch, _Rewritten | None]] = {}
        # Uses whose import other code takes from here: it keeps its name, and is not called in the new way.
        self._taken: dict[int, Reason] = {}
        self._suites = Suites(file.tree, file.source)
        self._removed: dict[int, set[int]] = {}  # block -> statements that fixes remove

    @property
    def imports(self) -> ImportPlanner:
        """How names are written at a place, and which imports that needs."""
        return self.file.imports

    def findings(self, hits: Sequence[RuleMatch]) -> list[Finding]:
        """Every hit as a finding, with the fix where there is one."""
        self._compared = {hit.symbol for hit in hits if identity.is_compared(hit.use, hit.place.parents)}
        if not hits:  # codemods ask for those of each rule
            return []
        fixes: dict[int, Fix] = {}
        unchanged: set[int] = set()
        uses: dict[int, Sequence[RuleMatch]] = {}  # which stay as they are when their import changes
        for bundle in self._bundles(hits):
            with self._caught(bundle[0].first):
                for move, fix, silent in self._swap(bundle):
                    for hit in (move.first, *move.users):
                        fixes[id(hit)] = fix
                    unchanged.update(id(hit) for hit in silent)
                    uses[id(move.first)] = silent
        for first in hits:
            if self._imports_moved_module(first):
                with self._caught(first):
                    fixes.update(self._module_fix(first, hits))
        found: list[tuple[RuleMatch, Fix | None]] = []
        elsewhere = {hit.symbol for hit in hits if hit.use.role is not Role.ANNOTATION}
        for hit in hits:
            if id(hit) in unchanged:
                continue
            single = fixes.get(id(hit))
            if single is None:
                with self._caught(hit):
                    single = self._single_fix(hit)
            if single is not None or not self.is_idle(hit, elsewhere):
                found.append((hit, single))
        remove_idle(found, self.source, self.remove)
        return [
            replace(self.finding(hit, fix, uses.get(id(hit), ())), blocked_by=self._kept(hit, fix))
            for hit, fix in found
        ]

    def is_idle(self, hit: RuleMatch, elsewhere: Collection[str]) -> bool:
        """Whether a name that is still there is only compared, or stands in an annotation as well.

        Neither warns, nor changes anything.

        Args:
            elsewhere: the symbols that are found outside of annotations.
        """
        if severity(hit.rule, self.versions) is Severity.ERROR:
            return False
        if hit.use.role is Role.ANNOTATION:
            return hit.symbol in elsewhere
        return not hit.rule.cases and identity.is_compared(hit.use, hit.place.parents)

    def _kept(self, hit: RuleMatch, fix: Fix | None) -> tuple[Reason, ...]:
        reason = self._taken.get(id(hit.use)) if fix is None else None
        return () if reason is None else (reason,)

    def _caught(self, hit: RuleMatch) -> AbstractContextManager[None]:
        return self.failures.caught(hit.rule.code, "the fix", hit.match.start)

    def forbid_fixes_in(self, code: str, start: int, end: int) -> None:
        """Let a rule make no fix between two offsets, since it would leave half of a migration there."""
        self._forbidden[code].append((start, end))

    def settled(self, found: list[Finding]) -> list[Finding]:
        """The findings as they are reported; a fix that several share is one.

        Forbidden fixes are left out, and one that rests on an annotation is not safe.
        """
        made = {id(item.fix): item.fix for item in found if item.fix is not None}
        settled: dict[int, Fix | None] = {}
        for key, reason in self._stated.items():
            fix = made.get(key)
            if fix is None or fix.applicability is not Applicability.SAFE or self.settings.promotes(fix.code):
                continue
            settled[key] = replace(fix, applicability=Applicability.UNSAFE, held_by=(reason,))
        forbidden = {code: Ranges(spans) for code, spans in self._forbidden.items()}
        for item in found:
            if item.code in forbidden and item.start in forbidden[item.code]:
                settled[id(item.fix)] = None
        found = [replace(item, fix=settled.get(id(item.fix), item.fix)) for item in found]
        patterns = {hit.rule.code: hit.rule.unless_named for hit in self.file.hits if hit.rule.unless_named}
        named = {code for code, pattern in patterns.items() if self._has_name(pattern)}
        if named:
            found = [replace(item, fix=None) if item.code in named else item for item in found]
        return self._together(found)

    def _has_name(self, pattern: str) -> bool:
        """Whether an attribute, an import or a word in a string of the file is what a pattern describes."""
        fits = re.compile(pattern).fullmatch
        if re.search(pattern, self.source.text) is None:
            return False
        if any(fits(node.attr) for node in self.names.nodes(ast.Attribute)):
            return True
        if any(fits(node.name) for node in self.names.nodes(ast.alias)):
            return True
        strings = (node.value for node in self.names.nodes(ast.Constant) if isinstance(node.value, str))
        return any(fits(word) for text in strings for word in re.split(r"\W+", text))

    def _together(self, found: list[Finding]) -> list[Finding]:
        """The findings, with one fix for those that only make sense together, or none for all of them."""
        groups: defaultdict[str, set[str]] = defaultdict(set)
        for hit in self.file.hits:
            if hit.rule.together is not None:
                groups[hit.rule.together].add(hit.rule.code)
        for name, codes in groups.items():
            mine = [item for item in found if item.code in codes]
            if not mine:
                continue
            fixes = {id(item.fix): item.fix for item in mine if item.fix is not None}
            done: dict[int, Fix] = {}
            if name not in self.file.partly_suppressed and all(item.fix is not None for item in mine):
                done = joined_fixes(fixes)
            # What keeps one of them from being made keeps all.
            why = tuple(
                dict.fromkeys(reason for item in mine if item.fix is None for reason in item.blocked_by)
            )
            found = [
                _after_all(item, done.get(id(item.fix)), why) if item.code in codes else item
                for item in found
            ]
        return found

    def at_target(self, found: list[Finding]) -> list[Finding]:
        """The findings in code that runs at the target, without fixes that change other code."""
        fixes = {id(item.fix): item.fix for item in found if item.fix is not None}
        inside = {
            key
            for key, fix in fixes.items()
            if any(map(self._is_excluded, {edit.start for edit in fix.edits}))
        }
        return [
            replace(item, fix=None) if id(item.fix) in inside else item
            for item in found
            if not self._is_excluded(item.start)
        ]

    def _is_excluded(self, offset: int) -> bool:
        """Whether an offset is in a block that does not run at the target."""
        statement = statement_at(self.file.tree, offset, self.source.span)
        target, exists = self.file.target, self.file.exists

        def excludes(guards: Guards) -> bool:
            return guards.formula is not None and is_excluded(guards.formula, target, exists)

        return statement is not None and any_outwards(
            self.names.guarded.of(statement), ("excluded", target, exists), excludes
        )

    def finding(self, hit: RuleMatch, fix: Fix | None, users: Sequence[RuleMatch] = ()) -> Finding:
        """A hit in words, at its place.

        users: the uses of an import that the fix leaves as they are; the worst of all is the severity.
        """
        rule = hit.rule
        level = severity(rule, self.versions)
        assert level is not None, "rules that say nothing at the target are not looked up"
        if level is Severity.WARNING and not any(map(_warns, (hit, *users))):
            level = Severity.INFO
        seen = hit.use.seen or hit.use.seen_for_fix
        if hit.use.stated or seen:
            cls, _, member = hit.use.candidates[0].rpartition(".")
            if member not in DISTINCTIVE_METHODS and not hit.use.seen:
                level = min(level, Severity.WARNING)
            if fix is not None:
                kind = Obstacle.EVIDENCE if seen else Obstacle.ANNOTATION
                about = "the class of the object"
                if cls == TENSOR and hit.use.stated:
                    about = "that it is a tensor"
                elif seen:
                    about = "the types of the objects"
                self._stated[id(fix)] = Reason(kind, about)
        start, end = hit.match.start, hit.match.end
        values = dict(variables(hit))
        if hit.match.parameter is not None:
            values["argument"] = "`, `".join((hit.match.parameter, *hit.match.others))
        return Finding(
            code=rule.code,
            name=rule.name,
            message=fill(rule.summary, hit.name, values),
            severity=level,
            start=start,
            end=end,
            help=fill(rule.advice, hit.name, values) if rule.advice else None,
            fix=fix,
            url=url_of(rule),
            symbol=hit.name,
            timeline=timeline(rule, self.versions),
            places=tuple((user.match.start, user.match.end) for user in users),
            seen=hit.use.seen,
        )

    # ---- one use -------------------------------------------------------------------------------------

    def _single_fix(self, hit: RuleMatch) -> Fix | None:
        use = hit.use
        if use.role is Role.IMPORT:
            return self._without_use(hit)
        maybe = use.method and not use.sure
        if not (maybe or self.may_fix(hit)) or self._leads_elsewhere(hit):
            return None
        made = self._rewritten(hit)
        if made is None:
            return None
        edits, level, reasons, title, _, requires = made
        if maybe and not use.stated and level > Applicability.UNSAFE:
            level, reasons = Applicability.UNSAFE, because("the object may have another class")
        bound = use.binding if Role.IMPORT.value in hit.rule.roles else None
        if level > Applicability.UNSAFE and bound is not None and self._has_other_roles(bound, hit.rule):
            level, reasons = Applicability.UNSAFE, _OTHER_ROLES
        return self.fix(hit.rule, title, level, reasons, edits, self.imports.releases(use), requires)

    def _without_use(self, hit: RuleMatch) -> Fix | None:
        """The fix of an import that nothing of the project uses: it goes."""
        binding = hit.use.binding
        if binding is None or not (hit.use.sure and hit.unambiguous):
            return None
        edits = self.imports.without_use(binding)
        if not edits:
            return None
        # No file can import from here what the target no longer has.
        gone = severity(hit.rule, self.versions) is Severity.ERROR
        level, reasons = (Applicability.SAFE, ()) if gone else (Applicability.UNSAFE, _TAKEN_FROM_HERE)
        return self.fix(hit.rule, "Remove the unused import", level, reasons, edits)

    def remove(self, block: list[ast.stmt], statements: list[ast.stmt]) -> tuple[Edit, ...]:
        """Edits that remove statements; a suite that all fixes together would empty keeps a `pass`.

        An `if` that has nothing else and whose test does nothing goes with its suite.
        """
        gone = self._removed.setdefault(id(block), set())
        gone.update(map(id, statements))
        outer = self._suites.idle_test(block) if len(statements) == len(block) else None
        if outer is not None:
            return self.remove(outer[1], [outer[0]])
        if block is self.names.tree.body or len(gone) < len(block) or len(statements) == len(block):
            return remove_statements(self.source, block, statements, module=block is self.names.tree.body)
        last = statements[-1]
        start, end = self.source.span(last)
        others = remove_statements(self.source, block, statements[:-1], module=False)
        return (*others, Edit(start, end, "pass"))

    def may_fix(self, hit: RuleMatch) -> bool:
        """Whether a use surely is what the rule is about, and is written where it can be edited."""
        use = hit.use
        return (
            use.sure
            and hit.unambiguous
            and use.via in _FIXABLE_VIA
            and not (use.via is Via.ALIAS and not use.attribute_path)
            and not use.in_fstring
            and use.role is not Role.STRING
            and self._leads_on(hit)
        )

    def _leads_on(self, hit: RuleMatch) -> bool:
        """Whether the new name, if there is one, can stand where the old one does."""
        new, use = variables(hit).get("new"), hit.use
        if not new or use.method or use.role is Role.IMPORT:
            return True
        binding = use.binding
        if binding is not None and binding.kind is BindingKind.IMPORT and binding.module == hit.name:
            return self.moves.kind(hit.name) is None  # a module for sure, and used as a value
        return self.moves.leads_on(
            hit.name, new, use.attribute_path.count(".") + 1 if use.attribute_path else 0
        )

    def _rewritten(self, hit: RuleMatch) -> _Rewritten | None:
        """`_rewrite` with the new name as it is written there; called more than once."""
        known = self._made.get(id(hit))
        if known is None:
            known = self._made[id(hit)] = hit, self._rewrite(hit, None, "")
        return known[1]

    def _rewrite(self, hit: RuleMatch, new: str | None, local: str) -> _Rewritten | None:
        """Edits, applicability, reasons, title, callee and what it requires; `new` is written as `local`."""
        from torchmigrate.rewrite.cases.rewriting import rewrite  # for the few files with a fix

        needed: list[Edit] = []

        def spell(qualified: str) -> str | None:
            if qualified == new:
                return local
            spelling = self.imports.spell(qualified, hit.use)
            if isinstance(spelling, Refusal):
                return None
            needed.extend(spelling.edits)
            return spelling.text

        made = rewrite(hit.rule, variables(hit), replace(hit.place, spell=spell), hit.match)
        if made is None:
            return None
        level, reasons = made.with_losses(*self._level(made.case, hit))
        if level is Applicability.SAFE and self._is_another(hit, made.callee):
            level, reasons = Applicability.UNSAFE, identity.REASON
        edits = tuple(dict.fromkeys((*made.edits, *needed)))
        requires = required(_needed(made.case, hit), hit.rule)
        return edits, level, reasons, made.title, made.callee, requires

    def _is_another(self, hit: RuleMatch, new: str | None) -> bool:
        """Whether the new name is another object, and the file compares the old one with something."""
        return (
            hit.use.call is None
            and hit.symbol in self._compared
            and identity.are_other_objects(hit.name, new, lambda library: self.versions.of(library)[0])
        )

    def fix(
        self,
        rule: Rule,
        title: str,
        level: Applicability,
        held_by: tuple[Reason, ...],
        edits: Iterable[Edit],
        releases: tuple[DroppedUse, ...] = (),
        requires: Iterable[str] = (),
    ) -> Fix:
        """A fix of a rule; its strings get the file's quotes, the configuration may change how safe it is."""
        edits = [self._quoted(edit) for edit in edits]
        if level is Applicability.UNSAFE and self.settings.promotes(rule.code):
            level = Applicability.SAFE
        elif level is Applicability.SAFE and self.settings.demotes(rule.code):
            level, held_by = Applicability.UNSAFE, (Reason(Obstacle.CONFIGURATION),)
        if level is Applicability.SAFE:
            held_by = ()
        return Fix(title, level, tuple(edits), held_by, releases, rule.code, tuple(sorted(requires)))

    def _quoted(self, edit: Edit) -> Edit:
        if '"' not in edit.text and "'" not in edit.text:
            return edit
        text = self.source.text
        if edit.start in self._fstrings:
            return edit._replace(text=requoted_within(edit.text, edit.start, self.source))
        before = text[text.rfind("\n", 0, edit.start) + 1 : edit.start]
        quoted = '"' in before or "'" in before  # the quotes before it on the line count most
        near = before if quoted else self.source.line_text(self.source.position(edit.start)[0])
        return edit._replace(text=requoted(edit.text, text, text, near))

    @cached_property
    def _fstrings(self) -> Ranges:
        held = self.names.nodes(ast.JoinedStr) if _FSTRING.search(self.source.text) else ()
        return Ranges(map(self.source.span, held))

    # ---- an import and what it binds -----------------------------------------------------------------

    def _bundles(self, hits: Sequence[RuleMatch]) -> list[list[_Move]]:
        """The import bindings that can be swapped, those of one statement and one rule together."""
        by_binding: dict[tuple[int, str], list[RuleMatch]] = defaultdict(list)
        of_binding: dict[int, list[RuleMatch]] = defaultdict(list)
        for hit in hits:
            if hit.use.binding is not None:
                by_binding[hit.use.binding.id, hit.rule.code].append(hit)
                of_binding[hit.use.binding.id].append(hit)
        bundles: dict[tuple[int, str, bool, Applicability], list[_Move]] = defaultdict(list)
        for (number, code), found in by_binding.items():
            first = next((hit for hit in found if hit.use.role is Role.IMPORT and hit.unambiguous), None)
            move = None
            if first is not None:
                others = [hit for hit in of_binding[number] if hit.rule.code != code]
                with self._caught(first):
                    move = self._move(first, found, others)
            if move is not None and not self._had_better_go(move):
                key = (id(move.binding.statement), move.first.rule.code, move.keeps_name, move.level)
                bundles[key].append(move)
        return list(bundles.values())

    def _move(self, first: RuleMatch, found: list[RuleMatch], others: list[RuleMatch]) -> _Move | None:
        """How an import and its uses would change together; None where they cannot.

        others: uses of the same import that are other rules' to find.
        """
        binding = first.use.binding
        new = self._new_name(first, found)
        if binding is None or new is None:
            return None
        if not self._follows(binding, first.name, new, first.rule):
            return None
        users = [hit for hit in found if hit is not first]
        plain = self._plain_case(first.rule)
        whole = set(binding.uses) <= {hit.use.start for hit in users if self.may_fix(hit)}
        if plain is not None and not whole:  # other rules may give the rest the same name
            more = [*users, *(hit for hit in others if self._becomes(hit, new))]
            if set(binding.uses) <= {hit.use.start for hit in more if self.may_fix(hit)}:
                users, whole = more, True
        if plain is None and not (whole and users):
            return None
        if plain is None and self.exports.takes(binding):
            # Who takes the name from here would get what is called in another way.
            reason = Reason(Obstacle.TAKEN, name=binding.name)
            self._taken.update((id(hit.use), reason) for hit in found)
            return None
        move = _Move(first, users, binding, new, plain, whole)
        if first.rule.roles and not whole and self._has_other_roles(binding, first.rule):
            move.lower(Applicability.UNSAFE, _OTHER_ROLES)  # as in `isinstance`
        if plain is not None:
            for hit in found:  # each member of a moved module has its own release
                case = self._plain_case(hit.rule) or plain
                move.lower(*self._level(case, hit))
                move.requires |= required(_needed(case, hit), hit.rule)
            move.title = plain.title or f"Import `{new}`"
            if any(self._is_another(hit, move.target(hit, "")[0]) for hit in users):
                move.lower(Applicability.UNSAFE, identity.REASON)
            if not whole:  # the import keeps the local name, so that no use has to change
                move.users = [hit for hit in users if self.may_fix(hit)]
                return move
        for hit in users:
            # After a call of `_new_name`, the spelling does not matter here.
            made = self._rewritten(hit) if plain is None else self._rewrite(hit, *move.target(hit, ""))
            if made is None or made[4] != move.target(hit, "")[0]:
                return None
            move.lower(made[1], made[2])
            move.requires |= made[5]
            move.title = move.title or made[3]
        for needed in sorted(move.requires):  # the import needs what the uses need, too
            move.lower(*self._level(Case(roles=(), requires=needed), first))
        return move

    def _becomes(self, hit: RuleMatch, new: str) -> bool:
        """Whether a use is one of what gets a new name, and its own rule gives it that as well."""
        if hit.use.attribute_path or variables(hit).get("new") != new or not self.may_fix(hit):
            return False
        made = self._rewrite(hit, new, "")  # which plans no import of it
        return made is not None and made[4] == new

    def _had_better_go(self, move: _Move) -> bool:
        """Whether an import has no use, and what it would become is not the same."""
        unused = move.level < Applicability.SAFE and not move.binding.uses
        return unused and bool(self.imports.without_use(move.binding))

    def _has_other_roles(self, binding: Binding, rule: Rule) -> bool:
        """Whether what an import binds is used in a way that its rule does not cover."""
        return any(
            use.role.value not in rule.roles and use.node is not binding.node
            for use in self.names.uses
            if binding in use.origins or use.binding is binding
        )

    def _swap(self, bundle: list[_Move]) -> list[tuple[_Move, Fix, list[RuleMatch]]]:
        """The fixes of a bundle, each with the hits at which nothing has to change."""
        moves = [(move.binding, move.new) for move in bundle]
        if len(bundle) == 1:
            swaps = [self.imports.swap(*moves[0], keep_name=bundle[0].keeps_name)]
        else:
            swaps = self.imports.swap_all(moves, keep_name=bundle[0].keeps_name)
        edits: dict[Edit, None] = {}
        shared: Sequence[Edit] = ()  # those of the statement, which all its names have
        done: list[tuple[_Move, list[RuleMatch]]] = []
        for move, swap in zip(bundle, swaps, strict=True):
            if isinstance(swap, Refusal):
                continue
            if swap.edits is not shared:
                shared = swap.edits
                edits.update(dict.fromkeys(shared))
            if swap.lossy:
                move.lower(Applicability.UNSAFE, (COMMENT_LOST,))
            if swap.local_name == move.binding.name:  # what other rules find is not done with that
                move.users = [hit for hit in move.users if hit.rule.code == move.first.rule.code]
            silent: list[RuleMatch] = []
            for hit in move.users:
                if move.plain is not None and swap.local_name == move.binding.name:
                    silent.append(hit)
                    continue
                made = self._rewrite(hit, *move.target(hit, swap.local_name))
                assert made is not None, "it was possible with another spelling"
                edits.update(dict.fromkeys(made[0]))
            done.append((move, silent))
        if not done or not edits:
            return []
        strictest = min((move for move, _ in done), key=lambda move: move.level)
        rule = strictest.first.rule
        requires = set().union(*(move.requires for move, _ in done))
        title = joined_title([*dict.fromkeys(move.title for move, _ in done)])
        fix = self.fix(rule, title, strictest.level, strictest.held_by, edits, requires=requires)
        return [(move, fix, silent) for move, silent in done]

    def _leads_elsewhere(self, hit: RuleMatch) -> bool:
        """Whether `getattr(old.module, "name")` reads a name that the rule has in another module."""
        call, new = hit.place.parents(hit.use.node), variables(hit).get("new")
        if new is None or not isinstance(call, ast.Call) or call.args[:1] != [hit.use.node]:
            return False
        read = [f".{node.value!s}" for node in call.args[1:2] if isinstance(node, ast.Constant)]
        return any(
            hit.rule.symbols.get(hit.name + part, {}).get("new") not in (None, new + part) for part in read
        )

    def _follows(self, binding: Binding, old: str, new: str, rule: Rule) -> bool:
        """Whether everything that is reached through an import is there under the new name, too.

        rule: of the import, which may say that some of it is elsewhere.
        """
        if binding.kind is BindingKind.IMPORT and not self.moves.is_module(new):
            return False
        if binding.exported and not self.moves.leads_on(old, new, 0):
            return False  # for other files, which may use anything
        for use in self._by_origin.get(binding.id, ()):
            attributes = use.attribute_path.count(".") + 1 if use.attribute_path else 0
            for name in use.candidates:
                if not f"{name}.".startswith(f"{old}."):
                    continue
                there = rule.symbols.get(name, {}).get("new") if name in rule.symbols else None
                if there not in (None, new + name[len(old) :]):
                    return False
                if not self.moves.holds(old, new, name, attributes):
                    return False
        return True

    @cached_property
    def _by_origin(self) -> dict[int, list[Use]]:
        """The uses of what each binding may bind, but imports, by the id of the binding."""
        found: dict[int, list[Use]] = {}
        for use in self.names.uses:
            if use.role is not Role.IMPORT:
                for binding in use.origins:
                    found.setdefault(binding.id, []).append(use)
        return found

    # ---- `import old.module`, which binds only the root ----------------------------------------------

    def _level(self, case: Case, hit: RuleMatch) -> tuple[Applicability, tuple[Reason, ...]]:
        """Who may apply a fix of a case at a hit, and why it is not safe."""
        return applicability(_needed(case, hit), hit.rule, range_at(hit.use, hit.name, self.versions))

    def _imports_moved_module(self, hit: RuleMatch) -> bool:
        binding = hit.use.binding
        return (
            hit.use.role is Role.IMPORT
            and binding is not None
            and binding.kind is BindingKind.IMPORT
            and binding.target == binding.name != hit.name
            and hit.symbol in hit.rule.modules
        )

    def _module_fix(self, first: RuleMatch, hits: Sequence[RuleMatch]) -> dict[int, Fix]:
        """One fix for the import of a moved module and all uses of its members, by hit; empty: none."""
        plain, new, binding = self._plain_case(first.rule), variables(first).get("new"), first.use.binding
        if plain is None or not new or binding is None or new.partition(".")[0] != binding.name:
            return {}
        if not self.moves.is_module(new):
            return {}
        users: list[RuleMatch] = []
        for hit in hits:
            if (
                hit is first
                or hit.rule.code != first.rule.code
                or not f"{hit.name}.".startswith(f"{first.name}.")
            ):
                continue
            bound = hit.use.binding
            if bound is not None and bound.target != binding.name:
                continue  # a name that another import binds
            if not self.may_fix(hit) or hit.use.role is Role.IMPORT:
                return {}
            users.append(hit)
        if self._others(first, users):
            return {}
        edits: dict[Edit, None] = {Edit(first.use.start, first.use.end, new): None}
        level, reasons = self._level(plain, first)
        requires = required(_needed(plain, first), first.rule)
        for hit in users:
            target = new + hit.name[len(first.name) :]
            made = self._rewrite(hit, target, target)
            if made is None:
                return {}
            edits.update(dict.fromkeys(made[0]))
            requires |= made[5]
            if made[1] < level:
                level, reasons = made[1], made[2]
        if level is Applicability.SAFE and any(
            self._is_another(hit, new + hit.name[len(first.name) :]) for hit in users
        ):
            level, reasons = Applicability.UNSAFE, identity.REASON
        fix = self.fix(first.rule, f"Import `{new}`", level, reasons, edits, requires=requires)
        return {id(hit): fix for hit in (first, *users)}

    def _others(self, first: RuleMatch, users: Sequence[RuleMatch]) -> bool:
        """Whether the module of an `import old.module` is reached where nothing will be changed."""
        changed = {hit.use.start for hit in users}
        root = first.name.partition(".")[0]
        return any(
            use.role not in (Role.IMPORT, Role.STRING)
            and use.start not in changed
            and (use.binding is None or use.binding.target == root)
            and any(f"{name}.".startswith(f"{first.name}.") for name in use.candidates)
            for use in self.names.uses
        )

    def _plain_case(self, rule: Rule) -> Case | None:
        """The case that makes a rule a plain rename, whatever the arguments are."""
        for case in rule.cases:
            if "import" in case.roles and case.rename and not case.when:
                return case
        return None

    def _new_name(self, first: RuleMatch, hits: list[RuleMatch]) -> str | None:
        """The qualified name that takes the place of what the import binds; None: there is not one."""
        binding = first.use.binding
        if binding is None or first.name != binding.target:
            return None
        plain = self._plain_case(first.rule)
        if plain is not None and plain.rename:
            known = variables(first)
            return known.get(plain.rename[1:]) if plain.rename.startswith("$") else plain.rename
        callees: set[str | None] = set()
        for hit in hits:
            if hit is first:
                continue
            if hit.use.attribute_path or not self.may_fix(hit):
                return None
            made = self._rewritten(hit)
            callees.add(made[4] if made is not None else None)
        return callees.pop() if len(callees) == 1 else None


def _after_all(finding: Finding, fix: Fix | None, why: tuple[Reason, ...]) -> Finding:
    if finding.fix is None or fix is not None:
        return replace(finding, fix=fix)
    return replace(finding, fix=None, blocked_by=tuple(dict.fromkeys((*finding.blocked_by, *why))))


def variables(hit: RuleMatch) -> Mapping[str, str]:
    """What templates of the rule may name for this symbol: `$new` and its own variables."""
    rule = hit.rule
    if hit.symbol in rule.modules and hit.symbol not in rule.symbols:
        new = rule.modules[hit.symbol]
        return {"new": new + hit.name[len(hit.symbol) :]} if new else {}
    return rule.symbols.get(hit.symbol, {})


def _needed(case: Case, hit: RuleMatch) -> Case:
    """The case without the release that it requires, where the new name is of no library of torch."""
    new = variables(hit).get("new")
    return replace(case, requires=None) if new and new.partition(".")[0] not in LIBRARY_ROOTS else case


def fill(text: str, name: str, values: Mapping[str, str]) -> str:
    """A rule's text with `{name}` and `{new}` filled in."""
    if "{" not in text:
        return text
    for key, value in (("name", name), *values.items()):
        text = text.replace("{" + key + "}", value)
    return text
