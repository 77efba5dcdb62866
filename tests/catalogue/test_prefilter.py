"""What tells from the text alone that a file may hold something for a rule."""

from __future__ import annotations

import re

import pytest
from harness.catalogue import loaded_rules

from torchmigrate.catalogue.prefilter import passes

PATTERNS = sorted({item.rule.prefilter for item in loaded_rules() if item.rule.prefilter})
TEXTS = [
    "", "torch", "torchvision", "import ts", "from ts.context import Context", "torch.export", "torch import export",
    "x.zero_grad()", "x.zero_grad( )", "def _find_classes(self)", "def make_dataset(", "data [0]", "dat", "a / b",
    "abcd|e", "abcd(e", "abce", "fghi|j", "fghi", "std=c++17", "std:c++20", "__version__", "uint8", "x - y", "cuda_time",
    "x" * 1000, "abcd" + "x" * 1000, "xxabcd", "fghix", "abcde", "abcdee",
]  # fmt: skip


@pytest.mark.parametrize(
    "pattern",
    [
        *PATTERNS,
        r"abcd[|(]e|fghi\|j",
        "abcd?e",
        "abcde*",
        "(?:abcd|fghi)x",
        "x{2}abcd",
        "x{1000}|abcdx{1000}",
    ],
)
def test_a_quick_look_finds_what_the_pattern_does(pattern: str) -> None:
    found = [text for text in TEXTS if passes(pattern)(text)]
    assert found == [text for text in TEXTS if re.search(pattern, text)]
