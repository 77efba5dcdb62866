"""The page of a fleet of 1,000 repositories, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet_page_support import blocked, failed, fleet, large_fleet, release, repository, run_of
from harness.browser import Page, open_browser

from torchmigrate.fleet.page import as_html

pytestmark = pytest.mark.one_python

NUMBER = 1000
VISIBLE = """
    return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]
        .filter((row) => row.getClientRects().length)
        .map((row) => row.cells[arguments[1]].textContent.trim())
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "index.html"
    path.write_text(as_html(large_fleet(NUMBER)), "utf-8")
    return path


def written(directory: Path, *repositories: dict[str, Any], **parts: Any) -> Path:
    path = directory / "index.html"
    path.write_text(as_html(fleet(*repositories, **parts)), "utf-8")
    return path


def shown(page: Page, table: str = "repositories", column: int = 0) -> list[str]:
    """The texts of a column in the rows that are to be seen."""
    found: list[str] = page.run(VISIBLE, table, column)
    return found


def choose(page: Page, name: str, text: str) -> None:
    """Choose in a select, as a person does."""
    (option,) = [each for each in page.all(f"#filter-{name} option") if each.text == text]
    option.click()


def keys(page: Page, *names: str) -> None:
    """Press keys where the focus is."""
    from selenium.webdriver.common.keys import Keys

    for name in names:
        page.driver.switch_to.active_element.send_keys(getattr(Keys, name))


def test_filters(page: Page, file: Path, record_property: Callable[[str, object], None]) -> None:
    page.open(file)
    seconds = page.run("""
        const field = document.getElementById("filter-text");
        const begin = performance.now();
        for (const text of ["v", "vi", "vis", "visi", ""]) {
            field.value = text;
            field.dispatchEvent(new Event("input", { bubbles: true }));
            document.body.getBoundingClientRect();
        }
        return (performance.now() - begin) / 5000""")
    record_property("seconds that a filter takes", seconds)  # told, not judged
    every, mapped = shown(page), shown(page, "map")
    assert len(every) == NUMBER and page.one("#count").text == "1,000 of 1,000 repositories"
    choose(page, "owner", "team-ads")
    choose(page, "status", "Does not run")
    number = len(shown(page))
    assert set(shown(page, column=1)) == {"team-ads"} and 0 < number < NUMBER
    assert all(text.startswith("Does not run") for text in shown(page, column=2))
    assert page.one("#count").text == f"{number} of 1,000 repositories" and len(shown(page, "map")) == number
    page.one("#filter-text").send_keys("BENCH  train")
    assert 0 < len(shown(page)) < number and all("bench" in text and "train" in text for text in shown(page))
    page.one("#filter-text").send_keys(" no such text")
    assert shown(page) == shown(page, "map") == [] and page.one("#none").is_displayed()
    page.one("#controls button").click()
    assert shown(page) == every and shown(page, "map") == mapped and not page.one("#none").is_displayed()
    choose(page, "release", "none")
    assert set(shown(page, column=3)) == {"none"}
    assert page.messages() == []


def test_bars_and_owners_filter(page: Page, file: Path) -> None:
    page.open(file)
    bars = {bar.get_attribute("data-key"): bar for bar in page.all("[data-filter] .column")}
    numbers = page.run("""
        const found = {};
        for (const bar of document.querySelectorAll("[data-filter] .column")) {
            const of = `#repositories tr[data-release="${bar.dataset.key}"]`;
            found[bar.getAttribute("aria-label")] = document.querySelectorAll(of).length;
        }
        return found""")
    assert sum(numbers.values()) == NUMBER and len(numbers) == len(bars) == 31
    assert all(int(title.split(": ")[1].split()[0]) == number for title, number in numbers.items())
    bars["2.5"].click()
    assert page.one("#filter-release").get_attribute("value") == "2.5"
    assert all(text.endswith("2.5") for text in shown(page, column=3))
    assert bars["2.5"].accessible_name == f"Up to torch 2.5: {len(shown(page))} repositories"
    assert [each.get_attribute("data-key") for each in page.all("[aria-pressed=true]")] == ["2.5"]
    bars["failed"].click()
    assert all(text.startswith("Not examined") for text in shown(page, column=2)) and shown(page, "map") == []
    bars["failed"].click()
    assert len(shown(page)) == NUMBER and page.all("[aria-pressed=true]") == []
    (button,) = [each for each in page.all("#owners tbody button") if each.text == "team-infra"]
    button.click()
    assert set(shown(page, column=1)) == {"team-infra"}


def test_keys_do_what_the_pointer_does(page: Page, file: Path) -> None:
    page.open(file)
    page.run("document.querySelector('[data-filter] [data-key=torchless]').focus()")
    keys(page, "ENTER")
    assert set(shown(page, column=2)) == {"No torch"}
    keys(page, "SPACE", "TAB")
    assert len(shown(page)) == NUMBER
    assert page.driver.switch_to.active_element.get_attribute("data-key") == "failed"
    keys(page, "TAB")
    assert page.driver.switch_to.active_element.get_attribute("id") == "filter-text"
    page.run("document.querySelector('#repositories thead th').querySelector('button').focus()")
    keys(page, "ENTER")
    assert shown(page) == sorted(shown(page))
    assert page.run("return [...document.querySelectorAll('.scroll')].every((each) => each.tabIndex === 0)")
    assert page.messages() == []


def test_sorting(page: Page, file: Path) -> None:
    page.open(file)
    order = shown(page)
    heads = {head.text.strip(" ↑↓"): head for head in page.all("#repositories thead th")}

    def after(name: str, column: int) -> tuple[str, list[str]]:
        heads[name].find_element("css selector", "button").click()
        assert len(page.all("#repositories th[aria-sort]")) == 1
        return heads[name].get_attribute("aria-sort"), shown(page, column=column)

    direction, found = after("By hand", 6)
    numbers = [int(text) if text else -1 for text in found]
    assert direction == "descending" and numbers == sorted(numbers, reverse=True)
    direction, found = after("By hand", 6)
    assert direction == "ascending" and [int(text) if text else -1 for text in found] == numbers[::-1]
    direction, found = after("Runs on", 3)
    lasts = [tuple(map(int, text.split()[-1].split("."))) for text in found if text not in ("", "none")]
    assert direction == "descending" and lasts == sorted(lasts, reverse=True) and lasts[-1] < (1, 9)
    assert found[len(lasts) :] == sorted(found[len(lasts) :], reverse=True)
    direction, found = after("Owner", 1)
    assert direction == "ascending" and found == sorted(found)
    choose(page, "status", "Runs")
    running = set(shown(page))
    # What is hidden stays hidden.
    assert after("On torch 2.13", 0)[1] == [each for each in order if each in running]
    heads = {head.text.strip(" ↑↓"): head for head in page.all("#rules thead th")}
    heads["Places"].find_element("css selector", "button").click()
    places = [int(text.replace(",", "")) for text in shown(page, "rules", 2)]
    assert places == sorted(places, reverse=True)


def test_a_cell_of_the_map_says_what_it_is(page: Page, tmp_path: Path) -> None:
    rows = [release("a", each, raises=3) for each in ("2.11", "2.12")] + [
        release("a", "2.13", raises=3, breaks_on_import=1)
    ]
    page.open(written(tmp_path, blocked("a"), releases=[release("a", "2.10"), *rows]))
    page.run(
        "for (const each of document.querySelectorAll('#map td')) each.dispatchEvent(new Event('pointerover', { bubbles: true }))"
    )
    assert [each.get_attribute("title") for each in page.all("#map td")] == [
        "a, torch 2.10: runs",
        "a, torch 2.11 to 2.12: 3 raise",
        "a, torch 2.13: 1 breaks on import",
    ]


def test_the_map_shows_the_newest_releases_first(page: Page, file: Path) -> None:
    page.open(file, width=390)
    box, cell = page.run("""
        const heads = document.getElementById("map").tHead.rows[0].cells;
        const of = (each) => [each.getBoundingClientRect().left, each.getBoundingClientRect().right];
        return [of(document.getElementById("map").parentNode), of(heads[heads.length - 1])]""")
    assert box[0] < cell[0] and cell[1] <= box[1]


def test_plans_open(page: Page, tmp_path: Path) -> None:
    path = written(tmp_path, repository("a/b c#"))
    (tmp_path / "plans" / "a").mkdir(parents=True)
    (tmp_path / "plans" / "a" / "b c#.html").write_text("the plan", "utf-8")
    page.open(path)
    page.one("#repositories tbody th > a").click()
    assert page.run("return document.body.textContent") == "the plan"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_asks_for_nothing_and_has_no_errors(page: Page, tmp_path: Path, scheme: str) -> None:
    bad = "<script>window.hacked = 1</script>"
    path = written(tmp_path, blocked(bad, owner=bad, address=bad), failed("x", bad, bad))
    page.open(path, scheme=scheme)
    assert page.requests() == [path.as_uri()] and page.messages() == []
    assert page.run("return [window.hacked, document.scripts.length]") == [None, 1]
    assert shown(page)[0].startswith(bad)


@pytest.mark.parametrize("width", [320, 390, 800, 1200])
def test_nothing_overflows(page: Page, tmp_path: Path, width: int) -> None:
    long = "a" * 90
    trend = [run_of(number) for number in range(70)]
    many = [
        blocked(long, owner=long, address="https://host.example/" + "b" * 200),
        failed("f", why="c" * 500),
        repository("r"),
    ]
    rows = [release(long, f"2.{number}", raises=10**number) for number in range(14)]
    page.open(written(tmp_path, *many, releases=rows, trend=trend), width=width)
    page.run("document.querySelector('details').open = true")
    assert page.run("return document.documentElement.scrollWidth") <= width


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.1) of `rgb(1, 2, 3)`."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read(page: Page, tmp_path: Path, scheme: str) -> None:
    path = tmp_path / "index.html"
    path.write_text(as_html(large_fleet(90)), "utf-8")
    page.open(path, scheme=scheme)
    found = page.run("""
        const behind = (each) => {
            const colour = getComputedStyle(each).backgroundColor;
            return colour === "rgba(0, 0, 0, 0)" && each.parentElement ? behind(each.parentElement) : colour;
        };
        const kinds = new Map();
        for (const each of document.querySelectorAll("td, th, th button, a, p, small, .key, .chip, label, h2, li, summary")) {
            const name = `${each.closest("table")?.id} ${each.tagName} ${each.className}`;
            if (!kinds.has(name)) kinds.set(name, [name, getComputedStyle(each).color, behind(each)]);
        }
        return [...kinds.values()]""")
    assert len(found) > 40
    contrasts = {}
    for name, *colours in found:
        darker, lighter = sorted(map(luminance, colours))
        contrasts[name] = (lighter + 0.05) / (darker + 0.05)
    assert {name: contrast for name, contrast in contrasts.items() if contrast < 4.5} == {}


def test_on_paper(page: Page, tmp_path: Path) -> None:
    many = [blocked(f"r{number}") for number in range(60)]
    page.open(written(tmp_path, *many), scheme="dark", media="print")
    assert not page.one("#controls").is_displayed() and not page.one(".sections").is_displayed()
    box, inner = page.run(
        "const box = document.querySelector('.scroll'); return [box.clientHeight, box.scrollHeight]"
    )
    assert box == inner > 1500
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_without_scripts_all_is_there(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(re.sub(r"<script>.*</script>", "", as_html(large_fleet(90)), flags=re.S), "utf-8")
    page.open(path)
    assert len(shown(page)) == 90 and 60 < len(shown(page, "map")) < 90
    assert not page.one("#controls").is_displayed() and not page.all(".live-only")[0].is_displayed()
