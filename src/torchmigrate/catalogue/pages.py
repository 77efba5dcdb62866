"""Where the documentation is, in which every rule of ours has a page of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchmigrate.catalogue.model import Rule

# The one place that says it; the site is built for this address, too (`tools/docs_hooks.py`).
SITE = "https://torchmigrate.github.io/torchmigrate/"


def page_of(code: str) -> str:
    """The address of the page of one of our own rules."""
    return f"{SITE}rules/{code}/"


def has_page(rule: Rule) -> bool:
    """Whether a rule is our own. The paths of a user's rules are absolute; a rule that is code has none."""
    return not os.path.isabs(rule.path)  # noqa: PTH117 (called for every finding)


def url_of(rule: Rule) -> str | None:
    """Where to read about a rule: its page; of a user's rule the first of its references, if it has any."""
    if has_page(rule):
        return page_of(rule.code)
    return rule.references[0] if rule.references else None
