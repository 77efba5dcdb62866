"""Environments with a small package in the place of torch, in which a whole upgrade takes seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TORCH = """\
import math


class _C:
    pass


class Tensor:
    dtype, layout = "torch.float32", "torch.strided"

    def __init__(self, *shape):
        self.shape = shape

    def dim(self):
        return len(self.shape)

    def reshape(self, *shape):
        shape = list(shape[0] if isinstance(shape[0], tuple) else shape)
        if -1 in shape:
            known = -math.prod(shape)
            shape[shape.index(-1)] = math.prod(self.shape) // known
        return Tensor(*shape)


class linalg:
    @staticmethod
    def lu_factor(a):
        return a, a

    @staticmethod
    def lu_solve(factors, pivots, b):
        # A matrix is taken for one of the right-hand sides of each matrix of the batch.
        return Tensor(*b.shape) if b.dim() == 3 else Tensor(*b.shape, b.shape[-1])


def ones(*shape):
    return Tensor(*shape)


def outer(a, b):
    return Tensor(*a.shape, *b.shape)
"""


def environment_with(
    where: Path, *, torch: str = "2.13.0", pytest: bool = True, python: str = sys.executable
) -> Path:
    """Make a virtual environment with a stand-in for a release of torch.

    pytest: whether the environment has the pytest that runs these tests.
    """
    subprocess.run([python, "-m", "venv", "--without-pip", str(where)], check=True)
    [packages] = where.glob("lib/python3*/site-packages")
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").write_text(f"__version__ = {torch!r}\n\n\n{TORCH}")
    if pytest:
        own = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        lines = ["import os; os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'"]  # three times as fast
        lines += [f"import site; site.addsitedir({path!r})" for path in own]
        (packages / "pytest.pth").write_text("".join(f"{line}\n" for line in lines))
    return where
