"""The form of a rule file as JSON Schema: which keys there are, and what each may hold.

`allowed` is ours: the words for an error message. What one rule's parts say about each other (parameters of
the signature, variables, examples) is checked in `convert`. docs/develop/rules.md describes the format.
"""

from __future__ import annotations

from typing import Any

from torchmigrate.catalogue.model import ALL_ROLES, RAISES, WARNS
from torchmigrate.source.other import OTHER_KINDS
from torchmigrate.versions.requirement_lists import PACKAGES

Schema = dict[str, Any]

_NAME = r"[A-Za-z_]\w*"
_DOTTED = rf"{_NAME}(\.{_NAME})*"
_KEBAB = r"\A[a-z][a-z0-9]*(-[a-z0-9]+)*\Z"
_SOURCE_TYPES = ["string", "integer", "number", "boolean", "null"]


def _string(allowed: str, pattern: str = r"\S") -> Schema:
    return {"type": "string", "pattern": pattern, "allowed": allowed}


def _list_of(item: Schema, allowed: str) -> Schema:
    return {"type": "array", "items": item, "minItems": 1, "uniqueItems": True, "allowed": allowed}


def _mapping(keys: Schema, values: Schema, allowed: str) -> Schema:
    return {
        "type": "object",
        "propertyNames": keys,
        "additionalProperties": values,
        "minProperties": 1,
        "allowed": allowed,
    }


def _record(title: str, properties: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "title": title,
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        "minProperties": 1,
        "allowed": "a mapping",
    }


_LINE = _string("one line of text", r"\A[^\n]*\S[^\n]*\n?\Z")
_TEXT = _string("text")
_QUALIFIED = _string("a qualified name such as torch.linalg.qr", rf"\A{_NAME}(\.{_NAME})+\Z")
_MODULE = _string("a module such as torch._six", rf"\A{_DOTTED}\Z")
_PARAMETER = _string("a Python name, or a variable of the symbols such as $old", rf"\A\$?{_NAME}\Z")
_IDENTIFIER = _string("a Python name", rf"\A{_NAME}\Z")
_VERSION = _string('a release in quotes, such as "1.10"', r"\A\d+\.\d+\Z")
_REQUIRES = _string('a release in quotes, such as "1.10" or "torch 1.6"', r"\A([a-z]\w* )?\d+\.\d+\Z")
_SOURCE = {"type": _SOURCE_TYPES, "pattern": r"\S", "allowed": "Python source"}
_APPLICABILITY = {"enum": ["safe", "unsafe", "display"], "allowed": "safe, unsafe or display"}
_TRUE = {"const": True, "allowed": "true"}


def _roles(names: tuple[str, ...]) -> Schema:
    return _list_of({"enum": list(names), "allowed": f"one of {', '.join(names)}"}, "a list of roles")


_LITERAL = {"type": ["string", "integer", "number", "boolean", "null", "array"], "allowed": "a literal"}
_CONDITIONS = _mapping(
    _PARAMETER,
    {
        "type": [*_SOURCE_TYPES, "array", "object"],
        "minItems": 1,
        "items": _LITERAL,
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {
            "type": {
                "type": ["string", "array"],
                "minItems": 1,
                "allowed": "a type or a list of types",
            },
            "not_type": {
                "type": ["string", "array"],
                "minItems": 1,
                "allowed": "a type or a list of types",
            },
            "name": {
                "type": ["string", "array"],
                "minItems": 1,
                "allowed": "a qualified name or a list of them",
            },
            "call": {
                "type": ["string", "array"],
                "minItems": 1,
                "allowed": "a qualified name or a list of them",
            },
            "is": {
                "type": ["string", "array"],
                "minItems": 1,
                "allowed": "a kind of value such as tensor or uint8, or a list of them",
            },
            "not": {**_LITERAL, "minItems": 1, "allowed": "a literal or a list of literals"},
            "not_prefix": {
                "type": ["string", "array"],
                "minItems": 1,
                "items": {"type": "string", "minLength": 1, "allowed": "a string"},
                "allowed": "a string or a list of strings",
            },
            "matches": {"type": "string", "minLength": 1, "allowed": "a regular expression"},
            "keys": {
                "type": ["string", "array"],
                "minItems": 1,
                "items": {"type": "string", "minLength": 1, "allowed": "a string"},
                "allowed": "a string or a list of strings",
            },
            "other_shape": _PARAMETER,
            "takes": {"type": "integer", "minimum": 0, "allowed": "a number of parameters"},
            "value": {**_LITERAL, "minItems": 1, "allowed": "a literal or a list of literals"},
        },
        "additionalProperties": False,
        "title": "a condition",
        "allowed": "a literal, a list of literals, given, absent, positional, object, literal, any, or one "
        "of {type: [...]}, {not_type: [...]}, {not: ...}, {not_prefix: ...}, {matches: ...}, {keys: [...]}, "
        "{name: [...]}, {call: [...]}, {is: [...]}, {other_shape: ...}, {takes: ...}, {value: ...}",
    },
    "a mapping of parameters to conditions",
)
_PARAMETERS = _list_of(_PARAMETER, "a list of parameters")
_SOURCES = _mapping(_PARAMETER, _SOURCE, "a mapping of names to Python source")

_ARGUMENTS = _record(
    "`arguments`",
    {
        "drop": _PARAMETERS,
        "keywords": _mapping(_PARAMETER, _PARAMETER, "a mapping of parameters to new keywords"),
        "add": _SOURCES,
        "insert": {"type": "array", "items": _SOURCE, "minItems": 1, "allowed": "a list of Python sources"},
        "set": _SOURCES,
        "to_keyword": _PARAMETERS,
    },
)

_RESULT = _record(
    "`result`",
    {
        "fields": _list_of(_IDENTIFIER, "a list of the result's fields"),
        "take": {"type": ["string", "integer"], "allowed": "a field"},
        "adjust": {
            **_mapping(_IDENTIFIER, _TEXT, "a mapping of fields to templates such as $.mH"),
            "minProperties": 0,
        },
        "new_fields": _list_of(_IDENTIFIER, "a list of the new result's fields"),
        "plain": _TRUE,
    },
)

_APPLICATION: dict[str, Schema] = {
    "requires": _REQUIRES,
    "applicability": _APPLICABILITY,
    "reason": _LINE,
}

CASE: Schema = _record(
    "a case",
    {
        "when": _CONDITIONS,
        "roles": _roles(ALL_ROLES),
        "result": _RESULT,
        "pattern": {
            "type": ["string", "array"],
            "pattern": r"\S",
            "items": _TEXT,
            "minItems": 1,
            "uniqueItems": True,
            "allowed": "a pattern or a list of patterns",
        },
        "replace": _TEXT,
        "map": _mapping(
            _PARAMETER,
            _mapping(_TEXT, _SOURCE, "a mapping of old to new Python source"),
            "a mapping of parameters to {old source: new source}",
        ),
        "rename": _string("a qualified name, or a variable such as $new", rf"\A\$?{_DOTTED}\Z"),
        "arguments": _ARGUMENTS,
        "title": _LINE,
        "safe_from": _VERSION,
        **_APPLICATION,
    },
)

EXAMPLE: Schema = _record(
    "an example",
    {
        "before": _TEXT,
        "after": _TEXT,
        "report_only": _TEXT,
        "clean": _TEXT,
        "applicability": {"enum": ["safe", "unsafe"], "allowed": "safe or unsafe"},
        "prove": {
            "type": "object",
            "propertyNames": _IDENTIFIER,
            "additionalProperties": _SOURCE,
            "allowed": "a mapping of variables to Python source",
        },
        "then": _TEXT,
        "no_proof": _LINE,
        "by_use": _TRUE,
        "gradients": {"const": False, "allowed": "false"},
        "target": _VERSION,
        "minimum": _VERSION,
    },
)

RULE: Schema = _record(
    "a rule",
    {
        "code": _string("capital letters and three digits, such as TM131", r"\A[A-Z]{2,8}[0-9]{3}\Z"),
        "name": _string("kebab-case, such as linalg-symeig", _KEBAB),
        "summary": _LINE,
        "why": _TEXT,
        "library": _string("the import name of a library", rf"\A{_NAME}\Z"),
        "outdated": _VERSION,
        "deprecated": _VERSION,
        "changed": _VERSION,
        "removed": _VERSION,
        "symbols": {
            "type": ["array", "object"],
            "minItems": 1,
            "minProperties": 1,
            "uniqueItems": True,
            "items": _QUALIFIED,
            "propertyNames": _QUALIFIED,
            "additionalProperties": {
                **_MODULE,
                "type": ["string", "object"],
                "propertyNames": _IDENTIFIER,
                "additionalProperties": _string("text"),
                "allowed": "a qualified name, or a mapping of variables to text",
            },
            "allowed": "a list of qualified names, {old: new}, or {old: {variable: text}}",
        },
        "modules": _mapping(
            _MODULE,
            {**_MODULE, "type": ["string", "null"], "allowed": "the new module, or null"},
            "a mapping of old modules to new ones, or to null",
        ),
        "members": _list_of(_IDENTIFIER, "a list of names"),
        "signature": _string("a signature such as (input, upper=True)", r"(?s)\A\s*\(.*\)\s*\Z"),
        "roles": _roles((*ALL_ROLES, "string")),
        "parameters": _PARAMETERS,
        "missing": _PARAMETERS,
        "match": _CONDITIONS,
        "only_in_patterns": _TRUE,
        "cases": {"type": "array", "items": CASE, "minItems": 1, "allowed": "a list of cases"},
        "advice": _TEXT,
        "replaced_by": _list_of(_QUALIFIED, "a list of qualified names"),
        "shown": _mapping(_IDENTIFIER, _LINE, "a mapping of variables of the summary to text"),
        "codemod": _string("a codemod as FOLDER.MODULE", r"\A[a-z_]+\.[a-z0-9_]+\Z"),
        "prefilter": _string("a regular expression", r"\A.+\Z"),
        "until": _VERSION,
        "raises": {"enum": list(RAISES), "allowed": "`always`, `sometimes` or `never`"},
        "warns": {"enum": list(WARNS), "allowed": "`call` or `access`"},
        "opt_in": _TRUE,
        "group": _string("kebab-case, such as adopt-compile", _KEBAB),
        "once": {"enum": ["file", "function"], "allowed": "`file` or `function`"},
        "unless_declared": {"enum": sorted(PACKAGES), "allowed": f"one of {', '.join(sorted(PACKAGES))}"},
        "unless_named": _string("a regular expression", r"\A\S+\Z"),
        "failures": _TEXT,
        "together": _string("a name in kebab-case", r"\A[a-z0-9]+(?:-[a-z0-9]+)*\Z"),
        "references": _list_of(_string("a URL", r"\Ahttps?://\S+\Z"), "a list of URLs"),
        "examples": {"type": "array", "items": EXAMPLE, "minItems": 1, "allowed": "a list of examples"},
        **_APPLICATION,
    },
    required=("code", "name", "summary", "why", "library", "references", "examples"),
)

_PATTERNS: Schema = {
    "type": ["array", "object"],
    "minItems": 1,
    "minProperties": 1,
    "uniqueItems": True,
    "items": _LINE,
    "propertyNames": _LINE,
    "additionalProperties": {
        "type": ["string", "object", "null"],
        "propertyNames": _IDENTIFIER,
        "additionalProperties": _string("text"),
        "allowed": "what replaces it, null, or a mapping of variables to text",
    },
    "allowed": "a list of what is looked for, {old: new}, or {old: {variable: text}}",
}
OTHER_EXAMPLE: Schema = _record(
    "an example",
    {
        **{key: EXAMPLE["properties"][key] for key in ("before", "after", "report_only", "clean")},
        **{key: EXAMPLE["properties"][key] for key in ("applicability", "target", "minimum")},
        "file": _string("the name of a file", r"\A[^\s/]+\Z"),
        "beside": {
            "type": "object",
            "propertyNames": _string("the path of a file", r"\A[^\s/][^\s]*\Z"),
            "additionalProperties": {"type": "string", "allowed": "text"},
            "allowed": "a mapping of paths to texts",
        },
    },
)
# A rule about files that are not Python.
OTHER_RULE: Schema = _record(
    "a rule with `files`",
    {
        **{
            key: RULE["properties"][key]
            for key in ("code", "name", "summary", "why", "library", "outdated", "deprecated", "changed")
        },
        "removed": _VERSION,
        "level": {"enum": ["info", "warning", "error"], "allowed": "info, warning or error"},
        "files": _list_of(
            {"enum": list(OTHER_KINDS), "allowed": f"one of {', '.join(OTHER_KINDS)}"}, "a list of kinds"
        ),
        "words": _PATTERNS,
        "variables": _PATTERNS,
        "tokens": _PATTERNS,
        "finder": _string("a module of texts/finders", r"\A[a-z_]+\Z"),
        "shown": RULE["properties"]["shown"],
        **{key: RULE["properties"][key] for key in ("advice", "opt_in", "group", "references")},
        "once": {"const": "file", "allowed": "`file`"},
        "examples": {
            "type": "array",
            "items": OTHER_EXAMPLE,
            "minItems": 1,
            "allowed": "a list of examples",
        },
        **_APPLICATION,
    },
    required=("code", "name", "summary", "why", "library", "files", "references", "examples"),
)

RULE_FILE: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "a rule file",
    "type": "array",
    "items": {
        "if": {"type": "object", "required": ["files"]},
        "then": OTHER_RULE,
        "else": RULE,
    },
    "minItems": 1,
    "allowed": "a list of rules",
}
