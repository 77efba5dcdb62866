"""A plan as one page, with a chart of the releases and a table of the places that can be filtered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from torchmigrate.planning.document import document_of, link_of
from torchmigrate.planning.groups import efforts_line
from torchmigrate.planning.links import Links
from torchmigrate.planning.model import EFFECTS, WORST_FIRST, Effect, Effort, Place, Plan, Row
from torchmigrate.report.bars import BarChart, BarColumn, BarPart
from torchmigrate.report.document import Block, Document, Paragraph, Section, Tile, Tiles
from torchmigrate.report.web_page import as_html as html_of
from torchmigrate.versions.releases import Version, show_version

_TEMPLATE = Path(__file__).parent / "templates" / "plan.html.jinja"
_LACKING = "lacking"  # the class and the name of what a release does not have yet


def as_html(plan: Plan, links: Links) -> str:
    """The page; the same plan gives the same bytes."""
    document = document_of(plan, links, step=False)
    return html_of(
        replace(document, blocks=list(_blocks(plan, document))),
        _TEMPLATE,
        variables={"columns": len(plan.rows)},
        plan=plan,
        every_effect=WORST_FIRST,
        efforts=list(Effort),
        lacking=_LACKING,
        version=show_version,
        rules=sorted({(place.code, place.name) for place in plan.listed}),
        rows=_rows(plan),
        index=lambda release: _index(release, plan),
        begins=lambda place, effect: _begins(place, effect, plan),
        link=lambda place: link_of(place, links),
        reference=lambda place: place.url if place.url and place.url.startswith("https://") else None,
    )


def _rows(plan: Plan) -> list[tuple[int, Place]]:
    """The places with their number in order of path: what is missing first, then the worst."""
    rank = (None, *WORST_FIRST)
    return sorted(enumerate(plan.listed), key=lambda item: rank.index(item[1].since.effect(plan.target)))


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


def _blocks(plan: Plan, document: Document) -> Iterator[Block]:
    """The blocks of the document, after tiles, what it says of them, and the chart."""
    tiles = []
    for effect in EFFECTS:
        tally = plan.last.effects[effect]
        note = efforts_line(tally) or "nothing"
        tiles.append(Tile(tally.places, effect.words, effect.label, note))
    lines = [block for block in document.blocks if isinstance(block, Paragraph)]
    yield Section(f"On torch {show_version(plan.target)}", [Tiles(tiles), *lines], "target")
    legend = {effect.label: effect.words for effect in EFFECTS}
    legend |= {_LACKING: "Needs newer"} if plan.lacking else {}
    legend |= {"line runs": "Works unchanged", "line stops": "Does not"}
    drawn = BarChart("Places by release of torch", "plot", list(_columns(plan)), legend)
    yield Section("Places by release", [drawn], "chart")
    yield from (block for block in document.blocks if not isinstance(block, Paragraph))


def _columns(plan: Plan) -> Iterator[BarColumn]:
    before = 0
    for number, row in enumerate(plan.rows):
        release = show_version(row.release)
        parts = (
            BarPart(_LACKING, row.lacking),
            *(BarPart(each.label, row.effects[each].places) for each in EFFECTS),
        )
        band = "runs" if row.runs else "stops"
        column = BarColumn(str(number), (release,), release, _title(row), parts, band=band)
        yield replace(column, counted=column.total != before)
        before = column.total


def _title(row: Row) -> str:
    """A column in words, for screen readers, and as the tooltip."""
    words = [f"{row.effects[effect].places} {effect.words.lower()}" for effect in EFFECTS]
    if row.lacking:
        words.append(f"{row.lacking} need a newer release")
    runs = "runs" if row.runs else "does not run"
    return f"torch {show_version(row.release)} ({runs}): {', '.join(words)}"
