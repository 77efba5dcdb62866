"""What came of an upgrade, for programs."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from torchmigrate.printing import json_text
from torchmigrate.upgrade.model import Applied, ByHand, Outcome, Report, StillFailing, TakenBack, TestRun
from torchmigrate.versions.releases import show_version

VERSION = 1  # of the format


def as_json(report: Report) -> str:
    """The report as one object; `docs/upgrade.md` says what is in it."""
    same = ("project", "python", "torch", "branch", "tree", "log", "runs_from", "cost", "broken", "mended")
    value = {
        "version": VERSION,
        "target": show_version(report.target),
        "verified_by": report.verified,
        "seconds": round(report.seconds, 1),
        **{name: getattr(report, name) for name in (*same, "left_out", "notes", "unstable", "to_change")},
        "before_old": None if report.before_old is None else _run(report.before_old),
        "before": _run(report.before),
        "after": _run(report.after),
        "applied": [_plain(step) for step in report.applied],
        "taken_back": [
            {**_plain(taken), "places": [{"path": path, "line": line or None} for path, line in taken.places]}
            for taken in report.taken_back
        ],
        "failing": [
            {**_plain(each), "path": each.place and each.place.path, "line": each.place and each.place.line}
            for each in report.failing
        ],
        "by_hand": list(map(_plain, report.by_hand)),
    }
    return json_text(value)


def _plain(item: Applied | TakenBack | StillFailing | ByHand) -> dict[str, Any]:
    """The fields as JSON types: those of a group that matter, and no empty advice."""
    values: dict[str, Any] = to_builtins(item)
    group, paths, _ = values.pop("group", None), values.pop("paths", None), values.pop("place", None)
    return {
        **({} if group is None else {"title": group["title"], "codes": group["codes"]}),
        **({} if paths is None else {"files": paths}),
        **values,
        **({"advice": values["advice"] or None} if "advice" in values else {}),
    }


def _run(run: TestRun) -> dict[str, Any]:
    warnings = to_builtins(list(dict.fromkeys(run.warnings)))
    return {
        "counts": {outcome.value: run.count(outcome) for outcome in Outcome if run.count(outcome)},
        "tests": {name: result.outcome.value for name, result in run.results.items()},
        "warnings": warnings,
        "seconds": round(run.seconds, 1),
        "trouble": run.trouble,
    }
