"""Calls functions on made inputs, in the old environment and in the new one, and compares what they give.

Inputs are made of numbers that Python computes, so that both environments get the same. Written for Python
3.6, without torchmigrate, for torch 1.0 and newer.
"""

import importlib
import os
import random
import signal
import sys
from itertools import product
from typing import Any

SECONDS = 20  # that a call may take
_NUMBERS = {"int": 3, "float": 0.5, "bool": True}
# Tried for tensors until the old environment gives a result.
_SHAPES: Any = ([6, 6], [6], [2, 3, 8, 8], [2, 6, 6], [])
_DTYPES = ("float32", "int64")
_MOST = 1024  # values of a tensor that are compared
# What is in a dtype -> the relative difference that two results may have; others are compared exactly.
_TOLERANCES = (("float16", 1e-2), ("float64", 1e-7), ("float32", 1e-4), ("complex", 1e-4), ("float", 1e-7))


class Differs(Exception):
    """A result that is not the one of the old environment. frames: lines of the functions that ran."""

    def __init__(self, message: str, frames: "list[list[Any]]") -> None:
        Exception.__init__(self, message)
        self.frames = frames


class Unsuitable(Exception):
    """No made inputs are such that the old environment gives a result."""


def old_result(plan: "dict[str, Any]") -> "dict[str, Any]":
    """What a function gives for the first inputs that it takes; raises Unsuitable."""
    why = "there are no numbers in the result"
    for number, attempt in enumerate(_attempts(plan)):
        try:
            leaves = _leaves_of(plan, attempt, 0)
            again = _leaves_of(plan, attempt, 1)
        except Exception as error:
            why = "%s: %s" % (type(error).__name__, error)
            continue
        if any(value != value for _, _, values in leaves for value in values) or _difference(
            leaves, again, values=False
        ):
            continue
        return {"attempt": number, "leaves": leaves, "random": bool(_difference(leaves, again))}
    raise Unsuitable(why)


def compare(plan: "dict[str, Any]", old: "dict[str, Any]", torch: str) -> None:
    """Raise Differs where a function does not give what it gave with an older torch."""
    attempt = list(_attempts(plan))[old["attempt"]]
    frames: dict[Any, None] = {}  # the last returns, of the function itself at the end
    here = os.getcwd() + os.sep

    def note(frame: Any, event: str, argument: object) -> None:
        if event == "return" and frame.f_code.co_filename.startswith(here):
            place = frame.f_code.co_filename, frame.f_lineno
            frames.pop(place, None)
            frames[place] = None

    leaves = _leaves_of(plan, attempt, 0, note)
    found = _difference(old["leaves"], leaves, values=not old["random"])
    if found:
        inputs = {**plan["inputs"], **(plan["forward"] or {})}
        given = ", ".join("%s=%s" % (name, _shown(each, attempt)) for name, each in inputs.items())
        where = " for %s" % given if given else ""
        message = "the result is not the same as on torch %s%s: %s" % (torch, where, found)
        raise Differs(message, list(map(list, frames)))


def _attempts(plan: "dict[str, Any]") -> "list[tuple[list[int], str, bool]]":
    """Sizes and dtypes of tensors for which they are not known, and whether some numbers are negative."""
    inputs = [*plan["inputs"].values(), *(plan["forward"] or {}).values()]
    tensors = [each for each in inputs if each[0] == "tensor"]
    shapes = _SHAPES if any(each[2] is None for each in tensors) else _SHAPES[:1]
    dtypes = _DTYPES if any(each[1] is None for each in tensors) else _DTYPES[:1]
    return list(product(shapes, dtypes, (True, False) if tensors else (True,)))


def _shown(each: "Any", attempt: "tuple[list[int], str, bool]") -> str:
    kind, dtype, sizes = each
    if kind != "tensor":
        return str(_NUMBERS[kind])
    return "%s %s" % (dtype or attempt[1], attempt[0] if sizes is None else sizes)


def _made(each: "Any", attempt: "tuple[list[int], str, bool]", seed: int) -> "Any":
    """An input."""
    import torch

    kind, dtype, sizes = each
    if kind != "tensor":
        return _NUMBERS[kind]
    dtype, sizes = dtype or attempt[1], attempt[0] if sizes is None else sizes
    count = 1
    for size in sizes:
        count *= size
    numbers: list[Any]
    if dtype == "bool":
        numbers = [(number + seed) % 3 == 0 for number in range(count)]
    elif "int" in dtype:  # none is 0, by which old releases cannot divide
        numbers = [1 + (number * 7 + seed * 3) % 5 for number in range(count)]
        if attempt[2] and dtype != "uint8":
            numbers[1::2] = [-each for each in numbers[1::2]]
    else:
        numbers = [(1 + (number * 37 + seed * 11) % 101) / 103.0 for number in range(count)]
        numbers = [2 * each - 1 if attempt[2] else each for each in numbers]
    return torch.tensor(numbers, dtype=getattr(torch, dtype)).reshape(sizes)


def _leaves_of(plan: "Any", attempt: "Any", seed: int, note: "Any" = None) -> "list[Any]":
    """What one call gives, and its inputs after the call."""
    import torch

    function = getattr(importlib.import_module(plan["module"]), plan["name"])
    inputs = _inputs(plan["inputs"], attempt)
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
    sys.setprofile(note)
    try:
        found = function(**inputs)
        leaves = list(_leaves(found, "result"))
        if plan["forward"] is not None:
            with torch.no_grad():
                for number, parameter in enumerate(found.parameters()):
                    made = _made(("tensor", "float64", list(parameter.shape)), ([], "", True), number)
                    parameter.copy_(made * 0.2)
            found.eval()
            inputs = _inputs(plan["forward"], attempt)
            leaves += _leaves(found(**inputs), "output")
    finally:
        sys.setprofile(None)
    return leaves + [leaf for name in sorted(inputs) for leaf in _leaves(inputs[name], name)]


def _inputs(wanted: "dict[str, Any]", attempt: "Any") -> "dict[str, Any]":
    return {name: _made(each, attempt, number) for number, (name, each) in enumerate(sorted(wanted.items()))}


def _leaves(value: "Any", path: str) -> "Any":
    """The parts of a result: where each is, what it is, and its numbers, as JSON holds them."""
    import torch

    if isinstance(value, torch.nn.Module):
        yield [path, type(value).__name__, []]
        for name, each in value.state_dict().items():
            yield ["%s.%s" % (path, name), _kind(each), []]
    elif torch.is_tensor(value):
        yield [path, _kind(value), _numbers(value)]
    elif isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"  # what torch names was a plain tuple
        yield [path, "a %s of %d" % (kind, len(value)), []]
        for number, each in enumerate(value):
            for leaf in _leaves(each, "%s[%d]" % (path, number)):
                yield leaf
    elif isinstance(value, dict):
        yield [path, "a dict of %d" % len(value), []]
        for key in sorted(value, key=str):
            for leaf in _leaves(value[key], "%s[%r]" % (path, key)):
                yield leaf
    elif isinstance(value, (bool, int, float, str)):
        yield [path, type(value).__name__, [value]]
    elif type(value).__module__ == "numpy":
        dtype, sizes, numbers = getattr(value, "dtype", ""), getattr(value, "shape", ()), []
        if getattr(dtype, "kind", "") in tuple("biuf"):
            numbers = value.reshape(-1)[:_MOST].tolist()
        yield [path, "an array of %s %s" % (dtype, list(sizes)), numbers]
    else:
        yield [path, "None" if value is None else type(value).__name__, []]


def _kind(tensor: "Any") -> str:
    return "%s %s" % (str(tensor.dtype).replace("torch.", ""), list(tensor.shape))


def _numbers(tensor: "Any") -> "list[Any]":
    import torch

    if tensor.layout != torch.strided:
        return []
    tensor = tensor.detach().cpu().reshape(-1)[:_MOST]
    if "complex" in str(tensor.dtype):
        return [part for each in tensor.tolist() for part in (each.real, each.imag)]
    return list((tensor.float() if "float16" in str(tensor.dtype) else tensor).tolist())


def _difference(old: "Any", new: "Any", values: bool = True) -> str:
    """What differs first between the parts of two results; empty: nothing."""
    if [each[:2] for each in old] != [each[:2] for each in new]:
        for (path, kind, _), (other, found, _) in zip(old, new):
            if path != other:
                return "there is no %s, but %s" % (path, other)
            if kind != found:
                return "%s is %s, and was %s" % (path, found, kind)
        return "it has %d parts, and had %d" % (len(new), len(old))
    for (path, kind, before), (_, _, after) in zip(old, new) if values else ():
        most = next((relative for name, relative in _TOLERANCES if name in kind), 0)
        for number, (one, two) in enumerate(zip(before, after)):
            close = one == two or (one != one and two != two)
            if not close and not (most and abs(one - two) <= most * (abs(one) + 0.1)):
                at = "" if len(before) == 1 else "number %d of " % (number + 1)
                return "%s%s is %r, and was %r" % (at, path, two, one)
    return ""


def restrict() -> None:
    """Let this process neither go on for long, nor write to a file or a terminal.

    Nothing is recorded: made inputs are not evidence.
    """
    signal.alarm(SECONDS)
    recorder: Any = sys.modules.get("torchmigrate_recorder")
    if recorder is not None:
        recorder._EVERY = float("inf")  # the process ends without writing the rest
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    import torch

    torch.set_num_threads(1)


def release() -> None:
    """Let this process write again."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
