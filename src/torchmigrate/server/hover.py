"""What is shown where the pointer rests: what `explain` says of a rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.pages import has_page, page_of
from torchmigrate.catalogue.problems import CatalogueError
from torchmigrate.engine.suppressions import Comment
from torchmigrate.patterns import pattern
from torchmigrate.report.explanation import MOST_SYMBOLS, about, examples_of, in_range, sections, versions
from torchmigrate.report.rule_texts import generic
from torchmigrate.server.checks import Checked
from torchmigrate.versions.range import VersionRange

if TYPE_CHECKING:
    from torchmigrate.catalogue.examples import Example

_ITEM = pattern(r"[^\s,]+")


def hover(checked: Checked, uri: str, position: types.Position, *, markdown: bool) -> types.Hover | None:
    """What is known of the rules of the findings, or of a suppression, at a place; None: there is nothing.

    markdown: the client shows it laid out.
    """
    if checked.source is None:
        return None
    at = position.line, position.character
    found = {
        placed.finding.code: placed.range
        for placed in checked.placed
        if placed.uri == uri and _holds(placed.range, at)
    }
    found = found or dict(_suppressed_at(checked, uri, position))
    said = [text for code in found if (text := _explained(checked, code)) is not None]
    if not said:
        return None
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, "\n---\n\n".join(said)), next(iter(found.values())))


def _suppressed_at(checked: Checked, uri: str, position: types.Position) -> Iterator[tuple[str, types.Range]]:
    """The codes that a comment of ours, or `noqa`, names at a place; with each, the range of all codes of the
    comment."""
    source = checked.source
    assert source is not None
    suppressions = checked.engine.hiding(source)
    if suppressions is None:
        return
    at = position.line, position.character
    known = checked.engine.settings.known
    for comment in suppressions.comments:
        location = checked.location(source, comment.start, comment.end)
        if location.uri != uri or not _holds(location.range, at):
            continue
        named = list(_named(source.text, comment))
        under = [
            (code, start, end)
            for code, start, end in named
            if _holds(checked.location(source, start, end).range, at)
        ]
        for code, first, last in under or named:
            code = code.upper() if comment.is_noqa else code
            if code in known:
                yield known[code], checked.location(source, first, last).range


def _named(text: str, comment: Comment) -> Iterator[tuple[str, int, int]]:
    start, end = comment.items_span
    for item in _ITEM.finditer(text[start:end]) if comment.items else ():
        yield item[0], start + item.start(), start + item.end()


def _holds(area: types.Range, at: tuple[int, int]) -> bool:
    return (area.start.line, area.start.character) <= at <= (area.end.line, area.end.character)


def _explained(checked: Checked, code: str) -> str | None:
    rule = checked.engine.rule(code) or checked.engine.whole.find(code)
    if rule is None:
        return None
    settings = checked.engine.settings
    try:
        examples = examples_of(rule)
    except CatalogueError:  # the file of the rule has changed since
        examples = []
    return as_markdown(rule, examples, VersionRange(settings.target, settings.minimum))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def as_markdown(rule: Rule, examples: Sequence[Example], span: VersionRange) -> str:
    """What there is to say of a rule, for an editor."""
    told = in_range(rule, span) if versions(rule) else ""
    parts = [f"**{rule.code}** `{rule.name}`", generic(rule, rule.summary), "  \n".join([*about(rule), told])]
    for section in sections(rule, examples, MOST_SYMBOLS):
        form = "- <{}>" if section.title == "Links" else "- `{}`"
        lines = [*map(form.format, section.names), *(f"- {line}" for line in section.lines)]
        language = "" if rule.files else "python"
        code = f"```{language}\n{section.code}\n```" if section.code else ""
        rows = [f"| {' | '.join(_cell(text) for text in row)} |" for row in section.table]
        rows[1:1] = ["| --- | --- | --- |"] if rows else []
        parts += [f"**{section.title}**", section.prose, "\n".join(rows), "\n".join(lines), code]
    if has_page(rule):
        parts.append(f"Documentation: {page_of(rule.code)}")
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
