"""What the variables, attributes and results of a file hold, as far as functional models are concerned."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.functional_state.kinds import (
    Def,
    Kind,
    Make,
    Many,
    Model,
    Partial,
    State,
    Wrap,
    merged,
)
from torchmigrate.codemods.functional_state.writer import StateWriter
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.semantics.model import Scope, SemanticModel

Cell = tuple[str, int, str]  # variable, attribute or result; id() of its scope, class or function; its name
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class AbstractStore(ABC):
    """Remembers what is known; `read` finds out more.

    Args:
        makes: the calls that make functional models, by id() of the node.
        names: of the file.
        local: its own names.
        writer: rewrites the expressions.
    """

    def __init__(
        self, makes: dict[int, Make], names: SemanticModel, local: TreeIndex, writer: StateWriter
    ) -> None:
        self.makes = makes
        self.names = names
        self.local = local
        self.writer = writer
        self.cells: dict[Cell, Kind] = {}
        self.scopes = {id(scope.node): scope for scope in names.scopes}
        self.uses = {id(use.node): use for use in names.uses}
        self.final = False  # everything is known: check, and collect edits
        self.changed = False
        self._seen: set[tuple[Cell, Kind]] = set()  # functions that a variable has held
        self._read_names: dict[str, bool] = {}
        self.used: set[int] = set()  # functions that are called, by id()
        self.functions: dict[int, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda] = {}
        self.visited: set[int] = set()  # attributes that were understood
        self.as_value = False  # a functional model is used as a function, not only called
        self.calls: list[ast.Call] = []  # of functional models
        self.made: dict[int, ast.stmt] = {}  # calls that make one, with the statement that takes it
        self.keys: dict[Cell, str] = {}  # the name that takes the place of an index, while its loop is read

    def read(self, node: ast.expr, scope: Scope, wanted: Kind = None) -> Kind:
        """What an expression holds; where a state is wanted, it is made one."""
        kind = self._read(node, scope, wanted)
        if (
            isinstance(wanted, State)
            and kind is None
            and not (isinstance(node, ast.Constant) and node.value is None)
        ):
            self.fail(node, "is passed in place of the state of a model")
        return kind

    @abstractmethod
    def _read(self, node: ast.expr, scope: Scope, wanted: Kind) -> Kind:
        """What an expression of some kind holds."""

    def cell(self, name: str, scope: Scope) -> Cell:
        """The variable that a name means in a scope."""
        here: Scope | None = scope
        first = True
        while here is not None:
            if name in here.globals:
                break
            if name in here.bindings and name not in here.nonlocals and (first or here.kind != "class"):
                return ("variable", id(here), name)
            here, first = here.parent, False
        return ("variable", id(self.names.module), name)

    def put(self, cell: Cell, kind: Kind) -> None:
        held = self.cells.get(cell)
        if kind is None or held == kind:
            return
        if isinstance(held, (Def, Wrap, Partial)) and isinstance(kind, (Def, Wrap, Partial)):
            if self.final and (self.tracked(held) or self.tracked(kind)):
                raise Unclear(f"`{cell[2]}` holds different functions")
            if innermost(held) == innermost(kind):  # the same, with more known of it
                self.cells[cell] = kind
                if (cell, kind) not in self._seen:
                    self._seen.add((cell, kind))
                    self.changed = True
            return
        try:
            new = merged(held, kind)
        except Unclear:
            raise Unclear(f"`{cell[2]}` holds different objects") from None
        if new != held:
            self.cells[cell] = new
            self.changed = True

    def tracked(self, kind: Kind) -> bool:
        """Whether it matters where something goes."""
        if isinstance(kind, (State, Model)):
            return True
        if isinstance(kind, Many):
            return any(map(self.tracked, kind.items))
        if isinstance(kind, Def):
            scope = self.scopes.get(id(kind.node))
            if scope is None:
                return False
            cells = [("variable", id(scope), argument.arg) for argument in parameters(kind.node)]
            cells.append(("result", id(kind.node), ""))
            return any(self._is_state(self.cells.get(cell)) for cell in cells)
        if isinstance(kind, (Wrap, Partial)):
            given = kind.given if isinstance(kind, Partial) else ()
            return self.tracked(kind.inner) or any(map(self.tracked, given))
        return False

    def _is_state(self, kind: Kind) -> bool:
        return isinstance(kind, (State, Model)) or (
            isinstance(kind, Many) and any(map(self._is_state, kind.items))
        )

    def fail(self, node: ast.expr, why: str) -> None:
        """Give up, if all is known."""
        if self.final:
            text = " ".join(self.writer.source.shown(node).split())
            raise Unclear(f"`{text}` {why}" if len(text) < 60 else f"line {node.lineno} {why}", node)

    def owner(self, node: ast.Attribute, scope: Scope) -> ast.ClassDef | None:
        """The class whose attribute `self.x` is meant."""
        if not isinstance(node.value, ast.Name):
            return None
        here: Scope | None = scope
        while here is not None:
            if here.parent is not None and isinstance(here.parent.node, ast.ClassDef):
                method = here.node
                if isinstance(method, _FUNCTIONS) and method.args.args:
                    return here.parent.node if method.args.args[0].arg == node.value.id else None
            here = here.parent
        return None

    def _is_read(self, name: str) -> bool:
        known = self._read_names.get(name)
        if known is None:
            known = any(isinstance(item.ctx, ast.Load) for item in self.local.named(name))
            self._read_names[name] = known
        return known

    def qualified(self, node: ast.expr) -> str:
        """The qualified name of a function, or that of a builtin; "" if it is neither."""
        use = self.uses.get(id(node))
        if use is not None:
            return use.candidates[0] if len(use.candidates) == 1 else ""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return ""
        bindings = self.local.bindings(root.id)
        if not bindings:
            return root.id if root is node else ""
        targets = {item.target for item in bindings}
        target = targets.pop() if len(targets) == 1 else None  # an import of the standard library
        return target + ast.unparse(node)[len(root.id) :] if target else ""


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    """All parameters of a function but `*args` and `**kwargs`."""
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def innermost(kind: Kind) -> Kind:
    while isinstance(kind, (Wrap, Partial)):
        kind = kind.inner
    return kind
