"""The environment of the target: one that is given, or a new one with what the project asks for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from torchmigrate.patterns import pattern
from torchmigrate.upgrade.model import UpgradeError
from torchmigrate.upgrade.processes import Clock, run, size_of, tail
from torchmigrate.upgrade.requirements import asked_by, imported_by, loosened, of_torch, wanted, well_known
from torchmigrate.upgrade.workspace import Workspace
from torchmigrate.versions.releases import PYTHONS, Version, parse_version, show_version

_ASK = """
import json, sys
try:
    import torch
    version = torch.__version__
except Exception as error:
    print(json.dumps({"python": sys.version_info[:3], "error": "%s: %s" % (type(error).__name__, error)}))
else:
    print(json.dumps({"python": sys.version_info[:3], "torch": str(version), "prefix": sys.prefix}))
"""
_HAS_PYTEST = "import importlib.util, json; print(json.dumps(importlib.util.find_spec('pytest') is not None))"
# As the program `pytest` does, without the directory that it is run in.
_RUN_PYTEST = "import sys; sys.path[:] = filter(None, sys.path); import pytest; sys.exit(pytest.main())"
_PYTHON = pattern(r"python(?:\d+(?:\.\d+)*)?(?:\.exe)?")
_PYTEST = pattern(r"(?:pytest|py\.test)(?:-3)?(?:\.exe)?")
_REQUIRES = """
import json, sys
from importlib import metadata
found = []
for each in metadata.distributions():
    direct = each.read_text("direct_url.json")
    if direct and json.loads(direct).get("url", "").strip("/") == sys.argv[1].strip("/"):
        found += each.requires or []
print(json.dumps(found))
"""
_OFFLINE = pattern(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|NewConnectionError"
    r"|ConnectTimeoutError|dns error|Connection refused|tcp connect error|error sending request"
)
_NO_SUCH = pattern(r"No matching distribution|Could not find a version|no version of torch|not found in the")
_ERROR = pattern(r"^\s*(?:ERROR|error|×|╰─▶)[:\s]\s*(?P<what>.+)$", re.MULTILINE)
_SUBJECT = "the project itself"
_BUILD = ("setuptools", "wheel")  # what a project without build isolation needs


class EnvironmentOptions(Struct, frozen=True):
    """How packages are installed. python: "3.11" or a path; None: the Python that runs this program.

    index_url, extra_index_url: as pip's options; install_options: others of pip (or uv pip), as given.
    """

    python: str | None = None
    index_url: str | None = None
    extra_index_url: tuple[str, ...] = ()
    install_options: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        found = ["--index-url", self.index_url] if self.index_url else []
        for url in self.extra_index_url:
            found += ["--extra-index-url", url]
        return [*found, *self.install_options]


class Environment:
    """A virtual environment.

    Attributes:
        directory: of the environment.
        python, torch: their releases, as they say it: "3.11.7", "2.13.0+cpu".
        prefix: `sys.prefix` of its Python.
        left_out: what could not be installed, with the reason; notes: what was installed otherwise.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.python = ""
        self.torch = ""
        self.prefix = ""
        self.left_out: dict[str, str] = {}
        self.notes: list[str] = []

    @property
    def binaries(self) -> Path:
        return self.directory / ("Scripts" if sys.platform == "win32" else "bin")

    @property
    def interpreter(self) -> Path:
        return self.binaries / ("python.exe" if sys.platform == "win32" else "python")

    def variables(self, project: Path, first: Sequence[Path] = ()) -> dict[str, str]:
        """The variables of a program that runs in it. The project's files come before what is installed."""
        kept = _variables()
        own = [place for place in (project, project / "src") if place.is_dir() and not _hides_python(place)]
        places = [*first, *own]
        return {
            **kept,
            "VIRTUAL_ENV": str(self.directory),
            "PATH": os.pathsep.join([str(self.binaries), kept.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join(map(str, places)),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def found(self, words: Sequence[str], project: Path) -> list[str]:
        """A command with the programs of the environment.

        `python` and `pytest` are always those of its Python, whatever is on PATH.
        """
        first = _program(words)
        name, rest = words[first], words[first + 1 :]
        if _PYTHON.fullmatch(name):
            return [*words[:first], str(self.interpreter), *rest]
        if _PYTEST.fullmatch(name):
            run = ["-c", _RUN_PYTEST] if _hides_python(project) else ["-m", "pytest"]
            return [*words[:first], str(self.interpreter), *run, *rest]
        here = shutil.which(name, path=str(self.binaries))
        return [*words[:first], here or name, *rest]

    def check_pytest(self, words: Sequence[str]) -> None:
        """Raise UpgradeError where a command runs pytest, and the environment does not have it."""
        first = _program(words)
        by_python = _PYTHON.fullmatch(words[first]) and list(words[first + 1 : first + 3]) == ["-m", "pytest"]
        if (by_python or _PYTEST.fullmatch(words[first])) and self.ask(_HAS_PYTEST) is not True:
            raise UpgradeError(
                f"{self.directory}: pytest is not installed in this environment; "
                f"install it: {self.interpreter} -m pip install pytest"
            )

    def ask(self, code: str, *arguments: str) -> Any:
        """What a piece of Python prints as JSON; None: it fails."""
        try:
            done = subprocess.run(
                [str(self.interpreter), "-c", code, *arguments],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                cwd=self.directory,
                env=_variables(),
                timeout=600,
                check=False,
            )
            return json.loads(done.stdout.splitlines()[-1])
        except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
            return None

    def identify(self) -> str | None:
        """Find out what it holds; why torch cannot be imported, or None."""
        said = self.ask(_ASK)
        if said is None:
            raise UpgradeError(f"{self.directory} is not an environment with a working Python")
        self.python = ".".join(map(str, said["python"]))
        self.torch, self.prefix = said.get("torch", ""), said.get("prefix", "")
        return None if self.torch else str(said["error"])


def given(directory: Path, target: Version | None) -> Environment:
    """An environment that the user has. target: the torch that it must hold; None: any.

    Raises UpgradeError where it does not.
    """
    environment = Environment(directory.absolute())
    if not environment.interpreter.exists():
        raise UpgradeError(f"{directory}: not a virtual environment: there is no {environment.interpreter}")
    why = environment.identify()
    if why is not None:
        raise UpgradeError(f"{directory}: torch cannot be imported in it: {why}")
    if target is not None and parse_version(environment.torch)[:2] != target[:2]:
        raise UpgradeError(f"{directory}: it has torch {environment.torch}, not {show_version(target)}")
    return environment


def made(
    space: Workspace,
    files: Sequence[Path],
    target: Version,
    options: EnvironmentOptions,
    clock: Clock,
    *,
    tested: bool,
) -> Environment:
    """A new environment in the workspace, or the one that an earlier run finished.

    files: of the project. tested: pytest is installed, too, if the project does not ask for it.
    Raises OutOfTime, and UpgradeError where torch cannot be installed.
    """
    environment = Environment(space.directory / "env")
    known = space.record("environment")
    if known is not None and environment.identify() is None:
        environment.left_out, environment.notes = known["left_out"], known["notes"]
        return environment
    shutil.rmtree(environment.directory, ignore_errors=True)
    _Maker(space, files, target, options, clock, environment).make(tested=tested)
    space.keep_untracked()
    space.note("environment", {"left_out": environment.left_out, "notes": environment.notes})
    return environment


class _Maker:
    """Makes an environment with uv where it is installed, else with venv and pip."""

    def __init__(
        self,
        space: Workspace,
        files: Sequence[Path],
        target: Version,
        options: EnvironmentOptions,
        clock: Clock,
        environment: Environment,
    ) -> None:
        self.space = space
        self.files = files
        self.target = target
        self.options = options
        self.clock = clock
        self.environment = environment
        self.uv = shutil.which("uv")
        self.constraints = space.directory / "constraints.txt"

    def make(self, *, tested: bool) -> None:
        self._create()
        python = parse_version(
            self.environment.ask("import json, sys; print(json.dumps(sys.version.split()[0]))")
        )
        self._check_python(python)
        lists = asked_by(self.space.project)
        imported = imported_by(self.files)
        torch = of_torch(lists, imported, self.target)
        self._install_torch(torch, python)
        self.constraints.write_text("".join(f"{text}\n" for text in torch.values()), encoding="utf-8")
        stated = self._install_project()
        needed = wanted([*stated, *lists], python[:2])
        for name, text in well_known(imported).items():
            if needed.setdefault(name, text) is text:
                self.environment.notes.append(
                    f"installed {name}, which the project imports but does not require"
                )
        if tested:
            needed.setdefault("pytest", "pytest")
        self._install_each(needed)
        why = self.environment.identify()
        if why is not None:
            raise UpgradeError(
                f"torch {show_version(self.target)} is installed, but cannot be imported: {why}"
            )

    # ---- steps -------------------------------------------------------------------------------------------

    def _create(self) -> None:
        directory = self.environment.directory
        if self.uv:
            wish = ["--python", self.options.python] if self.options.python else ["--python", sys.executable]
            arguments = [self.uv, "venv", "--quiet", *wish, str(directory)]
        else:
            arguments = [self._base_python(), "-m", "venv", str(directory)]
        start = size_of(self.space.log)
        if self._run(arguments) or not self.environment.interpreter.exists():
            raise UpgradeError(
                "cannot create an environment with Python "
                f"{self.options.python or sys.version.split()[0]}: {_reason(tail(self.space.log, start))}"
            )

    def _base_python(self) -> str:
        wish = self.options.python
        if wish is None:
            return sys.executable
        if os.sep in wish:
            if not Path(wish).exists():
                raise UpgradeError(f"--python: {wish} does not exist")
            return wish
        found = shutil.which(f"python{wish}") or _of_pyenv(wish)
        if found is None:
            raise UpgradeError(
                f"--python: there is no python{wish} on the path; pass its path, or install uv"
            )
        return found

    def _check_python(self, python: Version) -> None:
        """Python that is too new for the target: what the wheels on PyPI are for."""
        first = PYTHONS.get(python[:2])
        if first is not None and first > self.target:
            target, mine = show_version(self.target), show_version(python[:2])
            raise UpgradeError(
                f"torch {target} does not support Python {mine}, the first release that does is torch "
                f"{show_version(first)}; choose another Python with --python"
            )

    def _install_torch(self, torch: Mapping[str, str], python: Version) -> None:
        start = size_of(self.space.log)
        if not self._install(list(torch.values())):
            return
        if len(torch) > 1 and not self._install([torch["torch"]]):
            for name in set(torch) - {"torch"}:
                self._try(name, [torch[name]])
            return
        said = tail(self.space.log, start)
        if _OFFLINE.search(said) or "(from versions: none)" in said:
            raise UpgradeError(
                "cannot install packages: there is no network, or the index does not have torch"
            )
        if _NO_SUCH.search(said):
            raise UpgradeError(
                f"the index has no torch {show_version(self.target)} for Python {show_version(python[:2])} "
                "on this platform: choose another release with --to, another Python with --python, or "
                "another index with --index-url"
            )
        raise UpgradeError(f"cannot install torch {show_version(self.target)}: {_reason(said)}")

    def _install_project(self) -> list[str]:
        """Install the project without what it needs; what its metadata says that this is."""
        project = self.space.project
        if not any((project / name).exists() for name in ("pyproject.toml", "setup.py", "setup.cfg")):
            return []
        if not (project / "setup.py").exists() and not _is_package(project):
            return []
        start = size_of(self.space.log)
        if self._install(["-e", "."], "--no-deps"):
            self._install(list(_BUILD))
            if self._install(["-e", "."], "--no-deps", "--no-build-isolation"):
                why = _reason(tail(self.space.log, start))
                self.environment.left_out[_SUBJECT] = f"its files are on the path instead: {why}"
                return []
        return list(self.environment.ask(_REQUIRES, project.as_uri()) or [])

    def _install_each(self, needed: Mapping[str, str]) -> None:
        """All at once; where that fails, as many as can be, and in the worst case without their versions."""
        pinned = ["--constraint", str(self.constraints)]
        if not needed or not self._install(list(needed.values()), *pinned):
            return
        for name, text in needed.items():
            self._try(name, [text], *pinned)

    def _try(self, name: str, requirement: Sequence[str], *pinned: str) -> None:
        start = size_of(self.space.log)
        if not self._install(requirement, *pinned):
            return
        why = _reason(tail(self.space.log, start))
        any_version = [loosened(text) for text in requirement]
        if any_version != list(requirement) and not self._install(any_version, *pinned):
            self.environment.notes.append(
                f"cannot install {requirement[0]}; installed {name} in another version"
            )
        elif not self._install(requirement, "--no-deps"):
            self.environment.notes.append(f"installed {requirement[0]} without its dependencies: {why}")
        else:
            self.environment.left_out[requirement[0]] = why

    # ---- programs ----------------------------------------------------------------------------------------

    def _install(self, what: Sequence[str], *more: str) -> int:
        python = str(self.environment.interpreter)
        if self.uv:
            start = [self.uv, "pip", "install", "--python", python]
        else:
            start = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        return self._run([*start, *self.options.arguments, *more, *what])

    def _run(self, arguments: Sequence[str]) -> int:
        return run(
            arguments,
            directory=self.space.project,
            log=self.space.log,
            clock=self.clock,
            environment=_variables(),
        )


def _variables() -> dict[str, str]:
    """The variables of this process, but for those by which another Python's packages would be found."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONPATH")}


def _program(words: Sequence[str]) -> int:
    """The place of the program in a command: after `env NAME=value`."""
    if words[0] != "env":
        return 0
    return next((number for number, word in enumerate(words[1:], 1) if "=" not in word), 0)


def _hides_python(directory: Path) -> bool:
    """Whether what is in a directory has the name of a module of Python: on the path, it would hide that."""
    names = {
        entry.stem
        for entry in directory.iterdir()
        if entry.suffix == ".py" or (entry / "__init__.py").exists()
    }
    return not names.isdisjoint(sys.stdlib_module_names - {"test"})


def _of_pyenv(release: str) -> str | None:
    """A Python of pyenv, which need not be on the path; the newest of a release."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = sorted(root.glob(f"{release}.*/bin/python"), key=lambda path: parse_version(path.parts[-3]))
    return str(found[-1]) if found else None


def _is_package(project: Path) -> bool:
    """Whether pyproject.toml or setup.cfg say how to build something."""
    for name, words in (
        ("pyproject.toml", (b"[project]", b"[build-system]", b"[tool.poetry]")),
        ("setup.cfg", (b"[metadata]",)),
    ):
        path = project / name
        if path.is_file() and any(word in path.read_bytes() for word in words):
            return True
    return False


def _reason(said: str) -> str:
    """Why an installation failed, in a line."""
    if _OFFLINE.search(said):
        return "no network"
    found = [match["what"].strip() for match in _ERROR.finditer(said)]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(?:Error|Exception)\b", line)]
    best = errors[-1:] or found[:1] or lines[-1:] or ["no reason was given"]
    return best[0][:200]
