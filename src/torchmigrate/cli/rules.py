"""The command `rules`: all rules as text for people and programs."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmigrate.catalogue.groups import RuleGroup, groups
from torchmigrate.catalogue.pages import url_of
from torchmigrate.cli.options import (
    OUTPUT,
    Command,
    Given,
    color_option,
    complete_rules,
    config_options,
    format_option,
    option,
    range_options,
    span,
)
from torchmigrate.cli.session import Session
from torchmigrate.config.selection import SelectorError, union
from torchmigrate.printing import json_text, printable
from torchmigrate.report.cases import ways
from torchmigrate.report.document import columns
from torchmigrate.report.explanation import (
    STATUS,
    first_release,
    fix_level,
    fix_level_in,
    releases,
    severity_in,
    versions,
)
from torchmigrate.report.rule_texts import generic
from torchmigrate.report.style import Style
from torchmigrate.versions.range import VersionRange

if TYPE_CHECKING:
    from torchmigrate.catalogue.model import Rule


@click.command(cls=Command, short_help="List all rules.")
@click.argument("selectors", nargs=-1, metavar="[RULES]...", shell_complete=complete_rules)
@option("--groups", "by_group", is_flag=True, group=OUTPUT, help="List the groups of rules.")
@format_option("list", "table", "json")
@range_options
@color_option
@config_options
def rules(
    selectors: tuple[str, ...],
    by_group: bool,
    output_format: str,
    color: str,
    config: Given,
    isolated: bool,
    **options: Any,
) -> int:
    """List all rules, with the releases they apply to and what they can fix.

    RULES are codes, prefixes such as TM1, names or groups: list only these rules. With --target, list the
    rules that report something for that release, with their severity and the applicability of their fix.

    Most rules that are off unless selected are about adopting something. Each belongs to a group, such as
    adopt-compile, which --select, --ignore and the configuration accept in place of its codes.
    """
    session = Session.open([Path()], config=config, isolated=isolated, detect=False, color=color)
    found = _chosen(selectors, session.rules) if selectors else session.rules
    style, as_json = session.console.style, output_format == "json"
    width = os.get_terminal_size().columns if sys.stdout.isatty() else None
    if by_group:
        found = _told(found, span(options))
        session.console.out(groups_json(found) if as_json else groups_table(found, style, width or 100))
    elif as_json:
        session.console.out(rules_json(found, span(options)))
    else:
        session.console.out(rules_table(found, style, width, span(options)))
    return 0


def _chosen(selectors: Sequence[str], rules: Sequence[Rule]) -> list[Rule]:
    """The rules that selectors stand for. Raises click.ClickException for one that stands for none."""
    try:
        codes = union((part for each in selectors for part in each.split(",") if part), rules)
    except SelectorError as error:
        raise click.ClickException(printable(str(error))) from None
    return [rule for rule in rules if rule.code in codes]


def _told(rules: Iterable[Rule], span: VersionRange | None) -> list[Rule]:
    """Rules in order of code, without those that say nothing in the range."""
    return [
        rule
        for rule in sorted(rules, key=lambda rule: rule.code)
        if span is None or not versions(rule) or severity_in(rule, span) is not None
    ]


def marked(rule: Rule) -> str:
    """What follows the summary of a rule that is off."""
    return f" (off unless selected{f': {rule.group}' if rule.group else ''})" if rule.opt_in else ""


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
            releases(rule),
            *([] if span is None else [severity_in(rule, span) or ""]),
            fix_level(rule) if span is None else fix_level_in(rule, span),
            generic(rule, rule.summary) + marked(rule),
        )
        for rule in _told(rules, span)
    ]
    heads = ("CODE", "NAME", "VERSIONS", *([] if span is None else ["SEVERITY"]), "FIX", "SUMMARY")
    lines = columns([heads, *rows])
    first, *rest = (
        line if width is None or len(line) <= width else line[: width - 1] + "…" for line in lines
    )
    return "\n".join([style.bold(first), *rest]) + "\n"


def groups_table(rules: Iterable[Rule], style: Style, width: int) -> str:
    """Every group of some rules: its name, what it is for, and the codes of its rules. width: in columns."""
    found = groups(rules)
    size = max((len(group.name) for group in found), default=0)
    parts = []
    for group in found:
        lines = [
            *textwrap.wrap(_purpose(group), max(20, width - size - 2)),
            *textwrap.wrap(f"{_counted(group)}: {_codes(group)}", max(20, width - size - 2)),
        ]
        parts.append(style.bold(f"{group.name:{size}}") + f"  {lines[0]}\n")
        parts += [f"{'':{size}}  {line}\n" for line in lines[1:]]
    return "".join(parts)


def _purpose(group: RuleGroup) -> str:
    return group.purpose or "rules of this project"


def _counted(group: RuleGroup) -> str:
    return "1 rule" if len(group.rules) == 1 else f"{len(group.rules)} rules"


def _codes(group: RuleGroup) -> str:
    return ", ".join(rule.code for rule in group.rules)


def groups_json(rules: Iterable[Rule]) -> str:
    """A list of objects, one for each group of some rules."""
    objects = [
        {
            "group": group.name,
            "purpose": group.purpose,
            "rules": [rule.code for rule in group.rules],
        }
        for group in groups(rules)
    ]
    return json_text(objects)


def rules_json(rules: Iterable[Rule], span: VersionRange | None = None) -> str:
    """A list of objects, one for each rule. span: as in `rules_table`."""
    return json_text([rule_object(rule, span) for rule in _told(rules, span)])


def rule_object(rule: Rule, span: VersionRange | None = None) -> dict[str, Any]:
    """A rule for programs. span: as in `rules_table`."""
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": generic(rule, rule.summary),
        "why": rule.why,
        "library": rule.library,
        **{status: first_release(rule, status) for status in STATUS},
        "symbols": list(rule.symbols),
        "modules": list(rule.modules),
        **({} if span is None else {"severity": severity_in(rule, span)}),
        "fix": fix_level(rule) if span is None else fix_level_in(rule, span),
        "cases": [
            {
                "condition": way.condition or None,
                "result": way.result or None,
                "applicability": way.safe,
                "requires": case.requires,
                "safe_from": case.safe_from,
                "reason": case.reason,
            }
            for case, way in zip(rule.cases, ways(rule), strict=True)
        ],
        "opt_in": rule.opt_in,
        "group": rule.group,
        "advice": None if rule.advice is None else generic(rule, rule.advice),
        "url": url_of(rule),
        "references": list(rule.references),
    }
