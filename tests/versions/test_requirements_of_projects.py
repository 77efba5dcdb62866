"""The oldest torch that projects of every make ask for, as `check --verbose` says it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from harness.project import Project

CODE = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path, monkeypatch)
    made.write(".git/HEAD", "ref: refs/heads/main\n")
    made.write("package/train.py", CODE)
    return made


def minimum(project: Project, path: str = "package") -> str | None:
    done = project.run("check", "--verbose", path, code=1)
    found = re.search(r"^minimum: (?:torch )?([\w.]+)", done.stderr, re.MULTILINE)
    assert found is not None, done.stderr
    return None if found[1] == "unknown" else found[1]


SETUP_FILE = "from setuptools import setup\n{0}\nsetup(name='a', install_requires={1})\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        # lists of Hugging Face projects
        (
            "setup.py",
            "_deps = ['numpy', 'torch>=2.6']\n"
            "deps = {b: a for a, b in (re.findall(r'^(([^!=<>]+).*)', x)[0] for x in _deps)}\n"
            "def deps_list(*names): return [deps[name] for name in names]\n"
            "extras = {}\nextras['torch'] = deps_list('torch')\n"
            "setup(install_requires=[deps['numpy']], extras_require=extras)\n",
            "2.6",
        ),
        ("setup.py", SETUP_FILE.format("deps = {'torch': 'torch>=2.1'}", "[deps['torch']]"), "2.1"),
        # strings that are put together
        ("setup.py", SETUP_FILE.format("OLDEST = '2.0'", "[f'torch>={OLDEST}', 'numpy']"), "2.0"),
        ("setup.py", SETUP_FILE.format("OLDEST = '2.0'", "['torch>=' + OLDEST]"), "2.0"),
        ("setup.py", SETUP_FILE.format("OLDEST = '2.0'", "['torch>=%s' % OLDEST]"), "2.0"),
        ("setup.py", SETUP_FILE.format("OLDEST = '2.0'", "['torch>={}'.format(OLDEST)]"), "2.0"),
        (
            "setup.py",
            SETUP_FILE.format("r = ['numpy']\nr = ['>='.join(['torch', '2.0'])] + r", "r"),
            "2.0",
        ),
        ("setup.py", SETUP_FILE.format("r = ['numpy']\nr += ['torch>=1.9']", "r"), "1.9"),
        ("setup.py", SETUP_FILE.format("r = ['numpy']\nr.append('torch>=1.9')", "r"), "1.9"),
        ("setup.py", SETUP_FILE.format("r = ['numpy']\nr.extend(['torch>=1.9'])", "list(r)"), "1.9"),
        ("setup.py", SETUP_FILE.format("r = 'numpy\\ntorch>=1.9'", "r.split('\\n')"), "1.9"),
        # what it refuses to be built with
        (
            "setup.py",
            "import torch\nold = torch.__version__ < '1.8'\n"
            "assert not old, 'Requires PyTorch >= 1.8'\nsetup(install_requires=['numpy'])\n",
            "1.8",
        ),
        (
            "setup.py",
            "OLD = '2.5.1'\nif missing:\n    raise ImportError(f'A requires PyTorch >= {OLD}, <= 3')\nsetup()\n",
            "2.5",
        ),
        # tables of tools
        ("pyproject.toml", '[tool.pdm.dev-dependencies]\ngpu = ["torch>=1.12"]\n', "1.12"),
        ("pyproject.toml", '[tool.uv]\ndev-dependencies = ["torch>=1.12"]\n', "1.12"),
        ("pyproject.toml", '[tool.pixi.dependencies]\npytorch = ">=2.2,<3"\n', "2.2"),
        ("pyproject.toml", '[tool.pixi.pypi-dependencies]\ntorch = { version = ">=2.2" }\n', "2.2"),
        ("pyproject.toml", '[tool.hatch.envs.test]\ndependencies = ["torch==2.9"]\n', None),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntorch = [{version = "^1.10", python = "<3.9"}, {version = "^2.0"}]\n',
            "1.10",
        ),
        ("pixi.toml", '[dependencies]\npytorch = { version = "2.3.*" }\n', "2.3"),
        ("Pipfile", '[packages]\ntorch = ">=1.13"\n[dev-packages]\npytest = "*"\n', "1.13"),
        # what is not for the library
        ("pyproject.toml", '[dependency-groups]\ndocs = ["torch==1.10"]\n', None),
        ("requirements-docs.txt", "torch==1.10\n", None),
        ("requirements/typing.txt", "torch==2.9\n", None),
        ("requirements/pytorch/base.txt", "torch >=2.1, <2.10\n", "2.1"),
        ("docs/requirements.txt", "torch==1.10\n", None),
    ],
)
def test_what_projects_have(project: Project, name: str, text: str, expected: str | None) -> None:
    project.write(name, text)
    assert minimum(project) == expected


READ_BY = [
    "open('requirements/run.txt').read().splitlines()",
    "open(os.path.join(here, 'requirements', 'run.txt')).readlines()",
    "(Path(__file__).parent / 'requirements' / 'run.txt').read_text().split('\\n')",
    "parse_requirements('requirements/run.txt', session='x')",
    "[line.strip() for line in open('requirements/run.txt') if line]",
    "read('requirements/run.txt')",
]


@pytest.mark.parametrize("read", READ_BY)
def test_a_setup_that_reads_a_file(project: Project, read: str) -> None:
    project.write("setup.py", SETUP_FILE.format(f"needed = {read}", "needed"))
    project.write("requirements/run.txt", "numpy\ntorch>=1.11\n")
    project.write("requirements.txt", "torch==2.9\n")  # of those who work on it
    assert minimum(project) == "1.11"


def test_a_project_that_names_its_file(project: Project) -> None:
    project.write("needed.txt", "torch>=1.11\n")
    for text in (
        '[tool.setuptools.dynamic]\ndependencies = {file = ["needed.txt"]}\n',
        '[tool.setuptools.dynamic]\ndependencies = {file = "needed.txt"}\n',
        '[tool.hatch.metadata.hooks.requirements_txt]\nfiles = ["needed.txt"]\n',
    ):
        project.write("pyproject.toml", text)
        assert minimum(project) == "1.11"


@pytest.mark.parametrize(("environment", "expected"), [(None, "1.13"), ("pytorch=2.1", "2.1")])
def test_requirements_of_developers_come_last(
    project: Project, environment: str | None, expected: str
) -> None:
    project.write("requirements-dev.txt", "torch==1.13.1\n")
    if environment is not None:
        project.write("environment.yml", f"dependencies: ['{environment}']\n")
    assert minimum(project) == expected


@pytest.mark.parametrize(("required", "expected"), [("numpy", None), ("torch>=2.2", "2.2")])
def test_documentation_has_the_minimum_of_the_library(
    project: Project, required: str, expected: str | None
) -> None:
    project.write("docs/requirements.txt", "torch==1.10\n")
    project.write("docs/source/requirements.txt", "torch==1.10\n")
    project.write("docs/source/conf.py", CODE)
    project.write("setup.py", f"setup(install_requires=['{required}'])")
    assert minimum(project, "docs") == expected


def test_a_setup_that_is_meant_to_take_long(project: Project) -> None:
    doubled = "".join(f"a{n} = a{n + 1} + a{n + 1}\n" for n in range(2000))
    listed = "".join(f"b{n} = '>='.join([a{n}, f'{{a{n}}}'])\n" for n in range(2000))
    project.write("setup.py", doubled + listed + "setup(install_requires=[a0, b0, 'torch'])\n")
    started = time.monotonic()
    assert minimum(project) is None
    assert time.monotonic() - started < 20


RECIPE = """\
{{% set version = "0.5.3" %}}
{{% set oldest = "1.10" %}}
{{# a comment
  - pytorch >=1.1
#}}
package:
  name: ignite
  version: {{{{ version }}}}
source:
  url: https://example.com/{{{{ version[0] }}}}/ignite-{{{{ version }}}}.tar.gz
build:
  script: a  # [win]
  script: "{{{{ PYTHON }}}} -m pip install ."  # [not win]
requirements:
  host:
    - pytorch >=1.4
    - {{{{ pin_compatible("numpy") }}}}
  run:
    - python >=3.9,<=3.13
    {{% if cuda %}}
    - {0}
    {{% endif %}}
    - {{{{ compiler("cxx") }}}}
test:
  requires:
    - pytorch >=1.2
"""


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("pytorch >=1.13,<3", "1.13"),
        ("pytorch >={{ oldest }}", "1.10"),
        ("pytorch 1.13.*", "1.13"),
        ("conda-forge::pytorch=2.0  # [linux]", "2.0"),
        ("torchvision >=0.14", "1.13"),
        ("pytorch {{ pinned }}", None),
        ("pytorch", None),
    ],
)
@pytest.mark.parametrize("directory", ["", "conda.recipe/", ".conda/", "conda/recipe/"])
def test_recipes_of_conda(project: Project, directory: str, item: str, expected: str | None) -> None:
    project.write(f"{directory}meta.yaml", RECIPE.format(item))
    assert minimum(project) == expected


def test_recipes_with_outputs(project: Project) -> None:
    outputs = "outputs:\n  - name: a\n    requirements:\n      run_constrained: [pytorch >=2.1]\n"
    project.write("conda.recipe/meta.yaml", outputs)
    assert minimum(project) == "2.1"


def test_what_pip_installs_says_it_before_a_recipe(project: Project) -> None:
    project.write("conda.recipe/meta.yaml", RECIPE.format("pytorch >=2.0"))
    project.write("setup.py", SETUP_FILE.format("", "['torch>=1.8']"))
    assert minimum(project) == "1.8"


def test_a_recipe_that_is_no_yaml_is_passed_over(project: Project) -> None:
    project.write("meta.yaml", "requirements:\n  run:\n{{ torch }}\n - pytorch >=2.0\n  x: [\n")
    done = project.run("check", "package", code=1)
    assert "meta.yaml" not in done.stderr


def test_a_recipe_takes_linear_time(project: Project) -> None:
    started = time.monotonic()
    for text in ("{%" * 300_000, "{#" * 300_000, "{{" * 300_000, "{% set a" * 100_000, "- pytorch " * 90_000):
        project.write("meta.yaml", text)
        project.run("check", "package", code=1)
    assert time.monotonic() - started < 20


DATA = "import torchdata.stateful_dataloader as loading\n\nloader = loading.StatefulDataLoader(data)\n"
TORCH = '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch>=2.1"{0}]\n'
POETRY = '[tool.poetry.dependencies]\ntorch = "^2.1"\n'


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": TORCH.format(', "torchdata>=0.10"')},
        {"pyproject.toml": TORCH.format("") + '[project.optional-dependencies]\nd = ["torchdata~=0.10"]\n'},
        {"pyproject.toml": TORCH.format("") + '[dependency-groups]\nd = ["torchdata==0.10.*"]\n'},
        {"pyproject.toml": TORCH.format("") + '[tool.pdm.dev-dependencies]\nd = ["torchdata>=0.10"]\n'},
        {"pyproject.toml": TORCH.format("") + '[tool.uv]\ndev-dependencies = ["torchdata>=0.10"]\n'},
        {"pyproject.toml": f'{POETRY}torchdata = "^0.10"\n'},
        {
            "pyproject.toml": f'{POETRY}[tool.poetry.group.d.dependencies]\ntorchdata = {{version = "~0.10"}}\n'
        },
        {"pyproject.toml": TORCH.format(""), "requirements.txt": "torchdata==0.10.1\n"},
        {"setup.cfg": "[options]\ninstall_requires =\n    torch>=2.1\n    torchdata>=0.10\n"},
        {
            "setup.cfg": "[options]\ninstall_requires =\n    torch>=2.1\n"
            "[options.extras_require]\nd =\n    torchdata>=0.10\n"
        },
        {"setup.py": SETUP_FILE.format("", "['torch>=2.1', 'torchdata>=0.10']")},
        {"setup.py": "setup(install_requires=['torch>=2.1'], extras_require={'d': ['torchdata>=0.10']})\n"},
        {
            "requirements.txt": "torch>=2.1\n-r requirements-data.txt\n",
            "requirements-data.txt": "torchdata>=0.10",
        },
        {"environment.yml": "dependencies:\n- pytorch>=2.1\n- torchdata=0.10\n"},
        {"environment.yml": "dependencies:\n- pytorch>=2.1\n- pip:\n  - torchdata>=0.10\n"},
        {"Pipfile": '[packages]\ntorch = ">=2.1"\ntorchdata = ">=0.10"\n'},
        {"pixi.toml": '[dependencies]\npytorch = ">=2.1"\n[pypi-dependencies]\ntorchdata = ">=0.10"\n'},
    ],
)
def test_a_companion_that_is_declared_has_its_own_minimum(project: Project, files: dict[str, str]) -> None:
    for name, text in files.items():
        project.write(name, text)
    project.write("package/data.py", DATA)
    assert not project.run("check", "--select", "TM005", "package", code=0).stderr.count("error")


@pytest.mark.parametrize(
    "more",
    [
        "",  # the release of torchdata that came out with torch 2.1
        ', "torchdata"',
        ', "torchdata<0.11"',
        ', "torchdata>=0.7.1"',
        ", \"torchdata>=0.7.1; python_version<'3.9'\", \"torchdata>=0.10; python_version>='3.9'\"",
    ],
)
def test_the_minimum_of_a_companion_without_a_newer_bound(project: Project, more: str) -> None:
    project.write("pyproject.toml", TORCH.format(more))
    project.write("package/data.py", DATA)
    done = project.run("check", "--select", "TM005", "package", code=1)
    assert "exists since torchdata 0.8, but the project supports 0.7" in done.stdout


def test_a_companion_is_as_new_as_the_torch_beside_it(project: Project) -> None:
    """Every torchvision asks for one torch: an older one than goes with the minimum cannot be installed."""
    project.write("pyproject.toml", TORCH.format(', "torchvision>=0.10"').replace("2.1", "1.11"))
    code = "import torchvision\n\nmodel = torchvision.models.get_model('resnet18')\n"
    project.write("package/models.py", code)
    done = project.run("check", "--select", "TM005", "package", code=1)
    assert "since torchvision 0.14, but the project supports 0.12" in done.stdout


QUANTIZED = "from torchao.quantization import int8_weight_only\n\nconfig = int8_weight_only()\n"


@pytest.mark.parametrize(
    ("files", "safe"),
    [
        ({}, True),  # its minimum does not follow from torch's
        ({"pyproject.toml": TORCH.format("")}, True),
        ({"pyproject.toml": TORCH.format(', "torchao"')}, True),
        ({"pyproject.toml": TORCH.format(', "torchao>=0.9,<1"')}, True),
        ({"pyproject.toml": TORCH.format(', "torchao>=0.5"')}, False),
        ({"pyproject.toml": f'{POETRY}torchao = "^0.5"\n'}, False),
        ({"setup.py": SETUP_FILE.format("", "['torchao==0.7.0']")}, False),
        ({"setup.cfg": "[options]\ninstall_requires =\n    torchao~=0.8\n"}, False),
        ({"requirements.txt": "torch>=2.1\ntorchao>0.7\n"}, False),
        ({"environment.yml": "dependencies:\n- pytorch>=2.1\n- torchao=0.8\n"}, False),
    ],
)
def test_a_neighbor_has_the_minimum_that_is_declared(
    project: Project, files: dict[str, str], safe: bool
) -> None:
    for name, text in files.items():
        project.write(name, text)
    project.write("package/quantized.py", QUANTIZED)
    done = project.run("check", "package/quantized.py", code=1)
    assert "`torchao.quantization.int8_weight_only` was replaced" in done.stdout
    assert ("1 fixable with `--fix`" in done.stderr) is safe


def test_a_neighbor_is_as_new_as_the_target_allows(project: Project) -> None:
    project.write("package/quantized.py", QUANTIZED)
    done = project.run("check", "--target", "2.8", "--output-format", "full", "package/quantized.py", code=1)
    assert "info" in done.stdout
    assert "TM870" in project.run("check", "package/quantized.py", code=1).stdout
    project.write("requirements.txt", "torchao>=0.16\n")
    done = project.run("check", "--target", "2.8", "package/quantized.py", code=1)
    assert "error" in done.stdout


def test_a_name_of_a_neighbor_is_not_reported_without_its_import(project: Project) -> None:
    project.write("package/other.py", "import torch\n\nmodel = pytorch_lightning.Trainer(gpus=1)\n")
    project.run("check", "package/other.py", code=0)
