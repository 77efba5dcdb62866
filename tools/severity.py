"""Whether each rule is as bad as it says, against the torch, torchvision and torchaudio that are installed.

python tools/severity.py [CODE...] [--all]

A finding is an *error* if what it found is gone, a *warning* if it warns or changed its results, an *info* if
it is only outdated. What can be executed is executed: names are looked up, the old sides of the examples are
run with all warnings on, statement by statement, and so is the code in `tests/severities/probes.yaml`, for
rules whose examples can not run. What cannot is read: what the installed sources say when they are called, or
in their documentation. `tests/severities/explained.yaml` has the reasons of what neither shows.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from pathlib import Path

import click

TESTS = Path(__file__).resolve().parent.parent / "tests"


@click.command()
@click.argument("codes", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Print the rules that agree too, with the evidence.")
def main(codes: tuple[str, ...], everything: bool) -> None:
    """Compare the severities of all rules, or of CODES, with the installed releases."""
    gc.disable()  # what is loaded stays, and looking for garbage in it takes long
    sys.path[:0] = [str(Path(__file__).parent), str(TESTS)]
    from severities.check import shown, verdicts  # type: ignore[import-not-found]  # tests are not type-checked

    count = wrong = 0
    for verdict in verdicts(codes):
        count += 1
        wrong += verdict.problem is not None
        if everything or verdict.problem is not None:
            click.echo(str(verdict))
    click.echo(f"{count} symbols of rules compared, {wrong} disagree")
    effects: Counter[str] = Counter()
    left: Counter[str] = Counter()
    failed = 0
    for place in shown(codes):
        effects[f"{place.severity.label} {place.effect}"] += 1
        left[place.code] += place.effect == "not run"
        failed += place.problem is not None
        if everything or place.problem is not None:
            click.echo(f"{place}: WRONG, {place.problem}" if place.problem else str(place))
    not_run = [f"{code} {number}" for code, number in sorted(left.items()) if number]
    click.echo(f"not run, no inputs: {', '.join(not_run)}")
    counts = ", ".join(f"{number} {effect}" for effect, number in sorted(effects.items()))
    click.echo(f"{effects.total()} places in examples ({counts}), {failed} disagree")
    raise SystemExit(1 if wrong or failed else 0)


if __name__ == "__main__":
    main()
