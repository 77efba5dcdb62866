"""TM331 and TM045: volatile variables, and `with torch.no_grad():` around what is computed from them.

All places of one function are rewritten as one fix, or none: the wrapper goes, and the statements from the
one that made the variable to the last that computes with it, or with what was computed, go under a `with`.
What leaves the function is not followed.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods._findings import finding_at
from torchmigrate.codemods._mentions import parameters
from torchmigrate.codemods._no_grad_extent import Extent, check_extent, extents, stored_names
from torchmigrate.codemods._no_grad_flow import Flow
from torchmigrate.codemods._no_grad_sites import (
    Setting,
    Site,
    Unclear,
    only_data,
    replacement,
    settings,
    site_of_call,
    site_of_setting,
)
from torchmigrate.codemods._placing import use_at
from torchmigrate.codemods._rewriting import Crowded, Rewriting, indent_step
from torchmigrate.fixes import FixPlanner
from torchmigrate.hits import Hit
from torchmigrate.imports import Refusal
from torchmigrate.model import Edit, Finding, Fix, Release
from torchmigrate.names.model import Role, Scope
from torchmigrate.places import Surroundings
from torchmigrate.versions.range import applicability

SCREEN = re.compile(r"volatile\s*=")
VARIABLE = "torch.autograd.Variable"
_UNWRAPS = "TM330"
_WRAPPER = re.compile(r"var(?:iable)?s?\Z|\Avar|prepare_batch\Z", re.IGNORECASE)
_NO_GRAD = frozenset(["torch.no_grad", "torch.autograd.no_grad", "torch.inference_mode"])


def find(rule: Rule, hits: Sequence[Hit], planner: FixPlanner) -> Iterator[Finding]:
    """A finding for every place; those of one function share the fix, or what is in its way."""
    if not SCREEN.search(planner.source.text):
        yield from (planner.finding(hit, None) for hit in hits)
    elif VARIABLE in rule.symbols:
        yield from _found_calls(rule, hits, planner)
        yield from _wrapped(rule, planner)
    else:
        yield from (planner.finding(hit, None) for hit in hits)  # reads
        yield from _found_settings(rule, planner)


def _found_calls(rule: Rule, hits: Sequence[Hit], planner: FixPlanner) -> Iterator[Finding]:
    """`Variable(x, volatile=...)`."""
    groups: dict[int, tuple[Scope, list[Hit]]] = {}
    for hit in hits:
        scope = hit.use.scope
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        groups.setdefault(id(scope.node), (scope, []))[1].append(hit)
    for scope, found in groups.values():
        work = _Function(rule, scope, planner)
        try:
            if not all(map(planner.may_fix, found)):
                raise Unclear("what is called may be something else")
            sites = [site_of_call(hit, scope, work.rewriting) for hit in found]
            releases = tuple(item for hit in found for item in planner.imports.releases(hit.use))
            fix: Fix | str = work.fix(sites, releases)
        except (Unclear, Crowded) as error:
            fix = str(error)
            work.keep_wrappers()
        yield from (_told(planner.finding(hit, None), fix) for hit in found)


def _found_settings(rule: Rule, planner: FixPlanner) -> Iterator[Finding]:
    """`x.volatile = ...`."""
    groups: dict[int, list[Setting]] = {}
    for setting in settings(planner.names):
        groups.setdefault(id(setting.scope.node), []).append(setting)
    for found in groups.values():
        work = _Function(rule, found[0].scope, planner)
        try:
            read = [site_of_setting(setting, work.rewriting) for setting in found]
            idle = [setting for setting, site in zip(found, read, strict=True) if site is None]
            work.gone = {id(setting.statement): setting.block for setting in idle}
            fix: Fix | str = work.fix([site for site in read if site is not None], ())
        except (Unclear, Crowded) as error:
            fix = str(error)
            work.keep_wrappers()
        for setting in found:
            span = planner.source.span(setting.target)
            yield _told(finding_at(rule, planner, span, symbol="torch.Tensor.volatile", fix=None), fix)


def _told(finding: Finding, fix: Fix | str) -> Finding:
    """A finding with its fix, or with what is in the way of one."""
    if isinstance(fix, Fix):
        return finding._replace(fix=fix)
    return finding._replace(help=f"{fix}; {finding.help}")


class _Function:
    """What happens in one function or module.

    gone: statements that go, by id(), with their blocks.
    """

    def __init__(self, rule: Rule, scope: Scope, planner: FixPlanner) -> None:
        self.rule = rule
        self.scope = scope
        self.planner = planner
        self.body: list[ast.stmt] = getattr(scope.node, "body", [])
        self.rewriting = Rewriting(planner.source, indent_step(planner.names.tree, planner.source))
        self.around = Surroundings(planner.names)
        self.gone: dict[int, list[ast.stmt]] = {}

    def keep_wrappers(self) -> None:
        """Leave the other variables of the function as they are: what is volatile is migrated with them."""
        start, end = 0, len(self.planner.source.text)
        if isinstance(self.scope.node, ast.stmt | ast.expr):
            start, end = self.planner.source.span(self.scope.node)
        self.planner.withhold(_UNWRAPS, start, end)

    def fix(self, sites: Sequence[Site], releases: tuple[Release, ...]) -> Fix:
        """The fix of all sites.

        Raises:
            Unclear: one of them cannot be rewritten.
            Crowded: as Rewriting says.
        """
        if self.scope.kind == "class" or isinstance(self.scope.node, ast.Lambda):
            raise Unclear("it is not made by a statement of a function")
        self._check_alone(sites)
        flow = Flow(
            self.body,
            {id(site.call): number for number, site in enumerate(sites) if site.call is not None},
            {id(site.statement): (site.name, number) for number, site in enumerate(sites) if site.name},
            frozenset(self.scope.globals | self.scope.nonlocals),
        )
        always = any(site.flag is None for site in sites)
        for what, line in flow.leaves.items():
            if always or "backward" not in what:
                raise Unclear(f"line {line}: {what}, so that the extent is not clear")
        found = extents(flow)
        for site in sites:
            if site.call is None:
                self.gone[id(site.statement)] = site.block
        kept = self._unwrap(sites, found)
        needed: dict[Edit, None] = {}
        for extent in found:
            needed.update(dict.fromkeys(self._wrap(extent, sites, flow)))
        for node, code in kept.items():
            self.rewriting.replace_node(node, code)
        self._drop()
        level, reason = applicability(self.rule.cases[0], self.rule, self.planner.versions)
        title = "Put what is computed under `torch.no_grad()`" if found else "Drop `volatile`"
        edits = dict.fromkeys((*self.rewriting.edits(), *needed))
        return self.planner.fix(self.rule, title, level, reason, edits, releases)

    def _unwrap(self, sites: Sequence[Site], found: Sequence[Extent]) -> dict[ast.Call, str]:
        """What stays of the wrappers, by call; those that only stood beside a volatile one go with it.

        Statements of which `x = x` would stay go into `gone`.
        """
        kept = {
            site.call: replacement(site.data, self.rewriting)
            for site in sites
            if site.call is not None and site.data is not None
        }
        statements: dict[int, tuple[ast.stmt, list[ast.stmt]]] = {
            id(site.statement): (site.statement, site.block) for site in sites if site.call is not None
        }
        for use in self.planner.names.uses:
            call = use.call
            beside = id(use.statement) in statements or any(
                use.statement in extent.block[extent.first.index : extent.last.index + 1] for extent in found
            )
            if call is None or call in kept or not beside or use.candidates != (VARIABLE,) or not use.sure:
                continue
            data = only_data(call, self.rewriting)
            if data is not None:
                kept[call] = replacement(data, self.rewriting)
                statements[id(use.statement)] = (use.statement, use.block)
        for statement, block in statements.values():
            if isinstance(statement, ast.Assign) and _does_nothing(statement, kept):
                self.gone[id(statement)] = block
        return {call: code for call, code in kept.items() if not self._is_gone(call)}

    def _is_gone(self, call: ast.Call) -> bool:
        return any(
            any(node is call for node in ast.walk(statement))
            for block in self.gone.values()
            for statement in block
            if id(statement) in self.gone
        )

    def _drop(self) -> None:
        """Take away the statements that are gone; a block keeps a `pass`."""
        blocks = {id(block): block for block in self.gone.values()}
        for block in blocks.values():
            going = [statement for statement in block if id(statement) in self.gone]
            for statement in going:
                if len(going) == len(block) and statement is going[0] and block is not self.body:
                    self.rewriting.make_pass(statement)
                else:
                    self.rewriting.remove(statement)

    def _check_alone(self, sites: Sequence[Site]) -> None:
        """Nothing else in the function makes variables volatile, or asks for it."""
        known = {id(site.call) for site in sites}
        for statement in self.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Attribute):
                    other = node.attr == "volatile" and not self._sets(node, sites)
                elif isinstance(node, ast.Call):
                    other = id(node) not in known and any(
                        item.arg == "volatile" and not _is_false(item.value) for item in node.keywords
                    )
                else:
                    continue
                if other:
                    raise Unclear(f"line {node.lineno} has to do with `volatile` as well, in another way")

    def _sets(self, node: ast.Attribute, sites: Sequence[Site]) -> bool:
        """Whether an attribute is that of an assignment that goes."""
        statements = [site.statement for site in sites]
        return any(
            isinstance(statement, ast.Assign) and node in statement.targets
            for statement in (
                *statements,
                *(item for block in self.gone.values() for item in block if id(item) in self.gone),
            )
        )

    def _wrap(self, extent: Extent, sites: Sequence[Site], flow: Flow) -> tuple[Edit, ...]:
        """Put an extent under its `with`; the edits of the import that this needs."""
        mine = [sites[number] for number in sorted(extent.labels)]
        inside = [site for site in sites if site in mine or self._is_in(site, extent)]
        flags = {site.flag for site in inside}
        line = f"line {extent.first.statement.lineno}"
        if len(flags) > 1:
            raise Unclear(f"{line}: several flags say what is volatile")
        flag = flags.pop()
        check_extent(extent, flow, self.body, always=flag is None)
        if frozenset().union(*(site.flag_names for site in inside)) & stored_names(extent.statements):
            raise Unclear(f"{line}: what says whether it is volatile changes meanwhile")
        if flag is None and self._has_no_grad(extent):
            return ()
        name = "torch.no_grad" if flag is None else "torch.set_grad_enabled"
        around = [spot.block for spot in extent.first.chain()]
        place = use_at(name, extent.first.statement, around, self.scope, self.planner)
        spelling = self.planner.imports.spell(name, place)
        if isinstance(spelling, Refusal):
            raise Unclear(f"{line}: {spelling.reason}")
        statements = extent.statements
        if id(statements[0]) in self.gone:  # nor what only stands before the first that computes
            while id(statements[0]) in self.gone or not flow.concerns(statements[0]):
                statements = statements[1:]
        self.rewriting.wrap(statements, f"with {spelling.text}({flag or ''}):")
        return spelling.edits

    def _is_in(self, site: Site, extent: Extent) -> bool:
        return any(site.statement is node for statement in extent.statements for node in ast.walk(statement))

    def _has_no_grad(self, extent: Extent) -> bool:
        """Whether no gradients are recorded there already."""
        managers: list[ast.expr] = list(getattr(self.scope.node, "decorator_list", ()))
        for spot in extent.first.chain():
            if isinstance(spot.statement, ast.With) and spot.block is not extent.block:
                managers += [item.context_expr for item in spot.statement.items]
        return any(
            self.around.qualified(item.func if isinstance(item, ast.Call) else item) in _NO_GRAD
            for item in managers
        )


def _wrapped(rule: Rule, planner: FixPlanner) -> Iterator[Finding]:
    """Calls that ask a function of the file, or one called `to_var`, to make volatile variables."""
    if not SCREEN.search(planner.source.text):
        return
    imports = any((item.target or "").partition(".")[0] == "torch" for item in planner.names.bindings)
    own: defaultdict[str, bool] = defaultdict(bool)
    calls: list[ast.Call] = []
    todo: list[ast.AST] = [planner.names.tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef):
            own[node.name] |= "volatile" in parameters(node.args) and (imports or _passes_on(node))
        elif isinstance(node, ast.Call):
            calls.append(node)
        elif isinstance(node, ast.JoinedStr):
            continue  # where things are in there is known since Python 3.12 only
        todo.extend(ast.iter_child_nodes(node))
    known = {id(use.call) for use in planner.names.uses if use.role is Role.CALL}
    for call in calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if id(call) in known or not (own[name] if name in own else imports and _WRAPPER.search(name)):
            continue
        for item in call.keywords:
            if item.arg == "volatile" and not (isinstance(item.value, ast.Name) or _is_false(item.value)):
                start, end = planner.source.span(item.value)
                begin = planner.source.text.rindex("volatile", 0, start)
                finding = finding_at(rule, planner, (begin, end), symbol=VARIABLE, fix=None)
                advice = f"`{name}` makes volatile variables: drop its parameter, and {rule.advice}"
                yield finding._replace(help=advice)


def _passes_on(function: ast.FunctionDef) -> bool:
    """Whether a function calls another one with `volatile=volatile`."""
    return any(
        isinstance(node, ast.keyword)
        and node.arg == "volatile"
        and getattr(node.value, "id", "") == "volatile"
        for node in ast.walk(function)
    )


def _does_nothing(statement: ast.Assign, kept: Mapping[ast.Call, str]) -> bool:
    """Whether `x = x`, or `x, y = x, y`, would stay of an assignment without its wrappers."""
    if len(statement.targets) != 1:
        return False
    target, value = statement.targets[0], statement.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip(target.elts, value.elts, strict=True))
    return all(
        isinstance(one, ast.Name)
        and (kept.get(other) if isinstance(other, ast.Call) else getattr(other, "id", None)) == one.id
        for one, other in pairs
    )


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value
