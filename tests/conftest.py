"""What is tested, what is left out, and the report about proofs."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
from collections.abc import Generator
from pathlib import Path

# Before anything imports torch: pytest-xdist has a process for each processor, and threads of torch that wait for
# each other in all of them take several times as long as one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from harness.browser import lacking_for_browser
from harness.real_editors import lacking_editors
from harness.shells import lacking_shells
from harness.summary import HAS_TORCH, Tally, summary

import torchmigrate

NO_BROWSER = lacking_for_browser()
TESTS = Path(__file__).parent
NO_MKDOCS = [name for name in ("mkdocs", "material") if importlib.util.find_spec(name) is None]
# Modules with tests of pages in a browser, and those of the built documentation.
NEEDS_BROWSER = [
    "planning/test_plan_html.py",
    "fleet/test_page_in_browser.py",
    "installed/test_site_in_browser.py",
]
NEEDS_MKDOCS = ["installed/test_site.py", "installed/test_site_in_browser.py"]
# Modules that cannot be imported without torch.
NEEDS_TORCH = sorted(
    path.relative_to(TESTS).as_posix()
    for path in TESTS.glob("*/test_*.py")
    if re.search(
        r"^(import torch|from (torch|proofs\.\w+|apex_fake) import .*)$", path.read_text("utf-8"), re.M
    )
)
LONG = ("upgrade", "fleet", "authoring")
# What `pytest -m quick` looks into, without files that need torch or start processes.
QUICK = (
    "authoring/test_examples.py",
    "baseline/",
    "catalogue/",
    "codemods/",
    "config/",
    "engine/",
    "match/",
    "report/",
    "rewrite/",
    "semantics/",
    "source/",
    "versions/",
)
SLOW = re.compile(r"^(import subprocess|from harness\.launcher import .*)$|\bHAS_TORCH\b|\.start\(\"", re.M)
collect_ignore = [
    *([] if HAS_TORCH else NEEDS_TORCH),
    *(NEEDS_BROWSER if NO_BROWSER else []),
    *(NEEDS_MKDOCS if NO_MKDOCS else []),
]
TALLY = Tally(
    left_out=[]
    if HAS_TORCH
    else [*NEEDS_TORCH, "looking up the new names of renames", "the API data against what is installed"]
)
SOURCES = Path(__file__).parents[1] / "src"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proof: a rewrite executed on real torch, counted in the summary")
    config.addinivalue_line(
        "markers",
        "one_python: the subject is not Python (a page in a browser, a workflow, a release, recorded facts), so that"
        " .ci/run runs it on one Python only",
    )
    config.addinivalue_line(
        "markers",
        "quick: of a module that needs neither torch nor processes of its own; all of them take less than a minute",
    )
    # Else a run for the wheel could test the checkout without a word.
    if os.environ.get("TORCHMIGRATE_TEST_INSTALLED") and _is_checkout():
        pytest.exit(f"the tests of the installed program got {torchmigrate.__file__}", returncode=1)
    # Wherever pytest is started: the path of a text that is checked says whether that is a test.
    os.chdir(TESTS.parent)


def is_quick(path: Path) -> bool:
    name = path.relative_to(TESTS).as_posix()
    return name.startswith(QUICK) and name not in NEEDS_TORCH and not SLOW.search(path.read_text("utf-8"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what `-m quick` would deselect: to import all modules takes a quarter of its minute."""
    if config.option.markexpr != "quick" or collection_path.suffix != ".py":
        return None
    return None if is_quick(collection_path) else True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Do not look for garbage among what stays until the end: modules, rules and the tests themselves.

    Nor look for it often: that takes a fifth of the time of most tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    module = pytest.Module.from_parent(parent, path=module_path)
    if is_quick(module_path):
        module.add_marker("quick")
    return module


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take minutes: what is long must not come last, when one process is left."""
    items.sort(key=lambda item: item.path.parent.name not in LONG)  # stable


def pytest_report_header() -> str:
    return f"torchmigrate: {'the checkout' if _is_checkout() else 'installed'}, {torchmigrate.__file__}"


def _is_checkout() -> bool:
    return SOURCES in Path(torchmigrate.__file__).parents


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and "proof" in report.keywords:
        (TALLY.proven if report.passed else TALLY.failed).append(report.nodeid)


def pytest_terminal_summary(terminalreporter) -> None:
    from torchmigrate.catalogue.problems import CatalogueError

    for title, lacking, names in (
        ("browser", NO_BROWSER, NEEDS_BROWSER),
        ("documentation", NO_MKDOCS, NEEDS_MKDOCS),
    ):
        if lacking:
            terminalreporter.section(title)
        for name in names if lacking else ():
            tests = (TESTS / name).read_text("utf-8").count("\ndef test_")
            terminalreporter.write_line(f"{', '.join(lacking)} not found: {name} was left out, {tests} tests")
    if lacking_shells():
        terminalreporter.section("shells")
        terminalreporter.write_line(
            f"{', '.join(lacking_shells())} not found: the tests of completion there were left out"
        )
    if lacking_editors():
        terminalreporter.section("editors")
    for why in lacking_editors():
        terminalreporter.write_line(f"{why}: the tests of the server in it were left out")
    terminalreporter.section("proofs")
    try:
        for line in summary(TALLY):
            terminalreporter.write_line(line)
    except CatalogueError as error:  # the tests that load the catalogue have failed, with the details
        terminalreporter.write_line(f"the rules do not load: {error}")
