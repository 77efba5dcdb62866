"""The numpy references against values known from elsewhere: by hand, from the old manuals, or from numpy."""

from __future__ import annotations

import numpy as np
import pytest
from proofs import references as old

RANDOM = np.random.default_rng(0)
# The system of equations in the manual of torch.solve and LAPACK's gesv.
A5 = np.array(
    [
        [6.80, -6.05, -0.45, 8.32, -9.67],
        [-2.11, -3.30, 2.58, 2.71, -5.14],
        [5.66, 5.36, -2.70, 4.35, -7.26],
        [5.97, -4.44, 0.27, -7.17, 6.08],
        [8.23, 1.08, 9.04, 2.14, -6.87],
    ]
)
B5 = np.array(
    [
        [4.02, -1.56, 9.81],
        [6.19, 4.00, -4.09],
        [-8.22, -8.67, -4.57],
        [-7.57, 1.75, -8.61],
        [-3.03, 2.86, 8.99],
    ]
)
X5 = np.array(
    [
        [-0.8007, -0.3896, 0.9555],
        [-0.6952, -0.5544, 0.2207],
        [0.5939, 0.8422, 1.9006],
        [1.3217, -0.1038, 5.3577],
        [0.5658, 0.1057, 4.0406],
    ]
)


def test_symeig_reads_the_upper_triangle_by_default():
    a = np.array([[2.0, 1.0], [99.0, 2.0]])
    assert np.allclose(old.symeig(a).eigenvalues, [1, 3])
    assert old.symeig(a).eigenvectors.shape == (0,)
    values, vectors = old.symeig(a.T, eigenvectors=True, upper=False)
    assert np.allclose(values, [1, 3])
    assert np.allclose(np.abs(vectors), np.sqrt(0.5))


def test_symeig_of_batches_of_hermitian_matrices():
    a = RANDOM.normal(size=(2, 3, 3)) + 1j * RANDOM.normal(size=(2, 3, 3))
    a = a + old.adjoint(a)
    values, vectors = old.symeig(np.triu(a), eigenvectors=True)
    assert np.allclose(a @ vectors, vectors * values[:, None, :])


def test_eig_gives_pairs_and_packed_vectors():
    rotation = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    values, vectors = old.eig(rotation, eigenvectors=True)
    assert np.allclose(values, [[0, 1], [0, -1], [3, 0]])
    v = vectors[:, 0] + 1j * vectors[:, 1]
    assert np.allclose(rotation @ v, 1j * v)
    assert np.allclose(np.abs(vectors[:, 2]), [0, 0, 1])
    assert old.eig(rotation).eigenvectors.shape == (0,)


def test_matrix_rank_has_an_absolute_tolerance():
    assert old.matrix_rank(np.eye(10)) == 10
    assert old.matrix_rank(np.diag([100.0, 1.0, 1e-20])) == 2
    assert old.matrix_rank(np.diag([100.0, 1.0, 0.4]), 0.5) == 2
    assert old.matrix_rank(np.diag([-3.0, 0.1]), 0.5, symmetric=True) == 1


def test_solve_takes_the_right_hand_side_first():
    solution, lu = old.solve(B5, A5)
    assert np.allclose(solution, X5, atol=5e-5)
    assert lu[0, 0] == 8.23  # the largest of the first column is the first pivot
    assert np.allclose(old.gesv(B5, A5).solution, solution)


def test_lu_unpacks_to_the_matrix():
    a = RANDOM.normal(size=(2, 4, 4))
    lu, pivots = old.btrifact(a)
    assert pivots.dtype == np.int32
    assert pivots.min() >= 1
    p, lower, upper = old.btriunpack(lu, pivots)
    assert np.allclose(p @ lower @ upper, a)
    assert np.allclose(np.tril(lower), lower)
    assert np.allclose(np.triu(upper), upper)
    assert np.array_equal(old.btrifact_with_info(a)[2], [0, 0])
    assert old.btriunpack(lu, pivots, unpack_data=False)[1:] == (None, None)
    b = RANDOM.normal(size=(2, 4))
    assert np.allclose(np.einsum("bij,bj->bi", a, old.btrisolve(b, lu, pivots)), b)


def test_lstsq_as_in_its_manual():
    a = np.array([[1.0, 1, 1], [2, 3, 4], [3, 5, 2], [4, 2, 5], [5, 4, 3]])
    b = np.array([[-10.0, -3], [12, 14], [14, 12], [16, 16], [18, 16]])
    solution, qr = old.lstsq(b, a)
    assert solution.shape == (5, 2)
    assert np.allclose(solution[:3], [[2, 1], [1, 1], [1, 2]])
    assert np.allclose((solution[3:] ** 2).sum(0), ((a @ solution[:3] - b) ** 2).sum(0))
    assert qr.shape == a.shape
    assert np.allclose(old.gels(b, a).solution, solution)


def test_lstsq_with_fewer_equations_gives_the_shortest_solution():
    a, b = RANDOM.normal(size=(2, 4)), RANDOM.normal(size=(2, 1))
    solution = old.lstsq(b, a).solution
    assert solution.shape == (4, 1)
    assert np.allclose(solution, np.linalg.lstsq(a, b, rcond=None)[0])


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_trtrs_reads_one_triangle(upper, transpose):
    a, b = RANDOM.normal(size=(4, 4)) + 3 * np.eye(4), RANDOM.normal(size=(4, 2))
    triangle = np.triu(a) if upper else np.tril(a)
    x = old.trtrs(b, a, upper, transpose).solution
    assert np.allclose((triangle.T if transpose else triangle) @ x, b)


def test_trtrs_with_a_unit_diagonal():
    a, b = np.array([[5.0, 2.0], [0.0, 7.0]]), np.array([[4.0], [1.0]])
    assert np.allclose(old.trtrs(b, a, unitriangular=True).solution, [[2], [1]])


def test_cholesky_under_lapack_names_is_upper_by_default():
    a = np.array([[4.0, 2.0], [2.0, 5.0]])
    assert np.allclose(old.potrf(a), [[2, 1], [0, 2]])
    assert np.allclose(old.potrf(a, upper=False), [[2, 0], [1, 2]])
    assert np.allclose(old.potrf(np.triu(a)), [[2, 1], [0, 2]])
    b = np.array([[8.0], [9.0]])
    assert np.allclose(a @ old.potrs(b, old.potrf(a)), b)
    assert np.allclose(a @ old.potrs(b, old.potrf(a, False), False), b)
    assert np.allclose(a @ old.potri(old.potrf(a)), np.eye(2))


def test_fft_of_an_impulse_and_back():
    impulse = np.zeros((4, 2))
    impulse[0, 0] = 1
    assert np.allclose(old.fft(impulse, 1), [[1, 0]] * 4)
    assert np.allclose(old.fft(impulse, 1, normalized=True), [[0.5, 0]] * 4)
    x = RANDOM.normal(size=(3, 4, 5, 2))
    for normalized in (True, False):
        assert np.allclose(old.ifft(old.fft(x, 2, normalized), 2, normalized), x)
    assert np.allclose(old.fft(x, 1)[1, 2], old.fft(x[1, 2], 1))


def test_rfft_layout_and_back():
    x = RANDOM.normal(size=(3, 6, 5))
    assert old.rfft(x, 2).shape == (3, 6, 3, 2)
    assert old.rfft(x, 2, onesided=False).shape == (3, 6, 5, 2)
    assert np.allclose(old.rfft(np.array([1.0, 0, -1, 0]), 1), [[0, 0], [2, 0], [0, 0]])
    for normalized in (True, False):
        assert np.allclose(old.irfft(old.rfft(x, 2, normalized), 2, normalized, signal_sizes=(6, 5)), x)
        assert np.allclose(old.irfft(old.rfft(x, 2, normalized, False), 2, normalized, False), x)
    assert old.irfft(old.rfft(x, 2), 2).shape == (3, 6, 5)  # an odd size, unless asked for


def test_stft_of_a_constant_and_back():
    flat = old.stft(np.ones(16), 4, center=False)
    assert flat.shape == (3, 13, 2)
    assert np.allclose(flat[0], [4, 0])
    assert np.allclose(flat[1:], 0)
    assert np.allclose(old.stft(np.ones(16), 4, center=False, normalized=True)[0], [2, 0])
    x = RANDOM.normal(size=(2, 64))
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16)
    y = old.stft(x, 16, 4, window=hann)
    assert y.shape == (2, 9, 17, 2)
    assert np.allclose(old.istft(y, 16, 4, window=hann), x)
    assert np.allclose(old.istft(y, 16, 4, window=hann, length=50), x[:, :50])
    whole = old.stft(x, 16, 4, window=hann, onesided=False, normalized=True)
    assert np.allclose(old.istft(whole, 16, 4, window=hann, onesided=False, normalized=True), x)
    short = old.stft(x, 16, 4, win_length=8, window=hann[::2])
    assert np.allclose(old.istft(short, 16, 4, win_length=8, window=hann[::2]), x)
