"""A plan as one page that needs nothing else: no network, no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from torchmigrate.planning.compute import headline
from torchmigrate.planning.groups import (
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
from torchmigrate.planning.model import EFFECTS, WORST_FIRST, Effect, Effort, Place, Plan, Row
from torchmigrate.report.bars import BarColumn, BarPart, chart
from torchmigrate.report.warned import warned_lines
from torchmigrate.report.web_page import web_page
from torchmigrate.versions.releases import Version, show_version

TEMPLATES = Path(__file__).parent / "templates"
LACKING = "lacking"  # the class and the name of what a release does not have yet


def as_html(plan: Plan, links: Links) -> str:
    """The page; the same plan gives the same bytes."""
    style, script = (_asset(name) for name in ("plan.css", "plan.js"))
    style = style.replace("--columns: 1", f"--columns: {len(plan.rows)}")
    columns = list(_columns(plan))
    drawn = chart(columns)
    return web_page(
        TEMPLATES / "plan.html.jinja",
        style=style,
        script=script,
        filters={"version": _version, "breakable": _breakable},
        plan=plan,
        headline=headline(plan),
        effects=EFFECTS,
        every_effect=WORST_FIRST,
        efforts=list(Effort),
        total=total_line(plan),
        guesses=guess_line(plan),
        pins=pinned_line(plan),
        imports=imports_line(plan),
        unread=unread_lines(plan),
        warned=list(warned_lines(plan.warned)),
        lacking=LACKING,
        lacking_line=lacking_line(plan) if plan.lacking else "",
        hint=minimum_hint(plan),
        efforts_line=efforts_line,
        chart=drawn,
        columns=list(zip(plan.rows, drawn.bars, _is_labelled(columns), strict=True)),
        rules=sorted({(place.code, place.name) for place in plan.listed}),
        rows=_rows(plan),
        index=lambda release: _index(release, plan),
        begins=lambda place, effect: _begins(place, effect, plan),
        address=links.to,
        reference=lambda place: place.url if place.url and place.url.startswith("https://") else None,
    )


def _version(release: Version | None) -> str:
    return "" if release is None else show_version(release)


def _breakable(path: str) -> Markup:
    """A path that a line may break after a slash."""
    return Markup("/<wbr>").join(path.split("/"))


def _rows(plan: Plan) -> list[tuple[int, Place]]:
    """The places with their number in order of path: what is missing first, then the worst."""
    rank = (None, *WORST_FIRST)
    return sorted(enumerate(plan.listed), key=lambda item: rank.index(item[1].since.effect(plan.target)))


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text("utf-8")


def _index(release: Version | None, plan: Plan) -> str:
    """The row in which something begins: -1 if that is before the first one, nothing if never."""
    if release is None or release > plan.target:
        return ""
    if release < plan.first:
        return "-1"
    return str(next(number for number, row in enumerate(plan.rows) if row.release >= release))


def _begins(place: Place, effect: Effect, plan: Plan) -> str:
    """The row in which an effect begins; nothing also if it has ceased before the first one."""
    since, outdated = place.since.of(effect), place.since.outdated
    if effect is Effect.WARNS and since and outdated and since < outdated <= plan.first:
        return ""
    return _index(since, plan)


# ---- the chart -----------------------------------------------------------------------------------------


def _columns(plan: Plan) -> Iterator[BarColumn]:
    for number, row in enumerate(plan.rows):
        release = show_version(row.release)
        parts = [
            BarPart(LACKING, row.lacking),
            *(BarPart(each.label, row.effects[each].places) for each in EFFECTS),
        ]
        yield BarColumn(str(number), (release,), release, _title(row), tuple(parts))


def _is_labelled(columns: Sequence[BarColumn]) -> Iterator[bool]:
    """Whether the total of each differs from the total of the column before."""
    before = 0
    for column in columns:
        yield column.total != before
        before = column.total


def _title(row: Row) -> str:
    """A column in words, for screen readers, and as the tooltip."""
    words = [f"{row.effects[effect].places} {effect.words.lower()}" for effect in EFFECTS]
    if row.lacking:
        words.append(f"{row.lacking} need a newer release")
    runs = "runs" if row.runs else "does not run"
    return f"torch {show_version(row.release)} ({runs}): {', '.join(words)}"
