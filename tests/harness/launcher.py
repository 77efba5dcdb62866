"""A program as a process of its own for each run, without the time that each takes to start."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from harness.project import environment

# What a program imports, and its `main`.
TORCHMIGRATE = """
import torchmigrate.cli.check, torchmigrate.cli.program, torchmigrate.cli.session, torchmigrate.engine.analysis
import torchmigrate.cache.cache, torchmigrate.rewrite.cases.new_code, torchmigrate.versions.detect
from torchmigrate.__main__ import main
"""
FLAKE8 = f"""{TORCHMIGRATE}
import torchmigrate.flake8_plugin
from flake8.main.cli import main
"""
# It forks for each run, and imports what that has imported before it forks again: none knows what others have seen.
LAUNCHER = """
import atexit, importlib, json, os, signal, sys, traceback
for line in sys.stdin:
    order = json.loads(line)
    reading, writing = os.pipe()
    known = set(sys.modules)
    child = os.fork()
    if not child:
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        signal.alarm(order["timeout"])
        for target, name in enumerate(order["files"]):
            os.dup2(os.open(name, os.O_RDONLY if target == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC), target)
        sys.argv = order["arguments"]
        code = 1
        try:
            code = main()
        except SystemExit as stop:
            code = stop.code
        except BaseException:
            traceback.print_exc()
        os.write(writing, "\\n".join(name for name in sys.modules if name not in known).encode()[:60_000])
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code or 0)  # without taking apart what the parent has imported
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(writing)
    with os.fdopen(reading) as names:
        for name in names.read().splitlines():
            try:
                importlib.import_module(name)
            except ImportError:
                pass
    print(code, flush=True)
"""


@cache
def _launcher(program: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    started = subprocess.Popen(
        [sys.executable, "-c", program + LAUNCHER], env=environment(), stdin=pipe, stdout=pipe, text=True
    )
    atexit.register(started.communicate)  # it ends when nothing more can be asked
    return started


def launch(
    where: Path,
    *arguments: str | Path,
    output: Path | None = None,
    stdin: str = "",
    timeout: int = 0,
    **environ: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command of torchmigrate in a directory.

    output: a directory for what it prints, else a temporary one. timeout: the seconds after which it is killed.
    """
    return _launch(TORCHMIGRATE, where, arguments, output, stdin, timeout, environment(**environ))


def launch_flake8(where: Path, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run flake8 in a directory."""
    return _launch(FLAKE8, where, arguments, None, stdin, 0, environment())


def _launch(
    program: str,
    where: Path,
    arguments: tuple[str | Path, ...],
    output: Path | None,
    stdin: str,
    timeout: int,
    environ: dict[str, str],
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as own:
        files = {name: (output or Path(own)) / name for name in ("stdin", "stdout", "stderr")}
        files["stdin"].write_text(stdin, "utf-8")
        order = {
            "cwd": str(where),
            "arguments": ["", *map(str, arguments)],
            "env": environ,
            "timeout": timeout,
            "files": [*map(str, files.values())],
        }
        launcher = _launcher(program)
        assert launcher.stdin is not None and launcher.stdout is not None
        launcher.stdin.write(json.dumps(order) + "\n")
        launcher.stdin.flush()
        code = int(launcher.stdout.readline())
        printed = (files[name].read_text("utf-8") for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(arguments, code, *printed)
