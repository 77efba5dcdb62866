"""The file of a baseline: JSON with a line for each entry, sorted, so that git can merge it.

The list ends with `null`: the line of every entry ends with a comma, and a new last one does not change the
line before it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.baseline.entries import BaselineEntry
from torchmigrate.files.reading import MEGABYTE, UnreadableError, read
from torchmigrate.rewrite.apply import create_atomic, write_atomic
from torchmigrate.source.text import SourceError

NAME = ".torchmigrate-baseline.json"
VERSION = 1
MOST = 100 * MEGABYTE
_CONFLICT = (b"<<<<<<< ", b">>>>>>> ")


class BaselineError(Exception):
    """A baseline that cannot be read or written, with the reason in one line for a person."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Content(Struct, frozen=True):
    """What a baseline says.

    counts: how often each entry is accepted. target: the release of torch that it was written for, such as
    "2.15". embedded: whether it is about examples for readers as well. data: the bytes of the file; None:
    there is none.
    """

    counts: Mapping[BaselineEntry, int]
    target: str | None = None
    embedded: bool = False
    data: bytes | None = None


def read_content(path: Path) -> Content:
    """What a file says. Raises BaselineError if it cannot be read or is not a baseline."""
    try:
        data = read(path, MOST)
    except UnreadableError as error:
        hint = ""
        if error.reason.endswith("no such file or directory"):
            hint = "; `torchmigrate baseline` writes one"
        raise BaselineError(path, error.reason + hint) from None
    try:
        content = _understood(json.loads(data.decode("utf-8-sig")))
    except _DamagedError as error:
        reason = str(error)
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except json.JSONDecodeError as error:
        conflict = next(
            (row for row, line in enumerate(data.split(b"\n"), 1) if line.startswith(_CONFLICT)), 0
        )
        if conflict:
            reason = f"line {conflict} is a merge conflict marker"
        else:
            reason = f"line {error.lineno} is not valid JSON"
    except (RecursionError, ValueError):  # nested too deeply; a number with too many digits
        reason = "it is not valid JSON"
    else:
        return replace(content, data=data)
    raise BaselineError(path, f"not a baseline: {reason}")


class _DamagedError(Exception):
    pass


def _understood(content: Any) -> Content:
    if not isinstance(content, dict) or "findings" not in content:
        raise _DamagedError("it has no list of findings")
    if content.get("version") != VERSION:
        raise _DamagedError("it was written by another version of torchmigrate")
    target, listed = content.get("target"), content["findings"]
    if not isinstance(target, str | None):
        raise _DamagedError("its target is not a torch release")
    if not isinstance(listed, list):
        raise _DamagedError("its findings are not a list")
    counts: dict[BaselineEntry, int] = {}
    for number, item in enumerate(listed, 1):
        if item is None:
            continue
        if not isinstance(item, dict):
            raise _DamagedError(f"finding {number} is not an object")
        texts = [item.get("path"), item.get("code"), item.get("symbol", ""), item.get("line")]
        count = item.get("count", 1)
        if not all(isinstance(text, str) for text in texts) or type(count) is not int or count < 1:
            raise _DamagedError(f"finding {number} has missing or unknown keys")
        entry = BaselineEntry(*texts)
        # Both sides of a merge may have it.
        counts[entry] = max(count, counts.get(entry, 0))
    return Content(counts, target, content.get("embedded") is True)


def rendered(counts: Mapping[BaselineEntry, int], content: Content) -> bytes:
    """The bytes of a baseline with other counts."""
    lines = ["{", f'  "version": {VERSION},']
    if content.target is not None:
        lines.append(f'  "target": {json.dumps(content.target)},')
    if content.embedded:
        lines.append('  "embedded": true,')
    lines.append('  "findings": [')
    for entry in sorted(counts):
        item: dict[str, object] = {"path": entry.path, "code": entry.code}
        if entry.symbol:
            item["symbol"] = entry.symbol
        item["line"] = entry.line
        if counts[entry] > 1:
            item["count"] = counts[entry]
        lines.append(f"    {json.dumps(item, ensure_ascii=False)},")
    lines += ["    null", "  ]", "}", ""]
    # The name of a file may have bytes that are not text, and a line may have halves of characters: they are
    # written as JSON escapes.
    return "\n".join(lines).encode("utf-8", "backslashreplace")


def save(path: Path, counts: Counter[BaselineEntry], content: Content) -> bool:
    """Write a baseline with other counts in one step; False: the file holds something else by now.

    content: what the file was read as. Raises BaselineError where it cannot be written.
    """
    data, old = rendered(+counts, content), content.data
    if data == old:
        return True
    try:
        if old is None:
            create_atomic(path, data)
        else:
            write_atomic(path, data, old)
    except SourceError as error:
        try:
            now = read(path, MOST)
        except UnreadableError:
            now = None
        if now != old:
            return False
        raise BaselineError(path, error.reason) from None
    return True
