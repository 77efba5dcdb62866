"""What every command starts with: configuration, catalogue, settings and console."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from torchmigrate.cli.options import Given, layer
from torchmigrate.config.settings import ConfigError, Layer, Settings, read_inline
from torchmigrate.files.paths import common_directory, project_directory
from torchmigrate.printing import printable
from torchmigrate.report.base import shown_path
from torchmigrate.report.console import Console
from torchmigrate.run.configurations import Configurations, Scope

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example
    from torchmigrate.catalogue.index import Catalogue
    from torchmigrate.catalogue.model import Rule


@contextmanager
def errors_of_the_user() -> Iterator[None]:
    """A configuration, a baseline or a revision that cannot be used ends the command with one line."""
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


class Session(Struct, frozen=True):
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
        config: Given | None = None,
        isolated: bool,
        command_line: Layer | None = None,
        detect: bool = True,
        fix: bool | None = False,
        color: str = "auto",
        quiet: bool = False,
        verbose: bool = False,
        guessing: bool = False,
    ) -> Session:
        """What the options say; configurations are read when somebody asks what holds for a file.

        fix: whether fixes are made; None: as the configuration at the start says.
        guessing: rules that only guess whether a place is affected are looked for like others.
        """
        console = Console(color, quiet=quiet, verbose=verbose)
        start, given = common_directory(paths), config or Given()
        with errors_of_the_user():
            inline = read_inline(given.inline) if given.inline else None
        configurations = Configurations(
            command_line or Layer(),
            config=given.file,
            isolated=isolated,
            detect=detect,
            fix=bool(fix),
            start=project_directory(start),
            guessing=guessing,
            note=console.detail,
            inline=inline,
        )
        session = cls(console, configurations, start)
        if fix is None:
            configurations.fix = session.preference("fix") is True
        return session

    def preference(self, key: str) -> Any:
        """What the configuration at the start, or the command line, says of a key that holds for a run as a
        whole; None: nothing."""
        with suppress(ConfigError):  # which is reported where it holds for a file
            given = [getattr(layer, key) for layer in self.configurations.preferences(self.start)]
            return next((value for value in reversed(given) if value is not None), None)
        return None

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
        """The same for a command that checks files, whose options click gives by these names.

        A command with the option `--fix` fixes if the option says so, or else the configuration.
        """
        wanted = ("fix", "fix_only", "diff", "fix_pins", "interactive")
        fix = any(map(options.get, wanted)) or options.get("fix", False)
        return cls.open(
            paths,
            config=options["config"],
            isolated=options["isolated"],
            command_line=layer(options),
            fix=fix,
            color=options["color"],
            quiet=options["quiet"],
            verbose=options["verbose"],
            guessing=guessing,
        )

    @property
    def rules(self) -> list[Rule]:
        """Every rule, those about comments too."""
        from torchmigrate.catalogue.builtin import RULES

        return [*self.catalogue.rules, *RULES]

    def rules_about(self, key: str) -> list[Rule]:
        """The rules that are called so, or else those about what is called so, in order of code.

        That may be a code or a name; a qualified name or its last parts (`symeig`); what is written with an
        object in front (`x.symeig`); or a parameter, alone (`size_average`) or of a function
        (`torch.nn.MSELoss.size_average`).

        Raises click.ClickException, with a suggestion, where there is none.
        """
        folded = key.lower()
        for rule in self.rules:
            if folded in (rule.code.lower(), rule.name):
                return [rule]
        found = self._about(key)
        if not found and "." in key and key.partition(".")[0] not in self._libraries:
            found = self._about_method(key.rpartition(".")[2])  # of an object that only the reader knows
        if found:
            return sorted(found.values(), key=lambda rule: rule.code)
        from torchmigrate.config.selection import did_you_mean, selectors
        from torchmigrate.config.torchfix_codes import CODES

        known = [*CODES, *selectors(self.rules)]
        if "." in key:
            known = [symbol for head in self.catalogue.heads for symbol in head.symbols]
        raise click.ClickException(printable(f"unknown rule `{key}`{did_you_mean(key, known)}"))

    @property
    def _libraries(self) -> frozenset[str]:
        """The packages that rules are about."""
        names = (name for rule in self.catalogue.rules for name in (*rule.symbols, *rule.modules))
        return frozenset(name.partition(".")[0] for name in names)

    def _about(self, key: str) -> dict[str, Rule]:
        """The rules about a name, by code: about the whole name, else its end, else a parameter."""
        found = {rule.code: rule for rule, _ in self.catalogue.for_name(key)}
        found |= {rule.code: rule for rule in self.catalogue.of_other_files if key in rule.symbols}
        for name in [] if found else self.catalogue.ending_in(key):
            found |= {rule.code: rule for rule, _ in self.catalogue.for_name(name)}
        return found or {rule.code: rule for rule in self.catalogue.rules if _has_parameter(rule, key)}

    def _about_method(self, method: str) -> dict[str, Rule]:
        """The rules about methods and attributes of any class that are called so, by code."""
        names = [name for name in self.catalogue.ending_in(method) if name.split(".")[-2][0].isupper()]
        return {rule.code: rule for name in names for rule, _ in self.catalogue.for_name(name)}


def _has_parameter(rule: Rule, key: str) -> bool:
    """Whether a rule decides by a parameter that is called so. key: as `rules_about` takes it."""
    function, _, name = key.rpartition(".")
    for symbol, variables in rule.symbols.items():
        if function and symbol != function and not symbol.endswith(f".{function}"):
            continue
        for parameter in (*rule.parameters, *rule.missing, *rule.match):
            # `$old` is the variable of the symbol.
            if name == (variables.get(parameter[1:]) if parameter.startswith("$") else parameter):
                return True
    return False


def examples(rule: Rule) -> Sequence[Example]:
    """The examples of a rule. Raises click.ClickException if its file was removed."""
    from torchmigrate.catalogue.problems import CatalogueError
    from torchmigrate.report.explanation import examples_of

    try:
        return examples_of(rule)
    except CatalogueError as error:
        raise click.ClickException(str(error)) from None
