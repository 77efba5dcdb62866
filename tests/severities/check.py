"""Every rule against what the installed libraries do and say."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import yaml
from harness.catalogue import loaded_rules
from proofs import companions, stubs, vocabulary
from proofs.run import scratch

from severities import installed
from torchmigrate.catalogue.examples import FIX
from torchmigrate.catalogue.loader import LoadedRule
from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.variants import rule_for_symbol
from torchmigrate.findings import Severity
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.versions.range import VersionRange, severity
from torchmigrate.versions.releases import parse_version, show_version

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Verdict:
    """What a rule says of a symbol, what the installed release shows, and in what they disagree."""

    code: str
    symbol: str
    severity: str | None
    evidence: str
    problem: str | None

    def __str__(self) -> str:
        mark = "ok" if self.problem is None else f"WRONG, {self.problem}"
        return f"{self.code} {self.symbol}: {self.severity or 'nothing yet'}; {self.evidence}: {mark}"


@dataclass
class Evidence:
    gone: str | None = None
    warns: str | None = None
    documented: str | None = None
    ran: bool = False

    def __str__(self) -> str:
        parts = [("gone", self.gone), ("warns", self.warns), ("documented", self.documented)]
        said = [f"{word}: {' '.join(text.split())[:100]}" for word, text in parts if text is not None]
        return "; ".join(said) or ("runs in silence" if self.ran else "nothing known")


def verdicts(codes: Collection[str] = ()) -> Iterator[Verdict]:
    """One verdict for every symbol and module of the rules, or of those with these codes."""
    torch.set_warn_always(True)
    torch.storage._always_warn_typed_storage_removal = True
    span = VersionRange(target=show_version(parse_version(torch.__version__)))
    for item in sorted(loaded_rules(), key=lambda item: item.rule.code):
        rule = item.rule
        if rule.files or (codes and rule.code not in codes) or find_spec(rule.library) is None:
            continue
        if rule.library not in ("torch", *companions.LIBRARIES):
            continue
        with companions.prepared(rule.library):
            importlib.import_module(rule.library)
        examples = _examples(item)
        modules = [f"{module}.{name}" for module in rule.modules for name in rule.members or ()]
        for symbol in (*rule.symbols, *(modules or rule.modules)):
            one = rule_for_symbol(rule, symbol)
            evidence = _evidence(one, symbol, examples)
            level = severity(one, span)
            problem = _problem(one, level, evidence, span) or _wording(one, level, evidence)
            if problem is not None and reason(rule.code, symbol) is not None:
                problem = None
            yield Verdict(rule.code, symbol, level and level.label, str(evidence), problem)


def _problem(rule: Rule, level: Severity | None, evidence: Evidence, span: VersionRange) -> str | None:
    if level is Severity.ERROR:
        return None if evidence.gone else "nothing shows that it is gone"
    if evidence.gone and level is not None:
        return "it is gone"
    if level is Severity.WARNING:
        target, _ = span.of(rule.library)
        changed = rule.changed is not None and parse_version(rule.changed) <= target
        # To a project that has had the change for long, only what still warns matters.
        if changed and severity(rule, VersionRange(span.target, span.target)) is not Severity.WARNING:
            return "it still warns" if evidence.warns else None
        return None if evidence.warns else "it does not warn"
    if evidence.warns and level is Severity.INFO:
        return "it warns"
    if level is Severity.INFO and not rule.opt_in and not evidence.documented:
        return "nobody calls it outdated"
    return None


def _wording(rule: Rule, level: Severity | None, evidence: Evidence) -> str | None:
    """Whether "deprecated" is said only where the library does."""
    said = f"{evidence.warns} {evidence.documented}".lower()
    if level in (None, Severity.ERROR) or "deprecated" not in rule.summary or "deprecat" in said:
        return None
    return None if evidence.warns else "nobody calls it deprecated"


def _evidence(rule: Rule, symbol: str, examples: list[tuple[str, Evidence]]) -> Evidence:
    evidence = Evidence()
    parameters = tuple({*rule.parameters, *rule.missing, *rule.match}) if _about_call(rule) else ()
    found, said = installed.find(symbol)
    if found is installed.MISSING:
        evidence.gone = "there is no such name"
    elif not (rule.missing or rule.match or rule.codemod) or rule.parameters:
        evidence.warns = installed.warns(found, parameters) or (said[0] if said and not parameters else None)
    if found is not installed.MISSING:
        evidence.documented = installed.documented(found, parameters) or _of_module(rule, symbol)
        if not parameters and installed.raises(found):
            evidence.gone = "a call only raises"
        if rule.parameters and _lacks(found, rule.parameters):
            evidence.gone = "the argument is not taken"
    own = [shown for text, shown in examples if _about_call(rule) or symbol.rpartition(".")[2] in text]
    for shown in [*own, *_probed(rule.code, symbol)]:
        evidence.ran = True
        evidence.warns = evidence.warns or shown.warns
        evidence.gone = evidence.gone or shown.gone
    return evidence


def _of_module(rule: Rule, symbol: str) -> str | None:
    """What the documentation of the module says, for a rule about its members."""
    found, _ = installed.find(symbol.rpartition(".")[0])
    return installed.documented(found) if rule.members else None


def _about_call(rule: Rule) -> bool:
    """Whether a rule is about how something is used, which an example shows for all of its symbols."""
    return bool(rule.parameters or rule.missing or rule.match or rule.codemod)


def _lacks(found: Any, parameters: tuple[str, ...]) -> bool:
    import inspect

    try:
        taken = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return False
    if any(item.kind is item.VAR_KEYWORD for item in taken.values()):
        return False
    return not set(parameters) & set(taken)


def _examples(item: LoadedRule) -> list[tuple[str, Evidence]]:
    """The old sides of the examples that can be run, with what they did."""
    return [
        (example.before, run(example.before, example.prove))
        for example in item.examples
        if example.kind == FIX and example.prove is not None and not companions.missing(example.before)
    ]


def run(code: str, inputs: dict[str, str] | None = None) -> Evidence:
    """Execute code on the installed release, and say what it warned of or raised."""
    evidence = Evidence(ran=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(stubs.installed())
        stack.enter_context(companions.prepared(code))
        stack.enter_context(scratch())
        space = {"__name__": "example", **vocabulary.evaluate(inputs or {})}
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        stack.callback(torch.set_default_device, None)
        stack.callback(torch.set_grad_enabled, torch.is_grad_enabled())
        stack.callback(torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled())
        try:
            exec(compile(code, "<example>", "exec", dont_inherit=True), space)
        except ModuleNotFoundError as error:
            # What another library would do is not known; what torch lacks is gone.
            evidence.ran = (error.name or "").partition(".")[0] in LIBRARY_ROOTS
            evidence.gone = f"{type(error).__name__}: {error}" if evidence.ran else None
        # Whatever the old code raises is what it does today.
        except Exception as error:
            evidence.gone = f"{type(error).__name__}: {error}"
    said = [f"{item.category.__name__}: {item.message}" for item in caught if installed.is_deprecation(item)]
    evidence.warns = said[0] if said else None
    return evidence


def _probed(code: str, symbol: str) -> Iterator[Evidence]:
    for entry in _table("probes.yaml").get(code, ()):
        names = entry.get("symbols")
        if names is None or symbol in names:
            yield _run_once(entry["run"].replace("{symbol}", symbol))


@functools.cache
def _run_once(code: str) -> Evidence:
    return run(code)


def reason(code: str, symbol: str) -> str | None:
    """Why what the installed release shows is not held against a rule."""
    for entry in _table("explained.yaml").get(code, ()):
        if "symbols" not in entry or symbol in entry["symbols"]:
            return str(entry["reason"])
    return None


@functools.cache
def _table(name: str) -> dict[str, list[dict[str, Any]]]:
    return yaml.safe_load((_HERE / name).read_text(encoding="utf-8")) or {}
