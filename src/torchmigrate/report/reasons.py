"""What is in the way of a fix, as a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from torchmigrate.findings import Applicability, Finding, Fix, Obstacle, Reason
from torchmigrate.printing import printable
from torchmigrate.source.text import Source

_SENTENCES = {
    Obstacle.WORDS: "{text}",
    Obstacle.TARGET: "needs {needs}, but the target is {has}",
    Obstacle.MINIMUM: "needs {needs}, but the project supports {has}",
    Obstacle.COMMENT: "the fix removes a comment",
    Obstacle.ANNOTATION: "only an annotation or a variable name shows {text}",
    Obstacle.EVIDENCE: "only recorded types show {text}",
    Obstacle.CONFIGURATION: "the configuration makes it unsafe",
    Obstacle.REPLACED: "another file replaces `{name}` of this file",
    Obstacle.UNSAFE: "`--unsafe-fixes` {text}",
    Obstacle.TAKEN: "other code imports `{name}` from this file",
}


def sentence(reasons: Iterable[Reason]) -> str | None:
    """Some reasons in one line; None where there is none."""
    return "; ".join(map(_one, reasons)) or None


def reason_of(fix: Fix) -> str | None:
    """Why a fix is not safe; None where it is."""
    return sentence(fix.held_by)


def message_of(finding: Finding) -> str:
    """What was found."""
    lacking = finding.lacking
    message = f"{finding.message} (seen at run time)" if finding.seen else finding.message
    if lacking is None:
        return message
    who = "the project supports" if lacking.kind is Obstacle.MINIMUM else "the target is"
    return f"{message}, but {who} {lacking.has}"


def help_of(finding: Finding) -> str | None:
    """Why there is no better fix, and what to do by hand; None if there is no text."""
    return "; ".join(text for text in (sentence(finding.blocked_by), finding.help) if text) or None


def advice(finding: Finding) -> Iterator[tuple[str, str]]:
    """What can be done about a finding: ("fix" | "unsafe fix" | "suggestion" | "help", text)."""
    yield from fix_advice(finding)
    text = "; ".join(filter(None, by_hand_of(finding)))
    if text:
        yield "help", text


def fix_advice(finding: Finding) -> Iterator[tuple[str, str]]:
    """What the fix does, and why it is not safe."""
    fix = finding.fix
    if fix is not None:
        kind = {
            Applicability.SAFE: "fix",
            Applicability.UNSAFE: "unsafe fix",
            Applicability.DISPLAY: "suggestion",
        }
        reason = reason_of(fix)
        yield kind[fix.applicability], f"{fix.title} ({reason})" if reason else fix.title


def by_hand_of(finding: Finding) -> tuple[str | None, str | None]:
    """Why there is no better fix here, and what the rule says to do by hand; nothing if there is a safe
    fix."""
    if finding.fix is not None and finding.fix.applicability is Applicability.SAFE:
        return None, None
    return sentence(finding.blocked_by), finding.help


def said_of(finding: Finding, source: Source) -> Finding:
    """A finding for a person: in one line each, what it says is safe to print.

    Its sentences name lines of its text: of a notebook, the cells as well.
    """
    if not source.in_pieces and all(printable(text) == text for text in _texts_of(finding)):
        return finding

    def said(text: str) -> str:
        if source.in_pieces:
            text = re.sub(r"\bline (\d+)\b", lambda found: source.said_row(int(found[1])), text)
        return printable(text)

    def maybe(text: str | None) -> str | None:
        return None if text is None else printable(text)

    def reason(each: Reason) -> Reason:
        text = printable(each.text) if each.path else said(each.text)
        path = each.path and Path(printable(str(each.path)))
        names = maybe(each.name), maybe(each.needs), maybe(each.has)
        return replace(each, text=text, path=path, name=names[0], needs=names[1], has=names[2])

    def reasons(some: tuple[Reason, ...]) -> tuple[Reason, ...]:
        return tuple(map(reason, some))

    def fix_of(fix: Fix) -> Fix:
        more, less = fix.unsafe and fix_of(fix.unsafe), fix.lesser and fix_of(fix.lesser)
        return replace(fix, title=said(fix.title), held_by=reasons(fix.held_by), unsafe=more, lesser=less)

    return replace(
        finding,
        code=printable(finding.code),
        name=printable(finding.name),
        symbol=maybe(finding.symbol),
        url=maybe(finding.url),
        message=said(finding.message),
        lacking=finding.lacking and reason(finding.lacking),
        help=finding.help and said(finding.help),
        blocked_by=reasons(finding.blocked_by),
        fix=finding.fix and fix_of(finding.fix),
    )


def _texts_of(finding: Finding) -> Iterator[str]:
    """The texts of a finding."""
    yield from (finding.code, finding.name, finding.message)
    yield from filter(None, (finding.help, finding.url, finding.symbol))
    reasons = [*finding.blocked_by, *filter(None, [finding.lacking])]
    fixes = [finding.fix]
    while fixes:
        fix = fixes.pop()
        if fix is not None:
            yield fix.title
            reasons += fix.held_by
            fixes += (fix.unsafe, fix.lesser)
    for reason in reasons:
        yield from filter(None, (reason.text, reason.name, reason.needs, reason.has))
        yield str(reason.path or "")


def _one(reason: Reason) -> str:
    if reason.kind is Obstacle.PATCH:
        where = "this file" if reason.path is None else reason.path.name
        return f"{where} replaces `{reason.name}`, and the new code would not use the replacement"
    return _SENTENCES[reason.kind].format(
        text=reason.text, name=reason.name, needs=reason.needs, has=reason.has
    )
