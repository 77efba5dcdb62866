"""What the test run says about proofs at its end."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.catalogue import LoadedRule, fix_examples
from torchmigrate.catalogue.examples import Example

HAS_TORCH = importlib.util.find_spec("torch") is not None
COMPANIONS = ("torchvision", "torchaudio")  # their wheels are large: a run without them leaves proofs out


def lacking(example: Example) -> list[str]:
    """The companion libraries that an example needs and that are not installed."""
    code = f"{example.before}\n{example.after}"
    return [
        name
        for name in COMPANIONS
        if re.search(rf"\b{name}\b", code) and importlib.util.find_spec(name) is None
    ]


@dataclass
class Tally:
    """What became of the proofs: example ids, by outcome."""

    proven: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # what else needs torch


def summary(tally: Tally) -> Iterator[str]:
    """Lines about all rules with a fix, whatever subset of the proofs was run."""
    provable: dict[str, list[LoadedRule]] = {}
    reasons: dict[str, list[str]] = {}
    without_gradients = 0
    examples = 0
    absent: Counter[str] = Counter()
    for item, _, example in fix_examples():
        code = item.rule.code
        examples += 1
        provable.setdefault(code, [])
        if example.prove is not None:
            provable[code].append(item)
            without_gradients += not example.gradients
            absent.update(lacking(example))
        else:
            reasons.setdefault(code, []).append(example.no_proof or "no reason is given")
    proofs = sum(len(items) for items in provable.values())
    with_proof = [code for code, items in provable.items() if items]
    yield f"{len(provable)} rules have a fix, with {examples} examples of it"
    yield (
        f"{len(with_proof)} rules have a proof ({proofs} examples, {without_gradients} without gradients);"
        f" in this run {len(tally.proven)} were proven and {len(tally.failed)} failed"
    )
    if not HAS_TORCH:
        yield f"torch is not installed: {proofs} proofs were left out, and {', '.join(tally.left_out)}"
    elif absent:
        names = ", ".join(f"{name} ({count})" for name, count in sorted(absent.items()))
        yield f"proofs left out, since these are not installed: {names}"
    none = {code: found for code, found in reasons.items() if not provable[code]}
    yield f"{len(none)} rules have no proof:"
    by_reason = Counter(reason for found in none.values() for reason in dict.fromkeys(found))
    for reason, _ in by_reason.most_common():
        codes = [code for code, found in sorted(none.items()) if reason in found]
        yield f"  {', '.join(codes)}: {reason}"
