"""Marks on functions and classes: what only raises, and what the library says is deprecated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from api import literals, walk
from api.bound import Deprecation
from torchmigrate.versions.surface_model import DeprecatedParameter

LONGEST = 160  # characters of a sentence

Function = ast.FunctionDef | ast.AsyncFunctionDef
_WARNINGS = {"DeprecationWarning", "FutureWarning", "PendingDeprecationWarning"}
_DIRECTIVE = re.compile(r"^\.\. (?P<kind>deprecated|warning|note)::(?P<first>.*)$", re.M)
_TAKEN_AWAY = re.compile(
    r"removed|no longer|deprecated|renamed|(was|has been|have been) moved|replaced (by|with)|any ?more", re.I
)
_ARGUMENT = re.compile(
    r"=|\b(arguments?|parameters?|default|behaviou?r|option|passing|using|call(ing|ed|s)?|on tensors)\b", re.I
)
_ADVICE = re.compile(r"\b(use|instead|favou?r of|switch|renamed|replaced|migrate|prefer)\b", re.I)
_SENTENCE_ENDS = re.compile(r"(?<=[a-z0-9`')\]*])\.(?=\s+[A-Z`:])")
_LOGGED = ("warning", "warning_once", "warn_once")  # what a logger is told, or torch's own helpers
_LIST = re.compile(r":\s*\d?$")  # the beginning of one
# Where these say so, nothing is warned of: while a graph is made of the function.
_COMPILING = ("is_compiling", "is_dynamo_compiling", "is_scripting", "is_tracing", "is_exporting")
_SUBJECT = re.compile(
    r"\bthis (function|method|class|module|api|op|operator|argument-less|package|decorator)\b"
)


def last_name(node: ast.expr) -> str:
    """`deprecated` of `typing_extensions.deprecated("...")`."""
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def statements(function: Function) -> list[ast.stmt]:
    """The body without its docstring and what does nothing: `pass`, `del x`, imports, helpers, constants."""
    idle = (ast.Pass, ast.Import, ast.ImportFrom, ast.Delete, ast.Global, ast.FunctionDef)
    return [
        statement
        for statement in function.body
        if not isinstance(statement, idle)
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]


def only_raises(function: Function) -> bool:
    """Whether a call can only raise, and says that this was taken away.

    Without that it is a method for subclasses to write, or one that a stand-in refuses.
    """
    if any(last_name(mark) in ("abstractmethod", "overload") for mark in function.decorator_list):
        return False
    body = [s for s in statements(function) if not (is_warning(s) or _is_text(s))]
    if len(body) != 1 or not isinstance(body[0], ast.Raise) or body[0].exc is None:
        return False
    said = " ".join(text_of(part) for part in function.body[_has_doc(function) :])
    return _TAKEN_AWAY.search(said) is not None


def _has_doc(function: Function) -> int:
    return 0 if ast.get_docstring(function, clean=False) is None else 1


def _is_text(statement: ast.stmt) -> bool:
    """`message = "..."` before the raise, or a part of it: an assignment that calls nothing."""
    return isinstance(statement, ast.Assign) and not any(
        isinstance(part, ast.Call) for part in ast.walk(statement.value)
    )


def handed_on(function: Function) -> ast.expr | None:
    """The function that the body does nothing but call, `_symeig` of `return _symeig(self)`."""
    body = [statement for statement in statements(function) if not is_warning(statement)]
    if len(body) != 1 or not isinstance(body[0], (ast.Return, ast.Expr)):
        return None
    call = body[0].value
    return call.func if isinstance(call, ast.Call) else None


def is_warning(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and last_name(statement.value) in ("warn", "_warn", "warn_deprecated")
    )


def text_of(node: ast.AST, constants: literals.Constants | None = None) -> str:
    """The literal text in an expression; what is put in by a format is `{}`."""
    parts: list[str] = []

    def collect(part: ast.AST) -> None:
        if isinstance(part, ast.Constant):
            if isinstance(part.value, str):
                parts.append(part.value)
        elif isinstance(part, ast.FormattedValue):
            parts.append("{}")
        elif isinstance(part, ast.Name) and constants and part.id in constants:
            parts.append(literals.text(constants[part.id], constants) or "")
        else:
            for child in ast.iter_child_nodes(part):
                collect(child)

    collect(node)
    return " ".join("".join(parts).split())


def sentence(text: str) -> str:
    """The first sentence, on one line, and the next one where the first does not say what to use instead."""
    first, *others = (_shortened(part) for part in _SENTENCE_ENDS.split(" ".join(text.split())))
    if others and not _ADVICE.search(first) and not _LIST.search(others[0]):
        return f"{first}. {others[0]}"
    return first


def _shortened(text: str) -> str:
    text = text.strip().rstrip(".: ")
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


def from_warnings(
    body: Sequence[ast.stmt], constants: literals.Constants | None = None
) -> Deprecation | None:
    """What every run of these statements warns of."""
    warned = _warned(body, constants)
    if warned is None:
        return None
    helpers = [
        call
        for statement in walk.statements(body)
        if isinstance(statement, ast.Expr) and isinstance(call := statement.value, ast.Call)
        if _is_helper(last_name(call))
    ]
    if not helpers:
        return Deprecation(sentence(warned) or "deprecated")
    given = tuple(text_of(argument) for argument in helpers[0].args)
    # What is only given a name says no more than that it is deprecated.
    said = sentence(warned) if len(warned.split()) > 2 else "deprecated"
    return Deprecation(said, by=ast.unparse(helpers[0].func), given=given)


def _is_helper(name: str) -> bool:
    """Whether a function warns for others: `_warn_deprecated`."""
    return (name.startswith(("_warn", "warn_")) and "deprecat" in name) or name == "_deprecated"


def _warned(body: Sequence[ast.stmt], constants: literals.Constants | None) -> str | None:
    """The whole text of the deprecation warning that every run of these statements gives."""
    for statement in body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            constants = {**(constants or {}), statement.targets[0].id: statement.value}  # a message, perhaps
        if isinstance(statement, ast.If):
            inner, other = _warned(statement.body, constants), _warned(statement.orelse, constants)
            if inner is not None and (other is not None or _is_no_graph(statement.test)):
                return inner if other is None else other
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            name = last_name(call)
            if is_warning(statement):
                categories = {last_name(a) for a in [*call.args[1:], *(k.value for k in call.keywords)]}
                text = text_of(call.args[0], constants) if call.args else ""
                if categories & _WARNINGS or "deprecated" in text.lower():
                    return text
            elif _is_helper(name):
                return text_of(call, constants)
            elif name in _LOGGED and call.args and "deprecated" in text_of(call.args[0], constants).lower():
                return text_of(call.args[0], constants)
    return None


def _is_no_graph(test: ast.expr) -> bool:
    """`not torch.compiler.is_compiling()`, alone or with others of its kind."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(_is_no_graph(part) for part in test.values)
    return (
        isinstance(test, ast.UnaryOp)
        and isinstance(test.op, ast.Not)
        and isinstance(test.operand, ast.Call)
        and last_name(test.operand) in _COMPILING
    )


# ---- parameters ------------------------------------------------------------------------------------------


def deprecated_parameters(
    function: Function, constants: literals.Constants | None = None
) -> Iterator[DeprecatedParameter]:
    """The parameters of which every run of a function warns where they are given, or given in some way."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(
        zip([item.arg for item in positional[::-1]], arguments.defaults[::-1], strict=False),
    )
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    defaults.update({item.arg: default for item, default in keyword if default is not None})
    changed: set[str] = set()  # what is assigned before is not what was given
    for statement in function.body:
        if isinstance(statement, ast.If):
            warned = _warned(statement.body, constants)
            if warned is not None and not _warned(statement.orelse, constants):
                for name, test in _tests_of(statement.test, defaults):
                    if name not in changed and re.search(rf"\b{re.escape(name)}\b", warned):
                        yield DeprecatedParameter(ast.unparse(test), sentence(warned))
        for inner in walk.statements([statement]):
            changed |= {target.id for target in walk.stored(inner) if isinstance(target, ast.Name)}


def _tests_of(test: ast.expr, defaults: dict[str, ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """Each way in which a test holds because of one argument that was given, and is not the default."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        for part in test.values:
            yield from _tests_of(part, defaults)
        return
    subject, needed = test, ""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        subject = test.operand
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        subject, needed = test.left, ast.unparse(test.comparators[0])
    default = defaults.get(subject.id) if isinstance(subject, ast.Name) else None
    if default is None or not isinstance(subject, ast.Name):
        return
    literal = isinstance(default, ast.Constant)
    if isinstance(test, ast.Compare):
        other = test.comparators[0]
        unlike = isinstance(test.ops[0], (ast.IsNot, ast.NotEq)) and ast.unparse(default) == needed
        like = isinstance(test.ops[0], (ast.Is, ast.Eq)) and ast.unparse(default) != needed
        fits = unlike or (like and literal and isinstance(other, ast.Constant))
    else:
        fits = isinstance(default, ast.Constant) and bool(default.value) is (subject is not test)
    if fits:
        yield subject.id, test


# ---- decorators and documentation ------------------------------------------------------------------------


def is_deprecating(node: ast.expr) -> bool:
    """A decorator, or a call of one, that marks what it is given as deprecated."""
    name = last_name(node).lstrip("_")
    return name in ("deprecated", "deprecate", "deprecated_func") or name.startswith("dropping_")


def from_decorators(
    decorators: Sequence[ast.expr], constants: literals.Constants | None = None
) -> Deprecation | None:
    for decorator in decorators:
        if is_deprecating(decorator):
            arguments = decorator.args if isinstance(decorator, ast.Call) else []
            shown = [text_of(argument, constants) for argument in arguments]
            # torch.onnx says since when and until when first.
            texts = [text for text in shown if text and not re.fullmatch(r"[\d.]+", text)]
            return Deprecation(sentence(texts[0]) if texts else "deprecated", not _is_silent(decorator))
    return None


def _is_silent(decorator: ast.expr) -> bool:
    """`@deprecated("...", category=None)`, which is for type checkers."""
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(
        item.arg == "category" and isinstance(item.value, ast.Constant) and item.value.value is None
        for item in keywords
    )


def from_docstring(doc: str | None, name: str) -> Deprecation | None:
    """What a `deprecated` directive says, or a warning that is about `name` itself."""
    found = _documented(doc, name)
    return None if found is None else Deprecation(found or "deprecated", warns=False)


def _documented(doc: str | None, name: str) -> str | None:
    if doc is None or "deprecated" not in doc.lower():
        return None
    for match in _DIRECTIVE.finditer(doc):
        text = _block(doc, match)
        if match["kind"] == "deprecated":
            text = re.sub(r"^[\d.]+\s*", "", text)
        first = sentence(text)
        before, found, _ = first.lower().partition("deprecated")
        if match["kind"] == "deprecated" and not (found and _ARGUMENT.search(before)):
            return first
        if found and not _ARGUMENT.search(before):
            bare = before.replace("`", "").strip()
            short = name.rpartition(".")[2].lower()
            if not bare or _SUBJECT.search(bare) or re.search(rf"\b{re.escape(short)}\b", bare):
                return first
    return None


def _block(doc: str, match: re.Match[str]) -> str:
    """The text of a directive: the rest of its line and the lines indented more."""
    lines = [match["first"].strip()]
    for line in doc[match.end() :].lstrip("\n").splitlines():
        if line.strip() and not line[:1].isspace():
            break
        if not line.strip() and any(lines):
            break
        lines.append(line.strip())
    return " ".join(lines).strip()


def deprecation(function: Function | ast.ClassDef, constants: literals.Constants) -> Deprecation | None:
    """What a function or class says about being deprecated, or None."""
    found = from_decorators(function.decorator_list, constants)
    if found is None and not isinstance(function, ast.ClassDef):
        found = from_warnings(function.body, constants)
    if found is None:
        found = from_docstring(ast.get_docstring(function), function.name)
    return found
