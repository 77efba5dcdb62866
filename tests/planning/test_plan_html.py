"""The page of an upgrade plan, in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from harness.browser import Page, open_browser
from harness.project import Project
from plan_support import LOAD, RFFT, SCALER, SYMEIG, UGLY, place, write_project

from torchmigrate.planning.compute import make_plan
from torchmigrate.planning.html import as_html
from torchmigrate.planning.links import Links
from torchmigrate.planning.model import EFFECTS, Effort, Place
from torchmigrate.report.bars import HEIGHT
from torchmigrate.versions.releases import NEWEST

pytestmark = pytest.mark.one_python

ROWS = "#places tbody tr:not([hidden])"


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    write_project(tmp_path / "demo")
    return Project(tmp_path / "demo", monkeypatch)


def made(project: Project, *arguments: str) -> Path:
    """The page of the project."""
    project.run("plan", "--ignore", "TM00", "--output-format", "html", "-o", "plan.html", *arguments, code=0)
    return project.path / "plan.html"


def invented(directory: Path) -> Path:
    """A page about six places: what they are is seen in the code."""
    places = [
        place("TM101", path="a.py", row=3, warns="1.9", breaks="2.1", effort=Effort.SAFE, fix_needs="2.0"),
        place("TM101", path="a.py", row=12, warns="1.9", breaks="2.1", effort=Effort.SAFE),
        place("TM102", path="b.py", row=1, changes="2.0", effort=Effort.UNSAFE),
        place("TM103", path="b.py", row=2, warns="1.6"),
        place("TM104", path="b.py", row=9, outdated="1.9", effort=Effort.SAFE),
        place("TM005", path="c.py", row=4, needs="1.10"),
    ]
    return written(directory, places)


def written(directory: Path, places: list[Place]) -> Path:
    plan = make_plan("demo", places, target=(2, 2), minimum=(1, 8), files=3)
    path = directory / "plan.html"
    path.write_text(as_html(plan, Links(None, root=directory, near=directory)), "utf-8")
    return path


def choose(page: Page, name: str, value: str) -> None:
    """Choose in a select, as a person does."""
    page.one(f"#filter-{name} option[value='{value}']").click()


def shown(page: Page) -> list[str]:
    """`file:line` of the rows that are to be seen."""
    return [text.replace("\n", "") for text in page.texts(f"{ROWS} .where")]


# ---- the file ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_needs_nothing_else_and_has_no_errors(page: Page, project: Project, scheme: str) -> None:
    path = made(project)
    page.open(path, scheme=scheme)
    assert {urlsplit(address).scheme for address in page.requests()} == {"file"}
    page.one("#filter-text").send_keys("x")
    page.one("th[data-sort=rule] button").click()
    assert page.messages() == [] and page.requests() == []


def test_requests_would_be_seen_and_refused(page: Page, tmp_path: Path) -> None:
    path = invented(tmp_path)
    text = path.read_text("utf-8").replace("<main>", '<main><img src="http://127.0.0.1:9/x.png">')
    path.write_text(text.replace("<header>", "<header><script>window.hacked = 1</script>"), "utf-8")
    page.open(path)
    assert len([text for text in page.messages() if "Content Security Policy" in text]) == 2
    assert page.run("return window.hacked") is None


def test_source_and_names_are_text(page: Page, project: Project) -> None:
    page.open(made(project, "--title", "<script>window.hacked = 2</script>"))
    assert page.run("return window.hacked") is None and page.run("return document.scripts.length") == 1
    assert page.one("h1").text == "<script>window.hacked = 2</script>"
    assert page.run("return document.title").endswith("<script>window.hacked = 2</script>")
    texts = page.run("return [...document.querySelectorAll('.excerpt')].map((each) => each.textContent)")
    assert any('torch.load("<script>window.hacked = 1</script>&amp;")' in text for text in texts)
    assert f"src/{UGLY}:3" in shown(page) and page.all(".where b") == []


# ---- the chart --------------------------------------------------------------------------------------------


def bars(page: Page) -> dict[str, dict[str, tuple[int, float, float, float]]]:
    """Release -> kind -> places, and what is drawn: height, top and foot in pixels."""
    found = page.run("""
        return [...document.querySelectorAll(".column")].map((column) => [
            column.querySelector(".tick").textContent,
            [...column.querySelectorAll(".bar")].map((bar) => {
                const box = bar.getBoundingClientRect();
                return [bar.dataset.kind, Number(bar.dataset.places), box.height, box.top, box.bottom];
            }),
        ])""")
    return {release: {kind: tuple(numbers) for kind, *numbers in parts} for release, parts in found}


@pytest.mark.parametrize("width", [1200, 390])
def test_bars_are_the_numbers(page: Page, project: Project, width: int) -> None:
    page.open(made(project), width=width)
    arguments = ("plan", "--ignore", "TM00", "--output-format", "json")
    releases = json.loads(project.run(*arguments, code=0).stdout)["releases"]
    drawn = bars(page)
    shown = list(drawn)
    assert shown[-1] == releases[-1]["last"] == NEWEST and shown[0] == releases[0]["first"]
    kinds = ("breaks_on_import", "raises", "may_raise", "changes", "warns")
    one = drawn[NEWEST]["breaks_on_import"][1] / 2  # the height of one place
    assert 10 < one <= HEIGHT
    rows = [
        (release, row)
        for row in releases
        for release in shown[shown.index(row["first"]) : shown.index(row["last"]) + 1]
    ]
    assert [release for release, _ in rows] == shown  # the chart has a column for each
    for release, row in rows:
        parts = drawn[release]
        assert {kind: part[0] for kind, part in parts.items()} == {
            kind: row[kind]["places"] for kind in kinds if row[kind]["places"]
        }
        foot = None
        for places, height, top, bottom in parts.values():
            assert height == pytest.approx(places * one, abs=0.1)
            assert foot is None or bottom == pytest.approx(foot, abs=0.1)  # it stands on the part below
            foot = top


def test_the_chart_in_words(page: Page, tmp_path: Path) -> None:
    page.open(invented(tmp_path))
    plot = page.one(".plot")
    assert plot.get_attribute("role") == "group" and plot.accessible_name.startswith("Places by release")
    text = ". ".join(column.accessible_name for column in page.all(".column[role=img]"))
    assert (
        "torch 1.8 (does not run): 0 breaks on import, 0 raises when reached, 0 may raise,"
        " 0 changes results silently, 1 warns, 1 need a newer release"
    ) in text
    assert (
        "torch 2.0 (runs): 0 breaks on import, 0 raises when reached, 0 may raise, 1 changes results silently"
        in text
    )
    assert (
        "torch 2.2 (does not run): 0 breaks on import, 2 raises when reached, 0 may raise, 1 changes" in text
    )
    assert {kind: part[0] for kind, part in bars(page)["1.8"].items()} == {"lacking": 1, "warns": 1}


def test_ticks_are_round_and_reach_the_top(page: Page, tmp_path: Path) -> None:
    for number in (1, 7, 23, 240):
        page.open(written(tmp_path, [place(row=row + 1, breaks="1.9") for row in range(number)]))
        ticks = [int(text) for text in page.texts(".axis text")]
        assert ticks[0] == 0 and 2 <= len(ticks) <= 7 and ticks[-1] >= number > ticks[-1] - 2 * ticks[1]
        assert str(ticks[1]).rstrip("0") in ("1", "2", "5")


# ---- the tables -------------------------------------------------------------------------------------------


def test_releases(page: Page, tmp_path: Path) -> None:
    page.open(invented(tmp_path))
    rows = [
        [cell.text.split("\n")[0] for cell in row.find_elements("css selector", "th, td")]
        for row in page.all("#releases tbody tr")
    ]
    by_release = {row[0]: row[1:] for row in rows}
    assert by_release["1.8"] == ["1", "", "", "", "", "1", "", "", "1"]
    assert by_release["1.9"] == ["1", "", "", "", "", "3+2", "1", "", "2"]
    assert by_release["2.0"] == ["", "", "", "", "1+1", "3", "2", "1", "1"]
    assert by_release["2.1 to 2.2"] == ["", "", "2+2", "", "1", "1", "2", "1", "1"]
    assert page.one(".headline").text == (
        "Works unchanged on torch 1.10 to 2.0 (based on 3 files); 1 place needs a newer release than 1.8;"
        " torch 2.1 breaks 2 places; 1 place silently changes its results on 2.2."
    )


def test_filters(page: Page, tmp_path: Path) -> None:
    page.open(invented(tmp_path))
    every = ["c.py:4", "a.py:3", "a.py:12", "b.py:1", "b.py:2", "b.py:9"]  # the worst first
    assert shown(page) == every and page.one("#count").text == "6 of 6 places"

    def after(**chosen: str) -> list[str]:
        page.one("#controls button").click()
        for name, value in chosen.items():
            if name == "text":
                page.one("#filter-text").send_keys(value)
            else:
                choose(page, name, value)
        found = shown(page)
        assert page.one("#count").text == f"{len(found)} of 6 places"
        return found

    assert after(text="TM101") == ["a.py:3", "a.py:12"]
    assert after(text="ROW 12") == ["a.py:12"]
    assert after(text="a.py old") == ["a.py:3", "a.py:12"]  # in the excerpt
    assert after(effect="raises") == ["a.py:3", "a.py:12"]
    assert after(effect="lacking") == ["c.py:4"]
    assert after(rule="TM103") == ["b.py:2"]
    assert after(effort="safe") == ["a.py:3", "a.py:12", "b.py:9"]
    assert after(effort="safe", effect="outdated") == ["b.py:9"]
    assert after(release="0") == ["c.py:4", "b.py:2"]  # 1.8
    assert page.texts(f"{ROWS} td.effect") == ["Needs newer\n1.10", "Warns\nbefore 1.8"]
    assert after(release="1") == ["c.py:4", "a.py:3", "a.py:12", "b.py:2", "b.py:9"]
    assert after(release="1", effort="safe") == ["a.py:12", "b.py:9"]  # what 2.0 needs is not there yet
    assert after(release="1", effect="warns") == ["a.py:3", "a.py:12", "b.py:2"]
    assert page.texts(f"{ROWS} td.effect")[0] == "Warns\nsince 1.9"
    assert page.texts(f"{ROWS} td.effort") == ["By hand", "Safe fix", "By hand"]
    assert after(text="nothing like this") == [] and page.one("#none").is_displayed()
    assert after() == every and page.texts(f"{ROWS} td.effect")[:2] == [
        "Needs newer\n1.10",
        "Raises when reached\nsince 2.1",
    ]
    assert page.messages() == []


def test_what_is_shown_of_a_release_is_what_was_counted(page: Page, project: Project) -> None:
    path = made(project)
    arguments = ("plan", "--ignore", "TM00", "--output-format", "json")
    releases = json.loads(project.run(*arguments, code=0).stdout)["releases"]
    page.open(path)
    numbers = [row.get_attribute("data-release") for row in page.all("#releases tbody tr")]
    assert len(numbers) == len(releases)
    for number, row in zip(numbers, releases, strict=True):
        choose(page, "release", number)
        names = [text.split("\n")[0] for text in page.texts(f"{ROWS} td.effect")]
        for effect in EFFECTS:
            assert names.count(effect.words) == row[effect.label]["places"]


def test_the_chart_and_the_releases_choose(page: Page, tmp_path: Path) -> None:
    page.open(invented(tmp_path))
    page.one("#releases tr[data-release='0']").click()
    assert shown(page) == ["c.py:4", "b.py:2"] and len(page.all(".chosen")) == 2
    page.run("document.querySelectorAll('.column')[0].dispatchEvent(new Event('click'))")
    assert len(shown(page)) == 6 and page.all(".chosen") == []


def test_sorting(page: Page, tmp_path: Path) -> None:
    page.open(invented(tmp_path))
    orders = {}
    assert page.one("th[aria-sort]").get_attribute("data-sort") == "effect"
    for name in ("rule", "effect", "effort", "order"):
        head = page.one(f"th[data-sort={name}]")
        for direction in ("ascending", "descending"):
            head.find_element("css selector", "button").click()
            assert head.get_attribute("aria-sort") == direction and len(page.all("th[aria-sort]")) == 1
            orders[name, direction] = shown(page)
    a3, a12, b1, b2, b9, c4 = "a.py:3", "a.py:12", "b.py:1", "b.py:2", "b.py:9", "c.py:4"
    assert orders["rule", "ascending"] == [c4, a3, a12, b1, b2, b9]
    assert orders["rule", "descending"] == [b9, b2, b1, a3, a12, c4]
    assert orders["effect", "ascending"] == [c4, a3, a12, b1, b2, b9]
    assert orders["effort", "ascending"] == [a3, a12, b9, b1, b2, c4]
    assert orders["order", "ascending"] == [a3, a12, b1, b2, b9, c4]
    assert orders["order", "descending"] == [c4, b9, b2, b1, a12, a3]
    page.one("th[data-sort=rule] button").click()
    choose(page, "effort", "safe")
    assert shown(page) == [a3, a12, b9]


def test_excerpts_open(page: Page, project: Project) -> None:
    page.open(made(project))
    page.one("#filter-text").send_keys(SYMEIG)
    row = page.one(ROWS)
    excerpt = row.find_element("css selector", ".excerpt")
    assert not excerpt.is_displayed()
    row.find_element("css selector", "summary").click()
    assert excerpt.is_displayed()
    assert row.find_element("css selector", "mark").text == "torch.symeig"
    assert excerpt.text.splitlines() == [
        "2",
        "3scaler = torch.cuda.amp.GradScaler()",
        "4values, vectors = torch.symeig(a, eigenvectors=True)",
        '5state = torch.load("<script>window.hacked = 1</script>&amp;")',
    ]
    assert "Unsafe fix: Replace with torch.linalg.eigh (needs torch 1.8" in row.text


def test_links_lead_to_the_source(page: Page, project: Project) -> None:
    path = made(project)
    (project.path / "out").mkdir()
    moved = made(project, "-o", "out/plan.html").parent / "out" / "plan.html"
    for opened in (path, moved):
        page.open(opened)
        found = {}
        for row in page.all(ROWS):
            address = urlsplit(row.find_element("css selector", ".where a").get_attribute("href"))
            found[row.get_attribute("data-rule")] = Path(unquote(address.path)), address.fragment
        source = project.path / "src"
        assert found == {
            SCALER: (source / "train.py", "L3"),
            SYMEIG: (source / "train.py", "L4"),
            LOAD: (source / "train.py", "L5"),
            RFFT: (source / UGLY, "L3"),
        }
    page.one("tr[data-rule=TM151] .where a").click()
    assert "torch.rfft(x, 4)" in page.run("return document.body.textContent")


def test_links_by_template(page: Page, project: Project) -> None:
    page.open(made(project, "--link-template", "https://host.example/o/r/blob/main/{path}#L{line}"))
    address = page.one("tr[data-rule=TM100] .where a").get_attribute("href")
    assert address == "https://host.example/o/r/blob/main/src/train.py#L4"
    address = page.one("tr[data-rule=TM151] .where a").get_attribute("href")
    assert address == "https://host.example/o/r/blob/main/src/a%20%3Cb%3E%231%2520%27%22%26.py#L3"


# ---- how it looks -----------------------------------------------------------------------------------------

OUTSIDE = """
    return [...document.querySelectorAll("body *")]
        .filter((each) => !each.closest(".excerpt, .unseen, title, desc, option"))
        .filter((each) => each.getBoundingClientRect().right > innerWidth + 0.5)
        .map((each) => `${each.tagName}.${each.className} ${each.textContent.trim().slice(0, 40)}`)
"""


@pytest.mark.parametrize("width", [320, 390, 800, 1200])
def test_nothing_overflows(page: Page, tmp_path: Path, width: int) -> None:
    long = "a_very_long_directory_name/" * 6 + "x" * 80 + ".py"
    places = [place(path=long, row=123456, breaks="2.0")]
    places += [place(row=row + 1, warns="1.9", needs="1.9") for row in range(250)]
    page.open(written(tmp_path, places), width=width)
    page.run("for (const each of [...document.querySelectorAll('details')].slice(0, 5)) each.open = true")
    assert page.run("return document.documentElement.scrollWidth") <= width
    assert page.run(OUTSIDE) == []


def test_long_lines_scroll_where_they_are(page: Page, project: Project) -> None:
    project.write("long.py", f"import torch\nx = torch.rfft({' + '.join(['some_name'] * 200)}, 2)\n")
    page.open(made(project), width=390)
    page.run("for (const each of document.querySelectorAll('details')) each.open = true")
    assert page.run("return document.documentElement.scrollWidth") == 390
    widths = page.run(
        "return [...document.querySelectorAll('.excerpt')].map((each) => [each.scrollWidth, each.clientWidth])"
    )
    assert max(inner for inner, _ in widths) > 900 and max(outer for _, outer in widths) < 390


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.1) of `rgb(1, 2, 3)`."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_colours_can_be_read(page: Page, tmp_path: Path, scheme: str, dark: bool) -> None:
    page.open(invented(tmp_path), scheme=scheme)
    script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"

    def colour(selector: str, what: str = "color") -> Any:
        return page.run(script, selector, what)

    behind, panel = colour("body", "backgroundColor"), colour(".tile", "backgroundColor")
    assert (luminance(behind) < 0.05) is dark
    for selector in ("body", ".where a", ".kicker", "thead th", ".since", "footer p"):
        assert contrast(colour(selector), behind) >= 4.5, selector
    for selector in (".tile .efforts", ".controls label", ".count"):
        assert contrast(colour(selector), panel) >= 4.5, selector
    assert contrast(colour("mark"), colour("mark", "backgroundColor")) >= 4.5
    assert contrast(colour(".chart .total", "fill"), behind) >= 4.5
    for kind in ("raises", "changes", "warns", "lacking"):  # what is drawn needs less
        assert contrast(colour(f".bar.{kind}", "fill"), behind) >= 2.5, kind


def test_on_paper(page: Page, tmp_path: Path) -> None:
    page.open(invented(tmp_path), scheme="dark", media="print")
    assert not page.one("#controls").is_displayed() and len(shown(page)) == 6
    assert page.run("return getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
