"""The rules of this repository, as the tests see them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from torchmigrate.catalogue.examples import FIX, Example
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.loader import LoadedRule, load_directory

ROOT = Path(__file__).parents[2]
RULES = ROOT / "rules"


@functools.cache
def loaded_rules() -> tuple[LoadedRule, ...]:
    """Every rule with its examples, from the YAML files and not from their compiled form."""
    return tuple(load_directory(RULES))


@functools.cache
def catalogue() -> Catalogue:
    return Catalogue.of([item.rule for item in loaded_rules()])


def fix_examples() -> Iterator[tuple[LoadedRule, int, Example]]:
    """Every example that has an `after`, with its number in the rule (from 1)."""
    for item in loaded_rules():
        for number, example in enumerate(item.examples, start=1):
            if example.kind == FIX:
                yield item, number, example


def example_id(item: LoadedRule, number: int | None = None) -> str:
    """How a rule (or one of its examples) is called in test names."""
    name = re.sub(r"\W+", "-", item.rule.name)
    return f"{item.rule.code}-{name}" + (f"-{number}" if number is not None else "")
