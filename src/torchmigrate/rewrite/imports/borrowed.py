"""Fixes of an example that has names from the imports of the module around it: these stay as they are."""

from __future__ import annotations

from msgspec.structs import replace

from torchmigrate.findings import Edit, Fix
from torchmigrate.source.document import Document


def own_fix(fix: Fix, document: Document) -> Fix | None:
    """A fix whose new imports come first in the document; None: it changes what is borrowed."""
    unsafe = None if fix.unsafe is None else own_fix(fix.unsafe, document)
    lesser = None if fix.lesser is None else own_fix(fix.lesser, document)
    edits = [_own_edit(edit, document) for edit in fix.edits]
    kept = tuple(edit for edit in edits if edit is not None)
    if len(kept) < len(edits):
        return unsafe or lesser
    same = kept == fix.edits and (unsafe, lesser) == (fix.unsafe, fix.lesser)
    return fix if same else replace(fix, edits=tuple(dict.fromkeys(kept)), unsafe=unsafe, lesser=lesser)


def _own_edit(edit: Edit, document: Document) -> Edit | None:
    first = document.own_start
    if edit.start >= first:
        return edit
    if edit.start < edit.end or not edit.mergeable:
        return None
    text = edit.text.strip()
    if not text.startswith(("import ", "from ")):  # one more name of an import
        line = document.line_text(document.position(edit.start)[0])
        head, _, _ = line.rpartition(" import ")
        name = text.strip(" ,")
        if not line.startswith("from ") or not name.isidentifier():
            return None
        text = f"{head} import {name}"
    return Edit(first, first, f"{text}\n", True)
