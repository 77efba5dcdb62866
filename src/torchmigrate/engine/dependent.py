"""Fixes that depend on each other: in the parts of a `try`, and at the uses of an import that fails."""

from __future__ import annotations

import ast
import builtins
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from operator import itemgetter

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
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
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.joined import joined_fixes
from torchmigrate.semantics.guards.formulas import (
    MISSING_IMPORT,
    MISSING_NAME,
    caught_by,
    ends_in_error,
    survives,
)
from torchmigrate.semantics.model import Guards, Role, Use
from torchmigrate.source.trees import last_name, walk

_BODY_FAILS = because("the body of the `try` still fails, so that this handler would always run")
_HALF = because("the same call on the other side of the `try` has no fix")
_UNSAFE_BODY = because(
    "only an unsafe fix mends the body of the `try`, for which this handler runs until then"
)
# What a missing name, or a function that was removed, raises.
_RAISED = (AttributeError, ImportError, NameError, RuntimeError, TypeError)
_NAMED = MISSING_IMPORT.named | MISSING_NAME.named
_APART = because("another fix that depends on it changes the same line")
_STAYS = because("the import fails at the target, and something else still needs it")
_Span = tuple[int, int]


def within_attempts(
    found: list[Finding], file: FileContext, rule_of: Callable[[str], Rule | None]
) -> list[Finding]:
    """The findings, with fixes in the body and the handlers of a `try` that depend on each other.

    The same call on both sides is rewritten on both, or on neither. A handler keeps its old calls while
    something in the body surely fails at the target.
    """
    attempts = list(_attempts(file))
    if not attempts:
        return found
    sides = _Sides(found, file, rule_of)
    for attempt in attempts:
        sides.settle(attempt)
    return sides.fixes.settled()


class _Attempt:
    """A `try`: the spans of its body (with its `else`), and of what runs instead of it.

    broad: whether a handler catches more than missing names. about_releases: see `TryGuard`.
    """

    def __init__(self, node: ast.Try, body: list[_Span]) -> None:
        self.node = node
        self.body = body
        self.instead: list[_Span] = []
        self.broad = False
        self.about_releases = False


def _attempts(file: FileContext) -> Iterator[_Attempt]:
    """The `try` statements of a file whose handlers may run for what is missing."""
    source, names = file.source, file.names

    def span(block: list[ast.stmt]) -> _Span:
        return source.span(block[0])[0], source.span(block[-1])[1]

    made: dict[int, _Attempt] = {}
    for kind in (ast.Try, getattr(ast, "TryStar", ast.Try)):
        for node in names.nodes(kind):
            if id(node.body) in made:
                continue
            attempt = _Attempt(node, [span(part) for part in (node.body, node.orelse) if part])
            made[id(node.body)] = attempt
            for handler in node.handlers:
                caught = caught_by(handler)
                if any(map(_catches, caught)):
                    attempt.instead.append(span(handler.body))
                    attempt.broad = attempt.broad or caught.isdisjoint(_NAMED)
            known = names.guarded.attempt(node.body)
            if known is not None:
                attempt.about_releases = known.about_releases
                if known.rest is not None:
                    # `try: return old(x)` with a handler that passes: what follows runs instead.
                    attempt.instead.append((span([node])[1], span([known.rest])[1]))
    return iter([attempt for attempt in made.values() if attempt.instead or attempt.broad])


def _catches(name: str) -> bool:
    """Whether a handler of such an error may run for what is missing; errors of the project may."""
    kind = getattr(builtins, name, None)
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        return True
    return any(issubclass(raised, kind) for raised in _RAISED) or issubclass(kind, _RAISED)


def _holds(spans: list[_Span], offset: int) -> bool:
    return any(start <= offset < end for start, end in spans)


class _Fixes:
    """The fixes of a file. Several may become one, or be demoted to advice."""

    def __init__(self, found: list[Finding]) -> None:
        self._found = found
        # id() of a fix as it was made -> as it is now, and the other way round.
        self._now: dict[int, Fix] = {id(item.fix): item.fix for item in found if item.fix is not None}
        self._members: dict[int, list[int]] = {key: [key] for key in self._now}

    def settled(self) -> list[Finding]:
        """The findings with the fixes that are left."""
        return [
            item
            if item.fix is None or self._now[id(item.fix)] is item.fix
            else replace(item, fix=self._now[id(item.fix)])
            for item in self._found
        ]

    def now(self, fix: Fix) -> Fix:
        """The current form of a fix."""
        return self._now[id(fix)]

    def applies(self, fix: Fix | None) -> bool:
        """Whether a fix can be applied, as things stand."""
        return fix is not None and self.now(fix).applicability > Applicability.DISPLAY

    def lower(self, fixes: Iterable[Fix | None], level: Applicability, why: tuple[Reason, ...]) -> None:
        """Let fixes be no safer than `level`."""
        for old in [self.now(fix) for fix in fixes if fix is not None]:
            if old.applicability > level and id(old) in self._members:
                self._put({id(old): replace(old, applicability=level, held_by=why)})

    def join(self, some: Iterable[Fix | None]) -> None:
        """Let all of some fixes be applied, or none; these are shown only where they do not fit together."""
        fixes = [fix for fix in some if fix is not None]
        apart = {id(now): now for now in map(self.now, fixes)}
        if len(apart) > 1:
            self._put(joined_fixes(apart))
            if len({id(self.now(fix)) for fix in fixes}) > 1:
                self.lower(fixes, Applicability.DISPLAY, _APART)

    def _put(self, new: Mapping[int, Fix]) -> None:
        """Let fixes take the place of others, by the id() of those."""
        for old, fix in new.items():
            keys = self._members.pop(old)
            self._members.setdefault(id(fix), []).extend(keys)
            self._now.update(dict.fromkeys(keys, fix))


# ---- try --------------------------------------------------------------------------------------------


class _Sides:
    """What findings do in the `try` statements of a file."""

    def __init__(
        self, found: list[Finding], file: FileContext, rule_of: Callable[[str], Rule | None]
    ) -> None:
        self.found = sorted(found, key=lambda item: item.start)
        self.file = file
        self.rule_of = rule_of
        self.fixes = _Fixes(found)
        self._starts = [item.start for item in self.found]
        self._uses = [use.start for use in file.names.uses]
        self._functions: dict[str, list[ast.FunctionDef]] = defaultdict(list)
        for node in file.names.nodes(ast.FunctionDef):
            self._functions[node.name].append(node)

    def settle(self, attempt: _Attempt) -> None:
        """Decide on the fixes in one `try`."""
        inside = self._in(attempt.body)
        if attempt.broad and not attempt.about_releases:
            for item in inside:
                rule = self.rule_of(item.code)
                if rule is not None and rule.failures:
                    self.fixes.lower([item.fix], Applicability.UNSAFE, because(rule.failures))
        outside = self._in(attempt.instead)
        codes = {item.code for item in inside}
        for code in dict.fromkeys(item.code for item in outside if item.code in codes):
            pair = [item for item in (*inside, *outside) if item.code == code]
            if all(map(self._applies, pair)):
                self.fixes.join(item.fix for item in pair)
            else:
                self.fixes.lower((item.fix for item in pair), Applicability.DISPLAY, _HALF)
        instead = [item for item in outside if self._applies(item)]
        if not instead:
            return
        fails, level = self._body(attempt, instead)
        if fails:
            self.fixes.lower((item.fix for item in instead), Applicability.DISPLAY, _BODY_FAILS)
        elif level is Applicability.UNSAFE:
            self.fixes.lower((item.fix for item in instead), level, _UNSAFE_BODY)

    def _applies(self, item: Finding) -> bool:
        return self.fixes.applies(item.fix)

    # ---- places --------------------------------------------------------------------------------------

    def _in(self, spans: list[_Span]) -> list[Finding]:
        return [
            item
            for start, end in spans
            for item in self.found[bisect_left(self._starts, start) : bisect_left(self._starts, end)]
        ]

    def _body(self, attempt: _Attempt, instead: list[Finding]) -> tuple[bool, Applicability]:
        """Whether the body of a `try` fails after the fixes, and how safe those are that it needs.

        What functions of the file do that are called there counts as well. In code that is about releases,
        only calls count that the handler has, too.
        """
        numeric = attempt.broad and not attempt.about_releases
        rewritten = {(item.symbol or "").rpartition(".")[2] for item in instead} - {""}
        level = Applicability.SAFE
        blocks: list[ast.stmt] = [*attempt.node.body, *attempt.node.orelse]
        seen = set(map(id, blocks))
        for block in blocks:  # grows by the functions that are called
            start, end = self.file.source.span(block)
            for item in self._in([(start, end)]) if numeric else ():
                if item.severity is Severity.ERROR and item not in instead:
                    if item.fix is None or not self._applies(item):
                        return True, level
                    level = min(level, self.fixes.now(item.fix).applicability)
            uses = self.file.names.uses[bisect_left(self._uses, start) : bisect_left(self._uses, end)]
            understood = {use.end for use in uses}
            for use in uses:
                same = any(name.rpartition(".")[2] in rewritten for name in use.candidates)
                if (numeric or same) and self._is_gone(use) and not self._is_mended(use):
                    return True, level
            for node in walk(block):
                if isinstance(node, ast.Call):
                    name = last_name(node.func)
                    if name in rewritten and self._end(node.func) not in understood:
                        return True, level  # a method of an unknown object
                    for function in self._functions.get(name, ()):
                        if id(function) not in seen:
                            seen.add(id(function))
                            blocks.append(function)
        return False, level

    def _end(self, node: ast.expr) -> int:
        return self.file.source.span(node)[1]

    def _is_gone(self, use: Use) -> bool:
        """Whether a use fails at the target for lack of what it names."""
        if use.role in (Role.STRING, Role.ANNOTATION) or use.in_string:
            return False
        gone = all(self.file.exists(name) is False for name in use.candidates)
        return gone and not self.file.runs_elsewhere(use.node)

    def _is_mended(self, use: Use) -> bool:
        return use.start in self._silent or any(map(self._applies, self._in([(use.start, use.end)])))

    @cached_property
    def _silent(self) -> set[int]:
        """Where a fix of an import changes what a name means."""
        return {start for item in self.found if self._applies(item) for start, _ in item.places}


# ---- errors that handlers hide -----------------------------------------------------------------------

_HIDDEN = "the error is caught here, so that the fallback always runs"


def with_hidden_errors(found: list[Finding], file: FileContext) -> list[Finding]:
    """The findings, with a word in the help of those whose error a handler for other failures hides."""
    removed = {item.start: item for item in found if item.severity is Severity.ERROR and item.symbol}
    if not removed:
        return found
    hidden = {
        id(removed[use.start])
        for use in file.names.uses
        if use.start in removed and _is_hidden(use, removed[use.start].symbol or "", file)
    }
    return [
        replace(item, help="; ".join(filter(None, (item.help, _HIDDEN)))) if id(item) in hidden else item
        for item in found
    ]


def _is_hidden(use: Use, symbol: str, file: FileContext) -> bool:
    """Whether a use of what was removed stands in a `try` that goes on after what it raises."""
    if use.role in (Role.IMPORT, Role.STRING, Role.ANNOTATION) or symbol not in use.candidates:
        return False
    raised = file.raised(symbol)
    guards: Guards | None = use.guards
    while guards is not None:
        if raised is not None and guards.attempt is not None and guards.part == "body":
            for handler in guards.attempt.node.handlers:
                kinds = [getattr(builtins, name, None) for name in caught_by(handler)]
                if any(isinstance(kind, type) and issubclass(raised, kind) for kind in kinds):
                    again = any(isinstance(node, ast.Raise) for part in handler.body for node in walk(part))
                    return not (again or guards.attempt.about_releases or ends_in_error(handler.body))
        guards = guards.outer
    return False


# ---- imports that fail -------------------------------------------------------------------------------


def with_failing_imports(found: list[Finding], file: FileContext) -> list[Finding]:
    """The findings, without fixes that rewrite uses of an import which fails at the target, and leave that.

    All uses of it are rewritten, so that it goes, or none is. It may stay in a `try` that goes on without it.
    """
    gone = {item.symbol for item in found if item.severity is Severity.ERROR}
    imports = [
        binding
        for binding in file.names.imports
        if (binding.guards.is_nothing() or binding.guards.part == "body")
        and (
            file.import_fails(binding)
            or (file.exists(binding.target or "") is None and binding.target in gone)
        )
    ]
    if not imports or all(item.fix is None for item in found):
        return found
    fixes = _Fixes(found)
    made = {id(item.fix): item.fix for item in found if fixes.applies(item.fix) and item.fix is not None}
    edits = sorted(((edit, key) for key, fix in made.items() for edit in fix.edits), key=itemgetter(0))
    starts = [edit.start for edit, _ in edits]
    longest = max((edit.end - edit.start for edit, _ in edits), default=0)

    def at(start: int, end: int) -> Iterator[tuple[Edit, Fix]]:
        for edit, key in edits[bisect_left(starts, start - longest) : bisect_left(starts, end)]:
            if edit.end > start:
                yield edit, made[key]

    for binding in imports:
        node = binding.node
        assert isinstance(node, ast.alias), "it is an import"
        name = re.compile(rf"(?<![\w.]){re.escape(binding.name)}\b")
        taken = [
            [fix for edit, fix in at(use, use + 1) if not name.search(edit.text)] for use in binding.uses
        ]
        concerned = [fix for some in taken for fix in some]
        if not concerned or any(at(*file.source.span(node))):
            continue
        start, end = file.source.span(binding.statement)
        # With what is added to its statement, only the name goes, and comments of the others stay.
        added = any(start < edit.start < end for edit, _ in at(start, end))
        drop = DroppedUse(binding.id, tuple(binding.uses))
        may_stay = survives(binding.guards, MISSING_IMPORT)
        goes = may_stay or (file.imports.may_go(drop) if added else file.imports.removals([drop]))
        if goes and all(taken):
            fixes.join(concerned)
        else:
            reason = Reason(Obstacle.TAKEN, name=binding.name) if file.exports.takes(binding) else None
            fixes.lower(concerned, Applicability.DISPLAY, (reason,) if reason else _STAYS)
    return fixes.settled()
