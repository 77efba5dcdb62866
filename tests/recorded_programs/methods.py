from unittest import mock

import numpy as np
import torch
from support import collect, filled, module, numbers, positive_definite


class LazyMatrix:
    """Of another library, with methods of the same names."""

    def __init__(self, size):
        self.size = size

    def symeig(self, eigenvectors=False):
        return "lazy values", "lazy vectors"


class Table(np.ndarray):
    """An array that can do what the program asks of arrays."""

    def cholesky(self):
        return np.linalg.cholesky(np.asarray(self))

    def norm(self):
        return float(np.linalg.norm(self))


module("lazy", LazyMatrix=LazyMatrix)
module("pandas", DataFrame=object)

import program  # noqa: E402 (wants what was made just now)


def _flat(shape):
    return shape[0] if isinstance(shape[0], tuple) else shape


def whitening():
    with mock.patch.object(torch, "empty", lambda *shape, **_: numbers(*_flat(shape))):
        made = program.Whitening(3)
    filled(made, 1.0)
    made.covariance = positive_definite(3)
    made.table = made.table.view(Table)
    return made


def reset():
    made = whitening()
    made.reset()
    q = made.weight.detach()
    return q.matmul(q.t()), q.abs()


def forward():
    made = whitening()
    made.set_scale([3.0, 4.0])
    u, s, v, table, mask, scale = made(numbers(4, 3), numbers(4, seed=1))
    return u.abs().detach(), s.detach(), v.abs().detach(), table, mask, scale


def roots():
    values, vectors, *others = whitening().roots()
    return values, vectors.abs(), others


results, raised = collect(
    reset=reset,
    roots=roots,
    forward=forward,
    describe=lambda: whitening().describe(),
    rotation=lambda: program.Rotation(numbers(2, 2)).norm(),
    either=lambda: program.either(numbers(2)),
)
