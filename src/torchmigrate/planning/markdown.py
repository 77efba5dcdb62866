"""A plan for an issue or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchmigrate.planning.compute import headline
from torchmigrate.planning.groups import (
    RuleGroup,
    by_file,
    by_rule,
    counts,
    guess_line,
    imports_line,
    lacking_line,
    minimum_hint,
    pinned_line,
    total_line,
    unread_lines,
)
from torchmigrate.planning.links import Links
from torchmigrate.planning.model import EFFECTS, WORST_FIRST, Effort, Place, Plan, Span
from torchmigrate.report.warned import warned_lines
from torchmigrate.versions.releases import show_version

_COLUMNS = [*(effect.words.lower() for effect in EFFECTS), *(effort.value for effort in Effort)]


def as_markdown(plan: Plan, links: Links, *, step: bool) -> str:
    """What no fix mends, and the releases as a table; with `step`, all that there is to do for the target."""
    lines = [f"# Upgrade plan: {escape(plan.project)}", "", escape(headline(plan)), ""]
    total = f"To torch {show_version(plan.target)}: {total_line(plan)}."
    notes = (escape(imports_line(plan)), minimum_hint(plan), guess_line(plan), pinned_line(plan))
    lines += [" ".join(filter(None, (total, *notes))), ""]
    if plan.by_hand:
        lines += ["## By hand", ""]
        lines += (_by_hand(place, plan, links) for place in plan.by_hand)
        lines += ["", "## Releases", ""]
    more = ["needs newer"] if plan.lacking else []
    if plan.concerned:
        lines += _table(["torch", "runs", *more, *_COLUMNS], [_cells(plan, span) for span in plan.spans], 2)
    if step:
        lines += _step(plan, links)
    if plan.warned:
        lines += ["", "## Warned", "", *(f"- {escape(line)}" for line in warned_lines(plan.warned))]
    if plan.unread:
        lines += ["", "## Not read", "", *(f"- {escape(line)}" for line in unread_lines(plan))]
    return "\n".join(lines) + "\n"


def _by_hand(place: Place, plan: Plan, links: Links) -> str:
    effect = place.since.effect(plan.target)
    assert effect is not None, "what is done by hand does something"
    also = f" ({place.also})" if place.also else ""
    text = f"- {_link(place, links)}: **{effect.words.lower()}**, {place.code}: {escape(place.message)}{also}"
    return f"{text}: {escape(place.help)}" if place.help else text


def _cells(plan: Plan, span: Span) -> list[str]:
    row = span.row
    cells = [span.shown, "yes" if row.runs else "no"]
    if plan.lacking:
        cells.append(_number(row.lacking))
    cells += [_number(number) + (f" (+{new})" if new else "") for number, new in counts(row)]
    return [*cells, *(_number(row.of(effort)) for effort in Effort)]


def _number(number: int) -> str:
    return str(number or "")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join([' --- '] * text_columns + [' ---: '] * (len(heads) - text_columns))}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _step(plan: Plan, links: Links) -> Iterator[str]:
    yield ""
    yield f"## To torch {show_version(plan.target)}"
    for effect in WORST_FIRST:
        groups = by_rule(plan.affected(effect))
        if groups:
            yield ""
            yield f"### {effect.words}"
        for group in groups:
            yield ""
            yield f"**{group.code}** {escape(group.name)}{group.since(effect)}"
            yield ""
            yield from _places(group, plan, links)
    if plan.needing:
        yield ""
        yield "### Needs newer"
        yield ""
        yield lacking_line(plan) + ":"
        yield ""
        for group in by_rule(plan.needing):
            for place in group.places:
                yield f"- {_link(place, links)}: {escape(place.message)}"
    files = by_file(plan)
    if files:
        yield ""
        yield "### Files"
        yield ""
        rows = [[_cell(path), *map(_number, numbers)] for path, numbers in files]
        yield from _table(["file", *_COLUMNS], rows)


def _places(group: RuleGroup, plan: Plan, links: Links) -> Iterator[str]:
    for place in group.places:
        effort = place.effort_in(plan.target)
        also = f" ({place.also})" if place.also else ""
        text = f"- {_link(place, links)}: {escape(place.message)}{also}; **{effort.value}**"
        if effort is not Effort.BY_HAND and place.fix:
            text += f": {escape(place.fix)}"
            text += f" ({escape(place.reason)})" if place.reason else ""
        elif place.help:
            text += f": {escape(place.help)}"
        yield text


def _link(place: Place, links: Links) -> str:
    # An address may hold brackets and parentheses: in a template, or in the directories of a path.
    address = links.to(place).replace("(", "%28").replace(")", "%29")
    return f"[{escape(f'{place.within}:{place.row}')}]({address})"


def _cell(text: str) -> str:
    return escape(text).replace("|", "\\|")


def escape(text: str) -> str:
    """Text that means nothing in Markdown; parts between backticks stay code."""
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(
        part if number % 2 else re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", part)
        for number, part in enumerate(parts)
    )
