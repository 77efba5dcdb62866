"""JSON Schemas for editors: of a configuration and of rule files.

They are made of what the program itself goes by: the keys of a configuration, and the schema that the loader
checks rule files with. Editors know the regular expressions of ECMAScript, not those of Python, and show
`description`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchmigrate.catalogue.pages import SITE
from torchmigrate.config.keys import table_schema
from torchmigrate.config.settings import FILE_NAME, PROJECT_FILE, TABLE

Schema = dict[str, Any]
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _configuration() -> Schema:
    return {"title": f"Configuration of torchmigrate ({FILE_NAME})", **table_schema()}


def _project() -> Schema:
    tool = {"type": "object", "properties": {"torchmigrate": table_schema()}}
    return {
        "title": f"[{TABLE}] in {PROJECT_FILE}",
        "type": "object",
        "properties": {"tool": tool},
    }


def _rules() -> Schema:
    from torchmigrate.catalogue.schema import RULE_FILE

    converted: Schema = _converted(RULE_FILE)
    return {**converted, "title": "Rules of torchmigrate"}


_MADE: dict[str, Callable[[], Schema]] = {
    "torchmigrate": _configuration,
    "pyproject": _project,
    "rules": _rules,
}
SCHEMAS = tuple(_MADE)


def schema(name: str) -> Schema:
    """The schema of one of SCHEMAS: of torchmigrate.toml, our table of pyproject.toml, or a rule file."""
    made = _MADE[name]()
    made.pop("$schema", None)
    return {"$schema": _DIALECT, "$id": f"{SITE}schemas/{name}.json", **made}


def _converted(part: Any) -> Any:
    """A part of our own schema, with nothing in it that is ours alone."""
    if isinstance(part, list):
        return [_converted(item) for item in part]
    if not isinstance(part, dict):
        return part
    made = {key: _converted(value) for key, value in part.items()}
    # A value that is not text is a property with the name of a keyword.
    if isinstance(pattern := made.get("pattern"), str):
        made["pattern"] = _of_ecmascript(pattern)
    if isinstance(allowed := made.get("allowed"), str):
        del made["allowed"]
        made.setdefault("description", allowed)
    return made


def _of_ecmascript(pattern: str) -> str:
    """A regular expression of the schema as ECMAScript writes it."""
    if pattern.startswith("(?s)"):
        pattern = pattern.removeprefix("(?s)").replace(".", r"[\s\S]")
    return pattern.replace(r"\A", "^").replace(r"\Z", "$")
