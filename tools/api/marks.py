"""Marks on functions and classes: what only raises, and what the library says is deprecated."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from api import literals

LONGEST = 160  # characters of a deprecation text

Function = ast.FunctionDef | ast.AsyncFunctionDef
_WARNINGS = {"DeprecationWarning", "FutureWarning", "PendingDeprecationWarning"}
_DIRECTIVE = re.compile(r"^\.\. (?P<kind>deprecated|warning|note)::(?P<first>.*)$", re.M)
_TAKEN_AWAY = re.compile(
    r"removed|no longer|deprecated|renamed|(was|has been|have been) moved|replaced (by|with)|any ?more", re.I
)
_ARGUMENT = re.compile(
    r"=|\b(arguments?|parameters?|default|behaviou?r|option|passing|using|call(ing|ed|s)?|on tensors)\b", re.I
)
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
    """The literal text in an expression; what is put in by a format is `...`."""
    parts: list[str] = []

    def collect(part: ast.AST) -> None:
        if isinstance(part, ast.Constant):
            if isinstance(part.value, str):
                parts.append(part.value)
        elif isinstance(part, ast.FormattedValue):
            parts.append("...")
        elif isinstance(part, ast.Name) and constants and part.id in constants:
            parts.append(literals.text(constants[part.id], constants) or "")
        else:
            for child in ast.iter_child_nodes(part):
                collect(child)

    collect(node)
    return " ".join("".join(parts).split())


def sentence(text: str) -> str:
    """The first sentence, on one line."""
    text = " ".join(text.split())
    text = re.split(r"(?<=[a-z0-9`')\]*])\.(?=\s+[A-Z`:])", text, maxsplit=1)[0].rstrip(".: ")
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


def from_warnings(body: Sequence[ast.stmt]) -> str | None:
    """The text of a deprecation warning that every run of these statements gives."""
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            name = last_name(call)
            if is_warning(statement):
                categories = {last_name(a) for a in [*call.args[1:], *(k.value for k in call.keywords)]}
                text = text_of(call.args[0]) if call.args else ""
                if categories & _WARNINGS or "deprecated" in text.lower():
                    return sentence(text)
            elif name.startswith(("_warn", "warn_")) and "deprecat" in name:
                return sentence(text_of(call))
    return None


def is_deprecating(node: ast.expr) -> bool:
    """A decorator, or a call of one, that marks what it is given as deprecated."""
    name = last_name(node).lstrip("_")
    return name in ("deprecated", "deprecate", "deprecated_func") or name.startswith("dropping_")


def from_decorators(
    decorators: Sequence[ast.expr], constants: literals.Constants | None = None
) -> str | None:
    for decorator in decorators:
        if is_deprecating(decorator):
            arguments = decorator.args if isinstance(decorator, ast.Call) else []
            shown = [text_of(argument, constants) for argument in arguments]
            # torch.onnx says since when and until when first.
            texts = [text for text in shown if text and not re.fullmatch(r"[\d.]+", text)]
            return sentence(texts[0]) if texts else "deprecated"
    return None


def from_docstring(doc: str | None, name: str) -> str | None:
    """What a `deprecated` directive says, or a warning that is about `name` itself."""
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


def deprecation(function: Function | ast.ClassDef, constants: literals.Constants) -> str | None:
    """What a function or class says about being deprecated, or None."""
    found = from_decorators(function.decorator_list, constants)
    if found is None and not isinstance(function, ast.ClassDef):
        found = from_warnings(function.body)
    if found is None:
        found = from_docstring(ast.get_docstring(function), function.name)
    return found
