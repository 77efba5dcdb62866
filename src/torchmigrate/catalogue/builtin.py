"""The rules that are code, not entries of the catalogue: about a file itself, or made from the API data.

What is said about them; every run loads the code that finds them, but only few need this. A case says no more
than how safe the fix is.
"""

from __future__ import annotations

from torchmigrate.catalogue import api_rules, codes
from torchmigrate.catalogue.model import Case, Rule

COMMENTS = (
    Rule(
        code=codes.INVALID_SUPPRESSION,
        name="invalid-suppression",
        summary="A `torchmigrate:` comment that suppresses nothing, because it is not understood",
        library="torchmigrate",
        symbols={},
        why="A suppression has to name the rules that it hides, by code or by name. One that names none "
        "would also hide what is found in later years, and a misspelt one hides nothing; both are refused.",
        advice="write `# torchmigrate: ignore[CODE] reason` at the end of the line, "
        "or `# torchmigrate: ignore-file[CODE] reason` anywhere in the file",
    ),
    Rule(
        code=codes.UNUSED_SUPPRESSION,
        name="unused-suppression",
        summary="A suppression of a rule that finds nothing there",
        library="torchmigrate",
        symbols={},
        why="A suppression that outlived its finding would silently hide the next one. It is only reported "
        "when the rule that it names is selected in this run.",
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
    why="Tensors took `async=` until torch 0.4, which renamed the argument to `non_blocking` because `async` "
    "was to become a keyword of Python. A file that still has it does not even compile.",
    advice="write `non_blocking=` instead of `async=`",
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
