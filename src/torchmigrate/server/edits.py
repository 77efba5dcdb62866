"""The changes to a document, as edits for the client."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from torchmigrate.findings import Finding, Fix
from torchmigrate.rewrite.apply import line_edits
from torchmigrate.server.checks import Checked
from torchmigrate.server.documents import DocumentPart
from torchmigrate.server.positions import lines_of
from torchmigrate.source.pieces import PiecesSource
from torchmigrate.source.text import Source, SourceError

Changed = list[tuple[DocumentPart, list[types.TextEdit]]]


def with_fix(checked: Checked, source: Source, fix: Fix) -> Source:
    """The file with one fix in it, and without the imports that are unused then.

    source: the text that the fix is for. Raises SourceError, with the reason, where it cannot be made.
    """
    assert checked.source is not None and checked.checker is not None
    result = checked.checker.fix_one(checked.source, checked.snapshot.path, source, fix)
    if result.new is None:
        raise SourceError(next((problem.reason for problem in result.problems), "the fix cannot be made"))
    return result.new


def with_all_fixes(checked: Checked) -> Source | None:
    """The file after the fixes that its configuration wants: safe ones, or all; None: there are none."""
    assert checked.source is not None and checked.checker is not None
    return checked.checker.fix(checked.source, checked.snapshot.path).new


def with_suppression(checked: Checked, source: Source, finding: Finding) -> Source:
    """The file with a comment that hides a finding. Raises SourceError, with the reason, where it cannot."""
    from torchmigrate.engine.suppressing import with_comments

    assert checked.source is not None
    written = with_comments(checked.source, [(source, finding)], "", everywhere=False)
    if written.refused:
        raise SourceError(written.refused[0].reason)
    return written.source


def changed(checked: Checked, after: Source) -> Changed:
    """The edits of each text that make the file another one."""
    assert checked.source is not None
    before = checked.source
    if checked.snapshot.is_notebook:
        assert isinstance(before, PiecesSource) and isinstance(after, PiecesSource)
        texts = [
            (checked.snapshot.part_of(old.number), old.original, new.original)
            for old, new in zip(before.pieces, after.pieces, strict=True)
        ]
    else:
        texts = [(checked.snapshot.parts[0], _file_text(before), _file_text(after))]
    found = [(part, _edits(checked, part, old, new)) for part, old, new in texts if old != new]
    return [each for each in found if each[1]]


def workspace_edit(changes: Changed, *, versioned: bool) -> types.WorkspaceEdit:
    """The edits in the form that a client takes. versioned: it knows `documentChanges`."""
    if not versioned:
        return types.WorkspaceEdit(changes={part.uri: edits for part, edits in changes})
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(uri=part.uri, version=part.version), edits
            )
            for part, edits in changes
        ]
    )


def _file_text(source: Source) -> str:
    return source.written() if isinstance(source, PiecesSource) else source.text


def _edits(checked: Checked, part: DocumentPart, old: str, new: str) -> list[types.TextEdit]:
    """The smallest edits, line by line. A byte order mark is a character of the part, not of the text."""
    assert checked.source is not None
    lines = checked.lines(part)
    shift = 1 if checked.source.bom and not checked.snapshot.is_notebook else 0
    made = []
    for start, end, text in _by_line(old, new):
        gone = old[start:end]
        left = _common(gone, text)
        right = _common(gone[left:][::-1], text[left:][::-1])
        first, last = start + left + shift, end - right + shift
        made.append(types.TextEdit(lines.range(first, last), text[left : len(text) - right]))
    return made


def _by_line(old: str, new: str) -> Iterator[tuple[int, int, str]]:
    """Which lines become which; as many as there were, one by one."""
    for start, end, text, _ in line_edits(old, new):
        before, after = lines_of(old[start:end]), lines_of(text)
        if len(before) != len(after):
            yield start, end, text
            continue
        for one, other in zip(before, after, strict=True):
            if one != other:
                yield start, start + len(one), other
            start += len(one)


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
