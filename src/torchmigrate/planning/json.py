"""A plan for programs."""

from __future__ import annotations

import json

from torchmigrate.planning.compute import headline
from torchmigrate.planning.links import Links
from torchmigrate.planning.model import EFFECTS, Effect, Effort, Place, Plan, Span, Tally, Unread
from torchmigrate.versions.releases import Version, show_version


def as_json(plan: Plan, links: Links) -> str:
    """One object; releases are text such as "2.6"."""
    low, high = plan.runs or (None, None)
    whole = {
        "project": plan.project,
        "minimum": _shown(plan.minimum),
        "from": _shown(plan.first),
        "to": _shown(plan.target),
        "headline": headline(plan),
        "runs": None
        if plan.runs is None or not plan.concerned
        else {"first": _shown(low), "last": _shown(high)},
        "files": plan.files,
        "files_with_torch": plan.concerned,
        "not_read": [_unread(each) for each in plan.unread],
        "is_whole": plan.is_whole,
        "warned": [{"path": each.path, "row": each.line, "text": each.text} for each in plan.warned],
        "effort": {effort.name.lower(): plan.last.of(effort) for effort in Effort},
        "may_differ": plan.last.may_differ,
        "pinned": plan.last.pinned,
        "cannot_be_imported": [
            {"path": each.path, "since": _shown(each.since), "through": each.through}
            for each in plan.unimportable
        ],
        "releases": [_span(span) for span in plan.spans],
        "places": [_place(place, plan, links) for place in plan.listed],
    }
    # ASCII only, so that any terminal, locale and file name gives valid JSON.
    return json.dumps(whole, indent=2) + "\n"


def _shown(version: Version | None) -> str | None:
    return None if version is None else show_version(version)


def _unread(unread: Unread) -> dict[str, object]:
    return {
        "kind": unread.kind,
        "files": unread.count,
        "why": unread.why,
        "examples": list(unread.examples),
        "matters": unread.matters,
    }


def _span(span: Span) -> dict[str, object]:
    row = span.row
    return {
        "first": show_version(row.release),
        "last": show_version(span.last),
        "runs": row.runs,
        "needs_newer": row.lacking,
        **{effect.label: _tally(row.effects[effect]) for effect in EFFECTS},
        "new": {effect.label: _tally(row.begins[effect]) for effect in EFFECTS},
    }


def _tally(tally: Tally) -> dict[str, int]:
    return {"places": tally.places, "safe": tally.safe, "unsafe": tally.unsafe, "by_hand": tally.by_hand}


def _place(place: Place, plan: Plan, links: Links) -> dict[str, object]:
    effect = place.since.effect(plan.target)
    return {
        "code": place.code,
        "name": place.name,
        "message": place.message,
        "path": place.path,
        "cell": place.cell,
        "location": {"row": place.row, "column": place.column},
        "rows": list(place.rows),
        "link": links.to(place),
        "symbol": place.symbol,
        "effect": None if effect is None else effect.label,
        "effort": place.effort_in(plan.target).name.lower(),
        "since": {
            **{each.label: _shown(place.since.of(each)) for each in sorted(Effect)},
            "needs": _shown(place.since.needs),
        },
        "fix": None
        if place.fix is None
        else {"message": place.fix, "reason": place.reason, "needs": _shown(place.fix_needs)},
        "help": place.help,
        "url": place.url,
    }
