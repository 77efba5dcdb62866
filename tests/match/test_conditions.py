"""What rules and cases ask of arguments, and what a rule finds."""

from __future__ import annotations

import pytest
from match_support import ABSENT, ANY, GIVEN, first_match, is_, make_rule

from torchmigrate.catalogue.model import Condition
from torchmigrate.match.conditions import same

POSITIONAL = Condition("positional")
NOT_NONE = Condition("not-value", (None,))
TAKES_TWO = Condition("takes", (2,))
WORD = Condition("matches", (r"\bobject\b",))
KEYS = Condition("keys", ("a", "b"))
NOT_OURS = Condition("not-prefix", ("pytorch/", "torch:"))


def finds(call: str, **others: object) -> bool:
    code = f"import torch\nFLAG = True\nSIZES = (1, 2)\n{call}\n"
    return first_match(code, make_rule(symbols=["torch.old", "torch.Tensor.old"], **others)) is not None


@pytest.mark.parametrize(
    ("condition", "call", "expected"),
    [
        (is_(1), "torch.old(0)", True),  # by default
        (is_(1), "torch.old(0, 1)", True),
        (is_(1), "torch.old(0, b=1.0)", True),
        (is_(1), "torch.old(0, True)", False),
        (is_(True), "torch.old(0, FLAG)", True),
        (is_(True), "torch.old(0, 1)", False),
        (is_(-1), "torch.old(0, -1)", True),
        (is_("x"), "torch.old(0, 'x')", True),
        (is_((1, 2)), "torch.old(0, (1, 2))", True),
        (is_((1, 2)), "torch.old(0, [1, 2])", True),
        (is_((1, 2)), "torch.old(0, [True, 2])", False),
        (is_(0, 2), "torch.old(0, 2)", True),
        (is_(1), "torch.old(0, n)", False),
        (is_(1), "torch.old(0, **o)", False),
        (is_(1), "torch.old(*a)", False),
        (NOT_NONE, "torch.old(0)", True),
        (NOT_NONE, "torch.old(0, None)", False),
        (NOT_NONE, "torch.old(0, n)", True),  # found; no case takes it
        (NOT_NONE, "torch.old(0, **o)", False),
        (NOT_OURS, "torch.old(0, 'user/repo')", True),
        (NOT_OURS, "torch.old(0, 'pytorch/vision:main')", False),
        (NOT_OURS, "torch.old(0, 3)", True),
        (NOT_OURS, "torch.old(0, n)", True),  # as above
        (NOT_OURS, "torch.old(0, **o)", False),
        (WORD, "torch.old(0, 'an object')", True),
        (WORD, "torch.old(0, 'objects')", False),
        (WORD, "torch.old(0, 3)", False),
        (WORD, "torch.old(0, n)", False),
        (KEYS, "torch.old(0, {'a': 1, 'z': n})", True),
        (KEYS, "torch.old(0, dict(b=1))", True),
        (KEYS, "torch.old(0, {'z': 1, **n})", False),
        (KEYS, "torch.old(0, 'a')", False),
        (KEYS, "torch.old(0, n)", False),
        (POSITIONAL, "torch.old(0, n)", True),
        (POSITIONAL, "torch.old(0, b=n)", False),
        (POSITIONAL, "torch.old(0)", False),
        (POSITIONAL, "torch.old(0, **o)", False),
        (POSITIONAL, "torch.old(*a)", False),
        (GIVEN, "torch.old(0, n)", True),
        (GIVEN, "torch.old(0)", False),
        (GIVEN, "torch.old(0, **o)", False),
        (GIVEN, "torch.old(*a, b=n)", True),
        (ABSENT, "torch.old(0)", True),
        (ABSENT, "torch.old(0, **o)", False),
        (ANY, "torch.old(*a)", True),
        (TAKES_TWO, "torch.old(0, lambda x, y: x)", True),
        (TAKES_TWO, "torch.old(0, lambda x, *y: x)", True),
        (TAKES_TWO, "torch.old(0, lambda x: x)", False),
        (TAKES_TWO, "def f(x, /, *, y=1): ...\ntorch.old(0, f)", True),
        (TAKES_TWO, "def f(x, y, **z): ...\ntorch.old(0, f)", False),
        (TAKES_TWO, "@g\ndef f(x, y): ...\ntorch.old(0, f)", False),
        (TAKES_TWO, "def f(x, y): ...\nf = g(f)\ntorch.old(0, f)", False),
        (TAKES_TWO, "from m import f\ntorch.old(0, f)", False),
        (TAKES_TWO, "torch.old(0)", False),
        (Condition("literal"), "torch.old(0)", True),
        (Condition("literal"), "torch.old(0, [1, -2.5, 'a'])", True),
        (Condition("literal"), "torch.old(0, [1, n])", False),
        (Condition("type", ("int",)), "torch.old(0, 3)", True),
        (Condition("type", ("int",)), "torch.old(0, True)", False),
        (Condition("type", ("bool", "none")), "torch.old(0, None)", True),
        (Condition("type", ("list",)), "torch.old(0, [n, n])", True),
        (Condition("type", ("tuple",)), "torch.old(0, (n, n))", True),
        (Condition("type", ("tuple",)), "torch.old(0, SIZES)", False),
        (Condition("type", ("str",)), "torch.old(0, f'{n}')", True),
        (Condition("type", ("int",)), "torch.old(0, n)", False),
        (Condition("name", ("torch.float32",)), "torch.old(0, torch.float32)", True),
        (Condition("name", ("torch.float32",)), "torch.old(0, other.float32)", False),
        (Condition("call", ("torch.device",)), "torch.old(0, torch.device('cpu'))", True),
        (Condition("call", ("torch.device",)), "torch.old(0, torch.device)", False),
    ],
)
def test_condition(condition: Condition, call: str, expected: bool) -> None:
    assert finds(call, match={"b": condition}) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("torch.zeros(3).old()", True),
        ("class A(torch.Tensor):\n    def f(self): super().old()", False),
        ("class A(torch.Tensor):\n    def f(self): super(A, self).old()", False),
        ("class A(torch.Tensor):\n    def f(self): self.old()", False),
        ("torch.Tensor.old(x)", True),
    ],
)
def test_what_a_method_is_called_on(code: str, expected: bool) -> None:
    assert finds(code, match={"self": Condition("object")}, signature="(self)") is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("n = 2\nn = 1\ntorch.old(0, n)", True),
        ("n = 1\nn = 2\ntorch.old(0, n)", False),
        ("n = 1\nif c:\n    n = 2\ntorch.old(0, n)", False),
        ("n = 1\nn += 0\ntorch.old(0, n)", False),
        ("n = m = 1\ndef f():\n    torch.old(0, m)", True),
        ("def _f(n=1):\n    torch.old(0, n)\n_f()", True),
        ("def _f(n=1):\n    torch.old(0, n)\n_f(2)", False),
        ("def f(n=1):\n    torch.old(0, n)\nf()", True),
        ("def f(n=1):\n    torch.old(0, n)\nf(2)", False),
        ("def f(n=1):\n    torch.old(0, n)", False),
        ("for n in [1]:\n    torch.old(0, n)", True),
        (
            "class A:\n    def __init__(self):\n        self.n = 1\n    def f(self):\n        torch.old(0, self.n)",
            False,
        ),
    ],
)
def test_constants_that_reach_a_name(code: str, expected: bool) -> None:
    assert finds(code, match={"b": is_(1)}) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def g(a, b): ...\ntorch.old(0, g)", True),
        ("g = lambda a, b: 0\ntorch.old(0, g)", True),
        ("def g(a, b): ...\nh = g\ntorch.old(0, h)", True),
        ("def g(a): ...\ntorch.old(0, g)", False),
        ("@mark\ndef g(a, b): ...\ntorch.old(0, g)", False),
        ("if c:\n    def g(a, b): ...\nelse:\n    def g(a): ...\ntorch.old(0, g)", False),
    ],
)
def test_functions_that_reach_a_name(code: str, expected: bool) -> None:
    assert finds(code, match={"b": TAKES_TWO}) is expected


def test_equality_of_literals() -> None:
    assert same(1, 1.0)
    assert not same(1, True)
    assert not same((0, 1), (False, 1))
    assert not same(None, False)
    assert same(["a", (1,)], ("a", [1]))
    assert not same((1, 2), (1,))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.old(0)", True),
        ("torch.old(0, 1)", True),
        ("torch.old(0, 1, 2)", False),
        ("torch.old(0, c=2)", False),
        ("torch.old(0, *a)", False),
        ("torch.old(0, **o)", False),
        ("torch.old(0, d=2)", False),
        ("fn = torch.old", False),
        ("torch.zeros(3).old()", True),
        ("torch.zeros(3).old(1, 2)", False),
    ],
)
def test_missing_argument(call: str, expected: bool) -> None:
    assert finds(call, missing=("c",)) is expected


def test_star_into_the_variadic_parameter_leaves_an_argument_missing() -> None:
    assert finds("torch.old(*grids)", missing=("indexing",), signature="(*tensors, indexing=None)")
    assert not finds("torch.old(*grids)", missing=("indexing",), signature=None)


def test_bare_decorator_is_a_call_without_arguments() -> None:
    assert finds("@torch.old\ndef f(): pass", missing=("b",))
    assert not finds("@torch.old\ndef f(): pass", parameters=("b",))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.old(0, 1)", "1"),
        ("torch.old(0, c = 2, b = é)", "b = é"),
        ("torch.old(*a, c=2)", "c=2"),
        ("torch.old(0, unknown=1, c=2)", "c=2"),
        ("torch.old(0, c=(\n    2))", "c=(\n    2)"),
        ("torch.zeros(3).old(1)", "1"),
    ],
)
def test_finding_is_at_the_argument(call: str, expected: str) -> None:
    rule = make_rule(symbols=["torch.old", "torch.Tensor.old"], parameters=("b", "c"))
    found = first_match(f"import torch\n{call}\n", rule)
    assert found is not None
    assert found[1] == expected
    assert found[0].parameter in ("b", "c")


@pytest.mark.parametrize("call", ["torch.old(0)", "torch.old(*a)", "torch.old(0, **o)", "f = torch.old"])
def test_argument_that_is_not_surely_given_is_not_found(call: str) -> None:
    assert not finds(call, parameters=("b", "c"))


def test_roles_of_a_rule() -> None:
    code = "import torch\n@torch.old\ndef f(): pass\n"
    assert first_match(code, make_rule(roles=("decorator",))) is not None
    assert first_match(code, make_rule(roles=("call", "base"))) is None


def test_finding_points_at_the_name() -> None:
    found = first_match("import torch as t\ny = t.old(1)\n", make_rule())
    assert found is not None
    assert found[1] == "t.old"
    assert found[0].symbol == "torch.old"


def test_matching_does_not_load_libcst() -> None:
    import subprocess
    import sys

    code = "import torchmigrate.match.matching, sys; sys.exit('libcst' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
