"""The pages of the documentation in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.browser import Page, open_browser
from harness.site import built_site

PAGES = (
    "index.html",
    "rules/index.html",
    "rules/TM100/index.html",
    "which-rules/index.html",
    "plan/index.html",
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
