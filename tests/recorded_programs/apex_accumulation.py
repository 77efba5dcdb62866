import torch
from support import Options, collect, filled, mixed_precision_on_cpu, module, numbers, printed, weights
from torch import nn

REDUCED = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


class Saver:
    """Notes when it is asked to save; the state of what scales goes with it."""

    def __init__(self, model, optimizer, amp):
        self.saved = []

    def save(self, number):
        self.saved.append(number)


def build(options):
    torch.manual_seed(0)
    build.model = filled(Net())
    return build.model, torch.optim.SGD(build.model.parameters(), lr=0.1, momentum=0.9), BATCHES


def checkpoints(**parts):
    checkpoints.saver = Saver(**parts)
    return checkpoints.saver


LABELS = torch.tensor([0, 1, 2, 0, 1])
BATCHES = [(numbers(5, 4, seed=seed), LABELS) for seed in range(6)]
module("distribution", all_reduce=lambda gradients: REDUCED.append(len(gradients)), rank=lambda: 0)
module("tasks", build=build, checkpoints=checkpoints)

with mixed_precision_on_cpu():
    import program

    def trained(**options):
        del REDUCED[:]
        _, text = printed(lambda: program.main(Options(**options)))
        norms = [float(line.split()[-1].strip("tensor()")) for line in text.splitlines() if line[:2] == "0 "]
        return torch.tensor(norms), weights(build.model), list(REDUCED), checkpoints.saver.saved

    def warmed():
        build(None)
        program.warm_up(Options(rate=0.1, clip=0.5), build.model, BATCHES)
        return weights(build.model)

    results, raised = collect(
        # First of all: where scale_loss does not end an iteration, apex goes on with old casts of the weights.
        warm_up=warmed,
        off=lambda: trained(mixed=True, level="O0", accumulate=2, clip=0.5),
        mixed=lambda: trained(mixed=True, level="O1", accumulate=1, clip=0.5),
        accumulated=lambda: trained(mixed=True, level="O1", accumulate=2, clip=0.5),
        accumulated_unclipped=lambda: trained(mixed=True, level="O1", accumulate=3, clip=0.0),
    )
