"""Every example with a fix in other layouts and surroundings; `check_layouts` says what must hold."""

from __future__ import annotations

import pytest
from harness.catalogue import catalogue, example_id, loaded_rules

from torchmigrate.catalogue import layouts
from torchmigrate.catalogue.check_layouts import check_layouts

RULES = [pytest.param(item, id=example_id(item)) for item in loaded_rules()]


@pytest.mark.parametrize("item", RULES)
def test_layouts(item):
    failures = list(check_layouts(item, catalogue()))
    assert not failures, "\n\n".join(map(str, failures))


CALL = "import torch\n\ny = torch.old(a, k=b)\n"


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("parentheses", "y = torch.old((a), k=(b))"),
        ("one-a-line", "y = torch.old(\n    a,\n    k=b,\n)"),
        ("comment-between", "y = torch.old(\n    a  # before 29-1\n    ,  # after 29-1\n    k=b  # 34-2\n)"),
        ("backslashes", "y = torch \\\n    .old( \\\n    a, \\\n    k=b \\\n)"),
        ("semicolons", "beside_it = 0;y = torch.old(a, k=b);beside_it = 0;"),
    ],
)
def test_layout(name, after):
    text = layouts.laid_out(name, layouts.Code(CALL))
    assert text is not None
    assert text.partition("\n\n")[2] == after + "\n"


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("lambda", "y = (lambda: torch.old(a, k=b))()"),
        ("fstring-double", 'y = f"<{torch.old(a, k=b)}>"'),
        ("await", "async def beside_it():\n    return await torch.old(a, k=b)"),
        ("decorator", "@torch.old(a, k=b)\ndef beside_it():\n    pass"),
    ],
)
def test_surrounding(name, after):
    code = layouts.Code(CALL)
    text = layouts.surrounded(name, code, layouts.statements(code, {3}))
    assert text == f"import torch\n\n{after}\n"
