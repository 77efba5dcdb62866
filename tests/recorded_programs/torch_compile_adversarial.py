import functools
import os
from unittest import mock

import torch
from support import collect, module, numbers, weights
from torch import nn

if hasattr(torch, "compile"):
    torch.compile = functools.partial(torch.compile, backend="eager")
if hasattr(nn.Module, "compile"):
    nn.Module.compile = functools.partialmethod(nn.Module.compile, backend="eager")


def weights_init(layer):
    if isinstance(layer, nn.Linear):
        layer.weight.data.copy_(numbers(*layer.weight.shape) * 0.05)
        layer.bias.data.zero_()


module("layers", weights_init=weights_init)
os.mkdir("out")

# It trains when it is imported, here on one batch an epoch, and on given numbers.
with mock.patch.multiple(torch, rand=lambda *_: numbers(4, 784).abs(), randn=numbers):
    import program


def saved():
    state = torch.load("out/generator.pt")
    return state["epoch"], list(state["weights"]), list(state["weights"].values())


results, raised = collect(
    generator=lambda: weights(program.generator),
    discriminator=lambda: weights(program.discriminator),
    losses=lambda: [program.g_loss.detach(), program.d_loss.detach()],
    checkpoint=saved,
)
