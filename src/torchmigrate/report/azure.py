"""Logging commands that Azure Pipelines shows as issues of a build."""

from __future__ import annotations

from torchmigrate.findings import Severity
from torchmigrate.printing import printable
from torchmigrate.report.locations import Item, ItemReporter, absolute

# Azure knows these two kinds only.
_TYPE = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "warning"}


def reporter() -> ItemReporter:
    """`##vso[task.logissue type=...;sourcepath=...;linenumber=...;columnnumber=...;code=...;]message`."""
    return ItemReporter(_line)


def _line(item: Item) -> str:
    fields = {
        "type": _TYPE[item.severity],
        "sourcepath": absolute(item.path),
        "linenumber": item.region.row,
        "columnnumber": item.region.column or 1,
        "code": item.code,
    }
    shown = "".join(f"{key}={_property(printable(str(value)))};" for key, value in fields.items())
    return f"##vso[task.logissue {shown}]{_data(item.message)}\n"


def _data(text: str) -> str:
    # `%` has an escape of its own in what Azure reads, so that a text which has escapes stays as it is.
    return text.replace("%", "%AZP25")


def _property(text: str) -> str:
    return _data(text).replace(";", "%3B").replace("]", "%5D")
