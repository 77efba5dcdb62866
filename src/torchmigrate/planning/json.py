"""A plan for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from torchmigrate.planning.compute import headline
from torchmigrate.planning.links import Links
from torchmigrate.planning.model import Effect, Effort, Place, Plan, Span, Tally, Unread
from torchmigrate.printing import json_text
from torchmigrate.versions.releases import Version, show_version

_SINCE = (*(effect.label for effect in Effect), "needs")


def as_json(plan: Plan, links: Links) -> str:
    """One object; releases are text such as "2.6"."""
    low, high = plan.runs or (None, None)
    whole = {
        "project": plan.project,
        "minimum": shown(plan.minimum),
        "from": shown(plan.first),
        "to": shown(plan.target),
        "headline": headline(plan),
        "runs": None
        if plan.runs is None or not plan.concerned
        else {"first": shown(low), "last": shown(high)},
        "files": plan.files,
        "files_with_torch": plan.concerned,
        "not_read": [unread_of(each) for each in plan.unread],
        "is_whole": plan.is_whole,
        "warned": [{"path": each.path, "row": each.line, "text": each.text} for each in plan.warned],
        "effort": {effort.name.lower(): plan.last.of(effort) for effort in Effort},
        "may_differ": plan.last.may_differ,
        "pinned": plan.last.pinned,
        "cannot_be_imported": [
            {"path": each.path, "since": shown(each.since), "through": each.through}
            for each in plan.unimportable
        ],
        "releases": [_span(span) for span in plan.spans],
        "places": [_place(place, plan, links) for place in plan.listed],
    }
    # ASCII only, so that any terminal, locale and file name gives valid JSON.
    return json_text(whole)


def shown(version: Version | None) -> str | None:
    """A release as text."""
    return None if version is None else show_version(version)


def unread_of(unread: Unread) -> dict[str, Any]:
    """A kind of files that were not read."""
    names = {"count": "files"}
    return {names.get(name, name): value for name, value in to_builtins(unread).items()}


def _span(span: Span) -> dict[str, object]:
    row = span.row
    return {
        "first": show_version(row.release),
        "last": show_version(span.last),
        "runs": row.runs,
        "needs_newer": row.lacking,
        **_tallies(row.effects),
        "new": _tallies(row.begins),
    }


def _tallies(tallies: Mapping[Effect, Tally]) -> dict[str, dict[str, int]]:
    return {effect.label: {"places": tally.places, **to_builtins(tally)} for effect, tally in tallies.items()}


def place_of(place: Place, plan: Plan) -> dict[str, Any]:
    """A place as one row: its fields, and what the target does there."""
    effect = place.since.effect(plan.target)
    return {
        "path": place.file,
        "cell": place.cell,
        "row": place.row,
        "column": place.column,
        "rows": list(place.rows),
        "code": place.code,
        "name": place.name,
        "message": place.message,
        "symbol": place.symbol,
        "effect": None if effect is None else effect.label,
        "effort": place.effort_in(plan.target).name.lower(),
        **{each.label: shown(place.since.of(each)) for each in Effect},
        "needs": shown(place.since.needs),
        "fix": place.fix,
        "reason": place.reason,
        "help": place.help,
        "url": place.url,
    }


def _place(place: Place, plan: Plan, links: Links) -> dict[str, object]:
    made = place_of(place, plan)
    reason, row, column = (made.pop(name) for name in ("reason", "row", "column"))
    needs = shown(place.fix_needs)
    return {
        **{name: value for name, value in made.items() if name not in _SINCE},
        "path": place.path,
        "location": {"row": row, "column": column},
        "link": links.to(place),
        "since": {name: made[name] for name in _SINCE},
        "fix": None if place.fix is None else {"message": place.fix, "reason": reason, "needs": needs},
    }
