import contextlib
import os
from unittest import mock

import torch
import torch.distributed as dist
from support import Options, collect, filled, has_apex, module, numbers, on_cpu, weights
from torch import nn

if not has_apex():
    module("apex")
    module("apex.normalization", FusedLayerNorm=nn.LayerNorm)
else:
    # The compiled part, which FusedLayerNorm imports and does not call on the CPU.
    module("fused_layer_norm_cuda")

import program


def warmed():
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    scheduler, rates = program.WarmupScheduler(optimizer, 3), []
    for _ in range(5):
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


@contextlib.contextmanager
def one_process():
    address = "file://" + os.path.abspath("group")
    dist.init_process_group("gloo", init_method=address, rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()
        os.path.exists("group") and os.remove("group")


def trained():
    model = filled(nn.Sequential(program.Block(4), program.Block(4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    batches = [(numbers(3, 4, seed=seed), numbers(3, 4, seed=seed + 1)) for seed in range(3)]
    with one_process():
        program.train(model, optimizer, scheduler, batches, Options(fp16=False, clip=1.0))
    return weights(model)


def gathered():
    with one_process():
        return program.gather(numbers(3), 1)


def saved():
    """Without the state of amp, which these programs cannot have."""
    model = filled(nn.Linear(2, 2))
    with mock.patch.object(program, "HAS_APEX", False):
        program.save(model, torch.optim.SGD(model.parameters(), lr=0.1), "last.pt")
    return sorted(torch.load("last.pt")), list(torch.load("last.pt")["model"].values())


with on_cpu():
    results, raised = collect(
        warmup=warmed,
        block=lambda: filled(program.Block(4))(numbers(3, 4)).detach(),
        train=trained,
        gather=gathered,
        save=saved,
    )
