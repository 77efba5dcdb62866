"""TM330: tests of a type for `Variable`, which no tensor has."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

from torchmigrate.findings import Severity
from torchmigrate.report.reasons import message_of

HEAD = "import torch\nfrom torch import autograd\nfrom torch.autograd import Variable\n"


def found(test: str) -> tuple[Severity, str, str]:
    """The severity and message of a test inside of a function, and the test after unsafe fixes."""
    text = f"{HEAD}def f(h):\n    return {test}\n"
    findings, fixed = checked_and_fixed(text, ("TM330",))
    finding = findings[-1]  # what is only outdated is reported at the import
    return finding.severity, message_of(finding), fixed.rpartition("return ")[2].strip()


@pytest.mark.parametrize(
    ("test", "answer", "fixed"),
    [
        ("type(h) == Variable", "is always False:", "isinstance(h, torch.Tensor)"),
        ("Variable is type(h)", "is always False:", "isinstance(h, torch.Tensor)"),
        ("type(h) in (Variable,)", "is always False:", "isinstance(h, torch.Tensor)"),
        ("type(h) == autograd.Variable", "is always False:", "isinstance(h, torch.Tensor)"),
        ("issubclass(type(h), Variable)", "is always False:", "isinstance(h, torch.Tensor)"),
        ("h.__class__ == Variable and 1", "is always False:", "isinstance(h, torch.Tensor) and 1"),
        ("type(h) != Variable", "is always True:", "not isinstance(h, torch.Tensor)"),
        ("type(h) is not Variable", "is always True:", "not isinstance(h, torch.Tensor)"),
        ("type(h) not in [Variable]", "is always True:", "not isinstance(h, torch.Tensor)"),
        ("type(h) in (Variable, list)", "is always False for tensors:", "type(h) in (torch.Tensor, list)"),
        (
            "type(h) not in {list, Variable}",
            "is always True for tensors:",
            "type(h) not in {list, torch.Tensor}",
        ),
    ],
)
def test_a_type_that_no_tensor_has_is_a_warning(test: str, answer: str, fixed: str) -> None:
    severity, message, left = found(test)
    assert severity is Severity.WARNING
    assert answer in message
    assert left == fixed


@pytest.mark.parametrize(
    "test",
    [
        "type(h) in (torch.Tensor, Variable)",
        "type(h) == Variable or torch.is_tensor(h)",
        "type(h) is Variable or type(h) is torch.Tensor",
    ],
)
def test_a_test_that_takes_tensors_as_well_is_only_outdated(test: str) -> None:
    severity, message, left = found(test)
    assert severity is Severity.INFO
    assert "is deprecated" in message
    assert left == test
