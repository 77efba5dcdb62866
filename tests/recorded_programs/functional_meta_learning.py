from unittest import mock

import program
import torch
from support import Options, collect, filled, numbers, printed, weights
from torch import nn

TASK = [numbers(4, 1, seed=seed) for seed in range(4)]
TASKS = [numbers(3, 4, 1, seed=seed) for seed in range(4)]
Regressor = program.Regressor


def net(hidden=40):
    return filled(Regressor(hidden))


def models(self=None):
    """Networks that differ, one for each call."""
    models.made += 1
    return filled(Regressor(8), 0.1 * models.made)


models.made = 0


def trained():
    options = Options(device="cpu", lr=0.01, steps=3, tasks=3, shots=4, inner=2)
    with mock.patch.object(program, "Regressor", net), mock.patch.object(program, "sample_tasks", tasks):
        _, text = printed(lambda: program.meta_train(options))
    counted, error = text.splitlines()
    return counted, torch.tensor(float(error))


def tasks(count, shots):
    return [numbers(count, shots, 1, seed=seed) for seed in range(4)]


def ensemble_mean():
    models.made = 0
    with mock.patch.object(program, "Regressor", models):
        return program.ensemble_mean(numbers(6, 1)).detach()


def norms():
    image = filled(nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)))
    per_sample = program.PerSample(image, nn.functional.cross_entropy)
    return per_sample.norms(numbers(6, 5), torch.tensor([0, 1, 2, 2, 1, 0])).detach()


def exported():
    given = net()
    result = program.exported(given, "params.pt")
    try:
        saved = torch.load("params.pt", weights_only=False)
    except TypeError:
        saved = torch.load("params.pt")
    return result.detach(), type(saved).__name__, [item.detach() for item in saved]


results, raised = collect(
    sample_tasks=lambda: [list(item.shape) for item in program.sample_tasks(3, 5)],
    meta_train=trained,
    norms=norms,
    ensemble_mean=ensemble_mean,
    exported=exported,
    left_alone=lambda: weights(net()),
)
