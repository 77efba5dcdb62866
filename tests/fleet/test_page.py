"""The page of a fleet, as text: what is in it, and what strangers cannot put into it."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fleet_page_support import (
    TARGET,
    Record,
    blocked,
    failed,
    fleet,
    large_fleet,
    release,
    repository,
    rule,
    run_of,
)
from msgspec.structs import replace

import torchmigrate.fleet.page
from torchmigrate.fleet.heat import axis
from torchmigrate.fleet.page import Page, as_html
from torchmigrate.report.bars import HEIGHT, BarChart, BarColumn, BarPart

HOSTILE = "</script><script>alert(1)</script>'\"><img src=x onerror=alert(2)>{{ 7 * 7 }}\u202e\x00\udc80\n"


class Read(HTMLParser):
    """The elements of a page: tag, attributes, and the text inside of those with an id or in table rows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.rows: dict[str, list[list[str]]] = {}
        self._ids: list[str | None] = []
        self._table: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attributes}
        self.elements.append((tag, known))
        if tag in ("meta", "link", "input", "col", "wbr", "br"):
            return
        self._ids.append(known.get("id"))
        if tag == "table":
            self._table = known["id"]
            self.rows[self._table] = []
        elif tag == "tr" and self._table:
            self.rows[self._table].append([])
        elif tag in ("td", "th") and self._table:
            self.rows[self._table][-1].append(known.get("aria-label", ""))

    def handle_endtag(self, tag: str) -> None:
        self._ids.pop()
        if tag == "table":
            self._table = None

    def handle_data(self, data: str) -> None:
        for each in filter(None, self._ids):
            self.texts.setdefault(each, []).append(data)
        if self._table and self.rows[self._table] and self.rows[self._table][-1]:
            self.rows[self._table][-1][-1] += f" {data.strip()}" if data.strip() else ""

    def text(self, identifier: str) -> str:
        return " ".join("".join(self.texts.get(identifier, [])).split())

    def table(self, identifier: str) -> list[list[str]]:
        """The rows below the head, each cell with single spaces."""
        return [[" ".join(cell.split()) for cell in row] for row in self.rows.get(identifier, [])[1:]]

    def all(self, tag: str, name: str) -> list[str]:
        """The values of an attribute, of all elements with a tag that have it."""
        return [known[name] for each, known in self.elements if each == tag and name in known]


def read(page: Page) -> Read:
    return Read(as_html(page))


# ---- what is in it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repositories", "listed", "headline"),
    [
        ([], 0, "The list has no repositories."),
        ([repository("a")], 1, "1 of 1 repository runs unchanged on torch 2.13."),
        (
            [blocked("a"), blocked("b")],
            2,
            "0 of 2 repositories run unchanged on torch 2.13; 2 do not.",
        ),
        (
            [repository("a"), repository("b"), blocked("c"), failed("d"), repository("e", files_with_torch=0)],
            7,
            "2 of 7 repositories run unchanged on torch 2.13; 1 does not; 1 does not use torch;"
            " 1 could not be examined; 2 were not reached.",
        ),
        (
            [repository("a"), blocked("b", files_with_torch=0)],
            2,
            "1 of 2 repositories runs unchanged on torch 2.13; 1 does not.",
        ),
        ([failed("a"), failed("b")], 2, "0 of 2 repositories run unchanged on torch 2.13; 2 could not be examined."),
    ],
)  # fmt: skip
def test_the_headline(repositories: list[Record], listed: int, headline: str) -> None:
    assert read(fleet(*repositories, run={"listed": listed})).text("headline") == headline


def test_an_empty_fleet_has_nothing_else() -> None:
    found = read(fleet())
    assert found.rows == {} and "section" not in [tag for tag, _ in found.elements]


def test_bars_by_the_newest_release() -> None:
    found = read(
        fleet(
            repository("a"),
            blocked("b", "2.9"),
            blocked("c", "2.10"),
            blocked("d", "2.10"),
            blocked("e", None),
            failed("f"),
            repository("g", files_with_torch=0, runs_first=None, runs_last=None),
            run={"target": "2.13.0"},
        )
    )
    titles = [title for title in found.all("g", "aria-label") if not title.endswith(" 0 repositories")]
    assert titles == [
        "Up to torch 2.9: 1 repository",
        "Up to torch 2.10: 2 repositories",
        "Up to torch 2.13: 1 repository",
        "No release: 1 repository",
        "No torch: 1 repository",
        "Not examined: 1 repository",
    ]
    keys = found.all("g", "data-key")
    assert keys == ["2.9", "2.10", "2.11", "2.12", "2.13", "none", "torchless", "failed"]
    assert Counter(found.all("tr", "data-release")) == Counter(
        {"2.9": 1, "2.10": 2, "2.13": 1, "none": 1, "torchless": 1, "failed": 1}
    )


def test_the_map() -> None:
    found = read(
        fleet(
            repository("fine"),
            blocked("worse"),
            blocked("bad"),
            failed("lost"),
            releases=[
                release("fine", "2.12"),
                release("fine", "2.13", warns=1),
                release("bad", "2.9", needs_newer=1, raises=0),
                release("bad", "2.10"),
                release("bad", "2.11", raises=1),
                release("bad", "2.12", raises=1),
                release("bad", "2.13", raises=2, warns=50),
                release("worse", "2.13", breaks_on_import=1),
            ],
        )
    )
    head = found.rows["map"][0]
    assert [text.strip() for text in head] == ["Repository", "2.9", "2.10", "2.11", "2.12", "2.13"]
    assert found.table("map") == [
        ["worse", "not looked at", "1 breaks on import B1"],
        ["bad", "1 needs a newer release N1", "runs", "1 raises R1", "2 raise R2"],
        ["fine", "not looked at", "runs", "1 warns W1"],
    ]
    assert found.all("td", "colspan") == ["4", "2", "3"]


def test_the_table_of_repositories() -> None:
    found = read(
        fleet(
            repository("a/fine", owner="ml"),
            blocked("b", owner="web", is_whole=False),
            failed("c", "time", "it took longer than 600 seconds"),
            repository("d", runs_first=None, runs_last=TARGET, safe=1234),
            blocked("e", None, by_hand=None),
            releases=[release("b", TARGET, raises=2)],
        )
    )
    assert found.table("repositories") == [
        ["b host.example/b.git", "web", "Does not run 2 raise not all files were read", "1.8 to 2.5", "3", "1", "2"],
        ["e host.example/e.git", "", "Does not run", "none", "3", "1", "0"],
        ["c host.example/c.git", "", "Not examined took too long", "", "", "", ""],
        ["a/fine host.example/a/fine.git", "ml", "Runs", "1.8 to 2.13", "0", "0", "0"],
        ["d host.example/d.git", "", "Runs", "up to 2.13", "1,234", "0", "0"],
    ]  # fmt: skip
    links = [address for address in found.all("a", "href") if address.startswith("./")]
    assert Counter(links) == {
        "./plans/a/fine.html": 1,
        "./plans/b.html": 2,
        "./plans/d.html": 1,
        "./plans/e.html": 1,
    }
    assert found.table("failed") == [
        ["c host.example/c.git", "took too long", "it took longer than 600 seconds"]
    ]


def test_rules_and_owners() -> None:
    repositories = [repository("a", owner="ml"), blocked("b", owner="web"), blocked("c")]
    rules = [
        rule("TM200", effect=None, repositories=2, mended_safe=0, mended_unsafe=0),
        rule("TM101", url="javascript:alert(1)"),
        rule("TM100", places=2000),
    ]
    found = read(fleet(*repositories, rules=rules))
    assert found.table("rules") == [
        ["TM100 rule-tm100", "Raises when reached", "2,000", "3", "5", "2", "4", ""],
        ["TM101 rule-tm101", "Raises when reached", "10", "3", "5", "2", "4", ""],
        ["TM200 rule-tm200", "Needs newer", "10", "3", "2", "0", "0", ""],
    ]
    assert found.table("owners") == [
        ["web", "1", "0", "0", "3", "1", "2", ""],
        ["no owner", "1", "0", "0", "3", "1", "2", ""],
        ["ml", "1", "1", "0", "0", "0", "0", ""],
    ]
    assert (
        found.text("effort")
        == "12 places have to change for torch 2.13: 6 safe fixes, 2 unsafe fixes, 4 by hand."
    )
    assert "owners" not in read(fleet(blocked("b"), blocked("c"))).rows  # nobody is named


def test_the_trend_and_what_changed() -> None:
    trend = [run_of(0, running=3), run_of(1, target="2.12")]
    changes = {"run": trend[0]["run"], "new": 1, "gone": 2, "moved": 0}
    found = read(fleet(repository("a"), trend=trend, changes=changes))
    assert found.text("changes") == (
        "Since the run of 2026-11-25 16:54 UTC, 1 place is new, 2 no longer exist and 0 moved to another line."
    )
    assert found.table("trend") == [
        ["2026-11-25 16:54 UTC", "torch 2.13", "10", "3", "5", "1", "30", "10", "5"],
        ["2026-12-02 16:54 UTC", "torch 2.12", "10", "4", "5", "1", "30", "10", "5"],
    ]
    assert (
        "2026-11-25 16:54 UTC, torch 2.13: 3 run, 5 do not run, 1 no torch, or not reached, 1 not examined"
        in found.all("g", "aria-label")
    )
    same = {"run": "unknown", "new": 0, "gone": 0, "moved": 0}
    found = read(fleet(repository("a"), trend=trend[:1], changes=same))
    assert found.text("changes") == "Since the run unknown, no place has changed."
    assert "trend" not in found.rows  # one run is none


def test_a_long_trend_is_cut() -> None:
    trend = [run_of(number, listed=number) for number in range(75)]
    found = read(fleet(repository("a"), trend=trend))
    assert [row[2] for row in found.table("trend")] == [str(number) for number in range(15, 75)]
    assert found.text("trend-note") == "The last 60 of 75 runs are shown."


def test_a_run_that_was_stopped_says_so() -> None:
    assert "stopped" in read(fleet(repository("a"), run={"interrupted": True, "listed": 9})).text(
        "interrupted"
    )
    assert not read(fleet(repository("a"))).text("interrupted")


def test_everything_failed() -> None:
    troubles = ["clone", "time", "memory", "crash", "worker", "settings", "news"]
    found = read(fleet(*(failed(f"r{number}", each, "why") for number, each in enumerate(troubles))))
    assert [row[1] for row in found.table("failed")] == [
        "not fetched", "took too long", "needed too much memory", "crashed", "its worker died",
        "unusable configuration", "news",
    ]  # fmt: skip
    assert "map" not in found.rows and not [each for each in found.all("a", "href") if each.startswith("./")]
    assert found.text("effort").startswith("0 places have to change")


# ---- what it is --------------------------------------------------------------------------------------------


def test_the_same_input_gives_the_same_bytes() -> None:
    page = large_fleet(60)
    dice = random.Random(3)
    parts = {name: list(getattr(page, name)) for name in ("repositories", "releases", "rules", "owners")}
    for each in parts.values():
        dice.shuffle(each)
    assert as_html(page) == as_html(replace(page, **parts))


def test_it_needs_nothing_else() -> None:
    text = as_html(large_fleet(60))
    found = Read(text)
    assert not re.search(r"@import|url\((?!#)", text) and found.all("script", "src") == []
    assert [each for each in found.all("link", "href") if each != "data:,"] == []
    assert {tag for tag, _ in found.elements}.isdisjoint({"img", "iframe", "object", "embed", "base"})
    assert all(not name.startswith("on") and name != "style" for _, known in found.elements for name in known)
    identifiers = [known["id"] for _, known in found.elements if "id" in known]
    assert len(identifiers) == len(set(identifiers))
    named = [each for _, known in found.elements if (each := known.get("aria-labelledby"))]
    named += [each[1:] for each in found.all("a", "href") if each.startswith("#")]
    assert set(named) <= set(identifiers) and "map-title" in named
    policy = next(known["content"] for _, known in found.elements if known.get("http-equiv"))
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    tables = [known for tag, known in found.elements if tag == "table"]
    assert text.count("<caption") == len(tables) == 6
    assert all("scope" in known for tag, known in found.elements if tag == "th")


def test_a_large_fleet_is_a_small_file() -> None:
    assert len(as_html(large_fleet(1000)).encode()) < 2_000_000


def test_the_templates_are_beside_the_module() -> None:
    directory = Path(torchmigrate.fleet.page.__file__).parent / "templates"
    assert {each.name for each in directory.iterdir()} == {"fleet.html.jinja", "fleet.css", "fleet.js"}


# ---- what strangers say ------------------------------------------------------------------------------------


def test_nothing_of_strangers_is_markup() -> None:
    repositories = [
        blocked(HOSTILE, owner=HOSTILE, address=HOSTILE, page=HOSTILE, headline=HOSTILE),
        failed(f"f{HOSTILE}", HOSTILE, HOSTILE, owner="ml", address="https://host.example/" + HOSTILE),
    ]
    trend = [run_of(0, target=HOSTILE), run_of(1, run=HOSTILE)]
    changes = {"run": "r" + HOSTILE, "new": 1, "gone": 1, "moved": 1}
    rules = [rule(HOSTILE, name=HOSTILE, url=HOSTILE)]
    text = as_html(
        fleet(
            *repositories,
            releases=[release(HOSTILE, TARGET, raises=1)],
            rules=rules,
            trend=trend,
            changes=changes,
            run={"version": HOSTILE},
        )
    )
    found = Read(text)
    harmless = Read(
        as_html(
            fleet(
                blocked("a", owner="b", address="c"),
                failed("d", "x", "y", owner="ml", address="e"),
                releases=[release("a", TARGET, raises=1)],
                rules=[rule("TM100", url="")],
                trend=[run_of(0), run_of(1)],
                changes=changes | {"run": "r"},
            )
        )
    )
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in harmless.elements]
    assert [sorted(known) for _, known in found.elements] == [sorted(known) for _, known in harmless.elements]
    assert "\u202e" not in text and "\x00" not in text and "{{ 7 * 7 }}" in text
    text.encode("utf-8")  # no lone surrogate is left
    assert all(each.startswith(("#", "./", "data:,")) for each in found.all("a", "href"))


@pytest.mark.parametrize(
    ("address", "is_link"),
    [
        ("https://host.example/a/b.git", True),
        ("https://host.example/a?x=1&y=<2>", True),
        ("https://user:secret@host.example/a", False),
        ("http://host.example/a", False),
        ("HTTPS://host.example/a", False),
        (" https://host.example/a", False),
        ("https:///a", False),
        ("javascript:alert(1)//https://", False),
        ("git@host.example:a/b.git", False),
        ("/srv/a", False),
        (None, False),
    ],
)
def test_addresses_that_are_links(address: str | None, is_link: bool) -> None:
    found = read(fleet(repository("a", address=address, page=None)))
    assert [each for each in found.all("a", "href") if not each.startswith("#")] == (
        [address] if is_link else []
    )


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("plans/a b#1?.html", "./plans/a%20b%231%3F.html"),
        ("javascript:alert(1)", "./javascript%3Aalert%281%29"),
        ("//host.example/x", "./host.example/x"),
        ("\\\\host.example\\x", "./%5C%5Chost.example%5Cx"),
    ],
)
def test_plans_are_below_the_page(path: str, address: str) -> None:
    found = read(fleet(repository("a", page=path), releases=[release("a", TARGET)]))
    assert [each for each in found.all("a", "href") if each.startswith("./")] == [address, address]


def test_endless_messages_are_shortened() -> None:
    found = read(fleet(failed("a", why="x" * 10_000)))
    assert found.table("failed")[0][2] == "x" * 599 + "…"


# ---- the parts ---------------------------------------------------------------------------------------------


def test_bars_stand_on_each_other() -> None:
    columns = [
        BarColumn("a", ("a",), "a", "a", (BarPart("runs", 30), BarPart("stops", 0), BarPart("failed", 10))),
        BarColumn("b", ("b",), "b", "b", (), slots=2.0),
    ]
    made = BarChart("", "", columns, {})
    assert [number for number, _ in made.ticks] == [0, 10, 20, 30, 40]
    first, second = made.bars
    assert [part.kind for part in first.parts] == ["runs", "failed"]
    assert first.parts[0].y + first.parts[0].height == HEIGHT and first.top == first.parts[1].y == 0
    assert first.parts[1].height * 3 == pytest.approx(first.parts[0].height)
    assert (first.x, first.middle, second.middle) == ("4.67%", "16.67%", "66.67%") and not second.parts
    assert [number for number, _ in BarChart("", "", [], {}).ticks] == [0, 1]


def test_releases_are_in_order_of_their_numbers() -> None:
    assert axis(["2.1", "1.12"]) == ["1.12", "1.13", "2.0", "2.1"] and axis([]) == []
    assert axis(["2.9", "3.1"])[-3:] == ["2.14", "2.15", "3.1"]


def test_times_without_a_zone_are_utc() -> None:
    trend = [run_of(0, started=datetime(2026, 1, 2, 3, 4)), run_of(1)]
    assert read(fleet(repository("a"), trend=trend)).table("trend")[0][0] == "2026-01-02 03:04 UTC"
