"""One function with volatile variables: what happens to them there, and its rewriting."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.volatile.extent import Extent, check_extent, extents, stored_names
from torchmigrate.codemods.volatile.sites import (
    Setting,
    Site,
    is_false,
    only_data,
    replacement,
    site_of_call,
    site_of_setting,
)
from torchmigrate.codemods.volatile.values import (
    BACKWARD,
    NONE,
    RETURNED,
    STORED,
    Computed,
    Labels,
    own_nodes,
)
from torchmigrate.findings import Edit
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.placing import use_at
from torchmigrate.rewrite.statements import Crowded, Rewriting
from torchmigrate.semantics.flow.functions import Function, Functions
from torchmigrate.semantics.flow.mentions import Spot
from torchmigrate.semantics.model import Scope, Use
from torchmigrate.source.trees import walk

_MOST = 6  # blocks in a function, from which on the whole function is marked to need no gradients
# Lines under one `with`: indenting more of them hides what changes, and a decorator says the same.
_LONGEST = 40
_NO_GRAD = frozenset(["torch.no_grad", "torch.autograd.no_grad", "torch.inference_mode"])


class VolatilePart:
    """What happens to volatile variables in one function, or in the module.

    hits, settings: where they are made. handed: calls of functions of the file that give one, as sites.
    gone: statements to remove. wrapped: all calls of `Variable` in the file, by their statements.
    """

    def __init__(
        self,
        scope: Scope,
        function: Function,
        functions: Functions,
        file: FileContext,
        wrapped: Mapping[ast.stmt, Sequence[Use]],
    ) -> None:
        self.scope = scope
        self.function = function
        self.file = file
        self.wrapped = wrapped
        self.hits: list[RuleMatch] = []
        self.settings: list[Setting] = []
        self.handed: dict[ast.Call, Site] = {}
        self.gone: set[ast.stmt] = set()
        self.sites: list[Site] = []
        self.values: Computed
        self._functions = functions

    def read(self) -> None:
        """Find out where the variables go.

        Raises:
            Unclear: something about them is not understood.
        """
        if self.function.node is not self.scope.node:
            raise Unclear("it is not created by a statement of a function")
        if not all(map(self.file.fixes.may_fix, self.hits)):
            raise Unclear("the called object may be something else")
        flow = self.file.flow
        self.sites = [site_of_call(hit, self.scope, self.file.source) for hit in self.hits]
        self.sites += self.handed.values()
        ends: list[Setting] = []
        for setting in self.settings:
            site = site_of_setting(setting, flow)
            if site is None:
                ends.append(setting)
            else:
                self.sites.append(site)
        self.gone = {setting.statement for setting in self.settings}
        self._check_alone()
        sources = {node: number for number, site in enumerate(self.sites) for node in site.sources}
        self.values = Computed(flow, self.function, sources)
        ended = [setting for setting in ends if self.values.labels(setting.target.value)]
        for setting in ends:
            if setting not in ended and not setting.sure:
                line = setting.statement.lineno
                raise Unclear(f"line {line} sets `volatile` of something else", line=line)
        if ended:
            later = [name for setting in ended for name in self._reads_after(setting)]
            self.values = Computed(flow, self.function, sources, frozenset(later))
        self._computed = self.values.in_statements()
        self._leaves = self.values.leaves(self.scope)
        for statement, labels in self._computed.items():
            for site in (self.sites[label] for label in labels):
                if site.call is None and statement.lineno < site.statement.lineno:
                    raise Unclear.at(statement.lineno, "it is used before it is volatile")

    def _reads_after(self, setting: Setting) -> Iterator[ast.Name]:
        """The reads of a variable after it was made one that is not volatile."""
        index, target = self.file.flow.index, setting.target.value
        for name in index.named(getattr(target, "id", "")):
            if (
                name.lineno > target.lineno
                and index.home_of(name) is index.home_of(target)
                and self.file.flow.sources(name) == self.file.flow.sources(target)
            ):
                yield name

    def _check_alone(self) -> None:
        """Nothing else in the function makes variables volatile, or asks for it."""
        known: set[ast.AST | None] = {site.call for site in self.sites}
        known |= {setting.target for setting in self.settings} | {site.value for site in self.sites}
        for statement in self.function.statements:
            for node in own_nodes(statement):
                asks = isinstance(node, ast.Call) and any(
                    item.arg == "volatile" and not is_false(item.value) for item in node.keywords
                )
                if node not in known and (asks or getattr(node, "attr", "") == "volatile"):
                    line = getattr(node, "lineno", statement.lineno)
                    raise Unclear(f"line {line} also uses `volatile` in another way", line=line)

    # ---- where the variables go ---------------------------------------------------------------------------

    @cached_property
    def idle(self) -> Labels:
        """The sources that had no effect: `backward()` of something volatile raised.

        This is true of targets, for example, if a loss takes their data. What is computed from a source alone
        recorded nothing, and such a source is not idle.
        """
        labels = self._leaves.get(BACKWARD, (0, NONE))[1]
        found = labels & self.values.joined() if labels else NONE
        return frozenset(label for label in found if self.sites[label].flag is None)

    @property
    def returned(self) -> Labels:
        """The sources of what is returned."""
        return self._leaves.get(RETURNED, (0, NONE))[1] - self.idle

    @property
    def returned_in(self) -> int:
        """The line in which something volatile is returned."""
        return self._leaves[RETURNED][0]

    @property
    def computing(self) -> Labels:
        """The sources that something is computed from here."""
        return NONE.union(*self._computed.values())

    def check_kept(self) -> None:
        """Make sure that no variable leaves the function in a way that cannot be followed.

        What is returned is left to the callers.

        Raises:
            Unclear: one does.
        """
        for what, (line, labels) in self._leaves.items():
            left = labels - self.idle
            if what.startswith(STORED):  # what is computed under `no_grad` needs none elsewhere either
                left -= self.computing
            if what == BACKWARD:  # which the flag forbids where it is volatile
                left = frozenset(label for label in left if self.sites[label].flag is None)
            if left and what != RETURNED:
                raise Unclear.at(line, f"{what}, so the extent is unclear")

    def _recorded(self) -> Iterator[tuple[Labels, list[Spot]]]:
        """What needs a `with`: the statements that compute with sources that have an effect."""
        for statement, labels in self._computed.items():
            spot, wanted = self._functions.spots[id(statement)], labels - self.idle
            always = all(self.sites[label].flag is None for label in labels)
            if wanted and not (always and self._has_no_grad(spot)):
                yield wanted, [spot]

    def _has_no_grad(self, spot: Spot) -> bool:
        """Whether no gradients are recorded there already."""
        managers: list[ast.expr] = list(getattr(self.scope.node, "decorator_list", ()))
        for outer in spot.chain()[:-1]:
            if isinstance(outer.statement, ast.With):
                managers += [item.context_expr for item in outer.statement.items]
        return any(
            self.file.around.qualified(item.func if isinstance(item, ast.Call) else item) in _NO_GRAD
            for item in managers
        )

    # ---- the rewriting ------------------------------------------------------------------------------------

    def write(self, rewriting: Rewriting) -> list[Edit]:
        """Record the changes; the edits of the imports that they need.

        Raises:
            Unclear: there is no extent that a `with` can hold.
            Crowded: as Rewriting says.
        """
        first: Unclear | Crowded | None = None
        made = [
            (frozenset([number]), [self._functions.spots[id(site.statement)]])
            for number, site in enumerate(self.sites)
            if site.call is not None
        ]
        for found in extents(list(self._recorded()), made):
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
            statements = extent.statements
            while statements[0] in self.gone or (
                extent.statements[0] in self.gone and not self._concerns(statements[0])
            ):  # nor what only stands before the first that computes
                statements = statements[1:]
            rewriting.wrap(statements, manager)
        for node, data in kept.items():
            rewriting.replace_node(node, replacement(data))
        self._drop(rewriting)
        return list(needed)

    def _concerns(self, statement: ast.stmt) -> bool:
        """Whether a statement, or one in it, makes a source or computes with one."""
        made = {site.statement for site in self.sites}
        return any(node in made or node in self._computed for node in walk(statement))

    def _manager(self, extent: Extent, rewriting: Rewriting) -> tuple[Code, Sequence[Edit]]:
        """The context manager of an extent, and the edits of the import that it needs."""
        line = extent.first.statement.lineno
        held = {node for statement in extent.statements for node in walk(statement)}
        inside = [
            site
            for number, site in enumerate(self.sites)
            if site.sources and (number in extent.labels or site.statement in held)
        ]
        flags = {site.flag_key: site.flag for site in inside}
        if len(flags) > 1:
            raise Unclear.at(line, "several flags determine `volatile`")
        flag = next(iter(flags.values()))
        check_extent(extent, self.values, self.scope, always=flag is None)
        lines = (extent.last.statement.end_lineno or 0) - line + 1
        if lines > _LONGEST:
            name = getattr(self.scope.node, "name", "")
            where = (
                f"`@torch.no_grad()` on `{name}`" if name else "a separate function with `@torch.no_grad()`"
            )
            raise Unclear.at(line, f"the fix would indent {lines} lines; use {where} instead")
        if self._changes(inside, extent):
            raise Unclear.at(line, "the flag for `volatile` changes in between")
        for statement in extent.statements:
            rewriting.first_line(statement)
        name = "torch.no_grad" if flag is None else "torch.set_grad_enabled"
        around = [spot.block for spot in extent.first.chain()]
        spelling = self.file.imports.spell(
            name, use_at(name, extent.first.statement, around, self.scope, self.file)
        )
        if isinstance(spelling, Refusal):
            raise Unclear.at(line, str(spelling.reason))
        return code("$f()" if flag is None else "$f($flag)", f=spelling.text, flag=flag), spelling.edits

    def _changes(self, inside: Sequence[Site], extent: Extent) -> bool:
        """Whether a flag has another value where something is computed than where the variable was made."""
        names = frozenset[str]().union(*(site.flag_names for site in inside))
        end = extent.statements[-1].end_lineno or 0
        first = min((site.statement.lineno for site in inside), default=end)
        between = [item for item in self.function.statements if first <= item.lineno <= end]
        return bool(names & stored_names([*extent.statements, *between]))

    def _unwrap(self, found: Sequence[Extent]) -> dict[ast.Call, ast.expr]:
        """What stays of the wrappers, by call; those that only accompanied a volatile one are removed with
        it.

        Statements that would become `x = x` go into `gone`.
        """
        kept = {site.call: site.data for site in self.sites if site.call and site.data}
        changed = {site.statement: None for site in self.sites if site.data}
        changed.update(dict.fromkeys(item for extent in found for item in extent.statements))
        for use in (use for statement in list(changed) for use in self.wrapped.get(statement, ())):
            data = only_data(use.call, self.file.source) if use.call and use.call not in kept else None
            if use.call and data is not None:
                kept[use.call] = data
                changed[use.statement] = None
        self.gone |= {item for item in changed if isinstance(item, ast.Assign) and _does_nothing(item, kept)}
        gone = {node for statement in self.gone for node in walk(statement)}
        return {call: data for call, data in kept.items() if call not in gone}

    def _drop(self, rewriting: Rewriting) -> None:
        """Remove the statements in `gone`; a block keeps a `pass`."""
        for statement in sorted(self.gone, key=lambda item: item.lineno):
            block = self._functions.spots[id(statement)].block
            body = block is getattr(self.scope.node, "body", None)
            if statement is block[0] and not body and self.gone.issuperset(block):
                rewriting.make_pass(statement)
            else:
                rewriting.remove(statement)


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
