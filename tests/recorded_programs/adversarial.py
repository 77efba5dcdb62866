from unittest import mock

import program
import torch
from support import collect, filled, numbers, numbers_by_index, weights
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(100, 12)

    def forward(self, z):
        return torch.tanh(self.linear(z)).view(-1, 3, 2, 2)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(12, 1)

    def forward(self, x):
        return torch.sigmoid(self.linear(x.view(x.size(0), -1)))


def step():
    generator, discriminator = filled(Generator()), filled(Discriminator())
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (generator, discriminator)]
    schedule = torch.optim.lr_scheduler.StepLR(optimizers[0], 1, gamma=0.5)
    losses = [
        program.step(generator, discriminator, numbers(5, 3, 2, 2), *optimizers, schedule) for _ in range(2)
    ]
    return losses, weights(generator), weights(discriminator)


def initialised():
    net = filled(nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)))
    before = weights(net)
    net.apply(program.weights_init)
    changed = [not torch.equal(one, other) for one, other in zip(before, weights(net))]
    return changed, [
        bool((item - shift).abs().max() < 0.2) for item, shift in zip(weights(net), (0, 0, 1, 0))
    ]


def uniform(tensor, *_, **__):
    return tensor.copy_(numbers(*tensor.shape).abs())


# What releases draw from one seed is not the same.
uniform_ = mock.patch.object(torch.Tensor, "uniform_", uniform)
with numbers_by_index(), uniform_, mock.patch.object(torch, "randn", numbers):
    results, raised = collect(
        weights_init=initialised,
        up=lambda: program.Up(2)(numbers(1, 2, 3, 3), numbers(1, 2, 4, 4, seed=1)),
        adversarial_loss=lambda: program.adversarial_loss(numbers(4).abs(), numbers(4, seed=1).abs()),
        pixelwise_loss=lambda: program.pixelwise_loss(numbers(4), numbers(4, seed=1)),
        perceptual=lambda: program.perceptual(numbers(4), numbers(4, seed=1)),
        gradient_penalty=lambda: program.gradient_penalty(
            filled(Discriminator()), numbers(5, 3, 2, 2), numbers(5, 3, 2, 2, seed=1)
        ),
        step=step,
    )
