"""Checks a rule file against the schema and says what is wrong in the words of its author."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast

from torchmigrate.catalogue.problems import KeyPath, did_you_mean, listed
from torchmigrate.catalogue.yaml_source import YamlFile

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

# Mistakes after which the rest of a rule can still be read.
_HARMLESS = frozenset({"required", "additionalProperties"})
_SIZES = frozenset({"minItems", "minProperties", "maxProperties", "uniqueItems"})


@cache
def _validator() -> Draft202012Validator:
    # Imported here: a run with compiled rules never needs it, and it takes 100 ms.
    from jsonschema import Draft202012Validator

    from torchmigrate.catalogue.schema import RULE_FILE

    return Draft202012Validator(RULE_FILE)


def check_shape(file: YamlFile) -> set[int]:
    """Report everything in the file that the schema does not allow.

    Returns:
        The numbers of the rules (from 0) that cannot be read any further.
    """
    broken: set[int] = set()
    for error in _validator().iter_errors(file.data):
        path: KeyPath = tuple(error.absolute_path)
        _report(error, path, file)
        if path and (error.validator not in _HARMLESS or len(path) > 1):
            broken.add(int(path[0]))
    return broken


def where(path: KeyPath) -> str:
    """How a place in a rule is written in messages: `cases[0].when.upper`."""
    text = ""
    for part in path[1:]:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _report(error: ValidationError, path: KeyPath, file: YamlFile) -> None:
    schema: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    instance = cast(Any, error.instance)
    allowed = schema.get("allowed", "something else")
    place = f"`{where(path)}`" if len(path) > 1 else "a rule" if path else "a rule file"
    if error.validator == "additionalProperties":
        known = schema["properties"]
        if len(path) == 1 and "code" not in instance:
            file.problem(path, f"{schema.get('title', place)} needs `code`")
            return
        for key in instance:
            if key not in known:
                title = schema.get("title", place)
                file.problem(
                    (*path, key),
                    f"unknown key `{key}` in {title}{did_you_mean(key, known)}; allowed: {', '.join(known)}",
                )
    elif error.validator == "required":
        lost = [key for key in cast(list[str], error.validator_value) if key not in instance]
        if error.message.startswith(repr(lost[0])):  # jsonschema reports each of them; say it once
            file.problem(path, f"{schema.get('title', place)} needs {listed(lost, last='and')}")
    elif "propertyNames" in error.absolute_schema_path:
        file.problem((*path, str(instance)), f"`{instance}` in {place} must be {allowed}")
    elif path in file.floats:
        file.problem(
            path, f'{place} must be {allowed}: write "{file.floats[path]}", YAML reads it as a number'
        )
    elif error.validator in _SIZES:
        problem = "holds something twice" if error.validator == "uniqueItems" else "has the wrong size"
        file.problem(path, f"{place} {problem}; it must be {allowed}")
    else:
        shown = _shown(instance)
        if len(path) <= 1 and shown.startswith("`"):
            shown = "text"  # of a file that need not be a rule file: its content is not ours to print
        file.problem(path, f"{place} must be {allowed}, not {shown}")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty"
    text = " ".join(str(value).split())
    return f"`{text[:60]}...`" if len(text) > 60 else f"`{text}`"
