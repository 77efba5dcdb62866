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

# Fields of `Place` that rows have under the same name, and what objects have of rows.
_FIELDS = ("cell", "row", "column", "code", "name", "message", "symbol", "fix", "reason", "help", "url")
_OF_PLACES = ("cell", "rows", "code", "name", "message", "symbol", "effect", "effort", "help", "url")


def as_json(plan: Plan, links: Links) -> str:
    """One object; releases are text such as "2.6"."""
    low, high = plan.runs or (None, None)
    whole = {
        "project": plan.project,
        "minimum": shown(plan.minimum),
        "from": shown(plan.first),
        "to": shown(plan.target),
        "headline": headline(plan),
        "runs": {"first": shown(low), "last": shown(high)} if plan.runs and plan.concerned else None,
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
    values: dict[str, Any] = to_builtins(unread)
    return {"files": values.pop("count"), **values}


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
        **{name: getattr(place, name) for name in _FIELDS},
        "rows": list(place.rows),
        "effect": None if effect is None else effect.label,
        "effort": place.effort_in(plan.target).name.lower(),
        **_since(place),
    }


def _since(place: Place) -> dict[str, str | None]:
    return {name: shown(getattr(place.since, name)) for name in (*(each.label for each in Effect), "needs")}


def _place(place: Place, plan: Plan, links: Links) -> dict[str, object]:
    row = place_of(place, plan)
    fix = {"message": place.fix, "reason": place.reason, "needs": shown(place.fix_needs)}
    return {
        "path": place.path,
        "location": {"row": place.row, "column": place.column},
        "link": links.to(place),
        **{name: row[name] for name in _OF_PLACES},
        "since": _since(place),
        "fix": None if place.fix is None else fix,
    }
