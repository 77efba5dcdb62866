"""Fixes that depend on each other: in the parts of a `try`, and at the uses of an import that fails."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness.program import FIX, FIX_ALL, fixed, run

from torchmigrate.cli.commands import commands
from torchmigrate.findings import Applicability

TARGET = ("--target", "2.13")


def dedented(code: str) -> str:
    return textwrap.dedent(code).lstrip("\n")


def symbols(code: str) -> list[str]:
    found = run(dedented(code), *TARGET).findings
    return [item.symbol for item in sorted(found, key=lambda item: item.start)]


# ---- try --------------------------------------------------------------------------------------------

FALLBACK = """
    import contextlib, torch
    def f(A, *args):
        try:
            w, v = BODY
        except ERRORS:
            w, v = torch.symeig(A + torch.eye(3), eigenvectors=True)
        return w, v
"""


@pytest.mark.parametrize(
    "errors",
    [
        "RuntimeError",
        "Exception",
        "(RuntimeError, ValueError)",
        "RuntimeError as e",
        "torch.linalg.LinAlgError",
    ],
)
def test_body_and_handler_are_rewritten_together(errors: str) -> None:
    code = dedented(FALLBACK.replace("ERRORS", errors).replace("BODY", "torch.symeig(A, eigenvectors=True)"))
    assert fixed(code, *TARGET, *FIX).count("torch.linalg.eigh(") == 2
    if "LinAlg" not in errors:
        first, second = run(code, *TARGET).findings
        assert first.fix is not None
        assert first.fix == second.fix


@pytest.mark.parametrize(
    "body",
    [
        "torch.symeig(A, *args)",
        "torch.symeig(A, eigenvectors=True)  # torchmigrate: ignore[TM100]",
        "A.symeig(eigenvectors=True)",
        "getattr(torch, 'symeig')(A, eigenvectors=True)",
        "torch.rfft(A, *args), A",
        "torch.solve(A, *args)",
        "unfixed(A, *args)",
        "self.unfixed(A, *args)",
    ],
)
def test_a_handler_is_not_rewritten_alone(body: str) -> None:
    helper = "\ndef unfixed(A, *args):\n    return torch.symeig(A, *args)\n"
    code = dedented(FALLBACK.replace("ERRORS", "RuntimeError").replace("BODY", body)) + helper
    assert fixed(code, *TARGET, *FIX) == code
    assert run(code, *TARGET).findings


def test_a_handler_of_a_body_that_works_is_rewritten() -> None:
    code = dedented(FALLBACK.replace("ERRORS", "RuntimeError").replace("BODY", "torch.linalg.svd(A)[:2]"))
    assert "torch.symeig" not in fixed(code, *TARGET, *FIX)


def test_a_body_is_not_rewritten_without_its_handler() -> None:
    code = """
        import torch
        def f(A, *args):
            try:
                return torch.symeig(A, eigenvectors=True)
            except RuntimeError:
                return torch.symeig(A, *args)
    """
    assert fixed(dedented(code), *TARGET, *FIX_ALL) == dedented(code)
    assert symbols(code) == ["torch.symeig", "torch.symeig"]


def test_an_unsafe_fix_of_the_body_makes_that_of_the_handler_unsafe() -> None:
    code = dedented("""
        import torch
        def f(A, b):
            try:
                x, _ = torch.solve(b, A)
            except RuntimeError:
                x = torch.symeig(A)[0]
            return x
    """)
    assert fixed(code, *TARGET, *FIX) == code
    new = fixed(code, *TARGET, *FIX_ALL)
    assert "torch.linalg.solve(A, b)" in new
    assert "torch.linalg.eigvalsh" in new


@pytest.mark.parametrize(("call", "errors", "level"), [
    ("torch.matrix_rank(A)", "RuntimeError", Applicability.UNSAFE),
    ("torch.matrix_rank(A)", "Exception", Applicability.UNSAFE),
    ("torch.symeig(A)[0]", "RuntimeError", Applicability.SAFE),
    ("torch.matrix_rank(A)", "KeyError", Applicability.SAFE),
])  # fmt: skip
def test_a_call_that_fails_for_other_inputs(call: str, errors: str, level: Applicability) -> None:
    code = f"import torch\ndef f(A, b):\n    try:\n        x = {call}\n    except {errors}:\n        x = b\n    return x\n"
    (finding,) = run(code, *TARGET).findings
    assert finding.fix is not None
    assert finding.fix.applicability is level
    alone = run(f"import torch\ndef f(A, b):\n    return {call}\n", *TARGET).findings[0]
    assert alone.fix is not None
    assert alone.fix.applicability is Applicability.SAFE


def test_what_follows_a_try_that_returns_is_its_handler() -> None:
    code = dedented("""
        import torch
        def f(A, *args):
            try:
                return torch.symeig(A, *args)
            except RuntimeError:
                pass
            return torch.symeig(torch.eye(3), eigenvectors=True)
    """)
    assert fixed(code, *TARGET, *FIX_ALL) == code


@pytest.mark.parametrize(
    "call", ["solve(b, A)", "cholesky(A)", "eig(A)", "gesv(b, A)", "lstsq(b, A)", "rfft(b, 1)"]
)
@pytest.mark.parametrize(
    "handler", ["pass", "return None", "x = torch.pinverse(A) @ b", "log.warning('failed')"]
)
def test_a_fallback_that_is_always_taken_is_reported(call: str, handler: str) -> None:
    code = f"import torch\ndef f(A, b):\n    try:\n        x = torch.{call}\n    except RuntimeError:\n        {handler}\n"
    (finding,) = run(code, "--target", "2.15").findings
    assert finding.symbol == "torch." + call.partition("(")[0]


COMPATIBLE = [
    """
    import torch
    try:
        w, v = torch.linalg.eigh(x)
    except (AttributeError, RuntimeError):
        w, v = torch.symeig(x, eigenvectors=True)
    """,
    """
    import torch
    try:
        w, v = torch.symeig(x, eigenvectors=True)
    except Exception:
        w, v = torch.linalg.eigh(x)
    """,
    """
    try:
        from torch import irfft, rfft
    except Exception:
        from torch.fft import irfft2 as irfft, rfft2 as rfft
    """,
    """
    import torch
    try:
        w, v = torch.symeig(x, eigenvectors=True)
    except RuntimeError as error:
        if "removed" not in str(error):
            raise
        w, v = decompose(x)
    """,
]  # fmt: skip


@pytest.mark.parametrize("code", COMPATIBLE)
def test_code_for_several_releases_is_left_alone(code: str) -> None:
    assert symbols(code) == []


# ---- errors that handlers hide -----------------------------------------------------------------------

HIDDEN = "the error is caught here"


@pytest.mark.parametrize(
    ("call", "errors", "handler", "hides"),
    [
        ("torch.solve(b, A)", "RuntimeError", "x = b", True),
        ("A.symeig()", "(ValueError, RuntimeError)", "pass", True),
        ("torch.eig(A)", "Exception as e", "log.warning('failed %s', e)", True),
        ("torch.rfft(A, 1)", "Exception", "return None", True),
        ("torch.eig(A)", "BaseException", "x = b", True),
        ("torch.gesv(b, A)", "RuntimeError", "x = b", False),  # raises an AttributeError
        ("torch.solve(b, A)", "ValueError", "x = b", False),
        ("torch.solve(b, A)", "KeyError", "x = b", False),
        ("torch.solve(b, A)", "NUMERIC", "x = b", False),
        ("torch.solve(b, A)", "RuntimeError", "raise ValueError(A)", False),
        ("torch.solve(b, A)", "RuntimeError as e", "if b is None: raise", False),
        ("torch.qr(A)", "RuntimeError", "x = b", False),  # works at the target
    ],
)
def test_the_help_says_that_the_error_is_hidden(call: str, errors: str, handler: str, hides: bool) -> None:
    code = f"import torch\ndef f(A: torch.Tensor, b):\n    try:\n        x = {call}\n    except {errors}:\n        {handler}\n"
    (finding,) = run(code, *TARGET).findings
    assert (HIDDEN in (finding.help or "")) is hides


def test_suppressed_errors_are_hidden_and_those_outside_are_not() -> None:
    code = """
        import contextlib, torch
        def f(A):
            x = torch.eig(A)
            with contextlib.suppress(RuntimeError):
                x = torch.symeig(A)
            try:
                pass
            except RuntimeError:
                x = torch.solve(A, A)
            return x
    """
    found = sorted(run(dedented(code), *TARGET).findings, key=lambda item: item.start)
    assert [HIDDEN in (item.help or "") for item in found] == [False, True, False]


def test_removed_names_without_a_rule_of_their_own() -> None:
    code = "import torch\ntry:\n    x = torch.btriunpack(a, b)\nexcept Exception:\n    x = None\n"
    (finding,) = run(code, *TARGET).findings
    assert HIDDEN in (finding.help or "")


# ---- imports that fail -------------------------------------------------------------------------------


def project(root: Path, files: dict[str, str], *options: str) -> dict[str, str]:
    """The texts of the files of a project after the fixes."""
    (root / "pyproject.toml").write_text("")
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(dedented(text))
    CliRunner().invoke(commands, ["check", str(root), "--isolated", "--no-cache", *options])
    return {name: (root / name).read_text() for name in files}


MODULE = """
    from torch import rfft
    def f(x):
        return rfft(x, 1)
"""


def test_an_import_that_fails_goes_although_others_could_take_it(tmp_path: Path) -> None:
    new = project(tmp_path, {"p/__init__.py": "from .m import *\n", "p/m.py": MODULE}, *TARGET, *FIX)
    assert "import rfft" not in new["p/m.py"]
    assert "torch.fft.rfft(x)" in new["p/m.py"]


def test_an_import_in_an_init_that_fails_goes(tmp_path: Path) -> None:
    new = project(tmp_path, {"p/__init__.py": MODULE}, *TARGET, *FIX)
    assert "import rfft" not in new["p/__init__.py"]


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({"p/m.py": "__all__ = ['rfft', 'f']" + MODULE.replace("\n    ", "\n")}, ()),
        ({"p/__init__.py": "from .m import *\n", "p/m.py": MODULE}, ("--minimum", "1.7")),
        ({"p/m.py": MODULE + "    def g(x, *args):\n        return rfft(x, *args)\n"}, ()),
    ],
)
def test_uses_of_an_import_that_stays_are_not_rewritten(
    tmp_path: Path, files: dict[str, str], options: tuple[str, ...]
) -> None:
    new = project(tmp_path, files, *TARGET, *options, *FIX_ALL)
    assert new["p/m.py"] == dedented(files["p/m.py"])


@pytest.mark.parametrize(
    "take", ["from .m import rfft\n", "from .m import *\nrfft\n", "from . import m\nm.rfft\n"]
)
def test_a_name_that_another_file_takes_by_name_stays(tmp_path: Path, take: str) -> None:
    new = project(tmp_path, {"p/__init__.py": "", "p/n.py": take, "p/m.py": MODULE}, *TARGET, *FIX_ALL)
    assert new["p/m.py"] == dedented(MODULE)


OPTIONAL = """
    try:
        from MODULE import NAME
        ok = True
    except ImportError:
        HANDLER

    def f(model):
        if ok:
            model = NAME(model)
        return model

    def g(model):
        return NAME(model)
"""


@pytest.mark.parametrize("handler", ["ok = False", "raise ImportError('install it')", "sys.exit(1)"])
@pytest.mark.parametrize(
    "name", ["apex.parallel.convert_syncbn_model", "apex.parallel.DistributedDataParallel", "torch.rfft"]
)
def test_uses_of_an_optional_import_are_not_rewritten_without_it(handler: str, name: str) -> None:
    module, _, last = name.rpartition(".")
    code = dedented(OPTIONAL).replace("HANDLER", handler).replace("MODULE", module).replace("NAME", last)
    assert fixed(code, *TARGET, *FIX_ALL) == code
    assert symbols(code)


def test_an_optional_import_of_a_moved_name_goes_with_its_uses() -> None:
    code = OPTIONAL.replace("HANDLER", "ok = False").replace("MODULE", "torchvision.models.utils")
    new = fixed(dedented(code.replace("NAME", "load_state_dict_from_url")), *TARGET, *FIX)
    assert "    from torch.hub import load_state_dict_from_url\n    ok = True\n" in new


@pytest.mark.parametrize(
    "name",
    ["apex.parallel.convert_syncbn_model", "torch.rfft", "torchvision.models.utils.load_state_dict_from_url"],
)
def test_an_optional_import_that_is_tested(name: str) -> None:
    """Uses that cannot run at the target are not rewritten, and the test itself is no use."""
    module, _, last = name.rpartition(".")
    code = dedented(f"""
        try:
            from {module} import {last}
        except ImportError:
            {last} = None
        def f(x):
            if {last} is not None:
                x = {last}(x)
            if {last}:
                x = {last}(x)
            return {last}(x) if {last} and x else x
    """)
    assert fixed(code, *TARGET, *FIX_ALL) == code
    if module.startswith("torch"):
        assert symbols(code) == []
    else:  # a package of its own: from now on it is never there
        assert len(symbols(code)) == 3


def test_an_optional_import_without_a_use_says_nothing() -> None:
    assert symbols("try:\n    import apex.amp as a\nexcept ImportError:\n    a = None\n") == []


def test_a_name_beside_others_of_a_module_goes() -> None:
    code = dedented("""
        from torch.hub import load_state_dict_from_url
        from torchvision.models.resnet import BasicBlock, ResNet, model_urls
        def resnet(arch, layers):
            model = ResNet(BasicBlock, layers)
            model.load_state_dict(load_state_dict_from_url(model_urls[arch]))
            return model
    """)
    new = fixed(code, *TARGET, *FIX)
    assert "model_urls" not in new
    assert "import BasicBlock, ResNet\n" in new


# ---- layout ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["(w := model(x))", "(yield x)"])
@pytest.mark.parametrize(
    "place",
    [
        "F.binary_cross_entropy(torch.sigmoid(VALUE), y)",
        "F.binary_cross_entropy(input=torch.sigmoid(VALUE), target=y)",
        "F.binary_cross_entropy(VALUE.sigmoid(), y)",
    ],
)
def test_loose_expressions_keep_their_parentheses(value: str, place: str) -> None:
    code = dedented(f"""
        import torch
        import torch.nn.functional as F
        def f(model, x, y):
            with torch.autocast("cuda"):
                loss = {place.replace("VALUE", value)}
                p = torch.sigmoid({value})
                other = F.binary_cross_entropy(p, y)
            return loss
    """)
    new = fixed(code, *TARGET, "--select", "TM204", *FIX_ALL)
    assert "sigmoid" not in new
    assert f"p = {value}\n" in new


@pytest.mark.parametrize("feed", ["\f", " \f", "\f\f"])
def test_form_feeds_begin_a_line_anew(feed: str) -> None:
    code = (
        f"import torch\nfrom torch.autograd import Variable\n{feed}def f(model, data):\n    model.eval()\n"
        f"{feed}    x = Variable(data, volatile=True)\n    y = model(x)\n    return y.data\n\n"
        f"{feed}class Double(torch.autograd.Function):\n    def forward(self, x):\n        return x * 2\n"
        f"    def backward(self, g):\n        return g * 2\n{feed}y = Double()(torch.ones(2))\n"
    )
    new = fixed(code, *TARGET, *FIX_ALL)
    assert (
        f"{feed}    with torch.no_grad():\n        x = data\n        y = model(x)\n    return y.data\n" in new
    )
    assert "@staticmethod" in new
    assert new.count("\f") == code.count("\f")


# ---- what says nothing --------------------------------------------------------------------------------


def test_a_deprecated_value_that_is_only_compared() -> None:
    code = (
        "from torch.distributed.fsdp import ShardingStrategy\nif s == ShardingStrategy.NO_SHARD:\n    f()\n"
    )
    assert symbols(code) == []
    assert symbols(code.replace("f()", "f(ShardingStrategy.NO_SHARD)"))


def test_an_annotation_beside_an_import() -> None:
    code = "from functorch import FunctionalModule\ndef f(x: FunctionalModule): pass\n"
    assert len(symbols(code)) == 1


# ---- what is only filled in --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "test",
    [
        "'all_gather_into_tensor' not in dir(dist)",
        "not hasattr(dist, 'all_gather_into_tensor')",
        "getattr(dist, 'all_gather_into_tensor', None) is None",
        "'all_gather_into_tensor' not in dist.__dict__",
    ],
)
@pytest.mark.parametrize(
    "sets",
    [
        "dist.all_gather_into_tensor = dist._all_gather_base",
        "setattr(dist, 'all_gather_into_tensor', dist._all_gather_base)",
    ],
)
def test_what_is_set_where_it_is_missing_is_no_patch(test: str, sets: str) -> None:
    code = f"import torch.distributed as dist\nif {test}:\n    {sets}\ndist.all_gather_into_tensor(a, b)\n"
    assert "\ndist.all_gather_single(a, b)\n" in fixed(code, *TARGET, *FIX)
    patched = code.replace(test, "fast")
    assert "\ndist.all_gather_into_tensor(a, b)\n" in fixed(patched, *TARGET, *FIX_ALL)
