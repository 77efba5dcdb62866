"""The pages of the documentation in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from harness.browser import Page, open_browser
from harness.site import built_site

PAGES = (
    "index.html",
    "rules/index.html",
    "rules/TM100/index.html",
    "which-rules/index.html",
    "plan/index.html",
    "upgrade/index.html",
    "fleet/index.html",
    "output/index.html",
    "comparison/index.html",
    "develop/architecture/index.html",
    "reference/cli/index.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone_in_both_colour_schemes(
    site: Path, browser: Page, name: str, scheme: str
) -> None:
    browser.open(site / name, width=390, scheme=scheme)
    assert browser.run("return document.documentElement.scrollWidth") == 390
    wanted = {"light": "default", "dark": "slate"}[scheme]
    assert browser.run("return document.body.dataset.mdColorScheme") == wanted
    assert [address for address in browser.requests() if address.startswith("http")] == []


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """The address of the site on a local server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.mark.parametrize(
    ("words", "page"), [("symeig", "rules/TM100/"), ("baseline", "baseline/"), ("from 1.13", "upgrading/")]
)
def test_search_needs_no_other_server(browser: Page, served: str, words: str, page: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.open(served, width=1400)
    browser.one(".md-search__input").click()
    browser.driver.switch_to.active_element.send_keys(words)
    WebDriverWait(browser.driver, 60).until(
        lambda _: any(
            link.get_attribute("href").startswith(served + page) and link.is_displayed()
            for link in browser.all(".md-search-result__link")
        )
    )
    assert [address for address in browser.requests() if not address.startswith((served, "data:"))] == []
    assert browser.messages() == []


def test_the_index_of_rules_can_be_filtered(site: Path, browser: Page) -> None:
    def shown() -> list[str]:
        return [code for code in browser.texts("tbody tr td:first-child") if code]

    browser.open(site / "rules" / "index.html")
    every = shown()
    assert len(every) > 600 and browser.one(".rule-filter output").text == f"{len(every)} rules"
    browser.one(".rule-filter input").send_keys("Symeig removed")
    assert shown() == ["TM100"]
    assert [title for title in browser.texts(".rule-topic") if title] == [
        "TM1: Maths, linear algebra and FFT"
    ]
    browser.one(".rule-filter input").clear()
    browser.run(
        "const select = document.querySelector('.rule-filter select');"
        "select.value = 'torchaudio'; select.dispatchEvent(new Event('input'))"
    )
    assert shown() and all(code.startswith("TM8") for code in shown())
    assert browser.one(".rule-filter output").text == f"{len(shown())} of {len(every)} rules"
