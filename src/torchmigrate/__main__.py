"""`python -m torchmigrate`, and the `torchmigrate` script."""

import sys


def main() -> None:
    """Run the command line, which takes a moment to load; Ctrl-C may come before it has."""
    try:
        from torchmigrate.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
