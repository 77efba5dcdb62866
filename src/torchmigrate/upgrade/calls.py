"""The functions of a project that can be called safely, and the inputs that they take.

A function qualifies if nothing that it refers to, directly or through other functions of the project, can
have an effect outside of it: imported names are of pure parts of torch, NumPy and the standard library,
builtins are harmless, and no attribute has a name such as `save`. Since all objects then come from there, or
are made for the call, methods of unknown objects are harmless as well.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from torchmigrate.evidence.evidence import RECEIVER, EvidenceOfFiles, SeenPlaces
from torchmigrate.evidence.kinds import TENSOR, Seen
from torchmigrate.semantics.flow.classes import Classes
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.semantics.model import Binding, BindingKind
from torchmigrate.semantics.walk.resolver import resolve
from torchmigrate.source.kinds import read_source
from torchmigrate.source.text import Source, SourceError
from torchmigrate.source.trees import walk

_PURE = frozenset(
    "torch numpy math cmath collections functools itertools operator copy numbers typing typing_extensions "
    "enum dataclasses abc string re random warnings".split()
)
# The parts of libraries that have modules with effects.
_MODULES = {
    "torch": "nn autograd linalg fft special distributions random optim Tensor Size".split(),
    "numpy": "random linalg fft ma polynomial ndarray".split(),
}
_IMPURE = frozenset(
    "torch.save torch.load torch.from_file torch.compile numpy.save numpy.savez numpy.savez_compressed "
    "numpy.savetxt numpy.load numpy.loadtxt numpy.fromfile numpy.genfromtxt numpy.fromregex numpy.memmap "
    "numpy.DataSource operator.attrgetter operator.methodcaller "
    "torch.hub torch.multiprocessing torch.distributed torch.utils torch.onnx torch.package torch.profiler "
    "torch.serialization torch.export numpy.lib numpy.ctypeslib numpy.f2py numpy.distutils".split()
)
_BUILTINS = {name for name in dir(builtins) if name[0] != "_"}
_BUILTINS -= set(
    "open exec eval compile input breakpoint globals locals vars setattr delattr getattr exit quit help "
    "memoryview copyright credits license".split()
)
_NO_ATTRIBUTES = frozenset(
    "save savefig dump tofile write writelines unlink share_memory share_memory_ compile open load".split()
)
_DUNDERS = frozenset(["__init__", "__name__", "__class__", "__len__", "__call__", "__getitem__"])
_IMPURE_NODES = (
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFunctionDef, ast.Global),
    *(ast.Import, ast.ImportFrom),
)
_MOST_IMPORTS = 8  # from module to module, until a name is defined
_IMPORTS = (BindingKind.IMPORT, BindingKind.FROM_IMPORT)
_NOT_VALUES = (BindingKind.STAR_IMPORT, BindingKind.DELETION)
_TENSORS = {
    "torch.Tensor": None,
    "torch.FloatTensor": "float32",
    "torch.DoubleTensor": "float64",
    "torch.LongTensor": "int64",
    "torch.IntTensor": "int32",
    "torch.BoolTensor": "bool",
    "jaxtyping.Float": "float32",
    "jaxtyping.Int": "int64",
    "jaxtyping.Bool": "bool",
}
_NUMBERS = ("int", "float", "bool")
_SHAPES: tuple[list[int], ...] = ([], [6], [6, 6], [2, 6, 6], [2, 3, 8, 8])  # by the number of dimensions
_SIZE = 6  # of a dimension that only has a name

Input = tuple[str, str | None, list[int] | None]  # a kind; of a tensor also its dtype and sizes, if known


class _File:
    """A module of the project. seen: what was recorded of it."""

    def __init__(self, module: str, path: Path, source: Source, seen: SeenPlaces | None) -> None:
        self.module = module
        self.is_package = path.name == "__init__.py"
        self.seen = seen
        self.names = resolve(source.parse(), source)
        self.index = TreeIndex(self.names)

    def imported(self, node: ast.expr) -> tuple[list[Binding], list[str]]:
        """The imports that a chain of attributes begins with, and the names of its attributes."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        scope = self.index.holder(node) if isinstance(node, ast.Name) else None
        bound = scope.bindings[node.id] if scope is not None and isinstance(node, ast.Name) else []
        return (bound if all(each.kind in _IMPORTS for each in bound) else []), names

    def qualified(self, node: ast.expr) -> str:
        """The name of what is imported, such as `torch.nn.Module`; empty if that is not certain."""
        bound, names = self.imported(node)
        found = {".".join([each.target or "", *names]) for each in bound}
        return found.pop() if len(found) == 1 else ""


class _Effect(Exception):
    """Something may have an effect."""


_Part = tuple[_File, ast.AST]  # a function, class or other statement of a module


class Calls:
    """Finds the functions and the classes of modules of a project that can be called.

    Args:
        paths: of the modules, by the names that they are imported by.
        recorded: the same files where `torchmigrate record` ran, by the same names.
    """

    def __init__(self, paths: Mapping[str, Path], recorded: Mapping[str, Path]) -> None:
        self._paths = paths
        self._recorded = recorded
        self._roots = {module.partition(".")[0] for module in paths}
        self._evidence = EvidenceOfFiles(wanted=True)
        self._files: dict[str, _File | None] = {}
        self._needed: dict[ast.AST, list[_Part] | None] = {}  # None: it may have an effect

    def of(self, module: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The names of what can be called in a module, and the plan of each call, as JSON holds it."""
        file = self._file(module)
        for node in file.names.tree.body if file is not None else ():
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name.startswith("__"):
                continue
            assert file is not None, "it has a statement"
            plan = self._plan(file, node)
            once = len(file.names.module.bindings[node.name]) == 1
            if plan is not None and once and self._is_pure((file, node)):
                yield f"{module}.{node.name}", {"module": module, "name": node.name, **plan}

    def _file(self, module: str) -> _File | None:
        if module not in self._files:
            self._files[module] = None
            path, recorded = self._paths.get(module), self._recorded.get(module)
            with suppress(SourceError, RecursionError):
                if path is not None:
                    source = read_source(path)
                    seen = None if recorded is None else self._evidence.of(recorded, source)
                    self._files[module] = _File(module, path, source, seen)
        return self._files[module]

    # ---- effects -----------------------------------------------------------------------------------------

    def _is_pure(self, part: _Part) -> bool:
        """Whether a part of a module, and everything that it needs, has no effects."""
        needed = {part[1]: part}
        left = [part]
        while left:
            file, node = left.pop()
            if node not in self._needed:
                try:
                    self._needed[node] = list(self._needs(file, node))
                except _Effect:
                    self._needed[node] = None
            more = self._needed[node]
            if more is None:
                self._needed[part[1]] = None
                return False
            new = {each[1]: each for each in more if each[1] not in needed}
            needed |= new
            left += new.values()
        return True

    def _needs(self, file: _File, node: ast.AST) -> Iterator[_Part]:
        """The parts of modules that one refers to. Raises _Effect if something in it may have one."""
        notes = {each for annotation in _annotations(node) for each in walk(annotation)}
        for each in walk(node):
            if each in notes:
                continue
            if isinstance(each, _IMPURE_NODES):
                raise _Effect
            if isinstance(each, ast.Attribute) and not file.imported(each)[0]:
                name = each.attr
                if name in _NO_ATTRIBUTES or (name[:2] == "__" and name not in _DUNDERS):
                    raise _Effect
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                scope = file.index.holder(each)
                known = each.id in _BUILTINS or file.index.comprehension_target(each) is not None
                if scope is None and not known:
                    raise _Effect
                chain: ast.expr = each
                while isinstance(outer := file.index.parent(chain), ast.Attribute):
                    chain = outer
                for binding in scope.bindings[each.id] if scope is not None else ():
                    yield from self._needs_of(file, binding, file.imported(chain)[1])

    def _needs_of(self, file: _File, binding: Binding, attributes: list[str]) -> Iterator[_Part]:
        """The parts of modules that attributes of a name refer to, through imports from other modules."""
        for _ in range(_MOST_IMPORTS):
            if binding.kind in _NOT_VALUES:
                break
            if binding.kind not in _IMPORTS:
                if binding.scope is file.names.module:  # else it is in the part itself
                    yield file, binding.statement
                return
            is_module = binding.kind is BindingKind.IMPORT and not attributes  # as an object
            if not is_module and self._is_harmless([*(binding.target or "").split("."), *attributes]):
                return
            statement = binding.statement
            other = self._imported(file, statement) if isinstance(statement, ast.ImportFrom) else None
            assert isinstance(binding.node, ast.alias), "of an import"
            bound = other.names.module.bindings.get(binding.node.name, ()) if other is not None else ()
            if other is None or len(bound) != 1:
                break
            file, binding = other, bound[0]
        raise _Effect

    def _imported(self, file: _File, statement: ast.ImportFrom) -> _File | None:
        """The module of the project that an import names, which may be next to the file."""
        parts, name = file.module.split("."), statement.module or ""
        if statement.level or name not in self._paths:
            above = (statement.level or 1) - file.is_package
            name = ".".join([*parts[: len(parts) - above], *filter(None, [name])])
        return self._file(name)

    def _is_harmless(self, parts: list[str]) -> bool:
        """Whether what has a qualified name has no effects."""
        name = ".".join(parts[:2])
        pure = parts[0] in _PURE and parts[0] not in self._roots and name not in _IMPURE
        public = all(part[:1] != "_" or part == "__version__" for part in parts[1:])
        inner = parts[0] not in _MODULES or len(parts) < 3 or parts[1] in _MODULES[parts[0]]
        return (pure and public and inner) or parts == ["torch", "cuda", "is_available"]

    # ---- inputs ------------------------------------------------------------------------------------------

    def _plan(self, file: _File, node: ast.FunctionDef | ast.ClassDef) -> dict[str, Any] | None:
        """How something is called; None if that is not known."""
        if isinstance(node, ast.FunctionDef):
            inputs = self._inputs(file, node, bound=0)
            return None if inputs is None else {"inputs": inputs, "forward": None}
        methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
        bases = [base for each in Classes(file.index).lineage(node) for base in each.bases]
        if "__init__" not in methods or "torch.nn.Module" not in map(file.qualified, bases):
            return None
        inputs = self._inputs(file, methods["__init__"], bound=1)
        forward = self._inputs(file, methods["forward"], bound=1) if "forward" in methods else None
        return None if inputs is None else {"inputs": inputs, "forward": forward}

    def _inputs(self, file: _File, node: ast.FunctionDef, *, bound: int) -> dict[str, Input] | None:
        """The inputs that a function needs, by parameter; None if one is not known.

        bound: how many of the first parameters are given by Python.
        """
        arguments = node.args
        if len(arguments.posonlyargs) > bound:
            return None
        positional = [*arguments.posonlyargs, *arguments.args]
        needed = positional[bound : len(positional) - len(arguments.defaults)]
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        needed += [argument for argument, default in pairs if default is None]
        found: dict[str, Input] = {}
        for argument in needed:
            made = _annotated(file, argument.annotation) or self._recorded_input(file, node, argument)
            if made is None:
                return None
            found[argument.arg] = made
        return found

    def _recorded_input(self, file: _File, node: ast.FunctionDef, argument: ast.arg) -> Input | None:
        """What was always passed to a parameter while the recorder ran, as far as its places tell."""
        bound = file.index.scope_at(node).bindings.get(argument.arg, [])
        if file.seen is None or len(bound) != 1:
            return None
        kinds = {
            kind
            for each in walk(node)
            for used, slot in _seen_in(file.seen, each)
            if isinstance(used, ast.Name) and used.id == argument.arg
            for kind in slot
        }
        kind = kinds.pop() if len(kinds) == 1 else Seen("")
        if kind.what == TENSOR and kind.dtype and len(_SHAPES) > (kind.dimensions or 0):
            return "tensor", kind.dtype, None if kind.dimensions is None else _SHAPES[kind.dimensions]
        return (kind.name, None, None) if kind.name in _NUMBERS else None


def _seen_in(seen: SeenPlaces, node: ast.AST) -> Iterator[tuple[ast.expr, Collection[Seen]]]:
    """The expressions at one place whose objects were recorded, with what was seen."""
    if isinstance(node, ast.Attribute):
        yield node.value, (seen.at(node) or {}).get(RECEIVER, ())
    elif isinstance(node, ast.Call):
        slots = seen.at(node.func) or {}
        yield from ((argument, slots.get(str(number), ())) for number, argument in enumerate(node.args))
    elif isinstance(node, ast.expr):
        yield from seen.operands(node)


def _annotated(file: _File, annotation: ast.expr | None) -> Input | None:
    """What a parameter takes, by its annotation."""
    if isinstance(annotation, ast.Name) and annotation.id in _NUMBERS:
        return annotation.id, None, None
    sizes: list[int] | None = None
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        last = annotation.slice.elts[-1]  # of Float[Tensor, "batch 3 height width"]
        if not isinstance(last, ast.Constant) or not isinstance(last.value, str):
            return None
        words = [word for word in last.value.split() if word[0] not in "*."]
        sizes = [int(word) if word.isdecimal() else _SIZE for word in words]
        annotation = annotation.value
    name = "" if annotation is None else file.qualified(annotation)
    return ("tensor", _TENSORS[name], sizes) if name in _TENSORS else None


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    for each in walk(node):
        for found in (getattr(each, "annotation", None), getattr(each, "returns", None)):
            if isinstance(found, ast.AST):
                yield found
