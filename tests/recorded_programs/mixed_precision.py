from unittest import mock

import program
import torch
from support import collect, filled, numbers, on_cpu, weights
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 1)

    def encode(self, x):
        return torch.tanh(self.body(x))

    def forward(self, x):
        return self.head(x).pow(2).mean() if x.size(1) == 4 else self.head(self.encode(x))


class Wrapped(nn.Module):
    """DistributedDataParallel of one process."""

    def __init__(self, module, device_ids):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


def trainer(use_amp=True):
    net = filled(Net())
    return program.Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), use_amp)


def trained(use_amp):
    made = trainer(use_amp)
    batch = {"x": numbers(5, 3).requires_grad_()}
    return torch.tensor([made.step(batch) for _ in range(3)]), weights(made.model)


def resumed():
    """The same release writes and reads."""
    made = trainer()
    made.save("last.pt")
    fresh = trainer()
    for item in fresh.model.parameters():
        item.data.zero_()
    fresh.resume("last.pt")
    return weights(fresh.model)


def scaled():
    x = numbers(4).requires_grad_()
    y = program.Scale.apply(x, 2.5)
    y.sum().backward()
    return y.detach(), x.grad


with on_cpu(), mock.patch.object(program, "DDP", Wrapped):
    results, raised = collect(
        scale=scaled,
        step=lambda: trained(True),
        step_in_full=lambda: trained(False),
        evaluate=lambda: trainer().evaluate([{"x": numbers(5, 3, seed=seed)} for seed in range(2)]),
        in_full_precision=lambda: trainer().in_full_precision(numbers(5, 3)).detach(),
        resume=resumed,
        is_scaler=lambda: [program.is_scaler(item) for item in (trainer().scaler, 3)],
        cpu_inference=lambda: program.cpu_inference(filled(nn.Linear(3, 2)), numbers(4, 3)).float(),
    )
