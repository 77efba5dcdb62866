"""What came of an upgrade, as the text of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmigrate.planning.markdown import escape
from torchmigrate.report.summary import plural
from torchmigrate.upgrade.model import Outcome, Report
from torchmigrate.upgrade.terminal import headline, verified_by, warnings_of
from torchmigrate.versions.releases import show_version

_MOST_TESTS = 5
_MOST_OPEN = 20  # tests that are listed without a click


def as_markdown(report: Report) -> str:
    """The report in Markdown."""
    return "\n".join(_lines(report)).rstrip("\n") + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# Upgrade to torch {show_version(report.target)}"
    yield ""
    yield escape(headline(report))
    yield ""
    runs = [("before", report.before), ("after", report.after)]
    if report.before_old is not None:
        runs.insert(0, ("before, old torch", report.before_old))
    outcomes = [outcome for outcome in Outcome if any(run.count(outcome) for _, run in runs)]
    yield "| | " + " | ".join(outcome.value for outcome in outcomes) + " | torch warnings |"
    yield "| --- |" + " ---: |" * (len(outcomes) + 1)
    for name, run in runs:
        yield (
            f"| {name} | "
            + " | ".join(str(run.count(each)) for each in outcomes)
            + f" | {warnings_of(run)} |"
        )
    yield ""
    yield f"Verified by {verified_by(report)}."
    if report.runs_from:
        yield f"According to the names that it uses, the result runs on torch {report.runs_from} and newer."
    if report.mended:
        yield from ("", "## Fixed", "")
        yield from _listed(report.mended, "test passes", "tests pass")
    if report.applied:
        yield from ("", "## Applied", "")
        for step in report.applied:
            files = plural(len(step.paths), "file")
            fixes = plural(step.fixes, "fix", "es")
            yield f"- {step.commit[:9]} {escape(step.group.title)}: {fixes} in {files}"
    if report.taken_back:
        yield from ("", "## Reverted, because tests failed", "")
        for taken in report.taken_back:
            where = (
                "all fixes"
                if taken.whole
                else ", ".join(f"`{path}:{line}`" if line else f"`{path}`" for path, line in taken.places)
            )
            yield f"- {escape(taken.group.title)}: {where}"
            yield from (f"  - `{test}`" for test in taken.tests[:_MOST_TESTS])
            yield f"  - {escape(_line(taken.message))}"
            if taken.advice:
                yield f"  - {escape(_line(taken.advice))}"
    if report.failing:
        yield from ("", "## Still failing", "")
        for each in report.failing:
            where = f" at `{each.place.path}:{each.place.line}`" if each.place else ""
            yield f"- {plural(len(each.tests), 'test')}{where}: {escape(_line(each.message))}"
            yield f"  - {escape(_line(each.cause))}"
            yield from (f"  - `{test}`" for test in each.tests[:_MOST_TESTS])
    if report.by_hand:
        yield from ("", "## Left to do by hand", "")
        for hand in report.by_hand:
            tests = f" ({plural(hand.tests, 'failing test')})" if hand.tests else ""
            yield f"- `{hand.path}:{hand.line}` {hand.code}: {escape(_line(hand.message))}{tests}"
    new = list(dict.fromkeys(report.after.warnings))
    if new:
        yield from ("", "## Remaining warnings", "")
        for warned in new[:50]:
            yield f"- {warned.category} at `{warned.path}:{warned.line}`: {escape(_line(warned.message))}"
    rest = [
        *((f"{name} could not be installed: {why}") for name, why in report.left_out.items()),
        *report.notes,
    ]
    rest += [
        (f"{name} is flaky and is not counted: its outcome differs between runs of the same code")
        for name in report.unstable
    ]
    if rest:
        yield from ("", "## Notes", "")
        yield from (f"- {escape(_line(line))}" for line in rest)


def _listed(names: Sequence[str], one: str, many: str) -> Iterator[str]:
    """A list of tests, which a click opens if it is long."""
    said = f"{len(names)} {one if len(names) == 1 else many} that did not before"
    if len(names) > _MOST_OPEN:
        yield from ("<details>", f"<summary>{said}</summary>", "")
        yield from (f"- `{name}`" for name in names)
        yield from ("", "</details>")
    else:
        yield from (f"{said}:", "")
        yield from (f"- `{name}`" for name in names)


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
