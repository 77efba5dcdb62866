"""Where the state of functional models goes: through variables, attributes, functions and transforms."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchmigrate.codemods._functional_kinds import (
    STATE,
    Def,
    Kind,
    Make,
    Many,
    Model,
    Partial,
    State,
    Unclear,
    Wrap,
    merged,
)
from torchmigrate.codemods._functional_text import StateText
from torchmigrate.codemods._local_names import LocalNames
from torchmigrate.names.model import Names, Scope

Cell = tuple[str, int, str]  # variable, attribute or result; id() of its scope, class or function; its name
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_ROUNDS = 25
_HARMLESS = frozenset(("no_grad", "enable_grad", "inference_mode", "staticmethod", "classmethod", "wraps"))
_TRANSFORMS = {
    "vmap": "vmap",
    "grad": "grad",
    "grad_and_value": "value",
    "jacrev": "jac",
    "jacfwd": "jac",
}
_HOMES = ("functorch", "torch.func", "torch", "functorch.experimental", "torch._functorch.apis")
_TREE_MAPS = frozenset(("torch.utils._pytree.tree_map", "torch.utils.pytree.tree_map"))
_ITERATING = frozenset(("zip", "enumerate", "sum", "any", "all", "list", "tuple", "map", "iter"))
_TAKING_ANY = frozenset(("len", "print", "id", "bool"))
_TAKING_TENSORS = frozenset(
    f"torch.nn.utils.{name}"
    for name in ("clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "get_total_norm")
)


class Flow:
    """Follows what some calls make through the whole file.

    `run` finds out what every variable holds, then checks every use and collects the edits.

    Args:
        makes: the calls, by id() of the node.
        names: of the file.
        local: its own names.
        text: makes the edits.
    """

    def __init__(self, makes: dict[int, Make], names: Names, local: LocalNames, text: StateText) -> None:
        self.makes = makes
        self.names = names
        self.local = local
        self.text = text
        self.cells: dict[Cell, Kind] = {}
        self.scopes = {id(scope.node): scope for scope in names.scopes}
        self.uses = {id(use.node): use for use in names.uses}
        self.final = False  # everything is known: check, and collect edits
        self.changed = False
        self.used: set[int] = set()  # functions that are called, by id()
        self.functions: dict[int, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda] = {}
        self.visited: set[int] = set()  # attributes that were understood
        self.as_value = False  # a functional model is used as a function, not only called
        self.calls: list[ast.Call] = []  # of functional models
        self.made: dict[int, ast.stmt] = {}  # calls that make one, with the statement that takes it
        self.keys: dict[Cell, str] = {}  # the name that takes the place of an index, while its loop is read

    def run(self) -> None:
        """Find out everything.

        Raises:
            Unclear: the state is used in a way that is not understood.
        """
        for _ in range(_ROUNDS):
            self.changed = False
            self._body(self.names.tree.body, self.names.module)
            if not self.changed:
                break
        self.final = True
        self.used.clear()
        self._body(self.names.tree.body, self.names.module)
        self._check_functions()
        self._check_attributes()

    def _check_functions(self) -> None:
        for node in self.functions.values():
            if self.tracked(Def(node)) and id(node) not in self.used:
                name = getattr(node, "name", "a lambda")
                raise Unclear(
                    f"`{name}` has to do with the parameters, and is called in other files or in ways unknown"
                )

    def _check_attributes(self) -> None:
        for (kind, _, name), held in self.cells.items():
            if kind == "attribute" and self.tracked(held):
                for mention in self.local.attributes(name):
                    if id(mention) not in self.visited:
                        raise Unclear(f"`.{name}` is used where it is not followed", mention)

    # ---- cells ---------------------------------------------------------------------------------------

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
        if isinstance(held, Def | Wrap | Partial) and isinstance(kind, Def | Wrap | Partial):
            if self.final and (self.tracked(held) or self.tracked(kind)):
                raise Unclear(f"`{cell[2]}` holds different functions")
            if _innermost(held) == _innermost(kind):  # the same, with more known of it
                self.cells[cell] = kind
                self.changed = True
            return
        try:
            new = merged(held, kind)
        except Unclear:
            raise Unclear(f"`{cell[2]}` holds different things") from None
        if new != held:
            self.cells[cell] = new
            self.changed = True

    def tracked(self, kind: Kind) -> bool:
        """Whether it matters where something goes."""
        if isinstance(kind, State | Model):
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
        if isinstance(kind, Wrap | Partial):
            given = kind.given if isinstance(kind, Partial) else ()
            return self.tracked(kind.inner) or any(map(self.tracked, given))
        return False

    def _is_state(self, kind: Kind) -> bool:
        return isinstance(kind, State | Model) or (
            isinstance(kind, Many) and any(map(self._is_state, kind.items))
        )

    def fail(self, node: ast.expr, why: str) -> None:
        """Give up, if all is known."""
        if self.final:
            text = " ".join(self.text.source.segment(node).split())
            raise Unclear(f"`{text}` {why}" if len(text) < 60 else f"line {node.lineno} {why}", node)

    # ---- statements ----------------------------------------------------------------------------------

    def _body(self, block: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in block:
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, _FUNCTIONS):
            self._function(node, scope)
        elif isinstance(node, ast.ClassDef):
            self._class(node, scope)
        elif isinstance(node, ast.Assign):
            self._assign(node, scope)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._bind(node.target, node.value, scope)
        elif isinstance(node, ast.Return):
            self._return(node, scope)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._for(node, scope)
        else:
            for name, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    self._body(value, scope)
                    continue
                for item in value if isinstance(value, list) else [value]:
                    if isinstance(item, ast.expr):
                        kind = self.read(item, scope)
                        fine = name == "test" or isinstance(node, ast.Delete | ast.Expr)
                        if self.tracked(kind) and not fine:
                            self.fail(item, "is used in a way that is not understood")
                    elif isinstance(item, ast.ExceptHandler | ast.match_case):
                        self._body(item.body, scope)
                    elif isinstance(item, ast.withitem) and self.tracked(self.read(item.context_expr, scope)):
                        self.fail(item.context_expr, "is no context manager")

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        inner = self.scopes.get(id(node))
        if inner is None:
            return
        self.functions[id(node)] = node
        known = all(_decorator_name(mark) in _HARMLESS for mark in node.decorator_list)
        static = any(_decorator_name(mark) == "staticmethod" for mark in node.decorator_list)
        if isinstance(scope.node, ast.ClassDef):
            if known:
                self.put(("attribute", id(scope.node), node.name), Def(node, 0 if static else 1))
        elif known:
            self.put(self.cell(node.name, scope), Def(node))
        for argument, default in defaults(node.args):
            self.read(default, scope, self.cells.get(("variable", id(inner), argument.arg)))
        for mark in node.decorator_list:
            self.read(mark, scope)
        self._body(node.body, inner)

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        inner = self.scopes.get(id(node))
        if inner is not None:
            self._body(node.body, inner)

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        if len(node.targets) == 1:
            if isinstance(node.value, ast.Call) and id(node.value) in self.makes:
                self.made[id(node.value)] = node
            self._bind(node.targets[0], node.value, scope)
            return
        kind = self.read(node.value, scope)
        if self.tracked(kind):
            self.fail(node.value, "is assigned to several targets")

    def _bind(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        wanted = self._wanted(target, scope)
        kind = self.read(value, scope, wanted)
        if isinstance(kind, State) and isinstance(target, ast.Tuple | ast.List):
            self.text.values(value, self.final)
            kind = None
        self._store(target, kind, scope)

    def _wanted(self, target: ast.expr, scope: Scope) -> Kind:
        """What a target holds according to everybody else."""
        cell = self._target_cell(target, scope)
        if cell is not None:
            return self.cells.get(cell)
        if isinstance(target, ast.Tuple | ast.List):
            if any(isinstance(item, ast.Starred) for item in target.elts):
                return None
            items = tuple(self._wanted(item, scope) for item in target.elts)
            return Many(items) if any(map(self._is_state, items)) else None
        return None

    def _target_cell(self, target: ast.expr, scope: Scope) -> Cell | None:
        if isinstance(target, ast.Name):
            return self.cell(target.id, scope)
        if isinstance(target, ast.Attribute):
            owner = self.owner(target, scope)
            if owner is not None:
                self.visited.add(id(target))
                return ("attribute", id(owner), target.attr)
        return None

    def _store(self, target: ast.expr, kind: Kind, scope: Scope) -> None:
        if isinstance(target, ast.Name) and not self._is_read(target.id):
            return
        cell = self._target_cell(target, scope)
        if cell is not None:
            if self.final and self._is_state(self.cells.get(cell)) and kind is None:
                self.fail(target, "holds the state of a model, and something else")
            self.put(cell, kind)
        elif isinstance(target, ast.Tuple | ast.List):
            items = kind.items if isinstance(kind, Many) else (None,) * len(target.elts)
            if len(items) != len(target.elts) or any(isinstance(item, ast.Starred) for item in target.elts):
                if self.tracked(kind):
                    self.fail(target, "takes something apart that is not understood")
                return
            for item, part in zip(target.elts, items, strict=True):
                self._store(item, part, scope)
        else:
            if isinstance(target, ast.Subscript) and self.tracked(self.read(target.value, scope)):
                self.fail(target, "is changed in place")
            if self.tracked(kind):
                self.fail(target, "is not followed")

    def _is_read(self, name: str) -> bool:
        return any(isinstance(item.ctx, ast.Load) for item in self.local.named(name))

    def _return(self, node: ast.Return, scope: Scope) -> None:
        if node.value is None:
            return
        here: Scope | None = scope
        while here is not None and here.kind != "function":
            here = here.parent
        cell = ("result", id(here.node) if here else 0, "")
        if isinstance(node.value, ast.Call) and id(node.value) in self.makes:
            self.made[id(node.value)] = node
        kind = self.read(node.value, scope, self.cells.get(cell))
        self.put(cell, kind)

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        appended = self._appended(node, scope)
        if appended is not None:
            self._keyed(node.target, node.iter, scope, appended)
        else:
            kind = self.read(node.iter, scope)
            if isinstance(kind, State):
                self.text.values(node.iter, self.final)
            elif self.tracked(kind):
                self.fail(node.iter, "is iterated")
        self._store(node.target, None, scope)
        self._body(node.body, scope)
        self._body(node.orelse, scope)

    def _appended(self, node: ast.For | ast.AsyncFor, scope: Scope) -> str | None:
        """The key under which a loop collects the state of a model, if that is what it does."""
        for statement in node.body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "append"
            ):
                holder = call.func.value
                if isinstance(holder, ast.Name) and self.cells.get(self.cell(holder.id, scope)) == STATE:
                    key = self.text.key()
                    self.text.append(call, key, self.final)
                    return key
        return None

    # ---- expressions ---------------------------------------------------------------------------------

    def read(self, node: ast.expr, scope: Scope, wanted: Kind = None) -> Kind:
        """What an expression holds; where a state is wanted, it is made one."""
        kind = self._read(node, scope, wanted)
        if (
            isinstance(wanted, State)
            and kind is None
            and not (isinstance(node, ast.Constant) and node.value is None)
        ):
            self.fail(node, "is given where the state of a model belongs")
        return kind

    def _read(self, node: ast.expr, scope: Scope, wanted: Kind) -> Kind:
        if isinstance(node, ast.Name):
            cell = self.cell(node.id, scope)
            if isinstance(node.ctx, ast.Load) and self._is_state(wanted):
                self.put(cell, wanted)
            return self.cells.get(cell)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, scope, wanted)
        if isinstance(node, ast.Call):
            return self._call(node, scope, wanted)
        if isinstance(node, ast.Tuple | ast.List):
            return self._display(node, scope, wanted)
        if isinstance(node, ast.Lambda):
            self.functions[id(node)] = node
            inner = self.scopes[id(node)]
            cell = ("result", id(node), "")
            self.put(cell, self.read(node.body, inner, self.cells.get(cell)))
            return Def(node)
        if isinstance(node, ast.IfExp):
            self.read(node.test, scope)
            return merged(self.read(node.body, scope, wanted), self.read(node.orelse, scope, wanted))
        if isinstance(node, _COMPREHENSIONS):
            return self._comprehension(node, scope, wanted)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, scope)
        self._plain(node, scope)
        return None

    def _plain(self, node: ast.expr, scope: Scope) -> None:
        """An expression that has nothing to do with states, or must not."""
        tests = isinstance(node, ast.BoolOp) or (
            isinstance(node, ast.Compare) and all(isinstance(item, ast.Is | ast.IsNot) for item in node.ops)
        )
        for key, child in _children(node):
            kind = self.read(child, scope)
            taken_apart = isinstance(node, ast.Starred) or (isinstance(node, ast.Dict) and key == "params")
            if taken_apart and isinstance(kind, State):
                self.text.values(child, self.final)
            elif self.tracked(kind) and not tests and not (isinstance(node, ast.UnaryOp)):
                self.fail(child, "is used in a way that is not understood")

    def _attribute(self, node: ast.Attribute, scope: Scope, wanted: Kind) -> Kind:
        owner = self.owner(node, scope)
        if owner is not None:
            self.visited.add(id(node))
            cell = ("attribute", id(owner), node.attr)
            if self._is_state(wanted):
                self.put(cell, wanted)
            return self.cells.get(cell)
        if self.tracked(self.read(node.value, scope)):
            self.fail(node, "is not there any more")
        return None

    def owner(self, node: ast.Attribute, scope: Scope) -> ast.ClassDef | None:
        """The class of which `self.x` is meant."""
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

    def _display(self, node: ast.Tuple | ast.List, scope: Scope, wanted: Kind) -> Kind:
        if isinstance(wanted, State):
            if isinstance(node, ast.List) and not node.elts:
                self.text.replace(node, "{}", self.final)
                return STATE
            if not node.elts:
                self.text.replace(node, "{}", self.final)
                return STATE
            for item in node.elts:
                self.read(item, scope)
            return None
        if any(isinstance(item, ast.Starred) for item in node.elts):
            self._plain(node, scope)
            return None
        wants = wanted.items if isinstance(wanted, Many) and len(wanted.items) == len(node.elts) else ()
        items = tuple(
            self.read(item, scope, wants[number] if wants else None) for number, item in enumerate(node.elts)
        )
        return Many(items) if any(items) else None

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Kind:
        held = self.read(node.value, scope)
        index = node.slice
        if isinstance(held, State):
            if isinstance(index, ast.Name) and self.cell(index.id, scope) in self.keys:
                self.text.replace(index, self.keys[self.cell(index.id, scope)], self.final)
                return None
            self._plain(index, scope) if isinstance(index, ast.Slice) else self.read(index, scope)
            if not isinstance(node.ctx, ast.Load):
                self.fail(node, "is changed in place")
            self.text.listed(node.value, self.final)
            return None
        if isinstance(held, Many):
            try:
                number = ast.literal_eval(index)
            except ValueError:
                number = None
            if isinstance(number, int) and -len(held.items) <= number < len(held.items):
                return held.items[number]
            if self.tracked(held):
                self.fail(node, "takes one of several things")
            return None
        if self.tracked(held):
            self.fail(node, "takes a part of a function")
        if isinstance(index, ast.Slice):
            self._plain(index, scope)
        elif self.tracked(self.read(index, scope)):
            self.fail(index, "is no index")
        return None

    # ---- comprehensions ------------------------------------------------------------------------------

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope, wanted: Kind
    ) -> Kind:
        inner = self.scopes.get(id(node), scope)
        if isinstance(wanted, State) and isinstance(node, ast.ListComp):
            return self.keyed_comprehension(node, scope, node)
        for number, part in enumerate(node.generators):
            kind = self.read(part.iter, inner if number else scope)
            if isinstance(kind, State):
                self.text.values(part.iter, self.final)
            elif self.tracked(kind):
                self.fail(part.iter, "is iterated")
            for test in part.ifs:
                self.read(test, inner)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for element in elements:
            if self.tracked(self.read(element, inner)):
                self.fail(element, "is collected")
        return None

    def keyed_comprehension(
        self, node: ast.ListComp | ast.GeneratorExp, scope: Scope, whole: ast.expr
    ) -> Kind:
        """`[p - g for p, g in zip(params, grads)]` as a dict with the keys of the first state in it."""
        inner = self.scopes.get(id(node), scope)
        part = node.generators[0]
        if len(node.generators) > 1 or part.ifs or part.is_async:
            self.fail(node, "makes the state of a model in a way that is not understood")
            return STATE
        key = self.text.key()
        index = self._keyed(part.target, part.iter, scope, key, node.elt, inner)
        if self.tracked(self.read(node.elt, inner)):
            self.fail(node.elt, "is collected")
        if index is not None:
            self.keys.pop(index, None)
        self.text.braces(node, whole, key, self.final)
        return STATE

    def _keyed(
        self,
        target: ast.expr,
        source: ast.expr,
        scope: Scope,
        key: str,
        element: ast.expr | None = None,
        inner: Scope | None = None,
    ) -> Cell | None:
        """Make a loop over states one that knows the key; the cell of an index that the key replaces."""
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and not source.keywords:
            name = self.qualified(source.func)
            if name == "zip" and isinstance(target, ast.Tuple) and len(target.elts) == len(source.args):
                done = False
                for item, part in zip(source.args, target.elts, strict=True):
                    kind = self.read(item, scope)
                    if isinstance(kind, State) and not done:
                        done = True
                        self.text.items(item, part, key, self.final, wrapped=True)
                    elif isinstance(kind, State):
                        self.text.values(item, self.final)
                    elif self.tracked(kind):
                        self.fail(item, "is iterated")
                if not done:
                    self.fail(source, "has no state of a model in it that could give the keys")
                return None
            if name == "range" and len(source.args) == 1 and element is not None and inner is not None:
                return self._indexed(target, source, scope, key, element, inner)
        if isinstance(self.read(source, scope), State):
            self.text.items(source, target, key, self.final, wrapped=False)
        else:
            self.fail(source, "has no state of a model in it that could give the keys")
        return None

    def _indexed(
        self, target: ast.expr, source: ast.Call, scope: Scope, key: str, element: ast.expr, inner: Scope
    ) -> Cell | None:
        """`for i in range(len(params))` as `for name in params`."""
        size = source.args[0]
        counted = size.args[0] if isinstance(size, ast.Call) and len(size.args) == 1 else None
        if (
            counted is None
            or not isinstance(size, ast.Call)
            or self.qualified(size.func) != "len"
            or not isinstance(self.read(counted, scope), State)
            or not isinstance(target, ast.Name)
        ):
            self.fail(source, "has no state of a model in it that could give the keys")
            return None
        cell = self.cell(target.id, inner)
        keyed = plain = 0
        for node in ast.walk(element):
            if isinstance(node, ast.Name) and node.id == target.id:
                around = self.local.parent(node)
                held = isinstance(around, ast.Subscript) and around.slice is node
                if held and isinstance(around, ast.Subscript) and self.read(around.value, inner) == STATE:
                    keyed += 1
                else:
                    plain += 1
        self.text.counted(target, source, counted, key, self.final, numbered=plain > 0)
        self.keys[cell] = key
        return cell

    # ---- calls ---------------------------------------------------------------------------------------

    def qualified(self, node: ast.expr) -> str:
        """The qualified name of a function, or that of a builtin; "" if it is neither."""
        use = self.uses.get(id(node))
        if use is not None:
            return use.candidates[0] if len(use.candidates) == 1 else ""
        if isinstance(node, ast.Name) and not self.local.binders(node.id):
            return node.id
        return ""

    def _call(self, node: ast.Call, scope: Scope, wanted: Kind) -> Kind:
        make = self.makes.get(id(node))
        if make is not None:
            for argument in (*node.args, *(item.value for item in node.keywords)):
                self.read(argument, scope)
            if self.final and id(node) not in self.made:
                self.fail(node, "is not assigned")
            return make.kind
        name = self.qualified(node.func)
        head, _, last = name.rpartition(".")
        if last in _TRANSFORMS and head in _HOMES and node.args:
            return self._transform(_TRANSFORMS[last], node, scope)
        if name in ("functools.partial", "partial") or _is_partial(node.func, self.local, self.names):
            return self._partial(node, scope)
        special = self._special(name, node, scope, wanted)
        if special is not None:
            return special if isinstance(special, State) else None
        if isinstance(node.func, ast.Attribute):
            base = self.read(node.func.value, scope) if self.owner(node.func, scope) is None else None
            if isinstance(base, Model) and node.func.attr in ("eval", "train"):
                self.as_value |= False
                for argument in node.args:
                    self.read(argument, scope)
                self.text.module_methods.append(node)
                return None
            if isinstance(base, State) and node.func.attr == "append" and self.text.is_append(node):
                for argument in node.args:
                    self.read(argument, scope)
                return None
        callee = self.read(node.func, scope)
        if isinstance(callee, Def | Wrap | Partial | Model):
            if isinstance(callee, Model) and self.final:
                self.calls.append(node)
            return self._called(callee, node, scope, wanted)
        for argument in node.args:
            kind = self.read(argument, scope)
            if self.tracked(kind):
                self.fail(
                    argument, f"goes to `{self.text.source.segment(node.func)}`, which is not in this file"
                )
        for keyword in node.keywords:
            if self.tracked(self.read(keyword.value, scope)):
                self.fail(
                    keyword.value, f"goes to `{self.text.source.segment(node.func)}`, which is not followed"
                )
        return None

    def _special(self, name: str, node: ast.Call, scope: Scope, wanted: Kind) -> Kind | bool:
        """Functions that are known; True: it gives nothing of interest; None: it is another one."""
        arguments = [*node.args, *(item.value for item in node.keywords)]
        if name in ("list", "tuple") and isinstance(wanted, State) and len(node.args) == 1:
            only = node.args[0]
            if isinstance(only, ast.GeneratorExp | ast.ListComp):
                return self.keyed_comprehension(only, scope, node)
            if isinstance(self.read(only, scope), State):
                self.text.replace(node.func, "dict", self.final)
                return STATE
            return True
        if name in _ITERATING:
            for argument in arguments:
                kind = self.read(argument, scope)
                if isinstance(kind, State):
                    self.text.values(argument, self.final)
                elif self.tracked(kind):
                    self.fail(argument, f"goes to `{name}`")
            return True
        if name in _TAKING_ANY:
            for argument in arguments:
                self.read(argument, scope)
            return True
        if name in _TREE_MAPS and len(node.args) > 1:
            self.read(node.args[0], scope)
            kinds = [self.read(argument, scope, wanted) for argument in node.args[1:]]
            if any(isinstance(kind, State) for kind in kinds):
                for argument in node.args[1:]:
                    self.read(argument, scope, STATE)
                return STATE
            return True
        if name in ("copy.deepcopy", "copy.copy") and len(node.args) == 1:
            kind = self.read(node.args[0], scope, wanted if isinstance(wanted, State) else None)
            if isinstance(kind, State):
                return STATE
            if self.tracked(kind):
                self.fail(node, "copies a functional model")
            return True
        inputs = name == "torch.autograd.grad" or (
            isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
        )
        if inputs or name.startswith("torch.optim.") or name in _TAKING_TENSORS:
            if inputs and isinstance(node.func, ast.Attribute):
                self.read(node.func.value, scope) if name != "torch.autograd.grad" else None
            for argument in arguments:
                kind = self.read(argument, scope)
                if isinstance(kind, State):
                    (self.text.tupled if inputs else self.text.values)(argument, self.final)
                elif self.tracked(kind):
                    self.fail(argument, f"goes to `{name}`")
            return True
        return None

    def _transform(self, how: str, node: ast.Call, scope: Scope) -> Kind:
        inner = self.read(node.args[0], scope)
        if isinstance(inner, Model):
            self.as_value = True
        rest = {item.arg: item.value for item in node.keywords}
        second = node.args[1] if len(node.args) > 1 else rest.get("in_dims" if how == "vmap" else "argnums")
        third = node.args[2] if len(node.args) > 2 else rest.get("has_aux")
        for item in (*node.args[1:], *(keyword.value for keyword in node.keywords)):
            self.read(item, scope)
        if how == "vmap":
            return Wrap(how, inner, dims=second)
        aux = _literal(third, False)
        return Wrap(how, inner, _argnums(second), aux if isinstance(aux, bool) else None)

    def _partial(self, node: ast.Call, scope: Scope) -> Kind:
        if not node.args:
            self._plain(node, scope)
            return None
        inner = self.read(node.args[0], scope)
        if not isinstance(inner, Def | Wrap | Partial | Model):
            for argument in (*node.args[1:], *(item.value for item in node.keywords)):
                if self.tracked(self.read(argument, scope)):
                    self.fail(argument, "is bound to a function that is not in this file")
            return None
        if isinstance(inner, Model):
            self.as_value = True
        given = self._arguments(inner, node.args[1:], node.keywords, scope)
        return Partial(inner, tuple(given))

    def _called(self, callee: Kind, node: ast.Call, scope: Scope, wanted: Kind) -> Kind:
        kinds = self._arguments(callee, node.args, node.keywords, scope)
        self._check_dims(callee, node, kinds)
        return self._result(callee, kinds, wanted, node)

    def _arguments(
        self, callee: Kind, args: Sequence[ast.expr], keywords: Sequence[ast.keyword], scope: Scope
    ) -> list[Kind]:
        kinds: list[Kind] = []
        for number, argument in enumerate(args):
            if isinstance(argument, ast.Starred):
                self.read(argument, scope)
                for behind in range(number, number + 8):
                    cell = self._parameter(callee, behind)
                    if self._is_state(self.cells.get(cell) if cell else None):
                        self.fail(argument, "hides what is given")
                break
            kinds.append(self._argument(callee, number, argument, scope))
        for keyword in keywords:
            if keyword.arg is None:
                self.read(keyword.value, scope)
                continue
            self._argument(callee, keyword.arg, keyword.value, scope)
        return kinds

    def _argument(self, callee: Kind, which: int | str, node: ast.expr, scope: Scope) -> Kind:
        """Read an argument as what the function expects, and tell the function what it is given."""
        model = _innermost(callee)
        if isinstance(model, Model) and isinstance(which, int):
            number = which + _bound(callee)
            if number < model.states:
                return self.read(node, scope, STATE)
        cell = self._parameter(callee, which)
        kind = self.read(node, scope, self.cells.get(cell) if cell else None)
        if cell is not None:
            self.put(cell, kind)
        elif self.tracked(kind):
            self.fail(node, "is given to a function in a way that is not followed")
        return kind

    def _parameter(self, callee: Kind, which: int | str) -> Cell | None:
        """The variable that an argument of a function is bound to."""
        function = _innermost(callee)
        if not isinstance(function, Def):
            return None
        self.used.add(id(function.node))
        scope = self.scopes.get(id(function.node))
        arguments = function.node.args
        if scope is None:
            return None
        plain = [*arguments.posonlyargs, *arguments.args]
        if isinstance(which, str):
            every = {item.arg for item in (*plain, *arguments.kwonlyargs)}
            return ("variable", id(scope), which) if which in every else None
        number = which + _bound(callee)
        return ("variable", id(scope), plain[number].arg) if number < len(plain) else None

    def _check_dims(self, callee: Kind, node: ast.Call, kinds: Sequence[Kind]) -> None:
        """`in_dims` must not say something of each parameter, since it would have to be a dict then."""
        while isinstance(callee, Wrap | Partial):
            if isinstance(callee, Wrap) and callee.how == "vmap" and callee.dims is not None:
                dims = callee.dims
                for number, kind in enumerate(kinds):
                    if not self.tracked(kind):
                        continue
                    entry = dims
                    if isinstance(dims, ast.Tuple | ast.List):
                        entry = dims.elts[number] if number < len(dims.elts) else dims
                    if not _is_dim(entry):
                        self.fail(node, "is mapped over dimensions that are not understood")
            callee = callee.inner

    def _result(self, callee: Kind, kinds: Sequence[Kind], wanted: Kind, node: ast.Call) -> Kind:
        if isinstance(callee, Partial):
            return self._result(callee.inner, [*callee.given, *kinds], wanted, node)
        if isinstance(callee, Def):
            self.used.add(id(callee.node))
            cell = ("result", id(callee.node), "")
            if self._is_state(wanted):
                self.put(cell, wanted)
            return self.cells.get(cell)
        if not isinstance(callee, Wrap):
            return None
        if callee.how == "vmap":
            return self._result(callee.inner, kinds, wanted, node)
        value = self._result(callee.inner, kinds, None, node)
        if callee.argnums is None or callee.aux is None:
            if any(map(self.tracked, kinds)):
                self.fail(node, "takes gradients with respect to arguments that are not known")
            return None
        gradient: Kind
        if isinstance(callee.argnums, tuple):
            each = tuple(self._gradient(kinds, number) for number in callee.argnums)
            gradient = Many(each) if any(each) else None
        else:
            gradient = self._gradient(kinds, callee.argnums)
        aux = value.items[1] if isinstance(value, Many) and len(value.items) == 2 else None
        if callee.how == "value":
            return Many((gradient, Many((None, aux)) if callee.aux else None))
        return Many((gradient, aux)) if callee.aux else gradient

    def _gradient(self, kinds: Sequence[Kind], number: int) -> Kind:
        kind = kinds[number] if -len(kinds) <= number < len(kinds) else None
        return kind if isinstance(kind, State | Many) else None


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    """All parameters of a function but `*args` and `**kwargs`."""
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr]]:
    """The parameters that have a default, with it."""
    plain = [*arguments.posonlyargs, *arguments.args]
    found = list(zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            found.append((argument, default))
    return found


def _innermost(kind: Kind) -> Kind:
    while isinstance(kind, Wrap | Partial):
        kind = kind.inner
    return kind


def _bound(kind: Kind) -> int:
    """How many of the innermost function's parameters are given before the first argument."""
    number = 0
    while isinstance(kind, Wrap | Partial):
        if isinstance(kind, Partial):
            number += len(kind.given)
        kind = kind.inner
    return number + (kind.bound if isinstance(kind, Def) else 0)


def _children(node: ast.expr) -> list[tuple[str, ast.expr]]:
    """The expressions right inside of one, with the key of those in a dict."""
    if isinstance(node, ast.Dict):
        keys = [item.value if isinstance(item, ast.Constant) else "" for item in node.keys]
        found = [(str(key), value) for key, value in zip(keys, node.values, strict=True)]
        return found + [("", item) for item in node.keys if item is not None]
    return [("", child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _decorator_name(node: ast.expr) -> str:
    function = node.func if isinstance(node, ast.Call) else node
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _literal(node: ast.expr | None, absent: object) -> object:
    if node is None:
        return absent
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _argnums(node: ast.expr | None) -> int | tuple[int, ...] | None:
    """The literal numbers of arguments."""
    found = _literal(node, 0)
    if isinstance(found, int):
        return found
    if isinstance(found, tuple | list) and all(isinstance(number, int) for number in found):
        return tuple(found)
    return None


def _is_dim(node: ast.expr) -> bool:
    """An int or None."""
    return isinstance(_literal(node, None), int) or (isinstance(node, ast.Constant) and node.value is None)


def _is_partial(node: ast.expr, local: LocalNames, names: Names) -> bool:
    """`functools.partial`, which is no library name to the resolver."""
    if isinstance(node, ast.Attribute):
        return node.attr == "partial" and isinstance(node.value, ast.Name) and node.value.id == "functools"
    return isinstance(node, ast.Name) and any(
        binding.module == "functools"
        for binding in names.module.bindings.get(node.id, ())
        if node.id == "partial"
    )
