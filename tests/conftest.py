"""What is tested, what is left out, and the report about proofs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from harness.browser import lacking_for_browser
from harness.shells import lacking_shells
from harness.summary import HAS_TORCH, Tally, summary

import torchmigrate

NO_BROWSER = lacking_for_browser()
TESTS = Path(__file__).parent
NEEDS_BROWSER = ["planning/test_plan_html.py"]
# Modules that cannot be imported without torch.
NEEDS_TORCH = sorted(
    path.relative_to(TESTS).as_posix()
    for path in TESTS.glob("*/test_*.py")
    if re.search(
        r"^(import torch|from (torch|proofs\.\w+|apex_fake) import .*)$", path.read_text("utf-8"), re.M
    )
)
collect_ignore = [*([] if HAS_TORCH else NEEDS_TORCH), *(NEEDS_BROWSER if NO_BROWSER else [])]
TALLY = Tally(
    left_out=[]
    if HAS_TORCH
    else [*NEEDS_TORCH, "looking up the new names of renames", "the API data against what is installed"]
)
SOURCES = Path(__file__).parents[1] / "src"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proof: a rewrite executed on real torch, counted in the summary")
    # Else a run for the wheel could test the checkout without a word.
    if os.environ.get("TORCHMIGRATE_TEST_INSTALLED") and _is_checkout():
        pytest.exit(f"the tests of the installed program got {torchmigrate.__file__}", returncode=1)


def pytest_report_header() -> str:
    return f"torchmigrate: {'the checkout' if _is_checkout() else 'installed'}, {torchmigrate.__file__}"


def _is_checkout() -> bool:
    return SOURCES in Path(torchmigrate.__file__).parents


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and "proof" in report.keywords:
        (TALLY.proven if report.passed else TALLY.failed).append(report.nodeid)


def pytest_terminal_summary(terminalreporter) -> None:
    from torchmigrate.catalogue.problems import CatalogueError

    if NO_BROWSER:
        terminalreporter.section("browser")
        for name in NEEDS_BROWSER:
            tests = (TESTS / name).read_text("utf-8").count("\ndef test_")
            terminalreporter.write_line(
                f"{', '.join(NO_BROWSER)} not found: {name} was left out, {tests} tests of the page of `plan`"
            )
    if lacking_shells():
        terminalreporter.section("shells")
        terminalreporter.write_line(
            f"{', '.join(lacking_shells())} not found: the tests of completion there were left out"
        )
    terminalreporter.section("proofs")
    try:
        for line in summary(TALLY):
            terminalreporter.write_line(line)
    except CatalogueError as error:  # the tests that load the catalogue have failed, with the details
        terminalreporter.write_line(f"the rules do not load: {error}")
