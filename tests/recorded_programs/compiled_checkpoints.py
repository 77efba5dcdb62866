from unittest import mock

import torch
import torch._dynamo
from support import Options, collect, filled, module, numbers, on_cpu, weights
from torch import nn

module("data", make_loader=None)
module("metrics", mean_iou=lambda model, loader: sum(float(model(x).sum()) for x in loader))


def eager(function):
    """Captured and run as captured, whatever backend and mode are asked for: no compiler of C++ is needed."""

    def compiled(*args, **kwargs):
        kwargs.update(backend="eager", mode=None)
        return function(*args, **kwargs)

    return compiled


def captured(optimize):
    """The same of what torch.compile is made of."""
    return lambda backend, **kwargs: optimize("eager", **kwargs)


class Wrapped(nn.Module):
    """DistributedDataParallel of one process."""

    def __init__(self, module, device_ids):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


patches = [mock.patch.object(torch, "compile", eager(torch.compile))]
if hasattr(nn.Module, "compile"):
    patches.append(mock.patch.object(nn.Module, "compile", eager(nn.Module.compile)))
patches.append(mock.patch.object(torch._dynamo, "optimize", captured(torch._dynamo.optimize)))
for patch in patches:
    patch.start()

import program  # noqa: E402 (compiles)


def upscale(**kwargs):
    return filled(program.Upscale(2, **kwargs))


def trainer(compiled):
    options = Options(compile=compiled, mode="reduce-overhead", world=1, lr=0.01, out=".")
    return program.Trainer(filled(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))), options, "cpu")


def saved(compiled):
    made = trainer(compiled)
    made.save("last.pt", 3)
    state = torch.load("last.pt")
    return sorted(state), sorted(state["model"]), made.wrapped(numbers(4, 3)).detach()


def loaded():
    """A checkpoint of a model that was not compiled goes into one that was not."""
    trainer(False).save("plain.pt", 5)
    return trainer(False).load("plain.pt")


def distilled():
    teacher, student = filled(nn.Linear(3, 2)), filled(nn.Linear(3, 2), 0.1)
    program.distill(
        Options(lr=0.1, backend="eager"), teacher, student, [numbers(4, 3), numbers(4, 3, seed=1)]
    )
    return sorted(torch.load("student.pt")), weights(student)


def exported():
    program.export(nn.Linear(3, 2))
    return sorted(torch.load("fast.pt"))


def evaluated():
    net = filled(nn.Linear(3, 2))
    with mock.patch.object(program, "DDP", Wrapped):
        score = program.evaluate(Options(compile=True), net, [numbers(4, 3), numbers(4, 3, seed=1)], 0)
    return torch.tensor(score), sorted(torch.load("scored.pt"))


with on_cpu():
    results, raised = collect(
        upscale=lambda: upscale()(numbers(1, 2, 3, 3)).detach(),
        upscale_masked=lambda: upscale(limit=0.1)(numbers(1, 2, 3, 3), numbers(1, 8, 3, 3) > 0).detach(),
        saved=lambda: saved(False),
        saved_compiled=lambda: saved(True),
        loaded=loaded,
        distill=distilled,
        export=exported,
        dice=lambda: program.dice(numbers(4, 4), (numbers(4, 4, seed=1) > 0).float()),
        evaluate=evaluated,
    )
for patch in patches:
    patch.stop()
