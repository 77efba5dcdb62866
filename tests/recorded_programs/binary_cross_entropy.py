from unittest import mock

import program
import torch
from support import collect, filled, numbers, on_cpu, weights
from torch import nn

Segmenter = program.Segmenter


def masks(*shape):
    return (numbers(*shape, seed=5) > 0).to(torch.float32)


def segmented():
    """Trained on the CPU, where autocast("cuda") does nothing, with a scaler that is off."""
    made = []

    def net(channels):
        made.append(filled(Segmenter(channels)))
        return made[0]

    with mock.patch.object(program, "Segmenter", net):
        program.segment([(numbers(2, 3, 4, 4, seed=seed), masks(2, 4, 4)) for seed in range(2)], 2)
    return weights(made[0])


def trained():
    generator, discriminator = filled(nn.Linear(5, 64)), filled(program.Discriminator())
    loss = program.Trainer(generator, discriminator).step(numbers(3, 5), numbers(3, 64, seed=1))
    loss.backward()
    return loss.detach(), [item.grad for item in generator.parameters()]


with on_cpu():
    results, raised = collect(
        forward=lambda: torch.sigmoid(Segmenter(4)(numbers(2, 3, 4, 4))).shape,
        segment=segmented,
        trainer=trained,
        discriminator=lambda: filled(program.Discriminator())(numbers(2, 64)).detach(),
        attention_loss=lambda: program.attention_loss(numbers(2, 4), masks(2, 4)),
        both=lambda: [
            item.detach() for item in program.both(filled(nn.Linear(3, 4)), numbers(2, 3), masks(2, 4))
        ],
    )
