"""The weights in the rules are those that torchvision itself takes for the old flags, for every model."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from importlib.util import find_spec
from unittest import mock

import pytest
from harness.catalogue import catalogue

FLAGS = {"TM722": "pretrained", "TM724": "pretrained", "TM725": "pretrained", "TM726": "pretrained_backbone",
         "TM727": "pretrained"}  # fmt: skip
FLAG = "pretrained"
ENTRIES = [
    pytest.param(symbol, variables, flag, id=f"{symbol}-{flag}")
    for code, flag in FLAGS.items()
    for symbol, variables in catalogue().find(code).symbols.items()
]


def test_the_tables_hold_every_kind_of_model():
    names = {entry.values[0].rpartition(".")[0] for entry in ENTRIES}
    for kind in ("", ".detection", ".segmentation", ".video", ".quantization", ".optical_flow"):
        assert f"torchvision.models{kind}" in names


def test_models_of_one_file_have_weights_of_one_name():
    """That is what the name as a string relies on where the model is known at run time only."""
    plain = {
        symbol: variables["W"].rpartition(".")[2]
        for symbol, variables in catalogue().find("TM722").symbols.items()
        if symbol.count(".") == 2
    }
    assert len(plain) > 70
    assert set(plain.values()) == {"IMAGENET1K_V1"}


if find_spec("torch") and find_spec("torchvision"):
    from proofs import companions

    class Taken(Exception):
        """A builder was called with weights; they are its argument."""

    def weights_for(symbol: str, **arguments: bool | str | None) -> str:
        """The weights that a builder takes for its flags or for a name; it is stopped before it builds."""
        module, _, name = symbol.rpartition(".")
        with companions.prepared("torchvision"):
            from torchvision.models import WeightsEnum

            def verify(cls: type[WeightsEnum], weights: WeightsEnum | str | None) -> None:
                if weights is not None:
                    raise Taken(cls[weights] if isinstance(weights, str) else weights)

            with (
                mock.patch.object(WeightsEnum, "verify", classmethod(verify)),
                pytest.raises(Taken) as taken,
                pytest.warns(UserWarning) if any(FLAG in name for name in arguments) else nullcontext(),
            ):
                getattr(importlib.import_module(module), name)(**arguments)
        weights = taken.value.args[0]
        return f"{type(weights).__name__}.{weights.name}"

    @pytest.mark.parametrize(("symbol", "variables", "flag"), ENTRIES)
    def test_weights(symbol, variables, flag):
        def last_parts(name: str) -> str:
            return ".".join(name.split(".")[-2:])

        arguments = {flag: True}
        if "Q" in variables:
            assert weights_for(symbol, quantize=True, **arguments) == last_parts(variables["Q"])
        if flag == "pretrained_backbone":
            arguments["weights"] = None
        assert weights_for(symbol, **arguments) == last_parts(variables["W"])

    @pytest.mark.parametrize(("symbol", "variables", "flag"), ENTRIES)
    def test_their_name_as_a_string_is_the_same(symbol, variables, flag):
        enum, member = variables["W"].split(".")[-2:]
        arguments = {flag.replace(FLAG, "weights"): member}
        if flag == "pretrained_backbone":
            arguments["weights"] = None
        assert weights_for(symbol, **arguments) == f"{enum}.{member}"

    @pytest.mark.parametrize(("symbol", "variables", "flag"), ENTRIES)
    def test_weights_have_this_public_name(symbol, variables, flag):
        with companions.prepared("torchvision"):
            for key in variables.keys() & {"W", "Q"}:
                module, enum, member = variables[key].rsplit(".", 2)
                assert member in getattr(importlib.import_module(module), enum).__members__

    @pytest.mark.parametrize("symbol", sorted(catalogue().find("TM723").symbols))
    def test_models_without_weights(symbol):
        module, _, name = symbol.rpartition(".")
        with companions.prepared("torchvision"), pytest.raises(ValueError, match="No weights available"):
            getattr(importlib.import_module(module), name)(pretrained=True)
