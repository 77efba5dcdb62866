"""What every command starts with: configuration, catalogue, settings and console."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from torchmigrate.cli.options import layer
from torchmigrate.config.selection import Selectable
from torchmigrate.config.settings import (
    ConfigError,
    Layer,
    Settings,
    combine,
    find_config,
    read_config,
)
from torchmigrate.files.paths import is_dir
from torchmigrate.report.console import Console

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example
    from torchmigrate.catalogue.index import Catalogue
    from torchmigrate.catalogue.model import Rule


def open_console(colour: str, *, quiet: bool = False, verbose: bool = False) -> Console:
    """The console of a command."""
    return Console(colour, quiet=quiet, verbose=verbose)


class Session(NamedTuple):
    """One command's surroundings. Errors of the user's making are raised as click.ClickException."""

    console: Console
    catalogue: Catalogue
    settings: Settings
    known: Sequence[Selectable]

    @classmethod
    def open(
        cls,
        paths: Sequence[Path],
        *,
        config: Path | None,
        isolated: bool,
        command_line: Layer | None = None,
        detect: bool = True,
        fix: bool = False,
        colour: str = "auto",
        quiet: bool = False,
        verbose: bool = False,
    ) -> Session:
        """Read the configuration that is nearest to the paths, load the rules and combine all options."""
        console = open_console(colour, quiet=quiet, verbose=verbose)
        start = common_directory(paths)
        try:
            layer = Layer()
            if config is not None:
                layer = read_config(config)
            elif not isolated and (found := find_config(start)) is not None:
                layer = read_config(found, named=False)
            console.detail(f"configuration: {layer.origin or 'none'}")
            catalogue, known = load_rules(layer)
            root = Path(layer.origin).absolute().parent if layer.origin else project_directory(start)
            settings = combine([layer, command_line or Layer()], known, root=root, fix=fix)
        except ConfigError as error:
            raise click.ClickException(str(error)) from None
        settings = settings._replace(detect=detect and not isolated)
        of_each = settings.detect and settings.minimum is None  # said when the files are known
        minimum = "" if of_each else f"; minimum: {settings.minimum or 'unknown'}"
        console.detail(f"target: torch {settings.target}{minimum}")
        console.detail(f"{len(settings.codes)} of {len(known)} rules selected")
        return cls(console, catalogue, settings, known)

    @classmethod
    def from_options(cls, paths: Sequence[Path], options: Mapping[str, Any]) -> Session:
        """The same for a command that checks files, whose options click gives by these names."""
        return cls.open(
            paths,
            config=options["config"],
            isolated=options["isolated"],
            command_line=layer(options),
            fix=options.get("fix", False) or options.get("diff", False) or options.get("fix_pins", False),
            colour=options["colour"],
            quiet=options["quiet"],
            verbose=options["verbose"],
        )

    @property
    def rules(self) -> list[Rule]:
        """Every rule, those about comments too."""
        from torchmigrate.catalogue.builtin import RULES

        return [*self.catalogue.rules, *RULES]

    def rule(self, key: str) -> Rule:
        """A rule by code, name or what it finds, which may be the end of a qualified name.

        Raises click.ClickException with a suggestion.
        """
        folded = key.lower()
        for rule in self.rules:
            if folded in (rule.code.lower(), rule.name):
                return rule
        for rule, _ in self.catalogue.for_name(key):
            return rule
        for rule in self.catalogue.of_other_files:
            if key in rule.symbols:
                return rule
        names = self.catalogue.ending_in(key)
        rules = {rule.code: rule for name in names for rule, _ in self.catalogue.for_name(name)[:1]}
        if len(rules) == 1:
            return rules.popitem()[1]
        if names:
            from torchmigrate.catalogue.problems import listed

            raise click.ClickException(f"`{key}` may be {listed(names[:10])}: name one of them")
        from torchmigrate.config.selection import did_you_mean
        from torchmigrate.config.torchfix_codes import CODES

        known = [*CODES, *(word for rule in self.rules for word in (rule.code, rule.name))]
        raise click.ClickException(f"unknown rule `{key}`{did_you_mean(key, known)}")


def examples(rule: Rule) -> Sequence[Example]:
    """The examples of a rule. Raises click.ClickException if its file is gone."""
    from torchmigrate.catalogue.builtin import EXAMPLES
    from torchmigrate.catalogue.examples import FIX, REPORT_ONLY, Example
    from torchmigrate.catalogue.problems import CatalogueError
    from torchmigrate.catalogue.store import examples_of

    if rule.code in EXAMPLES:
        before, after = EXAMPLES[rule.code]
        return [Example(FIX if after else REPORT_ONLY, before, after)]
    try:
        return examples_of(rule)
    except CatalogueError as error:
        raise click.ClickException(str(error)) from None


def load_rules(layer: Layer) -> tuple[Catalogue, Sequence[Selectable]]:
    """Our rules with those in the directories of the configuration; and what there is to select."""
    from torchmigrate.catalogue.problems import CatalogueError
    from torchmigrate.catalogue.store import load_user_rules, merge, own_rules

    known: Sequence[Selectable]
    try:
        known, catalogue = own_rules()
        if layer.rules:
            user_rules = load_user_rules(layer.rules, layer.project)
            catalogue = merge(catalogue, user_rules)
            known = [*known, *(item.rule for item in user_rules)]
    except CatalogueError as error:
        raise ConfigError(str(error)) from None
    return catalogue, known


def project_directory(start: Path) -> Path:
    """What patterns are relative to without a configuration: where the command runs, if that is above."""
    here = Path.cwd()
    return here if start.is_relative_to(here) else start


def common_directory(paths: Sequence[Path]) -> Path:
    """The directory that holds all of the paths; they need not exist."""
    places = [path.absolute() if is_dir(path) else path.absolute().parent for path in paths]
    try:
        return Path(os.path.commonpath([os.path.normpath(place) for place in places]))
    except ValueError:  # different drives
        return Path.cwd()
