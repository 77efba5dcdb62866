"""What one file takes from other modules, and what it patches, by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from torchmigrate.patterns import pattern
from torchmigrate.source.trees import Nodes, walk

_DOTTED = pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
# Calls that put something else in the place of a name: of unittest.mock, pytest, pytest-mock, the builtins.
_PATCHES = frozenset(["patch", "multiple", "setattr", "delattr", "spy", "stub"])
_MOST = 50  # meanings of a name that are distinguished
_SHORT = 200  # characters of a string that may be a name
_DOCTEST = pattern(r"^[ \t]*(?:>>>|\.\.\.) ?(.*)$", re.MULTILINE)
_LOADS = frozenset(["import_module", "__import__", "run_module", "find_spec", "reload"])
_MODULES = ("sys", "modules")  # `model.modules()` is something else
_GIVE_MODULES = frozenset(["import_module", "importorskip"])
_WHOLE = frozenset(["getattr", "hasattr", "vars", "dir", "getmembers"])


class Name(Struct, array_like=True, frozen=True):
    """A dotted name with the imports of its file written out.

    base: the directory in which a relative import looks; None: any that Python looks in.
    """

    base: tuple[str, ...] | None
    parts: tuple[str, ...]

    def plus(self, *parts: str) -> Name:
        return Name(self.base, (*self.parts, *parts))

    def first(self, part: str) -> Name:
        """The name up to a part of it."""
        return Name(self.base, self.parts[: self.parts.index(part) + 1])


class Mentions:
    """Names of modules and of what is in them, as a file has them.

    Args:
        tree: the syntax tree of the file.
        directory: that it is in, as parts of an absolute path.

    Attributes:
        stars: modules of star imports.
        names: every dotted name that begins with an import, as long as it is written; imports are among them.
        dynamic: those whose attributes may be read by computed names: `getattr(layers, name)`.
        strings: dotted names in strings.
        texts: other strings that may hold code, or the name of a file; of docstrings the examples.
        attributes: what is read from objects that are not imports.
        words: all plain names, and `attributes`.
        dynamic_objects: whether any attribute of such an object may be read.
        loads: whether modules are loaded by names in strings.
        patched: what is replaced by something else.
        filled_in: what is only set where it is missing.
        patched_anywhere: last parts of such names, where the rest is not known.
    """

    def __init__(self, tree: ast.Module, directory: tuple[str, ...]) -> None:
        self.stars: list[Name] = []
        self.names: set[Name] = set()
        self.dynamic: set[Name] = set()
        self.strings: set[tuple[str, ...]] = set()
        self.texts: list[str] = []
        self.attributes: set[str] = set()
        self.words: set[str] = set()
        self.dynamic_objects = False
        self.loads = False
        self.patched: set[Name] = set()
        self.filled_in: set[Name] = set()
        self.patched_anywhere: set[str] = set()
        self._directory = directory
        self._bound: dict[str, set[Name]] = {}
        nodes = Nodes(tree)
        for statement in nodes(ast.Import):
            self._import(statement)
        for taken in nodes(ast.ImportFrom):
            self._import_from(taken)
        for assignment in nodes(ast.Assign):  # `t = torch`
            for target in assignment.targets:
                if isinstance(target, ast.Name):
                    meant = self.meanings(assignment.value) or _loaded(assignment.value)
                    self._bound.setdefault(target.id, set()).update(meant)
        # Of names that mean very much, any attribute may be read, and be patched.
        often = [held for held in self._bound.values() if len(held) > _MOST]
        self.dynamic.update(*often)
        self._read_names(nodes)
        bare = {id(expression.value) for expression in nodes(ast.Expr)}  # docstrings
        shown = {id(item) for call in nodes(ast.Call) for item in _shown_file(call)}
        for constant in nodes(ast.Constant):
            if isinstance(constant.value, str) and id(constant) not in shown:
                (self._docstring if id(constant) in bare else self._string)(constant.value)
        for call in nodes(ast.Call):
            if _last(call.func) in _WHOLE and not _is_constant(call.args[1:2]):
                meant = [name for item in call.args[:1] for name in self.meanings(item)]
                self.dynamic.update(meant)
                self.dynamic_objects |= not meant
        filled_in = set(_filled_in(nodes))
        for attribute in nodes(ast.Attribute):
            if id(attribute) in filled_in:
                self.filled_in.update(self.meanings(attribute))
            elif not isinstance(attribute.ctx, ast.Load):
                self.patched.update(self.meanings(attribute))
                if often:
                    self.patched_anywhere.add(attribute.attr)
        for call in nodes(ast.Call):
            if not _PATCHES.isdisjoint(_parts(call.func)) and id(call) not in filled_in:
                self._patching_call(call)
                if often:
                    self.patched_anywhere.update(text.rpartition(".")[2] for text in _strings(call))
                    self.patched_anywhere.update(item.arg for item in call.keywords if item.arg)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = Name(None, tuple(alias.name.split(".")))
            self.names.add(name)
            bound = name if alias.asname else Name(None, name.parts[:1])
            self._bound.setdefault(alias.asname or name.parts[0], set()).add(bound)

    def _import_from(self, node: ast.ImportFrom) -> None:
        above = self._directory[: len(self._directory) - node.level + 1]
        parts = tuple(node.module.split(".")) if node.module else ()
        module = Name(above if node.level else None, parts)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
                continue
            self.names.add(module.plus(alias.name))
            self.loads |= alias.name in _LOADS or (*parts, alias.name) == _MODULES
            self._bound.setdefault(alias.asname or alias.name, set()).add(module.plus(alias.name))

    def _read_names(self, nodes: Nodes) -> None:
        attributes = nodes(ast.Attribute)
        inner = {id(node.value) for node in attributes}
        for node in attributes:
            meant = self.meanings(node)
            if not meant:
                self.attributes.add(node.attr)
            elif id(node) not in inner:
                self.names.update(meant)
        for name in nodes(ast.Name):
            self.words.add(name.id)
            if id(name) not in inner:
                self.names.update(self.meanings(name))
        self.words |= self.attributes
        self.loads |= not _LOADS.isdisjoint(self.words) or any(
            node.attr in _LOADS
            or (node.attr == "modules" and any(name.parts == _MODULES for name in self.meanings(node)))
            for node in attributes
        )

    def _docstring(self, text: str) -> None:
        """Prose takes nothing; the examples in it are code."""
        code = _DOCTEST.findall(text)
        if code:
            self.texts.append("\n".join(code))

    def _string(self, text: str) -> None:
        short = len(text) < _SHORT
        if short and not text.endswith(".py") and _DOTTED.fullmatch(text.lstrip(".")):
            self.strings.add(tuple(text.lstrip(".").split(".")))
        elif short or "import" in text:
            self.texts.append(text)

    def meanings(self, node: ast.AST) -> list[Name]:
        """What a chain of attributes may mean, if it begins with a name that an import binds."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        held = self._bound.get(root.id, ()) if isinstance(root, ast.Name) else ()
        # One that is bound a thousand times, or to `a.b` many times, is in `dynamic` instead.
        if not held or len(held) > _MOST:
            return []
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        return [name.plus(*reversed(parts)) for name in held]

    def bound(self, name: str) -> set[Name]:
        """What imports bind a name to."""
        return self._bound.get(name, set())

    # ---- what is patched -----------------------------------------------------------------------------

    def _patching_call(self, node: ast.Call) -> None:
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        words = [text for item in given for text in _strings(item)]
        objects = [name for item in node.args[:1] for name in self.meanings(item)]
        first = node.args[0] if node.args else None
        if (
            isinstance(first, ast.Constant)
            and isinstance(first.value, str)
            and "multiple" in _parts(node.func)
        ):
            objects.append(Name(None, tuple(first.value.split("."))))
        named = [keyword.arg for keyword in node.keywords if keyword.arg]
        for text in words:
            parts = tuple(text.split("."))
            if len(parts) > 1 and parts[0]:
                self.patched.add(Name(None, parts))
        for name in objects:
            for text in (*words, *named):
                self.patched.add(name.plus(*text.split(".")))
        # `setattr(Terminal, "isatty", value)` says the name; `setattr(TARGET, value)` and the others may not.
        said = _last(node.func) == "setattr" and len(node.args) > 2 and _is_constant(node.args[1:2])
        named_by = [] if said else node.args[:2]
        if any(isinstance(item, ast.Name) and not self.meanings(item) for item in named_by):
            # The name is a variable's: any string of the file.
            for parts in self.strings:
                if len(parts) > 1:
                    self.patched.add(Name(None, parts))
                self.patched.update(name.plus(*parts) for name in objects)
        for item in node.args[:2]:
            if isinstance(item, (ast.JoinedStr, ast.BinOp)):  # f"{MODULE}.cholesky"
                self.patched_anywhere.update(
                    text.rpartition(".")[2] for text in _strings(item) if "." in text
                )


def _filled_in(nodes: Nodes) -> Iterator[int]:
    """id() of what sets an attribute only where it is missing: `if not hasattr(dist, "f"): dist.f = ...`"""
    for branch in nodes(ast.If):
        yield from _set_in(branch.body, set(_said_missing(branch.test)))
    for attempt in nodes(ast.Try):
        tried = {
            node.attr
            for statement in attempt.body
            if isinstance(statement, ast.Expr)
            for node in [statement.value]
            if isinstance(node, ast.Attribute)
        }
        for handler in attempt.handlers if tried else ():
            if handler.type is not None and "AttributeError" in _parts(handler.type):
                yield from _set_in(handler.body, tried)


def _said_missing(test: ast.expr) -> Iterator[str]:
    """The attributes that are missing where a test is true."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _said_missing(part)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        call = test.operand
        if isinstance(call, ast.Call) and _last(call.func) == "hasattr" and len(call.args) == 2:
            yield from _strings(call.args[1])
        elif isinstance(call, ast.Compare) and isinstance(call.ops[0], ast.In):
            yield from _strings(call.left)
    elif isinstance(test, ast.Compare):
        call = test.left
        none = test.comparators[0]
        if isinstance(test.ops[0], ast.NotIn):
            yield from _strings(call)
        elif (
            isinstance(call, ast.Call)
            and _last(call.func) == "getattr"
            and isinstance(test.ops[0], ast.Is)
            and isinstance(none, ast.Constant)
            and none.value is None
        ):
            yield from _strings(call.args[1]) if len(call.args) > 1 else ()


def _set_in(body: list[ast.stmt], names: set[str]) -> Iterator[int]:
    """id() of what sets one of some attributes in a block."""
    for statement in body if names else ():
        for node in [*getattr(statement, "targets", ()), getattr(statement, "value", None)]:
            if (isinstance(node, ast.Attribute) and node.attr in names) or (
                isinstance(node, ast.Call)
                and _last(node.func) == "setattr"
                and not names.isdisjoint(_strings(ast.Tuple(node.args[1:2], ast.Load())))
            ):
                yield id(node)


def _loaded(node: ast.expr) -> list[Name]:
    """The module in `importlib.import_module("torch.fft")` or `pytest.importorskip("torch.fft")`."""
    first = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if not (isinstance(node, ast.Call) and _last(node.func) in _GIVE_MODULES):
        return []
    text = first.value if isinstance(first, ast.Constant) else None
    return [Name(None, tuple(text.split(".")))] if isinstance(text, str) and text else []


def _shown_file(node: ast.Call) -> list[ast.expr]:
    """What only tracebacks show as the file: of `compile(text, "layers.py", "exec")`."""
    if isinstance(node.func, ast.Name) and node.func.id == "compile":
        return [*node.args[1:2], *(item.value for item in node.keywords if item.arg == "filename")]
    return []


def _is_constant(nodes: list[ast.expr]) -> bool:
    return any(isinstance(node, ast.Constant) for node in nodes)


def _strings(node: ast.AST) -> Iterator[str]:
    for item in walk(node):
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            yield item.value


def _parts(node: ast.AST) -> list[str]:
    """The names in a chain of attributes."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [*parts, node.id] if isinstance(node, ast.Name) else parts


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
