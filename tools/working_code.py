"""Whether code that works on the installed torch still works after its safe fixes.

    python tools/working_code.py --command torchmigrate [--select ALL] [--every 50]

Writes a line of code for every way to reach every public name of torch, functorch, torchvision and
torchaudio, as far as they are installed and can be imported: `import M as a`, `from M import N as b`,
`c = M.N`, `d = M.C.attribute`, `from M import C as e; f = e.attribute`, `from M import *`. The program fixes
them, and what changed is run: it has to give the same object as before. What is another one on purpose stands
in `working/meant.yaml` with its reason. The attributes of a class are tried under the shortest of its names,
those that it inherits in one form; what it has from Python itself is left out.
Exit code 1 if something works no more.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from pathlib import Path

import click
from working.lines import lines, sampled
from working.run import check, installed_release, named_by_rules, read_library


@click.command()
@click.option("--command", default="torchmigrate", help="The program, as a shell would call it.")
@click.option("--select", help="Rules to select in place of the default ones, such as ALL.")
@click.option("--minimum", help="The oldest torch that the code is for.")
@click.option("--target", help="The torch that it moves to; the installed one, without it.")
@click.option("--python", default=sys.executable, help="The interpreter that has the libraries.")
@click.option("--every", default=1, help="Only one in so many lines, and those about a name of a rule.")
@click.option("--match", default="", help="Only lines about names that contain this.")
def main(
    command: str,
    select: str | None,
    minimum: str | None,
    target: str | None,
    python: str,
    every: int,
    match: str,
) -> None:
    """Run the check and print what works no more."""
    started = time.monotonic()
    options = {"--select": select, "--minimum": minimum, "--target": target or installed_release(python)}
    given = [part for key, value in options.items() if value for part in (key, value)]
    found = [line for line in lines(read_library(python)) if match in line.name]
    if every > 1:
        found = list(sampled(found, every, named_by_rules()))
    with tempfile.TemporaryDirectory() as directory:
        program = [*shlex.split(command), "check", "--isolated", "--fix", *given]
        outcome = check(found, program, Path(directory), python)
    for difference in outcome.differences:
        click.echo(difference)
    counts = f"{outcome.lines} lines, {outcome.changed} changed, {len(outcome.differences)} work no more"
    click.echo(f"{counts} ({time.monotonic() - started:.0f} s)")
    sys.exit(bool(outcome.differences))


if __name__ == "__main__":
    main()
