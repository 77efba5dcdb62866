import torch
from support import Options, collect, filled, mixed_precision_on_cpu, numbers, weights
from torch import nn

with mixed_precision_on_cpu():
    import program

    def painted(level, every, batches):
        options = Options(lr=0.01, level=level, every=every)
        painter = program.Painter(filled(nn.Linear(3, 4)), filled(nn.Linear(4, 1), 0.5), options)
        painter.fit(batches)
        return weights(painter.generator), weights(painter.critic), painter.paint(numbers(2, 3, seed=9))

    BATCHES = [(numbers(5, 3, seed=seed), numbers(5, 4, seed=seed + 1)) for seed in range(4)]
    # One whose gradients are not finite: the step of the critic is left out.
    TOO_LARGE = (numbers(5, 3), torch.full((5, 4), 3e38))

    results, raised = collect(
        plain=lambda: painted("O0", 1, BATCHES),
        mixed=lambda: painted("O1", 1, BATCHES),
        mixed_every_second=lambda: painted("O1", 2, BATCHES),
        overflow=lambda: painted("O1", 1, [BATCHES[0], TOO_LARGE, *BATCHES[1:]]),
    )
