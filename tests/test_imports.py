"""The import planner: each answer is applied, and the result parsed and compared byte for byte."""

# ruff: noqa: E501 (tables of cases: one line each)

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from torchmigrate import submodules
from torchmigrate.edits import apply
from torchmigrate.imports import ImportPlanner, Refusal, Spelling, Swap
from torchmigrate.model import Applicability, Edit, Fix, Release
from torchmigrate.names.model import Binding, Names, Role, Use
from torchmigrate.names.resolver import LIBRARY_ROOTS, resolve
from torchmigrate.source import Source

ROOTS = LIBRARY_ROOTS | {"math"}


class Case:
    """A file that is being planned for."""

    def __init__(self, code: str, *, is_init: bool = False) -> None:
        self.text = code
        self.source = Source.from_text(self.text, Path("case.py"))
        self.names: Names = resolve(ast.parse(self.text), self.source, roots=ROOTS)
        self.planner = ImportPlanner(self.names, self.source, is_init=is_init)

    def uses(self, name: str) -> list[Use]:
        """The uses written `name`, in order."""
        return [
            use
            for use in self.names.uses
            if use.role is not Role.IMPORT and self.text[use.start : use.end] == name
        ]

    def bindings(self, name: str) -> list[Binding]:
        return [item for item in self.names.bindings if item.name == name and item.is_import]

    def binding(self, name: str) -> Binding:
        found = self.bindings(name)
        assert len(found) == 1, found
        return found[0]

    def result(self, *groups: tuple[Edit, ...]) -> str:
        """The text with groups of edits applied, each as a fix of its own; it must parse."""
        fixes = [Fix(f"fix {n}", Applicability.SAFE, group) for n, group in enumerate(groups) if group]
        done = apply(self.text, fixes)
        assert not done.deferred
        ast.parse(done.text)
        return done.text

    def spell(self, name: str, new: str, which: int = 0) -> Spelling | Refusal:
        return self.planner.spell(new, self.uses(name)[which])

    def rewrite(self, name: str, new: str) -> str:
        """The text with every use of `name` written as `new`, and the unused imports removed."""
        groups = []
        releases: list[Release] = []
        for use in self.uses(name):
            spelling = self.planner.spell(new, use)
            assert isinstance(spelling, Spelling), spelling
            groups.append((Edit(use.start, use.end, spelling.text), *spelling.edits))
            releases += self.planner.releases(use)
        removed = self.planner.removals(releases)
        return self.result(*groups, removed)

    def swapped(self, *moves: tuple[str, str], keep_name: bool = False) -> tuple[str, bool]:
        """The text with imports swapped together, and their uses rewritten; and whether that is lossy."""
        bindings = [(self.binding(name), new) for name, new in moves]
        swaps = self.planner.swap_all(bindings, keep_name=keep_name)
        edits: dict[Edit, None] = {}
        lossy = False
        for (binding, _), swap in zip(bindings, swaps, strict=True):
            assert isinstance(swap, Swap), swap
            lossy = lossy or swap.lossy
            edits.update(dict.fromkeys(swap.edits))
            if swap.local_name != binding.name:
                for place in binding.uses:
                    edits[Edit(place, place + len(binding.name), swap.local_name)] = None
        return self.result(tuple(edits)), lossy


def rewritten(code: str, name: str, new: str) -> str:
    return Case(code).rewrite(name, new)


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
        ("from torch import qr\ndef f(torch, A):\n    return qr(A)", "torch.linalg.qr", "`torch` means something else here"),
        ("from torch import qr\ntorch = 1\nqr(A)", "torch.linalg.qr", "`torch` means something else here"),
        ("from mylib import torch\nfrom torch import qr\nqr(A)", "torch.linalg.qr", "`torch` means something else here"),
        ("try:\n    from torch import qr\nexcept ImportError:\n    pass\ndef f(A):\n    return qr(A)",
         "torch.linalg.qr", "`qr` is imported only under a condition"),
        ("if x:\n    from torch import qr\nqr(A)", "torch.linalg.qr", "`qr` is imported only under a condition"),
        ("import torch\ndef f(str):\n    return torch.qr(A)", "str", "`str` means something else here"),
        ("from torch import qr\nqr(A)\nfrom lib import *\nqr(A)", "torch.linalg.qr", None),
        ("import torch\nglobal_ = 1\ndef g():\n    global math\n    math = 2\ndef f():\n    torch.qr()", "math.sqrt",
         "`math` means something else here"),
        ("def f(A):\n    torch = A\n    def g():\n        from torch import qr\n        return qr(A), torch",
         "torch.linalg.qr", "`torch` means something else in this function"),
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
    assert isinstance(case.planner.spell("torch.linalg.qr", now), Spelling)
    assert case.planner.spell("torch.linalg.qr", later) == Refusal("a later star import may rebind `torch`")


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
            "import os\nfrom torch import cat\nimport torch\nimport numpy\n\ntorch.linalg.qr(cat(A))\n",
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
            "import torch.nn as nn\nimport torch\n\ndef f(A):\n    return torch.linalg.qr(A) + torch.linalg.qr(A)\n",
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
            "from torch import cat\nimport torch\ncat(torch.linalg.qr(A))\n",
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
            "from torch import qr\nfrom lib import *\nimport torch\ntorch.linalg.qr(A)\n",
        ),
        # Only for type checkers so far.
        (
            "from typing import TYPE_CHECKING\nfrom torch import qr\nif TYPE_CHECKING:\n    import torch\nqr(A)\n",
            "from typing import TYPE_CHECKING\nimport torch\nif TYPE_CHECKING:\n    import torch\ntorch.linalg.qr(A)\n",
        ),
        # A comment of the linter is repeated.
        (
            "x = 1\nfrom torch import qr, cat  # noqa: E402\nqr(cat(A))\n",
            "x = 1\nfrom torch import cat  # noqa: E402\nimport torch  # noqa: E402\ntorch.linalg.qr(cat(A))\n",
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


# ---- submodules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        (
            "import torch\ntorch.old(x, torch.y)\n",
            "torch.distributed.tensor.DTensor",
            "import torch\nfrom torch.distributed.tensor import DTensor\nDTensor(x, torch.y)\n",
        ),
        (
            "import torch\nfrom torch.distributed.tensor import Shard\ntorch.old(x, torch.y)\n",
            "torch.distributed.tensor.DTensor.from_local",
            "import torch\nfrom torch.distributed.tensor import Shard, DTensor\nDTensor.from_local(x, torch.y)\n",
        ),
        (
            "import torch\nDTensor = 1\ntorch.old(x, torch.y)\n",
            "torch.distributed.tensor.DTensor",
            "import torch\nimport torch.distributed.tensor\nDTensor = 1\ntorch.distributed.tensor.DTensor(x, torch.y)\n",
        ),
        (
            "import torch\nx = torch.distributed.fsdp.Old, torch.distributed.fsdp.Other\n",
            "torch.distributed.fsdp.New",
            "import torch\nx = torch.distributed.fsdp.New, torch.distributed.fsdp.Other\n",
        ),
        (
            "import torchvision\nx = torchvision.transforms.old, torchvision.y\n",
            "torchvision.transforms.v2.Resize",
            "import torchvision\nfrom torchvision.transforms.v2 import Resize\nx = Resize, torchvision.y\n",
        ),
        (
            "import torch\nx = torch.old, torch.y\n",
            "collections.abc.Mapping",
            "import collections.abc\n\nimport torch\nx = collections.abc.Mapping, torch.y\n",
        ),
        (
            "import torch\nx = torch.old, torch.y\n",
            "torch.distributed.tensor",
            "import torch\nimport torch.distributed.tensor\nx = torch.distributed.tensor, torch.y\n",
        ),
        # Only the name is taken that is free at the use.
        (
            "import torch\ndef f(checkpoint):\n    return torch.old, torch.y\n",
            "torch.utils.checkpoint.checkpoint",
            "import torch\nimport torch.utils.checkpoint\ndef f(checkpoint):\n"
            "    return torch.utils.checkpoint.checkpoint, torch.y\n",
        ),
    ],
)
def test_modules_that_are_not_reached(before: str, new: str, after: str) -> None:
    case = Case(before)
    use = min(
        (use for use in case.names.uses if "ld" in use.candidates[0].lower()), key=lambda use: use.start
    )
    spelling = case.planner.spell(new, use)
    assert isinstance(spelling, Spelling)
    assert case.result((Edit(use.start, use.end, spelling.text), *spelling.edits)) == after


@pytest.mark.parametrize(
    ("statement", "extended"),
    [
        ("from torch.func import vmap\n", "from torch.func import vmap, X\n"),
        ("from torch.func import vmap as v  # c\n", "from torch.func import vmap as v, X  # c\n"),
        ("from torch.func import (vmap, jvp,)\n", "from torch.func import (vmap, jvp, X,)\n"),
        ("from torch.func import vmap, \\\n    jvp\n", "from torch.func import vmap, \\\n    jvp, X\n"),
        ("from torch.func import (\n    vmap,\n    jvp,  # c\n)\n", "from torch.func import (\n    vmap,\n    jvp,  # c\n    X,\n)\n"),
        ("from torch.func import (\n    vmap,\n    jvp  # c\n)\n", "from torch.func import (\n    vmap,\n    jvp,  # c\n    X,\n)\n"),
        ("from torch.func import (\n    vmap,\n    jvp)\n", "from torch.func import (\n    vmap,\n    jvp, X)\n"),
        ("from torch.func import (\n\tvmap\n\t, jvp\n)\n", "from torch.func import (\n\tvmap\n\t, jvp, X\n)\n"),
        ("from torch.func import (  # c (\n    vmap,\n    # end\n)\n", "from torch.func import (  # c (\n    vmap,\n    X,\n    # end\n)\n"),
        ("from torch.func import vmap; import os\n", "from torch.func import vmap, X; import os\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_extending_a_statement(statement: str, extended: str, newline: str) -> None:
    from torchmigrate.import_edits import ImportStatement

    text = statement.replace("\n", newline)
    source = Source.from_text(text, Path("case.py"))
    node = source.parse().body[0]
    assert isinstance(node, ast.ImportFrom)
    layout = ImportStatement(source, node)
    done = apply(text, [Fix("x", Applicability.SAFE, layout.extend("X"))])
    assert done.text == extended.replace("\n", newline)
    both = apply(text, [Fix(name, Applicability.SAFE, layout.extend(name)) for name in ("Y", "X")])
    names = {alias.name for alias in ast.parse(both.text).body[0].names}  # type: ignore[attr-defined]
    assert names == {alias.name for alias in node.names} | {"X", "Y"}


TORCH_CHECK = """
import os, pkgutil, sys, warnings
warnings.simplefilter("ignore")
import torch

def reached(name):
    reader, writer = os.pipe()
    if os.fork() == 0:
        value = torch
        try:
            for part in name.split(".")[1:]:
                value = getattr(value, part)
            os.write(writer, b"1")
        finally:
            os._exit(0)
    os.close(writer)
    os.wait()
    return os.read(reader, 1) == b"1"

def exists(name):
    parts = name.split(".")[1:]
    path = os.path.join(torch.__path__[0], *parts)
    return os.path.isdir(path) or os.path.exists(path + ".py")

for name in sys.argv[1:]:
    print(name, exists(name), name in sys.modules or reached(name))
"""


@pytest.mark.skipif(
    find_spec("torch") is None or not hasattr(os, "fork"),
    reason="compares with the installed torch",
)
def test_what_import_torch_reaches() -> None:
    names = sorted(submodules.TORCH_UNREACHED)
    common = [
        "torch.linalg",
        "torch.func",
        "torch.amp",
        "torch.fft",
        "torch.nn.functional",
        "torch.utils.data",
    ]
    done = subprocess.run(
        [sys.executable, "-c", TORCH_CHECK, *names, *common], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[0] for row in rows if row[1] == "True" and row[2] == "True"] == common
    assert len(rows) == len(names) + len(common)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("torch.qr", None),
        ("torch.linalg.qr", None),
        ("torch.func.vmap", None),
        ("torch.distributed.tensor.DTensor", "torch.distributed.tensor"),
        ("torch.distributed.tensor.parallel.ColwiseParallel", "torch.distributed.tensor.parallel"),
        ("torch.distributed.tensor", "torch.distributed.tensor"),
        ("torch.utils.benchmark.Timer.timeit", "torch.utils.benchmark"),
        ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension"),
        ("torchvision.models.resnet18", None),
        ("torchvision.models", None),
        ("torchvision.transforms.v2.Resize", "torchvision.transforms.v2"),
        ("math.sqrt", None),
        ("math", None),
        ("os.path.join", None),
        ("collections.abc.Mapping", "collections.abc"),
    ],
)
def test_needed_module(name: str, module: str | None) -> None:
    assert submodules.needed_module(name) == module


# ---- swaps ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "moves", "after"),
    [
        # The sole name: in place.
        ("from functorch import vmap\nvmap(f)\n", {"vmap": "torch.func.vmap"}, "from torch.func import vmap\nvmap(f)\n"),
        ("from functorch import vmap as v  # c\nv(f)\n", {"v": "torch.func.vmap"}, "from torch.func import vmap as v  # c\nv(f)\n"),
        ("from torch import ger as g\ng(a)\n", {"g": "torch.outer"}, "from torch import outer as g\ng(a)\n"),
        ("from torch import ger  as\\\n g\ng(a)\n", {"g": "torch.outer"}, "from torch import outer  as\\\n g\ng(a)\n"),
        ("from torch import ger as outer\nouter(a)\n", {"outer": "torch.outer"}, "from torch import outer\nouter(a)\n"),
        ("from torch import cat, ger\nger(cat(a))\n", {"ger": "torch.outer"}, "from torch import cat, outer\nouter(cat(a))\n"),
        ("from torch.cuda import amp\namp.x\n", {"amp": "torch.amp"}, "from torch import amp\namp.x\n"),
        ("from functorch \\\n  import (\n    vmap  # c\n)\nvmap(f)\n", {"vmap": "torch.func.vmap"},
         "from torch.func \\\n  import (\n    vmap  # c\n)\nvmap(f)\n"),
        # One of several moves.
        ("from functorch import vmap, make_fx\nvmap(make_fx)\n", {"vmap": "torch.func.vmap"},
         "from functorch import make_fx\nfrom torch.func import vmap\nvmap(make_fx)\n"),
        ("from functorch import make_fx, vmap  # noqa: F401\nvmap(make_fx)\n", {"vmap": "torch.func.vmap"},
         "from functorch import make_fx  # noqa: F401\nfrom torch.func import vmap  # noqa: F401\nvmap(make_fx)\n"),
        ("from functorch import (\n    make_fx,\n    vmap,  # per sample\n)\nvmap(make_fx)\n", {"vmap": "torch.func.vmap"},
         "from functorch import (\n    make_fx,\n)\nfrom torch.func import vmap  # per sample\nvmap(make_fx)\n"),
        ("from functorch import make_fx, vmap; vmap(make_fx)\n", {"vmap": "torch.func.vmap"},
         "from torch.func import vmap; from functorch import make_fx; vmap(make_fx)\n"),
        # Several together.
        ("from functorch import vmap, make_fx, grad\nvmap(make_fx, grad)\n", {"vmap": "torch.func.vmap", "grad": "torch.func.grad"},
         "from functorch import make_fx\nfrom torch.func import vmap, grad\nvmap(make_fx, grad)\n"),
        ("from functorch import vmap, grad\nvmap(grad)\n", {"vmap": "torch.func.vmap", "grad": "torch.func.grad"},
         "from torch.func import vmap, grad\nvmap(grad)\n"),
        ("from functorch import vmap, grad, x\nvmap(grad, x)\n",
         {"vmap": "torch.func.vmap", "grad": "torch.linalg.grad", "x": "torch.func.x"},
         "from torch.func import vmap, x\nfrom torch.linalg import grad\nvmap(grad, x)\n"),
        # What is imported from there already.
        ("from torch.func import grad\nfrom functorch import vmap\nvmap(grad)\n", {"vmap": "torch.func.vmap"},
         "from torch.func import grad, vmap\nvmap(grad)\n"),
        ("from functorch import vmap\nfrom torch.func import grad\nvmap(grad)\n", {"vmap": "torch.func.vmap"},
         "from torch.func import grad, vmap\nvmap(grad)\n"),
        ("from functorch import vmap\nvmap(f)\nfrom torch.func import grad\n", {"vmap": "torch.func.vmap"},
         "from torch.func import vmap\nvmap(f)\nfrom torch.func import grad\n"),
        ("from torch.func import grad\nfrom functorch import vmap  # why\nvmap(grad)\n", {"vmap": "torch.func.vmap"},
         "from torch.func import grad\nfrom torch.func import vmap  # why\nvmap(grad)\n"),
        ("from torch import ger, outer\nger(outer)\n", {"ger": "torch.outer"}, "from torch import outer\nouter(outer)\n"),
        ("from torch import outer\nfrom torch import ger\nger(outer)\n", {"ger": "torch.outer"}, "from torch import outer\nouter(outer)\n"),
        # In place wherever it stands.
        ("def f():\n    from functorch import vmap, x\n    return vmap(x)\n", {"vmap": "torch.func.vmap"},
         "def f():\n    from functorch import x\n    from torch.func import vmap\n    return vmap(x)\n"),
        ("try:\n    from functorch import vmap\nexcept ImportError:\n    pass\n", {"vmap": "torch.func.vmap"},
         "try:\n    from torch.func import vmap\nexcept ImportError:\n    pass\n"),
        ("if TYPE_CHECKING:\n    from functorch import vmap\n", {"vmap": "torch.func.vmap"},
         "if TYPE_CHECKING:\n    from torch.func import vmap\n"),
        ("if x: from functorch import vmap, y\n", {"vmap": "torch.func.vmap"},
         "if x: from torch.func import vmap; from functorch import y\n"),
        ("class C:\n    from torch import ger\n", {"ger": "torch.outer"}, "class C:\n    from torch import outer as ger\n"),
        # The old local name stays where others may need it, or the new one is taken.
        ("from torch import ger\n__all__ = ['ger']\n", {"ger": "torch.outer"}, "from torch import outer as ger\n__all__ = ['ger']\n"),
        ("from torch import ger as ger\n", {"ger": "torch.outer"}, "from torch import outer as ger\n"),
        ("from torch import ger\nouter = 1\nger(a)\n", {"ger": "torch.outer"}, "from torch import outer as ger\nouter = 1\nger(a)\n"),
        ("from torch import ger\ndef f(outer):\n    return ger(outer)\n", {"ger": "torch.outer"},
         "from torch import outer as ger\ndef f(outer):\n    return ger(outer)\n"),
        ("from torch import ger\ndef f(a):\n    return ger(a)\ndef g(outer): pass\n", {"ger": "torch.outer"},
         "from torch import outer\ndef f(a):\n    return outer(a)\ndef g(outer): pass\n"),
        ("outer = 1\ndef f(a):\n    from torch import ger\n    return ger(a, outer)\n", {"ger": "torch.outer"},
         "outer = 1\ndef f(a):\n    from torch import outer as ger\n    return ger(a, outer)\n"),
        ("from torch import ger\nx: 'ger' = 1\n", {"ger": "torch.outer"}, "from torch import outer as ger\nx: 'ger' = 1\n"),
        ("from torch import absolute\nabsolute(a)\n", {"absolute": "torch.abs"}, "from torch import abs as absolute\nabsolute(a)\n"),
        ("from torch import ger\nfrom lib import *\nger(a)\n", {"ger": "torch.outer"},
         "from torch import outer as ger\nfrom lib import *\nger(a)\n"),
        # Modules.
        ("import torch.distributed._tensor as dt\ndt.x\n", {"dt": "torch.distributed.tensor"},
         "import torch.distributed.tensor as dt\ndt.x\n"),
        ("import os, functorch as ft\nft.vmap\n", {"ft": "torch.func"}, "import os, torch.func as ft\nft.vmap\n"),
        ("import torch.distributed._tensor\nx = torch.cat\n", {"torch": "torch.distributed.tensor"},
         "import torch.distributed.tensor\nx = torch.cat\n"),
        ("import functorch\n", {"functorch": "torch.func"}, "import torch.func\n"),
    ],
)  # fmt: skip
def test_swap(before: str, moves: dict[str, str], after: str) -> None:
    assert Case(before).swapped(*moves.items()) == (after, False)
    crlf = before.replace("\n", "\r\n")
    assert Case(crlf).swapped(*moves.items()) == (after.replace("\n", "\r\n"), False)


def test_swap_keeps_the_name_in_a_package() -> None:
    case = Case("from torch import ger\n", is_init=True)
    assert case.swapped(("ger", "torch.outer"))[0] == "from torch import outer as ger\n"
    case = Case("from torch import ger\nger(a)\n")
    assert (
        case.swapped(("ger", "torch.outer"), keep_name=True)[0] == "from torch import outer as ger\nger(a)\n"
    )


def test_swap_loses_a_comment_between_names() -> None:
    code = "from functorch import (vmap,  # per sample\n    make_fx)\nvmap(make_fx)\n"
    text, lossy = Case(code).swapped(("vmap", "torch.func.vmap"))
    assert lossy
    assert text == "from functorch import (make_fx)\nfrom torch.func import vmap\nvmap(make_fx)\n"
    code = "from torch.func import grad\nfrom functorch import (\n    vmap,  # per sample\n    x,\n)\nvmap(grad)\n"
    text, lossy = Case(code).swapped(("vmap", "torch.func.vmap"))
    assert lossy
    assert text == "from torch.func import grad, vmap\nfrom functorch import (\n    x,\n)\nvmap(grad)\n"


def test_many_names_are_written_one_per_line() -> None:
    names = [
        "functional_call",
        "functionalize",
        "hessian",
        "jacfwd",
        "jacrev",
        "linearize",
        "stack_module_state",
    ]
    case = Case(f"from functorch import make_fx, {', '.join(names)}\n")
    text, _ = case.swapped(*((name, f"torch.func.{name}") for name in names))
    lines = "".join(f"    {name},\n" for name in names)
    assert text == f"from functorch import make_fx\nfrom torch.func import (\n{lines})\n"


@pytest.mark.parametrize(
    ("code", "name", "new"),
    [
        ("from .torch import qr\n", "qr", "torch.linalg.qr"),
        ("import functorch\nfunctorch.vmap\n", "functorch", "torch.func"),
        (
            "import torch.distributed._tensor\ntorch.distributed._tensor.x\n",
            "torch",
            "torch.distributed.tensor",
        ),
        ("import functorch\ntorch = 1\n", "functorch", "torch.func"),
        ("from torch import x\n", "x", "str"),
        ("from torch import x\n", "x", "torch.Tensor.y"),
    ],
)
def test_swap_is_refused(code: str, name: str, new: str) -> None:
    case = Case(code)
    assert isinstance(case.planner.swap(case.binding(name), new), Refusal)


def test_swap_of_a_local_name_is_refused() -> None:
    case = Case("import torch\nt = torch\n")
    binding = next(item for item in case.names.bindings if item.name == "t")
    assert isinstance(case.planner.swap(binding, "torch.func"), Refusal)


def test_single_swaps_never_leave_an_empty_import() -> None:
    layouts = [
        "from functorch import a, b, c\n",
        "from functorch import (a, b, c,)\n",
        "from functorch import (\n    a,\n    b,  # why\n    c,\n)\n",
        "from functorch import (\n    a,\n    # about b\n    b,\n    # about c\n    c\n)\n",
        "from functorch import (a,\n    b,\n    c)\n",
        "from functorch import a, \\\n    b, c\n",
        "if x: from functorch import a, b, c\n",
    ]
    for layout in layouts:
        text = layout
        for _ in range(4):
            case = Case(text)
            fixes = []
            for binding in case.names.bindings:
                if binding.module == "functorch":
                    swap = case.planner.swap(binding, f"torch.func.{binding.name}")
                    if isinstance(swap, Swap):
                        fixes.append(Fix(binding.name, Applicability.SAFE, swap.edits))
            if not fixes:
                break
            text = apply(text, fixes).text
            ast.parse(text)
        after = Case(text)
        assert sorted(binding.target or "" for binding in after.names.bindings) == [
            "torch.func.a", "torch.func.b", "torch.func.c",
        ]  # fmt: skip


def test_a_statement_is_not_extended_and_moved_at_once() -> None:
    case = Case("from torch.distributed.fsdp import A\nimport torch\nA(torch.x)\n")
    spelling = case.planner.spell("torch.distributed.fsdp.B", case.uses("torch.x")[0])
    assert isinstance(spelling, Spelling)
    assert spelling.edits
    assert isinstance(case.planner.swap(case.binding("A"), "torch.distributed.tensor.A"), Refusal)
    case = Case("from torch.distributed.fsdp import A\nimport torch\nA(torch.x)\n")
    swap = case.planner.swap(case.binding("A"), "torch.distributed.tensor.A")
    spelling = case.planner.spell("torch.distributed.fsdp.B", case.uses("torch.x")[0])
    assert isinstance(swap, Swap)
    assert isinstance(spelling, Spelling)
    text = case.result(swap.edits, spelling.edits)
    assert "from torch.distributed.tensor import A\n" in text
    assert "from torch.distributed.fsdp import B\n" in text


# ---- removals -------------------------------------------------------------------------------------------


def removed(code: str, *names: str, is_init: bool = False) -> str:
    """The text without the imports of `names`, every use of which is released."""
    case = Case(code, is_init=is_init)
    releases = [Release(item.id, tuple(item.uses)) for name in names for item in case.bindings(name)]
    return case.result(case.planner.removals(releases))


@pytest.mark.parametrize(
    ("before", "names", "after"),
    [
        ("import os\nfrom torch import qr\nqr(A)\n", "qr", "import os\nqr(A)\n"),
        ("from torch import qr, cat\nqr(cat)\n", "qr", "from torch import cat\nqr(cat)\n"),
        ("from torch import cat, qr\nqr(cat)\n", "qr", "from torch import cat\nqr(cat)\n"),
        ("from torch import a, qr, cat\nqr(cat)\n", "a qr", "from torch import cat\nqr(cat)\n"),
        ("from torch import a, qr, cat\nqr(cat)\n", "qr cat", "from torch import a\nqr(cat)\n"),
        ("from torch import a, qr, cat\nqr(cat)\n", "a cat", "from torch import qr\nqr(cat)\n"),
        ("from torch import a, qr\nqr\n", "a qr", "qr\n"),
        ("from torch import (a,\n                   qr)  # why\nqr\n", "qr", "from torch import (a)  # why\nqr\n"),
        ("from torch import (\n    a,\n    qr,\n    cat,\n)\nqr\n", "qr cat", "from torch import (\n    a,\n)\nqr\n"),
        ("from torch import (\n    a,  # why\n    qr,\n    cat,\n)\nqr\n", "qr", "from torch import (\n    a,  # why\n    cat,\n)\nqr\n"),
        ("from torch import (\n    a,  # why\n    qr\n)\nqr\n", "qr", "from torch import (\n    a,  # why\n)\nqr\n"),
        ("from torch import a, \\\n    qr\nqr\n", "qr", "from torch import a\nqr\n"),
        ("import os, torch as th\nth.qr\n", "th", "import os\nth.qr\n"),
        ("import os; import torch\ntorch.qr\n", "torch", "import os\ntorch.qr\n"),
        ("import torch; import os\ntorch.qr\n", "torch", "import os\ntorch.qr\n"),
        ("import torch; import os; import math as m\ntorch.qr, m.x\n", "torch m", "import os\ntorch.qr, m.x\n"),
        ("import torch;\ntorch.qr\n", "torch", "torch.qr\n"),
        ("from torch import qr  # noqa: E402\nqr\n", "qr", "qr\n"),
        ("from torch import qr  # isort: skip  # type: ignore[attr-defined]\nqr\n", "qr", "qr\n"),
        ("x = 1\nfrom torch import qr", "qr", "x = 1\n"),
        # Suites are not left empty.
        ("def f():\n    from torch import qr\n", "qr", "def f():\n    pass\n"),
        ("def f():\n    from torch import qr\n    import math\n", "qr math", "def f():\n    pass\n"),
        ("if x:\n    from torch import qr  # noqa\n", "qr", "if x:\n    pass  # noqa\n"),
        ("if x: from torch import qr\n", "qr", "if x: pass\n"),
        ("if x: from torch import qr; qr(A)\n", "qr", "if x: qr(A)\n"),
        ("if x: import math; from torch import qr\n", "qr math", "if x: pass\n"),
        ("def f():\n    'doc'\n    from torch import qr\n", "qr", "def f():\n    'doc'\n"),
        # Another import of a library stays.
        ("import torch\nimport torch.nn as nn\nnn.x, torch.qr\n", "torch", "import torch.nn as nn\nnn.x, torch.qr\n"),
    ],
)  # fmt: skip
def test_removals(before: str, names: str, after: str) -> None:
    assert removed(before, *names.split()) == after
    crlf = before.replace("\n", "\r\n")
    assert removed(crlf, *names.split()) == after.replace("\n", "\r\n")


@pytest.mark.parametrize(
    "code",
    [
        "from torch import qr\n__all__ = ['qr']\nqr(A)\n",
        "from torch import qr as qr\nqr(A)\n",
        "from torch import qr  # noqa: F401\nqr(A)\n",
        "from torch import qr  # pylint: disable=unused-import\nqr(A)\n",
        "from torch import qr  # keep this one\nqr(A)\n",
        "from torch import (  # keep this one\n    qr\n)\nqr(A)\n",
        "from torch import (\n    qr,  # keep this one\n    cat,\n)\nqr(cat)\n",
        "try:\n    from torch import qr\nexcept ImportError:\n    pass\nqr(A)\n",
        "try:\n    import x\nexcept ImportError:\n    from torch import qr\n",
        "class C:\n    from torch import qr\n",
        "def f():\n    global qr\n    from torch import qr\n",
        "from torch import qr\nx = cast('qr', y)\n",
        "from torch import qr\ndef f(x: 'List[\\\n qr]'): pass\n",
    ],
)
def test_imports_that_stay(code: str) -> None:
    assert removed(code, "qr") == code


def test_no_removals_in_a_package() -> None:
    code = "from torch import qr\nqr(A)\n"
    assert removed(code, "qr", is_init=True) == code


def test_only_the_last_use_releases_the_import() -> None:
    case = Case("from torch import qr\nqr(A)\nqr(B)\n")
    first, second = (case.planner.releases(use) for use in case.uses("qr"))
    assert case.planner.removals(first) == ()
    assert case.result(case.planner.removals((*first, *second))) == "qr(A)\nqr(B)\n"


def test_an_import_that_a_spelling_relies_on_stays() -> None:
    code = "import torch as th\nth.qr(A)\n"
    assert rewritten(code, "th.qr", "torch.linalg.qr") == "import torch as th\nth.linalg.qr(A)\n"
    assert rewritten(code, "th.qr", "math.sqrt") == "import math\n\nmath.sqrt(A)\n"


def test_a_submodule_that_others_reach_stays() -> None:
    code = "import torch.distributed.fsdp\nimport torch as th\ntorch.old(th.distributed.fsdp.X)\n"
    case = Case(code)
    (use,) = case.uses("torch.old")
    assert case.planner.removals(case.planner.releases(use)) == ()


def test_a_release_without_places_is_for_an_import_without_uses() -> None:
    case = Case("import torch\nfrom torch import qr\nfrom torch import cat\ncat(A)\n")
    releases = [Release(case.binding(name).id, ()) for name in ("qr", "cat")]
    assert case.result(case.planner.removals(releases)) == "import torch\nfrom torch import cat\ncat(A)\n"


def test_releases() -> None:
    case = Case("import torch\ntorch.qr(A)\nx = getattr(torch, 'qr')\nx: 'torch.qr' = 1\nt = torch\nt.qr\n")
    (binding,) = case.bindings("torch")
    places = [release.places for use in case.uses("torch.qr") for release in case.planner.releases(use)]
    assert [place for (place,) in places] == [use.start for use in case.uses("torch.qr")]
    assert {place for (place,) in places} <= set(binding.uses)
    assert case.planner.releases(case.uses("t.qr")[0]) == ()
    assert case.planner.releases(case.names.uses[0]) == ()


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
    releases: list[Release] = []
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


def test_a_binding_that_is_swapped_is_not_relied_on() -> None:
    code = "import torch.nn\nfrom torch.nn import functional as F\nF.a(torch.b)\n"
    case = Case(code)
    assert isinstance(case.planner.swap(case.binding("F"), "torch.new.functional"), Swap)
    assert case.spell("torch.b", "torch.nn.functional.c") == Spelling("torch.nn.functional.c")
    case = Case(code)
    assert case.spell("torch.b", "torch.nn.functional.c") == Spelling("F.c")
    assert isinstance(case.planner.swap(case.binding("F"), "torch.new.functional"), Refusal)
