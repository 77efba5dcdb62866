"""The program as a process of its own for each run, without the time that each takes to start.

One process has everything imported, and forks for each run: no run has what another one has seen. What a test
starts is a small program that hands its arguments, directory, variables and streams to that process, waits, and
ends as the run did. Signals end the small program alone: for a test of signals, start `harness.project.command`.
"""

from __future__ import annotations

import atexit
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from harness.project import environment

# What a program imports, and its `main`.
_PROGRAMS = {
    "torchmigrate": """
import torchmigrate.cli.check, torchmigrate.cli.plan, torchmigrate.cli.program, torchmigrate.cli.session
import torchmigrate.cache.cache, torchmigrate.engine.analysis, torchmigrate.rewrite.cases.new_code
import torchmigrate.cli.upgrade, torchmigrate.server.server, torchmigrate.versions.detect
from torchmigrate.__main__ import main
""",
    # With what only the commands of a fleet need.
    "torchmigrate fleet": """
import distributed, duckdb, pyarrow.parquet
import torchmigrate.cli.fleet, torchmigrate.cli.plan, torchmigrate.cli.program, torchmigrate.cli.session
import torchmigrate.fleet.fleet, torchmigrate.fleet.queries
from torchmigrate.__main__ import main
""",
    # With what only the server for agents needs.
    "torchmigrate mcp": """
import torchmigrate.cli.program, torchmigrate.server.mcp
from torchmigrate.__main__ import main
""",
    "flake8": """
import torchmigrate.cli.check, torchmigrate.cli.session, torchmigrate.engine.analysis, torchmigrate.flake8_plugin
from flake8.main.cli import main
""",
}
_LAUNCHER = """
import ast, atexit, gc, os, select, signal, socket, sys, threading

waiting = {}  # process -> where its exit code is expected

def reap(*_):
    while waiting:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            break
        with waiting.pop(process) as connection:
            try:
                connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            except OSError:
                pass

signal.signal(signal.SIGCHLD, reap)
gc.freeze()
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print(flush=True)
while listener in select.select([listener, 0], [], [])[0]:  # else the tests are over
    connection = listener.accept()[0]
    data, streams, _, _ = socket.recv_fds(connection, 65536, 3)
    while more := connection.recv(65536):
        data += more
    where, (timeout, *arguments), variables = ast.literal_eval(data.decode())
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    process = os.fork()
    if process:
        waiting[process] = connection
    else:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    if not process:
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        listener.close()
        connection.close()
    for stream in streams:
        os.close(stream)
    if not process:
        sys.stdout.reconfigure(line_buffering=os.isatty(1))
        os.chdir(where)
        os.environ.clear()
        os.environ.update(variables)
        sys.path.extend(filter(None, [variables.get("TEST_SITE")]))  # packages that a test has installed
        sys.argv = [sys.argv[2].partition(" ")[0], *arguments]
        signal.alarm(int(timeout))
        try:
            code = main()
        except SystemExit as stop:
            code = stop.code
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code or 0)  # without freeing, one by one, what all runs have imported
"""
# Without `site` and anything that takes long to import.
_START = """
import _socket, os, sys
connection = _socket.socket(_socket.AF_UNIX)
connection.connect(sys.argv[1])
order = repr((os.getcwd(), sys.argv[2:], dict(os.environ))).encode()
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
sent = connection.sendmsg([order], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
connection.sendall(order[sent:])
connection.shutdown(_socket.SHUT_WR)
for number in range(3):
    os.close(number)
code = int(connection.recv(16) or 1)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@cache
def _listening(program: str, **variables: str) -> str:
    """The socket of a process that forks for runs of a program, started with these variables."""
    directory = Path(tempfile.mkdtemp(prefix="torchmigrate-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = str(directory / "launcher")
    launcher = subprocess.Popen(
        [sys.executable, "-c", _PROGRAMS[program] + _LAUNCHER, path, program],
        env=environment(**variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == b"\n"
    atexit.register(_end, launcher)
    return path


def _end(launcher: subprocess.Popen[bytes]) -> None:
    """Wait for it, so that its time is counted with that of the tests."""
    assert launcher.stdin is not None
    launcher.stdin.close()
    launcher.wait()


def quick_command(
    *arguments: str | Path, program: str = "torchmigrate", timeout: int = 0, **variables: str
) -> list[str]:
    """As `harness.project.command`, in a fork.

    program: one of `_PROGRAMS`. timeout: the seconds after which the fork is killed. variables: those that the interpreter
    reads when it starts, such as the hash seed.
    """
    start = [sys.executable, "-ISc", _START, _listening(program, **variables), str(timeout)]
    return [*start, *map(str, arguments)]


def shell_line(program: str = "torchmigrate", **variables: str) -> str:
    """A command of a shell that runs the program in a fork, with the arguments of the script that it is in.

    program, variables: as in `quick_command`.
    """
    return f'exec {shlex.join(quick_command(program=program, **variables))} "$@"'


def launch(
    where: Path, *arguments: str | Path, stdin: str = "", timeout: int = 0, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of the program in a directory; timeout: the seconds after which it is killed."""
    seed = {name: environ[name] for name in ("PYTHONHASHSEED",) if name in environ}
    return _run(quick_command(*arguments, timeout=timeout, **seed), where, stdin, environ)


def launch_flake8(where: Path, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run flake8 in a directory."""
    return _run(quick_command(*arguments, program="flake8"), where, stdin, {})


def _run(
    command: list[str], where: Path, stdin: str, environ: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=where,
        env=environment(**environ),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
