"""Guards: what tests say about versions and names, and which uses they take care of."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from torchmigrate.semantics.formulas import (
    FALSE,
    TRUE,
    UNKNOWN,
    All,
    Any_,
    Formula,
    HasName,
    Known,
    Not,
    TryGuard,
    TryWorked,
    VersionTest,
    all_of,
    any_of,
    both,
    negate,
)
from torchmigrate.semantics.guards import spellings as guard_names
from torchmigrate.semantics.guards.formulas import Lookup, is_handled, outcome
from torchmigrate.semantics.guards.tests import catches_missing, evaluate_special, parse_test, unpack_version
from torchmigrate.semantics.guards.version_values import VersionLiteral
from torchmigrate.semantics.model import (
    NO_GUARDS,
    OPAQUE,
    Const,
    Flag,
    Guards,
    Instance,
    QualifiedName,
    Value,
    VersionOf,
    Via,
)

IMPORTS: dict[str, Value] = {
    "torch": (QualifiedName("torch"),),
    "t": (QualifiedName("torch"),),
    "F": (QualifiedName("torch.nn.functional"),),
    "torchvision": (QualifiedName("torchvision"),),
    "torchaudio": (QualifiedName("torchaudio"),),
    "torch_ver": (QualifiedName("torch.__version__"),),  # from torch import __version__ as torch_ver
    "version": (QualifiedName("packaging.version"),),
    "parse": (QualifiedName("packaging.version.parse"),),
    "PkgVersion": (QualifiedName("packaging.version.Version"),),
    "operator": (QualifiedName("operator"),),
    "utils": (QualifiedName("mylib.utils"),),
    "tensor": (Instance("torch.Tensor"),),
    "_TORCH_GREATER_EQUAL_1_8": (QualifiedName("mylib.imports._TORCH_GREATER_EQUAL_1_8"),),
    "newer": (
        QualifiedName("mylib.imports.TORCH_GE_1_8"),
    ),  # from mylib.imports import TORCH_GE_1_8 as newer
    "is_torch_version": (QualifiedName("accelerate.utils.is_torch_version"),),
    "pytorch_after": (QualifiedName("monai.utils.pytorch_after"),),
}


def evaluator(known: dict[str, Value] | None = None) -> Callable[[ast.expr], Value]:
    """A stand-in for the resolver: names from a table, attributes of modules, literals."""
    table = IMPORTS | (known or {})

    def evaluate(node: ast.expr) -> Value:
        if isinstance(node, ast.Name):
            return table.get(node.id, (OPAQUE,))
        if isinstance(node, ast.Attribute):
            inner = evaluate(node.value)
            return tuple(
                QualifiedName(f"{item.name}.{node.attr}") if isinstance(item, QualifiedName) else OPAQUE
                for item in inner
            )
        if isinstance(node, ast.Constant):
            return (Const(node.value),)
        return (OPAQUE,)

    return evaluate


def expression(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body


def parsed(code: str, **known: Value) -> Formula:
    return parse_test(expression(code), evaluator(known))


def special(code: str, **known: Value) -> Value | None:
    return evaluate_special(expression(code), evaluator(known))


def at(code: str, *release: int, **known: Value) -> bool | None:
    """Whether a test holds where torch, torchvision and torchaudio all have this release."""
    lookup = Lookup(
        lambda library: release if library.startswith("torch") else None, lambda _: None, lambda _: None
    )
    return outcome(parsed(code, **known), lookup)


# ---- formulas ---------------------------------------------------------------------------------------

A, B = HasName("torch.a"), HasName("torch.b")


def test_formulas_are_simplified() -> None:
    assert both(A, TRUE) == A
    assert both(A, FALSE) == FALSE
    assert both(A, both(B, A)) == All((A, B))
    assert any_of((A, FALSE)) == A
    assert any_of((A, TRUE)) == TRUE
    assert any_of((A, any_of((B, A)))) == Any_((A, B))
    assert all_of(()) == TRUE
    assert any_of(()) == FALSE
    assert both(UNKNOWN, UNKNOWN) == UNKNOWN


def test_negation_reaches_the_atoms() -> None:
    assert negate(negate(A)) == A
    assert negate(UNKNOWN) == UNKNOWN
    assert negate(TRUE) == FALSE
    assert negate(both(A, Not(B))) == Any_((Not(A), B))
    assert negate(any_of((A, B))) == All((Not(A), Not(B)))


def test_three_values() -> None:
    lookup = Lookup(lambda _: None, {"torch.a": True, "torch.b": False}.get, lambda _: None)
    assert outcome(both(A, UNKNOWN), lookup) is None
    assert outcome(both(B, UNKNOWN), lookup) is False
    assert outcome(any_of((A, UNKNOWN)), lookup) is True
    assert outcome(any_of((B, UNKNOWN)), lookup) is None
    assert outcome(both(A, Not(B)), lookup) is True
    assert outcome(any_of((B, Not(A))), lookup) is False
    assert outcome(VersionTest("torch", ">=", (1, 8)), lookup) is None


# ---- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ('hasattr(torch, "linalg")', "torch.linalg"),
        ('hasattr(t.cuda, "amp")', "torch.cuda.amp"),
        ('hasattr(F, "silu")', "torch.nn.functional.silu"),
        ('hasattr(torch.Tensor, "symeig")', "torch.Tensor.symeig"),
        ('hasattr(tensor, "symeig")', "torch.Tensor.symeig"),
        ('"fft" in dir(torch)', "torch.fft"),
        ('"fft" in torch.__dict__', "torch.fft"),
        ('"fft" in vars(torch)', "torch.fft"),
        ('getattr(torch, "fft", None)', "torch.fft"),
        ('getattr(torch, "fft", False)', "torch.fft"),
        ('getattr(torch, "fft", None) is not None', "torch.fft"),
        ('getattr(torch, "fft", None) != None', "torch.fft"),
        ('callable(getattr(torch, "fft", None))', "torch.fft"),
        ('bool(hasattr(torch, "fft"))', "torch.fft"),
        ('hasattr(torch, "fft") is True', "torch.fft"),
        ('hasattr(torch, "fft") == True', "torch.fft"),
        ('(found := hasattr(torch, "fft"))', "torch.fft"),
        ('importlib.util.find_spec("torch.func") is not None', "torch.func"),
        ('getattr(getattr(torch, "compiler", None), "disable", None)', "torch.compiler.disable"),
        ('find_spec("torch.func")', "torch.func"),
        ('_module_available("torch.func")', "torch.func"),
        ('is_package_available("torchvision")', "torchvision"),
        ('RequirementCache("torchvision")', "torchvision"),
        ('"mmap" in inspect.signature(torch.load).parameters', "torch.load(mmap)"),
        ('"mmap" in signature(torch.load).parameters.keys()', "torch.load(mmap)"),
        ('"mmap" in inspect.getfullargspec(torch.load)[0]', "torch.load(mmap)"),
        ('"mmap" in inspect.getfullargspec(torch.load.__init__).args', "torch.load(mmap)"),
        ('"mmap" in torch.load.__code__.co_varnames', "torch.load(mmap)"),
        ('"mmap" in get_arg_names(torch.load)', "torch.load(mmap)"),
    ],
)
def test_presence(code: str, name: str) -> None:
    assert parsed(code) == HasName(name)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ('not hasattr(torch, "fft")', "torch.fft"),
        ('getattr(torch, "fft", None) is None', "torch.fft"),
        ('"fft" not in dir(torch)', "torch.fft"),
        ('find_spec("torch.func") is None', "torch.func"),
        ('hasattr(torch, "fft") is False', "torch.fft"),
        ('hasattr(torch, "fft") != True', "torch.fft"),
    ],
)
def test_absence(code: str, name: str) -> None:
    assert parsed(code) == Not(HasName(name))


def test_literal_name_through_a_variable() -> None:
    assert parsed("hasattr(torch, name)", name=(Const("fft"),)) == HasName("torch.fft")


def test_flags_and_names_that_may_be_none() -> None:
    assert parsed("NATIVE", NATIVE=(Flag(A),)) == A
    assert parsed("not NATIVE", NATIVE=(Flag(A),)) == Not(A)
    assert parsed("NATIVE", NATIVE=(Flag(A), Flag(B))) == UNKNOWN
    maybe: Value = (QualifiedName("torch.func.vmap"), Const(None))
    assert parsed("vmap is not None", vmap=maybe) == HasName("torch.func.vmap")
    assert parsed("vmap is None", vmap=maybe) == Not(HasName("torch.func.vmap"))
    assert parsed("vmap", vmap=maybe) == HasName("torch.func.vmap")
    assert parsed("vmap", vmap=(*maybe, QualifiedName("functorch.vmap"))) == UNKNOWN
    fft = special('getattr(torch, "fft", None)')
    assert fft == (QualifiedName("torch.fft", sure=False, via=Via.GETATTR), Flag(HasName("torch.fft")))
    assert parsed("fft is None", fft=fft) == Not(HasName("torch.fft"))


def test_connectives() -> None:
    code = 'hasattr(torch, "a") and not (hasattr(torch, "b") or use_old)'
    assert parsed(code) == All((A, Not(B), UNKNOWN))
    assert parsed('1 and hasattr(torch, "a")') == A
    assert parsed("False") == Known(False)


@pytest.mark.parametrize(
    "code",
    [
        "use_amp",
        "torch.cuda.is_available()",
        "i < 3",
        "x == 'adam'",
        "hasattr(self, 'fft')",
        "hasattr(torch, name)",
        "hasattr(np, 'fft')",
        "hasattr()",
        "getattr(torch, 'fft')",
        "getattr(torch, 'is_complex', lambda x: False)",
        "getattr(torch, name, None)",
        "hasattr(torch, 'fft') is not None",
        "'fft' in names",
        "'fft' in 'torch.fft'",
        "x in dir(torch)",
        "torch.__version__",
        "-1",
        "DEBUG",
        "torch.version.cuda >= '11'",
        "torch.version.hip is not None",
        "torch.cuda.get_device_capability() >= (8, 0)",
        "sys.version_info >= (3, 8)",
        "x.split('.')[0] == '1'",
        "len(torch.__version__) > 3",
        "torch.__version__ == torchvision.__version__",
        "'dev' in torch.__version__",
        "'alpha' in torch.__version__",
        "torch.__version__.endswith('nv24.8')",
        "torch.__version__.startswith('1.8a')",
        "torch.__version__ in allowed",
        "TORCH_VERSION >= 10800",
        "torch.__version__.split('.')[1] >= '8'",  # "15" < "8"
        "torch.__version__.split('.')[:2] >= ['1', '8']",
        "IS_TORCH_1_8",
        "TORCH_GE_18",
        '"mode" in inspect.signature(own).parameters',
        '"mode" in str(torch.load)',
        '"mode" in helper(torch.load, torch.save)',
        "TORCH_AVAILABLE",
        "is_torch_available()",
        "is_torch_version('1.8')",  # exactly, or at least?
        "is_torch_version('~', '1.8')",
        "check_version(torch.__version__, '1.8', pinned=True)",
        "check_version(*args)",
        "required_torch_version()",
        "is_torch_version(minimum='1.8')",
        "pytorch_after()",
        "version_ge(torch)",
        "RequirementCache(requirement='torch>=1.8')",
        "find_spec(name='torch.func')",
        "module_available()",
        "version.parse()",
        "torch.__version__.startswith()",
        "torch.__version__.split()",
        "required_torch_version(min_version=minimum)",
        "required_torch_version(python=3)",
        "optimizer == 'adam'",
        "torch.__version__ < 'parrots'",
        "getattr(f(torch), 'fft', None)",
        "compare_version('numpy', operator.ge, '1.20')",
        "RequirementCache('pandas>=2.0')",
        "a if b else c",
    ],
)
def test_says_nothing(code: str) -> None:
    assert parsed(code, np=(OPAQUE,), DEBUG=(Const(False),)) == UNKNOWN


# ---- versions ---------------------------------------------------------------------------------------

AT_LEAST_1_8 = [
    'version.parse(torch.__version__) >= version.parse("1.8")',
    'packaging.version.parse(torch.__version__) >= packaging.version.parse("1.8.0")',
    'parse(torch.__version__) >= parse("1.8")',
    'parse(t.__version__) >= parse("1.8")',
    'parse(torch_ver) >= parse("1.8")',
    'Version(torch.__version__) >= Version("1.8")',
    'PkgVersion(torch.__version__) >= PkgVersion("1.8.0a0")',
    'version.Version(str(torch.__version__)) >= version.Version("1.8")',
    'version.parse(version.parse(torch.__version__).base_version) >= version.parse("1.8")',
    'version.parse(torch.__version__.split("+")[0]) >= version.parse("1.8")',
    'version.parse(torch.__version__.split("+", 1)[0]) >= version.parse("1.8")',
    'version.parse(torch.__version__.partition("+")[0]) >= version.parse("1.8")',
    'version.parse(torch.__version__.replace("a0", "")) >= version.parse("1.8")',
    'version.parse(torch.__version__.rsplit(".", 1)[0]) >= version.parse("1.8")',
    'version.parse(".".join(torch.__version__.split(".")[:2])) >= version.parse("1.8")',
    'version.parse(torch.__version__).release >= (1, 8)',
    'version.parse(torch.__version__).release[:2] >= (1, 8)',
    'version.parse("1.8") <= version.parse(torch.__version__)',
    'not version.parse(torch.__version__) < version.parse("1.8")',
    'LooseVersion(torch.__version__) >= LooseVersion("1.8.0")',
    'LooseVersion(torch.__version__) >= "1.8.0"',
    'LooseVersion(torch.__version__).version >= [1, 8, 0]',
    'distutils.version.LooseVersion(torch.__version__) >= distutils.version.LooseVersion("1.8")',
    'StrictVersion(torch.__version__) >= StrictVersion("1.8.0")',
    'pkg_resources.parse_version(torch.__version__) >= pkg_resources.parse_version("1.8")',
    'parse_version(pkg_resources.get_distribution("torch").version) >= parse_version("1.8")',
    'pkg_resources.get_distribution("torch").parsed_version >= parse_version("1.8")',
    'Version(importlib.metadata.version("torch")) >= Version("1.8")',
    'Version(importlib_metadata.version("torch")) >= Version("1.8")',
    'Version(metadata.distribution("torch").version) >= Version("1.8")',
    'digit_version(torch.__version__) >= digit_version("1.8")',
    'torch.torch_version.TorchVersion(torch.__version__) >= "1.8"',
    'torch.torch_version.TorchVersion(torch.__version__) >= torch.torch_version.TorchVersion("1.8")',
    'torch.__version__ >= "1.8"',
    'torch.__version__ >= "v1.8"',
    '"1.8" <= torch.__version__',
    "torch.__version__ >= (1, 8)",
    "torch.__version__ >= (1, 8, 0)",
    'torch.version.__version__ >= "1.8"',
    'torch.torch_version.__version__ >= "1.8"',
    'tuple(int(x) for x in torch.__version__.split(".")[:2]) >= (1, 8)',
    'tuple(int(x) for x in torch.__version__.split("+")[0].split(".")[:2]) >= (1, 8)',
    'tuple([int(x) for x in torch.__version__.split(".")[:2]]) >= (1, 8)',
    '[int(i) for i in torch.__version__.split(".")[:2]] >= [1, 8]',
    '[int(i) for i in torch.__version__.split("+")[0].split(".")] >= [1, 8]',
    'tuple(map(int, torch.__version__.split(".")[:2])) >= (1, 8)',
    'list(map(int, torch.__version__.split(".")[0:2])) >= [1, 8]',
    'tuple(map(int, (torch.__version__.split("+")[0].split("."))[:3])) >= (1, 8, 0)',
    '(int(torch.__version__.split(".")[0]), int(torch.__version__.split(".")[1])) >= (1, 8)',
    'int(torch.__version__.split(".")[0]) > 1 or (int(torch.__version__.split(".")[0]) == 1'
    ' and int(torch.__version__.split(".")[1]) >= 8)',
    'int(torch.__version__[0]) > 1 or (torch.__version__[0] == "1" and int(torch.__version__[2]) >= 8)',
    "TORCH_MAJOR > 1 or (TORCH_MAJOR == 1 and TORCH_MINOR >= 8)",
    "Version(torch.__version__).major > 1 or Version(torch.__version__).minor >= 8",
    "float(torch.__version__[:3]) >= 1.8",
    "float(torch.__version__[0:3]) > 1.7",
    'float(".".join(torch.__version__.split(".")[:2])) >= 1.8',
    'torch.__version__[:3] >= "1.8"',
    "TORCH_VERSION >= (1, 8)",
    'TORCH_VERSION >= "1.8"',
    "TORCH_VERSION >= [1, 8]",
    "TORCH_VERSION >= 1.8",
    'torch_version >= Version("1.8")',
    'get_torch_version() >= PkgVersion("1.8")',
    "get_torch_version() >= TORCH_VERSION_1_8_0",
    'compare_pytorch_version("v1.8.0", op="ge")',
    'compare_torch_version("1.8", operator=">=")',
    "TORCH_VERSION_1_8 <= get_torch_version()",
    "torch_version >= V1_8",
    "GT_OR_EQUAL_TORCH_VERSION_1_8",
    "ge_torch_1_8",
    "utils.TORCH_VERSION[:2] >= (1, 8)",
    "_TORCH_GREATER_EQUAL_1_8",
    "utils._TORCH_GREATER_EQUAL_1_8",
    "newer",
    "TORCH_GE_1_8",
    "TORCH_GTE_1_8_0",
    "TORCH_VERSION_GE_1_8",
    "TORCH_VERSION_AT_LEAST_1_8",
    "is_torch_greater_or_equal_than_1_8",
    "TORCH_1_8_OR_NEWER",
    "TORCH_1_8",
    "torch_1_8_0",
    "PYTORCH_1_8_PLUS",
    "not TORCH_LESS_1_8",
    "not TORCH_LT_1_8",
    "not _TORCH_LOWER_1_8_DEV",
    "not is_torch_less_than_1_8",
    'is_torch_min_version("1.8.0a0")',
    'is_torch_version(">=", "1.8")',
    'is_torch_version(">=1.8")',
    'utils.is_torch_version(">=", "1.8.0")',
    'not is_torch_version("<", "1.8")',
    'is_torch_greater_or_equal("1.8", accept_dev=True)',
    'is_torch_greater_or_equal_than("1.8")',
    'is_torch_equal_or_newer("1.8")',
    "is_torch_version_greater_or_equal((1, 8))",
    "pytorch_after(1, 8)",
    "pytorch_after(1, 8, 0)",
    'torch_version_ge("1.8")',
    "torch_version_geq(1, 8)",
    'torch_version_at_least("1.8")',
    'min_torch_version("1.8")',
    'not torch_version_lt("1.8")',
    'version_ge(torch, "1.8")',
    'version_geq(torch.__version__, "1.8")',
    'not lt_version(torch.__version__, "1.8")',
    'compare_version("torch", operator.ge, "1.8.0")',
    'compare_versions("torch", ">=", "1.8")',
    'check_version(torch.__version__, "1.8.0")',
    'check_version(torch.__version__, ">=1.8.0,<9")',
    'RequirementCache("torch>=1.8")',
    "required_torch_version(min_version=1.8)",
    'required_torch_version(min_version="1.8", max_version="9.0")',
    'torch.__version__ != "parrots" and torch.__version__ >= "1.8"',
    'TORCH_VERSION == "parrots" or TORCH_VERSION >= "1.8"',
    "int(TORCH_VERSION[0]) > 1 or (int(TORCH_VERSION[0]) == 1 and int(TORCH_VERSION[1]) >= 8)",
    '_RequirementAvailable("torch >= 1.8.0")',
    'not torch.__version__.startswith(("0.", "1.7", "1.6."))',
    'not torch.__version__.startswith("1.7")',
    '"1.7" not in torch.__version__',
    'torch.__version__.split(".")[:2] != ["1", "7"]',
    'Version("1.8") <= Version(torch.__version__) < Version("9")',
]  # fmt: skip


@pytest.mark.parametrize("code", AT_LEAST_1_8)
def test_at_least_1_8(code: str) -> None:
    assert at(code, 1, 7) is False
    assert at(code, 1, 9) is True
    assert at(code, 2, 15) is True


@pytest.mark.parametrize(
    ("code", "release", "expected"),
    [
        # The target stands for each of its patch releases, and for builds such as 2.6.0+cu118.
        ('Version(torch.__version__) >= Version("2.6")', (2, 6), True),
        ('Version(torch.__version__) >= Version("2.6.0a0")', (2, 6), True),
        ('Version(torch.__version__) >= Version("2.6.0.dev20250101")', (2, 6), True),
        ('Version(torch.__version__) > Version("2.6.0a0")', (2, 6), True),
        ('Version(torch.__version__) <= Version("2.6.0rc1")', (2, 6), False),
        ('Version(torch.__version__) < Version("2.6.0")', (2, 6), False),
        ('Version(torch.__version__) > Version("2.6.0")', (2, 6), None),
        ('Version(torch.__version__) >= Version("2.6.1")', (2, 6), None),
        ('Version(torch.__version__) >= Version("2.6.1")', (2, 6, 1), True),
        ('Version(torch.__version__) >= Version("2.6.1")', (2, 6, 0), False),
        ('Version(torch.__version__) > Version("2.5.9")', (2, 6), True),
        ('Version(torch.__version__) == Version("2.6.0")', (2, 6), None),
        ('Version(torch.__version__) == Version("2.5.0")', (2, 6), False),
        ('Version(torch.__version__) != Version("2.5.0")', (2, 6), True),
        ('torch.__version__ == "1.8.0+cu111"', (2, 6), False),
        ('torch.__version__ == "1.8.0a0+git1234"', (2, 6), False),
        ('torch.__version__ != "1.8.0a0+git1234"', (2, 6), True),
        ('torch.__version__ == "2.6.0a0+git1234"', (2, 6), None),
        ('torch.__version__ in ("1.8.0a0+git1234", "1.7.1")', (2, 6), False),
        ('torch.__version__ >= "2"', (2, 0), True),
        ('torch.__version__ >= "2"', (1, 13), False),
        ('Version(torch.__version__) >= Version("1.8")', (1, 13), True),
        ('torch.__version__ >= "1.8"', (1, 13), True),
        ("TORCH_VERSION >= (1, 8)", (1, 13), True),
        ('TORCH_VERSION >= "1.8"', (1, 13), None),
        ("TORCH_GE_1_8", (1, 13), True),
        # Sequences compare as Python compares them.
        ('tuple(map(int, torch.__version__.split(".")[:2])) > (2, 6)', (2, 6), False),
        ('tuple(map(int, torch.__version__.split(".")[:2])) <= (2, 6)', (2, 6), True),
        ('tuple(map(int, torch.__version__.split(".")[:2])) == (1, 11)', (1, 11), True),
        ('tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 6, 0)', (2, 6), False),
        ('tuple(map(int, torch.__version__.split(".")[:3])) > (2, 6)', (2, 6), True),
        ('tuple(map(int, torch.__version__.split(".")[:3])) >= (2, 6, 0)', (2, 6), True),
        ('tuple(map(int, torch.__version__.split(".")[:3])) >= (2, 6, 1)', (2, 6), None),
        ('tuple(map(int, torch.__version__.split(".")[:1])) >= (2,)', (2, 6), True),
        # What the code computes, also where its author did not mean it.
        ("float(torch.__version__[:3]) >= 2.2", (2, 15), False),
        ('float(".".join(torch.__version__.split(".")[:2])) >= 2.2', (2, 15), False),
        ("TORCH_VERSION >= 2.05", (2, 15), None),
        ("TORCH_VERSION_HIGHER_THAN_1_7_0", (1, 8), True),
        ("TORCH_VERSION_HIGHER_THAN_1_7_0", (1, 7), None),
        ("TORCH_VERSION >= 2.12", (2, 15), None),
        ('int(torch.__version__.split(".")[1]) >= 8', (2, 6), False),
        ('float(torch.__version__.split(".")[1]) >= 8.0', (2, 6), False),
        ('float(torch.__version__.split(".")[1]) < 7.5', (2, 6), None),
        ('torch.__version__.split(".")[1] == "15"', (2, 15), True),
        ('torch.__version__[2] == "1"', (2, 15), True),
        ('torch.__version__[0] == "2"', (2, 15), True),
        ('torch.__version__[:1] == "1"', (2, 15), False),
        ('torch.__version__[:3] == "0.3"', (2, 15), False),
        ('torch.__version__[:5] != "1.8.1"', (2, 15), True),
        ("int(torch.__version__.split('.')[2]) > 0", (2, 15), None),
        ("int(torch.__version__.split('.')[0]) in (1, 2)", (2, 15), True),
        ('torch.__version__.split(".")[0] in ("0", "1")', (2, 15), False),
        ('torch.__version__ not in ("1.7.0", "1.7.1")', (2, 15), True),
        ('torch.__version__ in ("1.7.0", "1.7.1")', (1, 7), None),
        # Other libraries' versions are strings.
        ('torchvision.__version__ >= "0.8"', (0, 9), True),
        ('torchvision.__version__ >= "0.8"', (0, 16), None),
        ('torchvision.__version__ >= "0.08"', (0, 16), None),
        ('Version(torchvision.__version__) >= Version("0.8")', (0, 16), True),
        ('torchaudio.__version__ < "2.1"', (2, 0), True),
        ("torchaudio_major >= 2 and torchaudio_minor >= 1", (2, 9), True),
        ("torchaudio_major >= 2", (0, 13), False),
        ('importlib.metadata.version("torch") >= "1.8"', (1, 10), None),
        ("required_torch_version(max_version=1.7)", (2, 15), False),
        ("required_torch_version(max_version=1.7)", (1, 6), True),
        ("obsolete_torch_version(TORCH_VERSION, (1, 4))", (2, 15), False),
        ("obsolete_torch_version(TORCH_VERSION, (1, 4))", (1, 3), True),
        # Prefixes.
        ('torch.__version__.startswith("1.")', (1, 13), True),
        ('torch.__version__.startswith("1.")', (2, 15), False),
        ('torch.__version__.startswith("1")', (1, 13), True),
        ('torch.__version__.startswith("1.1")', (1, 13), True),
        ('torch.__version__.startswith("1.1.")', (1, 13), False),
        ('torch.__version__.startswith("1.13.1")', (1, 13), None),
        ('torch.__version__.startswith("1.13.1.")', (1, 13), None),
        ('torch.__version__.startswith("1.12.1.")', (1, 13), False),
        ('torch.__version__.startswith(("0.4", "1.0"))', (2, 15), False),
        ('"1.8" in torch.__version__', (2, 15), False),
        ('"1.8" in torch.__version__', (1, 8), True),
        ('"1.8" in torch.__version__', (2, 1), None),
        ('"0.4." not in torch.__version__', (2, 15), True),
    ],
)  # fmt: skip
def test_at_release(code: str, release: tuple[int, ...], expected: bool | None) -> None:
    assert at(code, *release) is expected


def test_versions_of_different_libraries() -> None:
    assert parsed('torchvision.__version__ >= "0.8"') == VersionTest("torchvision", ">=", (0, 8), "text")
    assert parsed('Version(torchaudio.__version__) < Version("2.1")') == VersionTest(
        "torchaudio", "<", (2, 1)
    )


def test_known_names_are_not_judged_by_their_spelling() -> None:
    assert parsed('TORCH_VERSION >= "1.8"', TORCH_VERSION=(Const("1.5"),)) == UNKNOWN
    assert parsed("TORCH_GE_1_8", TORCH_GE_1_8=(Const(True),)) == UNKNOWN
    assert parsed("TORCH_GE_1_8", TORCH_GE_1_8=(Flag(A),)) == A
    assert parsed("TORCH_VERSION >= (1, 8)", TORCH_VERSION=(VersionOf("torch", "parts2"),)) == VersionTest(
        "torch", ">=", (1, 8), "parts2"
    )
    assert parsed('TORCH_VERSION >= "1.8"', TORCH_VERSION=(VersionOf("torch"), OPAQUE)) == UNKNOWN


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("version.parse(torch.__version__)", VersionOf("torch")),
        ("Version(torch.__version__).release", VersionOf("torch", "parts")),
        ("Version(torch.__version__).minor", VersionOf("torch", "minor")),
        ('torch.__version__.split(".")', VersionOf("torch", "parts")),
        ('tuple(int(x) for x in torch.__version__.split(".")[:2])', VersionOf("torch", "parts2")),
        ('int(torch.__version__.split(".")[0])', VersionOf("torch", "major")),
        ('int(parts[1])', VersionOf("torch", "minor")),
        ("(int(parts[0]), int(parts[1]))", VersionOf("torch", "parts2")),
        ("float(torch.__version__[:3])", VersionOf("torch", "float")),
        ("str(torch.__version__)", VersionOf("torch", "text")),
        ('get_distribution("torch")', VersionOf("torch", "distribution")),
        ('metadata.version("torchvision")', VersionOf("torchvision", "text")),
        ('hasattr(torch.cuda, "amp")', Flag(HasName("torch.cuda.amp"))),
        ('find_spec("torch.func")', Flag(HasName("torch.func"))),
        ('find_spec("torch.func") is not None', Flag(HasName("torch.func"))),
        ('Version(torch.__version__) >= Version("1.8")', Flag(VersionTest("torch", ">=", (1, 8)))),
        ("parts >= [1, 8]", Flag(VersionTest("torch", ">=", (1, 8), "parts"))),
        ('not hasattr(torch, "a")', Flag(Not(A))),
        ('hasattr(torch, "a") and torch.cuda.is_available()', Flag(All((A, UNKNOWN)))),
        ('is_torch_min_version("2.4.0")', Flag(VersionTest("torch", ">=", (2, 4, 0)))),
        ('Version("2.9.0a0")', Const(VersionLiteral((2, 9, 0), "version", pre=True))),
    ],
)  # fmt: skip
def test_values_that_are_assigned(code: str, value: object) -> None:
    assert special(code, parts=(VersionOf("torch", "parts"),)) == (value,)


@pytest.mark.parametrize(
    "code",
    [
        "x",
        "f(x)",
        "torch.load(path)",
        "int(x)",
        "tuple(map(int, sizes))",
        "line.split('.')",
        "torch.split(x, 2)",
        "args[0]",
        "x.shape[:2]",
        "(1, 8)",
        "[a, b]",
        "[int(x) for x in sizes]",
        "model.version",
        "i < n",
        "a and b",
        "-x",
        "not x",
        "parse(text)",
        "parser.parse('2020-01-01')",
        "torch.__version__[::2]",
        "torch.__version__[1:]",
        "torch.__version__[-1]",
        "'-'.join(torch.__version__.split('.'))",
        "tuple(torch.__version__)",
        "getattr(torch, 'qr')",
        "True",
    ],
)
def test_other_values(code: str) -> None:
    assert special(code, sizes=(OPAQUE,)) is None


def test_version_constants() -> None:
    old: Value = (Const(VersionLiteral((1, 8), "version")),)
    assert parsed("Version(torch.__version__) >= OLD", OLD=old) == VersionTest("torch", ">=", (1, 8))
    assert parsed("OLD <= TORCH_VERSION", OLD=old) == VersionTest("torch", ">=", (1, 8))
    assert parsed("Version(torch.__version__) < Version(MINIMUM)", MINIMUM=(Const("1.8"),)) == VersionTest(
        "torch", "<", (1, 8)
    )


def test_unpacking() -> None:
    major, minor, micro = ((VersionOf("torch", part),) for part in ("major", "minor", "micro"))
    code = 'map(int, torch.__version__.split(".")[:2])'
    assert unpack_version(expression(code), evaluator(), 2) == [major, minor]
    code = 'torch.__version__.split(".")'
    assert unpack_version(expression(code), evaluator(), 4) == [major, minor, micro, (OPAQUE,)]
    code = '[int(x) for x in torch.__version__.split(".")[:2]]'
    assert unpack_version(expression(code), evaluator(), 2) == [major, minor]
    assert unpack_version(expression("V"), evaluator({"V": (VersionOf("torch", "parts2"),)}), 1) == [major]
    assert unpack_version(expression("Version(torch.__version__).release[:2]"), evaluator(), 2) == [
        major,
        minor,
    ]
    for other in ("a, b", "f(x)", "torch.__version__", "x.split('.')"):
        assert unpack_version(expression(other), evaluator(), 2) is None


def test_names_that_promise_nothing() -> None:
    for name in (
        "torch_min",
        "torch",
        "is_torch",
        "TORCH_HOME",
        "GE_1_8",
        "IS_TORCH_1_8",
        "TORCH_18",
        "torch_2",
    ):
        assert guard_names.constant_test(name) is None
        assert guard_names.helper_test(name) is None
    assert guard_names.version_named("torch_versioned_kwargs") is None
    assert guard_names.version_named("torch_home") is None
    assert guard_names.distribution(["torch"]) is None


# ---- try --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        ("except:", True),
        ("except ImportError:", True),
        ("except ModuleNotFoundError as error:", True),
        ("except (AttributeError, KeyError):", True),
        ("except builtins.Exception:", True),
        ("except RuntimeError:", True),
        ("except KeyError:", False),
        ("except (OSError, ValueError):", False),
        ("except make_error():", False),
    ],
)
def test_catches_missing(handler: str, expected: bool) -> None:
    node = ast.parse(f"try:\n    pass\n{handler}\n    pass").body[0]
    assert isinstance(node, ast.Try)
    assert catches_missing(node) is expected


def attempt(error: str = "AttributeError", **names: set[str]) -> TryGuard:
    node = ast.parse(f"try:\n    pass\nexcept {error}:\n    pass").body[0]
    assert isinstance(node, ast.Try)
    return TryGuard(node, dict(names))


# ---- is a use taken care of? ------------------------------------------------------------------------


def handled(
    guards: Guards,
    old: tuple[str, ...] = ("torch.rfft",),
    new: tuple[str, ...] = ("torch.fft.rfft",),
    torch: tuple[int, ...] = (2, 15),
) -> bool:
    return is_handled(guards, target={"torch": torch, "torchaudio": (2, 9)}.get, old=old, new=new)


def under(*tests: str) -> Guards:
    """The guards of a place inside these tests, outermost first."""
    guards = NO_GUARDS
    for test in tests:
        guards = Guards(formula=parsed(test), outer=guards)
    return guards


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ('Version(torch.__version__) < Version("1.8")', True),
        ('Version(torch.__version__) >= Version("1.8")', False),
        ('not hasattr(torch, "fft")', True),  # the module of the new name
        ('not hasattr(torch.fft, "rfft")', True),  # the new name
        ('hasattr(torch.fft, "rfft")', False),
        ('hasattr(torch, "rfft")', True),  # the old name
        ('hasattr(torch, "rfft") and use_fft', True),
        ('hasattr(torch, "rfft") or use_fft', False),
        ('not hasattr(torch, "linalg")', True),  # came long before the target
        ('not hasattr(torch, "unheard_of")', False),
        ('hasattr(torch, "unheard_of")', False),
        ("use_fft", False),
        ('Version(torchvision.__version__) < Version("0.8")', False),  # target not known
        ('Version(torchaudio.__version__) < Version("0.8")', True),
        ('not is_torch_min_version("1.13.0")', True),
        ("TORCH_MAJOR == 1 and TORCH_MINOR < 8", True),
        ("False", True),
        ("True", False),
    ],
)
def test_handled_by_a_test(test: str, expected: bool) -> None:
    assert handled(under(test)) is expected
    assert handled(under(test, "verbose")) is expected
    assert handled(under("verbose", test)) is expected


def test_no_guards() -> None:
    assert handled(NO_GUARDS) is False


def test_early_target() -> None:
    assert handled(under('Version(torch.__version__) < Version("1.8")'), torch=(1, 7)) is False
    assert handled(under('not hasattr(torch, "linalg")'), torch=(1, 6)) is False


def test_old_name_that_is_a_module_now() -> None:
    assert handled(under('hasattr(torch, "fft")'), old=("torch.fft",), new=("torch.fft.fft",)) is False


def test_testing_for_the_parent_silences_nothing() -> None:
    old, new = ("torch.cuda.amp.autocast",), ("torch.amp.autocast",)
    assert handled(under('hasattr(torch.cuda, "amp")'), old, new) is False
    assert handled(under('hasattr(torch, "_six")'), ("torch._six.inf",), ("torch.inf",)) is False


def test_optional_packages() -> None:
    assert handled(under('find_spec("apex") is not None'), ("apex",), ("torch.amp",)) is False
    assert handled(under('hasattr(apex, "amp")'), ("apex.amp",), ("torch.amp",)) is False


def test_what_exists_can_be_told_from_outside() -> None:
    guards = under('hasattr(torch, "gone")')

    def answer(exists: Callable[[str], bool | None]) -> bool:
        target = {"torch": (2, 15)}.get
        return is_handled(guards, target=target, old=["torch.qr"], new=["torch.linalg.qr"], exists=exists)

    assert answer({"torch.gone": False}.get) is True
    assert answer({"torch.gone": True}.get) is False
    assert answer(lambda _: None) is False


def test_sides_of_a_try() -> None:
    sides = {"body": {"torch.fft.rfft"}, "handler": {"torch.rfft"}}
    assert handled(Guards(attempt=attempt(**sides), part="handler"))
    sides = {"body": {"torch.rfft"}, "handler": {"torch.fft.rfft"}}
    assert handled(Guards(attempt=attempt(**sides), part="body"))
    assert handled(Guards(attempt=attempt(**sides), part="else"))
    assert not handled(Guards(attempt=attempt("ImportError", **sides), part="body"))
    assert not handled(Guards(attempt=attempt(body={"torch.fft.rfft", "torch.rfft"}), part="body"))
    assert not handled(
        Guards(attempt=attempt(body={"torch.fft.rfft"}, **{"else": {"torch.rfft"}}), part="else")
    )
    assert not handled(Guards(attempt=attempt(body={"torch.rfft"}, handler={"torch.stft"}), part="body"))
    inner = Guards(formula=UNKNOWN, outer=Guards(attempt=attempt(body={"torch.fft.rfft"}), part="handler"))
    assert handled(inner)


def test_modules_in_a_try() -> None:
    # A new module stands for its members; importing a late module stands for the new name in it.
    guards = Guards(attempt=attempt(body={"torch.func.vmap"}), part="handler")
    assert handled(guards, ("functorch.vmap",), ("torch.func",))
    guards = Guards(attempt=attempt(body={"torch.func"}), part="handler")
    assert handled(guards, ("functorch.vmap",), ("torch.func.vmap",))
    guards = Guards(attempt=attempt(body={"torch.nn"}), part="handler")
    assert not handled(guards, ("torch.nn.functional.tanh",), ("torch.nn.Tanh",))
    guards = Guards(attempt=attempt(body={"torch.amp.grad_scaler.GradScaler"}), part="handler")
    assert handled(guards, ("torch.cuda.amp.GradScaler",), ("torch.amp.GradScaler",))


def test_flags_of_a_try() -> None:
    new = TryWorked(attempt(body={"torch.fft.rfft"}))
    assert handled(Guards(formula=Not(new)))
    assert not handled(Guards(formula=new))
    assert handled(Guards(formula=both(UNKNOWN, Not(new))))
    native = TryWorked(attempt(body={"torch.cuda.amp.autocast"}))  # is there, whatever the rule replaces
    assert handled(Guards(formula=Not(native)), ("apex.amp.initialize",), ("torch.amp",))
    apex = TryWorked(attempt(body={"apex.amp"}))
    assert not handled(Guards(formula=Not(apex)))
    assert not handled(Guards(formula=apex), ("apex.amp.initialize",), ("torch.amp",))
    both_of_them = TryWorked(attempt(body={"torch.cuda.amp", "apex.amp"}))
    assert not handled(Guards(formula=Not(both_of_them)), ("apex.amp.initialize",), ())
