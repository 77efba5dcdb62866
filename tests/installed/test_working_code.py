"""What works on the installed torch works after its safe fixes: a sample of all names, and what came up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from harness.launcher import launch, quick_command
from harness.summary import HAS_TORCH
from working.lines import Line, Members, files, lines, sampled
from working.run import changes, check, differences, installed_release, named_by_rules, read_library

EVERY = 400  # the whole is `python tools/working_code.py`


def fixed(text: str, directory: Path, *options: str, name: str = "example.py") -> tuple[str, str]:
    """A file after `--fix`, and what was said of it."""
    path = directory / name
    path.write_text(text)
    command = ("check", "--isolated", "--fix", "--output-format", "concise", *options, name)
    done = launch(directory, *command)
    assert done.returncode in (0, 1), done.stderr
    new = path.read_text()
    launch(directory, *command)
    assert path.read_text() == new, "a second run changes nothing"
    return new, done.stdout


# ---- all names -----------------------------------------------------------------------------------------


@pytest.mark.skipif(not HAS_TORCH, reason="compares with the installed torch")
def test_what_works_still_works(tmp_path: Path) -> None:
    found = list(sampled(lines(read_library()), EVERY, named_by_rules()))
    target = ("--target", installed_release())
    pairs = []
    # A fifteenth of the sample each.
    for number, options in enumerate(((), ("--select", "ALL"), ("--minimum", "1.13"))):
        directory = tmp_path / str(number)
        directory.mkdir()
        program = quick_command("check", "--isolated", "--fix", *target, *options)
        changed = changes(found[number::15], program, directory)
        assert len(changed) > 80
        pairs += changed
    assert differences(pairs) == []


def test_a_sample_is_always_the_same() -> None:
    some = {
        f"torch.m{number}": Members({"f": None, "C": number // 2}, ["f"], {})
        if number % 2
        else Members({"f": None, "C": number // 2}, ["f"], {str(number // 2): (["a", "b"], ["c"])})
        for number in range(50)
    }
    every = list(lines(some))
    # Each class has two names, and its attributes are tried under the first.
    assert len(every) == 50 * (3 + 2 * 2 + 1) + 25 * (2 * 2 + 1)
    assert list(sampled(every, 1, lambda _: False)) == every
    part = list(sampled(every, 7, lambda name: name == "torch.m3.f"))
    assert part == list(sampled(iter(every), 7, lambda name: name == "torch.m3.f"))
    assert len(part) < len(every) / 4
    assert Line("torch.m3.f", ("from torch.m3 import f as b@", "return b@")) in part
    texts = list(files(part))
    assert "".join(texts).count("def f") == len(part)
    assert "from torch.m3 import *\n\n\ndef f0():\n    return f\n" in texts


@pytest.mark.skipif(not HAS_TORCH, reason="runs code on torch")
def test_what_works_no_more_is_said(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import pathlib, sys\n"
        "for path in pathlib.Path(sys.argv[-1]).glob('lines*.py'):\n"
        "    text = path.read_text()\n"
        "    text = text.replace('import add', 'import addd').replace('torch.sin', 'torch.cos')\n"
        "    text = text.replace('import torch.fft as a', 'import torch.func as a')\n"
        "    path.write_text('import torch\\n' + text.replace('import torch\\n    d', 'd'))\n"
    )
    wrong = [
        Line("torch.add", ("from torch import add", "return add")),
        Line("torch.sin", ("import torch", "return torch.sin")),
        Line("torch.fft", ("import torch.fft as a", "return a")),
    ]
    right = [
        Line("torch.gone", ("from torch import gone", "return gone")),
        Line("torch.Tensor", ("import torch", "d = torch.Tensor.new_tensor", "return d")),
        Line("torch.cos", ("return cos",), "from torch import *"),
    ]
    outcome = check([*wrong, *right], [sys.executable, str(program)], tmp_path)
    assert (outcome.lines, outcome.changed) == (6, 4)
    assert [line.partition("  ->  ")[0] for line in outcome.differences] == [
        "from torch import add; return add",
        "import torch.fft as a; return a",
        "import torch; return torch.sin",
    ]


# ---- members of modules that moved -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        # Already in the new place; its base class is known under the old one.
        "from torch.ao.quantization import PlaceholderObserver\nx = PlaceholderObserver.with_args(dtype=int)\n",
        "import torch.ao.quantization as q\nx = q.HistogramObserver.with_callable_args(a=f)\n",
        "import torch\nx = torch.ao.quantization.FakeQuantize.with_args(quant_min=0)\n",
        "from torch.ao.nn.quantized import Linear\nx = Linear.from_float\n",
        "from torch.nn import Linear\nx = Linear.forward, Linear.weight_norm\n",
        # They live elsewhere, and stay where they are for now.
        "import torch.quantization._numeric_suite as ns\nx = ns.compare_weights\n",
        "from torch.quantization import _numeric_suite_fx\n",
        "from torch.quantization.fx.fusion_patterns import DefaultFuseHandler\n",
        "from torch.quantization.fx.quantization_types import Pattern\n",
        "from torch.nn.quantized._reference.modules import Linear\n",
        "import torch.nn.quantized._reference as reference\n",
        "from torch.distributed._tensor.placement_types import DTensorSpec, TensorMeta\n",
        # A submodule of the name of the function that moved.
        "from torch.distributed._composable.fsdp.fully_shard import FSDPModule\n",
        "import torch.distributed._composable.fsdp.fully_shard as module\n",
        # There, the function hides the submodule.
        "import torch.quantization.fx.convert as module\nx = vars(module)\n",
        # A module that is used as a value is not the same as another module.
        "import torch.quantization as q\nx = vars(q)\n",
        "import torch\nx = torch.quantization\n",
        "from torch import quantization\n__all__ = ['quantization']\n",
        # Objects have the new name, the class does not.
        "from torchvision.datasets import MNIST\nx = MNIST.train_data\n",
        "import torch\nx = torch.utils.data.ConcatDataset.cummulative_sizes\n",
        # What a name in a module is called does not say that it moved with the others.
        "import torch.quantization as q\nx = q.__file__\n",
    ],
)
def test_what_did_not_move_stays(code: str, tmp_path: Path) -> None:
    assert fixed(code, tmp_path)[0] == code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from torch.quantization import MinMaxObserver, _numeric_suite\nx = MinMaxObserver.with_args()\n",
            "from torch.quantization import _numeric_suite\nfrom torch.ao.quantization import MinMaxObserver\n"
            "x = MinMaxObserver.with_args()\n",
        ),
        (
            "import torch.quantization as tq\nx = tq.prepare, tq.fuse_modules\n",
            "import torch.ao.quantization as tq\nx = tq.prepare, tq.fuse_modules\n",
        ),
        (
            "import torch.quantization as tq\nx = tq.prepare, tq._numeric_suite\n",
            "import torch\nimport torch.quantization as tq\nx = torch.ao.quantization.prepare, tq._numeric_suite\n",
        ),
        (
            "import torch.quantization\nx = torch.quantization.prepare(m)\n",
            "import torch.ao.quantization\nx = torch.ao.quantization.prepare(m)\n",
        ),
        (
            "import torch.quantization\nx = torch.quantization.prepare, torch.quantization._numeric_suite\n",
            "import torch.quantization\nx = torch.ao.quantization.prepare, torch.quantization._numeric_suite\n",
        ),
        (
            "from torch.quantization.fuse_modules import fuse_known_modules\n",
            "from torch.ao.quantization.fuse_modules import fuse_known_modules\n",
        ),
        (
            "from torch.quantization.fx.convert import convert\n",
            "from torch.ao.quantization.fx.convert import convert\n",
        ),
        (  # as an attribute of the package, it would be the function
            "import torch.quantization.fx.convert as module\nx = module.convert\n",
            "from torch.ao.quantization.fx.convert import convert\nx = convert\n",
        ),
        (
            "from torch.distributed._tensor.placement_types import DTensorSpec, Shard\n",
            "from torch.distributed._tensor.placement_types import DTensorSpec\n"
            "from torch.distributed.tensor.placement_types import Shard\n",
        ),
        (
            "from torch.distributed._composable.fsdp import fully_shard\nfully_shard(m)\n",
            "from torch.distributed.fsdp import fully_shard\nfully_shard(m)\n",
        ),
    ],
)
def test_what_moved_moves(before: str, after: str, tmp_path: Path) -> None:
    assert fixed(before, tmp_path)[0] == after


@pytest.mark.parametrize(
    "code",
    [
        "from torch.quantization import default_mappings\n",
        "from torch.quantization.default_mappings import DEFAULT_MODULE_MAPPING\n",
        "import torch\nx = torch.quantization.get_qat_module_mappings()\n",
        "from torch.quantization.quantize_fx import prepare_static_fx\n",
    ],
)
def test_what_is_gone_from_both_places_is_said_to_be_gone(code: str, tmp_path: Path) -> None:
    new, said = fixed(code, tmp_path)
    assert new == code
    assert "TM001" in said and "was removed in torch 1." in said and " moved" not in said


@pytest.mark.parametrize(
    ("code", "since"),
    [
        ("from torch.quantization import MinMaxObserver\n", "1.11"),  # `requires` of the rule: 1.10
        ("from torch.quantization import fuse_modules\n", "1.10"),
        ("import torch.quantization\nx = torch.quantization.MinMaxObserver\n", "1.11"),
    ],
)
def test_a_member_is_in_the_new_place_since_its_own_release(code: str, since: str, tmp_path: Path) -> None:
    major, _, minor = since.partition(".")
    assert fixed(code, tmp_path, "--minimum", since)[0] != code
    assert fixed(code, tmp_path, "--minimum", f"{major}.{int(minor) - 1}")[0] == code


# ---- new names that are outdated themselves ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("minimum", "target", "new"),
    [
        (None, "2.12", "all_gather_into_tensor"),
        (None, "2.13", "all_gather_single"),
        (None, "2.14", "all_gather_single"),
        (None, "2.15", "all_gather_into_tensor"),
        ("2.12", "2.15", "_all_gather_base"),
        ("2.14", "2.15", "all_gather_single"),
        ("2.15", "2.15", "all_gather_into_tensor"),
        ("2.1", "2.12", "all_gather_into_tensor"),
    ],
)
def test_a_new_name_that_warns_in_the_range_is_no_fix(
    minimum: str | None, target: str, new: str, tmp_path: Path
) -> None:
    code = "import torch.distributed as dist\ndist._all_gather_base(out, x)\n"
    options = ["--target", target, *(["--minimum", minimum] if minimum else [])]
    assert fixed(code, tmp_path, *options)[0] == code.replace("_all_gather_base", new)


# ---- a file of the library's name --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["functorch.py", "torch.py"])
def test_a_module_never_imports_itself(name: str, tmp_path: Path) -> None:
    library = name.removesuffix(".py")
    code = {
        "functorch": "import functorch\nf = functorch.vmap(g)\n",
        "torch": "import torch\ny = torch.ger(a, b)\n",
    }
    new, _ = fixed(code[library], tmp_path, name=name)
    assert new != code[library]
    # To the others in the directory it is the module of that name.
    assert fixed(code[library], tmp_path, name="other.py")[0] == code[library]


def test_a_package_of_the_name_is_imported_by_the_file_too(tmp_path: Path) -> None:
    (tmp_path / "functorch").mkdir()
    (tmp_path / "functorch" / "__init__.py").write_text("")
    code = "import functorch\nf = functorch.vmap(g)\n"
    assert fixed(code, tmp_path, name="functorch.py")[0] == code
