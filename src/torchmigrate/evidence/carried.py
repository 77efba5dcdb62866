"""Evidence that goes along with a file whose lines change: for code that changes it step by step."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from torchmigrate.evidence.location import DIRECTORY, FILE
from torchmigrate.files.paths import forget


def carry(root: Path, changed: Mapping[str, tuple[bytes, bytes]]) -> None:
    """Write the evidence of a project anew for files that changed: what is known of other lines is kept.

    changed: what was and what is in a file, by its path relative to `root`, with `/`. Warnings are dropped;
    evidence of anything but what was is left as it is. Nothing is done where there is no evidence.
    Raises OSError where it cannot be written.
    """
    content = _content(root)
    if content is None:
        return
    for name, (old, new) in changed.items():
        entry = content["files"].get(name)
        if entry is None or entry["sha256"] != hashlib.sha256(old).hexdigest():
            continue
        content["files"][name] = _moved(entry, _lines(old, new), hashlib.sha256(new).hexdigest())
    _write(root, content)


def _lines(old: bytes, new: bytes) -> dict[int, int]:
    """Where lines that did not change are now, by where they were; from 1."""
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    return {
        block.a + number + 1: block.b + number + 1
        for block in matcher.get_matching_blocks()
        for number in range(block.size)
    }


def _moved(entry: dict[str, Any], lines: Mapping[int, int], sha256: str) -> dict[str, Any]:
    places = {}
    for place, slots in entry["places"].items():
        line, _, rest = place.partition(":")
        if int(line) in lines:
            places[f"{lines[int(line)]}:{rest}"] = slots
    return {"sha256": sha256, "places": places}


def forget_warnings(root: Path, kept: Container[str]) -> None:
    """Remove the warnings from the evidence of a project, which is going to be recorded again.

    kept: the files whose warnings stay. Nothing is done where there is no evidence.
    Raises OSError where it cannot be written.
    """
    content = _content(root)
    if content is not None:
        for name, entry in content["files"].items():
            if name not in kept:
                entry.pop("warnings", None)
        _write(root, content)


def _content(root: Path) -> Any:
    try:
        return json.loads((root / DIRECTORY / FILE).read_bytes())
    except (OSError, ValueError):
        return None


def _write(root: Path, content: Any) -> None:
    path = root / DIRECTORY / FILE
    part = path.with_name(f"{FILE}.part")
    part.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")
    part.replace(path)
    forget()
