"""A rule as the engine sees it: immutable, already checked, independent of YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchmigrate.model import Applicability

# What a `when:` clause may say about a parameter besides a literal value.
GIVEN, ABSENT, LITERAL, ANY = "given", "absent", "literal", "any"


@dataclass(frozen=True, slots=True)
class Condition:
    """What one parameter must be for a case to fit.

    kind: "value" (equal to one of `values`, a missing argument counts as its default), "given",
    "absent", "literal" (any literal), "type" (the literal's type is one of `values`: "str", "int",
    "float", "bool", "none", "tuple", "list"), "not-value", or "name" (a reference to one of the
    qualified names in `values`).
    """

    kind: str
    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultUse:
    """How the result of the old call must be used for a case to fit, and what becomes of the uses.

    The old call returned a tuple with the `fields` (names of the namedtuple, in order). `take`: only
    this field is used (`call[take]`, `call.name`, or unpacked with the others unused or `_`), and the new
    call returns it alone. `adjust`: the new call returns a tuple as well, but these fields need a
    template around them (`$` is the field): `V` -> `$.mH`. `plain`: the call's value is used whole.
    """

    fields: tuple[str, ...] = ()
    take: int | None = None
    adjust: Mapping[int, str] = field(default_factory=dict)
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One way to rewrite a use. The first case of a rule that fits is taken; none: report only.

    Exactly one of `template`, `rename` or the argument operations (which may go with `rename`):
    template    new expression for the whole call; `$param` the argument's source, a dotted name that
                starts with a library root is a qualified name for which imports are planned, `$var` of
                the symbol's variables. An argument `keyword=$param` vanishes when `param` is absent.
    rename      new qualified name of what was used (may be `$new`, a variable of the symbol)
    drop        parameters whose arguments vanish
    keywords    old parameter -> new keyword
    add         keyword -> source of a new argument (appended; existing one is kept)
    insert      sources of new leading positional arguments
    set         parameter -> new source of an argument that is given
    to_keyword  parameters that become keywords when they are positional
    """

    when: Mapping[str, Condition] = field(default_factory=dict)
    roles: tuple[str, ...] = ("call",)  # call, decorator, base, annotation, reference, import: where it fits
    result: ResultUse | None = None
    pattern: str | None = None  # enclosing expression, headed by the symbol: "torch.svd($x)[2]"
    template: str | None = None
    map: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # param -> old source -> new source
    rename: str | None = None
    drop: tuple[str, ...] = ()
    keywords: Mapping[str, str] = field(default_factory=dict)
    add: Mapping[str, str] = field(default_factory=dict)
    insert: tuple[str, ...] = ()
    set: Mapping[str, str] = field(default_factory=dict)
    to_keyword: tuple[str, ...] = ()
    requires: str | None = None  # first version of the rule's library in which the new code works
    applicability: Applicability = Applicability.SAFE
    reason: str | None = None  # why it is not safe
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One API change. Versions are of `library`; see CONTRIBUTING.md for the YAML form."""

    code: str
    name: str
    summary: str
    library: str
    symbols: Mapping[str, Mapping[str, str]]  # qualified name -> variables (`new` for a plain rename)
    why: str = ""
    modules: Mapping[str, str | None] = field(default_factory=dict)  # moved module -> new one, None: gone
    members: frozenset[str] | None = None  # which members of `modules`; None: all
    signature: str | None = None  # "(input, eigenvectors=False, upper=True)"
    roles: tuple[str, ...] = ()  # empty: every role
    parameters: tuple[str, ...] = ()  # only where one of these is given; the finding is at the argument
    missing: tuple[str, ...] = ()  # only calls without any of these (and without * or **)
    match: Mapping[str, Condition] = field(default_factory=dict)  # only where these hold
    cases: tuple[Case, ...] = ()
    outdated: str | None = None  # superseded, does not warn: info
    deprecated: str | None = None  # warns
    changed: str | None = None  # other results or another default, silently: warning
    removed: str | None = None  # gone: error
    advice: str | None = None  # what to do by hand where no case fits
    replaced_by: tuple[str, ...] = ()  # names whose use or test shows that the new side is handled
    codemod: str | None = None  # module in torchmigrate.codemods
    opt_in: bool = False  # off unless selected (adoption)
    references: tuple[str, ...] = ()
    path: str = ""  # where it was defined
    line: int = 0


@dataclass(slots=True)
class Catalogue:
    """All rules of a run, and where to find the ones for a name."""

    rules: list[Rule]
    by_symbol: dict[str, list[Rule]] = field(default_factory=dict)
    by_module: dict[str, list[Rule]] = field(default_factory=dict)

    @classmethod
    def of(cls, rules: list[Rule]) -> Catalogue:
        """Index rules by qualified name, keeping their order."""
        catalogue = cls(rules)
        for rule in rules:
            for symbol in rule.symbols:
                catalogue.by_symbol.setdefault(symbol, []).append(rule)
            for module in rule.modules:
                catalogue.by_module.setdefault(module, []).append(rule)
        return catalogue

    def for_name(self, name: str) -> list[tuple[Rule, str]]:
        """The rules for a qualified name, each with the symbol or moved module by which it matched."""
        found = [(rule, name) for rule in self.by_symbol.get(name, ())]
        if self.by_module:
            head = name
            while True:
                for rule in self.by_module.get(head, ()):
                    member = name[len(head) + 1 :].partition(".")[0]
                    if rule.members is None or not member or member in rule.members:
                        found.append((rule, head))
                head, dot, _ = head.rpartition(".")
                if not dot:
                    break
        return found
