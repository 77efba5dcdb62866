"""Options of the command line, those that several commands share, and how `--help` lists them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from torchmigrate.printing import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from torchmigrate.config.settings import Layer
    from torchmigrate.versions.range import VersionRange

SELECTION = "Rule selection"
VERSIONS = "Versions"
FILES = "File selection"
OUTPUT = "Output"
CONFIG = "Configuration"
BASELINE = "Accepted findings"
ENVIRONMENT = "Environment"
# Options of ruff and flake8 that are commands here.
_COMMANDS_MEANT = {"--explain": "explain", "--clean": "clean", "--version": "version"}
F = TypeVar("F", bound=Callable[..., object])
COUNT = click.IntRange(min=1)
SECONDS = click.FloatRange(min=0, min_open=True)


class Option(click.Option):
    """An option that `--help` lists under a heading."""

    def __init__(self, *args: Any, group: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class Command(click.Command):
    """A command whose `--help` lists options by heading."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            meant = _COMMANDS_MEANT.get(error.option_name)
            if meant is None or ctx.parent is None:
                raise
            command = f"{ctx.parent.command_path} {meant}"
            raise click.UsageError(
                f"No such option '{error.option_name}'. Did you mean `{command}`?", ctx
            ) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):  # arguments are in the text
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records, col_max=28)


class Group(click.Group):
    """The commands, each imported when it is wanted. For an option of `check`, the error names that command.

    Args:
        where: the module of each command, and its name there: "torchmigrate.cli.check:check".
    """

    def __init__(self, *args: Any, where: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._where = where

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._where)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        if cmd_name in self._where and cmd_name not in self.commands:
            module, _, name = self._where[cmd_name].partition(":")
            self.add_command(getattr(import_module(module), name), cmd_name)
        return self.commands.get(cmd_name)

    def everything(self) -> dict[str, click.Command]:
        """All commands by their names, in the order in which they are given."""
        found = ((name, self.get_command(None, name)) for name in self._where)
        return {name: command for name, command in found if command is not None}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            check = self.get_command(ctx, "check")
            if check is not None and any(error.option_name in each.opts for each in check.params):
                raise click.UsageError(
                    f"No such option '{error.option_name}'. Did you mean"
                    f" `{ctx.command_path} check {error.option_name}`?",
                    ctx,
                ) from None
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            if name == "fix":
                ctx.fail(f"No such command 'fix'. Did you mean `{ctx.command_path} check --fix`?")
            if name == "-" or os.path.exists(name):  # noqa: PTH110 (pathlib raises for long names)
                ctx.fail(f"No such command '{name}'. Did you mean `{ctx.command_path} check {name}`?")
            self.everything()  # among which click looks for one that is meant
        return super().resolve_command(ctx, args)


class DefaultGroup(click.Group):
    """Commands with a default command: `fleet LIST` is `fleet run LIST`."""

    def __init__(self, *args: Any, default: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        help_names = self.get_help_option_names(ctx)
        if args and args[0] not in self.commands and args[0] not in help_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)


def option(*names: str, **kwargs: Any) -> Callable[[F], F]:
    """`click.option`, with a `group`: the heading in `--help`."""
    return click.option(*names, cls=Option, **kwargs)


def list_option(name: str, metavar: str, group: str, help: str, **kwargs: Any) -> Callable[[F], F]:
    """An option that takes comma lists and may be given several times."""
    return option(name, metavar=metavar, multiple=True, callback=listed, group=group, help=help, **kwargs)


def rules_option(name: str, help: str) -> Callable[[F], F]:
    """An option that takes a comma list of rules."""
    return list_option(name, "RULES", SELECTION, help, shell_complete=_completer("rule_lists"))


def format_option(what: str, *formats: str, more: str = "") -> Callable[[F], F]:
    """The option for the format of the output; the first one is the default. what: has that format."""
    about = f"The format of the {what}{more}. [default: {formats[0]}]"
    return option("--output-format", type=click.Choice(formats), default=formats[0], group=OUTPUT, help=about)


def output_option(name: str = "--output", **kwargs: Any) -> Callable[[F], F]:
    """The option for the file that gets the output."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return option("-o", name, type=kind, metavar="FILE", group=OUTPUT, **kwargs)


def version_option(*names: str, help: str) -> Callable[[F], F]:
    """An option that takes a release of torch."""
    return option(
        *names,
        metavar="VERSION",
        callback=_version,
        group=VERSIONS,
        help=help,
        shell_complete=_completer("releases"),
    )


def listed(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The callback of an option that takes comma lists, given any number of times: one tuple."""
    return tuple(item.strip() for value in values for item in value.split(",") if item.strip())


def _completer(name: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """What the shell offers: a function of `cli/completion.py`, which is imported when a shell asks."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from torchmigrate.cli import completion

        found: list[CompletionItem] = getattr(completion, name)(ctx, incomplete)
        return found

    return complete


complete_rules = _completer("rules")


def _version(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from torchmigrate.config.settings import check_version

    try:
        return check_version(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


class Given(Struct, frozen=True):
    """What `--config` gives: a file instead of the nearest one, and keys with values, as TOML."""

    file: Path | None = None
    inline: tuple[str, ...] = ()


def _given(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Given:
    files = [value for value in values if "=" not in value or os.path.isfile(value)]  # noqa: PTH113
    if len(files) > 1:
        raise click.BadParameter("only one file can be given.")
    kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    file = kind.convert(files[0], parameter, ctx) if files else None
    return Given(file, tuple(value for value in values if value not in files))


def _per_file(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = []
    for item in listed(ctx, parameter, values):
        pattern, colon, code = (part.strip() for part in item.rpartition(":"))
        if not (pattern and colon and code):
            raise click.BadParameter(f"{printable(item)!r} must be PATTERN:RULE, such as `tests/**:TM1`.")
        found.append((pattern, (code,)))
    return tuple(found)


def _all(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


# ---- options that several commands have -----------------------------------------------------------------

paths_argument: Callable[[Any], Any] = click.argument(
    "paths", nargs=-1, type=click.Path(readable=False, path_type=Path)
)
jobs_option: Callable[[Any], Any] = option(
    "-j",
    "--jobs",
    type=COUNT,
    metavar="NUMBER",
    help="The number of processes. [default: chosen automatically]",
)
selection_options: Callable[[Any], Any] = _all(
    rules_option("--select", "Only enable these rules: codes, prefixes such as TM1, names, groups, or ALL."),
    rules_option("--extend-select", "Enable these rules in addition."),
    rules_option("--ignore", "Disable these rules."),
    rules_option("--extend-ignore", "Same as --ignore."),
)
per_file_option: Callable[[Any], Any] = option(
    "--per-file-ignores",
    "--extend-per-file-ignores",
    metavar="PATTERN:RULE,...",
    multiple=True,
    callback=_per_file,
    group=SELECTION,
    help="Disable rules in files that match a pattern.",
)
fixable_options: Callable[[Any], Any] = _all(
    rules_option("--fixable", "Only apply fixes of these rules."),
    rules_option("--unfixable", "Apply no fixes of these rules."),
    rules_option("--extend-fixable", "Apply fixes of these rules in addition."),
)
target_option: Callable[[Any], Any] = version_option(
    "--target", help="The torch release to migrate to. [default: the newest known release]"
)
minimum_option: Callable[[Any], Any] = version_option(
    "--minimum",
    help=(
        "The oldest torch release that the code must support. [default: detected from the project's "
        "requirements]"
    ),
)
range_options: Callable[[Any], Any] = _all(
    version_option("--target", help="Explain what the rule means for this target release."),
    version_option(
        "--minimum", help="The oldest torch release that the code must support; requires --target."
    ),
)
file_options: Callable[[Any], Any] = _all(
    list_option(
        "--exclude",
        "PATTERNS",
        FILES,
        ("Exclude these files and directories instead of the defaults (.venv, build, ...)."),
    ),
    list_option("--extend-exclude", "PATTERNS", FILES, "Exclude these files and directories in addition."),
    option(
        "--force-exclude/--no-force-exclude",
        default=None,
        group=FILES,
        help="Apply excludes also to files named as PATHS.",
    ),
    option(
        "--respect-gitignore/--no-respect-gitignore",
        default=None,
        group=FILES,
        help="Exclude files that git ignores. [default: respect]",
    ),
    option(
        "--embedded/--no-embedded",
        default=None,
        group=FILES,
        help="Also check examples in docstrings, Markdown and reStructuredText.",
    ),
)
evidence_option: Callable[[Any], Any] = option(
    "--evidence/--no-evidence",
    default=None,
    help="Use the recordings of `torchmigrate record`. [default: if there are any]",
)
baseline_options: Callable[[Any], Any] = _all(
    option(
        "--baseline",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        group=BASELINE,
        help="Hide the findings in this file, written by `torchmigrate baseline`.",
    ),
    option(
        "--no-baseline",
        is_flag=True,
        group=BASELINE,
        help="Use no baseline, even if the configuration has one.",
    ),
)
config_options: Callable[[Any], Any] = _all(
    option(
        "--config",
        multiple=True,
        callback=_given,
        metavar="FILE|KEY=VALUE",
        group=CONFIG,
        help="Use this file, or set a key of the configuration.",
        shell_complete=_completer("files"),
    ),
    option(
        "--isolated",
        is_flag=True,
        group=CONFIG,
        help="Ignore all configuration files, and do not detect the minimum.",
    ),
)
cache_dir_option: Callable[[Any], Any] = option(
    "--cache-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    envvar="TORCHMIGRATE_CACHE_DIR",
    group=CONFIG,
    help="The cache directory. [default: .torchmigrate_cache in the project]",
)
cache_options: Callable[[Any], Any] = _all(
    option(
        "-n",
        "--no-cache",
        is_flag=True,
        envvar="TORCHMIGRATE_NO_CACHE",
        group=CONFIG,
        help="Do not read or write the cache.",
    ),
    cache_dir_option,
)
color_option: Callable[[Any], Any] = option(
    "--color",
    "color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    group=OUTPUT,
    help="When to use color; auto uses it on a terminal, unless NO_COLOR or FORCE_COLOR is set.",
)
quiet_option: Callable[[Any], Any] = option(
    "-q", "--quiet", is_flag=True, group=OUTPUT, help="Only print findings and errors."
)
verbose_option: Callable[[Any], Any] = option(
    "-v",
    "--verbose",
    is_flag=True,
    group=OUTPUT,
    help="Also print the configuration and versions in use, and their origin.",
)
console_options: Callable[[Any], Any] = _all(quiet_option, verbose_option, color_option)
settings_options: Callable[[Any], Any] = _all(
    evidence_option, selection_options, per_file_option, target_option, minimum_option, file_options
)


def span(options: dict[str, Any]) -> VersionRange | None:
    """The range that `range_options` give. Raises click.UsageError if there is no such range."""
    from torchmigrate.versions.range import VersionRange

    if options["target"] is None:
        if options["minimum"] is not None:
            raise click.UsageError("--minimum requires --target.")
        return None
    try:
        return VersionRange(options["target"], options["minimum"])
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None


def layer(options: Mapping[str, Any]) -> Layer:
    """The options of a command line as a layer of the configuration; those that it lacks are not given."""
    from torchmigrate.catalogue.codes import PINS
    from torchmigrate.config.settings import Layer

    pins = PINS if options.get("fix_pins") else ()
    # Those that a layer has by the same name; an empty list is none.
    same = {
        name: value
        for name, value in options.items()
        if name in Layer.__struct_fields__ and value not in (None, ())
    }
    same |= {
        "option": "--{}",
        "extend_select": (*options["extend_select"], *pins),
        "extend_safe_fixes": pins,
        "ignore": (*options["ignore"], *options["extend_ignore"]),
        "root": Path.cwd(),  # patterns with a directory in them are relative to it
        "suppressions": False if options.get("ignore_noqa") else None,
    }
    if "baseline" in same:
        same["baseline"] = Path.cwd() / same["baseline"]
    if "cache_dir" in same:
        same["cache_dir"] = same["cache_dir"].absolute()
    return Layer(**same)
