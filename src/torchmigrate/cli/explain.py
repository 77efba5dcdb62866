"""The command `explain`: all about a rule."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmigrate.catalogue.pages import has_page, page_of
from torchmigrate.cli.options import (
    Command,
    Given,
    color_option,
    complete_rules,
    config_options,
    format_option,
    range_options,
    span,
)
from torchmigrate.cli.rules import marked, rule_object, rules_table
from torchmigrate.cli.session import Session, examples
from torchmigrate.config.torchfix_codes import CODES, RELEASED
from torchmigrate.patterns import pattern
from torchmigrate.printing import json_text, printable
from torchmigrate.report.explanation import (
    MOST_SYMBOLS,
    about,
    in_range,
    sections,
    versions,
)
from torchmigrate.report.rule_texts import generic
from torchmigrate.report.style import Style
from torchmigrate.versions.range import VersionRange

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example
    from torchmigrate.catalogue.model import Rule

_WIDTH = 100
_BREAKS = pattern(r"(?<=[.(\[,])|(?<=_)(?=[^`]{20})")
_TABLE = 78  # columns of a table, with its margin 80


@click.command(cls=Command, short_help="Explain a rule.")
@click.argument("rule", metavar="CODE|NAME|SYMBOL|PARAMETER", shell_complete=complete_rules)
@format_option("output", "text", "json")
@range_options
@color_option
@config_options
def explain(rule: str, output_format: str, color: str, config: Given, isolated: bool, **options: Any) -> int:
    """Explain a rule: its reason, the releases it applies to, its fix and how safe that is, and links.

    You can name the rule by its code or name, by what it finds, such as a function, class or module
    (torch.symeig, symeig, x.symeig), or by a parameter (size_average, torch.nn.MSELoss.size_average). If
    there are several rules, the command lists them. For a TorchFix code, such as TOR101, it lists the
    equivalent rules; for a prefix such as TM21 or a group such as adopt-compile, its rules.
    """
    session = Session.open([Path()], config=config, isolated=isolated, detect=False, color=color)
    if output_format == "json":
        session.console.out(explained_json(rule, session, span(options)))
    else:
        session.console.out(explained(rule, session, span(options)))
    return 0


rule = copy(explain)
rule.short_help = "Same as `explain`."


def explained_json(key: str, session: Session, span: VersionRange | None = None) -> str:
    """The same as `explained` for programs: an object for one rule, else a list of them."""
    of_torchfix = CODES.get(key.upper())
    if of_torchfix is not None:
        found = [rule for rule in session.rules if rule.code in of_torchfix.ours]
    else:
        found = _several(key, session.rules) or session.rules_about(key)
    objects = [rule_object(rule, span) for rule in sorted(found, key=lambda rule: rule.code)]
    return json_text(objects[0] if len(objects) == 1 else objects)


def explained(key: str, session: Session, span: VersionRange | None = None) -> str:
    """What `explain` prints for a rule by code, name or what it finds, or for a code of TorchFix.

    For the beginning of codes, such as TM21, for a group, and for what several rules are about, that is
    their table.
    Raises click.ClickException, with a suggestion, if there is none.
    """
    style = session.console.style
    if key.upper() in CODES:
        return torchfix_explanation(key.upper(), session.rules, style)
    several = _several(key, session.rules)
    found = several or session.rules_about(key)
    if several or len(found) > 1:
        return rules_table(found, style, None, span)
    return explanation(found[0], examples(found[0]), style, span)


def _several(key: str, rules: Sequence[Rule]) -> list[Rule]:
    """The rules of a group, or of a prefix such as TM21; none for a code or name."""
    from torchmigrate.config.selection import SelectorError, codes_of

    grouped = [rule for rule in rules if rule.group == key.lower()]
    prefix = key.upper()
    keys = {key for rule in rules for key in (rule.code, rule.name.upper())}
    if grouped or prefix in keys or prefix == "ALL" or prefix.startswith("TOR"):
        return grouped
    try:
        codes = codes_of(prefix, rules)[1]
    except SelectorError:
        return []
    return [rule for rule in rules if rule.code in codes]


def explanation(
    rule: Rule, examples: Sequence[Example], style: Style, span: VersionRange | None = None
) -> str:
    """Everything about a rule; with `span`, also what it comes to in this range of releases."""
    parts = [f"{style.heading(rule.code)} {style.bold(rule.name)}\n\n{_wrap(generic(rule, rule.summary))}"]
    if about(rule):
        parts.append("\n".join(about(rule)))
    if span is not None and versions(rule):
        parts.append(in_range(rule, span))
    for section in sections(rule, examples, MOST_SYMBOLS):
        text = "\n".join(
            [
                *([_wrap(section.prose)] if section.prose else []),
                *section.names,
                *_columns(section.table, style),
                *([""] if section.table and section.lines else []),
                *(_wrap(printable(line), 2) for line in section.lines),
                *([section.code] if section.code else []),
            ]
        )
        parts.append(f"{style.heading(section.title)}\n{textwrap.indent(text, '  ')}")
    if has_page(rule):
        parts.append(f"Documentation: {page_of(rule.code)}")
    return "\n\n".join(parts) + "\n"


def _columns(rows: Sequence[tuple[str, ...]], style: Style) -> list[str]:
    """The lines of a table, as wide as a page; the first row has the heads."""
    if not rows:
        return []
    natural = [max(len(row[column]) for row in rows) for column in range(3)]
    room = _TABLE - natural[2] - 4
    first = min(natural[0], max(room // 2, room - natural[1]))  # what the second does not need
    sizes = (first, min(natural[1], room - first))
    lines = []
    for number, row in enumerate(rows):
        cells = [_folded(cell, size) for cell, size in zip(row, sizes, strict=False)]
        cells.append([row[2]])
        for parts in itertools.zip_longest(*cells, fillvalue=""):
            line = "  ".join(f"{part:{size}}" for part, size in zip(parts, (*sizes, 0), strict=True)).rstrip()
            lines.append(style.bold(line) if number == 0 else line)
        if number and number + 1 < len(rows) and any(len(cell) > 1 for cell in cells):
            lines.append("")
    return lines


def _folded(text: str, width: int) -> list[str]:
    """The lines of a cell. Code that is too long for one is broken after a dot, a bracket or a comma."""
    lines = [""]
    for word in text.split():
        parts = _BREAKS.split(word) if len(word) > width else [word]
        for number, part in enumerate(filter(None, parts)):
            space = " " if lines[-1] and not number else ""
            if len(lines[-1] + space + part) > width and lines[-1]:
                lines.append(part)
            else:
                lines[-1] += space + part
    return lines


def torchfix_explanation(code: str, rules: Iterable[Rule], style: Style) -> str:
    """Which rules stand for a code of TorchFix, which must be one."""
    entry = CODES[code]
    origin = f"TorchFix {entry.since}" if entry.since == RELEASED else "TorchFix, not yet in a release"
    mine = sorted((rule for rule in rules if rule.code in entry.ours), key=lambda rule: rule.code)
    size = max((len(rule.name) for rule in mine), default=0)
    lines = []
    for rule in mine:
        summary = generic(rule, rule.summary) + marked(rule)
        lines.append(_wrap(f"{rule.code}  {rule.name:{size}}  {summary}", size + 9))
    reported = [f"{what} -> {', '.join(codes)}" for what, codes in entry.rules.items()]
    use = f"`# noqa: {code}` suppresses these rules, and `--select {code}` selects them."
    parts = [f"{style.heading(code)} {style.bold(entry.summary)}", f"{origin}."]
    for title, text in (("Rule in torchmigrate", lines), ("What it finds", reported), ("In use", [use])):
        parts.append(style.heading(title) + "\n" + textwrap.indent("\n".join(text), "  "))
    return "\n\n".join(parts) + "\n"


def _wrap(text: str, hanging: int = 0) -> str:
    return textwrap.fill(
        text,
        _WIDTH - 2,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
