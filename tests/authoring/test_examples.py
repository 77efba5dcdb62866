"""Every example of every rule, in the ways that `check_rule` lists; the proofs are in test_proofs.py."""

from __future__ import annotations

import pytest
from harness.catalogue import catalogue, example_id, loaded_rules

from torchmigrate.authoring.examples import check_rule


@pytest.mark.parametrize("item", [pytest.param(item, id=example_id(item)) for item in loaded_rules()])
def test_examples(item):
    failures = list(check_rule(item, catalogue()))
    assert not failures, "\n\n".join(map(str, failures))
