from importlib.util import find_spec

import torch
from support import collect, filled, module, numbers
from torch import nn


def cond(flag, yes, no, inputs):
    """A branch that data decides on."""
    return yes(*inputs) if flag else no(*inputs)


# Releases of functorch before the one with control flow have everything else.
if find_spec("functorch"):
    if find_spec("functorch.experimental") is None:
        module("functorch.experimental", __path__=[])
    if find_spec("functorch.experimental.control_flow") is None:
        module("functorch.experimental.control_flow", cond=cond)

import program  # noqa: E402 (wants it)


def net(scale=0.3):
    return filled(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)), scale).eval()


def cube(x):
    return (x * x * x).sum() + (x.prod() * 2)


results, raised = collect(
    per_sample_gradients=lambda: [
        item.detach() for item in program.per_sample_gradients(net(), numbers(5, 3), numbers(5, 2, seed=1))
    ],
    ensemble=lambda: program.ensemble([net(0.1), net(0.2), net(0.4)], numbers(5, 3)).detach(),
    ensemble_of_iterator=lambda: program.ensemble(map(net, (0.1, 0.2)), numbers(5, 3)).detach(),
    jacobians=lambda: program.jacobians(torch.sin, numbers(4)),
    newton=lambda: program.newton(cube, numbers(3) + 2),
    relu_or_tanh=lambda: [program.relu_or_tanh(torch.tensor(flag), numbers(4)) for flag in (True, False)],
    trace=lambda: "sin" in program.trace(torch.sin, numbers(4)),
)
