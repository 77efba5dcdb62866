"""What the program says about a fact: which class of coverage it falls into."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fact_coverage.uses import Program
from torchmigrate.engine.engine import Engine
from torchmigrate.findings import Finding
from torchmigrate.source.text import Source

API_RULES = frozenset(f"TM00{digit}" for digit in range(1, 10))
# Rules that speak of a file or of a style, not of the symbol.
NOT_COUNTED = frozenset({"TM010", "TM011", "TM012"})


class Class(enum.Enum):
    """How a fact is covered, best first."""

    SAFE = "rule, safe fix"
    UNSAFE = "rule, unsafe fix"
    DISPLAY = "rule, fix shown only"
    ADVICE = "rule, advice"
    API = "API data only"
    LEFT_OUT = "left out"
    MISSED = "not found"


_ORDER = list(Class)


@dataclass(frozen=True, slots=True)
class Covered:
    """The best class of a fact, and the codes that were reported."""

    best: Class
    codes: tuple[str, ...]


def classify(found: Finding) -> Class:
    """The class of one finding."""
    if found.code in API_RULES:
        return Class.API
    if found.fix is None:
        return Class.ADVICE
    return Class[found.fix.applicability.label.upper()]


def cover(engine: Engine, programs: Iterable[Program]) -> Covered:
    """Run the engine over the programs; the best that it says at the line of the symbol."""
    best = Class.MISSED
    codes: dict[str, None] = {}
    for program in programs:
        source = Source.from_text(program.text, Path("use.py"))
        for found in engine.check_source(source, Path("use.py")).findings:
            if found.code in NOT_COUNTED or source.position(found.start)[0] != program.line:
                continue
            codes[found.code] = None
            best = min(best, classify(found), key=_ORDER.index)
    return Covered(best, tuple(codes))
