"""torchvision, torchaudio and others of the time of an old torch, as far as they are installed beside it."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import nn

LIBRARIES = ("torchvision", "torchaudio", "torchtext", "functorch", "torchdata")
# Random numbers for a hundred million parameters take minutes, and the mark says which weights were meant.
_INITIALISERS = (
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "trunc_normal_",
    "uniform_",
    "xavier_uniform_",
)
_LOADERS = ("load_state_dict_from_url", "load_url")


def load() -> None:
    """Import what is there, so that not every job has to."""
    for name in (*LIBRARIES, "torchvision.models", "torchvision.transforms", "torchvision.ops"):
        # A library that does not fit the torch beside it raises whatever its compiled part raises.
        with contextlib.suppress(Exception):
            importlib.import_module(name)


@contextlib.contextmanager
def prepared(code: str) -> Iterator[None]:
    """No weights are downloaded: a model that is given some is marked with the name of their file instead."""
    with contextlib.ExitStack() as stack:
        if re.search(r"\btorchvision\b|load_url|load_state_dict_from_url", code):
            for name in _INITIALISERS:
                if hasattr(nn.init, name):
                    stack.enter_context(mock.patch.object(nn.init, name, filled))
            stack.enter_context(
                mock.patch.object(nn.Module, "load_state_dict", marking(nn.Module.load_state_dict))
            )
            for module in list(sys.modules.values()):
                for name in _LOADERS:
                    if vars(module).get(name) is not None and module.__name__.startswith(
                        ("torch.", "torchvision")
                    ):
                        stack.enter_context(mock.patch.object(module, name, lambda url, **_: Weights(url)))
        yield


def filled(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """An initialiser in the place of all that draw random numbers."""
    return tensor.detach().fill_(0.01)


class Weights(str):
    """The address of the weights that would have been downloaded."""


def marking(load: Callable[..., Any]) -> Callable[..., Any]:
    """`load_state_dict` that leaves a mark on a module which is given `Weights`."""

    @functools.wraps(load)
    def load_state_dict(self: nn.Module, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(state_dict, Weights):
            return load(self, state_dict, *args, **kwargs)
        mark = zlib.crc32(state_dict.rpartition("/")[2].encode())
        self.register_buffer("loaded_weights", torch.tensor(mark))
        return None

    return load_state_dict
