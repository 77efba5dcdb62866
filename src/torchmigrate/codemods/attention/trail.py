"""The statements between the scores of hand-written attention and its product with the values.

They are removed if no other code reads what they assign, and if what the new call computes is still the same
there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from torchmigrate.codemods.attention.sites import Site
from torchmigrate.codemods.base.operations import names_in
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.source.trees import walk

_RETURNED = (
    "`{}` is returned as well, but the new function does not return it: keep this code for callers that "
    "need the weights, and call the new function for all others"
)


class RemovedStatements:
    """The statements of one site that compute nothing but scores and weights.

    gone: those of the site's own block, one after the other; inner: others, each with its block.
    reads: the names in them that are read on the way; names: what they assign.
    captured: what the new call computes, each with the statement of the block that computed it before.
    """

    def __init__(self, site: Site, names: TreeIndex) -> None:
        self.site = site
        self._names = names
        self.gone: list[ast.stmt] = []
        self.inner: list[tuple[ast.stmt, list[ast.stmt]]] = []
        self.reads: list[ast.expr] = []
        self.names: set[str] = set()
        self.captured: list[tuple[ast.expr, int]] = []
        self.index = next(number for number, item in enumerate(site.block) if item is site.statement)

    def definition(self, node: ast.Name, before: int) -> tuple[ast.expr, int]:
        """What a name was given in the same block, and where.

        Raises:
            Unclear: it was assigned in another way.
        """
        for where in range(before - 1, -1, -1):
            statement = self.site.block[where]
            if not binds(statement, node.id):
                continue
            if is_plain(statement):
                self.note(node, statement)
                return statement.value, where
            if isinstance(statement, ast.If):
                if self._is_returned(node):
                    raise Unclear(_RETURNED.format(node.id))
                raise Unclear(
                    f"`{node.id}` changes in a branch: use an `attn_mask` for added values, and "
                    "`dropout_p` for dropout"
                )
            break
        raise Unclear(f"`{node.id}` is not assigned in between")

    def note(self, node: ast.Name, statement: ast.stmt) -> None:
        """A statement that goes, and the name of what it assigns where that is read."""
        self.reads.append(node)
        self.names.add(node.id)
        self.gone.append(statement)

    def allow(self, node: ast.AST) -> None:
        """Let an expression that goes read what goes too: `weights.type_as(scores)`."""
        self.reads += [inner for inner in walk(node) if isinstance(inner, ast.Name)]

    def capture(self, where: int, *expressions: ast.expr | None) -> None:
        """Remember what the new call will compute, and the statement that computes it now."""
        self.captured += [(item, where) for item in expressions if item is not None]

    def take_constant(self, name: ast.Name, block: list[ast.stmt]) -> ast.expr | None:
        """The value of a variable that is assigned once; the assignment goes, if it is read here alone."""
        nodes = [
            node for node in self._names.named(name.id) if self._names.home_of(node) is self.site.function
        ]
        stores = [node for node in nodes if not isinstance(node.ctx, ast.Load)]
        statement = self._names.statement_of(stores[0]) if len(stores) == 1 else None
        home = block if statement in block else self.site.block
        if statement not in home or not is_plain(statement):
            return None
        if len(nodes) == 2:
            self.inner.append((statement, home))
        return statement.value

    # ---- checks ----------------------------------------------------------------------------------------

    def check_reads(self) -> None:
        """Check that no other code reads what the removed statements assign.

        Raises:
            Unclear: some code does.
        """
        ours = [*self.gone, *(statement for statement, _ in self.inner), self.site.statement]
        allowed = {id(name) for name in self.reads}
        inside: set[int] = set()
        for item in ours:
            for node in walk(item):
                inside.add(id(node))
                if isinstance(node, ast.Attribute) and node.attr == "dtype":
                    allowed.add(id(node.value))  # `torch.finfo(scores.dtype).min`
        begin = min(item.lineno for item in ours)
        returned = {id(node) for item in self._returns() for node in walk(item)}
        apart = set(map(id, self._other_branches(self.site.function.body)))
        for name in sorted(self.names):
            end = self._end(name)
            for node in walk(self.site.function):
                if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
                    continue
                if id(node) in allowed or id(node) in apart:
                    continue
                later = end is not None and node.lineno > end
                if id(node) in returned and not later and node.lineno >= begin:
                    raise Unclear(_RETURNED.format(name))
                if id(node) in inside or not (node.lineno < begin or later):
                    raise Unclear(f"`{name}` is used elsewhere (line {node.lineno})", line=node.lineno)

    def _end(self, name: str) -> int | None:
        """The line from which on the name is something else."""
        for item in self.site.block[self.index :]:
            if isinstance(item, ast.Assign) and binds(item, name):
                return item.end_lineno or item.lineno
        return None

    def _other_branches(self, block: list[ast.stmt]) -> Iterator[ast.AST]:
        """The nodes of the branches that do not run where the site's statements do."""
        for statement in block:
            if not isinstance(statement, ast.If):
                continue
            for inner, other in (
                (statement.body, statement.orelse),
                (statement.orelse, statement.body),
            ):
                if any(node is self.site.statement for item in inner for node in walk(item)):
                    for item in other:
                        yield from walk(item)
                    yield from self._other_branches(inner)

    def _is_returned(self, name: ast.Name) -> bool:
        return any(
            isinstance(node, ast.Name) and node.id == name.id and node is not name
            for item in self._returns()
            for node in walk(item)
        )

    def _returns(self) -> Iterable[ast.Return]:
        return (node for node in walk(self.site.function) if isinstance(node, ast.Return))

    def check_captured(self) -> None:
        """What the new call computes has not changed between its old place and the new one.

        Raises:
            Unclear: it may have.
        """
        for expression, where in self.captured:
            names = names_in(expression)
            if names & self.names:
                raise Unclear("a part is computed from the scores or the weights")
            for statement in self.site.block[where + 1 : self.index]:
                if any(statement is item for item in self.gone):
                    continue
                changed = next((name for name in sorted(names) if binds(statement, name)), None)
                if changed is not None:
                    raise Unclear(
                        f"`{changed}` is reassigned before the product (line {statement.lineno})",
                        line=statement.lineno,
                    )


def is_plain(statement: ast.stmt | None) -> TypeGuard[ast.Assign]:
    """Whether a statement assigns to one variable."""
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
    )


def changed_in_place(statement: ast.stmt, name: str) -> ast.Call | None:
    """The call that changes a tensor in a statement of its own: `scores.masked_fill_(mask, value)`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if (
            isinstance(function, ast.Attribute)
            and function.attr.endswith("_")
            and isinstance(function.value, ast.Name)
            and function.value.id == name
        ):
            return statement.value
    return None


def binds(statement: ast.stmt, name: str) -> bool:
    """Whether a statement, or one inside it, assigns a name (or `self.x`)."""
    for node in walk(statement):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        if (
            isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
            and f"{node.value.id}.{node.attr}" == name
        ):
            return True
    return False


def written_out(statement: ast.AugAssign) -> ast.expr:
    """`scores *= scale`, `scores += mask`: as if written out."""
    assert isinstance(statement.target, ast.Name), "it binds the name"
    return ast.copy_location(ast.BinOp(statement.target, statement.op, statement.value), statement)


def still_holds(statement: ast.If) -> bool:
    """Whether a condition holds after its branch as well."""
    test = statement.test
    asked = {node.id for node in walk(test) if isinstance(node, ast.Name)}
    if not any(binds(item, name) for item in statement.body for name in asked):
        return True
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
        return isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
    return isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "exists"
