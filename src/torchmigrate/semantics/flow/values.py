"""The value flow of a file: where the value of an expression comes from, and where it goes.

Everything is computed on demand, function by function. A step leads from an expression to another one that
has the same object, or holds it. What is not followed is an unknown step, never a guess:

- `UNKNOWN_STEP`: the value may come from elsewhere;
- `OPEN_STEP`: a function of the file may also be called by others, with other arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from torchmigrate.patterns import pattern
from torchmigrate.semantics.flow.calls import (
    Function,
    argument_of,
    constant_key,
    default_of,
    is_plain,
    key_of,
    parameters,
    returned,
    without_first,
)
from torchmigrate.semantics.flow.classes import Classes
from torchmigrate.semantics.flow.steps import EACH, OPEN_STEP, UNKNOWN_STEP, VALUE, Key, Path, Step, Steps
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.semantics.model import Scope, SemanticModel

_Def = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST_STEPS = 32  # from one expression: what comes from more places is unknown
_MOST_ITEMS = 200  # of a container that is written out, such as a table
_MOST_KEYS = 4  # of a path: items of items of items
_MOST_CALLEES = 20  # functions that are looked up to look up one
_IN_PLACE = pattern(r"[a-z]\w*[^_]_")
_STILL_MODULE = frozenset("cuda cpu to float double half bfloat16 train eval requires_grad_".split())
PARTIAL = "functools.partial"
_SHIFTS = frozenset(["pop", "remove", "insert", "reverse", "sort", "clear"])
_NOT_PLAIN = ("Enum", "Flag", "NamedTuple", "Model")  # their attributes are not what the class gives them
# What they make holds what the argument holds.
_DICTS = ("dict", "collections.OrderedDict")
_FIRST = frozenset(["list", "tuple", "sorted", "reversed", "set", "iter", *_DICTS])
_COPIES = frozenset(["copy.copy", "copy.deepcopy"])
_MODULES = frozenset(["torch.nn.ModuleList", "torch.nn.ParameterList"])
_KEYED_MODULES = frozenset(["torch.nn.ModuleDict", "torch.nn.ParameterDict"])
_SEQUENTIAL = "torch.nn.Sequential"
_UNKNOWN: Steps = (UNKNOWN_STEP,)


class ValueFlow:
    """The value flow of one file.

    Args:
        names: what the names of the file mean.
    """

    def __init__(self, names: SemanticModel) -> None:
        self.names = names
        self.index = TreeIndex(names)
        self.classes = Classes(self.index)
        self._sources: dict[ast.AST, Steps] = {}
        self._calls: dict[ast.AST, tuple[list[tuple[ast.Call, int]], bool]] = {}
        self._owners: dict[ast.AST, ast.ClassDef | None] = {}  # the classes of objects
        self._callees = 0  # that are being looked up

    # ---- steps back ------------------------------------------------------------------------------------

    def sources(self, node: ast.AST) -> Steps:
        """Where the value of an expression comes from, one step back.

        Empty for an expression that makes its value itself: a literal, an operator, a call of anything but a
        function of the file, an attribute of an object that is not followed.
        """
        found = self._sources.get(node)
        if found is None:
            self._sources[node] = _UNKNOWN  # of what comes from itself
            found = tuple(dict.fromkeys(self._steps(node)))
            self._sources[node] = found = found if len(found) <= _MOST_STEPS else _UNKNOWN
        return found

    def steps(self, step: Step) -> Steps:
        """The same for an item of the value of an expression."""
        if step.node is None:
            return ()
        if not step.path:
            return self.sources(step.node)
        found = self._items(step.node, step.path)
        if found is None:
            found = [
                Step(each.node, each.path + step.path) if each.node is not None else each
                for each in self.sources(step.node)
            ]
        if any(len(each.path) > _MOST_KEYS for each in found) or len(found) > _MOST_ITEMS:
            return _UNKNOWN
        return tuple(dict.fromkeys(found))

    def origins(self, node: ast.AST) -> frozenset[Step]:
        """The expressions that make the value of one, all the way back; unknown steps among them."""
        found: set[Step] = set()
        first = Step(node)
        seen = {first}
        todo = [first]
        while todo:
            here = todo.pop()
            steps = self.steps(here)
            if not steps:
                found.add(here)
            todo += [step for step in steps if step not in seen]
            seen.update(steps)
        return frozenset(found)

    def only_origin(self, node: ast.AST) -> ast.AST | None:
        """The one expression that makes a value in every run; None: there may be others, or it is an item."""
        found = self.origins(node)
        (only,) = found if len(found) == 1 else (UNKNOWN_STEP,)
        return only.node if not only.path else None

    def _steps(self, node: ast.AST) -> Sequence[Step]:
        if isinstance(node, ast.Name):
            return self._of_name(node)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node)
        if isinstance(node, ast.Subscript):
            return self._of_item(node)
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, ast.IfExp):
            return [Step(node.body), Step(node.orelse)]
        if isinstance(node, ast.BoolOp):
            return [Step(value) for value in node.values]
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return [Step(node.value)]
        return ()

    def _of_name(self, node: ast.Name) -> Sequence[Step]:
        outer = self.names.parents.get(node)
        if not isinstance(node.ctx, ast.Load) and not isinstance(outer, ast.AugAssign):
            return self._of_target(node)
        home = self.index.home_of(node)
        if isinstance(home, ast.ClassDef):
            return _UNKNOWN
        own = self._own_steps(node, home)
        if own is not None:
            return own
        while home is not None:
            home = self.index.home_of(home)
            while isinstance(home, (ast.ClassDef, ast.Lambda)):
                home = self.index.home_of(home)
            scope = self.index.scope_at(home)
            if node.id in scope.bindings:
                return self._of_bindings(node.id, scope)
        return ()  # of a library, or a builtin

    def _own_steps(self, node: ast.Name, home: ast.AST | None) -> Sequence[Step] | None:
        """The steps of a name of the same function (or module); None where it is from outside."""
        inner = self.index.comprehension_target(node)
        if inner is not None:
            return self._of_target(inner)
        if isinstance(home, ast.Lambda):
            return _UNKNOWN if node.id in parameters(home) else None
        scope = self.index.scope_at(home)
        if node.id in scope.globals or node.id in scope.nonlocals:
            return None
        bindings = scope.bindings.get(node.id, ())
        if len(bindings) == 1:  # as most are: there is nothing to tell apart
            return self._of_target(bindings[0].node)
        if not bindings:
            return None
        flow = self.index.reaching(home)
        seen = flow.of(node) or flow.inner(node)
        if not seen:
            return self._of_bindings(node.id, scope)  # in a lambda, or a function, that runs at any time
        found: list[Step] = []
        for definition in seen:
            if definition.node is not None:
                found += self._of_target(definition.node)
        return found

    def _of_bindings(self, name: str, scope: Scope) -> Sequence[Step]:
        """All that a variable of a scope is ever given."""
        bindings = scope.bindings[name]
        if len(bindings) > _MOST_STEPS:
            return _UNKNOWN
        found: list[Step] = []
        for binding in bindings:
            if not isinstance(getattr(binding.node, "ctx", None), ast.Del):
                found += self._of_target(binding.node)
        return found

    def _of_target(self, target: ast.AST) -> Sequence[Step]:
        """What is given to a target, whatever kind of statement it is in."""
        if isinstance(target, ast.arg):
            return self.parameter(target)
        if isinstance(target, (ast.alias, *_Def, ast.ClassDef)):
            return [Step(target)]
        if isinstance(target, ast.NamedExpr):
            return [Step(target.value)]
        path: list[Key] = []
        parents = self.names.parents
        here, outer = target, parents.get(target)
        while isinstance(outer, (ast.Tuple, ast.List)):
            if any(isinstance(item, ast.Starred) for item in outer.elts):
                return _UNKNOWN
            path.insert(0, next(number for number, item in enumerate(outer.elts) if item is here))
            here, outer = outer, parents.get(outer)
        if isinstance(outer, ast.Assign):
            return [Step(outer.value, tuple(path))]
        if isinstance(outer, (ast.AnnAssign, ast.NamedExpr)) and outer.value is not None:
            return [Step(outer.value, tuple(path))]
        if isinstance(outer, ast.AugAssign):
            return [Step(outer)]
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.comprehension)):
            return [Step(outer.iter, (EACH, *path))]
        if isinstance(outer, ast.withitem) and not path:
            return [Step(outer)]
        return _UNKNOWN

    def parameter(self, argument: ast.arg) -> Sequence[Step]:
        """What the calls in the file give to a parameter, and its default."""
        function = self.index.home_of(argument)
        if not isinstance(function, _Def):
            return _UNKNOWN
        index = parameters(function).get(argument.arg)
        if index is None:
            return [Step(argument)]
        for mark in function.decorator_list:
            given_by_test = self._parametrized(mark, argument.arg)
            if given_by_test is not None:
                return [given_by_test]
        found: list[Step] = []
        default = default_of(function, argument.arg)
        calls, closed = self.calls_of(function)
        if len(calls) > _MOST_STEPS:
            return _UNKNOWN
        left_out = False
        for call, shift in calls:
            given = argument_of(call, argument.arg, index + shift)
            if given is not None:
                found.append(Step(given))
            elif any(isinstance(item, ast.Starred) for item in call.args) or not all(
                item.arg for item in call.keywords
            ):
                found.append(UNKNOWN_STEP)
            else:
                left_out = True
        if default is not None and (left_out or not closed):
            found.append(Step(default))
        return found if closed and found else [*found, OPEN_STEP]

    def _parametrized(self, mark: ast.expr, name: str) -> Step | None:
        """What `@pytest.mark.parametrize("a, b", [...])` gives to a parameter of a test."""
        if not isinstance(mark, ast.Call) or len(mark.args) < 2:
            return None
        first = mark.args[0]
        items = first.elts if isinstance(first, (ast.Tuple, ast.List)) else [first]
        texts = [str(constant_key(item)) for item in items]
        names = [each.strip() for text in texts for each in text.split(",")]
        if name not in names or self.imported(mark.func) != "pytest.mark.parametrize":
            return None
        return Step(mark.args[1], (EACH, names.index(name)) if len(names) > 1 else (EACH,))

    def _of_attribute(self, node: ast.Attribute) -> Sequence[Step]:
        if isinstance(node.ctx, ast.Store) and not isinstance(self.names.parents.get(node), ast.AugAssign):
            return self._of_target(node)
        owner = self.classes.owner_of(node.value) or self._class_named(node.value)
        return self._of_member(owner, node.attr) if owner is not None else ()

    def _class_named(self, node: ast.AST) -> ast.ClassDef | None:
        """The class of the file that a name is; None if its attributes are not what it gives them."""
        found = self.classes.owner_of(node, of_class=True) or (
            self.definition(node) if isinstance(node, ast.Name) and node.id in self.classes.names else None
        )
        plain = isinstance(found, ast.ClassDef) and not any(
            getattr(base, "attr", getattr(base, "id", "")).endswith(_NOT_PLAIN)
            for each in self.classes.lineage(found)
            for base in each.bases
        )
        return found if plain and isinstance(found, ast.ClassDef) else None

    def _of_member(self, owner: ast.ClassDef, name: str) -> Sequence[Step]:
        """What the objects of a class have as an attribute; nothing for a method."""
        found: list[Step] = []
        for each in [*self.classes.lineage(owner), *self.classes.below[owner]]:
            for target, value in self.classes.members.get((each, name), ()):
                found += [Step(value)] if value is not None else self._of_target(target)
            method = self.classes.methods[each].get(name)
            if method is not None and not found:
                if any(
                    isinstance(mark, ast.Name) and mark.id == "property" for mark in method.decorator_list
                ):
                    return self._results(method)
                return ()
        if name in self.classes.outside or (found and owner in self.classes.dynamic):
            found.append(UNKNOWN_STEP)
        return found

    def _of_item(self, node: ast.Subscript) -> Sequence[Step]:
        if isinstance(node.slice, (ast.Slice, ast.Tuple)):
            return ()
        key = constant_key(node.slice)
        return [Step(node.value, (node.slice if key is None else key,))]

    def _of_call(self, node: ast.Call) -> Sequence[Step]:
        function = node.func
        if isinstance(function, ast.Attribute):
            if _IN_PLACE.fullmatch(function.attr):
                name = self.names.qualified(function) or "torch.Tensor."
                if not name.startswith("torch.Tensor."):
                    return [Step(node.args[0])] if node.args else ()
                if self.classes.owner_of(function.value) is None:
                    return [Step(function.value)]
            plain = 0 < len(node.args) < 3 and not any(isinstance(item, ast.Starred) for item in node.args)
            if function.attr == "get" and plain and self._is_table(function.value):
                key = constant_key(node.args[0])
                found = Step(function.value, (node.args[0] if key is None else key,))
                return [found, *(Step(default) for default in node.args[1:])]
        called = self.called(node)
        return self._results(called) if called is not None else ()

    def _is_table(self, node: ast.expr) -> bool:
        """Whether an expression may be a dictionary that is written out."""
        return any(isinstance(step.node, (ast.Dict, ast.DictComp)) for step in self.origins(node))

    def _results(self, function: Function) -> Sequence[Step]:
        if isinstance(function, ast.Lambda):
            return [Step(function.body)]
        results, yields = returned(function)
        if yields or (function.decorator_list and not is_plain(function)):
            return _UNKNOWN
        return [Step(value) for value in results] or _UNKNOWN

    # ---- containers ----------------------------------------------------------------------------------------

    def _items(self, node: ast.AST, path: Path) -> list[Step] | None:
        """What a container that is written out holds at a path; None where it is none."""
        key, rest = path[0], path[1:]
        if isinstance(key, ast.expr):
            key = VALUE
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            if any(isinstance(item, ast.Starred) for item in node.elts):
                return [UNKNOWN_STEP]
            if isinstance(key, int):
                held = node.elts[key : key + 1] if key >= 0 else node.elts[key:][:1]
            else:
                held = node.elts
            added = self._added(node)
            if self._is_shifted(node):
                held = node.elts
            return [Step(item, rest) for item in [*held, *(added if added else ())]] + (
                [UNKNOWN_STEP] if added is None else []
            )
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return [Step(node.elt, rest)]
        if isinstance(node, ast.DictComp):
            return [Step(node.key if key is EACH else node.value, rest)]
        if isinstance(node, ast.Dict):
            return self._of_dict(node, list(zip(node.keys, node.values, strict=True)), key, rest)
        if isinstance(node, ast.Call):
            return self._of_made(node, key, rest)
        if isinstance(node, ast.arg):
            return self._of_options(node, key, rest)
        return None

    def _of_made(self, node: ast.Call, key: Key, rest: Path) -> list[Step] | None:
        """The same for a call that makes a container, or what a loop goes over."""
        name = self.builtin(node.func) or self.names.qualified(node.func) or self.imported(node.func)
        if name == "zip" and key is EACH and rest and isinstance(rest[0], int):
            if rest[0] < len(node.args) and not any(isinstance(item, ast.Starred) for item in node.args):
                return [Step(node.args[rest[0]], (EACH, *rest[1:]))]
            return [UNKNOWN_STEP]
        if name == "enumerate" and key is EACH and rest and node.args:
            return [Step(node.args[0], (EACH, *rest[1:]))] if rest[0] == 1 else None
        if name in _DICTS and not node.args:
            pairs = [(key_of(item.arg) if item.arg else None, item.value) for item in node.keywords]
            return self._of_dict(node, pairs, key, rest)
        if name in _DICTS and isinstance(node.args[0], (ast.ListComp, ast.GeneratorExp)):
            return [Step(node.args[0], (EACH, 0 if key is EACH else 1, *rest))]  # of pairs
        if name in _COPIES and len(node.args) == 1:
            return [Step(node.args[0], (key, *rest))]
        if name == _SEQUENTIAL and not node.keywords:
            return [Step(item, rest) for item in node.args] or None
        if (name in _FIRST or name in _MODULES or name in _KEYED_MODULES) and len(node.args) == 1:
            wanted = EACH if name in ("sorted", "reversed", "set") else key
            return [Step(node.args[0], (wanted, *rest))] if not node.keywords or name not in _DICTS else None
        if isinstance(node.func, ast.Attribute) and not node.keywords:
            of = node.func.value
            if node.func.attr == "items" and not node.args and key is EACH and rest:
                return [Step(of, (VALUE if rest[0] == 1 else EACH, *rest[1:]))]
            if node.func.attr == "values" and not node.args:
                return [Step(of, (VALUE, *rest))]
            if node.func.attr == "copy" and not node.args and (isinstance(key, str) or key is VALUE):
                return [Step(of, (key, *rest))]
        return None

    def _of_options(self, node: ast.arg, key: Key, rest: Path) -> list[Step]:
        """What calls give to `**options` of a function."""
        function = self.index.home_of(node)
        if not isinstance(function, _Def) or function.args.kwarg is not node or not isinstance(key, str):
            return [UNKNOWN_STEP]
        found: list[Step] = []
        for call, _ in self.calls_of(function)[0]:
            for item in call.keywords:
                if item.arg == key:
                    found.append(Step(item.value, rest))
                elif item.arg is None:
                    found.append(Step(item.value, (key, *rest)))
        return [*found, OPEN_STEP]

    def _of_dict(
        self, node: ast.AST, pairs: Sequence[tuple[ast.expr | None, ast.expr]], key: Key, rest: Path
    ) -> list[Step] | None:
        if key is EACH:
            return [Step(name, rest) if name is not None else UNKNOWN_STEP for name, _ in pairs] or [
                UNKNOWN_STEP
            ]
        found: list[Step] = []
        for name, value in pairs:
            if key is not VALUE and name is not None and constant_key(name) == key:
                found.clear()  # written over
            found += _under(name, Step(value), key, rest)
        for name, step in self.written(node):
            found += _under(name, step, key, rest)
        return found

    def _is_shifted(self, node: ast.AST) -> bool:
        """Whether the file changes the places of the items of a list."""
        for name in self._mentions_of_made(node):
            outer = self.names.parents.get(name)
            if isinstance(outer, ast.Attribute) and outer.attr in _SHIFTS:
                return True
            if isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Del):
                return True
        return False

    def _added(self, node: ast.AST) -> list[ast.expr] | None:
        """What is appended to a list by the names that it is given; None where that is not known."""
        found: list[ast.expr] = []
        for name in self._mentions_of_made(node):
            outer = self.names.parents.get(name)
            call = self.names.parents.get(outer) if outer is not None else None
            if isinstance(outer, ast.Attribute) and isinstance(call, ast.Call) and call.func is outer:
                if outer.attr in ("append", "add") and len(call.args) == 1:
                    found.append(call.args[0])
                elif outer.attr in ("insert",) and len(call.args) == 2:
                    found.append(call.args[1])
                elif outer.attr in ("extend", "update"):
                    return None
            elif isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Store):
                if not isinstance(call, ast.Assign):
                    return None
                found.append(call.value)
        return found

    def written(self, node: ast.AST) -> Iterator[tuple[ast.expr | None, Step]]:
        """The keys and values that are written to a dictionary by the names that it is given; no key: all
        of another dictionary."""
        for name in self._mentions_of_made(node):
            outer = self.names.parents.get(name)
            call = self.names.parents.get(outer) if outer is not None else None
            if isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Store):
                yield from ((outer.slice, step) for step in self._of_target(outer))
            elif isinstance(outer, ast.Attribute) and isinstance(call, ast.Call) and call.func is outer:
                if outer.attr == "setdefault" and len(call.args) == 2:
                    yield call.args[0], Step(call.args[1])
                elif outer.attr == "update":
                    yield from ((None, Step(item)) for item in call.args[:1])
                    for item in call.keywords:
                        yield key_of(item.arg) if item.arg else None, Step(item.value)

    def _mentions_of_made(self, node: ast.AST) -> Iterator[ast.AST]:
        """Mentions of the variable or attribute of `self` that a container is made for, or of a parameter."""
        if isinstance(node, ast.arg):
            home = self.index.home_of(node)
            yield from (name for name in self.index.named(node.arg) if self.index.binds(name, home))
        made = self.names.parents.get(node)
        if not isinstance(made, (ast.Assign, ast.AnnAssign)) or made.value is not node:
            return
        for target in made.targets if isinstance(made, ast.Assign) else [made.target]:
            if isinstance(target, ast.Name):
                home = self.index.home_of(target)
                for name in self.index.named(target.id):
                    if name is not target and self.index.binds(name, home):
                        yield name
                if isinstance(home, ast.ClassDef):
                    yield from self.index.attributes(target.id)
            elif isinstance(target, ast.Attribute):
                owner = self.classes.owner_of(target.value)
                for other in self.index.attributes(target.attr) if owner is not None else ():
                    if other is not target and self.classes.owner_of(other.value) is not None:
                        yield other

    def keywords(self, node: ast.expr) -> tuple[dict[str, tuple[ast.AST, ast.expr]], bool]:
        """What `**node` surely gives to a call: each keyword with the place of its key, and its value.

        Also returns whether that is all. Nothing is known unless `node` comes from one dictionary, or is the
        `**options` of a function; and of a dictionary only what is written in any case.
        """
        made = self.only_origin(node)
        found: dict[str, tuple[ast.AST, ast.expr]] = {}
        pairs: list[tuple[ast.AST | None, object, ast.expr]] = []
        if isinstance(made, ast.Dict):
            for key, value in zip(made.keys, made.values, strict=True):
                pairs.append((key, constant_key(key) if key is not None else None, value))
        elif isinstance(made, ast.Call) and self.builtin(made.func) == "dict" and not made.args:
            pairs += [(item if item.arg else None, item.arg, item.value) for item in made.keywords]
        elif isinstance(made, ast.arg):
            found = self._options_given(made)
        else:
            return found, False
        complete = not isinstance(made, ast.arg)
        for place, name, value in pairs:
            if place is None:
                inner, all_known = self.keywords(value)
                found.update(inner)
                complete = complete and all_known
            elif isinstance(name, str):
                found[name] = (place, value)
            else:
                complete = False
        for mention in self._mentions_of_made(made):
            outer = self.names.parents.get(mention)
            if (isinstance(outer, ast.keyword) and outer.arg is None) or _is_only_read(outer):
                continue
            complete = False
            if not isinstance(outer, ast.Subscript):
                call = self.names.parents.get(outer) if isinstance(outer, ast.Attribute) else None
                if isinstance(outer, ast.Attribute) and outer.attr == "pop" and isinstance(call, ast.Call):
                    taken = constant_key(call.args[0]) if call.args else None
                    if isinstance(taken, str):
                        found.pop(taken, None)
                        continue
                return {}, False
            name, statement = constant_key(outer.slice), self.names.parents.get(outer)
            if isinstance(outer.ctx, ast.Del):
                found.pop(str(name), None)
            elif isinstance(statement, ast.Assign) and isinstance(name, str):
                always = isinstance(self.names.parents.get(statement), (ast.Module, *_Def))
                if always and statement.lineno < node.lineno:
                    found[name] = (outer.slice, statement.value)
        return found, complete

    def _options_given(self, argument: ast.arg) -> dict[str, tuple[ast.AST, ast.expr]]:
        """What the calls in the file give to `**options` of a function."""
        function = self.index.home_of(argument)
        if not isinstance(function, _Def) or function.args.kwarg is not argument:
            return {}
        named = parameters(function)
        return {
            item.arg: (item, item.value)
            for call, _ in self.calls_of(function)[0]
            for item in call.keywords
            if item.arg is not None and item.arg not in named
        }

    # ---- functions and classes of the file -----------------------------------------------------------------

    def called(self, call: ast.Call) -> Function | None:
        """The one function of the file that a call calls; of a class, not its `__init__`."""
        found = self.definition(call.func)
        if isinstance(found, (*_Def, ast.Lambda)):
            return found
        if isinstance(call.func, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            made = self.class_of(call.func)
            return self.classes.method(made, "forward", "__call__") if made is not None else None
        return None

    def entered(self, call: ast.Call) -> ast.AST | None:
        """The one function of the file that a call runs; of a class, its `__init__`."""
        found = self.called(call)
        if found is None and isinstance(made := self.definition(call.func), ast.ClassDef):
            return self.classes.method(made, "__init__")
        return found

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class of the file that an expression is an object of, where it is surely made by that."""
        if node not in self._owners:
            self._owners[node] = None  # while it is looked up
            found = {
                self.definition(_maker(step.node)) if not step.path else None for step in self.origins(node)
            }
            (only,) = found if len(found) == 1 else (None,)
            self._owners[node] = only if isinstance(only, ast.ClassDef) else None
        return self._owners[node]

    def definition(self, node: ast.AST | None) -> ast.AST | None:
        """The function, class or lambda of the file that an expression is; None also at the end of a long
        chain of calls that make each other."""
        if node is None or self._callees > _MOST_CALLEES:
            return None
        self._callees += 1
        try:
            return self._defined(node)
        finally:
            self._callees -= 1

    def _defined(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Attribute):
            owner = self.classes.owner_of(node.value)
            if owner is not None and any(
                node.attr in self.classes.methods[each] for each in self.classes.below[owner]
            ):
                return None  # the object may be of a class that has a method of its own
            if owner is None and node.attr in self.classes.method_names:
                made = self.definition(node.value)
                owner = made if isinstance(made, ast.ClassDef) else self.class_of(node.value)
            return self.classes.method(owner, node.attr) if owner is not None else None
        if not isinstance(node, ast.Name):
            return node if isinstance(node, ast.Lambda) else None
        made = self.only_origin(node)
        return made if isinstance(made, (*_Def, ast.ClassDef, ast.Lambda)) else None

    def calls_of(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> tuple[list[tuple[ast.Call, int]], bool]:
        """The calls of a function in the file, each with how far its arguments are shifted against the
        parameters; and whether there can be no others."""
        known = self._calls.get(function)
        if known is None:
            known = self._calls[function] = self._find_calls(function)
        return known

    def _find_calls(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> tuple[list[tuple[ast.Call, int]], bool]:
        owner = self.names.parents.get(function)
        found: list[tuple[ast.Call, int]] = []
        name = function.name
        method = isinstance(owner, ast.ClassDef)
        static = any(getattr(mark, "id", "") == "staticmethod" for mark in function.decorator_list)
        shift = -1 if method and not static else 0
        mentions: list[ast.AST] = [*(self.index.attributes(name) if method else self.index.named(name))]
        if method and name == "__init__":
            assert isinstance(owner, ast.ClassDef)
            mentions = [*self.index.named(owner.name)]
        if method and name in ("forward", "__call__"):
            mentions += self._called_objects
        if len(mentions) > 4 * _MOST_STEPS:
            return [], False
        closed = (not method and self.index.home_of(function) is not None) or (
            name.startswith("_") and not name.startswith("__")
        )
        for node in mentions:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                continue
            outer = self.names.parents.get(node)
            if isinstance(outer, ast.Call) and outer.func is node:
                if self._calls_it(outer, function, owner):
                    found.append((outer, shift))
                else:
                    closed = closed and not method
            elif isinstance(outer, ast.Call) and node in outer.args:
                closed = False
                partial = outer.args[0] is node and self.imported(outer.func) == PARTIAL
                if partial and self.definition(node) is function:
                    found.append((without_first(outer), shift))
            else:
                closed = False
        return found, closed and not function.decorator_list

    def _calls_it(self, call: ast.Call, function: ast.AST, owner: ast.AST | None) -> bool:
        if isinstance(owner, ast.ClassDef) and getattr(function, "name", "") == "__init__":
            return self.definition(call.func) is owner
        return self.called(call) is function

    def builtin(self, node: ast.AST) -> str | None:
        """The name of a built-in function or class."""
        if not isinstance(node, ast.Name):
            return None
        bound = any(binding.scope.kind != "class" for binding in self.index.bindings(node.id))
        return None if bound else node.id

    def imported(self, node: ast.AST) -> str:
        """The qualified name of what is imported from elsewhere: `functools.partial`; else empty."""
        root, rest = _rooted(node)
        steps = self.sources(root) if isinstance(root, ast.Name) else ()
        return self._imported(steps[0].node, rest) if len(steps) == 1 else ""

    def imports(self, node: ast.AST) -> frozenset[str]:
        """The qualified names that an expression may be; an empty one if it may not be imported."""
        root, rest = _rooted(node)
        origins = self.origins(root) if isinstance(root, ast.Name) else [UNKNOWN_STEP]
        return frozenset(self._imported(step.node, rest) for step in origins)

    def _imported(self, alias: ast.AST | None, rest: str) -> str:
        if not isinstance(alias, ast.alias):
            return ""
        statement = self.names.parents.get(alias)
        if isinstance(statement, ast.ImportFrom):
            return f"{statement.module}.{alias.name}{rest}" if not statement.level else ""
        return f"{alias.name if alias.asname else alias.name.partition('.')[0]}{rest}"

    @cached_property
    def _called_objects(self) -> list[ast.AST]:
        """The functions of calls such as `self.net(x)`, `Net()(x)`, or `layer(x)` in a loop over layers, by
        names that may get an object of the file's classes."""
        made: set[str] = set()
        classes = self.classes.names
        for call in self.names.nodes(ast.Call):
            outer = self.names.parents.get(call)
            if isinstance(outer, ast.Assign) and getattr(_maker(call), "id", "") in classes:
                made.update(getattr(item, "attr", getattr(item, "id", "")) for item in outer.targets)
        loops: list[ast.For | ast.comprehension] = [
            *self.names.nodes(ast.For),
            *self.names.nodes(ast.comprehension),
        ]
        for loop in loops:
            targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
            made.update(item.id for item in targets if isinstance(item, ast.Name))
        return [
            call.func
            for call in self.names.nodes(ast.Call)
            if getattr(call.func, "attr", getattr(call.func, "id", "")) in made
            or (isinstance(call.func, ast.Call) and getattr(_maker(call.func), "id", "") in classes)
        ]


def _rooted(node: ast.AST) -> tuple[ast.AST, str]:
    """The expression that a chain of attributes begins with, and the rest of it as text."""
    rest = ""
    while isinstance(node, ast.Attribute):
        rest = f".{node.attr}{rest}"
        node = node.value
    return node, rest


def _under(name: ast.expr | None, value: Step, key: Key, rest: Path) -> list[Step]:
    """What a dictionary has under a key by one of its entries; no name: the entry is another dictionary."""
    if name is None:
        return [Step(value.node, (*value.path, key, *rest)) if value.node is not None else value]
    if key is VALUE or constant_key(name) == key:
        return [Step(value.node, value.path + rest) if value.node is not None else value]
    return [UNKNOWN_STEP] if constant_key(name) is None else []


def _is_only_read(node: ast.AST | None) -> bool:
    """Whether what is done with a dictionary leaves it as it is."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("items", "keys", "values", "get", "copy")
    return isinstance(node, (ast.Compare, ast.Subscript)) and isinstance(
        getattr(node, "ctx", None), (ast.Load, type(None))
    )


def _maker(node: ast.AST | None) -> ast.AST | None:
    """What is called to make an object, without methods that return it: `Net` of `Net().cuda()`."""
    while isinstance(node, ast.Call):
        inner = node.func
        if not isinstance(inner, ast.Attribute) or inner.attr not in _STILL_MODULE:
            return inner
        node = inner.value
    return None
