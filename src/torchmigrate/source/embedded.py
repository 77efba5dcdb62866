"""The examples for readers that a file holds: in docstrings of Python, in blocks of Markdown.

Each docstring is a program of its own, as doctest runs it, which knows what its module imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchmigrate.patterns import pattern
from torchmigrate.source.document import (
    Document,
    Whole,
    lines_of,
    markdown_blocks,
    rest_blocks,
    without_ends,
)
from torchmigrate.source.other import MARKDOWN, OtherSource
from torchmigrate.source.text import Source, SourceError
from torchmigrate.source.trees import walk

# Without one of these a docstring holds no example.
_MARKS = (">>>", "```", "~~~", "::")
_QUOTES = pattern(r"[rRuU]?(\"\"\"|''')")
_WORD = pattern(r"[^\W\d]\w*")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def embedded_in(source: Source) -> list[Document]:
    """What a file holds of Python for readers, in order of place.

    Raises SourceError if it cannot be parsed.
    """
    if isinstance(source, OtherSource):
        if source.kind != MARKDOWN:
            return []
        file = lines_of(source.text)
        whole = Whole((0, len(source.text)), 0)
        found = [Document.of(source.path, file, markdown_blocks(without_ends(file)), whole=whole)]
    elif type(source) is Source and any(mark in source.text for mark in _MARKS):
        found = list(_docstrings(source))
    else:
        return []
    return [document for document in found if document.pieces]


def with_embedded(source: Source, changed: Iterable[Document]) -> Source:
    """The file with documents of it, in order of place, that have been changed.

    Raises SourceError if anything else would change by that.
    """
    parts: list[str] = []
    position = 0
    for document in changed:
        assert document.whole is not None, "it is within a file"
        start, end = document.whole.span
        parts += (source.text[position:start], document.written())
        position = end
    new = source.with_text("".join(parts) + source.text[position:])
    if not isinstance(source, OtherSource) and _without_docstrings(new) != _without_docstrings(source):
        raise SourceError("the fix would change the text around the example")
    return new


def _without_docstrings(source: Source) -> str:
    """The code of a file, but for the texts of its docstrings."""
    tree = ast.parse(source.text)  # of its own: it is changed
    for node in walk(tree):
        if (text := _docstring(node)) is not None:
            text.value = ""
    return ast.dump(tree)


def _docstring(node: ast.AST) -> ast.Constant | None:
    if not isinstance(node, _DOCUMENTED) or not node.body:
        return None
    first = node.body[0]
    text = first.value if isinstance(first, ast.Expr) else None
    return text if isinstance(text, ast.Constant) and isinstance(text.value, str) else None


def _docstrings(source: Source) -> Iterator[Document]:
    """The docstrings with examples that neither begin nor end in the line of the quotes."""
    tree = source.parse()
    texts = [text for text in map(_docstring, walk(tree)) if text is not None]
    imports = _imports(tree)
    for text in sorted(texts, key=lambda each: each.lineno):
        first, last = text.lineno + 1, text.end_lineno or text.lineno
        if first >= last or not any(mark in str(text.value) for mark in _MARKS):
            continue
        literal = source.segment(text)
        quotes = _QUOTES.match(literal)
        # Two literals side by side, or quotes after a backslash.
        if quotes is None or quotes[1] in literal[quotes.end() : -3] or not literal.endswith(quotes[1]):
            continue
        span = source.line_start(first), source.line_start(last)
        file = lines_of(source.text[slice(*span)])
        plain = without_ends(file)
        blocks = list(markdown_blocks(plain))
        for block in blocks:
            for row, *_ in block:
                plain[row - 1] = ""
        blocks += rest_blocks(plain)
        is_raw = literal[0] in "rR"
        document = Document.of(
            source.path,
            file,
            sorted(blocks),
            whole=Whole(span, first - 1),
            may_be=lambda code, is_raw=is_raw: is_raw or "\\" not in code,  # type: ignore[misc]
        )
        yield _knowing(imports, document)


def _imports(tree: ast.Module) -> dict[str, str]:
    """What a module imports at its level, in order: the name that it gets, and the import of that alone."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                one = ast.Import([alias])
                found[alias.asname or alias.name.partition(".")[0]] = ast.unparse(one)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module != "__future__":
            for alias in node.names:
                found[alias.asname or alias.name] = ast.unparse(ast.ImportFrom(node.module, [alias], 0))
    found.pop("*", None)
    return found


def _knowing(imports: dict[str, str], document: Document) -> Document:
    """A document with those imports of its module, of what it names, that it does not make itself."""
    if not document.pieces:
        return document
    words = imports.keys() & set(_WORD.findall(document.text))
    if not words:
        return document
    try:
        tree = document.parse()
    except SourceError:  # blocks that do not fit together: reported when they are checked
        return document
    own = {
        alias.asname or alias.name.partition(".")[0]
        for node in walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    names = sorted(words - own)
    return document.borrowing("\n".join(imports[name] for name in names), names) if names else document
