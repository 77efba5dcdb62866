"""Makes `Case` and `Condition` objects of the `cases`, `when` and `match` of a rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from torchmigrate.catalogue.examples import check_source
from torchmigrate.catalogue.model import (
    ABSENT,
    ALL_ROLES,
    ANY,
    GIVEN,
    LITERAL,
    OBJECT,
    POSITIONAL,
    Case,
    Condition,
    ResultUse,
)
from torchmigrate.catalogue.problems import KeyPath, did_you_mean, listed
from torchmigrate.catalogue.yaml_source import YamlFile
from torchmigrate.findings import Applicability
from torchmigrate.patterns import pattern
from torchmigrate.semantics.facts.dtypes import KINDS
from torchmigrate.source.trees import walk
from torchmigrate.versions.releases import LIBRARIES

_WORDS = (GIVEN, ABSENT, POSITIONAL, OBJECT, LITERAL, ANY)
_TYPES = ("str", "int", "float", "bool", "none", "tuple", "list")
_TENSOR = "torch.Tensor"
_VARIABLE = pattern(r"\$(\w*)")
_ROOTS = frozenset(root for roots in LIBRARIES.values() for root in roots)


class Vocabulary(Struct):
    """What the templates and conditions of a rule may name."""

    file: YamlFile
    path: KeyPath  # of the rule
    symbols: Mapping[str, Mapping[str, str]]
    parameters: tuple[str, ...] = ()
    variables: frozenset[str] = frozenset()
    by_symbol: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the parameters of each
    has_signature: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)  # requires, applicability, reason of the rule

    def problem(self, path: KeyPath, text: str) -> None:
        self.file.problem(path, text)

    def check_parameters(self, names: Iterable[str], path: KeyPath, known: Collection[str] = ()) -> None:
        """Report those `names` that are neither parameters of the signature nor `known`."""
        for name in names:
            if name.startswith("$"):
                self._check_variable(name[1:], path)
                continue
            if name in self.parameters or name in known:
                continue
            allowed = (*self.parameters, *known)
            if not self.has_signature:
                self.problem((*path, name), f"`{name}` needs a `signature` that has it")
            else:
                hint = did_you_mean(name, allowed)
                has = listed(allowed, last="and")
                self.problem((*path, name), f"`{name}` is not in the signature{hint}; it has {has}")

    def _check_variable(self, variable: str, path: KeyPath) -> None:
        """Report a `$variable` in the place of a parameter that is none for one of the symbols."""
        if variable not in self.variables:
            self.problem((*path, f"${variable}"), f"`${variable}` is not a variable of the symbols")
            return
        for symbol, values in self.symbols.items():
            name = values[variable]
            if name not in self.by_symbol.get(symbol, ()):
                self.problem(
                    (*self.path, "symbols", symbol, variable),
                    f"`{name}` is not in the signature of `{symbol}`",
                )


# ---- conditions -------------------------------------------------------------------------------------


def read_conditions(
    raw: Mapping[str, Any], path: KeyPath, words: Vocabulary, known: tuple[str, ...] = ()
) -> dict[str, Condition]:
    """`when` or `match`; `known` are names besides the parameters (of a pattern)."""
    words.check_parameters(raw, path, known)
    return {name: _condition(value, (*path, name), words) for name, value in raw.items()}


def _condition(raw: Any, path: KeyPath, words: Vocabulary) -> Condition:
    if isinstance(raw, str) and raw in _WORDS:
        return Condition(raw)
    if isinstance(raw, dict):
        ((kind, value),) = raw.items()
        if kind == "type":
            return Condition("type", _types(value, (*path, kind), words))
        if kind == "not_type":
            return Condition("not-type", _types(value, (*path, kind), words))
        if kind in ("name", "call"):
            names = tuple(value) if isinstance(value, list) else (value,)
            for name in names:
                if not isinstance(name, str) or not all(map(str.isidentifier, name.split("."))):
                    words.problem((*path, kind), f"`{name}` is not a qualified name such as torch.float32")
            return Condition(kind, names)
        if kind == "is":
            return Condition("is", _types(value, (*path, kind), words, tuple(sorted(KINDS))))
        values = _literals(value)
        if kind == "other_shape":
            words.check_parameters([value], (*path, kind), ())
            return Condition("other-shape", values)
        if kind == "takes":
            return Condition("takes", values)
        if kind == "not":
            _refuse_words(values, path, words)
            return Condition("not-value", values)
        if kind == "keys":
            return Condition("keys", values)
        if kind == "matches":
            try:
                re.compile(value)
            except re.error as error:
                words.problem((*path, kind), f"`{value}` is not a regular expression: {error}")
            return Condition("matches", values)
        if kind == "not_prefix":
            return Condition("not-prefix", values)
        return Condition("value", values)
    values = _literals(raw)
    _refuse_words(values, path, words)
    return Condition("value", values)


def _literals(raw: Any) -> tuple[object, ...]:
    """A list is a choice; a list in it is a tuple."""
    return tuple(map(_literal, raw)) if isinstance(raw, list) else (raw,)


def _literal(raw: Any) -> object:
    return tuple(map(_literal, raw)) if isinstance(raw, list) else raw


def _types(
    raw: str | list[Any], path: KeyPath, words: Vocabulary, allowed: tuple[str, ...] = _TYPES
) -> tuple[str, ...]:
    names = tuple(map(str, raw)) if isinstance(raw, list) else (raw,)
    for name in names:
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            words.problem(path, f"unknown type `{name}`{hint}; allowed: {listed(allowed)}")
    return names


def _refuse_words(values: tuple[object, ...], path: KeyPath, words: Vocabulary) -> None:
    for value in values:
        if not isinstance(value, str):
            continue
        if value in _WORDS:
            words.problem(path, f"`{value}` stands alone, or is a string literal as {{value: {value}}}")
        elif "." in value and value.partition(".")[0] in _ROOTS:
            words.problem(path, f"`{value}` would be a string: a name is written {{name: {value}}}")


# ---- cases ------------------------------------------------------------------------------------------


def read_case(raw: Mapping[str, Any], path: KeyPath, words: Vocabulary, *, calls_only: bool) -> Case:
    """One case, whose shape is checked; `calls_only`: the rule is about arguments."""
    metavariables: tuple[str, ...] = ()
    if "pattern" in raw:
        metavariables = _pattern(raw["pattern"], (*path, "pattern"), words)
        if "replace" not in raw:
            words.problem((*path, "pattern"), "`pattern` needs `replace`")
    _check_kind(raw, path, words)
    arguments = raw.get("arguments", {})
    plain = "rename" in raw and not arguments and not calls_only
    plain = plain and not any(key in raw for key in ("when", "map", "result"))
    values = _application(raw, path, words)
    template = raw.get("replace")
    return Case(
        when=read_conditions(raw.get("when", {}), (*path, "when"), words, metavariables),
        roles=tuple(raw.get("roles", ALL_ROLES if plain else ("call",))),
        result=_result(raw["result"], (*path, "result"), words) if "result" in raw else None,
        pattern=raw.get("pattern"),
        template=_template(template, (*path, "replace"), words, metavariables) if template else None,
        map=_map(raw.get("map", {}), (*path, "map"), words, metavariables),
        rename=_rename(raw["rename"], (*path, "rename"), words) if "rename" in raw else None,
        **_arguments(arguments, (*path, "arguments"), words),
        requires=values.get("requires"),
        applicability=Applicability[values.get("applicability", "safe").upper()],
        reason=values.get("reason"),
        safe_from=_safe_from(raw, values, path, words),
        title=raw["title"].strip() if "title" in raw else None,
    )


def _check_kind(raw: Mapping[str, Any], path: KeyPath, words: Vocabulary) -> None:
    others = [key for key in ("rename", "arguments") if key in raw]
    if "replace" in raw and others:
        words.problem(path, f"a case has either `replace` or {listed(others, last='and')}, not both")
    elif "replace" not in raw and not others:
        words.problem(path, "a case needs `replace`, `rename` or `arguments`")


def _application(raw: Mapping[str, Any], path: KeyPath, words: Vocabulary) -> dict[str, str]:
    """requires, applicability and reason, from the case or else from the rule."""
    values = dict(words.defaults)
    if "applicability" in raw:
        values.pop("reason", None)
    values.update({key: raw[key].strip() for key in ("requires", "applicability", "reason") if key in raw})
    level = values.get("applicability", "safe")
    if level != "safe" and "reason" not in values and "applicability" in raw:
        words.problem((*path, "applicability"), f"applicability {level} needs a `reason`, one line")
    if level == "safe" and "reason" in raw:
        words.problem((*path, "reason"), "`reason` says why a fix is not safe: it needs `applicability`")
    return values


def _safe_from(
    raw: Mapping[str, Any], values: Mapping[str, str], path: KeyPath, words: Vocabulary
) -> str | None:
    if "safe_from" in raw and values.get("applicability") != "unsafe":
        words.problem((*path, "safe_from"), "`safe_from` needs `applicability: unsafe`")
    return raw.get("safe_from")


def _pattern(text: str, path: KeyPath, words: Vocabulary) -> tuple[str, ...]:
    """The metavariables of a pattern; it has to contain one of the rule's symbols."""
    names = tuple(dict.fromkeys(_VARIABLE.findall(text)))
    tree = check_source(_VARIABLE.sub(r"__\1", text), path, words.file)
    parts = walk(tree) if tree is not None else ()
    named = [node for node in parts if isinstance(node, (ast.Attribute, ast.Name))]
    found = {ast.unparse(node) for node in named}
    # `$x.svd()[2]` is about the method `torch.Tensor.svd`.
    found |= {f"{_TENSOR}.{node.attr}" for node in named if isinstance(node, ast.Attribute)}
    if tree is not None and found.isdisjoint(words.symbols):
        words.problem(path, f"`pattern` names none of the symbols {listed(words.symbols, last='and')}")
    return names


def _template(text: str, path: KeyPath, words: Vocabulary, known: tuple[str, ...] = ()) -> str:
    text = text.strip()
    _check_variables(text, path, words, known)
    check_source(_VARIABLE.sub(r"__\1", text), path, words.file)
    return text


def _check_variables(text: str, path: KeyPath, words: Vocabulary, known: tuple[str, ...] = ()) -> None:
    allowed = (*words.parameters, *sorted(words.variables), *known)
    for name in dict.fromkeys(_VARIABLE.findall(text)):
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            names = listed(f"${item}" for item in allowed)
            words.problem(path, f"`${name}` is not known here{hint}; allowed: {names}")


def _rename(text: str, path: KeyPath, words: Vocabulary) -> str:
    for name in _VARIABLE.findall(text):
        if name not in words.variables:
            names = listed(f"${item}" for item in sorted(words.variables))
            words.problem(path, f"`${name}` is not a variable of the symbols; allowed: a name, or {names}")
    return text


def _map(
    raw: Mapping[str, Mapping[str, Any]], path: KeyPath, words: Vocabulary, known: tuple[str, ...]
) -> dict[str, dict[str, str]]:
    words.check_parameters(raw, path, known)
    found: dict[str, dict[str, str]] = {}
    for name, values in raw.items():
        found[name] = {}
        for old, new in values.items():
            tree = check_source(old, (*path, name, old), words.file)
            key = ast.unparse(tree) if tree is not None else old
            found[name][key] = _source(new, (*path, name, old), words)
    return found


def _source(raw: Any, path: KeyPath, words: Vocabulary) -> str:
    """Python source that may name parameters and variables; `true` and `1` are source as well."""
    return _template(raw if isinstance(raw, str) else repr(raw), path, words)


def _arguments(raw: Mapping[str, Any], path: KeyPath, words: Vocabulary) -> dict[str, Any]:
    for key in ("drop", "keywords", "set", "to_keyword"):
        words.check_parameters(raw.get(key, ()), (*path, key))
    for name in raw.get("drop", ()):
        for key in ("keywords", "set", "to_keyword"):
            if name in raw.get(key, ()):
                words.problem((*path, key), f"`{name}` is dropped: it cannot be in `{key}` as well")

    def sources(key: str) -> dict[str, str]:
        return {name: _source(item, (*path, key, name), words) for name, item in raw.get(key, {}).items()}

    insert = [_source(item, (*path, "insert", n), words) for n, item in enumerate(raw.get("insert", ()))]
    return {
        "drop": tuple(raw.get("drop", ())),
        "keywords": dict(raw.get("keywords", {})),
        "add": sources("add"),
        "insert": tuple(insert),
        "set": sources("set"),
        "to_keyword": tuple(raw.get("to_keyword", ())),
    }


def _result(raw: Mapping[str, Any], path: KeyPath, words: Vocabulary) -> ResultUse:
    fields: tuple[str, ...] = tuple(raw.get("fields", ()))
    if not raw.keys() & {"take", "adjust", "plain"}:
        words.problem(path, "`result` needs `take`, `adjust` or `plain`")
    if "take" in raw and "plain" in raw:
        words.problem(path, "`result` has either `take` or `plain`")

    def number(value: str | int, key: str) -> int:
        if isinstance(value, int) and 0 <= value < len(fields):
            return value
        if value in fields:
            return fields.index(str(value))
        hint = did_you_mean(str(value), fields)
        names = listed(fields, last="and")
        words.problem((*path, key), f"`{value}` is not one of the `fields`{hint}; they are {names}")
        return 0

    adjust = {}
    for name, text in raw.get("adjust", {}).items():
        if "$" not in text or _VARIABLE.findall(text) != [""] * text.count("$"):
            words.problem((*path, "adjust"), f"`{text}` must have `$` for the field, and no other variable")
        check_source(text.replace("$", "__"), (*path, "adjust", name), words.file)
        adjust[number(name, "adjust")] = text
    take = number(raw["take"], "take") if "take" in raw else None
    new_fields: tuple[str, ...] = tuple(raw.get("new_fields", ()))
    if new_fields and len(new_fields) != len(fields):
        words.problem((*path, "new_fields"), f"`new_fields` needs as many names as `fields`: {len(fields)}")
    return ResultUse(
        fields=fields, take=take, adjust=adjust, plain=raw.get("plain", False), new_fields=new_fields
    )
