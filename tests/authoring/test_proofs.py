"""Every fix is executed on real torch, old code against new code; without torch, the summary counts them."""

from __future__ import annotations

import pytest
from harness.catalogue import example_id, fix_examples, loaded_rules
from harness.summary import HAS_TORCH, lacking

PROVABLE = [
    pytest.param(item, example, id=example_id(item, number))
    for item, number, example in fix_examples()
    if example.prove is not None and not lacking(example)
]


def test_every_fix_has_a_proof_or_a_reason():
    missing = [
        f"{example_id(item, number)} ({item.rule.path}:{example.line})"
        for item, number, example in fix_examples()
        if example.prove is None and not example.no_proof
    ]
    assert not missing, "neither `prove` nor `no_proof`: " + ", ".join(missing)


def test_the_catalogue_has_fixes():
    assert any(item.rule.cases for item in loaded_rules())


if HAS_TORCH:

    @pytest.mark.proof
    @pytest.mark.parametrize(("item", "example"), PROVABLE)
    def test_proof(item, example):
        from proofs.run import prove

        changed = item.rule.changed
        assert prove(example.before, example.after, example.prove, example.gradients, changed) == []
