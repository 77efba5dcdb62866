"""What came of an upgrade, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from torchmigrate.report.style import Style
from torchmigrate.report.summary import plural
from torchmigrate.upgrade.model import Report, TestRun
from torchmigrate.upgrade.upgrade import counts
from torchmigrate.versions.releases import show_version

_MOST = 10  # of a list; the other formats have all


def as_text(report: Report, style: Style) -> str:
    """The report, in lines of text."""
    return "\n".join(_lines(report, style)) + "\n"


def headline(report: Report) -> str:
    """What came of it, in a sentence."""
    target = show_version(report.target)
    if report.broken:
        lost = plural(len(report.broken), "test")
        return f"{report.project} on torch {target}: {lost} that passed still fail."
    more, bad = len(report.mended), len(report.bad)
    passed = f"{len(report.after.passed)} passed ({len(report.before.passed)} before)"
    text = f"{report.project} on torch {target}: {passed}"
    text += f", {more} fixed" if more else ""
    return text + (f", {bad} still failing." if bad else ", none failing.")


def verified_by(report: Report) -> str:
    """What the result was verified by, and on what: the torch that the tests say that they imported."""
    torch = f"torch {report.after.torch}" if report.after.torch else "a torch that the tests did not report"
    return f"{report.verified}, on {torch} and Python {report.python}"


def warnings_of(run: TestRun) -> int:
    """How many different warnings of torch a run gave, by what they say and where."""
    return len(set(run.warnings))


def _lines(report: Report, style: Style) -> Iterator[str]:
    yield style.bold(headline(report))
    yield ""
    if report.before_old is not None:
        yield f"  before, old torch  {counts(report.before_old)}"
    for name, run in (("before", report.before), ("after", report.after)):
        yield f"  {name:19}{counts(run)}; {plural(warnings_of(run), 'warning')} of torch"
    yield f"  verified by        {verified_by(report)}"
    if report.runs_from:
        yield f"  runs on            torch {report.runs_from} and newer, according to the names it uses"
    if report.applied:
        yield ""
        yield style.bold(f"Applied, on the branch {report.branch}:")
        for step in report.applied:
            files = plural(len(step.paths), "file")
            yield f"  {step.commit[:9]}  {step.group.title}: {plural(step.fixes, 'fix', 'es')} in {files}"
    if report.taken_back:
        yield ""
        yield style.bold("Reverted, because tests failed:")
        for taken in report.taken_back:
            where = (
                "all fixes" if taken.whole else ", ".join(_place(*place) for place in taken.places[:_MOST])
            )
            yield f"  {taken.group.title}: {where}"
            yield f"    {taken.tests[0]}{_and_more(len(taken.tests))}: {_short(taken.message)}"
            if taken.advice:
                yield f"    {_short(taken.advice)}"
    if report.failing:
        yield ""
        yield style.bold("Still failing:")
        for each in report.failing[:_MOST]:
            where = f" at {each.place.path}:{each.place.line}" if each.place else ""
            yield f"  {plural(len(each.tests), 'test')} ({each.tests[0]}){where}"
            yield f"    {_short(each.message)}"
            yield f"    {_short(each.cause)}"
        if len(report.failing) > _MOST:
            yield f"  and {len(report.failing) - _MOST} more causes"
    if report.by_hand:
        yield ""
        yield style.bold("Left to do by hand:")
        for hand in report.by_hand[:_MOST]:
            tests = f" [{plural(hand.tests, 'test')}]" if hand.tests else ""
            yield f"  {hand.path}:{hand.line} {hand.code} {_short(hand.message)}{tests}"
        if len(report.by_hand) > _MOST:
            yield f"  and {len(report.by_hand) - _MOST} more places"
    rest = [
        *((f"{name} could not be installed: {why}") for name, why in report.left_out.items()),
        *report.notes,
    ]
    rest += [
        (f"{name} is flaky and is not counted: its outcome differs between runs of the same code")
        for name in report.unstable
    ]
    if rest:
        yield ""
        yield style.bold("Notes:")
        yield from (f"  {_short(line)}" for line in rest)


def _place(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path


def _and_more(count: int) -> str:
    return f" and {count - 1} more" if count > 1 else ""


def _short(text: str) -> str:
    """A text as one line of a sensible length."""
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"
