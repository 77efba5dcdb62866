"""How names are spelled, and where new imports go."""

from __future__ import annotations

import pytest
from import_case import Case, rewritten

from torchmigrate.findings import DroppedUse, Edit
from torchmigrate.rewrite.apply import splice
from torchmigrate.rewrite.imports.planner import Refusal, Spelling
from torchmigrate.semantics.model import Role

# ---- spelling with what is in sight ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "use", "new", "text"),
    [
        ("import torch", "torch.qr", "torch.linalg.qr", "torch.linalg.qr"),
        ("import torch as th", "th.qr", "torch.linalg.qr", "th.linalg.qr"),
        ("import torch\nfrom torch.linalg import qr as new_qr", "torch.qr", "torch.linalg.qr", "new_qr"),
        ("import torch.linalg as LA\nfrom torch import qr", "qr", "torch.linalg.qr", "LA.qr"),
        ("from torch import linalg, qr", "qr", "torch.linalg.qr", "linalg.qr"),
        ("import torch as th\nfrom torch import qr", "qr", "torch.linalg.qr", "th.linalg.qr"),
        ("import torch as th\nimport torch\nfrom torch import linalg", "th.qr", "torch.linalg.qr", "th.linalg.qr"),
        ("import torch\nt = torch", "t.qr", "torch.linalg.qr", "t.linalg.qr"),
        ("import torch\nimport torch.nn.functional as F", "torch.tanh_", "torch.nn.functional.x", "F.x"),
        ("import torch.nn.functional as F\nimport torch", "F.sigmoid", "torch.sigmoid", "torch.sigmoid"),
        ("import torch, torch.nn.functional as F", "torch.nn.functional.upsample",
         "torch.nn.functional.interpolate", "torch.nn.functional.interpolate"),
        ("import torch.nn as nn\nfrom torch import qr", "qr", "torch.nn.functional.x", "nn.functional.x"),
        ("import torch.nn", "torch.nn.Old", "torch.nn.New", "torch.nn.New"),
        ("from torch.cuda import amp\nimport torch", "amp.autocast", "torch.amp.autocast", "torch.amp.autocast"),
        ("import torch.cuda.amp as amp\nfrom torch import amp as AMP", "amp.autocast", "torch.amp.autocast",
         "AMP.autocast"),
        ("import torch", "torch.old", "str", "str"),
        ("import torch", "torch.old", "builtins.int", "int"),
        ("import torch, math", "torch.old", "math.pi", "math.pi"),
        ("import torch.distributed.fsdp as fsdp, torch", "torch.old", "torch.distributed.fsdp.X", "fsdp.X"),
        ("import torch\nimport torch.distributed.fsdp", "torch.old", "torch.distributed.fsdp.X",
         "torch.distributed.fsdp.X"),
        ("import torchvision", "torchvision.models.a", "torchvision.models.b", "torchvision.models.b"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch.qr", "torch.linalg.qr",
         "torch.linalg.qr"),
    ],
)  # fmt: skip
def test_in_sight(imports: str, use: str, new: str, text: str) -> None:
    case = Case(f"{imports}\n\n\ndef f(A):\n    return {use}(A)\n")
    assert case.spell(use, new) == Spelling(text)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        # A name of a nearer scope hides the one of the module.
        ("import torch\nimport torch.linalg as LA\ndef f(A, LA):\n    return torch.qr(A)", "torch.linalg.qr"),
        ("from torch import qr\nimport torch as th\nimport torch\ndef f(A):\n    th = 1\n    return qr(A)",
         "torch.linalg.qr"),
        # Bound twice, deleted, or declared global: not relied on.
        ("from torch import linalg, qr\nimport torch\nlinalg = 1\nqr(A)", "torch.linalg.qr"),
        ("from torch import linalg, qr\nimport torch\ndel linalg\nqr(A)", "torch.linalg.qr"),
        ("from torch import linalg, qr\nimport torch\ndef g():\n    global linalg\nqr(A)", "torch.linalg.qr"),
        # Conditional, only for types, or later.
        ("import torch\nfrom torch import qr\nif x:\n    from torch import linalg\nqr(A)", "torch.linalg.qr"),
        ("import torch\nfrom torch import qr\nif TYPE_CHECKING:\n    from torch import linalg\nqr(A)",
         "torch.linalg.qr"),
        ("import torch\nfrom torch import qr\nqr(A)\nfrom torch import linalg", "torch.linalg.qr"),
        ("from torch import qr\ndef f(A):\n    return qr(A)\nfrom torch import linalg", "linalg.qr"),
        ("import torch\nfrom torch import qr\nwith suppress(E):\n    from torch import linalg\n"
         "def f(A):\n    return qr(A)", "torch.linalg.qr"),
        ("from torch import qr\nwith warnings.catch_warnings():\n    from torch import linalg\n"
         "def f(A):\n    return qr(A)", "linalg.qr"),
        # In the same block, or in the else of a try.
        ("if x:\n    from torch import linalg, qr\n    y = qr(A)", "linalg.qr"),
        ("if x:\n    from torch import linalg, qr\n    def f(A):\n        return qr(A)", "linalg.qr"),
        ("from torch import qr\ntry:\n    import torch\nexcept ImportError:\n    pass\nelse:\n    qr(A)",
         "torch.linalg.qr"),
        # Class bodies are seen by code directly in them only.
        ("from torch import qr\nclass C:\n    from torch import linalg\n    x = qr(A)", "linalg.qr"),
        ("from torch import qr\nimport torch\nclass C:\n    from torch import linalg\n"
         "    def f(self, A):\n        return qr(A)", "torch.linalg.qr"),
        # A later star import may rebind anything but the library's own name.
        ("from torch import linalg, qr\nimport torch\nfrom math import *\nqr(A)", "torch.linalg.qr"),
        ("def f(A):\n    import torch\n    from torch import qr\n    return qr(A)", "torch.linalg.qr"),
        ("from torch import qr\nimport torch\nx = [qr(torch) for th in y]", "torch.linalg.qr"),
    ],
)  # fmt: skip
def test_what_is_seen(code: str, text: str) -> None:
    case = Case(code + "\n")
    name = "torch.qr" if case.uses("torch.qr") else "qr"
    assert case.spell(name, "torch.linalg.qr") == Spelling(text)


@pytest.mark.parametrize(
    ("code", "new", "reason"),
    [
        ("from torch import qr\ndef f(torch, A):\n    return qr(A)", "torch.linalg.qr", "`torch` has another meaning here"),
        ("from torch import qr\ntorch = 1\nqr(A)", "torch.linalg.qr", "`torch` has another meaning here"),
        ("from mylib import torch\nfrom torch import qr\nqr(A)", "torch.linalg.qr", "`torch` has another meaning here"),
        ("try:\n    from torch import qr\nexcept ImportError:\n    pass\ndef f(A):\n    return qr(A)",
         "torch.linalg.qr", "`qr` is only imported under a condition"),
        ("if x:\n    from torch import qr\nqr(A)", "torch.linalg.qr", "`qr` is only imported under a condition"),
        ("import torch\ndef f(str):\n    return torch.qr(A)", "str", "`str` has another meaning here"),
        ("from torch import qr\nqr(A)\nfrom lib import *\nqr(A)", "torch.linalg.qr", None),
        ("import torch\nglobal_ = 1\ndef g():\n    global math\n    math = 2\ndef f():\n    torch.qr()", "math.sqrt",
         "`math` has another meaning here"),
        ("def f(A):\n    torch = A\n    def g():\n        from torch import qr\n        return qr(A), torch",
         "torch.linalg.qr", "`torch` has another meaning in this function"),
    ],
)  # fmt: skip
def test_refusals(code: str, new: str, reason: str | None) -> None:
    case = Case(code + "\n")
    name = "torch.qr" if case.uses("torch.qr") else "qr"
    answer = case.spell(name, new)
    if reason is None:
        assert isinstance(answer, Spelling)
    else:
        assert answer == Refusal(reason)


def test_star_that_follows_is_in_the_way_of_deferred_uses_only() -> None:
    case = Case("from torch import qr\ny = qr(A)\ndef f(A):\n    return qr(A)\nfrom lib import *\n")
    now, later = case.uses("qr")
    assert isinstance(case.planner.spell("math.sqrt", now), Spelling)
    assert case.planner.spell("math.sqrt", later) == Refusal("a star import further down may rebind `math`")
    # A library's name means the library, whoever passes it on.
    assert isinstance(case.planner.spell("torch.linalg.qr", later), Spelling)


def test_import_lines_have_no_spelling() -> None:
    case = Case("from torch import qr\n")
    assert isinstance(case.planner.spell("torch.linalg.qr", case.names.uses[0]), Refusal)


# ---- new imports ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Next to the import of the same library.
        (
            "import os\nfrom torch import qr, cat\nimport numpy\n\nqr(cat(A))\n",
            "import os\nimport torch\nfrom torch import cat\nimport numpy\n\ntorch.linalg.qr(cat(A))\n",
        ),
        # After the docstring and `from __future__`, before the code.
        (
            '#!/usr/bin/python\n# -*- coding: utf-8 -*-\n"""Doc."""\nfrom __future__ import annotations\nfrom torch import qr\nqr(A)\n',
            '#!/usr/bin/python\n# -*- coding: utf-8 -*-\n"""Doc."""\nfrom __future__ import annotations\nimport torch\ntorch.linalg.qr(A)\n',
        ),
        # In a function, where the import is.
        (
            "def f(A):\n    from torch import qr\n    return qr(A)\n",
            "def f(A):\n    import torch\n    return torch.linalg.qr(A)\n",
        ),
        ("def f(A):\n\tfrom torch import qr; return qr(A)\n", "def f(A):\n\timport torch; return torch.linalg.qr(A)\n"),
        # ... but the module's, where that has the library already.
        (
            "import torch.nn as nn\n\ndef f(A):\n    from torch import qr\n    return qr(A) + qr(A)\n",
            "import torch\nimport torch.nn as nn\n\ndef f(A):\n    return torch.linalg.qr(A) + torch.linalg.qr(A)\n",
        ),
        # Under a condition.
        (
            "if x:\n    from torch import qr\n    qr(A)\n",
            "if x:\n    import torch\n    torch.linalg.qr(A)\n",
        ),
        ("if x: from torch import qr; qr(A)\n", "if x: import torch; torch.linalg.qr(A)\n"),
        (
            "try:\n    from torch import qr\n    f = qr\nexcept ImportError:\n    f = None\n",
            "try:\n    from torch import qr\n    import torch\n    f = torch.linalg.qr\nexcept ImportError:\n    f = None\n",
        ),
        # Semicolons.
        ("import os; from torch import qr\nqr(A)\n", "import os\nimport torch\ntorch.linalg.qr(A)\n"),
        ("from torch import qr; import os\nqr(A)\n", "import os\nimport torch\ntorch.linalg.qr(A)\n"),
        ("from torch import qr; x = qr(A)\n", "import torch; x = torch.linalg.qr(A)\n"),
        ('"""Doc."""; from torch import qr; x = qr(A)\n', '"""Doc."""; import torch; x = torch.linalg.qr(A)\n'),
        # Continued lines.
        (
            "from torch import cat, \\\n    qr\ncat(qr(A))\n",
            "import torch\nfrom torch import cat\ncat(torch.linalg.qr(A))\n",
        ),
        # No newline at the end of the import.
        ("if x:\n    y = 1\n    from torch import qr; qr(A)", "if x:\n    y = 1\n    import torch; torch.linalg.qr(A)"),
        # Before the use, although the related import comes later.
        (
            "from torch import qr\nqr(A)\nimport torch\ntorch.cat(B)\n",
            "import torch\ntorch.linalg.qr(A)\nimport torch\ntorch.cat(B)\n",
        ),
        # After a star import, which may bind the name too.
        (
            "from torch import qr\nfrom lib import *\nfrom torch import qr\nqr(A)\n",
            "import torch\nfrom torch import qr\nfrom lib import *\ntorch.linalg.qr(A)\n",
        ),
        # Only for type checkers so far.
        (
            "from typing import TYPE_CHECKING\nfrom torch import qr\nif TYPE_CHECKING:\n    import torch\nqr(A)\n",
            "from typing import TYPE_CHECKING\nimport torch\nif TYPE_CHECKING:\n    import torch\ntorch.linalg.qr(A)\n",
        ),
        # A comment of the linter is repeated.
        (
            "x = 1\nfrom torch import qr, cat  # noqa: E402\nqr(cat(A))\n",
            "x = 1\nimport torch  # noqa: E402\nfrom torch import cat  # noqa: E402\ntorch.linalg.qr(cat(A))\n",
        ),
    ],
)  # fmt: skip
def test_new_import(before: str, after: str) -> None:
    assert rewritten(before, "qr", "torch.linalg.qr") == after
    crlf = before.replace("\n", "\r\n")
    assert rewritten(crlf, "qr", "torch.linalg.qr") == after.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import os\nimport sys\n\nimport torch\n\ntorch.pi_, torch.x\n", "import math\nimport os\nimport sys\n\nimport torch\n\nmath.pi, torch.x\n"),
        ("import abc\nimport sys\n\nimport torch\n\ntorch.pi_, torch.x\n", "import abc\nimport math\nimport sys\n\nimport torch\n\nmath.pi, torch.x\n"),
        ("import torch\n\ntorch.pi_, torch.x\n", "import math\n\nimport torch\n\nmath.pi, torch.x\n"),
        ('"""Doc."""\nimport torch\ntorch.pi_, torch.x\n', '"""Doc."""\nimport math\n\nimport torch\nmath.pi, torch.x\n'),
        ('"""Doc."""; import torch\ntorch.pi_, torch.x\n', '"""Doc."""; import torch\nimport math\nmath.pi, torch.x\n'),
        ("import abc\ndef f():\n    import torch\n    return torch.pi_, torch.x\n",
         "import abc\nimport math\ndef f():\n    import torch\n    return math.pi, torch.x\n"),
        ("from lib import *\nimport torch\n\ntorch.pi_, torch.x\n", "from lib import *\nimport torch\nimport math\n\nmath.pi, torch.x\n"),
        ("import torch\nfrom lib import *\n\ntorch.pi_, torch.x\n", "import torch\nfrom lib import *\nimport math\n\nmath.pi, torch.x\n"),
    ],
)  # fmt: skip
def test_new_standard_import(before: str, after: str) -> None:
    assert rewritten(before, "torch.pi_", "math.pi") == after


@pytest.mark.parametrize(
    ("header", "made"),
    [
        ('"""Doc."""\n', '"""Doc."""\n\nimport math\n'),
        ('"""Doc."""\n\n', '"""Doc."""\n\nimport math\n\n'),
        ("", "import math\n\n"),
        ("# Copyright\n", "# Copyright\nimport math\n\n"),
        ("#!/bin/sh\n# -*- coding: latin-1 -*-\n\n# about f\n", "#!/bin/sh\n# -*- coding: latin-1 -*-\n\nimport math\n\n# about f\n"),
        ("from __future__ import annotations  # yes\n", "from __future__ import annotations  # yes\n\nimport math\n"),
        ('"""Doc."""; from __future__ import annotations\n', '"""Doc."""; from __future__ import annotations\n\nimport math\n'),
    ],
)  # fmt: skip
def test_top_of_a_module_without_imports(header: str, made: str) -> None:
    rest = "def f():\n    import torch\n    return torch.old\n"
    assert rewritten(header + rest, "torch.old", "math.pi") == made + "def f():\n    return math.pi\n"
    crlf = (header + rest).replace("\n", "\r\n")
    assert rewritten(crlf, "torch.old", "math.pi") == (made + "def f():\n    return math.pi\n").replace(
        "\n", "\r\n"
    )


def test_equal_requests_give_equal_edits() -> None:
    case = Case("from torch import qr\n\ndef f(A):\n    return qr(A)\n\nimport os\nqr(B)\n")
    first, second = (case.planner.spell("torch.linalg.qr", use) for use in case.uses("qr"))
    assert first == second
    assert isinstance(first, Spelling)
    assert first.edits[0].mergeable


def test_different_requests_at_one_place() -> None:
    case = Case("from torch import old\nold(1)\nold(2)\nold(3)\n")
    one, two, three = case.uses("old")
    answers = [
        case.planner.spell("torch.linalg.qr", one),
        case.planner.spell("torchvision.ops.nms", two),
        case.planner.spell("torch.distributed.tensor.DTensor", three),
    ]
    edits = [answer.edits for answer in answers if isinstance(answer, Spelling)]
    assert len(edits) == 3
    text = case.result(*edits)
    for line in ("import torch", "import torchvision", "from torch.distributed.tensor import DTensor"):
        assert text.count(line + "\n") == 1
    assert text.endswith("old(1)\nold(2)\nold(3)\n")


# ---- results that run -----------------------------------------------------------------------------------


RUNNABLE = [
    "from math import sqrt as old\nx = old(4)\n",
    "def f():\n    from math import sqrt as old\n    return old(4)\nx = f()\n",
    "from math import sqrt as old, pi\n\n\nclass C:\n    y = old(4)\n\n    def f(self, math=None):\n        return pi\nx = C.y\n",
    "if 1: from math import sqrt as old; x = old(4)\n",
    "x = [old(4) for old in [abs]][0]\nfrom math import sqrt as old\ny = (lambda: old(4))()\n",
]  # fmt: skip


@pytest.mark.parametrize("code", RUNNABLE)
def test_results_run(code: str) -> None:
    case = Case(code)
    groups = []
    releases: list[DroppedUse] = []
    for use in case.names.uses:
        if use.role is not Role.IMPORT and use.candidates == ("math.sqrt",):
            spelling = case.planner.spell("cmath.sqrt", use)
            assert isinstance(spelling, Spelling)
            groups.append((Edit(use.start, use.end, spelling.text), *spelling.edits))
            releases += case.planner.releases(use)
    assert groups
    text = case.result(*groups, case.planner.removals(releases))
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    exec(code, before)
    exec(text, after)
    assert after["x"] == before["x"]
    assert "old" not in [binding.name for binding in Case(text).names.bindings if binding.is_import]


def test_positions_after_wide_characters() -> None:
    before = "é = 'ü'; from torch import qr, cat\nß = 'ö', qr(é, cat)\n"
    after = "é = 'ü'; from torch import cat\nimport torch\nß = 'ö', torch.linalg.qr(é, cat)\n"
    assert rewritten(before, "qr", "torch.linalg.qr") == after


def test_a_submodule_that_the_use_comes_from_gives_one_more_name() -> None:
    """What is in the module that the old name was imported from is imported next to it."""
    case = Case("from torchvision.models import vgg19\nvgg19(True)\n")
    spelling = case.spell("vgg19", "torchvision.models.VGG19_Weights.DEFAULT")
    assert isinstance(spelling, Spelling)
    assert spelling.text == "VGG19_Weights.DEFAULT"
    assert splice(case.text, sorted(spelling.edits)).startswith(
        "from torchvision.models import vgg19, VGG19_Weights\n"
    )
