"""The differences between two records, by rule and kind."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from freezing.record import Row, read

SPAN = ("path", "code", "symbol", "cell", "location", "end_location")
KEYS = {"run": ("run",), "finding": SPAN, "text": ("run", "path", "row"), "place": SPAN, "plan": ("key",)}
SUBJECT = ("path", "code", "symbol", "message")  # of what may have moved
POSITIONS = frozenset(["location", "end_location", "row", "rows", "cell", "link", "kind"])


@dataclass(frozen=True)
class Difference:
    """One difference. rule: codes of rules, or `-`. old, new: what to show of either side."""

    rule: str
    kind: str
    place: str
    old: str = ""
    new: str = ""


def shown(value: object) -> str:
    """A value as text: a string, a list of lines, or JSON."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "\n".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def text_of(row: Row) -> str:
    """What to show of a row that only one side has."""
    return shown(row.get("message", row.get("value", row.get("changed"))))


def paired(old: list[Row], new: list[Row], key: Iterable[str]) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows that agree in the fields of `key`, in their order; None for what the other side lacks."""
    groups: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((old, new)):
        for row in rows:
            groups[json.dumps([row.get(field) for field in key])][side].append(row)
    for left, right in groups.values():
        yield from zip_longest(left, right)


def changes(old: Row, new: Row) -> Iterator[tuple[str, str, str]]:
    """The kind and both sides of every field that differs; of a fix, of its fields."""
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        name = key.replace("_", " ")
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            yield from ((f"{name} {kind}", left, right) for kind, left, right in changes(before, after))
        elif key in ("fix", "unsafe_fix"):
            sides = ({"applicability": None} if fix is None else fix for fix in (before, after))
            left, right = (fix.get("applicability", "some") for fix in sides)  # the plan has none
            yield f"{name} {left} -> {right}", shown(before), shown(after)
        elif key in ("severity", "applicability", "effect", "effort", "exit"):
            yield f"{name} {before} -> {after}", "", ""
        else:
            yield name, shown(before), shown(after)


def without_positions(value: Any) -> Any:
    if isinstance(value, list):
        return [without_positions(each) for each in value]
    if isinstance(value, dict):
        return {key: without_positions(each) for key, each in value.items() if key not in POSITIONS}
    return value


def codes_by_path(rows: Iterable[Row]) -> dict[str, list[tuple[int, int, str]]]:
    """For each file: first and last line of all places of findings and of their edits, with their codes."""
    found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for row in rows:
        edits = [edit for fix in (row["fix"], row["unsafe_fix"]) if fix is not None for edit in fix["edits"]]
        for span in (row, *row["places"], *edits):
            lines = span["location"]["row"], span["end_location"]["row"]
            # Rows in a notebook are those of a cell: every line of the file may be meant.
            found[row["path"]].append((*(lines if row["cell"] is None else (0, sys.maxsize)), row["code"]))
    return found


def compare_rows(old: list[Row], new: list[Row]) -> Iterator[Difference]:
    """All differences between two records of one repository."""
    codes = codes_by_path(row for row in (*old, *new) if row["kind"] == "finding")

    def difference(row: Row, kind: str, before: str, after: str) -> Difference:
        rule, place = row.get("code", "-"), str(row.get("path", row.get("run", row.get("key"))))
        if row["kind"] == "text":
            first, last = row["row"], row["last"]
            near = {code for start, end, code in codes.get(row["path"], ()) if start <= last and first <= end}
            rule, place = "/".join(sorted(near)[:3]) or "-", f"{place}:{first}"
        elif "location" in row:
            cell = "" if row.get("cell") is None else f"cell {row['cell']}:"
            place = f"{place}:{cell}{row['location']['row']}"
        what = {"text": f"text after {row.get('run')}", "place": "plan place"}.get(row["kind"], row["kind"])
        return Difference(rule, f"{what} {kind}", place, before, after)

    for name, key in KEYS.items():
        lost: list[Row] = []
        found: list[Row] = []
        before, after = ([row for row in rows if row["kind"] == name] for rows in (old, new))
        for left, right in paired(before, after, key):
            if left is None or right is None:
                lost += [left] if left is not None else []
                found += [right] if right is not None else []
            else:
                yield from (difference(left, *change) for change in changes(left, right))
        for left, right in paired(lost, found, SUBJECT if key is SPAN else key):
            if left is not None and right is not None:
                yield difference(left, "moved", "", difference(right, "", "", "").place)
                for change in changes(without_positions(left), without_positions(right)):
                    yield difference(right, *change)
            elif left is not None:
                yield difference(left, "lost", text_of(left), "")
            elif right is not None:
                yield difference(right, "new", "", text_of(right))


def compare(old: Path, new: Path) -> Iterator[Difference]:
    """All differences between two directories of records; places begin with the name of the repository."""
    for name in sorted({path.name for side in (old, new) for path in side.glob("*.jsonl.gz")}):
        repository = name.removesuffix(".jsonl.gz")
        left, right = [*read(old / name)], [*read(new / name)]
        if not left or not right:
            yield Difference("-", f"repository only in {'OLD' if left else 'NEW'}", repository)
            continue
        if left[0]["content"] != right[0]["content"]:
            yield Difference("-", "repository content", repository)
        for each in compare_rows(with_texts(left[1:]), with_texts(right[1:])):
            yield Difference(each.rule, each.kind, f"{repository}:{each.place}", each.old, each.new)


def with_texts(rows: list[Row]) -> list[Row]:
    """The rows, and one for every change of a text."""
    for row in [row for row in rows if row["kind"] == "fixed"]:
        for first, before, after in row["hunks"]:
            last = first + max(len(before) - 1, 0)
            text = "\n".join(after) if after else "(deleted)"
            rows.append({**row, "kind": "text", "row": first, "last": last, "hunks": None, "changed": text})
    return rows


def report(differences: Iterable[Difference], samples: int) -> Iterator[str]:
    """The lines to print: counts by rule and kind, then samples of each."""
    groups: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    for each in differences:
        groups[each.rule, each.kind].append(each)
    for (rule, kind), members in sorted(groups.items()):
        yield f"{len(members):7} {rule:<8} {kind}"
    yield f"{sum(map(len, groups.values())):7} differences"
    for (rule, kind), members in sorted(groups.items()):
        yield f"\n{rule} {kind}: {len(members)}"
        for each in members[:samples]:
            yield f"  {each.place}"
            for sign, text in (("-", each.old), ("+", each.new)):
                yield from (f"    {sign} {line[:300]}" for line in text.split("\n")[:8] if text)
