"""TM001, TM002 and TM005 of names: what does not exist at the target, or not yet at the minimum."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmigrate.catalogue.codes import NEEDS_NEWER, REMOVED_API, UNKNOWN_API
from torchmigrate.engine.api_rules import suggest
from torchmigrate.engine.api_rules.api import Api, Version, config_module
from torchmigrate.engine.api_rules.places import (
    NAME_ERRORS,
    Surrounding,
    base_of,
    imports_from,
    is_handled_at,
    may_have_more,
)
from torchmigrate.engine.api_rules.wording import finding, lacking, library_of, needs, release
from torchmigrate.findings import Finding, Severity, Timeline
from torchmigrate.semantics.model import Role, Use
from torchmigrate.versions.releases import show_version
from torchmigrate.versions.surface import surface_of

# Modules that such packages put into torch.
_DEVICES = frozenset(["gcu", "hpu", "maca", "mlu", "musa", "neuron", "npu", "sdaa", "xla"])


class AbsentNames:
    """Looks at the names of one file.

    owned: whether the catalogue has a rule of its own for a name, as it is used: one for `torch.gone` says
        nothing of `from torch.gone import f`, unless it is for a module.
    """

    def __init__(
        self, api: Api, codes: frozenset[str], owned: Callable[[str], bool], surrounding: Surrounding
    ) -> None:
        self.api = api
        self.codes = codes
        self.owned = owned
        self.surrounding = surrounding
        self._said: set[tuple[int, str]] = set()  # from-imports that were reported: one finding each

    def look(self, use: Use, name: str) -> Finding | None:
        """Return the finding for a missing name, or None if it exists or another rule reports it."""
        base = base_of(use, name)
        if len(name) <= len(base):
            return None  # `f = torch.ger` is looked at, or an import: what it binds follows
        prefix = self.api.target.missing(name)
        if prefix is not None:
            return self._missing(use, name, prefix, base)
        if isinstance(use.statement, ast.Import) and use.role is Role.IMPORT:
            since = self.api.no_module_since(name)
            if since is not None:
                return self._missing(use, name, name, base, since)
        if self.api.floor is not None and NEEDS_NEWER in self.codes:
            prefix = self.api.floor.missing(name)
            if prefix is not None and self._is_new(use, name, prefix, base):
                return self._too_new(use, name, prefix)
        return None

    def _missing(
        self, use: Use, name: str, prefix: str, base: str, no_module_since: Version | None = None
    ) -> Finding | None:
        since = no_module_since or self.api.gone_since(prefix)
        if since is not None:
            if (
                REMOVED_API not in self.codes
                or self.owned(name)
                or self._is_elsewhere(use, prefix, base)
                or is_handled_at(use, name, (name, prefix), self.api.target, NAME_ERRORS)
            ):
                return None
            if no_module_since is not None:
                return self._no_module(use, name, since)
            return self._gone(use, name, prefix, release(prefix, since), show_version(since))
        if self.api.floor is not None and self.api.there_since(prefix) is not None:
            if NEEDS_NEWER in self.codes and self._is_new(use, name, prefix, base):
                return self._too_new(use, name, prefix)
            return None
        return self._unknown(use, name, prefix, base)

    def _is_elsewhere(self, use: Use, prefix: str, base: str) -> bool:
        """Whether a missing name is reported at an import, or not at all because the file defines it."""
        if len(prefix) <= len(base) or self.surrounding.may_create(use):
            return True
        if self.surrounding.patches(prefix) and config_module(self.api, prefix) is None:
            return True  # of a configuration module, it cannot
        if use.role is not Role.IMPORT and self.surrounding.imports(prefix):
            return True
        if imports_from(use, prefix):
            key = id(use.statement), prefix
            if key in self._said:
                return True
            self._said.add(key)
        return False

    # ---- findings ------------------------------------------------------------------------------------

    def _gone(self, use: Use, name: str, prefix: str, since: str, version: str) -> Finding:
        # `from torch.gone import f`: where `f` went says more than where the module did.
        help_text = suggest.help_of(self.api, name) or suggest.help_of(self.api, prefix)
        return finding(
            REMOVED_API,
            f"`{prefix}` was removed in {since}",
            Severity.ERROR,
            self.surrounding.span(use, name, prefix),
            prefix,
            Timeline(library_of(prefix), removed=version),
            help_text,
        )

    def _no_module(self, use: Use, name: str, since: Version) -> Finding:
        owner, _, last = name.rpartition(".")
        return finding(
            REMOVED_API,
            f"`{name}` is not a module since {release(name, since)}, so its import fails",
            Severity.ERROR,
            self.surrounding.span(use, name, name),
            name,
            Timeline(library_of(name), removed=show_version(since)),
            f"for the object of this name, use `from {owner} import {last}`",
        )

    def _unknown(self, use: Use, name: str, prefix: str, base: str) -> Finding | None:
        surface = surface_of(prefix)
        if (
            UNKNOWN_API not in self.codes
            or surface is None
            or surface.known(prefix)
            or may_have_more(use, prefix)
            or _is_extension(name, prefix)
            or self.owned(name)
            or self._is_elsewhere(use, prefix, base)
            or is_handled_at(use, name, (name, prefix), self.api.target, NAME_ERRORS)
        ):
            return None
        close = suggest.nearest(self.api, prefix)
        releases = " to ".join(map(show_version, (surface.versions[0], surface.versions[-1])))
        return finding(
            UNKNOWN_API,
            f"`{prefix}` does not exist in any release of {surface.library} from {releases}",
            Severity.WARNING,
            self.surrounding.span(use, name, prefix),
            prefix,
            Timeline(surface.library),
            f"did you mean `{close}`?" if close else None,
        )

    def _is_new(self, use: Use, name: str, prefix: str, base: str) -> bool:
        floor = self.api.floor
        assert floor is not None, "the caller looked"
        if use.in_string:
            return False  # an annotation in a string is not evaluated
        if prefix == "torch.xpu" or prefix.startswith("torch.xpu."):
            return False  # intel_extension_for_pytorch adds it to releases before it is part of torch
        return not (
            self._is_elsewhere(use, prefix, base)
            or is_handled_at(use, name, (name, prefix), floor, NAME_ERRORS, is_known=True)
            or self.surrounding.is_chosen(use)
        )

    def _too_new(self, use: Use, name: str, prefix: str) -> Finding | None:
        since = self.api.there_since(prefix)
        floor = self.api.floor
        if since is None or floor is None:
            return None
        later = self.api.there_since(name)
        if later is not None and later > since:  # `torch.linalg` came before `torch.linalg.vector_norm`
            prefix, since = name, later
        return finding(
            NEEDS_NEWER,
            f"`{prefix}` exists since {release(prefix, since)}",
            Severity.WARNING,
            self.surrounding.span(use, name, prefix),
            prefix,
            Timeline(library_of(prefix), added=show_version(since)),
            needs(prefix, since),
            lacking(self.api, prefix),
        )


def _is_extension(name: str, prefix: str) -> bool:
    """Whether a name looks like one that a package for another device adds: `torch.npu.is_available`."""
    owner = prefix.rpartition(".")[0]
    module = len(name) > len(prefix) and owner in ("torch", "torch.backends")
    return module or owner in ("torch.version", "torch.xpu") or not _DEVICES.isdisjoint(prefix.split("."))
