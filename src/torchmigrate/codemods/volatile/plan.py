"""Which functions of a file change together, since one hands volatile variables to another."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence

from msgspec import Struct, field

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.base.functions import functions_of
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.volatile.extent import stored_names
from torchmigrate.codemods.volatile.function import VolatilePart
from torchmigrate.codemods.volatile.sites import VARIABLE, Site, flag_of, settings
from torchmigrate.findings import DroppedUse, Edit, Fix, Reason, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import has_comment
from torchmigrate.rewrite.statements import Crowded, Rewriting
from torchmigrate.semantics.flow.calls import argument_of, default_of, parameters
from torchmigrate.semantics.flow.functions import Function
from torchmigrate.semantics.model import Scope, Use
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability

_UNWRAPS = "TM330"
_Def = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Handing(Struct, eq=False):
    """A call of a function of the file that returns what may be volatile.

    given: the argument that says whether it is; None: the default, or nothing, does.
    """

    maker: VolatilePart
    call: ast.Call
    given: ast.expr | None


class VolatileGroup(Struct, eq=False):
    """Functions that change together.

    handings: the calls among them. problem: why nothing changes.
    """

    parts: list[VolatilePart] = field(default_factory=list)
    handings: list[Handing] = field(default_factory=list)
    problem: tuple[Reason, ...] = ()
    fix: Fix | None = None


class VolatilePlan:
    """The rewriting of all volatile variables of a file."""

    def __init__(self, hits: Sequence[RuleMatch], file: FileContext) -> None:
        self._file = file
        self._flow = file.flow
        self._functions = functions_of(file)
        self._by_node: dict[ast.AST, Function] = {item.node: item for item in self._functions.every}
        self._groups: dict[ast.AST, VolatileGroup] = {}  # by the function
        self._parts: dict[ast.AST, VolatilePart] = {}  # likewise
        self._inside: defaultdict[ast.AST, list[ast.AST]] = defaultdict(list)  # likewise: parts within it
        self._calls: dict[ast.Call, VolatileGroup] = {}  # by a call that hands one on
        self._parameters: dict[VolatilePart, str | None] = {}  # of a part that returns some
        self._wrapped: defaultdict[ast.stmt, list[Use]] = defaultdict(list)
        for use in file.names.uses:
            if use.call is not None and use.sure and use.candidates == (VARIABLE,):
                self._wrapped[use.statement].append(use)
        for hit in hits:
            self._part(hit.use.scope).hits.append(hit)
        self.settings = settings(
            self._flow, [None if isinstance(key, ast.Module) else key for key in self._groups]
        )
        for setting in self.settings:
            self._part(setting.scope).settings.append(setting)
        todo = list(self._parts.values())
        while todo:
            part = todo.pop()
            try:
                part.read()
                todo += dict.fromkeys(self._follow(part))
            except Unclear as error:
                group = self._groups[part.scope.node]
                group.problem = group.problem or error.reasons
        for group in dict.fromkeys(self._groups.values()):
            if group.problem:
                self._keep_wrappers(group)

    def outcome(self, where: Scope | ast.Call, rule: Rule) -> Fix | tuple[Reason, ...] | None:
        """The fix of a function, or what is in its way; None: of a call that nothing is known of."""
        group = self._groups[_function(where).node] if isinstance(where, Scope) else self._calls.get(where)
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

    def _part(self, scope: Scope) -> VolatilePart:
        scope = _function(scope)
        node = scope.node
        if node not in self._parts:
            function = self._by_node.get(node, self._functions.module)
            part = self._parts[node] = VolatilePart(
                scope, function, self._functions, self._file, self._wrapped
            )
            self._groups[node] = VolatileGroup([part])
            # A function and one inside of it change together: both are on the same lines.
            outer = scope.parent
            while outer is not None and outer.kind != "module":
                self._inside[outer.node].append(node)
                if outer.node in self._parts:
                    self._join(node, outer.node)
                outer = outer.parent
            for other in self._inside[node]:
                self._join(node, other)
        return self._parts[node]

    def _join(self, one: ast.AST, other: ast.AST) -> VolatileGroup:
        mine, others = self._groups[one], self._groups[other]
        if others is not mine:
            mine.parts += others.parts
            mine.handings += others.handings
            mine.problem = mine.problem or others.problem
            self._groups.update((part.scope.node, mine) for part in others.parts)
            self._calls.update((handing.call, mine) for handing in others.handings)
        return mine

    def _keep_wrappers(self, group: VolatileGroup) -> None:
        """Leave the other variables of a function as they are: what is volatile is migrated with them."""
        for part in group.parts:
            start, end = 0, len(self._file.source.text)
            if isinstance(part.scope.node, (ast.expr, ast.stmt)):
                start, end = self._file.source.span(part.scope.node)
            self._file.fixes.forbid_fixes_in(_UNWRAPS, start, end)

    # ---- callers --------------------------------------------------------------------------------------

    def _follow(self, part: VolatilePart) -> Iterator[VolatilePart]:
        """The callers that something volatile is returned to, if that is new to them.

        Raises:
            Unclear: they are not known, and need to be.
        """
        if not part.returned:
            return
        node = part.scope.node
        assert isinstance(node, _Def), "only functions return"
        parameter, negated = _parameter_of(part, node)
        self._parameters[part] = parameter
        calls, every = self._calls_of(node)
        if (not calls or not every) and (parameter is not None or part.returned - part.computing):
            raise Unclear.at(
                part.returned_in, f"it is returned, and some callers of `{node.name}` are not in this file"
            )
        for call, shift in calls:
            if call in self._calls:
                continue
            given, value = _argument(call, node, shift, parameter)
            handing = Handing(part, call, given)
            if parameter is not None and isinstance(value, ast.Constant) and bool(value.value) is negated:
                self._groups[node].handings.append(handing)  # never volatile
                self._calls[call] = self._groups[node]
                continue
            other = self._part(self._flow.index.scope_of(call))
            group = self._calls[call] = self._join(node, other.scope.node)
            group.handings.append(handing)
            statement = self._flow.index.statement_of(call)
            if statement is None or other.function.node is not other.scope.node:
                raise Unclear.at(call.lineno, "it is called in a lambda, or by a class")
            flag, names = None, frozenset[str]()
            if value is not None:
                value = ast.UnaryOp(ast.Not(), value) if negated else value
                flag, names = flag_of(value, other.scope, call.lineno)
            other.handed[call] = Site(statement, (call,), call, None, flag, names, value)
            yield other

    def _calls_of(self, node: _Function) -> tuple[list[tuple[ast.Call, int]], bool]:
        """The calls of a function in the file, and whether these are all its mentions."""
        index, parents = self._flow.index, self._flow.names.parents
        found = [item for item in self._flow.calls_of(node)[0] if item[0] in parents]
        method = isinstance(parents.get(node), ast.ClassDef)
        mentions: Sequence[ast.expr] = index.attributes(node.name) if method else index.named(node.name)
        known = [call.func for call, _ in found]
        every = all(mention in known for mention in mentions)
        plain = all(getattr(mark, "id", "") == "staticmethod" for mark in node.decorator_list)
        return found, every and plain and (method or len(index.binders(node.name)) == 1)

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
        for maker in dropped:
            self._drop_parameter(maker, rewriting)
        for handing in group.handings:
            if handing.given is not None and handing.maker in dropped:
                if has_comment(rewriting.source, handing.call):
                    raise Unclear.at(handing.given.lineno, "there is a comment between the arguments")
                call = CallEditor(rewriting.source, handing.call)
                keyword = self._flow.names.parents.get(handing.given)
                call.drop(keyword if isinstance(keyword, ast.keyword) else handing.given)
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
        found = [part for part in group.parts if self._parameters.get(part) is not None]
        makers = {handing.call: handing.maker for handing in group.handings}
        while True:
            left = [part for part in found if not self._reads_parameter(part, makers, found)]
            if len(left) == len(found):
                return left
            found = left

    def _reads_parameter(
        self, part: VolatilePart, makers: Mapping[ast.Call, VolatilePart], dropped: Container[VolatilePart]
    ) -> bool:
        """Whether a function still reads its parameter; `makers` are those that calls hand on."""
        going: set[ast.AST] = set()
        for number, site in enumerate(part.sites):
            gone = site.data is not None or (site.call is not None and makers.get(site.call) in dropped)
            if gone and number not in part.computing - part.idle and site.value is not None:
                going.update(walk(site.value))
        name = self._parameters[part]
        return any(
            isinstance(item, ast.Name) and item.id == name and item not in going
            for item in walk(part.scope.node)
        )

    def _drop_parameter(self, maker: VolatilePart, rewriting: Rewriting) -> None:
        from torchmigrate.rewrite.parameters import parameters_dropped  # with LibCST

        node = maker.scope.node
        assert isinstance(node, _Def), "only functions return"
        name = self._parameters[maker]
        parameter = next((item for item in node.args.args if item.arg == name), None)
        if parameter is None or node.args.posonlyargs:
            raise Unclear(f"`{name}` is not a regular parameter of `{node.name}`")
        rewriting.record(parameters_dropped(rewriting.source, node, [parameter]))


def _parameter_of(part: VolatilePart, node: _Function) -> tuple[str | None, bool]:
    """The parameter that says whether what a function returns is volatile, and whether it is negated; None:
    it always is.

    Raises:
        Unclear: something else does.
    """
    sites = [part.sites[number] for number in sorted(part.returned)]
    if all(site.flag is None for site in sites):
        return None, False
    value = sites[0].value
    negated = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    name = getattr(value.operand if isinstance(value, ast.UnaryOp) and negated else value, "id", None)
    if (
        len({site.flag_key for site in sites}) != 1
        or name not in parameters(node)
        or name in stored_names(node.body)
    ):
        raise Unclear.at(
            part.returned_in,
            f"it is returned, and the callers of `{node.name}` do not know whether it is volatile",
        )
    return name, negated


def _argument(
    call: ast.Call, node: _Function, shift: int, parameter: str | None
) -> tuple[ast.expr | None, ast.expr | None]:
    """What is given for a parameter, and its value or the value of the default.

    Raises:
        Unclear: it is not known.
    """
    if parameter is None:
        return None, None
    given = argument_of(call, parameter, parameters(node)[parameter] + shift)
    value = given or default_of(node, parameter)
    starred = any(isinstance(item, ast.Starred) for item in call.args)
    if value is None or starred or any(item.arg is None for item in call.keywords):
        raise Unclear.at(call.lineno, "cannot analyze the arguments of the call")
    return given, value


def _function(scope: Scope) -> Scope:
    while scope.kind == "comprehension" and scope.parent is not None:
        scope = scope.parent
    return scope
