"""A directory in which commands run, as a user runs them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import torchmigrate
from torchmigrate.cli import program
from torchmigrate.files.paths import forget

SOURCE = Path(torchmigrate.__file__).parent.parent


def environment(**more: str) -> dict[str, str]:
    kept = {
        key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
    }
    return {**kept, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "utf-8", **more}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "torchmigrate", *map(str, arguments)]


class Project:
    """A directory with Python files, in which commands run."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.monkeypatch = monkeypatch

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def run_bytes(
        self, *arguments: str | Path, stdin: bytes = b"", **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run torchmigrate in this process, as a script would run it."""
        forget()  # a process of its own would look anew
        streams = [
            io.TextIOWrapper(io.BytesIO(data), "utf-8", write_through=True) for data in (stdin, b"", b"")
        ]
        with self.monkeypatch.context() as patch:
            patch.chdir(self.path)
            for name in ("NO_COLOR", "FORCE_COLOR"):
                patch.delenv(name, raising=False)
            for name, value in environ.items():
                patch.setenv(name, value)
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as stop:
                program.main([str(argument) for argument in arguments])
        out, err = (stream.buffer.getvalue() for stream in streams[1:])  # type: ignore[attr-defined]
        code = stop.value.code
        assert isinstance(code, int)
        return subprocess.CompletedProcess(arguments, code, out, err)

    def run(
        self, *arguments: str | Path, code: int | None = None, stdin: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """The same in text; without a traceback, and with this exit code."""
        done = self.run_bytes(*arguments, stdin=stdin.encode(), **environ)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err and "internal error" not in err, err
        if code is not None:
            assert done.returncode == code, (out, err)
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Run torchmigrate in a process of its own."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen(command(*arguments), cwd=self.path, **{"env": environment(), **pipes})

    def codes(self, *arguments: str | Path) -> list[str]:
        done = self.run("check", "--output-format", "json", *arguments)
        return [item["code"] for item in json.loads(done.stdout)]
