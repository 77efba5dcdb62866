"""Rules as the engine sees them: immutable, already checked, independent of YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from torchmigrate.findings import Applicability

# Every syntactic place that a rename fits; the values of names.model.Role without "string".
ALL_ROLES = ("call", "decorator", "base", "annotation", "reference", "import")

# What a `when:` clause may say about a parameter besides a literal value.
GIVEN, ABSENT, LITERAL, ANY = "given", "absent", "literal", "any"
POSITIONAL, OBJECT = "positional", "object"

_NONE: Mapping[Any, Any] = {}

STATUS = ("outdated", "deprecated", "changed", "removed")
RAISES = ("always", "sometimes", "never")
WARNS = ("call", "access")


class Condition(Struct, frozen=True):
    """What one parameter must be for a case to fit.

    kind: "value" (equal to one of `values`, a missing argument counts as its default), "given",
    "absent", "positional" (given without its name), "object" (given, and neither `self` nor `super()`),
    "literal" (any literal), "type" (the literal's type is one of `values`: "str", "int",
    "float", "bool", "none", "tuple", "list"), "not-type" (no literal of one of them), "not-value",
    "not-prefix" (no string that begins with one of `values`), "matches" (a string in which the regular
    expression is found), "keys" (a dict that is written there, with one of `values` as a key), "takes" (a
    function with so many parameters), "name" (a reference to one of the qualified names in `values`),
    "call" (a call of one of them without `requires_grad`), "is" (surely of one of the kinds in `values`, see
    kinds.py), or "other-shape" (by what was recorded, it had another shape than the argument for the
    parameter in `values`). What is not known holds nothing, but that a rule's `match` counts an argument of
    unknown value as "not-value" and "not-prefix".
    """

    kind: str
    values: tuple[object, ...] = ()


class ResultUse(Struct, frozen=True):
    """How the result of the old call must be used for a case to fit, and how its uses change.

    The old call returned a tuple with the `fields` (names of the namedtuple, in order). `take`: only
    this field is used (`call[take]`, `call.name`, or unpacked with the others unused or `_`), and the new
    call returns it alone. `adjust`: the new call returns a tuple as well, but these fields need a
    template around them (`$` is the field): `V` -> `$.mH`. `plain`: the call's value is used whole.
    `new_fields`: what the fields are called in the new result, where that differs.
    """

    fields: tuple[str, ...] = ()
    take: int | None = None
    adjust: Mapping[int, str] = _NONE
    plain: bool = False
    new_fields: tuple[str, ...] = ()


class Case(Struct, frozen=True):
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

    when: Mapping[str, Condition] = _NONE
    roles: tuple[str, ...] = ("call",)  # call, decorator, base, annotation, reference, import: where it fits
    result: ResultUse | None = None
    pattern: str | None = None  # enclosing expression, headed by the symbol: "torch.svd($x)[2]"
    template: str | None = None
    # param -> old source, as ast.unparse writes it -> new source; an argument not in it: does not fit
    map: Mapping[str, Mapping[str, str]] = _NONE
    rename: str | None = None
    drop: tuple[str, ...] = ()
    keywords: Mapping[str, str] = _NONE
    add: Mapping[str, str] = _NONE
    insert: tuple[str, ...] = ()
    set: Mapping[str, str] = _NONE
    to_keyword: tuple[str, ...] = ()
    # First release in which the new code works: of the rule's library ("0.13") or another ("torch 1.6").
    requires: str | None = None
    applicability: Applicability = Applicability.SAFE
    reason: str | None = None  # why it is not safe
    safe_from: str | None = (
        None  # the minimum from which on an unsafe fix is safe: the code lives with the change
    )
    title: str | None = None


class Rule(Struct, frozen=True):
    """One API change. Versions are of `library`; see docs/develop/rules.md for the YAML form."""

    code: str
    name: str
    summary: str
    library: str
    # qualified name -> variables: `new` for a plain rename, and what it has of its own (`variants.OWN`)
    symbols: Mapping[str, Mapping[str, str]]
    why: str = ""
    modules: Mapping[str, str | None] = _NONE  # moved module -> new one, None: removed
    members: frozenset[str] | None = None  # which members of `modules`; None: all
    signature: str | None = None  # "(input, eigenvectors=False, upper=True)"
    roles: tuple[str, ...] = ()  # empty: every role
    parameters: tuple[str, ...] = ()  # only where one of these is given; the finding is at the argument
    missing: tuple[str, ...] = ()  # only calls without any of these (and without * or **)
    match: Mapping[str, Condition] = _NONE  # only where these hold
    only_in_patterns: bool = False  # only calls in the pattern of a case, under its `when`
    cases: tuple[Case, ...] = ()
    outdated: str | None = None  # superseded, does not warn: info
    deprecated: str | None = None  # warns
    changed: str | None = None  # other results or another default, silently: warning
    removed: str | None = None  # removed: error
    until: str | None = None  # the release from which on the rule reports nothing
    # Whether what is removed, or changed, raises: "always", "sometimes", "never"; None: what is removed does
    raises: str | None = None
    # Where it warns: "call", or "access" of the name, so that an import warns; None: modules when imported
    warns: str | None = None
    advice: str | None = None  # what to do by hand where no case fits
    replaced_by: tuple[str, ...] = ()  # names whose use or test shows that the new side is handled
    codemod: str | None = None  # FOLDER.MODULE in torchmigrate.codemods
    shown: Mapping[str, str] = _NONE  # what the variables of the texts are in an explanation
    prefilter: str | None = None  # what is in the text of every file in which that finds something
    opt_in: bool = False  # off unless selected (adoption)
    group: str | None = None  # a name that selects the rule together with others
    # "file", "function": what gives the same advice there is one decision, so one finding with many places
    once: str | None = None
    unless_declared: str | None = None  # nothing is reported if the project declares this package
    unless_named: str | None = None  # no fix in files with attributes or strings like this pattern
    failures: str | None = None  # where the new call fails and the old one did not, or the other way round
    together: str | None = None  # all findings of a file by rules that say the same are fixed as one, or none
    # Of a rule about files that are not Python: their kinds (`source.other`), and the module of
    # `texts.finders` that finds it; for "words", "variables" and "tokens" `symbols` are what is looked for.
    files: tuple[str, ...] = ()
    finder: str | None = None
    level: str | None = None  # the severity of a rule that is about no release
    references: tuple[str, ...] = ()
    path: str = ""  # where it was defined: below rules/ for our own, as given for a user's
    line: int = 0


class RuleHead(Struct, frozen=True, array_like=True):
    """What selecting and indexing rules needs to know of one, without building it."""

    code: str
    name: str
    library: str
    symbols: tuple[str, ...]
    modules: tuple[str, ...]
    outdated: str | None
    deprecated: str | None
    changed: str | None
    last_change: str | None  # what `changed` is for the symbol for which it is latest
    removed: str | None
    codemod: str | None
    prefilter: str | None
    opt_in: bool
    group: str | None
    unless_declared: str | None
    files: tuple[str, ...] = ()
    until: str | None = None

    @classmethod
    def of(cls, rule: Rule) -> RuleHead:
        return cls(
            code=rule.code,
            name=rule.name,
            library=rule.library,
            symbols=tuple(rule.symbols),
            modules=tuple(rule.modules),
            outdated=min(_given(rule, "outdated"), key=_order, default=None),
            deprecated=min(_given(rule, "deprecated"), key=_order, default=None),
            changed=min(_given(rule, "changed"), key=_order, default=None),
            last_change=max(_given(rule, "changed"), key=_order, default=None),
            removed=min(_given(rule, "removed"), key=_order, default=None),
            codemod=rule.codemod,
            prefilter=rule.prefilter,
            opt_in=rule.opt_in,
            group=rule.group,
            unless_declared=rule.unless_declared,
            files=rule.files,
            until=rule.until,
        )


def _given(rule: Rule, status: str) -> list[str]:
    """The releases in which a status holds for any symbol: each may name its own."""
    given = {values.get(status) for values in rule.symbols.values()} | {getattr(rule, status)}
    return [text for text in given if text]


def _order(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
