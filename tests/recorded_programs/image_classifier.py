import os
import sys
from unittest import mock

import torch
from PIL import Image
from support import collect, filled, numbers, numbers_by_index, on_cpu, weights

with mock.patch.object(sys, "argv", ["program", "data"]):
    import program


def batches():
    return [(numbers(4, 3, 32, 32, seed=seed), torch.tensor([1, 0, 7, seed])) for seed in range(2)]


def trained():
    model = filled(program.Net(), 0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return program.train(model, batches(), optimizer, 5.0), weights(model)


def validated():
    correct, loss = program.validate(filled(program.Net(), 0.05), batches())
    return int(correct), loss


def initialised():
    return [float(item.abs().sum()) > 0 for item in weights(program.Net())]


def loaded():
    """Pictures of one colour, since what releases draw is not the same."""
    for folder in ("train/a", "train/b", "val/a"):
        os.makedirs(os.path.join("data", folder))
        Image.new("RGB", (40, 60), (51, 102, 204)).save(os.path.join("data", folder, "one.png"))
    return [
        [(images.shape, images[:, :, 9, 9], labels.sum()) for images, labels in item]
        for item in program.loaders("data")
    ]


with numbers_by_index(), on_cpu():
    results, raised = collect(
        init=initialised,
        forward=lambda: filled(program.Net(), 0.05)(numbers(2, 3, 32, 32)).detach(),
        train=trained,
        validate=validated,
        loaders=loaded,
    )
