"""JUnit XML, which CI systems show as the results of tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from torchmigrate.findings import Severity
from torchmigrate.patterns import pattern
from torchmigrate.report.locations import Item, ItemReporter, absolute

_NAME = "torchmigrate"
_PACKAGE = f"org.{_NAME}"
# XML has no way to write most of these; the others it allows, but no reader expects them.
_NOT_IN_XML = pattern("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Case(NamedTuple):
    """A test case, and the path of the file that it is about."""

    path: str
    element: Element


def reporter() -> ItemReporter:
    """A suite for each file, in which each finding is a test that fails.

    What could not be done is an error, not a failure. Without either there is one test, which passes.
    """
    return ItemReporter(_case, _suites)


def _suites(cases: Sequence[_Case]) -> str:
    cases = cases or [_Case(_NAME, Element("testcase", name="No errors found", classname=_NAME))]
    root = Element("testsuites", {"name": _NAME, **_counts([case.element for case in cases])})
    for path, group in groupby(cases, key=lambda case: case.path):
        mine = [case.element for case in group]
        element = SubElement(root, "testsuite", {"name": _text(path), **_counts(mine)})
        element.set("package", _PACKAGE)
        element.extend(mine)
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


def _case(item: Item) -> _Case:
    path, column, level = absolute(item.path), item.region.column or 1, item.severity.label
    kind = "error" if item.finding is None and item.severity is Severity.ERROR else "failure"
    name = f"{_PACKAGE}.{item.code}"
    case = Element("testcase", name=name, classname=_text(str(Path(path).with_suffix(""))))
    case.set("line", str(item.region.row))
    case.set("column", str(column))
    SubElement(SubElement(case, "properties"), "property", name="severity", value=level)
    failed = SubElement(case, kind, message=_text(item.message), type=level)
    failed.text = _text(f"line {item.region.row}, col {column}, {item.message}")
    return _Case(path, case)


def _text(text: str) -> str:
    return _NOT_IN_XML.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
