import functools

import torch
from support import collect, filled, numbers, weights
from torch import nn

if hasattr(torch, "compile"):
    # Captured as ever, and run as captured: neither release needs a compiler of C++.
    torch.compile = functools.partial(torch.compile, backend="eager")

import program


def net():
    return filled(nn.Linear(4, 3))


LABELS = torch.tensor([0, 1, 2, 0, 1])
BATCH = (numbers(5, 4), LABELS)
VIEWS = ((numbers(5, 4), numbers(5, 4, seed=1)), None)


def pretrained():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return [program.pretrain_step(model, optimizer, VIEWS) for _ in range(3)], weights(model)


def step():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = [program.train_step(model, nn.CrossEntropyLoss(), optimizer, BATCH) for _ in range(3)]
    return torch.tensor(losses), weights(model)


def trained():
    model = net()
    program.train(model, [VIEWS, VIEWS], torch.optim.SGD(model.parameters(), lr=0.1))
    return weights(model)


def scheduled():
    optimizer = torch.optim.SGD(net().parameters(), lr=0.1)
    program.optimizer_step(optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1))
    return optimizer.param_groups[0]["lr"]


def runner():
    made = program.Runner()
    made.model = net()
    return made.train_step(BATCH).detach()


results, raised = collect(
    nt_xent_loss=lambda: program.nt_xent_loss(numbers(5, 4), numbers(5, 4, seed=1), 0.1),
    pretrain_step=pretrained,
    train_step=step,
    eval_step=lambda: program.eval_step(net(), BATCH),
    optimizer_step=scheduled,
    runner=runner,
    train=trained,
)
