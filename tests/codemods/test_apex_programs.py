"""Whole training scripts with apex, as people write them: migrated, and run before and after."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from apex_toys import run_program
from harness.fixing import checked_and_fixed

from torchmigrate.report.reasons import help_of

PROGRAMS = Path(__file__).parents[1] / "apex_programs"
CODES = frozenset(f"TM{number}" for number in (*range(220, 229), *range(230, 234)))
SWITCHES = ("--fp16", "--amp", "--apex")
KEPT = {"fp16_optimizer": "is older than amp"}


def _switch(text: str) -> list[str]:
    return [item for item in SWITCHES if f'"{item}"' in text]


@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.py")))
def test_programs_train_the_same(name: str, tmp_path: Path) -> None:
    before = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    found, after = checked_and_fixed(before, CODES)
    if name in KEPT:
        assert after == before
        assert KEPT[name] in " ".join(help_of(item) or "" for item in found)
        return
    assert after != before, [help_of(item) for item in found]
    assert not {"amp", "apex"} & {getattr(node, "id", "") for node in ast.walk(ast.parse(after))}, after
    assert not checked_and_fixed(after, CODES)[0]
    for number, arguments in enumerate([_switch(before), []]):
        old, new = tmp_path / f"{number}old", tmp_path / f"{number}new"
        old.mkdir()
        new.mkdir()
        wanted, weights = run_program(before, arguments, old)
        got, others = run_program(after, arguments, new)
        assert wanted
        assert got == wanted
        for one, other in zip(others, weights, strict=True):
            # autocast adds the gradients of a model that runs twice in half precision.
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
