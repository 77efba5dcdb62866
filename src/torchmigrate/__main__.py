"""`python -m torchmigrate`, and the `torchmigrate` script."""

import gc
import sys

# How many new objects make Python look for garbage, instead of 700. What is loaded never becomes garbage; nor
# do the objects that a run leaves, which it has handled itself (`runner.GARBAGE`).
GARBAGE = 100_000


def main() -> None:
    """Run the command line, which takes a moment to load; Ctrl-C may come before it has."""
    gc.set_threshold(GARBAGE)
    try:
        from torchmigrate.cli.program import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # Python looks once more before it ends: for nothing, and for a tenth of the time of a short run.
        gc.freeze()


if __name__ == "__main__":
    main()
