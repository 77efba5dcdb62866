"""A fact as a rule in YAML, with examples: in the format of `rules/`."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import yaml

from drafts.facts import CALLED, Fact
from torchmigrate.match.signature import parse_signature, required
from torchmigrate.versions.surface_model import EntryKind

_TITLES = {
    "removed": "`{name}` was removed",
    "deprecated": "`{name}` is deprecated",
    "parameter removed": "`{name}` no longer takes `{argument}`",
    "parameter renamed": "`{name}` no longer takes `{argument}`",
    "parameter deprecated": "`{argument}` of `{name}` is deprecated",
}
_STATUS = {"default": "changed", "deprecated": "deprecated", "parameter deprecated": "deprecated"}
NO_PROOF = "draft: both sides have not been run"
UNCHECKED = "draft: the results of both sides have not been compared"


def title(fact: Fact) -> str:
    """What is found, `{name}` for the name."""
    if fact.kind == "default":
        return (
            f"the default of `{fact.parameter}` of `{{name}}` changed from `{fact.default}` to `{fact.now}`"
        )
    new = f"; use `{fact.new}`" if fact.new is not None else ""
    return _TITLES[fact.kind] + new


def _summary(fact: Fact) -> str:
    return _TITLES[fact.kind] + "; use `{new}`" if _of_name(fact) and renames(fact) else title(fact)


def _of_name(fact: Fact) -> bool:
    return fact.kind in ("removed", "deprecated")


def rule(facts: Sequence[Fact], code: str, name: str, release: str, requires: str | None, url: str) -> str:
    """One rule for facts that differ in their names only.

    release: since which this holds, "2.16". requires: the first release that has what is new.
    """
    first = facts[0]
    status = _STATUS.get(first.kind, "removed")
    fields: dict[str, Any] = {"code": code, "name": name, "summary": _summary(first)}
    library = first.names[0].partition(".")[0]
    fields["why"] = _why(first, library, release)
    fields["library"] = library
    fields[status] = release
    fields |= _subject(facts)
    if _of_name(first) and renames(first):
        fields |= {"requires": requires} if requires is not None else {}
        if first.how != "identity":
            fields |= {"applicability": "unsafe", "reason": UNCHECKED}
    elif first.kind == "parameter renamed":
        case = {"arguments": {"keywords": {first.parameter: first.new}}, "requires": release}
        fields["cases"] = [case | {"applicability": "unsafe", "reason": UNCHECKED}]
    elif first.kind == "default":
        fields["cases"] = [{"arguments": {"add": {first.parameter: first.default}}}]
    if "cases" not in fields and not renames(first):
        fields["advice"] = _advice(first)
    fields["references"] = [url]
    text = yaml.safe_dump([fields], sort_keys=False, width=110, allow_unicode=True)
    text = re.sub(rf"^(  {status}|  requires|    requires): '?([\d.]+)'?$", r'\1: "\2"', text, flags=re.M)
    return text + "  examples:\n" + "".join(_example(each) for each in examples(first))


def _why(fact: Fact, library: str, release: str) -> str:
    words = " ".join(fact.said.replace("{}", "...").split())
    told = f" {library} says: {words.rstrip('.')}." if words else ""
    return f"Draft, from the API data of {library} {release}.{told}"


def _advice(fact: Fact) -> str:
    if fact.new is not None:
        return f"use `{fact.new}`" + (", whose parameters differ" if fact.was.kind in CALLED else "")
    words = " ".join(re.sub(r":[a-z:]+:`~?", "`", fact.said).replace("{}", "...").split()).rstrip(".")
    return words or "remove it"


def renames(fact: Fact) -> bool:
    """Whether the new name can stand in place of the old one."""
    return fact.new is not None and (fact.how == "identity" or fact.same_signature)


def _subject(facts: Sequence[Fact]) -> dict[str, Any]:
    first = facts[0]
    names = [name for fact in facts for name in fact.names]
    if _of_name(first):
        if renames(first):
            return {"symbols": {name: fact.new for fact in facts for name in fact.names}}
        return {"symbols": names}
    receiver = "self, " if first.owner is EntryKind.CLASS and first.was.kind is EntryKind.FUNCTION else ""
    found: dict[str, Any] = {"symbols": names, "signature": f"({receiver}{first.was.signatures[0][1:]}"}
    found["missing" if first.kind == "default" else "parameters"] = [first.parameter]
    default = parse_signature(first.was.signatures[0]).by_name[first.parameter].default
    if (
        first.kind == "parameter deprecated"
        and isinstance(default, ast.Constant)
        and default.value is not ...
    ):
        found["match"] = {first.parameter: {"not": default.value}}
    return found


# ---- examples -----------------------------------------------------------------------------------------


def examples(fact: Fact) -> list[dict[str, str]]:
    """One of each kind that makes sense. The last line of the first one holds the change."""
    name = fact.names[0]
    old = use(name, fact)
    if _of_name(fact):
        last = name.rpartition(".")[2]
        other = f"from mylib import {last}\n{last}()\n"
        if not renames(fact):
            return [{"report_only": old}, {"clean": other}]
        assert fact.new is not None, "it is renamed"
        new = use(fact.new, fact)
        mocked = f'from unittest import mock\nwith mock.patch("{name}"):\n    pass\n'
        fixed = {"before": old, "after": new, "no_proof": NO_PROOF}
        if fact.how != "identity":
            fixed["applicability"] = "unsafe"
        return [fixed, {"report_only": mocked}, {"clean": new}]
    given = use(name, fact, f"{fact.parameter}=value")
    if fact.kind == "default":
        after = use(name, fact, f"{fact.parameter}={fact.default}")
        return [
            {"before": old, "after": after, "no_proof": NO_PROOF},
            {"report_only": old if fact.owner is EntryKind.CLASS else _starred(old)},
            {"clean": given},
        ]
    if fact.kind == "parameter renamed":
        after = use(name, fact, f"{fact.new}=value")
        fixed = {"before": given, "after": after, "applicability": "unsafe", "no_proof": NO_PROOF}
        return [
            fixed,
            {"report_only": use(name, fact, only=f"*args, {fact.parameter}=value")},
            {"clean": old},
        ]
    return [{"report_only": given}, {"clean": old}]


def marked(fact: Fact) -> str:
    """The program of the first example, with a mark at the line that holds the change."""
    example = examples(fact)[0]
    lines = (example.get("before") or example["report_only"]).splitlines()
    return "\n".join([*lines[:-1], f"{lines[-1]}  # here"]) + "\n"


def dotted(fact: Fact) -> str:
    """The same with the whole name, which the rules from the API data find wherever it stands."""
    name = fact.names[0]
    given = [*_required(fact), *([f"{fact.parameter}=value"] if fact.kind == "parameter removed" else [])]
    call = f"({', '.join(given)})" if fact.parameter else ""
    return f"import {name.partition('.')[0]}\n{name}{call}  # here\n"


def use(name: str, fact: Fact, argument: str = "", *, only: str = "") -> str:
    """A small program that uses a name as people do.

    argument: what it gives in addition to the required arguments; only: what it gives in place of all.
    """
    owner, _, last = name.rpartition(".")
    arguments = only or ", ".join([*_required(fact), *([argument] if argument else [])])
    written = f"{last}({arguments})" if fact.was.kind is not EntryKind.VALUE else last
    if fact.owner is EntryKind.CLASS:
        module, _, cls = owner.rpartition(".")
        item = re.sub(r"(?<!^)(?=[A-Z])", "_", cls).lower()
        item = item if item != cls else "item"
        result = f"    return {item}.{written}\n"
        return f"from {module} import {cls}\ndef run({item}: {cls}):\n{result}"
    if "." not in owner:
        return f"import {owner}\n{owner}.{written}\n"
    return f"from {owner} import {last}\n{written}\n"


def _starred(program: str) -> str:
    """A program with a star import, after which the name may be another one."""
    return re.sub(
        r"import (\w+)\n\1\.", r"from \1 import *\n", re.sub(r" import \w+\n", " import *\n", program)
    )


def _required(fact: Fact) -> list[str]:
    signature = fact.was.signatures[0] if fact.was.signatures else "()"
    try:
        parsed = parse_signature(signature)
    except ValueError:
        return []
    return [
        f"{name}={name}" if parsed.by_name[name].kind == "keyword-only" else name
        for name in required(parsed)
        if name != fact.parameter
    ]


def _example(example: dict[str, str]) -> str:
    lines = []
    for key, text in example.items():
        shown = f"|\n{textwrap.indent(text, '    ')}" if "\n" in text else f'"{text}"\n'
        lines.append(f"  {key}: {shown}")
    body = textwrap.indent("".join(lines), "    ")
    return "    - " + body[6:]
