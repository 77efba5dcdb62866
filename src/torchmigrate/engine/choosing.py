"""Which fixes of a text are made in each round: all that are wanted, or those that somebody chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from torchmigrate.findings import Edit, Finding, Fix
from torchmigrate.rewrite.apply import map_offset
from torchmigrate.source.text import Source


class Offer(NamedTuple):
    """A fix that may be made, and the findings that share it, in order of place.

    waiting: how many fixes of the text have no answer yet, this one among them.
    """

    path: Path
    source: Source
    fix: Fix
    findings: tuple[Finding, ...]
    waiting: int = 1


class Chooser(Protocol):
    """Whoever decides on fixes one by one."""

    def known(self, offer: Offer) -> bool | None:
        """The answer that follows from earlier ones; None: there is none, and `ask` gives it."""
        ...

    def ask(self, offer: Offer) -> bool:
        """Whether a fix is made."""
        ...


class _Refused(NamedTuple):
    """Where the finding of a refused fix begins: from `first` to `last`.

    These differ once another fix has replaced what is around it; `text` is what it is recognized by then.
    """

    code: str
    text: str
    first: int
    last: int


class Choosing:
    """What is chosen of the fixes of one text, round by round. Without a chooser it is all of them.

    asked: whether there was a question since the round before.
    """

    def __init__(self, chooser: Chooser | None, path: Path) -> None:
        self.chooser = chooser
        self.path = path
        self.asked = False
        self._refused: list[_Refused] = []

    def next(self, source: Source, wanted: list[Finding]) -> list[Finding]:
        """Those of the findings with a fix that are fixed in the next round; none: it is the end.

        A fix that was chosen by itself is alone in its round, so that the next one is about what the text is
        then. What was refused is not asked again.
        """
        self.asked = False
        if self.chooser is None:
            return wanted
        offers = [offer for offer in self._offers(source, wanted) if not self._is_refused(offer)]
        decided = [offer for offer in offers if self.chooser.known(offer)]
        if decided:
            return [finding for offer in decided for finding in offer.findings]
        for number, offer in enumerate(offers):
            if self.chooser.known(offer) is None:
                self.asked = True
                if self.chooser.ask(offer._replace(waiting=len(offers) - number)):
                    return list(offer.findings)
                self._refused += _places_of(offer)
        return []

    def follow(self, edits: Sequence[Edit]) -> None:
        """Let what was refused be known in the text after a round; `edits` as in `Applied.edits`."""
        self._refused = [_moved(each, edits) for each in self._refused]

    def _offers(self, source: Source, wanted: list[Finding]) -> Iterator[Offer]:
        # Many findings may share one fix that has as many edits: each object is compared once.
        objects = {id(finding.fix): finding.fix for finding in wanted}
        number: dict[Fix | None, int] = {fix: key for key, fix in reversed(objects.items())}
        sharing: dict[int, list[Finding]] = {}
        for finding in wanted:
            sharing.setdefault(number[objects[id(finding.fix)]], []).append(finding)
        for findings in sharing.values():
            fix = findings[0].fix
            assert fix is not None
            yield Offer(self.path, source, fix, tuple(findings))

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


def _moved(place: _Refused, edits: Sequence[Edit]) -> _Refused:
    around = next((edit for edit in edits if edit.start <= place.first < edit.end), None)
    first = map_offset(edits, place.first)
    if around is not None:  # it may be anywhere in what replaced it
        return place._replace(first=first, last=max(first + len(around.text), map_offset(edits, place.last)))
    return place._replace(first=first, last=map_offset(edits, place.last))
