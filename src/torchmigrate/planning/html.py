"""A plan as one page that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

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
from torchmigrate.versions.releases import Version, show_version

TEMPLATES = Path(__file__).parent / "templates"
HEIGHT = 200  # pixels that the tallest bar may take
MOST_TICKS = 5
_BAR = 0.7  # of the width of a column
LACKING = "lacking"  # the class and the name of what a release does not have yet


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: y and height in pixels from the top of the plot."""

    kind: str  # of an effect, or LACKING
    places: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """A release in the chart: x and width in percent of the plot's width."""

    number: int
    row: Row
    x: str
    middle: str
    width: str
    parts: tuple[Part, ...]
    total: int
    labelled: bool  # its total differs from that of the column before
    top: float
    title: str


def as_html(plan: Plan, links: Links) -> str:
    """The page; the same plan gives the same bytes."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"version": _version, "code": _code, "breakable": _breakable}
    style, script = (_asset(name) for name in ("plan.css", "plan.js"))
    style = style.replace("--columns: 1", f"--columns: {len(plan.rows)}")
    return environment.get_template("plan.html.jinja").render(
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
        lacking=LACKING,
        lacking_line=lacking_line(plan) if plan.lacking else "",
        hint=minimum_hint(plan),
        efforts_line=efforts_line,
        columns=list(_columns(plan)),
        ticks=[(number, _height(number, plan)) for number in _ticks(_tallest(plan))],
        height=HEIGHT,
        rules=sorted({(place.code, place.name) for place in plan.listed}),
        rows=_rows(plan),
        index=lambda release: _index(release, plan),
        begins=lambda place, effect: _begins(place, effect, plan),
        address=links.to,
        reference=lambda place: place.url if place.url and place.url.startswith("https://") else None,
        style=Markup(style),
        script=Markup(script),
        style_hash=policy_hash(style),
        script_hash=policy_hash(script),
    )


def _version(release: Version | None) -> str:
    return "" if release is None else show_version(release)


def _code(text: str) -> Markup:
    """Text in which what stands between backticks is code."""
    parts = re.split(r"`([^`]+)`", text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def _breakable(path: str) -> Markup:
    """A path that a line may break after a slash."""
    return Markup("/<wbr>").join(path.split("/"))


def _rows(plan: Plan) -> list[tuple[int, Place]]:
    """The places with their number in order of path: what is missing first, then the worst."""
    rank = (None, *WORST_FIRST)
    return sorted(enumerate(plan.listed), key=lambda item: rank.index(item[1].since.effect(plan.target)))


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text("utf-8")


def policy_hash(text: str) -> str:
    """What the page's own policy calls an inline style or script: nothing else may run in it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


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


def _numbers(row: Row) -> list[tuple[str, int]]:
    """What a bar is made of, from its foot upwards."""
    return [(LACKING, row.lacking), *((effect.label, row.effects[effect].places) for effect in EFFECTS)]


def _tallest(plan: Plan) -> int:
    return max(sum(number for _, number in _numbers(row)) for row in plan.rows)


def _ticks(tallest: int) -> Sequence[int]:
    """Round numbers for the axis, from 0 to at least the tallest bar."""
    step, factors = 1, (2, 2.5, 2)  # 1, 2, 5, 10, 20, ...
    turn = 0
    while tallest > step * MOST_TICKS:
        step = int(step * factors[turn % 3])
        turn += 1
    return range(0, max(tallest, 1) + step, step)


def _height(number: int, plan: Plan) -> float:
    return round(HEIGHT * number / _ticks(_tallest(plan))[-1], 2)


def _columns(plan: Plan) -> Iterator[Column]:
    width = 100 / len(plan.rows)
    before = 0
    for number, row in enumerate(plan.rows):
        parts, foot = [], float(HEIGHT)
        for kind, places in _numbers(row):
            if places:
                height = _height(places, plan)
                foot -= height
                parts.append(Part(kind, places, round(foot, 2), height))
        total = sum(part.places for part in parts)
        yield Column(
            number=number,
            row=row,
            x=_percent((number + (1 - _BAR) / 2) * width),
            middle=_percent((number + 0.5) * width),
            width=_percent(_BAR * width),
            parts=tuple(parts),
            total=total,
            labelled=total != before,
            top=round(foot, 2),
            title=_title(row),
        )
        before = total


def _percent(number: float) -> str:
    return f"{number:.3f}%"


def _title(row: Row) -> str:
    """A column in words, for those who cannot see it, and under the pointer."""
    words = [f"{row.effects[effect].places} {effect.words.lower()}" for effect in EFFECTS]
    if row.lacking:
        words.append(f"{row.lacking} need a newer release")
    runs = "runs" if row.runs else "does not run"
    return f"torch {show_version(row.release)} ({runs}): {', '.join(words)}"
