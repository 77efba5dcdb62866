"""What came of an upgrade, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmigrate.report.document import (
    Block,
    Code,
    Document,
    Entry,
    List,
    Paragraph,
    Section,
    Table,
    TableRow,
    one_line,
)
from torchmigrate.report.summary import plural
from torchmigrate.upgrade.model import Applied, Outcome, Report, StillFailing, TakenBack
from torchmigrate.versions.releases import show_version

_MOST = 10  # entries of a list on a terminal
_MOST_WARNINGS = 50


def document_of(report: Report) -> Document:
    """The document of a report."""
    return Document(
        kind="upgrade",
        title=f"Upgrade to torch {show_version(report.target)}",
        name=report.project,
        headline=_headline(report),
        blocks=list(_blocks(report)),
    )


def _headline(report: Report) -> str:
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


def _blocks(report: Report) -> Iterator[Block]:
    runs = [("before", report.before), ("after", report.after)]
    if report.before_old is not None:
        runs.insert(0, ("before, old torch", report.before_old))
    outcomes = [outcome for outcome in Outcome if any(run.count(outcome) for _, run in runs)]
    rows = [TableRow((name, *map(run.count, outcomes), len(set(run.warnings)))) for name, run in runs]
    yield Table(["tests", *(outcome.value for outcome in outcomes), "torch warnings"], rows, "tests")
    # The torch that the tests say that they imported.
    torch = f"torch {report.after.torch}" if report.after.torch else "a torch that the tests did not report"
    yield Paragraph(f"Verified by {report.verified}, on {torch} and Python {report.python}.")
    if report.runs_from:
        newer = f"torch {report.runs_from} and newer"
        yield Paragraph(f"According to the names that it uses, the result runs on {newer}.")
    if report.cost is not None:
        yield Paragraph(f"All runs of the tests took {report.cost} times the CPU time of one run.")
    tests = "test passes" if len(report.mended) == 1 else "tests pass"
    mended = f"{len(report.mended)} {tests} that did not before"
    yield from _listed("Fixed", [Entry((Code(name),)) for name in report.mended], mended)
    yield from _listed("Reverted, because tests failed", [_taken_back(each) for each in report.taken_back])
    yield from _listed("Still failing", [_failing(each) for each in report.failing])
    mocked = [Entry((Code(name),)) for name in report.to_change]
    yield from _listed("Tests to change, because they expect the old call", mocked)
    by_hand = [
        Entry(
            f"{hand.code} {one_line(hand.message)}"
            + (f" ({plural(hand.tests, 'failing test')})" if hand.tests else ""),
            Code(f"{hand.path}:{hand.line}"),
            aside=one_line(hand.advice),
        )
        for hand in report.by_hand
    ]
    yield from _listed("Left to do by hand", by_hand)
    title = f"Applied, on the branch {report.branch}"
    yield from _listed(title, [_applied(each, report.diffs.get(each.commit, "")) for each in report.applied])
    warnings = [
        Entry((f"{each.category}: ", one_line(each.message)), Code(f"{each.path}:{each.line}"))
        for each in list(dict.fromkeys(report.after.warnings))[:_MOST_WARNINGS]
    ]
    yield from _listed("Remaining warnings", warnings)
    notes = [f"{name} could not be installed: {why}" for name, why in report.left_out.items()]
    notes += report.notes
    flaky = "is flaky and is not counted: its outcome differs between runs of the same code"
    notes += [f"{name} {flaky}" for name in report.unstable]
    yield from _listed("Notes", [Entry(one_line(note)) for note in notes])


def _listed(title: str, entries: Sequence[Entry], summary: str = "") -> Iterator[Section]:
    if entries:
        key = title.partition(",")[0].lower().replace(" ", "-")
        yield Section(title, [List(entries, _MOST, summary)], key)


def _applied(step: Applied, diff: str) -> Entry:
    files = plural(len(step.paths), "file")
    text = f"{step.group.title}: {plural(step.fixes, 'fix', 'es')} in {files}"
    return Entry(text, Code(step.commit[:9]), aside=step.group.why, diff=diff)


def _taken_back(taken: TakenBack) -> Entry:
    places = [f"`{path}:{line}`" if line else f"`{path}`" for path, line in taken.places]
    return Entry(
        f"{taken.group.title}: {'all fixes' if taken.whole else ', '.join(places)}",
        notes=tuple(filter(None, (one_line(taken.message), one_line(taken.advice)))),
        details=tuple(map(Code, taken.tests)),
    )


def _failing(failing: StillFailing) -> Entry:
    where = f" at `{failing.place.path}:{failing.place.line}`" if failing.place else ""
    return Entry(
        f"{plural(len(failing.tests), 'test')}{where}",
        notes=((Code(one_line(failing.message)),), one_line(failing.cause)),
        details=tuple(map(Code, failing.tests)),
    )
