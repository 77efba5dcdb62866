"""Environments with a small package in the place of torch, in which a whole upgrade takes seconds.

The package has what the projects of these tests use, and lacks what the target lacks. It is imported in a
hundredth of the time that torch takes.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from zipfile import ZipFile

TORCH = """\
import math
from itertools import product

float32, float64, int64 = "torch.float32", "torch.float64", "torch.int64"
strided = "torch.strided"


class _C:
    pass


class Tensor:
    layout = strided

    def __init__(self, shape, values, dtype=float32):
        self.shape, self.values, self.dtype = tuple(shape), list(values), dtype

    def dim(self):
        return len(self.shape)

    def reshape(self, *shape):
        shape = list(shape[0] if isinstance(shape[0], (tuple, list)) else shape)
        if -1 in shape:
            known = -math.prod(shape)
            shape[shape.index(-1)] = len(self.values) // known
        if math.prod(shape) != len(self.values):
            raise RuntimeError(f"shape '{shape}' is invalid for input of size {len(self.values)}")
        return Tensor(shape, self.values, self.dtype)

    view = reshape

    def detach(self):
        return self

    cpu = detach

    def __getitem__(self, some):
        values = self.values[some]
        return Tensor((len(values),), values, self.dtype)

    def expand(self, *shape):
        own = (1,) * (len(shape) - self.dim()) + self.shape
        if any(mine not in (1, other) for mine, other in zip(own, shape)):
            raise RuntimeError(f"the tensor of shape {self.shape} cannot be expanded to {shape}")
        steps = [math.prod(own[number + 1 :]) if size > 1 else 0 for number, size in enumerate(own)]
        places = product(*map(range, shape))
        return Tensor(shape, [self.values[sum(map(int.__mul__, place, steps))] for place in places], self.dtype)

    def tolist(self):
        def rows(shape, values):
            if not shape:
                return values[0]
            size = math.prod(shape[1:])
            return [rows(shape[1:], values[number * size :][:size]) for number in range(shape[0])]

        return rows(self.shape, self.values)

    def sum(self):
        return Tensor((), [sum(self.values)], self.dtype)

    def _with(self, other, how):
        if not isinstance(other, Tensor):
            other = Tensor((), [other], self.dtype)
        one, two = broadcast_tensors(self, other)
        return Tensor(one.shape, map(how, one.values, two.values), self.dtype)

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b)

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b)

    def __truediv__(self, other):
        found = self._with(other, lambda a, b: a / b)
        return Tensor(found.shape, found.values, float32)

    def __eq__(self, other):
        return self._with(other, lambda a, b: a == b)

    def __bool__(self):
        [value] = self.values
        return bool(value)


class LongTensor(Tensor):
    pass


class no_grad:
    __enter__ = __exit__ = lambda self, *error: None


def tensor(data, dtype=float32):
    return Tensor((len(data),), data, dtype)


def is_tensor(value):
    return isinstance(value, Tensor)


def manual_seed(number):
    pass


set_num_threads = manual_seed


class linalg:
    @staticmethod
    def lu_factor(a):
        return a, a

    @staticmethod
    def lu_solve(factors, pivots, b):
        # A matrix is taken for one of the right-hand sides of each matrix of the batch.
        return full(b.shape if b.dim() == 3 else (*b.shape, b.shape[-1]), 1.0)

    @staticmethod
    def eigh(a, UPLO="L"):
        # Those of a diagonal matrix.
        size = a.shape[0]
        return Tensor((size,), [a.values[number * (size + 1)] for number in range(size)]), eye(size)


class finfo:
    min = -3.4e38

    def __init__(self, dtype):
        if dtype not in (float32, float64):
            raise TypeError(f"torch.finfo() requires a floating point input type, not {dtype}")


def full(shape, value, dtype=None):
    dtype = dtype or (int64 if isinstance(value, int) else float32)
    return Tensor(shape, [value if dtype == int64 else float(value)] * math.prod(shape), dtype)


def as_tensor(data):
    return data


def ones(*shape):
    return full(shape, 1.0)


def zeros(*shape):
    return full(shape, 0.0)


def eye(size):
    return Tensor((size, size), [float(row == column) for row in range(size) for column in range(size)])


def outer(a, b):
    return Tensor((*a.shape, *b.shape), [x * y for x in a.values for y in b.values])


def broadcast_tensors(*tensors):
    most = max(each.dim() for each in tensors)
    shapes = [(1,) * (most - each.dim()) + each.shape for each in tensors]
    return tuple(each.expand(*map(max, zip(*shapes))) for each in tensors)


def get_default_dtype():
    return float32


def set_default_tensor_type(kind):
    import warnings

    warnings.warn("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1", stacklevel=2)
"""
# Modules in it, which are imported by what asks for them.
MODULES = {
    "testing": """\
def assert_close(actual, expected, **options):
    if actual.shape != expected.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}.")
    if actual.values != expected.values:
        raise AssertionError("Tensor-likes are not close!")


assert_allclose = assert_close
""",
    "distributions": """\
class Uniform:
    def __init__(self, low, high, validate_args=None):
        if validate_args is not False and not all(map(float.__lt__, low.values, high.values)):
            raise ValueError("Uniform is not defined when low>= high")
        self.low = low

    def sample(self):
        return self.low * 1
""",
    "nn": """\
import torch


class Module:
    def state_dict(self):
        return {name: each for name, each in vars(self).items() if torch.is_tensor(each)}

    def parameters(self):
        return []

    def eval(self):
        return self

    def __call__(self, *given, **named):
        return self.forward(*given, **named)


class Conv1d(Module):
    def __init__(self, ins, outs, kernel_size, padding=0, padding_mode="zeros"):
        self.outs, self.more = outs, 2 * padding - kernel_size + 1

    def forward(self, x):
        return torch.ones(x.shape[0], self.outs, x.shape[-1] + self.more)


class functional:
    @staticmethod
    def grid_sample(input, grid, align_corners=None):
        # A corner: a quarter of it is inside, unless corners are aligned.
        return input * (1.0 if align_corners else 0.25)
""",
}
# What the releases that can be the target still have of what they replaced.
KEPT = "ger = outer\ninf = math.inf\n"


# The pytest that runs these tests, in another environment.
_PATHS = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
_LINES = ["import os; os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'"]  # three times as fast
_LINES += [f"import site; site.addsitedir({path!r})" for path in _PATHS]
PYTEST = {"pytest.pth": "".join(f"{line}\n" for line in _LINES)}


def environment_with(
    where: Path, *, torch: str = "2.13.0", pytest: bool = True, python: str = sys.executable, more: str = ""
) -> Path:
    """Make a virtual environment with a stand-in for a release of torch.

    pytest: whether the environment has the pytest that runs these tests. more: code for the end of the package.
    """
    subprocess.run([python, "-m", "venv", "--without-pip", str(where)], check=True)
    [packages] = where.glob("lib/python3*/site-packages")
    files = torch_files(torch, more) | (PYTEST if pytest else {})
    for name, text in files.items():
        (packages / name).parent.mkdir(exist_ok=True)
        (packages / name).write_text(text)
    return where


def torch_files(version: str, more: str = "") -> dict[str, str]:
    """The files of the package. more: code for its end."""
    modules = f"from torch import {', '.join(MODULES)}\n"
    files = {"torch/__init__.py": f"__version__ = {version!r}\n\n\n{TORCH}{modules}{more}"}
    return files | {f"torch/{name}.py": text for name, text in MODULES.items()}


def wheel(directory: Path, name: str, version: str, files: dict[str, str]) -> None:
    """Write a wheel into the part of a package index that holds the releases of a package."""
    about = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{each},,\n" for each in (*files, f"{about}/RECORD"))
    (directory / name).mkdir(parents=True, exist_ok=True)
    with ZipFile(directory / name / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for each, text in {**files, f"{about}/RECORD": record}.items():
            archive.writestr(each, text)


@cache
def shared_environment() -> Path:
    """The environment with pytest and a stand-in for the target that all tests of this process use."""
    directory = tempfile.mkdtemp(prefix="torchmigrate-stand-in-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return environment_with(Path(directory) / "env", more=KEPT)
