"""The rules, as the program that is tested has them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from torchmigrate.catalogue.examples import FIX, Example
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.loader import LoadedRule, load_directory
from torchmigrate.catalogue.store import own_rules, rules_directory

ROOT = Path(__file__).parents[2]


@functools.cache
def loaded_rules() -> tuple[LoadedRule, ...]:
    """Every rule with its examples: of a wheel, the YAML files that it holds."""
    return tuple(load_directory(rules_directory()))


@functools.cache
def catalogue() -> Catalogue:
    """What a run looks rules up in: the compiled form."""
    return own_rules()[1]


def fix_examples() -> Iterator[tuple[LoadedRule, int, Example]]:
    """Every example of Python that has an `after`, with its number in the rule (from 1)."""
    for item in loaded_rules():
        if item.rule.files:
            continue
        for number, example in enumerate(item.examples, start=1):
            if example.kind == FIX:
                yield item, number, example


def example_id(item: LoadedRule, number: int | None = None) -> str:
    """How a rule (or one of its examples) is called in test names."""
    name = re.sub(r"\W+", "-", item.rule.name)
    return f"{item.rule.code}-{name}" + (f"-{number}" if number is not None else "")
