"""The objects of the JSON format, one on a line."""

from __future__ import annotations

from collections.abc import Sequence

from torchmigrate.findings import Problem
from torchmigrate.report.base import FileFindings
from torchmigrate.report.json import RuleOf, as_object, problem_as_object
from torchmigrate.report.json_text import json_text
from torchmigrate.report.shared_edits import SharedEdits


class JsonLinesReporter:
    """An object for each finding, as in `json`, without a list around them."""

    def __init__(self, rule_of: RuleOf) -> None:
        self.rule_of = rule_of

    def piece(self, file: FileFindings) -> str:
        shared = SharedEdits()
        objects = (as_object(file, finding, shared, self.rule_of) for finding in file.findings)
        return "".join(json_text(each, indent=None) + "\n" for each in objects)

    def problem(self, problem: Problem, shown: str) -> str:
        return json_text(problem_as_object(problem), indent=None) + "\n"

    def whole(self, pieces: Sequence[str]) -> str:
        return "".join(pieces)
