"""TM003, TM004 and TM005 of arguments: what a function no longer takes, takes elsewhere, or not yet."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torchmigrate.api_rules import rules
from torchmigrate.api_rules.api import Api, Signatures, Version
from torchmigrate.api_rules.places import ARGUMENT_ERRORS, Surrounding, is_handled_at
from torchmigrate.api_rules.wording import finding, library_of, release
from torchmigrate.match.signature import Argument, Parameter, Signature, arguments_of
from torchmigrate.model import Finding, Severity, Timeline
from torchmigrate.names.model import Use
from torchmigrate.versions.releases import show_version
from torchmigrate.versions.surface import surface_of
from torchmigrate.versions.surface_model import EntryKind, Status


@dataclass(frozen=True, slots=True)
class Move:
    """Since a release, the argument at a position is for another parameter than before."""

    position: int
    old: Parameter
    new: Parameter
    since: Version


class Arguments:
    """Looks at the calls of one file.

    owned: whether the catalogue has a rule of its own for a parameter (the second) of a function.
    """

    def __init__(
        self, api: Api, codes: frozenset[str], owned: Callable[[str, str], bool], surrounding: Surrounding
    ) -> None:
        self.api = api
        self.codes = codes
        self.owned = owned
        self.surrounding = surrounding

    def look(self, use: Use, name: str) -> Iterator[Finding]:
        """What is to be said about the arguments of a call of `name`, which exists at the target."""
        call = use.call
        if call is None or use.in_string or use.in_fstring or not (call.args or call.keywords):
            return
        now = self.api.target.signatures(name)
        if not now:
            return
        arguments = arguments_of(call)
        for argument in arguments:
            if argument.keyword is not None and not any(argument.keyword in one.by_name for one in now):
                yield from self._removed_keyword(use, name, now, argument)
        if self.api.floor is not None and rules.NEEDS_NEWER in self.codes:
            yield from self._new_keywords(use, name, now, arguments)
        if any(argument.star == "*" for argument in arguments) or self._is_unbound_method(use, name):
            return
        given = [argument for argument in arguments if argument.is_positional]
        if given:
            yield from self._too_many(use, name, now, given)
            yield from self._moved(use, name, given)

    def _is_unbound_method(self, use: Use, name: str) -> bool:
        """Whether the first argument may be the object: `torch.Tensor.add(x, y)`."""
        surface = surface_of(name)
        if use.method or surface is None:
            return False
        owner = surface.entry(name.rpartition(".")[0], self.api.target.version(name))
        return owner is None or owner.kind is not EntryKind.MODULE

    # ---- TM003 ---------------------------------------------------------------------------------------

    def _removed_keyword(self, use: Use, name: str, now: Signatures, argument: Argument) -> Iterator[Finding]:
        keyword = argument.keyword
        if (
            keyword is None
            or rules.REMOVED_PARAMETER not in self.codes
            or any(one.keywords is not None for one in now)
        ):
            return
        since = self._last(name, lambda one: _named(one, keyword))
        if since is None or self._is_settled(use, name, keyword):
            return
        yield self._finding(
            rules.REMOVED_PARAMETER,
            name,
            f"`{name}` takes no `{keyword}` since {release(name, since)}",
            self._span(use, argument),
            Timeline(library_of(name), removed=show_version(since)),
        )

    def _too_many(self, use: Use, name: str, now: Signatures, given: list[Argument]) -> Iterator[Finding]:
        if rules.REMOVED_PARAMETER not in self.codes or any(one.variadic is not None for one in now):
            return
        most = max(len(one.positional) for one in now)
        if len(given) <= most:
            return
        since = self._last(name, lambda one: one.variadic is None and len(one.positional) >= len(given))
        if since is None:
            return
        before = self._before(name, since)
        names = [one.positional[most].name for one in before if len(one.positional) > most]
        if any(self._is_settled(use, name, parameter) for parameter in names):
            return
        kept = next((item for item in names if any(item in one.by_name for one in now)), None)
        yield self._finding(
            rules.REMOVED_PARAMETER,
            name,
            f"`{name}` takes at most {most} positional argument{'s' * (most != 1)} "
            f"since {release(name, since)}; here are {len(given)}",
            self._span(use, given[most]),
            Timeline(library_of(name), removed=show_version(since)),
            f"pass `{kept}` by keyword" if kept else None,
        )

    def _last(self, name: str, fits: Callable[[Signature], bool]) -> Version | None:
        """The release since which no signature fits any more; None: none ever did."""
        since: Version | None = None
        for version, then in reversed(self.api.history(name)):
            if any(map(fits, then)):
                return since
            since = version
        return None

    def _before(self, name: str, version: Version) -> Signatures:
        """The signatures in the release before this one."""
        found: Signatures = ()
        for release_, then in self.api.history(name):
            if release_ == version:
                break
            found = then
        return found

    # ---- TM004 ---------------------------------------------------------------------------------------

    def _moved(self, use: Use, name: str, given: list[Argument]) -> Iterator[Finding]:
        if rules.MOVED_ARGUMENT not in self.codes:
            return
        for move in self._moves(name):
            if move.position >= len(given):
                continue
            argument = given[move.position]
            evidence = _evidence(argument.value, move)
            wanted = evidence >= 0 if self.api.minimum else evidence > 0
            if not wanted or any(
                self._is_settled(use, name, parameter.name) for parameter in (move.old, move.new)
            ):
                continue
            yield self._finding(
                rules.MOVED_ARGUMENT,
                name,
                f"argument {move.position + 1} of `{name}` is `{move.new.name}` since "
                f"{release(name, move.since)}; it was `{move.old.name}`",
                self._span(use, argument),
                Timeline(library_of(name), changed=show_version(move.since)),
            )
            return  # those behind it moved with it

    def _moves(self, name: str) -> list[Move]:
        """The positions that mean something else at the target than in a release that is supported."""
        found = self.api.moves.get(name)
        if found is None:
            found = self.api.moves[name] = list(self._find_moves(name))
        return found

    def _find_moves(self, name: str) -> Iterator[Move]:
        history = self.api.history(name)
        if not history or len(history[-1][1]) != 1:
            return
        floor = self.api.floor.version(name) if self.api.minimum and self.api.floor else (0,)
        oldest = max((version for version, _ in history if version <= floor), default=floor)
        (now,) = history[-1][1]
        for position, new in enumerate(now.positional):
            since = history[-1][0]
            for version, then in reversed(history):
                if version < oldest or len(then) != 1:
                    break
                (before,) = then
                if len(before.positional) <= position:
                    break
                old = before.positional[position]
                if old.name != new.name:
                    if _is_move(before, now, old, new):
                        yield Move(position, old, new, since)
                    break
                since = version

    # ---- TM005 ---------------------------------------------------------------------------------------

    def _new_keywords(
        self, use: Use, name: str, now: Signatures, arguments: list[Argument]
    ) -> Iterator[Finding]:
        floor = self.api.floor
        if floor is None or self.api.minimum is None or floor.status(name) is not Status.PRESENT:
            return
        then = floor.signatures(name)
        if not then or any(one.keywords is not None for one in then):
            return
        for argument in arguments:
            keyword = argument.keyword
            if keyword is None or any(keyword in one.by_name for one in then):
                continue
            since: Version | None = None
            for version, signatures in reversed(self.api.history(name)):
                if not any(_named(one, keyword) for one in signatures):
                    break
                since = version
            if since is None or is_handled_at(use, name, (), floor, ARGUMENT_ERRORS):
                continue
            yield self._finding(
                rules.NEEDS_NEWER,
                name,
                f"`{name}` takes `{keyword}` since {release(name, since)}, and the project supports "
                f"{show_version(floor.version(name))}",
                self._span(use, argument),
                Timeline(library_of(name), added=show_version(since)),
            )

    # ---- common --------------------------------------------------------------------------------------

    def _is_settled(self, use: Use, name: str, parameter: str) -> bool:
        """Whether the catalogue or the code itself takes care of a parameter."""
        return self.owned(name, parameter) or is_handled_at(use, name, (), self.api.target, ARGUMENT_ERRORS)

    def _span(self, use: Use, argument: Argument) -> tuple[int, int]:
        return self.surrounding.span_of(argument.node) if argument.node else (use.start, use.end)

    def _finding(
        self,
        code: str,
        name: str,
        message: str,
        span: tuple[int, int],
        timeline: Timeline,
        help_text: str | None = None,
    ) -> Finding:
        severity = Severity.ERROR if code == rules.REMOVED_PARAMETER else Severity.WARNING
        return finding(code, message, severity, span, name, timeline, help_text)


def _named(signature: Signature, name: str) -> bool:
    """Whether a parameter can be given by this keyword (and not by `**` alone)."""
    found = signature.by_name.get(name)
    return found is not None and found.kind in ("positional", "keyword-only")


def _is_move(before: Signature, now: Signature, old: Parameter, new: Parameter) -> bool:
    """Whether a position means something else, and not the same by another name."""
    return old.name in now.by_name or new.name in before.by_name


def _evidence(value: ast.expr | None, move: Move) -> int:
    """For which parameter an argument seems to be: 1 the old one, -1 the new one, 0 nobody can tell."""
    word = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
    if word in (move.old.name, move.new.name):
        return 1 if word == move.old.name else -1
    if not isinstance(value, ast.Constant) or value.value is None:
        return 0
    old, new = _fits(value.value, move.old), _fits(value.value, move.new)
    if new is False:
        return 0 if old is False else 1
    return -1 if old is False or (new and not old) else 0


def _fits(value: object, parameter: Parameter) -> bool | None:
    """Whether a literal is of the type of the parameter's default; None where there is none that says."""
    default = parameter.default
    if not isinstance(default, ast.Constant) or default.value is None:
        return None
    if isinstance(value, bool) or isinstance(default.value, bool):
        return isinstance(value, bool) and isinstance(default.value, bool)
    if isinstance(default.value, int | float):
        return isinstance(value, int | float)
    return isinstance(value, type(default.value))
