"""Every fix is executed on real torch, old code against new code; without torch, the summary counts them."""

from __future__ import annotations

import pytest
from harness.catalogue import example_id, fix_examples, loaded_rules
from harness.summary import HAS_TORCH, lacking

from torchmigrate.versions.releases import parse_version, show_version, torch_release

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


def in_torch(rule, release):
    """The release of torch that goes with one of the rule's library."""
    found = release and torch_release(rule.library, parse_version(release))
    return found and show_version(found)


def test_the_catalogue_has_fixes():
    assert any(item.rule.cases for item in loaded_rules())


if HAS_TORCH:
    from old_torch.record import rule_file
    from proofs import wide

    WIDE = [
        pytest.param(item, number, example, id=example_id(item, number))
        for item, number, example in fix_examples()
        if rule_file(item.rule.path) in wide.FILES and wide.is_meant(example) and not lacking(example)
    ]

    @pytest.mark.proof
    @pytest.mark.parametrize(("item", "example"), PROVABLE)
    def test_proof(item, example):
        from proofs.run import prove

        timeline = [in_torch(item.rule, release) for release in (item.rule.changed, item.rule.removed)]
        assert prove(*example.sides(), example.prove, example.gradients, *timeline) == []

    @pytest.mark.proof
    @pytest.mark.parametrize(("item", "number", "example"), WIDE)
    def test_safe_fixes_of_numerical_rules_hold_for_wider_inputs(item, number, example):
        from proofs.run import ProofError, prove, recordings_of

        timeline = [in_torch(item.rule, release) for release in (item.rule.changed, item.rule.removed)]
        wrong, known = {}, set()
        for family, before, after, inputs in wide.cases(rule_file(item.rule.path), example):
            if not recordings_of(before, after, inputs):
                continue  # no old release ran it
            try:
                found = prove(before, after, inputs, False, *timeline)
            except ProofError as error:
                found = [str(error)]
            name = f"{example_id(item, number)}/{family}"
            if found and name in wide.EXPLAINED:
                known.add(name)
            elif found:
                wrong[name] = found
        assert wrong == {}
        assert known == {name for name in wide.EXPLAINED if name.startswith(f"{example_id(item, number)}/")}
