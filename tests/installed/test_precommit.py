"""The hooks, run by the real pre-commit on a small repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from torchmigrate.source.kinds import KINDS as PYTHON
from torchmigrate.source.other import _BY_SUFFIX, kind_of_name

SUFFIXES = tuple(PYTHON)
ROOT = Path(__file__).parents[2]
INSTALLED = ("pyproject.toml", "README.md", "hatch_build.py", ".pre-commit-hooks.yaml", "src", "rules")
OLD = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"
FIXED = 'import torch\n\nscaler = torch.amp.GradScaler("cuda")\n'
REMOVED = "import torch\n\ny = torch.rfft(x, 4)\n"


def run(*command: str, cwd: Path, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "PYTHON", "PRE_COMMIT"))
    }
    done = subprocess.run(
        command, cwd=cwd, env={**kept, **more}, capture_output=True, text=True, encoding="utf-8"
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def commit(directory: Path) -> str:
    """Commit everything in a directory, which becomes a repository; the commit."""
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    run("git", "init", "--quiet", cwd=directory)
    run("git", "add", "--all", cwd=directory)
    run(*git, "commit", "--quiet", "--no-verify", "--message=all", cwd=directory)
    return run("git", "rev-parse", "HEAD", cwd=directory).stdout.strip()


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository with the working tree as it is, and its commit."""
    repository = tmp_path_factory.mktemp("torchmigrate")
    for name in INSTALLED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, repository / name, ignore=shutil.ignore_patterns("__pycache__", "_compiled.rules")
            )
        else:
            shutil.copy(source, repository / name)
    return repository, commit(repository)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environment that it installs the hooks into, once for all tests."""
    return tmp_path_factory.mktemp("pre-commit")


def pre_commit(
    hook: str, project: Path, hooks: tuple[Path, str], home: Path
) -> subprocess.CompletedProcess[str]:
    repository, revision = hooks
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {repository.as_posix()}\n  rev: {revision}\n  hooks:\n  - id: {hook}\n"
    )
    commit(project)
    return run(
        *(sys.executable, "-m", "pre_commit", "run", "--all-files", "--color=never"),
        cwd=project,
        check=False,
        PRE_COMMIT_HOME=str(home),
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        PIP_NO_COMPILE="1",  # takes as long as all the rest
    )


def test_torchmigrate(tmp_path: Path, hooks: tuple[Path, str], home: Path) -> None:
    tmp_path.joinpath("old.py").write_text(OLD)
    tmp_path.joinpath("data.txt").write_text(OLD)
    done = pre_commit("torchmigrate", tmp_path, hooks, home)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Failed" in done.stdout and "old.py:3:10: TM202 [*] " in done.stdout
    assert "data.txt" not in done.stdout
    assert tmp_path.joinpath("old.py").read_text() == OLD
    tmp_path.joinpath("pyproject.toml").write_text('[tool.torchmigrate]\nextend-exclude = ["old.py"]\n')
    assert "Passed" in pre_commit("torchmigrate", tmp_path, hooks, home).stdout


def test_torchmigrate_fix(tmp_path: Path, hooks: tuple[Path, str], home: Path) -> None:
    tmp_path.joinpath("old.py").write_text(OLD)
    done = pre_commit("torchmigrate-fix", tmp_path, hooks, home)
    assert done.returncode == 1 and "Fixed 1 finding in 1 file." in done.stdout, done.stdout + done.stderr
    assert tmp_path.joinpath("old.py").read_text() == FIXED
    assert pre_commit("torchmigrate-fix", tmp_path, hooks, home).returncode == 0
    tmp_path.joinpath("old.py").write_text(REMOVED)
    done = pre_commit("torchmigrate-fix", tmp_path, hooks, home)
    assert done.returncode == 1 and "old.py:3:5: TM151 " in done.stdout


# Of each kind that directories give: what is found in it.
KINDS = {
    "old.py": (OLD, "TM202"),
    "run.sh": ("python -m torch.distributed.launch --use_env train.py\n", "TM970"),
    "jobs/train.slurm": ("#SBATCH -n 1\nsrun python -m torch.distributed.launch --use_env train.py\n", "TM970"),
    "Makefile": ("train:\n\tpython -m torch.distributed.launch --use_env train.py\n", "TM970"),
    "docker/Dockerfile.gpu": ('CMD ["python", "-m", "torch.distributed.launch", "--use_env", "a.py"]\n', "TM970"),
    ".github/workflows/ci.yml": ("jobs:\n  - run: python -m torch.distributed.launch --use_env a.py\n", "TM970"),
    "README.md": ("```\npython -m torch.distributed.launch --use_env a.py\n```\n", "TM970"),
    "requirements/test.txt": ("torch==1.4.0\ntorchvision==0.6.0\n", "TM983"),
    "pyproject.toml": ('[project]\ndependencies = ["torch==1.4.0", "torchvision==0.6.0"]\n', "TM983"),
    "environment.yml": ("dependencies:\n  - pytorch=1.7\n  - torchvision=0.7\n", "TM983"),
    "setup.cfg": ("[options]\ninstall_requires =\n  torch==1.4.0\n  torchvision==0.6.0\n", "TM983"),
    "csrc/a.cu": ("#include <torch/extension.h>\nvoid f(at::Tensor x) { AT_CHECK(x.is_cuda()); }\n", "TM975"),
}  # fmt: skip
OTHERS = {"Cargo.toml": 'torch = "1"\n', "notes.txt": OLD, "data.json": "{}\n", "LICENSE": OLD}


def test_torchmigrate_all(tmp_path: Path, hooks: tuple[Path, str], home: Path) -> None:
    for name, text in {**{name: text for name, (text, _) in KINDS.items()}, **OTHERS}.items():
        tmp_path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        tmp_path.joinpath(name).write_text(text)
    done = pre_commit("torchmigrate-all", tmp_path, hooks, home)
    assert done.returncode == 1, done.stdout + done.stderr
    found = dict(re.findall(r"^(\S+?):\d+:\d+: (TM\d+)", done.stdout, re.MULTILINE))
    assert found == {name: code for name, (_, code) in KINDS.items()}, done.stdout + done.stderr
    assert "could not be done" not in done.stdout
    # The hook for Python leaves them alone.
    done = pre_commit("torchmigrate", tmp_path, hooks, home)
    assert set(re.findall(r"^(\S+?):\d+:\d+: TM", done.stdout, re.MULTILINE)) == {"old.py"}


def test_torchmigrate_all_fix(tmp_path: Path, hooks: tuple[Path, str], home: Path) -> None:
    tmp_path.joinpath("run.sh").write_text(KINDS["run.sh"][0])
    tmp_path.joinpath("old.py").write_text(OLD)
    tmp_path.joinpath("requirements.txt").write_text("torch==2.5.0\n")
    done = pre_commit("torchmigrate-all-fix", tmp_path, hooks, home)
    assert done.returncode == 1 and "Fixed 2 findings in 2 files." in done.stdout, done.stdout + done.stderr
    assert tmp_path.joinpath("run.sh").read_text() == "torchrun train.py\n"
    assert tmp_path.joinpath("old.py").read_text() == FIXED
    assert tmp_path.joinpath("requirements.txt").read_text() == "torch==2.5.0\n"
    assert pre_commit("torchmigrate-all-fix", tmp_path, hooks, home).returncode == 0


def test_the_hook_takes_what_directories_give() -> None:
    listed = yaml.safe_load(ROOT.joinpath(".pre-commit-hooks.yaml").read_text())
    patterns = {hook["files"] for hook in listed if hook["id"].startswith("torchmigrate-all")}
    assert len(patterns) == 1
    pattern = re.compile(patterns.pop())
    stems = (
        "a",
        "Dockerfile",
        "dockerfile-x",
        "Containerfile",
        "Makefile",
        "requirements",
        "dev-requirements",
    )
    stems = (
        *stems,
        "requirements-dev",
        "constraint.cpu",
        "myrequirements",
        "setup",
        "tox",
        "pyproject",
        "Pipfile",
    )
    ends = (
        ".py",
        ".toml",
        ".cfg",
        ".ini",
        ".txt",
        ".in",
        ".pip",
        ".x",
        ".rst",
        ".json",
        ".lock",
        "",
        *_BY_SUFFIX,
    )
    for directory in ("", "b/", "requirements/", "b/requirement/"):
        for stem in stems:
            for end in ends:
                for name in (f"{stem}{end}", f"{stem}{end}".upper()):
                    wanted = name.endswith(SUFFIXES) or kind_of_name(name, Path(directory).name) is not None
                    if not name.endswith((".PY", ".PYI", ".IPYNB")):
                        assert bool(pattern.search(directory + name)) is wanted, directory + name
