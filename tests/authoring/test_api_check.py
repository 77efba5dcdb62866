"""The catalogue against the API data: releases, parameters and replacements."""

from __future__ import annotations

import pytest
from harness.api_check import contradictions
from harness.catalogue import loaded_rules
from msgspec.structs import replace

from torchmigrate.catalogue.model import Case, Rule


@pytest.mark.parametrize("rule", [pytest.param(item.rule, id=item.rule.code) for item in loaded_rules()])
def test_the_catalogue_says_what_the_data_says(rule: Rule) -> None:
    assert contradictions(rule) == []


SYMEIG = Rule(
    "TM990", "example", "", "torch", {"torch.symeig": {"new": "torch.linalg.eigh"}}, removed="2.0", cases=()
)
RENAMED = Rule(
    "TM991",
    "example",
    "",
    "torchvision",
    {"torchvision.transforms.functional.resized_crop": {}},
    parameters=("h",),
    removed="0.5",
)
OVERRIDDEN = Rule(
    "TM992",
    "example",
    "",
    "torch",
    {"torch.fx.passes.graph_transform_observer.GraphTransformObserver.on_node_erase": {}},
    changed="2.7",
    roles=("base",),
)


@pytest.mark.parametrize(
    "rule",
    [SYMEIG, RENAMED, OVERRIDDEN, replace(OVERRIDDEN, changed="2.6")],
    ids=["name", "parameter", "override", "override that torch ignored before the removal"],
)
def test_nothing_is_held_against_what_is_right(rule: Rule) -> None:
    assert contradictions(rule) == []


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (replace(SYMEIG, removed="1.8"), "`torch.symeig` is not removed in 1.8: it was removed in 2.0"),
        (replace(SYMEIG, removed="2.1"), "`torch.symeig` is not removed in 2.1: it was removed in 2.0"),
        (replace(SYMEIG, removed=None, deprecated="1.9"), "was removed in 2.0: `removed` is missing"),
        (
            replace(SYMEIG, symbols={"torch.symmeig": {}}),
            "`torch.symmeig` does not exist in any release of torch",
        ),
        (replace(SYMEIG, symbols={"torch.add": {}}), "`torch.add` is not removed in 2.0: it still exists"),
        (
            replace(SYMEIG, symbols={"torch.symeig": {"new": "torch.linalg.symeig"}}),
            "replaced by `torch.linalg.symeig`, which does not exist in torch 2.15",
        ),
        (
            replace(SYMEIG, symbols={"torch.symeig": {"new": "torch.jit.fork"}}),
            "replaced by `torch.jit.fork`, which is deprecated in torch 2.15",
        ),
        (
            replace(SYMEIG, cases=(Case(rename="torch.linalg.eigh", requires="1.6"),)),
            "`torch.linalg.eigh` does not exist in torch 1.6, which is required",
        ),
        (replace(RENAMED, removed="0.4"), "still takes `h` in 0.4"),
        (replace(RENAMED, removed="0.9"), "takes no `h` before 0.9 already"),
        (replace(RENAMED, removed=None, deprecated="0.3"), "takes no `h` in 0.29: `removed` is missing"),
        (replace(RENAMED, parameters=("hh",)), "never took `hh`"),
        (replace(OVERRIDDEN, changed="2.8"), "was removed in 2.7: `removed` is missing"),
        (replace(OVERRIDDEN, changed=None), "was removed in 2.7: `removed` is missing"),
        (replace(OVERRIDDEN, roles=("base", "call")), "was removed in 2.7: `removed` is missing"),
    ],
)
def test_what_contradicts_the_data(rule: Rule, expected: str) -> None:
    assert any(expected in line for line in contradictions(rule)), contradictions(rule)
