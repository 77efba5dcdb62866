"""How many of a list of API changes the program finds and fixes.

    python tools/coverage.py                    the lists of `tools/releases/`, one for each release
    python tools/coverage.py tools/releases/torch-2.12.yaml --class "not found"
    python tools/coverage.py FACTS.yaml [--tier 1] [--class "API data only"]

What a release changed, from its notes and its sources, stands in a list of `tools/releases/`; its form is
described in `fact_coverage/releases.py`.

FACTS is a YAML list of changes with `id`, `symbol`, `library`, `kind`, `tier`, `severity` and
`replacement_kind`. "Found" is what the engine reports, with every rule selected, in a generated use of the
symbol (`fact_coverage/uses.py`) or in the one that `fact_coverage/uses.yaml` gives for it. What is left out
on purpose stands in `fact_coverage/left_out.yaml` with its reason, what proved wrong in
`fact_coverage/wrong.yaml` with evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import yaml
from fact_coverage.classes import Class, Covered, cover
from fact_coverage.releases import DIRECTORY, Checker, Outcome, ReleaseList, lists, outcome
from fact_coverage.uses import Program, programs

from torchmigrate.catalogue.builtin import RULES
from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.config.settings import Settings
from torchmigrate.engine.engine import Engine

HERE = Path(__file__).parent / "fact_coverage"
CLASSES = list(dict.fromkeys(each.value for each in (*Class, *Outcome)))
Fact = dict[str, Any]


def read(name: str) -> dict[str, Any]:
    """One of the files beside the tool: fact id (or symbol) -> what it says."""
    return yaml.safe_load((HERE / name).read_text(encoding="utf-8")) or {}


def engine() -> Engine:
    """An engine with every rule, for the newest release."""
    catalogue = default_catalogue()
    codes = frozenset([*(head.code for head in catalogue.heads), *(rule.code for rule in RULES)])
    return Engine(catalogue, Settings(codes=codes, known={code: code for code in codes}))


def uses(fact: Fact, given: dict[str, Any]) -> list[Program]:
    """The programs for a fact. A given one marks the line of the symbol by a comment `# here`."""
    text = given.get(fact["id"]) or given.get(fact["symbol"])
    if text is not None:
        lines = text.splitlines()
        here = [number for number, line in enumerate(lines, 1) if line.endswith("# here")]
        return [Program(text, number) for number in here or [len(lines)]]
    names = [fact["symbol"], *(f"{alias}" for alias in fact.get("aliases") or ())]
    return [program for name in names for program in programs(name)]


def table(title: str, facts: list[Fact], covered: dict[str, Covered], key: str) -> str:
    """One table: a row for every value of `key`, a column for every class."""
    rows: dict[str, Counter[Class]] = {}
    for fact in facts:
        rows.setdefault(str(fact[key]), Counter())[covered[fact["id"]].best] += 1
    lines = [f"{title:<20}" + "".join(f"{each.value:>22}" for each in Class) + f"{'all':>8}"]
    for name, counts in sorted(rows.items()):
        cells = "".join(f"{counts[each]:>22}" for each in Class)
        lines.append(f"{name:<20}{cells}{sum(counts.values()):>8}")
    return "\n".join(lines)


def releases(read: Iterable[ReleaseList], wanted: str | None, match: str) -> Iterator[str]:
    """The lines to print about lists of releases: a table, or the items of one outcome."""
    checker = Checker()
    if wanted is None:
        yield f"{'':<20}" + "".join(f"{each.value:>18}" for each in Outcome) + f"{'all':>8}"
    whole: Counter[Outcome] = Counter()
    for each in read:
        counts: Counter[Outcome] = Counter()
        for item in each.items:
            if match in item.change:
                counts[outcome(item, checker)] += 1
                if wanted is not None and outcome(item, checker).value == wanted:
                    yield f"{each.release:<20} {item.kind:<12} {item.change}  {' '.join(item.found)}"
        if wanted is None:
            yield row(each.release, counts)
        whole += counts
    if wanted is None:
        yield row("all", whole)


def row(name: str, counts: Counter[Outcome]) -> str:
    """One row of the table of releases."""
    return f"{name:<20}" + "".join(f"{counts[each]:>18}" for each in Outcome) + f"{counts.total():>8}"


@click.command()
@click.argument("facts", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tier", type=int, help="Only facts of this tier.")
@click.option(
    "--class", "wanted", type=click.Choice(CLASSES), help="List the changes that are covered like this."
)
@click.option("--match", default="", help="Only changes whose symbol or sentence contains this.")
def main(facts: Path | None, tier: int | None, wanted: str | None, match: str) -> None:
    """Print how the changes in FACTS, or else those of all releases, are covered."""
    if facts is None or facts.resolve().parent == DIRECTORY.resolve():
        for line in releases(lists(() if facts is None else (facts,)), wanted, match):
            click.echo(line)
        return
    wrong, left_out, given = read("wrong.yaml"), read("left_out.yaml"), read("uses.yaml")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    listed: list[Fact] = [
        fact
        for fact in yaml.load(facts.read_text(encoding="utf-8"), Loader=loader)
        if (tier is None or fact["tier"] == tier) and match in fact["symbol"] and fact["id"] not in wrong
    ]
    checker = engine()
    covered: dict[str, Covered] = {}
    for fact in listed:
        result = cover(checker, uses(fact, given))
        if fact["id"] in left_out and result.best in (Class.MISSED, Class.API):
            result = Covered(Class.LEFT_OUT, result.codes)
        covered[fact["id"]] = result
    if wanted:
        for fact in listed:
            if covered[fact["id"]].best.value == wanted:
                kind = f"{fact['severity']}/{fact['replacement_kind']}"
                versions = f"{fact.get('deprecated_in')}..{fact.get('removed_in')}"
                codes = " ".join(covered[fact["id"]].codes)
                click.echo(f"{fact['tier']} {kind:<24} {versions:<12} {fact['symbol']}  {codes}")
        return
    for level in sorted({fact["tier"] for fact in listed}):
        here = [fact for fact in listed if fact["tier"] == level]
        for key in ("severity", "library", "kind", "replacement_kind"):
            click.echo(table(f"tier {level}: {key}", here, covered, key) + "\n")
    click.echo(f"{len(wrong)} facts proved wrong, {len(left_out)} are left out on purpose")


if __name__ == "__main__":
    main()
