"""Guards in whole files: what the program says of outdated names that the code takes care of, and of others."""

from __future__ import annotations

import textwrap

import pytest
from harness.program import FIX_ALL, fixed, only, run


def dedented(code: str) -> str:
    return textwrap.dedent(code).lstrip("\n")


def reported(code: str, *options: str) -> list[str]:
    """The outdated names that a run finds, in source order. That code refuses the target is said elsewhere."""
    found = run(dedented(code), "--ignore", "TM127", *options).findings
    return [item.symbol for item in sorted(found, key=lambda item: item.start)]


CLEAN = {
    "scaler_by_its_short_name": """
        import torch
        try:
            from torch import GradScaler  # torch >= 2.3
            OLD = False
        except ImportError:
            from torch.cuda.amp import GradScaler
            OLD = True
        try:
            from torch import autocast
        except ImportError:
            from torch.cuda.amp import autocast
        scaler = (GradScaler("cuda") if not OLD else GradScaler()) if torch.cuda.is_available() else None
        other = getattr(torch, "GradScaler", torch.cuda.amp.GradScaler)
        with autocast("cuda"):
            pass
        def make():
            if hasattr(torch, "GradScaler"):
                return torch.GradScaler("cuda")
            return torch.cuda.amp.GradScaler()
    """,
    "a_name_that_is_only_asked_for": """
        import torch
        HAS_AMP = False
        try:
            if getattr(torch.cuda.amp, "autocast") is not None:
                HAS_AMP = True
        except AttributeError:
            pass
        try:
            torch.cuda.amp.autocast
        except AttributeError:
            HAS_AMP = False
    """,
    "a_function_that_is_wrapped": """
        import torch.nn.functional as F
        F.upsample = counted(F.upsample)
        F.upsample = F.tanh = timed(before=F.upsample)
    """,
    "bound_in_both_branches_of_a_test": """
        import torch
        import torch.nn.functional as F
        from functools import partial
        OLD = torch.__version__ < "1.3"
        if OLD:
            grid = F.affine_grid
        else:
            grid = partial(F.affine_grid, align_corners=True)
        other = F.affine_grid if OLD else partial(F.affine_grid, align_corners=True)
        default = F.affine_grid
        if not OLD:
            default = partial(F.affine_grid, align_corners=True)
        def f(theta, size):
            return grid(theta, size) + other(theta, size) + default(theta, size)
    """,
    "attribute_bound_in_both_branches_of_a_test": """
        import torch
        import torch.nn.functional as F
        from functools import partial
        class A:
            shared = F.grid_sample if torch.__version__ < "1.3" else partial(F.grid_sample, align_corners=True)
            def __init__(self):
                if getattr(torch, "__version__") >= "1.3":
                    self.affine_grid = partial(F.affine_grid, align_corners=True)
                else:
                    self.affine_grid = F.affine_grid
                self.default = F.affine_grid
                if torch.__version__ >= "1.3":
                    self.default = lambda *a: F.affine_grid(*a, align_corners=False)
                if torch.__version__ < "1.3":
                    self.home = F
                    old = F.affine_grid
                else:
                    self.home, old = mine, mine.affine_grid
                self.old = old
            def f(self, theta, size):
                self.default(theta, size)
                self.home.affine_grid(theta, size)
                self.old(theta, size)
                return self.affine_grid(theta, size)
        class B(A):
            def g(self, theta, size):
                return self.affine_grid(theta, size) + self.shared(theta, size)
    """,
    "choice_of_the_project_for_a_method": """
        import torch
        import project.typing
        def f(value: torch.Tensor):
            if project.typing.WITH_PT20:
                storage = value.untyped_storage().nbytes()
            else:  # pragma: no cover
                storage = value.storage().nbytes()
            return storage
    """,
    "choice_of_the_project_for_a_function": """
        import torch
        from .compat import NEW, is_new, VERSION
        OLD = not NEW
        def f(x):
            if not NEW:
                return torch.rfft(x, 1)
            return torch.fft.rfft(x)
        def g(x):
            if is_new():
                return torch.fft.rfft(x)
            y = x + 1
            return torch.rfft(y + x, 1)
        def h(x):
            return torch.rfft(x, 1) if OLD else torch.fft.rfft(x)
        def i(x):
            if x is None:
                return None
            elif VERSION >= (1, 8) and is_new("torch"):
                y = torch.fft.rfft(x)
            else:
                y = torch.rfft(x, 1)
            return y
        def j(items):
            for x in items:
                if NEW:
                    yield torch.fft.rfft(x)
                    continue
                yield torch.rfft(x, 1)
    """,
    "choice_of_the_project_for_an_import": """
        import compat
        if compat.NEW:
            from torch.optim.lr_scheduler import LRScheduler
        else:
            from torch.optim.lr_scheduler import _LRScheduler as LRScheduler
        class Warm(LRScheduler):
            pass
    """,
    "choice_of_the_project_for_functions_and_classes": """
        import torch
        from compat import NEW
        if NEW:
            def rfft(x):
                return torch.fft.rfft(x)
        else:
            def rfft(x):
                return torch.rfft(x, 1)
        rfft2 = torch.fft.rfft if NEW else torch.rfft
    """,
    "choice_of_the_project_for_arguments": """
        import torch
        from compat import NEW
        def f(path):
            if NEW:
                return torch.load(path, weights_only=False)
            else:
                return torch.load(path)
        def g(path):
            if not NEW:
                return torch.load(path, "cpu")
            return torch.load(path, map_location="cpu", weights_only=False)
    """,
    "either_name_in_one_condition": """
        import torch
        def f(x):
            return (
                hasattr(torch.optim.lr_scheduler, "_LRScheduler")
                and isinstance(x, torch.optim.lr_scheduler._LRScheduler)
                or hasattr(torch.optim.lr_scheduler, "LRScheduler")
                and isinstance(x, torch.optim.lr_scheduler.LRScheduler)
                or isinstance(x, torch.optim.lr_scheduler.ReduceLROnPlateau)
            )
        if hasattr(torch.optim.lr_scheduler, "_LRScheduler"):
            from torch.optim.lr_scheduler import _LRScheduler as Base
        else:
            from torch.optim.lr_scheduler import LRScheduler as Base
    """,
    "flag_in_both_branches": """
        import torch
        from packaging import version
        if version.parse(torch.__version__) >= version.parse("1.7.0"):
            NEW_FFT = True
            import torch.fft
        else:
            NEW_FFT = False
        def f(x):
            if NEW_FFT:
                return torch.fft.rfft(x)
            return torch.rfft(x, 1)
        class Layer:
            def g(self, x):
                if not NEW_FFT:
                    x = torch.rfft(x, 1)
                return x
    """,
    "flag_in_one_branch": """
        import torch
        OLD = False
        if not hasattr(torch.fft, "rfft"):
            OLD = True
        def f(x):
            return torch.rfft(x, 1) if OLD else torch.fft.rfft(x)
    """,
    "flags_of_objects": """
        import torch
        from packaging.version import Version
        class Layer:
            modern = Version(torch.__version__) >= Version("1.8")
            def __init__(self):
                self.new = Version(torch.__version__) >= Version("1.8")
                self.has = hasattr(torch.fft, "rfft")
                if self.new:
                    self.transform = torch.fft.rfft
                else:
                    self.transform = lambda x: torch.rfft(x, 1)
            def f(self, x):
                if not self.new:
                    x = torch.rfft(x, 1)
                if not self.has:
                    x = torch.rfft(x, 1)
                return x if self.modern else torch.rfft(x, 1)
    """,
    "own_functions": """
        import torch
        def _has_fft():
            "Whether torch.fft is a module."
            return hasattr(torch, "fft") and hasattr(torch.fft, "rfft")
        class Layer:
            @property
            def new(self):
                return torch.__version__ >= "1.8"
            @staticmethod
            def is_new():
                return torch.__version__ >= "1.8"
            def f(self, x):
                if not self.new:
                    x = torch.rfft(x, 1)
                return torch.fft.rfft(x) if self.is_new() else torch.rfft(x, 1)
        def f(x):
            if _has_fft():
                return torch.fft.rfft(x)
            else:
                return torch.rfft(x, 1)
    """,
    "test_as_default": """
        import torch
        def grid(a, b, new=check_version(torch.__version__, "1.10.0"), *, scale=1):
            return torch.fft.rfft(a) if new else torch.rfft(a, 1)
        """,
    "another_framework": """
        import torch
        from .wrapper import TORCH_VERSION, digit_version
        _new = "parrots" not in TORCH_VERSION and digit_version(TORCH_VERSION) >= digit_version("1.10.0a0")
        def grid(*tensors):
            if _new:
                return torch.fft.rfft(tensors[0])
            else:
                return torch.rfft(*tensors)
        """,
    "named_after_a_release": """
        import torch
        from utils import TORCH_2_4
        scaler = torch.amp.GradScaler("cuda") if TORCH_2_4 else torch.cuda.amp.GradScaler()
        """,
    "imports_that_work": """
        try:
            from torch.amp import GradScaler
        except ImportError:
            import torch._six.container_abcs
        """,
    "asserted_version": """
        import torch
        def old(x):
            assert torch.__version__ < "1.8", "needs an old release"
            return torch.rfft(x, 1)
    """,
    "asserted_name": """
        import torch
        assert hasattr(torch, "rfft")
        y = torch.rfft(x, 1)
    """,
    "version_else": """
        import torch
        from packaging import version
        if version.parse(torch.__version__) > version.parse("1.6.0"):
            import torch.fft as fft
            y = fft.rfft(x)
        else:
            y = torch.rfft(x, 1)
    """,
    "class_as_key": """
        import torch
        from packaging import version
        if version.parse(torch.__version__) < version.parse("2.0.0"):
            HOOKS[torch.optim.lr_scheduler._LRScheduler] = recover
        else:
            HOOKS[torch.optim.lr_scheduler.LRScheduler] = recover
    """,
    "major_and_minor": """
        import torch
        TORCH_MAJOR = int(torch.__version__.split('.')[0])
        TORCH_MINOR = int(torch.__version__.split('.')[1])
        if TORCH_MAJOR == 1 and TORCH_MINOR < 8:
            from torch._six import container_abcs
        else:
            import collections.abc as container_abcs
    """,
    "unpacked": """
        import torch
        MAJOR, MINOR = map(int, torch.__version__.split(".")[:2])
        if (MAJOR, MINOR) < (1, 8):
            y = torch.rfft(x, 1)
    """,
    "unpacked_one_by_one": """
        import torch
        parts = torch.__version__.split(".")
        major, minor = int(parts[0]), int(parts[1])
        if major > 1 or (major == 1 and minor >= 8):
            y = torch.fft.rfft(x)
        else:
            y = torch.rfft(x, 1)
    """,
    "imported_helper": """
        import torch
        from .utils import is_torch_min_version
        try:
            if is_torch_min_version("1.13.0"):
                gather = torch.distributed.all_gather_into_tensor
            else:
                gather = torch.distributed._all_gather_base
        except:
            gather = torch.distributed._all_gather_base
    """,
    "imported_constant": """
        import torch
        from lightning.fabric.utilities.imports import _TORCH_GREATER_EQUAL_1_8
        y = torch.fft.rfft(x) if _TORCH_GREATER_EQUAL_1_8 else torch.rfft(x, 1)
    """,
    "flag": """
        import torch
        from distutils.version import LooseVersion
        TORCH_1_8 = LooseVersion(torch.__version__) >= LooseVersion("1.8")
        class Spectrum:
            def forward(self, x):
                return torch.fft.rfft(x) if TORCH_1_8 else torch.rfft(x, 1)
    """,
    "early_return": """
        import torch
        def spectrum(x):
            if hasattr(torch, "fft"):
                return torch.fft.rfft(x)
            return torch.rfft(x, 1)
    """,
    "early_return_negated": """
        import torch
        def spectrum(x):
            if not hasattr(torch, "fft"):
                return torch.rfft(x, 1)
            return torch.fft.rfft(x)
    """,
    "short_circuit": """
        import torch
        def eig(A):
            return hasattr(torch, "symeig") and torch.symeig(A)
    """,
    "imports_in_try": """
        try:
            from torch.func import vmap
        except ImportError:
            from functorch import vmap
    """,
    "imports_in_try_old_first": """
        import torch
        try:
            import functorch
            vmap = functorch.vmap
        except ImportError:
            if hasattr(torch, "vmap"):
                vmap = torch.vmap
            else:
                raise RuntimeError("functorch or a newer torch is required")
    """,
    "none_after_failed_import": """
        import torch
        try:
            from torch.fft import rfft
        except ImportError:
            rfft = None
        def spectrum(x):
            if rfft is not None:
                return rfft(x)
            return torch.rfft(x, 1)
    """,
    "getattr_none": """
        import torch
        fft = getattr(torch, "fft", None)
        if fft is None:
            y = torch.rfft(x, 1)
    """,
    "flag_of_try": """
        import torch
        try:
            from torch.fft import rfft
            NEW = True
        except ImportError:
            NEW = False
        y = rfft(x) if NEW else torch.rfft(x, 1)
    """,
    "torchaudio_major": """
        import torchaudio
        def setup():
            torchaudio_major = parse_torchaudio_major()
            if torchaudio_major is None:
                warn()
            elif torchaudio_major >= 2:
                print("nothing to set")
            else:
                torchaudio.set_audio_backend("soundfile")
    """,
    "torchaudio_pair": """
        import torchaudio
        torchaudio_major, torchaudio_minor = result
        if torchaudio_major >= 2 and torchaudio_minor >= 1:
            print("nothing to set")
        else:
            torchaudio.set_audio_backend("soundfile")
    """,
    "old_name_tested": """
        import torch
        if hasattr(torch, "symeig"):
            L, V = torch.symeig(A, eigenvectors=True)
        else:
            L, V = torch.linalg.eigh(A)
    """,
    "importlib_metadata": """
        import importlib.metadata
        import torch
        from packaging.version import Version
        _torch = Version(importlib.metadata.version("torch"))
        if _torch < Version("2.4"):
            scaler = torch.cuda.amp.GradScaler()
        else:
            scaler = torch.amp.GradScaler("cuda")
    """,
    "pytestmark": """
        import pytest, torch
        pytestmark = pytest.mark.skipif(torch.__version__ >= "1.8", reason="old")
        def test(x):
            torch.rfft(x, 1)
    """,
    "pytestmark_list": """
        import pytest, torch
        pytestmark = [pytest.mark.slow, pytest.mark.skipif(torch.__version__ >= "1.8", reason="old")]
        def test(x):
            torch.rfft(x, 1)
    """,
    "pytestmark_class": """
        import pytest, torch
        class TestOld:
            pytestmark = pytest.mark.skipif(torch.__version__ >= "1.8", reason="old")
            def test(self, x):
                torch.rfft(x, 1)
    """,
    "skip_module": """
        import pytest, torch
        if torch.__version__ >= "1.8":
            pytest.skip("old", allow_module_level=True)
        y = torch.rfft(x, 1)
        def test(x):
            torch.rfft(x, 1)
    """,
    "skip_test": """
        import unittest, torch
        class T(unittest.TestCase):
            def test(self, x):
                if torch.__version__ >= "1.8":
                    self.skipTest("old")
                torch.rfft(x, 1)
    """,
    "skip_raise": """
        import unittest, torch
        class T(unittest.TestCase):
            def test(self, x):
                if torch.__version__ >= "1.8":
                    raise unittest.SkipTest("old")
                torch.rfft(x, 1)
    """,
    "setup_skip": """
        import unittest, torch
        class T(unittest.TestCase):
            def setUp(self):
                if torch.__version__ >= "1.8":
                    self.skipTest("old")
            def test(self, x):
                torch.rfft(x, 1)
    """,
    "pytest_skip_fn": """
        import pytest, torch
        def test(x):
            if hasattr(torch.fft, "rfft"):
                pytest.skip("old only")
            torch.rfft(x, 1)
    """,
    "cont": """
        import torch
        for x in xs:
            if torch.__version__ >= "1.8":
                y = torch.fft.rfft(x)
                continue
            y = torch.rfft(x, 1)
    """,
    "cont_else": """
        import torch
        for x in xs:
            if torch.__version__ >= "1.8":
                y = torch.fft.rfft(x)
            else:
                y = torch.rfft(x, 1)
                continue
            print(y)
    """,
    "with_return": """
        import torch
        def f(x):
            if torch.__version__ >= "1.8":
                with torch.no_grad():
                    return torch.fft.rfft(x)
            return torch.rfft(x, 1)
    """,
    "exit_": """
        import sys, os, torch
        if torch.__version__ >= "1.8":
            sys.exit("too new")
        y = torch.rfft(x, 1)
    """,
    "raise_": """
        import torch
        def f(x):
            if torch.__version__ >= "1.8":
                raise RuntimeError("too new")
            return torch.rfft(x, 1)
    """,
    "suppress": """
        import contextlib, torch
        with contextlib.suppress(AttributeError):
            torch.rfft(x, 1)
    """,
    "suppress2": """
        from contextlib import suppress
        import torch
        with suppress(AttributeError, RuntimeError), torch.no_grad():
            torch.onnx.enable_log()
    """,
    "caffe2": """
        try:
            import caffe2
            from caffe2.python import core
        except ImportError:
            caffe2 = None
    """,
    "optional_gone": """
        try:
            from torch.onnx import enable_log
        except ImportError:
            enable_log = None
    """,
    "optional_gone2": """
        try:
            import torch._six
            HAS_SIX = True
        except ImportError:
            HAS_SIX = False
        if HAS_SIX:
            print(torch._six.inf)
    """,
    "type_error_weights": """
        from torchvision import models
        try:
            m = models.resnet18(weights="DEFAULT")
        except TypeError:
            m = models.resnet18(pretrained=True)
    """,
    "type_error_weights_exc": """
        import torchvision
        try:
            m = torchvision.models.resnet18(weights=torchvision.models.ResNet18_Weights.DEFAULT)
        except Exception:
            m = torchvision.models.resnet18(pretrained=True)
    """,
    "type_error_old_first": """
        import torchvision
        try:
            m = torchvision.models.resnet18(pretrained=True)
        except TypeError:
            m = torchvision.models.resnet18(weights="DEFAULT")
    """,
    "reentrant": """
        from torch.utils.checkpoint import checkpoint
        try:
            y = checkpoint(f, x, use_reentrant=False)
        except TypeError:
            y = checkpoint(f, x)
    """,
    "reentrant_valueerror": """
        from torch.utils.checkpoint import checkpoint
        try:
            y = checkpoint(f, x, use_reentrant=False)
        except (ValueError, TypeError):
            y = checkpoint(f, x)
    """,
    "indexing": """
        import torch
        def grid(*a):
            try:
                return torch.meshgrid(*a, indexing="ij")
            except TypeError:
                return torch.meshgrid(*a)
    """,
    "indexing_kwd": """
        import torch
        def grid(*A):
            if "indexing" in torch.meshgrid.__kwdefaults__:
                return torch.meshgrid(*A, indexing="ij")
            else:
                return torch.meshgrid(*A)
    """,
    "indexing_kwd2": """
        import torch
        def grid(*A):
            if "indexing" in torch.meshgrid.__kwdefaults__:
                return torch.meshgrid(*A, indexing="ij")
            return torch.meshgrid(*A)
    """,
    "indexing_sig": """
        import inspect, torch
        HAS = "indexing" in inspect.signature(torch.meshgrid).parameters
        def grid(*A):
            return torch.meshgrid(*A, indexing="ij") if HAS else torch.meshgrid(*A)
    """,
    "indexing_code": """
        import torch
        kw = {}
        if "indexing" not in torch.functional.meshgrid.__code__.co_varnames:
            g = torch.meshgrid(a, b)
        else:
            g = torch.meshgrid(a, b, indexing="ij")
    """,
    "indexing_kwonly": """
        import inspect, torch
        if "indexing" in inspect.getfullargspec(torch.meshgrid).kwonlyargs:
            g = torch.meshgrid(a, b, indexing="ij")
        else:
            g = torch.meshgrid(a, b)
    """,
    "indexing_sigvar": """
        import inspect, torch
        sig = inspect.signature(torch.meshgrid)
        if "indexing" in sig.parameters:
            g = torch.meshgrid(a, b, indexing="ij")
        else:
            g = torch.meshgrid(a, b)
    """,
    "indexing_paramsvar": """
        import inspect, torch
        params = inspect.signature(torch.meshgrid).parameters
        if "indexing" in params:
            g = torch.meshgrid(a, b, indexing="ij")
        else:
            g = torch.meshgrid(a, b)
    """,
    "weights_only": """
        import torch
        try:
            d = torch.load(p, weights_only=False)
        except TypeError:
            d = torch.load(p)
    """,
    "return_complex_bare": """
        import torch
        try:
            s = torch.view_as_real(torch.stft(x, 512, return_complex=True))
        except:
            s = torch.stft(x, 512)
    """,
    "storages": """
        import torch
        def f(t: torch.Tensor):
            try:
                return t.untyped_storage().data_ptr()
            except:
                return t.storage().data_ptr()
    """,
    "storages2": """
        import torch
        t = torch.zeros(3)
        try:
            s = t.untyped_storage()
        except AttributeError:
            s = t.storage()
    """,
    "storages3": """
        import torch
        t = torch.zeros(3)
        s = t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage()
    """,
    "storages4": """
        import torch
        t = torch.zeros(3)
        if hasattr(torch.Tensor, "untyped_storage"):
            s = t.untyped_storage()
        else:
            s = t.storage()
    """,
    "storages5": """
        def f(param):
            if hasattr(param, "untyped_storage"):
                return param.untyped_storage().data_ptr()
            return param.storage().data_ptr()
    """,
    "fairscale": """
        try:
            from torch.distributed.pipeline.sync import Pipe
            from torch.distributed.pipeline.sync.utils import partition_model
        except ImportError:
            from fairscale.nn import Pipe
    """,
    "old_import_first": """
        try:
            from torch.optim.lr_scheduler import _LRScheduler as LRScheduler
        except ImportError:
            from torch.optim.lr_scheduler import LRScheduler
    """,
    "new_import_first": """
        try:
            from torch.optim.lr_scheduler import LRScheduler
        except ImportError:
            from torch.optim.lr_scheduler import _LRScheduler as LRScheduler
    """,
    "default_override": """
        import torch.nn as nn
        wn = nn.utils.weight_norm
        if hasattr(nn.utils.parametrizations, "weight_norm"):
            wn = nn.utils.parametrizations.weight_norm
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.c = wn(nn.Conv1d(1, 1, 1))
    """,
    "default_override_fn": """
        import torch.nn as nn
        def f():
            weight_norm = nn.utils.weight_norm
            if hasattr(nn.utils.parametrizations, "weight_norm"):
                weight_norm = nn.utils.parametrizations.weight_norm
            return weight_norm(nn.Conv1d(1, 1, 1))
    """,
    "default_override_import": """
        import torch
        from torch.nn.utils import weight_norm
        if torch.__version__ >= "2.0":
            from torch.nn.utils.parametrizations import weight_norm
        c = weight_norm(torch.nn.Conv1d(1, 1, 1))
    """,
    "default_override_try": """
        import torch
        from torch.nn.utils import weight_norm
        try:
            from torch.nn.utils.parametrizations import weight_norm
        except ImportError:
            pass
        c = weight_norm(torch.nn.Conv1d(1, 1, 1))
    """,
    "default_override_attr": """
        import torch.nn as nn
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.wn = nn.utils.weight_norm
                if hasattr(nn.utils.parametrizations, "weight_norm"):
                    self.wn = nn.utils.parametrizations.weight_norm
                self.c = self.wn(nn.Conv1d(1, 1, 1))
    """,
    "helper_method": """
        import torch
        from packaging.version import Version
        class A:
            def newer(self, v):
                return Version(torch.__version__) >= Version(v)
            @staticmethod
            def older(v):
                return Version(torch.__version__) < Version(v)
            @classmethod
            def old2(cls, v):
                return Version(torch.__version__) < Version(v)
            def f(self, x):
                if self.newer("1.8"):
                    return torch.fft.rfft(x)
                return torch.rfft(x, 1)
            def g(self, x):
                if self.older("1.8") or A.older("1.8") or self.old2("1.8"):
                    return torch.rfft(x, 1)
    """,
    "helper_operator": """
        import operator, torch
        from packaging import version
        def check(op, v):
            return op(version.parse(torch.__version__), version.parse(v))
        y = torch.fft.rfft(x) if check(operator.ge, "1.8") else torch.rfft(x, 1)
    """,
    "helper_operator_text": """
        import operator, torch
        from packaging import version
        OPS = {">=": operator.ge, "<": operator.lt}
        def check(operation, v):
            return OPS[operation](version.parse(torch.__version__), version.parse(v))
        y = torch.fft.rfft(x) if check(">=", "1.8") else torch.rfft(x, 1)
    """,
    "helper_kw": """
        import torch
        from packaging.version import Version
        def newer(minimum):
            return Version(torch.__version__) >= Version(minimum)
        y = torch.fft.rfft(x) if newer(minimum="1.8") else torch.rfft(x, 1)
    """,
    "helper_numbers": """
        import torch
        def newer(major, minor):
            return tuple(int(p) for p in torch.__version__.split(".")[:2]) >= (major, minor)
        y = torch.fft.rfft(x) if newer(1, 8) else torch.rfft(x, 1)
    """,
    "helper_hasattr": """
        import torch
        def has(name):
            return hasattr(torch.fft, name)
        y = torch.fft.rfft(x) if has("rfft") else torch.rfft(x, 1)
    """,
    "helper_flag": """
        import torch
        from packaging.version import Version
        def newer(v):
            return Version(torch.__version__) >= Version(v)
        NEW = newer("1.8")
        y = torch.fft.rfft(x) if NEW else torch.rfft(x, 1)
    """,
    "helper_two": """
        import torch
        from packaging.version import Version
        def ge(a, b):
            return Version(a) >= Version(b)
        y = torch.fft.rfft(x) if ge(torch.__version__, "1.8") else torch.rfft(x, 1)
    """,
    "helper_tuple_range": """
        import torch
        from packaging.version import Version
        def between(low, high):
            return Version(low) <= Version(torch.__version__) < Version(high)
        if between("1.0", "1.8"):
            y = torch.rfft(x, 1)
    """,
    "exact_dev": """
        import torch
        if torch.__version__ == "1.6.0a0+abc":
            y = torch.rfft(x, 1)
    """,
    "exact_in": """
        import torch
        if torch.__version__ in ("1.6.0", "1.7.0a0+abc"):
            y = torch.rfft(x, 1)
    """,
    "exact_slice": """
        import torch
        if torch.__version__[:3] == "1.6":
            y = torch.rfft(x, 1)
        elif int(torch.__version__.split(".")[0]) >= 2:
            y = torch.fft.rfft(x)
    """,
    "exact_dev_ne": """
        import torch
        if torch.__version__ != "1.10.0a0+abc":
            y = torch.fft.rfft(x)
        else:
            y = torch.rfft(x, 1)
    """,
    "loose": """
        import torch
        from distutils.version import LooseVersion
        if LooseVersion(torch.__version__) < LooseVersion("1.8"):
            y = torch.rfft(x, 1)
    """,
    "torchversion": """
        import torch
        if torch.torch_version.TorchVersion(torch.__version__) < "1.8":
            y = torch.rfft(x, 1)
    """,
    "importlibmeta": """
        from importlib.metadata import version
        from packaging.version import parse
        import torch
        if parse(version("torch")) < parse("1.8"):
            y = torch.rfft(x, 1)
    """,
    "api_rule_names": """
        import torch
        from packaging.version import Version
        if Version(torch.__version__) < Version("1.8"):
            a = torch.onnx.enable_log()
            b = torch._six.string_classes
            x.cuda(async_=True)
    """,
    "activation_eq": """
        import torch.nn.functional as F
        def f(a):
            if a == torch.sigmoid: pass
    """,
    "container_abcs": """
        import collections.abc as container_abcs
        isinstance(x, container_abcs.Mapping)
    """,
    "local_rank_env": """
        import argparse, os, torch
        p = argparse.ArgumentParser()
        p.add_argument("--local_rank", type=int, default=-1)
        args = p.parse_args()
        env_local_rank = int(os.environ.get("LOCAL_RANK", -1))
        if env_local_rank != -1:
            args.local_rank = env_local_rank
    """,
    "local_rank_env2": """
        import argparse, os, torch
        p = argparse.ArgumentParser()
        p.add_argument("--local_rank", type=int, default=int(os.environ["LOCAL_RANK"]))
    """,
    "local_rank_getenv": """
        import argparse, os, torch
        p = argparse.ArgumentParser()
        p.add_argument("--local_rank", type=int, default=int(os.getenv("LOCAL_RANK", 0)))
    """,
    "local_rank_acc": """
        import argparse, torch
        from accelerate import Accelerator
        p = argparse.ArgumentParser()
        p.add_argument("--local_rank", type=int)
        acc = Accelerator()
    """,
    "any_gen": """
        import torch
        if any(torch.__version__.startswith(v) for v in ("1.6", "1.7")):
            y = torch.rfft(x, 1)
    """,
    "any_in": """
        import torch
        if any([v in torch.__version__ for v in ["1.6.", "1.7."]]):
            y = torch.rfft(x, 1)
    """,
    "spec": """
        import torch
        from packaging.specifiers import SpecifierSet
        if torch.__version__ in SpecifierSet("<1.8"):
            y = torch.rfft(x, 1)
    """,
    "spec2": """
        import torch
        from packaging.specifiers import SpecifierSet
        if SpecifierSet("<1.8").contains(torch.__version__, prereleases=True):
            y = torch.rfft(x, 1)
    """,
    "table": """
        from torchvision import models
        try:
            m = models.__dict__[arch](weights="DEFAULT")
        except TypeError:
            m = models.__dict__[arch](pretrained=True)
    """,
    "getattr_model": """
        from torchvision import models
        build = getattr(models, arch)
        try:
            m = build(weights="DEFAULT")
        except TypeError:
            m = build(pretrained=True)
    """,
    "sig_weights": """
        import inspect
        from torchvision import models
        if "weights" in inspect.signature(models.resnet18).parameters:
            m = models.resnet18(weights="DEFAULT")
        else:
            m = models.resnet18(pretrained=True)
    """,
    "tv_version": """
        import torchvision
        from packaging import version
        if version.parse(torchvision.__version__) >= version.parse("0.13"):
            m = torchvision.models.resnet18(weights="DEFAULT")
        else:
            m = torchvision.models.resnet18(pretrained=True)
    """,
    "errors_tuple": """
        import torch
        ERRORS = (AttributeError, TypeError)
        try:
            y = torch.fft.rfft(x)
        except ERRORS:
            y = torch.rfft(x, 1)
    """,
    "flag_else": """
        import torch
        try:
            from torch.fft import rfft
        except ImportError:
            HAS = False
        else:
            HAS = True
        def f(x):
            if HAS:
                return rfft(x)
            return torch.rfft(x, 1)
    """,
    "def_handler": """
        import torch
        try:
            from torch.amp import autocast
        except ImportError:
            def autocast(kind, *args):
                return torch.cuda.amp.autocast(*args)
    """,
    "async_deco": """
        import pytest, torch
        @pytest.mark.skipif(torch.__version__ >= "1.8", reason="x")
        async def test():
            torch.rfft(x, 1)
    """,
    "fixture": """
        import pytest, torch
        @pytest.mark.skipif(torch.__version__ >= "1.8", reason="x")
        @pytest.mark.parametrize("a", [1])
        @torch.no_grad()
        def test(a):
            torch.rfft(x, 1)
    """,
    "setattr_default": """
        import torch
        class A:
            def __init__(self):
                if torch.__version__ >= "1.8":
                    raise RuntimeError("old only")
            def f(self, x):
                return torch.rfft(x, 1)
    """,
    "setup_pytest": """
        import pytest, torch
        class TestA:
            def setup_method(self):
                if torch.__version__ >= "1.8":
                    pytest.skip("old only")
            def test_f(self, x):
                return torch.rfft(x, 1)
    """,
    "getattr_default": """
        import torch
        GradScaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
    """,
    "importlib": """
        import importlib.util, torch
        if importlib.util.find_spec("torch.fft") is None:
            y = torch.rfft(x, 1)
    """,
    "cmp_helper_kw": """
        import torch
        from packaging.version import Version
        def torch_at_least(major=0, minor=0):
            return Version(torch.__version__) >= Version(f"{major}.{minor}")
        y = torch.fft.rfft(x) if torch_at_least(major=1, minor=8) else torch.rfft(x, 1)
    """,
    "global_flag_helper": """
        import torch
        from packaging.version import Version
        def _check():
            global NEW
            NEW = Version(torch.__version__) >= Version("1.8")
        NEW = Version(torch.__version__) >= Version("1.8")
        if not NEW:
            y = torch.rfft(x, 1)
    """,
    "cached_property": """
        import functools, torch
        class A:
            @functools.cached_property
            def new(self):
                return torch.__version__ >= "1.8"
            def f(self, x):
                return torch.fft.rfft(x) if self.new else torch.rfft(x, 1)
    """,
    "not_implemented": """
        import torch
        class A:
            def f(self, x):
                if torch.__version__ >= "1.8":
                    raise NotImplementedError
                else:
                    return torch.rfft(x, 1)
    """,
    "min_over": """
        import torch
        VERSION = tuple(int(v) for v in torch.__version__.split("+")[0].split(".")[:2])
        OLD = VERSION < (1, 8)
        rfft = torch.rfft if OLD else torch.fft.rfft
    """,
    "try_deep": """
        import torch
        def f(x):
            try:
                with torch.no_grad():
                    for i in range(3):
                        x = torch.fft.rfft(x)
                return x
            except AttributeError:
                pass
            return torch.rfft(x, 1)
    """,
    "wrap_reentrant": """
        import torch.utils.checkpoint as cp
        def run(f, *a):
            try:
                return cp.checkpoint(f, *a, use_reentrant=False)
            except TypeError as e:
                if "use_reentrant" not in str(e):
                    raise
                return cp.checkpoint(f, *a)
    """,
    "noinit": """
        import torch
        try:
            set_det = torch.use_deterministic_algorithms
        except AttributeError:
            try:
                set_det = torch.set_deterministic
            except AttributeError:
                set_det = None
    """,
    "TorchVersion": """
        import torch
        from torch.torch_version import TorchVersion
        if TorchVersion(torch.__version__) < (1, 8):
            y = torch.rfft(x, 1)
    """,
    "type_checking_helper": """
        import torch
        from packaging import version
        _TORCH = version.parse(torch.__version__)
        def is_new(minimum="1.8", /, *, strict=False):
            'Doc.'
            required = version.parse(minimum)
            return _TORCH >= required
        if is_new():
            pass
        else:
            y = torch.rfft(x, 1)
    """,
}

REPORTED = {
    "a_name_that_is_taken_where_it_is_there": (
        """
        import torch
        try:
            autocast = torch.cuda.amp.autocast
            getattr(torch.cuda.amp, "autocast")()
        except AttributeError:
            autocast = None
        if getattr(torch.cuda.amp, "autocast") is not None:
            HAS_AMP = True
        """,
        ["torch.cuda.amp.autocast"] * 3,
    ),
    "bound_in_the_branch_that_runs": (
        """
            import torch
            import torch.nn.functional as F
            from functools import partial
            class A:
                def __init__(self, x):
                    if torch.__version__ >= "1.3":
                        self.f = F.affine_grid
                    else:
                        self.f = partial(F.affine_grid, align_corners=True)
                    if x:
                        self.g = partial(F.affine_grid, align_corners=True)
                    else:
                        self.g = F.affine_grid
                    if torch.__version__ < "1.3":
                        self.h = F.affine_grid
                    self.i = F.grid_sample
                    if torch.__version__ < "1.3":
                        self.i = mine
                def reset(self):
                    self.h = F.affine_grid
                def call(self, theta, size):
                    return self.f(theta, size), self.g(theta, size), self.h(theta, size), self.i(theta, size)
        """,
        ["torch.nn.functional.affine_grid"] * 3 + ["torch.nn.functional.grid_sample"],
    ),
    "new_name_that_is_no_alternative": (
        """
            import torch
            from compat import NEW
            def f(x):
                if NEW:
                    print(torch.fft.rfft(x))
                return torch.rfft(x, 1)
            def g(x):
                if NEW:
                    y = torch.fft.rfft(x)
                    y = torch.rfft(x, 1)
                else:
                    y = x
                return y
            def h(x):
                if torch.fft.rfft(x):
                    return torch.rfft(x, 1)
            def i(x):
                if NEW:
                    return torch.fft.rfft(x)
            def j(x):
                return torch.rfft(x, 1)
        """,
        ["torch.rfft", "torch.rfft", "torch.rfft", "torch.rfft"],
    ),
    "new_name_for_another_object": (
        """
            import torch
            from compat import NEW
            def f(x: torch.Tensor, y: torch.Tensor):
                if NEW:
                    return torch.fft.rfft(y)
                else:
                    return torch.rfft(x, 1)
            def g(x: torch.Tensor, y: torch.Tensor):
                return y.untyped_storage() if NEW else x.storage()
            def h(x, y):
                if NEW:
                    return torch.load(x, weights_only=False)
                return torch.load(y)
        """,
        ["torch.rfft", "torch.Tensor.storage", "torch.load"],
    ),
    "choice_that_is_about_no_release": (
        """
            import torch
            import config
            from config import USE_CUDA
            def f(x, new, layer):
                if x.is_cuda:
                    return torch.fft.rfft(x)
                y = torch.rfft(x, 1) if new else torch.fft.rfft(x)
                if USE_CUDA:
                    y = torch.rfft(x, 1)
                elif config.mode == "new":
                    y = torch.fft.rfft(x)
                elif len(x) > 3:
                    y = torch.rfft(x, 1)
                else:
                    y = torch.fft.rfft(x)
                return torch.rfft(x, 1) if config.check(x) else torch.fft.rfft(x)
        """,
        ["torch.rfft", "torch.rfft", "torch.rfft", "torch.rfft"],
    ),
    "choice_for_a_later_release": (
        """
            import torch
            from compat import NEW
            if torch.__version__ >= "9.0":
                y = torch.fft.rfft(x)
            else:
                y = torch.rfft(x, 1)
            y = torch.fft.rfft(x) if torch.__version__ >= "9.0" and NEW else torch.rfft(x, 1)
        """,
        ["torch.rfft", "torch.rfft"],
    ),
    "either_name_without_a_test": (
        """
            import torch
            def f(x):
                return isinstance(x, torch.optim.lr_scheduler._LRScheduler) or isinstance(x, torch.optim.lr_scheduler.LRScheduler)
        """,
        ["torch.optim.lr_scheduler._LRScheduler"],
    ),
    "method_that_returns_a_constant": (
        """
        import torch
        class Base:
            old = False
            def is_old(self):
                return False
            def f(self, x):
                if self.old:
                    x = torch.rfft(x, 1)
                return torch.rfft(x, 1) if self.is_old() else torch.fft.rfft(x)
        """,
        ["torch.rfft", "torch.rfft"],
    ),
    "flag_with_a_condition_of_its_own": (
        """
            import torch
            if torch.__version__ >= "1.8":
                NEW = True
            else:
                NEW = args.new
            y = torch.fft.rfft(x) if NEW else torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "flag_of_several_branches": (
        """
            import torch
            NEW = False
            if args.old:
                pass
            elif torch.__version__ >= "1.8":
                NEW = True
            y = torch.fft.rfft(x) if NEW else torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "flag_that_is_set_again": (
        """
            import torch
            class Layer:
                def __init__(self):
                    self.new = torch.__version__ >= "1.8"
                def f(self, x):
                    return torch.fft.rfft(x) if self.new else torch.rfft(x, 1)
                def set(self, new):
                    self.new = new
        """,
        ["torch.rfft"],
    ),
    "functions_in_circles": (
        """
            import torch
            def one():
                return other()
            def other():
                return one()
            y = torch.rfft(x, 1) if one() else torch.fft.rfft(x)
        """,
        ["torch.rfft"],
    ),
    "function_with_a_parameter": (
        """
            import torch
            def newer(old=False):
                return torch.__version__ >= "1.8" and not old
            y = torch.fft.rfft(x) if newer(args.old) else torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "default_that_is_no_test": (
        """
        import torch
        def grid(a, new=True, version="1.10"):
            return torch.fft.rfft(a) if new else torch.rfft(a, 1)
        """,
        ["torch.rfft"],
    ),
    "handler_of_more_than_imports": (
        """
        import torch
        try:
            from torch.amp import GradScaler
            build()
        except ImportError:
            y = torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "handler_of_an_optional_package": (
        """
        import torch
        try:
            import fast_fourier
        except ImportError:
            y = torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "wrong_way_round": (
        """
        import torch
        from packaging import version
        if version.parse(torch.__version__) >= version.parse("1.8"):
            y = torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "another_library": (
        """
        import torch, torchvision
        from packaging.version import Version
        if Version(torchvision.__version__) < Version("0.8"):
            y = torch.stft(x)
        if Version(numpy.__version__) < Version("1.20"):
            y = torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "a_version_that_nobody_knows": (
        """
        import torch, pyro
        assert pyro.__version__.startswith("1.8.6")
        assert pyro.__version__ == "1.8.6"
        y = torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "native_amp_flag": (
        """
        import torch
        _NATIVE_AMP = hasattr(torch.cuda, "amp")
        if _NATIVE_AMP:
            with torch.cuda.amp.autocast():
                pass
        """,
        ["torch.cuda.amp.autocast"],
    ),
    "not_a_version_test": (
        """
        import torch
        if torch.cuda.is_available():
            y = torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "switch": (
        """
        import torch
        USE_OLD = False
        if USE_OLD:
            y = torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "another_try": (
        """
        import torch
        try:
            y = torch.rfft(x, 1)
        except KeyError:
            y = torch.fft.rfft(x)
        try:
            y = torch.rfft(x, 1)
        except ImportError:
            y = None
        """,
        ["torch.rfft", "torch.rfft"],
    ),
    "after_the_branches": (
        """
        import torch
        if hasattr(torch, "fft"):
            print("new")
        y = torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "partly": (
        """
        import torch
        if hasattr(torch, "fft") and not legacy:
            y = torch.fft.rfft(x)
        else:
            y = torch.rfft(x, 1)
        """,
        ["torch.rfft"],
    ),
    "newer_than_the_guard": (
        """
        import torch
        if torch.__version__ >= "1.10":
            grid = torch.meshgrid(a, b)
        """,
        ["torch.meshgrid"],
    ),
    "importorskip": (
        """
        import pytest
        torch = pytest.importorskip("torch", minversion="1.8")
        def test(x):
            torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "skip_test_new": (
        """
        import unittest, torch
        class T(unittest.TestCase):
            def test(self, x):
                if torch.__version__ < "1.8":
                    self.skipTest("old")
                torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "skip_test_other": (
        """
        import unittest, torch
        class T(unittest.TestCase):
            def test(self, x):
                if not torch.cuda.is_available():
                    self.skipTest("old")
                torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "try_raises": (
        """
        import torch
        try:
            y = torch.rfft(x, 1)
        except AttributeError:
            raise RuntimeError("gone")
    """,
        ["torch.rfft"],
    ),
    "try_reraise": (
        """
        import torch
        try:
            y = torch.rfft(x, 1)
        except AttributeError:
            raise
    """,
        ["torch.rfft"],
    ),
    "try_log_exc_whole": (
        """
        import torch
        def main():
            try:
                a = load()
                b = prepare(a)
                y = torch.rfft(x, 1)
                z = more(y)
                report(z)
            except Exception as e:
                print("failed", e)
    """,
        ["torch.rfft"],
    ),
    "handler_of_working": (
        """
        import torch
        try:
            y = torch.matmul(x, x)
        except RuntimeError:
            y = torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "default_override_not": (
        """
        import torch.nn as nn
        wn = nn.utils.weight_norm
        if use_new:
            wn = nn.utils.parametrizations.weight_norm
        c = wn(nn.Conv1d(1, 1, 1))
    """,
        ["torch.nn.utils.weight_norm"],
    ),
    "default_override_used_between": (
        """
        import torch.nn as nn
        wn = nn.utils.weight_norm
        c = wn(nn.Conv1d(1, 1, 1))
        if hasattr(nn.utils.parametrizations, "weight_norm"):
            wn = nn.utils.parametrizations.weight_norm
    """,
        ["torch.nn.utils.weight_norm"],
    ),
    "default_override_wrong_way": (
        """
        import torch, torch.nn as nn
        wn = nn.utils.weight_norm
        if torch.__version__ < "2.0":
            wn = nn.utils.parametrizations.weight_norm
        c = wn(nn.Conv1d(1, 1, 1))
    """,
        ["torch.nn.utils.weight_norm"],
    ),
    "default_override_called": (
        """
        import torch
        y = torch.rfft(x, 1)
        if hasattr(torch.fft, "rfft"):
            y = torch.fft.rfft(x)
    """,
        ["torch.rfft"],
    ),
    "helper_other": (
        """
        import torch, numpy
        from packaging.version import Version
        def newer(v):
            return Version(numpy.__version__) >= Version(v)
        y = torch.fft.rfft(x) if newer("1.8") else torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "helper_unknown_arg": (
        """
        import torch
        from packaging.version import Version
        def newer(v):
            return Version(torch.__version__) >= Version(v)
        y = torch.fft.rfft(x) if newer(args.v) else torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "helper_wrong": (
        """
        import torch
        from packaging.version import Version
        def newer(v):
            return Version(torch.__version__) >= Version(v)
        y = torch.rfft(x, 1) if newer("1.8") else None
    """,
        ["torch.rfft"],
    ),
    "helper_or": (
        """
        import torch
        from packaging.version import Version
        def newer(v, force):
            return Version(torch.__version__) >= Version(v) and not force
        y = torch.fft.rfft(x) if newer("1.8", args.force) else torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "helper_side_effect_if": (
        """
        import torch
        from packaging.version import Version
        def newer(v):
            if args.old:
                return False
            return Version(torch.__version__) >= Version(v)
        y = torch.fft.rfft(x) if newer("1.8") else torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "helper_overwritten": (
        """
        import torch
        from packaging.version import Version
        def newer(v):
            v = args.version
            return Version(torch.__version__) >= Version(v)
        y = torch.fft.rfft(x) if newer("1.8") else torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "helper_redefined": (
        """
        import torch
        from packaging.version import Version
        def newer(v):
            return Version(torch.__version__) >= Version(v)
        if args.old:
            def newer(v):
                return False
        y = torch.fft.rfft(x) if newer("1.8") else torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "exact_ne": (
        """
        import torch
        if torch.__version__ != "1.10.0a0+abc":
            y = torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "exact_in_target": (
        """
        import torch
        if torch.__version__.startswith("2."):
            y = torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "local_rank": (
        """
        import argparse, os, torch
        p = argparse.ArgumentParser()
        p.add_argument("--local_rank", type=int, default=-1)
    """,
        ["torch.distributed.launch(--local_rank)"],
    ),
    "local_rank_other_env": (
        """
        import argparse, os, torch
        p = argparse.ArgumentParser()
        p.add_argument("--local_rank", type=int, default=-1)
        rank = os.environ["RANK"]
    """,
        ["torch.distributed.launch(--local_rank)"],
    ),
    "weights_only_reverse": (
        """
        import torch
        try:
            d = torch.load(p)
        except FileNotFoundError:
            d = torch.load(q, weights_only=False)
    """,
        ["torch.load"],
    ),
    "meshgrid_wrong": (
        """
        import torch
        if "indexing" in torch.meshgrid.__kwdefaults__:
            g = torch.meshgrid(a, b)
    """,
        ["torch.meshgrid"],
    ),
    "meshgrid_sig_other": (
        """
        import inspect, torch
        if "indexing" in inspect.signature(torch.stft).parameters:
            g = torch.meshgrid(a, b)
        else:
            g = torch.meshgrid(a, b)
    """,
        ["torch.meshgrid"],
    ),
    "type_error_other_function": (
        """
        import torch
        from torchvision import models
        try:
            m = build(weights="DEFAULT")
        except TypeError:
            m = models.resnet18(pretrained=True)
    """,
        ["torchvision.models.resnet18"],
    ),
    "suppress_other": (
        """
        import contextlib, torch
        with contextlib.suppress(FileNotFoundError):
            torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "class_body_skipped": (
        """
        import pytest, torch
        @pytest.mark.skipif(torch.__version__ >= "1.8", reason="old")
        class Test:
            f = torch.rfft
    """,
        ["torch.rfft"],
    ),
    "container_full": (
        """
        import torch
        isinstance(x, torch._six.container_abcs.Mapping)
    """,
        ["torch._six.container_abcs.Mapping"],
    ),
    "container_old": (
        """
        from torch._six import container_abcs
        isinstance(x, container_abcs.Mapping)
    """,
        ["torch._six.container_abcs"],
    ),
    "importorskip_use": (
        """
        import pytest
        torch = pytest.importorskip("torch", minversion="1.8")
        y = torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "getattr_default_gone": (
        """
        import torch
        f = getattr(torch.fft, "rfft", torch.rfft)
    """,
        ["torch.rfft"],
    ),
    "any_wrong": (
        """
        import torch
        if any(torch.__version__.startswith(v) for v in ("1.", "2.")):
            y = torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "any_unknown": (
        """
        import torch
        if any(torch.__version__.startswith(v) for v in OLD):
            y = torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "init_return": (
        """
        import torch
        class A:
            def __init__(self):
                if torch.__version__ >= "1.8":
                    return
            def f(self, x):
                return torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "try_torch_itself": (
        """
        try:
            import torch
        except ImportError:
            torch = None
        y = torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "six_pass": (
        """
        try:
            from torch._six import inf
        except ImportError:
            pass
        print(inf)
    """,
        ["torch._six.inf"],
    ),
    "string_mark": (
        """
        import pytest, torch
        @pytest.mark.skipif("sys.platform == 'win32'", reason="x")
        def test():
            torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
    "other_skip": (
        """
        import torch
        def f(self, x):
            if torch.__version__ >= "1.8":
                skip("?")
                self.skip()
            torch.rfft(x, 1)
    """,
        ["torch.rfft"],
    ),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str) -> None:
    code = dedented(CLEAN[name])
    assert reported(code) == []
    assert fixed(code, *FIX_ALL) == code


@pytest.mark.parametrize("name", REPORTED)
def test_reported(name: str) -> None:
    code, expected = REPORTED[name]
    assert reported(code) == expected


def test_a_guard_for_a_later_release_than_the_target() -> None:
    code = """
        import torch
        from packaging.version import Version
        if Version(torch.__version__) >= Version("2.4"):
            scaler = torch.amp.GradScaler("cuda")
        else:
            scaler = torch.cuda.amp.GradScaler()
    """
    assert reported(code) == []
    assert reported(code, "--target", "2.3", "--ignore", "TM002") == []
    code = code.replace("2.4", "2.6")
    assert reported(code, "--target", "2.5") == ["torch.cuda.amp.GradScaler"]
    assert reported(code, "--target", "2.6") == []


# ---- decorators -------------------------------------------------------------------------------------

MARKED = """
import sys, unittest
from unittest import skipIf
import numpy
import pytest
import torch
from packaging.version import Version
from tensordict.utils import implement_for
from tests.helpers import RunIf, SkipIfAtLeastPyTorchVersion, SkipIfBeforePyTorchVersion
from tests.helpers import require_torch_2_0, require_torch_max_version, require_torch_min_version
from tests.helpers import require_torch_version_greater_equal, skip_if_torch_gt, skip_if_torch_lt

old_only = pytest.mark.skipif(torch.__version__ >= "1.8", reason="old")
broken = pytest.mark.skip(reason="broken")

def old_torch_only(test):
    return unittest.skipIf(torch.__version__ >= "1.8", "old")(test)

def up_to(version):
    return pytest.mark.skipif(Version(torch.__version__) > Version(version), reason="old")

MARK
def test_old(x):
    y = torch.rfft(x, 1)

MARK
class TestOld(unittest.TestCase):
    def test(self):
        torch.rfft(x, 1)
        def inner():
            return torch.rfft(x, 1)
"""


@pytest.mark.parametrize(
    "mark",
    [
        '@pytest.mark.skipif(hasattr(torch.fft, "rfft"), reason="old torch only")',
        '@pytest.mark.skipif(not hasattr(torch, "rfft"), reason="needs rfft")',
        '@pytest.mark.skipif(Version(torch.__version__) >= Version("1.8"), reason="old")',
        '@pytest.mark.skipif(condition=Version(torch.__version__) >= Version("1.8"), reason="old")',
        '@pytest.mark.skipif("torch.__version__ >= \'1.8\'", reason="old")',
        '@pytest.mark.xfail(torch.__version__ >= "1.8", reason="gone", run=False)',
        '@unittest.skipIf(torch.__version__ >= "1.8", "old")',
        '@unittest.skipUnless(hasattr(torch, "rfft"), "gone")',
        '@pytest.mark.skip(reason="broken")',
        "@pytest.mark.skip",
        '@pytest.mark.skipif(True, reason="broken")',
        '@unittest.skip("broken")',
        "@unittest.skip",
        '@unittest.skipIf(True, "broken")',
        '@unittest.skipUnless(False, "broken")',
        "@broken",
        '@skipIf(torch.__version__ >= "1.8", "old")',
        "@old_only",
        "@old_torch_only",
        '@up_to("1.7")',
        '@implement_for("torch", None, "1.8")',
        '@implement_for("torch", from_version="1.0", to_version="1.8")',
        '@RunIf(max_torch="1.7")',
        '@skip_if_torch_gt("1.7")',
        '@require_torch_max_version("1.8")',
        "@SkipIfAtLeastPyTorchVersion((1, 8))",
    ],
)
def test_marks_for_old_releases(mark: str) -> None:
    code = MARKED.replace("MARK", mark)
    assert reported(code) == []
    assert fixed(code, *FIX_ALL) == code


@pytest.mark.parametrize(
    "mark",
    [
        '@pytest.mark.skipif(not hasattr(torch.fft, "rfft"), reason="new")',
        '@pytest.mark.skipif(Version(torch.__version__) < Version("1.8"), reason="new")',
        '@pytest.mark.skipif(Version(numpy.__version__) >= Version("1.8"), reason="numpy")',
        '@pytest.mark.skipif(sys.version_info >= (3, 8), reason="Python")',
        '@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")',
        '@pytest.mark.skipif(False, reason="not today")',
        '@pytest.mark.xfail(reason="broken")',
        '@pytest.mark.xfail(True, reason="broken")',
        "@skip(3)",
        '@pytest.mark.parametrize("old", [True])',
        '@unittest.skipIf(torch.__version__ < "1.8", "new")',
        '@unittest.skipUnless(torch.__version__ >= "1.8", "new")',
        '@up_to("9.0")',
        '@implement_for("torch", "1.8")',
        '@implement_for("gym", None, "0.26")',
        '@RunIf(min_torch="1.8")',
        "@RunIf(min_cuda_gpus=1)",
        '@skip_if_torch_lt("1.8")',
        '@require_torch_min_version("1.8")',
        '@require_torch_version_greater_equal("2.1")',
        "@require_torch_2_0",
        "@SkipIfBeforePyTorchVersion((1, 8))",
    ],
)
def test_marks_that_let_the_target_run(mark: str) -> None:
    assert reported(MARKED.replace("MARK", mark)) == ["torch.rfft"] * 3


ASKS_FOR_INDEXING = [
    "torch.meshgrid.__kwdefaults__",
    "torch.meshgrid.__kwdefaults__ is not None",
    "torch.functional.meshgrid.__kwdefaults__ != None",
    "not torch.meshgrid.__kwdefaults__ is None",
    "bool(torch.meshgrid.__kwdefaults__)",
    "getattr(torch.meshgrid, '__kwdefaults__', None)",
    "DEFAULTS",
    "DEFAULTS is not None",
    "DEFAULTS and 'indexing' in DEFAULTS",
    "torch.meshgrid.__kwdefaults__ is not None and 'indexing' in torch.meshgrid.__kwdefaults__",
    "'indexing' in (torch.meshgrid.__kwdefaults__ or {})",
    "'indexing' in (getattr(torch.meshgrid, '__kwdefaults__', None) or dict())",
    "'indexing' in PARAMETERS",
    "PARAMETERS.get('indexing')",
    "PARAMETERS.get('indexing') is not None",
    "'indexing' in list(PARAMETERS)",
    "'indexing' in set(PARAMETERS.keys())",
    "'indexing' in [p.name for p in PARAMETERS.values()]",
    "'indexing' in {name for name in inspect.signature(torch.meshgrid).parameters}",
    "'indexing' in inspect.getfullargspec(torch.meshgrid).kwonlyargs",
    "'indexing' in torch.meshgrid.__code__.co_varnames",
    "not torch.meshgrid.__defaults__ and KEYWORDS",
]


@pytest.mark.parametrize("test", ASKS_FOR_INDEXING)
def test_a_question_about_parameters(test: str) -> None:
    code = f"""
        import inspect, torch
        DEFAULTS = torch.meshgrid.__kwdefaults__
        PARAMETERS = inspect.signature(torch.meshgrid).parameters
        KEYWORDS = DEFAULTS or {{}}
        NEW = {test}
        def one(a, b):
            if {test}:
                return torch.meshgrid(a, b, indexing="ij")
            else:
                return torch.meshgrid(a, b)
        def two(*tensors):
            if {test}:
                return torch.meshgrid(*tensors, indexing="ij")  # since 1.10

            return torch.meshgrid(*tensors)
        def three(a, b):
            if not ({test}):
                return torch.meshgrid(a, b)
            return torch.meshgrid(a, b, indexing="ij")
        def four(a, b):
            return torch.meshgrid(a, b, indexing="ij") if {test} else torch.meshgrid(a, b)
    """
    assert reported(code) == []
    assert fixed(dedented(code), *FIX_ALL) == dedented(code)


@pytest.mark.parametrize(
    "test",
    [
        "torch.meshgrid.__defaults__",
        "torch.meshgrid.__kwdefaults__ is None",
        "torch.stft.__kwdefaults__ is not None",  # it has none
        "'indexing' in torch.meshgrid.__defaults__",  # values, no names
        "torch.meshgrid.__kwdefaults__.get('indexing')",  # None
        "inspect.signature(torch.meshgrid).parameters",
        "'indexing' in [p.kind for p in inspect.signature(torch.meshgrid).parameters.values()]",
    ],
)
def test_a_question_that_the_target_denies(test: str) -> None:
    code = f"""
        import inspect, torch
        def grid(a, b):
            if {test}:
                return a + b
            return torch.meshgrid(a, b)
    """
    assert reported(code) == ["torch.meshgrid"]


@pytest.mark.parametrize(
    "leaves",
    [
        'pytest.skip("broken")',
        'pytest.skip("broken", allow_module_level=True)',
        'skip("broken")',
        'raise unittest.SkipTest("broken")',
        'self.skipTest("broken")',
        "sys.exit()",
        "exit(1)",
        "raise NotImplementedError",
        "return x",
    ],
)
def test_what_stands_behind_the_end(leaves: str) -> None:
    inside = f"""
        import sys, unittest, torch
        import pytest
        from pytest import skip
        def f(self, x):
            y = x + 1
            {leaves}
            if x:
                y = torch.rfft(x, 1)
            def inner():
                return torch.rfft(x, 1)
            return torch.rfft(y, 1)
        def g(x):
            return torch.rfft(x, 1)
    """
    assert reported(inside) == ["torch.rfft"]
    if "return" not in leaves:
        code = f"import sys, unittest, torch\nimport pytest\nfrom pytest import skip\n{leaves}\ntorch.rfft(x, 1)\n"
        assert reported(code) == []


@pytest.mark.parametrize(
    "block",
    [
        "if x is None:\n    raise ValueError",
        "with pytest.raises(ValueError):\n    raise ValueError",
        "with suppress(ValueError):\n    raise ValueError",
        "try:\n    raise ValueError\nexcept ValueError:\n    pass",
        "for y in x:\n    continue",
        "while x:\n    break",
        "skip = x.skip()",
        "pytest.importorskip('torch')",
        "def exit(x): return x\nexit(3)",
    ],
)
def test_what_stands_behind_a_block_that_is_left(block: str) -> None:
    code = f"import pytest, torch\nfrom contextlib import suppress\n{block}\ntorch.rfft(x, 1)\n"
    assert reported(code) == ["torch.rfft"]


# ---- handlers ---------------------------------------------------------------------------------------

ANY_HANDLER = [
    "except AttributeError:",
    "except (AttributeError, TypeError):",
    "except builtins.AttributeError:",
    "except RuntimeError:",
    "except NotImplementedError:",
    "except Exception as error:",
    "except BaseException:",
    "except:",
    "except KeyError:\n    pass\nexcept AttributeError:",
]
OTHER_HANDLER = ["except KeyError:", "except (ValueError, IndexError):", "except MyError:"]


@pytest.mark.parametrize("handler", [*ANY_HANDLER, "except ImportError:", "except ModuleNotFoundError:"])
def test_the_old_call_in_a_handler(handler: str) -> None:
    code = f"import torch\ntry:\n    y = torch.fft.rfft(x)\n{handler}\n    y = torch.rfft(x, 1)\n"
    assert reported(code) == []
    assert fixed(code, *FIX_ALL) == code


@pytest.mark.parametrize("handler", ANY_HANDLER)
def test_the_new_call_in_a_handler(handler: str) -> None:
    code = f"import torch\ntry:\n    y = torch.rfft(x, 1)\n{handler}\n    y = torch.fft.rfft(x)\n"
    assert reported(code) == []
    assert fixed(code, *FIX_ALL) == code


@pytest.mark.parametrize("handler", ANY_HANDLER)
def test_code_that_does_without(handler: str) -> None:
    """`except RuntimeError` is there for whatever else fails, unless the handler says what it is about."""
    code = f"import torch\ntry:\n    torch.onnx.enable_log()\n{handler}\n    "
    assert reported(f"{code}pass\n") == ([] if "Attribute" in handler else ["torch.onnx.enable_log"])
    assert reported(f"{code}raise Old\n") == ["torch.onnx.enable_log"]


@pytest.mark.parametrize("handler", ANY_HANDLER)
def test_a_name_that_is_only_looked_up(handler: str) -> None:
    assert reported(f"import torch\ntry:\n    f = torch.rfft\n{handler}\n    f = None\n") == []


SHOWS = {
    "if torch.__version__ < '1.8':\n        raise": True,
    "if hasattr(torch, 'linalg'):\n        y = None": True,
    "if 'no attribute' in str(error):\n        y = None": True,
    "y = None if 'removed' in error.args[0] else 1": True,
    "if re.search('was removed', str(error)):\n        y = None": True,
    "if not isinstance(error, AttributeError):\n        raise": True,
    "y = torch.fft.rfft(x)": True,
    "if 'singular' in str(error):\n        y = None": False,
    "if 'rfft' in str(error):\n        y = None": False,
    "if 'out of memory' in str(error):\n        y = None": False,
    "print('removed the negative values')": False,
    "y = torch.zeros_like(x)": False,
    "pass": False,
    "return": False,
}


@pytest.mark.parametrize("handler", SHOWS)
@pytest.mark.parametrize(
    "error", ["RuntimeError", "Exception", "BaseException", "(ValueError, RuntimeError)"]
)
def test_a_handler_of_any_error_shows_what_it_is_about(handler: str, error: str) -> None:
    body = f"    try:\n        y = torch.rfft(x, 1)\n    except {error} as error:\n        "
    handler = handler.replace("\n", "\n    ")
    code = f"import re\nimport torch\ndef f(x):\n{body}{handler}\n    return y\n"
    assert reported(code) == ([] if SHOWS[handler.replace("\n    ", "\n")] else ["torch.rfft"])


@pytest.mark.parametrize("handler", OTHER_HANDLER)
def test_handlers_of_other_errors(handler: str) -> None:
    old, new = "y = torch.rfft(x, 1)", "y = torch.fft.rfft(x)"
    for first, second in ((old, new), (new, old), (old, "pass")):
        code = f"import torch\ntry:\n    {first}\n{handler}\n    {second}\n"
        assert reported(code) == ["torch.rfft"]


def test_an_import_error_is_no_attribute_error() -> None:
    code = "import torch\ntry:\n    y = torch.rfft(x, 1)\nexcept ImportError:\n    y = torch.fft.rfft(x)\n"
    assert reported(code) == ["torch.rfft"]


# ---- functions of the file --------------------------------------------------------------------------

USED = """
import functools
import operator
import torch
from packaging.version import Version
HELPER
if newer("1.8"):
    y = torch.fft.rfft(x)
else:
    y = torch.rfft(x, 1)
def f(x):
    if not newer("1.8"):
        return torch.rfft(x, 1)
"""


@pytest.mark.parametrize(
    "helper",
    [
        "def newer(v):\n    return Version(torch.__version__) >= Version(v)",
        "def newer(v: str) -> bool:\n    'Whether.'\n    return Version(torch.__version__) >= Version(v)",
        "def newer(v='1.8', strict=True):\n    return Version(torch.__version__) >= Version(v)",
        "def newer(v):\n    now = Version(torch.__version__.split('+')[0])\n    return now >= Version(v)",
        "newer = lambda v: Version(torch.__version__) >= Version(v)",
        "@functools.lru_cache(maxsize=None)\ndef newer(v):\n    return Version(torch.__version__) >= Version(v)",
        "NOW = Version(torch.__version__)\ndef newer(v):\n    return NOW >= Version(v)",
        "def newer(v):\n    from packaging import version\n    import torch as t\n"
        "    return version.parse(t.__version__) >= version.parse(v)",
        "def newer(v):\n    if Version(torch.__version__) >= Version(v):\n        return True\n    return False",
        "def newer(v):\n    if Version(torch.__version__) < Version(v):\n        return False\n"
        "    else:\n        return True",
        "def newer(v):\n    return tuple(map(int, torch.__version__.split('.')[:2])) >= "
        "tuple(map(int, v.split('.')[:2]))",
        "def newer(v):\n    return [int(n) for n in torch.__version__.split('.')[:2]] >= "
        "[int(n) for n in v.split('.')[:2]]",
        "def newer(v):\n    return digit_version(torch.__version__) >= digit_version(v)",
        "def newer(v):\n    return Version(torch.__version__).release >= Version(v).release",
        "def at_least(v):\n    return Version(torch.__version__) >= Version(v)\n"
        "def newer(v):\n    return at_least(v)",
        "def newer(v):\n    return bool(Version(torch.__version__) >= Version(v))",
        "def newer(v):\n    return operator.ge(Version(torch.__version__), Version(v))",
        "def newer(v):\n    try:\n        return Version(torch.__version__) >= Version(v)\n"
        "    except Exception:\n        return False",
    ],
)
def test_helpers(helper: str) -> None:
    code = USED.replace("HELPER", helper)
    assert reported(code) == []
    assert fixed(code, *FIX_ALL) == code


@pytest.mark.parametrize(
    "helper",
    [
        "def newer(v):\n    return Version(numpy.__version__) >= Version(v)",
        "def newer(v):\n    return Version(torch.__version__) >= Version(v) and not args.old",
        "def newer(v):\n    if args.old:\n        return False\n    return Version(torch.__version__) >= Version(v)",
        "def newer(v):\n    v = args.version\n    return Version(torch.__version__) >= Version(v)",
        "def newer(v):\n    log(v)\n    return Version(torch.__version__) >= Version(v)",
        "def newer(v):\n    return newer(v)",
        "def newer(v):\n    return other(v)\ndef other(v):\n    return newer(v)",
        "def newer(v):\n    return Version(torch.__version__) >= Version(v)\n"
        "if args.old:\n    def newer(v):\n        return False",
    ],
)
def test_helpers_that_do_not_answer(helper: str) -> None:
    assert reported(USED.replace("HELPER", helper)) == ["torch.rfft", "torch.rfft"]


# ---- codemods, the API rules, minimum ----------------------------------------------------------------


def test_codemods_leave_other_releases_alone() -> None:
    code = """
        import torch
        from packaging.version import Version
        from torch.autograd import Function
        if Version(torch.__version__) < Version("1.5"):
            class Double(Function):
                def forward(self, x):
                    return x * 2
            loss = criterion(y, t).data[0]
            x.cuda(async_=True)
        else:
            class Double(Function):
                @staticmethod
                def forward(ctx, x):
                    return x * 2
        def arguments(parser):
            if Version(torch.__version__) >= Version("2.0"):
                return
            parser.add_argument("--local_rank", type=int)
    """
    assert reported(code, "--ignore", "TM330") == []
    assert fixed(dedented(code), *FIX_ALL) == dedented(code)
    assert "torch.distributed.launch(--local_rank)" in reported(code.replace('("2.0")', '("9.0")'))


def test_a_release_that_pytest_asks_for_covers_what_is_new() -> None:
    code = """
        import torch
        from tests.helpers import require_torch_min_version
        @require_torch_min_version("2.0")
        def test():
            return torch.compile(f)
        def other():
            return torch.compile(f)
    """
    assert reported(code, "--minimum", "1.13") == ["torch.compile"]


# ---- names that are compared -------------------------------------------------------------------------

SIGMOID = ("--select", "TM411")
COMPARED = """
import torch
import torch.nn.functional as F
CODE
y = F.sigmoid(x)
"""


@pytest.mark.parametrize(
    "code",
    [
        "if act == F.sigmoid: pass",
        "if F.sigmoid is act: pass",
        "if act not in (F.sigmoid, F.relu): pass",
        "if act in {F.sigmoid}: pass",
        "NAMES = {F.sigmoid: 's'}",
        "name = names[F.sigmoid]",
        "name = names.get(F.sigmoid)",
        "self.assertIs(act, F.sigmoid)",
        "match act:\n    case F.sigmoid: pass",
        "self.act = F.sigmoid\nif self.act == F.sigmoid: pass",
    ],
)
def test_another_object_is_not_what_it_was_compared_with(code: str) -> None:
    text = COMPARED.replace("CODE", code)
    assert fixed(text, *SIGMOID, "--fix") == text.replace("y = F.sigmoid", "y = torch.sigmoid")
    assert "F.sigmoid" not in fixed(text, *SIGMOID, *FIX_ALL)


def test_the_same_object_may_be_compared() -> None:
    text = "import torch\nif type(m) is torch.nn.quantized.Linear: pass\n"
    assert "torch.ao.nn.quantized.Linear" in fixed(text, "--fix")


def test_an_imported_name_that_is_compared_keeps_its_import() -> None:
    text = "from torch.nn.functional import tanh\nif act is tanh: pass\ny = tanh(x)\n"
    assert fixed(text, *SIGMOID, "--fix") == text
    assert "torch.nn.functional" not in fixed(text, *SIGMOID, *FIX_ALL)


def test_a_name_in_a_subscript_of_an_annotation_is_no_key() -> None:
    text = "from torch.optim.lr_scheduler import _LRScheduler\ndef f(x: list[_LRScheduler] | None): pass\n"
    assert fixed(text, *only(["TM450"]), "--minimum", "2.0", "--fix") == text.replace("_LRS", "LRS")


@pytest.mark.parametrize(
    ("asks", "ends", "guarded"),
    [
        ("torch.rfft", "except AttributeError:\n        return False", True),
        ("torch.rfft", "except:\n        return False", True),
        ("from torch import rfft", "except ImportError:\n        return", True),
        ("torch.rfft", "except AttributeError:\n        return True", False),
        ("torch.fft", "except AttributeError:\n        return False", False),
        ("check()", "except AttributeError:\n        return False", False),
    ],
)
def test_a_function_that_tries_a_name(asks: str, ends: str, guarded: bool) -> None:
    code = f"import torch\ndef is_old():\n    try:\n        {asks}\n        return True\n    {ends}\n"
    uses = "if is_old():\n    y = torch.rfft(x, 1)\n"
    found = [item for item in run(code + uses).findings if item.start > len(code)]
    assert bool(found) is not guarded
