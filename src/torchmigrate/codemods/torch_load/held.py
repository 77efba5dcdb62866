"""What the files hold that a module loads, by how the results are used."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property

from torchmigrate.patterns import pattern
from torchmigrate.project.checkpoints import (
    PARAMETER,
    Saved,
    argument,
    is_of_optimizer,
    may_hold_settings,
    may_save,
)
from torchmigrate.project.one_project import Project
from torchmigrate.project.own_states import OwnStates
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.domain import NOTHING, UNKNOWN, Domain, Sentinel, Values
from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.semantics.flow.steps import VALUE, Path
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.model import Role
from torchmigrate.semantics.values.slots import UNKNOWN as UNTOLD
from torchmigrate.semantics.values.types import STATED, SURE, level
from torchmigrate.source.trees import last_name, walk

_DICT_METHODS = frozenset(["items", "keys", "values", "update"])
_COPIES = frozenset(["dict", "OrderedDict", "deepcopy", "copy"])
# Only modules and optimizers have these methods, and neither is read with `weights_only=True`.
_OF_OBJECTS = frozenset(["state_dict", "load_state_dict", "parameters", "zero_grad"])
_LOOKS = frozenset(["len", "list", "set", "sorted", "print", "iter", "enumerate"])
# Only tensors have these methods; other things have attributes of these names at most.
_OF_TENSORS = frozenset(["size", "dim", "numel", "unsqueeze", "permute", "detach", "new_zeros", "new_ones"])
_WEIGHT = pattern(r"\.(?:weight|bias)$")  # no checkpoint has these next to other things
_TAKES = frozenset(["get", "pop"])
# Checkpoints keep settings as objects (`argparse.Namespace`, OmegaConf) under such keys.
_OBJECT_KEY = pattern(r"(?i)arg|conf|cfg|\bopts?\b|options|hparam|hyper|vocab|token")
_STATE_KEY = pattern(r"(?i)state|model|net|weight|param|optim|ema")
# Calls that give the same path each time.
_STEADY = frozenset(["join", "joinpath", "format", "str", "Path", "abspath", "realpath", "expanduser"])
# With these, modules keep in their state dicts what they like: `io.BytesIO` in TransformerEngine before 2.0.
_EXTRA_STATES = ("get_extra_state", "transformer_engine")
_MOST_FOLLOWED = 500  # expressions to which what is loaded goes
_DEEPEST = 20  # nested containers whose items are looked at
_MOST_APART = 20  # loads of one file in a function; of more, all are of one case


class LoadCase(IntEnum):
    """The cases of the rule, in their order."""

    STATE = 0
    OWN_STATE = 1
    OWN_FILE = 2
    PLAIN_FILE = 3
    UNKNOWN = 4


class Held(IntEnum):
    """What a use of what was loaded says about it."""

    PLAIN = 0  # nothing that only plain containers have
    PART = 1  # it has an entry that is not a weight
    GIVEN = 2  # it may be anything, unless it is known here to be a state dict
    ENTRY = 3  # entries of it are tensors by name; the other entries are unknown
    STATE = 4  # tensors by name
    OBJECTS = 5  # it may be anything


class Loaded(Domain[tuple[ast.Call, Path]]):
    """Which files the items of an expression are from: the call that reads one, and where they are in it."""

    def __init__(self, flow: ValueFlow, loads: Iterable[ast.Call]) -> None:
        super().__init__(flow)
        self._loads = frozenset(loads)

    def part(self, node: ast.AST, path: Path) -> Values[tuple[ast.Call, Path]]:
        if node in self._loads:
            return frozenset([(node, path)])
        written = [
            self.of(step.node, (*step.path, *(path if key is None else path[1:])))
            for key, step in self.flow.written(node)
            if step.node is not None
        ]
        return NOTHING.union(*written) or frozenset([UNKNOWN])


class Loads:
    """The calls of `torch.load` in a file.

    Args:
        calls: those that the rule is about.
    """

    def __init__(self, file: FileContext, calls: Sequence[ast.Call]) -> None:
        self.file = file
        self.calls = calls
        self._flow, self._names = file.flow, file.names
        self._forward = Forward(file.flow)
        self._data = file.source.text.encode("utf-8", "surrogatepass")
        self._saved = Saved(file.flow, self._data)

    # ---- the cases ---------------------------------------------------------------------------------------

    def cases(self) -> dict[ast.Call, LoadCase]:
        """The case of each call: the same for all calls of a function that read the same file."""
        found: dict[ast.Call, LoadCase] = {}
        groups: dict[object, list[ast.Call]] = {}
        for call in self.calls:
            own = self._written_before(call)
            if own is not None:
                found[call] = own
            else:
                groups.setdefault(self._key(call) or call, []).append(call)
        for group in groups.values():
            held = {call: self._held(call) for call in group}
            if not {Held.ENTRY, Held.STATE}.isdisjoint(held.values()):  # so that is what a function gets
                held = {call: Held.PLAIN if each is Held.GIVEN else each for call, each in held.items()}
            apart = 1 < len(group) <= _MOST_APART
            for call in group:
                others = [other for other in group if not (apart and self._excludes(call, other))]
                found[call] = self._case(call, _together(held[other] for other in others))
        return found

    def _case(self, call: ast.Call, held: Held) -> LoadCase:
        if held is Held.STATE or (held is Held.ENTRY and not self._holds_objects):
            return LoadCase.STATE
        written = [what for _, what in self._saves.get(self._key(call), ())]
        name = self._name(call)
        is_plain = (written and all(map(self._saved.is_plain, written))) or self._writes_plainly(name)
        return LoadCase.PLAIN_FILE if is_plain else LoadCase.UNKNOWN

    def reads_whole_object(self, call: ast.Call) -> bool:
        """Whether all that this function, or else the file, saves to a path are modules and optimizers."""
        name = self._name(call)
        written = self._before(call) or (self._saved.saved_as(name) if name is not None else [])
        return bool(written) and all(ast.unparse(what) in self._objects for what in written)

    # ---- what the file writes ------------------------------------------------------------------------------

    def _key(self, call: ast.Call, index: int = 0) -> object:
        """The same for calls of one function that read or write the same file or stream: the names in it mean
        the same, too."""
        path = argument(call, index, "f")
        nodes = walk(path) if path is not None else []
        if path is None or any(
            isinstance(node, ast.Call) and last_name(node.func) not in _STEADY for node in nodes
        ):
            return None
        meant = tuple(self._flow.sources(node) for node in nodes if isinstance(node, ast.Name))
        return self._flow.index.home_of(call), ast.dump(path), meant

    @cached_property
    def _saves(self) -> dict[object, list[tuple[int, ast.expr]]]:
        """What is saved, by its path, with the places."""
        found: dict[object, list[tuple[int, ast.expr]]] = {}
        for use in self._names.uses:
            if use.sure and use.candidates == ("torch.save",) and use.call is not None:
                what, key = argument(use.call, 0, "obj"), self._key(use.call, 1)
                if what is not None and key is not None:
                    found.setdefault(key, []).append((use.start, what))
        return found

    def _before(self, call: ast.Call) -> list[ast.expr]:
        """What the same function saved before to the file that a call reads."""
        start = self.file.source.span(call)[0]
        return [what for at, what in self._saves.get(self._key(call), ()) if at < start]

    def _written_before(self, call: ast.Call) -> LoadCase | None:
        """The case of what the same function wrote before; None: it wrote nothing there."""
        written = self._before(call)
        states = [self._holds_tensors(what, SURE) or self._is_state_dict(what) for what in written]
        if False in states and all(
            self._holds_tensors(what, STATED) or self._saved.is_plain(what) for what in written
        ):
            return LoadCase.OWN_FILE if self._is_changed(call) else LoadCase.PLAIN_FILE
        if not states or (None in states and False not in states):
            return None
        return LoadCase.OWN_STATE if all(states) else LoadCase.OWN_FILE

    def _is_changed(self, call: ast.Call) -> bool:
        """Whether a function may write to the file that a call reads: `upgrade(path)`."""
        path = argument(call, 0, "f")
        return isinstance(path, ast.Name) and any(
            isinstance(outer := self._outer(name), ast.Call)
            and isinstance(outer.func, ast.Name)
            and outer.func.id != "open"
            and self._flow.sources(name) == self._flow.sources(path)
            for name in self._flow.index.named(path.id)
        )

    def _holds_tensors(self, node: ast.expr, least: int, depth: int = 0) -> bool:
        """Whether a value is a tensor, or a plain container that is written out with some in it.

        least: how far it must be known that something is a tensor.
        """
        if depth > _DEEPEST:
            return False
        if isinstance(node, ast.Constant):
            return isinstance(node.value, (str, int, float, type(None)))
        if level(self._names.values.get(id(node), UNTOLD)) >= least:
            return True
        made = node
        if isinstance(node, ast.Name):  # a list or dictionary with a name may get other items
            origin = self._flow.only_origin(node)
            made = origin if isinstance(origin, ast.Tuple) else node
        if not isinstance(made, (ast.Tuple, ast.List, ast.Dict)):
            return False
        parts = [*made.keys, *made.values] if isinstance(made, ast.Dict) else made.elts
        return all(item is not None and self._holds_tensors(item, least, depth + 1) for item in parts)

    def _is_state_dict(self, node: ast.expr) -> bool | None:
        """Whether a value is a state dict that has tensors and plain numbers in it.

        None: of an object that may have any others in it, since its class is not seen.
        """
        if not (isinstance(node, ast.Call) and last_name(node.func) == "state_dict"):
            return False
        if is_of_optimizer(node) and self._saved.sets_objects:
            return False
        name = self._names.qualified(node.func) or ""
        known = name.startswith("torch.") and not any(word in self.file.source.text for word in _EXTRA_STATES)
        return True if known else None

    def _name(self, call: ast.Call) -> str | None:
        path = argument(call, 0, "f")
        return self._saved.name_of(path) if path is not None else None

    def _writes_plainly(self, name: str | None) -> bool:
        """Whether files of a name are written by this file or by files of its directory, and all are
        plain."""
        own = self._saved.plainly.get(name) if name is not None else False
        if name is None or own is False:
            return False
        plain = self.file.project.ask(Project.saves_plainly, self.file.path, name)
        return plain is True or (plain is None and own is True)

    @cached_property
    def _objects(self) -> set[str]:
        """What is surely a module or an optimizer: by its methods that the file calls."""
        states = {
            ast.unparse(target)
            for node in self._names.nodes(ast.Assign)
            if isinstance(node.value, ast.Dict) or "state_dict(" in ast.unparse(node.value)
            for target in node.targets
        }
        called = {
            ast.unparse(function.value)
            for call in self._names.nodes(ast.Call)
            if isinstance(function := call.func, ast.Attribute)
            and function.attr in _OF_OBJECTS
            and isinstance(function.value, (ast.Name, ast.Attribute))
        }
        return called - states

    @cached_property
    def _holds_objects(self) -> bool:
        """Whether checkpoints have more than tensors and plain containers in them.

        That is what the project, this file included, saves, or what this file reads of them. What a function
        saves that is given `torch.save` is not known.
        """
        uses = self._names.uses
        loads = {use.call for use in uses if use.call is not None and use.candidates == ("torch.load",)}
        return (
            any(
                node.value in loads and _OBJECT_KEY.search(str(getattr(node.slice, "value", "")))
                for node in self._names.nodes(ast.Subscript)
            )
            or any(use.candidates == ("torch.save",) and use.role is Role.REFERENCE for use in uses)
            or may_hold_settings(self._data)  # what takes less time first
            or self.file.project.ask(Project.saves_objects, self.file.path)
            or (may_save(self._data) and self._saved.holds_objects)
        )

    # ---- what is read --------------------------------------------------------------------------------------

    @cached_property
    def _states(self) -> dict[ast.Call, set[Held]]:
        """What calls of `load_state_dict` say about what was loaded."""
        loaded = Loaded(self._flow, self.calls)
        found: dict[ast.Call, set[Held]] = {}
        for call in self._names.nodes(ast.Call):
            given = [*call.args, *(item.value for item in call.keywords)] if _loads_state(call) else ()
            for item in given:
                for value in loaded.of(item, (VALUE,)):
                    if not isinstance(value, Sentinel):
                        found.setdefault(value[0], set()).add(self._state_for(call, value[1]))
        return found

    def _state_for(self, call: ast.Call, path: Path) -> Held:
        """What a call of `load_state_dict` implies; rates of optimizers may be numbers of NumPy."""
        if self._keeps_objects(call):
            return Held.OBJECTS
        is_entry = len(path) > 1 or (is_of_optimizer(call) and self._saved.sets_objects)
        return Held.ENTRY if is_entry else Held.STATE

    def _keeps_objects(self, call: ast.Call) -> bool:
        """Whether the class of what loads a state dict makes its own, with more than plain things in it."""
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is None or last_name(call.func) != "load_state_dict":
            return False
        own = self._flow.classes.owner_of(owner)
        if own is not None:
            return self._class_keeps_objects(ast.Name(own.name, ast.Load()), ())
        values = [owner] if isinstance(owner, ast.Call) else [step.node for step in self._flow.sources(owner)]
        return any(self._class_keeps_objects(*made) for value in values if (made := _made(value)))

    def _class_keeps_objects(self, made: ast.expr, called: Sequence[str]) -> bool:
        """Whether a class puts objects into the state dict that it makes. called: as in `OwnStates`."""
        project, path = self.file.project, self.file.path
        states = OwnStates(self._saved)
        if isinstance(made, ast.Name) and made.id in states:
            return states.keeps_objects(made.id, called, self._is_plain_elsewhere)
        name = project.imported(path, self._names, made)
        return name is not None and project.ask(Project.keeps_objects, path, name, [*called])

    def _is_plain_elsewhere(self, node: ast.expr) -> bool:
        """Whether what an import binds is known to be text or a number."""
        project, path = self.file.project, self.file.path
        name = project.imported(path, self._names, node)
        return name is not None and project.ask(Project.is_plain, path, name)

    def _held(self, call: ast.Call) -> Held:
        """What all uses of what a call reads say about it."""
        states = self._states.get(call, set())
        return _together([*states, *self._uses(call)])

    def _uses(self, call: ast.Call) -> Iterator[Held]:
        """What each use of a file, or of an entry of it, says about it, `load_state_dict` aside."""
        # Expressions, whether each is an entry, and whether calls that read other files give it as well.
        todo: list[tuple[ast.AST, bool, bool]] = [(call, False, False)]
        for node, is_entry, returned in todo:
            if len(todo) > _MOST_FOLLOWED:
                yield Held.OBJECTS
                return
            held, ahead = self._use(node, is_entry)
            if held is Held.GIVEN and (returned or self._is_open(node)):
                held = Held.OBJECTS
            yield held
            back = returned or isinstance(self._outer(node), ast.Return)
            for each, inside in ahead:
                if (each, inside, back) not in todo:
                    todo.append((each, inside, back))

    def _is_open(self, node: ast.AST) -> bool:
        """Whether an expression is what a function returns, to callers in other files, too."""
        function = self._flow.index.home_of(node)
        if not isinstance(self._outer(node), ast.Return) or not isinstance(
            function, (ast.FunctionDef, ast.AsyncFunctionDef)
        ):
            return False
        calls, closed = self._flow.calls_of(function)
        plain = isinstance(self._names.parents.get(function), ast.Module)
        return not calls or not (
            closed or (plain and len(self._flow.index.named(function.name)) == len(calls))
        )

    def _outer(self, node: ast.AST) -> ast.AST | None:
        outer = self._names.parents.get(node)
        return self._names.parents.get(outer) if isinstance(outer, ast.keyword) else outer

    def _use(self, node: ast.AST, is_entry: bool) -> tuple[Held, list[tuple[ast.AST, bool]]]:
        """What the use of an expression says, and where its value goes, with whether that is an entry."""
        parent = self._outer(node)
        free = Held.PLAIN if is_entry else Held.GIVEN  # a use that says nothing
        if isinstance(parent, ast.Attribute):
            outer = self._names.parents.get(parent)
            if not isinstance(outer, ast.Call) or outer.func is not parent:
                return Held.OBJECTS, []
            if parent.attr in _TAKES and outer.args and not is_entry:
                return self._entry(outer, outer.args[0])
            if parent.attr == "copy":
                return Held.PLAIN, [(outer, is_entry)]
            plain = parent.attr in _DICT_METHODS | _TAKES or (is_entry and parent.attr in _OF_TENSORS)
            return Held.PLAIN if plain else Held.OBJECTS, []
        if isinstance(parent, ast.Subscript) and node is parent.value:
            return (Held.PLAIN, []) if is_entry else self._entry(parent, parent.slice)
        if isinstance(parent, ast.Call):
            if node is parent.func:
                return Held.OBJECTS, []
            name = last_name(parent.func)
            if _loads_state(parent) or (isinstance(parent.func, ast.Name) and name in _LOOKS):
                return Held.PLAIN, []
            if name in _COPIES and node in parent.args[:1]:
                return Held.PLAIN, [(parent, is_entry)]
        if isinstance(
            parent, (ast.Compare, ast.For, ast.comprehension, ast.If, ast.While, ast.Delete, ast.Expr)
        ):
            return Held.PLAIN, []
        if isinstance(parent, ast.IfExp) and node is parent.test:
            return Held.PLAIN, []
        ahead = [(each, is_entry) for each in self._forward.of(node)]
        if isinstance(parent, ast.Return) and self._is_open(node):
            return free, ahead
        kept = isinstance(parent, ast.Assign) and all(
            isinstance(target, ast.Name) for target in parent.targets
        )
        return Held.PLAIN if kept or (ahead and not isinstance(parent, ast.Assign)) else free, ahead

    def _entry(self, node: ast.expr, key: ast.expr) -> tuple[Held, list[tuple[ast.AST, bool]]]:
        """What an entry that is read says about the whole file by its key, and where the entry goes."""
        end = key.right if isinstance(key, ast.BinOp) else key
        end = key.values[-1] if isinstance(key, ast.JoinedStr) and key.values else end
        text = getattr(end, "value", "")
        if not isinstance(text, str) or not text:
            return Held.PLAIN, [(node, True)]
        if _WEIGHT.search(text):
            return Held.STATE, []
        if end is not key:
            return Held.PLAIN, [(node, True)]
        if PARAMETER.search(text):
            return Held.PLAIN, []
        if _OBJECT_KEY.search(text):
            return Held.OBJECTS, []
        return Held.ENTRY if _STATE_KEY.search(text) else Held.PART, [(node, True)]

    def _excludes(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether two places are in different branches of a statement, only one of them runs."""
        above = dict(self._branches(one))
        return any(above.get(parent, branch) != branch for parent, branch in self._branches(other))

    def _branches(self, node: ast.AST) -> Iterator[tuple[ast.AST, object]]:
        """The `if` and `match` statements around a place, with the branch that it is in."""
        for parent in self._flow.index.around(node):
            if isinstance(parent, ast.If):
                yield parent, node in parent.orelse
            elif isinstance(parent, ast.Match):
                yield parent, node
            node = parent


def _together(held: Iterable[Held]) -> Held:
    """What several uses say together."""
    every = set(held)
    if Held.OBJECTS in every:
        return Held.OBJECTS
    if Held.STATE in every:  # and it may have one as an entry
        return Held.ENTRY if every & {Held.ENTRY, Held.PART} else Held.STATE
    return Held.GIVEN if Held.GIVEN in every else max(every, default=Held.PLAIN)


def _loads_state(call: ast.Call) -> bool:
    return last_name(call.func).endswith("load_state_dict")


def _made(value: ast.AST | None) -> tuple[ast.expr, list[str]] | None:
    """The class of `Class(...).method().other()`, by its name, and the methods."""
    called: list[str] = []
    while isinstance(value, ast.Call):
        function = value.func
        if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call)):
            return function, called
        called.append(function.attr)
        value = function.value
    return None
