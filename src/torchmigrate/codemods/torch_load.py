"""TM600: `torch.load` without `weights_only`: what the file has to hold, by what becomes of it.

`torch.load` with `weights_only=True` reads tensors, plain containers and numbers. Who hands the result to
`load_state_dict`, or takes it apart by the usual keys, needs no more than that.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import cached_property

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods._reaching import Definition, Reaching, reaching
from torchmigrate.fixes import FixPlanner
from torchmigrate.hits import Hit
from torchmigrate.model import Finding
from torchmigrate.names.model import Scope, Use
from torchmigrate.project.checkpoints import may_hold_objects

NEEDS_HITS = True  # a file without a hit of the rule has nothing for it
# Whoever sets this, or says which classes may be loaded, has decided already. (torch/serialization.py)
_SETTLED = ("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "safe_globals")
_DICT_METHODS = frozenset(["items", "keys", "values", "update", "copy"])
_TAKES = frozenset(["get", "pop"])
# Checkpoints keep settings as objects (`argparse.Namespace`, OmegaConf) under such keys.
_OBJECT_KEY = re.compile(r"(?i)arg|conf|cfg|\bopts?\b|options|hparam|hyper|vocab|token")
_STATE_KEY = re.compile(r"(?i)state|model|net|weight|param|optim|epoch|step|iter|best|loss|acc|ema")


_ASSIGNED = re.compile(r"torch\s*\.\s*load\s*(?:,[^\n]*)?=(?!=)")


class _Case(IntEnum):
    """The cases of the rule, in their order."""

    STATE = 0
    OWN_STATE = 1
    OWN_FILE = 2
    UNKNOWN = 3


class _Held(IntEnum):
    """What a use of what was loaded says about it."""

    OBJECTS = 0  # it may be anything
    PLAIN = 1  # nothing that other things than plain containers lack
    STATE = 2  # tensors by name
    ENTRY = 3  # entries of it are tensors by name; who knows what the others are


def find(rule: Rule, hits: Sequence[Hit], planner: FixPlanner) -> Iterator[Finding]:
    """The findings; where a state dict is read, the code is only outdated: the new default reads it, too."""
    text = planner.source.text
    if any(word in text for word in _SETTLED) or _is_replaced(planner):
        return
    scopes: dict[int, _Body] = {}
    file = _File(planner)
    chosen = []
    for hit in hits:
        case = _Case.UNKNOWN
        if hit.use.call is not None and hit.use.scope.kind in ("function", "module"):
            body = scopes.get(id(hit.use.scope))
            if body is None:
                body = scopes[id(hit.use.scope)] = _Body(hit.use.scope, file)
            case = body.case(hit.use.call, hit.use.statement)
        one = rule._replace(cases=(rule.cases[case],))
        if case in (_Case.STATE, _Case.OWN_STATE):
            one = one._replace(outdated=rule.changed, deprecated=None, changed=None)
        chosen.append(replace(hit, rule=one))
    yield from planner.findings(chosen)


def _is_replaced(planner: FixPlanner) -> bool:
    """Whether the file gives `torch.load` another default for all."""
    return _ASSIGNED.search(planner.source.text) is not None and any(
        isinstance(target, ast.Attribute) and ast.unparse(target) == "torch.load"
        for node in planner.names.nodes(ast.Assign)
        for target in node.targets
    )


class _File:
    """What all functions of a file share, worked out when it is first asked for."""

    def __init__(self, planner: FixPlanner) -> None:
        self.planner = planner

    @cached_property
    def saves(self) -> dict[int, list[Use]]:
        """The calls of `torch.save`, by the id() of their scope."""
        found: dict[int, list[Use]] = {}
        for use in self.planner.names.uses:
            if use.sure and use.candidates == ("torch.save",) and use.call is not None:
                found.setdefault(id(use.scope), []).append(use)
        return found

    @cached_property
    def reads(self) -> dict[str, list[ast.Name]]:
        """The reads of each variable, in source order."""
        found: dict[str, list[ast.Name]] = {}
        for read in self.planner.names.nodes(ast.Name):
            if isinstance(read.ctx, ast.Load):
                found.setdefault(read.id, []).append(read)
        for reads in found.values():
            reads.sort(key=_line)
        return found

    @cached_property
    def saves_objects(self) -> bool:
        """Whether the project, this file included, saves more than tensors and plain containers."""
        text = self.planner.source.text.encode("utf-8", "surrogatepass")
        return may_hold_objects(text) or self.planner.saves_objects()


class _Body:
    """One function, or the module: where its values go."""

    def __init__(self, scope: Scope, file: _File) -> None:
        planner, node = file.planner, scope.node
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module)
        self._node = node
        self._file = file
        self._lines = 0, planner.source.line_count
        if not isinstance(node, ast.Module):
            self._lines = node.lineno, node.end_lineno or node.lineno
        self._saved = [
            (use.start, _path(use.call), _what(use.call))
            for use in file.saves.get(id(scope), ())
            if use.call is not None
        ]
        self._planner = planner
        self._open: set[ast.AST] = set()

    @property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return self._planner.names.parents

    @cached_property
    def _flow(self) -> Reaching:
        node = self._node
        statements = node.body if isinstance(node.body, list) else []
        return reaching(statements, None if isinstance(node, ast.Module) else node.args, befores=False)

    @cached_property
    def _definitions(self) -> dict[ast.expr, list[Definition]]:
        """Value -> what gets it."""
        found: dict[ast.expr, list[Definition]] = {}
        for definition in self._flow.every:
            if definition.value is not None:
                found.setdefault(definition.value, []).append(definition)
        return found

    def case(self, call: ast.Call, statement: ast.stmt) -> _Case:
        """Which case of the rule a call of `torch.load` is."""
        start = self._planner.source.span(call)[0]
        path = call.args[0] if call.args else _keyword(call, "f")
        written = [
            what
            for at, saved, what in self._saved
            if path is not None and saved is not None and at < start and self._same(saved, path)
        ]
        if written:
            return _Case.OWN_STATE if all(map(_is_state_dict, written)) else _Case.OWN_FILE
        parent = self._planner.around.parent(call, statement)
        if isinstance(parent, ast.Call) and call is not parent.func:  # most of them
            return _Case.STATE if _loads_state(parent) else _Case.UNKNOWN
        self._open.clear()
        held = self._held(call)
        if held is _Held.ENTRY and self._file.saves_objects:
            return _Case.UNKNOWN
        return _Case.STATE if held in (_Held.STATE, _Held.ENTRY) else _Case.UNKNOWN

    def _same(self, one: ast.expr, other: ast.expr) -> bool:
        """Whether two expressions give the same path or stream: alike, and their names mean the same."""
        if any(isinstance(node, ast.Call) for node in ast.walk(one)) or ast.dump(one) != ast.dump(other):
            return False
        return [self._flow.of(node) for node in ast.walk(one) if isinstance(node, ast.Name)] == [
            self._flow.of(node) for node in ast.walk(other) if isinstance(node, ast.Name)
        ]

    # ---- what becomes of it ---------------------------------------------------------------------------

    def _held(self, node: ast.expr) -> _Held:
        """What the use of a whole file says about it."""
        parent = self._parents.get(node)
        outer = self._parents.get(parent) if parent is not None else None
        if isinstance(parent, ast.keyword) and isinstance(outer, ast.Call):
            parent = outer
        if isinstance(parent, ast.Call) and node is not parent.func:
            return _Held.STATE if _loads_state(parent) else _Held.OBJECTS
        if isinstance(parent, ast.Subscript) and node is parent.value:
            return self._part(parent, parent.slice)
        if isinstance(parent, ast.Attribute) and isinstance(outer, ast.Call) and outer.func is parent:
            if parent.attr in _TAKES and outer.args:
                return self._part(outer, outer.args[0])
            return self._copied(outer) if parent.attr in _DICT_METHODS else _Held.OBJECTS
        if isinstance(parent, ast.IfExp | ast.BoolOp):
            is_test = isinstance(parent, ast.IfExp) and node is parent.test
            return _Held.PLAIN if is_test else self._held(parent)
        if isinstance(parent, ast.Compare | ast.For | ast.If | ast.While | ast.Delete):
            return _Held.PLAIN
        if isinstance(parent, ast.comprehension):
            return self._copied(node)
        return self._named(node, self._held)

    def _part(self, node: ast.expr, key: ast.expr) -> _Held:
        """What the use of one entry says about the whole file."""
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            return _Held.PLAIN
        if _OBJECT_KEY.search(key.value):
            return _Held.OBJECTS
        held = self._entry(node)
        if held is _Held.STATE or (held is _Held.PLAIN and _STATE_KEY.search(key.value)):
            return _Held.ENTRY
        return held

    def _entry(self, node: ast.expr) -> _Held:
        """What the use of an entry says: whatever it is used for, but for what only other objects have."""
        parent = self._parents.get(node)
        outer = self._parents.get(parent) if parent is not None else None
        if isinstance(parent, ast.Attribute):
            called = isinstance(outer, ast.Call) and outer.func is parent
            return _Held.PLAIN if called and parent.attr in _DICT_METHODS | _TAKES else _Held.OBJECTS
        if isinstance(parent, ast.Call) and node is parent.func:
            return _Held.OBJECTS
        if isinstance(parent, ast.Call) and _loads_state(parent):
            return _Held.STATE
        return self._named(node, self._entry) if node in self._definitions else _Held.PLAIN

    def _copied(self, node: ast.expr) -> _Held:
        """What becomes of the entries in a comprehension: `{k[7:]: v for k, v in state.items()}`."""
        parent = self._parents.get(node)
        made = self._parents.get(parent) if isinstance(parent, ast.comprehension) else None
        if isinstance(made, ast.DictComp):
            return max(_Held.PLAIN, self._held(made))
        return _Held.PLAIN

    def _named(self, node: ast.expr, ask: Callable[[ast.expr], _Held]) -> _Held:
        """The same of every read of the variables that get a value; `OBJECTS` where it goes elsewhere."""
        definitions = self._definitions.get(node)
        if not definitions or node in self._open:
            return _Held.PLAIN if node in self._open else _Held.OBJECTS
        self._open.add(node)
        parent = self._parents[node]
        targets = parent.targets if isinstance(parent, ast.Assign) else [getattr(parent, "target", None)]
        if not all(isinstance(target, ast.Name) for target in targets):
            return _Held.OBJECTS
        return _together(
            ask(read)
            for definition in definitions
            for read in self._reads(definition.name)
            if not self._flow.of(read) or definition in self._flow.of(read)
        )

    def _reads(self, name: str) -> list[ast.Name]:
        """The reads of a variable in the body, nested functions included."""
        reads, (first, last) = self._file.reads.get(name, []), self._lines
        return reads[bisect_left(reads, first, key=_line) : bisect_right(reads, last, key=_line)]


def _line(node: ast.Name) -> int:
    return node.lineno


def _together(held: Iterable[_Held]) -> _Held:
    """`OBJECTS` if one says so, else `ENTRY`, `STATE`; nothing is `PLAIN`."""
    every = set(held)
    return _Held.OBJECTS if _Held.OBJECTS in every else max(every, default=_Held.PLAIN)


def _loads_state(call: ast.Call) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name.endswith("load_state_dict")


def _path(call: ast.Call) -> ast.expr | None:
    """Where `torch.save` writes to."""
    return call.args[1] if len(call.args) > 1 else _keyword(call, "f")


def _what(call: ast.Call) -> ast.expr | None:
    """What `torch.save` writes."""
    return call.args[0] if call.args else _keyword(call, "obj")


def _is_state_dict(node: ast.expr | None) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
    )


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
