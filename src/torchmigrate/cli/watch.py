"""`check --watch`: check again whenever a file changes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from torchmigrate.files.paths import forget, is_dir
from torchmigrate.files.reading import explain_os_error
from torchmigrate.project.discover import DEFAULT_EXCLUDE
from torchmigrate.report.console import Console

_CLEAR = "\x1b[2J\x1b[3J\x1b[H"  # the screen, what was scrolled out of it, and back to its first line
_SETTLED = 100  # milliseconds without a change after which files are checked


def watch(paths: Sequence[Path], check: Callable[[], int], color: str) -> int:
    """Check, wait for a change, and so on until the user interrupts.

    Args:
        paths: that are watched; of a file, its directory, since editors replace files.
        check: makes a whole run with what files and configurations hold by then.

    Raises:
        click.ClickException: the paths cannot be watched.
        KeyboardInterrupt: always, in the end.
    """
    console = Console(color)
    changes = _changes({path if is_dir(path) else path.parent for path in paths})
    try:
        next(changes)  # what changes from now on is noticed
        while True:
            if sys.stdout.isatty():
                console.out_bytes(_CLEAR.encode())
            try:
                check()
            except click.ClickException as error:  # the next change may mend it
                console.error(error.format_message())
            console.note("Watching for changes. Press Ctrl-C to stop.")
            while not next(changes):
                pass
            forget()
    except OSError as error:
        raise click.ClickException(f"--watch: cannot watch files: {explain_os_error(error)}") from None


def _changes(directories: set[Path]) -> Iterator[bool]:
    """Begin to watch; then yield repeatedly whether anything has changed."""
    try:
        import watchfiles
    except ImportError:
        raise click.ClickException(
            '--watch requires the package watchfiles: pip install "torchmigrate[watch]"'
        ) from None

    class Relevant(watchfiles.DefaultFilter):
        ignore_dirs = (*watchfiles.DefaultFilter.ignore_dirs, *DEFAULT_EXCLUDE)

    for changes in watchfiles.watch(
        *sorted(directories),
        watch_filter=Relevant(),
        step=_SETTLED,
        rust_timeout=200,
        yield_on_timeout=True,
        raise_interrupt=True,
    ):
        yield bool(changes)
