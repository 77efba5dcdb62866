"""Fixes that many findings share: without this, every finding would repeat all edits."""

from __future__ import annotations

from torchmigrate.findings import Edit, Finding, Fix

MOST = 100  # edits of a fix that every finding is shown with


class SharedEdits:
    """Which finding of a file has the edits of a fix: each one, or where they are many, the first alone.

    So the output grows with the file, and not with its square.
    """

    def __init__(self) -> None:
        self._first: dict[int, tuple[tuple[Edit, ...], Finding]] = {}  # the edits keep their id

    def elsewhere(self, fix: Fix, finding: Finding) -> Finding | None:
        """The finding that has the edits of a fix; None: this one."""
        if len(fix.edits) <= MOST:
            return None
        _, first = self._first.setdefault(id(fix.edits), (fix.edits, finding))
        return None if first is finding else first
