"""A plan for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmigrate.plan.compute import headline
from torchmigrate.plan.groups import (
    RuleGroup,
    by_file,
    by_rule,
    efforts_line,
    lacking_line,
    minimum_hint,
    total_line,
)
from torchmigrate.plan.model import EFFECTS, Effect, Effort, Plan, Row, Tally
from torchmigrate.report.style import Style, printable
from torchmigrate.versions.releases import show_version

_NONE = "·"


def as_table(plan: Plan, style: Style, *, step: bool) -> str:
    """The releases as a table; with `step`, what there is to do for the target, too."""
    lines = [f"{style.bold(plan.project)}: {headline(plan)}", ""]
    lines += _aligned(["TORCH", *heads(plan)], [_cells(plan, row, style) for row in plan.rows], style)
    if step:
        lines += _step(plan, style)
    return "\n".join(lines) + "\n"


def heads(plan: Plan) -> list[str]:
    """The columns of the table of releases, but the first one."""
    return [
        *(["NEEDS NEWER"] if plan.lacking else []),
        *(effect.name for effect in EFFECTS),
        *(effort.value.upper() for effort in Effort),
    ]


def _cells(plan: Plan, row: Row, style: Style) -> list[tuple[str, str]]:
    """Each cell as it is measured and as it is shown."""
    release = show_version(row.release)
    cells = [(release, (style.good if row.runs else style.bad)(release))]
    if plan.lacking:
        cells.append(_number(row.lacking, style, Effect.BREAKS))
    for effect in EFFECTS:
        number, new = row.effects[effect].places, row.begins[effect].places
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
    yield ""
    yield style.heading(f"To torch {show_version(plan.target)}: ") + total_line(plan)
    if hint := minimum_hint(plan):
        yield hint
    for effect in (*EFFECTS, Effect.OUTDATED):
        groups = by_rule(plan.affected(effect))
        for position, group in enumerate(groups):
            yield ""
            if not position:
                yield style.severity(effect.severity, effect.name)
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
            ["FILE", *(effect.name for effect in EFFECTS), *(effort.value.upper() for effort in Effort)],
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
        yield f"  {text:{width}}  {effort}{place.message}"
    hand = [place for place in group.places if place.effort_in(plan.target) is not Effort.SAFE]
    for advice in dict.fromkeys(place.help for place in hand if place.help):
        yield style.dim(f"  by hand: {advice}")
