"""Shapes that real projects have, and that were once judged wrong."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from harness.program import FIX_ALL, only, run


def found_with_all_rules(code: str) -> list[str]:
    return [item.code for item in run(textwrap.dedent(code).lstrip("\n"), "--select", "ALL").findings]


def fixed(code: str, *selected: str) -> str:
    """The code after every fix, the unsafe ones too; selected: codes instead of those that are on by default."""
    text = textwrap.dedent(code).lstrip("\n")
    return run(text, *(only(selected) if selected else ()), *FIX_ALL).new_text or text


def found(code: str, path: Path = Path("code.py")) -> list[tuple[int, str]]:
    """Line and code of every finding."""
    text = textwrap.dedent(code).lstrip("\n")
    return [(text.count("\n", 0, item.start) + 1, item.code) for item in run(text, path=path).findings]


def test_an_import_for_old_releases_only_is_used_without_a_finding() -> None:
    code = """
        import torch
        MAJOR, MINOR = (int(part) for part in torch.__version__.split(".")[:2])
        if int(torch.__version__.split(".")[0]) == 1 and int(torch.__version__.split(".")[1]) < 8:
            from torch._six import container_abcs
        else:
            import collections.abc as container_abcs


        def many(x):
            return isinstance(x, container_abcs.Iterable)
    """
    assert found(code) == []


def test_an_alias_for_old_releases_only_is_used_without_a_finding() -> None:
    code = """
        import functools
        import torch
        from torch.utils.checkpoint import checkpoint
        if torch.__version__ >= (1, 11):
            rerun = functools.partial(checkpoint, use_reentrant=False)
        else:
            rerun = checkpoint


        def forward(block, x):
            return rerun(block, x)
    """
    assert found(code) == []


def test_an_optional_import_is_still_found_where_it_is_used() -> None:
    code = """
        try:
            from functorch import grad
        except ImportError:
            grad = None
        g = grad(f)
    """
    assert [line for line, _ in found(code)] == [2, 5]


def test_a_module_of_a_package_is_not_shadowed_by_its_neighbour(tmp_path: Path) -> None:
    package, scripts = tmp_path / "package", tmp_path / "scripts"
    for directory in (package, scripts):
        directory.mkdir()
        (directory / "torch.py").touch()
    (package / "__init__.py").touch()
    code = "import torch\ntorch.ger(a, b)\n"
    assert found(code, package / "code.py") == [(2, "TM110")]
    assert found(code, scripts / "code.py") == []


def test_a_library_that_the_repository_holds_is_its_own(tmp_path: Path) -> None:
    for directory in ("fork/apex", "fork/tests/deep", "model", ".git"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "fork" / "apex" / "__init__.py").touch()
    code = "import torch, apex\nmodel, optimizer = apex.amp.initialize(model, optimizer)\ntorch.ger(a, b)\n"
    assert found(code, tmp_path / "fork" / "tests" / "deep" / "code.py") == [(3, "TM110")]
    assert (2, "TM220") in found(code, tmp_path / "model" / "code.py")


@pytest.mark.parametrize("place", ["nncf/torch/layers", "nncf/common", "nncf"])
def test_a_part_of_a_package_that_has_a_library_s_name_is_not_the_library(tmp_path: Path, place: str) -> None:
    for directory in (".git", "nncf/torch/layers", "nncf/common", "nncf"):
        (tmp_path / directory).mkdir(parents=True, exist_ok=True)
        if directory != ".git":
            (tmp_path / directory / "__init__.py").touch()
    (tmp_path / "nncf" / "torch" / "__init__.py").touch()
    assert found("import torch\ntorch.ger(a, b)\n", tmp_path / place / "code.py") == [(2, "TM110")]


@pytest.mark.parametrize("place", ["texar/torch/modules", "texar", "tests"])
def test_nor_is_a_part_of_a_package_without_a_file_of_its_own(tmp_path: Path, place: str) -> None:
    for directory in (".git", "texar/torch/modules", "tests"):
        (tmp_path / directory).mkdir(parents=True, exist_ok=True)
    (tmp_path / "texar" / "torch" / "__init__.py").write_text("from texar.torch import modules\n")
    (tmp_path / "texar" / "torch" / "modules" / "__init__.py").touch()
    assert found("import torch\ntorch.ger(a, b)\n", tmp_path / place / "code.py") == [(2, "TM110")]


def test_torch_that_a_local_star_import_passes_on() -> None:
    code = """
        from .common import *
        torch.ger(a, b)
    """
    assert found(code) == [(2, "TM110")]
    assert found("torch.ger(a, b)\n") == []
    assert found("from .common import *\ntorch = None\ntorch.ger(a, b)\n") == []


def test_keyword_arguments_keep_their_order() -> None:
    code = """
        import torch
        s = torch.stft(
            x,
            n_fft=512,
            window=w,
            normalized=False,
            pad_mode="reflect",
            return_complex=False,
        )
    """
    expected = """
        import torch
        s = torch.view_as_real(torch.stft(
            x,
            n_fft=512,
            window=w,
            normalized=False,
            pad_mode="reflect",
            return_complex=True,
        ))
    """
    assert fixed(code) == textwrap.dedent(expected).lstrip("\n")


def test_a_lambda_in_a_file_with_models() -> None:
    code = """
        import torch
        model = torch.nn.Linear(2, 2).to("cuda")
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        usable = lambda item: item.x is not None or item.y
        loss = model(torch.ones(2))
    """
    assert found_with_all_rules(code) == ["TM900"]


def test_torch_is_not_imported_again_behind_a_star_import() -> None:
    code = """
        import torch
        import torch.nn as nn
        from apex.parallel import convert_syncbn_model
        from timm.utils import *
        model = convert_syncbn_model(model)
    """
    expected = """
        import torch
        import torch.nn as nn
        from timm.utils import *
        model = {}.SyncBatchNorm.convert_sync_batchnorm(model)
    """
    after = fixed(code, "TM231")
    assert after in [textwrap.dedent(expected).lstrip("\n").format(name) for name in ("torch.nn", "nn")]
