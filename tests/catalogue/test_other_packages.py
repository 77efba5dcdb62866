"""Names of other packages that fixes write: they exist there."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.catalogue import loaded_rules
from harness.program import run

RECORDED = Path(__file__).parents[1] / "recorded" / "torchao.txt"
NAMES = frozenset(line for line in RECORDED.read_text(encoding="utf-8").split("\n") if line[:1] != "#")


def test_torchao_has_what_moved_to_it() -> None:
    (rule,) = (item.rule for item in loaded_rules() if item.rule.code == "TM671")
    new = {values["new"] for values in rule.symbols.values()}
    new |= {module for module in rule.modules.values() if module}
    assert new - NAMES == set()
    known = {name.rpartition(".")[2] for name in NAMES}
    assert rule.members is not None
    assert rule.members - known == set()


@pytest.mark.parametrize(
    "name",
    [
        "pt2e.graph_utils.get_control_flow_submodules",
        "pt2e.utils.get_aten_graph_module",
        "quantizer.utils._annotate_output_qspec",
        "pt2e.port_metadata_pass._METADATA_TO_PORT",
    ],
)
def test_what_torchao_lacks_is_not_sent_there(name: str) -> None:
    owner, _, last = name.rpartition(".")
    text = f"from torch.ao.quantization.{owner} import {last}\n\n{last}(model)\n"
    result = run(text, "--fix", "--unsafe-fixes")
    assert result.findings
    assert result.new_text is None
