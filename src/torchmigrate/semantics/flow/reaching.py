"""Which assignments to a local variable a read of it may see."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct, field

from torchmigrate.source.trees import children, walk

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Inner = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Definition(Struct, frozen=True, eq=False):
    """One place that gives a variable its value.

    value: the expression; None for parameters, loop variables, `x += 1`: whatever is not `x = value`.
    unpacked: of `a, b = value` that value, with the number of this one and how many there are.
    node: the target, parameter, import, handler, function or class.
    """

    name: str
    statement: ast.stmt | None
    value: ast.expr | None = None
    unpacked: tuple[ast.expr, int, int] | None = None
    node: ast.AST | None = None


Seen = frozenset[Definition]
_Env = dict[str, Seen]
_NOTHING: Seen = frozenset()


class Reaching(Struct):
    """The definitions of one function body (or module).

    every: in source order. captured: names that nested functions, lambdas and comprehensions read.
    """

    every: list[Definition] = field(default_factory=list)
    captured: set[str] = field(default_factory=set)
    _made: dict[int, list[Definition]] = field(default_factory=dict)
    _seen: dict[ast.Name, Seen] = field(default_factory=dict)
    _inner: dict[ast.Name, Seen] = field(default_factory=dict)

    def of(self, name: ast.Name) -> Seen:
        """The definitions that a read may see; empty for names that are not local."""
        return self._seen.get(name, _NOTHING)

    def inner(self, name: ast.Name) -> Seen:
        """The same for a read in a comprehension or lambda, where the variable had the value when that was
        evaluated; names that it binds itself included."""
        return self._inner.get(name, _NOTHING)

    def made_by(self, statement: ast.stmt) -> list[Definition]:
        """The definitions that a statement makes."""
        if not self._made:
            for item in self.every:
                self._made.setdefault(id(item.statement), []).append(item)
        return self._made.get(id(statement), [])

    def every_read(self) -> Iterator[tuple[ast.Name, Seen]]:
        """Every read, those in comprehensions and lambdas included, with the definitions that it may see."""
        yield from self._seen.items()
        yield from self._inner.items()

    def reads(self, definitions: Seen) -> list[ast.Name]:
        """The reads that may see one of some definitions."""
        return [name for name, seen in self._seen.items() if seen & definitions]


def reaching(body: list[ast.stmt], arguments: ast.arguments | None) -> Reaching:
    """The definitions of a function body, or of a module (without arguments)."""
    flow = _Walk()
    env: _Env = {}
    if arguments is not None:
        for node in walk(arguments):
            if isinstance(node, ast.arg):
                env[node.arg] = frozenset([flow.define(node, node.arg, None)])
    flow.block(body, env)
    flow.found.every = list(flow.made.values())
    return flow.found


class _Walk:
    def __init__(self) -> None:
        self.found = Reaching()
        self.made: dict[int, Definition] = {}
        self.heads: dict[int, _Env] = {}  # what came round to the beginning of each loop
        self.in_loop = False
        self.news = False  # something came round that had not before

    def define(
        self,
        node: ast.AST,
        name: str,
        statement: ast.stmt | None,
        value: ast.expr | None = None,
        unpacked: tuple[ast.expr, int, int] | None = None,
    ) -> Definition:
        made = self.made.get(id(node))
        if made is None:
            made = self.made[id(node)] = Definition(name, statement, value, unpacked, node)
        return made

    def block(self, body: list[ast.stmt], env: _Env) -> None:
        for statement in body:
            self._statement(statement, env)

    def _statement(self, statement: ast.stmt, env: _Env) -> None:
        if isinstance(statement, (_Function, ast.ClassDef)):
            self._capture(statement)
            env[statement.name] = frozenset([self.define(statement, statement.name, statement)])
            return
        for child in _own(statement):
            self._reads(child, env)
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._bind(target, statement, env, statement.value)
        elif isinstance(statement, ast.AnnAssign):
            if statement.value is not None:
                self._bind(statement.target, statement, env, statement.value)
        elif isinstance(statement, ast.AugAssign):
            if isinstance(statement.target, ast.Name):
                read = env.get(statement.target.id, _NOTHING)
                self._note(statement.target, read)
            self._bind(statement.target, statement, env, None)
        elif isinstance(statement, ast.If):
            other = dict(env)
            self.block(statement.body, env)
            self.block(statement.orelse, other)
            _merge(env, other)
        elif isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            self._loop(statement, env)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, statement, env, None)
            self.block(statement.body, env)
        elif isinstance(statement, ast.Try):
            self._attempt(statement, env)
        elif isinstance(statement, (ast.Global, ast.Nonlocal)):
            self.found.captured.update(statement.names)
        elif isinstance(statement, ast.Match):
            before = dict(env)
            for case in statement.cases:
                inner = dict(before)
                self._others(case.pattern, statement, inner)
                self.block(case.body, inner)
                _merge(env, inner)
        else:
            self._others(statement, statement, env)

    def _loop(self, statement: ast.For | ast.AsyncFor | ast.While, env: _Env) -> None:
        """The outermost loop is walked until nothing new comes round in it and in those inside it."""
        outermost, self.in_loop = not self.in_loop, True
        while True:
            if outermost:
                self.news = False
            _merge(env, self.heads.get(id(statement), {}))
            inner = dict(env)
            if not isinstance(statement, ast.While):
                self._bind(statement.target, statement, inner, None)
            else:
                self._reads(statement.test, inner)
            self.block(statement.body, inner)
            before = dict(env)
            _merge(env, inner)
            if env != before:
                self.heads[id(statement)] = dict(env)
                self.news = True
            if not outermost or not self.news:
                break
        self.in_loop = not outermost
        self.block(statement.orelse, env)

    def _attempt(self, statement: ast.Try, env: _Env) -> None:
        before = dict(env)
        self.block(statement.body, env)
        _merge(before, env)
        self.block(statement.orelse, env)
        for handler in statement.handlers:
            inner = dict(before)
            if handler.name:
                inner[handler.name] = frozenset([self.define(handler, handler.name, statement)])
            self.block(handler.body, inner)
            _merge(env, inner)
        self.block(statement.finalbody, env)

    def _bind(self, target: ast.expr, statement: ast.stmt, env: _Env, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            made = self.define(target, target.id, statement, value)
            env[target.id] = frozenset([made])
            return
        if isinstance(target, (ast.Tuple, ast.List)) and value is not None:
            count = len(target.elts)
            for number, item in enumerate(target.elts):
                if isinstance(item, ast.Name):
                    made = self.define(item, item.id, statement, None, (value, number, count))
                    env[item.id] = frozenset([made])
                else:
                    self._others(item, statement, env)
            return
        self._others(target, statement, env)

    def _others(self, node: ast.AST, statement: ast.stmt, env: _Env) -> None:
        """Whatever else binds names: imports, patterns, nested targets, `del`."""
        for inner in walk(node):
            names: list[str] = []
            if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
                names = [inner.id]
            elif isinstance(inner, ast.alias):
                names = [(inner.asname or inner.name).partition(".")[0]]
            elif isinstance(inner, (ast.MatchAs, ast.MatchStar)) and inner.name:
                names = [inner.name]
            for name in names:
                env[name] = frozenset([self.define(inner, name, statement)])

    def _reads(self, node: ast.AST, env: _Env) -> None:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self._note(node, env.get(node.id, _NOTHING))
            return
        if isinstance(node, _Inner):
            for inner in walk(node):
                if isinstance(inner, ast.Name):
                    self.found.captured.add(inner.id)
                    if inner.id in env and isinstance(inner.ctx, ast.Load):
                        known = self.found._inner.get(inner, _NOTHING)
                        self.found._inner[inner] = known | env[inner.id]
            return
        for child in children(node):
            self._reads(child, env)
        if isinstance(node, ast.NamedExpr):
            made = self.define(node.target, node.target.id, None)
            env[node.target.id] = frozenset([made])

    def _note(self, name: ast.Name, seen: Seen) -> None:
        self.found._seen[name] = self.found._seen.get(name, _NOTHING) | seen

    def _capture(self, node: ast.AST) -> None:
        self.found.captured.update(inner.id for inner in walk(node) if isinstance(inner, ast.Name))


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement itself, what is assigned to left to the binding."""
    for child in children(statement):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


def _merge(env: _Env, other: _Env) -> None:
    for name, seen in other.items():
        env[name] = env.get(name, _NOTHING) | seen
