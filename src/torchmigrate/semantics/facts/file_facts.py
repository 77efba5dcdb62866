"""What a rule may ask about the surroundings of a use: parents, constants, names that nothing reads."""

from __future__ import annotations

import ast

from torchmigrate.semantics.flow.values import PARTIAL, ValueFlow
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Role, Scope, SemanticModel, Use
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

    def prepared(self, use: Use) -> ast.Call | None:
        """The call that `functools.partial(f, ...)` prepares of the function that a use names.

        It ends in `*` and `**` for what is given later. None for any other use.
        """
        outer = self.parent(use.node, use.statement) if use.role is Role.REFERENCE else None
        if (
            not isinstance(outer, ast.Call)
            or not outer.args
            or outer.args[0] is not use.node
            or self.imported(outer.func) != PARTIAL
        ):
            return None
        later = ast.copy_location(ast.Constant(...), outer)
        later.lineno, later.col_offset = outer.end_lineno or outer.lineno, outer.end_col_offset or 0
        rest = ast.copy_location(ast.Starred(later, ast.Load()), later)
        options = ast.copy_location(ast.keyword(None, later), later)
        call = ast.Call(outer.args[0], [*outer.args[1:], rest], [*outer.keywords, options])
        return ast.copy_location(call, outer)

    @property
    def flow(self) -> ValueFlow:
        """Where values come from, and where they go; one for each model of names."""
        return self.names.once(ValueFlow, lambda: ValueFlow(self.names))

    def qualified(self, node: ast.AST) -> str | None:
        """The library name that an expression surely is."""
        return self.names.qualified(node)

    def imported(self, node: ast.expr) -> str | None:
        """The qualified name that an expression surely is, also of other packages: `PIL.Image.BICUBIC`."""
        name = self.qualified(node)
        if name is None:
            name = self.flow.imported(node)
            if name.partition(".")[0] in LIBRARY_ROOTS:
                return None  # of the libraries themselves, the resolver knows better
        return name or None

    def value(self, node: ast.expr) -> object:
        """The literal that an expression is, or the only constant that reaches a name."""
        made = self.flow.only_origin(node) if isinstance(node, ast.Name) else node
        if made is None or (made is not node and not isinstance(made, (ast.Constant, ast.UnaryOp))):
            return NOT_CONSTANT
        try:
            return ast.literal_eval(made)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return NOT_CONSTANT

    def shown(self, node: ast.expr) -> object:
        """The same in every run that the file shows, which is enough for a finding.

        Others may call a function with other arguments; its defaults count if a call in the file leaves them.
        """
        found = self.flow.origins(node) if isinstance(node, ast.Name) else ()
        made = [step.node for step in found if not step.open and not step.path]
        if len(made) != 1 or len(found) != 2 or not isinstance(made[0], (ast.Constant, ast.UnaryOp)):
            return self.value(node)
        outer = self.names.parents.get(made[0])
        function = self.names.parents.get(outer) if isinstance(outer, ast.arguments) else None
        if outer is not None and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self.value(made[0]) if self.flow.calls_of(function)[0] else NOT_CONSTANT
        return self.value(made[0])

    def text(self, node: ast.expr) -> str | None:
        """The one text that an expression is: also an f-string, `+`, `%` or `.format(...)` of constants."""
        if isinstance(node, ast.JoinedStr):
            parts = [self._formatted(item) for item in node.values]
            return None if None in parts else "".join(part or "" for part in parts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            last: list[str | None] = []
            while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and None not in last:
                last.append(self.text(node.right))
                node = node.left
            last.append(self.text(node))
            return None if None in last else "".join(part or "" for part in reversed(last))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            template = self.value(node.left)
            given = [self.value(item) for item in getattr(node.right, "elts", [node.right])]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            template = self.value(node.func.value) if node.func.attr == "format" else NOT_CONSTANT
            given = [*(self.value(item) for item in node.args), *(NOT_CONSTANT for _ in node.keywords)]
        else:
            template = self.value(node)
            return template if isinstance(template, str) else None
        if not isinstance(template, str) or not all(isinstance(item, (str, int)) for item in given):
            return None
        try:
            return template % tuple(given) if isinstance(node, ast.BinOp) else template.format(*given)
        except (ValueError, TypeError, LookupError, AttributeError):
            return None

    def _formatted(self, part: ast.expr) -> str | None:
        """The text of a part of an f-string."""
        if not isinstance(part, ast.FormattedValue):
            return self.text(part)
        value = self.value(part.value)
        plain = part.format_spec is None and part.conversion in (-1, ord("s"))
        return str(value) if plain and isinstance(value, (str, int)) else None

    def parameters(self, node: ast.expr) -> ast.arguments | None:
        """The parameters of a lambda, or of a function of this file, which a name surely is."""
        made = self.flow.definition(node) if isinstance(node, (ast.Name, ast.Lambda)) else None
        if isinstance(made, ast.Lambda):
            return made.args
        plain = isinstance(made, (ast.FunctionDef, ast.AsyncFunctionDef)) and not made.decorator_list
        return made.args if plain and isinstance(made, (ast.FunctionDef, ast.AsyncFunctionDef)) else None

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
