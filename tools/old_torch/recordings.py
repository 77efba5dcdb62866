"""What old code gave on the old releases: files of one JSON object a line, read and written.

A recording says: this code, on these inputs, gave this on these releases. It is looked up by a digest of code
and inputs, so that it serves whoever has the same, and one of another code is never taken for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).resolve().parents[2] / "tests" / "recorded"


def digest(before: str, after: str, inputs: Mapping[str, str]) -> str:
    """The same for the same code on the same inputs."""
    text = json.dumps([before, after, sorted(inputs.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(directory: Path = DIRECTORY) -> dict[str, list[dict[str, Any]]]:
    """All recordings below a directory, by digest; the oldest releases first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(directory.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            recording = json.loads(line)
            found.setdefault(recording["digest"], []).append(recording)
    return found


def write(path: Path, recordings: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of recordings; the file goes if there are none."""
    lines = [
        json.dumps(item, sort_keys=True, ensure_ascii=False, separators=(",", ":")) for item in recordings
    ]
    if lines:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        path.unlink(missing_ok=True)
