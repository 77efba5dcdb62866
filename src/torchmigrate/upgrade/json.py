"""What came of an upgrade, for programs."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import asdict

from torchmigrate.upgrade.model import Outcome, Report, TestRun
from torchmigrate.versions.releases import show_version

VERSION = 1  # of the format


def as_json(report: Report) -> str:
    """The report as one object; `docs/upgrade.md` says what is in it."""
    value = {
        "version": VERSION,
        "project": report.project,
        "target": show_version(report.target),
        "python": report.python,
        "torch": report.torch,
        "branch": report.branch,
        "tree": report.tree,
        "log": report.log,
        "verified_by": report.verified,
        "runs_from": report.runs_from,
        "seconds": round(report.seconds, 1),
        "cost": report.cost,
        "before_old": None if report.before_old is None else _run(report.before_old),
        "before": _run(report.before),
        "after": _run(report.after),
        "broken": report.broken,
        "mended": report.mended,
        "unstable": list(report.unstable),
        "to_change": list(report.to_change),
        "applied": [
            {
                "title": step.group.title,
                "codes": list(step.group.codes),
                "commit": step.commit,
                "fixes": step.fixes,
                "files": list(step.paths),
            }
            for step in report.applied
        ],
        "taken_back": [
            {
                "title": taken.group.title,
                "codes": list(taken.group.codes),
                "whole": taken.whole,
                "places": [{"path": path, "line": line or None} for path, line in taken.places],
                "tests": list(taken.tests),
                "message": taken.message,
                "advice": taken.advice or None,
            }
            for taken in report.taken_back
        ],
        "failing": [
            {
                "tests": list(each.tests),
                "message": each.message,
                "path": each.place.path if each.place else None,
                "line": each.place.line if each.place else None,
                "code": each.code,
                "cause": each.cause,
                "about_torch": each.about_torch,
            }
            for each in report.failing
        ],
        "by_hand": [
            {
                "path": hand.path,
                "line": hand.line,
                "code": hand.code,
                "message": hand.message,
                "advice": hand.advice or None,
                "tests": hand.tests,
            }
            for hand in report.by_hand
        ],
        "left_out": dict(report.left_out),
        "notes": list(report.notes),
    }
    return json.dumps(value, indent=2) + "\n"


def _run(run: TestRun) -> dict[str, Any]:
    warnings = [asdict(warned) for warned in dict.fromkeys(run.warnings)]
    return {
        "counts": {outcome.value: run.count(outcome) for outcome in Outcome if run.count(outcome)},
        "tests": {name: result.outcome.value for name, result in run.results.items()},
        "warnings": warnings,
        "seconds": round(run.seconds, 1),
        "trouble": run.trouble,
    }
