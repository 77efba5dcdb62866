"""Compares torchmigrate with TorchFix and ruff on the same files; see README.md beside this file."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMALL = "import os\n\n\ndef size(path):\n    return os.stat(path).st_size\n"
OUTDATED = "import torch\n\n\ndef product(a, b):\n    return torch.ger(a, b)\n"
# What nobody in Python can do without: all files are read, and those that mention a library are parsed.
FLOOR = """\
import ast, pathlib, warnings
warnings.simplefilter("ignore")
for path in pathlib.Path(".").rglob("*.py"):
    data = path.read_bytes()
    if any(word in data for word in (b"torch", b"apex", b"caffe2", b"fairscale", b"tensorboardX")):
        try:
            ast.parse(data)
        except (SyntaxError, ValueError):
            pass
"""


@dataclass
class Run:
    """One way to call a tool, and what was measured: seconds, CPU seconds, the largest peak memory in MB."""

    name: str
    command: list[str]
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    memory: float = 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def measure(self, times: int, where: Path) -> Run:
        """Run the command some times, each in a new process.

        Raises:
            SystemExit: it did not work (an exit code other than 0 and 1).
        """
        for _ in range(times):
            start = time.perf_counter()
            with tempfile.TemporaryFile() as errors:
                process = subprocess.Popen(self.command, cwd=where, stdout=subprocess.DEVNULL, stderr=errors)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.seconds.append(time.perf_counter() - start)
                self.cpu.append(usage.ru_utime + usage.ru_stime)
                # 2 is what torchmigrate says when a file cannot be parsed; the others pass over those.
                if process.returncode not in (0, 1, 2):
                    errors.seek(0)
                    sys.exit(f"{' '.join(self.command)} failed:\n{errors.read().decode()[-2000:]}")
            self.memory = max(self.memory, usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2))
        return self


def environment(given: Path | None, name: str, packages: Sequence[str], base: Path) -> Path:
    """The `bin` directory of a virtual environment that holds some packages; made if it is not given."""
    if given is not None:
        return (given if given.name == "bin" else given / "bin").absolute()
    place = base / name
    if not (place / "bin" / "pip").exists():
        print(f"making {place} with {', '.join(packages)}", file=sys.stderr)
        venv.create(place, with_pip=True)
    subprocess.run([place / "bin" / "pip", "install", "--quiet", "--upgrade", *packages], check=True)
    return (place / "bin").absolute()


def copy_sources(source: Path, target: Path) -> tuple[int, int]:
    """Copy the Python files of a directory, so that no tool leaves out any; how many files and lines."""
    files = lines = 0
    for path in sorted(source.rglob("*.py")):
        if path.is_file():
            data = path.read_bytes()
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            files += 1
            lines += data.count(b"\n")
    return files, lines


def table(rows: list[list[str]]) -> str:
    """Rows as a Markdown table; the first is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ruler = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    shown = []
    for row in (rows[0], ruler, *rows[1:]):
        first, *rest = row
        cells = [first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(rest, widths[1:], strict=True))]
        shown.append("| " + " | ".join(cells) + " |")
    return "\n".join(shown)


def throughput(runs: Sequence[Run], lines: int) -> str:
    """How fast each run was; ratios are against the first, and against the floor, which is the last."""
    floor = statistics.median(runs[-1].cpu)
    rows = [["", "median s", "CPU s", "x floor", "lines/s", "torchmigrate is", "peak MB", "runs"]]
    for run in runs:
        ratio = run.median / runs[0].median
        times = (
            "" if run is runs[0] else f"{ratio:.1f} x as fast" if ratio >= 0.1 else f"{ratio:.3f} x as fast"
        )
        speed = f"{lines / run.median:,.0f}"
        cpu = statistics.median(run.cpu)
        numbers = [
            f"{run.median:.2f}",
            f"{cpu:.2f}",
            f"{cpu / floor:.1f}",
            speed,
            times,
            f"{run.memory:.0f}",
            str(len(run.seconds)),
        ]
        rows.append([run.name, *numbers])
    return table(rows)


def imports(command: Sequence[str], module: str, where: Path) -> bool:
    """Whether a Python command imports a module."""
    run = subprocess.run(
        command, cwd=where, env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}, capture_output=True, text=True
    )
    return any(line.rpartition("|")[2].strip() == module for line in run.stderr.splitlines())


def start_up(tools: Path, where: Path, times: int) -> str:
    """How long it takes to do nothing."""
    command = str(tools / "torchmigrate")
    (where / "small.py").write_text(SMALL)
    (where / "outdated.py").write_text(OUTDATED)
    bare = Run("bare interpreter", [str(tools / "python"), "-c", "pass"]).measure(times, where)
    rows = [["", "median ms", "x interpreter", "libcst imported"]]
    rows.append([bare.name, f"{bare.median * 1000:.0f}", "1.0", "no"])
    for name, arguments in (
        ("--help", ["--help"]),
        ("check of a small file without torch", ["check", "small.py"]),
        ("check of a small file with one finding", ["check", "outdated.py"]),
    ):
        run = Run(name, [command, *arguments]).measure(times, where)
        loaded = imports(run.command, "libcst", where)
        times_bare = f"{run.median / bare.median:.1f}"
        rows.append([name, f"{run.median * 1000:.0f}", times_bare, "yes" if loaded else "no"])
    return table(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, required=True, help="directory with the Python files to check")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each tool [default: 5]")
    parser.add_argument(
        "--torchfix-repeat", type=int, default=1, help="runs of TorchFix, which are long [default: 1]"
    )
    parser.add_argument(
        "--torchmigrate-venv", type=Path, help="environment with torchmigrate [default: made]"
    )
    parser.add_argument("--torchfix-venv", type=Path, help="environment with TorchFix [default: made]")
    parser.add_argument("--ruff-venv", type=Path, help="environment with ruff [default: made]")
    parser.add_argument(
        "--environments", type=Path, default=ROOT / "build" / "benchmarks", help="where those are made"
    )
    parser.add_argument("--jobs", default="1", help="processes of torchmigrate and TorchFix [default: 1]")
    options = parser.parse_args()

    base = options.environments
    tools = {
        "torchmigrate": environment(options.torchmigrate_venv, "torchmigrate", [str(ROOT)], base),
        "torchfix": environment(options.torchfix_venv, "torchfix", ["torchfix"], base),
        "ruff": environment(options.ruff_venv, "ruff", ["ruff"], base),
    }
    jobs = ["--jobs", options.jobs]
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "files"
        files, lines = copy_sources(options.files, tree)
        if not files:
            sys.exit(f"{options.files} holds no Python files")
        print(
            f"{files:,} files, {lines:,} lines, {options.jobs} process(es), {os.cpu_count()} cores",
            file=sys.stderr,
        )
        select = ["--isolated", "--select", "ALL"]
        threads = {"RAYON_NUM_THREADS": options.jobs}
        os.environ.update(threads)  # ruff has no option for it
        runs = [
            Run(
                "torchmigrate",
                [str(tools["torchmigrate"] / "torchmigrate"), "check", "--no-cache", *select, *jobs, "."],
            ),
            Run("TorchFix", [str(tools["torchfix"] / "torchfix"), "--select", "ALL", *jobs, "."]),
            Run("ruff", [str(tools["ruff"] / "ruff"), "check", "--no-cache", *select, "."]),
            Run("floor: read, and ast.parse", [str(tools["torchmigrate"] / "python"), "-c", FLOOR]),
        ]
        for run in runs:
            print(f"running {run.name}", file=sys.stderr)
            run.measure(options.torchfix_repeat if run.name == "TorchFix" else options.repeat, tree)
        print(throughput(runs, lines))
        print()
        empty = Path(name) / "empty"
        empty.mkdir()
        print(start_up(tools["torchmigrate"], empty, options.repeat * 2))
        shutil.rmtree(tree)


if __name__ == "__main__":
    main()
