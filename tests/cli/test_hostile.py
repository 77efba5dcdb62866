"""Repositories of strangers: each case ends soon, in little memory, with one clear line and nothing worse.

The program runs as a process, under limits of processor time and memory, in a directory that somebody prepared.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
OLD = "import torch\n\ny = torch.ger(a, b)\n"
NEW = OLD.replace("ger", "outer")
MEMORY = 500 * 2**20
SECONDS = 6  # of processor time; two on a machine with nothing else to do
SECRET = "hunter2"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="devices, pipes and limits of POSIX")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "utf-8", **more}


def _limits() -> None:
    # Of the heap: the libraries in C reserve far more addresses than they use.
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


# It has everything imported, and forks for each run: what a run adds is limited, and tests are quick.
LAUNCHER = """
import gc, json, os, resource, sys
import yaml
import torchmigrate.cli.program, torchmigrate.engine.analysis, torchmigrate.rewrite.cases.new_code, torchmigrate.files.globs
from torchmigrate.__main__ import main
gc.freeze()
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(order["cwd"])
        os.environ.update(order["env"])
        for target, name in enumerate((os.devnull, order["out"], order["err"])):
            os.dup2(os.open(name, os.O_RDONLY if target == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC), target)
        resource.setrlimit(resource.RLIMIT_DATA, (order["memory"],) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (order["seconds"],) * 2)
        sys.argv = ["torchmigrate", *order["arguments"]]
        try:
            main()
        except SystemExit as stop:
            sys.stdout.flush()
            os._exit(stop.code)  # without freeing, one by one, what all runs have imported
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _launcher() -> subprocess.Popen[str]:
    command = [sys.executable, "-c", LAUNCHER]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe, text=True)


class Project:
    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
        return path

    def git(self, *arguments: str) -> None:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x", *arguments]
        subprocess.run(command, cwd=self.path, check=True, capture_output=True)

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the program; there is never a traceback, a signal or a control character."""
        out, err = self.path.parent / "stdout", self.path.parent / "stderr"
        order = {"cwd": str(self.path), "arguments": arguments, "env": more, "out": str(out), "err": str(err)}
        launcher = _launcher()
        assert launcher.stdin is not None and launcher.stdout is not None
        launcher.stdin.write(json.dumps({**order, "memory": MEMORY, "seconds": SECONDS}) + "\n")
        launcher.stdin.flush()
        code = int(launcher.stdout.readline())
        texts = (path.read_text("utf-8", "surrogateescape") for path in (out, err))
        done = subprocess.CompletedProcess(arguments, code, *texts)
        said = done.stdout + done.stderr
        assert done.returncode in (0, 1, 2), (done.returncode, said)
        for word in ("Traceback", "internal error", "Warning", SECRET):
            assert word not in said
        assert all(
            character in "\t\n" or character.isprintable() or character > "\ud7ff" for character in said
        )
        return done

    def check(self, *arguments: str, isolated: bool = False) -> subprocess.CompletedProcess[str]:
        more = ["--isolated"] if isolated else []
        return self.run("check", "--output-format", "concise", *more, *arguments)


def errors(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("error: ")]


def found(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line.partition(":")[0] for line in done.stdout.splitlines()]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A repository with an old file, and beside it something that is nobody's business."""
    (tmp_path / "secret").write_text(f"{SECRET}: torch\n")
    (tmp_path / "secret.py").write_text(f"import torch\n{SECRET} = torch.ger(a, b)\n")
    project = Project(tmp_path / "project")
    project.write("old.py", OLD)
    (project.path / ".git").mkdir()
    yield project


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # addresses are short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def _outside(path: Path) -> None:
    top = next(parent for parent in path.parents if parent.name == "project")
    path.symlink_to(top.parent / ("secret.py" if path.suffix == ".py" else "secret"))


ODD: dict[str, Callable[[Path], object]] = {
    "device": _device,
    "pipe": lambda path: os.mkfifo(path),
    "socket": _socket,
    "outside": _outside,
    "large": lambda path: path.write_bytes(b"torch\n" * 2_000_000),
}
READ = {
    "source": "odd.py",
    "ignore": ".gitignore",
    "requirements": "requirements.txt",
    "included": "included.txt",
    "pyproject": "pyproject.toml",
    "setup": "setup.py",
    "setup.cfg": "setup.cfg",
    "conda": "environment.yml",
    "own": "torchmigrate.toml",
    "rules": "rules/more.yaml",
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", READ.values(), ids=READ)
def test_what_is_no_regular_file_of_the_project(project: Project, name: str, kind: str) -> None:
    if name == "included.txt":
        project.write("requirements.txt", "-r included.txt\n")
    if name.startswith("rules"):
        project.write("torchmigrate.toml", 'rules = ["rules"]\n')
        (project.path / "rules").mkdir()
    ODD[kind](project.path / name)
    done = project.check()
    assert done.returncode == 2
    # setup.py is read for what it requires, and is a source.
    assert len(errors(done)) == (2 if name == "setup.py" else 1)
    for line in errors(done):
        assert re.search("not a regular file|points outside of the project|is larger than 1", line)
    if name in ("odd.py", ".gitignore"):
        assert project.check(isolated=True).returncode == 2


def test_a_directory_by_the_name_of_a_file(project: Project) -> None:
    for name in (
        "pyproject.toml",
        ".gitignore",
        "requirements.txt",
        "setup.py",
        "environment.yml",
        "setup.cfg",
    ):
        (project.path / name).mkdir()
    done = project.check()
    assert (done.returncode, errors(done), found(done)) == (1, [], ["old.py"])


STARS = "*a" * 200 + "b"
PATTERNS = [
    STARS,
    "**/" * 100 + "x" + "/**" * 100 + "b",
    "*" * 1000 + "a" * 10 + "?*" * 100 + "b",
    "[a-z]*" * 100 + "0",
    "*/" * 200 + STARS,
    "[z-a]*",
    "[[:alpha:]]*[[:foo:]]",
    "[",
    "a\\",
    "!",
    "/",
    "[[--a]",
    "(" * 50 + "a" * 50,
]


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_in_ignore_files(project: Project, pattern: str, isolated: bool) -> None:
    project.write("a" * 200 + ".py", OLD)
    project.write("a/" * 200 + "a.py", OLD)
    project.write(".gitignore", pattern + "\n")
    project.write("a/.gitignore", pattern + "\n")
    done = project.check(isolated=isolated)
    assert (done.returncode, errors(done)) == (1, [])
    assert found(done).count("old.py") == 1


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_in_a_configuration(project: Project, pattern: str) -> None:
    project.write("a" * 200 + ".py", OLD)
    text = pattern.replace("\\", "\\\\")
    project.write("torchmigrate.toml", f'extend-exclude = ["{text}"]\n')
    done = project.check()
    assert all("invalid exclude pattern" in line for line in errors(done))
    assert found(done)[-1] == "old.py"
    project.write("torchmigrate.toml", f'per-file-ignores = {{ "{text}" = ["TM110"] }}\n')
    ignoring = project.check()
    if errors(done):
        assert ignoring.stdout == "" and "is not a valid pattern" in errors(ignoring)[0]
    else:
        assert found(ignoring)[-1] == "old.py"


@pytest.mark.parametrize(
    "lines",
    [
        ["\n"] * 500_000,
        ["a\n"] * 500_000,
        [f"x{n}\n" for n in range(120_000)],
        [f"*.{n}\n" for n in range(100_000)],
    ],
)
def test_many_lines_in_an_ignore_file(project: Project, lines: list[str]) -> None:
    project.write(".gitignore", "".join(lines))
    done = project.check()
    assert (done.returncode, found(done)) == (1, ["old.py"])


def test_too_many_wildcards(project: Project) -> None:
    project.write(".gitignore", "".join(f"a*{n}?\n" for n in range(50_000)))
    done = project.check()
    assert done.returncode == 2
    assert errors(done) == ["error: .gitignore: has too many patterns with wildcards: ignored"]
    assert found(done) == ["old.py"]


DEEP_NAMES = "\n".join(
    [
        "import setuptools",
        "# torch",
        *(f"a{n} = a{n + 1} + a{n + 1}" for n in range(45)),
        "a45 = ['torch>=1.7']",
    ]
)
BOMB = "a0: &a0 [x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
FORMATS = {
    "deep flow": ("environment.yml", "dependencies: [torch, " + "[" * 100_000),
    "deep blocks": ("environment.yml", "torch:\n" + "".join(" " * n + "- \n" for n in range(900))),
    "aliases": ("environment.yml", BOMB + "dependencies: [torch]\n"),
    "merges": (
        "environment.yml",
        "a: &a {torch: 1}\n"
        + "".join(
            f"b{n}: &b{n} {{<<: [{', '.join([f'*b{n - 1}' if n else '*a'] * 9)}]}}\n" for n in range(9)
        ),
    ),
    "yaml": ("environment.yml", f"dependencies: [torch, {SECRET}\n  : : -"),
    "arrays": ("pyproject.toml", "torch = " + "[" * 5000),
    "tables": ("pyproject.toml", "torch = " + "{a=" * 5000),
    "number": ("pyproject.toml", "torch = " + "1" * 5000),
    "keys": ("pyproject.toml", "torch" + ".a" * 100_000 + " = 1"),
    "toml": ("pyproject.toml", f"torch = 1\n{SECRET} = 1\n{SECRET} = 2\n"),
    "not text": ("pyproject.toml", b"torch = '\xff\x00'"),
    "sums": ("setup.py", DEEP_NAMES + "\nsetuptools.setup(install_requires=a0)\n"),
    "long sum": (
        "setup.py",
        "import torch_\nsetup(install_requires=" + "+".join(["['torch']"] * 20_000) + ")",
    ),
    "number in setup": ("setup.py", f"torch = {'1' * 5000}\n"),
    "escapes": ("setup.py", f"torch = '\\d {SECRET}'\n"),
    "spaces": ("setup.cfg", "[options]\ninstall_requires = torch\nx" + " " * 500_000 + "y = 1\n"),
    "setup.cfg": ("setup.cfg", f"[options]\ntorch\n{SECRET}\n"),
    "requirement of spaces": ("requirements.txt", "torch" + " " * 500_000 + "x\n"),
    "long requirement": ("requirements.txt", "torch" + ",>=1.0" * 100_000 + "\n"),
    "digits": ("requirements.txt", f"torch>={'9' * 5000}\n"),
    "conda": (
        "environment.yml",
        "dependencies:\n- 'torch" + "1" * 50_000 + "\\n'\n- |\n  " + "1" * 50_000 + "\n  torch\n",
    ),
    "loop": ("requirements.txt", "-r requirements.txt\n-r ./requirements.txt\ntorch>=1.7\n"),
}


@pytest.mark.parametrize("case", FORMATS)
def test_files_that_state_a_minimum(project: Project, case: str) -> None:
    name, content = FORMATS[case]
    project.write(name, content)
    done = project.check("old.py")
    assert found(done) == ["old.py"]
    assert len(errors(done)) <= 1
    assert all(name in line for line in errors(done))
    assert done.returncode == (2 if errors(done) else 1)


@pytest.mark.parametrize(
    "case", ["deep flow", "deep blocks", "aliases", "merges", "arrays", "tables", "keys"]
)
def test_what_is_refused_is_said(project: Project, case: str) -> None:
    name, content = FORMATS[case]
    project.write(name, content)
    done = project.check("old.py")
    assert done.returncode == 2
    (line,) = errors(done)
    assert (
        line.startswith(f"error: {name}: nested too deeply")
        or line == f"error: {name}: has YAML aliases: not read"
    )


@pytest.mark.parametrize("case", ["yaml", "toml", "number", "not text", "setup.cfg", "number in setup"])
def test_what_is_not_understood_is_said(project: Project, case: str) -> None:
    name, content = FORMATS[case]
    project.write(name, content)
    done = project.check("old.py")
    assert done.returncode == 1
    assert done.stderr.startswith(f"warning: {name}: not ")


@pytest.mark.parametrize(
    "content", [content for name, content in FORMATS.values() if name == "pyproject.toml"]
)
def test_configurations_in_a_bad_format(project: Project, content: str | bytes) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    data = data.replace(
        SECRET.encode(), b"key"
    )  # the message shows the line of a configuration in the project
    project.write("torchmigrate.toml", data)
    done = project.check()
    assert (done.returncode, len(errors(done)), done.stdout) == (2, 1, "")
    assert all(len(line) < 300 for line in done.stderr.splitlines())


def test_requirements_outside_of_the_project(project: Project) -> None:
    project.write("requirements.txt", "-r ../secret\n-r /etc/passwd\n-r missing.txt\ntorch>=1.7\n")
    done = project.check("-v")
    assert done.returncode == 2
    assert errors(done) == ["error: requirements.txt: `-r` points outside of the project: not read"] * 2
    assert "minimum: torch 1.7, from " in done.stderr


def test_many_included_requirements(project: Project) -> None:
    for number in range(2000):
        project.write(f"r{number}.txt", f"-r r{number + 1}.txt\ntorch>=1.7\n")
    project.write("requirements.txt", "-r r0.txt\n")
    assert errors(project.check()) == ["error: requirements.txt: includes too many files: not read"]


@pytest.mark.parametrize(
    "rules", ["../secret", "/etc/passwd", "/dev/zero", "rules/../../secret", "link.yaml", "link"]
)
def test_rules_outside_of_the_project(project: Project, rules: str) -> None:
    (project.path / "link.yaml").symlink_to("../secret")
    (project.path / "link").symlink_to("..")
    project.write("torchmigrate.toml", f'rules = ["{rules}"]\n')
    done = project.check()
    assert (done.returncode, done.stdout) == (2, "")
    assert "is outside of the project" in errors(done)[0]
    # Named by the user, it may say so; and still nothing of the file is shown.
    named = project.check("--config", "torchmigrate.toml")
    assert named.returncode == 2 and len(errors(named)) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"{SECRET}\n",
        f"{SECRET}: 1\n",
        f"- {SECRET}: 1\n",
        f"- {SECRET}\n",
        f"a: *{SECRET}\n",
        f"a: '{SECRET}\n",
        "- code: " + "[" * 100_000,
        BOMB,
        "- " + BOMB.replace("\n", "\n  "),
        "- code: " + "1" * 5000,
        "- code: " + ":".join(["1"] * 50_000),
        "- code: \x1b[31m",
        '- code: "\\e[31m\\n"\n  "\\e]0;x\\a": 1\n',
    ],
    ids=map(str, range(13)),
)
def test_rules_that_are_none(project: Project, text: str) -> None:
    project.write("torchmigrate.toml", 'rules = ["own.yaml"]\n')
    project.write("own.yaml", text)
    done = project.check()
    assert done.returncode == 2 and done.stdout == ""
    assert errors(done)


CONTROL = "\x1b[31m\x07\r\x9b\u202e"


@pytest.mark.parametrize(
    "text",
    [
        '"{control}" = 1',
        'select = ["{control}"]',
        'target = "{control}"',
        'exclude = ["[{control}"]',
        'rules = ["{control}"]',
        'per-file-ignores = {{ "{control}" = ["{control}"] }}',
        'per-file-ignores = {{ "{control}" = 3 }}',
        '"{long}" = 1',
        'select = ["{long}"]',
    ],
)
def test_control_characters_in_a_configuration(project: Project, text: str) -> None:
    escaped = "".join(f"\\u{ord(character):04x}" for character in CONTROL + "\n")
    project.write("torchmigrate.toml", text.format(control=escaped, long="x" * 200_000) + "\n")
    done = project.check()
    assert done.returncode == 2
    assert len(errors(done)) == 1


@pytest.mark.parametrize("form", ["full", "concise", "github", "json"])
def test_control_characters_in_names_and_text(project: Project, form: str) -> None:
    name = f"{CONTROL}\n\udcff.py"
    (project.path / name).write_text(
        OLD + f"x = '{CONTROL}'  # {CONTROL}\ntorch.ger(a, '{CONTROL}')\n".replace("\r", "")
    )
    (project.path / f"bad{CONTROL}.py").write_text("import torch\nx = (\n")
    done = project.run("check", "--output-format", form)
    assert done.returncode == 2
    assert len(errors(done)) == 1
    for arguments in (
        ["--statistics"],
        ["--show-fixes", "--fix"],
        ["plan"],
        ["plan", "--output-format", "markdown"],
    ):
        project.run(*(arguments if arguments[0] == "plan" else ["check", *arguments]))


def test_links_that_lead_out_of_the_project(project: Project) -> None:
    secret = project.path.parent / "secret.py"
    (project.path / "link.py").symlink_to(secret)
    (project.path / "inner.py").symlink_to("old.py")
    before = secret.read_text()
    done = project.check("--fix")
    assert done.returncode == 2
    assert errors(done) == ["error: link.py: points outside of the project: not checked unless you name it"]
    assert (project.path / "old.py").read_text() == NEW
    assert secret.read_text() == before
    secret.write_text(OLD)
    assert project.check("--fix", "link.py").returncode == 0
    assert secret.read_text() == NEW and (project.path / "link.py").is_symlink()


def test_a_git_directory_elsewhere(project: Project) -> None:
    """`.git` of a stranger may name any directory; only one that names this work tree back is read."""
    other = project.path.parent / "other"
    (other / "info").mkdir(parents=True)
    (other / "info" / "exclude").write_text("old.py\n")
    (project.path / ".git").rmdir()
    for text in (f"gitdir: {other}\n", "gitdir: /dev/zero\n", "gitdir: " + "../" * 4000, "\0"):
        project.write(".git", text)
        assert found(project.check()) == ["old.py"]


@pytest.mark.parametrize("version", ["2", "3", "4", "split", "no git"])
def test_what_git_tracks_is_not_ignored(project: Project, version: str) -> None:
    (project.path / ".git").rmdir()
    project.git("init", "-q")
    for name in ("build_/a.py", "build_/b.py", "gen/deep/c.py", "gen/d.py", "e_pb2.py", "f_pb2.py", "é.py"):
        project.write(name, OLD)
    project.write(".gitignore", "build_\n/gen/\n*_pb2.py\né.py\n")
    project.git("add", "-f", "build_/a.py", "gen/deep/c.py", "e_pb2.py", "é.py", ".gitignore")
    if version == "split":
        project.git("update-index", "--split-index")
    elif version != "no git":
        project.git("update-index", "--index-version", version)
    if version == "3":
        project.git("add", "-N", "old.py")
    expected = ["build_/a.py", "e_pb2.py", "gen/deep/c.py", "old.py", "é.py"]
    path = {"PATH": "/nonexistent"} if version == "no git" else {}
    done = project.run("check", "--output-format", "concise", **path)
    assert sorted(found(done)) == expected and errors(done) == []
    inner = project.run("check", "--output-format", "concise", "gen", **path)
    assert found(inner) == ["gen/d.py", "gen/deep/c.py"]  # asked for by name
    assert (
        found(project.run("check", "--output-format", "concise", "gen/deep", "build_", **path))[0]
        == "build_/a.py"
    )
    excluded = project.run("check", "--output-format", "concise", "--extend-exclude", "gen", **path)
    assert "gen/deep/c.py" not in found(excluded)


@pytest.mark.parametrize(
    "index",
    [b"DIRC", b"DIRC\0\0\0\2\xff\xff\xff\xff", b"x" * 1000, b"DIRC\0\0\0\4\0\0\0\x09" + b"\xff" * 500],
)
def test_an_index_that_is_none(project: Project, index: bytes) -> None:
    project.write(".git/index", index)
    project.write(".gitignore", "gen\n")
    project.write("gen/a.py", OLD)
    done = project.check()
    assert (done.returncode, found(done)) == (2, ["old.py"])
    assert len(errors(done)) == 1 and "is not a git index that torchmigrate can read" in errors(done)[0]


def test_git_is_not_told_what_to_run(project: Project) -> None:
    (project.path / ".git").rmdir()
    project.git("init", "-q")
    project.write(".gitignore", "old.py\n")
    project.git("add", "-f", "old.py")
    project.git("config", "core.fsmonitor", f"touch {project.path}/was_run; false")
    assert found(project.check()) == ["old.py"]
    assert not (project.path / "was_run").exists()


def test_large_and_long_sources(project: Project) -> None:
    project.write("large.py", b"import torch\n" + b"x = 1\n" * 2_000_000)
    project.write("dense.py", b"import torch\n" + b"x = 1\n" * 500_000)
    project.write("half.py", b"x = (\n")
    project.write("unrelated.py", b"x = 1\n" * 500_000)
    with (project.path / "sparse.py").open("wb") as file:
        file.truncate(10**12)
    project.write("null.py", b"import torch\n\0")
    project.write("line.py", "import torch\nx = '" + "a" * 2_000_000 + "'\n")
    done = project.check()
    assert done.returncode == 2 and found(done) == ["old.py"]
    assert errors(done) == [
        "error: dense.py: is larger than 2 MB: not checked",
        "error: half.py:1: syntax error: '(' was never closed",
        "error: large.py: is larger than 10 MB: not read",
        "error: null.py:2: contains NUL bytes: not Python source",
        "error: sparse.py: is larger than 10 MB: not read",
    ]


def test_endless_stdin(project: Project) -> None:
    with Path("/dev/zero").open("rb") as zero:
        done = subprocess.run(
            [sys.executable, "-m", "torchmigrate", "check", "-"],
            stdin=zero,
            cwd=project.path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
            preexec_fn=_limits,
        )
    assert (done.returncode, done.stderr) == (2, "error: stdin is larger than 10 MB: not read\n")


def test_very_deep_directories(project: Project) -> None:
    here = Path.cwd()
    try:
        os.chdir(project.path)
        for _ in range(600):
            Path("d" * 10).mkdir()
            os.chdir("d" * 10)
        Path("x.py").write_text(OLD)
    finally:
        os.chdir(here)
    done = project.check()
    assert done.returncode == 2 and found(done)[-1] == "old.py"
    assert len(errors(done)) == 1 and errors(done)[0].endswith(
        "cannot read the directory: file name too long"
    )
    subprocess.run(["rm", "-rf", project.path / ("d" * 10)], check=True)


# ---- closed streams, signals, and files that change meanwhile ---------------------------------------------


@pytest.mark.parametrize(
    "closing",
    [
        ">&-",
        "2>&-",
        ">&- 2>&-",
        "<&- >&- 2>&-",
        "| head -1",
        "2>&1 | head -c 1",
        ">/dev/full 2>/dev/full",
        "| true",
    ],
)
def test_closed_streams_do_not_stop_the_work(project: Project, closing: str) -> None:
    for number in range(20):
        project.write(
            f"m{number}.py", OLD + "import torch.nn as nn\nnn.functional.sigmoid(x)\ntorch.load(f)\n"
        )
    command = f'"{sys.executable}" -m torchmigrate check --fix {closing}'
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=project.path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    assert all("torch.outer" in path.read_text() for path in project.path.glob("m*.py"))
    names = {path.name for path in project.path.iterdir()} - {".torchmigrate_cache"}  # where it took seconds
    assert names == {".git", "old.py", *(f"m{number}.py" for number in range(20))}
    if "|" not in closing:
        assert done.returncode == (2 if "full" in closing else 1)


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_leave_nothing_behind(project: Project, number: signal.Signals, jobs: str) -> None:
    text = OLD * 100
    for attempt, pause in enumerate((0.3, 0.8, 1.5)):
        for index in range(150):
            project.write(f"m{index}.py", text)
        process = subprocess.Popen(
            [sys.executable, "-m", "torchmigrate", "check", "--fix", "-j", jobs, "-q", "--statistics"],
            cwd=project.path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        time.sleep(pause)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert b"Traceback" not in said, attempt
        for path in project.path.iterdir():
            assert path.suffix in ("", ".py")
            if path.suffix and path.name != "old.py":
                assert path.read_text() in (text, text.replace("ger", "outer"))
        deadline = time.monotonic() + 10
        while _group_lives(process.pid):
            assert time.monotonic() < deadline, "a process is left"
            time.sleep(0.05)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_change_meanwhile_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchmigrate.rewrite.apply import save
    from torchmigrate.source.text import Source, SourceError

    path = tmp_path / "m.py"
    path.write_text(OLD)
    real = os.fsync

    def edit(handle: int) -> None:  # the last thing before the file is replaced
        path.write_text("# mine\n" + OLD)
        real(handle)

    monkeypatch.setattr(os, "fsync", edit)
    with pytest.raises(SourceError, match="changed while torchmigrate was checking it: not written"):
        save(path, Source.read(path).with_text(NEW))
    assert path.read_text() == "# mine\n" + OLD
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="extended attributes of Linux")
def test_extended_attributes_and_access_lists_are_kept(project: Project) -> None:
    path = project.path / "old.py"
    access = (
        b"\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x02\0\x06\0\x01\0\0\0\x04\0\x04\0\xff\xff\xff\xff"
        b"\x10\0\x06\0\xff\xff\xff\xff\x20\0\x04\0\xff\xff\xff\xff"
    )
    wanted = {}
    for name, value in (("user.note", b"\0mine"), ("system.posix_acl_access", access)):
        try:
            os.setxattr(path, name, value)
            wanted[name] = os.getxattr(path, name)
        except OSError:
            continue  # this file system has none
    mode = path.stat().st_mode
    assert project.check("--fix").returncode == 0
    assert path.read_text() == NEW
    assert {name: os.getxattr(path, name) for name in wanted} == wanted
    assert path.stat().st_mode == mode
