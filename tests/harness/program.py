"""torchmigrate with the settings that a run has: options go through the command line, rules are those installed."""

from __future__ import annotations

import functools
import signal
from collections.abc import Iterable
from pathlib import Path

import click

from harness.catalogue import catalogue
from torchmigrate.catalogue.index import Catalogue
from torchmigrate.cli.check import check
from torchmigrate.cli.commands import commands
from torchmigrate.cli.session import Session
from torchmigrate.config.settings import Settings
from torchmigrate.engine.engine import Engine
from torchmigrate.engine.results import FileResult
from torchmigrate.source.text import Source

NAME = Path("example.py")
FIX = ("--fix",)
FIX_ALL = ("--fix", "--unsafe-fixes")


def heed_interrupts() -> None:
    """In a process that is about to start, as `preexec_fn`: Control-C interrupts it.

    Tests that run in the background have it ignored, and so has what they start.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def only(codes: Iterable[str]) -> tuple[str, str]:
    """The options by which a run looks for these rules alone; no codes: for none."""
    joined = ",".join(sorted(codes))
    return ("--select", joined) if joined else ("--ignore", "ALL")


def settings(*options: str) -> Settings:
    """What `torchmigrate check --isolated OPTIONS` comes to."""
    program = click.Context(commands, info_name="torchmigrate", **commands.context_settings)
    context = check.make_context("check", ["--isolated", *options], parent=program)
    return Session.from_options([Path()], context.params).settings


@functools.cache
def engine(*options: str) -> Engine:
    """What checks the files of such a run."""
    return Engine(catalogue(), settings(*options))


def attempt(text: str, *options: str, path: Path = NAME, rules: Catalogue | None = None) -> FileResult:
    """What becomes of a text, as the file `path`, and what goes wrong.

    rules: instead of the installed ones, with an engine of its own.
    """
    checker = engine(*options) if rules is None else Engine(rules, settings(*options))
    return checker.check_source(Source.from_text(text, path), path)


def run(text: str, *options: str, path: Path = NAME, rules: Catalogue | None = None) -> FileResult:
    """The same, and nothing goes wrong."""
    result = attempt(text, *options, path=path, rules=rules)
    assert not result.problems, [problem.reason for problem in result.problems]
    return result


def fixed(text: str, *options: str, path: Path = NAME) -> str:
    """The text after the fixes of a run, which a second run leaves as it is."""
    new = run(text, *options, path=path).new_text
    if new is None:
        return text
    assert run(new, *options, path=path).new_text is None, "a second run changes nothing"
    return new
