"""What a rule may ask about the surroundings of a use: parents, constants, names that nothing reads."""

from __future__ import annotations

import ast

from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import BindingKind, Scope, SemanticModel
from torchmigrate.source.trees import children, walk


class NotConstant:
    """The answer for an expression that is not a literal."""

    def __repr__(self) -> str:
        return "NOT_CONSTANT"


NOT_CONSTANT = NotConstant()


class FileFacts:
    """Answers about one file, computed on demand."""

    def __init__(self, names: SemanticModel) -> None:
        self.names = names
        self._parents: dict[ast.AST, ast.AST] = {}
        self._mapped: set[int] = set()
        self._loads: dict[int, dict[str, int]] = {}

    def parent(self, node: ast.AST, statement: ast.stmt) -> ast.AST | None:
        """The node around `node` within its statement; None for the statement itself."""
        if id(statement) not in self._mapped:
            self._mapped.add(id(statement))
            stack: list[ast.AST] = [statement]
            while stack:
                outer = stack.pop()
                for child in children(outer):
                    self._parents[child] = outer
                    if not isinstance(child, ast.stmt):
                        stack.append(child)
        return self._parents.get(node) if node is not statement else None

    @property
    def flow(self) -> ValueFlow:
        """Where values come from, and where they go; one for each model of names."""
        return self.names.once(ValueFlow, lambda: ValueFlow(self.names))

    def qualified(self, node: ast.AST) -> str | None:
        """The library name that an expression surely is."""
        return self.names.qualified(node)

    def imported(self, node: ast.expr, scope: Scope) -> str | None:
        """The qualified name that an expression surely is, also of other packages: `PIL.Image.BICUBIC`."""
        name = self.qualified(node)
        if name is not None:
            return name
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        held: Scope | None = scope
        while held is not None and (
            node.id not in held.bindings or (held.kind == "class" and held is not scope)
        ):
            held = held.parent
        bindings = held.bindings[node.id] if held is not None else []
        targets = {binding.target if binding.is_import else None for binding in bindings}
        target = targets.pop() if len(targets) == 1 else None
        # Of the libraries themselves, the resolver knows better.
        if target is None or target.startswith(".") or target.partition(".")[0] in LIBRARY_ROOTS:
            return None
        return ".".join([target, *attributes])

    def value(self, node: ast.expr, scope: Scope) -> object:
        """The literal that an expression is, also through a name that is bound once, to a literal."""
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            pass
        if isinstance(node, ast.Name):
            held: Scope | None = scope
            while held is not None:
                bindings = held.bindings.get(node.id)
                if bindings and not (held.kind == "class" and held is not scope):
                    statement = bindings[0].statement
                    if (
                        len(bindings) == 1
                        and bindings[0].kind is BindingKind.ASSIGNMENT
                        and not bindings[0].conditional
                        and isinstance(statement, ast.Assign)
                        and bindings[0].node in statement.targets
                        and isinstance(statement.value, ast.Constant)
                    ):
                        return statement.value.value
                    return NOT_CONSTANT
                held = held.parent
        return NOT_CONSTANT

    def parameters(self, node: ast.expr, scope: Scope) -> ast.arguments | None:
        """The parameters of a lambda, or of a function of this file whose name is bound once."""
        if isinstance(node, ast.Lambda):
            return node.args
        if not isinstance(node, ast.Name):
            return None
        held: Scope | None = scope
        while held is not None:
            bindings = held.bindings.get(node.id)
            if bindings and not (held.kind == "class" and held is not scope):
                statement = bindings[0].statement
                if len(bindings) != 1 or not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    return None
                if statement.name != node.id or statement.decorator_list:
                    return None
                return statement.args
            held = held.parent
        return None

    def unused(self, target: ast.Name, scope: Scope) -> bool:
        """Whether nothing in the file reads what is assigned to this name."""
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        if target.id in scope.globals or target.id in scope.nonlocals:
            return False
        if scope.kind == "module" and target.id in self.names.all_names:
            return False
        if scope.kind == "class":
            return False
        loads = self._loads.get(id(scope.node))
        if loads is None:
            loads = {}
            for node in walk(scope.node):
                if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Load, ast.Del)):
                    loads[node.id] = loads.get(node.id, 0) + 1
                elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                    loads[node.target.id] = loads.get(node.target.id, 0) + 1
            self._loads[id(scope.node)] = loads
        return target.id not in loads and "locals" not in loads and "eval" not in loads
