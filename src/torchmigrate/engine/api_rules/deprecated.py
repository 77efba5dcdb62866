"""TM006 and TM008: names and arguments that the library says are deprecated, in its own words."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator

from torchmigrate.catalogue.codes import DEPRECATED_API, DOCUMENTED_DEPRECATION
from torchmigrate.engine.api_rules.api import Api, Version
from torchmigrate.engine.api_rules.arguments import Functions
from torchmigrate.engine.api_rules.given import Given, argument_of
from torchmigrate.engine.api_rules.places import Surrounding
from torchmigrate.engine.api_rules.wording import finding, library_of, release
from torchmigrate.findings import Finding, Severity, Timeline
from torchmigrate.match.rule_matches import is_guarded
from torchmigrate.patterns import pattern
from torchmigrate.semantics.model import Role, Use, Via
from torchmigrate.versions.releases import show_version
from torchmigrate.versions.surface import Surface, private, surface_of
from torchmigrate.versions.surface_model import ApiEntry, DeprecatedParameter, EntryKind

# Where a name is looked at, not called: there nothing warns, unless an import does.
_QUIET = (Role.ANNOTATION, Role.STRING)
_NAMES = pattern(r"~?([A-Za-z_][\w.]*\w)(?:\(\))?")
_ADVISED = pattern(r"\b(?:use|to|with|by|of|see|prefer)\b", re.I)
# What the title, or what is advised before, says already.
_ONLY_DEPRECATED = pattern(r"^(?:`?[\w.()]+`? (?:is|has been) )?deprecated(?:\. (?=\w)|$)", re.I)
_ONLY_USE = pattern(r"(?:please )?use `?[\w.()]+`? instead", re.I)
_CUT = "{}"  # what a format puts in is not known


class DeprecatedNames:
    """Looks at the names and calls of one file.

    codes: of the rules that are selected.
    owned: whether the catalogue has a rule of its own for a name; owned_parameter: for a parameter of one.
    """

    def __init__(
        self,
        functions: Functions,
        codes: frozenset[str],
        owned: Callable[[str], bool],
        owned_parameter: Callable[[str, str], bool],
        surrounding: Surrounding,
    ) -> None:
        self.functions = functions
        self.codes = codes
        self.api = functions.api
        self.owned = owned
        self.owned_parameter = owned_parameter
        self.surrounding = surrounding

    def look(self, use: Use, name: str) -> Iterator[Finding]:
        """The findings for a name that exists at the target, and for the arguments of its call."""
        module = _imported_from(use)
        for called in (name,) if module is None else (module, name):
            entry = self.functions.deprecated(called)
            if entry is not None and not (
                use.role in _QUIET or use.in_string or _is_said_before(use) or _is_asked_for(use)
            ):
                yield from self._look(use, called, entry)

    def _look(self, use: Use, name: str, entry: ApiEntry) -> Iterator[Finding]:
        if entry.deprecated is not None and self._is_used(use, name, entry) and not self._is_owned(name):
            found = self.about(use, name, entry, self.surrounding.span(use, name, name))
            if found is not None:
                yield found
        elif (
            entry.parameters
            and DEPRECATED_API in self.codes
            and use.call is not None
            and use.role is not Role.IMPORT
        ):
            yield from self._arguments(use, use.call, name, entry)

    def about(self, use: Use, name: str, entry: ApiEntry, span: tuple[int, int]) -> Finding | None:
        """The finding about a deprecated name; None where it is not wanted, or the code takes care of it."""
        if (DEPRECATED_API if entry.warns else DOCUMENTED_DEPRECATION) not in self.codes:
            return None
        new = replacement(self.api, name, entry) if entry.warns else None
        if self._is_handled(use, name, (new,) if new is not None else ()):
            return None
        since = deprecated_since(self.api, name)
        return _finding(
            name, f"`{name}` is deprecated", since, span, entry.deprecated or "", new, entry.warns
        )

    def _is_owned(self, name: str) -> bool:
        """Whether the catalogue has a rule for a name as it is written, or as it is shorter."""
        surface, version = surface_of(name), self.api.target.version(name)
        at = surface.definition(name, version) if surface is not None else None
        owner, _, last = name.rpartition(".")
        while owner:
            other = f"{owner}.{last}"
            if self.owned(other) and (surface is None or surface.definition(other, version) == at):
                return True
            owner = owner.rpartition(".")[0]
        return False

    @staticmethod
    def _is_used(use: Use, name: str, entry: ApiEntry) -> bool:
        """Whether this is where it warns, or what the documentation means."""
        if entry.kind is EntryKind.MODULE and entry.warns and use.role is Role.IMPORT:
            return True
        own = name.rpartition(".")[2]
        if own.startswith("_") or (private(name) and not entry.warns):
            return False
        return use.role is not Role.IMPORT  # that of a function warns of nothing; its calls are found

    def _is_handled(self, use: Use, name: str, new: tuple[str, ...]) -> bool:
        point = self.api.target
        return self.surrounding.catches_warnings(use) or is_guarded(
            use, name, target=point.version, old=(name,), new=new, exists=point.exists
        )

    # ---- arguments -----------------------------------------------------------------------------------

    def _arguments(self, use: Use, call: ast.Call, name: str, entry: ApiEntry) -> Iterator[Finding]:
        function = self.functions.get(name)
        if function is None or (function.is_member and not use.method and entry.kind is not EntryKind.CLASS):
            return
        seen: set[str] = set()
        for parameter in entry.parameters:
            given = _given(parameter)
            argument = argument_of(call, given.name, function.now)
            if argument is None or given.name in seen or not given.holds(argument, use.scope):
                continue
            if self.owned_parameter(name, given.name) or self._is_handled(use, name, ()):
                continue
            seen.add(given.name)
            node = next((item for item in call.keywords if item.value is argument), argument)
            title = f"`{given.shown}` of `{name}` is deprecated"
            since = parameter_since(self.api, name, given.name)
            span = self.surrounding.span_of(node)
            yield _finding(name, title, since, span, parameter.said, None, warns=True)


def _is_said_before(use: Use) -> bool:
    """Whether this is a name for what was found where it was given that name."""
    return (use.via is Via.ALIAS and not use.attribute_path) or use.via is Via.SELF


def _is_asked_for(use: Use) -> bool:
    """`getattr(torch, "old", None)`: such code expects that the name may be missing."""
    return use.via is Via.GETATTR and use.call is None and len(getattr(use.node, "args", ())) > 2


def _imported_from(use: Use) -> str | None:
    """The module of a `from ... import`, at the first of its names: reported once for the statement."""
    statement = use.statement
    if not isinstance(statement, ast.ImportFrom) or use.node is not statement.names[0] or statement.level:
        return None
    return statement.module


@functools.lru_cache(maxsize=256)
def _given(parameter: DeprecatedParameter) -> Given:
    return Given(parameter.test)


def _finding(
    name: str,
    title: str,
    since: Version | None,
    span: tuple[int, int],
    said: str,
    new: str | None,
    warns: bool,
) -> Finding:
    library = library_of(name)
    version = None if since is None else show_version(since)
    surface = surface_of(name)
    # It may have been before the first release that is known.
    when = (
        ""
        if since is None or surface is None or since == surface.versions[0]
        else f" since {release(name, since)}"
    )
    words = "" if _CUT in said else _ONLY_DEPRECATED.sub("", _plain(said))
    parts = [f"use `{new}`"] if new is not None else []
    if words and not (new is not None and _ONLY_USE.fullmatch(words)):
        parts.append(f"{library} says: {words}")
    return finding(
        DEPRECATED_API if warns else DOCUMENTED_DEPRECATION,
        title + when,
        Severity.WARNING if warns else Severity.INFO,
        span,
        name,
        Timeline(library, deprecated=version) if warns else Timeline(library, outdated=version),
        "; ".join(parts) or None,
    )


def _plain(said: str) -> str:
    """The library's words without the marks of its documentation."""
    text = re.sub(r":[a-z:]+:`~?([^`]*)`", r"`\1`", said).replace("``", "`")
    return text.replace("`~", "`")


# ---- since when, and what instead --------------------------------------------------------------------


def deprecated_since(api: Api, name: str) -> Version | None:
    """The first of the releases, up to the target, in which all a name is deprecated."""
    return since_when(api, name, lambda entry: entry.deprecated is not None)


def parameter_since(api: Api, name: str, parameter: str) -> Version | None:
    """The same of a parameter."""
    return since_when(
        api, name, lambda entry: any(_given(item).name == parameter for item in entry.parameters)
    )


def first_of(name: str) -> Version | None:
    """The first release in the data that has a name."""
    surface = surface_of(name)
    spans = surface.spans(name) if surface is not None else ()
    return spans[0][0] if spans else None


def since_when(api: Api, name: str, fits: Callable[[ApiEntry], bool]) -> Version | None:
    """The first of the releases, up to the target, in which all a name is so."""
    surface = surface_of(name)
    if surface is None:
        return None
    target, found = api.target.version(name), None
    for version in reversed(surface.versions):
        if version <= target:
            entry = surface.entry(name, version)
            if entry is None or not fits(entry):
                break
            found = version
    return found


def replacement(api: Api, name: str, entry: ApiEntry) -> str | None:
    """What the library says to use instead, where that exists at the target and is not deprecated itself."""
    surface = surface_of(name)
    if surface is None:
        return None
    if entry.kind is EntryKind.VALUE and entry.target and _is_good(api, surface, entry.target, name):
        return entry.target  # another name of a setting
    said = entry.deprecated or ""
    advice = _ADVISED.search(said)
    words = dict.fromkeys(
        match[1]
        for match in _NAMES.finditer(said, advice.end() if advice is not None else len(said))
        if "." in match[1] or "_" in match[1] or said[: match.start(1)].endswith(("`", "`~"))
    )
    last = name.rpartition(".")[2]
    others = [word for word in words if word.rpartition(".")[2] != last or "." in word]
    # Where it names several things, one of them is not all.
    return _found(api, surface, others[0], name) if len(others) == 1 else None


def _found(api: Api, surface: Surface, word: str, name: str) -> str | None:
    """The name that a word means in the deprecation message of another name."""
    version = api.target.version(name)
    at = surface.definition(name, version) or name
    owners = [owner for owner in (name.rpartition(".")[0], at.rpartition(".")[0]) if owner]
    owners += [owner.rpartition(".")[0] for owner in owners]
    wholes = [f"{owner}.{word}" for owner in dict.fromkeys(owners) if owner]
    if "." in word:
        wholes = [word, f"{surface.library}.{word}", *wholes]
    found = next((whole for whole in wholes if _is_good(api, surface, whole, name)), None)
    if found is None:
        return None
    sibling = f"{name.rpartition('.')[0]}.{found.rpartition('.')[2]}"
    is_same = surface.definition(sibling, version) == surface.definition(found, version)
    return sibling if is_same and not private(sibling) else found


def _is_good(api: Api, surface: Surface, new: str, name: str) -> bool:
    if library_of(new) != surface.library or "." not in new or api.target.exists(new) is not True:
        return False
    entry, version = api.target.entry(new), api.target.version(new)
    return (
        entry is not None
        and entry.deprecated is None
        and entry.kind is not EntryKind.MODULE
        and surface.definition(new, version) != surface.definition(name, version)
    )
