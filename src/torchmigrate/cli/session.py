"""What every command starts with: configuration, catalogue, settings and console."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from torchmigrate.cli.options import layer
from torchmigrate.config.settings import Layer, Settings
from torchmigrate.files.paths import common_directory, project_directory
from torchmigrate.report.base import shown_path
from torchmigrate.report.console import Console
from torchmigrate.run.configurations import Configurations, Scope

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example
    from torchmigrate.catalogue.index import Catalogue
    from torchmigrate.catalogue.model import Rule


def open_console(colour: str, *, quiet: bool = False, verbose: bool = False) -> Console:
    """The console of a command."""
    return Console(colour, quiet=quiet, verbose=verbose)


@contextmanager
def errors_of_the_user() -> Iterator[None]:
    """A configuration, a baseline or a revision that cannot be used ends the command with one line."""
    from torchmigrate.config.settings import ConfigError

    try:
        yield
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    except Exception as error:
        from torchmigrate.baseline.file import BaselineError  # seldom needed
        from torchmigrate.files.git import GitError

        if isinstance(error, GitError):
            raise click.ClickException(f"--changed-since: {error}") from None
        if not isinstance(error, BaselineError):
            raise
        raise click.ClickException(f"{shown_path(error.path, Path.cwd())}: {error.reason}") from None


class Session(NamedTuple):
    """One command's surroundings. Errors of the user's making are raised as click.ClickException.

    start: the directory that holds all that is given.
    """

    console: Console
    configurations: Configurations
    start: Path

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
        guessing: bool = False,
    ) -> Session:
        """What the options say; configurations are read when somebody asks what holds for a file.

        guessing: rules that only guess whether a place is affected are looked for like others.
        """
        console = open_console(colour, quiet=quiet, verbose=verbose)
        start = common_directory(paths)
        configurations = Configurations(
            command_line or Layer(),
            config=config,
            isolated=isolated,
            detect=detect,
            fix=fix,
            start=project_directory(start),
            guessing=guessing,
            note=console.detail,
        )
        return cls(console, configurations, start)

    @property
    def scope(self) -> Scope:
        """What holds at the start."""
        with errors_of_the_user():
            return self.configurations.of(self.start)

    @property
    def settings(self) -> Settings:
        """The settings at the start."""
        return self.scope.settings

    @property
    def catalogue(self) -> Catalogue:
        """The rules at the start."""
        return self.scope.catalogue

    @classmethod
    def from_options(
        cls, paths: Sequence[Path], options: Mapping[str, Any], *, guessing: bool = False
    ) -> Session:
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
            guessing=guessing,
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

            raise click.ClickException(
                f"`{key}` is ambiguous: it matches {listed(names[:10])}; use a full name"
            )
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
