"""Comments that hide findings in files that are not Python: `# torchmigrate: ignore[TM970] reason`.

In C++ they begin with `//`, in Markdown with `<!--` (or `#` in a block of commands). A comment counts for its
line and, where lines are joined by a backslash, for all of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchmigrate.engine.suppressions import Comment, Suppressions, directives
from torchmigrate.source.other import CPP, MARKDOWN, OtherSource

_MARK = {CPP: r"//|/\*", MARKDOWN: r"<!--"}


def suppressions_of(source: OtherSource) -> Suppressions | None:
    """The suppressions of a text; None: there are none."""
    if "torchmigrate:" not in source.text:
        return None
    return Suppressions(source, list(_comments(source)))


def _comments(source: OtherSource) -> Iterator[Comment]:
    mark = _MARK.get(source.kind, "#")
    pattern = rf"(?:{mark})\s*torchmigrate:[^\r\n]*"
    last_row = source.line_count
    for found in re.finditer(pattern, source.text):
        row = source.position(found.start())[0]
        first, last = row, row
        while first > 1 and source.line_text(first - 1).endswith("\\"):
            first -= 1
        while last < last_row and source.line_text(last).endswith("\\"):
            last += 1
        before = source.text[source.line_start(row) : found.start()]
        alone = not before.strip() and first == last and source.kind != MARKDOWN
        yield from directives(found.start(), found[0], first, last, alone)
