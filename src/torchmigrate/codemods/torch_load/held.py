"""What the files hold that a module loads, by how the results are used."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import cached_property

from torchmigrate.codemods.torch_load.calls import (
    called_name,
    is_steady,
    path_of,
    read_from,
    steady_path,
    written_by,
)
from torchmigrate.patterns import pattern
from torchmigrate.project.checkpoints import (
    GROUPS,
    PARAMETER,
    Saved,
    file_name,
    is_of_optimizer,
    may_hold_settings,
    may_save,
    may_write,
)
from torchmigrate.project.own_states import OwnStates
from torchmigrate.rewrite.context import FileContext
from torchmigrate.semantics.flow.reaching import Definition, Reaching, Seen, reaching
from torchmigrate.semantics.model import Role, Use
from torchmigrate.semantics.values.slots import UNKNOWN
from torchmigrate.semantics.values.types import STATED, SURE, level
from torchmigrate.source.trees import walk

_DICT_METHODS = frozenset(["items", "keys", "values", "update", "copy"])
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
# Stored with objects as well as with state dicts: if only these are read, the rest of the file is unknown.
_NUMBER_KEY = pattern(r"(?i)epoch|step|iter|best|loss|acc")


_Scoped = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
# With these, modules keep in their state dicts what they like: `io.BytesIO` in TransformerEngine before 2.0.
_EXTRA_STATES = ("get_extra_state", "transformer_engine")
_MOST_FOLLOWED = 500  # calls of the file's functions into which a value is followed
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

    OBJECTS = 0  # it may be anything
    PLAIN = 1  # nothing that only plain containers have
    NUMBER = 2  # it has an entry that is a number
    PART = 3  # it has an entry that is not a weight
    STATE = 4  # tensors by name
    ENTRY = 5  # entries of it are tensors by name; the other entries are unknown


class Loading:
    """What all functions of a file share, computed when it is first needed."""

    def __init__(self, file: FileContext) -> None:
        self.file = file
        self._entered: set[ast.AST] = set()  # functions whose use of their arguments is being computed
        self._followed = 0
        self._bodies: dict[ast.AST, Body] = {}

    def release(self) -> None:
        """Let go of the functions, which know the file: all that is known of it would be garbage."""
        self._bodies.clear()

    def body(self, node: ast.AST) -> Body:
        """A function, or the module, by its node."""
        if node not in self._bodies:
            self._bodies[node] = Body(node, self)
        return self._bodies[node]

    @contextmanager
    def entering(self, node: ast.AST) -> Iterator[bool]:
        """Enter a function (or the module); false if it is entered already, or if too many are."""
        if node in self._entered or self._followed == _MOST_FOLLOWED:
            yield False
            return
        self._followed += 1
        self._entered.add(node)
        yield True
        self._entered.discard(node)

    @cached_property
    def functions(self) -> dict[str, list[ast.FunctionDef]]:
        """The functions of each name that the module defines, at its top."""
        found: dict[str, list[ast.FunctionDef]] = {}
        for node in self.file.names.nodes(ast.FunctionDef):
            if isinstance(self.file.names.parents.get(node), ast.Module):
                found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def states(self) -> set[ast.Call]:
        """The calls of `state_dict` of modules and optimizers of torch, with nothing of others in them."""
        if any(word in self.file.source.text for word in _EXTRA_STATES):
            return set()
        return {
            use.call
            for use in self.file.names.uses
            if use.call is not None
            and use.sure
            and not use.stated
            and use.candidates[0].startswith("torch.")
            and use.candidates[0].endswith(".state_dict")
        }

    @cached_property
    def saves(self) -> dict[ast.AST, list[Use]]:
        """The calls of `torch.save`, by the node of their scope."""
        found: dict[ast.AST, list[Use]] = {}
        for use in self.file.names.uses:
            if use.sure and use.candidates == ("torch.save",) and use.call is not None:
                found.setdefault(use.scope.node, []).append(use)
        return found

    @cached_property
    def reads(self) -> dict[str, list[ast.Name]]:
        """The reads of each variable, in source order."""
        found: dict[str, list[ast.Name]] = {}
        for read in self.file.names.nodes(ast.Name):
            if isinstance(read.ctx, ast.Load):
                found.setdefault(read.id, []).append(read)
        for reads in found.values():
            reads.sort(key=_line)
        return found

    @cached_property
    def holds_objects(self) -> bool:
        """Whether checkpoints have more than tensors and plain containers in them.

        That is what the project, this file included, saves, or what this file reads of them. What a function
        saves that is given `torch.save` is not known.
        """
        return self._reads_settings or self._hands_save_on or self._saves_objects

    @property
    def _hands_save_on(self) -> bool:
        return any(
            use.candidates == ("torch.save",) and use.role is Role.REFERENCE for use in self.file.names.uses
        )

    @property
    def _reads_settings(self) -> bool:
        """Whether the file takes settings from what it loads: `torch.load(path)["args"]`."""
        loads = {
            use.call
            for use in self.file.names.uses
            if use.call is not None and use.candidates == ("torch.load",)
        }
        return any(
            node.value in loads
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
            and _OBJECT_KEY.search(node.slice.value) is not None
            for node in self.file.names.nodes(ast.Subscript)
        )

    @property
    def _saves_objects(self) -> bool:
        if may_hold_settings(self._data) or self.file.saves_objects():  # what takes less time first
            return True
        return may_save(self._data) and self.saved.holds_objects

    @property
    def sets_objects(self) -> bool:
        """Whether rates of optimizers are numbers of NumPy in this file, and so in their state dicts."""
        return GROUPS in self._data and self.saved.sets_objects

    @cached_property
    def saved(self) -> Saved:
        """What this file saves."""
        return Saved(self.file.source.parse(), self._data)

    @cached_property
    def states_made(self) -> OwnStates:
        """What the classes of the file keep in state dicts that they make."""
        return OwnStates(self.file.source.parse(), self.saved)

    def keeps_objects(self, made: ast.expr, called: Sequence[str]) -> bool:
        """Whether a class puts objects into the state dict that it makes. called: as in `OwnStates`."""
        names, project, path = self.file.names, self.file.project, self.file.path
        if isinstance(made, ast.Name) and made.id in self.states_made:
            return self.states_made.keeps_objects(
                made.id, called, lambda node: project.is_plain(path, names, node)
            )
        return project.keeps_objects(path, names, made, called)

    def written_as(self, path: ast.expr, scope: ast.AST) -> str | None:
        """The key of a path among the files that this file saves; None: it saves none, or no key is known."""
        return self.saved.written_as(path, scope) if may_write(self._data) else None

    def values_of(self, node: ast.Name | ast.Attribute, scope: ast.AST) -> list[ast.expr | None]:
        """What a variable of the file, or an attribute, may have; None: unknown."""
        return self.saved.values_of(node, scope)

    def saved_as(self, name: str) -> Iterator[ast.expr]:
        """What this file saves under a name."""
        return self.saved.saved_as(name) if may_write(self._data) else iter(())

    def is_object(self, node: ast.expr) -> bool:
        """Whether a value is surely a module or an optimizer: by its methods that the file calls."""
        return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in self._objects

    @cached_property
    def _objects(self) -> set[str]:
        states = {
            ast.unparse(target)
            for node in self.file.names.nodes(ast.Assign)
            if isinstance(node.value, ast.Dict) or "state_dict(" in ast.unparse(node.value)
            for target in node.targets
        }
        called = {
            ast.unparse(function.value)
            for call in self.file.names.nodes(ast.Call)
            if isinstance(function := call.func, ast.Attribute)
            and function.attr in _OF_OBJECTS
            and isinstance(function.value, (ast.Name, ast.Attribute))
        }
        return called - states

    @cached_property
    def _data(self) -> bytes:
        return self.file.source.text.encode("utf-8", "surrogatepass")

    @cached_property
    def _plainly(self) -> dict[str, bool]:
        return self.saved.plainly if may_write(self._data) else {}

    def is_plain(self, name: str | None) -> bool:
        """Whether files of a name are written by this file or by files of its directory, and all are
        plain."""
        if name is None or self._plainly.get(name) is False:
            return False
        plain = self.file.saves_plainly(name)
        return plain is True or (plain is None and name in self._plainly)


class Body:
    """One function, or the module: where its values go."""

    def __init__(self, node: ast.AST, shared: Loading) -> None:
        file = shared.file
        assert isinstance(node, _Scoped)
        self._node = node
        self._shared = shared
        self._lines = 0, file.source.line_count
        if not isinstance(node, ast.Module):
            self._lines = node.lineno, node.end_lineno or node.lineno
        self._file = file
        self._open: set[ast.AST] = set()
        self._loaded: dict[tuple[str, Seen], bool] = {}  # whether a variable goes to `load_state_dict`
        self._result: Callable[[], Held] | None = None  # what the caller says of what is returned
        self.loads: list[tuple[ast.Call, ast.stmt]] = []  # the calls of `torch.load` in it

    @property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return self._file.names.parents

    @cached_property
    def _flow(self) -> Reaching:
        node = self._node
        statements = node.body if isinstance(node.body, list) else []
        return reaching(statements, None if isinstance(node, ast.Module) else node.args)

    @cached_property
    def _definitions(self) -> dict[ast.expr, list[Definition]]:
        """Value -> what gets it."""
        found: dict[ast.expr, list[Definition]] = {}
        for definition in self._flow.every:
            if definition.value is not None:
                found.setdefault(definition.value, []).append(definition)
        return found

    @cached_property
    def _saved(self) -> dict[object, list[tuple[int, ast.expr | None]]]:
        """Where the body saves what, by what the path means."""
        found: dict[object, list[tuple[int, ast.expr | None]]] = {}
        for use in self._shared.saves.get(self._node, ()):
            if use.call is not None and (key := self._key(path_of(use.call))) is not None:
                found.setdefault(key, []).append((use.start, written_by(use.call)))
        return found

    def _saved_to(self, path: ast.expr | None) -> list[tuple[int, ast.expr | None]]:
        """What the body saves to a path, with the places."""
        if self._node not in self._shared.saves:
            return []
        return self._saved.get(self._key(path), [])

    def _key(self, path: ast.expr | None) -> object:
        """The same for expressions that give the same path or stream: their names mean the same, too."""
        return (ast.dump(path), self._means(path)) if path is not None and is_steady(path) else None

    def cases(self) -> Iterator[tuple[ast.Call, LoadCase]]:
        """The calls with the case of the rule that each is: the same for all that read the same file."""
        written = {call: self._written(call) for call, _ in self.loads}
        paths = Counter(steady_path(call) for call, _ in self.loads)
        groups: dict[object, list[tuple[ast.Call, ast.stmt]]] = {}
        for call, statement in self.loads:
            own, path = written[call], steady_path(call)
            if own is not None:
                yield call, own
            else:
                key = (path, self._means(read_from(call))) if path and paths[path] > 1 else id(call)
                groups.setdefault(key, []).append((call, statement))
        for group in groups.values():
            yield from self._cases(group)

    def _written(self, call: ast.Call) -> LoadCase | None:
        """The case of what the same function wrote before; None: it wrote nothing there."""
        start = self._file.source.span(call)[0]
        written = [what for at, what in self._saved_to(read_from(call)) if at < start]
        states = [True if self._holds_tensors(what, SURE) else self._is_state_dict(what) for what in written]
        if False in states and all(
            self._holds_tensors(what, STATED) or self._is_plain(what) for what in written
        ):
            return LoadCase.PLAIN_FILE
        if not states or (None in states and False not in states):
            return None
        return LoadCase.OWN_STATE if all(states) else LoadCase.OWN_FILE

    def reads_whole_object(self, call: ast.Call) -> bool:
        """Whether all that this function, or else the file, saves to a path are modules and optimizers."""
        path, start = read_from(call), self._file.source.span(call)[0]
        written = [what for at, what in self._saved_to(path) if at < start]
        if not written and (name := self._file_name(path)) is not None:
            written = list(self._shared.saved_as(name))
        return bool(written) and all(what is not None and self._shared.is_object(what) for what in written)

    def _holds_tensors(self, node: ast.expr | None, least: int, depth: int = 0) -> bool:
        """Whether a value is a tensor, or a plain container that is written out with some in it.

        least: how far it must be known that something is a tensor.
        """
        if node is None or depth > _DEEPEST:
            return False
        if isinstance(node, ast.Constant):
            return isinstance(node.value, (str, int, float, type(None)))
        if isinstance(node, (ast.Tuple, ast.List)):
            return all(self._holds_tensors(item, least, depth + 1) for item in node.elts)
        if isinstance(node, ast.Dict):
            parts = [*node.keys, *node.values]
            return all(self._holds_tensors(item, least, depth + 1) for item in parts)
        if level(self._file.names.values.get(id(node), UNKNOWN)) >= least:
            return True
        # A tuple stays as it is; a list or dictionary with a name may get other items.
        seen = self._flow.of(node) if isinstance(node, ast.Name) else ()
        return bool(seen) and all(
            isinstance(item.value, ast.Tuple) and self._holds_tensors(item.value, least, depth + 1)
            for item in seen
        )

    def _is_state_dict(self, node: ast.expr | None) -> bool | None:
        """Whether a value is a state dict that has tensors and plain numbers in it.

        None: of an object that may have any others in it, since its class is not seen.
        """
        if not (isinstance(node, ast.Call) and called_name(node) == "state_dict"):
            return False
        if is_of_optimizer(node) and self._shared.sets_objects:
            return False
        return True if node in self._shared.states else None

    def _cases(self, group: list[tuple[ast.Call, ast.stmt]]) -> Iterator[tuple[ast.Call, LoadCase]]:
        """The cases of calls that read the same file: one case, but in branches that exclude each other."""
        found = {call: self._read(call, statement) for call, statement in group}
        if any(held >= Held.STATE for held in found.values()):  # so that is what a function gets as well
            found = {
                call: Held.PLAIN if not held and self._is_given(call) else held
                for call, held in found.items()
            }
        every = _together(found.values())
        apart = every in (Held.OBJECTS, Held.ENTRY) and 1 < len(group) <= _MOST_APART
        for call in found:
            held = every
            if apart:
                held = _together(found[other] for other in found if not self._excludes(call, other))
            yield call, self._case(call, held)

    def _case(self, call: ast.Call, held: Held) -> LoadCase:
        if held is Held.STATE or (held is Held.ENTRY and not self._shared.holds_objects):
            return LoadCase.STATE
        path = read_from(call)
        is_plain = self._writes_plainly(path) or self._shared.is_plain(self._file_name(path))
        return LoadCase.PLAIN_FILE if is_plain else LoadCase.UNKNOWN

    def _writes_plainly(self, path: ast.expr | None) -> bool:
        """Whether the same function writes what is plain to the file, as one that keeps what it computes."""
        every = self._saved_to(path)
        return bool(every) and all(self._is_plain(what) for _, what in every)

    def _is_plain(self, what: ast.expr | None) -> bool:
        seen = self._flow.of(what) if isinstance(what, ast.Name) else None
        values = [item.value for item in seen] if seen else [what]
        if isinstance(what, ast.Name) and any(map(self._adds_items, self._reads(what.id))):
            values.append(what)
        return all(value is not None and self._shared.saved.is_plain(value, self._node) for value in values)

    def _adds_items(self, read: ast.Name) -> bool:
        """Whether a read of a variable adds something to what it holds."""
        parent = self._parents.get(read)
        if isinstance(parent, ast.Attribute):
            return parent.attr in ("append", "extend", "insert", "update", "setdefault", "add")
        return isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store)

    def _excludes(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether two places are in different branches of a statement, only one of them runs."""
        above = {id(parent): branch for parent, branch in self._branches(one)}
        return any(above.get(id(parent), branch) != branch for parent, branch in self._branches(other))

    def _branches(self, node: ast.AST) -> Iterator[tuple[ast.AST, int | str]]:
        """The `if` and `match` statements around a place, with the branch that it is in."""
        while (parent := self._parents.get(node)) is not None and parent is not self._node:
            if isinstance(parent, ast.If):
                yield parent, "else" if node in parent.orelse else "if"
            elif isinstance(parent, ast.Match):
                yield parent, id(node)
            node = parent

    def _file_name(self, path: ast.expr | None) -> str | None:
        """What a file is called that is read."""
        if path is None:
            return None
        name = file_name(path, self._values)
        return self._shared.written_as(path, self._node) if name is None else name

    def _values(self, node: ast.Name | ast.Attribute) -> list[ast.expr | None]:
        """What a variable may have where it is read; of those of others and of attributes: in the file."""
        seen = self._flow.of(node) if isinstance(node, ast.Name) else None
        return [item.value for item in seen] if seen else self._shared.values_of(node, self._node)

    def _read(self, call: ast.Call, statement: ast.stmt) -> Held:
        parent = self._file.around.parent(call, statement)
        if isinstance(parent, ast.Call) and call is not parent.func and _loads_state(parent):  # most of them
            return self._state_for(parent)
        self._open.clear()
        return self._held(call)

    def _means(self, path: ast.expr | None) -> tuple[Seen, ...]:
        """What the names in an expression mean."""
        names = walk(path) if path is not None else ()
        return tuple(self._flow.of(node) for node in names if isinstance(node, ast.Name))

    def _state_for(self, call: ast.Call) -> Held:
        """What a call of `load_state_dict` implies: rates of optimizers may be numbers of NumPy."""
        if self._keeps_objects(call):
            return Held.OBJECTS
        return Held.ENTRY if is_of_optimizer(call) and self._shared.sets_objects else Held.STATE

    def _keeps_objects(self, call: ast.Call) -> bool:
        """Whether the class of what loads a state dict makes its own, with more than plain things in it."""
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is None or call.func.attr != "load_state_dict":  # type: ignore[attr-defined]
            return False
        if isinstance(owner, ast.Name) and (own := self._class_of_self(owner)) is not None:
            return self._shared.keeps_objects(ast.Name(own, ast.Load()), ())
        values = self._values(owner) if isinstance(owner, (ast.Name, ast.Attribute)) else [owner]
        return any(self._shared.keeps_objects(*made) for value in values if (made := _made(value)))

    def _class_of_self(self, name: ast.Name) -> str | None:
        """The class whose object a name is, in one of its methods."""
        node = self._node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.decorator_list:
            return None
        around = self._parents.get(node)
        first = next((each.arg for each in [*node.args.posonlyargs, *node.args.args]), None)
        return around.name if isinstance(around, ast.ClassDef) and name.id == first else None

    # ---- the uses of a result ---------------------------------------------------------------------------

    def _held(self, node: ast.expr) -> Held:
        """What the use of a whole file says about it."""
        parent = self._parents.get(node)
        outer = self._parents.get(parent) if parent is not None else None
        if isinstance(parent, ast.keyword) and isinstance(outer, ast.Call):
            parent = outer
        if isinstance(parent, ast.Call) and node is not parent.func:
            return self._state_for(parent) if _loads_state(parent) else self._given(node, parent)
        if isinstance(parent, ast.Subscript) and node is parent.value:
            return self._part(parent, parent.slice)
        if isinstance(parent, ast.Attribute) and isinstance(outer, ast.Call) and outer.func is parent:
            if parent.attr in _TAKES and outer.args:
                return self._part(outer, outer.args[0])
            if parent.attr == "copy":
                return self._held(outer)
            return self._copied(outer) if parent.attr in _DICT_METHODS else Held.OBJECTS
        if isinstance(parent, (ast.IfExp, ast.BoolOp)):
            is_test = isinstance(parent, ast.IfExp) and node is parent.test
            return Held.PLAIN if is_test else self._held(parent)
        if isinstance(parent, (ast.Compare, ast.For, ast.If, ast.While, ast.Delete)):
            return Held.PLAIN
        if isinstance(parent, ast.comprehension):
            return self._copied(node)
        if isinstance(parent, ast.Return):
            return self._returned if self._result is None else self._result()
        return self._named(node, self._held)

    @cached_property
    def _returned(self) -> Held:
        """What the callers in the file say of what the function returns, where it is only called."""
        functions = self._shared.functions
        if not isinstance(self._node, ast.FunctionDef) or functions.get(self._node.name) != [self._node]:
            return Held.OBJECTS
        reads = self._shared.reads.get(self._node.name, [])
        calls = [parent for read in reads if isinstance(parent := self._parents.get(read), ast.Call)]
        if not reads or any(call.func is not read for call, read in zip(calls, reads, strict=False)):
            return Held.OBJECTS
        return _together(map(self._used, calls)) if len(calls) == len(reads) else Held.OBJECTS

    def _used(self, call: ast.Call) -> Held:
        """What is done with the result of a call, anywhere in the file."""
        around = self._parents.get(call)
        while around is not None and not isinstance(around, _Scoped):
            around = self._parents.get(around)
        return self._shared.body(around).result_of(call) if around is not None else Held.OBJECTS

    def result_of(self, call: ast.Call) -> Held:
        """What is done with the result of a call in this body."""
        with self._shared.entering(self._node) as free:
            if not free:
                return Held.OBJECTS
            before, self._open = self._open, set()
            held = self._held(call)
            self._open = before
            return held

    def given(self, name: str, result: Callable[[], Held]) -> Held:
        """What the function does with what it gets as a parameter; `result`: what is done with its result."""
        with self._shared.entering(self._node) as free:
            if not free:
                return Held.OBJECTS
            before, self._result, self._open = (self._result, self._open), result, set()
            reads = [
                read
                for read in self._reads(name)
                if any(item.statement is None for item in self._flow.of(read)) or self._is_captured(read)
            ]
            held = _together(self._held(read) for read in reads)
            self._result, self._open = before
            return held

    def _part(self, node: ast.expr, key: ast.expr) -> Held:
        """What the use of one entry says about the whole file."""
        end = key.values[-1] if isinstance(key, ast.JoinedStr) and key.values else key
        if isinstance(end, ast.Constant) and isinstance(end.value, str) and _WEIGHT.search(end.value):
            return Held.STATE
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            if self._is_renamed(node):
                return Held.STATE
            return Held.ENTRY if self._entry(node) is Held.STATE else Held.PLAIN
        if PARAMETER.search(key.value):
            return Held.PLAIN
        if _OBJECT_KEY.search(key.value):
            return Held.OBJECTS
        held = self._entry(node)
        if held is Held.STATE or (held is Held.PLAIN and _STATE_KEY.search(key.value)):
            return Held.ENTRY
        if held is Held.PLAIN and _NUMBER_KEY.search(key.value):
            return Held.NUMBER
        return Held.PART if held is Held.PLAIN else held

    def _is_renamed(self, node: ast.expr) -> bool:
        """Whether an entry goes into a state dict: `new[key[7:]] = state[key]`."""
        parent = self._parents.get(node)
        target = parent.targets[0] if isinstance(parent, ast.Assign) else None
        is_entry = isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)
        return is_entry and self._filled(target.value) is Held.STATE  # type: ignore[union-attr]

    def _entry(self, node: ast.expr) -> Held:
        """What the use of an entry says: whatever it is used for, but for what only other objects have."""
        parent = self._parents.get(node)
        outer = self._parents.get(parent) if parent is not None else None
        if isinstance(parent, ast.Attribute):
            called = isinstance(outer, ast.Call) and outer.func is parent
            plain = called and parent.attr in _DICT_METHODS | _TAKES | _OF_TENSORS
            return Held.PLAIN if plain else Held.OBJECTS
        if isinstance(parent, ast.Call) and node is parent.func:
            return Held.OBJECTS
        if isinstance(parent, ast.Call) and _loads_state(parent):
            return Held.OBJECTS if self._keeps_objects(parent) else Held.STATE
        return self._named(node, self._entry) if node in self._definitions else Held.PLAIN

    def _given(self, node: ast.expr, call: ast.Call) -> Held:
        """What a call says that gets a whole file."""
        function, name = call.func, called_name(call)
        if name in _COPIES and node in call.args[:1]:
            return self._held(call)
        if isinstance(function, ast.Name):
            return Held.PLAIN if name in _LOOKS else self._handed(node, call, function)
        if name == "update" and isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            return self._filled(function.value)  # `own.update(loaded); net.load_state_dict(own)`
        return Held.OBJECTS

    def _handed(self, node: ast.expr, call: ast.Call, called: ast.Name) -> Held:
        """How a function of the file uses a whole file that it gets, and how its callers use the result."""
        own = [] if isinstance(self._node, ast.Module) else [item.statement for item in self._flow.of(called)]
        functions = own or self._shared.functions.get(called.id, [])
        function = functions[0] if len(functions) == 1 else None
        if not isinstance(function, ast.FunctionDef):
            return Held.OBJECTS
        parameters = [item.arg for item in [*function.args.posonlyargs, *function.args.args]]
        name = next((item.arg for item in call.keywords if item.value is node), None)
        before = call.args[: call.args.index(node)] if node in call.args else []
        if name is None and node in call.args and not any(isinstance(item, ast.Starred) for item in before):
            name = next(iter(parameters[len(before) :]), None)
        if name is None or (function.decorator_list and name not in parameters):
            return Held.OBJECTS
        return self._shared.body(function).given(name, lambda: self._held(call))

    def _filled(self, name: ast.Name) -> Held:
        """What is known of the values that a variable gets as entries: tensors, if it is a state dict."""
        seen = self._flow.of(name)
        given = any(
            self._flow.of(read) & seen and (self._is_loaded(read) or self._updates(read))
            for read in self._reads(name.id)
        )
        return Held.STATE if seen and given else Held.OBJECTS

    def _updates(self, node: ast.Name) -> bool:
        """Whether a value changes a state dict: `own.update(new); net.load_state_dict(own)`."""
        call = self._parents.get(node)
        if not (isinstance(call, ast.Call) and node in call.args and called_name(call) == "update"):
            return False
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(owner, ast.Name) or owner.id == node.id:
            return False
        seen = self._flow.of(owner)
        key = owner.id, seen
        if key not in self._loaded:
            reads = self._reads(owner.id)
            self._loaded[key] = any(self._flow.of(read) & seen and self._is_loaded(read) for read in reads)
        return self._loaded[key]

    def _is_loaded(self, node: ast.expr) -> bool:
        parent = self._parents.get(node)
        if isinstance(parent, ast.keyword):
            parent = self._parents.get(parent)
        if isinstance(parent, ast.Return) and self._result is not None:
            return self._result() is Held.STATE
        return isinstance(parent, ast.Call) and node is not parent.func and _loads_state(parent)

    def _copied(self, node: ast.expr) -> Held:
        """The entries after a comprehension: `{k[7:]: v for k, v in state.items()}`.

        Or in a loop: `for k, v in state.items(): new[k[7:]] = v`.
        """
        parent = self._parents.get(node)
        if isinstance(parent, ast.For) and isinstance(parent.target, ast.Tuple):
            value = parent.target.elts[-1]
            for inner in parent.body:
                filled = _fills(inner, value.id) if isinstance(value, ast.Name) else None
                if filled is not None and self._filled(filled) is Held.STATE:
                    return Held.STATE
        made = self._parents.get(parent) if isinstance(parent, ast.comprehension) else None
        outer = self._parents.get(made) if isinstance(made, (ast.ListComp, ast.GeneratorExp)) else None
        if isinstance(outer, ast.Call) and called_name(outer) in _COPIES:
            made = outer  # `dict([(k[7:], v) for k, v in ...])`
        if isinstance(made, (ast.DictComp, ast.Call)):
            return max(Held.PLAIN, self._held(made))
        return Held.PLAIN

    def _named(self, node: ast.expr, ask: Callable[[ast.expr], Held]) -> Held:
        """The same of every read of the variables that get a value; `OBJECTS` where it goes elsewhere."""
        definitions = self._definitions.get(node)
        if not definitions or node in self._open:
            return Held.PLAIN if node in self._open else Held.OBJECTS
        self._open.add(node)
        parent = self._parents[node]
        targets = parent.targets if isinstance(parent, ast.Assign) else [getattr(parent, "target", None)]
        if not all(isinstance(target, ast.Name) for target in targets):
            return Held.OBJECTS
        reads = [
            read
            for definition in definitions
            for read in self._reads(definition.name)
            if definition in self._flow.of(read) or self._is_captured(read)
        ]
        # A function that gets the very thing that is loaded as a state dict gets a state dict.
        states = {(read.id, self._flow.of(read)) for read in reads if self._is_loaded(read)}
        return _together(
            ask(read)
            for read in reads
            if (read.id, self._flow.of(read)) not in states or not self._is_given(read)
        )

    def _is_captured(self, read: ast.Name) -> bool:
        """Whether a nested function reads a variable of this body, and not one of its own."""
        if self._flow.of(read):
            return False
        around = self._parents.get(read)
        while around is not None and around is not self._node:
            if isinstance(around, _Scoped) and read.id in self._shared.body(around).binds:
                return False
            around = self._parents.get(around)
        return True

    @cached_property
    def binds(self) -> frozenset[str]:
        """The variables that are given a value here."""
        return frozenset(definition.name for definition in self._flow.every)

    def _is_given(self, node: ast.expr) -> bool:
        """Whether a function gets a value that nothing is known of."""
        parent = self._parents.get(node)
        if not isinstance(parent, ast.Call) or node not in parent.args or _loads_state(parent):
            return False
        return self._given(node, parent) is Held.OBJECTS

    def _reads(self, name: str) -> list[ast.Name]:
        """The reads of a variable in the body, nested functions included."""
        reads, (first, last) = self._shared.reads.get(name, []), self._lines
        return reads[bisect_left(reads, first, key=_line) : bisect_right(reads, last, key=_line)]


def _line(node: ast.Name) -> int:
    return node.lineno


def _together(held: Iterable[Held]) -> Held:
    """`OBJECTS` if one is, else `ENTRY`, `STATE`; nothing is `PLAIN`."""
    every = set(held)
    if Held.STATE in every and not every.isdisjoint(
        (Held.NUMBER, Held.PART)
    ):  # it is a state dict here, and has one as an entry there
        every.add(Held.ENTRY)
    return Held.OBJECTS if Held.OBJECTS in every else max(every, default=Held.PLAIN)


def _loads_state(call: ast.Call) -> bool:
    return called_name(call).endswith("load_state_dict")


def _made(value: ast.expr | None) -> tuple[ast.expr, list[str]] | None:
    """The class of `Class(...).method().other()`, by its name, and the methods."""
    called: list[str] = []
    while isinstance(value, ast.Call):
        function = value.func
        if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call)):
            return function, called
        called.append(function.attr)
        value = function.value
    return None


def _fills(statement: ast.stmt, value: str) -> ast.Name | None:
    """The variable that gets a value as an entry in a statement or below it: `new[key] = value`."""
    for node in walk(statement):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == value:
            for target in node.targets:
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    return target.value
    return None
