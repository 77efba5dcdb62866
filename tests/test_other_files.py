"""What other files of a project take from a file stays there, whichever files are given."""

from __future__ import annotations

import io
import itertools
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from harness.fakes import fake_libraries

from torchmigrate import cli
from torchmigrate.names.resolver import LIBRARY_ROOTS


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

    def run(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run torchmigrate there; stdout."""
        streams = [io.TextIOWrapper(io.BytesIO(data), write_through=True) for data in (stdin, b"", b"")]
        with self.monkeypatch.context() as patch:
            patch.chdir(self.path)
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as stop:
                cli.main([*arguments])
        out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])  # type: ignore[attr-defined]
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
