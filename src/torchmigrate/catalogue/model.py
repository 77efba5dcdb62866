"""Rules as the engine sees them: immutable, already checked, independent of YAML; and their index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from torchmigrate.model import Applicability

_CHUNK = 32_768  # bytes that `screen` looks at before it asks whether it may stop
# Keeps what names are made of; everything else becomes a space.
_WORDS = bytes(b if b < 128 and (chr(b).isalnum() or chr(b) == "_") else 32 for b in range(256))

# Every syntactic place that a rename fits; the values of names.model.Role without "string".
ALL_ROLES = ("call", "decorator", "base", "annotation", "reference", "import")

# What a `when:` clause may say about a parameter besides a literal value.
GIVEN, ABSENT, LITERAL, ANY = "given", "absent", "literal", "any"


@dataclass(frozen=True, slots=True)
class Condition:
    """What one parameter must be for a case to fit.

    kind: "value" (equal to one of `values`, a missing argument counts as its default), "given",
    "absent", "literal" (any literal), "type" (the literal's type is one of `values`: "str", "int",
    "float", "bool", "none", "tuple", "list"), "not-value", "name" (a reference to one of the qualified
    names in `values`), or "call" (a call of one of them without `requires_grad`). What is not
    known holds nothing, but that a rule's `match` counts an argument of unknown value as "not-value".
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
    `new_fields`: what the fields are called in the new result, where that differs.
    """

    fields: tuple[str, ...] = ()
    take: int | None = None
    adjust: Mapping[int, str] = field(default_factory=dict)
    plain: bool = False
    new_fields: tuple[str, ...] = ()


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
    # param -> old source, as ast.unparse writes it -> new source; an argument not in it: does not fit
    map: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rename: str | None = None
    drop: tuple[str, ...] = ()
    keywords: Mapping[str, str] = field(default_factory=dict)
    add: Mapping[str, str] = field(default_factory=dict)
    insert: tuple[str, ...] = ()
    set: Mapping[str, str] = field(default_factory=dict)
    to_keyword: tuple[str, ...] = ()
    # First release in which the new code works: of the rule's library ("0.13") or another ("torch 1.6").
    requires: str | None = None
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
    # qualified name -> variables: `new` for a plain rename, and what it has of its own (`variants.OWN`)
    symbols: Mapping[str, Mapping[str, str]]
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
    path: str = ""  # where it was defined: below rules/ for our own, as given for a user's
    line: int = 0


class RuleHead(NamedTuple):
    """What selecting and indexing rules needs to know of one, without building it."""

    code: str
    name: str
    library: str
    symbols: tuple[str, ...]
    modules: tuple[str, ...]
    outdated: str | None
    deprecated: str | None
    changed: str | None
    removed: str | None
    codemod: str | None
    opt_in: bool

    @classmethod
    def of(cls, rule: Rule) -> RuleHead:
        return cls(
            code=rule.code,
            name=rule.name,
            library=rule.library,
            symbols=tuple(rule.symbols),
            modules=tuple(rule.modules),
            outdated=_earliest(rule, "outdated"),
            deprecated=_earliest(rule, "deprecated"),
            changed=_earliest(rule, "changed"),
            removed=_earliest(rule, "removed"),
            codemod=rule.codemod,
            opt_in=rule.opt_in,
        )


def _earliest(rule: Rule, status: str) -> str | None:
    """The first release in which a status holds for any symbol: each may name its own."""
    given = {values.get(status) for values in rule.symbols.values()} | {getattr(rule, status)}
    return min(
        (text for text in given if text), key=lambda text: tuple(map(int, text.split("."))), default=None
    )


class RulesByName(Mapping[str, list[Rule]]):
    """Qualified name -> its rules, which are built when they are read."""

    def __init__(self, numbers: Mapping[str, list[int]], rule: Callable[[int], Rule]) -> None:
        self._numbers = numbers
        self._rule = rule

    def __getitem__(self, name: str) -> list[Rule]:
        return [self._rule(number) for number in self._numbers[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class Catalogue:
    """All rules of a run, and where to find the ones for a name.

    Made by `Catalogue.of(rules)`, `compiled.load` or `store.default_catalogue`. A rule is built when it
    is first asked for, so that code with three outdated names does not pay for five hundred rules.
    """

    def __init__(self, heads: Iterable[tuple[int, RuleHead]], build: Callable[[int], Rule]) -> None:
        """Index rules by their heads, numbered as `build` knows them; it is called once per rule."""
        self._heads = list(heads)
        self._build = build
        self._built: dict[int, Rule] = {}
        self._symbols: dict[str, list[int]] = {}
        self._modules: dict[str, list[int]] = {}
        for number, head in self._heads:
            for symbol in head.symbols:
                self._symbols.setdefault(symbol, []).append(number)
            for module in head.modules:
                self._modules.setdefault(module, []).append(number)
        self._found: dict[str, list[tuple[Rule, str]]] = {}

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> Catalogue:
        """Index rules that are built already, keeping their order."""
        rules = list(rules)
        return cls(enumerate(map(RuleHead.of, rules)), rules.__getitem__)

    def where(self, wanted: Callable[[RuleHead], bool]) -> Catalogue:
        """The rules whose head is wanted, in the same order; builds none."""
        return Catalogue([item for item in self._heads if wanted(item[1])], self._rule)

    @property
    def heads(self) -> list[RuleHead]:
        """The head of every rule, in order; builds none."""
        return [head for _, head in self._heads]

    @property
    def rules(self) -> list[Rule]:
        """Every rule; builds those that nobody asked for yet."""
        return [self._rule(number) for number, _ in self._heads]

    @property
    def by_symbol(self) -> Mapping[str, list[Rule]]:
        return RulesByName(self._symbols, self._rule)

    @property
    def by_module(self) -> Mapping[str, list[Rule]]:
        return RulesByName(self._modules, self._rule)

    def find(self, code_or_name: str) -> Rule | None:
        """The rule with this code or name."""
        for number, head in self._heads:
            if code_or_name in (head.code, head.name):
                return self._rule(number)
        return None

    def __len__(self) -> int:
        return len(self._heads)

    def for_name(self, name: str) -> list[tuple[Rule, str]]:
        """The rules for a qualified name, each with the symbol or moved module by which it matched.

        Remembered per name, names without a rule as well; the list is not the caller's to change.
        """
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._find(name)
        return found

    def _find(self, name: str) -> list[tuple[Rule, str]]:
        found = [(self._rule(number), name) for number in self._symbols.get(name, ())]
        modules = self._modules
        head = name
        while modules and head:
            for number in modules.get(head, ()):
                rule = self._rule(number)
                member = name[len(head) + 1 :].partition(".")[0]
                if rule.members is None or not member or member in rule.members:
                    found.append((rule, head))
            head = head.rpartition(".")[0]
        return found

    @cached_property
    def last_parts(self) -> frozenset[str]:
        """The last dotted part of every symbol and module: one of them is in any file with a finding."""
        return frozenset(
            name.rpartition(".")[2] for names in (self._symbols, self._modules) for name in names
        )

    @cached_property
    def _parts_by_root(self) -> dict[bytes, frozenset[bytes]]:
        """`last_parts` by the package that their names begin with."""
        found: dict[bytes, set[bytes]] = {}
        for names in (self._symbols, self._modules):
            for name in names:
                root = name.partition(".")[0].encode()
                found.setdefault(root, set()).add(name.rpartition(".")[2].encode())
        return {root: frozenset(parts) for root, parts in found.items()}

    def screen(self, source: str | bytes) -> bool:
        """Whether one of `last_parts` occurs in a source (text, or bytes that contain ASCII) as a word.

        Only those of packages that the source mentions: torchtext has `data` and `utils`, which are in
        every other file.

        Splitting reads 50 MB/s; a regular expression for 1,500 names reads 10 and takes 100 ms to compile.
        """
        data = source if isinstance(source, bytes) else source.encode("utf-8", "replace")
        mentioned = [parts for root, parts in self._parts_by_root.items() if root in data]
        if not mentioned:
            return False
        data = data.translate(_WORDS)
        parts = frozenset().union(*mentioned)
        start = 0
        while start < len(data):
            end = data.find(b" ", start + _CHUNK)
            end = len(data) if end < 0 else end
            if not parts.isdisjoint(data[start:end].split()):
                return True
            start = end
        return False

    def _rule(self, number: int) -> Rule:
        rule = self._built.get(number)
        if rule is None:
            rule = self._built[number] = self._build(number)
        return rule
