"""Settings of configuration modules, `torch._dynamo.config.verbose`: what a file sets, patches and passes.

Such a module raises where a name is set that it does not have, so that every setting that a release took
away breaks the code that still sets it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from torchmigrate.catalogue.codes import (
    NEEDS_NEWER,
    REMOVED_API,
    RENAMED_SETTING,
    UNKNOWN_API,
    UNREAD_SETTING,
)
from torchmigrate.engine.api_rules import suggest
from torchmigrate.engine.api_rules.api import Api, Point, config_module
from torchmigrate.engine.api_rules.deprecated import DeprecatedNames, first_of, since_when
from torchmigrate.engine.api_rules.places import NAME_ERRORS, Surrounding, is_handled_at, is_load
from torchmigrate.engine.api_rules.wording import finding, lacking, library_of, needs, release
from torchmigrate.findings import Finding, Severity, Timeline
from torchmigrate.match.rule_matches import is_guarded
from torchmigrate.semantics.guards.formulas import Missing
from torchmigrate.semantics.model import BindingKind, Role, Scope, Use
from torchmigrate.versions.releases import show_version
from torchmigrate.versions.surface import surface_of

_INDUCTOR = "torch._inductor.config"
_PATCHES = ("patch", "_make_closure_patcher")
# Functions that take settings of `torch._inductor.config` as a dict, by keyword.
TAKE_SETTINGS = {
    "torch.compile": "options",
    "torch._inductor.compile": "options",
    "torch._inductor.aot_compile": "options",
    "torch._inductor.standalone_compile": "options",
    "torch._inductor.aoti_compile_and_package": "inductor_configs",
    "torch._export.aot_compile": "options",
}
_OF_COMPILE = ("guard_filter_fn", "use_aoti")  # options that are not settings
_SETTERS = ("setattr", "delattr", "object")  # also of `monkeypatch`; `mock.patch.object`
_ERRORS = Missing(NAME_ERRORS.named | {"KeyError"}, NAME_ERRORS.broad | {"RuntimeError"})

# A setting, and where it is written.
_Touched = tuple[str, ast.AST]


class Settings:
    """Looks at the settings that one file changes. (What it reads is a name as any other.)

    deprecated: says what is deprecated; None: that is not wanted.
    """

    def __init__(
        self,
        api: Api,
        codes: frozenset[str],
        owned: Callable[[str], bool],
        deprecated: DeprecatedNames | None,
        surrounding: Surrounding,
    ) -> None:
        self.api = api
        self.codes = codes
        self.owned = owned
        self.deprecated = deprecated
        self.surrounding = surrounding

    def look(self, use: Use, name: str) -> Iterator[Finding]:
        """The findings for the settings that are changed through a use."""
        for setting, node in self._touched(use, name):
            found = self._about(use, setting, node)
            if found is not None:
                yield found

    # ---- which settings ------------------------------------------------------------------------------

    def _touched(self, use: Use, name: str) -> Iterator[_Touched]:
        if use.call is not None and name in TAKE_SETTINGS:
            yield from self._options(use, use.call, name)
            return
        module = config_module(self.api, name)
        if module is None:
            return
        if not is_load(use):
            if name != module:
                yield name, use.node
        elif use.call is not None and name.rpartition(".")[0] == module:
            if name.rpartition(".")[2] in _PATCHES:
                yield from self._patched(use, use.call, module)
        elif use.role is Role.REFERENCE:
            around = self.surrounding.names.parents.get(use.node)
            if isinstance(around, ast.Attribute) and isinstance(around.ctx, ast.Store):
                if isinstance(use.statement, ast.AugAssign) and use.statement.target is around:
                    return  # a use of its own, as what is deleted
                yield f"{name}.{around.attr}", around
            elif isinstance(around, ast.Call):
                yield from _set_by_call(use.node, around, name)

    def _patched(self, use: Use, call: ast.Call, module: str) -> Iterator[_Touched]:
        """`config.patch(a=1)`, `config.patch("a.b", 1)`, `config.patch({"a.b": 1})`."""
        for keyword in call.keywords:
            if keyword.arg is not None:
                yield f"{module}.{keyword.arg}", keyword
            else:
                yield from _keys(keyword.value, use.scope, module)
        if call.args:
            yield from _keys(call.args[0], use.scope, module)

    def _options(self, use: Use, call: ast.Call, name: str) -> Iterator[_Touched]:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        backend = given.get("backend")
        if backend is not None and not (isinstance(backend, ast.Constant) and backend.value == "inductor"):
            return  # options of another backend
        options = given.get(TAKE_SETTINGS[name])
        if options is not None:
            for setting, node in _keys(options, use.scope, _INDUCTOR):
                if setting.rpartition(".")[2] not in _OF_COMPILE:
                    yield setting, node

    # ---- findings ------------------------------------------------------------------------------------

    def _about(self, use: Use, setting: str, node: ast.AST) -> Finding | None:
        target, floor = self.api.target, self.api.floor
        prefix = target.missing(setting)
        if prefix is None:
            entry = target.entry(setting)
            if entry is not None and entry.deprecated is not None and self.deprecated is not None:
                if not self.owned(setting):
                    return self.deprecated.about(use, setting, entry, self.surrounding.span_of(node))
            elif floor is not None and floor.missing(setting) is not None:
                return self._too_new(use, setting, node)
            elif entry is not None and entry.unread:
                return self._unread(use, setting, node)
            elif entry is not None and entry.target:
                return self._renamed(use, setting, entry.target, node)
            return None
        since = self.api.gone_since(prefix)
        if since is not None:
            return self._gone(use, setting, prefix, since, node)
        if floor is not None and self.api.there_since(prefix) is not None:
            return self._too_new(use, setting, node)
        return self._unknown(use, setting, prefix, node)

    def _is_handled(self, use: Use, setting: str, prefix: str, point: Point, *, is_known: bool) -> bool:
        return is_handled_at(use, setting, (setting, prefix), point, _ERRORS, is_known=is_known)

    def _gone(
        self, use: Use, setting: str, prefix: str, since: tuple[int, ...], node: ast.AST
    ) -> Finding | None:
        if (
            REMOVED_API not in self.codes
            or self.owned(setting)
            or self._is_handled(use, setting, prefix, self.api.target, is_known=False)
        ):
            return None
        return finding(
            REMOVED_API,
            f"`{prefix}` was removed in {release(prefix, since)}",
            Severity.ERROR,
            self.surrounding.span_of(node),
            prefix,
            Timeline(library_of(prefix), removed=show_version(since)),
            suggest.help_of_setting(self.api, prefix),
        )

    def _unread(self, use: Use, setting: str, node: ast.AST) -> Finding | None:
        if (
            UNREAD_SETTING not in self.codes
            or self.owned(setting)
            or self._is_handled(use, setting, setting, self.api.target, is_known=False)
        ):
            return None
        library = library_of(setting)
        since = since_when(self.api, setting, lambda entry: entry.unread)
        when = "" if since is None or since == first_of(setting) else f" since {release(setting, since)}"
        return finding(
            UNREAD_SETTING,
            f"`{setting}` has no effect{when}: {library} does not read it",
            Severity.INFO,
            self.surrounding.span_of(node),
            setting,
            Timeline(library, outdated=None if since is None else show_version(since)),
        )

    def _renamed(self, use: Use, setting: str, new: str, node: ast.AST) -> Finding | None:
        target, floor = self.api.target, self.api.floor
        since = since_when(self.api, setting, lambda entry: bool(entry.target))
        if (
            RENAMED_SETTING not in self.codes
            or since is None
            or since == first_of(setting)  # another name of an old one, from the beginning
            or (floor is not None and floor.missing(new) is not None)
            or self.owned(setting)
            or is_guarded(
                use, setting, target=target.version, old=(setting,), new=(new,), exists=target.exists
            )
        ):
            return None
        return finding(
            RENAMED_SETTING,
            f"`{setting}` is an alias of `{new}` since {release(setting, since)}",
            Severity.INFO,
            self.surrounding.span_of(node),
            setting,
            Timeline(library_of(setting), outdated=show_version(since)),
            f"use `{new}`",
        )

    def _unknown(self, use: Use, setting: str, prefix: str, node: ast.AST) -> Finding | None:
        surface = surface_of(prefix)
        if (
            UNKNOWN_API not in self.codes
            or surface is None
            or surface.known(prefix)
            or self.owned(setting)
            or self._is_handled(use, setting, prefix, self.api.target, is_known=False)
        ):
            return None
        close = suggest.same_setting(self.api, prefix) or suggest.nearest(self.api, prefix)
        releases = " to ".join(map(show_version, (surface.versions[0], surface.versions[-1])))
        return finding(
            UNKNOWN_API,
            f"`{prefix}` does not exist in any release of {surface.library} from {releases}",
            Severity.WARNING,
            self.surrounding.span_of(node),
            prefix,
            Timeline(surface.library),
            f"did you mean `{close}`?" if close else None,
        )

    def _too_new(self, use: Use, setting: str, node: ast.AST) -> Finding | None:
        floor, since = self.api.floor, self.api.there_since(setting)
        if (
            floor is None
            or since is None
            or NEEDS_NEWER not in self.codes
            or self._is_handled(use, setting, setting, floor, is_known=True)
            or self.surrounding.is_chosen(use)
        ):
            return None
        return finding(
            NEEDS_NEWER,
            f"`{setting}` exists since {release(setting, since)}",
            Severity.WARNING,
            self.surrounding.span_of(node),
            setting,
            Timeline(library_of(setting), added=show_version(since)),
            needs(setting, since),
            lacking(self.api, setting),
        )


def _set_by_call(module: ast.AST, call: ast.Call, name: str) -> Iterator[_Touched]:
    """`setattr(config, "a", 1)`, `monkeypatch.setattr(config, "a", 1)`, `patch.object(config, "a", 1)`."""
    if len(call.args) < 2 or call.args[0] is not module:
        return
    function = call.func
    word = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    key = call.args[1]
    if word not in _SETTERS or not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return
    if (
        not any(keyword.arg in ("create", "raising") for keyword in call.keywords)
        and key.value.isidentifier()
    ):
        yield f"{name}.{key.value}", key


def _keys(node: ast.expr, scope: Scope, module: str) -> Iterator[_Touched]:
    """The settings that a string, or the keys of a dict, name; a dict may have been given a name before."""
    if isinstance(node, ast.Name):
        node = _assigned(node, scope) or node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield f"{module}.{keyword.arg}", keyword
        return
    for key in node.keys if isinstance(node, ast.Dict) else [node]:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            setting = key.value.replace("-", "_")
            if all(part.isidentifier() for part in setting.split(".")):
                yield f"{module}.{setting}", key


def _assigned(name: ast.Name, scope: Scope) -> ast.expr | None:
    """The dict that a name is, if it is bound once."""
    around: Scope | None = scope
    while around is not None:
        bindings = around.bindings.get(name.id, [])
        if bindings:
            (only,) = bindings if len(bindings) == 1 else (None,)
            if only is None or only.kind is not BindingKind.ASSIGNMENT:
                return None
            statement = only.statement
            value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
            return value if isinstance(value, (ast.Dict, ast.Call)) else None
        around = around.parent
    return None
