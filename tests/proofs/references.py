"""Functions that no longer work on the torch of the proofs, written in numpy from their documentation.

Parameters, defaults and result fields are those of the last release that had the function (named in each
docstring). Arrays in, arrays out; `patches` puts them in the place of the torch functions.

Where a real old release was recorded for an example, that judges it, gradients included, and nothing of this
is called. These stay for what has no recording: the functions that the tests of the fft codemod generate, and
ten examples whose old side is a method that is called by another name or on an annotated parameter.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

symeig_result = namedtuple("symeig_result", ["eigenvalues", "eigenvectors"])
eig_result = namedtuple("eig_result", ["eigenvalues", "eigenvectors"])
solve_result = namedtuple("solve_result", ["solution", "LU"])
lstsq_result = namedtuple("lstsq_result", ["solution", "QR"])
trtrs_result = namedtuple("trtrs_result", ["solution", "cloned_coefficient"])


def adjoint(a: Array) -> Array:
    return np.swapaxes(a, -1, -2).conj()


def from_triangle(a: Array, upper: bool) -> Array:
    """The Hermitian matrix of which one triangle is given; the other triangle is not read."""
    half = np.triu(a) if upper else np.tril(a)
    diagonal = np.zeros_like(half)
    index = np.arange(a.shape[-1])
    diagonal[..., index, index] = half[..., index, index]
    full: Array = half + adjoint(half) - diagonal
    return full


# ---- eigenvalues (torch 1.12) --------------------------------------------------------------------------


def symeig(input: Array, eigenvectors: bool = False, upper: bool = True) -> symeig_result:
    """Eigenvalues in ascending order; by default only the upper triangle is read."""
    values, vectors = np.linalg.eigh(from_triangle(input, upper))
    if not eigenvectors:
        vectors = np.empty((0,), dtype=input.dtype)
    return symeig_result(values, vectors)


def eig(input: Array, eigenvectors: bool = False) -> eig_result:
    """Eigenvalues as (n, 2); vectors of a complex pair as two columns, real and imaginary part."""
    values, vectors = np.linalg.eig(input)
    pairs = np.stack([values.real, values.imag], axis=-1).astype(input.dtype)
    if not eigenvectors:
        return eig_result(pairs, np.empty((0,), dtype=input.dtype))
    packed = np.array(vectors.real, dtype=input.dtype)
    for column in range(1, len(values)):
        if values[column].imag < 0:  # the second of a pair: the first holds the positive imaginary part
            packed[:, column] = vectors[:, column - 1].imag
    return eig_result(pairs, packed)


def matrix_rank(input: Array, tol: float | None = None, symmetric: bool = False) -> Array:
    """`tol` is absolute; its default is the largest singular value * max(m, n) * eps."""
    s = np.abs(np.linalg.eigvalsh(from_triangle(input, False))) if symmetric else np.linalg.svd(input)[1]
    if tol is None:
        tol = s.max() * max(input.shape) * np.finfo(input.dtype).eps
    return np.asarray((s > tol).sum(), dtype=np.int64)


# ---- systems of equations ------------------------------------------------------------------------------


def lu_packed(a: Array) -> tuple[Array, Array]:
    """LU with partial pivoting: both factors in one matrix, and LAPACK's pivots (from 1)."""
    if a.ndim > 2:
        parts = [lu_packed(item) for item in a]
        return np.stack([lu for lu, _ in parts]), np.stack([pivots for _, pivots in parts])
    lu = np.array(a)
    pivots = np.zeros(min(a.shape), dtype=np.int32)
    for k in range(min(a.shape)):
        best = k + int(np.argmax(np.abs(lu[k:, k])))
        pivots[k] = best + 1
        lu[[k, best]] = lu[[best, k]]
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu, pivots


def permutation(pivots: Array, m: int) -> Array:
    """P such that A = P @ L @ U."""
    if pivots.ndim > 1:
        return np.stack([permutation(item, m) for item in pivots])
    order = np.arange(m)
    for k, pivot in enumerate(pivots):
        order[[k, pivot - 1]] = order[[pivot - 1, k]]
    matrix = np.zeros((m, m))
    matrix[order, np.arange(m)] = 1
    return matrix


def solve(input: Array, A: Array) -> solve_result:
    """torch 1.12: the X of A X = input. The right-hand side comes first."""
    batch = np.broadcast_shapes(input.shape[:-2], A.shape[:-2])
    solution = np.linalg.solve(
        np.broadcast_to(A, batch + A.shape[-2:]), np.broadcast_to(input, batch + input.shape[-2:])
    )
    return solve_result(solution, lu_packed(np.broadcast_to(A, batch + A.shape[-2:]))[0])


def gesv(B: Array, A: Array) -> solve_result:
    """torch 1.1: the former name of `solve`."""
    return solve(B, A)


def lstsq(input: Array, A: Array) -> lstsq_result:
    """torch 1.12: solution (max(m, n), k); for m > n the rows after n hold residuals.

    Full rank is assumed. The sum of squares of a column's rows n to m is its residual sum of squares.
    """
    m, n = A.shape
    solution = np.zeros((max(m, n), input.shape[1]), dtype=input.dtype)
    if m >= n:
        q, r = np.linalg.qr(A, mode="complete")
        projected = q.T @ input
        solution[:n] = np.linalg.solve(r[:n], projected[:n])
        solution[n:m] = projected[n:]
        packed = np.linalg.qr(A, mode="raw")[0].T
    else:
        solution[:] = np.linalg.pinv(A) @ input
        packed = np.linalg.qr(A.T, mode="raw")[0]
    return lstsq_result(solution, packed)


def gels(B: Array, A: Array) -> lstsq_result:
    """torch 1.2: the former name of `lstsq`."""
    return lstsq(B, A)


def trtrs(
    b: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> trtrs_result:
    """torch 1.1: solves with a triangle of A (the upper one by default); the right-hand side comes first."""
    triangle = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        index = np.arange(A.shape[-1])
        triangle[..., index, index] = 1
    if transpose:
        triangle = np.swapaxes(triangle, -1, -2)
    batch = np.broadcast_shapes(b.shape[:-2], A.shape[:-2])
    solution = np.linalg.solve(
        np.broadcast_to(triangle, batch + A.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    )
    return trtrs_result(solution, np.array(A))


# ---- Cholesky and LU under their LAPACK names (torch 1.1) ----------------------------------------------


def potrf(a: Array, upper: bool = True) -> Array:
    """A = U^T U; upper by default, unlike `cholesky`."""
    factor = np.linalg.cholesky(from_triangle(a, upper))
    return adjoint(factor) if upper else factor


def potrs(b: Array, u: Array, upper: bool = True) -> Array:
    """The X of A X = b, from the Cholesky factor of A; upper by default."""
    triangle = np.triu(u) if upper else adjoint(np.tril(u))
    solution: Array = np.linalg.solve(adjoint(triangle) @ triangle, b)
    return solution


def potri(u: Array, upper: bool = True) -> Array:
    """The inverse of A, from its Cholesky factor; upper by default."""
    return potrs(np.eye(u.shape[-1], dtype=u.dtype), u, upper)


def btrifact(A: Array, info: Any = None, pivot: bool = True) -> tuple[Array, Array]:
    """Batched LU: (packed factors, pivots from 1 as int32). torch 1.1."""
    return lu_packed(A)


def btrifact_with_info(A: Array, pivot: bool = True) -> tuple[Array, Array, Array]:
    """`btrifact` and an int32 per matrix: 0 where it worked. torch 1.1."""
    return (*lu_packed(A), np.zeros(A.shape[:-2], dtype=np.int32))


def btrisolve(b: Array, LU_data: Array, LU_pivots: Array) -> Array:
    """Solves with the result of `btrifact`; b is (batch, n) or (batch, n, k). torch 1.1."""
    p, lower, upper = btriunpack(LU_data, LU_pivots)
    columns = b[..., None] if b.ndim == LU_data.ndim - 1 else b
    solution = np.linalg.solve(p @ lower @ upper, columns)
    return solution.reshape(b.shape)


def btriunpack(
    LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Array | None, Array | None, Array | None]:
    """P, L, U of the result of `btrifact`. torch 1.1."""
    p = permutation(LU_pivots, LU_data.shape[-2]).astype(LU_data.dtype) if unpack_pivots else None
    if not unpack_data:
        return p, None, None
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    lower = np.tril(LU_data[..., :, :k], -1)
    index = np.arange(k)
    lower[..., index, index] = 1
    return p, lower, np.triu(LU_data[..., :k, :])


# ---- Fourier transforms before complex tensors (torch 1.7) ---------------------------------------------


def as_complex(pairs: Array) -> Array:
    return pairs[..., 0] + 1j * pairs[..., 1]


def as_pairs(values: Array, like: Array) -> Array:
    return np.stack([values.real, values.imag], axis=-1).astype(like.dtype)


def _axes(ndim: int) -> tuple[int, ...]:
    return tuple(range(-ndim, 0))


def _norm(normalized: bool) -> Any:
    return "ortho" if normalized else "backward"


def fft(input: Array, signal_ndim: int, normalized: bool = False) -> Array:
    """Complex to complex over the last `signal_ndim` dimensions before the one of size 2."""
    return as_pairs(np.fft.fftn(as_complex(input), axes=_axes(signal_ndim), norm=_norm(normalized)), input)


def ifft(input: Array, signal_ndim: int, normalized: bool = False) -> Array:
    """The inverse of `fft`: divides by the number of elements, or by its root if normalized."""
    return as_pairs(np.fft.ifftn(as_complex(input), axes=_axes(signal_ndim), norm=_norm(normalized)), input)


def rfft(input: Array, signal_ndim: int, normalized: bool = False, onesided: bool = True) -> Array:
    """Real to complex; the result is real with a last dimension of 2."""
    transform = np.fft.rfftn if onesided else np.fft.fftn
    return as_pairs(transform(input, axes=_axes(signal_ndim), norm=_norm(normalized)), input)


def irfft(
    input: Array,
    signal_ndim: int,
    normalized: bool = False,
    onesided: bool = True,
    signal_sizes: Sequence[int] | None = None,
) -> Array:
    """Complex to real; `signal_sizes` are the sizes of the result's signal dimensions.

    Without them the last size of a one-sided one was taken to be odd (pytorch/pytorch#19111, #49290).
    """
    values = as_complex(input)
    axes = _axes(signal_ndim)
    if onesided:
        if not signal_sizes:
            signal_sizes = (*values.shape[-signal_ndim:-1], 2 * values.shape[-1] - 1)
        result = np.fft.irfftn(values, s=signal_sizes, axes=axes, norm=_norm(normalized))
    else:
        result = np.fft.ifftn(values, s=signal_sizes, axes=axes, norm=_norm(normalized)).real
    return result.astype(input.dtype)


def _full_window(window: Array | None, win_length: int | None, n_fft: int) -> Array:
    length = win_length or n_fft
    window = np.ones(length) if window is None else window
    left = (n_fft - length) // 2
    return np.pad(window, (left, n_fft - length - left))


def stft(
    input: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    pad_mode: Any = "reflect",
    normalized: bool = False,
    onesided: bool = True,
) -> Array:
    """Short-time Fourier transform: (..., frequencies, frames, 2), real."""
    hop = hop_length or n_fft // 4
    weights = _full_window(window, win_length, n_fft)
    if center:
        mode = {"replicate": "edge", "circular": "wrap"}.get(pad_mode, pad_mode)
        input = np.pad(input, [(0, 0)] * (input.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode=mode)
    starts = range(0, input.shape[-1] - n_fft + 1, hop)
    frames = np.stack([input[..., start : start + n_fft] * weights for start in starts], axis=-1)
    transform = np.fft.rfft if onesided else np.fft.fft
    return as_pairs(transform(frames, axis=-2, norm=_norm(normalized)), input)


def istft(
    input: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool = True,
    length: int | None = None,
) -> Array:
    """The inverse of `stft` by overlap and add, divided by the sum of the squared windows."""
    hop = hop_length or n_fft // 4
    weights = _full_window(window, win_length, n_fft)
    values = as_complex(input)
    if onesided:
        frames = np.fft.irfft(values, n=n_fft, axis=-2, norm=_norm(normalized))
    else:
        frames = np.fft.ifft(values, axis=-2, norm=_norm(normalized)).real
    count = frames.shape[-1]
    total = n_fft + hop * (count - 1)
    result = np.zeros((*frames.shape[:-2], total))
    envelope = np.zeros(total)
    for k in range(count):
        place = slice(k * hop, k * hop + n_fft)
        result[..., place] += frames[..., k] * weights
        envelope[place] += weights**2
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - (n_fft // 2 if center else 0)
    return (result[..., start:end] / envelope[start:end]).astype(input.dtype)
