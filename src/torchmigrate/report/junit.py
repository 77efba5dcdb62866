"""JUnit XML, which CI systems show as the results of tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from msgspec import Struct

from torchmigrate.findings import Finding, Problem, Severity
from torchmigrate.patterns import pattern
from torchmigrate.report.base import FileFindings
from torchmigrate.report.locations import (
    Region,
    absolute,
    region_of,
    row_of_problem,
    said_place,
    said_place_of_problem,
)
from torchmigrate.report.reasons import message_of

_NAME = "torchmigrate"
_PACKAGE = f"org.{_NAME}"
# XML has no way to write most of these; the others it allows, but no reader expects them.
_NOT_IN_XML = pattern("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Suite(Struct, frozen=True):
    """The test cases of a file."""

    name: str
    cases: list[Element]


class JunitReporter:
    """A suite for each file, in which each finding is a test that fails.

    What could not be done is an error, not a failure. Without either there is one test, which passes.
    """

    def piece(self, file: FileFindings) -> _Suite:
        name = absolute(file.path)
        return _Suite(name, [_case_of(name, file, finding) for finding in file.findings])

    def problem(self, problem: Problem, shown: str) -> _Suite:
        name = absolute(problem.path)
        row = row_of_problem(problem)
        said = said_place_of_problem(problem) + problem.reason
        severity = problem.severity
        kind = "error" if severity is Severity.ERROR else "failure"
        case = _case(name, problem.kind.value, severity, Region(row, 1, row, 1), kind, said)
        return _Suite(name, [case])

    def whole(self, pieces: Sequence[_Suite]) -> str:
        suites = [
            _Suite(name, [case for suite in group for case in suite.cases])
            for name, group in groupby(pieces, key=lambda suite: suite.name)
        ]
        if not suites:
            passed = Element("testcase", name="No errors found", classname=_NAME)
            suites = [_Suite(_NAME, [passed])]
        cases = [case for suite in suites for case in suite.cases]
        root = Element("testsuites", {"name": _NAME, **_counts(cases)})
        for suite in suites:
            element = SubElement(root, "testsuite", {"name": _text(suite.name), **_counts(suite.cases)})
            element.set("package", _PACKAGE)
            element.extend(suite.cases)
        indent(root, "    ")
        # In ASCII, so that it is what its first line says in any terminal and locale.
        text = tostring(root, "us-ascii", xml_declaration=False).decode("ascii")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _counts(cases: Sequence[Element]) -> dict[str, str]:
    def number(kind: str) -> str:
        return str(sum(case.find(kind) is not None for case in cases))

    return {
        "tests": str(len(cases)),
        "skipped": "0",
        "failures": number("failure"),
        "errors": number("error"),
    }


def _case_of(name: str, file: FileFindings, finding: Finding) -> Element:
    region = region_of(file.source, finding.start, finding.end)
    message = said_place(file.source, finding) + message_of(finding)
    return _case(name, finding.code, finding.severity, region, "failure", message)


def _case(name: str, code: str, severity: Severity, region: Region, kind: str, message: str) -> Element:
    column = region.column or 1
    case = Element("testcase", name=f"{_PACKAGE}.{code}", classname=_text(str(Path(name).with_suffix(""))))
    case.set("line", str(region.row))
    case.set("column", str(column))
    SubElement(SubElement(case, "properties"), "property", name="severity", value=severity.label)
    failed = SubElement(case, kind, message=_text(message), type=severity.label)
    failed.text = _text(f"line {region.row}, col {column}, {message}")
    return case


def _text(text: str) -> str:
    return _NOT_IN_XML.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
