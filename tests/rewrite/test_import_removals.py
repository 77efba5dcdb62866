"""Imports that go when no use is left."""

from __future__ import annotations

import pytest
from import_case import Case, rewritten

from torchmigrate.findings import DroppedUse


def removed(code: str, *names: str, is_init: bool = False) -> str:
    """The text without the imports of `names`, every use of which is released."""
    case = Case(code, is_init=is_init)
    releases = [DroppedUse(item.id, tuple(item.uses)) for name in names for item in case.bindings(name)]
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
        # Gaps: the longer one stays.
        ("from torch import qr\n\n\nqr\n", "qr", "qr\n"),
        ("import os\n\nfrom torch import qr\n\nqr\n", "qr", "import os\n\nqr\n"),
        ("import os\nfrom torch import qr\n\nqr\n", "qr", "import os\n\nqr\n"),
        ("import os\n\nfrom torch import qr\nimport re\nqr\n", "qr", "import os\n\nimport re\nqr\n"),
        ("import os\r\n\r\nfrom torch import qr\r\n\r\n\r\nqr\r\n", "qr", "import os\r\n\r\n\r\nqr\r\n"),
        ("# c\n\n\nfrom torch import qr\n\nimport re\nqr\n", "qr", "# c\n\n\nimport re\nqr\n"),
        ("import os\n\nfrom torch import qr\n\nfrom torch import a\n\nqr\n", "qr a", "import os\n\nqr\n"),
        # Suites are not left empty.
        ("def f():\n    from torch import qr\n", "qr", "def f():\n    pass\n"),
        ("def f():\n    from torch import qr\n    import math\n", "qr math", "def f():\n    pass\n"),
        ("for x in y:\n    from torch import qr  # noqa\n", "qr", "for x in y:\n    pass  # noqa\n"),
        ("for x in y: from torch import qr\n", "qr", "for x in y: pass\n"),
        ("if x: from torch import qr; qr(A)\n", "qr", "if x: qr(A)\n"),
        ("if x(): import math; from torch import qr\n", "qr math", "if x(): pass\n"),
        ("def f():\n    'doc'\n    from torch import qr\n", "qr", "def f():\n    'doc'\n"),
        # A test that has nothing left to ask for goes, where it only looks at values.
        ("y = 1\nif x.a:\n    from torch import qr\n\nz = 2\n", "qr", "y = 1\n\nz = 2\n"),
        ("def f():\n    if not x['a'] and y is None: from torch import qr\n    g()\n", "qr", "def f():\n    g()\n"),
        ("def f():\n    if x:\n        from torch import qr\n", "qr", "def f():\n    pass\n"),
        ("if x:\n    if y:\n        from torch import qr\nif z:\n    from torch import qr\n", "qr", ""),
        ("if x():\n    from torch import qr\ny = 1\n", "qr", "if x():\n    pass\ny = 1\n"),
        ("if x:  # why\n    from torch import qr\ny = 1\n", "qr", "if x:  # why\n    pass\ny = 1\n"),
        ("if x:\n    from torch import qr\nelse:\n    y = 1\n", "qr", "if x:\n    pass\nelse:\n    y = 1\n"),
        (
            "if x:\n    y = 1\nelif z:\n    from torch import qr\ny = 1\n",
            "qr",
            "if x:\n    y = 1\nelif z:\n    pass\ny = 1\n",
        ),
        ("y = 1; z = 2\nif x: from torch import qr\ny = 1\n", "qr", "y = 1; z = 2\ny = 1\n"),
        # Blank lines at the beginning of a suite.
        ("if x():\n    from torch import qr\n\n    y = qr\n", "qr", "if x():\n    y = qr\n"),
        (
            "def f():\n    from torch import qr\n\n    import math\n\n    # why\n    y = qr\n",
            "qr math",
            "def f():\n    # why\n    y = qr\n",
        ),
        ("def f():\n    z\n    from torch import qr\n\n    y = qr\n", "qr", "def f():\n    z\n\n    y = qr\n"),
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
    releases = [DroppedUse(case.binding(name).id, ()) for name in ("qr", "cat")]
    assert case.result(case.planner.removals(releases)) == "import torch\nfrom torch import cat\ncat(A)\n"


def test_releases() -> None:
    case = Case("import torch\ntorch.qr(A)\nx = getattr(torch, 'qr')\nx: 'torch.qr' = 1\nt = torch\nt.qr\n")
    (binding,) = case.bindings("torch")
    places = [release.places for use in case.uses("torch.qr") for release in case.planner.releases(use)]
    assert [place for (place,) in places] == [use.start for use in case.uses("torch.qr")]
    assert {place for (place,) in places} <= set(binding.uses)
    assert case.planner.releases(case.uses("t.qr")[0]) == ()
    assert case.planner.releases(case.names.uses[0]) == ()


def test_imports_in_functions_of_a_package() -> None:
    code = "def f(A):\n    from torch import qr\n    return qr(A)\n"
    assert removed(code, "qr", is_init=True) == "def f(A):\n    return qr(A)\n"
