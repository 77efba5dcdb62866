"""Where models and their states are used, and what each use becomes when the states are dicts."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.functional_state.states import (
    BUNDLE,
    COPIES,
    STATE,
    TREE_MAPS,
    Run,
    States,
    gradient_of,
)
from torchmigrate.codemods.functional_state.writer import StateWriter
from torchmigrate.rewrite.code import code
from torchmigrate.rewrite.nodes import keyed_comprehension
from torchmigrate.semantics.flow.calls import constant_key
from torchmigrate.semantics.flow.domain import OPEN
from torchmigrate.source.trees import walk

_KEYS = ("name", "key", "parameter_name", "name_of_parameter")
_ITERATING = frozenset(("zip", "enumerate", "sum", "any", "all", "list", "tuple", "map", "iter"))
_TAKING_ANY = frozenset(("len", "print", "id", "bool"))
_TAKING_TENSORS = frozenset(
    f"torch.nn.utils.{name}"
    for name in ("clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "get_total_norm")
)
_Comprehension = ast.ListComp | ast.GeneratorExp


class Uses:
    """Checks every use and collects the edits.

    as_value: a functional model is used as a function, not only called.
    module_methods: `fmodel.eval()`.
    """

    def __init__(self, states: States, writer: StateWriter) -> None:
        self.states = states
        self.writer = writer
        self.index = states.flow.index
        self.as_value = False
        self.module_methods: list[ast.Call] = []
        self._done: set[ast.AST] = set()  # states whose use is rewritten already
        self._keys: dict[ast.AST, str] = {}  # targets of comprehensions that a key takes the place of

    def run(self) -> None:
        """Collect all edits.

        Raises:
            Unclear: the state is used in a way that is not understood.
        """
        every = list(self.states.every())
        for call in self.states.calls_of_models:
            self._check_states(call)
        for made in self.states.wanted:
            self._become_state(made)
        for node in every:
            kinds = self.states.kinds(node)
            if len(kinds) > 1 or (kinds and self.states.of(node) - kinds - {OPEN}):
                self.fail(node, "holds the state of a model and other values")
            if kinds and node not in self._done and not self._goes_on(node):
                self._rewrite(node, next(iter(kinds)))
            self._check_function(node)
        self._check_attributes()

    def fail(self, node: ast.expr, why: str) -> None:
        """Give up."""
        text = " ".join(self.writer.source.shown(node).split())
        raise Unclear(f"`{text}` {why}" if len(text) < 60 else f"line {node.lineno} {why}", node)

    def _check_states(self, call: ast.Call) -> None:
        for argument in call.args[: self.states.model(call.func)]:
            if self.states.of(argument) and not self.states.is_state(argument):
                self.fail(argument, "is passed in place of the state of a model")

    # ---- what takes a value on -------------------------------------------------------------------------

    def _goes_on(self, node: ast.expr) -> bool:
        """Whether an expression is only given to what the flow follows, or to what takes anything."""
        outer = self.index.parent(node)
        if isinstance(outer, (ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Await, ast.UnaryOp, ast.Expr)):
            return True
        if isinstance(outer, (ast.If, ast.While, ast.Assert, ast.Lambda, ast.arguments)):
            return True
        if isinstance(outer, ast.Compare):
            return all(isinstance(item, (ast.Is, ast.IsNot)) for item in outer.ops)
        if isinstance(outer, (ast.Assign, ast.AnnAssign)):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            return all(self._is_followed(target, node) for target in targets)
        if isinstance(outer, (ast.Tuple, ast.List)):
            return isinstance(outer.ctx, ast.Load) and outer not in self.states.wanted
        if isinstance(outer, ast.Return):
            home = self.index.home_of(outer)
            if home not in self.states.runs:
                name = getattr(home, "name", "")
                raise Unclear(f"`{name}` uses the parameters, but other files or unknown code may call it")
            return True
        call = self.index.parent(outer) if isinstance(outer, ast.keyword) else outer
        return isinstance(call, ast.Call) and call.func is not node and self._is_argument(node, call)

    def _is_followed(self, target: ast.expr, value: ast.expr) -> bool:
        if isinstance(target, (ast.Tuple, ast.List)):
            if self.states.is_state(value) or any(isinstance(item, ast.Starred) for item in target.elts):
                return False
            return all(self._is_followed(item, item) for item in target.elts if self.states.kinds(item))
        owner = self.states.flow.classes.owner_of
        return isinstance(target, ast.Name) or (
            isinstance(target, ast.Attribute) and owner(target.value) is not None
        )

    def _is_argument(self, node: ast.expr, call: ast.Call) -> bool:
        """Whether an expression goes to a functional model, or to a function of the file."""
        states, how = self.states, self.states.transform(call)
        if how == "partial" and node is not call.args[0]:
            run = states.run(ast.Call(call, [], []))
        elif how and node is call.args[0]:
            self.as_value |= bool(states.model(node))
            return bool(states.model(node)) or states.made(node) is not None
        else:
            run = states.run(call)
            name = states.qualified(call.func)
            if name in _TAKING_ANY or name in COPIES or name in TREE_MAPS:
                if name in COPIES and not states.is_state(node):
                    self.fail(call, "copies a functional model")
                if name in TREE_MAPS and not all(map(states.is_state, call.args[1:])):
                    self.fail(call, "combines the state of a model with other values")
                return True
        wanted = states.model(run.callee)
        if wanted and node in run.call.args[:wanted]:
            self._check_dims(run, node)
            return not any(isinstance(item, ast.Starred) for item in run.call.args[:wanted])
        made = states.flow.definition(call.func)
        start = states.flow.classes.method(made, "__init__") if isinstance(made, ast.ClassDef) else None
        if not states.takes(run.function or start, node):
            return False
        self._check_dims(run, node)
        return True

    def _check_dims(self, run: Run, node: ast.expr) -> None:
        """A transform must not say something of each parameter, since that would have to be a dict then."""
        for transform, given in run.around:
            number = next((number for number, item in enumerate(given) if item is node), None)
            if number is None:
                continue
            if self.states.transform(transform) != "vmap":
                if None in gradient_of(transform):
                    self.fail(transform, "takes gradients of unknown arguments")
                continue
            dims = {item.arg: item.value for item in transform.keywords}.get("in_dims")
            dims = transform.args[1] if len(transform.args) > 1 else dims
            if isinstance(dims, (ast.Tuple, ast.List)) and number < len(dims.elts):
                dims = dims.elts[number]
            none = isinstance(dims, ast.Constant) and dims.value is None
            if dims is not None and not none and not isinstance(constant_key(dims), int):
                self.fail(run.callee, "is mapped over dimensions that cannot be analyzed")

    # ---- functions and attributes ----------------------------------------------------------------------

    def _check_function(self, node: ast.expr) -> None:
        """Refuse a function that takes or gives a state where unknown code may call it."""
        made = self.states.made(node)
        inner, model = made, False
        while isinstance(inner, ast.Call):
            model = model or bool(self.states.model(inner.args[0]))
            inner = self.states.made(inner.args[0])
        outer = self.index.parent(node)
        if made is None or (isinstance(outer, ast.Call) and outer.func is node):
            return
        if not model and not self.states.is_tracked(inner):
            return
        if not self._goes_on(node):
            self.fail(
                node,
                "is passed to code that is not in this file"
                if isinstance(outer, ast.Call)
                else "is used in a way that cannot be analyzed",
            )

    def _check_attributes(self) -> None:
        classes = self.states.flow.classes
        for node in self.states.flow.names.nodes(ast.Attribute):
            if not isinstance(node.ctx, ast.Store) or not self.states.kinds(node):
                continue
            for mention in self.index.attributes(node.attr):
                if classes.owner_of(mention.value) is None:
                    raise Unclear(f"`.{node.attr}` is used in a way that cannot be analyzed", mention)
            if self.states.model(node) and self.writer.is_submodule(node):
                self.fail(node, "would register the parameters of the copy")

    # ---- rewritten uses --------------------------------------------------------------------------------

    def _rewrite(self, node: ast.expr, kind: str | int) -> None:
        """Rewrite a use that the flow does not follow."""
        outer = self.index.parent(node)
        call = self.index.parent(outer) if isinstance(outer, ast.keyword) else outer
        if isinstance(outer, ast.Attribute) and kind != BUNDLE:
            self._attribute(outer, kind)
        elif isinstance(outer, ast.Call) and outer.func is node and kind != STATE:
            return  # `functional_call` is written when all uses are known
        elif isinstance(outer, ast.Subscript) and outer.value is node:
            self._item(outer, kind)
        elif kind != STATE:
            self.fail(node, "is used in a way that cannot be analyzed")
        elif isinstance(call, ast.Call):
            self._argument(node, call)
        elif isinstance(outer, (ast.For, ast.AsyncFor, ast.comprehension, ast.Starred, ast.Assign)) or (
            isinstance(outer, ast.Dict) and _key_of(outer, node) == "params"
        ):
            if isinstance(outer, ast.Assign) and not isinstance(outer.targets[0], (ast.Tuple, ast.List)):
                self.fail(outer.targets[0], "cannot be analyzed")
            self.writer.replace(node, code("$x.values()", x=node))
        else:
            self.fail(node, "is used in a way that cannot be analyzed")

    def _attribute(self, node: ast.Attribute, kind: str | int) -> None:
        call = self.index.parent(node)
        if kind == STATE or node.attr not in ("eval", "train") or not isinstance(call, ast.Call):
            self.fail(node, "no longer exists")
        elif isinstance(call, ast.Call):
            self.module_methods.append(call)

    def _item(self, node: ast.Subscript, kind: str | int) -> None:
        if kind == BUNDLE:
            if not isinstance(constant_key(node.slice), int):
                self.fail(node, "takes one of several objects")
            return
        if kind != STATE or not isinstance(node.ctx, ast.Load):
            self.fail(node, "is changed in place" if kind == STATE else "takes a part of a function")
        if isinstance(node.slice, ast.Name):
            key = self._keys.get(self.index.comprehension_target(node.slice) or node)
            if key is not None:
                self.writer.replace(node.slice, code("$key", key=key))
                return
        self.writer.replace(node.value, code("list($x.values())", x=node.value))

    def _argument(self, node: ast.expr, call: ast.Call) -> None:
        name = self.states.qualified(call.func)
        inputs = name == "torch.autograd.grad" or getattr(call.func, "attr", "") == "backward"
        if inputs:
            self.writer.replace(node, code("tuple($x.values())", x=node))
        elif name in _ITERATING or name.startswith("torch.optim.") or name in _TAKING_TENSORS:
            self.writer.replace(node, code("$x.values()", x=node))
        else:
            shown = self.writer.source.shown(call.func)
            self.fail(node, f"is passed to `{shown}`, which is not in this file")

    # ---- lists that become dicts -----------------------------------------------------------------------

    def _become_state(self, made: ast.AST) -> None:
        """Write a list of tensors that a model gets as a dict."""
        if isinstance(made, ast.ListComp):
            self._comprehension(made, made)
        elif isinstance(made, ast.Call):
            inner = made.args[0]
            if isinstance(inner, (ast.GeneratorExp, ast.ListComp)):
                self._comprehension(inner, made)
                return
            if not self.states.is_state(inner):
                self.fail(inner, "is passed in place of the state of a model")
            self._done.add(inner)
            self.writer.replace(made.func, code("dict"))
        elif isinstance(made, (ast.List, ast.Tuple)):
            for method in self.index.attributes("append"):
                if any(step.node is made for step in self.states.flow.origins(method.value)):
                    self._append(method.value, method)
            self.writer.replace(made, code("{}"))

    def _append(self, node: ast.expr, method: ast.Attribute) -> None:
        """`found.append(x)` as `found[name] = x`, in a loop that gets the name."""
        call = self.index.parent(method)
        statement = self.index.parent(call) if call is not None else None
        loop = self.index.parent(statement) if isinstance(statement, ast.Expr) else None
        if (
            not isinstance(loop, (ast.For, ast.AsyncFor))
            or not isinstance(call, ast.Call)
            or len(call.args) != 1
        ):
            self.fail(method, "cannot be analyzed")
            return
        key = self._key()
        if loop not in self._done:
            self._done.add(loop)
            self._keyed(loop.target, loop.iter, key)
        self._done.add(node)
        self.writer.replace(call, code("$found[$key] = $x", found=node, key=key, x=call.args[0]))

    def _comprehension(self, node: _Comprehension, whole: ast.expr) -> None:
        """`[p - g for p, g in zip(params, grads)]` as a dict with the keys of the first state in it."""
        part = node.generators[0]
        if len(node.generators) > 1 or part.ifs or part.is_async:
            self.fail(node, "creates the state of a model in a way that cannot be analyzed")
        key = self._key()
        if not self._counted(part.target, part.iter, node.elt, key):
            self._keyed(part.target, part.iter, key)
        self.writer.rewriting.record(keyed_comprehension(self.writer.source, node, whole, key))

    def _key(self) -> str:
        """The variable for the name of a parameter."""
        return self.writer.fresh(*_KEYS)

    def _keyed(self, target: ast.expr, source: ast.expr, key: str) -> None:
        """`for p in params` as `for name, p in params.items()`."""
        items: Sequence[tuple[ast.expr, ast.expr]] = [(source, target)]
        zipped = isinstance(source, ast.Call) and self.states.qualified(source.func) == "zip"
        if zipped and isinstance(source, ast.Call) and isinstance(target, ast.Tuple):
            items = list(zip(source.args, target.elts, strict=False))
        states = [(item, part) for item, part in items if self.states.is_state(item)]
        if not states:
            self.fail(source, "contains no state of a model that provides the keys")
        state, named = states[0]
        self._done.add(state)
        self.writer.replace(state, code("$x.items()", x=state))
        self.writer.replace(named, code("($key, $x)" if zipped else "$key, $x", key=key, x=named))

    def _counted(self, target: ast.expr, source: ast.expr, element: ast.expr, key: str) -> bool:
        """`for i in range(len(params))` as `for name in params`, or as `for i, name in enumerate(params)`."""
        size = source.args[0] if isinstance(source, ast.Call) and len(source.args) == 1 else None
        counted = size.args[0] if isinstance(size, ast.Call) and len(size.args) == 1 else None
        if not isinstance(source, ast.Call) or not isinstance(size, ast.Call) or counted is None:
            return False
        named = [self.states.qualified(source.func), self.states.qualified(size.func)] == ["range", "len"]
        if not named or not isinstance(target, ast.Name) or not self.states.is_state(counted):
            return False
        plain = False
        for node in walk(element):
            if isinstance(node, ast.Name) and node.id == target.id:
                outer = self.index.parent(node)
                held = isinstance(outer, ast.Subscript) and outer.slice is node
                plain |= not (held and isinstance(outer, ast.Subscript) and self.states.is_state(outer.value))
        self._done.add(counted)
        self._keys[target] = key
        self.writer.replace(target, code("$x, $key" if plain else "$key", x=target, key=key))
        self.writer.replace(source, code("enumerate($x)" if plain else "$x", x=counted))
        return True


def _key_of(node: ast.Dict, value: ast.expr) -> object:
    """The key of a value in a dict."""
    return next(
        (
            getattr(key, "value", None)
            for key, item in zip(node.keys, node.values, strict=True)
            if item is value
        ),
        None,
    )
