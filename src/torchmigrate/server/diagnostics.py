"""Findings as the diagnostics of the protocol."""

from __future__ import annotations

from lsprotocol import types

from torchmigrate.findings import Finding, Severity, Trouble
from torchmigrate.report.reasons import advice, message_of
from torchmigrate.server.checks import Checked, Placed
from torchmigrate.source.text import SourceError

SOURCE = "torchmigrate"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


def diagnostics_of(checked: Checked) -> dict[str, list[types.Diagnostic]]:
    """The diagnostics of each text of a document, by its URI; of those without any, too."""
    made: dict[str, list[types.Diagnostic]] = {part.uri: [] for part in checked.snapshot.parts}
    for error in checked.broken:
        uri, diagnostic = _of_error(checked, error)
        made[uri].append(diagnostic)
    for placed in checked.placed:
        made[placed.uri].append(diagnostic_of(placed))
    return made


def diagnostic_of(placed: Placed) -> types.Diagnostic:
    """A finding as a diagnostic."""
    finding = placed.said
    # What fixes do, and why they are not safe, the actions say.
    more = [f"{kind}: {text}" for kind, text in advice(finding) if kind in ("suggestion", "help")]
    return types.Diagnostic(
        range=placed.range,
        message="\n".join([message_of(finding), *more]),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(finding.url) if finding.url else None,
        source=SOURCE,
        tags=[types.DiagnosticTag.Deprecated] if _is_about_deprecated(finding) else None,
        related_information=[
            types.DiagnosticRelatedInformation(place, "also here") for place in placed.others
        ]
        or None,
    )


def _is_about_deprecated(finding: Finding) -> bool:
    """Whether the name that was found warns at the target, or was removed there: editors strike it
    through."""
    timeline = finding.timeline
    if timeline is None or finding.severity is Severity.INFO:
        return False
    return timeline.deprecated is not None or timeline.removed is not None


def _of_error(checked: Checked, error: SourceError) -> tuple[str, types.Diagnostic]:
    part = checked.snapshot.part_of(error.cell)
    area = checked.lines(part).whole_line((error.line or 1) - 1)
    return part.uri, types.Diagnostic(
        range=area,
        message=error.reason,
        severity=types.DiagnosticSeverity.Error,
        code=Trouble.SYNTAX.value,
        source=SOURCE,
    )
