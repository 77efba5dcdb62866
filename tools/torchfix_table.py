"""The page of the documentation that says which of our rules stand for the codes of TorchFix.

It is made of `torchmigrate.config.torchfix_codes` and the catalogue, when the site is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchmigrate.catalogue.builtin import RULES
from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.config.torchfix_codes import CODES, LATER, LATER_NAMES
from torchmigrate.report.explanation import fix_level
from torchmigrate.report.rule_texts import generic
from torchmigrate.rewrite.fix_maker import fill

HEAD = """\
# Coming from TorchFix

Everything that TorchFix 0.7.0 reports is reported here, and what its repository has gained since (marked *).
`torchmigrate explain TOR101` prints the part about one code.

- `# noqa: TOR101` in your code goes on working: on its line it hides the rules that stand for TOR101, and is
  never reported as unused. `# noqa: TOR1` does so for all codes that begin like that, as in flake8.
- `--select TOR101`, `ignore = ["TOR102"]` and all other places where rules are selected take these codes.
- [In flake8](flake8.md), torchmigrate takes the place of TorchFix: `select = TOR`, `extend-ignore = TOR203`
  and `per-file-ignores` in its configuration work as before.
- What is good advice but no migration is off here unless it is selected: `--extend-select TM99` switches all
  of that on.

## Codes

| TorchFix | it reports | here |
| --- | --- | --- |
"""

NAMES = """
## One by one

| it reports | TorchFix | here | | our fix |
| --- | --- | --- | --- | --- |
"""

TAIL = """
## What is different

TorchFix looks at calls and `from` imports by qualified name. The rules here look at every use of a name,
follow aliases and know methods of tensors, so that they find more. They leave out what is right:

- A call with `*args` or `**kwargs` that may well give the argument: `torch.load(path, **options)`,
  `DataLoader(dataset, **options)`, `checkpoint(f, *args, **kwargs)`.
- Code for old releases only: the fallback import in `except ImportError`, the branch of a version test, what
  stands under `hasattr`.
- `require_grad` as an attribute that the file reads as well, or that one of its classes defines.
- `torch.library.Library` outside of tests.
- A name that is a variable or a parameter of the same spelling at that place.

A name whose `from` import alone has to change (functorch) is reported there, once, and not at every call.

`torch.range(0, 5, 2)` becomes `torch.arange(0, 6, 2, dtype=torch.get_default_dtype())`. TorchFix adds the
step to the end: `torch.arange(0, 7, 2)` has a 6 that the range did not have, and integers in place of floats.
"""


def page() -> str:
    """The whole text."""
    catalogue = default_catalogue()
    rules = {rule.code: rule for rule in (*catalogue.rules, *RULES)}
    return HEAD + "".join(_codes()) + NAMES + "".join(_names(rules)) + TAIL


def _codes() -> Iterator[str]:
    for code, entry in CODES.items():
        later = " *" if entry.since == LATER else ""
        yield f"| {code}{later} | {entry.summary} | {', '.join(map(_linked, entry.ours))} |\n"


def _names(rules: Mapping[str, Rule]) -> Iterator[str]:
    """A row for everything reported; codes that report the same (a use and its import) share it."""
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for code, entry in CODES.items():
        for what, codes in entry.rules.items():
            rows.setdefault((what, codes), []).append(code)
    for (what, codes), theirs in rows.items():
        shown = what if " " in what or "`" in what else f"`{what}`"
        later = " *" if what in LATER_NAMES or all(CODES[code].since == LATER for code in theirs) else ""
        for code in codes:
            rule = rules[code]
            off = " Off unless selected." if rule.opt_in else ""
            own = rule.symbols.get(what)
            summary = generic(rule, rule.summary) if own is None else fill(rule.summary, what, own)
            fix = fix_level(rule)
            yield (
                f"| {shown}{later} | {', '.join(theirs)} | {_linked(code)} {rule.name} | {summary}.{off} "
                f"| {fix} |\n"
            )


def _linked(code: str) -> str:
    return f"[{code}](rules/{code}.md)"
