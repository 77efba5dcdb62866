"""Expressions that are the version of a library, or a literal to compare it with."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from msgspec import Struct

from torchmigrate.patterns import pattern
from torchmigrate.semantics.guards import spellings as guard_names
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import (
    OPAQUE,
    Candidate,
    Const,
    Foreign,
    Local,
    Opaque,
    QualifiedName,
    Value,
    VersionOf,
)

Evaluate = Callable[[ast.expr], Value]

# Names with a known meaning are never judged by their spelling.
_LIBRARIES = frozenset(("torch", "torchvision", "torchaudio", "torchtext", "torchdata", "functorch", "apex"))
_VERSION_MODULES = ("__version__", "version.__version__", "torch_version.__version__", "_version.__version__")
_WHOLE = ("full", "text", "decimal")
_PARTS = ("major", "minor", "micro")  # what unpacking or indexing the parts of a version gives
_NUMBER_PARTS = (*_PARTS, "digit")


class VersionLiteral(Struct, frozen=True):
    """A version written in the code. It is the value of a `Const` where it is assigned to a name.

    kind: "text" ("1.8"), "number" (1.8 or 2), "tuple" ((1, 8)), "strings" (["1", "8"]) or "version"
    (an object such as `Version("1.8")`). pre: a pre-release of `release`.
    """

    release: tuple[int, ...]
    kind: str
    pre: bool = False


def sole(value: Value) -> Candidate | None:
    """The candidate, if there is exactly one."""
    return value[0] if len(value) == 1 else None


def last_name(node: ast.expr) -> str:
    """`c` of `a.b.c`; empty for anything that is not a name or an attribute."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def unknown_name(node: ast.expr, evaluate: Evaluate) -> str | None:
    """The original name of what comes from elsewhere, so that only its spelling tells what it is.

    None if this file or a known library says what it is.
    """
    value = evaluate(node)
    for candidate in value:
        foreign = isinstance(candidate, QualifiedName) and candidate.name.partition(".")[0] not in _LIBRARIES
        if not foreign and not isinstance(candidate, (Opaque, Local, Foreign)):
            return None
    only = sole(value)
    return only.name.rpartition(".")[2] if isinstance(only, QualifiedName) else last_name(node)


# ---- versions of libraries --------------------------------------------------------------------------


def version_of(node: ast.expr, evaluate: Evaluate) -> VersionOf | None:
    """The version that an expression is, in one of its many spellings."""
    if isinstance(node, ast.Name):
        return _named(node, evaluate)
    if isinstance(node, ast.Attribute):
        return version_attribute(node, evaluate) or _named(node, evaluate)
    if isinstance(node, ast.Call):
        return version_call(node, evaluate)
    if isinstance(node, ast.Subscript):
        return _subscript(node, evaluate)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _comprehension(node, evaluate)
    if isinstance(node, (ast.Tuple, ast.List)):
        return _sequence(node, evaluate)
    if isinstance(node, ast.NamedExpr):
        return version_of(node.value, evaluate)
    return None


def unpack_version(node: ast.expr, evaluate: Evaluate, count: int) -> list[Value] | None:
    """What the first `count` targets of `MAJOR, MINOR = <node>` become; None if it is not a version.

    For `major, minor, *rest = ...`, ask for the targets before the star.
    """
    if not isinstance(
        node, (ast.Call, ast.Subscript, ast.ListComp, ast.GeneratorExp, ast.Name, ast.Attribute)
    ):
        return None
    version = version_of(node, evaluate)
    if version is None or not version.part.startswith("parts"):
        return None
    values: list[Value] = [(VersionOf(version.library, part),) for part in _PARTS[:count]]
    return values + [(OPAQUE,)] * (count - len(values))


def _named(node: ast.Name | ast.Attribute, evaluate: Evaluate) -> VersionOf | None:
    only = sole(evaluate(node))
    if isinstance(only, VersionOf):
        return only
    if isinstance(only, QualifiedName) and only.name.endswith("__version__"):
        library, _, rest = only.name.partition(".")
        if rest in _VERSION_MODULES and library in LIBRARY_ROOTS:
            # `torch.__version__` compares as a version, those of the other libraries as strings.
            return VersionOf(library, "full" if library == "torch" else "text")
        return None
    spelled = last_name(node).lower()
    if "torch" not in spelled and not isinstance(only, QualifiedName):
        return None
    name = unknown_name(node, evaluate)
    return guard_names.version_named(name) if name else None


_ATTRIBUTES = {
    "major": "major",
    "minor": "minor",
    "micro": "micro",
    "release": "parts",
    "version": "parts",  # of LooseVersion and StrictVersion
    "public": "text",
    "base_version": "text",
    "vstring": "text",
}
_DISTRIBUTION_ATTRIBUTES = {"version": "text", "parsed_version": "full"}


def version_attribute(node: ast.Attribute, evaluate: Evaluate) -> VersionOf | None:
    """`Version(...).major`, `get_distribution("torch").version`."""
    if node.attr not in _ATTRIBUTES and node.attr not in _DISTRIBUTION_ATTRIBUTES:
        return None
    base = version_of(node.value, evaluate)
    if base is None:
        return None
    if base.part == "distribution":
        part = _DISTRIBUTION_ATTRIBUTES.get(node.attr)
    else:
        part = _ATTRIBUTES.get(node.attr) if base.part in _WHOLE else None
    return VersionOf(base.library, part) if part else None


_STRING_METHODS = frozenset(
    ("split", "rsplit", "partition", "rpartition", "replace", "strip", "lstrip", "rstrip", "lower", "join")
)
_CONVERSIONS = frozenset(("int", "str", "float", "tuple", "list", "map"))


def version_call(node: ast.Call, evaluate: Evaluate) -> VersionOf | None:
    """A call that makes, converts or takes apart a version."""
    name, arguments = last_name(node.func), node.args
    if name in _STRING_METHODS and isinstance(node.func, ast.Attribute):
        return _string_method(node, node.func, evaluate)
    if name in _CONVERSIONS:
        if not isinstance(node.func, ast.Name) or len(arguments) != (2 if name == "map" else 1):
            return None
        inner = version_of(arguments[-1], evaluate)
        return _converted(name, inner) if inner else None
    if name == "getattr" and len(arguments) > 1 and isinstance(arguments[1], ast.Constant):
        if arguments[1].value == "__version__":  # `torch.__version__`, which all releases have
            return version_of(ast.Attribute(arguments[0], "__version__", ast.Load()), evaluate)
        return None
    if name in ("get_distribution", "distribution"):
        library = guard_names.distribution(_text_argument(node))
        return VersionOf(library, "distribution") if library else None
    if not makes_version(name) or len(arguments) > 1 or node.keywords:
        return None
    if not arguments:
        original = unknown_name(node.func, evaluate) if "torch" in name.lower() else None
        return guard_names.version_named(original) if original else None  # get_torch_version()
    text = _text_argument(node)
    if text is not None:
        library = guard_names.distribution(text)
        return VersionOf(library, "text") if library else None  # importlib.metadata.version("torch")
    inner = version_of(arguments[0], evaluate)
    return VersionOf(inner.library, "full") if inner and inner.part in _WHOLE else None


def makes_version(name: str) -> bool:
    """Whether a function, by its name, turns text into something to compare: `parse`, `LooseVersion`."""
    lowered = name.lower()
    return lowered in ("parse", "v") or (
        "version" in lowered and not lowered.lstrip("_").startswith(("is_", "check", "has_", "compare"))
    )


def takes_versions_apart(name: str) -> bool:
    """Whether `version_call` knows functions of this name."""
    return (
        name in _STRING_METHODS
        or name in _CONVERSIONS
        or name in ("getattr", "get_distribution", "distribution")
        or makes_version(name)
    )


def _text_argument(node: ast.Call) -> str | None:
    if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
        return node.args[0].value
    return None


def _converted(name: str, inner: VersionOf) -> VersionOf | None:
    part = inner.part
    if name in ("tuple", "list", "map"):
        return inner if part.startswith("parts") else None
    if part in _NUMBER_PARTS or part in ("float", "decimal"):
        return inner
    if part not in _WHOLE or name == "int":
        return None
    return VersionOf(inner.library, "text" if name == "str" else "decimal")


def _string_method(node: ast.Call, func: ast.Attribute, evaluate: Evaluate) -> VersionOf | None:
    arguments = node.args
    separator = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
    if func.attr == "join":
        if not (isinstance(func.value, ast.Constant) and func.value.value == "." and len(arguments) == 1):
            return None
        parts = version_of(arguments[0], evaluate)
        if parts is None or not parts.part.startswith("parts"):
            return None
        return VersionOf(parts.library, "decimal" if parts.part == "parts2" else "text")
    if not isinstance(separator, str) and (arguments or func.attr not in ("strip", "lower")):
        return None
    base = version_of(func.value, evaluate)
    if base is None or base.part not in _WHOLE:
        return None
    if "split" not in func.attr and "partition" not in func.attr:
        return VersionOf(base.library, "text")
    return VersionOf(base.library, "parts" if separator == "." and func.attr == "split" else "chunks")


def _subscript(node: ast.Subscript, evaluate: Evaluate) -> VersionOf | None:
    """`v[0]`, `v[:2]`, `v.split("+")[0]`."""
    index, end = None, None
    if isinstance(node.slice, ast.Slice):
        end = _integer(node.slice.upper)
        if (
            end is None
            or end < 1
            or node.slice.step
            or (node.slice.lower and _integer(node.slice.lower) != 0)
        ):
            return None
    else:
        index = _integer(node.slice)
        if index not in (0, 1, 2):
            return None
    base = version_of(node.value, evaluate)
    if base is None:
        return None
    part = None
    if base.part.startswith("parts"):
        part = _PARTS[index] if index is not None else f"parts{end}" if end in (1, 2) else "parts"
    elif base.part == "chunks":
        part = "text" if index == 0 else None
    # Of a name such as TORCH_VERSION it is not known whether it is text; [1] and [:2] show a sequence.
    elif base.part in _WHOLE and end is not None:
        part = {1: "major", 2: "parts2", 3: "float"}.get(end, "text")
    elif base.part in _WHOLE:
        part = {0: "major", 1: "minor", 2: "digit"}.get(index or 0)
    return VersionOf(base.library, part) if part else None


def _integer(node: ast.expr | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _comprehension(node: ast.ListComp | ast.GeneratorExp, evaluate: Evaluate) -> VersionOf | None:
    """`int(x) for x in torch.__version__.split(".")`, perhaps with something done to `x` first."""
    element, loop = node.elt, node.generators[0]
    if len(node.generators) > 1 or not isinstance(loop.target, ast.Name):
        return None
    converts = isinstance(element, ast.Call) and last_name(element.func) in ("int", "str")
    if not converts and not (isinstance(element, ast.Name) and element.id == loop.target.id):
        return None
    inner = version_of(loop.iter, evaluate)
    return inner if inner and inner.part.startswith("parts") else None


def _sequence(node: ast.Tuple | ast.List, evaluate: Evaluate) -> VersionOf | None:
    """`(major, minor)`."""
    if not 1 <= len(node.elts) <= 3:
        return None
    library = None
    for element, part in zip(node.elts, _PARTS, strict=False):
        found = None if isinstance(element, ast.Constant) else version_of(element, evaluate)
        if found is None or found.part != part or (library and found.library != library):
            return None
        library = found.library
    return VersionOf(library, "parts" + {1: "1", 2: "2"}.get(len(node.elts), "")) if library else None


# ---- literals ---------------------------------------------------------------------------------------

_VERSION_TEXT = pattern(r"\s*v?(\d+(?:\.\d+)*)[-_.]?(.*)", re.IGNORECASE)


def literal(node: ast.expr, evaluate: Evaluate) -> VersionLiteral | None:
    """A version (or number) written in the code, or in what a name is assigned from."""
    if isinstance(node, ast.Constant):
        return literal_value(node.value)
    if isinstance(node, (ast.Name, ast.Attribute)):
        if isinstance(node, ast.Attribute) and node.attr == "release":
            return _as_sequence(literal(node.value, evaluate), "version", "tuple")
        only = sole(evaluate(node))
        return literal_value(only.value) if isinstance(only, Const) else _literal_named(node, evaluate)
    if isinstance(node, (ast.Tuple, ast.List)):
        values = [_constant(element, evaluate) for element in node.elts]
        return literal_value(tuple(values))
    if isinstance(node, ast.JoinedStr):  # f"{major}.{minor}"
        parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        texts = [_constant(part, evaluate) for part in parts]
        return None if None in texts else version_text("".join(map(str, texts)))
    if isinstance(node, ast.Call):
        return _literal_call(node, evaluate)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        inner, end = literal(node.value, evaluate), _integer(node.slice.upper)
        if inner and inner.kind in ("tuple", "strings") and end and not node.slice.step and end > 0:
            return None if node.slice.lower else VersionLiteral(inner.release[:end], inner.kind)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
        converts = isinstance(node.elt, ast.Call) and last_name(node.elt.func) == "int"
        inner = literal(node.generators[0].iter, evaluate) if converts else None
        return _as_sequence(inner, "strings", "tuple")
    return None


def _literal_named(node: ast.Name | ast.Attribute, evaluate: Evaluate) -> VersionLiteral | None:
    """A constant of another file that has the version in its name: `TORCH_VERSION_2_11_0`."""
    if not last_name(node).rstrip("_")[-1:].isdecimal():  # most names
        return None
    name = unknown_name(node, evaluate)
    numbers = guard_names.written_version(name) if name else None
    return VersionLiteral(numbers, "version") if numbers else None


def _constant(node: ast.expr, evaluate: Evaluate) -> object:
    if isinstance(node, ast.Constant):
        return node.value
    only = sole(evaluate(node)) if isinstance(node, ast.Name) else None
    return only.value if isinstance(only, Const) else None


def _as_sequence(inner: VersionLiteral | None, kind: str, becomes: str) -> VersionLiteral | None:
    return VersionLiteral(inner.release, becomes) if inner and inner.kind == kind and not inner.pre else None


def _literal_call(node: ast.Call, evaluate: Evaluate) -> VersionLiteral | None:
    """`Version("1.8")`, `tuple(map(int, "1.8".split(".")))`."""
    name = last_name(node.func)
    if name == "split" and isinstance(node.func, ast.Attribute):
        if [argument.value for argument in node.args if isinstance(argument, ast.Constant)] != ["."]:
            return None
        return _as_sequence(literal(node.func.value, evaluate), "text", "strings")
    if name == "map" and len(node.args) == 2 and last_name(node.args[0]) == "int":
        return _as_sequence(literal(node.args[1], evaluate), "strings", "tuple")
    if len(node.args) != 1:
        return None
    if name in ("tuple", "list"):
        inner = literal(node.args[0], evaluate)
        return inner if inner and inner.kind in ("tuple", "strings") else None
    if makes_version(name):
        inner = literal(node.args[0], evaluate)
        if inner and inner.kind in ("text", "version"):
            return VersionLiteral(inner.release, "version", inner.pre)
    return None


def literal_value(value: object) -> VersionLiteral | None:
    """What a Python value means as a version; None if nothing."""
    if isinstance(value, VersionLiteral):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return version_text(value)
    if isinstance(value, (int, float)):
        inner = version_text(repr(value))
        exact = inner is not None and ".".join(map(str, inner.release)) == repr(value)  # not 2.05
        return VersionLiteral(inner.release, "number") if inner and exact else None
    if isinstance(value, tuple) and value:
        if all(type(element) is int for element in value):
            return VersionLiteral(value, "tuple")
        if all(isinstance(element, str) and element.isdecimal() for element in value):
            return VersionLiteral(tuple(map(int, value)), "strings")
    return None


def version_text(text: str) -> VersionLiteral | None:
    """Parse "1.8", "v1.8.0+cu111" or "2.6.0a0"; None for other text."""
    match = _VERSION_TEXT.fullmatch(text)
    if match is None:
        return None
    release, rest = tuple(map(int, match[1].split("."))), match[2].lower().strip()
    if rest and rest.startswith(("a", "b", "c", "rc", "dev", "pre")):
        return VersionLiteral(release, "text", pre=True)
    plain = not rest or rest.startswith(("+", "post"))
    return VersionLiteral(release, "text") if plain else None
