"""Which functions of a file change together, since one hands volatile variables to another."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.functions import functions_of
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.volatile.flow import RETURNED
from torchmigrate.codemods.volatile.function import VolatilePart
from torchmigrate.codemods.volatile.makers import argument_for, is_negated, never, parameter_of
from torchmigrate.codemods.volatile.sites import VARIABLE, Site, flag_of, settings
from torchmigrate.findings import DroppedUse, Edit, Fix, Reason, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import Code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import has_comment
from torchmigrate.rewrite.statements import Crowded, Rewriting
from torchmigrate.semantics.flow.functions import Function, Functions
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.semantics.model import Scope, Use
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability

_UNWRAPS = "TM330"


class Handing(Struct, eq=False):
    """A call of a function of the file that returns what may be volatile.

    given: the argument that says whether it is, a keyword or a value; None: the default, or nothing, does.
    """

    maker: VolatilePart
    call: ast.Call
    given: ast.expr | ast.keyword | None


class VolatileGroup(Struct, eq=False):
    """Functions that change together.

    handings: the calls among them. problem: why nothing changes.
    """

    parts: list[VolatilePart]
    handings: list[Handing] = field(default_factory=list)
    problem: tuple[Reason, ...] = ()
    fix: Fix | None = None


class VolatilePlan:
    """The rewriting of all volatile variables of a file."""

    def __init__(self, hits: Sequence[RuleMatch], file: FileContext) -> None:
        self._file = file
        self._scopes = {id(scope.node): scope for scope in file.names.scopes}
        self._scopes[id(file.names.tree)] = file.names.module
        self._groups: dict[int, VolatileGroup] = {}  # by id() of the function
        self._parts: dict[int, VolatilePart] = {}  # likewise
        self._inner: defaultdict[int, list[Scope]] = defaultdict(list)  # likewise: the parts within it
        self._calls: dict[int, VolatileGroup] = {}  # by id() of a call that hands one on
        self._parameters: dict[int, str | None] = {}  # of a part that returns some, by id()
        self._wrapped: defaultdict[int, list[Use]] = defaultdict(list)
        for use in file.names.uses:
            if use.call is not None and use.sure and use.candidates == (VARIABLE,):
                self._wrapped[id(use.statement)].append(use)
        for hit in hits:
            self._part(hit.use.scope).hits.append(hit)
        self.settings = settings(file.names, self._groups)
        for setting in self.settings:
            self._part(setting.scope).settings.append(setting)
        todo = [part for group in self._each() for part in group.parts]
        while todo:
            part = todo.pop()
            group = self._groups[id(part.scope.node)]
            try:
                part.read()
                todo += dict.fromkeys(self._follow(part))
            except Unclear as error:
                group = self._groups[id(part.scope.node)]
                group.problem = group.problem or error.reasons
        for group in self._each():
            if group.problem:
                self._keep_wrappers(group)

    def outcome(self, where: Scope | ast.Call, rule: Rule) -> Fix | tuple[Reason, ...] | None:
        """The fix of a function, or what is in its way; None: of a call that nothing is known of."""
        group = (
            self._groups[id(_function(where).node)]
            if isinstance(where, Scope)
            else self._calls.get(id(where))
        )
        if group is None:
            return None
        if not group.problem and group.fix is None:
            try:
                group.fix = self._fix(group, rule)
            except (Unclear, Crowded) as error:
                group.problem = error.reasons
                self._keep_wrappers(group)
        return group.problem or group.fix

    # ---- groups ---------------------------------------------------------------------------------------

    def _each(self) -> list[VolatileGroup]:
        return list({id(group): group for group in self._groups.values()}.values())

    def _part(self, scope: Scope) -> VolatilePart:
        scope = _function(scope)
        key = id(scope.node)
        if key not in self._parts:
            part = self._parts[key] = VolatilePart(scope, self._file, self._wrapped)
            self._groups[key] = VolatileGroup([part])
            self._join_nested(scope)
        return self._parts[key]

    def _join_nested(self, scope: Scope) -> None:
        """A function and one inside of it change together: both are on the same lines."""
        outer = scope.parent
        while outer is not None and outer.kind != "module":
            self._join(scope, outer)
            self._inner[id(outer.node)].append(scope)
            outer = outer.parent
        for other in self._inner[id(scope.node)]:
            self._join(scope, other)

    def _join(self, one: Scope, other: Scope) -> VolatileGroup:
        mine, others = self._groups[id(one.node)], self._groups.get(id(other.node))
        if others is not None and others is not mine:
            mine.parts += others.parts
            mine.handings += others.handings
            mine.problem = mine.problem or others.problem
            for part in others.parts:
                self._groups[id(part.scope.node)] = mine
            for handing in others.handings:
                self._calls[id(handing.call)] = mine
        return mine

    def _keep_wrappers(self, group: VolatileGroup) -> None:
        """Leave the other variables of a function as they are: what is volatile is migrated with them."""
        for part in group.parts:
            start, end = 0, len(self._file.source.text)
            if isinstance(part.scope.node, (ast.expr, ast.stmt)):
                start, end = self._file.source.span(part.scope.node)
            self._file.fixes.forbid_fixes_in(_UNWRAPS, start, end)

    # ---- callers --------------------------------------------------------------------------------------

    @cached_property
    def _functions(self) -> Functions:
        return functions_of(self._file)

    @cached_property
    def _local(self) -> TreeIndex:
        return TreeIndex(self._file.names)

    def _follow(self, part: VolatilePart) -> Iterator[VolatilePart]:
        """The callers that something volatile is returned to, if that is new to them.

        Raises:
            Unclear: they are not known, and need to be.
        """
        if not part.returned:
            return
        node = part.scope.node
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)), "only functions return"
        line = part.flow.leaves[RETURNED][0]
        parameter = self._parameters[id(part)] = parameter_of(part, line)
        callers, every = self._callers(node)
        if (not callers or not every) and (parameter is not None or part.returned - part.computing):
            raise Unclear(
                f"line {line}: it is returned, and some callers of `{node.name}` are not in this file",
                line=line,
            )
        for caller, statement, call in callers:
            if id(call) in self._calls:
                continue
            given, value = argument_for(call, self._function_of(node), parameter)
            scope = self._scopes[id(caller.node)]
            group = self._groups[id(node)]
            handing = Handing(part, call, given)
            volatile = parameter is None or not never(value, part)
            if not volatile:
                group.handings.append(handing)
                self._calls[id(call)] = group
                continue
            other = self._part(scope)
            group = self._join(part.scope, scope)
            group.handings.append(handing)
            self._calls[id(call)] = group
            if isinstance(self._local.function_of(call), (ast.Lambda, ast.ClassDef)):
                raise Unclear(
                    f"line {call.lineno}: it is called in a lambda, or by a class", line=call.lineno
                )
            block = self._functions.spots[id(statement)].block
            flag, names = self._flag(value, part, parameter, scope, call)
            other.handed[id(call)] = Site(statement, block, call, None, None, flag, names, value)
            yield other

    def _flag(
        self, value: ast.expr | None, part: VolatilePart, parameter: str | None, scope: Scope, call: ast.Call
    ) -> tuple[Code | None, frozenset[str]]:
        if parameter is None or value is None or isinstance(value, ast.Constant):
            return None, frozenset()
        if is_negated(part):
            value = ast.UnaryOp(ast.Not(), value)
        return flag_of(value, scope, f"line {call.lineno}")

    @cached_property
    def _by_node(self) -> dict[int, Function]:
        return {id(item.node): item for item in self._functions.every}

    def _function_of(self, node: ast.AST) -> Function:
        return self._by_node[id(node)]

    @cached_property
    def _by_called(self) -> dict[int, list[tuple[Function, ast.stmt, ast.Call]]]:
        """Who calls each function of the file, by the id() of its node."""
        found: dict[int, list[tuple[Function, ast.stmt, ast.Call]]] = {}
        for caller, statement, call, called in self._functions.calls:
            found.setdefault(id(called.node), []).append((caller, statement, call))
        return found

    @cached_property
    def _known_calls(self) -> set[int]:
        """What is called where it is known which function of the file that is, by id()."""
        return {id(call.func) for _, _, call, _ in self._functions.calls}

    def _callers(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> tuple[list[tuple[Function, ast.stmt, ast.Call]], bool]:
        """The calls of a function in the file, and whether these are all its mentions."""
        found = self._by_called.get(id(node), [])
        function = self._function_of(node)
        known = self._known_calls
        every: Iterable[ast.AST] = (
            self._local.attributes(node.name) if function.owner is not None else self._local.named(node.name)
        )
        sole = function.owner is not None or len(self._local.binders(node.name)) == 1
        plain = not [mark for mark in node.decorator_list if getattr(mark, "id", "") != "staticmethod"]
        return found, sole and plain and all(id(mention) in known for mention in every)

    # ---- the fix --------------------------------------------------------------------------------------

    def _fix(self, group: VolatileGroup, rule: Rule) -> Fix:
        """The fix of a group.

        Raises:
            Unclear: one of its functions cannot be rewritten.
            Crowded: as Rewriting says.
        """
        file = self._file
        rewriting = file.rewriting()
        needed: dict[Edit, None] = {}
        for part in group.parts:
            part.check_kept()
        for part in group.parts:
            needed.update(dict.fromkeys(part.write(rewriting)))
        dropped = self._dropped(group)
        going = frozenset(dropped)
        for maker in dropped:
            self._drop_parameter(maker, rewriting)
        for handing in group.handings:
            if handing.given is not None and handing.maker in going:
                line = handing.given.lineno
                if has_comment(rewriting.source, handing.call):
                    raise Unclear(f"line {line}: there is a comment between the arguments", line=line)
                call = CallEditor(rewriting.source, handing.call)
                call.drop(handing.given)
                rewriting.record(call.edits())
        releases: tuple[DroppedUse, ...] = tuple(
            item for part in group.parts for hit in part.hits for item in file.imports.releases(hit.use)
        )
        level, reasons = applicability(rule.cases[0], rule, file.versions)
        if dropped:
            reasons = (*reasons, *because("calls in other files must change as well"))
        title = (
            "Run the computation under `torch.no_grad()`"
            if needed or rewriting.wraps
            else "Remove `volatile`"
        )
        edits = dict.fromkeys((*rewriting.edits(), *needed))
        return file.fixes.fix(rule, title, level, reasons, edits, releases)

    def _dropped(self, group: VolatileGroup) -> list[VolatilePart]:
        """The functions whose parameter has no effect once all is rewritten."""
        found = [part for part in group.parts if self._parameters.get(id(part)) is not None]
        makers = {id(handing.call): handing.maker for handing in group.handings}
        while True:
            left = [part for part in found if self._uses_left(part, makers, frozenset(found)) == 0]
            if len(left) == len(found):
                return left
            found = left

    def _uses_left(
        self, part: VolatilePart, makers: Mapping[int, VolatilePart], dropped: Container[VolatilePart]
    ) -> int:
        """How often a function still reads its parameter; `makers` are those that calls hand on, by id()."""
        name = self._parameters[id(part)]
        node = part.scope.node
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)), "only functions return"
        reads = [item for item in walk(node) if isinstance(item, ast.Name) and item.id == name]
        going: set[int] = set()
        idle, computing = part.idle, part.computing
        for number, site in enumerate(part.sites):
            kept = number in computing - idle or (
                site.data is None and makers.get(id(site.call)) not in dropped
            )
            if not kept and site.value is not None:
                going.update(id(item) for item in walk(site.value))
        return sum(id(item) not in going for item in reads)

    def _drop_parameter(self, maker: VolatilePart, rewriting: Rewriting) -> None:
        from torchmigrate.rewrite.parameters import parameters_dropped  # with LibCST

        node = maker.scope.node
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)), "only functions return"
        arguments = node.args
        name = self._parameters[id(maker)]
        parameter = next((item for item in arguments.args if item.arg == name), None)
        if parameter is None or arguments.posonlyargs:
            raise Unclear(f"`{name}` is not a regular parameter of `{node.name}`")
        rewriting.record(parameters_dropped(rewriting.source, node, [parameter]))


def _function(scope: Scope) -> Scope:
    while scope.kind == "comprehension" and scope.parent is not None:
        scope = scope.parent
    return scope
