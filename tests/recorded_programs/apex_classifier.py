import contextlib
import os
import sys
from unittest import mock

import torch
from support import collect, filled, has_apex, mixed_precision_on_cpu, module, numbers, printed, scale_of
from torch import nn

os.environ["LOCAL_RANK"] = "0"
BATCHES = [(numbers(5, 4, seed=seed), torch.tensor([0, 1, 2, 0, 1])) for seed in range(3)]
TOO_LARGE = [(torch.full((5, 4), 1e38), torch.tensor([0, 1, 2, 0, 1]))]


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
        filled(self.body)

    def forward(self, x):
        return self.body(x)


@contextlib.contextmanager
def surroundings(batches):
    """What it takes beside the program: loaders, one process, and a file that old releases can read."""
    load = torch.load
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(vars(program.models), tiny=Tiny))
        stack.enter_context(mock.patch.object(program, "loaders", lambda _: (batches, BATCHES), create=True))
        stack.enter_context(mock.patch.object(program, "DDP", lambda model, **_: model))
        stack.enter_context(mock.patch.object(program.dist, "init_process_group", lambda _: None))
        stack.enter_context(mock.patch.object(torch.cuda, "set_device", lambda _: None))
        stack.enter_context(mock.patch.object(torch.cuda, "current_device", lambda: 0))
        if "weights_only" not in load.__code__.co_varnames:
            stack.enter_context(
                mock.patch.object(torch, "load", lambda path, weights_only, **kw: load(path, **kw))
            )
        yield


if not has_apex():
    # What the program still wants of it after the fixes, and calls no more than the driver lets it.
    module("apex")
    module("apex.parallel", DistributedDataParallel=None, convert_syncbn_model=None)

with mixed_precision_on_cpu():
    import program

    def ran(*options, **kwargs):
        arguments = ["program", "--arch", "tiny", *options]
        with surroundings(kwargs.get("batches", BATCHES)), mock.patch.object(sys, "argv", arguments):
            _, text = printed(program.main)
        state = torch.load("last.pth.tar")
        shown = [line for line in text.splitlines() if line.startswith(("epoch", "loss"))]
        return shown[-2:], list(state["model"].values()), scale_of(state.get("amp", {}))

    def resumed():
        ran("--fp16")
        return ran("--fp16", "--resume", "last.pth.tar")

    results, raised = collect(
        plain=lambda: ran(),
        plain_clipped=lambda: ran("--clip", "0.5"),
        off=lambda: ran("--fp16", "--opt-level", "O0"),
        mixed=lambda: ran("--fp16"),
        mixed_clipped=lambda: ran("--fp16", "--clip", "0.5"),
        # All steps but those of finite batches are left out, and the scale becomes smaller.
        overflow=lambda: ran("--fp16", batches=BATCHES + TOO_LARGE),
        resume=resumed,
    )
