"""Codes of the rules that are code, for what finds them and for what says something about them."""

from __future__ import annotations

INVALID_SUPPRESSION, UNUSED_SUPPRESSION, ASYNC_ARGUMENT = "TM010", "TM011", "TM012"
PINNED_BELOW_TARGET, PYTHON_BELOW_TARGET = "TM984", "TM986"
PINS = (PINNED_BELOW_TARGET, PYTHON_BELOW_TARGET)  # what `--fix-pins` selects
REMOVED_API, UNKNOWN_API, REMOVED_PARAMETER, MOVED_ARGUMENT, NEEDS_NEWER = (
    "TM001",
    "TM002",
    "TM003",
    "TM004",
    "TM005",
)
DEPRECATED_API, UNREAD_SETTING, DOCUMENTED_DEPRECATION, RENAMED_SETTING = "TM006", "TM007", "TM008", "TM009"
# Those that are made from the API data.
OF_API = frozenset(
    [
        REMOVED_API,
        UNKNOWN_API,
        REMOVED_PARAMETER,
        MOVED_ARGUMENT,
        NEEDS_NEWER,
        DEPRECATED_API,
        UNREAD_SETTING,
        DOCUMENTED_DEPRECATION,
        RENAMED_SETTING,
    ]
)
