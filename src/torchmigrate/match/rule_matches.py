"""From uses to hits: which rule says something about which use, guards and places considered."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.variants import rule_for_constructor, rule_for_symbol
from torchmigrate.failures import Failures
from torchmigrate.findings import Severity
from torchmigrate.match.context import MatchContext
from torchmigrate.match.matching import Match, matches
from torchmigrate.match.moves import Moves, dotted_names
from torchmigrate.patterns import pattern
from torchmigrate.semantics.facts.defaults import Defaults
from torchmigrate.semantics.facts.dtypes import ValueFacts
from torchmigrate.semantics.guards.choices import Choices
from torchmigrate.semantics.guards.formulas import (
    MISSING_ARGUMENT,
    MISSING_IMPORT,
    MISSING_NAME,
    Arguments,
    is_about,
    is_handled,
    surely_runs,
    survives,
    uses_one_of,
)
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import (
    Binding,
    Const,
    Guards,
    QualifiedName,
    Role,
    Scope,
    SemanticModel,
    Use,
    Via,
)
from torchmigrate.semantics.public_names import public_name
from torchmigrate.semantics.values import distinctive
from torchmigrate.semantics.values.objects import TENSOR, inherited
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import VersionRange, severity
from torchmigrate.versions.releases import NEIGHBORS


class RuleMatch(Struct, eq=False):
    """A rule that applies to a use."""

    rule: Rule
    symbol: str  # the rule's symbol or moved module by which it matched
    name: str  # the qualified name of the use
    use: Use
    place: MatchContext
    match: Match
    unambiguous: bool  # no other candidate could mean something else here
    optional: bool = False  # an import that the code does without where it fails, as at the target


def _is_likely(use: Use) -> bool:
    """Whether a method of an object that is not surely of its class is worth a finding."""
    member = use.candidates[0].rpartition(".")[2]
    return (
        member in distinctive.DISTINCTIVE_METHODS
        or (use.stated and (use.seen or member not in distinctive.OF_STAND_INS))
        or use.told
    )


def _never_was(use: Use, names: SemanticModel) -> bool:
    """Whether a method is of a tensor, and the object was seen, but never as one."""
    if not isinstance(use.node, ast.Attribute) or not use.candidates[0].startswith(f"{TENSOR}."):
        return False
    seen = names.seen.get(id(use.node.value), ())
    return bool(seen) and not any(each.what == "tensor" or each.is_none for each in seen)


def cannot_spell(_: str) -> str | None:
    """The `spell` of a place before imports are planned."""
    return None


class RuleMatcher:
    """Looks up every use of a file in the catalogue."""

    def __init__(
        self,
        catalogue: Catalogue,
        versions: VersionRange,
        exists: Callable[[str], bool | None] | None = None,
    ) -> None:
        """exists: whether a name exists at the target, None if unknown; used for guards only."""
        self.catalogue = catalogue
        self.versions = versions
        self.exists = exists
        self.moves = Moves(versions)
        self._rules: dict[str, list[tuple[Rule, str]]] = {}

    def rules_for(self, name: str) -> list[tuple[Rule, str]]:
        """The rules for a name in any of its spellings, with the symbol of each, as they stand for it.

        A rule on a module is about what is spelt as a member of it. What a class of another module inherits
        from one of its classes is not such a member.
        """
        found = self._rules.get(name)
        if found is None:
            found = list(self.catalogue.for_name(name))
            public = public_name(name)
            for other in (public, *inherited(public)):
                if other != name:
                    known = {id(rule) for rule, _ in found}
                    found += [
                        (rule, symbol)
                        for rule, symbol in self.catalogue.for_name(other)
                        if id(rule) not in known and symbol == other
                    ]
            stand = [(self._standing(rule, symbol, name), symbol) for rule, symbol in _most_specific(found)]
            found = [(rule, symbol) for rule, symbol in stand if rule is not None]
            cls, _, member = public.rpartition(".")
            if member == "__init__":
                found += self._of_constructor(cls)
            self._rules[name] = found
        return found

    def _of_constructor(self, cls: str) -> Iterator[tuple[Rule, str]]:
        """The rules on the arguments of a class, for `super().__init__(...)` in a class derived from it."""
        for rule, symbol in self.catalogue.for_name(cls):
            standing = self._standing(rule, symbol, cls) if symbol == cls and symbol in rule.symbols else None
            constructor = rule_for_constructor(standing, symbol) if standing is not None else None
            if constructor is not None:
                yield constructor, f"{symbol}.__init__"

    def _standing(self, rule: Rule, symbol: str, name: str) -> Rule | None:
        """The rule with what its symbol and the releases say of it; None: it is not about this name."""
        if symbol in rule.symbols:
            return self.moves.without_outdated(rule_for_symbol(rule, symbol), symbol)
        return self.moves.member(rule, symbol, name) if f"{name}.".startswith(f"{symbol}.") else None

    def find(self, kinds: ValueFacts, source: Source, failures: Failures) -> list[RuleMatch]:
        """Every hit of a file, in source order; what a rule fails at is named in `failures`."""
        names = kinds.names
        defaults = Defaults(kinds.around)
        choices = Choices(names)
        hits: list[RuleMatch] = []
        for use in names.uses:
            if use.method and not use.sure and not _is_likely(use):
                continue
            if use.method and names.seen and _never_was(use, names):
                continue
            seen: list[str] = []
            for name in use.candidates:
                rules = self._rules.get(name)
                for rule, symbol in self.rules_for(name) if rules is None else rules:  # most have none
                    if rule.code in seen:
                        continue
                    seen.append(rule.code)
                    hit = None
                    with failures.caught(rule.code, "the finding", use.start):
                        hit = self._hit(use, name, rule, symbol, kinds, defaults, choices, source)
                    if hit is not None:
                        hits.append(hit)
        used = {id(hit.use.binding) for hit in hits if not hit.optional}
        return [hit for hit in hits if not hit.optional or id(hit.use.binding) in used]

    def _hit(
        self,
        use: Use,
        name: str,
        rule: Rule,
        symbol: str,
        kinds: ValueFacts,
        defaults: Defaults,
        choices: Choices,
        source: Source,
    ) -> RuleMatch | None:
        if severity(rule, self.versions) is None:
            return None  # the rule has reached the target, but not for this symbol
        calls_only = about_arguments(rule)
        if use.method and symbol not in rule.symbols:
            return None  # of a class that moved: its import is reported, the attributes did not change
        if isinstance(use.statement, ast.Import) and use.role is Role.IMPORT and symbol in rule.modules:
            home = rule.modules[symbol]
            if home is not None and not self.moves.is_module(home + name[len(symbol) :]):
                return None  # a module of the name of a function: only that moved
        if not calls_only and (
            (use.via is Via.ALIAS and not use.attribute_path)
            or (use.via is Via.SELF and _is_attribute_of_name(use.node))
        ):
            return None  # `f = torch.ger` or `self.f = torch.ger` was found; `f(...)` follows it
        prepared = kinds.around.prepared(use) if calls_only and not rule.codemod else None
        call = use.call or prepared
        if calls_only and call is None and use.role is not Role.DECORATOR:
            return None
        if use.role is Role.STRING and calls_only:
            return None
        if symbol in rule.modules and use.attribute_path and self._is_said_at_import(use, symbol):
            return None
        place = make_place(use, source, kinds, cannot_spell, prepared)
        match = matches(rule, place)
        if match is None:
            return None
        new = new_names(rule, symbol)
        if len(use.candidates) > 1 and any(public_name(other) in new for other in use.candidates):
            return None  # imported from its new home where that exists, from the old one elsewhere
        old = (name, symbol, *rule.symbols)
        about = arguments_of(rule, symbol, use, call) if calls_only else None

        def is_default(place: Use) -> bool:
            return self._is_default(place, new, defaults)

        if is_guarded(
            use,
            name,
            target=self._target,
            old=old,
            new=new,
            exists=self.exists,
            arguments=about,
            is_default=is_default,
        ):
            return None
        if _is_chosen(use, choices, old=old, new=new, arguments=about):
            return None
        gone = severity(rule, self.versions) is Severity.ERROR
        optional = False
        if gone:
            origins = [use.binding] if use.role is Role.IMPORT else origins_of(use, name)
            if len(use.candidates) > 1 and rule.symbols.keys() >= set(use.candidates):
                origins = []  # whichever import works: the rule is about all that it may give
            if origins and all(origin is not None and _is_replaced(origin) for origin in origins):
                return None  # removed, so that its import fails and the binding of the handler is used
            if symbol in rule.modules and origins and all(map(_is_last_resort, origins)):
                return None
            # A `try` that goes on without it: an import matters if what it binds is used all the same.
            optional = use.role is Role.IMPORT and survives(use.guards, MISSING_IMPORT)
            if optional and not new:
                return None
            if use.role is not Role.IMPORT:
                if survives(use.guards, MISSING_ARGUMENT if calls_only else MISSING_NAME):
                    return None
                if use.role is Role.STRING and survives(use.guards, MISSING_IMPORT):
                    return None  # `import_module` of a removed module
                optional_import = origins and all(_is_optional(origin, symbol) for origin in origins)
                if optional_import and (not new or defaults.is_tested(use)):
                    return None
        elif use.call is None and (
            (not use.method and self._is_default(use, new, defaults)) or defaults.is_only_looked_at(use)
        ):
            return None
        if use.role is Role.IMPORT and symbol in rule.modules:
            match = _from_module(match, use, source)
        return RuleMatch(rule, symbol, name, use, place, match, len(use.candidates) == 1, optional)

    def _is_said_at_import(self, use: Use, module: str) -> bool:
        """Whether a rule reports the import of the name, from this module, that a use is a member of."""
        target = use.binding.target if use.binding is not None else None
        if target is None or len(use.origins) > 1 or not target.startswith(f"{module}."):
            return False
        return any(symbol in rule.symbols for rule, symbol in self.rules_for(target))

    def _is_default(self, use: Use, new: tuple[str, ...], defaults: Defaults) -> bool:
        """Whether a name, which is still there, is only taken where there is nothing newer."""

        def runs(guards: Guards) -> bool:
            return surely_runs(guards, use.guards, target=self._target, new=new, exists=self.exists)

        def exists(name: str) -> bool:
            return public_name(name) in new or (self.exists is not None and self.exists(name) is True)

        return defaults.is_given_to_getattr(use, exists) or defaults.is_overridden(use, runs)

    def _target(self, library: str) -> tuple[int, ...] | None:
        return self.versions.of(library)[0]


def _is_attribute_of_name(node: ast.AST) -> bool:
    """Whether this is `self.f`, not `self.transforms.Scale`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def _from_module(match: Match, use: Use, source: Source) -> Match:
    """The first name of an import of several lines stands for the module that it is from, too."""
    statement = use.statement
    if (
        not isinstance(statement, ast.ImportFrom)
        or not statement.module
        or use.node is not statement.names[0]
    ):
        return match
    first = source.line_start(statement.lineno)
    start = source.text.find(statement.module, first, match.start)
    if start < 0 or source.position(start)[0] == source.position(match.start)[0]:
        return match
    return replace(match, start=start)


def is_guarded(
    use: Use,
    name: str,
    *,
    target: Callable[[str], tuple[int, ...] | None],
    old: Iterable[str],
    new: Iterable[str],
    exists: Callable[[str], bool | None] | None,
    arguments: Arguments | None = None,
    is_default: Callable[[Use], bool] | None = None,
) -> bool:
    """Whether a use, or everything that gives it this name, stands where guards take care of it.

    is_default: whether what an assignment took from a use is only kept where there is nothing newer.
    """

    def handled(guards: Guards) -> bool:
        return is_handled(guards, target=target, old=old, new=new, exists=exists, arguments=arguments)

    if handled(use.guards):
        return True
    scope: Scope | None = use.scope
    while scope is not None:
        callers = use.guarded.callers(scope)
        if callers and all(map(handled, callers)):
            return True  # in a function that is only called for old releases
        scope = scope.parent
    origins = origins_of(use, name)
    if origins and all(handled(origin.guards) for origin in origins):
        return True  # bound for old releases only
    places = use.taken.get(name, ())
    return bool(places) and all(
        handled(place.guards) or (is_default is not None and is_default(place)) for place in places
    )


def _is_chosen(
    use: Use, choices: Choices, *, old: Iterable[str], new: tuple[str, ...], arguments: Arguments | None
) -> bool:
    """Whether the code has the new side of a rule for the same objects, where a test chooses between them."""
    if arguments is None:
        outdated = frozenset(old)
        wanted = frozenset(new) - outdated
        if not wanted:
            return False

        def is_new(name: str, other: Use) -> bool:
            return uses_one_of((name,), wanted) and outdated.isdisjoint((name, public_name(name)))

        key: object = (outdated, wanted)
    else:
        functions, wanted = arguments.functions, frozenset(new) - arguments.functions

        def is_new(name: str, other: Use) -> bool:
            if other.call is None or public_name(name) not in functions:
                return uses_one_of((name,), wanted)
            return arguments.differ([(name, frozenset(item.arg or "**" for item in other.call.keywords))])

        key = (arguments, wanted)
    return choices.has_other_side(use, key, old, is_new)


def origins_of(use: Use, name: str) -> list[Binding]:
    """The bindings that make `name` a candidate of a use."""
    return [
        binding
        for binding in use.origins
        if any(
            isinstance(item, QualifiedName) and f"{name}.".startswith(f"{item.name}.")
            for item in binding.value
        )
    ]


def _is_replaced(binding: Binding) -> bool:
    """Whether an import stands in a try whose handler binds the same name to something that works.

    Or it is there for another name, or an attribute, that the body and the handler set.
    """
    attempt = binding.guards.attempt
    if attempt is None or binding.guards.part != "body" or not binding.is_import:
        return False
    if not any(is_about(attempt, handler, MISSING_IMPORT) for handler in attempt.node.handlers):
        return False
    handlers = [statement for handler in attempt.node.handlers for statement in handler.body]
    inside = set(map(id, handlers))
    return any(
        id(other.statement) in inside
        and not all(isinstance(item, Const) and item.value in (None, False) for item in other.value)
        for other in binding.scope.bindings.get(binding.name, ())
    ) or not _assigned(attempt.node.body).isdisjoint(_assigned(handlers))


def _assigned(statements: list[ast.stmt]) -> set[str]:
    """What simple statements assign, as source; nothing that becomes None or False."""
    return {
        ast.unparse(target)
        for statement in statements
        if isinstance(statement, ast.Assign)
        and not (isinstance(statement.value, ast.Constant) and statement.value.value in (None, False))
        for target in statement.targets
    }


def _is_optional(binding: Binding | None, symbol: str) -> bool:
    """Whether a binding is an import of a removed name, in a `try` that continues without it."""
    return (
        binding is not None
        and binding.is_import
        and f"{binding.target}.".startswith(f"{symbol}.")
        and survives(binding.guards, MISSING_IMPORT)
    )


def _is_last_resort(binding: Binding | None) -> bool:
    """Whether an import stands in a handler, for a name that the body imports from elsewhere."""
    if binding is None or binding.guards.attempt is None or binding.guards.part != "handler":
        return False
    body = set(map(id, binding.guards.attempt.node.body))
    return any(
        id(other.statement) in body
        and other.is_import
        and other.target is not None
        and other.target.partition(".")[0] not in _CHANGING
        for other in binding.scope.bindings.get(binding.name, ())
    )


def _most_specific(found: list[tuple[Rule, str]]) -> list[tuple[Rule, str]]:
    """Without the rules on a whole module, where one is about the name itself."""
    if any(symbol in rule.symbols and not about_arguments(rule) for rule, symbol in found):
        return [(rule, symbol) for rule, symbol in found if symbol in rule.symbols]
    return found


def about_arguments(rule: Rule) -> bool:
    """Whether a rule is about some calls of its symbols only."""
    return bool(rule.parameters or rule.missing or rule.match or rule.only_in_patterns)


def arguments_of(rule: Rule, symbol: str, use: Use, call: ast.Call | None) -> Arguments | None:
    """What a rule on the arguments of a call says of this one, for guards."""
    if call is None:
        return None
    given = frozenset(keyword.arg for keyword in call.keywords if keyword.arg)
    functions = {symbol, *use.candidates, *map(public_name, use.candidates)}
    return Arguments(frozenset(functions), given, frozenset(_outdated(rule)))


def _outdated(rule: Rule) -> set[str]:
    """The parameters, old and new, that a rule on arguments is about."""
    found = {*rule.parameters, *rule.missing}
    for case in rule.cases:
        found.update(case.drop, case.add, case.set, case.keywords, case.keywords.values())
        if case.template:
            keywords = (node for node in _nodes(case.template) if isinstance(node, ast.keyword))
            found.update(node.arg for node in keywords if node.arg)
    return found


@lru_cache(maxsize=1024)
def _nodes(template: str) -> tuple[ast.AST, ...]:
    """The syntax tree of a template; `$x` is the name `__x` in it."""
    try:
        return tuple(walk(ast.parse(template.replace("$", "__"), mode="eval")))
    except SyntaxError:
        return ()


_VARIABLE = pattern(r"\$(\w+)")
_CHANGING = LIBRARY_ROOTS.difference(NEIGHBORS)  # whose names may be gone as well


def new_names(rule: Rule, symbol: str) -> tuple[str, ...]:
    """The qualified names that stand for the new side of a rule."""
    variables = rule.symbols.get(symbol, {})
    found = list(rule.replaced_by)
    if variables.get("new"):
        found.append(variables["new"])
    module = rule.modules.get(symbol)
    if module:
        found.append(module)
    for case in rule.cases:
        for text in (case.rename, case.template):
            if text:
                text = _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text)
                found.extend(dotted_names(text))
                for key, values in case.map.items():
                    if f"${key}." in text:  # `$key.url`: a name that a mapped value begins
                        for value in values.values():
                            found.extend(dotted_names(text.replace(f"${key}", value)))
                if symbol.startswith(f"{TENSOR}."):
                    found.extend(_methods(text))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=1024)
def _methods(text: str) -> tuple[str, ...]:
    """The methods that a template calls on a variable: `$x.untyped_storage().data_ptr()`."""
    return tuple(
        f"{TENSOR}.{node.attr}"
        for node in _nodes(text)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id.startswith("__")
    )


def _is_unpacked(call: ast.Call | None) -> bool:
    return call is not None and any(keyword.arg is None for keyword in call.keywords)


def make_place(
    use: Use,
    source: Source,
    kinds: ValueFacts,
    spell: Callable[[str], str | None],
    prepared: ast.Call | None = None,
) -> MatchContext:
    """The matcher's view of a use. prepared: the call that `functools.partial` prepares of it."""
    around = kinds.around
    return MatchContext(
        use=use,
        source=source,
        spell=spell,
        value=around.value,
        shown=around.shown,
        qualified=around.imported,
        parameters=around.parameters,
        parents=lambda node: around.parent(node, use.statement),
        unused=lambda target: around.unused(target, use.scope),
        kinds=kinds.of,
        prepared=prepared,
        keywords=around.flow.keywords if _is_unpacked(use.call or prepared) else None,
        seen=lambda node, once: kinds.seen(node, once=once),
        recorded=bool(kinds.names.seen),
        depths=kinds.depths,
        shapes=kinds.shapes,
    )
