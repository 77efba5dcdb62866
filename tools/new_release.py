"""All that a new release of torch, or of a library that follows it, asks for, as far as the data tell.

python tools/new_release.py 2.16                          from the wheel on PyPI
python tools/new_release.py 2.16 --wheel WHEEL            from this one
python tools/new_release.py 0.30 --library torchvision
python tools/new_release.py --newest                      print the newest release on PyPI if it is not known

It adds the release to the API data and to the table of releases, drafts rules for what was removed, renamed
or deprecated (`rules/LIBRARY/new_VERSION.yaml`), marks rules whose names are now removed, starts the list of
the release in `tools/releases/`, and writes a report for the person who goes on (`new_release.md`).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this one, wherever it is run from

import api_data
from api import wheels
from api.reader import read_release
from api.sources import package_of
from drafts import writing
from drafts.facts import Reader

from torchmigrate.report.summary import plural
from torchmigrate.versions.releases import (
    COMPANIONS,
    RELEASES,
    Version,
    parse_version,
    show_version,
    torch_release,
)
from torchmigrate.versions.surface import DATA, surface_of
from torchmigrate.versions.surface_file import with_release

ROOT = Path(__file__).resolve().parent.parent
TABLES = ROOT / "src" / "torchmigrate" / "versions" / "releases.py"


@click.command()
@click.argument("version", type=api_data.ReleaseType(), required=False)
@click.option("--library", type=click.Choice(api_data.LIBRARIES), default="torch", show_default=True)
@click.option(
    "--wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Without it, PyPI's."
)
@click.option("--report", type=click.Path(path_type=Path), default=ROOT / "new_release.md", show_default=True)
@click.option("--newest", is_flag=True, help="Only print the newest release on PyPI, if it is not known.")
@click.option("--only-drafts", is_flag=True, help="Draft again, from the data; overwrites drafts.")
def main(
    version: Version | None, library: str, wheel: Path | None, report: Path, newest: bool, only_drafts: bool
) -> None:
    """Prepare everything for release VERSION of torch, or of another LIBRARY."""
    if newest:
        click.echo(_unknown_release(library), nl=False)
        return
    if version is None:
        raise click.UsageError("name a VERSION, or use --newest")
    if only_drafts:
        _write_drafts(library, version, report)
        return
    if not DATA.is_relative_to(ROOT):
        raise click.ClickException("install this checkout first: `pip install --editable .`")
    tables = with_new_release(TABLES.read_text("utf-8"), library, version)
    _add_data(library, version, wheel)
    TABLES.write_text(tables, "utf-8")
    # In a process of its own, which has the new tables and data.
    again = [sys.executable, __file__, show_version(version), "--library", library, "--report", str(report)]
    raise SystemExit(subprocess.run([*again, "--only-drafts"], check=False).returncode)


def _add_data(library: str, version: Version, wheel: Path | None) -> None:
    shown = show_version(version)
    with tempfile.TemporaryDirectory() as directory:
        try:
            wheel = wheel or wheels.download(package_of(library, version), shown, Path(directory))
            sources = wheels.unpack(wheel, Path(directory) / "sources")
            # functorch is in the wheel of torch.
            there = [each for each in api_data.LIBRARIES if package_of(each, version) == library]
            read = {each: read_release(each, sources) for each in there if (sources / each).is_dir()}
        except wheels.NoWheel as error:
            raise click.ClickException(str(error)) from error
    if library not in read:
        raise click.ClickException(f"{wheel.name} has no package {library}")
    for each, entries in read.items():
        api_data.write(each, with_release((DATA / f"{each}.gz").read_bytes(), version, entries))


def _unknown_release(library: str) -> str:
    """The newest release on the package index, with a line end; empty if the data has it."""
    command = [sys.executable, "-m", "pip", "index", "versions", library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Available versions: ([\w.]+)", done.stdout)
    if found is None:
        raise click.ClickException(f"pip found no release of {library}: {done.stderr.strip()}")
    surface = surface_of(library)
    version = parse_version(found[1])
    known = surface is not None and version <= surface.versions[-1]
    return "" if known else show_version(version) + "\n"


def with_new_release(tables: str, library: str, version: Version) -> str:
    """The text of `releases.py` with a release; the same if it has that."""
    major, minor = version
    if library == "torch":
        if version in RELEASES:
            return tables
        if (major, minor - 1) != RELEASES[-1]:
            raise click.ClickException(
                f"{show_version(version)} does not follow {show_version(RELEASES[-1])}"
            )
        count = re.compile(rf"(\({major}, minor\) for minor in range\(){minor}\)")
        tables = count.sub(rf"\g<1>{minor + 1})", tables, count=1)
        return re.sub(r'^NEWEST = ".*"', f'NEWEST = "{show_version(version)}"', tables, flags=re.M)
    if torch_release(library, version) is not None:
        return tables
    row = re.compile(rf'("{library}": _lines\(\s*[^"]*)((?:"[^"]*"\s*)+)')
    match = row.search(tables)
    assert match is not None, "every companion has a row"
    words = re.findall(r"[\d.]+", match[2])
    first = next(index for index, release in enumerate(RELEASES) if COMPANIONS[library].get(release))
    missing = len(RELEASES) - first - len(words) - 1
    if missing < 0:
        raise click.ClickException("add the release of torch that goes with it first")
    added = " ".join([*words[-1:] * missing, show_version(version)])
    last = match[2].rindex('"')
    return tables[: match.end(1)] + f"{match[2][:last]} {added}{match[2][last:]}" + tables[match.end() :]


def _write_drafts(library: str, version: Version, report: Path) -> None:
    surface = surface_of(library)
    if surface is None or version not in surface.versions[1:]:
        raise click.ClickException(f"the data has no {library} {show_version(version)} and one before it")
    old, new = surface.versions[surface.versions.index(version) - 1], show_version(version)
    torch = show_version(torch_release(library, version) or RELEASES[-1])
    facts = Reader(surface, old, version, torch).facts()
    rules = ROOT / "rules" / library / f"new_{new.replace('.', '_')}.yaml"
    rules.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        writer = writing.Writer(surface, version, ROOT / "rules", torch)
        drafts = writer.drafts(facts, Path(directory) / "draft.yaml")
    if drafts.rules:
        rules.write_text("\n".join(draft.text for draft in drafts.rules), "utf-8")
    listed = ROOT / "tools" / "releases" / f"{library}-{new}.yaml"
    if not listed.exists():
        listed.write_text(writing.release_list(library, show_version(old), new, drafts), "utf-8")
    shown = rules.relative_to(ROOT).as_posix()
    report.write_text(writing.report(library, new, facts, drafts, shown), "utf-8")
    click.echo(
        f"{library} {new}: {plural(len(drafts.rules), 'rule')} drafted, {len(drafts.updates)} changed; "
        f"see {report}"
    )


if __name__ == "__main__":
    main()
