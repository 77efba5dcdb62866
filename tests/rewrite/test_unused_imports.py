"""Imports of which a fix replaces the last use go; all others stay."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

from torchmigrate.findings import Applicability

GOES = {
    "another name of the statement": (
        "TM736",
        "from torchvision.models.efficientnet import EfficientNet, MBConv\nm = EfficientNet(s, 0.2, block=MBConv)\n",
        "from torchvision.models.efficientnet import EfficientNet\nm = EfficientNet(s, 0.2)\n",
    ),
    "library": (
        "TM746",
        "import torchvision\nx = list(torchvision.utils.irange(3))\n",
        "x = list(range(3))\n",
    ),
    "library by another name": (
        "TM746",
        "import torchvision as tv\nx = list(tv.utils.irange(3))\n",
        "x = list(range(3))\n",
    ),
    "call that is removed": (
        "TM816",
        "import sys\nimport torchaudio\ntorchaudio.initialize_sox()\n",
        "import sys\n",
    ),
    "argument": (
        "TM024",
        "from torch import FloatTensor\nimport torch\ntorch.set_default_tensor_type(FloatTensor)\n",
        "import torch\ntorch.set_default_dtype(torch.float32)\n",
    ),
    "in a function": (
        "TM024",
        "import torch\ndef f():\n    from torch import DoubleTensor\n    torch.set_default_tensor_type(DoubleTensor)\n",
        "import torch\ndef f():\n    torch.set_default_dtype(torch.float64)\n",
    ),
    "nobody used it": ("TM022", "import torch\nfrom torch._six import PY37\nx = 1\n", "import torch\nx = 1\n"),
    "module of which all uses are rewritten": (
        "TM020 TM022",
        "import torch\nimport torch._six\nx = torch._six.inf\n",
        "import torch\nx = torch.inf\n",
    ),
    "module that binds the package": (
        "TM020 TM022",
        "import torch._six\nx = torch._six.inf\n",
        "import torch\nx = torch.inf\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GOES)
def test_the_import_goes_with_its_last_use(case: str) -> None:
    code, before, after = GOES[case]
    assert checked_and_fixed(before, code.split())[1] == after


IRANGE = "x = list(torchvision.utils.irange(3))\n"
STAYS = [
    "try:\n    import torchvision\nexcept ImportError:\n    torchvision = None\n",
    "import torchvision  # noqa: F401\n",
    "import torchvision  # pylint: disable=unused-import\n",
    "import torchvision  # registers the operators\n",
    '__all__ = ["torchvision"]\nimport torchvision\n',
    "import torchvision\nfound = torchvision.models\n",
    "import torchvision\nimport torchvision.ops\nfound = torchvision.ops.nms\n",
    "import torch\nimport torchvision\nfound = torch.ops.torchvision.nms\n",
    "import torch\nimport torchvision\nmodel = torch.jit.load(path)\n",
    'import torchvision\ndef f(x: "torchvision.models.ResNet"):\n    pass\n',
    "import torchvision as torchvision\n",
    "class A:\n    import torchvision\nimport torchvision\nA.torchvision, torchvision\n",
]


@pytest.mark.parametrize("imports", STAYS)
def test_the_import_stays(imports: str) -> None:
    assert checked_and_fixed(imports + IRANGE, ["TM746"])[1] == imports + "x = list(range(3))\n"


def test_imports_that_were_unused_stay() -> None:
    before = "import torch\nimport torchvision\nimport torch.nn.functional as F\ny = torch.nn.functional.sigmoid(x)\n"
    after = before.replace("torch.nn.functional.sigmoid", "torch.sigmoid")
    assert checked_and_fixed(before, ["TM411"])[1] == after


def test_imports_for_type_checkers_stay() -> None:
    before = (
        "from typing import TYPE_CHECKING\nimport torch\nif TYPE_CHECKING:\n    import torch.nn.functional as F\n"
        "else:\n    import torch.nn.functional as F\ny = F.sigmoid(x)\n"
    )
    assert "if TYPE_CHECKING:\n    import torch.nn.functional as F" in checked_and_fixed(before, ["TM411"])[1]


def test_a_module_that_another_import_reaches_stays_loaded() -> None:
    before = (
        "import torch\nimport torch.utils.tensorboard as tb\nimport torch.nn.functional as F\n"
        "y = F.sigmoid(x)\nw = torch.utils.tensorboard.SummaryWriter()\n"
    )
    assert "tensorboard as tb" in checked_and_fixed(before, ["TM411"])[1]


# ---- quotes, and where imports go -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ('s = "a"\n', '"cuda"'),
        ("s = 'a'\n", "'cuda'"),
        ("s = 'a', \"b\", 'c'\n", "'cuda'"),
        ("# don't, can't\ns = \"a\"\n", '"cuda"'),
        ("", "'cuda'"),
    ],
)
def test_new_strings_have_the_quotes_of_the_file(text: str, new: str) -> None:
    code = f"import torch\n{text}x = torch.get_autocast_gpu_dtype()\n"
    after = f"import torch\n{text}x = torch.get_autocast_dtype({new})\n"
    assert checked_and_fixed(code, ["TM034"])[1] == after


def test_strings_of_codemods_have_them_too() -> None:
    code = "import torch\ns = 'a', 'b'\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
    assert '"' not in checked_and_fixed(code, ["TM947"])[1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "import os\nimport sys\n\nimport torch\nfrom torch._six import container_abcs\n",
            "import os\nimport sys\nfrom collections import abc as container_abcs\n\nimport torch\n",
        ),
        (
            "from typing import List\n\nimport torch\nfrom torch._six import container_abcs, foo\n",
            "from collections import abc as container_abcs\nfrom typing import List\n\nimport torch\n"
            "from torch._six import foo\n",
        ),
        (
            "import torch\nfrom torch._six import container_abcs\n",
            "from collections import abc as container_abcs\n\nimport torch\n",
        ),
        ("from torch._six import container_abcs\n", "from collections import abc as container_abcs\n"),
        (
            "from collections import OrderedDict\n\nimport torch\nfrom torch._six import container_abcs\n",
            "from collections import OrderedDict, abc as container_abcs\n\nimport torch\n",
        ),
        (
            "import torch\nfrom torch._six import container_abcs  # for lists\n",
            "import torch\nfrom collections import abc as container_abcs  # for lists\n",
        ),
        (
            "import torch\ntry:\n    from torch._six import container_abcs\nfinally:\n    pass\n",
            "import torch\ntry:\n    from collections import abc as container_abcs\nfinally:\n    pass\n",
        ),
    ],
)
def test_imports_of_the_standard_library_stand_with_their_like(before: str, after: str) -> None:
    use = (
        "print(container_abcs.Sequence, torch)\n"
        if "import torch\n" in before
        else "container_abcs.Sequence\n"
    )
    assert checked_and_fixed(before + use, ["TM020"])[1] == after + use


@pytest.mark.parametrize(
    "code",
    [
        "from torch.utils.ffi import _wrap_function  # noqa: F401\n",
        "from torch.utils.ffi import _wrap_function\nx = f()  # type: List[_wrap_function]\n",
        "__all__ = ['ffi']\nfrom torch.utils import ffi\n",
        "import torch\nimport torch.utils.ffi\nbuild = torch.utils.ffi.create_extension\n",
    ],
)
def test_an_import_that_somebody_may_want_is_only_reported(code: str) -> None:
    found, fixed = checked_and_fixed(code, ["TM629"])
    assert found and fixed == code


def test_an_unused_import_of_what_still_exists_goes_as_an_unsafe_fix() -> None:
    """Code that is not checked may take the name from here."""
    code = "from torch.autograd import Variable\nx = 1\n"
    found, fixed = checked_and_fixed(code, ["TM330"])
    assert fixed == "x = 1\n"
    assert [item.fix and item.fix.applicability for item in found] == [Applicability.UNSAFE]
