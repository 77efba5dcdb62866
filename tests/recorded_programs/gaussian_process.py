import program
import torch
from support import collect, numbers, positive_definite, with_gradients

X, Y, Z = (
    numbers(6, 2, dtype=torch.float64),
    numbers(6, seed=1, dtype=torch.float64),
    numbers(3, 2, seed=2, dtype=torch.float64),
)
K, A, B = positive_definite(5), numbers(7, 3, dtype=torch.float64), numbers(7, 2, seed=1, dtype=torch.float64)


def sampled():
    # The numbers that it draws are those of the release.
    sample = program.ExactGP(X, Y).sample(Z)
    return list(sample.shape), bool(torch.isfinite(sample).all())


results, raised = collect(
    rbf=lambda: program.rbf(X, Z),
    likelihood=lambda: with_gradients(
        lambda x, y: program.ExactGP(x, y).log_marginal_likelihood().reshape(1), X, Y
    ),
    predict=lambda: program.ExactGP(X, Y).predict(Z),
    predict_gradient=lambda: with_gradients(lambda x, z: program.ExactGP(x, Y).predict(z)[0], X, Z),
    sample=sampled,
    nystroem=lambda: program.nystroem(K, 3),
    spectrum=lambda: program.spectrum(K),
    condition=lambda: program.condition(K),
    low_rank=lambda: program.low_rank(A, 2),
    least_squares=lambda: program.least_squares(A, B),
    newton_step=lambda: with_gradients(program.newton_step, K, numbers(5, dtype=torch.float64)),
    newton_step_old=lambda: with_gradients(program.newton_step_old, K, numbers(5, 2, dtype=torch.float64)),
    factor=lambda: program.factor(K),
    outer_sum=lambda: with_gradients(program.outer_sum, numbers(4), numbers(4, seed=1)),
    is_full_rank=lambda: [program.is_full_rank(item) for item in (K, torch.ones(3, 3))],
    legacy_eigenvalues=lambda: program.legacy_eigenvalues(K).sort()[0],
    lazy=lambda: program.lazy(program.LazyKernel(K))[0][0],
)
