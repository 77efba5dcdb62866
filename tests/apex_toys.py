"""What the programs in `apex_programs` train: small models and batches, in a module `toy`, on the CPU."""

from __future__ import annotations

import contextlib
import io
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from apex_fake import installed
from torch import nn


class Classifier(nn.Module):
    """Six numbers to one of three classes."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class Encoder(Classifier):
    """The same, with a loss of its own."""

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.net(input_ids)
        return nn.functional.cross_entropy(logits, labels), logits


class Engine:
    """Calls a function for every batch."""

    def __init__(self, step: Any) -> None:
        self.step = step

    def run(self, loader: Any) -> list[Any]:
        return [self.step(self, batch) for batch in loader]


def noise(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def batches(count: int = 6) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for number in range(count):
        yield noise(4, 6, seed=number), torch.arange(4) % 3


def pairs(count: int = 6) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for number in range(count):
        yield noise(4, 6, seed=number), noise(4, 3, seed=100 + number)


def dataset(count: int, seed: int = 0) -> Any:
    return torch.utils.data.TensorDataset(noise(count, 6, seed=seed), torch.arange(count) % 3)


def _toy() -> types.ModuleType:
    module = types.ModuleType("toy")
    members = (Classifier, Encoder, Engine, noise, batches, pairs, dataset)
    for item in members:
        setattr(module, item.__name__, item)
    module.Regressor = Classifier  # type: ignore[attr-defined]
    return module


def run_program(text: str, arguments: list[str], folder: Path) -> tuple[str, list[torch.Tensor]]:
    """What a program prints, and the weights in all of its optimizers at the end.

    Args:
        text: the program, for a GPU.
        folder: where it writes files.
    """
    made: list[torch.optim.Optimizer] = []
    initialize = torch.optim.Optimizer.__init__

    def noted(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        made.append(self)

    def same(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self

    text = text.replace('"cuda', '"cpu')
    printed = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(installed())
        sys.modules["toy"] = _toy()
        stack.callback(sys.modules.pop, "toy")
        stack.enter_context(mock.patch.object(sys, "argv", ["train.py", *arguments]))
        stack.enter_context(mock.patch.object(torch.optim.Optimizer, "__init__", noted))
        for kind in (torch.Tensor, nn.Module):
            stack.enter_context(mock.patch.object(kind, "cuda", same))
        stack.enter_context(mock.patch.object(torch.cuda, "synchronize", lambda: None))
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(contextlib.redirect_stdout(printed))
        torch.manual_seed(0)
        exec(compile(text, "train.py", "exec"), {"__name__": "__main__"})
    weights = [
        item.detach() for optimizer in made for group in optimizer.param_groups for item in group["params"]
    ]
    return printed.getvalue(), weights
