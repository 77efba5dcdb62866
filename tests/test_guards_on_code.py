"""Guards in whole files: which outdated names are left to report once the resolver has walked the code."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass

import pytest

from torchmigrate.names.guards import is_handled
from torchmigrate.names.resolver import resolve

REPLACED = {
    "torch.rfft": ("torch.fft.rfft",),
    "torch.symeig": ("torch.linalg.eigh",),
    "functorch.vmap": ("torch.func.vmap", "torch.vmap"),
    "torch._six.container_abcs": (),
    "torch.distributed._all_gather_base": ("torch.distributed.all_gather_into_tensor",),
    "torch.cuda.amp.autocast": ("torch.amp.autocast",),
    "torch.cuda.amp.GradScaler": ("torch.amp.GradScaler",),
    "torch.optim.lr_scheduler._LRScheduler": ("torch.optim.lr_scheduler.LRScheduler",),
    "torchaudio.set_audio_backend": (),
    "torch.meshgrid": (),
}


@dataclass
class Text:
    """All that the resolver needs of a source (ASCII only)."""

    text: str

    def offset(self, line: int, column: int) -> int:
        return sum(len(before) for before in self.text.splitlines(keepends=True)[: line - 1]) + column


def reported(code: str, torch: tuple[int, ...] = (2, 15)) -> list[str]:
    """The outdated names that are used and not taken care of."""
    text = textwrap.dedent(code).lstrip("\n")
    names = resolve(ast.parse(text), Text(text))
    target = {"torch": torch, "torchaudio": (2, 9), "torchvision": (0, 30)}.get
    return [
        name
        for use in names.uses
        for name in use.candidates
        if name in REPLACED and not is_handled(use.guards, target=target, old=[name], new=REPLACED[name])
    ]


CLEAN = {
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
                torchaudio.list_audio_backends()
            else:
                torchaudio.set_audio_backend("soundfile")
    """,
    "torchaudio_pair": """
        import torchaudio
        torchaudio_major, torchaudio_minor = result
        if torchaudio_major >= 2 and torchaudio_minor >= 1:
            torchaudio.list_audio_backends()
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
}

REPORTED = {
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
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str) -> None:
    assert reported(CLEAN[name]) == []


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
    assert reported(code, torch=(2, 3)) == ["torch.cuda.amp.GradScaler"]
