"""Fixtures and the report about proofs."""

from __future__ import annotations

import pytest
from harness.browser import lacking_for_browser
from harness.summary import HAS_TORCH, Tally, summary

# Tests of the proofs themselves; they import torch at their top.
NEEDS_TORCH = ["test_proof_harness.py"]
NEEDS_BROWSER = ["test_plan_html.py"]
NO_BROWSER = lacking_for_browser()
collect_ignore = [*([] if HAS_TORCH else NEEDS_TORCH), *(NEEDS_BROWSER if NO_BROWSER else [])]
TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proof: a rewrite executed on real torch, counted in the summary")
    without = [*NEEDS_TORCH, "looking up the new names of renames", "the API data against what is installed"]
    config.stash[TALLY] = Tally(left_out=[] if HAS_TORCH else without)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and item.get_closest_marker("proof"):
        tally = item.config.stash[TALLY]
        (tally.proven if report.passed else tally.failed).append(item.name)


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    from torchmigrate.catalogue.problems import CatalogueError

    if NO_BROWSER:
        terminalreporter.section("browser")
        for name in NEEDS_BROWSER:
            tests = (config.rootpath / "tests" / name).read_text("utf-8").count("\ndef test_")
            terminalreporter.write_line(
                f"{', '.join(NO_BROWSER)} not found: {name} was left out, {tests} tests of the page of `plan`"
            )
    terminalreporter.section("proofs")
    try:
        for line in summary(config.stash[TALLY]):
            terminalreporter.write_line(line)
    except CatalogueError as error:  # the tests that load the catalogue have failed, with the details
        terminalreporter.write_line(f"the rules do not load: {error}")
