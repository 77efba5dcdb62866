"""The cases of a rule in words: when each fits, what it writes, and how safe that is."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from torchmigrate.findings import Applicability
from torchmigrate.report.rule_texts import generic

if TYPE_CHECKING:
    from torchmigrate.catalogue.model import Case, Condition, Rule

_ROLES = {
    "call": "called",
    "decorator": "as a decorator",
    "base": "as a base class",
    "annotation": "in an annotation",
    "reference": "not called",
    "import": "imported",
}
_KINDS = {
    "integer": "an integer tensor",
    "floating": "a floating-point tensor",
    "complex": "a complex tensor",
    "int": "an integer",
    "number": "a number",
    "tensor": "a tensor",
    "sparse": "a sparse tensor",
    "scalar": "a tensor without dimensions",
    "vector": "a vector",
    "matrix": "a matrix",
    "matrices": "a tensor with three dimensions",
}
_ALWAYS, _OTHERWISE = "always", "otherwise"
_MOST = 3  # values, or expressions with the same result, that are listed


class Way(NamedTuple):
    """One way to rewrite a use.

    form: the expression around the name, if it must have one. when: what else must hold. Both are empty, and
    so is the result, for a codemod, which decides itself. safe: "safe", "unsafe" or "display". notes: the
    release that it needs, and why it is not safe.
    """

    form: str
    when: str
    result: str
    safe: str
    notes: tuple[str, ...]

    @property
    def condition(self) -> str:
        """When it is taken."""
        return _and(filter(None, (self.form, self.when)))


def ways(rule: Rule) -> list[Way]:
    """The cases of a rule, in the order in which they are tried."""
    from torchmigrate.catalogue.model import ALL_ROLES  # `--help` imports this module, and no rules

    several = len({case.roles for case in rule.cases}) > 1
    defaults = _defaults(rule)
    found = []
    for case in rule.cases:
        result = _result(case, rule)
        if not case.roles or not result:  # only tells how safe the fix of a codemod is
            found.append(Way("", "", "", case.applicability.label, _notes(case, rule)))
            continue
        words = list(_conditions(case, defaults))
        if not case.pattern and case.roles != ALL_ROLES and (several or case.roles != ("call",)):
            words.insert(0, _joined([_ROLES[role] for role in case.roles], "or"))
        form = "" if case.pattern is None else _code(case.pattern)
        when = _and(words) or ("" if form else _OTHERWISE if found else _ALWAYS)
        found.append(Way(form, when, result, case.applicability.label, _notes(case, rule)))
    return found


def table(rule: Rule) -> tuple[list[tuple[str, str, str]], list[str]]:
    """The cases of a rule as rows of condition, result and safety, and notes on them.

    No rows: the rule has no case, or a single one that always holds and needs no table.
    """
    found = merged(ways(rule))
    if all(way.when in ("", _ALWAYS) for way in found):
        return [], []
    notes = list(dict.fromkeys("; ".join(way.notes) for way in found if way.notes))
    numbered = len(notes) > 1 or not all(way.notes for way in found)
    rows = []
    for way in found:
        safe = "advice" if way.safe == "display" else way.safe
        if way.notes and numbered:
            safe += f" ({notes.index('; '.join(way.notes)) + 1})"
        rows.append((way.when or _ALWAYS, way.result, safe))
    return rows, [f"({number}) {note}" for number, note in enumerate(notes, 1)] if numbered else notes


def merged(found: Sequence[Way]) -> list[Way]:
    """Ways without those that differ from another only in when they fit."""
    rows: list[Way] = []
    for key in dict.fromkeys(way[2:] for way in found):
        mine = {number: way for number, way in enumerate(found) if way[2:] == key}
        if any(way.when == _OTHERWISE for way in mine.values()):  # includes those since another row
            last = max((number for number in range(len(found)) if number not in mine), default=-1)
            mine = {number: way for number, way in mine.items() if number < last or way.when == _OTHERWISE}
        forms: dict[str, list[str]] = {}
        for way in mine.values():
            forms.setdefault(way.when, []).append(way.form)
        shown = [_and(filter(None, (_some(list(filter(None, each))), when))) for when, each in forms.items()]
        if shown == [_OTHERWISE] and not rows:
            shown = [_ALWAYS]
        rows.append(Way("", "; or ".join(shown), *key))
    return rows


def _notes(case: Case, rule: Rule) -> tuple[str, ...]:
    return (*needs(case, rule), case.reason) if case.reason else tuple(needs(case, rule))


def needs(case: Case, rule: Rule) -> Iterator[str]:
    """What the applicability of a case depends on, besides its reason: releases."""
    if case.requires is not None:
        release = case.requires if " " in case.requires else f"{rule.library} {case.requires}"
        safe = case.applicability is Applicability.SAFE
        before = f"unsafe if the code must also run on a release before {release}"
        yield before if safe else f"needs {release}"
    if case.safe_from is not None:
        yield f"safe if the code only has to run on {rule.library} {case.safe_from} or newer"


# ---- when it fits -------------------------------------------------------------------------------------


def _conditions(case: Case, defaults: Mapping[str, object]) -> Iterator[str]:
    for kind, word, last in (("given", "with", "and"), ("absent", "without", "or")):
        names = [name for name, condition in case.when.items() if condition.kind == kind]
        if names:
            yield f"{word} {_listed(names, last)}"
    for name, condition in case.when.items():
        text = _condition(_parameter(name), condition)
        if text and condition.kind == "value" and name in defaults and defaults[name] in condition.values:
            text += " (the default)"
        if text:
            yield text
    for name, values in case.map.items():
        if name not in case.when:
            yield f"{_parameter(name)} is {_some([_code(value) for value in values])}"
    if case.result is not None:
        result = case.result
        if result.take is not None:
            yield f"only `{result.fields[result.take]}` of the result is used"
        else:
            yield "the result is used as a whole" if result.plain else "the result is unpacked"


_WORDS = {
    "value": "is {values}",
    "positional": "is positional",
    "object": "is neither `self` nor `super()`",
    "literal": "is a literal",
    "type": "is a literal of type {words}",
    "not-type": "is not a literal of type {words}",
    "not-value": "is not {values}",
    "not-prefix": "does not begin with {values}",
    "matches": "matches {words}",
    "keys": "has the key {values}",
    "takes": "takes {first} parameters",
    "name": "is {words}",
    "call": "is a call of {words}",
    "is": "is {kinds}",
    "other-shape": "and {words} had different shapes in a recorded run",
}


def _condition(name: str, condition: Condition) -> str:
    """One condition in words; empty for one that always holds, and for those that `_conditions` combines."""
    text = _WORDS.get(condition.kind, "")
    words = list(map(str, condition.values))
    parts = {
        "values": [_code(repr(value)) for value in condition.values],
        "words": [f"`{word}`" for word in words],
        "kinds": [_KINDS.get(word, f"a `{word}` tensor") for word in words],
    }
    filled = {key: _some(texts) for key, texts in parts.items()}
    return text and f"{name} {text.format(first=words[0] if words else '', **filled)}"


def _defaults(rule: Rule) -> dict[str, object]:
    """The parameters whose default is a literal."""
    if rule.signature is None:
        return {}
    function: Any = ast.parse(f"def f{rule.signature}: pass").body[0]
    names = [*function.args.posonlyargs, *function.args.args]
    pairs = [*zip(reversed(names), reversed(function.args.defaults), strict=False)]
    pairs += [*zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)]
    return {name.arg: value.value for name, value in pairs if isinstance(value, ast.Constant)}


# ---- what it writes -----------------------------------------------------------------------------------


def _result(case: Case, rule: Rule) -> str:
    if case.title:
        return generic(rule, case.title)
    if case.template:
        return _code(_filled(case.template, rule)) + _with_values(case)
    parts = []
    if case.drop:
        parts.append(f"remove {_listed(case.drop)}")
    for old, new in case.keywords.items():
        name = _filled(new, rule)
        if old in case.set:
            new = f"{name}={_filled(case.set[old], rule)}"
            parts.append(f"replace {_parameter(_filled(old, rule))} with {_parameter(new)}")
        else:
            parts.append(f"rename {_parameter(_filled(old, rule))} to {_parameter(name)}")
    for value in case.insert:
        parts.append(f"pass {_code(_filled(value, rule))} first")
    if case.add:
        added = [f"{name}={_filled(value, rule)}" for name, value in case.add.items()]
        parts.append(f"pass {_listed(added)}")
    for name, value in case.set.items():
        if name in case.keywords:
            continue
        parts.append(f"set {_parameter(_filled(name, rule))} to {_code(_filled(value, rule))}")
    for name, values in case.map.items():
        parts.append(_mapped(values) if len(values) <= _MOST else f"map {_parameter(name)} to its new value")
    positional = [name for name in case.to_keyword if name not in case.keywords]
    if positional:
        parts.append(f"pass {_listed(positional)} by keyword")
    if case.rename:
        parts.insert(0, _code(_filled(case.rename, rule)))
    text = ", ".join(parts)
    return text[:1].upper() + text[1:]


def _with_values(case: Case) -> str:
    """What a template writes in place of an argument that it maps."""
    parts = []
    for name, values in case.map.items():
        changed = {old: new for old, new in values.items() if old != new}
        if len(changed) > _MOST:
            parts.append(f"the new value of {_parameter(name)}")
        else:
            parts += [f"{_code(new)} for {_code(old)}" for old, new in changed.items()]
    return f", with {_joined(parts, 'and')}" if parts else ""


def _mapped(values: Mapping[str, str]) -> str:
    return ", ".join(f"replace {_code(old)} with {_code(new)}" for old, new in values.items())


def _filled(text: str, rule: Rule) -> str:
    """A template for all symbols of a rule: `$new` is the first of them, followed by an ellipsis."""
    for variable in sorted({key for values in rule.symbols.values() for key in values}, reverse=True):
        texts = [values[variable] for values in rule.symbols.values() if variable in values]
        text = text.replace(f"${variable}", texts[0] if len(set(texts)) == 1 else f"{texts[0]}…")
    if rule.modules:
        text = text.replace("$new", next((new for new in rule.modules.values() if new), ""))
    return text


# ---- words --------------------------------------------------------------------------------------------


def _code(text: str) -> str:
    plain = " ".join(text.split()).replace("$", "")
    return f"`{plain}`" if "`" not in plain else plain


def _parameter(name: str) -> str:
    return _code(name)


def _listed(names: Sequence[str], last: str = "and") -> str:
    return _joined(map(_parameter, names), last)


def _and(texts: Iterable[str]) -> str:
    return ", and ".join(texts)


def _some(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    rest = len(texts) - _MOST
    return _joined([*texts[:_MOST], f"{rest} others"] if rest > 1 else texts, "or")


def _joined(texts: Iterable[str], last: str) -> str:
    """ "a, b or c"; last: the word before the last one."""
    *first, end = texts
    return f"{', '.join(first)} {last} {end}" if first else end
