"""Bar charts: what is drawn where, in percent of the width and in pixels of the height."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from msgspec import Struct

HEIGHT = 180  # pixels that the tallest bar may take
_MOST_TICKS = 5
_BAR = 0.72  # of the width of a column


class BarPart(NamedTuple):
    """A part of a bar: its CSS class and what it stands for."""

    kind: str
    number: int


class BarColumn(Struct, frozen=True):
    """A column to draw: a bar of parts, from its foot upwards.

    key: what a click on it filters by. label: below it, a line for each text. short: the same in one line,
    for a small screen. title: it in words. slots: how wide it is, where a usual column is 1. counted: whether
    the total is shown. band: the CSS class of a line below it, if there is one.
    """

    key: str
    label: tuple[str, ...]
    short: str
    title: str
    parts: tuple[BarPart, ...]
    slots: float = 1.0
    counted: bool = True
    band: str = ""

    @property
    def total(self) -> int:
        return sum(part.number for part in self.parts)


class Drawn(Struct, frozen=True):
    """A part as it is drawn: y and height in pixels from the top of the plot."""

    kind: str
    number: int
    y: float
    height: float


class Bar(Struct, frozen=True):
    """A column as it is drawn: x, middle and width as text in percent, top in pixels."""

    column: BarColumn
    x: str
    middle: str
    width: str
    parts: tuple[Drawn, ...]
    top: float


class BarChart(Struct, frozen=True):
    """A chart of columns.

    key: of its id. legend: what the colors mean, by CSS class. fewest: the slots that the width has at least.
    filters: the field of the form that a click on a bar sets. note: shown where scripts run.
    """

    title: str
    key: str
    columns: Sequence[BarColumn]
    legend: Mapping[str, str]
    fewest: int = 1
    filters: str = ""
    note: str = ""
    height: ClassVar[int] = HEIGHT

    @property
    def ticks(self) -> list[tuple[int, float]]:
        """Numbers of the axis, each with its y in pixels."""
        return [(number, _height(number, self._steps[-1])) for number in self._steps]

    @property
    def bars(self) -> Iterator[Bar]:
        slots = max(sum(column.slots for column in self.columns), self.fewest)
        return _bars(self.columns, self._steps[-1], slots)

    @property
    def _steps(self) -> range:
        return _ticks(max((column.total for column in self.columns), default=0))


def percent(share: float) -> str:
    """0.25 -> "25%", with as many digits as drawing needs."""
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"


def _bars(columns: Sequence[BarColumn], top: int, slots: float) -> Iterator[Bar]:
    left = 0.0
    for column in columns:
        parts, foot = [], float(HEIGHT)
        for kind, number in column.parts:
            if number:
                height = _height(number, top)
                foot -= height
                parts.append(Drawn(kind, number, round(foot, 2), height))
        gap = (1 - _BAR) / 2
        yield Bar(
            column,
            x=percent((left + gap) / slots),
            middle=percent((left + column.slots / 2) / slots),
            width=percent((column.slots - 2 * gap) / slots),
            parts=tuple(parts),
            top=round(foot, 2),
        )
        left += column.slots


def _ticks(tallest: int) -> range:
    """Round numbers for the axis, from 0 to at least the tallest bar."""
    step, factors = 1, (2, 2.5, 2)  # 1, 2, 5, 10, 20, ...
    turn = 0
    while tallest > step * _MOST_TICKS:
        step = int(step * factors[turn % 3])
        turn += 1
    last = max(-(-tallest // step), 1) * step
    return range(0, last + 1, step)


def _height(number: int, top: int) -> float:
    return round(HEIGHT * number / top, 2)
