"""The edits that make an old function class a new one: static methods, a context, gradients for settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.legacy_function.classes import LegacyClass, Method, is_docstring, self_name
from torchmigrate.findings import Edit
from torchmigrate.rewrite.apply import splice
from torchmigrate.rewrite.lines import logical_line
from torchmigrate.rewrite.parentheses import arguments_start, behind_closers, with_parentheses
from torchmigrate.semantics.flow.tree_index import TreeIndex
from torchmigrate.source.text import Source

_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)*")


class ClassEdits:
    """Makes the edits of one class.

    Raises:
        Unclear: from `edits`, where the text does not allow it.
    """

    def __init__(self, found: LegacyClass, source: Source, local: TreeIndex) -> None:
        self.found = found
        self.source = source
        self.local = local
        self.none = len(found.parameters)  # gradients of settings: None each

    def edits(self) -> list[Edit]:
        found = self.found
        made: list[Edit] = []
        for method in found.methods:
            made.append(self._static(method))
            made += self._renamed(method)
        made += self._signature()
        if found.backward is not None and self.none:
            for statement in _returns(found.backward):
                made += self._gradients(statement)
        if found.init is not None:
            made += self._without_init(found.init)
        return made

    # ---- self becomes ctx ----------------------------------------------------------------------------

    def _static(self, method: Method) -> Edit:
        start = self.source.line_start(_first_line(method))
        text = self.source.text
        indent = text[start : len(text) - len(text[start:].lstrip(" \t"))]
        newline = self.source.newline
        return Edit(start, start, f"{indent}@staticmethod{newline}")

    def _context(self) -> str:
        """What the methods call their context; one name for all, since `__init__` moves into `forward`."""
        methods = [*self.found.methods, *([self.found.init] if self.found.init else [])]
        used = {node.id for item in methods for node in ast.walk(item) if isinstance(node, ast.Name)}
        used |= {node.arg for item in methods for node in ast.walk(item) if isinstance(node, ast.arg)}
        own = {self_name(item) for item in methods}
        if "ctx" in used and own != {"ctx"}:
            raise Unclear("`ctx` means something else there")
        return "ctx"

    def _renamed(self, method: Method) -> Iterator[Edit]:
        """Every `self.x` of a method in its new form, and the parameter itself."""
        own, context = self_name(method), self._context()
        if method is not self.found.init:
            argument = [*method.args.posonlyargs, *method.args.args][0]
            start = self.source.span(argument)[0]
            yield Edit(start, start + len(own), context)
        for node in ast.walk(method):
            if isinstance(node, ast.Name) and node.id == own:
                if any(self.local.statement_of(node) is item for item in self.found.dropped):
                    continue
                if self.local.in_fstring(node):
                    raise Unclear(f"`{own}` is used in an f-string")
                outer = self.local.parent(node)
                assert isinstance(outer, ast.Attribute), "checked before"
                yield from self._member(node, outer, context)

    def _member(self, node: ast.Name, outer: ast.Attribute, context: str) -> Iterator[Edit]:
        found = self.found
        start, end = self.source.span(node)
        around = self.local.parent(outer)
        if outer.attr in found.attributes or outer.attr in found.statics:
            yield Edit(start, end, found.node.name)
            return
        if outer.attr in found.helpers:
            yield Edit(start, end, found.node.name)
            assert isinstance(around, ast.Call), "checked before"
            opening = arguments_start(around, self.source)
            given = bool(around.args or around.keywords)
            yield Edit(opening, opening, f"{context}, " if given else context)
            return
        stop = self.source.span(outer)[1]
        if outer.attr == "saved_variables":
            yield Edit(start, stop, f"{context}.saved_tensors")
        elif outer.attr == "needs_input_grad" and self.none:
            yield from self._needs(start, stop, around, context)
        else:
            yield Edit(start, end, context)

    def _needs(self, start: int, stop: int, around: ast.AST | None, context: str) -> Iterator[Edit]:
        """`needs_input_grad` has an entry for each setting now."""
        name = f"{context}.needs_input_grad"
        index = around.slice if isinstance(around, ast.Subscript) else None
        if isinstance(index, ast.Constant) and isinstance(index.value, int) and index.value >= 0:
            yield Edit(start, stop, name)
            if self.found.first:
                yield Edit(*self.source.span(index), str(index.value + self.none))
            return
        kept = f"[{self.none}:]" if self.found.first else f"[:{self.found.inputs}]"
        yield Edit(start, stop, name + kept)

    # ---- settings become parameters ------------------------------------------------------------------

    def _signature(self) -> Iterator[Edit]:
        """The parameters of `__init__` as parameters of `forward`."""
        found = self.found
        if not found.parameters:
            return
        arguments = found.forward.args.args
        behind = arguments[0] if found.first else arguments[-1]
        at = self.source.span(behind)[1]
        texts = [
            item.text
            if found.first or item.default is None
            else f"{item.text} = {item.default}"
            if ":" in item.text
            else f"{item.text}={item.default}"
            for item in found.parameters
        ]
        code = "".join(f", {text}" for text in texts)
        # The context keeps its own edit: this one stands behind it.
        yield Edit(at, at, code)

    def _gradients(self, statement: ast.Return) -> Iterator[Edit]:
        value = statement.value
        start, end = self.source.span(statement)
        many = self.found.inputs + (2 if self.found.varargs else 0) > 1
        nones = ", ".join(["None"] * self.none)
        if value is None:
            if self.found.inputs != 1 or self.found.varargs:
                raise Unclear("`backward` returns nothing")
            yield Edit(end, end, f" None, {nones}")
            return
        assert self.found.backward is not None, "it has a return statement"
        yield from self._value(value, start + len("return"), end, many, nones)

    def _value(self, value: ast.expr, start: int, end: int, many: bool, nones: str) -> Iterator[Edit]:
        """More gradients at the end of what is returned, or before it.

        Args:
            value: between `start` (behind `return`) and `end`.
            many: whether it surely is a tuple.
        """
        text, first = self.source.text, self.found.first
        if isinstance(value, ast.Tuple):
            if not value.elts:
                raise Unclear("`backward` returns an empty tuple")
            if first:
                at = self.source.span(value)[0]
                at += self._is_wrapped(value)
                yield Edit(at, at, f"{nones}, ")
                return
            inner = self.source.span(value)[1] - self._is_wrapped(value)
            at = self.source.span(value.elts[-1])[1]
            at = behind_closers(at, inner, text)
            yield Edit(at, at, f", {nones}")
            return
        assert self.found.backward is not None, "it has a return statement"
        sure = tuple_or_not(value, self.found.backward)
        if sure is None and not many:
            raise Unclear("nobody knows whether `backward` returns a tuple")
        if many and sure is False and not self.found.varargs:
            raise Unclear("`backward` returns one gradient for several inputs")
        if many and sure is None and self.found.varargs:
            raise Unclear("nobody knows whether `backward` returns a tuple")
        begin, stop = with_parentheses(*self.source.span(value), start, text)
        if sure or (many and sure is None):
            if isinstance(value, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
                yield Edit(begin, begin, f"{nones}, *" if first else "*")
            else:
                yield Edit(begin, begin, f"{nones}, *(" if first else "*(")
                yield Edit(stop, stop, ")")
            # An unparenthesized star in `return` needs Python 3.8, which every torch of today has.
            if not first:
                yield Edit(end, end, f", {nones}")
        elif first:
            yield Edit(start, start, f" {nones},")
        else:
            yield Edit(end, end, f", {nones}")

    def _is_wrapped(self, value: ast.Tuple) -> bool:
        """Whether a tuple has parentheses of its own."""
        text = self.source.segment(value)
        try:
            inner = ast.parse(f"({text[1:-1]}\n)", mode="eval").body
        except SyntaxError:
            return False
        return text[0] == "(" and isinstance(inner, ast.Tuple) and len(inner.elts) == len(value.elts)

    # ---- __init__ ------------------------------------------------------------------------------------

    def _without_init(self, init: Method) -> list[Edit]:
        source, text = self.source, self.source.text
        kept = [item for item in init.body if item not in self.found.dropped]
        into = self.found.forward
        if init.body[0].lineno == init.lineno or into.body[0].lineno == into.lineno:
            raise Unclear("a method stands on one line")
        if kept and is_docstring(kept[0]) and is_docstring(into.body[0]):
            raise Unclear("`__init__` and `forward` both have a docstring")
        moved = self._moved(init, kept)
        start = source.line_start(_first_line(init))
        end = self._after(init.body)
        edits = []
        body = self.found.node.body
        if body[-1] is init:
            before = text[:start].rstrip(" \t\r\n")
            gap = text[len(before) : start]
            newline = "\r\n" if gap.startswith("\r\n") else "\n"
            start = len(before) + len(newline)
        else:
            blank = _BLANK_LINES.match(text, end)
            end = blank.end() if blank else end
        edits.append(Edit(start, end, ""))
        if moved:
            anchor = into.body[0]
            if is_docstring(anchor):
                at = logical_line(source, into.body, anchor).after
            else:
                at = self._start_of_body(into)
            edits.append(Edit(at, at, moved))
        return edits

    def _start_of_body(self, method: Method) -> int:
        """Where the first line of a method's body begins; comments above a statement belong to it."""
        number = method.body[0].lineno
        while number - 1 > method.lineno and self.source.line_text(number - 1).lstrip().startswith("#"):
            number -= 1
        return self.source.line_start(number)

    def _moved(self, init: Method, kept: list[ast.stmt]) -> str:
        """The statements of `__init__` as they stand in `forward`."""
        if not kept:
            return ""
        source, text = self.source, self.source.text
        if kept[0].col_offset != self.found.forward.body[0].col_offset:
            raise Unclear("`__init__` and `forward` are not indented alike")
        for item in self.found.dropped:
            if logical_line(source, init.body, item).comment:
                raise Unclear("a comment in `__init__` would be lost")
        start = self._start_of_body(init)
        end = self._after(init.body)
        edits = [edit for edit in self._renamed(init) if start <= edit.start]
        for item in self.found.dropped:
            line = logical_line(source, init.body, item)
            if line.indent is None or len(line.statements) > 1:
                raise Unclear("statements share a line")
            edits.append(Edit(line.start, line.after, ""))
        shifted = [Edit(edit.start - start, edit.end - start, edit.text) for edit in sorted(edits)]
        code = splice(text[start:end], shifted).strip("\r\n")
        newline = source.newline
        return f"{code}{newline}" if code.strip() else ""

    def _after(self, body: list[ast.stmt]) -> int:
        """Behind the last line of a block, and the comments below that are indented like it."""
        last, source = body[-1], self.source
        number = last.end_lineno or last.lineno
        comment = number
        while comment < source.line_count:
            line = source.line_text(comment + 1)
            code = line.lstrip(" \t")
            if code.startswith("#") and len(line) - len(code) >= last.col_offset:
                number = comment + 1
            elif code.strip():
                break
            comment += 1
        return source.line_start(number + 1) if number < source.line_count else len(source.text)


def _first_line(method: Method) -> int:
    return min([method.lineno, *(mark.lineno for mark in method.decorator_list)])


def _returns(method: Method) -> list[ast.Return]:
    """The return statements of a method itself.

    Raises:
        Unclear: there is none, and it does not raise either.
    """
    found: list[ast.Return] = []
    todo: list[ast.AST] = list(method.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Return):
            found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo.extend(ast.iter_child_nodes(node))
    if not found and not isinstance(method.body[-1], ast.Raise):
        raise Unclear("`backward` returns nothing")
    return found


def tuple_or_not(value: ast.expr, method: Method, depth: int = 0) -> bool | None:
    """Whether an expression surely is a tuple (True), surely is something else, or None."""
    if isinstance(value, ast.Tuple):
        return True
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Name):
            return True if value.func.id == "tuple" else None
        return False  # a function of a library, or a method of a tensor
    if isinstance(value, ast.BinOp):
        sides = [tuple_or_not(side, method, depth + 1) for side in (value.left, value.right)]
        return isinstance(value.op, ast.Add) and True in sides
    if isinstance(value, (ast.UnaryOp, ast.Constant, ast.Compare)):
        return False
    if isinstance(value, ast.Name) and depth < 5:
        kinds: set[bool | None] = set()
        for node in ast.walk(method):
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and target.id == value.id:
                        kinds.add(tuple_or_not(node.value, method, depth + 1))
                    elif any(isinstance(part, ast.Name) and part.id == value.id for part in ast.walk(target)):
                        kinds.add(False)  # an element of something, or changed in place
            elif isinstance(node, ast.arg) and node.arg == value.id:
                kinds.add(node is method.args.vararg)
        return kinds.pop() if len(kinds) == 1 else None
    return None
