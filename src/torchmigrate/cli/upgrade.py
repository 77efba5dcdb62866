"""The `upgrade` command: what is asked for, the steps, and the reports."""

from __future__ import annotations

from collections.abc import Callable

import click

from torchmigrate.report.console import Console
from torchmigrate.report.style import Style
from torchmigrate.upgrade.model import Report, UpgradeError
from torchmigrate.upgrade.processes import OutOfTime
from torchmigrate.upgrade.upgrade import Request, Upgrade

DONE, FAILING, FAILED = 0, 1, 2


def run_upgrade(request: Request, console: Console, output_format: str) -> int:
    """Upgrade a project; the exit code: 1 where tests fail in the end.

    Raises click.ClickException where it cannot be done.
    """
    from torchmigrate.files.signals import catch_sigterm

    catch_sigterm()
    upgrade: Upgrade | None = None
    try:
        upgrade = Upgrade(request, console)
        report = upgrade.run()
        directory = upgrade.space.directory
        for name, render in _FILES.items():
            (directory / name).write_text(render(report), encoding="utf-8", errors="backslashreplace")
    except UpgradeError as error:
        raise click.ClickException(str(error)) from None
    except OutOfTime:
        raise click.ClickException(f"the time limit was reached; {_how_to_go_on(upgrade)}") from None
    except OSError as error:  # the disk is full, or something was removed meanwhile
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        raise click.ClickException(f"{what}; {_how_to_go_on(upgrade)}") from None
    except KeyboardInterrupt:
        console.note(_how_to_go_on(upgrade))
        raise
    console.out(_rendered(report, output_format, console.style))
    console.note(f"Reports: {directory}/report.md, report.html, report.json")
    if report.applied:
        console.note(_how_to_take(upgrade))
    return FAILING if report.bad or report.broken else DONE


def dry_run(request: Request, console: Console) -> int:
    """Say what an upgrade would do; the exit code. Nothing is made.

    Raises click.ClickException where it cannot be done.
    """
    from torchmigrate.upgrade.preview import preview

    try:
        console.out(preview(request, console))
    except UpgradeError as error:
        raise click.ClickException(str(error)) from None
    return DONE


def _rendered(report: Report, output_format: str, style: Style) -> str:
    from torchmigrate.upgrade.terminal import as_text

    if output_format == "text":
        return as_text(report, style)
    return _FILES[f"report.{ {'markdown': 'md'}.get(output_format, output_format) }"](report)


def _markdown(report: Report) -> str:
    from torchmigrate.upgrade.markdown import as_markdown

    return as_markdown(report)


def _html(report: Report) -> str:
    from torchmigrate.upgrade.html import as_html

    return as_html(report)


def _json(report: Report) -> str:
    from torchmigrate.upgrade.json import as_json

    return as_json(report)


_FILES: dict[str, Callable[[Report], str]] = {
    "report.md": _markdown,
    "report.html": _html,
    "report.json": _json,
}


def _how_to_go_on(upgrade: Upgrade | None) -> str:
    if upgrade is None or not hasattr(upgrade, "space"):
        return "nothing was started"
    return f"the work so far is in {upgrade.space.directory}; run the same command with --resume to continue"


def _how_to_take(upgrade: Upgrade) -> str:
    space = upgrade.space
    if space.is_copy:
        return f"The upgraded copy is {space.tree}."
    take, remove = f"git merge {space.branch}", f"git worktree remove --force {space.tree}"
    return f"To use it: {take}. To remove the work tree: {remove}"
