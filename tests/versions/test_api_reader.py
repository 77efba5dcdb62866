"""What tools/api reads from sources, on small invented packages."""

from __future__ import annotations

import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from api.check import check
from api.reader import link, read_release
from api.wheels import unpack

from torchmigrate.versions.surface_model import ApiEntry, EntryKind


def read(root: Path, files: dict[str, str], library: str = "lib") -> dict[str, ApiEntry]:
    """Writes the files and reads the library; every package gets an `__init__.py`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        for parent in path.relative_to(root).parents:
            if parent.name and not (root / parent / "__init__.py").exists():
                (root / parent / "__init__.py").write_text("", encoding="utf-8")
    return read_release(library, root)


def names(release: dict[str, ApiEntry], below: str) -> set[str]:
    return {name[len(below) + 1 :] for name in release if name.startswith(below + ".")}


def test_functions_and_their_parameters(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/core.py": """
            def plain(a, /, b: int = 1, *args, c, d="x", **rest) -> int: ...
            async def later(): ...
            def long(table={"a": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "b": "bbbbbbbbbbbbbbb"}): ...
            short = lambda x, y=2: x
            """
        },
    )
    assert release["lib.core"] == ApiEntry(EntryKind.MODULE)
    assert release["lib.core.plain"].signatures == ("(a, /, b=1, *args, c, d='x', **rest)",)
    assert release["lib.core.later"].kind is EntryKind.FUNCTION
    assert release["lib.core.long"].signatures == ("(table=...)",)
    assert release["lib.core.short"].signatures == ("(x, y=2)",)


def test_reexports_are_aliases_to_where_it_is_defined(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/__init__.py": "from .a import thing\nfrom .a import thing as other\nimport math\nimport lib.a as short\n",
            "lib/a.py": "from lib.deep.b import thing, missing\n",
            "lib/deep/b.py": "def thing(x): ...\n",
        },
    )
    assert release["lib.thing"] == ApiEntry(EntryKind.ALIAS, target="lib.deep.b.thing")
    assert release["lib.other"].target == "lib.deep.b.thing"
    assert release["lib.math"] == ApiEntry(EntryKind.ALIAS, target="math")
    assert release["lib.short"].target == "lib.a"
    assert release["lib.a.missing"].kind is EntryKind.VALUE  # as its import says, whatever it is


def test_star_imports_follow_all(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/__init__.py": "from .a import *\nfrom .b import *\nfrom elsewhere import one\n",
            "lib/a.py": """
            __all__ = ["listed"]
            __all__ += ["added"]
            __all__.extend(name for name in ("one_of", "two_of"))
            def listed(): ...
            def added(): ...
            def unlisted(): ...
            def one_of(): ...
            def two_of(): ...
            """,
            "lib/b.py": "def public(): ...\ndef _private(): ...\n",
            "lib/c.py": "from elsewhere import *\n",
        },
    )
    assert {"listed", "added", "one_of", "two_of", "public"} <= names(release, "lib")
    assert not {"unlisted", "_private"} & names(release, "lib")
    assert not release["lib"].open
    assert release["lib.c"].open


def test_every_branch_counts_but_that_of_type_checkers(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/core.py": """
            import sys
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from lib.types import Only
            else:
                Else = 1
            if sys.platform == "win32":
                def windows(): ...
            try:
                from lib._C import compiled
            except ImportError:
                def compiled(x, y): ...
            if not hasattr(sys, "x"):
                class Fallback: ...
            else:
                Fallback = None
            if __name__ == "__main__":
                program = 1
            temporary = 1
            del temporary
            """
        },
    )
    found = names(release, "lib.core")
    assert {"Else", "windows", "compiled", "Fallback"} <= found
    assert not {"Only", "program", "temporary"} & found
    assert release["lib.core.compiled"].signatures == ("(x, y)",)
    assert release["lib.core.Fallback"].kind is EntryKind.CLASS


def test_classes(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/__init__.py": "from .core import Base\n",
            "lib/core.py": """
            import lib
            def helper(self, x): ...
            class Base:
                limit = 3
                declared: int
                def __init__(self, size, *, bias=True):
                    self.size = size
                    self.inner, self.outer = 1, 2
                def method(self, x=None): ...
                @property
                def shape(self): ...
                @staticmethod
                def made(a): ...
                @classmethod
                def built(cls, b): ...
                free = helper
                again = method
                class Nested:
                    deep = 1
            class Child(lib.Base, metaclass=type):
                pass
            class Strange(dict): ...
            class Lazy:
                def __getattr__(self, name): ...
            """,
        },
    )
    base = "lib.core.Base"
    assert release[base].signatures == ("(size, *, bias=True)",)
    members = {
        "limit",
        "declared",
        "size",
        "inner",
        "outer",
        "method",
        "shape",
        "made",
        "built",
        "free",
        "Nested",
    }
    assert members <= names(release, base)
    assert "__init__" not in names(release, base)
    assert release[f"{base}.method"].signatures == ("(x=None)",)
    assert release[f"{base}.made"].signatures == ("(a)",)
    assert release[f"{base}.built"].signatures == ("(b)",)
    assert release[f"{base}.free"].signatures == ("(x)",)
    assert release[f"{base}.shape"].kind is EntryKind.VALUE
    assert f"{base}.Nested.deep" in release
    assert release["lib.core.Child"].bases == (base,)
    assert not release["lib.core.Child"].open
    assert release["lib.core.Strange"].open and release["lib.core.Strange"].bases == ("builtins.dict",)
    assert release["lib.core.Lazy"].open


def test_fields_make_the_constructor(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/core.py": """
            import collections, enum
            from dataclasses import dataclass, field
            from typing import ClassVar, NamedTuple
            @dataclass
            class First:
                a: int
                kept: ClassVar[int] = 0
                b: list = field(default_factory=list)
                c: int = field(init=False, default=3)
            @dataclass(kw_only=True)
            class Second(First):
                d: str = "x"
            class Point(NamedTuple):
                x: int
                y: int = 0
            Pair = collections.namedtuple("Pair", "left right", defaults=(None,))
            class Colour(enum.Enum):
                RED = 1
            """
        },
    )
    assert release["lib.core.First"].signatures == ("(a, b=...)",)
    assert release["lib.core.Second"].signatures == ("(a, b=..., *, d='x')",)
    assert release["lib.core.Point"].signatures == ("(x, y=0)",)
    assert release["lib.core.Pair"].signatures == ("(left, right=...)",)
    assert {"RED", "name", "value"} == names(release, "lib.core.Colour")
    assert not release["lib.core.Colour"].open


def test_what_only_raises_is_gone(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/core.py": '''
            def removed(x):
                """Was here."""
                raise RuntimeError("removed was deprecated in 1.9 and is now removed")
            def hands_on(x):
                from lib.core import removed
                return removed(x)
            def not_yet():
                raise NotImplementedError
            def refuses():
                raise RuntimeError("cannot be pickled")
            def sometimes(x):
                if x:
                    raise RuntimeError("no longer supported")
            class Old:
                def __init__(self):
                    raise RuntimeError("Old is no longer supported")
            '''
        },
    )
    gone = {name.removeprefix("lib.core.") for name, entry in release.items() if entry.gone}
    assert gone == {"removed", "hands_on", "Old"}


def test_deprecation_marks(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/core.py": '''
            import warnings
            from typing_extensions import deprecated
            MESSAGE = "`constant` is deprecated. Use other."
            @deprecated("`decorated` is deprecated. Please use `new` instead.", category=FutureWarning)
            def decorated(): ...
            @deprecated(MESSAGE)
            def constant(): ...
            def warned():
                warnings.warn("warned is deprecated, use new", stacklevel=2)
            def by_category():
                warnings.warn("use new", FutureWarning)
            def an_argument(size_average=None):
                if size_average is not None:
                    warnings.warn("size_average is deprecated")
            def only_warns():
                warnings.warn("slow")
            def documented():
                """Does it.

                .. deprecated:: 1.9
                    Use :func:`new`. It is better.
                """
            def about_an_argument(x):
                """Does it.

                Args:
                    x: a thing.
                        .. deprecated:: 1.9
                            Leave it out.

                .. warning::
                    The default behaviour of this function is deprecated.
                """
            class Old:
                def __init__(self):
                    warnings.warn("Old is deprecated")
            '''
        },
    )
    found = {
        name.removeprefix("lib.core."): entry.deprecated
        for name, entry in release.items()
        if entry.deprecated is not None
    }
    assert found == {
        "decorated": "`decorated` is deprecated. Please use `new` instead",
        "constant": "`constant` is deprecated. Use other",
        "warned": "warned is deprecated, use new",
        "by_category": "use new",
        "documented": "Use :func:`new`",
        "Old": "Old is deprecated",
    }
    assert not release["lib.core.documented"].warns
    assert release["lib.core.warned"].warns and release["lib.core.Old"].warns


def test_what_warns_and_in_which_words(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/messages.py": 'GONE_SOON = "All of lib.quantized is deprecated. Use lib2."\n',
            "lib/core.py": """
            import logging
            import warnings
            import torch
            from typing_extensions import deprecated
            from lib.messages import GONE_SOON
            log = logging.getLogger(__name__)
            def _warn_deprecated(name, new):
                warnings.warn(f"lib.{name} is deprecated, use {new} instead", FutureWarning)
            @deprecated("for type checkers", category=None)
            def silent(): ...
            @deprecated(GONE_SOON)
            def imported(): ...
            def helped():
                if not torch.compiler.is_compiling():
                    _warn_deprecated("helped", "lib.new")
            def either(x):
                if x:
                    warnings.warn("`either` is deprecated with x")
                else:
                    warnings.warn("`either` is deprecated")
            def maybe(x):
                if x:
                    warnings.warn("`maybe` is deprecated with x")
            def logged():
                log.warning("logged is deprecated, use new")
            def built():
                message = "built is deprecated. " "It does nothing."
                warnings.warn(message, FutureWarning)
            """,
        },
    )
    found = {
        name.removeprefix("lib.core."): (entry.deprecated, entry.warns)
        for name, entry in release.items()
        if entry.deprecated is not None
    }
    assert found == {
        "silent": ("for type checkers", False),
        "imported": ("All of lib.quantized is deprecated. Use lib2", True),
        "helped": ("lib.helped is deprecated, use lib.new instead", True),
        "either": ("`either` is deprecated", True),
        "logged": ("logged is deprecated, use new", True),
        "built": ("built is deprecated. It does nothing", True),
    }


def test_deprecated_parameters(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/core.py": """
            import warnings
            _UNSET = object()
            def f(x, old=None, flag=False, only=True, eps=1e-10, kind="a", unset=_UNSET, *, kept=None):
                if old is not None:
                    warnings.warn("`old` is deprecated. Use x.", FutureWarning)
                if flag:
                    warnings.warn("flag is deprecated")
                if not only:
                    warnings.warn("`only` is deprecated and ignored")
                if eps != 1e-10:
                    warnings.warn("`eps` is deprecated")
                if kind == "b":
                    warnings.warn("kind='b' is deprecated, use kind='a'")
                if unset is not _UNSET:
                    warnings.warn("`unset` is deprecated")
                if kept is not None:
                    warnings.warn("`kept` is slow")
            def changed(x, old=None):
                old = old or x
                if old is not None:
                    warnings.warn("`old` is deprecated")
            def of_another(x, new=None):
                if new is None:
                    warnings.warn("leaving out `new` is deprecated")
            class Base:
                def __init__(self, size=None):
                    if size is not None:
                        warnings.warn("`size` is deprecated")
            class Child(Base): ...
            """,
        },
    )
    assert [tuple(item) for item in release["lib.core.f"].parameters] == [
        ("old is not None", "`old` is deprecated. Use x"),
        ("flag", "flag is deprecated"),
        ("not only", "`only` is deprecated and ignored"),
        ("eps != 1e-10", "`eps` is deprecated"),
        ("kind == 'b'", "kind='b' is deprecated, use kind='a'"),
        ("unset is not _UNSET", "`unset` is deprecated"),
    ]
    assert not release["lib.core.changed"].parameters and not release["lib.core.of_another"].parameters
    assert release["lib.core.Child"].parameters == release["lib.core.Base"].parameters != ()
    assert release["lib.core.Child"].deprecated is None


CONFIG = {
    "lib/_config_module.py": """
    def install_config_module(module): ...
    def Config(**options): ...
    class ConfigModule:
        def __getattr__(self, name): ...
        def patch(self, **changes): ...
    """,
    "lib/config.py": """
    import sys
    from lib._config_module import Config, install_config_module
    verbose = False
    unread = True  # verbose unread
    old = Config(alias="lib.config.verbose", deprecated=True, deprecation_message="use verbose instead")
    idle: bool = Config(default=True, deprecated=True)
    class backend:
        threads = 1
    install_config_module(sys.modules[__name__])
    """,
    "lib/use.py": "from lib import config\nprint(config.verbose, config.backend.threads)\n",
}


def test_configuration_modules(tmp_path: Path) -> None:
    release = read(tmp_path, CONFIG)
    assert release["lib.config"] == ApiEntry(EntryKind.MODULE, bases=("lib._config_module.ConfigModule",))
    old = release["lib.config.old"]
    assert (old.target, old.deprecated, old.warns) == ("lib.config.verbose", "use verbose instead", True)
    assert release["lib.config.idle"].deprecated == "deprecated"
    assert release["lib.config.backend.threads"].kind is EntryKind.VALUE
    unread = {name for name, entry in release.items() if entry.unread}
    assert unread == {"lib.config.unread", "lib.config.idle"}


def test_names_that_are_made(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/looped.py": """
            for _size in range(1, 3):
                globals()[f"List{_size}"] = list
            """,
            "lib/unknown.py": """
            for name in find_them():
                globals()[name] = 1
            """,
            "lib/lazy.py": """
            _OLD = {"old": 1}
            def __getattr__(name):
                if name == "late":
                    return 1
                if name in _OLD:
                    return _OLD[name]
                raise AttributeError(name)
            """,
            "lib/any.py": "def __getattr__(name):\n    return find(name)\n",
            "lib/flags.py": """
            import sys, types
            class Flags(types.ModuleType):
                enabled = property()
            _kept = 1
            sys.modules[__name__].__class__ = Flags
            """,
            "lib/stand_in.py": """
            import sys, types
            class Engine(types.ModuleType):
                def __init__(self, m):
                    self.m = m
                def __getattr__(self, attr):
                    return self.m.__getattribute__(attr)
                engine = property()
            _kept = 1
            sys.modules[__name__] = Engine(sys.modules[__name__])
            """,
            "lib/counted.py": "def init():\n    global started\n    started = True\n",
        },
    )
    assert {"List1", "List2"} <= names(release, "lib.looped") and not release["lib.looped"].open
    assert release["lib.unknown"].open
    assert {"late", "old"} <= names(release, "lib.lazy") and not release["lib.lazy"].open
    assert release["lib.any"].open
    assert {"enabled", "_kept"} <= names(release, "lib.flags")
    assert {"engine", "_kept"} <= names(release, "lib.stand_in") and not release["lib.stand_in"].open
    assert "started" in names(release, "lib.counted")


def test_a_function_called_like_its_module(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {"lib/__init__.py": "from .run import run\n", "lib/run.py": "def run(x): ...\ndef other(): ...\n"},
    )
    assert release["lib.run"] == ApiEntry(EntryKind.FUNCTION, signatures=("(x)",))
    assert release["lib.run.other"].kind is EntryKind.FUNCTION


def test_names_set_from_outside(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/core.py": "class Plain: ...\nclass Looped: ...\n",
            "lib/more.py": """
            from lib.core import Plain, Looped
            def added(self, x): ...
            Plain.added = added
            for name in find():
                setattr(Looped, name, added)
            """,
        },
    )
    assert release["lib.core.Plain.added"].signatures == ("(x)",)
    assert release["lib.core.Looped"].open


def test_files_that_cannot_be_read_and_tests(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {"lib/broken.py": "def (:\n", "lib/tests/test_x.py": "def f(): ...\n", "lib/__main__.py": "x = 1\n"},
    )
    assert release["lib.broken"].open
    assert release["lib.tests"] == ApiEntry(EntryKind.MODULE, open=True)
    assert not names(release, "lib.tests") and "lib.__main__" not in release
    with pytest.raises(FileNotFoundError):
        read_release("other", tmp_path)


def test_functions_that_functions_make(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/make.py": """
            def maker(kind):
                def load(uri, *, offset=0): ...
                return load
            """,
            "lib/__init__.py": """
            from typing_extensions import deprecated
            from lib.make import maker
            def _new(x): ...
            class _New:
                def __init__(self, y): ...
            load = maker("file")
            old = deprecated("use new")(_new)
            Old = deprecated("use New")(_New)
            """,
        },
    )
    assert release["lib.load"].signatures == ("(uri, *, offset=0)",)
    assert release["lib.old"] == ApiEntry(
        EntryKind.FUNCTION, signatures=("(x)",), deprecated="use new", warns=True
    )
    assert release["lib.Old"] == ApiEntry(
        EntryKind.CLASS, signatures=("(y)",), bases=("lib._New",), deprecated="use New", warns=True
    )


def test_names_that_functions_set(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/__init__.py": "from .backend import choose\nchoose()\n",
            "lib/one.py": "def load(path): ...\ndef save(path, data): ...\n",
            "lib/backend.py": """
            import lib
            from lib import one
            def choose():
                module = one
                for name in ["load", "save"]:
                    setattr(lib, name, getattr(module, name))
            """,
        },
    )
    assert release["lib.load"].target == "lib.one.load"
    assert release["lib.save"].target == "lib.one.save"
    assert not release["lib"].open


def test_what_other_libraries_define(tmp_path: Path) -> None:
    release = read(
        tmp_path,
        {
            "lib/a.py": "from torch.utils.data import Dataset\nfrom torch.autograd import Function\n",
            "lib/b.py": """
            from lib.a import Dataset, Function
            class Own(Dataset): ...
            class Op(Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.saved = x
            """,
        },
    )
    assert release["lib.b.Dataset"].target == "torch.utils.data.Dataset"
    assert release["lib.b.Own"].bases == ("torch.utils.data.Dataset",)
    assert release["lib.b.Own"].open
    assert names(release, "lib.b.Op") == {"forward"}


def test_check_compares_with_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "apichecked"
    package.mkdir()
    (package / "__init__.py").write_text(
        "def same(a, b=1): ...\n"
        "def hidden(*args, **kwargs): ...\n"
        "def _wrap(function): return hidden\n"
        "@_wrap\n"
        "def wrapped(x): ...\n"
        "if not __name__: only_read = 1\n"
        "exec('only_there = 1')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    report = check(link("apichecked", tmp_path))
    assert report.absent == ["apichecked.only_read"]
    assert report.unread == ["apichecked.only_there (int)"]
    assert report.differing == ["apichecked.wrapped: read (x), is (*args, **kwargs)"]
    assert report.compared == 10 and report.signatures == 4


def test_only_sources_of_a_wheel_are_unpacked(tmp_path: Path) -> None:
    wheel = tmp_path / "lib-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("lib/__init__.py", "lib/core.pyi", "lib/_C.so"):
            archive.writestr(name, "")
    unpacked = unpack(wheel, tmp_path / "out")
    assert {path.name for path in unpacked.rglob("*") if path.is_file()} == {"__init__.py", "core.pyi"}
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("../evil.py", "")
    with pytest.raises(ValueError, match="leads out"):
        unpack(wheel, tmp_path / "out")


TORCH = {
    "torch/__init__.py": """
    from torch._C import *
    from torch import _C as _C
    from torch._tensor import Tensor
    PRIVATE_OPS = ("unique_dim",)
    for __name in dir(_C._VariableFunctions):
        if __name.startswith("__") or __name in PRIVATE_OPS:
            continue
        globals()[__name] = getattr(_C._VariableFunctions, __name)
    del __name
    from torch.functional import *
    """,
    "torch/version.py": "__version__ = '2.0.1'\n",
    "torch/functional.py": "def norm(input, p='fro'): ...\n",
    "torch/_tensor.py": """
    import torch
    class Tensor(torch._C._TensorBase):
        def backward(self, gradient=None): ...
    """,
    "torch/linalg/__init__.py": '''
    from torch._C import _add_docstr, _linalg
    eigh = _add_docstr(_linalg.linalg_eigh, r"""
    linalg.eigh(A, UPLO='L', *, out=None) -> (Tensor, Tensor)

    Computes it.
    """ + "more".format())
    ''',
    "torch/_C/__init__.pyi": """
    from typing import overload
    from torch import Tensor
    class Generator:
        device: int
        def seed(self) -> int: ...
    class _TensorBase:
        @overload
        def add(self, other, *, alpha=1): ...
        @overload
        def add(self, alpha, other): ...
    class FloatTensor(Tensor): ...
    float32: int = ...
    """,
    "torch/_C/_VariableFunctions.pyi": """
    def add(input, other, *, alpha=1): ...
    def old(self, other): ...
    def unique_dim(x): ...
    """,
    "torch/_torch_docs.py": '''
    import torch
    from torch._C import _add_docstr as add_docstr
    add_docstr(torch.documented, r"""
    documented(input, *, out=None) -> Tensor

    .. warning::
        :func:`torch.documented` is deprecated in favor of others.
    """)
    ''',
    "torch/_tensor_docs.py": '''
    def add_docstr_all(method, docstr): ...
    add_docstr_all("resized", r"""
    resized(*sizes, memory_format=None) -> Tensor
    """)
    ''',
}


def test_what_torch_defines_in_cpp(tmp_path: Path) -> None:
    release = read(tmp_path, TORCH, "torch")
    assert release["torch.add"].signatures == ("(input, other, *, alpha=1)",)
    assert release["torch.old"].signatures == ("(input, other)",)
    assert release["torch.norm"].target == "torch.functional.norm"
    assert "torch.unique_dim" not in release
    assert release["torch.float32"].kind is EntryKind.VALUE
    assert release["torch.Generator"].target == "torch._C.Generator"
    assert release["torch._C.Generator"].open and "torch._C.Generator.seed" in release
    assert release["torch._tensor.Tensor"].bases == ("torch._C._TensorBase",)
    assert not release["torch._C._TensorBase"].open
    assert release["torch._C._TensorBase.add"].signatures == ("(other, *, alpha=1)", "(alpha, other)")
    assert "torch._TensorBase" not in release and release["torch.FloatTensor"].kind is EntryKind.CLASS
    assert release["torch._C"] == ApiEntry(EntryKind.MODULE, open=True)


def test_docstrings_of_torch(tmp_path: Path) -> None:
    release = read(tmp_path, TORCH, "torch")
    assert release["torch.linalg.eigh"].signatures == ("(A, UPLO='L', *, out=None)",)
    assert release["torch.documented"].signatures == ("(input, *, out=None)",)
    assert release["torch.documented"].deprecated == (
        ":func:`torch.documented` is deprecated in favor of others"
    )
    assert release["torch._C._TensorBase.resized"].signatures == ("(*sizes, memory_format=None)",)


def test_a_module_that_only_raises_is_gone(tmp_path: Path) -> None:
    release = read(tmp_path, {"lib/old.py": 'raise ImportError("use lib.new")', "lib/new.py": "def f(): ..."})
    assert release["lib.old"].gone
    assert not release["lib.new"].gone
