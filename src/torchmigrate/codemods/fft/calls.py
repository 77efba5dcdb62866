"""The old Fourier transforms as calls: what their arguments mean, and the calls that replace them.

Old transforms take and give real tensors whose last dimension of 2 holds real and imaginary part ("pairs"),
new ones complex tensors. `normalized=True` is `norm="ortho"` in every form: both divide by the root of the
number of elements of the signal, in either direction, and for one-sided transforms too. From n frequencies,
without `signal_sizes`, the old `irfft` made a signal of 2 * n - 1 elements; `torch.fft.irfft` makes one of
2 * n - 2.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from msgspec import Struct

from torchmigrate.codemods.base.operations import number
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.match.signature import RECEIVER, arguments_of, bind, parse_signature
from torchmigrate.match.signature import Argument as OldArgument
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import Argument, Code, Part, code
from torchmigrate.rewrite.nodes import opens_behind_function
from torchmigrate.semantics.flow.calls import default_of
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
_SIZES = {2: "(-1, $last)", 3: "(-1, -1, $last)"}  # by the number of dimensions


class Transform(Struct, frozen=True):
    """One call of an old function whose arguments are understood.

    kind: a key of SIGNATURES. input: what is transformed. given: the values of its parameters.
    """

    hit: RuleMatch
    kind: str
    call: ast.Call
    input: ast.expr
    arguments: tuple[OldArgument, ...]
    given: dict[str, int]
    method: bool

    @property
    def gives_pairs(self) -> bool:
        return self.kind in _GIVE_PAIRS

    @property
    def takes_pairs(self) -> bool:
        return self.kind in _TAKE_PAIRS

    def node(self, index: int) -> ast.expr | ast.keyword:
        """An argument as it is written."""
        node = self.arguments[index].node
        assert isinstance(node, (ast.expr, ast.keyword)), "it is in the source"
        return node

    def value(self, parameter: str) -> ast.expr | None:
        """What a parameter is given; None: nothing."""
        index = self.given.get(parameter)
        return None if index is None or index == RECEIVER else self.arguments[index].value

    def onesided(self) -> bool | None:
        """Whether it is about half of the spectrum; None: only known when it runs."""
        return _flag(self, "onesided", True)


def read(hit: RuleMatch, source: Source) -> Transform:
    """The call of a use.

    Raises:
        Unclear: the use is not a call, or its arguments are not understood.
    """
    call = hit.use.call
    kind = hit.name.rpartition(".")[2]
    if call is None or kind not in SIGNATURES:
        raise Unclear("the function is passed on instead of called")
    arguments = tuple(arguments_of(call))
    bound = bind(parse_signature(SIGNATURES[kind]), arguments, method=hit.use.method)
    if not bound.understood:
        raise Unclear("cannot analyze the arguments of the call")
    given = {name: indices[0] for name, indices in bound.given.items()}
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    value = receiver if given["input"] == RECEIVER else arguments[given["input"]].value
    if value is None or not opens_behind_function(source, call):
        raise Unclear("the call is written in an unusual way")
    return Transform(hit, kind, call, value, arguments, given, hit.use.method)


class Measure(Struct, frozen=True):
    """A tensor that may be written once more, to ask for the number of frequencies.

    trailing: how many dimensions it has after the signal's: 1 for pairs.
    """

    tensor: ast.expr
    trailing: int

    def last(self) -> Code:
        """The number of frequencies, `tensor.size(-1)`."""
        return code("$tensor.size($dim)", tensor=self.tensor, dim=str(-1 - self.trailing))


class _Changes(Struct, frozen=True):
    """How the arguments change.

    function: that is called instead.
    arguments: by index what each is now, with its keyword, or None for one that goes.
    added: one more.
    real: whether only the real part of the result is meant.
    """

    function: str
    arguments: dict[int, Argument | None]
    added: Argument | None = None
    real: bool = False


def new_call(
    transform: Transform,
    value: Part,
    measure: Measure | None,
    symmetric: bool,
    spell: Callable[[str], str],
    source: Source,
) -> Code:
    """The call of the new function, which gives a complex tensor where the old one gave pairs.

    Args:
        value: the new code of what is transformed.
        measure: where its size can be read, if anywhere.
        symmetric: whether a spectrum that it is given surely is that of a real signal.
        spell: writes a qualified name at this place.

    Raises:
        Unclear: there is no call with the same meaning.
    """
    changes = (
        _short_time(transform) if transform.kind.endswith("stft") else _whole(transform, measure, symmetric)
    )
    call = CallEditor(source, transform.call)
    call.call_instead(code("$function", function=spell(changes.function)))
    for index, new in changes.arguments.items():
        node = transform.node(index)
        if new is not None:
            call.set(node, code("$value", value=new.value), keyword=new.keyword)
        elif call.has_comment(node):
            raise Unclear("there is a comment between its arguments")
        else:
            call.drop(node)
    if transform.method:
        call.insert(code("$value", value=value))
    else:
        call.set(transform.node(transform.given["input"]), code("$value", value=value))
    if changes.added is not None:
        call.add(code("$value", value=changes.added.value), changes.added.keyword)
    return code("$call.real" if changes.real else "$call", call=call)


def _short_time(transform: Transform) -> _Changes:
    """`stft` and `istft` keep all their arguments."""
    function = f"torch.{transform.kind}"
    if transform.kind != "stft":
        return _Changes(function, {})
    index = transform.given.get("return_complex")
    if index is None:
        return _Changes(function, {}, Argument("True", "return_complex"))
    return _Changes(function, {index: Argument("True")})


def halves(transform: Transform) -> bool:
    """Whether it is an inverse transform that reads only the first half of a two-sided spectrum."""
    one = transformed_dimensions(transform) == 1
    return transform.kind == "irfft" and transform.onesided() is False and one


def _whole(transform: Transform, measure: Measure | None, symmetric: bool) -> _Changes:
    """A transform as a whole, by the function of `torch.fft` that does the same: `rfft(x, 2)` as `rfft2`.

    The old `irfft` only read the first half of a two-sided spectrum, as `torch.fft.irfft` does.
    """
    kind = transform.kind
    onesided = transform.onesided()
    if onesided is None:
        raise Unclear("it is only known at run time whether the transform is one-sided")
    count = transformed_dimensions(transform)
    dims, sizes = _dims(transform, count)
    halved = not symmetric and halves(transform)
    base = kind if onesided or halved else kind.replace("rfft", "fft")
    listed = sizes is not None and sizes.keyword == "s"
    length = "n" if count is None or (listed and count == 1) else _SHORT[count]
    if length == "n":
        dims = dims or code("(-1,)")
    arguments: dict[int, Argument | None] = {}
    for parameter, index in transform.given.items():
        if parameter == "input":
            continue
        new: Argument | None = None
        if parameter == "signal_ndim":
            new = Argument(dims, "dim") if dims else None
        elif parameter == "normalized":
            new = _norm(transform)
        elif parameter == "signal_sizes" and sizes is not None:
            new = sizes
        elif has_effects(transform.node(index)):
            raise Unclear("an argument that is no longer needed may have side effects")
        arguments[index] = new
    added = _odd(count, measure) if kind == "irfft" and onesided and sizes is None else None
    if halved:
        if measure is None:
            raise Unclear("only half of its input counts: assign that to a variable")
        added = Argument(measure.last(), "n")
    real = kind == "irfft" and not onesided and not halved
    return _Changes(f"torch.fft.{base}{length}", arguments, added, real)


def _odd(count: int | None, measure: Measure | None) -> Argument:
    """The sizes of a signal without given sizes: the last one is odd."""
    if count is None or measure is None:
        what = "assign its input to a variable" if count is not None else "pass the number of dimensions"
        raise Unclear(
            "without `signal_sizes`, the result has an odd length, 2 * n - 1 for n frequencies, but the "
            f"result of `torch.fft.irfft` has length 2 * n - 2: pass the size of the signal, or {what}"
        )
    odd = code("2 * $last - 1", last=measure.last())
    return Argument(odd, "n") if count == 1 else Argument(code(_SIZES[count], last=odd), "s")


def _dims(transform: Transform, count: int | None) -> tuple[Code | None, Argument | None]:
    """The dimensions, where the short name does not say them; the sizes."""
    if count is None:
        value = transform.value("signal_ndim")
        assert value is not None, "it has no default"
        dims: Code | None = code("tuple(range(-$count, 0))", count=value)
    else:
        dims = None if count < 3 else code("(-3, -2, -1)")
    sizes = transform.value("signal_sizes")
    if sizes is None or _flag(transform, "onesided", True) is False:
        return dims, None  # two-sided ones had to have the size of the input
    if isinstance(sizes, ast.Constant) and sizes.value is None:
        return dims, None
    if not isinstance(sizes, (ast.Tuple, ast.List)):
        if _may_be_none(sizes, transform.hit):
            raise Unclear("`signal_sizes` may be empty, and then the last size of the result is odd")
        return dims, Argument(sizes, "s")
    if not sizes.elts:
        return dims, None
    if any(isinstance(item, ast.Starred) for item in sizes.elts):
        return dims, Argument(sizes, "s")
    if count is not None and len(sizes.elts) != count:
        raise Unclear("the length of `signal_sizes` differs from the number of dimensions")
    return dims, Argument(sizes.elts[0], "n") if count == 1 else Argument(sizes, "s")


def _may_be_none(node: ast.expr, hit: RuleMatch) -> bool:
    """Whether it is a parameter that is nothing by default."""
    function = hit.use.scope.node
    if not isinstance(node, ast.Name) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    default = default_of(function, node.id)
    return default is not None and ast.unparse(default) in ("None", "()", "[]")


def transformed_dimensions(transform: Transform) -> int | None:
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
    return bool(value) if value is None or isinstance(value, (bool, int)) else None


def _norm(transform: Transform) -> Argument | None:
    """The new argument for `normalized`; None: there is none."""
    flag = _flag(transform, "normalized", False)
    if flag is not None:
        return Argument('"ortho"', "norm") if flag else None
    return Argument(code('"ortho" if $test else None', test=transform.value("normalized")), "norm")
