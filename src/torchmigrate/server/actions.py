"""Code actions: what can be done about findings, and the edits that do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsprotocol import types
from msgspec import Struct
from msgspec.structs import astuple

from torchmigrate.engine.suppressing import never_suppressed
from torchmigrate.findings import Applicability, Fix
from torchmigrate.report.reasons import reason_of
from torchmigrate.server import edits
from torchmigrate.server.checks import Checked, Placed
from torchmigrate.server.diagnostics import diagnostic_of
from torchmigrate.source.text import Source

FIX, OTHER_FIX, SUPPRESS, FIX_ALL = "fix", "other-fix", "suppress", "fix-all"
COMMAND = "torchmigrate.applyAllFixes"
QUICK_FIX = types.CodeActionKind.QuickFix.value
ALL = f"{types.CodeActionKind.SourceFixAll.value}.torchmigrate"
ALL_IN_NOTEBOOK = f"notebook.{ALL}"
KINDS = [QUICK_FIX, ALL, ALL_IN_NOTEBOOK]


class Order(Struct, frozen=True):
    """What an action does; it travels to the client and back.

    number: of the finding, among those of the document. stamp: of the document that was checked.
    """

    what: str
    uri: str
    number: int
    stamp: list[int]

    @classmethod
    def read(cls, data: Any) -> Order | None:
        """The order that a client gives back; None: it is none of ours."""
        try:
            what, uri, number, stamp = data
            return cls(str(what), str(uri), int(number), [int(part) for part in stamp])
        except (TypeError, ValueError):
            return None


def actions(
    checked: Checked, uri: str, area: types.Range, only: Sequence[str] | None, stamp: list[int]
) -> list[types.CodeAction]:
    """The actions for a range of a text, without their edits. only: the requested kinds."""
    made: list[types.CodeAction] = []
    if checked.source is None:
        return made
    if _wanted(QUICK_FIX, only):
        for number, placed in enumerate(checked.placed):
            if placed.uri == uri and _overlap(placed.range, area):
                made += _for_finding(checked, placed, number, stamp)
    for kind in (ALL, ALL_IN_NOTEBOOK):
        if kind == ALL_IN_NOTEBOOK and (only is None or not checked.snapshot.is_notebook):
            continue
        if _wanted(kind, only) and any(checked.engine.applies(finding) for _, finding in checked.found):
            which = "all" if checked.engine.settings.unsafe_fixes else "all safe"
            made.append(
                types.CodeAction(
                    title=f"torchmigrate: Apply {which} fixes",
                    kind=kind,
                    data=[*astuple(Order(FIX_ALL, checked.snapshot.uri, 0, stamp))],
                )
            )
    return made


def carried_out(checked: Checked, order: Order) -> edits.Changed:
    """The edits of an action. Raises SourceError, with the reason, where it cannot be done."""
    key = order.what, order.number
    if key not in checked.made:  # clients that want all edits at once ask whenever the cursor moves
        checked.made[key] = _after(checked, order)
    after = checked.made[key]
    return [] if after is None else edits.changed(checked, after)


def _after(checked: Checked, order: Order) -> Source | None:
    if order.what == FIX_ALL:
        return edits.with_all_fixes(checked)
    if not 0 <= order.number < len(checked.placed):
        return None
    placed = checked.placed[order.number]
    if order.what == SUPPRESS:
        return edits.with_suppression(checked, placed.source, placed.finding)
    fix = _fix(placed, order.what)
    return None if fix is None else edits.with_fix(checked, placed.source, fix)


def _for_finding(checked: Checked, placed: Placed, number: int, stamp: list[int]) -> list[types.CodeAction]:
    code = placed.finding.code
    diagnostics = [diagnostic_of(placed)]
    found = [
        types.CodeAction(
            title=_title(code, fix),
            kind=QUICK_FIX,
            diagnostics=diagnostics,
            is_preferred=True if what == FIX and fix.applicability >= checked.engine.settings.least else None,
            data=[*astuple(Order(what, checked.snapshot.uri, number, stamp))],
        )
        for what in (FIX, OTHER_FIX)
        if (fix := _fix(placed, what)) is not None and fix.applicability > Applicability.DISPLAY
    ]
    assert checked.source is not None
    if never_suppressed(placed.source, placed.finding, checked.source) is None:
        found.append(
            types.CodeAction(
                title=f"torchmigrate ({code}): Suppress on this line",
                kind=QUICK_FIX,
                diagnostics=diagnostics,
                data=[*astuple(Order(SUPPRESS, checked.snapshot.uri, number, stamp))],
            )
        )
    return found


def _fix(placed: Placed, what: str) -> Fix | None:
    """The fix that an order is about, in the words for the file; its edits are the same."""
    fix = placed.said.fix
    if fix is None or what == FIX:
        return fix
    return fix.unsafe or fix.lesser


def _title(code: str, fix: Fix) -> str:
    title = f"torchmigrate ({code}): {fix.title}"
    if fix.applicability is Applicability.SAFE:
        return title
    reason = reason_of(fix)
    return f"{title} (unsafe: {reason})" if reason else f"{title} (unsafe)"


def _wanted(kind: str, only: Sequence[str] | None) -> bool:
    return only is None or any(kind == each or not each or kind.startswith(f"{each}.") for each in only)


def _overlap(one: types.Range, other: types.Range) -> bool:
    return not (_before(one.end, other.start) or _before(other.end, one.start))


def _before(one: types.Position, other: types.Position) -> bool:
    return (one.line, one.character) < (other.line, other.character)
