"""The life of the models that a scope builds: each mention of the variable, and what it does to it.

The mentions are those of `semantics.flow.mentions`; of its own is the order of what happens to a model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmigrate.codemods.compile.builds import MODES, SAME_OBJECT, Builds, assigned, is_method_of_same
from torchmigrate.codemods.compile.events import Build, Event, Life, ModelEvent
from torchmigrate.codemods.compile.kinds import ModelKinds, Role
from torchmigrate.semantics.flow.mentions import Mention, Mentions, parameters, spots, variable
from torchmigrate.semantics.model import Scope, SemanticModel
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk

_STATE = frozenset(["state_dict", "load_state_dict", "save_pretrained"])
# Their answers differ for a wrapped model: names get a prefix, the only child is the model itself.
_BY_NAME = frozenset(
    """
    children get_buffer get_parameter get_submodule named_buffers named_children named_modules
    named_parameters __class__ __dict__
    """.split()
)
_LEAVE = frozenset("compile fuse_model jit qconfig share_memory".split())
_OPTIMIZER = "optim"
_MAX_CALLS = 3  # how deep calls of the file's own functions are followed


class ModelHistories:
    """The lives of the models in each scope of a file.

    Args:
        names: what the resolver found in the file.
        source: its text.
    """

    def __init__(self, names: SemanticModel, source: Source) -> None:
        self.names = names
        self.source = source
        self.kinds = ModelKinds(names, source)
        self.builds = Builds(names, self.kinds)
        self._optimizes = _OPTIMIZER in source.text.lower()
        self._given: dict[tuple[int, str], frozenset[Event]] = {}

    def of(self, scope: Scope) -> list[Life]:
        """The variables of a module or function to which calls are assigned that may build models."""
        body = scope.node.body  # type: ignore[attr-defined]
        if not isinstance(body, list):
            return []  # a lambda assigns nothing
        builds = [build for build in self.builds.of(scope) if isinstance(build.target, ast.Name)]
        return self._lives(builds, body, scope)

    def of_objects(self, owner: ast.ClassDef) -> Iterator[tuple[Scope, list[Life]]]:
        """The attributes of `self` to which a method of a class assigns models, with the method's scope.

        Attributes that are also assigned something else are left out. What other methods do is `nested`.
        """
        methods = [item for item in owner.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
        stored: dict[str, set[int]] = {}
        for spot in spots(owner.body):
            statement = spot.statement
            if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                continue
            if not isinstance(statement.value, ast.Constant):  # `self.model = None`
                for node in walk(statement):
                    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                        stored.setdefault(variable(node), set()).add(id(statement))
        for method in methods:
            scope = self.kinds.scopes[id(method)]
            builds = [build for build in self.builds.of(scope) if isinstance(build.target, ast.Attribute)]
            lives = self._lives(builds, owner.body, scope, method)
            yield scope, [life for life in lives if stored[life.name] <= life.statements()]

    def _lives(
        self, builds: list[Build], body: list[ast.stmt], scope: Scope, method: ast.AST | None = None
    ) -> list[Life]:
        """The lives of what is built, from all that `body` does with it."""
        lives: dict[str, Life] = {}
        for build in builds:
            lives.setdefault(build.name, Life(build.name, [])).builds.append(build)
        if not lives:
            return []
        aliases = dict.fromkeys(lives, "")
        mentions = Mentions(self.source, body, frozenset(lives), self._hidden, method)
        for name, life in lives.items():
            self._follow(life, name, mentions, scope, aliases)
        others = {alias: name for alias, name in aliases.items() if name}
        if others:  # `model_without_ddp = model`: what happens to it happens to the model
            again = Mentions(self.source, body, frozenset(others), self._hidden, method)
            for alias, name in others.items():
                self._follow(lives[name], alias, again, scope, {})
        for life in lives.values():
            life.happenings.sort(key=lambda item: item.mention.position)
        return list(lives.values())

    def _hidden(self, node: ast.AST) -> frozenset[str]:
        scope = self.kinds.scopes.get(id(node))
        if scope is None:
            return parameters(node.args)  # type: ignore[attr-defined]
        return frozenset(scope.bindings) - scope.globals - scope.nonlocals

    # ---- mentions ------------------------------------------------------------------------------------

    def _follow(
        self,
        life: Life,
        name: str,
        mentions: Mentions,
        scope: Scope,
        aliases: dict[str, str],
    ) -> None:
        """Add what happens to a variable (the life's own, or another name of the model) to the life."""
        for mention in mentions.of[name]:
            for event, node in self._events(mention, mentions, scope, 0):
                life.happenings.append(ModelEvent(event, mention, node))
                self._rebinding(event, node, mention, mentions, life, name, aliases)

    def _rebinding(
        self,
        event: Event,
        node: ast.AST,
        mention: Mention,
        mentions: Mentions,
        life: Life,
        name: str,
        aliases: dict[str, str],
    ) -> None:
        """Remember under which names the same model goes on."""
        if event not in (
            Event.MOVE,
            Event.TO_CPU,
            Event.MODE,
            Event.PREPARE,
            Event.WRAP,
            Event.COPIES,
            Event.SHARD,
            Event.STORED,
        ):
            return
        top = node
        while (outer := mentions.parent(top)) is not None and not isinstance(
            outer, (ast.stmt, ast.Tuple, ast.List)
        ):
            top = outer
            if isinstance(outer, ast.Call) and outer is not node and not is_method_of_same(outer):
                return
        for target, value in assigned(mention.spot.statement):
            if value is not top or not variable(target):
                continue
            if variable(target) == name:
                life.rebinds.add((id(mention.spot.statement), name))
            elif name == life.name and isinstance(target, ast.Name) and isinstance(mention.node, ast.Name):
                aliases.setdefault(target.id, name)

    def _events(
        self, mention: Mention, mentions: Mentions, scope: Scope, depth: int
    ) -> Iterator[tuple[Event, ast.AST]]:
        node: ast.AST = mention.node
        while True:
            parent = mentions.parent(node)
            if isinstance(parent, ast.Attribute) and parent.value is node:
                call = mentions.parent(parent)
                if parent.attr == "module":
                    node = parent
                    continue
                if parent.attr in SAME_OBJECT and isinstance(call, ast.Call) and call.func is parent:
                    yield _prepared(parent.attr, call), call
                    node = call
                    continue
                yield from self._attribute(parent, mentions, scope)
                return
            if isinstance(parent, ast.IfExp) and parent.test is not node:
                node = parent
                continue
            if isinstance(parent, ast.Call) and parent.func is node:
                yield Event.CALL, parent
                return
            given = _call_around(node, mentions)
            if isinstance(parent, ast.Dict):
                yield Event.STATE, node  # {"model": model} is made to be saved
            if given is not None:
                role = self.kinds.role(given, scope)
                if role is Role.SAME:
                    yield Event.MOVE, given
                    node = given
                    continue
                yield from ((event, given) for event in self._given_to(given, node, role, scope, depth))
                return
            break
        if isinstance(parent, (ast.Return, ast.Yield)):
            yield Event.RETURNED, node
        elif any(
            value is node and variable(target) == variable(mention.node)
            for target, value in assigned(mention.spot.statement)
        ):
            return  # model = model.cuda()
        elif isinstance(parent, (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred)):
            returned = isinstance(mention.spot.statement, ast.Return)
            yield (Event.RETURNED if returned else Event.STORED), node
        elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            yield Event.STORED, node
        elif (isinstance(parent, ast.Subscript) and parent.value is node) or (
            isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)) and parent.iter is node
        ):
            yield Event.IDENTITY, node

    def _attribute(
        self, node: ast.Attribute, mentions: Mentions, scope: Scope
    ) -> Iterator[tuple[Event, ast.AST]]:
        top: ast.AST = node
        while (
            isinstance(outer := mentions.parent(top), (ast.Attribute, ast.Subscript)) and outer.value is top
        ):
            top = outer
        if node.attr in _LEAVE:
            yield Event.LEAVE, node
        elif isinstance(getattr(top, "ctx", None), (ast.Store, ast.Del)):
            yield Event.CHANGE, node
        elif node.attr in _STATE:
            yield Event.STATE, node
        elif node.attr in _BY_NAME:
            yield Event.IDENTITY, node
        else:  # model.encoder = torch.compile(model.encoder)
            given = _call_around(top, mentions)
            if given is not None and self.kinds.role(given, scope) is Role.LEAVE:
                yield Event.LEAVE, given
        if node.attr in ("parameters", "named_parameters"):
            yield Event.PARAMETERS, node
            if self._trains(node, mentions, scope):
                yield Event.TRAINED, node

    def _trains(self, node: ast.AST, mentions: Mentions, scope: Scope) -> bool:
        """Whether the parameters go to an optimizer, or into a variable where there is one."""
        statement: ast.AST = node
        for outer in mentions.around(node):
            if isinstance(outer, ast.Call):
                if self.kinds.role(outer, scope) is Role.OPTIMIZER:
                    return True
                if any(name.startswith("clip_grad") for name in self.kinds.last_names(outer.func, scope)):
                    return True
                if any(name == "sum" for name in self.kinds.last_names(outer.func, scope)):
                    return False
            statement = outer
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
            return self._optimizes
        return False

    # ---- what other functions do with it -------------------------------------------------------------

    def _given_to(self, call: ast.Call, node: ast.AST, role: Role, scope: Scope, depth: int) -> list[Event]:
        own = self.kinds.definition(call.func, scope)
        inside: frozenset[Event] = frozenset()
        if isinstance(own, ast.ClassDef):
            inside = self._in_class(own)
        elif isinstance(own, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = self._in_function(own, call, node, scope, depth)
        found = [event for event in _TOLD if event in inside]
        if role is Role.STATE and own is not None and not found:
            role = Role.OTHER  # its body is in sight
        if role is Role.IDENTITY and own is not None:
            role = Role.OTHER
        found.append(_BY_ROLE[role])
        if own is not None and Event.CALL in inside:
            found.append(Event.USE)
        return found

    def _in_class(self, node: ast.ClassDef) -> frozenset[Event]:
        """What a class of the file may do with a model that it is made with."""
        key = (id(node), "")
        known = self._given.get(key)
        if known is None:
            found = set()
            if self.kinds.mentions_compiler(node):
                found.add(Event.LEAVE)
            attributes = {inner.attr for inner in walk(node) if isinstance(inner, ast.Attribute)}
            if attributes & _STATE:
                found.add(Event.STATE)
            known = self._given[key] = frozenset(found)
        return known

    def _in_function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        call: ast.Call,
        argument: ast.AST,
        scope: Scope,
        depth: int,
    ) -> frozenset[Event]:
        """What a function of the file does with the parameter that an argument is bound to."""
        name = _parameter(node, call, argument)
        inner = self.kinds.scopes.get(id(node))
        if name is None or inner is None or depth >= _MAX_CALLS:
            return frozenset()
        key = (id(node), name)
        known = self._given.get(key)
        if known is None:
            self._given[key] = frozenset()  # for a function that calls itself
            mentions = Mentions(self.source, node.body, frozenset([name]), self._hidden)
            found: set[Event] = set()
            for mention in mentions.of[name]:
                found.update(event for event, _ in self._events(mention, mentions, inner, depth + 1))
            if Event.CHANGE in found:
                found.add(Event.IDENTITY)  # an attribute set on the wrapper may not reach the model
            known = self._given[key] = frozenset(found)
        return known


# What matters to the caller of what a function does with its parameter.
_TOLD = (
    Event.LEAVE,
    Event.STATE,
    Event.IDENTITY,
    Event.COPIES,
    Event.SHARD,
    Event.MODE,
    Event.PARAMETERS,
    Event.TRAINED,
)
_BY_ROLE = {
    Role.WRAP: Event.WRAP,
    Role.COPIES: Event.COPIES,
    Role.SHARD: Event.SHARD,
    Role.LEAVE: Event.LEAVE,
    Role.STATE: Event.STATE,
    Role.IDENTITY: Event.IDENTITY,
    Role.OPTIMIZER: Event.TRAINED,
    Role.INSPECT: Event.LOOK,
    Role.USE: Event.USE,
    Role.OTHER: Event.GIVEN,
}


def _prepared(method: str, call: ast.Call) -> Event:
    if method in MODES:
        return Event.MODE
    if method in ("apply", "requires_grad_"):
        return Event.PREPARE
    first = call.args[0] if call.args else None
    to_cpu = isinstance(first, ast.Constant) and first.value == "cpu"
    if isinstance(first, ast.Call) and len(first.args) == 1:  # torch.device("cpu")
        to_cpu = isinstance(first.args[0], ast.Constant) and first.args[0].value == "cpu"
    return Event.TO_CPU if method == "cpu" or to_cpu else Event.MOVE


def _call_around(node: ast.AST, mentions: Mentions) -> ast.Call | None:
    """The call that an expression is an argument of, directly or inside a tuple, list or dict."""
    parent = mentions.parent(node)
    while isinstance(parent, (ast.Starred, ast.keyword, ast.Tuple, ast.List, ast.Dict)):
        node, parent = parent, mentions.parent(parent)
    return parent if isinstance(parent, ast.Call) and parent.func is not node else None


def _parameter(node: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, argument: ast.AST) -> str | None:
    """The parameter that an argument is bound to; None where a star or a container makes that unclear."""
    for keyword in call.keywords:
        if keyword.value is argument:
            return keyword.arg
    names = [item.arg for item in (*node.args.posonlyargs, *node.args.args)]
    for number, item in enumerate(call.args[: len(names)]):
        if isinstance(item, ast.Starred):
            return None
        if item is argument:
            return names[number]
    return None
