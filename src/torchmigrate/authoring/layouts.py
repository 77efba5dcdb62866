"""Runs the examples of rules in other layouts and surroundings, for `test-rules` and the tests.

For every example with a fix and every variation of `layouts`: the fixed text parses on Python 3.10 and here,
it means what the fix of the example means (or the code stays as it is), fixing it again changes nothing, and
every comment is still there; where one is not, the fix was not safe and its reason said so.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial

from msgspec.structs import replace

from torchmigrate.authoring import variations as layouts
from torchmigrate.authoring.examples import EXAMPLE_PATH, ExampleFailure, settings_for
from torchmigrate.catalogue.examples import FIX, Example
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.loader import LoadedRule
from torchmigrate.engine.engine import Engine
from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Applicability, Fix
from torchmigrate.rewrite.comments import COMMENT_LOST
from torchmigrate.source.fstrings import fit_old_python
from torchmigrate.source.text import Source

OLDEST_PYTHON = (3, 10)  # whose code is checked


def check_layouts(item: LoadedRule, catalogue: Catalogue) -> Iterator[ExampleFailure]:
    """What is wrong with the examples of one rule in other forms; `check` has example and variation."""
    engines: dict[tuple[str | None, str | None], _Engines] = {}
    for number, example in enumerate(item.examples, start=1):
        if example.kind != FIX:
            continue
        versions = (example.target, example.minimum)
        if versions not in engines:
            engines[versions] = _Engines(item, example, catalogue)
        for variation, detail in _Variations(item, example, engines[versions]).failures():
            yield ExampleFailure(
                item.rule.code,
                item.rule.path,
                example.line or item.rule.line,
                f"example {number} as {variation}",
                detail,
            )


class _Engines:
    """What checks and fixes for one rule and one range of releases."""

    def __init__(self, item: LoadedRule, example: Example, catalogue: Catalogue) -> None:
        settings = settings_for(item.rule, example)
        self.look = Engine(catalogue, settings)
        self.safe = Engine(catalogue, replace(settings, fix=True))
        self.unsafe = Engine(catalogue, replace(settings, fix=True, unsafe_fixes=True))


class _Variations:
    """One example in all forms."""

    def __init__(self, item: LoadedRule, example: Example, engines: _Engines) -> None:
        self.example = example
        self.codemod = bool(item.rule.codemod)
        self.engines = engines

    def failures(self) -> Iterator[tuple[str, str]]:
        """Variation and what is wrong."""
        before, after = self.example.before, self.example.after or ""
        code, fixed = layouts.Code(before), layouts.Code(after)
        found = _run(self.engines.look, before).findings
        parts = all(_in_one_statement(finding.fix, code) for finding in found if finding.fix is not None)
        for name in layouts.LAYOUTS:
            text = layouts.laid_out(name, code)
            if text is not None:
                for detail in self._wrong(text, partial(_means, before, after, parts)):
                    yield name, detail
        lines = {code.source.position(finding.start)[0] for finding in found}
        paths = layouts.statements(code, lines)
        # The fix of the example may change whole statements; what it is in other surroundings is not known.
        same = not self.example.by_use and all(layouts.alike(code.tree, fixed.tree, path) for path in paths)
        for name in layouts.SURROUNDINGS:
            text = layouts.surrounded(name, code, paths)
            wrapped = layouts.surrounded(name, fixed, paths) if same else None
            if text is not None:
                for detail in self._wrong(text, partial(_means, text, wrapped, True)):
                    yield name, detail

    def _wrong(self, text: str, right: Callable[[str], bool]) -> Iterator[str]:
        engines = [self.engines.unsafe]
        if self.example.applicability is Applicability.SAFE:
            engines.insert(0, self.engines.safe)
        seen = {text}
        result: FileResult | None = None
        for engine in engines:
            if result is not None and not self._leaves_fixes(result):
                break
            result = _run(engine, text)
            for problem in result.problems:
                yield problem.reason
            new = result.new_text
            if new is None or new in seen:
                continue
            seen.add(new)
            yield from self._wrong_result(engine, text, new, right)

    def _leaves_fixes(self, result: FileResult) -> bool:
        """Whether another fix may be made of what is left; codemods may offer what is wanted."""
        return self.codemod or any(finding.fix is not None for finding in result.findings)

    def _wrong_result(
        self, engine: Engine, text: str, new: str, right: Callable[[str], bool]
    ) -> Iterator[str]:
        shown = "\n" + new.rstrip()
        try:
            ast.parse(new, feature_version=OLDEST_PYTHON)
        except SyntaxError as error:
            yield f"does not parse ({error.msg}):{shown}"
            return
        if not fit_old_python(new) and fit_old_python(text):
            yield f"an f-string that needs Python 3.12:{shown}"
        if not right(new):
            yield f"another meaning:{shown}"
        lost = comments(text) - comments(new)
        if lost and not self._says_so(engine, text):
            yield f"lost without a warning: {', '.join(lost)}:{shown}"
        if "\r\n" in text and "\n" in new.replace("\r\n", ""):
            yield f"another newline:{shown}"
        again = _run(engine, new)
        if again.new_text is not None:
            yield f"fixing it again changes it:{shown}\nto\n{again.new_text.rstrip()}"

    def _says_so(self, engine: Engine, text: str) -> bool:
        """Whether a fix is not safe and says that a comment is lost."""
        if not engine.settings.unsafe_fixes:
            return False
        found = _run(Engine(engine.whole, replace(engine.settings, fix=False)), text).findings
        return any(
            finding.fix is not None
            and finding.fix.applicability < Applicability.SAFE
            and COMMENT_LOST in finding.fix.held_by
            for finding in found
        )


def _in_one_statement(fix: Fix, code: layouts.Code) -> bool:
    """Whether a fix changes one statement, but for imports: then it is right without the others."""
    spans = [
        code.source.span(item)
        for item in code.tree.body
        if not isinstance(item, (ast.Import, ast.ImportFrom))
    ]
    touched = {span for edit in fix.edits for span in spans if edit.start < span[1] and span[0] < edit.end}
    return len(touched) < 2


def _means(before: str, after: str | None, parts: bool, new: str) -> bool:
    """Whether a text means the same as one of two, but for imports that stay for their comments.

    parts: or each of its statements does. True where `after` is not known.
    """
    if after is None:
        return True
    stays = layouts.imported(before) - layouts.imported(after)
    one, other, found = (layouts.dumped(text, stays) for text in (before, after, new))
    return found in (one, other) or (parts and _is_mixed(one, other, found))


def _is_mixed(one: Sequence[str], other: Sequence[str], found: Sequence[str]) -> bool:
    """Whether every place where two lists differ is in a third as in one of them."""
    position = 0
    for _, start, end, first, last in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        was, now = one[start:end], other[first:last]
        size = len(was)
        here = found[position : position + size]
        if size == len(now):
            if len(here) != size or any(map(_is_other, here, was, now)):
                return False
        elif here != was:
            size = len(now)
            if found[position : position + size] != now:
                return False
        position += size
    return position == len(found)


def _is_other(found: str, was: str, now: str) -> bool:
    return found not in (was, now)


def _run(engine: Engine, text: str) -> FileResult:
    return engine.check_source(Source.from_text(text, EXAMPLE_PATH), EXAMPLE_PATH)


def comments(text: str) -> Counter[str]:
    """The comments of a text that parses."""
    if "#" not in text:
        return Counter()
    return Counter(
        token.string.rstrip()
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline)
        if token.type == tokenize.COMMENT
    )
