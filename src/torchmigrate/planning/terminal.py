"""A plan for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from torchmigrate.planning.model import EFFECTS, WORST_FIRST, Effect, Effort, Plan, Span, Tally
from torchmigrate.printing import printable
from torchmigrate.report.style import Style
from torchmigrate.report.warned import warned_lines
from torchmigrate.versions.releases import show_version

_NONE = "·"
_HEADS = {
    Effect.BREAKS_ON_IMPORT: "ON IMPORT",
    Effect.RAISES: "RAISES",
    Effect.MAY_RAISE: "MAY RAISE",
    Effect.CHANGES: "CHANGES",
    Effect.WARNS: "WARNS",
}
_WIDEST = max(len(effect.words) for effect in EFFECTS)


def as_table(plan: Plan, style: Style, *, step: bool) -> str:
    """What no fix mends, and the releases as a table; with `step`, all that there is to do for the target."""
    lines = [f"{style.bold(plan.project)}: {headline(plan)}", ""]
    lines.append(style.heading(f"To torch {show_version(plan.target)}: ") + total_line(plan))
    more = (imports_line(plan), minimum_hint(plan), guess_line(plan), pinned_line(plan))
    lines += map(printable, filter(None, more))
    lines += _by_hand(plan, style)
    if plan.concerned:
        lines.append("")
        lines += _aligned(["TORCH", *heads(plan)], [_cells(plan, span, style) for span in plan.spans], style)
    if step:
        lines += _step(plan, style)
    if plan.warned:
        lines += ["", style.bold("WARNED"), *(f"  {printable(line)}" for line in warned_lines(plan.warned))]
    if plan.unread:
        lines += ["", style.bold("NOT READ"), *(f"  {printable(line)}" for line in unread_lines(plan))]
    return "\n".join(lines) + "\n"


def _by_hand(plan: Plan, style: Style) -> Iterator[str]:
    """The places that no fix mends, with the lines: what the upgrade costs."""
    places = plan.by_hand
    if not places:
        return
    yield ""
    yield style.bold("BY HAND")
    where = [f"{place.within}:{place.row}:{place.column}" for place in places]
    width = max(map(len, where))
    for place, text in zip(places, where, strict=True):
        effect = place.since.effect(plan.target)
        assert effect is not None, "what is done by hand does something"
        also = f" ({place.also})" if place.also else ""
        words = style.severity(effect.severity, f"{effect.words.lower():{_WIDEST}}")
        yield f"  {text:{width}}  {words}  {place.code} {place.message}{also}"


def heads(plan: Plan) -> list[str]:
    """The columns of the table of releases, but the first one."""
    return [
        *(["NEEDS NEWER"] if plan.lacking else []),
        *_HEADS.values(),
        *(effort.value.upper() for effort in Effort),
    ]


def _cells(plan: Plan, span: Span, style: Style) -> list[tuple[str, str]]:
    """Each cell as it is measured and as it is shown."""
    row = span.row
    cells = [(span.shown, (style.good if row.runs else style.bad)(span.shown))]
    if plan.lacking:
        cells.append(_number(row.lacking, style, Effect.RAISES))
    for effect, (number, new) in zip(EFFECTS, counts(row), strict=True):
        text, shown = _number(number, style, effect)
        more = f" (+{new})" if new else ""
        cells.append((text + more, shown + more))
    cells += [_number(row.of(effort), style) for effort in Effort]
    return cells


def _number(number: int, style: Style, effect: Effect | None = None) -> tuple[str, str]:
    if not number:
        return _NONE, style.dim(_NONE)
    return str(number), str(number) if effect is None else style.severity(effect.severity, str(number))


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[tuple[str, str]]], style: Style) -> Iterator[str]:
    widths = [
        max(len(heads[column]), *(len(row[column][0]) for row in rows)) if rows else len(heads[column])
        for column in range(len(heads))
    ]
    yield style.bold("  ".join(f"{head:{width}}" for head, width in zip(heads, widths, strict=True)).rstrip())
    for row in rows:
        cells = [shown + " " * (width - len(text)) for (text, shown), width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


# ---- one step ------------------------------------------------------------------------------------------


def _step(plan: Plan, style: Style) -> Iterator[str]:
    for effect in WORST_FIRST:
        groups = by_rule(plan.affected(effect))
        for position, group in enumerate(groups):
            yield ""
            if not position:
                yield style.severity(effect.severity, effect.words.upper())
            yield from _group(group, effect, plan, style)
    if plan.needing:
        yield ""
        yield style.bold("NEEDS NEWER")
        yield lacking_line(plan)
        for group in by_rule(plan.needing):
            yield from _places(group, None, plan, style)
    rows = [
        [(shown, shown), *(_number(number, style) for number in numbers)]
        for shown, numbers in ((printable(path), numbers) for path, numbers in by_file(plan))
    ]
    if rows:
        yield ""
        yield from _aligned(
            ["FILE", *_HEADS.values(), *(effort.value.upper() for effort in Effort)],
            rows,
            style,
        )


def _group(group: RuleGroup, effect: Effect, plan: Plan, style: Style) -> Iterator[str]:
    tally = Tally()
    for place in group.places:
        tally.add(place.effort_in(plan.target))
    yield f"{style.bold(group.code)} {group.name}{group.since(effect)}: {efforts_line(tally)}"
    yield from _places(group, effect, plan, style)


def _places(group: RuleGroup, effect: Effect | None, plan: Plan, style: Style) -> Iterator[str]:
    where = [f"{place.within}:{place.row}:{place.column}" for place in group.places]
    width = max(map(len, where))
    for place, text in zip(group.places, where, strict=True):
        effort = "" if effect is None else f"{place.effort_in(plan.target).value:10}  "
        also = f" ({place.also})" if place.also else ""
        yield f"  {text:{width}}  {effort}{place.message}{also}"
    hand = [place for place in group.places if place.effort_in(plan.target) is not Effort.SAFE]
    for advice in dict.fromkeys(place.help for place in hand if place.help):
        yield style.dim(f"  by hand: {advice}")
