import sys
from importlib.util import find_spec

import torch
from support import Options, collect, module, numbers, positive_definite


class Version(tuple):
    """packaging is not installed beside every old release: as much of it as the program uses."""


module(
    "packaging.version", parse=lambda text: Version(int(part) for part in text.split("+")[0].split(".")[:2])
)
module("packaging", version=sys.modules["packaging.version"])
# The program says that it runs since 1.4, and imports what is newer without a guard.
if find_spec("functorch") is None:
    module("functorch", vmap=None)
if find_spec("torch.amp") is None:
    module("torch.amp")
if find_spec("torch.cuda.amp") is None:
    module("torch.cuda.amp", GradScaler=None)

import program  # noqa: E402 (wants packaging)

A, B = positive_definite(4), numbers(4, 2, dtype=torch.float64)

results, raised = collect(
    rfft=lambda: program.rfft(numbers(3, 7)),
    eigenvalues=lambda: program.eigenvalues(A),
    solve=lambda: program.solve(A, B),
    grid=lambda: program.grid(torch.arange(3), torch.arange(2)),
    spectrogram=lambda: program.spectrogram(numbers(64), 16),
    loss=lambda: [loss(numbers(3), numbers(3, seed=1)) for loss in (program.Loss(), program.Loss(False))],
    dispatch=lambda: program.dispatch(Options(symeig=lambda x: x + 1), 3),
    scaler=lambda: type(program.scaler()).__name__,
    total=lambda: program.total(numbers(3), numbers(3, seed=1))[1],
)
