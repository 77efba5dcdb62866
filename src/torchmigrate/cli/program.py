"""One run of the program: its streams, its exit code, and its messages if a command fails."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from torchmigrate.cli.commands import commands

INTERRUPTED = 130
_CANNOT_WRITE = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 clean, 1 findings, 2 could not do the job, 130 interrupted.

    arguments: those of the process if not given.
    """
    _open_streams()
    code: object
    if "_TORCHMIGRATE_COMPLETE" in os.environ:
        from torchmigrate.cli.completion import prepare

        prepare()
    try:
        code = _run(arguments)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        # Without a command, click's message is the help (and an exception of its own since 8.2).
        if type(error).__name__ == "NoArgsIsHelpError":
            _say(error.format_message())
        elif isinstance(error, click.UsageError) and error.ctx is not None:
            _say(f"{error.ctx.get_usage()}\nTry `{error.ctx.command_path} --help`.\n")
            _say(f"error: {error.format_message()}")
        else:
            _say(f"error: {error.format_message()}")
        code = 2
    except (click.Abort, KeyboardInterrupt) as error:
        from torchmigrate.files.signals import Terminated, end_by_sigterm

        if isinstance(error.__cause__ or error, Terminated):
            end_by_sigterm()
        _say("Interrupted.")
        code = INTERRUPTED
        # With `python -m`, CPython ends by the signal instead of the exit code if what was interrupted was an
        # `exec` of text, as in making a named tuple; another one makes it forget that.
        exec("")
    except BrokenPipeError:  # from click's own output; our own output handles it itself
        code = 0
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            code = _internal_error(error)
        else:
            _say(f"error: cannot write the output: {(error.strerror or '').lower()}")
            code = 2
    except Exception as error:  # a mistake of ours: one line for the user instead of a traceback
        code = _internal_error(error)
    _close_streams()
    sys.exit(code if isinstance(code, int) else 0)


def _run(arguments: Sequence[str] | None) -> object:
    try:
        return commands.main(arguments, prog_name="torchmigrate", standalone_mode=False)
    except RuntimeError as error:
        from torchmigrate.files.signals import interrupt_in

        if (interrupt := interrupt_in(error)) is not None:
            raise interrupt from None
        raise


def _internal_error(error: Exception) -> int:
    """Report an unexpected error; the exit code."""
    if os.environ.get("TORCHMIGRATE_TRACEBACK"):
        raise error
    text = " ".join(f"{type(error).__name__}: {error}".split())
    _say(f"error: internal error: {text}; please report it (TORCHMIGRATE_TRACEBACK=1 shows where it is)")
    return 2


def _say(text: str) -> None:
    """Write to stderr, where that is possible; control characters are escaped."""
    from torchmigrate.printing import terminal_text

    with suppress(OSError):
        click.echo(terminal_text(text, color=False), err=True)


def _open_streams() -> None:
    """Put something in the place of stdout and stderr that the calling process closed.

    Else the next file that is opened would be one of them, and get what is printed.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _close_streams() -> None:
    """Flush stdout and stderr now: at exit, Python would print a traceback if the reader has ended."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
