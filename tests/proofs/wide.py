"""Wider inputs for the proofs of numerical rules: every safe example runs on a family of inputs.

An example is written for the usual input. A safe fix has to hold for all that the old operation takes, so each of its
tensors is changed in every way below. Compared is what the old side gave on the last old release that ran it;
statements that raised there are left out, and those that only raise today differ.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from old_torch.compare import RAISED
from torch import Tensor

from proofs import run
from torchmigrate.catalogue.examples import Example
from torchmigrate.findings import Applicability

FILES = frozenset(
    f"torch/{name}"
    for name in ("linalg", "linalg_factors", "maths", "fft", "complex", "losses", "upsampling")
) | {"torchaudio/functional", "adoption/linalg", "adoption/numerics"}
# Words of the vocabulary that change all tensors of an example.
TOGETHER = (
    "strided", "backwards", "batch", "expanded", "single", "half", "complexed", "noise", "singular", "zeros", "shorter",
    "narrower", "longer", "one", "empty", "none", "whole",
)  # fmt: skip
# And those that change one of them, where there are others; with the others as they are, and in as many copies as they
# have rows, where a batch of vectors looks like a matrix.
ALONE = ("batch", "vector", "column", "vectors")


# Differences that are not those of a fix, by example and family.
_NOT_SQUARE = (
    "the old function did not look at the sizes of a matrix without elements, which need not be the same"
)
EXPLAINED = {
    "TM106-cholesky-1/empty": _NOT_SQUARE,
    "TM106-cholesky-1/none": _NOT_SQUARE,
    "TM107-potrf-1/none": _NOT_SQUARE,
    "TM910-linalg-names-1/empty": _NOT_SQUARE,
    "TM910-linalg-names-1/none": _NOT_SQUARE,
    "TM152-stft-return-complex-2/complexed": "code that reads real and imaginary parts is not for a complex signal",
    "TM830-audio-cmn-waveform-1/half": "only a keyword changes; sums of half precision are rounded otherwise today",
}


def is_meant(example: Example) -> bool:
    """Whether an example is a safe fix that is run."""
    return example.prove is not None and example.applicability is Applicability.SAFE


def families(prove: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The name of each family, and the inputs of an example in it."""
    with run.scratch():
        values = run.inputs_of(prove)
    tensors = [name for name, value in values.items() if type(value) is Tensor and value.is_floating_point()]
    tensors += [name for name, value in values.items() if type(value) is Tensor and value.is_complex()]
    if not tensors:
        return
    found = [(word, {name: f"{word}({prove[name]})" for name in tensors}) for word in TOGETHER]
    for name in tensors if len(tensors) > 1 else ():
        others = {other: f"copies({prove[other]})" for other in tensors if other != name}
        for word in ALONE:
            changed = {name: f"{word}({prove[name]})"}
            found += [(f"{word}-{name}", changed), (f"{word}-{name}-copies", {**others, **changed})]
    for family, changed in found:
        inputs = {**prove, **changed}
        try:
            with run.scratch():
                run.inputs_of(inputs)
        except run.ProofError:
            continue  # there is no such input
        yield family, inputs


def cases(file: str, example: Example) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Family, both sides and inputs, for an example in a file of rules; nothing for those that are not meant."""
    if file in FILES and is_meant(example):
        assert example.prove is not None
        before, after = map(tolerant, example.sides())
        for family, inputs in families(example.prove):
            yield family, before, after, inputs


def tolerant(code: str) -> str:
    """The code with statements that may raise: their variables are RAISED then."""
    lines = []
    for statement in ast.parse(code).body:
        text = ast.unparse(statement)
        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.With, ast.For)):
            lines.append(text)
            continue
        indented = "\n".join(f"    {line}" for line in text.splitlines())
        names = sorted(
            {item.id for item in ast.walk(statement) if isinstance(item, ast.Name) and _stores(item)} - {"_"}
        )
        instead = "".join(f"{name} = " for name in names) + repr(RAISED) if names else "pass"
        lines.append(f"try:\n{indented}\nexcept Exception:\n    {instead}")
    return "\n".join(lines)


def _stores(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
