"""The models that a file builds: where the value of each goes, and what is done with it there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from msgspec import Struct, field

from torchmigrate.codemods.compile.kinds import Built, Event, ModelKinds
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.semantics.flow.mentions import LOOPS, Position, Spot, position, spots
from torchmigrate.semantics.model import Scope
from torchmigrate.source.trees import last_name

# Methods that return the model itself. The first group puts it somewhere or changes its type.
_MOVES = frozenset("bfloat16 cpu cuda double float half hpu ipu mps npu to to_empty type xpu".split())
_MODES = frozenset(["train", "eval"])
_SAME_OBJECT = _MOVES | _MODES | {"apply", "requires_grad_"}
_PARAMETERS = ("parameters", "named_parameters")
_STATE = frozenset(["state_dict", "load_state_dict", "save_pretrained"])
# Their answers differ for a wrapped model: names get a prefix, the only child is the model itself.
_BY_NAME = frozenset(
    """
    children get_buffer get_parameter get_submodule named_buffers named_children named_modules
    named_parameters __class__ __dict__
    """.split()
)
_LEAVE = frozenset("compile fuse_model jit qconfig share_memory".split())
_LOOPS = (*LOOPS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Def = (ast.FunctionDef, ast.AsyncFunctionDef)


RUNS = (Event.CALL, Event.USE, Event.WRAP, Event.COPIES, Event.SHARD)
_STILL_MODEL = (Event.MOVE, Event.TO_CPU, Event.MODE, Event.PREPARE, Event.WRAP, Event.COPIES, Event.SHARD)


class ModelEvent(Struct, eq=False):
    """Something that happens to a model.

    mention: the expression that is the model. node: what is done with it: a call, an attribute.
    loops: id() of the loops and comprehensions around it, in its function.
    nested: in another function than the one that builds the model, so that it is unknown when it runs.
    """

    event: Event
    mention: ast.AST
    node: ast.AST
    spot: Spot
    loops: frozenset[int]
    home: ast.AST | None
    nested: bool

    @property
    def position(self) -> Position:
        return position(self.spot, self.mention)  # type: ignore[arg-type]


class Build(Struct, eq=False):
    """An assignment of a new model to a variable: a name, or an attribute of `self`.

    core: the call that makes the model, without the `.to(device)` after it.
    """

    target: ast.Name | ast.Attribute
    core: ast.Call
    kind: Built
    spot: Spot


class Life(Struct, eq=False):
    """A variable that holds a model, in the scope that builds it: the builds, and all that happens to it.

    happenings: in source order. holders: the expressions that are the model.
    """

    name: str
    scope: Scope
    builds: list[Build] = field(default_factory=list)
    happenings: list[ModelEvent] = field(default_factory=list)
    holders: set[ast.AST] = field(default_factory=set)

    def has(self, *events: Event) -> bool:
        return any(item.event in events for item in self.happenings)


class Lives:
    """The lives of the models of a file."""

    def __init__(self, file: FileContext) -> None:
        self.flow = file.flow
        self.kinds = ModelKinds(file.flow, file.source)
        self._forward = Forward(file.flow)
        self._parents = file.names.parents
        self._tree = file.tree
        self._optimizes = "optim" in file.source.text.lower()
        # Where the call that builds a model does not tell that it does, only these variables are followed.
        self._with_parameters = {
            last_name(owner.value if getattr(owner := node.value, "attr", "") == "module" else owner)  # type: ignore[attr-defined]
            for node in file.names.nodes(ast.Attribute)
            if node.attr in _PARAMETERS
        }
        self._spots: dict[int, Spot] = {}

    def every(self) -> list[Life]:
        """The lives of all variables to which calls are assigned that may build models."""
        found: dict[tuple[ast.AST | None, str], Life] = {}
        for build in self._builds():
            home = self.flow.index.home_of(build.target)
            name = ast.unparse(build.target)
            life = found.setdefault((home, name), Life(name, self.flow.index.scope_at(home)))
            life.builds.append(build)
        made = {build.core for life in found.values() for build in life.builds}
        for life in found.values():
            self._follow(life, made)
        return list(found.values())

    # ---- builds ----------------------------------------------------------------------------------------

    def _builds(self) -> Iterator[Build]:
        statements: list[ast.Assign | ast.AnnAssign] = [*self.flow.names.nodes(ast.Assign)]
        for statement in [*statements, *self.flow.names.nodes(ast.AnnAssign)]:
            if len(getattr(statement, "targets", ())) > 1:
                continue  # one model, several names
            for target, value in _assigned(statement):
                if isinstance(value, ast.IfExp):
                    other = value.orelse
                    if not isinstance(other, ast.Call) or self.kinds.built(other) is Built.OTHER:
                        continue
                    value = value.body
                while _is_method_of_same(value):
                    value = value.func.value  # type: ignore[attr-defined]
                if not isinstance(value, ast.Call) or not self._is_variable(target):
                    continue
                kind = self.kinds.built(value)
                if kind is Built.MODEL or (
                    kind is Built.UNKNOWN and last_name(target) in self._with_parameters
                ):
                    assert isinstance(target, (ast.Name, ast.Attribute)), "what else has a name"
                    yield Build(target, value, kind, self._spot(statement))

    def _is_variable(self, target: ast.expr) -> bool:
        home = self.flow.index.home_of(target)
        if isinstance(target, ast.Name):
            return not isinstance(home, (ast.ClassDef, ast.Lambda))
        return isinstance(target, ast.Attribute) and self.flow.classes.owner_of(target.value) is not None

    def _spot(self, statement: ast.stmt) -> Spot:
        if not self._spots:
            self._spots = {id(spot.statement): spot for spot in spots(self._tree.body)}
        return self._spots[id(statement)]

    # ---- events ----------------------------------------------------------------------------------------

    def _follow(self, life: Life, made: set[ast.Call]) -> None:
        """Find all that happens to a model, as far as the file shows where it goes."""
        todo: list[ast.AST] = [build.core for build in life.builds]
        for mention in todo:
            goes = mention
            for event, node in self._events(mention, life.name):
                life.happenings.append(self._event(event, mention, node, life))
                goes = node if event in _STILL_MODEL else goes
            while (same := self._same(goes)) is not None:
                goes = same
            life.holders.update([mention, goes])
            for each in self._forward.of(goes):
                if each not in life.holders and each not in made:
                    life.holders.add(each)
                    todo.append(each)
        run_in = {item.home for item in life.happenings if item.event in RUNS}
        for item in life.happenings[:]:
            own = self._own(item.node)
            inside = {own, *self.flow.classes.methods.get(own, {}).values()} - {None}  # type: ignore[call-overload]
            if not run_in.isdisjoint(inside):
                life.happenings.append(self._event(Event.USE, item.mention, item.node, life))
        life.happenings.sort(key=lambda item: item.position)

    def _event(self, event: Event, mention: ast.AST, node: ast.AST, life: Life) -> ModelEvent:
        loops = set()
        inner = mention
        for outer in self.flow.index.around(mention):
            if isinstance(outer, (*_Def, ast.ClassDef, ast.Lambda)):
                break
            if isinstance(outer, _LOOPS) and getattr(outer, "iter", None) is not inner:
                loops.add(id(outer))
            inner = outer
        statement = self.flow.index.statement_of(mention)
        assert statement is not None, "expressions stand in statements"
        home = self.flow.index.home_of(mention)
        nested = home is not self.flow.index.home_of(life.builds[0].target)
        return ModelEvent(event, mention, node, self._spot(statement), frozenset(loops), home, nested)

    def _events(self, node: ast.AST, name: str) -> Iterator[tuple[Event, ast.AST]]:
        """What is done with a model where it is mentioned, the nearest first; name: of its variable."""
        while True:
            while (same := self._same(node)) is not None:
                if isinstance(same, ast.Call):
                    yield _prepared(same), same
                node = same
            parent = self._parents[node]
            if isinstance(parent, ast.Attribute):
                yield from self._attribute(parent)
                return
            if isinstance(parent, ast.Call) and parent.func is node:
                yield Event.CALL, parent
                return
            if isinstance(parent, ast.Dict):
                yield Event.STATE, node  # {"model": model} is made to be saved
            given = self._call_around(node)
            if given is None:
                break
            event = self.kinds.role(given)
            if event in (Event.STATE, Event.IDENTITY) and self._own(given) is not None:
                event = Event.GIVEN  # its body is in sight
            yield event, given
            if event is not Event.MOVE:
                return
            node = given
        if isinstance(parent, (ast.Return, ast.Yield)):
            yield Event.RETURNED, node
        elif isinstance(parent, (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred)):
            statement = self.flow.index.statement_of(node)
            if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or node not in [
                value for target, value in _assigned(statement) if ast.unparse(target) == name
            ]:
                yield (Event.RETURNED if isinstance(statement, ast.Return) else Event.STORED), node
        elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            if all(ast.unparse(target) != name for target in targets):
                yield Event.STORED, node
        elif (isinstance(parent, ast.Subscript) and parent.value is node) or (
            isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)) and parent.iter is node
        ):
            yield Event.IDENTITY, node

    def _same(self, node: ast.AST) -> ast.expr | None:
        """The expression around a model that is the same one, or a wrapper: `.module`, `.cuda()`."""
        outer = self._parents[node]
        if not isinstance(outer, ast.Attribute):
            return None
        call = self._parents[outer]
        return outer if outer.attr == "module" else call if _is_method_of_same(call, outer) else None

    def _attribute(self, node: ast.Attribute) -> Iterator[tuple[Event, ast.AST]]:
        top: ast.AST = node
        while isinstance(outer := self._parents[top], (ast.Attribute, ast.Subscript)) and outer.value is top:
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
            given = self._call_around(top)
            if given is not None and self.kinds.role(given) is Event.LEAVE:
                yield Event.LEAVE, given
        if node.attr in _PARAMETERS:
            yield Event.PARAMETERS, node
            if self._trains(node):
                yield Event.TRAINED, node

    def _trains(self, node: ast.AST) -> bool:
        """Whether the parameters go to an optimizer, or into a variable where there is one."""
        for outer in self.flow.index.around(node):
            if isinstance(outer, ast.Call):
                names = self.kinds.last_names(outer.func)
                if self.kinds.role(outer) is Event.TRAINED or any(
                    name.startswith("clip_grad") for name in names
                ):
                    return True
                if "sum" in names:
                    return False
            if isinstance(outer, ast.stmt):
                assigns = isinstance(outer, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr))
                return assigns and self._optimizes
        return False

    def _call_around(self, node: ast.AST) -> ast.Call | None:
        """The call that an expression is an argument of, directly or inside a tuple, list or dict."""
        parent = self._parents[node]
        while isinstance(parent, (ast.Starred, ast.keyword, ast.Tuple, ast.List, ast.Dict)):
            node, parent = parent, self._parents[parent]
        return parent if isinstance(parent, ast.Call) and parent.func is not node else None

    def _own(self, node: ast.AST) -> ast.AST | None:
        """The function or class of the file that a call calls."""
        return self.flow.definition(node.func) if isinstance(node, ast.Call) else None


def _is_method_of_same(node: ast.AST, function: ast.AST | None = None) -> TypeGuard[ast.Call]:
    """Whether a call returns the model whose method it calls (by `function`, if that is given)."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _SAME_OBJECT and function in (None, node.func)


def _assigned(statement: ast.Assign | ast.AnnAssign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Target and value of each assignment that a statement makes, tuples taken apart."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    value = statement.value
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
                yield from zip(target.elts, value.elts, strict=True)
        elif value is not None:
            yield target, value


def _prepared(call: ast.Call) -> Event:
    method = last_name(call.func)
    if method in _MODES:
        return Event.MODE
    if method in ("apply", "requires_grad_"):
        return Event.PREPARE
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Call) and len(first.args) == 1:  # torch.device("cpu")
        first = first.args[0]
    to_cpu = isinstance(first, ast.Constant) and first.value == "cpu"
    return Event.TO_CPU if method == "cpu" or to_cpu else Event.MOVE
