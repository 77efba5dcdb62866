"""TM201: the type in which the old class computed. The new class uses it only if no other is requested.

`torch.cuda.amp.autocast()` is always float16. `torch.amp.autocast("cuda")` takes the type that holds where it
is entered: the type of a region around it, or of `torch.set_autocast_dtype`; float16 where there is none.
(Compared with torch 2.13: `fast_dtype` of both within `torch.autocast("cuda", dtype=torch.bfloat16)`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.prefilter import has_word
from torchmigrate.codemods.base.words import Words
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.context import FileContext

# What tells of another type, or of a trainer that enters a region of its own; in small letters.
_OTHER_TYPES = Words("bfloat16", "set_autocast", "lightning", "accelerate", "deepspeed", "fabric")


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every use; the type is written where the file tells of others."""
    text = file.source.text.lower() if hits else ""
    if hits and not _OTHER_TYPES.are_in(text) and not has_word(text, "bf16", whole=False):
        plain = replace(rule, cases=tuple(case for case in rule.cases if not case.add))
        hits = [replace(hit, rule=plain) for hit in hits]
    yield from file.fixes.findings(hits)
