"""How many of a list of API changes the program finds and fixes.

    python tools/coverage.py FACTS.yaml [--tier 1] [--class "API data only"]

FACTS is a YAML list of changes with `id`, `symbol`, `library`, `kind`, `tier`, `severity` and
`replacement_kind`. "Found" is what the engine reports, with every rule selected, in a generated use of the
symbol (`fact_coverage/uses.py`) or in the one that `fact_coverage/uses.yaml` gives for it. What is left out
on purpose stands in `fact_coverage/left_out.yaml` with its reason, what proved wrong in
`fact_coverage/wrong.yaml` with evidence.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click
import yaml
from fact_coverage.classes import Class, Covered, cover
from fact_coverage.uses import Program, programs

from torchmigrate.catalogue.builtin import RULES
from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.config.settings import Settings
from torchmigrate.engine.engine import Engine

HERE = Path(__file__).parent / "fact_coverage"
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


@click.command()
@click.argument("facts", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tier", type=int, help="Only facts of this tier.")
@click.option(
    "--class", "wanted", type=click.Choice([each.value for each in Class]), help="List these facts."
)
@click.option("--match", default="", help="Only facts whose symbol contains this.")
def main(facts: Path, tier: int | None, wanted: str | None, match: str) -> None:
    """Print how the changes in FACTS are covered."""
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
