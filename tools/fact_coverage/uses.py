"""Generated uses of a symbol: small programs that hold it, as a person would write them.

A fact about `torch.nn.Linear(bias=)` is found if the program finds something in one of these at the line that
holds the symbol. Nothing here is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchmigrate.match.signature import Signature, parse_signature
from torchmigrate.versions.surface import surface_of

_SYMBOL = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?:\((?P<parameter>\w+)=\))?\Z")

# How a program comes by an object whose attribute the symbol is.
OBJECTS = {
    "torch.Tensor": "torch.ones(2, 3)",
    "torch.autograd.Variable": "torch.autograd.Variable(data)",
    "torch.nn.Module": "torch.nn.Linear(2, 3)",
    "torch.optim.Optimizer": "torch.optim.SGD(parameters, lr=0.1)",
    "torch.optim.lr_scheduler.LRScheduler": "torch.optim.lr_scheduler.StepLR(optimizer, 3)",
    "torch.nn.utils.rnn.PackedSequence": "torch.nn.utils.rnn.pack_sequence(sequences)",
    "torch.device": "torch.device('cpu')",
    "torch.Generator": "torch.Generator()",
}
_VALUES = ("value", "True", "False", "None", "1", "'x'")


@dataclass(frozen=True, slots=True)
class Program:
    """A use. line: 1-based, of the symbol."""

    text: str
    line: int


def programs(symbol: str) -> Iterator[Program]:
    """Programs that use a symbol of the facts; none if it is not a plain name or parameter."""
    match = _SYMBOL.match(symbol)
    if match is None:
        return
    name, parameter = match["name"], match["parameter"]
    if "." not in name:
        yield _program([], f"import {name}")
        return
    head, _, last = name.rpartition(".")
    for before, spelling in _spellings(name):
        if parameter is None:
            yield _program(before, f"found = {spelling}")
            for arguments in _arguments(name):
                yield _program(before, f"found = {spelling}({arguments})")
        else:
            for value in _VALUES:
                for arguments in _arguments(name, without=parameter):
                    given = f"{arguments}, " if arguments else ""
                    yield _program(before, f"found = {spelling}({given}{parameter}={value})")
    if parameter is None:
        yield _program([], f"from {head} import {last}")
        yield _program([], f"import {name}")
        yield _program([], f"from {name} import anything")
        yield _program([f"import {head}"], f"class Mine({name}): pass")


def _program(before: list[str], line: str) -> Program:
    return Program("\n".join([*before, line, ""]), len(before) + 1)


def _spellings(name: str) -> Iterator[tuple[list[str], str]]:
    """Lines that come first, and the expression that means `name` after them."""
    head, _, last = name.rpartition(".")
    root = name.partition(".")[0]
    yield [f"import {head}"], name
    if head != root:
        yield [f"from {head} import {last}"], last
    made = OBJECTS.get(head)
    if made is None and head.rpartition(".")[2][:1].isupper():
        made = f"{head}({next(_arguments(head), '')})"
    if made is not None:
        module = head.rpartition(".")[0]
        imports = [f"import {root}"] if module == root else [f"import {root}", f"import {module}"]
        yield [*imports, f"thing = {made}"], f"thing.{last}"


def _arguments(name: str, without: str | None = None) -> Iterator[str]:
    """Argument lists for a call: what its signatures require, by position; most complete last."""
    seen = set()
    for signature in _signatures(name):
        required = [
            parameter
            for parameter in signature.parameters
            if parameter.name != without
            and parameter.default is None
            and parameter.kind not in ("variadic", "keywords")
        ]
        # Behind the parameter that is given by keyword, nothing can be positional.
        names = [parameter.name for parameter in signature.parameters]
        later = names.index(without) if without in names else len(names)
        text = ", ".join(
            f"{each.name}={each.name}_"
            if each.kind == "keyword-only" or names.index(each.name) > later
            else f"{each.name}_"
            for each in required
        )
        if text not in seen:
            seen.add(text)
            yield text
    if "" not in seen:
        yield ""


def _signatures(name: str) -> list[Signature]:
    """Every signature that a name had, newest first."""
    surface = surface_of(name)
    found: dict[str, None] = {}
    for version in reversed(surface.versions if surface else ()):
        assert surface is not None
        entry = surface.entry(name, version)
        for text in entry.signatures if entry else ():
            found[text] = None
    return [parse_signature(text) for text in found]
