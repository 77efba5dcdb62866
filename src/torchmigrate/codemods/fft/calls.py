"""The old Fourier transforms as calls: what their arguments say, and the call that takes their place.

Old transforms take and give real tensors whose last dimension of 2 holds real and imaginary part ("pairs"),
new ones complex tensors. `normalized=True` is `norm="ortho"` in every form: both divide by the root of the
number of elements of the signal, in either direction, and for one-sided transforms too. From n frequencies,
without `signal_sizes`, the old `irfft` made a signal of 2 * n - 1 elements; `torch.fft.irfft` makes one of
2 * n - 2.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchmigrate.codemods.base.operations import number
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.match.signature import RECEIVER, Argument, arguments_of, bind, parse_signature
from torchmigrate.rewrite.expressions import Piece, as_primary
from torchmigrate.rewrite.parentheses import with_parentheses
from torchmigrate.source.text import Source
from torchmigrate.source.trees import has_effects

SIGNATURES = {
    "fft": "(input, signal_ndim, normalized=False)",
    "ifft": "(input, signal_ndim, normalized=False)",
    "rfft": "(input, signal_ndim, normalized=False, onesided=True)",
    "irfft": "(input, signal_ndim, normalized=False, onesided=True, signal_sizes=None)",
    "stft": "(input, n_fft, hop_length=None, win_length=None, window=None, center=True, "
    "pad_mode='reflect', normalized=False, onesided=None, return_complex=None)",
    "istft": "(input, n_fft, hop_length=None, win_length=None, window=None, center=True, "
    "normalized=False, onesided=None, length=None, return_complex=False)",
}
_GIVE_PAIRS = frozenset(["fft", "ifft", "rfft", "stft"])
_TAKE_PAIRS = frozenset(["fft", "ifft", "irfft", "istft"])
_SHORT = {1: "", 2: "2", 3: "n"}


@dataclass(frozen=True, slots=True)
class Transform:
    """One call of an old function whose arguments are understood.

    kind: a key of SIGNATURES. input: what is transformed. given: the values of its parameters.
    """

    hit: RuleMatch
    kind: str
    call: ast.Call
    input: ast.expr
    arguments: tuple[Argument, ...]
    given: dict[str, int]
    method: bool

    @property
    def gives_pairs(self) -> bool:
        return self.kind in _GIVE_PAIRS

    @property
    def takes_pairs(self) -> bool:
        return self.kind in _TAKE_PAIRS

    def value(self, parameter: str) -> ast.expr | None:
        """What a parameter is given; None: nothing."""
        index = self.given.get(parameter)
        return None if index is None or index == RECEIVER else self.arguments[index].value


def read(hit: RuleMatch, source: Source) -> Transform:
    """The call of a use.

    Raises:
        Unclear: the use is no call, or its arguments are not understood.
    """
    call = hit.use.call
    kind = hit.name.rpartition(".")[2]
    if call is None or kind not in SIGNATURES:
        raise Unclear("the function is handed on, not called")
    arguments = tuple(arguments_of(call))
    bound = bind(parse_signature(SIGNATURES[kind]), arguments, method=hit.use.method)
    if not bound.understood:
        raise Unclear("its arguments are not all written out")
    given = {name: indices[0] for name, indices in bound.given.items()}
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    value = receiver if given["input"] == RECEIVER else arguments[given["input"]].value
    start, end = source.span(call.func)
    if value is None or source.span(call)[0] != start or source.text[end : end + 1] != "(":
        raise Unclear("the call is written in an unusual way")
    return Transform(hit, kind, call, value, arguments, given, hit.use.method)


@dataclass(frozen=True, slots=True)
class Measure:
    """A tensor that may be written once more, to ask for the number of frequencies.

    behind: how many dimensions it has behind the signal's: 1 for pairs.
    """

    tensor: ast.expr
    behind: int

    def last(self) -> tuple[Piece, ...]:
        """The number of frequencies, `tensor.size(-1)`."""
        return (self.tensor, f".size({-1 - self.behind})")


@dataclass(slots=True)
class _Change:
    """What becomes of the arguments: by index a new text, or None for one that goes."""

    function: str
    arguments: dict[int, tuple[Piece, ...] | None]
    added: list[tuple[Piece, ...]]
    behind: str = ""


def new_call(
    transform: Transform,
    value: Sequence[Piece],
    measure: Measure | None,
    spell: Callable[[str], str],
    source: Source,
) -> tuple[Piece, ...]:
    """The call of the new function, which gives a complex tensor where the old one gave pairs.

    Args:
        value: the new text of what is transformed.
        measure: where its size can be asked for, if anywhere.
        spell: writes a qualified name at this place.

    Raises:
        Unclear: there is no call with the same meaning.
    """
    change = _short_time(transform) if transform.kind.endswith("stft") else _whole(transform, measure)
    end = source.span(transform.call)[1]
    open_end = source.span(transform.call.func)[1] + 1
    pieces: list[Piece] = [spell(change.function), (open_end - 1, open_end)]
    position = open_end
    glue = ", "
    bare = True  # no argument is written yet
    if transform.method:
        pieces += value
        bare = False
    else:
        change.arguments[transform.given["input"]] = tuple(value)
    for index, argument in enumerate(transform.arguments):
        assert argument.node is not None, "it is in the source"
        first, last = source.span(argument.node)  # type: ignore[arg-type]
        first, last = with_parentheses(first, last, position, source.text)
        glue = _glue(source, first, last, end)
        new = change.arguments.get(index, ((first, last),))
        if new is not None and not transform.method and index == transform.given["input"]:
            inner, outer = source.span(transform.input)  # its keyword and parentheses stay
            new = ((first, inner), *new, (outer, last))
        if new is not None:
            gap: Piece = (position, first)
            if bare and index:
                gap = ""
            elif transform.method and not index:
                gap = ", "
            pieces += (gap, *new)
            bare = False
        elif "#" in source.text[position:last]:
            raise Unclear("a comment stands between its arguments")
        position = last
    for added in change.added:
        pieces += (glue, *added)
    return (*pieces, (position, end), change.behind)


def _glue(source: Source, first: int, last: int, end: int) -> str:
    """What stands between an argument and one that is added behind it: a line of its own, if that has one."""
    indent = source.text[source.line_start(source.position(first)[0]) : first]
    if indent.strip() or not indent or "#" in source.text[last:end]:
        return ", "
    return f",{source.newline}{indent}"


def _short_time(transform: Transform) -> _Change:
    """`stft` and `istft` keep all their arguments."""
    change = _Change(f"torch.{transform.kind}", {}, [])
    if transform.kind == "stft":
        index = transform.given.get("return_complex")
        if index is None:
            change.added.append(("return_complex=True",))
        else:
            keyword = transform.arguments[index].keyword
            change.arguments[index] = (f"{keyword}=True" if keyword else "True",)
    return change


def _whole(transform: Transform, measure: Measure | None) -> _Change:
    """A transform as a whole, by the function of `torch.fft` that does the same: `rfft(x, 2)` as `rfft2`."""
    kind = transform.kind
    onesided = _flag(transform, "onesided", True)
    if onesided is None:
        raise Unclear("whether it is one-sided is only known when it runs")
    count = _ndim(transform)
    dims, sizes = _dims(transform, count)
    base = kind if onesided else kind.replace("rfft", "fft")
    length = _SHORT[count] if count is not None and not (sizes and sizes[0] == "s" and count == 1) else "n"
    if length == "n":
        dims = dims or "(-1,)"
    change = _Change(f"torch.fft.{base}{length}", {}, [])
    change.behind = ".real" if kind == "irfft" and not onesided else ""
    for parameter, index in transform.given.items():
        if parameter == "input":
            continue
        node = transform.arguments[index].node
        new: tuple[Piece, ...] | None = None
        if parameter == "signal_ndim":
            new = (f"dim={dims}",) if dims else None
        elif parameter == "normalized":
            new = _norm(transform)
        elif parameter == "signal_sizes" and sizes is not None:
            new = (f"{sizes[0]}=", sizes[1])
        elif node is not None and has_effects(node):
            raise Unclear("an argument that is not needed any more may do something")
        change.arguments[index] = new
    if kind == "irfft" and onesided and sizes is None:
        change.added.append(_odd(count, measure))
    return change


def _odd(count: int | None, measure: Measure | None) -> tuple[Piece, ...]:
    """The sizes of a signal that was not told any: the last one is odd."""
    if count is None or measure is None:
        what = "give its input a name" if count is not None else "say how many dimensions there are"
        raise Unclear(
            "without `signal_sizes` the result has an odd length, 2 * n - 1 of n frequencies, where that of"
            f" `torch.fft.irfft` has 2 * n - 2: pass the signal's size, or {what}"
        )
    odd = ("2 * ", *measure.last(), " - 1")
    return ("n=", *odd) if count == 1 else (f"s=({'-1, ' * (count - 1)}", *odd, ")")


def _dims(transform: Transform, count: int | None) -> tuple[str | None, tuple[str, ast.expr] | None]:
    """The dimensions, where the short name does not say them; the sizes, as keyword and value."""
    if count is None:
        value = transform.value("signal_ndim")
        assert value is not None, "it has no default"
        if not isinstance(value, ast.Name | ast.Attribute):
            raise Unclear("the number of dimensions is computed in the call")
        dims: str | None = f"tuple(range(-{ast.unparse(value)}, 0))"
    else:
        dims = None if count < 3 else "(-3, -2, -1)"
    sizes = transform.value("signal_sizes")
    if sizes is None or _flag(transform, "onesided", True) is False:
        return dims, None  # two-sided ones had to have the size of the input
    if isinstance(sizes, ast.Constant) and sizes.value is None:
        return dims, None
    if not isinstance(sizes, ast.Tuple | ast.List):
        if _may_be_none(sizes, transform.hit):
            raise Unclear("`signal_sizes` may be empty: then the last size of the result is odd")
        return dims, ("s", sizes)
    if not sizes.elts:
        return dims, None
    if any(isinstance(item, ast.Starred) for item in sizes.elts):
        return dims, ("s", sizes)
    if count is not None and len(sizes.elts) != count:
        raise Unclear("`signal_sizes` has another length than there are dimensions")
    return dims, ("n", sizes.elts[0]) if count == 1 else ("s", sizes)


def _may_be_none(node: ast.expr, hit: RuleMatch) -> bool:
    """Whether it is a parameter that is nothing by default."""
    function = hit.use.scope.node
    if not isinstance(node, ast.Name) or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(named), reversed(arguments.defaults), strict=False)]
    pairs += [
        (item, value)
        for item, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value
    ]
    return any(item.arg == node.id and ast.unparse(value) in ("None", "()", "[]") for item, value in pairs)


def _ndim(transform: Transform) -> int | None:
    """The number of dimensions of the signal; None: only known when it runs."""
    node = transform.value("signal_ndim")
    assert node is not None, "it has no default"
    found = number(node)
    if found is None:
        value = transform.hit.place.value(node)
        found = value if type(value) is int else None
    if found is None:
        return None
    if found not in (1, 2, 3):
        raise Unclear("the number of dimensions is not 1, 2 or 3")
    return int(found)


def _flag(transform: Transform, parameter: str, default: bool) -> bool | None:
    """The value of a literal flag; None: only known when it runs."""
    node = transform.value(parameter)
    if node is None:
        return default
    value = transform.hit.place.value(node)
    return bool(value) if value is None or isinstance(value, bool | int) else None


def _norm(transform: Transform) -> tuple[Piece, ...] | None:
    """The new argument for `normalized`; None: there is none."""
    flag = _flag(transform, "normalized", False)
    if flag is not None:
        return ('norm="ortho"',) if flag else None
    value = transform.value("normalized")
    assert value is not None, "it is given"
    plain = isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    test: tuple[Piece, ...] = (value,) if plain else as_primary(value)
    return ('norm="ortho" if ', *test, " else None")
