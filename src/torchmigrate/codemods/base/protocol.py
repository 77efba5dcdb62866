"""What a codemod has to offer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from torchmigrate.catalogue.model import Rule
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext


class Codemod(Protocol):
    """A module that finds and rewrites for one or several rules.

    A rule that names it may have a `prefilter`, a pattern: the module then runs on exactly the files whose
    text matches. Without one, it runs on the files that use one of the rule's symbols.
    """

    @staticmethod
    def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext, /) -> Iterable[Finding]:
        """What a file holds for a rule.

        Args:
            rule: the rule to find.
            hits: the uses of its symbols that are not suppressed or guarded, in source order.
            file: what is known of the file; `file.fixes` makes findings and fixes.
        """
        ...
