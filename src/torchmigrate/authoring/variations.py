"""Other ways to write an example: the layouts and the surroundings that a person may give to the same code.

`LAYOUTS` change nothing that Python sees: the syntax tree is the same, but for statements that `MARK` names.
`SURROUNDINGS` put the value of a statement into another expression or statement.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from torchmigrate.findings import Edit
from torchmigrate.rewrite.apply import splice
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.source.text import Source
from torchmigrate.source.trees import children

MARK = "beside_it"  # what added statements and bindings are called
INDENT = "    "

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_COMPOUND = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.Match,
)


class Code:
    """An example, with what variations ask of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.source = Source.from_text(text, Path("example.py"))
        self.tree = ast.parse(text)
        self.commas = [
            self.source.line_start(token.start[0]) + token.start[1]
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.OP and token.string == ","
        ]

    def nodes(self) -> Iterator[ast.AST]:
        """All nodes whose places are known: those in f-strings are not, before Python 3.12."""
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            yield node
            if not isinstance(node, ast.JoinedStr):
                waiting += children(node)

    def blocks(self) -> Iterator[list[ast.stmt]]:
        for node in self.nodes():
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    yield block

    def own_lines(self) -> Iterator[tuple[list[ast.stmt], int, int, int]]:
        """Block, index, start and end of every simple statement that has its lines for itself."""
        for block in self.blocks():
            for index, statement in enumerate(block):
                if isinstance(statement, _COMPOUND):
                    continue
                start, end = self.source.span(statement)
                line = self.source.line_start(statement.lineno)
                rest = self.source.line_text(self.source.position(end)[0])
                column = self.source.position(end)[1] - 1
                if not self.text[line:start].strip() and not rest[column:].strip():
                    yield block, index, start, end

    def indent(self, offset: int) -> str:
        """The white space that the line of an offset begins with."""
        line = self.source.line_text(self.source.position(offset)[0])
        return line[: len(line) - len(line.lstrip())]

    def lists(self) -> Iterator[List]:
        """The arguments of calls, and the names of imports from a module, that stand on one line."""
        for node in self.nodes():
            found = None
            if isinstance(node, ast.Call):
                found = self._arguments(node)
            elif isinstance(node, ast.ImportFrom) and node.names[0].name != "*":
                found = self._names(node)
            if found is not None and not re.search(r"[#\r\n\\]", "".join(map(self._text, found.gaps))):
                yield found

    def _text(self, span: tuple[int, int]) -> str:
        return self.text[span[0] : span[1]]

    def _arguments(self, call: ast.Call) -> List | None:
        if not (call.args or call.keywords) or _is_generator(call):
            return None
        spans = sorted([*map(self.source.span, call.args), *map(self.source.span, call.keywords)])
        end = self.source.span(call)[1]
        opened = self.text.index("(", self._after_parentheses(self.source.span(call.func)[1]))
        return self._list(opened + 1, spans, end - 1, bracketed=True)

    def _after_parentheses(self, offset: int) -> int:
        while (found := re.compile(r"\s*\)").match(self.text, offset)) is not None:
            offset = found.end()
        return offset

    def _names(self, statement: ast.ImportFrom) -> List:
        spans = [self.source.span(name) for name in statement.names]
        _, end = self.source.span(statement)
        bracketed = self.text[end - 1] == ")"
        start = self.text.rindex("(" if bracketed else " ", 0, spans[0][0]) + 1
        return self._list(start, spans, end - bracketed, bracketed=bracketed)

    def _list(self, start: int, spans: list[tuple[int, int]], end: int, *, bracketed: bool) -> List:
        """start, end: of what is in the parentheses."""
        commas = []
        for (_, last), (first, _) in zip(spans, [*spans[1:], (end, end)], strict=True):
            commas += [offset for offset in self.commas if last <= offset < first]
        cuts = [start, *(offset + 1 for offset in commas), end + 1]
        pieces = []
        for begin, after in pairwise(cuts):
            piece = self.text[begin : after - 1]
            if piece.strip():
                lead = len(piece) - len(piece.lstrip())
                pieces.append((begin + lead, begin + len(piece.rstrip())))
        inner = [(one[1], two[0]) for one, two in pairwise(pieces)]
        gaps = [(start, pieces[0][0]), *inner, (pieces[-1][1], end)]
        return List(gaps, self.indent(start), bracketed)


class List(Struct, frozen=True):
    """Things with commas between them.

    gaps: what is before the first, between two (with the comma), and after the last. indent: of the line.
    bracketed: it has parentheses.
    """

    gaps: list[tuple[int, int]]
    indent: str
    bracketed: bool

    def edits(self, first: str, between: str, last: str) -> list[Edit]:
        """New gaps: `{n}` is a number, `{i}` the indentation in the parentheses, `{o}` the outer one."""
        texts = [first, *[between] * (len(self.gaps) - 2), last]
        found = []
        for number, ((start, end), text) in enumerate(zip(self.gaps, texts, strict=True)):
            text = text.format(n=f"{start}-{number}", i=self.indent + INDENT, o=self.indent)
            found.append(Edit(start, end, text))
        if not self.bracketed:
            opening, closing = found[0], found[-1]
            found[0] = opening._replace(text="(" + opening.text)
            found[-1] = closing._replace(text=closing.text + ")")
        return found


def _is_generator(call: ast.Call) -> bool:
    """Whether this is `f(x for x in y)`, whose parentheses are those of the generator."""
    return len(call.args) == 1 and not call.keywords and isinstance(call.args[0], ast.GeneratorExp)


# ---- layouts -----------------------------------------------------------------------------------------


def _gaps(first: str, between: str, last: str, *, imports: bool = True) -> Callable[[Code], list[Edit]]:
    """A layout of all arguments and imported names."""

    def edits(code: Code) -> list[Edit]:
        return [
            edit
            for found in code.lists()
            if imports or found.bracketed
            for edit in found.edits(first, between, last)
        ]

    return edits


def _parentheses(code: Code) -> list[Edit]:
    edits = []
    for node in code.nodes():
        if isinstance(node, ast.Call):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            if _is_generator(node):
                continue
            for value in values:
                start, end = code.source.span(value.value if isinstance(value, ast.Starred) else value)
                edits += [Edit(start, start, "("), Edit(end, end, ")")]
    return edits


def _backslashes(code: Code) -> list[Edit]:
    edits = _gaps(" \\\n{i}", ", \\\n{i}", " \\\n{o}", imports=False)(code)
    for node in code.nodes():
        if isinstance(node, ast.Attribute):
            end = code.source.span(node.value)[1]
            if code.text[end : end + 1] == ".":
                edits.append(Edit(end, end, " \\\n" + code.indent(end) + INDENT))
    return edits


def _statement_comments(code: Code) -> list[Edit]:
    edits = []
    for _, _, start, end in code.own_lines():
        edits.append(Edit(start, start, f"# above {start}\n{code.indent(start)}"))
        edits.append(Edit(end, end, f"  # after {start}"))
    return edits


def _commented_values(code: Code) -> list[Edit]:
    edits = []
    for block, index, _, _ in code.own_lines():
        value = getattr(block[index], "value", None)
        if isinstance(value, ast.expr) and not (
            isinstance(value, ast.Constant) and isinstance(block[index], ast.Expr)
        ):
            start, end = code.source.span(value)
            indent = code.indent(start)
            edits.append(
                Edit(start, start, f"(  # opens {start}\n{indent}{INDENT}# above {start}\n{indent}{INDENT}")
            )
            edits.append(Edit(end, end, f"  # after {start}\n{indent})"))
    return edits


def _is_header(statement: ast.stmt) -> bool:
    """Whether a statement must stand at the top: a docstring, or a `from __future__`."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _semicolons(before: str, after: str) -> Callable[[Code], list[Edit]]:
    def edits(code: Code) -> list[Edit]:
        found = []
        for block, index, start, end in code.own_lines():
            if not _is_header(block[index]):
                leaves = isinstance(block[index], (ast.Return, ast.Raise, ast.Break, ast.Continue))
                found += [Edit(start, start, before), Edit(end, end, after[:1] if leaves else after)]
        return found

    return edits


def _joined(code: Code) -> list[Edit]:
    """Statements that follow each other, on one line."""
    edits = []
    last: tuple[list[ast.stmt], int, int] | None = None
    for block, index, start, end in code.own_lines():
        follows = last is not None and last[0] is block and last[1] == index - 1
        if last is not None and follows and not _is_header(block[index - 1]):
            edits += [Edit(last[2], start, "; ")] if not code.text[last[2] : start].strip() else []
        last = (block, index, end)
    return edits


def _tabs(only_first: bool) -> Callable[[Code], list[Edit]]:
    def edits(code: Code) -> list[Edit]:
        found = []
        lines = {node.lineno for node in code.nodes() if isinstance(node, ast.stmt)}
        for number in sorted(lines):
            start = code.source.line_start(number)
            indent = code.indent(start)
            if indent:
                size = len(indent) // 4
                new = "\t" + indent[4:] if only_first else "\t" * size + indent[4 * size :]
                found.append(Edit(start, start + len(indent), new))
        return found

    return edits


_COMMENTS_AFTER = _gaps("  # opens {n}\n{i}", ",  # {n}\n{i}", ",  # {n}\n{o}")

LAYOUTS: dict[str, Callable[[Code], list[Edit]]] = {
    "parentheses": _parentheses,
    "spaces": _gaps(" ", " , ", " ", imports=False),
    "tabs-inside": _gaps("\t", ",\t", "\t", imports=False),
    "one-a-line": _gaps("\n{i}", ",\n{i}", ",\n{o}"),
    "hanging": _gaps("", ",\n{i}", "", imports=False),
    "comment-after": _COMMENTS_AFTER,
    "comment-before": _gaps("\n{i}# {n}\n{i}", ",\n{i}# {n}\n{i}", "\n{i}# {n}\n{o}"),
    "comment-between": _gaps("\n{i}", "  # before {n}\n{i},  # after {n}\n{i}", "  # {n}\n{o}"),
    "comment-old-code": _gaps("\n{i}# old({n}, \n{i}", ",\n{i}# old({n},\n{i}", "\n{o}"),
    "backslashes": _backslashes,
    "statement-comments": _statement_comments,
    "commented-values": _commented_values,
    "semicolon-before": _semicolons(f"{MARK} = 0; ", ""),
    "semicolon-after": _semicolons("", f"; {MARK} = 0"),
    "semicolons": _semicolons(f"{MARK} = 0;", f";{MARK} = 0;"),
    "joined": _joined,
    "tabs": _tabs(only_first=False),
    "tabs-and-spaces": _tabs(only_first=True),
    "crlf": _COMMENTS_AFTER,
}


def laid_out(name: str, code: Code) -> str | None:
    """The code in a layout; None: it has that already, or cannot be written so."""
    text = splice(code.text, sorted(LAYOUTS[name](code), key=lambda edit: (edit.start, edit.end)))
    if text == code.text or not same_meaning(text, code.text):
        return None
    return text.replace("\n", "\r\n") if name == "crlf" else text


def same_meaning(one: str, other: str) -> bool:
    """Whether two texts have equal trees, apart from the statements that layouts add."""
    try:
        return dumped(one) == dumped(other)
    except SyntaxError:
        return False


@lru_cache(maxsize=64)  # every variation is compared with the same texts
def dumped(text: str, leave_out: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The statements of a text as trees, without what layouts add or does nothing. Raises SyntaxError.

    Names that imports bind are written as what they stand for: it does not matter how that is imported.
    leave_out: imports, as `imported` gives them, that do not count where nothing uses what they bind.
    """
    tree = ast.parse(text)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound: dict[str, set[str]] = {}
    unused = []
    for node, name in _imports(tree):
        local = name.asname or name.name.partition(".")[0]
        module = f"{'.' * node.level}{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
        bound.setdefault(local, set()).add(module + (name.name if name.asname or module else local))
        if local not in used and _single(node, name) not in leave_out:
            unused.append(f"{local} is {module}{name.name}")
    full = {local: " or ".join(sorted(targets)) for local, targets in bound.items()}
    return (*_statements(_Meaning(full).visit(tree)), *sorted(unused))


def _statements(tree: ast.AST) -> Iterator[str]:
    """Every statement below a node as a tree, in order; blocks follow the statement that they are of."""
    for name in _BLOCKS:
        block = getattr(tree, name, None)
        if not isinstance(block, list):
            continue
        setattr(tree, name, [])
        yield name
        for node in block:
            inner = list(_statements(node))
            yield ast.dump(node)
            yield from inner


@lru_cache(maxsize=64)
def imported(text: str) -> frozenset[str]:
    """What a text imports, as statements with one name each."""
    return frozenset(_single(node, name) for node, name in _imports(ast.parse(text)))


def _imports(tree: ast.AST) -> Iterator[tuple[ast.Import | ast.ImportFrom, ast.alias]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in node.names:
                yield node, name


def _single(node: ast.Import | ast.ImportFrom, name: ast.alias) -> str:
    if isinstance(node, ast.ImportFrom):
        return ast.unparse(ast.ImportFrom(node.module, [name], node.level))
    return ast.unparse(ast.Import([name]))


class _Meaning(ast.NodeTransformer):
    """Takes out imports, what layouts add and what does nothing, and writes names in full."""

    def __init__(self, full: dict[str, str]) -> None:
        self.full = full

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        target = node.targets[0]
        is_mark = isinstance(target, ast.Name) and target.id == MARK
        if is_mark or ast.unparse(target) == ast.unparse(node.value):
            return None
        return self.generic_visit(node)

    def visit_Pass(self, node: ast.Pass) -> None:
        return None

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.full.get(node.id, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id.partition(".")[0] in LIBRARY_ROOTS:
            return ast.copy_location(ast.Name(f"{node.value.id}.{node.attr}", node.ctx), node)
        return node


# ---- surroundings ------------------------------------------------------------------------------------


def _in_string(quotes: str) -> Callable[[str], str | None]:
    def template(value: str) -> str | None:
        other = "'" if quotes[0] == '"' else '"'
        if (
            "\\" in value
            or "#" in value
            or "\n" in value
            or "{" in value
            or "}" in value
            or other * 3 in value
        ):
            return None
        if quotes[0] in value:
            value = value.replace(quotes[0], other)
        return f"f{quotes}<{{{value}}}>{quotes}"

    return template


EXPRESSIONS: dict[str, Callable[[str], str | None]] = {
    "lambda": lambda value: f"(lambda: {value})()",
    "comprehension": lambda value: f"[{value} for {MARK} in range(1)][0]",
    "walrus": lambda value: f"({MARK} := {value})",
    "conditional": lambda value: f"({value}) if {MARK} else None",
    "fstring-single": _in_string("'"),
    "fstring-double": _in_string('"'),
    "fstring-triple-single": _in_string("'''"),
    "fstring-triple-double": _in_string('"""'),
}
STATEMENTS = {
    "await": "async def {mark}():\n{indent}    return await {value}",
    "decorator": "@{value}\n{indent}def {mark}():\n{indent}    pass",
    "default": "def {mark}({mark}={value}):\n{indent}    pass",
    "one-line-suite": "if {mark}: {statement}",
    "one-line-function": "def {mark}(): return {value}",
}
SURROUNDINGS = [*EXPRESSIONS, *STATEMENTS]


Way = tuple[tuple[str, int], ...]  # to a statement: field and index without imports, from the module on


def surrounded(name: str, code: Code, paths: Collection[Way]) -> str | None:
    """The code with the statements at some paths in other surroundings; None: none can be put there."""
    edits = []
    for path in paths:
        statement = at(code.tree, path)
        if not isinstance(statement, (ast.Assign, ast.Expr)) or statement.value is None:
            continue
        start, end = code.source.span(statement.value)
        value = code.text[start:end]
        if name in EXPRESSIONS:
            new = EXPRESSIONS[name](value)
            if new is not None:
                edits.append(Edit(start, end, new))
            continue
        start, end = code.source.span(statement)
        new = STATEMENTS[name].format(
            mark=MARK, value=value, indent=code.indent(start), statement=code.text[start:end]
        )
        edits.append(Edit(start, end, new))
    text = splice(code.text, sorted(edits))
    try:
        ast.parse(text)
    except SyntaxError:
        return None
    return text if edits else None


def statements(code: Code, lines: Collection[int]) -> list[Way]:
    """The paths of the statements with a value that are on some lines."""

    def walk(node: ast.AST, path: Way) -> Iterator[Way]:
        for field in _BLOCKS:
            for index, child in enumerate(_block(node, field)):
                here = (*path, (field, index))
                if isinstance(child, (ast.Assign, ast.Expr)):
                    end = child.end_lineno or child.lineno
                    if any(child.lineno <= line <= end for line in lines):
                        yield here
                yield from walk(child, here)

    return list(walk(code.tree, ()))


def _block(node: ast.AST, field: str) -> list[ast.AST]:
    block = getattr(node, field, [])
    if not isinstance(block, list):
        return []
    return [item for item in block if not isinstance(item, (ast.Import, ast.ImportFrom))]


def at(tree: ast.AST, path: Way) -> ast.AST | None:
    """The node at a path; None where there is none."""
    node = tree
    for field, index in path:
        block = _block(node, field)
        if index >= len(block):
            return None
        node = block[index]
    return node


def alike(one: ast.AST, other: ast.AST, path: Way) -> bool:
    """Whether two trees have the same kind of statement at a path, in blocks of the same length."""
    *above, (field, _) = path
    outer = at(one, tuple(above)), at(other, tuple(above))
    sizes = {len(_block(node, field)) for node in outer if node is not None}
    return len(sizes) == 1 and None not in outer and type(at(one, path)) is type(at(other, path))
