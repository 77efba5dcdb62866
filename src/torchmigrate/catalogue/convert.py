"""Makes a `Rule` of one entry of a rule file and checks what its parts say about each other."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchmigrate.catalogue.cases import Vocabulary, read_case, read_conditions
from torchmigrate.catalogue.installed import CODEMODS, entry_points
from torchmigrate.catalogue.model import ALL_ROLES, STATUS, Case, Rule
from torchmigrate.catalogue.problems import KeyPath, did_you_mean, listed
from torchmigrate.catalogue.variants import OWN, OWN_OF_CASES, rule_for_symbol
from torchmigrate.catalogue.yaml_source import YamlFile
from torchmigrate.findings import Applicability
from torchmigrate.patterns import pattern
from torchmigrate.semantics.public_names import public_name
from torchmigrate.versions.releases import LIBRARIES, RELEASES, parse_version

_CODEMODS = Path(__file__).parents[1] / "codemods"
_FINDERS = Path(__file__).parents[1] / "texts" / "finders"

_PLACEHOLDER = pattern(r"\{([A-Za-z_]\w*)\}")


def read_rule(raw: dict[str, Any], number: int, file: YamlFile, shown_path: str) -> Rule:
    """The rule of entry `number` of a file, whose shape is checked; mistakes are reported to `file`."""
    if "files" in raw:
        return read_other_rule(raw, number, file, shown_path)
    path: KeyPath = (number,)
    symbols = _symbols(raw.get("symbols", []))
    modules: dict[str, str | None] = raw.get("modules", {})
    words = Vocabulary(file, path, symbols, variables=_variables(symbols, modules, path, file))
    _read_signatures(raw, words)
    words.defaults = {key: raw[key].strip() for key in ("requires", "applicability", "reason") if key in raw}
    _check_reason(words.defaults, path, words)
    for key in ("parameters", "missing"):
        words.check_parameters(raw.get(key, ()), (*path, key))
    rule = Rule(
        code=raw.get("code", ""),
        name=raw.get("name", ""),
        summary=_one_line(raw.get("summary", "")),
        library=raw.get("library", ""),
        symbols=symbols,
        why=raw.get("why", "").strip(),
        modules=modules,
        members=frozenset(raw["members"]) if "members" in raw else None,
        signature=_one_line(raw["signature"]) if "signature" in raw else None,
        roles=tuple(raw.get("roles", ())),
        parameters=tuple(raw.get("parameters", ())),
        missing=tuple(raw.get("missing", ())),
        match=read_conditions(raw.get("match", {}), (*path, "match"), words),
        only_in_patterns=raw.get("only_in_patterns", False),
        cases=_cases(raw, path, words),
        outdated=raw.get("outdated"),
        deprecated=raw.get("deprecated"),
        changed=raw.get("changed"),
        removed=raw.get("removed"),
        until=raw.get("until"),
        raises=raw.get("raises"),
        warns=raw.get("warns"),
        advice=raw["advice"].strip() if "advice" in raw else None,
        replaced_by=tuple(raw.get("replaced_by", ())),
        codemod=raw.get("codemod"),
        shown=_texts(raw.get("shown", {})),
        prefilter=raw.get("prefilter"),
        opt_in=raw.get("opt_in", False),
        group=raw.get("group"),
        once=raw.get("once"),
        unless_declared=raw.get("unless_declared"),
        unless_named=raw.get("unless_named"),
        failures=_one_line(raw["failures"]) if "failures" in raw else None,
        together=raw.get("together"),
        references=tuple(raw.get("references", ())),
        path=shown_path,
        line=file.line(path),
    )
    _check_versions(rule, path, file)
    for symbol, values in symbols.items():
        if any(status in values for status in STATUS):
            _check_versions(rule_for_symbol(rule, symbol), (*path, "symbols", symbol), file)
    _check_names(rule, path, words)
    _check_renames(rule, path, words)
    _check_texts(raw, path, words)
    return rule


def read_other_rule(raw: dict[str, Any], number: int, file: YamlFile, shown_path: str) -> Rule:
    """The same of a rule about files that are not Python."""
    path: KeyPath = (number,)
    ways = [key for key in ("words", "variables", "tokens") if key in raw]
    if len(ways) + ("finder" in raw and not ways) != 1:
        file.problem(path, "a rule with `files` has one of `words`, `variables` and `tokens`, or a `finder`")
    symbols = _symbols_of_others(raw[ways[0]]) if ways else {}
    if "shown" in raw:  # one that stands for all that the finder may find
        shown = dict(raw["shown"])
        symbols = {shown.pop("name", ""): shown}
    finder = raw.get("finder", ways[0] if ways else None)
    if "finder" in raw and not (_FINDERS / f"{finder}.py").is_file():
        there = listed(sorted(found.stem for found in _FINDERS.glob("[a-z]*.py")), last="and")
        file.problem((*path, "finder"), f"no finder `{finder}`; there is {there}")
    defaults: dict[str, Any] = {
        key: raw[key].strip() for key in ("requires", "applicability", "reason") if key in raw
    }
    _check_reason(defaults, path, Vocabulary(file, path, symbols))
    cases: tuple[Case, ...] = ()
    renames = bool(ways) and any("new" in values for values in symbols.values())
    if defaults or renames:
        cases = (
            Case(
                roles=(),
                rename="$new" if renames else None,
                requires=defaults.get("requires"),
                applicability=Applicability[defaults.get("applicability", "safe").upper()],
                reason=defaults.get("reason"),
            ),
        )
    rule = Rule(
        code=raw.get("code", ""),
        name=raw.get("name", ""),
        summary=_one_line(raw.get("summary", "")),
        library=raw.get("library", ""),
        symbols=symbols,
        why=raw.get("why", "").strip(),
        cases=cases,
        outdated=raw.get("outdated"),
        deprecated=raw.get("deprecated"),
        changed=raw.get("changed"),
        removed=raw.get("removed"),
        advice=raw["advice"].strip() if "advice" in raw else None,
        opt_in=raw.get("opt_in", False),
        group=raw.get("group"),
        once=raw.get("once"),
        files=tuple(raw.get("files", ())),
        finder=finder,
        level=raw.get("level"),
        references=tuple(raw.get("references", ())),
        path=shown_path,
        line=file.line(path),
    )
    if rule.level is None:
        _check_versions(rule, path, file)
    elif any(getattr(rule, status) for status in STATUS):
        file.problem((*path, "level"), "`level` is for rules that are about no release")
    for symbol, values in symbols.items():
        if any(status in values for status in STATUS):
            _check_versions(rule_for_symbol(rule, symbol), (*path, ways[0], symbol), file)
    return rule


def _symbols_of_others(raw: Any) -> dict[str, dict[str, str]]:
    if isinstance(raw, list):
        return {symbol: {} for symbol in raw}
    return {
        symbol: {} if value is None else {"new": value} if isinstance(value, str) else _texts(value)
        for symbol, value in raw.items()
    }


def _read_signatures(raw: Mapping[str, Any], words: Vocabulary) -> None:
    """The parameters of every signature, of the rule and of single symbols."""
    common: tuple[str, ...] = ()
    if "signature" in raw:
        common = words.parameters = _parameters(raw["signature"], (*words.path, "signature"), words)
        words.has_signature = True
    for symbol, values in words.symbols.items():
        words.by_symbol[symbol] = common
        if "signature" in values:
            where = (*words.path, "symbols", symbol, "signature")
            found = words.by_symbol[symbol] = _parameters(values["signature"], where, words)
            words.parameters = (*words.parameters, *(name for name in found if name not in words.parameters))
            words.has_signature = True


def _symbols(raw: Any) -> dict[str, dict[str, str]]:
    if isinstance(raw, list):
        return {symbol: {} for symbol in raw}
    return {
        symbol: {"new": value} if isinstance(value, str) else _texts(value) for symbol, value in raw.items()
    }


def _texts(values: Mapping[str, str]) -> dict[str, str]:
    """The variables of a symbol; folded scalars of YAML end with a newline."""
    return {key: text.strip() for key, text in values.items()}


def _variables(
    symbols: Mapping[str, Mapping[str, str]], modules: Mapping[str, str | None], path: KeyPath, file: YamlFile
) -> frozenset[str]:
    """The variables that all symbols have; a module that moved has `new`."""
    sets = [frozenset(variables) - {*OWN, *OWN_OF_CASES} for variables in symbols.values()]
    sets += [frozenset(["new"] if new else []) for new in modules.values()]
    every = frozenset().union(*sets)
    for symbol, variables in symbols.items():
        lost = sorted(every - frozenset(variables))
        if lost and variables.keys() - {*OWN, *OWN_OF_CASES}:
            names = listed(lost, last="and")
            file.problem((*path, "symbols", symbol), f"`{symbol}` lacks the variable {names}")
    return sets[0].intersection(*sets) if sets else frozenset()


def _parameters(signature: str, path: KeyPath, words: Vocabulary) -> tuple[str, ...]:
    try:
        tree = ast.parse(f"def f{signature.strip()}: pass")
        compile(tree, "<signature>", "exec")  # finds a parameter that is there twice
    except SyntaxError as error:
        words.problem(path, f"`signature` does not parse as Python: {error.msg}")
        return ()
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    names = function.args
    found = [arg.arg for arg in (*names.posonlyargs, *names.args, *names.kwonlyargs)]
    found += [arg.arg for arg in (names.vararg, names.kwarg) if arg is not None]
    for name in sorted(words.variables & set(found)):
        words.problem(path, f"`{name}` is a parameter and a variable of the symbols: rename the variable")
    return tuple(found)


def _check_reason(values: Mapping[str, str], path: KeyPath, words: Vocabulary) -> None:
    level = values.get("applicability", "safe")
    if level != "safe" and "reason" not in values:
        words.problem((*path, "applicability"), f"applicability {level} needs a `reason`, one line")
    if level == "safe" and "reason" in values:
        words.problem((*path, "reason"), "`reason` says why a fix is not safe: it needs `applicability`")


def _cases(raw: Mapping[str, Any], path: KeyPath, words: Vocabulary) -> tuple[Case, ...]:
    calls_only = any(key in raw for key in ("parameters", "missing", "match"))
    if "cases" in raw:
        return tuple(
            read_case(one, (*path, "cases", number), words, calls_only=calls_only)
            for number, case in enumerate(raw["cases"])
            for one in _by_pattern(case)
        )
    requires = words.defaults.get("requires")
    level = Applicability[words.defaults.get("applicability", "safe").upper()]
    reason = words.defaults.get("reason")
    if "new" in words.variables or any(raw.get("modules", {}).values()):
        roles = ("call",) if calls_only else ALL_ROLES
        return (Case(roles=roles, rename="$new", requires=requires, applicability=level, reason=reason),)
    if words.defaults and "codemod" in raw:
        # A case that fits no use: it only tells the codemod how safe the fix is, and `explain` shows it.
        return (Case(roles=(), requires=requires, applicability=level, reason=reason),)
    for key in words.defaults:
        words.problem((*path, key), f"`{key}` is about a fix, and the rule has no `cases`")
    return ()


def _by_pattern(case: dict[str, Any]) -> list[dict[str, Any]]:
    """A case with a list of patterns is one case for each of them."""
    if not isinstance(case.get("pattern"), list):
        return [case]
    return [{**case, "pattern": pattern} for pattern in case["pattern"]]


def _check_versions(rule: Rule, path: KeyPath, file: YamlFile) -> None:
    given = [(status, getattr(rule, status)) for status in STATUS if getattr(rule, status)]
    if not given and not all(values.keys() & set(STATUS) for values in rule.symbols.values() or [{}]):
        file.problem(path, f"a rule needs a release in {listed(STATUS)}")
    for status, text in given:
        version = parse_version(text)
        if rule.library == "torch" and version < RELEASES[-1] and version not in RELEASES:
            file.problem((*path, status), f"there is no torch {text}")
    order = [(status, text) for status, text in given if status != "changed"]
    for (early, first), (late, second) in itertools.pairwise(order):
        ceased = early == "outdated" and late == "deprecated"  # it warned until then
        if parse_version(first) > parse_version(second) and not ceased:
            file.problem((*path, late), f"`{late}` {second} is before `{early}` {first}")


def _check_names(rule: Rule, path: KeyPath, words: Vocabulary) -> None:
    if not rule.symbols and not rule.modules:
        words.problem(path, "a rule needs `symbols` or `modules`")
    roots = LIBRARIES.get(rule.library, (rule.library,))
    for key, names in (("symbols", rule.symbols), ("modules", rule.modules)):
        for name in names:
            if rule.library and name.partition(".")[0] not in roots:
                known = f"its names start with {listed(roots)}"
                words.problem((*path, key, name), f"`{name}` is not of library `{rule.library}`: {known}")
    if rule.members is not None and not rule.modules:
        words.problem((*path, "members"), "`members` needs `modules`")
    if rule.only_in_patterns and not any(case.pattern for case in rule.cases):
        words.problem((*path, "only_in_patterns"), "`only_in_patterns` needs a case with a `pattern`")
    if rule.codemod is not None:
        modules = _codemods(_CODEMODS)
        if rule.codemod not in modules and rule.codemod not in (brought := entry_points(CODEMODS)):
            hint = did_you_mean(rule.codemod, (*modules, *brought))
            hint = hint or f", and no installed package has it (entry points `{CODEMODS}`)"
            there = listed(sorted((*modules, *brought)), last="and")
            words.problem((*path, "codemod"), f"no codemod `{rule.codemod}`{hint}; there is {there}")


@functools.cache
def _codemods(directory: Path) -> list[str]:
    """The names of all codemods, in order: modules in folders, with a function `find`."""
    return sorted(
        f"{path.parent.name}.{path.stem}"
        for path in directory.glob("*/[a-z]*.py")
        if path.parent.name != "base" and "\ndef find(" in path.read_text("utf-8")
    )


def _check_renames(rule: Rule, path: KeyPath, words: Vocabulary) -> None:
    """Report new names that the rule takes for old ones: it would rename them to themselves."""
    for case in rule.cases:
        if case.rename is None or case.drop or case.keywords or case.add or case.insert or case.set:
            continue
        for symbol, values in rule.symbols.items():
            new = values.get(case.rename[1:], "") if case.rename.startswith("$") else case.rename
            if symbol in (new, public_name(new)):
                what = f"`{new}` is found as `{symbol}`, so that it would be renamed again"
                words.problem((*path, "symbols", symbol), what)
    for module, target in rule.modules.items():
        if module == target:
            words.problem((*path, "modules", module), f"`{module}` does not move")


def _check_texts(raw: Mapping[str, Any], path: KeyPath, words: Vocabulary) -> None:
    """Report placeholders such as `{new}` that not every symbol can fill in."""
    argument = ["argument"] if raw.get("parameters") else []
    allowed = ("name", *argument, *sorted(words.variables))
    texts: list[tuple[KeyPath, str]] = [((key,), raw.get(key, "")) for key in ("summary", "advice")]
    for number, case in enumerate(raw.get("cases", [])):
        texts.append((("cases", number, "title"), case.get("title", "")))
    for key, text in texts:
        for name in _PLACEHOLDER.findall(text):
            if name not in allowed:
                words.problem((*path, *key), f"`{{{name}}}` is not known here; allowed: {listed(allowed)}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
