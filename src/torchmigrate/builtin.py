"""The rules that are about a file itself, not about a name in it: code, not entries of the catalogue."""

from __future__ import annotations

from torchmigrate import async_argument, suppress
from torchmigrate.catalogue.model import Rule

RULES: tuple[Rule, ...] = (*suppress.RULES, async_argument.RULE)

# Before, and after where there is a fix.
EXAMPLES: dict[str, tuple[str, str | None]] = {
    **suppress.EXAMPLES,
    async_argument.CODE: async_argument.EXAMPLE,
}
