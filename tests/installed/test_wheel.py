"""The wheel, built from the sdist and installed in a fresh environment: the catalogue must be in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

from torchmigrate.catalogue.builtin import RULES

ROOT = Path(__file__).parents[2]
EXAMPLE = """\
import functorch
import torch

scaler = torch.cuda.amp.GradScaler()
y = functorch.vmap(f)(x)
z = x.cuda(non_blocking=True)  # torchmigrate: ignore
"""


def run(*command: str | Path, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command that must not see this checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    # Builds the sdist, and the wheel from the sdist.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, ROOT, cwd=directory)
    assert len(list(directory.glob("*.tar.gz"))) == 1
    (found,) = directory.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of programs of an environment that has the wheel, and else only its dependencies."""
    home = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(home, with_pip=False)
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    run(
        *(
            sys.executable,
            "-m",
            "pip",
            "--python",
            programs / "python",
            "install",
            "--quiet",
            "--no-deps",
            "--no-compile",  # takes as long as all the rest
            wheel,
        ),
        cwd=home,
    )
    own = run(
        programs / "python", "-c", "import site; print(site.getsitepackages()[0])", cwd=home
    ).stdout.strip()
    # The dependencies come from the environment of the tests, behind what is installed in this one.
    others = {str(Path(module.__file__ or "").parent.parent) for module in (yaml, pytest)}
    Path(own, "dependencies.pth").write_text("\n".join(sorted(others)) + "\n")
    where = run(
        programs / "python", "-c", "import torchmigrate; print(torchmigrate.__file__)", cwd=home
    ).stdout
    assert Path(own) in Path(where.strip()).parents
    return programs


def test_contents(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    rules = {
        f"torchmigrate/rules/{path.relative_to(ROOT / 'rules').as_posix()}"
        for path in ROOT.glob("rules/**/*.yaml")
    }
    assert rules
    template = "torchmigrate/authoring/template.yaml"
    assert {name for name in names if name.endswith(".yaml")} == {*rules, template}
    assert {"torchmigrate/catalogue/_compiled.rules", "torchmigrate/py.typed"} <= names
    libraries = ("torch", "torchvision", "torchaudio", "torchtext", "torchdata", "functorch")
    assert {f"torchmigrate/versions/api/{library}.gz" for library in libraries} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "tools/", "rules/", "hatch_build")) for name in names)


def test_installed_catalogue(scripts: Path, tmp_path: Path) -> None:
    codes = sorted(
        entry["code"]
        for path in ROOT.glob("rules/**/*.yaml")
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
    )
    code = """
        import json, sys
        from torchmigrate.catalogue.store import default_catalogue, examples_of, rule_files, source_of
        catalogue = default_catalogue()
        codes = sorted(head.code for head in catalogue.heads)
        compiled = "yaml" not in sys.modules
        rule = catalogue.find("cuda-amp-autocast")
        examples, source = len(examples_of(rule)), str(source_of(rule)[0])
        print(json.dumps([codes, compiled, examples, source, len(rule_files())]))
    """
    found = run(
        scripts / "python", "-c", "\n".join(line.strip() for line in code.splitlines()), cwd=tmp_path
    ).stdout
    installed, compiled, examples, source, files = json.loads(found)
    assert installed == codes
    assert compiled
    assert examples >= 3
    assert source.startswith(str(scripts.parent))
    assert files == len(list(ROOT.glob("rules/**/*.yaml")))


def test_installed_program(scripts: Path, tmp_path: Path) -> None:
    listed = json.loads(
        run(scripts / "torchmigrate", "rules", "--output-format", "json", cwd=tmp_path).stdout
    )
    codes = {rule["code"] for rule in listed}
    checkout = run(sys.executable, "-m", "torchmigrate", "rules", "--output-format", "json", cwd=ROOT).stdout
    assert codes == {rule["code"] for rule in json.loads(checkout)}
    assert codes >= {rule.code for rule in RULES}
    (tmp_path / "example.py").write_text(EXAMPLE)
    checked = run(scripts / "torchmigrate", "check", "--output-format", "json", cwd=tmp_path, check=False)
    assert checked.returncode == 1, checked.stderr
    assert {"TM202", "TM300", "TM010"} <= {finding["code"] for finding in json.loads(checked.stdout)}
    page = run(scripts / "torchmigrate", "plan", "--output-format", "html", cwd=tmp_path).stdout
    assert page.startswith("<!DOCTYPE html>") and "TM202" in page


def test_installed_recorder(scripts: Path, tmp_path: Path) -> None:
    """The command, and the option that pytest has by itself."""
    (tmp_path / "test_names.py").write_text(
        "import torch\n\n\ndef test_names():\n    x = torch.Rows()\n    assert x.symeig() == 1\n    y = x.symeig()\n"
    )
    # What the recorder needs to know of torch: nothing.
    (tmp_path / "torch.py").write_text("class Rows:\n    def symeig(self):\n        return 1\n")
    evidence = tmp_path / ".torchmigrate" / "evidence.json"
    tests = (scripts / "python", "-m", "pytest", "-p", "no:cacheprovider", "-q")
    for command in ((scripts / "torchmigrate", "record", "--", *tests), (*tests, "--torchmigrate-record")):
        run(*command, cwd=tmp_path)
        found = json.loads(evidence.read_text())["files"]["test_names.py"]["places"]
        assert found == {"7:11 symeig": {"receiver": ["object:torch.Rows:torch.Rows"]}}
        evidence.unlink()


def test_the_readme_says_how_to_install_it(wheel: Path, tmp_path: Path) -> None:
    """The commands at the top of README.md install and run it, with the wheel in a local index."""
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()[:12]
    (install,) = [line.partition("#")[0] for line in lines if line.startswith("pip install torchmigrate")]
    (once,) = [line.partition("#")[0].split() for line in lines if line.startswith("uvx ")]
    index = tmp_path / "index" / "torchmigrate"
    index.mkdir(parents=True)
    (index / wheel.name).write_bytes(wheel.read_bytes())
    (index / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>\n')
    project, home = tmp_path / "project", tmp_path / "venv"
    project.mkdir()
    (project / "a.py").write_text("import torch\n\ny = torch.ger(a, b)\n")
    venv.create(home, with_pip=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {
        "PATH": os.pathsep.join((str(home / "bin"), os.environ["PATH"])),
        "PIP_EXTRA_INDEX_URL": index.parent.as_uri(),
        "PIP_NO_COMPILE": "1",
    }
    done = subprocess.run(
        ["bash", "-c", install], cwd=project, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1 and "a.py:3:5: TM110 [*]" in done.stdout, done.stdout + done.stderr
    # `uvx` runs the program of that name in the newest release.
    assert once == ["uvx", "torchmigrate", "check"]
    assert (home / "bin" / once[1]).exists()
