"""What is computed from some expressions in the statements of one function, and where it goes.

Made for the old `Variable(x, volatile=True)`: whatever was computed from it recorded no gradients. The walk
follows names through assignments, branches and loops, and stops where a value leaves autograd: at `.data`,
`.item()`, `.size()` and similar names. What only picks or moves (`x[0]`, `x.cuda()`, `zip(xs, ys)`) computes
nothing that could be recorded: its result needs no gradient if the object does not.

Separate from `semantics.flow.reaching`, which tells what one read may see: this module computes for every
statement which of several sources reach it, in containers too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from torchmigrate.semantics.flow.mentions import LOOPS, Spot, blocks, parameters
from torchmigrate.source.trees import children, walk

Labels = frozenset[int]  # numbers of the expressions that something is computed from
State = dict[str, Labels]

NONE: Labels = frozenset()
RETURNED = "it is returned"
BACKWARD = "`backward()` is called on the result"
STORED = "it is stored in "
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PLAIN_ATTRIBUTES = frozenset("data shape dtype device is_cuda requires_grad volatile grad_fn ndim".split())
_PLAIN_METHODS = frozenset(
    "item detach numpy tolist size dim numel nelement is_contiguous get_device type_as_string".split()
)
_PLAIN_FUNCTIONS = frozenset(
    "len int float bool str repr print isinstance type id range hasattr callable format".split()
)
_MOVES = frozenset(
    """
    cuda cpu to type float double half long int byte contiguous view t transpose permute unsqueeze squeeze
    expand repeat clone items keys values get pop copy
    """.split()
)
_MOVING_FUNCTIONS = frozenset("enumerate zip list tuple dict set reversed iter next".split())
_COLLECTS = frozenset("append extend insert appendleft setdefault".split())
STORES = frozenset("append extend insert add appendleft update setdefault put".split())


class Flow:
    """Follows values from their sources.

    Args:
        body: the statements of a function or module.
        sources: expressions by id(), with their numbers.
        marks: statements by id() that make a name that exists a source, with the name and its number; None:
            that end it.
        shared: names that are not the function's own (`global`, `nonlocal`).
        free_names: what functions inside take from here.

    computed: the statements that compute with what comes from a source, by id(): their place and the sources.
    made: the statements that hold a source.
    leaves: what happens to a value that cannot be followed, with the line and the sources.
    ended: the marks that do end one, by id().
    others: what else the statements with several values compute, by id().
    joined: the sources whose first computed result has an argument from elsewhere as well.
    """

    def __init__(
        self,
        body: list[ast.stmt],
        sources: Mapping[int, int],
        marks: Mapping[int, tuple[str, int | None]],
        shared: frozenset[str],
        free_names: FreeNames,
    ) -> None:
        self.computed: dict[int, tuple[Spot, Labels]] = {}
        self.made: dict[int, tuple[Spot, Labels]] = {}
        self.leaves: dict[str, tuple[int, Labels]] = {}
        self.ended: set[int] = set()
        self.others: dict[int, list[ast.expr]] = {}
        self._first: dict[int, bool] = {}
        self._sources = sources
        self._marks = marks
        self._shared = shared
        self.free_names = free_names
        self._ever: dict[str, Labels] = {}
        self._heads: dict[int, State] = {}  # what came round to the beginning of each loop
        self._in_loop = False
        self._news = False  # something came round that had not before
        self._inner: list[ast.AST] = []
        self._spot = Spot(body, 0)
        self._block(body, None, {})
        for node in self._inner:
            for name in sorted(free_names(node) & self._ever.keys()):
                self._leave(f"`{name}` is used in a nested function", node, self._ever[name])

    @property
    def joined(self) -> Labels:
        return frozenset(label for label, others in self._first.items() if others)

    def concerns(self, statement: ast.stmt) -> bool:
        """Whether a statement, or one in it, makes a source or computes with one."""
        inner = (node for node in walk(statement) if isinstance(node, ast.stmt))
        return any(id(node) in self.computed or id(node) in self.made for node in inner)

    # ---- statements -----------------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt], outer: Spot | None, state: State) -> State:
        for index in range(len(body)):
            state = self._statement(Spot(body, index, outer), state)
        return state

    def _statement(self, spot: Spot, state: State) -> State:
        statement = spot.statement
        self._spot = spot
        if id(statement) in self._marks:
            name, number = self._marks[id(statement)]
            if number is None:
                self.ended |= {id(statement)} if state.pop(name, NONE) else set()
            else:
                self._bind(ast.Name(name, ast.Store()), frozenset([number]), state, add=True)
        elif isinstance(statement, ast.Assign):
            self._assign(statement.targets, statement.value, state)
        elif isinstance(statement, ast.AnnAssign):
            if statement.value is not None:
                self._bind(statement.target, self._value(statement.value, state), state)
        elif isinstance(statement, ast.AugAssign):
            before = self._value(_loaded(statement.target), state)
            labels = before | self._value(statement.value, state)
            self._compute(labels)
            self._bind(statement.target, labels, state)
        elif isinstance(statement, ast.Return):
            labels = self._value(statement.value, state) if statement.value is not None else NONE
            if labels:
                self._leave(RETURNED, statement, labels)
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    state.pop(target.id, None)
        elif isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
            self._inner.append(statement)
            state.pop(statement.name, None)
        elif isinstance(statement, LOOPS):
            return self._loop(statement, spot, state)
        elif isinstance(statement, ast.If):
            self._value(statement.test, state)
            one = self._block(statement.body, spot, dict(state))
            return _merged(one, self._block(statement.orelse, spot, dict(state)))
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                labels = self._value(item.context_expr, state)
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, labels, state)
            return self._block(statement.body, spot, state)
        elif isinstance(statement, ast.Try):
            return self._try(statement, spot, state)
        else:
            self._other(statement, spot, state)
        return state

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr, state: State) -> None:
        target = targets[0]
        if (
            len(targets) == 1
            and isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
            and not any(isinstance(item, ast.Starred) for item in (*target.elts, *value.elts))
        ):
            each = [self._value(item, state) for item in value.elts]
            if any(each):
                self.others[id(self._spot.statement)] = [
                    item for item, labels in zip(value.elts, each, strict=True) if not labels
                ]
            for item, labels in zip(target.elts, each, strict=True):
                self._bind(item, labels, state)
            return
        labels = self._value(value, state)
        for target in targets:
            self._bind(target, labels, state)

    def _loop(self, statement: ast.stmt, spot: Spot, state: State) -> State:
        """The outermost loop is walked until nothing new comes round in it and in those inside it."""
        outermost, self._in_loop = not self._in_loop, True
        while True:
            if outermost:
                self._news = False
            self._spot = spot
            head = _merged(self._heads.get(id(statement), {}), state)
            inside = dict(head)
            if isinstance(statement, ast.While):
                self._value(statement.test, inside)
            elif isinstance(statement, (ast.For, ast.AsyncFor)):
                self._bind(statement.target, self._value(statement.iter, inside), inside)
            after = _merged(head, self._block(getattr(statement, "body", []), spot, inside))
            if after != head:
                self._heads[id(statement)] = after
                self._news = True
            if not outermost or not self._news:
                break
        self._in_loop = not outermost
        return self._block(getattr(statement, "orelse", []), spot, after)

    def _try(self, statement: ast.Try, spot: Spot, state: State) -> State:
        after = _merged(state, self._block(statement.body, spot, dict(state)))
        ends = [self._block(handler.body, spot, dict(after)) for handler in statement.handlers]
        for end in (self._block(statement.orelse, spot, dict(after)), *ends):
            after = _merged(after, end)
        return self._block(statement.finalbody, spot, after)

    def _other(self, statement: ast.stmt, spot: Spot, state: State) -> None:
        for child in children(statement):
            if isinstance(child, ast.expr):
                self._value(child, state)
        for block in blocks(statement):  # of `match`
            state.update(_merged(state, self._block(block, spot, dict(state))))

    def _bind(self, target: ast.expr, labels: Labels, state: State, *, add: bool = False) -> None:
        if isinstance(target, ast.Name):
            if labels:
                state[target.id] = labels | (state.get(target.id, NONE) if add else NONE)
                self._ever[target.id] = labels | self._ever.get(target.id, NONE)
                if target.id in self._shared:
                    self._leave(f"`{target.id}` is global", target, labels)
            elif not add:
                state.pop(target.id, None)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, labels, state, add=add)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self._bind(item, labels, state, add=add)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self._value(target.slice, state)
            if labels:
                self._bind(target.value, labels, state, add=True)
        else:
            key = ast.unparse(target)
            if labels:
                state[key] = labels
                self._leave(f"{STORED}`{key}`", target, labels)
            elif isinstance(target, ast.Attribute):
                state.pop(key, None)

    # ---- expressions ----------------------------------------------------------------------------------

    def _value(self, node: ast.AST, state: State) -> Labels:
        """What an expression is computed from, as long as it is part of a graph."""
        if isinstance(node, ast.Name):
            return state.get(node.id, NONE)
        if isinstance(node, ast.Attribute):
            if node.attr not in _PLAIN_ATTRIBUTES:
                return state.get(ast.unparse(node), NONE) | self._value(node.value, state)
            inner = node.value
            while isinstance(inner, ast.Subscript):  # `xs[0].data`: picks, and computes nothing
                self._value(inner.slice, state)
                inner = inner.value
            self._value(inner, state)
            return NONE
        if isinstance(node, ast.Call):
            return self._call(node, state)
        if isinstance(node, ast.Lambda):
            self._inner.append(node)
            return NONE
        if isinstance(node, _COMPREHENSIONS):
            return self._comprehension(node, state)
        labels = NONE
        for child in children(node):
            labels |= self._value(child, state)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and _is_text(node.left)):
            return NONE
        if isinstance(node, ast.Compare) and all(
            isinstance(kind, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for kind in node.ops
        ):
            return NONE
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)) and labels:
            self._leave("the result is yielded", node, labels)
        if isinstance(node, ast.NamedExpr):
            self._bind(node.target, labels, state)
        if isinstance(node, ast.BinOp):
            self._compute(labels)
        return labels

    def _call(self, node: ast.Call, state: State) -> Labels:
        given = [self._value(part, state) for part in node.args]
        arguments = NONE.union(*given, *(self._value(part, state) for part in node.keywords))
        number = self._sources.get(id(node))
        if number is not None:
            labels = frozenset([number])
            self._note(self.made, labels)
            return labels
        function = node.func
        if isinstance(function, ast.Name) and function.id in _PLAIN_FUNCTIONS:
            return NONE
        owner = self._value(function, state)
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            held = f"{function.value.id}."  # a method may compute with what its object holds
            owner = owner.union(*(labels for key, labels in state.items() if key.startswith(held)))
        if isinstance(function, ast.Attribute):
            # The owner of `x.data` is plain; the owner of `x.size` is not, but its call is.
            if owner and function.attr == "backward":
                self._leave(BACKWARD, node, owner)
                return NONE
            if owner and function.attr in _PLAIN_METHODS:
                return NONE
            if _is_text(function.value):
                return NONE
            in_place = function.attr.endswith("_") and not function.attr.endswith("__")
            if function.attr in _COLLECTS or (
                arguments and not owner and (function.attr in STORES or in_place)
            ):
                self._stored(function.value, arguments, state)
                if not in_place:
                    return NONE
        labels = owner | arguments
        moves = (
            not arguments and function.attr in _MOVES
            if isinstance(function, ast.Attribute)
            else getattr(function, "id", "") in _MOVING_FUNCTIONS
        )
        if not moves:
            others = any(
                isinstance(part, (ast.Name, ast.Attribute, ast.Call)) and not from_source
                for part, from_source in zip(node.args, given, strict=True)
            )
            for label in sorted(labels):
                self._first.setdefault(label, others and label in arguments)
            self._compute(labels)
        return labels

    def _stored(self, receiver: ast.expr, labels: Labels, state: State) -> None:
        if not labels:
            return
        if isinstance(receiver, ast.Name):
            self._bind(receiver, labels, state, add=True)
        elif isinstance(receiver, ast.Subscript) and isinstance(receiver.value, ast.Name):
            self._bind(receiver.value, labels, state, add=True)
        else:
            self._leave(f"{STORED}`{ast.unparse(receiver)}`", receiver, labels)

    def _comprehension(self, node: ast.AST, state: State) -> Labels:
        inside = dict(state)
        for part in getattr(node, "generators", ()):
            self._bind(part.target, self._value(part.iter, inside), inside)
            for test in part.ifs:
                self._value(test, inside)
        names = ("key", "value") if isinstance(node, ast.DictComp) else ("elt",)
        labels = NONE
        for name in names:
            labels |= self._value(getattr(node, name), inside)
        return labels

    # ---- notes ----------------------------------------------------------------------------------------

    def _compute(self, labels: Labels) -> None:
        if labels:
            self._note(self.computed, labels)

    def _note(self, table: dict[int, tuple[Spot, Labels]], labels: Labels) -> None:
        key = id(self._spot.statement)
        have = table.get(key)
        table[key] = (self._spot, labels | (have[1] if have is not None else NONE))

    def _leave(self, what: str, node: ast.AST, labels: Labels) -> None:
        line, before = self.leaves.get(what, (getattr(node, "lineno", self._spot.statement.lineno), NONE))
        self.leaves[what] = line, before | labels


class FreeNames:
    """The names that functions, lambdas and classes take from around them; each of a file is read once."""

    def __init__(self) -> None:
        self._known: dict[ast.AST, frozenset[str]] = {}

    def __call__(self, node: ast.AST) -> frozenset[str]:
        """Those of one; nothing for anything else."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = frozenset(self._read(node))
        return known

    def _read(self, node: ast.AST) -> set[str]:
        if isinstance(node, ast.ClassDef):
            parts: Iterable[ast.AST] = (*node.body, *node.bases, *node.decorator_list)
            bound: set[str] = set()
        elif isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            body = node.body if isinstance(node.body, list) else [node.body]
            parts, bound = body, set(parameters(node.args))
        else:
            return set()
        loaded: set[str] = set()
        todo = list(parts)
        while todo:
            inner = todo.pop()
            if isinstance(inner, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
                loaded |= self(inner)
                continue
            if isinstance(inner, ast.Name):
                (loaded if isinstance(inner.ctx, ast.Load) else bound).add(inner.id)
            todo.extend(children(inner))
        return loaded - bound


def _loaded(target: ast.expr) -> ast.expr:
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _merged(one: State, other: State) -> State:
    return {name: one.get(name, NONE) | other.get(name, NONE) for name in {*one, *other}}
