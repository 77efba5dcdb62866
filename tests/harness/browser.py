"""A headless Chromium, for the tests of pages. Nothing is downloaded: it has to be installed."""

from __future__ import annotations

import base64
import importlib.util
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Seconds until a page or a script that hangs is an error; far more than either takes on a busy machine.
_PATIENCE = 180
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-extensions --force-color-profile=srgb"
)


def lacking_for_browser() -> list[str]:
    """What is not installed of what a test in a browser needs."""
    lacking = [] if any(map(shutil.which, _PROGRAMS)) else ["chromium"]
    if shutil.which("chromedriver") is None:
        lacking.append("chromedriver")
    if importlib.util.find_spec("selenium") is None:
        lacking.append("selenium")
    return lacking


class Page:
    """A page in the browser, and what it did since it was opened."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(
        self,
        page: Path | str,
        *,
        width: int = 1200,
        height: int = 900,
        scheme: str = "light",
        media: str = "",
    ) -> None:
        """Open a file or an address in a window of CSS pixels, in the colour scheme "light" or "dark"."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [feature]})
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)  # of the page before
        self.driver.get(page if isinstance(page, str) else page.as_uri())

    def run(self, script: str, *arguments: object) -> Any:
        """The result of JavaScript, the body of a function; arguments are in `arguments`."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[Any]:
        """The elements that a CSS selector finds."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        """The only one."""
        (found,) = self.all(selector)
        return found

    def texts(self, selector: str) -> list[str]:
        """What is to be read in them; nothing in those that are hidden."""
        return [element.text for element in self.all(selector)]

    def picture(self, *, height: int) -> bytes:
        """A PNG of the upper part of the window. height: in CSS pixels."""
        width = self.run("return window.innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
        return base64.b64decode(taken["data"])

    def messages(self) -> list[str]:
        """What the console got: errors of scripts, what the page's policy refused."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Every address that was asked for."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found


@contextmanager
def open_browser(profile: Path) -> Iterator[Page]:
    """Start Chromium with an empty directory as its profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = next(path for path in map(shutil.which, _PROGRAMS) if path is not None)
    for flag in (*_FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(_PATIENCE)
    driver.set_script_timeout(_PATIENCE)
    try:
        yield Page(driver)
    finally:
        driver.quit()
