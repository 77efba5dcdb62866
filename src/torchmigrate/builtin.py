"""The rules that are code, not entries of the catalogue: about a file itself, or made from the API data."""

from __future__ import annotations

from torchmigrate import async_argument, suppress
from torchmigrate.api_rules import rules as api_rules
from torchmigrate.catalogue.model import Rule

RULES: tuple[Rule, ...] = (*api_rules.RULES, *suppress.RULES, async_argument.RULE)

# Before, and after where there is a fix.
EXAMPLES: dict[str, tuple[str, str | None]] = {
    **api_rules.EXAMPLES,
    **suppress.EXAMPLES,
    async_argument.CODE: async_argument.EXAMPLE,
}
