"""Calls of methods that only tensors have with these arguments, whatever the object is.

Other libraries have methods of these names: `fft.rfft(x, n)`, `m.cholesky()` of SymPy, `blas.ger(a, x, y)`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

_OF_FFT = frozenset(["signal_ndim", "normalized"])
_Test = Callable[[list[ast.expr], set[str]], bool]


def _fft(more: frozenset[str]) -> _Test:
    """`x.rfft(1)`, `x.irfft(2, signal_sizes=s)`: the number of dimensions comes first, which is at most 3."""

    def test(args: list[ast.expr], keywords: set[str]) -> bool:
        if not keywords <= _OF_FFT | more or len(args) > 1 + len(more) + 1:
            return False
        if not args:
            return "signal_ndim" in keywords
        first = args[0]
        if not (isinstance(first, ast.Constant) and type(first.value) is int and 1 <= first.value <= 3):
            return bool(keywords & more)  # `x.rfft(ndim, onesided=False)`
        return all(_is_bool(argument) for argument in args[1:3])

    return test


def _only(*keywords: str, empty: bool = False) -> _Test:
    """Nothing but one of these keywords, or its value; `empty`: or nothing at all."""

    def test(args: list[ast.expr], given: set[str]) -> bool:
        if not given <= {*keywords} or len(args) > 1:
            return False
        return bool(given) if not args and given else _is_bool(args[0]) if args else empty

    return test


def _one(args: list[ast.expr], keywords: set[str]) -> bool:
    """One argument, which is not a literal: `x.ger(y)`."""
    return len(args) == 1 and not keywords and not isinstance(args[0], (ast.Constant, ast.Starred))


def _is_bool(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


_TESTS: dict[str, _Test] = {
    "fft": _fft(frozenset()),
    "ifft": _fft(frozenset()),
    "rfft": _fft(frozenset(["onesided"])),
    "irfft": _fft(frozenset(["onesided", "signal_sizes"])),
    "cholesky": _only("upper", empty=True),
    "eig": _only("eigenvectors"),
    "symeig": _only("eigenvectors", "upper", empty=True),
    "qr": _only("some"),
    "svd": _only("some", "compute_uv"),
    "lu": _only("pivot", "get_infos"),
    "lstsq": _one,
    "ger": _one,
}
# The same without arguments, where as many names take what the call gives.
_UNPACKED = {"qr": 2, "svd": 3, "eig": 2, "lu": 2}
NAMES = frozenset(_TESTS)


def tells(member: str, call: ast.Call, statement: ast.stmt) -> bool:
    """Whether a call of a method can only be one of a tensor's; `statement` is what it stands in."""
    test = _TESTS.get(member)
    if test is None:
        return False
    keywords = {keyword.arg for keyword in call.keywords}
    if None in keywords:
        return False
    if not call.args and not call.keywords and member in _UNPACKED:
        return _targets(call, statement) == _UNPACKED[member]
    return test(call.args, {word for word in keywords if word})


def _targets(call: ast.Call, statement: ast.stmt) -> int:
    """To how many names of an assignment a call gives its parts."""
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        return 0
    target = statement.targets[0]
    return len(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else 0
