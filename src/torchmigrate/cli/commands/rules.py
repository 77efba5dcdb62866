"""The commands about rules: what they are, and whether their examples hold."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from torchmigrate.cli.options import (
    OUTPUT,
    Command,
    colour_option,
    complete_rules,
    config_options,
    option,
    quiet_option,
    range_options,
    span,
)


@click.command(cls=Command, short_help="Explain a rule.")
@click.argument("rule", metavar="CODE|NAME|SYMBOL|PARAMETER", shell_complete=complete_rules)
@range_options
@colour_option
@config_options
def explain(rule: str, colour: str, config: Path | None, isolated: bool, **options: Any) -> int:
    """Explain a rule: its reason, the releases it applies to, its fix and how safe that is, and links.

    You can name the rule by its code or name, by what it finds, such as a function, class or module
    (torch.symeig, symeig, x.symeig), or by a parameter (size_average, torch.nn.MSELoss.size_average). If
    there are several rules, the command lists them. For a TorchFix code, such as TOR101, it lists the
    equivalent rules; for a prefix such as TM21, the rules with that prefix.
    """
    from torchmigrate.cli.describe import explained
    from torchmigrate.cli.session import Session

    session = Session.open([Path()], config=config, isolated=isolated, detect=False, colour=colour)
    session.console.out(explained(rule, session, span(options)))
    return 0


@click.command(cls=Command, short_help="List all rules.")
@option(
    "--output-format",
    type=click.Choice(["table", "json"]),
    default="table",
    group=OUTPUT,
    help="The format of the list. [default: table]",
)
@range_options
@colour_option
@config_options
def rules(output_format: str, colour: str, config: Path | None, isolated: bool, **options: Any) -> int:
    """List all rules, with the releases they apply to and what they can fix.

    With --target, list the rules that report something for that release, with their severity and the
    applicability of their fix.
    """
    from torchmigrate.cli.describe import rules_json, rules_table
    from torchmigrate.cli.session import Session

    session = Session.open([Path()], config=config, isolated=isolated, detect=False, colour=colour)
    if output_format == "json":
        session.console.out(rules_json(session.rules, span(options)))
    else:
        width = os.get_terminal_size().columns if sys.stdout.isatty() else None
        session.console.out(rules_table(session.rules, session.console.style, width, span(options)))
    return 0


@click.command("test-rules", cls=Command, short_help="Run the examples in rule files.")
@click.argument("directory", type=click.Path(exists=True, path_type=Path))
@quiet_option
@colour_option
def test_rules(directory: Path, quiet: bool, colour: str) -> int:
    """Load the rules in a directory (or file) and run every example in them.

    A `before` must be found and become its `after`, which must be clean; `report_only` must be found without
    a fix; `clean` must not be found.
    """
    from torchmigrate.authoring.command import test_directory
    from torchmigrate.cli.session import open_console

    return test_directory(directory, open_console(colour, quiet=quiet))
