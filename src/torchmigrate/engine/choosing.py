"""Which fixes of a text are made in each round: all that are wanted, or those that somebody chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from torchmigrate.findings import Applicability, Finding, Fix
from torchmigrate.source.text import Source

if TYPE_CHECKING:
    from torchmigrate.rewrite.apply import Applied


class Offer(Struct, frozen=True):
    """What may be done in one step: findings with one fix, or with fixes that only make sense together.

    findings: in order of place. waiting: how many offers of the text have no answer yet, this one among them.
    instead: whether it is the alternative after an offer that does more was declined.
    """

    path: Path
    source: Source
    findings: tuple[Finding, ...]
    waiting: int = 1
    instead: bool = False

    @property
    def fixes(self) -> list[Fix]:
        """Each fix once."""
        objects = {id(finding.fix): finding.fix for finding in self.findings if finding.fix is not None}
        return list(dict.fromkeys(objects.values()))

    @property
    def codes(self) -> list[str]:
        """The rules that it is about."""
        return list(dict.fromkeys(finding.code for finding in self.findings))

    @property
    def applicability(self) -> Applicability:
        """That of the least safe fix."""
        return min(fix.applicability for fix in self.fixes)

    @property
    def lesser(self) -> Offer | None:
        """The alternative if this offer is declined: the fixes that do less; None: there is none."""
        less: dict[int, Fix] = {}  # findings that share a fix share the other one
        for fix in (finding.fix for finding in self.findings if finding.fix is not None):
            less[id(fix)] = fix.lesser or fix
        findings = tuple(
            finding if finding.fix is None else replace(finding, fix=less[id(finding.fix)])
            for finding in self.findings
        )
        offer = replace(self, findings=findings, instead=True)
        return None if offer.fixes == self.fixes else offer


class Chooser(Protocol):
    """An object that decides which fixes are applied."""

    def known(self, offer: Offer) -> bool | None:
        """The answer that follows from earlier ones; None: there is none, and `ask` gives it."""
        ...

    def ask(self, offer: Offer) -> bool:
        """Whether it is done."""
        ...


class One:
    """Chooses one fix of one text, with those that only make sense together with it, and nothing after that.

    Args:
        source: the text, which may be an example within a file.
        fix: what is wanted, as it was found in the text.
    """

    def __init__(self, source: Source, fix: Fix) -> None:
        self._source = source
        self._edits = fix.edits

    def known(self, offer: Offer) -> bool | None:
        """Whether the offer is, or has, what is wanted."""
        if self._is_in(offer):
            return True
        return None if offer.lesser is not None and self._is_in(offer.lesser) else False

    def ask(self, offer: Offer) -> bool:
        """No: the fix that does less is wanted."""
        return False

    def _is_in(self, offer: Offer) -> bool:
        return (
            any(fix.edits == self._edits for fix in offer.fixes)
            and offer.source.text == self._source.text
            # One of several examples that are alike.
            and offer.source.file_row(self._edits[0].start) == self._source.file_row(self._edits[0].start)
        )


class _Refused(Struct, frozen=True):
    """Where the finding of a refused fix begins: from `first` to `last`.

    These differ once another fix has replaced what is around it; `text` is what it is recognized by then.
    """

    code: str
    text: str
    first: int
    last: int


class Choosing:
    """What is chosen of the fixes of one text, round by round. Without a chooser it is all of them.

    Args:
        together: returns the `together` word of a finding's rule: its fixes are decided together.

    asked: whether there was a question since the round before.
    """

    def __init__(
        self, chooser: Chooser | None, path: Path, together: Callable[[Finding], str | None]
    ) -> None:
        self.chooser = chooser
        self.path = path
        self.asked = False
        self._together = together
        self._begun: set[str] = set()  # `together` words whose fixes were applied
        self._refused: list[_Refused] = []

    def next(self, source: Source, wanted: list[Finding]) -> list[Finding]:
        """Those of the findings with a fix that are fixed in the next round; none: there are no more.

        A fix that was chosen individually is alone in its round, so that the next choice is about the changed
        text. A rejected fix is not offered again.
        """
        self.asked = False
        if self.chooser is None:
            return wanted
        offers = [offer for offer in self._offers(source, wanted) if not self._is_refused(offer)]
        decided = [offer for offer in offers if self._has_begun(offer) or self.chooser.known(offer)]
        if decided:
            return self._taken(*decided)
        for number, offer in enumerate(offers):
            if self.chooser.known(offer) is None:
                self.asked = True
                accepted = self._accepted(self.chooser, replace(offer, waiting=len(offers) - number))
                if accepted is not None:
                    return self._taken(accepted)
                self._refused += _places_of(offer)
        return []

    def _accepted(self, chooser: Chooser, offer: Offer) -> Offer | None:
        """The accepted part of an offer: all of it, or its alternative."""
        if chooser.ask(offer):
            return offer
        lesser = offer.lesser
        if lesser is None:
            return None
        known = chooser.known(lesser)
        return lesser if known or (known is None and chooser.ask(lesser)) else None

    def follow(self, done: Applied) -> None:
        """Let what was refused be known in the text that a round gave."""
        self._refused = [moved for place in self._refused for moved in _moved(place, done)]

    def _offers(self, source: Source, wanted: list[Finding]) -> Iterator[Offer]:
        # Many findings may share one fix that has as many edits: each object is compared once.
        objects = {id(finding.fix): finding.fix for finding in wanted}
        number = {fix: key for key, fix in objects.items()}
        sharing: dict[str | int, list[Finding]] = {}
        for finding in wanted:
            key = self._together(finding) or number[objects[id(finding.fix)]]
            sharing.setdefault(key, []).append(finding)
        for findings in sharing.values():
            yield Offer(self.path, source, tuple(findings))

    def _taken(self, *offers: Offer) -> list[Finding]:
        found = [finding for offer in offers for finding in offer.findings]
        # Fixes of one decision may need a round each: those that are left have their answer.
        self._begun.update(filter(None, map(self._together, found)))
        return found

    def _has_begun(self, offer: Offer) -> bool:
        return self._together(offer.findings[0]) in self._begun

    def _is_refused(self, offer: Offer) -> bool:
        return any(
            place.code == finding.code
            and place.first <= finding.start <= place.last
            and (place.first == place.last or place.text == offer.source.text[finding.start : finding.end])
            for place in self._refused
            for finding in offer.findings
        )


def _places_of(offer: Offer) -> Iterator[_Refused]:
    """All places that a refused fix is about: one of several may become the first, if others go."""
    for finding in offer.findings:
        for start, end in ((finding.start, finding.end), *finding.places):
            yield _Refused(finding.code, offer.source.text[start:end], start, start)


def _moved(place: _Refused, done: Applied) -> Iterator[_Refused]:
    """Where a refused fix may be after a round: of what was replaced, wherever it was written again."""
    from torchmigrate.rewrite.apply import map_offset

    around = [fix for fix in done.applied if any(edit.start <= place.first < edit.end for edit in fix.edits)]
    if not around:
        yield replace(
            place, first=map_offset(done.edits, place.first), last=map_offset(done.edits, place.last)
        )
    for edit in (edit for fix in around for edit in fix.edits if place.text in edit.text):
        first = map_offset(done.edits, edit.start)
        if edit.start == edit.end:  # it is before the old text
            first -= len(edit.text)
        yield replace(place, first=first, last=first + len(edit.text))
