"""A fleet as one page that needs nothing else: no network, no other file but the plans that it links to."""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from torchmigrate.fleet.heat import KINDS, Cell, axis, cells, worst
from torchmigrate.fleet.model import Record, Trouble
from torchmigrate.planning.model import Effect
from torchmigrate.report.bars import BarChart, BarColumn, BarPart, percent
from torchmigrate.report.document import Document, Paragraph, Section, Tile, Tiles, one_line
from torchmigrate.report.web_page import as_html as html_of
from torchmigrate.report.web_page import visible
from torchmigrate.versions.releases import parse_version, show_version

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_RUNS = 60  # that the trend shows
_MOST_DATES = 12  # that the axis of the trend names
_LONGEST = 600  # characters of what strangers say
_EFFORTS = {"safe": "Safe fixes", "unsafe": "Unsafe fixes", "by_hand": "By hand"}
_TROUBLES = {
    Trouble.CLONE.value: "not fetched",
    Trouble.TIME.value: "took too long",
    Trouble.MEMORY.value: "needed too much memory",
    Trouble.CRASH.value: "crashed",
    Trouble.WORKER.value: "its worker died",
    Trouble.SETTINGS.value: "unusable configuration",
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
    """How a repository stands, the worst first: its CSS class, which filters use, and what it is called."""

    BLOCKED = "stops", "Does not run"
    FAILED = "failed", "Not examined"
    RUNS = "runs", "Runs"
    TORCHLESS = "torchless", "No torch"

    def __init__(self, kind: str, words: str) -> None:
        self.kind = kind
        self.words = words


_SHOWN = (Status.RUNS, Status.BLOCKED, Status.TORCHLESS, Status.FAILED)


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
    owners = sorted(  # those without an owner come last
        page.owners,
        key=lambda row: (row["running"] - row["repositories"], row["owner"] is None, row["owner"] or ""),
    )
    trend = page.trend[-_MOST_RUNS:] if len(page.trend) > 1 else []
    of = _count(listed, "repository", "repositories")
    document = Document(
        kind=f"upgrade plan of {of}",
        title=f"Upgrade plan of {of}: torch {target}",
        name=f"Upgrade to torch {target}",
        headline=_headline(numbers, listed, target),
        blocks=list(_blocks(page, shown, lasts, target)) if shown else [],
        facts=_facts(page.run),
    )
    return html_of(
        document,
        _TEMPLATES / "fleet.html.jinja",
        variables={"releases": len(releases)},
        filters={"number": _number, "minute": _minute},
        finalize=visible,
        page=page,
        target=target,
        statuses=_SHOWN,
        shown=shown,
        mapped=[(number, each) for number, each in enumerate(shown) if each.cells],
        releases=releases,
        kinds=KINDS,
        used={cell.kind for each in shown for cell in each.cells},
        lasts=_lasts(lasts),
        release_order={key: number for number, key in enumerate(("failed", "torchless", "none", *lasts))},
        most_effort=max((sum(row[each] for each in _EFFORTS) for row in owners), default=0) or 1,
        rules=sorted(page.rules, key=lambda row: (-row["repositories"], -row["places"], str(row["code"]))),
        owners=owners,
        owner_numbers={row["owner"]: number for number, row in enumerate(owners)},
        efforts=_EFFORTS,
        total={effort: sum(each.row.get(effort) or 0 for each in shown) for effort in _EFFORTS},
        short=lambda text: one_line(text or "", _LONGEST),
        trend=trend,
        trend_charts=_trend_charts(trend),
        failed=[each for each in shown if each.status is Status.FAILED],
        effect=_effect,
        parts=_parts,
        link=_link,
        plan=_plan,
        trouble=_trouble,
        count=_count,
    )


def _facts(run: Record) -> dict[str, str]:
    facts = {"Run": _minute(run.get("started")), "Examined": _number(run.get("examined"))}
    if run.get("reused"):
        facts["Unchanged since an earlier run"] = _number(run["reused"])
    return {name: value for name, value in facts.items() if value}


def _blocks(page: Page, shown: list[Shown], lasts: list[str], target: str) -> Iterator[Section]:
    numbers = Counter(each.status for each in shown)
    tiles = Tiles([Tile(numbers[each], each.words, each.kind) for each in _SHOWN])
    changes = _changes(page)
    lines = [Paragraph((changes,), "changes")] if changes else []
    yield Section(f"On torch {target}", [tiles, *lines], "target")
    on = dict.fromkeys((Status.RUNS, Status.BLOCKED), f" on torch {target}")
    legend = {each.kind: each.words + on.get(each, "") for each in _SHOWN if numbers[each]}
    title, note = "Repositories by the newest release", "Click a bar to list its repositories."
    columns = list(_last_columns(shown, lasts))
    drawn = BarChart(f"{title} of torch that they run on", "bars", columns, legend, 12, "release", note)
    yield Section(f"{title} that they run on", [drawn], "last")


# ---- texts -------------------------------------------------------------------------------------------------


def _number(number: int | None) -> str:
    """ "12,345"; nothing for None."""
    return "" if number is None else f"{number:,}"


def _minute(moment: datetime | None) -> str:
    """ "2026-11-25 16:54 UTC"."""
    if moment is not None and moment.tzinfo:
        moment = moment.astimezone(timezone.utc)
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def _count(number: int, one: str, many: str) -> str:
    """ "1 place", "1,200 places"."""
    return f"{number:,} {one if number == 1 else many}"


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
    trouble = str(row.get("trouble") or "unknown")
    return _TROUBLES.get(trouble, trouble)


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
            last = status.kind
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
    rest = {"none": "none", Status.TORCHLESS.kind: "no torch", Status.FAILED.kind: "not examined"}
    return [*((release, release) for release in releases), *rest.items()]


def _last_columns(shown: list[Shown], releases: list[str]) -> Iterable[BarColumn]:
    numbers: Counter[tuple[str, Status]] = Counter((each.last, each.status) for each in shown)
    for key, words in _lasts(releases):
        parts = tuple(BarPart(status.kind, numbers[key, status]) for status in _SHOWN)
        of = _count(sum(part.number for part in parts), "repository", "repositories")
        title = {
            "none": f"No release: {of}",
            Status.TORCHLESS.kind: f"No torch: {of}",
            Status.FAILED.kind: f"Not examined: {of}",
        }.get(key, f"Up to torch {key}: {of}")
        yield BarColumn(
            key,
            tuple(words.split()),
            words,
            title,
            parts,
            slots=1.0 if key == words and key != "none" else 1.7,
        )


def _trend_charts(trend: list[Record]) -> Iterator[tuple[str, BarChart]]:
    """Title and chart of what changed from run to run."""
    statuses = {
        "runs": "run",
        "stops": "do not run",
        "torchless": "no torch, or not reached",
        "failed": "not examined",
    }
    repositories, places = [], []
    for row in trend:
        known = (row["running"], row["blocked"], row["failed"])
        rest = max(row["listed"] - sum(known), 0)
        repositories.append((row["running"], row["blocked"], rest, row["failed"]))
        places.append(tuple(row[effort] for effort in _EFFORTS))
    for title, kinds, numbers in (("Repositories", statuses, repositories), ("Places", _EFFORTS, places)):
        columns = list(_run_columns(trend, kinds, numbers))
        legend = {kind: words.capitalize() for kind, words in kinds.items()}
        yield title, BarChart(f"{title} from run to run", f"trend-{title}", columns, legend, 12)


def _run_columns(
    trend: list[Record], kinds: Mapping[str, str], numbers: Iterable[tuple[int, ...]]
) -> Iterator[BarColumn]:
    every = max(1, -(-len(trend) // _MOST_DATES))
    for number, (row, of) in enumerate(zip(trend, numbers, strict=True)):
        short = "" if (len(trend) - 1 - number) % every else _minute(row["started"])[:10]
        said = (f"{count:,} {words.lower()}" for words, count in zip(kinds.values(), of, strict=True))
        title = f"{_minute(row['started'])}, torch {row['target']}: {', '.join(said)}"
        label = tuple(short.split("-", 1)) if short else ()
        yield BarColumn(row["run"], label, short, title, tuple(map(BarPart, kinds, of)))
