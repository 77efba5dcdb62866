"""Code that only looks outdated, or where a fix could leave half of a migration: seen in real projects."""

from __future__ import annotations

import textwrap

import pytest
from harness.program import FIX, run


def check(text: str, *, fix: bool = True) -> tuple[list[str], str]:
    """The codes that are left, with their lines, and the text with all fixes."""
    text = textwrap.dedent(text).lstrip("\n")
    result = run(text, "--ignore", "TM001", *FIX * fix, "--unsafe-fixes")
    shown = result.new_text or text
    found = [f"{item.code}:{shown.count(chr(10), 0, item.start) + 1}" for item in result.findings]
    return found, shown


CLEAN = {
    "test_of_a_parameter": """
        import inspect
        import torch

        def parameter_names(function):
            return [item.name for item in inspect.signature(function).parameters.values()]

        if "symmetric" in parameter_names(torch.cuda.MemPool):
            pool = torch.cuda.MemPool(allocator, symmetric=True)
        if "weights_only" in inspect.signature(torch.load).parameters:
            state = torch.load(path, weights_only=True)
        else:
            state = torch.load(path)
        """,
    "version_as_default": """
        import torch
        from general import check_version

        class Detect:
            def grid(self, a, b, torch_1_10=check_version(torch.__version__, "1.10.0")):
                return torch.meshgrid(a, b, indexing="ij") if torch_1_10 else torch.meshgrid(a, b)
        """,
    "module_by_name_or_none": """
        from importlib import import_module

        try:
            six = import_module("torch._six")
        except ImportError:
            six = None
        """,
    "gone_package_as_last_resort": """
        try:
            from common import main
        except ImportError:
            from caffe2.benchmarks.common import main
        main()
        """,
    "gone_package_with_another_way": """
        class Test:
            def port(self):
                try:
                    from caffe2.torch.common import get_free_port

                    self.number = str(get_free_port())
                except ImportError:
                    self.number = "12375"
        """,
    "gone_name_with_another_way": """
        try:
            from torchdynamo import disable
        except ImportError:

            def disable(function):
                return function

        @disable
        def forward(x):
            return x
        """,
    "operator_by_its_name": """
        import torch
        original = torch.Tensor.__getitem__
        table = {"op": torch.Tensor.__sub__}
        """,
    "dict_of_tensors": """
        import torch
        from tensordict import TensorDict

        def name(td, x):
            td.refine_names(None, "time")
            td.add_(1, x)
        """,
    "loss_of_old_releases": """
        import torch
        version = torch.__version__

        def train(loss, total):
            loss.backward()
            if int(version[0]) > 0 or int(version[2]) > 3:
                total += loss.item()
            else:
                total += loss.data[0]
                print(f"{loss.data[0]:.4f}")
        """,
    "rate_as_step_asks_for_it": """
        from torch.optim import lr_scheduler
        from torch.optim.lr_scheduler import StepLR

        def rates(scheduler: StepLR):
            with lr_scheduler._enable_get_lr_call(scheduler):
                return scheduler.get_lr()
        """,
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str) -> None:
    assert check(CLEAN[name], fix=False)[0] == []


REPORTED = {
    "parameter_of_another_function": (
        """
        import inspect
        import torch
        if "weights_only" in inspect.signature(torch.save).parameters:
            state = torch.load(path)
        if "mmap" in inspect.signature(torch.load).parameters:
            state = torch.load(path)
        """,
        ["TM600:6"],
    ),
    "gone_package_without_another_way": (
        """
        try:
            from caffe2.torch.common import get_free_port
            port = get_free_port()
        except ImportError:
            raise RuntimeError
        """,
        ["TM062:2"],
    ),
    "both_ways_are_gone": (
        """
        try:
            from torch._six import container_abcs
        except ImportError:
            from caffe2.six import container_abcs
        """,
        ["TM062:4"],
    ),
    "function_that_is_kept": (
        """
        import torch

        class Layer:
            def __init__(self):
                self.outer = torch.ger

            def forward(self, x):
                return self.outer(x, x)
        """,
        ["TM110:5"],
    ),
    "rate_by_hand": (
        """
        from torch.optim.lr_scheduler import StepLR

        def rates(scheduler: StepLR, other):
            other._get_lr_called_within_step = True
            scheduler.get_lr()
            scheduler._get_lr_called_within_step = True
            scheduler._get_lr_called_within_step = False
            scheduler.get_lr()
            scheduler._last_lr = scheduler.get_lr()
        """,
        ["TM452:5", "TM452:8"],
    ),
    "loss_in_a_string": (
        """
        import torch

        def train(loss):
            loss.backward()
            print(f"{loss.data[0]:.4f}")
        """,
        ["TM053:5"],
    ),
}


@pytest.mark.parametrize("name", REPORTED)
def test_reported(name: str) -> None:
    text, expected = REPORTED[name]
    assert check(text, fix=False)[0] == expected


FIXED = {
    "a_suite_stays": (
        """
        import torch
        from torch.autograd import Variable

        def load(x, y):
            with torch.no_grad():
                x = Variable(x)
                y = Variable(y)
            if x is None: x = Variable(x)
            return x, y
        """,
        """
        import torch

        def load(x, y):
            with torch.no_grad():
                pass
            if x is None: x = x
            return x, y
        """,
    ),
    "a_suite_of_several_rules_stays": (
        """
        import random
        import torchaudio
        from torch.autograd import Variable

        def load(x):
            if x:
                x = Variable(x)
                torchaudio.set_audio_backend("sox_io")
            return x
        """,
        """
        import random

        def load(x):
            if x:
                pass
            return x
        """,
    ),
    "an_attribute_that_is_itself": (
        """
        import torch
        from torch.autograd import Variable

        class Grid:
            def wrap(self, x, y):
                self.grid = Variable(self.grid)
                self.grid = Variable(self.other.grid)
                x[0] = Variable(x[0])  # an element
                return self.grid
        """,
        """
        import torch

        class Grid:
            def wrap(self, x, y):
                self.grid = self.other.grid
                x[0] = x[0]  # an element
                return self.grid
        """,
    ),
    "the_same_import_twice": (
        """
        import torch
        from torch.autograd import Variable
        import random
        from torch.autograd import Variable

        def f(x):
            return Variable(torch.zeros(3)) + Variable(torch.from_numpy(x))

        if __name__ == "__main__":
            from torch.autograd import Variable
            print(f(random.random()))
        """,
        """
        import torch
        import random

        def f(x):
            return torch.zeros(3) + torch.from_numpy(x)

        if __name__ == "__main__":
            print(f(random.random()))
        """,
    ),
    "every_use_of_a_loss": (
        """
        import torch

        def train(batch, criterion, plot):
            loss_l, loss_c = criterion(batch)
            image = batch[0]
            total = loss_l.data[0]
            total += loss_l.data[0]
            plot(loss_l.data[0], image.data[0])
            return total

        def show(loss_l, plot):
            plot(loss_l.data[0])
        """,
        """
        import torch

        def train(batch, criterion, plot):
            loss_l, loss_c = criterion(batch)
            image = batch[0]
            total = loss_l.item()
            total += loss_l.item()
            plot(loss_l.item(), image.data[0])
            return total

        def show(loss_l, plot):
            plot(loss_l.data[0])
        """,
    ),
}


@pytest.mark.parametrize("name", FIXED)
def test_fixed(name: str) -> None:
    before, after = FIXED[name]
    wanted = textwrap.dedent(after)[1:]
    assert check(before)[1] == wanted
    assert check(wanted)[1] == wanted


def test_a_module_in_an_attribute_is_followed() -> None:
    found, _ = check(
        """
        import torchvision

        class Loader:
            def __init__(self):
                self.transforms = torchvision.transforms
                self.scale = torchvision.transforms.Scale
                self.first = self.transforms.Scale(3)

            def again(self):
                return self.transforms.Scale(3), self.scale(3)
        """,
        fix=False,
    )
    assert found == ["TM700:6", "TM700:7", "TM700:10"]
