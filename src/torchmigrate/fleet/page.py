"""A fleet as one page that needs nothing else: no network, no other file but the plans that it links to."""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup
from msgspec import Struct

from torchmigrate.fleet.heat import KINDS, Cell, axis, cells, worst
from torchmigrate.fleet.model import Record, Trouble
from torchmigrate.planning.model import Effect
from torchmigrate.report.bars import BarColumn, BarPart, chart, percent
from torchmigrate.report.web_page import web_page
from torchmigrate.versions.releases import parse_version, show_version

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_RUNS = 60  # that the trend shows
_MOST_DATES = 12  # that the axis of the trend names
_LONGEST = 600  # characters of what strangers say
_EFFORTS = {"safe": "Safe fixes", "unsafe": "Unsafe fixes", "by_hand": "By hand"}
_TROUBLES = {
    Trouble.CLONE: "not fetched",
    Trouble.TIME: "took too long",
    Trouble.MEMORY: "needed too much memory",
    Trouble.CRASH: "crashed",
    Trouble.WORKER: "its worker died",
    Trouble.SETTINGS: "unusable configuration",
}


class Page(Struct, frozen=True):
    """What the page shows. Releases are text such as "2.10"; None of `changes`: there was no run before.

    run: the row of table `runs`. repositories, releases: the rows of these tables.
    rules: code, name, url, effect (the worst at the target, None: none), places, repositories (how many have
    it), mended_safe, mended_unsafe (in how many of them safe fixes alone, or safe and unsafe fixes together,
    change every place; the second number includes the first), by_hand (places).
    owners: owner (None: no owner), repositories, running, failed, safe, unsafe, by_hand.
    trend: every run, oldest first: run, started, target, listed, running, blocked, failed, safe, unsafe,
    by_hand.
    changes: run (the one before), new, gone, moved (numbers of places).
    """

    run: Record
    repositories: list[Record]
    releases: list[Record]
    rules: list[Record]
    owners: list[Record]
    trend: list[Record]
    changes: Record | None


class Status(enum.Enum):
    """How a repository stands; the value is its CSS class, and what filters use."""

    BLOCKED = "stops"
    FAILED = "failed"
    RUNS = "runs"
    TORCHLESS = "torchless"

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Status.RUNS: "Runs",
    Status.BLOCKED: "Does not run",
    Status.TORCHLESS: "No torch",
    Status.FAILED: "Not examined",
}


class Shown(Struct, frozen=True):
    """A repository as the page shows it.

    last: the newest release that runs it, "none", or the value of a status without releases.
    worst: what the target does. cells: what all releases do; empty: nothing is known.
    """

    row: Record
    status: Status
    last: str
    worst: Cell
    cells: tuple[Cell, ...]

    @property
    def runs_on(self) -> str:
        """ "1.8 to 2.3", or nothing."""
        first, last = self.row.get("runs_first"), self.row.get("runs_last")
        if self.status in (Status.FAILED, Status.TORCHLESS):
            return ""
        if not last:
            return "none"
        if not first:
            return f"up to {last}"
        return str(last) if first == last else f"{first} to {last}"


def as_html(page: Page) -> str:
    """The page; the same input gives the same bytes, in whatever order repositories and rules come."""
    target = _release(page.run["target"])
    releases = axis([target, *(str(row["release"]) for row in page.releases)])
    shown = _shown(page, target, releases)
    numbers = Counter(each.status for each in shown)
    listed = max(page.run.get("listed") or 0, len(shown))
    lasts = axis([*releases, *(each.last for each in shown if each.last[0].isdigit())])
    owners = sorted(page.owners, key=lambda row: (row["running"] - row["repositories"], _name(row["owner"])))
    return web_page(
        _TEMPLATES / "fleet.html.jinja",
        variables={"releases": len(releases)},
        filters={"number": _number, "short": _short, "date": _date, "minute": _minute},
        finalize=_printable,
        page=page,
        target=target,
        headline=_headline(numbers, listed, target),
        statuses=[(status, numbers[status]) for status in _WORDS],
        listed=listed,
        shown=shown,
        mapped=[(number, each) for number, each in enumerate(shown) if each.cells],
        releases=releases,
        kinds=KINDS,
        used={cell.kind for each in shown for cell in each.cells},
        lasts=_lasts(lasts),
        release_order={key: number for number, key in enumerate(("failed", "torchless", "none", *lasts))},
        most_effort=max((sum(row[each] for each in _EFFORTS) for row in owners), default=0) or 1,
        last_chart=chart(list(_last_columns(shown, lasts)), fewest=12),
        rules=sorted(page.rules, key=lambda row: (-row["repositories"], -row["places"], str(row["code"]))),
        owners=owners,
        owner_numbers={row["owner"]: number for number, row in enumerate(owners)},
        efforts=_EFFORTS,
        total=_totals(each.row for each in shown),
        changes=_changes(page),
        trend=page.trend[-_MOST_RUNS:] if len(page.trend) > 1 else [],
        trend_charts=_trend_charts(page.trend[-_MOST_RUNS:]),
        failed=[each for each in shown if each.status is Status.FAILED],
        effect=_effect,
        parts=_parts,
        link=_link,
        plan=_plan,
        trouble=_trouble,
        count=_count,
    )


# ---- texts -------------------------------------------------------------------------------------------------


def _printable(value: object) -> object:
    """What is shown of a text: no character that is invisible or turns the direction of others."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(
        each if each.isprintable() else " " if each.isspace() else "\N{REPLACEMENT CHARACTER}"
        for each in value
    )


def _number(number: int | None) -> str:
    """ "12,345"; nothing for None."""
    return "" if number is None else f"{number:,}"


def _short(text: str | None) -> str:
    """A text of strangers, which may be endless."""
    text = " ".join((text or "").split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} ..."


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc) if moment.tzinfo else moment


def _date(moment: datetime | None) -> str:
    return "" if moment is None else f"{_utc(moment):%Y-%m-%d}"


def _minute(moment: datetime | None) -> str:
    return "" if moment is None else f"{_utc(moment):%Y-%m-%d %H:%M} UTC"


def _count(number: int, one: str, many: str) -> str:
    """ "1 place", "1,200 places"."""
    return f"{number:,} {one if number == 1 else many}"


def _name(owner: str | None) -> tuple[bool, str]:
    """Repositories without an owner come last."""
    return owner is None, (owner or "")


def _headline(numbers: Mapping[Status, int], listed: int, target: str) -> str:
    """ "312 of 500 repositories run unchanged on torch 2.13; 170 do not; 18 could not be examined."."""
    if not listed:
        return "The list has no repositories."
    runs = numbers[Status.RUNS]
    of = f"{runs:,} of {_count(listed, 'repository', 'repositories')}"
    stand = "runs unchanged on torch {}" if runs == 1 else "run unchanged on torch {}"
    missing = listed - sum(numbers.values())
    rest = [
        (numbers[Status.BLOCKED], "does not", "do not"),
        (numbers[Status.TORCHLESS], "does not use torch", "do not use torch"),
        (numbers[Status.FAILED], "could not be examined", "could not be examined"),
        (missing, "was not reached", "were not reached"),
    ]
    texts = [f"{of} {stand.format(target)}", *(_count(*each) for each in rest if each[0])]
    return "; ".join(texts) + "."


def _changes(page: Page) -> str:
    """What changed since the run before, in a sentence; empty if there was none."""
    if page.changes is None:
        return ""
    before = page.changes["run"]
    started = next((row["started"] for row in page.trend if row["run"] == before), None)
    new, gone, moved = (page.changes[each] for each in ("new", "gone", "moved"))
    since = f"Since the run of {_minute(started)}" if started is not None else f"Since the run {before}"
    if not new and not gone and not moved:
        return f"{since}, no place has changed."
    texts = [
        _count(new, "place is new", "places are new"),
        f"{gone:,} no longer {'exists' if gone == 1 else 'exist'}",
        f"{moved:,} moved to another line",
    ]
    return f"{since}, {texts[0]}, {texts[1]} and {texts[2]}."


def _trouble(row: Record) -> str:
    """Why a repository could not be examined, in a few words."""
    trouble = row.get("trouble")
    return next(
        (words for each, words in _TROUBLES.items() if each.value == trouble), str(trouble or "unknown")
    )


def _effect(label: str | None) -> tuple[str, str]:
    """The CSS class of an effect, and what it is called."""
    found = next((each for each in Effect if each.label == label), None)
    return ("lacking", "Needs newer") if found is None else (found.label, found.words)


def _link(address: str | None) -> str | None:
    """An address that may be a link."""
    fits = (
        address is not None and re.fullmatch(r"https://[^\s/\\@]+(/\S*)?", address) and address.isprintable()
    )
    return address if fits else None


def _plan(row: Record) -> str | None:
    """The address of a repository's plan, from the path below the page's directory."""
    path = row.get("page")
    return None if not path else "./" + quote(str(path).lstrip("/"), errors="replace")


# ---- repositories ------------------------------------------------------------------------------------------


def _status(row: Record) -> Status:
    if row["status"] == "failed":
        return Status.FAILED
    runs = row.get("runs_on_target")
    if not row.get("files_with_torch") and runs is not False:  # else a command or a pin is in the way
        return Status.TORCHLESS
    return Status.RUNS if runs else Status.BLOCKED


def _release(text: object) -> str:
    """A release without its patch number."""
    return show_version(parse_version(str(text)))


def _shown(page: Page, target: str, releases: list[str]) -> list[Shown]:
    """The repositories, by what blocks them: the worst first."""
    rows: dict[str, dict[str, Record]] = {}
    for row in page.releases:
        rows.setdefault(row["repository"], {})[_release(row["release"])] = row
    found = []
    for row in page.repositories:
        status, own = _status(row), rows.get(row["repository"], {})
        known = bool(own) and status in (Status.RUNS, Status.BLOCKED)
        if status in (Status.FAILED, Status.TORCHLESS):
            last = status.value
        else:
            last = _release(row["runs_last"]) if row.get("runs_last") else "none"
        found.append(
            Shown(
                row,
                status,
                last,
                worst=worst(own.get(target)),
                cells=tuple(cells(own, releases)) if known else (),
            )
        )
    order = list(Status)
    found.sort(
        key=lambda each: (
            order.index(each.status),
            each.worst.rank,
            -each.worst.places,
            -(each.row.get("by_hand") or 0),
            each.row["repository"],
        )
    )
    return found


def _totals(rows: Iterable[Record]) -> dict[str, int]:
    total = dict.fromkeys(_EFFORTS, 0)
    for row in rows:
        for effort in _EFFORTS:
            total[effort] += row.get(effort) or 0
    return total


def _parts(whole: int, *parts: tuple[str, int]) -> list[tuple[str, str, str]]:
    """A bar that lies: class, x and width of each part, where `whole` is its full width."""
    found, left = [], 0
    for kind, number in parts:
        if number > 0:
            found.append((kind, percent(left / whole), percent(number / whole)))
        left += max(number, 0)
    return found


# ---- charts ------------------------------------------------------------------------------------------------


def _lasts(releases: list[str]) -> list[tuple[str, str]]:
    """What the newest release of a repository may be: the key and how it is called."""
    rest = {"none": "none", Status.TORCHLESS.value: "no torch", Status.FAILED.value: "not examined"}
    return [*((release, release) for release in releases), *rest.items()]


def _last_columns(shown: list[Shown], releases: list[str]) -> Iterable[BarColumn]:
    numbers: Counter[tuple[str, Status]] = Counter((each.last, each.status) for each in shown)
    for key, words in _lasts(releases):
        parts = tuple(BarPart(status.value, numbers[key, status]) for status in _WORDS)
        of = _count(sum(part.number for part in parts), "repository", "repositories")
        title = {
            "none": f"No release: {of}",
            Status.TORCHLESS.value: f"No torch: {of}",
            Status.FAILED.value: f"Not examined: {of}",
        }.get(key, f"Up to torch {key}: {of}")
        yield BarColumn(
            key,
            tuple(words.split()),
            words,
            title,
            parts,
            slots=1.0 if key == words and key != "none" else 1.7,
        )


def _trend_charts(trend: list[Record]) -> list[tuple[str, list[tuple[str, str]], object]]:
    """Title, legend (class and words) and chart of what changed from run to run."""
    every = max(1, -(-len(trend) // _MOST_DATES))
    statuses = [
        ("runs", "run"),
        ("stops", "do not run"),
        ("torchless", "no torch, or not reached"),
        ("failed", "not examined"),
    ]
    repositories, places = [], []
    for number, row in enumerate(trend):
        is_named = (len(trend) - 1 - number) % every == 0
        label = tuple(_date(row["started"]).split("-", 1)) if is_named else ()
        short = _date(row["started"]) if is_named else ""
        when = f"{_minute(row['started'])}, torch {row['target']}"
        known = (row["running"], row["blocked"], row["failed"])
        of = (row["running"], row["blocked"], max(row["listed"] - sum(known), 0), row["failed"])
        title = f"{when}: " + ", ".join(
            f"{count:,} {words}" for (_, words), count in zip(statuses, of, strict=True)
        )
        parts = tuple(BarPart(kind, count) for (kind, _), count in zip(statuses, of, strict=True))
        repositories.append(BarColumn(row["run"], label, short, title, parts))
        title = f"{when}: " + ", ".join(
            f"{row[effort]:,} {words.lower()}" for effort, words in _EFFORTS.items()
        )
        parts = tuple(BarPart(effort, row[effort]) for effort in _EFFORTS)
        places.append(BarColumn(row["run"], label, short, title, parts))
    return [
        (
            "Repositories",
            [(kind, words.capitalize()) for kind, words in statuses],
            chart(repositories, fewest=12),
        ),
        ("Places", list(_EFFORTS.items()), chart(places, fewest=12)),
    ]
