"""What the installed libraries say of a name: that it is gone, that it warns, that it is outdated."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from api import marks

# In documentation: the words for what is superseded, though it does not warn.
_OUTDATED = re.compile(
    r"deprecat|\blegacy|supersed|replaced by|in favou?r of|\balias (for|of)\b|moved to|being migrated|"
    r"in the process of migration|will be removed|not recommended|backwards? compatib",
    re.I,
)
_REFERS = re.compile(r"^See :func:`(torch\.[\w.]+)`\s*\Z", re.M)
MISSING = object()


def find(name: str) -> tuple[Any, list[str]]:
    """What a dotted name is, `MISSING` if it is not there, and the warnings of looking it up."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = _find(name)
    return found, [str(item.message) for item in caught if is_deprecation(item)]


def is_deprecation(item: warnings.WarningMessage) -> bool:
    """Whether a warning is about the code that caused it."""
    if issubclass(item.category, ResourceWarning | ImportWarning):
        return False
    return issubclass(item.category, DeprecationWarning | FutureWarning | PendingDeprecationWarning) or (
        issubclass(item.category, UserWarning)
    )


def _find(name: str) -> Any:
    """As an import finds it: a function may have the name of the module that it comes from."""
    owner, _, last = name.rpartition(".")
    if not owner:
        try:
            return importlib.import_module(name)
        except ImportError:
            return MISSING
    holders = [_find(owner), sys.modules.get(owner)]
    for holder in holders:
        if holder is not None and hasattr(holder, last):
            return getattr(holder, last)
    try:
        return importlib.import_module(name)
    except ImportError:
        return MISSING


def warns(found: Any, parameters: tuple[str, ...] = ()) -> str | None:
    """What the sources say in a warning: at every call, or where it is about one of the parameters."""
    if isinstance(found, ModuleType):
        tree = _source(found)
        warned = None if tree is None else marks.from_warnings(tree.body)
        return None if warned is None else warned.said
    if not parameters and isinstance(text := getattr(found, "__deprecated__", None), str):
        return text
    for function in _functions(found):
        if not parameters:
            marked = marks.from_decorators(function.decorator_list)
            said = marked.said if marked is not None and marked.warns else _first_warning(function)
            if said is not None and not marks.only_raises(function):
                return said
        else:
            for text in _warnings_in(function):
                if any(re.search(rf"\b{re.escape(name)}\b", text) for name in parameters):
                    return text
    return None


def raises(found: Any) -> bool:
    """Whether a call only raises, and says that this was taken away."""
    return any(marks.only_raises(function) for function in _functions(found))


def documented(found: Any, parameters: tuple[str, ...] = ()) -> str | None:
    """The line of its documentation that calls it outdated, or one of its parameters."""
    doc = inspect.getdoc(found) if found is not None else None
    refers = _REFERS.search(doc or "")
    if refers is not None and not parameters:  # a method: what is said of the function is said of it
        doc = f"{doc}\n{inspect.getdoc(find(refers[1])[0])}"
    for line in sorted((doc or "").splitlines(), key=lambda line: "deprecat" not in line.lower()):
        if _OUTDATED.search(line) and (not parameters or any(name in line for name in parameters)):
            return line.strip()
    if parameters:
        for index, line in enumerate(lines := (doc or "").splitlines()):
            if any(re.match(rf"\s*\**{re.escape(name)}\b", line) for name in parameters):
                block = " ".join(lines[index : index + 6])
                if _OUTDATED.search(block):
                    return block.strip()
    return None


def _functions(found: Any) -> list[marks.Function]:
    """The sources of what a call of it runs first."""
    if _last and _last[0][0] is found:
        return _last[0][1]
    _last[:] = [(found, list(_read_functions(found)))]
    return _last[0][1]


# Several questions about one thing follow each other, and reading its sources takes long.
_last: list[tuple[Any, list[marks.Function]]] = []


def _read_functions(found: Any) -> Iterator[marks.Function]:
    candidates = [found]
    if inspect.isclass(found):
        candidates = [vars(found).get("__new__"), found.__init__]
        tree = _source(found)
        if tree is not None and isinstance(tree.body[0], ast.ClassDef):
            holder = ast.parse("def f(): pass").body[0]
            assert isinstance(holder, ast.FunctionDef)
            holder.decorator_list = tree.body[0].decorator_list
            yield holder
    elif isinstance(found, property):
        candidates = [found.fget]
    for candidate in candidates:
        seen: set[int] = set()
        while candidate is not None and id(candidate) not in seen:
            seen.add(id(candidate))
            tree = _source(candidate)
            if tree is not None and tree.body and isinstance(tree.body[0], marks.Function):
                yield tree.body[0]
            candidate = getattr(candidate, "__wrapped__", None)


def _source(found: Any) -> ast.Module | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(found)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def _first_warning(function: marks.Function) -> str | None:
    """What every call says, through `warnings` or a log."""
    for statement in marks.statements(function):
        if _is_warning(statement):
            return marks.text_of(statement)
    return None


def _is_warning(node: ast.AST) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return marks.is_warning(node) or ast.unparse(node.value.func) in ("logger.warning", "log.warning")


def _warnings_in(function: marks.Function) -> Iterator[str]:
    """The texts of all warnings of a function, with the conditions they are under."""
    for node in ast.walk(function):
        if isinstance(node, ast.If):
            for inner in node.body:
                for part in ast.walk(inner):
                    if _is_warning(part):
                        yield f"{ast.unparse(node.test)}: {marks.text_of(part)}"
        elif _is_warning(node):
            yield marks.text_of(node)
