"""TM901: attention written by hand, as one call of `scaled_dot_product_attention`.

The rule finds every softmax of a product whose result is multiplied with values. The fix needs each step
between to be understood, and no other code may read the scores or the weights.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.codemods.attention.parts import Parts, PartsReader
from torchmigrate.codemods.attention.products import STAY
from torchmigrate.codemods.attention.scale import is_default
from torchmigrate.codemods.attention.sites import Site, Stages, sites
from torchmigrate.codemods.base.findings import finding_at
from torchmigrate.codemods.base.operations import Reader
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.findings import Edit, Finding, Fix, because
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import Argument, Part, code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.imports.planner import Refusal
from torchmigrate.rewrite.lines import begins_line, logical_line
from torchmigrate.rewrite.long_calls import call_instead
from torchmigrate.rewrite.placing import use_at
from torchmigrate.source.text import Source
from torchmigrate.source.trees import walk
from torchmigrate.versions.range import applicability

NEW = "torch.nn.functional.scaled_dot_product_attention"
_SCALE_SINCE = "2.1"
_MOST = 16  # attentions of one function that are followed: for each, the whole function is looked through
_TOO_MANY = f"this function has more than {_MOST} of them"


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every attention of a file, at its softmax."""
    reader = Reader(file.flow)
    followed: Counter[int] = Counter()  # by the id() of the function
    stages = Stages(reader)
    for site in sites(reader, stages):
        key = id(site.function)
        if not followed[key] and _knows_better(site):
            followed[key] = -1
        if followed[key] < 0:
            continue
        followed[key] += 1
        span = file.source.span(site.softmax)
        made = _fix(site, rule, file, reader, stages) if followed[key] <= _MOST else _TOO_MANY
        finding = finding_at(rule, file, span, symbol=NEW, fix=made if isinstance(made, Fix) else None)
        if isinstance(made, str):
            finding = replace(finding, blocked_by=because(made))
        yield finding


def _knows_better(site: Site) -> bool:
    """Whether the function calls the new one too: by hand is for what that cannot do, or for old releases."""
    name = NEW.rpartition(".")[2]
    return any(name in (getattr(node, "attr", ""), getattr(node, "id", "")) for node in walk(site.function))


def _fix(site: Site, rule: Rule, file: FileContext, reader: Reader, stages: Stages) -> Fix | str:
    """The fix, or why there is none."""
    source = file.source
    try:
        parts = PartsReader(site, reader, stages).parts()
    except Unclear as error:
        return str(error)
    if _shares_lines(site, parts, source):
        return "several statements are on one line"
    spelling = file.imports.spell(
        NEW,
        use_at(
            NEW,
            site.statement,
            [site.function.body, site.block],
            file.flow.index.scope_at(site.function),
            file,
        ),
    )
    if isinstance(spelling, Refusal):
        return spelling.reason
    arguments = _arguments(parts, reader)
    call = call_instead(source, site.product, spelling.text, arguments, parts.result.of, together=3)
    edits = [call, *spelling.edits]
    edits += _without_steps(parts, site, file)
    case = rule.cases[0]
    if any(item.keyword == "scale" for item in arguments):
        case = replace(case, requires=_SCALE_SINCE)
    level, reason = applicability(case, rule, file.versions)
    return file.fixes.fix(rule, f"Use `{NEW.rpartition('.')[2]}`", level, reason, edits)


def _dropout(chance: Part, test: Part | None) -> Argument:
    """The probability of dropout where a test holds, and none elsewhere."""
    if test is not None:
        chance = code("$chance if $test else 0.0", chance=chance, test=test)
    return Argument(code("$chance", chance=chance), "dropout_p")


def _without_steps(parts: Parts, site: Site, file: FileContext) -> list[Edit]:
    """Take the steps away with the comments on them.

    What is written above the first stays, if nothing is written above the product.
    """
    rewriting = file.rewriting()
    steps = sorted(parts.trail.gone, key=lambda item: item.lineno)
    for number, step in enumerate(steps):
        above = number > 0 or rewriting.has_note(site.statement)
        rewriting.remove(step, remarks=False, notes=False, above=above)
    for step, _ in parts.trail.inner:
        rewriting.remove(step)
    return rewriting.edits()


def _shares_lines(site: Site, parts: Parts, source: Source) -> bool:
    for statement, block in [*((item, site.block) for item in parts.trail.gone), *parts.trail.inner]:
        if isinstance(statement, ast.If):
            if not begins_line(source, statement):
                return True
            continue
        line = logical_line(source, block, statement)
        if line.indent is None or len(line.statements) > 1:
            return True
    return False


def _arguments(parts: Parts, reader: Reader) -> list[Argument]:
    """The arguments of the new call."""
    query, key = parts.query, parts.key
    found = [Argument(part.turn.of(part.node)) for part in (query, key, parts.value)]
    if parts.mask is not None:
        found.append(parts.mask.argument())
    if parts.module is not None:
        index = str(parts.number) if parts.number is not None else None
        layer = code("$layer" if index is None else "$layer[$index]", layer=parts.module, index=index)
        found.append(_dropout(code("$layer.p", layer=layer), code("$layer.training", layer=layer)))
    elif parts.dropout is not None:
        chance = parts.dropout if hasattr(parts.dropout, "lineno") else "0.5"
        found.append(_dropout(chance, parts.training))
    scale, divided = parts.scale, parts.divided
    one, other = (part.node if part.turn == STAY else None for part in (query, key))
    if scale is None:
        found.append(Argument("1.0", "scale"))
    elif not is_default(scale, divided, one, other, reader):
        plain = isinstance(scale, (ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.Subscript))
        inverse = "1.0 / $scale" if plain else "1.0 / ($scale)"
        found.append(Argument(code(inverse if divided else "$scale", scale=scale), "scale"))
    return found
