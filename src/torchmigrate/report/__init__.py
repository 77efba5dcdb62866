"""Findings as text: one module per output format, each with a `Reporter`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from torchmigrate.config.settings import OUTPUT_FORMATS

if TYPE_CHECKING:
    from torchmigrate.catalogue.model import Rule
    from torchmigrate.report.base import Reporter
    from torchmigrate.report.style import Style

FORMATS = OUTPUT_FORMATS
COMMANDS = ("github", "azure")  # whose lines are commands for a log
_COLORED, _DESCRIBING = ("full", "concise", "grouped"), ("json", "json-lines", "sarif")
COUNTED = ("full", "concise", "json")  # in which `--statistics` can be printed, too


def reporter_for(output_format: str, style: Style, rule_of: Callable[[str], Rule | None]) -> Reporter[Any]:
    """The reporter of one of FORMATS; only its own module is imported.

    rule_of: gives a rule by its code, for the formats that describe rules.
    """
    name, function = (
        (output_format, "reporter") if output_format != "json-lines" else ("json", "lines_reporter")
    )
    make = getattr(import_module(f"torchmigrate.report.{name}"), function)
    about = [style] if output_format in _COLORED else [rule_of] if output_format in _DESCRIBING else []
    made: Reporter[Any] = make(*about)
    return made
