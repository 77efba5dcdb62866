"""What the drivers of old programs share. Old releases import it too: it is written for Python 3.7 and torch 1.0.

A driver lies beside this file, named after the fixture whose program it drives. It imports that program as
`program`, and calls what is in it with given numbers.
"""

import contextlib
import io
import math
import sys
import types
from unittest import mock

import torch


def collect(**calls):
    """(results, raised): what each call gave, and what those raised that gave nothing."""
    results, raised = {}, {}
    for name, call in calls.items():
        torch.manual_seed(0)
        try:
            results[name] = call()
        except Exception as error:
            raised[name] = "{}: {}".format(type(error).__name__, " ".join(str(error).split())[:90])
    return results, raised


def numbers(*shape, **kind):
    """Between -1 and 1, without symmetry or order, the same on every release. `seed` gives others."""
    seed, dtype = kind.pop("seed", 0), kind.pop("dtype", None)
    assert not kind, kind
    values = [math.sin(1.3 * i * i + 0.7 * i + seed + 1) for i in range(1, _product(shape) + 1)]
    return torch.tensor(values, dtype=dtype or torch.get_default_dtype()).reshape(shape)


def _product(shape):
    found = 1
    for size in shape:
        found *= size
    return found


def positive_definite(size):
    """A symmetric matrix in double precision, with eigenvalues above 1."""
    matrix = numbers(size, size, dtype=torch.float64)
    return matrix.matmul(matrix.t()) + torch.eye(size, dtype=torch.float64)


def filled(module, scale=0.3):
    """The module with given numbers for parameters."""
    for index, parameter in enumerate(module.parameters()):
        parameter.data.copy_(numbers(*parameter.shape, seed=index) * scale)
    return module


def weights(module):
    """All parameters of a module, as they are."""
    return [parameter.detach().clone() for parameter in module.parameters()]


def with_gradients(call, *inputs):
    """The result of a call and the gradients of its weighted sum by the inputs."""
    leaves = [item.clone().requires_grad_() for item in inputs]
    result = call(*leaves)
    (result * numbers(*result.shape, dtype=result.dtype)).sum().backward()
    return result.detach(), [leaf.grad for leaf in leaves]


def printed(call):
    """The result of a call, and what it printed."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        result = call()
    return result, stream.getvalue()


def module(name, **members):
    """Make a module importable that a program wants and nobody can install."""
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, made)
    return made


class Options:
    """What a parser of arguments would have given."""

    def __init__(self, **values):
        vars(self).update(values)


@contextlib.contextmanager
def on_cpu():
    """What a program puts on "cuda" or on device 0 stays where it is."""
    with contextlib.ExitStack() as stack:
        for kind in (torch.Tensor, torch.nn.Module):
            stack.enter_context(mock.patch.object(kind, "cuda", lambda self, *_, **__: self))
            stack.enter_context(mock.patch.object(kind, "to", _staying(kind.to)))
        for name in ("ones", "zeros", "empty", "rand", "randn", "full"):
            stack.enter_context(mock.patch.object(torch, name, _without_device(getattr(torch, name))))
        yield


def _staying(to):
    def moved(self, *args, **kwargs):
        if args and (isinstance(args[0], int) or str(args[0]).startswith("cuda")):
            args = args[1:]
        if str(kwargs.get("device")).startswith("cuda"):
            del kwargs["device"]
        return to(self, *args, **kwargs) if args or kwargs else self

    return moved


def _without_device(make):
    def made(*args, **kwargs):
        if str(kwargs.get("device")).startswith("cuda"):
            del kwargs["device"]
        return make(*args, **kwargs)

    return made


@contextlib.contextmanager
def numbers_by_index():
    """`loss.data[0]` gives the number of a tensor without dimensions, as it did before torch 0.5."""
    before = torch.Tensor.__getitem__

    def item(self, index):
        return self.item() if self.dim() == 0 and index == 0 else before(self, index)

    with mock.patch.object(torch.Tensor, "__getitem__", item):
        yield


def has_apex():
    """Whether the real one is there."""
    try:
        import apex.amp
    except ImportError:
        return False
    return bool(apex.amp)


@contextlib.contextmanager
def mixed_precision_on_cpu():
    """apex.amp and torch.amp with everything but half precision: scaling, unscaling, steps that are left out.

    apex asks every tensor whether it is on a GPU, and is told so; its casts give single precision. A
    GradScaler of torch scales on the CPU as on a GPU.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_cpu())
        if has_apex():  # imported before the stand-ins: what it looks at then is true
            named = torch.Tensor.type
            for name, value in {
                "is_cuda": property(lambda self: True),
                "half": lambda self: torch.empty_like(self).copy_(self),
                "type": lambda self, *to: (
                    named(self, *to) if to else named(self).replace("torch.", "torch.cuda.")
                ),
            }.items():
                stack.enter_context(mock.patch.object(torch.Tensor, name, value, create=True))
            stack.enter_context(mock.patch.object(torch.cuda, "IntTensor", torch.IntTensor))
        else:
            scaler = torch.amp.GradScaler
            stack.enter_context(
                mock.patch.object(
                    torch.amp, "GradScaler", lambda _, *args, **kwargs: scaler("cpu", *args, **kwargs)
                )
            )
        yield


def scale_of(state):
    """The scale of the loss in the state of a scaler, apex's or torch's; 1 of one that is off."""
    for key, value in state.items():
        if key == "scale":
            return value
        if key.startswith("loss_scaler"):
            return value["loss_scale"]
    return 1.0
