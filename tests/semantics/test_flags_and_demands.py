"""Flags that are set on some paths only, and releases that a function, an object or a module demands."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
from harness.program import run
from harness.project import Project

from torchmigrate.findings import Applicability

HEAD = """
import torch
from packaging.version import Version, parse

torch_version = parse(torch.__version__)
"""
# What sets the flag `NEW`, and whether code for old releases under `if not NEW:` never runs on the target.
FLAGS = {
    "set under a test": ("NEW = False\nif torch_version >= parse('1.10'):\n    NEW = True", True),
    "reset under a test": ("NEW = True\nif torch_version < parse('1.10'):\n    NEW = False", True),
    "nothing before": (
        "if torch_version >= parse('1.10'):\n    NEW = True\nelse:\n    NEW = False",
        True,
    ),
    "several releases": (
        "if torch_version < parse('1.10'):\n    NEW = False\nelif torch_version < parse('1.13'):\n"
        "    NEW = True\nelse:\n    NEW = True",
        True,
    ),
    "None before": ("NEW = None\nif torch_version >= parse('1.10'):\n    NEW = True", True),
    "annotated": ("NEW: bool = False\nif torch_version >= parse('1.10'):\n    NEW = True", True),
    "a conditional expression": ("NEW = True if hasattr(torch, 'linalg') else False", True),
    "of releases": ("NEW = False if torch_version < parse('1.10') else True", True),
    "in a try": (
        "NEW = False\ntry:\n    from torch.linalg import eigh\n    NEW = True\nexcept ImportError:\n    pass",
        True,
    ),
    "in a handler": (
        "NEW = True\ntry:\n    from torch.linalg import eigh\nexcept ImportError:\n    NEW = False",
        True,
    ),
    "in an else": (
        "NEW = False\ntry:\n    from torch.linalg import eigh\nexcept ImportError:\n    pass\n"
        "else:\n    NEW = True",
        True,
    ),
    "by a function": (
        "def _new():\n    try:\n        from torch.linalg import eigh\n    except ImportError:\n"
        "        return False\n    return True\nNEW = _new()",
        True,
    ),
    "by a function with an else": (
        "def _new():\n    try:\n        from torch.linalg import eigh\n    except ImportError:\n"
        "        return False\n    else:\n        return True\nNEW = _new()",
        True,
    ),
    "by a function with a flag": (
        "def _new():\n    new = False\n    if torch_version >= parse('1.10'):\n        new = True\n"
        "    return new\nNEW = _new()",
        True,
    ),
    "by a function with two": (
        "def _new():\n    new = False\n    if torch_version >= parse('1.10'):\n"
        "        if torch.__version__ != 'parrots':\n            new = True\n    return new\nNEW = _new()",
        True,
    ),
    "on GPUs only": (
        "NEW = False\nif torch_version >= parse('1.10'):\n    if torch.cuda.is_available():\n        NEW = True",
        False,
    ),
    "on GPUs only, at once": (
        "NEW = False\nif torch_version >= parse('1.10') and torch.cuda.is_available():\n    NEW = True",
        False,
    ),
    "under another test first": (
        "NEW = False\nif torch.cuda.is_available():\n    NEW = torch_version >= parse('1.10')",
        False,
    ),
    "by what is given": ("NEW = False\nif torch_version >= parse('1.10'):\n    NEW = settings.new", False),
}


def use_of(flag: str) -> str:
    return f"\ndef f(x):\n    if not {flag}:\n        return torch.symeig(x)\n    return x\n"


def dedented(code: str) -> str:
    return textwrap.dedent(code).lstrip("\n")


def lines(code: str, *options: str) -> list[int]:
    """The lines of the findings about releases."""
    found = run(code, "--ignore", "TM127", *options).findings
    return sorted(code.count("\n", 0, item.start) + 1 for item in found)


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_of_the_file(name: str) -> None:
    code, guarded = FLAGS[name]
    assert bool(lines(HEAD + code + use_of("NEW"))) is not guarded


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_of_a_class(name: str) -> None:
    code, guarded = FLAGS[name]
    body = textwrap.indent(code.replace("NEW: bool", "NEW"), "    ")
    if "_new()" in code:
        return  # a function in a class is no flag
    assert bool(lines(f"{HEAD}class flags:\n{body}{use_of('flags.NEW')}")) is not guarded


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize(
    ("line", "flag"), [("from .flags import NEW", "NEW"), ("from pack import flags", "flags.NEW")]
)
def test_a_flag_of_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: str, flag: str
) -> None:
    project = Project(tmp_path, monkeypatch)
    (tmp_path / ".git").mkdir()
    code, guarded = FLAGS[name]
    project.write("pack/__init__.py", "")
    project.write("pack/flags.py", HEAD + code + "\n")
    project.write("pack/code.py", f"import torch\n{line}\n{use_of(flag)}")
    # What a file may only guess of another one is left alone where both sides are there.
    assert project.codes("pack/code.py") == ([] if guarded else ["TM100"])


@pytest.mark.parametrize(("test", "runs"), [("eigh is None", False), ("not eigh", False), ("eigh", True)])
def test_a_name_of_another_file_that_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str, runs: bool
) -> None:
    project = Project(tmp_path, monkeypatch)
    (tmp_path / ".git").mkdir()
    project.write("pack/__init__.py", "")
    code = "try:\n    from torch.linalg import eigh\nexcept ImportError:\n    eigh = None\n"
    project.write("pack/compat.py", code)
    project.write(
        "pack/code.py", f"import torch\nfrom .compat import eigh\nif {test}:\n    torch.symeig(x)\n"
    )
    assert project.codes("pack/code.py") == (["TM100"] if runs else [])


def test_an_attribute_that_is_set_under_a_test() -> None:
    code = dedented("""
        import torch
        from packaging.version import Version

        class A:
            def __init__(self):
                self.new = False
                if Version(torch.__version__) >= Version("1.10"):
                    self.new = True
                self.quick = False
                if torch.cuda.is_available():
                    self.quick = Version(torch.__version__) >= Version("1.10")

            def f(self, x):
                if not self.new:
                    return torch.symeig(x)
                if not self.quick:
                    return torch.symeig(x)  # without a GPU
        """)
    assert lines(code) == [17]


# ---- helpers ------------------------------------------------------------------------------------------------

HELPERS = """
import operator

import torch
from packaging.version import parse

NEEDED = "1.12"
torch_version = parse(torch.__version__)


def is_torch_version(operation, version):
    compare = {">": operator.gt, ">=": operator.ge, "<": operator.lt}[operation]
    return compare(torch_version, parse(version))


def cuda_ok():
    return torch.cuda.is_available()


def supports(minimum="1.12"):
    return is_torch_version(">=", minimum) and cuda_ok()


def is_old(maximum="1.12"):
    return is_torch_version("<", maximum)


def is_old_gpu(maximum="1.12"):
    return is_torch_version("<", maximum) and cuda_ok()


def needed(minimum=NEEDED):
    if torch_version >= parse(minimum):
        return True
    return False


def between(minimum="1.12", maximum=None):
    if maximum is not None:
        return torch_version < parse(maximum)
    return torch_version >= parse(minimum)


def told(*, minimum="1.12", verbose=False):
    new = torch_version >= parse(minimum)
    if not new and verbose:
        print("old")
    return new
"""
# A test, and whether code under it runs on torch 1.8 and on 2.15 (None: perhaps).
CALLS: list[tuple[str, bool | None, bool | None]] = [
    ("supports()", False, None),
    ("supports('1.7')", None, None),
    ("supports(minimum='1.9')", False, None),
    ("is_old()", True, False),
    ("is_old('1.7')", False, False),
    ("is_old('3.0')", True, True),
    ("is_old_gpu()", None, False),
    ("is_old_gpu(maximum='9.0')", None, None),
    ("needed()", False, True),
    ("not needed()", True, False),
    ("needed(minimum='1.7')", True, True),
    ("between()", False, True),
    ("not between('1.7')", False, False),
    ("between(maximum='1.9')", True, False),
    ("told()", False, True),
    ("not told(verbose=True)", True, False),
]


@pytest.mark.parametrize("where", ["beside", "in a module", "in the file"])
@pytest.mark.parametrize(("test", "on_old", "on_new"), CALLS)
def test_a_release_that_is_a_default(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    test: str,
    on_old: bool | None,
    on_new: bool | None,
    where: str,
) -> None:
    project = Project(tmp_path, monkeypatch)
    (tmp_path / ".git").mkdir()
    project.write("pack/__init__.py", "")
    project.write("pack/helpers.py", HELPERS)
    names = [node.id for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Name)]
    head = {
        "beside": f"import torch\nfrom .helpers import {names[0]}\nNEEDED = '0.1'\n",
        "in a module": "import torch\nfrom . import helpers\n",
        "in the file": HELPERS,
    }[where]
    if where == "in a module":
        test = test.replace(names[0], f"helpers.{names[0]}")
    # `symeig` is only there on old releases, `linalg.solve_ex` only on new ones: since 1.13.
    body = "    if {}:\n        torch.symeig(x)\n        torch.linalg.solve_ex(x, y)\n"
    project.write("pack/code.py", f"{head}\ndef f(x, y):\n{body.format(test)}")
    found = project.codes("pack/code.py", "--minimum", "1.8", "--ignore", "TM005")
    assert found == ([] if on_new is False else ["TM100"])
    found = project.codes("pack/code.py", "--minimum", "1.8", "--select", "TM005")
    assert found == ([] if on_old is False else ["TM005"])


def test_both_sides_of_a_helper_of_another_file_that_also_asks_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path, monkeypatch)
    (tmp_path / ".git").mkdir()
    project.write("pack/__init__.py", "")
    project.write("pack/helpers.py", HELPERS)
    text = """
    import torch
    from .helpers import supports

    def f(x):
        if supports():
            return torch.linalg.eigh(x)
        return torch.symeig(x, eigenvectors=True)
    """
    project.write("pack/code.py", textwrap.dedent(text))
    assert project.codes("pack/code.py") == []


# ---- what a constructor, a function that is called, or a module demands -----------------------------------

DEMANDS = """
import sys
import torch
import warnings
from packaging.version import Version

torch_version = tuple(int(number) for number in torch.__version__.split(".")[:2])


def check():
    if torch_version < (1, 8):
        raise RuntimeError("old")


def check_release(minimum="1.8"):
    if Version(torch.__version__) < Version(minimum):
        raise RuntimeError(f"needs {minimum}")


def require(condition, message):
    if not condition:
        raise RuntimeError(message)


def refuse(maximum):
    if Version(torch.__version__) >= Version(maximum):
        raise RuntimeError("new")


def solve(x):
    return torch.symeig(x, eigenvectors=True)
"""
REFUSES = {
    "if torch_version < (1, 8):\n    raise RuntimeError('old')": True,
    "if Version(torch.__version__) < Version('1.8'):\n    sys.exit('old')": True,
    "assert torch_version >= (1, 8), 'old'": True,
    "check()": True,
    "check_release()": True,
    "check_release('1.9')": True,
    "require(torch_version >= (1, 8), 'old')": True,
    "if torch_version >= (1, 8):\n    ready = True\nelse:\n    raise RuntimeError('old')": True,
    "if torch_version < (1, 5):\n    raise RuntimeError('older')\n"
    "elif torch_version < (1, 8):\n    raise RuntimeError('old')": True,
    "if torch_version < (1, 8):\n    warnings.warn('old')": False,
    "if fast and torch_version < (1, 8):\n    raise RuntimeError('old')": False,
    "if fast:\n    check()": False,
    "check_release('1.2')": False,
    "refuse('9.0')": False,
}
OLD = "1.5"  # has no `torch.linalg.eigh`, to which the fix goes


def safe(code: str) -> list[bool]:
    """Whether the fix of each finding is safe on torch 1.5."""
    found = sorted(run(code, "--minimum", OLD).findings, key=lambda item: item.start)
    return [item.fix is not None and item.fix.applicability is Applicability.SAFE for item in found]


@pytest.mark.parametrize("statement", REFUSES)
def test_what_a_constructor_demands(statement: str) -> None:
    method = "    def f(self, x):\n        return torch.symeig(x, eigenvectors=True)\n"
    start = "    def __init__(self, fast):\n"
    body = textwrap.indent(statement, "        ") + "\n"
    for code in (start + body + method, method + start + body):
        assert safe(f"{DEMANDS}\nclass A:\n{code}") == [False, REFUSES[statement]]


@pytest.mark.parametrize("statement", REFUSES)
def test_what_a_function_demands(statement: str) -> None:
    body = textwrap.indent(statement, "    ")
    code = f"{DEMANDS}\ndef f(x, fast):\n{body}\n    return torch.symeig(x, eigenvectors=True)\n"
    assert safe(code) == [False, REFUSES[statement]]


@pytest.mark.parametrize("statement", REFUSES)
def test_what_a_module_demands_holds_in_all_of_its_functions(statement: str) -> None:
    code = f"{DEMANDS}\n{statement}\n\ndef f(x):\n    return torch.symeig(x, eigenvectors=True)\n"
    assert safe(code) == [REFUSES[statement]] * 2


def test_a_module_that_refuses_new_releases_is_looked_at_before_that() -> None:
    code = f"{DEMANDS}\nif torch_version >= (2, 0):\n    raise ImportError('new')\n"
    assert {item.code for item in run(code).findings} == {"TM100", "TM127"}
    assert [item.code for item in run(f"{DEMANDS}\nrefuse('2.0')\n").findings] == ["TM100"]


@pytest.mark.parametrize(
    ("statement", "refuses"),
    [
        ('raise pytest.skip("new")', False),
        ('pytest.skip("new", allow_module_level=True)', False),
        ('raise unittest.SkipTest("new")', False),
        ("raise pytest.skip.Exception", False),
        ('pytest.xfail("new")', False),
        ('raise RuntimeError("new")', True),
        ('raise ImportError("skip this release")', True),
    ],
)
def test_a_skipped_test_does_not_refuse_a_release(statement: str, refuses: bool) -> None:
    code = f"import pytest, unittest\n{DEMANDS}\nif torch_version >= (2, 0):\n    {statement}\n"
    assert ("TM127" in {item.code for item in run(code).findings}) is refuses
    inside = f"import pytest, unittest\n{DEMANDS}\ndef test_it():\n    if torch_version >= (2, 0):\n        {statement}\n"
    assert ("TM127" in {item.code for item in run(inside).findings}) is refuses


MARKS = {
    'unittest.skipUnless(hasattr(torch, "symeig"), "x")': True,
    'unittest.skipIf(not hasattr(torch, "symeig"), "x")': True,
    'pytest.mark.skipif(not hasattr(torch, "symeig"), reason="x")': True,
    'pytest.mark.skipif("symeig" not in dir(torch), reason="x")': True,
    'pytest.mark.xfail(not hasattr(torch, "symeig"), reason="x")': True,
    'pytest.mark.skipif(hasattr(torch, "symeig"), reason="x")': False,
    'unittest.skipUnless(fast, "x")': False,
}


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(
    "what", ["def test(x):\n    ", "async def test(x):\n    ", "class T:\n    def test(self, x):\n        "]
)
def test_a_decorator_that_asks_for_a_name(mark: str, what: str) -> None:
    code = f"import pytest, torch, unittest\n@{mark}\n{what}return torch.symeig(x)\n"
    assert (run(code).findings == []) is MARKS[mark]
    through = f"import pytest, torch, unittest\nneeds = {mark}\n@needs\n{what}return torch.symeig(x)\n"
    assert (run(through).findings == []) is MARKS[mark]


CLASSES = """
class A:
    def __init__(self):
        if torch_version < (1, 8):
            raise RuntimeError("old")

    @staticmethod
    def alone(x):
        return torch.symeig(x, eigenvectors=True)

    @classmethod
    def made(cls, x):
        return torch.symeig(x, eigenvectors=True)

    def f(self, x):
        def inner(y):
            return torch.symeig(y, eigenvectors=True)
        return inner(x)


class Inherits(A):
    def f(self, x):
        return torch.symeig(x, eigenvectors=True)


class Extends(A):
    def __init__(self, more):
        super().__init__()
        self.more = more

    def f(self, x):
        return torch.symeig(x, eigenvectors=True)


class Names(A):
    def __init__(self, more):
        A.__init__(self)

    def f(self, x):
        return torch.symeig(x, eigenvectors=True)


class Replaces(A):
    def __init__(self, more):
        self.more = more

    def f(self, x):
        return torch.symeig(x, eigenvectors=True)


class Makes:
    def __new__(cls):
        if torch_version < (1, 8):
            raise RuntimeError("old")
        return super().__new__(cls)

    def f(self, x):
        return torch.symeig(x, eigenvectors=True)
"""


def test_which_methods_need_an_object() -> None:
    one, *methods = safe(DEMANDS + CLASSES)
    assert not one
    assert methods == [False, False, True, True, True, True, False, True]


def test_what_a_function_of_another_file_demands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path, monkeypatch)
    (tmp_path / ".git").mkdir()
    project.write("pack/__init__.py", "")
    project.write("pack/checks.py", DEMANDS)
    text = """
    import torch
    from .checks import check, check_release

    def before(x):
        return torch.symeig(x, eigenvectors=True)

    check()

    class A:
        def __init__(self):
            check_release()

        def f(self, x):
            return torch.symeig(x, eigenvectors=True)
    """
    written = project.write("pack/code.py", textwrap.dedent(text))
    project.run("check", "--isolated", "--minimum", OLD, "--fix", "pack/code.py", code=0)
    assert written.read_text().count("torch.linalg.eigh(x, ") == 2
