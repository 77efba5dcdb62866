"""More shapes that real projects have, and that were once judged wrong or overlooked."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from harness.program import attempt, only, run

from torchmigrate.engine.results import FileResult
from torchmigrate.source.text import Source


def check(code: str) -> tuple[Source, FileResult]:
    source = Source.from_text(textwrap.dedent(code).lstrip("\n"), Path("code.py"))
    return source, attempt(source.text, path=source.path)


def found(code: str) -> list[tuple[int, str]]:
    """Line and code of every finding."""
    source, result = check(code)
    assert not result.problems
    return [(source.position(item.start)[0], item.code) for item in result.findings]


def test_the_objects_of_a_class_that_moved_are_no_finding() -> None:
    code = """
        from torch.distributed._tensor.op_schema import OpSchema
        from torch.quantization import QConfig


        def rule(op_schema: OpSchema, config: QConfig):
            return op_schema.args_schema, config.weight
    """
    assert found(code) == [(1, "TM503"), (2, "TM620")]  # an import and its uses are one


def test_public_names_of_dtensor_move_and_internals_are_only_reported() -> None:
    source, result = check(
        """
        from torch.distributed._tensor import DeviceMesh, distribute_tensor
        from torch.distributed._tensor.placement_types import _Partial
        from torch.distributed._tensor.dispatch import OpSchema
        from torch.distributed._tensor.ops.utils import register_prop_rule

        register_prop_rule(OpSchema)
        """
    )
    fixable = {source.position(item.start)[0]: item.fix is not None for item in result.findings}
    assert fixable == {1: True, 2: True, 3: False, 4: False}


def test_methods_that_only_tensors_have() -> None:
    code = """
        import scipy.linalg
        import torch
        from scipy import linalg


        def solve(self, rhs, factor, lu):
            x = rhs.triangular_solve(factor, upper=False).solution
            y = self.kernel(x).lu_solve(*lu)
            return scipy.linalg.lu_solve(lu, x) + linalg.lu_solve(lu, y)
    """
    assert [line for line, _ in found(code)] == [7, 8]


def test_methods_of_other_objects_without_torch() -> None:
    assert found("# torch\nx = rhs.triangular_solve(factor, upper=False)\n") == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import torch\nprint 'x'\n", "Python 2 code"),
        ("import torch\ndef f(:\n    pass\n", "syntax error"),
    ],
)
def test_a_file_that_names_nothing_outdated_must_still_be_python(code: str, reason: str) -> None:
    _, result = check(code)
    assert [problem.reason.startswith(reason) for problem in result.problems] == [True]


def test_a_file_without_torch_must_be_python_as_well() -> None:
    _, result = check("print 'x'\n")
    assert [problem.line for problem in result.problems] == [1]
    assert found("x = 1\n") == []


def test_async_is_found_where_nothing_else_is() -> None:
    result = run("import torch\nx.cuda(async=True)\n", *only(["TM012"]))
    assert [item.code for item in result.findings] == ["TM012"]


def test_long_conditions_keep_their_guards() -> None:
    operands = " and ".join(["flag()"] * 200)
    code = f"import torch\nx = {operands} and not hasattr(torch, 'outer') and torch.ger(a, b)\n"
    assert found(code) == []
    assert found(f"import torch\nx = {operands} and torch.ger(a, b)\n") == [(2, "TM110")]
