"""`test-rules`: the examples in rule files, run."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from torchmigrate.catalogue.model import Catalogue, Rule
from torchmigrate.config import Settings
from torchmigrate.engine import Engine
from torchmigrate.model import Applicability, FileResult
from torchmigrate.report.summary import plural
from torchmigrate.source import Source
from torchmigrate.versions.releases import NEWEST

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example
    from torchmigrate.console import Console

_NAME = Path("example.py")


def test_directory(directory: Path, console: Console) -> int:
    """Run every example below a directory (or in a file); 0: all hold, 1: some don't, 2: cannot load."""
    from torchmigrate.catalogue.problems import CatalogueError
    from torchmigrate.catalogue.store import load_user_rules

    try:
        loaded = load_user_rules([directory])
    except CatalogueError as error:
        for line in str(error).splitlines():
            console.error(line)
        return 2
    run = failures = 0
    for rule, examples in loaded:
        for example in examples:
            run += 1
            fault = check_example(rule, example)
            if fault is not None:
                failures += 1
                console.out(f"{rule.path}:{example.line}: {rule.code} {rule.name}: {fault}\n")
    verdict = f"{failures} failed" if failures else "all hold"
    console.note(f"{plural(run, 'example')} of {plural(len(loaded), 'rule')}: {verdict}.")
    return 1 if failures else 0


def check_example(rule: Rule, example: Example) -> str | None:
    """What is wrong with an example of a rule; None if it holds."""
    found = _run(rule, example, example.before, fix=False)
    if found.problems:
        return f"the code is not understood: {found.problems[0].reason}"
    if example.kind == "clean":
        if found.findings:
            return f"found in an example that must be clean: {found.findings[0].message}"
        return None
    if not found.findings:
        return "not found"
    if example.kind == "report-only":
        fixes = [finding.fix for finding in found.findings if finding.fix is not None]
        if any(fix.applicability > Applicability.DISPLAY for fix in fixes):
            return "fixed in an example that must only be reported"
        return None
    fixed = _run(rule, example, example.before, fix=True)
    if fixed.problems:
        return f"the fix fails: {fixed.problems[0].reason}"
    text = fixed.new_text if fixed.new_text is not None else example.before
    if text != example.after:
        diff = difflib.unified_diff(
            (example.after or "").splitlines(), text.splitlines(), "expected", "fixed", lineterm=""
        )
        return "the fixed text is another one\n" + "\n".join(f"    {line}" for line in diff)
    left = _run(rule, example, text, fix=False).findings
    if left:
        return f"found again after the fix: {left[0].message}"
    return None


def _run(rule: Rule, example: Example, text: str, *, fix: bool) -> FileResult:
    settings = Settings(
        codes=frozenset({rule.code}),
        target=example.target or NEWEST,
        minimum=example.minimum,
        fix=fix,
        unsafe_fixes=example.applicability is Applicability.UNSAFE,
    )
    engine = Engine(Catalogue.of([rule]), settings)
    return engine.check_source(Source.from_text(text, _NAME), _NAME)
