"""Invented fleets, for the tests of their page."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import Any

from torchmigrate.fleet.page import Page
from torchmigrate.versions.releases import RELEASES, show_version

Record = dict[str, Any]
TARGET = "2.13"
STARTED = datetime(2026, 11, 25, 16, 54, 8, tzinfo=timezone.utc)
EFFECTS = (
    "needs_newer",
    "breaks_on_import",
    "raises",
    "may_raise",
    "changes",
    "warns",
    "may_differ",
    "pinned",
)
EFFORTS = ("safe", "unsafe", "by_hand")


def repository(name: str, **columns: Any) -> Record:
    """A row of table `repositories`: it runs on the target, if nothing else is said."""
    return {
        "run": "20261125T165408Z",
        "repository": name,
        "owner": None,
        "address": f"https://host.example/{name}.git",
        "revision": None,
        "state": "0" * 40,
        "status": "done",
        "trouble": None,
        "why": None,
        "reused": False,
        "minimum": "1.8",
        "target": TARGET,
        "runs_first": "1.8",
        "runs_last": TARGET,
        "runs_on_target": True,
        "headline": "Runs.",
        "files": 12,
        "files_with_torch": 7,
        "is_whole": True,
        "safe": 0,
        "unsafe": 0,
        "by_hand": 0,
        "may_differ": 0,
        "pinned": 0,
        "page": f"plans/{name}.html",
    } | columns


def failed(
    name: str, trouble: str = "clone", why: str = "fatal: repository not found", **columns: Any
) -> Record:
    """A row about one that could not be examined."""
    nothing = dict.fromkeys(
        (
            "minimum",
            "runs_first",
            "runs_last",
            "runs_on_target",
            "headline",
            "files",
            "files_with_torch",
            "is_whole",
            *EFFORTS,
            "page",
        )
    )
    return repository(name, status="failed", trouble=trouble, why=why, **nothing) | columns


def blocked(name: str, last: str | None = "2.5", **columns: Any) -> Record:
    """A row about one that the target does not run."""
    numbers = {"safe": 3, "unsafe": 1, "by_hand": 2}
    return (
        repository(name, runs_on_target=False, runs_last=last, runs_first=last and "1.8", **numbers) | columns
    )


def release(name: str, number: str, **columns: Any) -> Record:
    """A row of table `releases`."""
    runs = not any(columns.get(each) for each in ("needs_newer", "breaks_on_import", "raises"))
    return {
        "repository": name,
        "release": number,
        "runs": runs,
        **dict.fromkeys((*EFFECTS, *EFFORTS), 0),
    } | columns


def fleet(*repositories: Record, releases: list[Record] | None = None, **parts: Any) -> Page:
    """A page about these; what else it has is in `parts`."""
    run = {
        "run": "20261125T165408Z",
        "version": "0.9.0",
        "started": STARTED,
        "finished": STARTED + timedelta(minutes=7),
        "target": TARGET,
        "interrupted": False,
        "workers": 4,
        "listed": len(repositories),
        "examined": len(repositories),
        "reused": 0,
        "failed": sum(row["status"] == "failed" for row in repositories),
    } | parts.pop("run", {})
    return Page(
        **{
            "run": run,
            "repositories": list(repositories),
            "releases": releases or [],
            "rules": [],
            "owners": owners_of(list(repositories)),
            "trend": [],
            "changes": None,
        }
        | parts
    )


def owners_of(repositories: list[Record]) -> list[Record]:
    """The rows about the owners of these."""
    found: dict[str | None, Record] = {}
    for row in repositories:
        owner = found.setdefault(
            row["owner"],
            {
                "owner": row["owner"],
                "repositories": 0,
                "running": 0,
                "failed": 0,
                **dict.fromkeys(EFFORTS, 0),
            },
        )
        owner["repositories"] += 1
        owner["running"] += bool(row["runs_on_target"])
        owner["failed"] += row["status"] == "failed"
        for effort in EFFORTS:
            owner[effort] += row[effort] or 0
    return list(found.values())


def run_of(number: int, **columns: Any) -> Record:
    """A row of the trend, a week after the one before."""
    started = STARTED + timedelta(weeks=number)
    numbers = {"listed": 10, "running": 4, "blocked": 5, "failed": 1, "safe": 30, "unsafe": 10, "by_hand": 5}
    return {"run": f"{started:%Y%m%dT%H%M%SZ}", "started": started, "target": TARGET, **numbers} | columns


def rule(code: str, **columns: Any) -> Record:
    """A row about a rule."""
    return {
        "code": code,
        "name": f"rule-{code.lower()}",
        "url": f"https://rules.example/{code}/",
        "effect": "raises",
        "places": 10,
        "repositories": 5,
        "mended_safe": 2,
        "mended_unsafe": 4,
        "by_hand": 3,
    } | columns


def large_fleet(number: int = 1000) -> Page:
    """A fleet that looks like a real one; the same each time."""
    dice = random.Random(7)
    shown = [show_version(each) for each in RELEASES if each <= (2, 13)]
    teams = [
        None,
        *(f"team-{name}" for name in ("vision", "speech", "ranking", "ads", "robots", "search", "infra")),
    ]
    words = "vision speech text ranking model train data serve tools lab core bench".split()
    repositories, releases = [], []
    for index in range(number):
        name = f"{dice.choice(words)}/{dice.choice(words)}-{dice.choice(words)}-{index}"
        owner = dice.choice(teams)
        kind = dice.random()
        if kind < 0.03:
            trouble, why = dice.choice(
                [
                    ("clone", "fatal: could not read from remote repository"),
                    ("time", "it took longer than 600 seconds"),
                    ("memory", "it needed more than 2000 MB"),
                ]
            )
            repositories.append(failed(name, trouble, why, owner=owner))
            continue
        if kind < 0.08:
            repositories.append(
                repository(name, owner=owner, files_with_torch=0, runs_first=None, runs_last=None)
            )
            continue
        first = dice.randrange(0, 20)
        begins = {
            effect: dice.randrange(first, len(shown) + 20)
            for effect in ("breaks_on_import", "raises", "may_raise", "changes", "warns", "may_differ")
        }
        counts = {effect: dice.choice([1, 1, 2, 3, 5, 8, 40]) for effect in begins}
        newer = dice.choice([0, 0, 0, first + 3])
        runs = []
        for at in range(first, len(shown)):
            numbers = {
                effect: counts[effect] * (1 + (at - start) // 4)
                for effect, start in begins.items()
                if at >= start
            }
            if at < newer:
                numbers["needs_newer"] = 2
            row = release(name, shown[at], **numbers)
            releases.append(row)
            if row["runs"]:
                runs.append(shown[at])
        on_target = bool(runs) and runs[-1] == shown[-1]
        efforts = {effort: dice.choice([0, 1, 2, 5, 9, 30]) for effort in EFFORTS}
        repositories.append(
            repository(
                name,
                owner=owner,
                runs_first=runs[0] if runs else None,
                runs_last=runs[-1] if runs else None,
                runs_on_target=on_target,
                is_whole=dice.random() < 0.95,
                **efforts,
            )
        )
    effects = ["raises", "raises", "breaks_on_import", "warns", "changes", "may_raise", None, "outdated"]
    rules = []
    for index in range(120):
        having = dice.randrange(1, max(2, number // (2 + index)))
        safe = dice.randrange(0, having + 1)
        rules.append(
            rule(
                f"TM{100 + index}",
                name=f"torch-{dice.choice(words)}-{dice.choice(words)}",
                effect=dice.choice(effects),
                places=having * dice.randrange(1, 6),
                repositories=having,
                mended_safe=safe,
                mended_unsafe=dice.randrange(safe, having + 1),
                by_hand=dice.randrange(0, having + 1),
            )
        )
    trend = []
    for at in range(9):
        running = number * (30 + 3 * at) // 100
        trend.append(
            run_of(
                at - 8,
                listed=number,
                running=running,
                blocked=number * 93 // 100 - running,
                failed=number // (20 + at),
                safe=4 * number - 300 * at,
                unsafe=2 * number - 90 * at,
                by_hand=number - 25 * at,
            )
        )
    return fleet(
        *repositories,
        releases=releases,
        rules=rules,
        trend=trend,
        changes={"run": trend[-2]["run"], "new": 14, "gone": 1203, "moved": 1},
    )
