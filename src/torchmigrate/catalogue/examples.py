"""The examples of a rule: its documentation and its tests."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.problems import KeyPath
from torchmigrate.catalogue.yaml_source import YamlFile
from torchmigrate.findings import Applicability

FIX, REPORT_ONLY, CLEAN = "fix", "report-only", "clean"
_KINDS = {"before": FIX, "report_only": REPORT_ONLY, "clean": CLEAN}


class Example(Struct, frozen=True):
    """A piece of code and what the rule makes of it.

    kind: "fix" (`before` becomes `after`), "report-only" (found, without a fix) or "clean" (not found).
    """

    kind: str
    before: str
    after: str | None = None
    applicability: Applicability = Applicability.SAFE  # of the fix; unsafe: only with --unsafe-fixes
    prove: Mapping[str, str] | None = field(default=None)  # variable -> source; None: not to be run
    then: str | None = None  # code that a proof runs after either side: it uses what the side defines
    no_proof: str | None = None  # why it is not run
    gradients: bool = True  # the proof compares gradients as well
    by_use: bool = False  # the fix depends on the uses of the value, so that elsewhere it may be another
    target: str | None = None  # torch release; None: the newest
    minimum: str | None = None
    file: str | None = None  # of an example that is not Python: its name, which says what it is
    beside: Mapping[str, str] = field(default_factory=dict)  # other files of its project: path -> text
    line: int = 0

    def sides(self) -> tuple[str, str]:
        """What a proof runs: the code before and after the fix, each with what uses its definitions."""
        use = f"\n{self.then}" if self.then is not None else ""
        return self.before + use, f"{self.after}{use}"


def read_examples(
    raw: list[dict[str, Any]], path: KeyPath, file: YamlFile, default: str | None = None
) -> tuple[Example, ...]:
    """The examples of one rule, whose shape is checked already; mistakes are reported to `file`.

    default: the name of the files that the examples are, where they do not say it; None: Python.
    """
    found = []
    for number, item in enumerate(raw):
        example = _read(item, (*path, number), file, default)
        if example is not None:
            found.append(example)
    return tuple(found)


def _read(raw: dict[str, Any], path: KeyPath, file: YamlFile, default: str | None) -> Example | None:
    kinds = [key for key in _KINDS if key in raw]
    if len(kinds) != 1:
        file.problem(path, "an example has one of `before` (with `after`), `report_only` and `clean`")
        return None
    key = kinds[0]
    if (key == "before") != ("after" in raw):
        file.problem(path, "`before` and `after` go together")
        return None
    for extra in ("applicability", "prove", "then", "no_proof", "gradients", "by_use"):
        if extra in raw and key != "before":
            file.problem((*path, extra), f"`{extra}` needs `before` and `after`")
    if "prove" in raw and "no_proof" in raw:
        file.problem((*path, "no_proof"), "an example has either `prove` or `no_proof`")
    if "then" in raw and "prove" not in raw:
        file.problem((*path, "then"), "`then` needs `prove`")
    if key == "before":
        if raw["before"] == raw["after"]:
            file.problem((*path, "after"), "`after` is the same as `before`")
        if default is None:
            _parse_module(raw["after"], (*path, "after"), file)
    prove = raw.get("prove")
    if prove is not None:
        prove = {name: source if isinstance(source, str) else repr(source) for name, source in prove.items()}
        for name, source in prove.items():
            check_source(source, (*path, "prove", name), file)
    return Example(
        kind=_KINDS[key],
        before=raw[key],
        after=raw.get("after"),
        applicability=Applicability[raw.get("applicability", "safe").upper()],
        prove=prove,
        then=raw.get("then"),
        no_proof=raw.get("no_proof"),
        gradients=raw.get("gradients", True),
        by_use=raw.get("by_use", False),
        target=raw.get("target"),
        minimum=raw.get("minimum"),
        file=raw.get("file", default),
        beside=raw.get("beside", {}),
        line=file.line(path),
    )


def check_kinds(rule: Rule, examples: tuple[Example, ...], path: KeyPath, file: YamlFile) -> None:
    """Report the kinds of example that a rule lacks."""
    kinds = {example.kind for example in examples}
    wanted: tuple[str, ...]
    fixes = not rule.finder and any(
        case.applicability is not Applicability.DISPLAY and case.roles for case in rule.cases
    )
    if fixes:
        wanted = (FIX, CLEAN) if rule.files else (FIX, REPORT_ONLY, CLEAN)
    elif rule.codemod or rule.finder:
        wanted = (CLEAN,)
        if not kinds & {FIX, REPORT_ONLY}:
            file.problem(path, "no example with `before` and `after`, or `report_only`")
    else:
        wanted = (REPORT_ONLY, CLEAN)
        if FIX in kinds:
            file.problem(path, "an example has `before` and `after`, but no case of the rule makes a fix")
    names = {FIX: "`before` and `after`", REPORT_ONLY: "`report_only`", CLEAN: "`clean`"}
    for kind in wanted:
        if kind not in kinds:
            file.problem(path, f"no example with {names[kind]}")


def check_source(source: str, path: KeyPath, file: YamlFile) -> ast.expr | None:
    """The expression that a piece of Python source is; reported when it is none."""
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        file.problem(path, f"`{source}` is not a Python expression: {reason}")
        return None


def _parse_module(source: str, path: KeyPath, file: YamlFile) -> None:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError) as error:
        reason = f"{error.msg}, line {error.lineno} of it" if isinstance(error, SyntaxError) else error
        file.problem(path, f"`after` does not parse: {reason}")
