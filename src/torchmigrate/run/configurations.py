"""Which configuration a file has: the nearest one, whatever else is checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from torchmigrate.catalogue.codes import PINNED_BELOW_TARGET
from torchmigrate.config.selection import Selectable
from torchmigrate.config.settings import (
    CONFIG_NAMES,
    ConfigError,
    Layer,
    Settings,
    combine,
    config_in,
    find_config,
    read_layers,
)
from torchmigrate.files.digests import blake2b, digest_of
from torchmigrate.files.paths import entries, real_directory, with_parents, work_tree_of
from torchmigrate.files.reading import UnreadableError, read

if TYPE_CHECKING:
    from torchmigrate.catalogue.index import Catalogue

Note = Callable[[str], None]


def silent(_: str) -> None:
    """Ignore a message."""


class Scope(NamedTuple):
    """What holds for files that have the same configuration, and require the same.

    source: the file in which the project states the minimum of `settings`, if neither the user nor a
    configuration gave one. rules: a digest of the project's own rules; empty: it has none.
    layers: what the settings were made of, the command line last.
    """

    settings: Settings
    catalogue: Catalogue
    known: Sequence[Selectable]
    source: Path | None = None
    rules: str = ""
    layers: Sequence[Layer] = ()


class Configurations:
    """The configurations of a run, each read once; can be sent to another process.

    As in ruff, the nearest configuration at or above a file holds for it alone: two of them are not put
    together, unless one says `extend`.

    Args:
        command_line: comes after every configuration.
        inline: keys of a configuration that the user gives on the command line; come before its options.
        config: the one file that holds for all.
        isolated: no configuration is read.
        detect: what projects require counts.
        fix: fixes are made.
        start: what patterns are relative to for files without a configuration that are in no repository.
        top: what is above it does not count; None: there is no such directory.
        guessing: rules that only guess whether a place is affected are looked for like others.
        note: receives what was read.
    """

    def __init__(
        self,
        command_line: Layer,
        *,
        config: Path | None = None,
        isolated: bool = False,
        detect: bool = True,
        fix: bool = False,
        start: Path,
        top: Path | None = None,
        guessing: bool = False,
        note: Note | None = None,
        inline: Layer | None = None,
    ) -> None:
        self.command_line = command_line
        self.inline = [] if inline is None else [inline]
        self.config = config
        self.isolated = isolated
        self.detect = detect and not isolated
        self.fix = fix
        self.start = start
        self.guessing = guessing
        self.note = note or silent
        self._scopes: dict[Path, Scope] = {}  # by the configuration
        self._bare: dict[Path, Scope] = {}  # without a configuration, by the root of the patterns
        self._given: dict[Path, Scope] = {}  # by the directory, as it is named
        self._found: dict[Path, Scope] = {}  # by the real directory
        # Real directories that no configuration is in or above.
        self._none_above: set[Path] = set() if top is None else {real_directory(top).parent}
        self._own: tuple[Catalogue, Sequence[Selectable]] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "note": silent}

    def of(self, directory: Path) -> Scope:
        """What holds in a directory, which need not exist.

        Raises ConfigError where its configuration cannot be used.
        """
        scope = self._given.get(directory)
        if scope is None:
            scope = self._given[directory] = self._nearest(real_directory(directory))
        return scope

    def preferences(self, directory: Path) -> Sequence[Layer]:
        """The layers that decide for a directory what holds for a run as a whole; no rules are read.

        Raises ConfigError where its configuration cannot be used.
        """
        config = self.config or (None if self.isolated else find_config(real_directory(directory)))
        layers = [] if config is None else read_layers(config, named=self.config is not None)
        return (*layers, *self.inline, self.command_line)

    def settings_in(self, directory: Path) -> Settings:
        """The settings of `of`."""
        return self.of(directory).settings

    def settings_around(self, directory: Path) -> Settings:
        """The same for a directory that is only looked at: what cannot be used there does not count."""
        try:
            return self.settings_in(directory)
        except ConfigError:
            return self.settings_around(directory.parent) if directory.parent != directory else Settings()

    def _nearest(self, directory: Path) -> Scope:
        if self.config is not None:
            return self._read(self.config)
        on_the_way = []
        for place in with_parents(directory):
            scope = self._found.get(place)
            if scope is None and place in self._none_above:
                break
            on_the_way.append(place)
            if scope is None and not self.isolated and not CONFIG_NAMES.isdisjoint(entries(place)):
                config = config_in(place)
                scope = None if config is None else self._read(config)
            if scope is not None:
                self._found.update(dict.fromkeys(on_the_way, scope))
                return scope
        self._none_above.update(on_the_way)
        return self._without(directory)

    def _read(self, config: Path) -> Scope:
        """What a configuration comes to with the command line."""
        if config not in self._scopes:
            layers = read_layers(config, named=self.config is not None)
            self._scopes[config] = self._scope(layers, config.absolute().parent, str(config))
        return self._scopes[config]

    def _without(self, directory: Path) -> Scope:
        """What holds without one; patterns are relative to the repository, if there is one."""
        root = work_tree_of(directory) or self.start
        if root not in self._bare:
            self._bare[root] = self._scope([], root, "" if self._bare else "none")
        return self._bare[root]

    def _scope(self, layers: Sequence[Layer], root: Path, origin: str) -> Scope:
        """Layers with the command line. origin: what to say that this is; empty: it was reported before."""
        if origin:
            self.note(f"configuration: {origin}")
        if self._own is None:
            self._own = load_rules()
        every = (*layers, *self.inline, self.command_line)
        own = digest_of_rules(every)  # before they are read: what changes meanwhile is seen later
        catalogue, known = load_rules(every) if own else self._own
        plugins = {head.codemod for head in catalogue.heads if head.codemod} if own else set()
        if plugins and (plugins := plugins.difference(head.codemod for head in self._own[0].heads)):
            from torchmigrate.catalogue.installed import fingerprint

            own += fingerprint(plugins)
        rules = _with_guesses(known, catalogue) if self.guessing else known
        settings = combine(every, rules, root=root, fix=self.fix)
        settings = replace(
            settings,
            own_names=names_of(catalogue, known[len(self._own[1]) :]) if own else frozenset(),
            detect=self.detect,
            evidence=settings.evidence and not self.isolated,
            keeps_line_length=not self.isolated,
        )
        of_each = self.detect and settings.minimum is None  # reported when the files are known
        minimum = "" if of_each else f"; minimum: {settings.minimum or 'unknown'}"
        if origin:
            self.note(f"target: torch {settings.target}{minimum}")
            self.note(f"{len(settings.codes)} of {len(known)} rules selected")
        return Scope(settings, catalogue, known, rules=own, layers=every)


def guesses(catalogue: Catalogue) -> frozenset[str]:
    """The codes of rules about other results or defaults that are off because they guess."""
    return frozenset(head.code for head in catalogue.heads if head.opt_in and head.changed is not None)


def _with_guesses(known: Sequence[Selectable], catalogue: Catalogue) -> list[Selectable]:
    """The rules as if those that guess, and the one on what is pinned, were not off unless selected."""
    from torchmigrate.catalogue.compiled_file import RuleName

    codes = guesses(catalogue) | {PINNED_BELOW_TARGET}
    return [
        RuleName(rule.code, rule.name, group=rule.group) if rule.code in codes else rule for rule in known
    ]


def digest_of_rules(layers: Sequence[Layer]) -> str:
    """A digest of the files with rules that some configurations name; empty: they name none."""
    if not any(layer.rules for layer in layers):
        return ""
    from torchmigrate.catalogue.problems import CatalogueError
    from torchmigrate.catalogue.store import user_rule_files

    state = blake2b(digest_size=16)
    for layer in layers:
        # Errors in one are reported when it is loaded.
        with suppress(CatalogueError, UnreadableError):
            for path in user_rule_files(layer.rules, layer.project):
                state.update(os.fsencode(path) + b"\0")
                state.update(digest_of(read(path)))
    return state.hexdigest()


def names_of(catalogue: Catalogue, rules: Sequence[Selectable]) -> frozenset[str]:
    """The names outside of the known libraries that some rules of the user are about."""
    from torchmigrate.catalogue.store import own_names

    return own_names(filter(None, (catalogue.find(rule.code) for rule in rules)))


def load_rules(layers: Sequence[Layer] = ()) -> tuple[Catalogue, Sequence[Selectable]]:
    """Our rules with those in the directories of configurations; and what there is to select."""
    from torchmigrate.catalogue.problems import CatalogueError
    from torchmigrate.catalogue.store import load_user_rules, merge, own_rules

    known: Sequence[Selectable]
    try:
        known, catalogue = own_rules()
        for layer in layers:
            if layer.rules:
                user_rules = load_user_rules(layer.rules, layer.project)
                catalogue = merge(catalogue, user_rules)
                known = [*known, *(item.rule for item in user_rules)]
    except CatalogueError as error:
        raise ConfigError(*map(str, error.problems)) from None
    return catalogue, known
