"""Where the time goes: torchmigrate's functions by the time spent in each, over the files of a directory."""

from __future__ import annotations

import argparse
import cProfile
import pstats
from pathlib import Path

from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.config import Settings
from torchmigrate.engine import Engine


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
    pstats.Stats(profile).strip_dirs().sort_stats(options.sort).print_stats(options.top)


if __name__ == "__main__":
    main()
