"""The program as a process of its own for each run, without the time that each takes to start."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from harness.project import environment

# It has everything imported, and forks for each run: none knows what the others have seen.
LAUNCHER = """
import json, os, sys
import torchmigrate.cli.check, torchmigrate.cli.program, torchmigrate.cli.session, torchmigrate.engine.analysis
import torchmigrate.cache.cache, torchmigrate.rewrite.cases.new_code, torchmigrate.versions.detect
import torchmigrate.cli.upgrade, torchmigrate.upgrade.upgrade
from torchmigrate.__main__ import main
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        for target, name in enumerate((os.devnull, order["out"], order["err"])):
            os.dup2(os.open(name, os.O_RDONLY if target == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC), target)
        sys.argv = ["torchmigrate", *order["arguments"]]
        main()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _launcher(**variables: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", LAUNCHER], env=environment(**variables), stdin=pipe, stdout=pipe, text=True
    )


def launch(
    where: Path, *arguments: str | Path, output: Path, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of the program in a directory.

    output: a directory for what it prints. A hash seed counts: each has a process of its own that forks.
    """
    out, err = output / "stdout", output / "stderr"
    order = {"cwd": str(where), "arguments": [*map(str, arguments)], "env": environment(**environ)}
    seed = {name: environ[name] for name in ("PYTHONHASHSEED",) if name in environ}
    launcher = _launcher(**seed)
    assert launcher.stdin is not None and launcher.stdout is not None
    launcher.stdin.write(json.dumps({**order, "out": str(out), "err": str(err)}) + "\n")
    launcher.stdin.flush()
    code = int(launcher.stdout.readline())
    return subprocess.CompletedProcess(arguments, code, *(path.read_text("utf-8") for path in (out, err)))
