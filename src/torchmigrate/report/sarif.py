"""SARIF 2.1.0, which code scanning services and editors read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from torchmigrate import __version__
from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.pages import SITE, url_of
from torchmigrate.findings import Applicability, Finding, Fix, Severity
from torchmigrate.printing import printable
from torchmigrate.report.base import FileFindings
from torchmigrate.report.fingerprints import Fingerprints
from torchmigrate.report.json import strict_json_text
from torchmigrate.report.locations import (
    Item,
    ItemReporter,
    Region,
    SharedEdits,
    absolute,
    region_of,
    replacements,
)
from torchmigrate.report.reasons import reason_of
from torchmigrate.report.rule_texts import generic

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
# In the words of GitHub.
_PROBLEM = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "recommendation"}


class _Result(NamedTuple):
    """A result, and what the list of rules needs to know of it. rule: None for what could not be done."""

    rule: str | None
    severity: Severity
    content: dict[str, object]


def reporter(rule_of: Callable[[str], Rule | None]) -> ItemReporter:
    """A log with one run: a result for each finding, with its fixes, and the rules of the results.

    rule_of: gives a rule by its code.
    """
    fingerprints = Fingerprints()
    shared = SharedEdits()

    def result(item: Item) -> _Result:
        about = {} if item.finding is None or item.file is None else _about(item.file, item.finding, shared)
        advice = (f"{kind}: {text}" for kind, text in item.notes if kind != "note")
        content: dict[str, object] = {
            "ruleId": item.code,
            "level": _LEVEL[item.severity],
            "message": {"text": "\n".join([item.message, *advice])},
            "locations": [{"physicalLocation": _physical(item.path, item.region)}],
            "partialFingerprints": {"codeInLine/v1": fingerprints.of(item.shown, item)},
            **about,
        }
        return _Result(None if item.finding is None else item.code, item.severity, content)

    return ItemReporter(result, lambda results: _log(results, rule_of))


def _about(file: FileFindings, finding: Finding, shared: SharedEdits) -> dict[str, object]:
    """The other places and the fixes of a finding."""
    related = [
        {"id": number, "physicalLocation": _physical(file.path, region_of(file.source, start, end))}
        for number, (start, end) in enumerate(finding.places, 1)
    ]
    fixes = list(_fixes(file, finding.fix, finding, shared))
    return {
        **({"relatedLocations": related} if related else {}),
        **({"fixes": fixes} if fixes else {}),
    }


def _log(results: list[_Result], rule_of: Callable[[str], Rule | None]) -> str:
    worst: dict[str, Severity] = {}
    for code, severity, _ in results:
        if code is not None:
            worst[code] = max(severity, worst.get(code, severity))
    rules = [_rule(code, rule_of(code), worst[code]) for code in sorted(worst)]
    numbers = {code: number for number, code in enumerate(sorted(worst))}
    run = {
        "tool": {
            "driver": {
                "name": "torchmigrate",
                "version": __version__,
                "informationUri": SITE,
                "rules": rules,
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [
            content if code is None else {**content, "ruleIndex": numbers[code]}
            for code, _, content in results
        ],
    }
    return strict_json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _rule(code: str, rule: Rule | None, severity: Severity) -> dict[str, object]:
    """The entry of a rule. severity: the worst of its results."""
    level = {"defaultConfiguration": {"level": _LEVEL[severity]}}
    properties: dict[str, object] = {"problem.severity": _PROBLEM[severity]}
    if rule is None:
        return {"id": code, **level, "properties": properties}
    summary = printable(generic(rule, rule.summary))
    why = " ".join(rule.why.split()) or summary
    by_hand = f"By hand: {generic(rule, rule.advice)}" if rule.advice else ""
    url = url_of(rule)
    links = "\n".join(rule.references)
    linked = "\n".join(f"- <{link}>" for link in rule.references)
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": why},
        "help": {
            "text": "\n\n".join(filter(None, [summary, why, by_hand, links])),
            "markdown": "\n\n".join(filter(None, [f"**{summary}**", why, by_hand, linked])),
        },
        **({} if url is None else {"helpUri": url}),
        **level,
        "properties": {**properties, "tags": [rule.library]},
    }


def _fixes(
    file: FileFindings, fix: Fix | None, finding: Finding, shared: SharedEdits
) -> Iterator[dict[str, object]]:
    """The fix and the alternative fix, as far as they may be applied at all."""
    if fix is None:
        return
    made = [] if shared.elsewhere(fix, finding) else replacements(file.source, fix.edits)
    if made and fix.applicability is not Applicability.DISPLAY:
        reason = reason_of(fix)
        title = f"{fix.title} (unsafe: {reason})" if reason else fix.title
        changes = [
            {
                "deletedRegion": _region(each.region),
                **({"insertedContent": {"text": each.text}} if each.text else {}),
            }
            for each in made
        ]
        change = {"artifactLocation": _artifact(file.path), "replacements": changes}
        yield {"description": {"text": printable(title)}, "artifactChanges": [change]}
    yield from _fixes(file, fix.unsafe, finding, shared)


def _physical(path: Path, region: Region) -> dict[str, object]:
    return {"artifactLocation": _artifact(path), "region": _region(region)}


def _artifact(path: Path) -> dict[str, object]:
    return {"uri": Path(absolute(path)).as_uri()}


def _region(region: Region) -> dict[str, object]:
    if region.column is None:
        return {"startLine": region.row}
    return {
        "startLine": region.row,
        "startColumn": region.column,
        "endLine": region.end_row,
        "endColumn": region.end_column,
    }
