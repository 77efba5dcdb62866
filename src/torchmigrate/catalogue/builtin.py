"""The rules that are code, not entries of the catalogue: about a file itself, or made from the API data.

This module has their texts; every run loads the code that finds them, but only few need this. A case says no
more than how safe the fix is.
"""

from __future__ import annotations

from torchmigrate.catalogue import api_rules, codes
from torchmigrate.catalogue.model import Case, Rule

COMMENTS = (
    Rule(
        code=codes.INVALID_SUPPRESSION,
        name="invalid-suppression",
        summary="a `torchmigrate:` comment that suppresses nothing, because it is not valid",
        library="torchmigrate",
        symbols={},
        why="A suppression must list the rules that it hides, by code or name. Without a list, it would "
        "also hide new findings in later years, and a misspelled rule hides nothing. torchmigrate "
        "rejects both.",
        advice="write `# torchmigrate: ignore[CODE] reason` at the end of the line, "
        "or `# torchmigrate: ignore-file[CODE] reason` anywhere in the file",
    ),
    Rule(
        code=codes.UNUSED_SUPPRESSION,
        name="unused-suppression",
        summary="a suppression of a rule that has no finding there",
        library="torchmigrate",
        symbols={},
        why="A suppression that is no longer needed would silently hide the next finding. The rule only "
        "reports it if the suppressed rule is enabled in this run.",
        advice="remove the suppression",
        cases=(Case(),),
    ),
)

ASYNC_ARGUMENT = Rule(
    code=codes.ASYNC_ARGUMENT,
    name="async-argument",
    summary="`async` is a keyword since Python 3.7; PyTorch's argument is `non_blocking`",
    library="torchmigrate",
    symbols={},
    why="Torch 0.4 renamed the argument `async=` of tensor methods to `non_blocking`, because `async` was "
    "going to become a Python keyword. A file that still uses it does not compile.",
    advice="use `non_blocking=` instead of `async=`",
    cases=(Case(),),
    references=("https://github.com/pytorch/pytorch/pull/4999",),
)

RULES: tuple[Rule, ...] = (*api_rules.RULES, *COMMENTS, ASYNC_ARGUMENT)

# Before, and after where there is a fix.
EXAMPLES: dict[str, tuple[str, str | None]] = {
    **api_rules.EXAMPLES,
    codes.INVALID_SUPPRESSION: ("torch.ger(a, b)  # torchmigrate: ignore", None),
    codes.UNUSED_SUPPRESSION: (
        "torch.outer(a, b)  # torchmigrate: ignore[TM100] old name",
        "torch.outer(a, b)",
    ),
    codes.ASYNC_ARGUMENT: ("x = x.cuda(async=True)", "x = x.cuda(non_blocking=True)"),
}
