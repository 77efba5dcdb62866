"""What only an annotation says of an object: no safe fix, no error, and nothing about arguments."""

from __future__ import annotations

import textwrap

import pytest
from harness.fixing import checked_and_fixed

from torchmigrate.findings import Applicability, Finding, Severity
from torchmigrate.report.reasons import reason_of

HEAD = "import torch\nfrom torch import Tensor, nn\nfrom typing import List, Optional, Union\n"
ONLY_STATED = "only an annotation or a variable name shows that it is a tensor"


def findings(code: str, *codes: str) -> list[Finding]:
    return checked_and_fixed(HEAD + textwrap.dedent(code), codes)[0]


@pytest.mark.parametrize(
    "code",
    [
        "def f(mean: torch.Tensor):\n    mean = torch.tensor(mean)\n",
        "def f(mean: Tensor = None):\n    return torch.tensor(mean, dtype=torch.float32)\n",
        "def f(mean: 'Optional[Tensor]'):\n    return torch.tensor(mean)\n",
        "def f(means: List[Tensor]):\n    return [torch.tensor(m) for m in means]\n",
        "def f(means: List[Tensor]):\n    return torch.tensor(means[0])\n",
        "def f(*means: Tensor):\n    return torch.tensor(means[0])\n",
        "def f(mean: Tensor):\n    half = mean / 2\n    return torch.tensor(half)\n",
        "def f(mean: Tensor):\n    return torch.tensor(mean.view(-1))\n",
        "def f(mean: Tensor):\n    return torch.tensor(mean[0])\n",
        "def g() -> Tensor: ...\nx = torch.tensor(g())\n",
        "x: Tensor = load()\ny = torch.tensor(x)\n",
        "class A:\n    mean: Tensor\n    def f(self):\n        return torch.tensor(self.mean)\n",
        "class A:\n    mean: Tensor\ndef f(a: A):\n    return torch.tensor(a.mean)\n",
        "class M(nn.Module):\n    def forward(self, x: Tensor):\n        return torch.tensor(x)\n",
        "class M(nn.Module):\n    def forward(self, x) -> Tensor: ...\ny = torch.tensor(M()(x))\n",
    ],
)
def test_an_argument_that_only_an_annotation_calls_a_tensor(code: str) -> None:
    assert findings(code, "TM036") == []


@pytest.mark.parametrize(
    "code",
    [
        "def f(mean: Tensor):\n    assert isinstance(mean, Tensor)\n    return torch.tensor(mean)\n",
        "def f(mean: Union[Tensor, list]):\n    if torch.is_tensor(mean):\n        return torch.tensor(mean)\n",
        "def f(mean: Tensor):\n    return torch.tensor(torch.exp(mean))\n",
        "def f(mean: Tensor):\n    return torch.tensor(mean + torch.ones(3))\n",
        "x: Tensor = torch.ones(3)\ny = torch.tensor(x)\n",
        "class F(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, g: Tensor):\n"
        "        return torch.tensor(g)\n",
    ],
)
def test_what_the_code_itself_says_is_sure(code: str) -> None:
    (found,) = findings(code, "TM036")
    assert found.fix is not None and found.fix.applicability is Applicability.SAFE


@pytest.mark.parametrize(
    ("code", "rule", "severity"),
    [
        ("def f(x: Tensor):\n    return x.ger(x)\n", "TM110", Severity.INFO),
        ("def f(x: Tensor):\n    return x.symeig(eigenvectors=True)\n", "TM100", Severity.ERROR),
        ("def f(x: Tensor):\n    return (x * 2).symeig(eigenvectors=True)\n", "TM100", Severity.ERROR),
        ("def f(x: Tensor):\n    return x.cholesky()\n", "TM106", Severity.WARNING),
        ("def f(x: Tensor):\n    return x.view(2, 2).cholesky()\n", "TM106", Severity.WARNING),
    ],
)
def test_methods_of_what_is_annotated(code: str, rule: str, severity: Severity) -> None:
    (found,) = findings(code, rule)
    assert found.severity is severity
    assert found.fix is not None and found.fix.applicability is Applicability.UNSAFE
    assert reason_of(found.fix) == ONLY_STATED


def test_other_classes() -> None:
    (found,) = findings("def f(m: nn.Module):\n    m.register_backward_hook(h)\n", "TM426")
    assert found.fix is None or found.fix.applicability is not Applicability.SAFE


@pytest.mark.parametrize(
    "code",
    [
        "def f(x: Tensor):\n    return x.names\n",
        "def f(x: Tensor):\n    return x.rename(None)\n",
        "import tensordict\ndef f(x):\n    return x.refine_names('N')\n",
        "def f(x):\n    return x.align_to('N')\n",
        "import tensordict\ndef f(x):\n    return x.to('cpu').refine_names(*names)\n",
        "def f(x: Optional[Tensor]):\n    return x.has_names()\n",
        "import tensordict\ndef f(items):\n    x = torch.stack(items, 0)\n    x.refine_names(..., 'time')\n",
    ],
)
def test_names_of_what_may_be_no_tensor(code: str) -> None:
    assert findings(code, "TM040") == []


def test_names_that_only_tensors_have() -> None:
    (found,) = findings("def f(x):\n    return x.refine_names('N', 'C')\n", "TM040")
    assert found.fix is None


def test_names_of_tensors() -> None:
    found = findings("x = torch.ones(2)\nx.names\nx.refine_names('N')\n", "TM040")
    assert [item.severity for item in found] == [Severity.ERROR] * 2


def test_what_is_copied_is_not_copied_again() -> None:
    code = "x = torch.ones(3)\na = torch.tensor(x.detach().clone())\nb = torch.tensor(x).clone().detach()\n"
    new = checked_and_fixed(HEAD + code, ["TM036"])[1]
    assert new.endswith("a = x.detach().clone()\nb = x.detach().clone()\n")
