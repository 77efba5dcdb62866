"""What `torchmigrate fleet` costs, and how that grows; see README.md beside this file."""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import psutil
from run import table

from torchmigrate.fleet.model import Repository
from torchmigrate.fleet.repositories import read_repositories

PAUSE = 0.2  # seconds between two looks at the processes
MEGABYTE = 1_000_000
MEDIAN, SPREAD, MOST = 25, 1.2, 3000  # Python files of a made repository: log-normal, cut
MANY = 64  # workers that are extrapolated to


# ---- measuring --------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """What a command took.

    own: CPU seconds of its process. below: of all processes that it started, and those that these started.
    memory: MB of its process, at most. worker: MB of one worker with the process that it started, at most.
    """

    seconds: float
    own: float
    below: float
    memory: float
    worker: float = 0.0

    @property
    def cpu(self) -> float:
        return self.own + self.below


def plus(one: Cost, two: Cost) -> Cost:
    """The cost of two commands, one after the other."""
    return Cost(
        one.seconds + two.seconds,
        one.own + two.own,
        one.below + two.below,
        max(one.memory, two.memory),
        max(one.worker, two.worker),
    )


def measured(command: Sequence[str], where: Path) -> Cost:
    """The cost of a command, whatever it prints.

    A process that has ended, and was not waited for, still has its times, and those of all that it waited
    for: a worker waits for the processes that it starts, the command for its workers. What it did not wait
    for is counted by the last look at it.

    Raises SystemExit: it did not work (an exit code other than 0, and 2, which is said of single
    repositories).
    """
    start = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, cwd=where, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
        )
        watched = psutil.Process(process.pid)
        workers: dict[int, float] = {}
        memory = worker = 0.0
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            with suppress(psutil.Error):
                memory = max(memory, watched.memory_info().rss / MEGABYTE)
                worker = max(worker, _look(watched, workers))
            time.sleep(PAUSE)
        seconds = time.perf_counter() - start
        times = watched.cpu_times()
        code = process.wait()
        if code not in (0, 2):
            errors.seek(0)
            sys.exit(f"{' '.join(command)} failed:\n{errors.read().decode()[-2000:]}")
    below = max(times.children_user + times.children_system, sum(workers.values()))
    return Cost(seconds, times.user + times.system, below, memory, worker)


def _look(process: psutil.Process, workers: dict[int, float]) -> float:
    """MB of the largest child with all below it; what CPU time each has by now is kept in `workers`."""
    parents: dict[int, int] = {}
    held: dict[int, float] = {}
    for each in process.children(recursive=True):
        with suppress(psutil.Error), each.oneshot():
            parents[each.pid] = each.ppid()
            held[each.pid] = each.memory_info().rss / MEGABYTE
            if each.ppid() == process.pid:
                workers[each.pid] = sum(each.cpu_times()[:4])
    totals: dict[int, float] = {}
    for pid, size in held.items():
        top = pid
        while parents.get(top, process.pid) != process.pid:
            top = parents[top]
        totals[top] = totals.get(top, 0.0) + size
    return max(totals.values(), default=0.0)


# ---- real repositories ------------------------------------------------------------------------------


@dataclass
class Way:
    """One way to make the plans, and what each round of it cost."""

    name: str
    costs: list[Cost] = field(default_factory=list)

    def median(self, of: str) -> float:
        return float(statistics.median(getattr(cost, of) for cost in self.costs))


def present(repositories: Sequence[Repository], where: Path) -> Iterator[Path]:
    """Directories with the repositories; what has to be cloned is."""
    for number, each in enumerate(repositories):
        if each.is_directory and each.revision is None:
            yield Path(each.address)
            continue
        place = where / f"{number}-{each.name.replace('/', '-')}"
        print(f"cloning {each.name}", file=sys.stderr)
        revision = ["--branch", each.revision] if each.revision else []
        source = f"file://{each.address}" if each.is_directory else each.address
        subprocess.run(
            ["git", "clone", "--quiet", "--depth", "1", *revision, "--", source, place], check=True
        )
        yield place


def read_all(directories: Sequence[Path]) -> int:
    """Read all Python files once, so that the first way is not the only one that waits for the disk."""
    files = 0
    for directory in directories:
        for path in directory.rglob("*.py"):
            with suppress(OSError):
                path.read_bytes()
                files += 1
    return files


def compare(program: Sequence[str], listed: Path, target: str, repeat: int) -> None:
    """Plans one by one, against fleets with one worker and two."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        directories = list(present(read_repositories(listed), work / "clones"))
        files = read_all(directories)
        print(
            f"{len(directories)} repositories, {files:,} Python files, {os.cpu_count()} cores",
            file=sys.stderr,
        )
        repos = write_list(work / "repos.csv", directories)
        (work / "empty").mkdir()
        nothing = write_list(work / "nothing.csv", [work / "empty"])
        ways = {
            name: Way(name)
            for name in (
                "`plan`, one by one, `--jobs 1`",
                "`plan`, one by one",
                "`fleet`, 1 worker",
                "`fleet`, 2 workers",
                "`fleet`, 1 worker, nothing to do",
            )
        }
        alone, usual, one, two, empty = ways.values()
        for round_ in range(repeat):
            for way, jobs in ((alone, ["--jobs", "1"]), (usual, [])):
                print(f"running {way.name}", file=sys.stderr)
                total = Cost(0.0, 0.0, 0.0, 0.0)
                for number, directory in enumerate(directories):
                    page = ["--output-format", "html", "--output", str(work / f"{number}.html")]
                    asked = [*program, "plan", str(directory), "--to", target, *page, *jobs]
                    total = plus(total, measured(asked, work))
                way.costs.append(total)
            for way, workers, given in ((one, 1, repos), (two, 2, repos), (empty, 1, nothing)):
                print(f"running {way.name}", file=sys.stderr)
                out = work / f"out-{round_}-{workers}-{given.stem}"
                way.costs.append(measured(fleet(program, given, target, out, workers), work))
                shutil.rmtree(out)
    print(shown(list(ways.values()), len(directories)))
    base, started = alone.median("seconds"), empty.median("seconds")
    over = one.median("seconds") / base - 1
    rest = (one.median("seconds") - started) / base - 1
    more = one.median("cpu") / alone.median("cpu") - 1
    print(
        f"\nOne worker takes {over:+.1%} time and {more:+.1%} CPU time against `plan --jobs 1`, one by one; "
        f"without the {started:.1f} s that a fleet takes with nothing to do, {rest:+.1%} time."
    )
    print(f"Two workers are {one.median('seconds') / two.median('seconds'):.2f} x as fast as one.")


def write_list(path: Path, directories: Sequence[Path]) -> Path:
    rows = [f'"{each}",r{number}' for number, each in enumerate(directories)]
    path.write_text("\n".join(["address,name", *rows]) + "\n", "utf-8")
    return path


def fleet(program: Sequence[str], listed: Path, target: str, out: Path, workers: int) -> list[str]:
    """The command for a fleet whose results are not there yet."""
    how = ["--to", target, "--output", str(out), "--workers", str(workers), "--quiet"]
    return [*program, "fleet", "run", str(listed), *how]


def shown(ways: Sequence[Way], count: int) -> str:
    """The ways as a table; ratios are against the first."""
    rows = [["", "s", "CPU s", "s/repository", "time", "worker MB", "command MB", "runs"]]
    for way in ways:
        seconds = way.median("seconds")
        worker = way.median("worker")
        numbers = [
            f"{seconds:.2f}",
            f"{way.median('cpu'):.2f}",
            f"{seconds / count:.2f}",
            f"x {seconds / ways[0].median('seconds'):.2f}",
            f"{worker:.0f}" if way.name.startswith("`fleet`") else "",
            f"{way.median('memory'):.0f}",
            str(len(way.costs)),
        ]
        rows.append([way.name, *numbers])
    return table(rows)


# ---- made repositories ------------------------------------------------------------------------------

PLAIN = """\
import json
import math
import os
from pathlib import Path

"""
TORCH = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

"""
# `{n}` and `{f}` are numbers of their own wherever a unit is used.
WITHOUT = """\
def read_{n}(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


class Config{n}:
    rate = {f}
    size = {n}

    def __init__(self, **values):
        for key, value in values.items():
            setattr(self, key, value)


def names_{n}(root):
    found = {}
    for path in sorted(Path(root).rglob('*.txt')):
        found.setdefault(path.stem, []).append(path.stat().st_size)
    return found


def schedule_{n}(step, total={n}, peak={f}):
    if step < total // 10:
        return peak * step / max(1, total // 10)
    return peak * 0.5 * (1 + math.cos(math.pi * step / total))


TABLE_{n} = {
    'a{n}': [{f}, {n}],
    'b': ({n}, 'x' * 3),
    'c': os.environ.get('C{n}', ''),
}
""".split("\n\n\n")
WITH = """\
class Block{n}(nn.Module):
    def __init__(self, width={n}):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + F.gelu(self.first(self.norm(x)))


def evaluate_{n}(model, loader, device):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x.to(device))
            right += (out.argmax(dim=1) == y.to(device)).sum().item()
            total += y.numel()
    return right / max(1, total)


def train_{n}(model, data, epochs={n}):
    optimizer = torch.optim.AdamW(model.parameters(), lr={f})
    for epoch in range(epochs):
        for x, y in DataLoader(data, batch_size={n}, shuffle=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()


def mix_{n}(a, b, weight={f}):
    a = a.reshape(a.shape[0], -1)
    b = torch.cat([b, b.new_zeros(1, b.shape[1])])[: len(a)]
    return weight * a + (1 - weight) * b.mean(0, keepdim=True)


def attend_{n}(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / {n} ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float('-inf'))
    return torch.softmax(scores, dim=-1) @ v


def save_{n}(model, path):
    torch.save({'model': model.state_dict(), 'step': {n}}, path)
""".split("\n\n\n")
OUTDATED = """\
def axes_{n}(x):
    values, vectors = torch.symeig(x.t() @ x, eigenvectors=True)
    return x @ vectors / values.sqrt()


def outer_{n}(a, b):
    return torch.ger(a, b) * {f}


def scaled_{n}(model, x):
    scaler = torch.cuda.amp.GradScaler()
    with torch.cuda.amp.autocast():
        loss = model(x).mean()
    scaler.scale(loss).backward()
    return scaler


def load_{n}(path):
    return torch.load(path, map_location='cpu')


def clip_{n}(model):
    torch.nn.utils.clip_grad_norm(model.parameters(), {f})
    nn.init.xavier_uniform(model.weight)


loss_{n} = nn.MSELoss(size_average=False)


def solve_{n}(a, b):
    x, lu = torch.solve(b, a)
    return x.data[0]
""".split("\n\n\n")


def sizes(count: int) -> list[int]:
    """How many Python files each repository has.

    The numbers are those of a log-normal distribution in an order in which the first ones, however many, are
    spread like all: of so many repositories and of twice as many the mean is nearly the same.
    """
    normal = NormalDist(math.log(MEDIAN), SPREAD)
    return [min(MOST, max(1, round(math.exp(normal.inv_cdf(_halved(index + 1)))))) for index in range(count)]


def _halved(index: int) -> float:
    """1/2, 1/4, 3/4, 1/8, 5/8, ...: the binary digits of a number, backwards."""
    value, part = 0.0, 0.5
    while index:
        value += part * (index & 1)
        index >>= 1
        part /= 2
    return value


def make(root: Path, count: int) -> list[Path]:
    """Write so many repositories, without git; the same ones each time."""
    made = []
    for number, files in enumerate(sizes(count)):
        chance = random.Random(number)
        place = root / f"r{number:05}"
        place.mkdir(parents=True)
        oldest = chance.choice(("1.4", "1.8", "1.12", "2.0"))
        (place / "requirements.txt").write_text(f"torch>={oldest}\nnumpy\n", "utf-8")
        (place / "README.md").write_text("# Made\n\n```python\nimport torch\n```\n", "utf-8")
        for index in range(files):
            path = place / f"part{index // 40}" / f"module_{index}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(module(chance), "utf-8")
        made.append(place)
    return made


def module(chance: random.Random) -> str:
    """A file: half of them know nothing of torch, and of the others every third is outdated."""
    torch = chance.random() < 0.5
    outdated = torch and chance.random() < 1 / 3
    units = [*WITHOUT, *(2 * WITH if torch else ())]
    parts = [chance.choice(units) for _ in range(1 + round(chance.lognormvariate(1.5, 0.7)))]
    if outdated:
        parts.insert(chance.randrange(len(parts) + 1), chance.choice(OUTDATED))
    text = PLAIN + (TORCH if torch else "")
    for part in parts:
        number, fraction = str(chance.randrange(2, 1000)), str(round(chance.random(), 4))
        text += "\n\n" + part.strip("\n").replace("{n}", number).replace("{f}", fraction) + "\n"
    return text


def grow(program: Sequence[str], count: int, target: str, workers: int) -> None:
    """A quarter, half and all of so many made repositories."""
    costs: dict[int, Cost] = {}
    files: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        print(f"writing {count} repositories", file=sys.stderr)
        made = make(work / "repositories", count)
        shape = sizes(count)
        for some in sorted({max(1, count // 4), max(1, count // 2), count}):
            print(f"running a fleet of {some}", file=sys.stderr)
            listed = write_list(work / f"{some}.csv", made[:some])
            out = work / f"out-{some}"
            costs[some] = measured(fleet(program, listed, target, out, workers), work)
            files[some] = sum(shape[:some])
            shutil.rmtree(out)
    rows = [
        [
            "repositories",
            "files",
            "s",
            "s/repository",
            "ms/file",
            "CPU s",
            "of it the command",
            "worker MB",
            "command MB",
        ]
    ]
    for some, cost in costs.items():
        numbers = [
            f"{files[some]:,}",
            f"{cost.seconds:.1f}",
            f"{cost.seconds / some:.3f}",
            f"{cost.seconds / files[some] * 1000:.1f}",
            f"{cost.cpu:.1f}",
            f"{cost.own:.1f} ({cost.own / cost.cpu:.1%})",
            f"{cost.worker:.0f}",
            f"{cost.memory:.0f}",
        ]
        rows.append([f"{some:,}", *numbers])
    print(f"{workers} workers, {os.cpu_count()} cores\n\n{table(rows)}")
    if len(costs) > 1:
        print("\n" + extrapolated(costs, count))


def extrapolated(costs: Mapping[int, Cost], count: int) -> str:
    """What follows for many workers, in words."""
    least, most = min(costs), max(costs)
    own, start = _line(least, costs[least].own, most, costs[most].own)
    below, start_below = _line(least, costs[least].below, most, costs[most].below)
    wall, _ = _line(least, costs[least].seconds, most, costs[most].seconds)
    growth = math.log(costs[most].seconds / costs[least].seconds) / math.log(most / least)
    said = f"""
        From {least:,} to {most:,} repositories the time grows with the exponent {growth:.2f} (1 is linear):
        each takes {wall:.3f} s more. Of CPU time each takes {below:.3f} s in the workers and
        {own * 1000:.1f} ms in the command, which is client and scheduler; the start takes
        {start + start_below:.1f} s.
        """
    if own <= 0 or below <= 0:
        return _joined(
            said + "That is too little to say anything of more workers: measure more repositories."
        )
    alone = count * (below + own)
    best = max(count * below / MANY, count * own)
    worst = count * below / MANY + count * own
    more = f"""
        Extrapolated: the command can feed about {below / own:,.0f} workers before it is busy all the time.
        With {MANY} workers it would be busy for {own * MANY / below:.0%} of the time that they work.
        {count:,} such repositories would take {best:.0f} s if it works beside them, {worst:.0f} s if they
        wait for it: {alone / best:.0f} to {alone / worst:.0f} times as fast as one worker. This assumes
        that every worker has a processor of its own, that clones and the network cost nothing, that the
        scheduler takes as long for a repository however many workers there are, and that no single
        repository takes longer than all of that. The start is left out. What the command does each second
        while it waits counts as if the repositories caused it, so that few repositories, or slow ones, give
        too high a share.
        """
    return f"{_joined(said)}\n\n{_joined(more)}"


def _joined(text: str) -> str:
    return " ".join(text.split())


def _line(less: int, small: float, more: int, large: float) -> tuple[float, float]:
    """What each one adds, and what there is without any."""
    slope = (large - small) / (more - less)
    return slope, small - slope * less


# ---- the command ------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repos", type=Path, help="a list of repositories, as `torchmigrate fleet` takes it")
    parser.add_argument("--synthetic", type=int, metavar="N", help="make so many repositories")
    parser.add_argument(
        "--python", help="a Python with torchmigrate[fleet] [default: torchmigrate on the PATH]"
    )
    parser.add_argument("--to", default="2.13", help="the release to move to [default: 2.13]")
    parser.add_argument("--repeat", type=int, default=1, help="rounds with --repos [default: 1]")
    parser.add_argument("--workers", type=int, default=2, help="workers with --synthetic [default: 2]")
    options = parser.parse_args()

    if options.repos is None and options.synthetic is None:
        parser.error("give --repos, --synthetic, or both")
    found = shutil.which("torchmigrate")
    if options.python is None and found is not None:
        program = [found]
    else:
        program = [options.python or sys.executable, "-m", "torchmigrate"]
    if options.repos is not None:
        compare(program, options.repos, options.to, options.repeat)
    if options.synthetic is not None:
        if options.repos is not None:
            print()
        grow(program, options.synthetic, options.to, options.workers)


if __name__ == "__main__":
    main()
