"""TM012: `x.cuda(async=True)`, which Python itself refuses."""

from __future__ import annotations

from torchmigrate.catalogue.codes import ASYNC_ARGUMENT
from torchmigrate.catalogue.pages import page_of
from torchmigrate.findings import Applicability, Finding, Fix, Severity, Timeline

# The first torch that needs Python 3.7; older ones run on 3.6, where the word is none that is reserved.
SINCE = "1.11"


def findings(offsets: tuple[int, ...]) -> list[Finding]:
    """One finding for each of the words, with the fix."""
    if not offsets:
        return []
    from torchmigrate.catalogue.builtin import ASYNC_ARGUMENT as RULE  # seldom needed
    from torchmigrate.rewrite.nodes import word_replaced

    found = []
    for start in offsets:
        end = start + len("async")
        edit = word_replaced(start, "async", "non_blocking")
        fix = Fix("Replace with `non_blocking`", Applicability.SAFE, (edit,), code=ASYNC_ARGUMENT)
        found.append(
            Finding(
                *(ASYNC_ARGUMENT, RULE.name, RULE.summary, Severity.ERROR, start, end),
                fix=fix,
                url=page_of(ASYNC_ARGUMENT),
                timeline=Timeline("torch", removed=SINCE),
            )
        )
    return found
