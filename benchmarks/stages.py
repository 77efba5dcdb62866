"""Where the time goes: torchmigrate's functions by the time spent in each, over the files of a directory."""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import subprocess
import sys
from pathlib import Path

from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.config.settings import Settings
from torchmigrate.engine.engine import Engine

# What a file with the usual names asks of the API data first, in a new process.
FIRST_ANSWERS = '''
import time
start = time.perf_counter()
from torchmigrate.versions.surface import surface_of
names = """add Tensor.view nn.Linear nn.Module.train nn.functional.relu optim.Adam.step load no_grad device
    float32 cuda.is_available utils.data.DataLoader save stack symeig fft.rfft distributed.all_reduce
    backends.cudnn nn.utils.clip_grad_norm_ optim.lr_scheduler.StepLR""".split()
for name in names:
    surface_of("torch").status("torch." + name, (2, 15))
print(time.perf_counter() - start)
'''


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, required=True, help="directory with the Python files to check")
    parser.add_argument("--top", type=int, default=30, help="functions to show [default: 30]")
    parser.add_argument("--sort", default="tottime", choices=["tottime", "cumulative"])
    options = parser.parse_args()
    catalogue = default_catalogue()
    engine = Engine(catalogue, Settings(codes=frozenset(rule.code for rule in catalogue.rules)))
    paths = [path for path in sorted(options.files.rglob("*.py")) if path.is_file()]
    profile = cProfile.Profile()
    profile.enable()
    for path in paths:
        engine.check(path)
    profile.disable()
    command = [sys.executable, "-c", FIRST_ANSWERS]
    runs = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(9)]
    print(f"API data, from import to the status of 20 names: {statistics.median(runs) * 1000:.0f} ms")
    pstats.Stats(profile).strip_dirs().sort_stats(options.sort).print_stats(options.top)


if __name__ == "__main__":
    main()
