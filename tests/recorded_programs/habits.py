from support import collect, module, numbers, with_gradients
from torch import nn

module("pytest")

import program  # noqa: E402 (wants it)


def mixture():
    made = program.Mixture()
    made.scale.data.copy_(numbers(3))
    return with_gradients(made, numbers(3, 3).abs())


def frozen():
    net = nn.Module()
    net.a, net.b, net.fc = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
    program.freeze(net)
    return [parameter.requires_grad for parameter in net.parameters()]


results, raised = collect(
    mixture=mixture,
    freeze=frozen,
    collate=lambda: program.collate([(1, numbers(2)), None, (2, numbers(2, seed=1))]),
)
