"""Every rule against what the installed libraries do and say."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import io
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

import torch
import yaml
from harness.catalogue import catalogue, loaded_rules
from old_torch import compare, plain
from old_torch.execute import gradients
from proofs import companions, stubs, vocabulary
from proofs.run import ProofError, inputs_of, recordings_of, scratch
from proofs.run import run as execute

from severities import installed
from torchmigrate.catalogue.examples import CLEAN, FIX, Example
from torchmigrate.catalogue.loader import LoadedRule
from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.variants import rule_for_symbol
from torchmigrate.config.settings import Settings
from torchmigrate.engine.engine import Engine
from torchmigrate.findings import Finding, Severity
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.source.kinds import kind_of
from torchmigrate.versions.range import VersionRange, severity
from torchmigrate.versions.releases import Version, parse_version, show_version, torch_release

_HERE = Path(__file__).parent
_PATH = Path("example.py")


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

    def detail(self) -> str:
        return self.gone or self.warns or ""

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
        if rule.files or (codes and rule.code not in codes) or not _is_installed(rule.library):
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


def _is_installed(library: str) -> bool:
    return library in ("torch", *companions.LIBRARIES) and find_spec(library) is not None


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


def run(code: str, inputs: Mapping[str, str] | None = None) -> Evidence:
    """Execute code on the installed release, and say what it warned of or raised."""
    with _prepared(code, inputs) as space:
        return _execute(compile(code, "<example>", "exec", dont_inherit=True), space)


@contextlib.contextmanager
def _prepared(code: str, inputs: Mapping[str, str] | None) -> Iterator[dict[str, Any]]:
    """The names that code is executed with; whatever it sets up for the process is undone."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(stubs.installed())
        stack.enter_context(companions.prepared(code))
        stack.enter_context(scratch())
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        stack.callback(torch.set_default_device, None)
        stack.callback(torch.set_grad_enabled, torch.is_grad_enabled())
        stack.callback(torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled())
        yield {"__name__": "example", **vocabulary.evaluate(inputs or {})}


def _execute(code: CodeType, space: dict[str, Any]) -> Evidence:
    evidence = Evidence(ran=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(code, space)
        except ModuleNotFoundError as error:
            # What another library would do is not known; what torch lacks is gone.
            evidence.ran = (error.name or "").partition(".")[0] in LIBRARY_ROOTS
            evidence.gone = f"{type(error).__name__}: {error}" if evidence.ran else None
        except NameError as error:
            # What the example takes for granted was not given.
            evidence.ran = isinstance(error, UnboundLocalError) or error.name is None or error.name in space
            evidence.gone = f"{type(error).__name__}: {error}" if evidence.ran else None
        # Whatever the old code raises is what it does today; some errors of distributed code are no `Exception`.
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            evidence.gone = f"{type(error).__name__}: {error}"
    said = [f"{item.category.__name__}: {item.message}" for item in caught if installed.is_deprecation(item)]
    evidence.warns = said[0] if said else None
    return evidence


# ---- the examples, as a user runs them -------------------------------------------------------------------


@dataclass(frozen=True)
class Shown:
    """What the place of a finding in an example does on the installed release.

    effect: "raises", "warns", "differs" (from what was recorded on old releases), "is silent", or "not run".
    """

    code: str
    number: int  # of the example in its rule, from 1
    line: int
    severity: Severity
    effect: str
    detail: str = ""

    @property
    def problem(self) -> str | None:
        """In what the severity is wrong."""
        if self.effect == "not run" or _explained(self.code, "examples", self.number) is not None:
            return None
        if self.severity is Severity.ERROR:
            return None if self.effect == "raises" else f"it is an error, and the example {self.effect}"
        return (
            "it is a warning, and the example neither warns nor differs"
            if self.effect == "is silent"
            else None
        )

    def __str__(self) -> str:
        text = f"{self.code} example {self.number}, line {self.line}: {self.severity.label}; {self.effect}"
        return f"{text}: {' '.join(self.detail.split())[:150]}" if self.detail else text


def shown(codes: Collection[str] = ()) -> Iterator[Shown]:
    """What every finding in the old side of an example does, of the rules that say error or warning."""
    torch.set_warn_always(True)
    torch.storage._always_warn_typed_storage_removal = True
    target = show_version(parse_version(torch.__version__))
    for item in sorted(loaded_rules(), key=lambda item: item.rule.code):
        rule = item.rule
        if rule.files or rule.opt_in or (codes and rule.code not in codes) or not _is_installed(rule.library):
            continue
        engine = Engine(catalogue(), Settings(codes=frozenset([rule.code]), target=target))
        for number, example in enumerate(item.examples, start=1):
            if example.kind == CLEAN or example.file is not None or example.beside:
                continue
            source = kind_of(_PATH).from_bytes(example.before.encode(), _PATH)
            found = [one for one in engine.check_source(source, _PATH).findings if one.code == rule.code]
            found = [one for one in found if one.severity is not Severity.INFO]
            if found:
                change = rule.changed or rule.removed
                before = torch_release(rule.library, parse_version(change)) if change else None
                yield from _shown(number, example, found, before)


def _shown(number: int, example: Example, found: list[Finding], change: Version | None) -> Iterator[Shown]:
    text, _ = example.sides()
    ran = list(_statements(text, example))
    if example.prove is not None and not any(evidence.detail() for _, evidence in ran):
        ran.append((range(0), _gradients(text, example.prove)))
    for finding in found:
        line = text.count("\n", 0, finding.start) + 1
        at = next(index for index, (lines, _) in enumerate(ran) if line in lines)
        # What a definition does is seen where it is used.
        effect, detail = "not run", ran[at][1].detail()
        for _, evidence in ran[at:]:
            if evidence.gone or evidence.warns:
                effect = "raises" if evidence.gone else "warns"
                detail = evidence.detail()
                break
        else:
            differs = _differs(example, change) if example.prove is not None else None
            if differs is not None:
                effect, detail = ("raises" if " raised " in differs else "differs"), differs
            elif (
                ran[at][1].ran and all(evidence.ran for _, evidence in ran[at:]) and example.prove is not None
            ):
                effect = "is silent"
        yield Shown(finding.code, number, line, finding.severity, effect, detail)


def _statements(text: str, example: Example) -> Iterator[tuple[range, Evidence]]:
    """What each statement does on the installed release, with its lines."""
    with _prepared(text, example.prove) as space:
        for node in ast.parse(text).body:
            first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])
            lines = range(first, (node.end_lineno or first) + 1)
            if example.prove is None and not _is_harmless(node):
                yield lines, Evidence()
                continue
            code = compile(ast.Module([node], []), "<example>", "exec", dont_inherit=True)
            yield lines, _execute(code, space)


def _is_harmless(node: ast.stmt) -> bool:
    """Whether a statement only imports, or looks names up."""
    return not any(
        isinstance(part, ast.Call | ast.FunctionDef | ast.ClassDef | ast.While) for part in ast.walk(node)
    )


def _gradients(text: str, prove: Mapping[str, str]) -> Evidence:
    """What calculating the gradients of the results does."""
    run_side = functools.partial(execute, text, old=False, both=text)
    code = compile("gradients(run_side, given)", "<example>", "eval")
    with scratch():
        space = {"gradients": gradients, "run_side": run_side, "given": inputs_of(prove)}
        return _execute(code, space)


def _differs(example: Example, change: Version | None) -> str | None:
    """In what the old side gives other results than on the last release before a change, of those that ran it."""
    before, after = example.sides()
    recorded = recordings_of(before, after, example.prove or {})
    earlier = [item for item in recorded if change and parse_version(item["releases"][-1]) < change]
    if not recorded or (change and not earlier):
        return None
    old = (earlier or recorded)[-1]
    try:
        with scratch():
            values = plain.plain_values(
                execute(before, inputs_of(example.prove or {}), old=False, both=before)
            )
    except ProofError as error:
        return str(error)
    return next(iter(compare.outcomes({"values": old["values"]}, {"values": values})), None)


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
    return _explained(code, "symbols", symbol)


def _explained(code: str, kind: str, item: str | int) -> str | None:
    """The reason for one of the symbols or examples of a rule; an entry that lists neither is about all."""
    for entry in _table("explained.yaml").get(code, ()):
        if not {"symbols", "examples"} & set(entry) or item in entry.get(kind, ()):
            return str(entry["reason"])
    return None


@functools.cache
def _table(name: str) -> dict[str, list[dict[str, Any]]]:
    return yaml.safe_load((_HERE / name).read_text(encoding="utf-8")) or {}
