"""A Code Quality report of GitLab, which merge requests show."""

from __future__ import annotations

from torchmigrate.findings import Severity
from torchmigrate.report.fingerprints import Fingerprints
from torchmigrate.report.json import strict_json_text
from torchmigrate.report.locations import Item, ItemReporter, in_repository

_SEVERITY = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}
_CHECKOUT = "CI_PROJECT_DIR"


def reporter() -> ItemReporter:
    """A list of objects, one for each finding; GitLab takes two with the same fingerprint for one."""
    fingerprints = Fingerprints()

    def object_of(item: Item) -> dict[str, object]:
        path, region = in_repository(item.path, item.shown, _CHECKOUT), item.region
        return {
            "check_name": item.code,
            # GitLab shows the description alone.
            "description": f"{item.code}: {item.message}",
            "severity": _SEVERITY[item.severity],
            "fingerprint": fingerprints.of(path, item),
            "location": {
                "path": path,
                "positions": {
                    "begin": {"line": region.row, "column": region.column or 1},
                    "end": {"line": region.end_row, "column": region.end_column or 1},
                },
            },
        }

    return ItemReporter(object_of, lambda objects: strict_json_text(objects) + "\n")
