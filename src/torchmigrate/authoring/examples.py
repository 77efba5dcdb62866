"""Runs the examples of rules through the engine: what `torchmigrate test-rules` and the tests check.

For every example: that the rule finds what it should, where it should; that the fix gives exactly the `after`
text, that this text parses, is clean, and stays as it is when fixed again; and that other newlines, a byte
order mark and another encoding change nothing of that.
"""

from __future__ import annotations

import ast
import codecs
import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.catalogue.examples import CLEAN, FIX, Example
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.loader import LoadedRule
from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.store import own_names
from torchmigrate.config.settings import Settings
from torchmigrate.engine.engine import ENDLESS, Engine
from torchmigrate.engine.options import EngineOptions
from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Applicability, Finding
from torchmigrate.report.reasons import help_of, message_of, reason_of
from torchmigrate.source.kinds import kind_of
from torchmigrate.source.text import Source, SourceError
from torchmigrate.source.trees import walk
from torchmigrate.versions.releases import NEWEST

# A directory that does not exist: a module next to the example would shadow a library.
EXAMPLE_PATH = Path("<example>", "example.py")
LATIN_1 = "# -*- coding: latin-1 -*-\n# déjà vu\n"


class ExampleFailure(Struct, frozen=True):
    """What is wrong with one example.

    check: which of the checks failed: findings, place, fix, parse, clean, again, crlf, bom or latin-1.
    line: of the example in the rule file `path`.
    detail: one or more lines for a person.
    """

    code: str
    path: str
    line: int
    check: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.code}: {self.check}: {self.detail}"


def check_rule(item: LoadedRule, catalogue: Catalogue) -> Iterator[ExampleFailure]:
    """What is wrong with the examples of one rule."""
    for example in item.examples:
        for check, detail in _Checks(item.rule, example, catalogue).failures():
            yield ExampleFailure(
                item.rule.code, item.rule.path, example.line or item.rule.line, check, detail
            )


def settings_for(rule: Rule, example: Example) -> Settings:
    """The settings that an example of a rule is checked with: that rule, for the releases of the example."""
    return Settings(
        codes=frozenset([rule.code]),
        known={rule.code: rule.code, rule.name: rule.code},
        own_names=own_names([rule]),
        target=example.target or NEWEST,
        minimum=example.minimum,
    )


class _Checks:
    """One example of one rule."""

    def __init__(self, rule: Rule, example: Example, catalogue: Catalogue) -> None:
        self.rule = rule
        self.example = example
        settings = settings_for(rule, example)
        unsafe = example.applicability < Applicability.SAFE
        options = EngineOptions(read_other=self._beside)
        self.look = Engine(catalogue, settings, options)
        self.fix_safe = Engine(catalogue, replace(settings, fix=True), options)
        self.fix = self.fix_safe
        if unsafe:
            self.fix = Engine(catalogue, replace(settings, fix=True, unsafe_fixes=True), options)

    def failures(self) -> Iterator[tuple[str, str]]:
        try:
            result = self._run(self.look, self.example.before.encode())
            yield from self._problems(result)
            if result.problems:
                return
            yield from self._findings(result)
            if self.example.kind == FIX:
                yield from self._fixes()
        except SourceError as error:
            yield "parse", error.reason

    @property
    def path(self) -> Path:
        return EXAMPLE_PATH.with_name(self.example.file) if self.example.file else EXAMPLE_PATH

    def _source(self, data: bytes) -> Source:
        return kind_of(self.path).from_bytes(data, self.path)

    def _run(self, engine: Engine, data: bytes) -> FileResult:
        return engine.check_source(self._source(data), self.path)

    def _beside(self, path: Path) -> str | None:
        """The text of another file of the example."""
        directory = self.path.parent.absolute()
        return self.example.beside.get(path.name) if path.parent == directory else None

    def _problems(self, result: FileResult) -> Iterator[tuple[str, str]]:
        for problem in result.problems:
            if problem.reason == ENDLESS.format(self.rule.code):
                yield "again", "the rule finds the code that its fix writes, so that fixing does not end"
            else:
                yield "parse", problem.reason

    # ---- what is found -------------------------------------------------------------------------------

    def _findings(self, result: FileResult) -> Iterator[tuple[str, str]]:
        text, found = self.example.before, result.findings
        if self.example.kind == CLEAN:
            for finding in found:
                yield "findings", f"`{text[finding.start : finding.end]}` was reported"
            return
        if not found:
            yield "findings", "nothing was found"
        for finding in found:
            if finding.code != self.rule.code:
                yield "findings", f"{finding.code} was reported instead of {self.rule.code}"
            yield from self._place(finding)
            fixable = finding.fix is not None and finding.fix.applicability > Applicability.DISPLAY
            placed = not self.rule.files and _is_placed_here(text)
            if self.example.kind != FIX and fixable and not placed:
                yield "findings", f"`{text[finding.start : finding.end]}` has a fix"
        if self.example.kind == FIX and found and all(finding.fix is None for finding in found):
            yield "fix", "the findings have no fix"

    def _place(self, finding: Finding) -> Iterator[tuple[str, str]]:
        text = self.example.before
        if not 0 <= finding.start < finding.end <= len(text):
            yield "place", f"characters {finding.start} to {finding.end} are outside of the example"
            return
        segment = text[finding.start : finding.end]
        whole = self.rule.files or _on_word_bounds(text, finding.start, finding.end)
        if segment != segment.strip() or not whole:
            yield "place", f"`{segment}` is not a whole expression"
        symbol = finding.symbol
        if self.rule.files:
            pass  # no qualified names
        elif symbol is None or not self._covers(symbol):
            yield "place", f"`{symbol}` is not a symbol of the rule"
        elif not self._speaks_of(segment, symbol):
            yield "place", f"`{segment}` does not stand for `{symbol}`"
        fix = finding.fix
        for shown in (message_of(finding), help_of(finding), fix and fix.title, fix and reason_of(fix)):
            if shown and re.search(r"\{\w+\}|\$\w", shown):
                yield "place", f"an unfilled text: {shown}"

    def _covers(self, symbol: str) -> bool:
        from torchmigrate.semantics.public_names import public_name
        from torchmigrate.semantics.values.objects import inherited

        symbol = symbol.removesuffix(".__init__")  # of a class, on whose arguments the rule is
        names = {symbol, public_name(symbol), *inherited(public_name(symbol))}
        known = {*self.rule.symbols, *map(public_name, self.rule.symbols)}
        inside = any(
            name == module or name.startswith(module + ".") for name in names for module in self.rule.modules
        )
        return inside or bool(names & known) or bool(self.rule.codemod)

    def _speaks_of(self, segment: str, symbol: str) -> bool:
        """Whether the source shows the symbol or a local name for it; an argument may look like anything."""
        if self.rule.parameters or self.rule.codemod:
            return True
        words = set(re.findall(r"\w+", segment))
        return symbol.rpartition(".")[2] in words or bool(words & _local_names(self.example.before))

    # ---- what is fixed -------------------------------------------------------------------------------

    def _fixes(self) -> Iterator[tuple[str, str]]:
        before, after = self.example.before, self.example.after or ""
        result = self._run(self.fix, before.encode())
        yield from self._problems(result)
        text = result.new_text if result.new_text is not None else before
        if text != after:
            yield "fix", "another text:\n" + _diff(after, text)
            return
        if self.fix is not self.fix_safe:
            safe = self._run(self.fix_safe, before.encode())
            if safe.new_text == after:
                yield "fix", "applied without --unsafe-fixes, though the example says that it is unsafe"
        try:
            if not self.rule.files:
                ast.parse(text)
        except SyntaxError as error:
            yield "parse", f"the fixed text does not parse: {error}"
            return
        left = self._run(self.look, text.encode()).findings
        least = Applicability.UNSAFE if self.fix is not self.fix_safe else Applicability.SAFE
        for finding in left:
            if finding.fix is not None and finding.fix.applicability >= least:
                yield "clean", f"`{text[finding.start : finding.end]}` is still reported, with a fix"
        again = self._run(self.fix, text.encode()).new_text
        if again is not None:
            yield "again", "fixing the fixed text changes it:\n" + _diff(text, again)
        yield from self._variants(before, after)

    def _variants(self, before: str, after: str) -> Iterator[tuple[str, str]]:
        """The same edit in files with other newlines, a byte order mark and another encoding."""
        yield from self._same("crlf", _crlf(before).encode(), _crlf(after).encode())
        yield from self._same("bom", codecs.BOM_UTF8 + before.encode(), codecs.BOM_UTF8 + after.encode())
        if self.rule.files:
            return
        try:
            old, new = (LATIN_1 + before).encode("latin-1"), (LATIN_1 + after).encode("latin-1")
        except UnicodeEncodeError:
            return  # the example is about characters that latin-1 does not have
        yield from self._same("latin-1", old, new)

    def _same(self, check: str, before: bytes, after: bytes) -> Iterator[tuple[str, str]]:
        source = self._source(before)
        result = self._run(self.fix, before)
        for problem in result.problems:
            yield check, problem.reason
        data = before if result.new_text is None else source.encode(result.new_text)
        if data != after:
            encoding = source.encoding
            yield check, "another text:\n" + _diff(after.decode(encoding), data.decode(encoding))


def _on_word_bounds(text: str, start: int, end: int) -> bool:
    def joined(left: str, right: str) -> bool:
        return bool(left and right and (left + right).isidentifier()) and left.isidentifier()

    return not joined(text[start - 1 : start], text[start]) and not joined(text[end - 1], text[end : end + 1])


def _local_names(code: str) -> set[str]:
    """Names that the code binds by imports and assignments."""
    found: set[str] = set()
    for node in walk(ast.parse(code)):
        if isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def _crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def _diff(wanted: str, got: str) -> str:
    lines = difflib.unified_diff(
        wanted.splitlines(keepends=True),
        got.splitlines(keepends=True),
        "the example's `after`",
        "the fix",
        n=2,
    )
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines).rstrip()


def _is_placed_here(text: str) -> bool:
    """Whether a text holds f-strings whose inner places this Python knows: they can be fixed."""
    return sys.version_info >= (3, 12) and any(
        isinstance(node, ast.JoinedStr) for node in walk(ast.parse(text))
    )
