"""What other files of a project take from a file stays there, whichever files are given."""

from __future__ import annotations

import io
import itertools
import json
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from harness.catalogue import catalogue
from harness.fakes import fake_libraries

from torchmigrate.cli import program
from torchmigrate.semantics.walk.resolver import LIBRARY_ROOTS


class Project:
    """Files in an empty directory."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.monkeypatch = monkeypatch

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text))

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def run(self, *arguments: str, stdin: bytes = b"", python_2: bool = False) -> str:
        """Run torchmigrate there; stdout.

        python_2: whether one of the files that are given is Python 2, which is an error of that file.
        """
        streams = [io.TextIOWrapper(io.BytesIO(data), write_through=True) for data in (stdin, b"", b"")]
        with self.monkeypatch.context() as patch:
            patch.chdir(self.path)
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as stop:
                program.main(
                    [*arguments, "--extend-select", "TM411"]
                )  # F.sigmoid, which is not on by default
        out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])  # type: ignore[attr-defined]
        if python_2:
            assert stop.value.code == 2
            assert "Python 2" in err
        else:
            assert stop.value.code in (0, 1), err
        return out

    def fix(self, *paths: str, unsafe: bool = False) -> None:
        self.run("check", "--fix", "--isolated", *(["--unsafe-fixes"] if unsafe else []), *paths or ["."])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


# Local name, how layers.py binds it, how it uses it: with nobody else, the fix removes or renames it.
BINDINGS = {
    "function": ("xavier_uniform", "from torch.nn.init import xavier_uniform", "xavier_uniform(w)"),
    "renamed": ("clip_grad_norm", "from torch.nn.utils import clip_grad_norm", "clip_grad_norm(w, 1)"),
    "other module": ("ger", "from torch import ger", "ger(w, w)"),
    "module": ("F", "import torch.nn.functional as F", "F.sigmoid(w)"),
    "library": ("torchvision", "import torchvision", "torchvision.utils.irange(3)"),
    "from library": ("nn", "from torch import nn", "nn.functional.tanh(w)"),
    "argument": ("FloatTensor", "from torch import FloatTensor\nimport torch", "torch.set_default_tensor_type(FloatTensor)"),
}  # fmt: skip

# How main.py, or a module that it imports, takes {name} from layers.py, which may be in a package.
WAYS = {
    "from": {"main.py": "from layers import {name}\n"},
    "from as": {"main.py": "from layers import os, {name} as other\n"},
    "inside a function": {"main.py": "def f():\n    from layers import {name}\nf()\n"},
    "star": {"main.py": "from layers import *\nprint({name})\n"},
    "attribute": {"main.py": "import layers\nlayers.{name}\n"},
    "attribute of alias": {"main.py": "import os, layers as la\nla.{name}\n"},
    "attribute of object": {"main.py": "import layers\ndef f(module):\n    return module.{name}\nf(layers)\n"},
    "getattr": {"main.py": "import layers\ngetattr(layers, '{name}')\n"},
    "getattr of a variable": {"main.py": "import layers\nfor name in ['{name}']:\n    getattr(layers, name)\n"},
    "vars": {"main.py": "import layers\nvars(layers)['{name}']\n"},
    "dict": {"main.py": "import layers\nlayers.__dict__['{name}']\n"},
    "import_module": {"main.py": "import importlib\nimportlib.import_module('layers').{name}\n"},
    "import_module as": {"main.py": "from importlib import import_module as load\nload('layers').{name}\n"},
    "__import__": {"main.py": "__import__('layers').{name}\n"},
    "sys.modules": {"main.py": "import layers, sys\nsys.modules['layers'].{name}\n"},
    "patch": {"main.py": "from unittest.mock import patch\nwith patch('layers.{name}'):\n    pass\n"},
    "patch inside": {"main.py": "from unittest.mock import patch\nwith patch('layers.{name}.x', create=True):\n    pass\n"},
    "patch.object": {"main.py": "import layers\nfrom unittest.mock import patch\nwith patch.object(layers, '{name}'):\n    pass\n"},
    "setattr": {"main.py": "import layers\nassert hasattr(layers, '{name}')\nsetattr(layers, '{name}', 3)\n"},
    "alias": {"main.py": "import layers\nla = layers\nla.{name}\n"},
    "returned": {"main.py": "import layers\ndef get():\n    return layers\nget().{name}\n"},
    "kept in an object": {"main.py": "import layers\nclass A:\n    held = layers\nA().held.{name}\n"},
    "getattr of import_module": {"main.py": "import importlib\ndef get(name):\n    return getattr(importlib.import_module('layers'), name)\nget('{name}')\n"},
    "exec": {"main.py": "exec('from layers import {name}')\n"},
    "exec of the file": {"main.py": "exec(open('layers.py').read())\nprint({name})\n"},
    "run_path": {"main.py": "import runpy\nrunpy.run_path('layers.py')['{name}']\n"},
    "spec": {"main.py": "from importlib import util\nspec = util.spec_from_file_location('x', './layers.py')\nmodule = util.module_from_spec(spec)\nspec.loader.exec_module(module)\nmodule.{name}\n"},
    "from package": {"pkg/layers.py": "", "main.py": "from pkg.layers import {name}\n"},
    "attribute of package": {"pkg/layers.py": "", "main.py": "import pkg.layers\npkg.layers.{name}\n"},
    "module of package": {"pkg/layers.py": "", "main.py": "from pkg import layers\nlayers.{name}\n"},
    "relative": {"pkg/__init__.py": "", "pkg/layers.py": "", "pkg/other.py": "from .layers import {name}\n", "main.py": "import pkg.other\n"},
    "relative module": {"pkg/__init__.py": "", "pkg/layers.py": "", "pkg/other.py": "from . import layers as la\nla.{name}\n", "main.py": "import pkg.other\n"},
    "relative star": {"pkg/__init__.py": "", "pkg/layers.py": "", "pkg/other.py": "from .layers import *\n{name}\n", "main.py": "import pkg.other\n"},
    "from above": {"pkg/__init__.py": "", "pkg/layers.py": "", "pkg/sub/__init__.py": "", "pkg/sub/other.py": "from ..layers import {name}\n", "main.py": "import pkg.sub.other\n"},
    "from further above": {"pkg/__init__.py": "", "pkg/layers.py": "", "pkg/sub/__init__.py": "", "pkg/sub/other.py": "from .. import layers\nlayers.{name}\n", "main.py": "import pkg.sub.other\n"},
    "re-export": {"pkg/__init__.py": "from .layers import {name}\n", "pkg/layers.py": "", "main.py": "from pkg import {name}\n"},
    "re-export of all": {"pkg/__init__.py": "from .layers import *\n", "pkg/layers.py": "", "main.py": "from pkg import {name}\n"},
    "through the package": {"pkg/__init__.py": "from . import layers\n", "pkg/layers.py": "", "main.py": "import pkg\npkg.layers.{name}\n"},
    "through another module": {"middle.py": "from layers import *\n", "main.py": "import middle\nmiddle.{name}\n"},
    "through an attribute": {"middle.py": "import layers\n", "main.py": "import middle\nmiddle.layers.{name}\n"},
    "from the sources": {"src/pkg/layers.py": "", "main.py": "import os, sys\nsys.path.insert(0, os.path.abspath('src'))\nfrom pkg.layers import {name}\n"},
}  # fmt: skip

# With a mock of the name in its module, only those that keep the old name at their uses are rewritten.
MOCKING = ("patch", "patch.object", "setattr")
SPELLED_ANEW = ("module", "library", "from library", "argument")


def layers(binding: str) -> str:
    _, code, use = BINDINGS[binding]
    return f"import os\n{code}\n\n\ndef f(w):\n    return {use}\n"


def files_of(binding: str, way: str) -> tuple[dict[str, str], str]:
    """The files of a project, and which one is layers.py."""
    name = BINDINGS[binding][0]
    files = {path: text.replace("{name}", name) for path, text in WAYS[way].items()}
    place = next((path for path in files if path.endswith("layers.py")), "layers.py")
    return {**files, place: layers(binding)}, place


def works(directory: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether main.py runs with fake libraries."""
    known = set(sys.modules)
    with monkeypatch.context() as patch, fake_libraries(LIBRARY_ROOTS):
        patch.chdir(directory)
        patch.setattr(sys, "path", [str(directory), *sys.path])
        patch.setattr(sys, "dont_write_bytecode", True)
        try:
            exec(compile((directory / "main.py").read_text(), "main.py", "exec"), {"__name__": "main"})
        except (ImportError, NameError, AttributeError, KeyError):
            return False
        finally:
            for name in set(sys.modules) - known:
                del sys.modules[name]
    return True


@pytest.mark.parametrize("binding", BINDINGS)
def test_without_other_files_the_name_goes(binding: str, project: Project) -> None:
    project.write({"layers.py": layers(binding), "main.py": "import layers\nlayers.f\nlayers.os\n"})
    project.fix()
    project.write({"main.py": f"import layers\nlayers.{BINDINGS[binding][0]}\n"})
    assert not works(project.path, project.monkeypatch), "or the tests below say nothing"


@pytest.mark.parametrize(("binding", "way"), list(itertools.product(BINDINGS, WAYS)))
def test_what_worked_works(binding: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, place = files_of(binding, way)
    results = []
    for number, paths in enumerate(([], [place])):
        project = Project(tmp_path / str(number), monkeypatch)
        project.write({".git/HEAD": "", **files})
        assert works(project.path, monkeypatch)
        project.fix(*paths)
        assert works(project.path, monkeypatch), project.read(place)
        results.append(project.read(place))
    assert results[0] == results[1], "the same whichever files are given"
    blind = way in MOCKING and binding in SPELLED_ANEW
    assert (results[0] == files[place]) is blind, "the uses in the file itself are rewritten all the same"


# ---- strings, doctests and patches ------------------------------------------------------------------------

TEXT = """\
import torch
import torch.nn.functional as F
from torch.nn.init import xavier_uniform
{top}

def f(x):
    {body}
    xavier_uniform(x)
    return F.sigmoid(x)


{end}
"""
# The names that have to stay bound.
STAYS = {
    "doctest": ({"body": '"""\n    >>> F.relu(xavier_uniform(x))\n    """'}, "F xavier_uniform"),
    "doctest, further line": ({"body": '"""\n    >>> for x in y:\n    ...     F.relu(x)\n    """'}, "F"),
    "__all__": ({"top": '__all__ = ["F", "f"]'}, "F"),
    "__all__ +=": ({"top": '__all__ = []\n__all__ += ["F", "xavier_uniform"]'}, "F xavier_uniform"),
    "globals": ({"end": 'globals()["F"].relu'}, "F"),
    "globals().get": ({"end": 'globals().get("xavier_uniform")'}, "xavier_uniform"),
    "globals by a variable": ({"end": "[globals()[name] for name in names]"}, "F xavier_uniform"),
    "vars": ({"end": 'vars()["F"]'}, "F"),
    "eval": ({"end": 'eval("F.relu(x)")'}, "F"),
    "eval of an f-string": ({"end": 'eval(f"F.{name}(x)")'}, "F"),
    "timeit": ({"end": 'timeit.timeit("F.relu(x)", globals=globals())'}, "F xavier_uniform"),
    "getattr of the module": ({"end": 'getattr(sys.modules[__name__], "xavier_uniform")'}, "xavier_uniform"),
    "getattr by a variable": ({"end": "getattr(sys.modules[__name__], kind)"}, "F xavier_uniform"),
    "prose": ({"body": '"""F is a Variable of xavier_uniform."""'}, ""),
    "globals written": ({"end": 'globals()["other"] = 3'}, ""),
}


@pytest.mark.parametrize("case", STAYS)
def test_names_in_strings_of_the_file_stay(case: str, project: Project) -> None:
    parts, names = STAYS[case]
    project.write({".git/HEAD": ""})
    (project.path / "a.py").write_text(TEXT.format(**{"top": "", "body": "pass", "end": "", **parts}))
    project.fix()
    text = project.read("a.py")
    assert "torch.sigmoid(x)" in text
    assert ("functional as F" in text) is ("F" in names.split())
    assert ("xavier_uniform_ as xavier_uniform\n" in text) is ("xavier_uniform" in names.split())


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ('def g():\n    """Uses what one may import from user: F, f."""\n', False),
        ('"""Say `from user import F`."""\n', False),
        ('class G:\n    """F"""\n\nimport user\n', False),
        ('def g():\n    """Use it.\n\n    >>> from user import F\n    >>> F.relu(3)\n    """\n', True),
        ('"""A module.\n\n>>> for x in y:\n...     from user import F\n"""\n', True),
        ('CODE = """from user import F"""\n', True),
        ('F = 1\nexec(compile(CODE, "user.py", "exec"))\n', False),
        ('F = 1\nexec(compile(open("user.py").read(), "user.py", "exec"))\n', True),
        ('run("import user; user.F.relu(3)")\n', True),
        ('x = data["user"]\nfor m in model.modules():\n    vars(m)\n', False),
        ('import sys\nx = data["user"]\nfor m in sys.modules.values():\n    vars(m)\n', True),
    ],
)
def test_strings_of_other_files_take_what_is_code(text: str, stays: bool, project: Project) -> None:
    project.write({".git/HEAD": "", "user.py": USER, "b.py": text})
    project.fix()
    assert ("import torch.nn.functional as F" in project.read("user.py")) is stays


# What replaces `torch.nn.functional.sigmoid`.
PATCHES = [
    "F.sigmoid = wrap(F.sigmoid)",
    "torch.nn.functional.sigmoid = wrap(F.sigmoid)",
    "other = F\nother.sigmoid = wrap",
    "F.tanh, F.sigmoid = a, b",
    "F.sigmoid: object = a",
    "if a: F.sigmoid = wrap",
    "try: pass\nfinally: F.sigmoid = wrap",
    "for i in a, b: F.sigmoid = wrap",
    "if a or f(\n    b): F.sigmoid = wrap",
    "if a and \\\n    b: F.sigmoid = wrap",
    "if a in (b,\n    c) and \\\n    d: F.tanh, F.sigmoid = wrap",
    "def f(x: F.relu = F.sigmoid):\n    F.sigmoid = x",
    "with open(x) as F.sigmoid:\n    pass",
    'setattr(F, "sigmoid", wrap)',
    'for name in ["sigmoid", "tanh"]:\n    setattr(F, name, wrap(getattr(F, name)))',
    'with mock.patch.object(F, "sigmoid"):\n    pass',
    '@mock.patch("torch.nn.functional.sigmoid", autospec=True)\ndef test(m):\n    pass',
    'with patch("torch.nn.functional.sigmoid") as m, open(x):\n    pass',
    'with patch.multiple("torch.nn.functional", sigmoid=DEFAULT):\n    pass',
    "with patch.multiple(F, sigmoid=DEFAULT):\n    pass",
    'TARGET = "torch.nn.functional.sigmoid"\nwith patch(TARGET):\n    pass',
    'TARGET = "torch.nn.functional.sigmoid"\nwith patch(TARGET, "value"):\n    pass',
    'TARGET = "torch.nn.functional.sigmoid"\ndef test(monkeypatch):\n    monkeypatch.setattr(TARGET, "value")',
    'MODULE = "torch.nn.functional"\nwith patch(f"{MODULE}.sigmoid"):\n    pass',
    'MODULE = "torch.nn.functional"\nwith patch(MODULE + ".sigmoid"):\n    pass',
    'def test(monkeypatch):\n    monkeypatch.setattr(F, "sigmoid", 3)',
    'def test(monkeypatch):\n    monkeypatch.setattr("torch.nn.functional.sigmoid", 3)',
    'def test(mocker):\n    mocker.patch("torch.nn.functional.sigmoid")',
    'def test(mocker):\n    mocker.spy(F, "sigmoid")',
]
NO_PATCHES = [
    "x.sigmoid = wrap(x)",
    "self.sigmoid = F.relu",
    'with patch("numpy.sigmoid"):\n    pass',
    'with patch("torch.nn.functional.relu"):\n    pass',
    'setattr(model, "sigmoid", wrap)',
    "call(sigmoid=F.relu)",
    "def f(x: F.sigmoid = None, y: F.sigmoid = None, z=None):\n    pass",
    "def f(\n    x: F.sigmoid = None,\n    *y: F.sigmoid, z=None\n):\n    pass",
    "class A:\n    x: F.sigmoid = None",
    'names = ["torch.nn.functional.sigmoid"]',
    'names = ["torch.nn.functional.sigmoid"]\ndef test(monkeypatch):\n    monkeypatch.setattr(Terminal, "isatty", f)',
]
USER = "import torch\nimport torch.nn.functional as F\n\n\ndef f(x):\n    return F.sigmoid(x)\n"


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("patch", PATCHES)
def test_what_is_patched_is_not_written_anew(patch: str, unsafe: bool, project: Project) -> None:
    here = f"{USER}\n\n{patch}\n"
    there = f"import torch\nimport torch.nn.functional as F\nimport user\n\n{patch}\n"
    inside = there.replace("torch.nn.functional", "user.F").replace(
        "import user.F as F", "from user import F"
    )
    files = {"one/here.py": here, "two/user.py": USER, "two/there.py": there}
    if "torch.nn.functional" in patch:
        files |= {"three/user.py": USER, "three/inside.py": inside}
    project.write({f"{name.split('/')[0]}/.git/HEAD": "" for name in files})
    project.write(files)
    project.fix(unsafe=unsafe)
    for name, text in files.items():
        assert project.read(name) == text


@pytest.mark.parametrize("patch", NO_PATCHES)
def test_other_assignments_and_patches_hold_nothing_back(patch: str, project: Project) -> None:
    project.write({".git/HEAD": "", "user.py": USER, "here.py": f"{USER}\n\n{patch}\n"})
    project.fix()
    for name in ("user.py", "here.py"):
        assert "return torch.sigmoid(x)" in project.read(name)


# A module rule changes the import alone: the local name stays, but is no longer what is patched.
OLD = "torch.distributed._composable.fsdp"
IMPORTS = [
    f"from {OLD} import fully_shard\nfully_shard(m)",
    f"def f(m):\n    from {OLD} import fully_shard, FSDPModule\n    return fully_shard(m)",
    f"from {OLD} import fully_shard as shard\nshard(m)",
    f"from {OLD} import (\n    FSDPModule,\n    fully_shard,\n)\nx = fully_shard",
    f"import {OLD} as fsdp\nfsdp.fully_shard(m)",
    "from torch.distributed._composable import fsdp\nfsdp.fully_shard(m)",
    f"import {OLD}\n{OLD}.fully_shard(m)",
]
PATCHED = [
    f'def test(monkeypatch):\n    import {OLD} as cfsdp\n    monkeypatch.setattr(cfsdp, "fully_shard", fake)',
    f'def test(monkeypatch):\n    monkeypatch.setattr("{OLD}.fully_shard", fake)',
    "from torch.distributed._composable import fsdp as cfsdp\ncfsdp.fully_shard = fake",
    f'import importlib\ncfsdp = importlib.import_module("{OLD}")\ncfsdp.fully_shard = fake',
    f'import pytest\ncfsdp = pytest.importorskip("{OLD}")\nwith mock.patch.object(cfsdp, "fully_shard"):\n    pass',
    f'from importlib import import_module\ncfsdp = import_module("{OLD}")\nsetattr(cfsdp, "fully_shard", fake)',
    f'@mock.patch("{OLD}.fully_shard")\ndef test(m):\n    pass',
]


@pytest.mark.parametrize("patch", PATCHED)
@pytest.mark.parametrize("code", IMPORTS)
def test_an_import_of_what_is_patched_stays(code: str, patch: str, project: Project) -> None:
    files = {"user.py": f"{code}\n", "test_it.py": f"{patch}\n"}
    project.write({".git/HEAD": "", **files})
    project.fix()
    assert project.read("user.py") == files["user.py"]


@pytest.mark.parametrize("code", IMPORTS)
def test_an_import_of_what_is_not_patched_goes(code: str, project: Project) -> None:
    patch = PATCHED[0].replace("fully_shard", "MixedPrecisionPolicy")
    project.write({".git/HEAD": "", "user.py": f"{code}\n", "test_it.py": f"{patch}\n"})
    project.fix()
    assert OLD.rpartition(".")[0] not in project.read("user.py")


@pytest.mark.parametrize("use", ["torch.load(path)", "load(path)", 'torch.load(path, "cpu")'])
def test_new_arguments_are_seen_by_what_replaces_the_function(use: str, project: Project) -> None:
    patch = "import torch\n\n\ntorch.load = wrap(torch.load)\n"
    user = f"import torch\nfrom torch import load\n\n\ndef f(path):\n    return {use}\n"
    project.write({".git/HEAD": "", "user.py": user, "hijacks.py": patch})
    project.fix(unsafe=True)
    assert f"return {use[:-1]}, weights_only=" in project.read("user.py")


def test_another_name_is_not_seen_by_what_replaces_the_old_one(project: Project) -> None:
    user = "import torch\n\n\ndef f(x):\n    return torch.ger(x, x)\n"
    project.write({".git/HEAD": "", "user.py": user, "hijacks.py": "import torch\n\ntorch.ger = wrap\n"})
    project.fix(unsafe=True)
    assert project.read("user.py") == user


def test_the_reason_is_said(project: Project) -> None:
    project.write({".git/HEAD": "", "user.py": USER})
    project.write(
        {
            "test_user.py": 'from unittest.mock import patch\n\nwith patch("torch.nn.functional.sigmoid"):\n    pass\n'
        }
    )
    out = " ".join(project.run("check", "--isolated", "user.py").split())
    assert "test_user.py replaces `torch.nn.functional.sigmoid`" in out


LOADS = "import torch\nmodel.load_state_dict(torch.load(path)['model'])\n"
SAVES = {
    "arguments": ("import torch\ntorch.save({'model': model.state_dict(), 'args': args}, path)\n", "False"),
    "all that an object has": (
        "import torch\n\nclass Checkpoint:\n    def save(self, model, **kept):\n"
        "        self.models = {'latest': model.state_dict()}\n"
        "        for key, value in self.__dict__.items():\n            kept[key] = value\n"
        "        torch.save(kept, self.path)\n",
        "False",
    ),
    "all that an object has, at once": (
        "import torch\n\nclass Checkpoint:\n    def save(self):\n        torch.save(vars(self), self.path)\n",
        "False",
    ),
    "settings as a dictionary": (
        "import torch\n\ndef save(args):\n    torch.save(vars(args), args.path)\n",
        "True",
    ),
    "a trainer": ("import pytorch_lightning as pl\n", "False"),
    "arguments by another name": (
        "import torch as th\nth.save({'model': model.state_dict(), 'args': args}, path)\n",
        "False",
    ),
    "numbers": ("import torch\ntorch.save({'model': model.state_dict(), 'epoch': 3}, path)\n", "True"),
    "nothing": ("def main(args):\n    return {'args': args}\n", "True"),
}


@pytest.mark.parametrize("case", SAVES)
def test_what_other_files_save_says_what_a_checkpoint_holds(case: str, project: Project) -> None:
    text, wanted = SAVES[case]
    project.write({"load.py": LOADS, "save.py": text})
    project.run("check", "--fix", "--unsafe-fixes", "--isolated", "--select", "TM600", "load.py")
    assert project.read("load.py") == LOADS.replace("(path)", f"(path, weights_only={wanted})")


LOADED = "import torch\nmodel.load_state_dict(torch.load(path)['model'])\n"
NAMED = "import torch\nstart(torch.load('out/labels.pt'))\n"
SAVED_ACC = "import torch\nfrom measure import validate\nacc = validate(net)\ntorch.save({'model': net.state_dict(), 'acc': acc}, p)\n"
LIGHTNING = "import pytorch_lightning\n"
SAVED = "import torch\ntorch.save({'model': net.state_dict()}, p)\n"


@pytest.mark.parametrize(
    ("files", "name", "wanted"),
    [
        ({"save.py": SAVED_ACC, "measure.py": "def validate(net):\n    return 1.0\n"}, "load.py", "True"),
        (
            {"save.py": SAVED_ACC, "measure.py": "import numpy\ndef validate(net):\n    pass\n"},
            "load.py",
            "False",
        ),
        (
            {"examples/one/train.py": LIGHTNING, "examples/two/train.py": SAVED},
            "examples/two/load.py",
            "True",
        ),
        ({"examples/one/train.py": LIGHTNING}, "examples/two/load.py", "False"),
        ({"examples/train.py": LIGHTNING, "examples/two/train.py": SAVED}, "examples/two/load.py", "False"),
        ({"one/train.py": LIGHTNING, "two/train.py": SAVED}, "two/load.py", "False"),
        (
            {"lib/__init__.py": "", "lib/engine.py": LIGHTNING, "a/two/train.py": SAVED},
            "a/two/load.py",
            "False",
        ),
        ({"save.py": "import torch\ntorch.save(torch.ones(2), 'labels.pt')\n"}, "load.py", "named True"),
        ({"save.py": "import torch\ntorch.save(labels, 'labels.pt')\n"}, "load.py", "named False"),
        ({"save.py": "import torch as th\nth.save(th.ones(2), 'labels.pt')\n"}, "load.py", "named True"),
        ({"a/save.py": "import torch\ntorch.save(torch.ones(2), 'labels.pt')\n"}, "load.py", "named False"),
        (
            {
                "a/one/save.py": "import torch\ntorch.save(torch.ones(2), 'labels.pt')\n",
                "a/two/save.py": "import torch\ntorch.save(args, 'labels.pt')\n",
            },
            "a/one/load.py",
            "named True",
        ),
        (
            {
                "save.py": "import torch\ntorch.save(torch.ones(2), 'labels.pt')\n",
                "a/save.py": "import torch\ntorch.save(args, 'labels.pt')\n",
            },
            "load.py",
            "named False",
        ),
    ],
)
def test_which_files_say_what_a_checkpoint_holds(
    files: dict[str, str], name: str, wanted: str, project: Project
) -> None:
    named = wanted.startswith("named")
    text = NAMED if named else LOADED
    project.write({".git/HEAD": "", name: text, **files})
    project.run("check", "--fix", "--unsafe-fixes", "--isolated", "--select", "TM600", name)
    assert project.read(name).count(f"weights_only={wanted.removeprefix('named ')}") == 1


DECIDED = 'import os\n\nos.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"\n'


@pytest.mark.parametrize(
    ("files", "name", "silent"),
    [
        ({"lib/__init__.py": DECIDED}, "lib/deep/load.py", True),
        (
            {
                "lib/__init__.py": DECIDED.replace("] =", ", ")
                .replace("environ[", "environ.setdefault(")
                .rstrip()
                + ")\n"
            },
            "lib/load.py",
            True,
        ),
        ({"tests/conftest.py": DECIDED}, "tests/test_load.py", True),
        ({"lib/__init__.py": DECIDED}, "tools/load.py", False),
        ({"lib/__init__.py": "", "lib/sub/__init__.py": DECIDED}, "lib/load.py", False),
        (
            {
                "lib/__init__.py": "def f():\n    import os\n    os.environ['TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'] = '1'\n"
            },
            "lib/load.py",
            False,
        ),
        ({"lib/tool.py": DECIDED}, "lib/load.py", False),
    ],
)
def test_a_package_that_decides_what_is_read(
    files: dict[str, str], name: str, silent: bool, project: Project
) -> None:
    project.write({".git/HEAD": "", "lib/__init__.py": "", name: "import torch\ntorch.load(p)\n", **files})
    out = project.run("check", "--isolated", "--select", "TM600", name)
    assert ("TM600" not in out) == silent


def test_what_imports_a_package_that_decides_what_is_read(project: Project) -> None:
    text = "import torch\nfrom lib.models import Net\ntorch.load(p)\n"
    project.write({".git/HEAD": "", "lib/__init__.py": DECIDED, "tools/load.py": text})
    assert "TM600" not in project.run("check", "--isolated", "--select", "TM600", "tools/load.py")


TRIAL = """
    from lib import keys
    from .keys import EPOCH
    class Trial:
        def state_dict(self):
            return {keys.MODEL: self.net.state_dict(), EPOCH: 3}
"""
RESUMES = "import torch\nIMPORT\ntrial = MADE(net)\ntrial.load_state_dict(torch.load(path))\n"
KEYS = "class Key:\n    pass\nMODEL = Key()\nEPOCH = 'epoch'\n"
TEXTS = "MODEL = 'model'\nEPOCH = 'epoch'\n"


@pytest.mark.parametrize(
    ("imported", "made"),
    [
        ("from lib.trial import Trial", "Trial"),
        ("from lib import Trial", "Trial"),
        ("from lib import Trial as Run", "Run"),
        ("import lib", "lib.Trial"),
        ("import lib as l", "l.Trial"),
        ("import lib.trial", "lib.trial.Trial"),
    ],
)
@pytest.mark.parametrize("taken", ["from .trial import *\n", "from .trial import Trial\n"])
def test_a_class_of_another_file_that_makes_its_state_dict(
    imported: str, made: str, taken: str, project: Project
) -> None:
    code = RESUMES.replace("IMPORT", imported).replace("MADE", made)
    project.write({".git/HEAD": "", "lib/__init__.py": taken, "lib/trial.py": TRIAL, "main.py": code})
    for keys, wanted in ((KEYS, "False"), (TEXTS, "True")):
        project.write({"lib/keys.py": keys, "main.py": code})
        project.run("check", "--fix", "--unsafe-fixes", "--isolated", "--select", "TM600", "main.py")
        assert project.read("main.py") == code.replace("(path)", f"(path, weights_only={wanted})")


@pytest.mark.parametrize(
    "imported", ["from other import Trial", "from lib.other import Trial", "from library.trial import Trial"]
)
def test_another_class_of_the_name_makes_no_state_dict(imported: str, project: Project) -> None:
    code = RESUMES.replace("IMPORT", imported).replace("MADE", "Trial")
    plain = "class Trial:\n    pass\n"
    project.write({".git/HEAD": "", "lib/__init__.py": "", "lib/trial.py": TRIAL, "lib/keys.py": KEYS})
    project.write({"other.py": plain, "lib/other.py": plain, "main.py": code})
    project.run("check", "--fix", "--unsafe-fixes", "--isolated", "--select", "TM600", "main.py")
    assert project.read("main.py") == code.replace("(path)", "(path, weights_only=True)")


FLOW = """
import torch
from torch.distributions import constraints
IMPORT


class Flip(BASE):
    domain = constraints.real_vector
    codomain = constraints.real_vector

    def __init__(self, dim):
        super().__init__()
        self.event_dim = -dim
"""
MODULE = "import torch\n\n\nclass Flow(torch.distributions.Transform, torch.nn.Module):\n    pass\n"


@pytest.mark.parametrize(
    ("flows", "imported", "base"),
    [
        (MODULE, "from lib.flows import Flow", "Flow"),
        (MODULE, "import lib.flows", "lib.flows.Flow"),
        (f"{MODULE}\n\nclass Other(Flow):\n    pass\n", "from lib.flows import Other", "Other"),
        (
            "from torch.distributions import *\n\n\nclass Flow(transforms.Transform, object):\n    event_dim = 1\n",
            "from lib.flows import Flow",
            None,
        ),
        ("class Flow:\n    pass\n", "from lib.flows import Flow", None),
        (f"from unknown import Mixin\n{MODULE}".replace("(", "(Mixin, "), "from lib.flows import Flow", None),
        (MODULE, "from lib.other import Flow", None),
        (
            f"{MODULE}    def __init__(self):\n        self.event_dim = 1\n",
            "from lib.flows import Flow",
            None,
        ),
    ],
)
def test_a_class_of_another_file_that_derives_from_one_of_a_library(
    flows: str, imported: str, base: str | None, project: Project
) -> None:
    code = FLOW.replace("IMPORT", imported).replace("BASE", base or "Flow")
    project.write({".git/HEAD": "", "lib/__init__.py": "", "lib/flows.py": flows, "flip.py": code})
    project.write({"lib/other.py": "class Flow:\n    pass\n"})
    out = project.run("check", "--isolated", "--select", "TM403", "--output-format", "concise", "flip.py")
    assert ("TM403" in out) is (base is not None)


SHIFT = """
import torch
from lib.flows import Flow


class Shift(Flow):
    event_dim = 1

    def _call(self, x):
        return x + 1

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[:-1])
"""


@pytest.mark.parametrize(
    ("flows", "found"),
    [
        (MODULE, True),
        (MODULE.replace("pass", "domain = codomain = torch.distributions.constraints.real"), False),
        (MODULE.replace("torch.distributions.Transform, ", ""), False),
    ],
)
def test_a_class_that_says_no_domain_and_neither_does_that_of_another_file(
    flows: str, found: bool, project: Project
) -> None:
    project.write({".git/HEAD": "", "lib/__init__.py": "", "lib/flows.py": flows, "shift.py": SHIFT})
    out = project.run("check", "--isolated", "--select", "TM404", "--output-format", "concise", "shift.py")
    assert ("TM404" in out) is found


# ---- which files are looked at ----------------------------------------------------------------------------

USES_F = "from user import F\n"


@pytest.mark.parametrize(
    ("files", "stays"),
    [
        ({".git/HEAD": "", "tools/deep/b.py": USES_F}, True),
        ({"pyproject.toml": "", "tools/deep/b.py": USES_F}, True),
        ({"b.py": USES_F}, True),
        ({".git/HEAD": "", "b.ipynb": '{"cells": [{"source": ["from user import *\\n", "F.relu(x)"]}]}'}, True),
        ({".git/HEAD": "", "b.ipynb": '{"cells": [{"source": "import user\\nF.relu(x)"}]}'}, True),
        ({".git/HEAD": "", "b.ipynb": '{"cells": [{"source": "# as a user\\nF.relu(x)"}]}'}, False),
        ({".git/HEAD": "", "b.ipynb": '{"cells": [{"source": "from user import f\\nF.relu(x)"}]}'}, False),
        ({".git/HEAD": "", "b.ipynb": '{"cells": [{"source": "from user import (f,\\n  F)\\nF.relu(x)"}]}'}, True),
        ({".git/HEAD": "", "b.ipynb": '{"cells": [{"source": "%run user.py\\nF.relu(x)"}]}'}, True),
        ({".git/HEAD": "", "b.pyi": USES_F}, True),
        ({".git/HEAD": "", "b.py": "from user import F\nprint F.x\n"}, True),  # Python 2
        ({".git/HEAD": "", "b.py": "from user import (\n    f,\n    F,  # why\n)\n"}, True),
        ({".git/HEAD": "", "b.py": "from user import f, \\\n    F\n"}, True),
        ({".git/HEAD": "", "b.py": "try:\n    from user import F\nexcept ImportError:\n    pass\n"}, True),
        ({".git/HEAD": "", "b.py": "import torch.nn.functional as F\nimport user\nuser.f(F.relu)\n"}, False),
        ({".git/HEAD": "", "b.py": "import torch.nn.functional as F\nsave('runs/user', F)\n"}, False),
        ({".git/HEAD": "", "b.py": "from user import f\nimport torch\ntorch.F\n"}, False),
        ({".git/HEAD": "", "tools/b.py": USES_F, "tools/user.py": "F = 3\n"}, False),
        ({".git/HEAD": "", "build/b.py": USES_F}, False),
        ({".git/HEAD": "", ".gitignore": "b.py\n", "b.py": USES_F}, False),
        ({".git/HEAD": "", "b.py": "from .user import *\n", "user.py": '__all__ = ["f"]\n' + USER}, False),
    ],
)  # fmt: skip
def test_files_that_count(
    files: dict[str, str], stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = set()
    for number, arguments in enumerate(
        (["."], ["user.py"], [".", "--jobs", "2"], ["-", "--stdin-filename", "user.py"])
    ):
        project = Project(tmp_path / str(number), monkeypatch)
        project.write({"user.py": USER, **files})
        text = project.read("user.py")
        if "-" in arguments:
            (project.path / "user.py").unlink()
        python_2 = "." in arguments and "print F.x" in files.get("b.py", "")
        out = project.run("check", "--fix", "--isolated", *arguments, stdin=text.encode(), python_2=python_2)
        results.add(out if "-" in arguments else project.read("user.py"))
    (text,) = results
    assert ("import torch.nn.functional as F" in text) is stays
    assert "torch.sigmoid(x)" in text


NOTEBOOK = (
    '{"cells": [{"cell_type": "code", "metadata": {}, "source": ["import torch.nn.functional as F\\n", '
    '"y = F.sigmoid(x)"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n'
)


@pytest.mark.parametrize(
    ("files", "stays"),
    [
        ({"b.py": "from user import F\n"}, False),  # which is a user.py that is elsewhere
        ({"b.ipynb": '{"cells": [{"source": "from user import F\\nF.relu(x)"}]}'}, False),
        ({"b.ipynb": '{"cells": [{"source": "%run user.ipynb\\nF.relu(x)"}]}'}, True),
        ({"b.ipynb": '{"cells": [{"source": "%run user.ipynb\\nrelu(x)"}]}'}, False),
        ({"b.py": "import import_ipynb\nfrom user import F\n"}, True),
    ],
)
def test_what_takes_names_from_a_notebook(files: dict[str, str], stays: bool, project: Project) -> None:
    project.write({".git/HEAD": "", "user.ipynb": NOTEBOOK, **files})
    project.run("check", "--fix", "--isolated", "user.ipynb")
    text = project.read("user.ipynb")
    assert "torch.sigmoid(x)" in text
    assert ("functional as F" in text) is stays


# ---- every rule that renames --------------------------------------------------------------------------------

TAKES = [
    "from layers_{number} import {name}\n",
    "from layers_{number} import *\n{name}\n",
    "import layers_{number} as la\nla.{name}\n",
    "import importlib\nimportlib.import_module('layers_{number}').{name}\n",
    "from unittest.mock import patch\nwith patch('layers_{number}.{name}'):\n    pass\n",
]


def renamed() -> list[tuple[str, str]]:
    """Module and name of all that a rule renames or moves."""
    found: dict[tuple[str, str], None] = {}
    for rule in catalogue().rules:
        if rule.files:
            continue
        for old in (*(symbol for symbol, values in rule.symbols.items() if values.get("new")), *rule.modules):
            module, _, name = old.rpartition(".")
            if module and not module.rpartition(".")[2][:1].isupper():
                found[module, name] = None
    return list(found)


def test_all_that_rules_rename_can_still_be_taken(project: Project) -> None:
    names = renamed()
    assert len(names) > 300
    project.write({".git/HEAD": ""})
    for number, (module, name) in enumerate(names):
        project.write(
            {f"layers_{number}.py": f"from {module} import {name}\n\n\ndef f():\n    return {name}()\n"}
        )
        hidden = name.startswith("_")  # a star import does not take it
        take = TAKES[0 if hidden else number % len(TAKES)].format(number=number, name=name)
        project.write({f"user_{number}.py": take})
    before = {path.name: path.read_text() for path in project.path.glob("layers_*.py")}
    project.run("check", "--fix", "--isolated", "--select", "ALL", "--jobs", "1", ".")
    changed = sum(project.read(name) != text for name, text in before.items())
    assert changed > 200
    for number in range(len(names)):
        project.write({"main.py": f"import user_{number}\n"})
        assert works(project.path, project.monkeypatch), project.read(f"layers_{number}.py")


LAYERS = """\
from torch.cuda.amp import autocast
from torch.nn.init import xavier_uniform


def f(m, x):
    with autocast():
        xavier_uniform(x)
        return m(x)
"""


def test_a_name_that_is_called_in_another_way_now_is_no_alias(project: Project) -> None:
    """`autocast` of `torch.amp` wants the device: who imports the name from here does not give it."""
    train = "from layers import autocast, xavier_uniform\n\nwith autocast(enabled=False):\n    xavier_uniform(w)\n"
    project.write({"layers.py": LAYERS, "train.py": train})
    project.fix(unsafe=True)
    assert project.read("layers.py") == (
        LAYERS.replace("from torch.cuda.amp", "import torch\nfrom torch.cuda.amp")
        .replace("import xavier_uniform", "import xavier_uniform_ as xavier_uniform")
        .replace("with autocast()", 'with torch.amp.autocast("cuda")')
    )
    assert project.read("train.py") == train


def test_many_processes_share_what_one_has_read(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        f"a{number}.py": "import torch\nfrom layers import ger\ny = torch.ger(a, b)\n"
        for number in range(250)
    }
    project.write({"pyproject.toml": "", "layers.py": "from torch import ger\n", **files})
    one = project.run("check", "--isolated", "--jobs", "1", "--output-format", "concise", ".")
    assert project.run("check", "--isolated", "--jobs", "4", "--output-format", "concise", ".") == one
    project.run("check", "--isolated", "--fix", "--jobs", "4", ".")
    assert project.read("a7.py") == "import torch\nfrom layers import ger\ny = torch.outer(a, b)\n"
    assert project.read("layers.py") == "from torch import outer as ger\n"


def test_a_fix_that_others_keep_from_being_made_says_so(project: Project) -> None:
    text = "from torch.cuda.amp import GradScaler\n\nscaler = GradScaler()\n"
    name = text.split()[3]
    project.write({".git/HEAD": "", "scaled.py": text, "test.py": f"import scaled\nscaled.{name}\n"})
    found = json.loads(project.run("check", "--isolated", "--output-format", "json", "scaled.py"))
    assert [(item["location"]["row"], item["fix"]) for item in found] == [(1, None)]
    assert [place["location"]["row"] for place in found[0]["places"]] == [3]
    for item in found:
        assert item["blocked_by"] == [{"kind": "taken", "name": name}]
    printed = project.run("check", "--isolated", "--output-format", "full", "scaled.py")
    assert f"other code imports `{name}` from this file" in printed
