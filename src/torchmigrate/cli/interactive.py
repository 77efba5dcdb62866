"""`check --interactive`: a person says which fixes are made."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from torchmigrate.engine.choosing import Offer
from torchmigrate.files.signals import Noticed, noticed
from torchmigrate.findings import Applicability, Finding
from torchmigrate.report.base import FileFindings, shown_path
from torchmigrate.report.concise import header
from torchmigrate.report.console import Console
from torchmigrate.report.full import FullReporter
from torchmigrate.report.reasons import reason_of, said_of
from torchmigrate.report.summary import plural

_QUESTION = "[y]es / [n]o / [a]ll of {rule} / [s]kip {rule} / all in this [f]ile / [q]uit / [?] help:"
_HELP = """\
y  apply this fix
n  {refuse}
a  apply this fix and all other {kind}fixes of {rule}, in all files
s  skip all fixes of {rule}, in all files
f  apply this fix and all other {kind}fixes in this file
q  quit: keep what was applied, and ask about nothing more
?  show this help
"""
_MEANING = {"y": "yes", "n": "no", "a": "all", "s": "skip", "f": "file", "q": "quit", "?": "help"}
_MOST_OTHERS = 10  # findings of a fix that are listed after the first


class Asker:
    """Shows each fix on the terminal, and asks. Answers hold for the rest of the run.

    An answer for several fixes is about those that are at least as safe as the one that is shown.

    Args:
        console: of the command; stderr is the terminal.
        here: the directory to which paths are relative.
        least: the least applicability of the fixes that are made in a file.
    """

    def __init__(self, console: Console, here: Path, least: Callable[[Path], Applicability]) -> None:
        self._console = console
        self._here = here
        self._least = least
        self._style = console.error_style
        self._reporter = FullReporter(self._style, whole=True)
        self._accepted: dict[str | Path, Applicability] = {}  # by the code of a rule, or a file
        self._skipped: set[str] = set()
        self._quit = False
        self._signals = Noticed()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While files are fixed: Control-C is no more questions, so that what was accepted can be written."""
        with noticed() as self._signals:
            yield

    @property
    def interrupted(self) -> type[KeyboardInterrupt] | None:
        """What a signal would have raised."""
        return self._signals.exception

    @property
    def stopped(self) -> bool:
        """Whether the user has enough."""
        return self._quit or self.interrupted is not None

    def known(self, offer: Offer) -> bool | None:
        """The answer that follows from earlier ones; None: there is none."""
        codes = offer.codes
        if self.stopped or not self._skipped.isdisjoint(codes):
            return False
        if self._accepts(offer.path, offer) or all(self._accepts(code, offer) for code in codes):
            return True
        return None

    def _accepts(self, key: str | Path, offer: Offer) -> bool:
        least = self._accepted.get(key)
        return least is not None and offer.applicability >= least

    def ask(self, offer: Offer) -> bool:
        """Show a fix, and ask until there is an answer; the end of the input is `quit`."""
        self._console.err(self._shown(offer))
        while True:
            self._console.err(self._question(offer))
            key = self._key()
            if key in ("y", "n"):
                return key == "y"
            if key == "a":
                for code in offer.codes:
                    self._accept(code, offer)
                return True
            if key == "f":
                self._accept(offer.path, offer)
                return True
            if key == "s":
                self._skipped.update(offer.codes)
                return False
            if key == "q" or self.stopped:
                self._quit = True
                return False
            kind = "safe " if offer.applicability is Applicability.SAFE else ""
            refuse = "leave this place as it is"
            if (lesser := offer.lesser) is not None:
                refuse = f"refuse this fix; the next question is about the {_kind(lesser)} fix of this place"
            self._console.err(_HELP.format(rule=_rule(offer), kind=kind, refuse=refuse))

    def _accept(self, key: str | Path, offer: Offer) -> None:
        self._accepted[key] = min(offer.applicability, self._accepted.get(key, Applicability.SAFE))

    # ---- what is shown -------------------------------------------------------------------------------

    def _shown(self, offer: Offer) -> str:
        """A finding for each fix, as `full` prints it, with all that is changed; of others their lines."""
        shown = _first_of_each_fix(offer)
        ids = set(map(id, shown))
        others = [finding for finding in offer.findings if id(finding) not in ids]
        file = self._file(offer, shown)
        text = "\n" + self._reporter.whole([self._reporter.piece(file)])
        if others:
            said = self._file(offer, others[:_MOST_OTHERS]).findings
            lines = [f"  {header(file, finding, self._style)}\n" for finding in said]
            if len(others) > _MOST_OTHERS:
                lines.append(f"  and {len(others) - _MOST_OTHERS} more\n")
            text += f"It also fixes {plural(len(others), 'other finding')}:\n{''.join(lines)}\n"
        for reason in dict.fromkeys(map(reason_of, offer.fixes)):
            if reason:
                said_why = textwrap.fill(f"Unsafe: {reason}.", self._style.width, subsequent_indent="  ")
                text += f"{self._style.bad(said_why[:6])}{said_why[6:]}\n"
        if (lesser := offer.lesser) is not None:
            said_of_it = self._file(lesser, _first_of_each_fix(lesser)).findings
            titles = "; ".join(dict.fromkeys(each.fix.title for each in said_of_it if each.fix is not None))
            next_one = f"If you answer no, the next question is about the {_kind(lesser)} fix: {titles}."
            text += f"{textwrap.fill(next_one, self._style.width, subsequent_indent='  ')}\n"
        return text

    def _file(self, offer: Offer, findings: Sequence[Finding]) -> FileFindings:
        said = [said_of(finding, offer.source) for finding in findings]
        shown = shown_path(offer.path, self._here)
        return FileFindings(offer.path, shown, offer.source, said, self._least(offer.path))

    def _question(self, offer: Offer) -> str:
        unsafe = offer.applicability is Applicability.UNSAFE
        kind = f" {_kind(offer)}" if unsafe or offer.instead else ""
        which = f"{'these' if len(offer.fixes) > 1 else 'this'}{kind} fix"
        which += "es" if len(offer.fixes) > 1 else ""
        left = " instead" if offer.instead else ""
        left += f" ({offer.waiting} left in this file)" if offer.waiting > 1 else ""
        # A line ends between two answers, and not within one.
        answers = _QUESTION.format(rule=_rule(offer)).replace(" ", "\xa0").replace("\xa0/\xa0", "\xa0/ ")
        lines = textwrap.wrap(answers, self._style.width, break_on_hyphens=False)
        first = f"Apply {self._style.bad(which) if unsafe else which}{left}?"
        return "\n".join([first, *(line.replace("\xa0", " ") for line in lines)]) + " "

    def _key(self) -> str:
        """The answer; empty at the end of the input, and when a signal came."""
        try:
            with self._signals.waiting():
                if os.environ.get("TERM") == "dumb":  # it sends whole lines
                    line = sys.stdin.readline()
                    key = line.strip()[:1].lower() or ("" if line else "q")
                else:
                    import click

                    # What a key such as an arrow sends is several characters.
                    pressed = click.getchar()
                    key = pressed.lower() if len(pressed) == 1 else ""
                    self._console.err(_MEANING.get(key, "") + "\n")
        except EOFError:
            self._console.err("\n")
            return "q"
        except KeyboardInterrupt as error:
            self._signals.exception = type(error)
            self._console.err("\n")
            return ""
        return key


def _first_of_each_fix(offer: Offer) -> list[Finding]:
    return [next(each for each in offer.findings if each.fix == fix) for fix in offer.fixes]


def _kind(offer: Offer) -> str:
    return "safe" if offer.applicability is Applicability.SAFE else "unsafe"


def _rule(offer: Offer) -> str:
    return offer.codes[0] if len(offer.codes) == 1 else "these rules"
