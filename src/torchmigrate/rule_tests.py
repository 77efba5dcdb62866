"""`test-rules`: the examples in rule files, run."""

from __future__ import annotations

from pathlib import Path

from torchmigrate.catalogue.check_examples import check_examples
from torchmigrate.catalogue.model import Catalogue
from torchmigrate.catalogue.problems import CatalogueError
from torchmigrate.catalogue.store import load_with_examples
from torchmigrate.console import Console
from torchmigrate.report.summary import plural


def test_directory(directory: Path, console: Console) -> int:
    """Run every example below a directory (or in a file); 0: all hold, 1: some don't, 2: cannot load."""
    try:
        loaded = load_with_examples([directory])
    except CatalogueError as error:
        for line in str(error).splitlines():
            console.error(line)
        return 2
    failures = check_examples(loaded, Catalogue.of(item.rule for item in loaded))
    for failure in failures:
        console.out(f"{failure}\n")
    examples = plural(sum(len(item.examples) for item in loaded), "example")
    failed = len({(failure.path, failure.line) for failure in failures})
    verdict = f"{failed} failed" if failed else "all hold"
    console.note(f"{examples} of {plural(len(loaded), 'rule')}: {verdict}.")
    return 1 if failures else 0
