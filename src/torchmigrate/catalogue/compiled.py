"""The compiled form of the catalogue: JSON, a line for the heads of all rules and one for each rule.

A rule is read when it is first needed, without checking.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import fields

from torchmigrate.catalogue.compiled_file import StaleError, pack, unpack
from torchmigrate.catalogue.index import Catalogue, Content
from torchmigrate.catalogue.model import Case, Condition, ResultUse, Rule, RuleHead
from torchmigrate.findings import Applicability


def dump(rules: Iterable[Rule], made_from: str, others: Iterable[Rule]) -> bytes:
    """Rules as the bytes of a compiled file, the same for the same rules.

    Args:
        rules: in the order of the catalogue.
        made_from: on one line; `unpack` gives it back.
        others: rules that are code. Of them, only the names are in the file. Without a default: a file that
            lacks them makes a program that does not know them.
    """
    rules = list(rules)
    heads = msgspec.json.encode(list(map(RuleHead.of, rules)))
    lines = (json.dumps(_encode(rule), ensure_ascii=False, separators=(",", ":")).encode() for rule in rules)
    return pack(made_from, [*rules, *others], b"".join(line + b"\n" for line in (heads, *lines)))


def load(data: bytes) -> Catalogue:
    """The catalogue in a compiled file; no rule is built before it is needed.

    Raises:
        StaleError: it is damaged, or of another format.
    """
    return Catalogue.made(*content(unpack(data).rules))


def content(rules: bytes) -> Content:
    """What `CompiledFile.rules` holds.

    Raises:
        StaleError: it is damaged.
    """
    try:
        first, *lines = rules.splitlines()
        heads = msgspec.json.decode(first, type=list[RuleHead])
    except ValueError as error:
        raise StaleError(str(error)) from None
    if len(heads) != len(lines):
        raise StaleError("rules are missing")
    return list(enumerate(heads)), _Builder(lines)


class _Builder:
    """Builds rules by number; a class, so that a catalogue can be sent to another process."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines

    def __call__(self, number: int) -> Rule:
        return _rule(json.loads(self.lines[number]))


# ---- writing: what differs from the default ---------------------------------------------------------


def _encode(value: Any) -> Any:
    if isinstance(value, Applicability):
        return value.label
    if isinstance(value, (Rule, Case, ResultUse, Condition)):
        pairs = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: _encode(found) for field, found in pairs if found != field.default}
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, (tuple, list)):
        return [_encode(item) for item in value]
    return value


# ---- reading ----------------------------------------------------------------------------------------


def _rule(raw: Mapping[str, Any]) -> Rule:
    values = dict(raw)
    for key in ("roles", "parameters", "missing", "replaced_by", "references", "files"):
        if key in values:
            values[key] = tuple(values[key])
    if "members" in values:
        values["members"] = frozenset(values["members"])
    if "match" in values:
        values["match"] = _conditions(values["match"])
    if "cases" in values:
        values["cases"] = tuple(map(_case, values["cases"]))
    return Rule(**values)


def _case(raw: Mapping[str, Any]) -> Case:
    values = dict(raw)
    for key in ("roles", "drop", "insert", "to_keyword"):
        if key in values:
            values[key] = tuple(values[key])
    if "when" in values:
        values["when"] = _conditions(values["when"])
    if "applicability" in values:
        values["applicability"] = Applicability[values["applicability"].upper()]
    if "result" in values:
        result = dict(values["result"])
        for key in ("fields", "new_fields"):
            if key in result:
                result[key] = tuple(result[key])
        if "adjust" in result:
            result["adjust"] = {int(number): text for number, text in result["adjust"].items()}
        values["result"] = ResultUse(**result)
    return Case(**values)


def _conditions(raw: Mapping[str, Any]) -> dict[str, Condition]:
    return {name: Condition(item["kind"], _values(item.get("values", ()))) for name, item in raw.items()}


def _values(raw: Iterable[Any]) -> tuple[object, ...]:
    """JSON has no tuples: in conditions every list is one."""
    return tuple(_values(item) if isinstance(item, list) else item for item in raw)
