"""Binding arguments to parameters."""

from __future__ import annotations

import ast

import pytest

from torchmigrate.match.signature import RECEIVER, arguments_of, bind, parse_signature

SYMEIG = "(input, eigenvectors=False, upper=True, *, out=None)"


def bound(
    signature: str | None, code: str, *, method: bool = False
) -> tuple[dict[str, tuple[int, ...]], bool]:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    found = bind(parse_signature(signature) if signature else None, arguments_of(call), method=method)
    return dict(found.given), found.understood


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("f(A)", {"input": (0,)}),
        ("f(A, True)", {"input": (0,), "eigenvectors": (1,)}),
        ("f(A, upper=False)", {"input": (0,), "upper": (1,)}),
        ("f(upper=False, input=A)", {"upper": (0,), "input": (1,)}),
        ("f(A, True, False, out=o)", {"input": (0,), "eigenvectors": (1,), "upper": (2,), "out": (3,)}),
    ],
)
def test_positional_and_keyword_arguments_bind_alike(code: str, expected: dict[str, tuple[int, ...]]) -> None:
    assert bound(SYMEIG, code) == (expected, True)


@pytest.mark.parametrize(
    ("code", "certain"),
    [
        ("f()", {}),  # a required argument is missing
        ("f(*args)", {}),
        ("f(A, *rest)", {"input": (0,)}),
        ("f(A, *rest, upper=True)", {"input": (0,), "upper": (2,)}),
        ("f(A, **options)", {"input": (0,)}),
        ("f(A, True, False, None)", {}),  # too many
        ("f(A, True, False, 1, upper=True)", {"upper": (4,)}),
        ("f(A, some=True)", {}),  # another function's keyword
        ("f(A, input=B)", {"input": (1,)}),
    ],
)
def test_what_is_not_understood(code: str, certain: dict[str, tuple[int, ...]]) -> None:
    assert bound(SYMEIG, code) == (certain, False)


def test_star_that_reaches_only_the_variadic_parameter_is_understood() -> None:
    assert bound("(*tensors, indexing=None)", "f(*grids)") == ({"tensors": (0,)}, True)
    assert bound("(*tensors, indexing=None)", "f(a, *b, c)") == ({"tensors": (0, 1, 2)}, True)
    assert bound("(first, *rest)", "f(*all)") == ({}, False)
    assert bound("(first, *rest)", "f(a, *b)") == ({"first": (0,), "rest": (1,)}, True)


def test_keywords_go_to_the_double_star_parameter() -> None:
    assert bound("(f, **options)", "g(h, a=1, b=2)") == ({"f": (0,), "options": (1, 2)}, True)
    assert bound("(f, **options)", "g(h, **o)") == ({"f": (0,), "options": (1,)}, True)
    assert bound("(f, dim=0, **options)", "g(h, **o)")[1] is False  # `o` may hold `dim`


def test_receiver_of_a_method_is_the_first_parameter() -> None:
    assert bound(SYMEIG, "x.symeig(True)", method=True) == (
        {"input": (RECEIVER,), "eigenvectors": (0,)},
        True,
    )
    assert bound("()", "x.f()", method=True) == ({}, False)


def test_positional_only_parameters_take_no_keyword() -> None:
    assert bound("(a, /, b=1)", "f(1, b=2)") == ({"a": (0,), "b": (1,)}, True)
    assert bound("(a, /, b=1)", "f(a=1)")[1] is False


def test_without_a_signature_keywords_are_known() -> None:
    assert bound(None, "f(1, upper=True)") == ({"upper": (1,)}, True)
    assert bound(None, "f(*a, upper=True)") == ({"upper": (1,)}, False)


@pytest.mark.parametrize("text", ["input", "(a): pass\nimport os\ndef g()", "(a=, b)"])
def test_bad_signature(text: str) -> None:
    with pytest.raises(ValueError, match="not a signature"):
        parse_signature(text)
