"""Imports that change what they bind."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from harness.fixing import checked_and_fixed
from import_case import Case

from torchmigrate.findings import Applicability, Fix
from torchmigrate.rewrite.apply import apply
from torchmigrate.rewrite.imports.planner import Refusal, Spelling, Swap


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
        # A string annotation: its name is changed as well, where all that have it are known.
        ('from torch import ger\nf: "ger[ger]"\n', {"ger": "torch.outer"}, 'from torch import outer\nf: "outer[outer]"\n'),
        ('from torch import ger\nf: "ger"\n# ger\n', {"ger": "torch.outer"}, 'from torch import outer as ger\nf: "ger"\n# ger\n'),
        ('from torch import ger\nf: "ger"\ng: """(\nger)"""\n', {"ger": "torch.outer"},
         'from torch import outer as ger\nf: "ger"\ng: """(\nger)"""\n'),
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


def test_a_binding_that_is_swapped_is_not_relied_on() -> None:
    code = "import torch.nn\nfrom torch.nn import functional as F\nF.a(torch.b)\n"
    case = Case(code)
    assert isinstance(case.planner.swap(case.binding("F"), "torch.new.functional"), Swap)
    assert case.spell("torch.b", "torch.nn.functional.c") == Spelling("torch.nn.functional.c")
    case = Case(code)
    assert case.spell("torch.b", "torch.nn.functional.c") == Spelling("F.c")
    assert isinstance(case.planner.swap(case.binding("F"), "torch.new.functional"), Refusal)


SCHEDULERS = """\
from torch.optim.lr_scheduler import _LRScheduler
class Warmup(_LRScheduler):
    pass
def known(scheduler):
    return isinstance(scheduler, _LRScheduler)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SCHEDULERS, SCHEDULERS.replace("_LRS", "LRS")),
        # One that neither rule changes, and a name that others may give another meaning.
        (
            f"{SCHEDULERS}name = _LRScheduler.__name__\n",
            f"{SCHEDULERS}name = _LRScheduler.__name__\n".replace(
                "import _LRScheduler", "import LRScheduler as _LRScheduler, LRScheduler"
            ).replace("scheduler, _LRS", "scheduler, LRS"),
        ),
        (
            f"{SCHEDULERS}found = globals()[name]\n",
            f"{SCHEDULERS}found = globals()[name]\n".replace(
                "import _LRScheduler", "import LRScheduler as _LRScheduler, LRScheduler"
            ).replace("scheduler, _LRS", "scheduler, LRS"),
        ),
    ],
)
def test_uses_that_two_rules_give_the_same_name(before: str, after: str) -> None:
    assert checked_and_fixed(before, ["TM450", "TM456"])[1] == after


def test_names_that_keep_theirs_stay_in_one_statement() -> None:
    """A use that only old releases reach is no reason to take an import apart."""
    code = dedent("""\
        from torch.distributed._tensor import (
            DTensor,
            Placement,  # of which there are three
            Shard as ShardPlacement,
        )

        try:
            from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
        except ImportError:

            def compute_local_shape_and_global_offset(shape, mesh, placements: list[Placement]):
                pass


        def is_sharded(tensor: DTensor, placement: Placement) -> bool:
            return isinstance(placement, ShardPlacement)
        """)
    new = checked_and_fixed(code, ["TM502"])[1]
    assert new == code.replace("torch.distributed._tensor", "torch.distributed.tensor")
