"""Names in modules that have to be imported, and the statements that import them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from import_case import Case

from torchmigrate.findings import Applicability, Edit, Fix
from torchmigrate.rewrite.apply import apply
from torchmigrate.rewrite.imports.edits import ImportStatement
from torchmigrate.rewrite.imports.planner import Spelling
from torchmigrate.semantics import submodules
from torchmigrate.source.text import Source


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
