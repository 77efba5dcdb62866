"""Codemods of installed packages, in the shape of the built-in ones; what they return is checked."""

from __future__ import annotations

from collections.abc import Sequence

from torchmigrate.catalogue.installed import CODEMODS, entry_points, load
from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext


class Installed:
    """The codemod that an entry point names. Raises ImportError if no installed package has it."""

    def __init__(self, name: str) -> None:
        if name not in entry_points(CODEMODS):
            raise ImportError(f"no installed package has the codemod {name}")
        self.name = name

    def find(self, rule: Rule, hits: Sequence[RuleMatch], file: FileContext, /) -> list[Finding]:
        """What the codemod finds; where it fails, all hits without a fix."""
        with file.failures.caught(rule.code, "every fix", by=f"the codemod `{self.name}`"):
            found = list(load(self.name).find(rule, hits, file))
            for item in found:
                if not isinstance(item, Finding) or item.code != rule.code:
                    raise TypeError(f"`find` must return findings of {rule.code}")
            return found
        return [file.fixes.finding(hit, None) for hit in hits]
