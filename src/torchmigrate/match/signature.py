"""Which parameter each argument of a call is for, by the old function's signature."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct

RECEIVER = -1  # stands for `x` among the arguments of `x.method(...)`


class Parameter(Struct, frozen=True):
    """One parameter of a signature. kind: "positional-only", "positional", "variadic" (`*args`),
    "keyword-only" or "keywords" (`**kwargs`); default: None where there is none."""

    name: str
    kind: str
    default: ast.expr | None = None


class Signature(Struct, frozen=True, eq=False):
    """The parameters of a function, in order."""

    parameters: tuple[Parameter, ...]
    positional: tuple[Parameter, ...]  # that an argument without a keyword can reach, `*args` left out
    variadic: Parameter | None
    keywords: Parameter | None
    by_name: Mapping[str, Parameter]


@cache
def parse_signature(text: str) -> Signature:
    """Read `(input, eigenvectors=False, *, out=None)`. Raises ValueError for anything else."""
    try:
        (function,) = ast.parse(f"def f{text}: pass").body
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"not a signature: {text}") from error
    if not isinstance(function, ast.FunctionDef):
        raise ValueError(f"not a signature: {text}")
    args = function.args
    found: list[Parameter] = []
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    for number, (arg, default) in enumerate(zip(plain, defaults, strict=True)):
        kind = "positional-only" if number < len(args.posonlyargs) else "positional"
        found.append(Parameter(arg.arg, kind, default))
    positional = tuple(found)
    variadic = Parameter(args.vararg.arg, "variadic") if args.vararg else None
    if variadic:
        found.append(variadic)
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found.append(Parameter(arg.arg, "keyword-only", default))
    keywords = Parameter(args.kwarg.arg, "keywords") if args.kwarg else None
    if keywords:
        found.append(keywords)
    return Signature(tuple(found), positional, variadic, keywords, {item.name: item for item in found})


class Argument(Struct, frozen=True):
    """One argument as it is written. star: "", "*" or "**". value: None for what is not in the source,
    as the function below a decorator. node: what the whole argument is in the tree."""

    star: str
    keyword: str | None
    value: ast.expr | None
    node: ast.AST | None

    @property
    def is_positional(self) -> bool:
        return self.keyword is None and not self.star


# What `**node` gives, as `ValueFlow.keywords` has it.
Keywords = Callable[[ast.expr], "tuple[dict[str, tuple[ast.AST, ast.expr]], bool]"]


def arguments_of(call: ast.Call, keywords: Keywords | None = None) -> list[Argument]:
    """The arguments of a call in the order in which they are written.

    keywords: what `**options` gives; arguments of that have the key in a dictionary as their node.
    """
    found: list[tuple[tuple[int, int], Argument]] = []
    for value in call.args:
        starred = isinstance(value, ast.Starred)
        found.append(((value.lineno, value.col_offset), Argument("*" if starred else "", None, value, value)))
    for keyword in call.keywords:
        place = (keyword.lineno, keyword.col_offset)
        found.append((place, Argument("" if keyword.arg else "**", keyword.arg, keyword.value, keyword)))
    found.sort(key=lambda item: item[0])
    arguments = [argument for _, argument in found]
    return arguments if keywords is None else [*_unfolded(arguments, keywords)]


def _unfolded(arguments: list[Argument], keywords: Keywords) -> Iterator[Argument]:
    """The arguments, with what `**options` gives in its place, as far as that is known."""
    named = {item.keyword for item in arguments}
    for item in arguments:
        if item.star == "**" and item.value is not None:
            given, complete = keywords(item.value)
            for name, (place, value) in given.items():
                if name not in named:
                    yield Argument("", name, value, place)
            if complete:
                continue
        yield item


class Bound(Struct, frozen=True):
    """What a call gives to which parameter: indices of its arguments, RECEIVER for that of a method.

    understood: every argument is accounted for, so that a parameter that is not in `given` is absent.
    Otherwise `given` has only what is certain.
    visible: every argument that is written out is accounted for; `**` may give more.
    """

    given: Mapping[str, tuple[int, ...]]
    understood: bool
    visible: bool = False

    def parameter_of(self) -> dict[int, str]:
        """Argument -> parameter."""
        return {index: name for name, indices in self.given.items() for index in indices}


def bind(signature: Signature | None, arguments: Sequence[Argument], *, method: bool = False) -> Bound:
    """Bind arguments to parameters as Python would.

    Not understood are `*` where it could reach a named parameter, `**` where it could hold one, too many
    or unknown arguments, and a required parameter that is missing. Without a signature, only keywords are
    bound and a star is not understood.
    """
    if signature is None:
        named = {item.keyword: (index,) for index, item in enumerate(arguments) if item.keyword is not None}
        return Bound(named, not any(item.star for item in arguments))
    given: dict[str, tuple[int, ...]] = {}
    positional = signature.positional
    count = 0
    if method:
        if not positional:
            return Bound({}, False)
        given[positional[0].name] = (RECEIVER,)
        count = 1
    # Whether the parameter of the next positional argument is known; whether everything is.
    certain = understood = True
    unpacked: list[int] = []
    for index, item in enumerate(arguments):
        if item.star == "**":
            unpacked.append(index)
        elif item.keyword is not None:
            parameter = signature.by_name.get(item.keyword)
            if parameter is not None and parameter.kind in ("positional", "keyword-only"):
                understood = understood and parameter.name not in given
                given[parameter.name] = (index,)
            elif signature.keywords is not None:
                name = signature.keywords.name
                given[name] = (*given.get(name, ()), index)
            else:
                return _keywords_only(signature, arguments)
        elif certain and not item.star and count < len(positional):
            name = positional[count].name
            understood = understood and name not in given
            given[name] = (index,)
            count += 1
        elif certain and count >= len(positional) and signature.variadic is not None:
            name = signature.variadic.name
            given[name] = (*given.get(name, ()), index)
        elif item.star:
            certain = understood = False
        elif certain:
            return _keywords_only(signature, arguments)
    visible = understood
    for parameter in signature.parameters:
        if parameter.name in given or parameter.kind in ("variadic", "keywords"):
            continue
        if unpacked and parameter.kind != "positional-only":
            understood = False
        elif parameter.default is None:
            understood = visible = False
    if unpacked:
        if signature.keywords is None:
            understood = False
        else:
            name = signature.keywords.name
            given[name] = (*given.get(name, ()), *unpacked)
    return Bound(given, understood, visible)


def _keywords_only(signature: Signature, arguments: Sequence[Argument]) -> Bound:
    """Of a call to some other form of the function: what its keywords say."""
    given: dict[str, tuple[int, ...]] = {}
    for index, item in enumerate(arguments):
        parameter = signature.by_name.get(item.keyword or "")
        if parameter is not None and parameter.kind in ("positional", "keyword-only"):
            given[parameter.name] = (index,)
    return Bound(given, False)


def lacking(signature: Signature, arguments: Sequence[Argument]) -> tuple[str, ...] | None:
    """The required parameters that a call leaves out; None where it gives what the signature does not take.

    arguments: all of them, none with a star.
    """
    given = bind(signature, arguments).given
    if sum(map(len, given.values())) != len(arguments):
        return None
    return tuple(name for name in required(signature) if name not in given)


def required(signature: Signature) -> tuple[str, ...]:
    """The parameters that every call must give."""
    return tuple(
        item.name
        for item in signature.parameters
        if item.default is None and item.kind not in ("variadic", "keywords")
    )
