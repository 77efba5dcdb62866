"""The option `--torchmigrate-record` of pytest: the tests record what `torchmigrate record -- pytest` does.

Every run of pytest loads this where torchmigrate is installed: it does nothing without the option.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from torchmigrate.evidence.recording import Recording

_OPTION = "--torchmigrate-record"


class _Ending:
    """What is done when the tests have run."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.ended = False

    def _end(self) -> str:
        import click

        from torchmigrate.cli.record import end_recording

        self.ended = True
        try:
            return end_recording(self.recording)
        except click.ClickException as error:
            return f"torchmigrate: {error.format_message()}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Keep the recording, and report that; worker processes have ended by now."""
        terminalreporter.write_line(self._end())

    def pytest_unconfigure(self) -> None:
        """Keep the recording if no report is printed."""
        if not self.ended:
            self._end()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name the option."""
    parser.getgroup("torchmigrate").addoption(
        _OPTION,
        action="store_true",
        help="Record the types of objects in outdated code to .torchmigrate/evidence.json, which "
        "`torchmigrate check` and `plan` use.",
    )


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before any file of the project is imported."""
    if not early_config.known_args_namespace.torchmigrate_record:
        return
    from torchmigrate.evidence.recording import is_under_way

    if is_under_way():
        return  # in a process that helps with the tests, or under `torchmigrate record`
    import click
    import pytest

    from torchmigrate.cli.record import begin_recording
    from torchmigrate.cli.session import Session

    session = Session.open([early_config.rootpath], isolated=False, detect=False)
    try:
        recording = begin_recording(session)
    except click.ClickException as error:
        raise pytest.UsageError(f"{_OPTION}: {error.format_message()}") from None
    recording.start()
    early_config.pluginmanager.register(_Ending(recording), "torchmigrate-recording")
