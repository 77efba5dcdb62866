import functools
import sys
from unittest import mock

import torch
from support import collect, filled, module, numbers, on_cpu, printed

BATCHES = [(numbers(6, 8, seed=seed), torch.tensor([0, 1, 2, 3, 4, seed])) for seed in range(2)]
module("data", make_loader=lambda rank: BATCHES)
if hasattr(torch, "compile"):
    torch.compile = functools.partial(torch.compile, backend="eager")

import program  # noqa: E402 (wants the data)

Classifier = program.Classifier


def trained():
    made = lambda *args, **kwargs: filled(Classifier(*args, **kwargs), 0.2)  # noqa: E731
    arguments = ["program", "--epochs", "3", "--width", "8"]
    with mock.patch.object(program, "Classifier", made), mock.patch.object(sys, "argv", arguments):
        return printed(program.main)[1].splitlines()


with on_cpu():
    results, raised = collect(
        main=trained,
        forward=lambda: filled(Classifier(8, 2, 3))(numbers(4, 8)).detach(),
        build=lambda: filled(program.build(8))(numbers(4, 8)).detach(),
    )
