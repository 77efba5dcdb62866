"""TM001 to TM009 on an invented history (api_fake.py): what is found, where, and what is left alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import api_fake
import pytest
from harness.program import only, run

from torchmigrate.catalogue.api_rules import EXAMPLES
from torchmigrate.catalogue.codes import OF_API as CODES
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.catalogue.model import Rule
from torchmigrate.engine.api_rules.own import held_libraries
from torchmigrate.findings import Finding, Severity, Timeline
from torchmigrate.report.reasons import message_of
from torchmigrate.versions import surface

OWN_RULES = Catalogue.of(
    [
        Rule("TM150", "attic-owned", "gone", "torch", {"torch.nn.Gone": {}}, removed="9.0"),
        Rule(
            "TM151",
            "scaled-async",
            "gone",
            "torch",
            {"torch.maths.scaled": {}},
            parameters=("async_op",),
            removed="1.5",
        ),
        Rule("TM152", "owned", "old", "torch", {"torch.aging.owned": {}}, deprecated="2.5"),
    ]
)


@pytest.fixture(autouse=True)
def invented(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    libraries = {
        "torch": api_fake.surface("torch", api_fake.TORCH),
        "torchvision": api_fake.surface("torchvision", api_fake.TORCHVISION),
    }
    monkeypatch.setattr(surface, "_load", libraries.get)
    yield


def check(
    text: str,
    *,
    catalogue: Catalogue | None = None,
    path: str = "x.py",
    codes: Collection[str] = CODES,
    **options: str,
) -> list[Finding]:
    given = [part for name, value in options.items() for part in (f"--{name}", value)]
    return run(text, *only(codes), *given, path=Path(path), rules=catalogue or Catalogue.of([])).findings


def found(text: str, **options: Any) -> list[str]:
    """Every finding as `CODE what-it-points-at`."""
    return [f"{item.code} {text[item.start : item.end]}" for item in check(text, **options)]


# ---- TM001 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("import torch\ntorch.attic.sums(x)\n", ["torch.attic"]),
        ("import torch\ny = torch.attic.deep.thing\n", ["torch.attic"]),
        ("import torch as t\nt.attic.sums(x)\nt.attic.sums(x)\n", ["t.attic", "t.attic"]),
        ("from torch import attic\nattic.sums(x)\n", ["attic"]),
        ("from torch import attic as a\na.sums(x)\n", ["attic as a"]),
        ("import torch.attic\ntorch.attic.sums(x)\n", ["torch.attic"]),
        ("import torch.attic.deep as d\nd.thing(x)\n", ["torch.attic"]),
        ("from torch.attic import sums, deep\nsums(x)\ndeep.thing(x)\n", ["torch.attic"]),
        ("from torch.attic.deep import thing\n", ["torch.attic"]),
        ("from torch.attic import *\nsums(x)\n", ["torch.attic"]),
        ("from torch.nn import (\n    Linear,\n    Gone,\n)\n", ["Gone"]),
        ("from torch import nn\nclass A(nn.Gone):\n    pass\n", ["nn.Gone"]),
        ("import torch\n@torch.attic.sums\ndef f(): pass\n", ["torch.attic"]),
        ("import torch\ndef f(x: torch.nn.Gone): pass\n", ["torch.nn.Gone"]),
        ("import torch\ndef f(x: 'torch.attic.deep'): pass\n", ["torch.attic"]),
        ("import torch\nf = torch.maths.raised\nf(x, y)\n", ["torch.maths.raised"]),
        ("import torch\nm = torch.maths\nm.raised(x, y)\n", ["m.raised"]),
        ("import torch\nf = getattr(torch.nn, 'Gone')\n", ["getattr(torch.nn, 'Gone')"]),
        ("from unittest import mock\nimport torch\nmock.patch('torch.attic.sums')\n", ["'torch.attic.sums'"]),
        ("import importlib\nm = importlib.import_module('torch.attic')\nm.sums(x)\n", ["'torch.attic'"]),
        ("import torch\nx = torch.zeros(3)\nx.unique_to_one()\n", ["x.unique_to_one"]),
        ("import torch\nprint(torch\n  .attic . sums)\n", ["torch\n  .attic"]),
        ("import torch\nprint(f'{1 + 1}')\nif torch.attic.sums(x): pass\n", ["torch.attic"]),
        ("import torchvision\ntorchvision.pieces.cut(x)\n", ["torchvision.pieces.cut"]),
        # a handler that gives up is no other way
        ("try:\n    import torch.attic\nexcept ImportError:\n    raise SystemExit\n", ["torch.attic"]),
        ("try:\n    from torch.attic import sums\nexcept ValueError:\n    sums = None\n", ["torch.attic"]),
        # the body surely fails, so that the handler runs
        (
            "try:\n    from torch.attic import sums\nexcept ImportError:\n    from torch.nn import Gone\n",
            ["Gone"],
        ),
    ],
)
def test_removed(text: str, places: list[str]) -> None:
    assert found(text) == [f"TM001 {place}" for place in places]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("import torch\ntorch.nn.Rnn(3).unrolled()\n", ["torch.nn.Rnn(3).unrolled"]),
        ("from torch.nn import Rnn\nr = Rnn(3)\nr.unrolled()\n", ["r.unrolled"]),
        ("from torch import nn\nr = nn.Rnn(3)\nf = r.unrolled\n", ["r.unrolled"]),
        (
            "from torch import nn\nclass A:\n    def __init__(self):\n        self.r = nn.Rnn(3)\n"
            "    def f(self):\n        return self.r.unrolled()\n",
            ["self.r.unrolled"],
        ),
        ("from torch import nn\nclass A(nn.Rnn):\n    pass\nA(3).unrolled()\n", ["A(3).unrolled"]),
        (
            "from torch import nn\nclass A(nn.Rnn):\n    def unrolled(self): pass\nA(3).unrolled()\n",
            [],
        ),
        ("from torch import nn\nr = nn.Rnn(3)\nr.unrolled = f\nr.unrolled()\n", []),
        ("from torch import nn\nr = nn.Rnn(3)\nif hasattr(r, 'unrolled'):\n    r.unrolled()\n", []),
        ("from torch import nn\nr = nn.Rnn(3) if x else mine()\nr.unrolled()\n", []),
        ("from torch import nn\ndef f(r: nn.Rnn):\n    r.unrolled()\n", []),
        ("from torch import nn\nr = nn.Rnn(3)\nr.misspelt()\nr.fed(x, y, misspelt=1)\n", []),
    ],
)
def test_removed_from_an_object(text: str, places: list[str]) -> None:
    assert found(text) == [f"TM001 {place}" for place in places]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("import torch.traced\n", ["torch.traced"]),
        ("import torch.traced as t\nt(x)\n", ["torch.traced"]),
        ("import torch.nn, torch.traced\n", ["torch.traced"]),
        ("from torch.traced import Tracer\n", ["Tracer"]),
        ("from torch import traced\ntraced(x)\n", []),
        ("import torch.nn.functional.relu\n", []),  # never was one
        ("try:\n    import torch.traced as t\nexcept ImportError:\n    t = None\n", []),
    ],
)
def test_function_in_place_of_a_module(text: str, places: list[str]) -> None:
    assert found(text) == [f"TM001 {place}" for place in places]
    assert found(text, target="1.4") == []


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.nn.Linear(1, 2)\ntorch.zeros(3).view(1)\n",
        "import torch\nif hasattr(torch, 'attic'):\n    torch.attic.sums(x)\n",
        "import torch\nif torch.__version__ < '1.8':\n    torch.attic.sums(x)\n",
        "import torch\nif hasattr(torch.nn, 'Gone'):\n    Gone = torch.nn.Gone\nelse:\n    Gone = None\n",
        "import torch\nf = getattr(torch.nn, 'Gone', None)\nif f is not None:\n    f(1)\n",
        "try:\n    from torch.attic import sums\nexcept ImportError:\n    sums = None\nsums(x)\n",
        "try:\n    import torch.attic\n    ok = True\nexcept Exception:\n    ok = False\n"
        "if ok:\n    torch.attic.sums(x)\n",
        "try:\n    from torch.maths import sums\nexcept ImportError:\n    from torch.attic import sums\n",
        "import torch\ntry:\n    torch.attic.sums(x)\nexcept AttributeError:\n    pass\n",
        "import torch\nif torch.__version__ < '1.8':\n    from torch.attic import sums\n"
        "else:\n    from torch.maths import sums\nsums(x)\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from torch.attic import sums\n",
        "import torch\ntorch.attic = object()\ntorch.attic.sums(x)\n",
        "import torch\ntorch.nn.Gone = 1\nprint(torch.nn.Gone)\n",
        "import torch\nsetattr(torch.nn, 'Gone', 1)\nprint(torch.nn.Gone)\n",
        "import sys, torch\nsys.modules['torch.attic'] = fake\nimport torch.attic\n",
        "import torch\ndel torch.attic\n",
        "from mine import *\nfrom torch.nn import *\nGone(3)\n",
        "import torch\nclass A:\n    def f(self):\n        return self.nn.Gone\n",
        "import torch\ntorch._C.attic()\ntorch.ops.attic.sums(x)\ntorch.classes.attic.A\n",
        "import torch\ntorch.backport.anything(x)\n",
        "import torch\ntorch.Group.old\n",
        "import torch\ntorch.float32.attic\ntorch.zeros.attic\n",
        "import torch\ndef f(x):\n    return x.unique_to_one()\n",
        "import torch\nfor m in (torch.nn, other):\n    m.Gone\n",
        "from unittest import mock\nimport torch\nmock.patch('torch.attic.sums', create=True)\n",
        "from .torch import attic\n",
        "import torch\nprint(torch.maths.raised.__doc__, torch.maths.raised.helper(x))\n",
        "torch = object()\ntorch.attic.sums(1)\n",
        "import torch\nclass B(torch.nn.Linear):\n    pass\nB(1, 2).attic\n",
    ],
)
def test_not_removed(text: str) -> None:
    assert found(text, codes=CODES - {"TM002"}) == []


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("super().__init__(3, old=1)", ["old=1"]),
        ("super(Mine, self).__init__(3, old=1)", ["old=1"]),
        ("nn.Rnn.__init__(self, 3, old=1)", ["old=1"]),
        ("super().__init__(3, 1, None)", ["None"]),
        ("nn.Rnn.__init__(self, 3, 1, None)", ["None"]),
        ("nn.Rnn.__init__(self, 3, 1)", []),
        ("nn.Rnn.__init__(*args)", []),
        ("super().__init__(3, 1)", []),
        ("super().__init__(3, old_size=1)", []),
        ("self.__init__(3, old=1)", []),
        ("super().old(3, old=1)", []),
    ],
)
def test_what_subclasses_pass_on(text: str, places: list[str]) -> None:
    """What `super().__init__` is given is what the class is given."""
    text = f"from torch import nn\nclass Mine(nn.Rnn):\n    def __init__(self, *args):\n        {text}\n"
    assert found(text, codes=CODES - {"TM002"}) == [f"TM003 {place}" for place in places]


def test_what_unknown_bases_are_given() -> None:
    """Another base may take it, or may stand between the class and that of the library."""
    method = "    def __init__(self):\n        super().__init__(3, old=1)\n"
    assert found(f"from torch import nn\nclass A(Other, nn.Rnn):\n{method}") == []
    between = "class B(nn.Rnn):\n    def __init__(self, size, old):\n        super().__init__(size)\n"
    assert found(f"from torch import nn\n{between}class A(B):\n{method}") == []
    through = "class B(nn.Rnn):\n    pass\n"
    assert found(f"from torch import nn\n{through}class A(B):\n{method}") == ["TM003 old=1"]


def test_constructors_newer_than_the_minimum() -> None:
    text = (
        "from torch import nn\nclass Mine(nn.Rnn):\n    def __init__(self):\n"
        "        super().__init__(3, fresh=True)\n"
    )
    assert found(text, minimum="1.6") == ["TM005 fresh=True"]
    assert found(text) == []


@pytest.mark.parametrize(
    ("call", "places"),
    [
        ("torch.nn.Linear(1, 2, biass=False)", ["biass=False"]),
        ("torch.maths.summed(x, dims=0)", ["dims=0"]),
        ("torch.maths.summed(x, axis=0)", []),  # compiled functions take it as numpy's do
        ("torch.maths.forward(1, anything=2)", []),
        ("torch.linalg.documented(x, anything=2)", []),
        ("torch.maths.unheard(x, anything=2)", ["torch.maths.unheard"]),
        ("torch.nn.Linear(1, 2, **options)", []),
    ],
)
def test_parameters_of_no_release(call: str, places: list[str]) -> None:
    assert found(f"import torch\n{call}\n") == [f"TM002 {place}" for place in places]


def test_words_of_removed() -> None:
    (finding,) = check("import torch\ntorch.attic.sums(x)\n")
    assert finding.severity is Severity.ERROR
    assert message_of(finding) == "`torch.attic` was removed in torch 1.8"
    assert finding.help == "`torch.maths.sums` has the same name"
    assert finding.timeline == Timeline("torch", removed="1.8")
    assert finding.symbol == "torch.attic"
    (finding,) = check("from torchvision.pieces import cut\n")
    assert message_of(finding) == "`torchvision.pieces.cut` was removed in torchvision 0.15"
    assert finding.timeline == Timeline("torchvision", removed="0.15")


def test_target_decides() -> None:
    text = "import torch\ntorch.attic.sums(x)\ntorch.maths.comes_and_goes(1)\n"
    assert found(text, target="1.4") == []
    assert found(text, target="1.6") == ["TM001 torch.maths.comes_and_goes"]
    assert found(text, target="2.1") == ["TM001 torch.attic"]


def test_the_catalogue_has_its_own() -> None:
    text = "import torch\ntorch.nn.Gone(3)\nfrom torch.nn import Gone\n"
    assert found(text, catalogue=OWN_RULES) == []
    assert found(text) == ["TM001 torch.nn.Gone", "TM001 Gone"]


def test_rules_that_are_off_hide_nothing() -> None:
    off = Rule("TM946", "attics", "old", "torch", {"torch.nn.Gone": {}}, outdated="1.5", opt_in=True)
    text = "import torch\ntorch.nn.Gone(3)\n"
    assert found(text, catalogue=Catalogue.of([off])) == ["TM001 torch.nn.Gone"]
    assert found(text, catalogue=Catalogue.of([])) == ["TM001 torch.nn.Gone"]


def test_only_what_is_selected() -> None:
    text = "import torch\ntorch.attic.sums(x)\ntorch.zeroes(3)\ntorch.maths.forward(1, c=2)\n"
    assert found(text, codes=frozenset({"TM003"})) == []
    assert found(text, codes=frozenset({"TM002"})) == ["TM002 torch.zeroes"]
    assert found(text, codes=frozenset()) == []


def test_suppressed() -> None:
    text = "import torch\ntorch.attic.sums(x)  # torchmigrate: ignore[TM001] old\n"
    assert found(text) == []


# ---- the libraries themselves ------------------------------------------------------------------------


def test_repository_of_a_library(tmp_path: Path) -> None:
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").touch()
    (tmp_path / "setup.py").touch()
    (tmp_path / "tests" / "deep").mkdir(parents=True)
    text = "import torchvision, torch\ntorchvision.pieces.cut(x)\ntorch.attic\n"
    assert found(text, path=str(tmp_path / "tests" / "deep" / "test_it.py")) == ["TM001 torch.attic"]
    assert held_libraries(tmp_path / "tests") == {"torchvision"}
    other = tmp_path / "tests" / "deep" / "own"
    other.mkdir()
    (other / "pyproject.toml").touch()
    assert held_libraries(other) == set()


def test_installed_packages_are_not_held(tmp_path: Path) -> None:
    installed = tmp_path / "site-packages"
    (installed / "torch").mkdir(parents=True)
    (installed / "torch" / "__init__.py").touch()
    (installed / "mine").mkdir()
    assert held_libraries(installed / "mine") == set()


# ---- TM002 -------------------------------------------------------------------------------------------


def test_unknown() -> None:
    text = "import torch\nfrom torch.nn import Liner\ntorch.zeroes(3)\ntorch.backport.x\ntorch.Group.x\ntorch.attic.nothing\n"
    assert found(text) == ["TM002 Liner", "TM002 torch.zeroes", "TM001 torch.attic"]
    _, finding, _ = check(text)
    assert message_of(finding) == "`torch.zeroes` does not exist in any release of torch from 1.2 to 2.15"
    assert finding.help == "did you mean `torch.zeros`?"
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize("name", ["npu.is_available()", "toaster.is_available()", "npu", "backends.mlu.x"])
def test_devices_of_other_packages(name: str) -> None:
    assert found(f"import torch\ntorch.{name}\n") == []


def test_objects_have_attributes_of_their_own() -> None:
    assert found("import torch\nx = torch.zeros(3)\nprint(x.mine)\nx.vieww(3)\n") == ["TM002 x.vieww"]


# ---- TM003 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "place", "message"),
    [
        (
            "maths.scaled(x, async_op=True)",
            "async_op=True",
            "`torch.maths.scaled` no longer takes `async_op` since torch 1.5",
        ),
        (
            "maths.scaled(x, 1, b)",
            "b",
            "`torch.maths.scaled` takes at most 2 positional arguments since torch 1.5, but 3 are given",
        ),
        (
            "maths.renamed(x, tensor2=y)",
            "tensor2=y",
            "`torch.maths.renamed` no longer takes `tensor2` since torch 1.5",
        ),
        ("maths.scaled(*a, async_op=True)", "async_op=True", None),
        ("maths.short(x, 1, keep=True)", "keep=True", None),
        ("maths.short(x, 1, True)", "True", None),
        (
            "nn.Rnn.made(3, 0)",  # no object of the class in front: a method of the class
            "3",
            "`torch.nn.Rnn.made` takes at most 0 positional arguments since torch 1.5, but 2 are given",
        ),
        ("nn.Rnn.made((3, 4))", "(3, 4)", None),
    ],
)
def test_removed_parameter(call: str, place: str, message: str | None) -> None:
    text = f"import torch\ntorch.{call}\n"
    assert found(text) == [f"TM003 {place}"]
    (finding,) = check(text)
    assert finding.severity is Severity.ERROR
    assert finding.timeline == Timeline("torch", removed="1.5")
    assert message_of(finding) == message or message is None


def test_keyword_only_says_so() -> None:
    (finding,) = check("import torch\ntorch.maths.scaled(x, 1, b)\n")
    assert finding.help == "pass `bias` by keyword"


@pytest.mark.parametrize(
    "call",
    [
        "maths.scaled(x, 1, bias=b)",
        "maths.forward(1, old=2)",  # **kwargs may take it
        "linalg.documented(x, tol=1)",  # read from a docstring
        "maths.many(1, 2, 3)",
        "maths.many(1, 2, 3, 4)",
        "maths.scaled(*a)",
        "maths.scaled(x, **k)",
        "zeros(1, 2, 3, 4, 5)",
        "nn.Linear(1, 2, True)",
        "nn.Rnn.made(rnn)",  # the object itself, perhaps
        "nn.Rnn.made(size=3, depth=0)",
        "maths.scaled(x, 1, b) if torch.__version__ < '1.5' else None",
    ],
)
def test_not_a_removed_parameter(call: str) -> None:
    assert found(f"import torch\ntorch.{call}\n") == []


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("make = functools.partial(torch.maths.scaled, async_op=True)", ["TM003 async_op=True"]),
        ("make = functools.partial(torch.maths.scaled, x, **{'async_op': True})", ["TM003 'async_op'"]),
        ("make = functools.partial(torch.maths.scaled, x)", []),
        ("make = functools.partial(torch.maths.forward, old=2)", []),
        ("make = functools.partial(build, torch.maths.scaled, async_op=True)", []),
        ("make = partial(torch.maths.scaled, async_op=True)", []),  # of some other module
    ],
)
def test_keywords_that_partial_prepares(line: str, places: list[str]) -> None:
    assert found(f"import functools\nimport torch\nfrom mine import partial\n{line}\n") == places


def test_parameter_with_another_way() -> None:
    text = "import torch\ntry:\n    torch.maths.scaled(x, async_op=True)\nexcept TypeError:\n    torch.maths.scaled(x)\n"
    assert found(text) == []


def test_parameter_that_is_asked_for() -> None:
    asks = "import inspect, torch\nhas = 'async_op' in inspect.signature(torch.maths.scaled).parameters\n"
    use = "if has:\n    torch.maths.scaled(x, async_op=True)\n"
    assert found(asks + use) == []
    assert found("import torch\nhas = 'async_op' in words\n" + use) == ["TM003 async_op=True"]


def test_parameter_with_a_rule_of_its_own() -> None:
    assert found("import torch\ntorch.maths.scaled(x, async_op=True)\n", catalogue=OWN_RULES) == []
    assert found("import torch\ntorch.maths.scaled(x, 1, b)\n", catalogue=OWN_RULES) == ["TM003 b"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("maths.prepared(m)", "`torch.maths.prepared` requires `config` and `inputs` since torch 1.5"),
        ("maths.prepared(m, c)", "`torch.maths.prepared` requires `inputs` since torch 1.5"),
        ("maths.prepared(m, config=c)", None),
        ("maths.prepared(m, **{'config': c})", None),
        ("maths.prepared(model=m, checks=False)", None),
        ("maths.fused(c, n)", "`torch.maths.fused` requires `training` since torch 1.5"),  # not `norm`
        ("maths.overloaded(1)", "`torch.maths.overloaded` requires `b` since torch 1.5"),
        ("nn.Scaler(2)", "`torch.nn.Scaler` requires `offset` since torch 1.5"),
        ("nn.Rnn(3).fed(x)", "`torch.nn.Rnn.fed` requires `hidden` since torch 1.5"),
    ],
)
def test_required_argument(call: str, message: str | None) -> None:
    text = f"import torch\ntorch.{call}\n"
    (finding,) = check(text)
    assert finding.code == "TM003"
    assert finding.severity is Severity.ERROR
    assert finding.timeline == Timeline("torch", removed="1.5")
    assert message_of(finding) == message or message is None
    assert text[finding.start : finding.end] == f"torch.{call.rpartition('(')[0]}"
    assert check(text, target="1.4") == []


@pytest.mark.parametrize(
    "call",
    [
        "maths.prepared(m, c, i)",
        "maths.prepared(m, c, inputs=i)",
        "maths.prepared(m, **{'config': c, 'inputs': i})",
        "maths.prepared(*m)",
        "maths.prepared(m, **k)",
        "maths.prepared()",  # no release takes it
        "maths.forwarded(1)",  # nor this, perhaps
        "maths.overloaded(1, 2)",
        "maths.overloaded(1, c=2)",
        "maths.prepared",
        "nn.Scaler(2, 0)",
        "maths.prepared(m) if torch.__version__ < '1.5' else None",
    ],
)
def test_no_required_argument(call: str) -> None:
    assert found(f"import torch\ntorch.{call}\n") == []


@pytest.mark.parametrize(
    ("method", "places"),
    [
        ("def __init__(self):\n        super().__init__(2)\n", ["TM003 super().__init__"]),
        ("def __init__(self):\n        nn.Scaler.__init__(self, 2)\n", ["TM003 nn.Scaler.__init__"]),
        ("def __init__(self):\n        super().__init__(2, 0)\n", []),
        ("def __init__(self):\n        nn.Scaler.__init__(self, 2, 0)\n", []),
    ],
)
def test_required_argument_of_a_base(method: str, places: list[str]) -> None:
    assert found(f"from torch import nn\nclass A(nn.Scaler):\n    {method}") == places


def test_required_argument_with_another_way() -> None:
    text = "import torch\ntry:\n    torch.maths.prepared(m, c, i)\nexcept TypeError:\n    torch.maths.prepared(m, c)\n"
    assert found(text) == []


def test_required_argument_of_a_deprecated_name() -> None:
    name = {"torch.maths.prepared": {}}
    text = "import torch\ntorch.maths.prepared(m, c)\n"
    deprecated = Catalogue.of([Rule("TM150", "prepared", "old", "torch", name, deprecated="1.5")])
    assert found(text, catalogue=deprecated, codes=[*CODES, "TM150"]) == [
        "TM003 torch.maths.prepared",
        "TM150 torch.maths.prepared",
    ]
    removed = Catalogue.of([Rule("TM150", "prepared", "old", "torch", name, removed="1.5")])
    assert found(text, catalogue=removed, codes=[*CODES, "TM150"]) == ["TM150 torch.maths.prepared"]
    missing = Rule("TM150", "prepared", "old", "torch", name, missing=("inputs",), changed="1.5")
    assert found(text, catalogue=Catalogue.of([missing])) == []


# ---- TM004 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "minimum", "places"),
    [
        ("torch.maths.moved(x, size)", None, ["size"]),
        ("torch.maths.moved(x, 3)", None, ["3"]),  # not a string as the new default
        ("torch.maths.moved(x, self.size)", None, ["self.size"]),
        ("torch.maths.moved(x, s)", None, []),  # code of today, for all that is known
        ("torch.maths.moved(x, s)", "1.3", ["s"]),
        ("torch.maths.moved(x, s)", "1.6", []),
        ("torch.maths.moved(x, 'mean')", "1.3", []),
        ("torch.maths.moved(x, mode)", "1.3", []),
        ("torch.maths.moved(x, s, False)", "1.3", ["s"]),
        ("torch.maths.moved(x, size=s)", "1.3", []),
        ("torch.maths.moved(*x, s)", "1.3", []),
        ("torch.maths.renamed(x, y)", "1.3", []),
        ("torch.maths.many(1, 2)", "1.3", []),
        ("torch.maths.short(x, 1)", "1.3", []),
    ],
)
def test_moved(call: str, minimum: str | None, places: list[str]) -> None:
    text = f"import torch\n{call}\n"
    assert found(text, minimum=minimum) == [f"TM004 {place}" for place in places]


def test_words_of_moved() -> None:
    (finding,) = check("import torch\ntorch.maths.moved(x, size)\n")
    assert (
        message_of(finding)
        == "argument 2 of `torch.maths.moved` is `mode` since torch 1.5; before, it was `size`"
    )
    assert finding.severity is Severity.WARNING
    assert finding.timeline == Timeline("torch", changed="1.5")


# ---- TM005 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("import torch\ntorch.func.vmap(f)\n", ["torch.func"]),
        ("from torch.func import vmap, grad\nvmap(f)\n", ["torch.func"]),
        ("from torch import func\nfunc.vmap(f)\n", ["func"]),
        ("import torch.func\ntorch.func.vmap(f)\n", ["torch.func"]),
        ("import torch\ntorch.zeros(3, pin_memory=True)\n", ["pin_memory=True"]),
        ("import torchvision\ntorchvision.fresh\n", ["torchvision.fresh"]),
        ("import torch\nif torch.__version__ >= '1.9':\n    torch.func.vmap(f)\n", ["torch.func"]),
        # not guarded, and not there at the target either
        ("import torch\ntorch.attic\ntorch.func\n", ["torch.func"]),
        ("import torch\ndef f(x: 'torch.func.vmap'): pass\n", []),
        ("import torch\nif torch.__version__ >= '2.0':\n    torch.func.vmap(f)\n", []),
        ("import torch\nif hasattr(torch, 'func'):\n    torch.func.vmap(f)\n", []),
        ("try:\n    from torch.func import vmap\nexcept ImportError:\n    vmap = None\nvmap(f)\n", []),
        ("import torch\ntry:\n    torch.attic\nexcept AttributeError:\n    torch.func\n", ["torch.func"]),
        ("try:\n    from torch.nn import Linear\nexcept ImportError:\n    from torch.func import vmap\n", []),
        ("try:\n    from torch.func import vmap\nexcept ImportError:\n    raise RuntimeError('old')\n", []),
        ("import torch\nassert hasattr(torch, 'func')\ntorch.func.vmap(f)\n", []),
        ("import torch\nif self.fused:\n    with x:\n        torch.func.vmap(f)\nelse:\n    old()\n", []),
        ("import torch\nif self.fused:\n    torch.func.vmap(f)\n", ["torch.func"]),
        ("import torch\nif x > 3:\n    torch.func.vmap(f)\nelse:\n    old()\n", ["torch.func"]),
        (
            "import torch\nif isinstance(x, int):\n    torch.func.vmap(f)\nelse:\n    old()\n",
            ["torch.func"],
        ),
        (
            "import torch\nif flag:\n    def f():\n        torch.func.vmap(f)\nelse:\n    f = None\n",
            ["torch.func"],
        ),
        ("import torch\ntorch.zeros(3, dtype=None)\ntorch.nn.Linear(1, 2)\n", []),
    ],
)
def test_needs_newer(text: str, places: list[str]) -> None:
    codes = frozenset({"TM005"})
    assert found(text, minimum="1.9", codes=codes) == [f"TM005 {place}" for place in places]
    assert found(text, codes=codes) == []


def test_words_of_needs_newer() -> None:
    (finding,) = check("import torch\ntorch.func.vmap(f)\n", minimum="1.13")
    assert message_of(finding) == "`torch.func` exists since torch 2.0, but the project supports 1.13"
    assert finding.timeline == Timeline("torch", added="2.0")
    assert finding.severity is Severity.WARNING
    (finding,) = check("import torch\ntorch.zeros(3, pin_memory=True)\n", minimum="1.13")
    assert (
        message_of(finding)
        == "`torch.zeros` takes `pin_memory` since torch 2.0, but the project supports 1.13"
    )
    assert finding.timeline == Timeline("torch", added="2.0")


def test_an_old_target_needs_newer_as_well() -> None:
    (finding,) = check("import torch\ntorch.func.vmap(f)\n", target="1.13")
    assert message_of(finding) == "`torch.func` exists since torch 2.0, but the target is 1.13"
    assert finding.code == "TM005"


# ---- TM006 and TM008 ---------------------------------------------------------------------------------

AGING = "import torch\nfrom torch import aging\n"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("aging.warned(x)\n", ["aging.warned"]),
        ("f = aging.warned\nf(x)\n", ["aging.warned"]),
        ("@aging.warned\ndef f(): pass\n", ["aging.warned"]),
        ("class A(aging.Old): pass\n", ["aging.Old"]),
        ("from torch.aging import warned, Old\nwarned(x)\n", ["warned"]),
        ("from torch.aging.module import f, g\nf(x)\n", ["torch.aging.module"]),
        ("f = getattr(aging, 'warned', None)\n", []),
        ("getattr(aging, 'warned')(x)\n", ["getattr(aging, 'warned')"]),
        ("import torch.aging.module\n", ["torch.aging.module"]),
        ("from torch.aging import module\n", ["module"]),
        ("def f(x: aging.Old): pass\n", []),
        ("aging._private(x)\n", []),
        ("with warnings.catch_warnings():\n    aging.warned(x)\n", []),
        ("def test():\n    with pytest.warns(FutureWarning):\n        aging.warned(x)\n", []),
        ("if torch.__version__ < '2.5':\n    aging.warned(x)\n", []),
        ("if hasattr(aging, 'fresh'):\n    aging.fresh(x)\nelse:\n    aging.warned(x)\n", []),
        ("try:\n    from torch.aging import fresh\nexcept ImportError:\n    aging.warned(x)\n", []),
        ("aging = mine()\naging.warned(x)\n", []),
        ("aging.fresh(x)\n", []),
    ],
)
def test_deprecated(text: str, places: list[str]) -> None:
    text = AGING + text
    assert found(text, codes=frozenset({"TM006", "TM008"})) == [f"TM006 {place}" for place in places]


def test_words_of_deprecated() -> None:
    (finding,) = check(AGING + "aging.warned(x)\n")
    assert message_of(finding) == "`torch.aging.warned` is deprecated since torch 2.5"
    assert finding.help == "use `torch.aging.fresh`; torch says: Use `torch.aging.fresh`"
    assert finding.severity is Severity.WARNING
    assert finding.timeline == Timeline("torch", deprecated="2.5")
    (finding,) = check(AGING + "aging.Old(x)\n")
    assert finding.help == "torch says: Old will go; use `gone_as_well`", "what it names does not exist"
    (finding,) = check(AGING + "aging.documented(x)\n")
    assert (finding.code, finding.severity) == ("TM008", Severity.INFO)
    assert finding.timeline == Timeline("torch", outdated="2.5")
    assert check(AGING + "aging.warned(x)\n", target="2.4", codes=frozenset({"TM006"})) == []


def test_deprecated_of_the_catalogue() -> None:
    text = AGING + "aging.owned(x)\n"
    assert found(text, catalogue=OWN_RULES) == []
    assert found(text) == ["TM006 aging.owned"]


@pytest.mark.parametrize(
    ("call", "places"),
    [
        ("options(x, old=1)", ["old=1"]),
        ("options(x, 1)", ["1"]),
        ("options(x, old=size)", ["old=size"]),
        ("options(x, old=None)", []),
        ("options(x, old=self.old)", []),
        ("options(x, old=given)", []),
        ("options(x, flag=True)", ["flag=True"]),
        ("options(x, flag=False)", []),
        ("options(x, flag=size)", []),
        ("options(x, kind='b')", ["kind='b'"]),
        ("options(x, kind='a')", []),
        ("options(x, new=1)", []),
        ("options(*args)", []),
    ],
)
def test_deprecated_arguments(call: str, places: list[str]) -> None:
    text = f"{AGING}size = 3\ndef f(self, x, given=None):\n    aging.{call}\n"
    assert found(text) == [f"TM006 {place}" for place in places]


def test_words_of_deprecated_arguments() -> None:
    (finding,) = check(AGING + "aging.options(x, kind='b')\n")
    assert message_of(finding) == "`kind='b'` of `torch.aging.options` is deprecated since torch 2.5"
    assert finding.help == "torch says: kind='b' is deprecated, use kind='a'"


# ---- settings of configuration modules ---------------------------------------------------------------

SETTINGS = "import torch\nfrom torch._inductor import config\n"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("config.gone = 1\n", ["TM001 config.gone"]),
        ("config.gone += 1\n", ["TM001 config.gone"]),
        ("del config.gone\n", ["TM001 config.gone"]),
        ("config.gone = 1\nprint(config.gone)\n", ["TM001 config.gone", "TM001 config.gone"]),
        ("config.cpp.gone = 1\n", ["TM001 config.cpp.gone"]),
        ("import torch._inductor.config as c\nc.gone = 1\n", ["TM001 c.gone"]),
        ("setattr(config, 'gone', 1)\n", ["TM001 'gone'"]),
        ("def test(monkeypatch):\n    monkeypatch.setattr(config, 'gone', 1)\n", ["TM001 'gone'"]),
        ("def test(monkeypatch):\n    monkeypatch.setattr(config, 'gone', 1, raising=False)\n", []),
        ("with config.patch(gone=1, verbose=2): pass\n", ["TM001 gone=1"]),
        ("with config.patch('cpp.gone', 1): pass\n", ["TM001 'cpp.gone'"]),
        ("@config.patch({'gone': 1, 'verbose': 2})\ndef f(): pass\n", ["TM001 'gone'"]),
        ("more = {'gone': 1}\nwith config.patch(more): pass\n", ["TM001 'gone'"]),
        ("with config.patch(**dict(gone=1)): pass\n", ["TM001 gone=1"]),
        ("torch.compile(f, options={'cpp.gone': 1})\n", ["TM001 'cpp.gone'"]),
        ("@torch.compile(options={'gone': 1})\ndef f(): pass\n", ["TM001 'gone'"]),
        ("torch.compile(f, options={'gone': 1}, backend='mine')\n", []),
        ("config.old = 1\n", ["TM006 config.old"]),
        ("print(config.old)\n", ["TM006 config.old"]),
        ("torch.compile(f, options={'old': 1})\n", ["TM006 'old'"]),
        ("config.unread = 1\n", ["TM007 config.unread"]),
        ("print(config.unread)\n", []),
        ("config.misspelt = 1\n", ["TM002 config.misspelt"]),
        ("config.renamed = 1\n", ["TM009 config.renamed"]),
        ("if hasattr(config, 'fresh'):\n    config.fresh = 1\nelse:\n    config.renamed = 1\n", []),
        ("config.second = 1\n", []),
        ("config.verbose = 1\nconfig.cpp.threads = 2\nconfig.patch(verbose=1)\n", []),
        ("if hasattr(config, 'gone'):\n    config.gone = 1\n", []),
        ("if torch.__version__ < '2.5':\n    config.gone = 1\n", []),
        ("try:\n    config.gone = 1\nexcept AttributeError:\n    pass\n", []),
        (
            "try:\n    torch.compile(f, options={'gone': 1})\nexcept RuntimeError:\n    pass\n",
            ["TM001 'gone'"],
        ),
        (
            "try:\n    torch.compile(f, options={'gone': 1})\nexcept RuntimeError as e:\n"
            "    if 'attribute' not in str(e):\n        raise\n",
            [],
        ),
        ("try:\n    config.gone = 1\nexcept Exception:\n    pass\n", []),
        ("config = mine()\nconfig.gone = 1\n", []),
        ("options = {'gone': 1}\noptions = {}\nconfig.patch(options)\n", []),
    ],
)
def test_settings(text: str, places: list[str]) -> None:
    assert found(SETTINGS + text) == places


def test_words_of_settings() -> None:
    (finding,) = check(SETTINGS + "config.moved = 1\n")
    assert message_of(finding) == "`torch._inductor.config.moved` was removed in torch 2.5"
    assert finding.severity is Severity.ERROR
    assert finding.help == "`torch.config.moved` has the same name"
    (finding,) = check(SETTINGS + "config.old = 1\n")
    assert finding.help == "use `torch._inductor.config.verbose`"
    (finding,) = check(SETTINGS + "config.unread = 1\n")
    assert message_of(finding) == (
        "`torch._inductor.config.unread` has no effect since torch 2.5: torch does not read it"
    )
    assert finding.severity is Severity.INFO


def test_settings_of_which_the_minimum_has_only_the_old_name() -> None:
    text = SETTINGS + "config.renamed = 1\n"
    assert found(text, minimum="2.1") == []
    assert found(text, minimum="2.5") == ["TM009 config.renamed"]


def test_settings_that_are_too_new() -> None:
    text = SETTINGS + "config.fresh = 1\nconfig.patch(fresh=2)\n"
    assert found(text, minimum="2.1") == ["TM005 config.fresh"]
    assert found(text, minimum="2.5") == []
    assert found(text, target="2.4") == ["TM005 config.fresh"]


# ---- the examples that `explain` shows ---------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(CODES))
def test_examples_are_found_in_the_real_data(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    minimum = "1.7" if code in ("TM004", "TM005") else None
    text = f"import torch, torchvision\n{EXAMPLES[code][0]}\n"
    assert [item.code for item in check(text, minimum=minimum, target="2.15")] == [code]


# ---- what the data gives to the rules of the catalogue -----------------------------------------------


def test_guards_of_the_catalogue_ask_the_data() -> None:
    rules = Catalogue.of(
        [Rule("TM160", "linear", "old", "torch", {"torch.nn.Linear": {"new": "torch.nn.L"}}, removed="2.0")]
    )
    text = "import torch\nif not hasattr(torch, 'func'):\n    torch.nn.Linear(1, 2)\n"
    assert found(text, catalogue=rules, codes=frozenset({"TM160"})) == []
    assert found(text, catalogue=rules, codes=frozenset({"TM160"}), target="2.0") == []
