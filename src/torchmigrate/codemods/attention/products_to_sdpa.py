"""TM901: attention written by hand, as one call of `scaled_dot_product_attention`.

Found is every softmax of a product of which the product with values is taken. It is rewritten where each step
between is understood and nobody else reads the scores or the weights.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.attention.parts import Parts, PartsReader, Turned
from torchmigrate.codemods.attention.scale import is_default
from torchmigrate.codemods.attention.sites import Site, sites
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.operations import Reader
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.base.words import Words
from torchmigrate.findings import Edit, Finding, Fix, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.lines import line_start, logical_line, start_of
from torchmigrate.rewrite.placing import use_at
from torchmigrate.rewrite.removed_statements import removals
from torchmigrate.semantics.model import Scope
from torchmigrate.source.text import Source
from torchmigrate.versions.range import applicability

NEW = "torch.nn.functional.scaled_dot_product_attention"
_PRODUCTS = Words("matmul", "bmm", "einsum")
# What stands before the parenthesis of a call or a definition.
_CALLED = re.compile(r"(?:[)\]]|(?<!\w)(?!(?:return|in|and|or|not|if|else|yield|await|is|lambda)\b)\w+)\s*$")
_SCALE_SINCE = "2.1"
_WIDTH = 88
_STEP = "    "
_MOST = 16  # attentions of one function that are followed: for each, the whole function is looked through
_TOO_MANY = f"there are more than {_MOST} in this function"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every attention of a file, at its softmax."""
    if not _has_products(file):
        return
    reader = Reader(file.names)
    scopes = {id(scope.node): scope for scope in file.names.scopes}
    followed: Counter[int] = Counter()  # by the id() of the function
    for site in sites(file.names.tree, reader):
        key = id(site.function)
        if not followed[key] and _knows_better(site):
            followed[key] = -1
        if followed[key] < 0:
            continue
        followed[key] += 1
        span = file.source.span(site.softmax)
        made = _fix(site, rule, file, reader, scopes.get(key)) if followed[key] <= _MOST else _TOO_MANY
        finding = finding_at(rule, file, span, symbol=NEW, fix=made if isinstance(made, Fix) else None)
        if isinstance(made, str):
            finding = finding._replace(blocked_by=because(made))
        yield finding


def _has_products(file: FileContext) -> bool:
    """Whether anything in the file may be a product of matrices."""
    names, text = file.names, file.source.text
    if _PRODUCTS.search(text):
        return True
    decorators = sum(len(getattr(scope.node, "decorator_list", ())) for scope in names.scopes)
    return text.count("@") > decorators and bool(names.nodes(ast.MatMult))


def _knows_better(site: Site) -> bool:
    """Whether the function calls the new one too: by hand is for what that cannot do, or for old releases."""
    name = NEW.rpartition(".")[2]
    return any(
        name in (getattr(node, "attr", ""), getattr(node, "id", "")) for node in ast.walk(site.function)
    )


def _fix(site: Site, rule: Rule, file: FileContext, reader: Reader, scope: Scope | None) -> Fix | str:
    """The fix, or why there is none."""
    source = file.source
    try:
        parts = PartsReader(site, reader).parts()
    except Unclear as error:
        return str(error)
    if scope is None or _shares_lines(site, parts, source):
        return "statements share a line"
    spelling = file.imports.spell(
        NEW, use_at(NEW, site.statement, [site.function.body, site.block], scope, file)
    )
    if isinstance(spelling, Refusal):
        return spelling.reason
    arguments = _arguments(parts, site, reader, source)
    edits = [_call(site, spelling.text, arguments, parts.result, source), *spelling.edits]
    edits += removals(parts.trail.gone, site.block, source)
    for statement, block in parts.trail.inner:
        edits += removals([statement], block, source)
    case = rule.cases[0]
    if any(item.startswith("scale=") for item in arguments):
        case = case._replace(requires=_SCALE_SINCE)
    level, reason = applicability(case, rule, file.versions)
    return file.fixes.fix(rule, f"Use `{NEW.rpartition('.')[2]}`", level, reason, edits)


def _shares_lines(site: Site, parts: Parts, source: Source) -> bool:
    for statement, block in [*((item, site.block) for item in parts.trail.gone), *parts.trail.inner]:
        if isinstance(statement, ast.If):
            start = start_of(source, statement)
            if source.text[line_start(source.text, start) : start].strip():
                return True
            continue
        line = logical_line(source, block, statement)
        if line.indent is None or len(line.statements) > 1:
            return True
    return False


def _arguments(parts: Parts, site: Site, reader: Reader, source: Source) -> list[str]:
    """The arguments of the new call."""

    def text(node: ast.expr) -> str:
        start, end = source.span(node)
        code = source.text[start:end]
        return f"({code})" if "\n" in code and not code.endswith((")", "]")) else code

    def primary(node: ast.expr) -> str:
        plain = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        return text(node) if plain else f"({text(node)})"

    def turned(part: Turned) -> str:
        return f"{primary(part.node)}{part.turn}" if part.turn else text(part.node)

    query, key = parts.query, parts.key
    found = [turned(query), turned(key), turned(parts.value)]
    if parts.mask is not None:
        found.append(parts.mask.argument(text))
    if parts.module is not None:
        layer = text(parts.module) + (f"[{parts.number}]" if parts.number is not None else "")
        found.append(f"dropout_p={layer}.p if {layer}.training else 0.0")
    elif parts.dropout is not None:
        chance = "0.5" if not hasattr(parts.dropout, "lineno") else text(parts.dropout)
        when = f" if {text(parts.training)} else 0.0" if parts.training is not None else ""
        found.append(f"dropout_p={chance}{when}")
    if parts.scale is None:
        found.append("scale=1.0")
    elif not is_default(
        parts.scale,
        parts.divided,
        None if query.turn else query.node,
        None if key.turn else key.node,
        site,
        reader,
    ):
        tight = isinstance(parts.scale, ast.Name | ast.Attribute | ast.Call | ast.Constant | ast.Subscript)
        scale = text(parts.scale) if tight or not parts.divided else f"({text(parts.scale)})"
        found.append(f"scale=1.0 / {scale}" if parts.divided else f"scale={scale}")
    return found


def _call(site: Site, function: str, arguments: Sequence[str], turn: str, source: Source) -> Edit:
    """The new call in the place of the product, on several lines if it is long.

    Args:
        turn: the method call that the result needs, or nothing.
    """
    start, end = source.span(site.product)
    text = source.text
    if _parenthesized(text, start, end):
        start, end = start - 1, end + 1
    code = f"{function}({', '.join(arguments)}){turn}"
    begin = line_start(text, start)
    rest = re.match(r"[^\r\n]*", text[end:])
    width = start - begin + len(code) + (len(rest[0]) if rest else 0)
    if width > _WIDTH and "\n" not in code:
        line = text[begin:start]
        indent = line[: len(line) - len(line.lstrip())]
        inner = f"{source.newline}{indent}{_STEP}"
        row = ", ".join(arguments)
        if len(indent) + len(_STEP) + len(row) <= _WIDTH:
            return Edit(start, end, f"{function}({inner}{row}{source.newline}{indent}){turn}")
        operands = ", ".join(arguments[:3])
        fits = len(indent) + len(_STEP) + len(operands) <= _WIDTH
        rows = [operands, *arguments[3:]] if fits else list(arguments)
        code = f"{function}({inner}{f',{inner}'.join(rows)},{source.newline}{indent}){turn}"
    return Edit(start, end, code)


def _parenthesized(text: str, start: int, end: int) -> bool:
    """Whether an expression has parentheses of its own around it, with nothing else inside."""
    return (
        text[start - 1 : start] == "("
        and text[end : end + 1] == ")"
        and not _CALLED.search(text[: start - 1].rpartition("\n")[2])
    )
