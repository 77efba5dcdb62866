"""Scripts of other systems' files, run in bash with the program that is tested."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.launcher import shell_line
from harness.project import SOURCE

_EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")


def programs(directory: Path, **scripts: str) -> Path:
    """A directory of programs, beside `torchmigrate`: scripts of sh by name."""
    directory.mkdir(parents=True, exist_ok=True)
    scripts = {"torchmigrate": shell_line(), **scripts}
    for name, script in scripts.items():
        path = directory / name
        path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        path.chmod(0o755)
    return directory


def bash(
    script: str, cwd: Path, path: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub, GitLab and others do: the first command that fails ends it.

    path: a directory of programs that come first.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "GITHUB_", "INPUT_", "TORCHMIGRATE_O"))
    }
    before = [] if path is None else [str(path)]
    environment = {
        **kept,
        "PATH": os.pathsep.join([*before, os.environ["PATH"]]),
        "PYTHONPATH": str(SOURCE),
        "PYTHONIOENCODING": "utf-8",
        **variables,
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def filled(text: str, values: Mapping[str, str]) -> str:
    """A value of a workflow with its expressions, which are names or `name || 'default'`, worked out."""

    def value(match: re.Match[str]) -> str:
        name, _, default = match[1].partition(" || ")
        return values.get(name, "") or default.strip("'")

    return _EXPRESSION.sub(value, text)


def variables(step: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, str]:
    """The environment that a step or job of a workflow asks for."""
    return {name: filled(text, values) for name, text in step.get("env", {}).items()}


def outputs(file: Path) -> dict[str, str]:
    """What a step has written to GITHUB_OUTPUT."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return dict(line.split("=", 1) for line in lines)
