"""Findings as text: one module per output format, each with a `Reporter`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchmigrate.config.settings import OUTPUT_FORMATS

if TYPE_CHECKING:
    from torchmigrate.catalogue.model import Rule
    from torchmigrate.report.base import Reporter
    from torchmigrate.report.style import Style

FORMATS = OUTPUT_FORMATS
COMMANDS = ("github", "azure")  # whose lines are commands for a log
COUNTED = ("full", "concise", "json")  # in which `--statistics` can be printed, too


def reporter_for(output_format: str, style: Style, rule_of: Callable[[str], Rule | None]) -> Reporter[Any]:
    """The reporter of one of FORMATS; only its own module is imported.

    rule_of: gives a rule by its code, for the formats that describe rules.
    """
    match output_format:
        case "concise":
            from torchmigrate.report.concise import ConciseReporter

            return ConciseReporter(style)
        case "grouped":
            from torchmigrate.report.grouped import GroupedReporter

            return GroupedReporter(style)
        case "json":
            from torchmigrate.report.json import JsonReporter

            return JsonReporter(rule_of)
        case "json-lines":
            from torchmigrate.report.json_lines import JsonLinesReporter

            return JsonLinesReporter(rule_of)
        case "junit":
            from torchmigrate.report.junit import JunitReporter

            return JunitReporter()
        case "github":
            from torchmigrate.report.github import GithubReporter

            return GithubReporter()
        case "gitlab":
            from torchmigrate.report.gitlab import GitlabReporter

            return GitlabReporter()
        case "azure":
            from torchmigrate.report.azure import AzureReporter

            return AzureReporter()
        case "pylint":
            from torchmigrate.report.pylint import PylintReporter

            return PylintReporter()
        case "rdjson":
            from torchmigrate.report.rdjson import RdjsonReporter

            return RdjsonReporter()
        case "sarif":
            from torchmigrate.report.sarif import SarifReporter

            return SarifReporter(rule_of)
    from torchmigrate.report.full import FullReporter

    return FullReporter(style)
