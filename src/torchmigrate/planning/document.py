"""A plan as a document: what no fix mends, the releases as a table, and all there is to do for the target."""

from __future__ import annotations

from collections.abc import Iterator

from torchmigrate.planning.compute import headline
from torchmigrate.planning.groups import (
    RuleGroup,
    by_file,
    by_rule,
    counts,
    efforts_line,
    guess_line,
    imports_line,
    lacking_line,
    minimum_hint,
    pinned_line,
    total_line,
    unread_lines,
)
from torchmigrate.planning.links import Links
from torchmigrate.planning.model import EFFECTS, WORST_FIRST, Effect, Effort, Place, Plan, Span, Tally
from torchmigrate.report.document import (
    Block,
    Cell,
    Document,
    Entry,
    Label,
    Link,
    List,
    Paragraph,
    Section,
    Table,
    TableRow,
)
from torchmigrate.report.warned import warned_lines
from torchmigrate.versions.releases import show_version

_HEADS = {
    Effect.BREAKS_ON_IMPORT: "On import",
    Effect.RAISES: "Raises",
    Effect.MAY_RAISE: "May raise",
    Effect.CHANGES: "Changes",
    Effect.WARNS: "Warns",
}
_COLUMNS = [*_HEADS.values(), *(effort.value.capitalize() for effort in Effort)]


def document_of(plan: Plan, links: Links, *, step: bool) -> Document:
    """The document of a plan; with `step`, all that there is to do for the target."""
    target = show_version(plan.target)
    return Document(
        kind="upgrade plan",
        title=f"Upgrade plan: {plan.project}",
        name=plan.project,
        headline=headline(plan),
        facts={
            "Minimum": f"torch {show_version(plan.minimum)}" if plan.minimum else "unknown",
            "Target": f"torch {target}",
            "Files read": f"{plan.files}, {plan.concerned} with torch",
        },
        blocks=list(_blocks(plan, links, step=step)),
    )


def link_of(place: Place, links: Links) -> Link:
    """The link to a place."""
    return Link(f"{place.within}:{place.row}", links.to(place), place.column)


def _blocks(plan: Plan, links: Links, *, step: bool) -> Iterator[Block]:
    target = show_version(plan.target)
    yield Paragraph((Label(f"To torch {target}", "rule"), f": {total_line(plan)}"))
    notes = (imports_line(plan), minimum_hint(plan), guess_line(plan), pinned_line(plan))
    yield from map(Paragraph, filter(None, notes))
    if plan.by_hand:
        yield Section("By hand", [List([_by_hand(place, plan, links) for place in plan.by_hand])], "hand")
    if plan.concerned:
        heads = ["torch", *(["Needs newer"] if plan.lacking else []), *_COLUMNS]
        rows = [_row(plan, span) for span in plan.spans]
        yield Section("Releases", [Table(heads, rows, "releases")], "releases")
    if step:
        yield from _step(plan, links)
    if plan.warned:
        yield Section("Warned", [List([Entry(line) for line in warned_lines(plan.warned)])], "warned")
    if plan.unread:
        yield Section("Not read", [List([Entry(line) for line in unread_lines(plan)])], "unread")


def _by_hand(place: Place, plan: Plan, links: Links) -> Entry:
    effect = place.since.effect(plan.target)
    assert effect is not None, "what is done by hand does something"
    label = Label(effect.words.lower(), effect.label, effect.severity)
    return Entry(f"{place.code} {_message(place)}", link_of(place, links), label, aside=place.help or "")


def _message(place: Place) -> str:
    return f"{place.message} ({place.also})" if place.also else place.message


def _row(plan: Plan, span: Span) -> TableRow:
    last = span.index + span.size - 1
    return TableRow(list(_cells(plan, span)), {"release": span.index, "last": last})


def _cells(plan: Plan, span: Span) -> Iterator[Cell | str | int]:
    row = span.row
    yield Cell(span.shown, kind="runs" if row.runs else "stops", words="runs" if row.runs else "does not run")
    if plan.lacking:
        yield row.lacking
    for effect, (number, new) in zip(EFFECTS, counts(row), strict=True):
        yield Cell(str(number), f"+{new}" if new else "", effect.label, effect.severity) if number else 0
    yield from (row.of(effort) for effort in Effort)


def _step(plan: Plan, links: Links) -> Iterator[Section]:
    for effect in WORST_FIRST:
        blocks: list[Block] = []
        for group in by_rule(plan.affected(effect)):
            tally = Tally()
            for place in group.places:
                tally.add(place.effort_in(plan.target))
            name = f" {group.name}{group.since(effect)}: {efforts_line(tally)}"
            blocks.append(Paragraph((Label(group.code, "rule"), name)))
            blocks.append(_places(group, plan, links))
        if blocks:
            yield Section(effect.words, blocks, effect.label, effect.severity)
    if plan.needing:
        lists = [_places(group, None, links) for group in by_rule(plan.needing)]
        yield Section("Needs newer", [Paragraph(lacking_line(plan)), *lists], "lacking")
    if files := by_file(plan):
        rows = [TableRow((path, *numbers)) for path, numbers in files]
        yield Section("Files", [Table(["File", *_COLUMNS], rows, "files")], "files")


def _places(group: RuleGroup, plan: Plan | None, links: Links) -> List:
    """The places of a rule, and the advice about them."""
    entries = []
    left = []
    for place in group.places:
        effort = Effort.BY_HAND if plan is None else place.effort_in(plan.target)
        label = None if plan is None else Label(effort.value, "effort")
        fix = "" if effort is Effort.BY_HAND else place.fix or ""
        fix += f" ({place.reason})" if fix and place.reason else ""
        entries.append(Entry(_message(place), link_of(place, links), label, aside=fix))
        left += [] if effort is Effort.SAFE else [place]
    advice = dict.fromkeys(place.help for place in left if place.help)
    return List(entries, advice=[f"By hand: {each}" for each in advice])
