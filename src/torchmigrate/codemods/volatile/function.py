"""One function with volatile variables: what happens to them there, and its rewriting."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.volatile.extent import Extent, check_extent, extents, stored_names
from torchmigrate.codemods.volatile.flow import BACKWARD, NONE, RETURNED, STORED, Flow, FreeNames, Labels
from torchmigrate.codemods.volatile.sites import (
    Setting,
    Site,
    only_data,
    replacement,
    site_of_call,
    site_of_setting,
)
from torchmigrate.findings import Edit
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.placing import use_at
from torchmigrate.rewrite.statements import Crowded, Rewriting
from torchmigrate.semantics.flow.mentions import Spot
from torchmigrate.semantics.model import Scope, Use
from torchmigrate.source.trees import children, walk

_MOST = 6  # blocks in a function, from which on the whole function is marked to need no gradients
# Lines under one `with`: indenting more of them hides what changes, and a decorator says the same.
_LONGEST = 40
_NO_GRAD = frozenset(["torch.no_grad", "torch.autograd.no_grad", "torch.inference_mode"])


class VolatilePart:
    """What happens to volatile variables in one function, or in the module.

    hits, settings: where they are made. handed: calls of functions of the file that give one, as sites.
    gone: statements to remove, by id(), with their blocks. wrapped: all calls of `Variable` in the file, by
    the id() of the statement that each stands in.
    """

    def __init__(self, scope: Scope, file: FileContext, wrapped: Mapping[int, Sequence[Use]]) -> None:
        self.scope = scope
        self.file = file
        self.wrapped = wrapped
        self.body: list[ast.stmt] = getattr(scope.node, "body", [])
        self.hits: list[RuleMatch] = []
        self.settings: list[Setting] = []
        self.handed: dict[int, Site] = {}
        self.gone: dict[int, list[ast.stmt]] = {}
        self.sites: list[Site] = []
        self.flow: Flow

    def read(self) -> None:
        """Find out where the variables go.

        Raises:
            Unclear: something about them is not understood.
        """
        if self.scope.kind == "class" or isinstance(self.scope.node, ast.Lambda):
            raise Unclear("it is not created by a statement of a function")
        if not all(map(self.file.fixes.may_fix, self.hits)):
            raise Unclear("the called object may be something else")
        self.sites = [site_of_call(hit, self.scope, self.file.source) for hit in self.hits]
        self.sites += self.handed.values()
        ends: dict[int, tuple[str, int | None]] = {}
        self.gone = {}
        for setting in self.settings:
            site = site_of_setting(setting)
            if site is not None:
                self.sites.append(site)
            else:
                ends[id(setting.statement)] = ast.unparse(setting.target.value), None
            self.gone[id(setting.statement)] = setting.block
        self._check_alone()
        for number, site in enumerate(self.sites):
            if site.name:
                ends[id(site.statement)] = site.name, number
        self.flow = Flow(
            self.body,
            {
                id(site.call): number
                for number, site in enumerate(self.sites)
                if site.call is not None and not site.follows
            },
            ends,
            frozenset(self.scope.globals | self.scope.nonlocals),
            self.file.once(FreeNames, FreeNames),
        )
        for setting in self.settings:
            if id(setting.statement) in ends.keys() - self.flow.ended and not setting.sure:
                raise Unclear(
                    f"line {setting.statement.lineno} sets `volatile` of something else",
                    line=setting.statement.lineno,
                )

    def _recorded(self) -> list[tuple[Spot, Labels]]:
        """What needs a `with`: the statements that compute with sources that have an effect."""
        idle = self.idle
        return [
            (spot, labels - idle)
            for spot, labels in self.flow.computed.values()
            if labels - idle
            and not (self._has_no_grad(spot) and all(self.sites[label].flag is None for label in labels))
        ]

    @property
    def idle(self) -> Labels:
        """The sources that had no effect: `backward()` of something volatile raised.

        This is true of targets, for example, if a loss takes their data. What is computed from a source alone
        recorded nothing, and such a source is not idle.
        """
        labels = self.flow.leaves.get(BACKWARD, (0, NONE))[1] & self.flow.joined
        return frozenset(label for label in labels if self.sites[label].flag is None)

    @property
    def returned(self) -> Labels:
        """The sources of what is returned."""
        return self.flow.leaves.get(RETURNED, (0, NONE))[1] - self.idle

    @property
    def computing(self) -> Labels:
        """The sources that something is computed from here."""
        return NONE.union(*(labels for _, labels in self.flow.computed.values()))

    def check_kept(self) -> None:
        """Make sure that no variable leaves the function in a way that cannot be followed.

        What is returned is left to the callers.

        Raises:
            Unclear: one does.
        """
        idle, computing = self.idle, self.computing
        for what, (line, labels) in self.flow.leaves.items():
            left = labels - idle
            if what.startswith(STORED):  # what is computed under `no_grad` needs none elsewhere either
                left -= computing
            if what == BACKWARD:  # which the flag forbids where it is volatile
                left = frozenset(label for label in left if self.sites[label].flag is None)
            if left and what != RETURNED:
                raise Unclear(f"line {line}: {what}, so the extent is unclear", line=line)

    def write(self, rewriting: Rewriting) -> list[Edit]:
        """Record the changes; the edits of the imports that they need.

        Raises:
            Unclear: there is no extent that a `with` can hold.
            Crowded: as Rewriting says.
        """
        first: Unclear | Crowded | None = None
        for found in extents(self.flow, self._recorded()):
            try:
                if len(found) > _MOST:
                    raise Unclear("the results are used in too many places")
                managers = [self._manager(extent, rewriting) for extent in found]
                break
            except (Unclear, Crowded) as error:
                first = first or error
        else:
            assert first is not None, "there is always one choice at least"
            raise first
        kept = self._unwrap(found)
        needed: dict[Edit, None] = {}
        for extent, (manager, edits) in zip(found, managers, strict=True):
            needed.update(dict.fromkeys(edits))
            self._wrap(extent, manager, rewriting)
        for node, data in kept.items():
            rewriting.replace_node(node, replacement(data))
        self._drop(rewriting)
        return list(needed)

    # ---- what goes ------------------------------------------------------------------------------------

    def _unwrap(self, found: Sequence[Extent]) -> dict[ast.Call, ast.expr]:
        """What stays of the wrappers, by call; those that only accompanied a volatile one are removed with
        it.

        Statements that would become `x = x` go into `gone`.
        """
        wrappers = [site for site in self.sites if site.call is not None and site.data is not None]
        kept: dict[ast.Call, ast.expr] = {}
        statements: dict[int, tuple[ast.stmt, list[ast.stmt]]] = {}
        for site in wrappers:
            assert site.call is not None and site.data is not None, "chosen so"
            kept[site.call] = site.data
            statements[id(site.statement)] = site.statement, site.block
        keys = {*statements, *(id(item) for extent in found for item in extent.statements)}
        uses = [use for key in keys for use in self.wrapped.get(key, ())]
        for use in sorted(uses, key=lambda use: use.start):
            call = use.call
            if call is None or call in kept:
                continue
            data = only_data(call, self.file.source)
            if data is not None:
                kept[call] = data
                statements[id(use.statement)] = (use.statement, use.block)
        for statement, block in statements.values():
            if isinstance(statement, ast.Assign) and _does_nothing(statement, kept):
                self.gone[id(statement)] = block
        gone = {id(node) for going, _ in self._going() for item in going for node in walk(item)}
        return {call: data for call, data in kept.items() if id(call) not in gone}

    def _going(self) -> Iterator[tuple[list[ast.stmt], list[ast.stmt]]]:
        """The statements that go, those of one block together, with the block."""
        for block in {id(block): block for block in self.gone.values()}.values():
            yield [statement for statement in block if id(statement) in self.gone], block

    def _drop(self, rewriting: Rewriting) -> None:
        """Remove the statements in `gone`; a block keeps a `pass`."""
        for going, block in self._going():
            for statement in going:
                if len(going) == len(block) and statement is going[0] and block is not self.body:
                    rewriting.make_pass(statement)
                else:
                    rewriting.remove(statement)

    def _check_alone(self) -> None:
        """Nothing else in the function makes variables volatile, or asks for it."""
        known = {id(site.call) for site in self.sites}
        set_here = {id(setting.target) for setting in self.settings}
        set_here |= {id(site.value) for site in self.sites if site.follows}
        for statement in self.body:
            for node in _own_nodes(statement):
                if isinstance(node, ast.Attribute):
                    other = node.attr == "volatile" and id(node) not in set_here
                elif isinstance(node, ast.Call):
                    other = id(node) not in known and any(
                        item.arg == "volatile" and not is_false(item.value) for item in node.keywords
                    )
                else:
                    continue
                if other:
                    raise Unclear(
                        f"line {node.lineno} also uses `volatile` in another way",
                        line=node.lineno,
                    )

    # ---- what goes under a `with` ---------------------------------------------------------------------

    def _manager(self, extent: Extent, rewriting: Rewriting) -> tuple[Code, Sequence[Edit]]:
        """The context manager of an extent, and the edits of the import that it needs."""
        mine = [self.sites[number] for number in sorted(extent.labels)]
        inside = [
            site for site in self.sites if not site.follows and (site in mine or self._is_in(site, extent))
        ]
        flags = {site.flag_key: site.flag for site in inside}
        line = f"line {extent.first.statement.lineno}"
        if len(flags) > 1:
            raise Unclear(f"{line}: several flags determine `volatile`")
        flag = next(iter(flags.values()))
        check_extent(extent, self.flow, self.body, always=flag is None)
        lines = (extent.last.statement.end_lineno or 0) - extent.first.statement.lineno + 1
        if lines > _LONGEST:
            name = getattr(self.scope.node, "name", "")
            where = (
                f"`@torch.no_grad()` on `{name}`" if name else "a separate function with `@torch.no_grad()`"
            )
            raise Unclear(f"{line}: the fix would indent {lines} lines; use {where} instead")
        if self._changes(inside, extent):
            raise Unclear(f"{line}: the flag for `volatile` changes in between")
        for statement in extent.statements:
            rewriting.first_line(statement)
        name = "torch.no_grad" if flag is None else "torch.set_grad_enabled"
        around = [spot.block for spot in extent.first.chain()]
        place = use_at(name, extent.first.statement, around, self.scope, self.file)
        spelling = self.file.imports.spell(name, place)
        if isinstance(spelling, Refusal):
            raise Unclear(f"{line}: {spelling.reason}")
        new = code("$f()" if flag is None else "$f($flag)", f=spelling.text, flag=flag)
        return new, spelling.edits

    def _changes(self, inside: Sequence[Site], extent: Extent) -> bool:
        """Whether a flag has another value where something is computed than where the variable was made."""
        names = frozenset[str]().union(*(site.flag_names for site in inside))
        if names & stored_names(extent.statements):
            return True
        end = extent.statements[-1].end_lineno or 0
        first = min((site.statement.lineno for site in inside), default=end)
        return any(
            isinstance(node, ast.Name)
            and node.id in names
            and not isinstance(node.ctx, ast.Load)
            and first <= node.lineno <= end
            for statement in self.body
            for node in walk(statement)
        )

    def _wrap(self, extent: Extent, manager: Code, rewriting: Rewriting) -> None:
        statements = extent.statements
        if id(statements[0]) in self.gone:  # nor what only stands before the first that computes
            while id(statements[0]) in self.gone or not self.flow.concerns(statements[0]):
                statements = statements[1:]
        rewriting.wrap(statements, manager)

    def _is_in(self, site: Site, extent: Extent) -> bool:
        return any(site.statement is node for statement in extent.statements for node in walk(statement))

    def _has_no_grad(self, spot: Spot) -> bool:
        """Whether no gradients are recorded there already."""
        managers: list[ast.expr] = list(getattr(self.scope.node, "decorator_list", ()))
        for outer in spot.chain():
            if isinstance(outer.statement, ast.With) and outer.statement is not spot.statement:
                managers += [item.context_expr for item in outer.statement.items]
        return any(
            self.file.around.qualified(item.func if isinstance(item, ast.Call) else item) in _NO_GRAD
            for item in managers
        )


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, without functions that are defined in it: they are parts of their own."""
    nodes: deque[ast.AST] = deque([statement])
    while nodes:
        node = nodes.popleft()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
            nodes += children(node)


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _does_nothing(statement: ast.Assign, kept: Mapping[ast.Call, ast.expr]) -> bool:
    """Whether `x = x`, or `x, y = x, y`, would stay of an assignment without its wrappers."""
    if len(statement.targets) != 1:
        return False
    target, value = statement.targets[0], statement.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip(target.elts, value.elts, strict=True))
    return all(
        isinstance(one, ast.Name)
        and getattr(kept.get(other) if isinstance(other, ast.Call) else other, "id", None) == one.id
        for one, other in pairs
    )
