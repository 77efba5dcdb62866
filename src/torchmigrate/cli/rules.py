"""The command `rules`: all rules as text for people and programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmigrate.catalogue.pages import url_of
from torchmigrate.cli.options import (
    OUTPUT,
    Command,
    Given,
    color_option,
    config_options,
    option,
    range_options,
    span,
)
from torchmigrate.cli.session import Session
from torchmigrate.report.explanation import (
    STATUS,
    fix_level,
    fix_level_in,
    severity_in,
    versions,
)
from torchmigrate.report.rule_texts import generic
from torchmigrate.report.style import Style
from torchmigrate.versions.range import VersionRange

if TYPE_CHECKING:
    from torchmigrate.catalogue.model import Rule


@click.command(cls=Command, short_help="List all rules.")
@option(
    "--output-format",
    type=click.Choice(["table", "json"]),
    default="table",
    group=OUTPUT,
    help="The format of the list. [default: table]",
)
@range_options
@color_option
@config_options
def rules(output_format: str, color: str, config: Given, isolated: bool, **options: Any) -> int:
    """List all rules, with the releases they apply to and what they can fix.

    With --target, list the rules that report something for that release, with their severity and the
    applicability of their fix.
    """
    session = Session.open([Path()], config=config, isolated=isolated, detect=False, color=color)
    if output_format == "json":
        session.console.out(rules_json(session.rules, span(options)))
    else:
        width = os.get_terminal_size().columns if sys.stdout.isatty() else None
        session.console.out(rules_table(session.rules, session.console.style, width, span(options)))
    return 0


def _told(rules: Iterable[Rule], span: VersionRange | None) -> list[Rule]:
    """Rules in order of code, without those that say nothing in the range."""
    return [
        rule
        for rule in sorted(rules, key=lambda rule: rule.code)
        if span is None or not versions(rule) or severity_in(rule, span) is not None
    ]


def rules_table(
    rules: Iterable[Rule], style: Style, width: int | None, span: VersionRange | None = None
) -> str:
    """One line for each rule. width: columns of the terminal, where the last column is cut.

    span: only the rules that say something in this range, and what that is.
    """
    rows = [
        (
            rule.code,
            rule.name,
            f"{rule.library}: {versions(rule)}" if versions(rule) else rule.library,
            *([] if span is None else [severity_in(rule, span) or ""]),
            fix_level(rule) if span is None else fix_level_in(rule, span),
            generic(rule, rule.summary) + (" (off unless selected)" if rule.opt_in else ""),
        )
        for rule in _told(rules, span)
    ]
    heads = ("CODE", "NAME", "VERSIONS", *([] if span is None else ["SEVERITY"]), "FIX", "SUMMARY")
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads) - 1)]
    lines = []
    for row in (heads, *rows):
        cells = [f"{cell:{size}}" for cell, size in zip(row, widths, strict=False)]
        room = None if width is None else max(20, width - sum(widths) - 2 * len(widths))
        last = row[-1] if room is None or len(row[-1]) <= room else row[-1][: room - 1] + "…"
        line = "  ".join([*cells, last]).rstrip()
        lines.append(style.bold(line) if row is heads else line)
    return "\n".join(lines) + "\n"


def rules_json(rules: Iterable[Rule], span: VersionRange | None = None) -> str:
    """A list of objects, one for each rule. span: as in `rules_table`."""
    import json

    return json.dumps([rule_object(rule, span) for rule in _told(rules, span)], indent=2) + "\n"


def rule_object(rule: Rule, span: VersionRange | None = None) -> dict[str, Any]:
    """A rule for programs. span: as in `rules_table`."""
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": generic(rule, rule.summary),
        "why": rule.why,
        "library": rule.library,
        **{status: getattr(rule, status) for status in STATUS},
        "symbols": list(rule.symbols),
        "modules": list(rule.modules),
        **({} if span is None else {"severity": severity_in(rule, span)}),
        "fix": fix_level(rule) if span is None else fix_level_in(rule, span),
        "opt_in": rule.opt_in,
        "advice": None if rule.advice is None else generic(rule, rule.advice),
        "url": url_of(rule),
        "references": list(rule.references),
    }
