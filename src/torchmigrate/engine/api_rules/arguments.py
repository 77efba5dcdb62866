"""TM003, TM004 and TM005 of arguments: what a function no longer takes, takes elsewhere, or not yet."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from torchmigrate.catalogue.codes import MOVED_ARGUMENT, NEEDS_NEWER, REMOVED_PARAMETER, UNKNOWN_API
from torchmigrate.engine.api_rules.api import Api, signatures
from torchmigrate.engine.api_rules.functions import Function, Move
from torchmigrate.engine.api_rules.places import (
    ARGUMENT_ERRORS,
    INIT,
    Surrounding,
    is_handled_at,
    may_have_more,
)
from torchmigrate.engine.api_rules.wording import finding, lacking, library_of, needs, release
from torchmigrate.findings import Finding, Reason, Severity, Timeline
from torchmigrate.match.signature import Parameter, arguments_of
from torchmigrate.semantics.guards.formulas import Arguments as GuardedArguments
from torchmigrate.semantics.model import Use
from torchmigrate.semantics.public_names import public_name
from torchmigrate.versions.releases import show_version
from torchmigrate.versions.surface import DOCUMENTED, Surface, surface_of
from torchmigrate.versions.surface_model import ApiEntry

# Names of numpy that compiled functions take in the place of their own, which no stub has.
_OF_NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}

# What is surely no object of a class of a library. `Class.method(3)` has none in front: it is a method of the
# class, or a static one.
_NO_OBJECT = (ast.Constant, ast.JoinedStr, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Compare)


class Functions:
    """The functions that the files of a run call, each looked up once."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._found: dict[str, Function | None] = {}
        self._deprecated: dict[str, ApiEntry | None] = {}

    def get(self, name: str) -> Function | None:
        """A function by its qualified name; None where not all of its signatures are known."""
        if name not in self._found:
            surface = surface_of(name)
            self._found[name] = self._function(name, surface) if surface else None
        return self._found[name]

    def deprecated(self, name: str) -> ApiEntry | None:
        """The entry of a name that is deprecated at the target, or has a deprecated parameter; None for any
        other."""
        if name not in self._deprecated:
            entry = self.api.target.entry(name)
            said = entry is not None and (entry.deprecated is not None or entry.parameters)
            self._deprecated[name] = entry if said else None
        return self._deprecated[name]

    def _function(self, name: str, surface: Surface) -> Function | None:
        version = self.api.target.version(name)
        defined = surface.definition(name, version) or name
        now = signatures(surface, name, version)
        documented = defined.rpartition(".")[0] in DOCUMENTED
        return Function(name, now, surface, self.api) if now and not documented else None


class Arguments:
    """Looks at the calls of one file.

    owned: whether the catalogue has a rule of its own for a parameter (the second) of a function; demanded:
        whether it has one for calls that leave such a parameter out.
    """

    def __init__(
        self,
        functions: Functions,
        codes: frozenset[str],
        owned: Callable[[str, str], bool],
        demanded: Callable[[str, str], bool],
        surrounding: Surrounding,
    ) -> None:
        self.functions = functions
        self.api = functions.api
        self.codes = codes
        self.owned = owned
        self.demanded = demanded
        self.surrounding = surrounding

    def look(self, use: Use, name: str, *, reported: bool = False) -> Iterator[Finding]:
        """The findings for the arguments of a call of `name`, which exists at the target.

        reported: whether the catalogue says something about the use, so that only an error is news.
        """
        call = use.call or self.surrounding.around.prepared(use)
        if call is None or use.in_string or use.in_fstring:
            return
        owner, _, last = name.rpartition(".")
        constructs = last == INIT  # `super().__init__(...)` takes what the class does
        function = self.functions.get(owner if constructs else name)
        if function is None:
            return
        yield from self._left_out(use, name, function, call, constructs)
        if reported:
            return
        for node, keyword in self._keywords(call):
            if keyword not in function.keywords:
                yield from self._removed_keyword(use, function, node, keyword)
            elif self.api.minimum is not None:
                yield from self._new_keyword(use, function, node, keyword)
        given = call.args[1:] if constructs and not use.method else call.args  # `Base.__init__(self, ...)`
        too_many = function.most is not None and len(given) > function.most
        if given and (too_many or function.moves):
            through_class = function.is_member and not use.method
            if any(isinstance(item, ast.Starred) for item in given) or (
                through_class and not isinstance(given[0], _NO_OBJECT)
            ):
                return
            yield from self._too_many(use, function, given)
            yield from self._moved(use, function, given)

    def _keywords(self, call: ast.Call) -> Iterator[tuple[ast.AST, str]]:
        """The keywords of a call, those of `**options` included, with where they are written."""
        for keyword in call.keywords:
            if keyword.arg is not None:
                yield keyword, keyword.arg
            else:
                given, _ = self.surrounding.around.flow.keywords(keyword.value)
                yield from ((place, name) for name, (place, _) in given.items())

    # ---- TM003 ---------------------------------------------------------------------------------------

    def _removed_keyword(
        self, use: Use, function: Function, node: ast.AST, keyword: str
    ) -> Iterator[Finding]:
        if function.takes_any or self._is_settled(use, function.name, keyword):
            return
        if _OF_NUMPY.get(keyword) in function.keywords:
            return
        since = function.dropped(keyword)
        if since is None:
            if not may_have_more(use, function.name):
                yield from self._unknown_keyword(function, node, keyword)
            return
        if REMOVED_PARAMETER not in self.codes:
            return
        yield self._finding(
            REMOVED_PARAMETER,
            function.name,
            f"`{function.name}` no longer takes `{keyword}` since {release(function.name, since)}",
            node,
            Timeline(library_of(function.name), removed=show_version(since)),
        )

    def _unknown_keyword(self, function: Function, node: ast.AST, keyword: str) -> Iterator[Finding]:
        if UNKNOWN_API not in self.codes or not function.never_took(keyword):
            return
        library = library_of(function.name)
        first, last = (show_version(version) for version in (function.history[0][0], function.history[-1][0]))
        yield self._finding(
            UNKNOWN_API,
            function.name,
            f"`{function.name}` does not take `{keyword}` in any release of {library} from {first} to {last}",
            node,
            Timeline(library),
            "check the parameters in the documentation",
        )

    def _too_many(self, use: Use, function: Function, given: Sequence[ast.expr]) -> Iterator[Finding]:
        most = function.most
        if REMOVED_PARAMETER not in self.codes or most is None or len(given) <= most:
            return
        since = function.narrowed(len(given))
        if since is None:
            return
        before = function.before(since)
        names = [one.positional[most].name for one in before if len(one.positional) > most]
        if any(self._is_settled(use, function.name, parameter) for parameter in names):
            return
        kept = next((item for item in names if item in function.keywords), None)
        yield self._finding(
            REMOVED_PARAMETER,
            function.name,
            f"`{function.name}` takes at most {most} positional argument{'s' * (most != 1)} since "
            f"{release(function.name, since)}, but {len(given)} are given",
            given[most],
            Timeline(library_of(function.name), removed=show_version(since)),
            f"pass `{kept}` by keyword" if kept else None,
        )

    def _left_out(
        self, use: Use, name: str, function: Function, call: ast.Call, constructs: bool
    ) -> Iterator[Finding]:
        """What the call would have to give at the target, and did not have to give before."""
        if REMOVED_PARAMETER not in self.codes or not function.demands:
            return
        given = arguments_of(call, self.surrounding.around.flow.keywords)
        if constructs and not use.method:
            given = given[1:]  # `Base.__init__(self, ...)`
        if any(item.star for item in given):
            return
        found = function.demanded(given)
        if found is None:
            return
        since, names = found
        if any(
            self.demanded(function.name, parameter) or self._is_handled(use, function.name, parameter)
            for parameter in names
        ):
            return
        listed = " and ".join(f"`{parameter}`" for parameter in names)
        yield self._finding(
            REMOVED_PARAMETER,
            function.name,
            f"`{function.name}` requires {listed} since {release(function.name, since)}",
            use.node,
            Timeline(library_of(function.name), removed=show_version(since)),
            f"pass {listed}",
        )

    # ---- TM004 ---------------------------------------------------------------------------------------

    def _moved(self, use: Use, function: Function, given: Sequence[ast.expr]) -> Iterator[Finding]:
        if MOVED_ARGUMENT not in self.codes:
            return
        for move in function.moves:
            if move.position >= len(given):
                continue
            argument = given[move.position]
            evidence = _evidence(argument, move)
            # Without a minimum, code that nothing tells from code of today counts as that.
            wanted = evidence >= 0 if self.api.minimum else evidence > 0
            if not wanted or any(
                self._is_settled(use, function.name, parameter.name) for parameter in (move.old, move.new)
            ):
                continue
            yield self._finding(
                MOVED_ARGUMENT,
                function.name,
                f"argument {move.position + 1} of `{function.name}` is `{move.new.name}` since "
                f"{release(function.name, move.since)}; before, it was `{move.old.name}`",
                argument,
                Timeline(library_of(function.name), changed=show_version(move.since)),
            )
            return  # those after it moved with it

    # ---- TM005 ---------------------------------------------------------------------------------------

    def _new_keyword(self, use: Use, function: Function, node: ast.AST, keyword: str) -> Iterator[Finding]:
        floor = self.api.floor
        if floor is None or NEEDS_NEWER not in self.codes:
            return
        then = floor.signatures(function.name)
        if not then or any(one.keywords is not None or keyword in one.by_name for one in then):
            return
        since = function.added(keyword)
        if (
            since is None
            or keyword in self.surrounding.asked_for
            or is_handled_at(use, function.name, (), floor, ARGUMENT_ERRORS, is_known=True)
            or self.surrounding.is_chosen(use)
        ):
            return
        yield self._finding(
            NEEDS_NEWER,
            function.name,
            f"`{function.name}` takes `{keyword}` since {release(function.name, since)}",
            node,
            Timeline(library_of(function.name), added=show_version(since)),
            needs(function.name, since),
            lacking(self.api, function.name),
        )

    # ---- common --------------------------------------------------------------------------------------

    def _is_settled(self, use: Use, name: str, parameter: str) -> bool:
        """Whether the catalogue or the code itself takes care of a parameter."""
        return self.owned(name, parameter) or self._is_handled(use, name, parameter)

    def _is_handled(self, use: Use, name: str, parameter: str) -> bool:
        given = (
            frozenset(keyword.arg for keyword in use.call.keywords if keyword.arg)
            if use.call
            else frozenset()
        )
        about = GuardedArguments(frozenset((name, public_name(name))), given, frozenset((parameter,)))
        return parameter in self.surrounding.asked_for or is_handled_at(
            use, name, (), self.api.target, ARGUMENT_ERRORS, arguments=about
        )

    def _finding(
        self,
        code: str,
        name: str,
        message: str,
        node: ast.AST,
        timeline: Timeline,
        help_text: str | None = None,
        lacks: Reason | None = None,
    ) -> Finding:
        severity = Severity.ERROR if code == REMOVED_PARAMETER else Severity.WARNING
        span = self.surrounding.span_of(node)
        return finding(code, message, severity, span, name, timeline, help_text, lacks)


def _evidence(value: ast.expr, move: Move) -> int:
    """For which parameter an argument seems to be: 1 the old one, -1 the new one, 0 unknown."""
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
    if isinstance(default.value, (int, float)):
        return isinstance(value, (int, float))
    return isinstance(value, type(default.value))
