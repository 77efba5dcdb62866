import sys
from unittest import mock

import torch
from support import Options, collect, filled, numbers, numbers_by_index, printed, weights

with mock.patch.object(sys, "argv", ["program"]):
    import program


class Loader(list):
    """Batches, with the data that they are from."""

    dataset = Options(data=numbers(2, 2))


def batches():
    return Loader((numbers(4, 784, seed=seed), torch.tensor([1, 0, 7, seed])) for seed in range(3))


def net():
    return filled(program.Net(), 0.05)


def test():
    _, text = printed(lambda: program.test(net(), batches(), torch.nn.functional.nll_loss))
    # Either 0.1234 and a tensor, or a number: what was right says the same.
    loss, _, right = text.partition("\n")[0].split(" tensor(")[0].partition(" ")
    return float(loss), "".join(filter(str.isdigit, right.partition("[")[0]))


def trained():
    model = net()
    _, text = printed(lambda: program.train(model, batches(), torch.optim.SGD(model.parameters(), lr=0.1)))
    return float(text), weights(model)


def metered():
    meter = program.Meter()
    meter.add({"a": torch.tensor(1.5), "b": torch.tensor(2.25)})
    return meter.total


def kept():
    meter = program.Meter()
    program.keep(meter, net(), numbers(2, 784))
    return meter.last.detach()


with numbers_by_index():
    results, raised = collect(
        meter=metered,
        train=trained,
        test=test,
        visualize=lambda: len(printed(lambda: program.visualize(net(), numbers(1, 784), None))[1]) > 100,
        keep=kept,
        generate=lambda: program.generate(net(), 3),
        language=lambda: program.language(net(), numbers(70, 784)),
    )
