"""What torch and its companions offer in each release: reads it from the sources in their wheels.

python tools/api_data.py fetch --sources DIR           download and unpack the wheels of all releases
python tools/api_data.py build --sources DIR           all data files, from unpacked wheels
python tools/api_data.py update torch 2.16             one more release, from the wheel on PyPI
python tools/api_data.py changes torch 2.14 2.15       what changed
python tools/api_data.py show torch.nn.Linear          the history of a name
python tools/api_data.py binary torch                  what the compiled part of an installed release has
python tools/api_data.py check torch                   what is read against what is installed
python tools/api_data.py read torch 2.13.0 --sources DIR/torch-2.13.0 --json out.json
"""

from __future__ import annotations

import gc
import importlib.util
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click
from msgspec import to_builtins

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this one, wherever it is run from

from api import binaries, explained, wheels
from api.changes import changes as compare
from api.changes import render
from api.check import check
from api.differences import differences
from api.reader import link, read_release
from api.sources import package_of, unpacked

from torchmigrate.versions.releases import (
    COMPANIONS,
    NEIGHBORS,
    RELEASES,
    Version,
    parse_version,
    show_version,
)
from torchmigrate.versions.surface import DATA, Surface, surface_of
from torchmigrate.versions.surface_file import decode, encode, with_release
from torchmigrate.versions.surface_model import ApiEntry

LIBRARIES = ("torch", *COMPANIONS)
PARTIAL = tuple(NEIGHBORS)  # what differs between their releases is recorded

_library = click.argument("library", type=click.Choice(LIBRARIES))
_directory = click.Path(exists=True, file_okay=False, path_type=Path)


class ReleaseType(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A release such as 2.6."""

    name = "release"

    def convert(
        self, value: str | Version, param: click.Parameter | None, ctx: click.Context | None
    ) -> Version:
        try:
            return parse_version(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.group()
def main() -> None:
    """Build and check the API data."""
    gc.disable()  # the trees of a library are no garbage, and looking for it takes a quarter of the time


@main.command()
@_library
@click.argument("version")
@click.option("--sources", type=_directory, help="The unpacked wheel; without it, the one on PyPI.")
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), required=True)
def read(library: str, version: str, sources: Path | None, out: Path) -> None:
    """Dump one release of LIBRARY as JSON."""
    entries = _read(library, version, sources)
    shown = {name: shown_entry(to_builtins(entry)) for name, entry in sorted(entries.items())}
    out.write_text(json.dumps(shown, indent=0), encoding="utf-8")
    click.echo(f"{library} {version}: {len(shown)} names")


@main.command("check")
@click.argument("library", default="torch")
@click.option("--sources", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Print the explained ones too.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Where to write what is read.")
def check_installed(library: str, sources: Path | None, everything: bool, out: Path | None) -> None:
    """Compare what is read of LIBRARY with the installed one, from its own sources or those given."""
    if sources is None:
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:
            raise click.ClickException(f"{library} is not installed here")
        sources = Path(spec.origin).parent.parent
    linker = link(library, sources)
    if out is not None:
        out.write_bytes(encode(library, [(RELEASES[-1], linker.entries)]))
    report = check(linker)
    lists = [
        ("read, but not there", report.absent, explained.READ_BUT_ABSENT),
        ("there, but not read", report.unread, explained.NOT_READ),
        ("another signature", report.differing, explained.OTHER_SIGNATURE),
    ]
    left = 0
    for title, names, table in lists:
        open_ones = [
            name for name in names if explained.reason(name.split(" ")[0].rstrip(":"), table) is None
        ]
        left += len(open_ones)
        click.echo(f"{title}: {len(names)}, of these not explained: {len(open_ones)}")
        for name in names if everything else open_ones:
            click.echo(f"  {name}")
    click.echo(f"modules that could not be imported: {len(report.not_imported)}")
    total = report.compared + report.signatures
    click.echo(f"{report.compared} names and {report.signatures} signatures compared, {left} disagree")
    raise SystemExit(0 if left * 1000 < total else 1)


def shown_entry(entry: dict[str, object]) -> dict[str, object]:
    kind = entry.pop("kind")
    return {"kind": getattr(kind, "value", kind), **{key: part for key, part in entry.items() if part}}


@main.command()
@click.argument("libraries", nargs=-1, type=click.Choice([*LIBRARIES, *PARTIAL]))
@click.option(
    "--sources", type=_directory, required=True, help="Directory of unpacked wheels, LIBRARY-VERSION."
)
@click.option("--jobs", default=2, show_default=True, help="Releases to read at the same time.")
def build(libraries: tuple[str, ...], sources: Path, jobs: int) -> None:
    """Write the data files of LIBRARIES, or of all, anew."""
    with ProcessPoolExecutor(jobs) as pool:
        for library in libraries or (*LIBRARIES, *PARTIAL):
            places = unpacked(library, sources)
            read = pool.map(read_release, [library] * len(places), places.values())
            releases = []
            for version, entries in zip(places, read, strict=True):
                click.echo(f"{library} {show_version(version)}: {len(entries)} names")
                releases.append((version, entries))
            _write(library, releases)


@main.command()
@click.argument("libraries", nargs=-1, type=click.Choice([*LIBRARIES, *PARTIAL]))
@click.option("--sources", type=_directory, required=True, help="Directory for the unpacked wheels.")
def fetch(libraries: tuple[str, ...], sources: Path) -> None:
    """Download what `build` needs: the sources of all releases in the data that are not yet there."""
    for library in libraries or (*LIBRARIES, *PARTIAL):
        surface = surface_of(library)
        for version in surface.versions if surface is not None else ():
            if version in unpacked(library, sources):
                continue
            with tempfile.TemporaryDirectory() as directory:
                package = package_of(library, version)
                try:
                    wheel = wheels.download(package, show_version(version), Path(directory))
                except wheels.NoWheel as error:
                    raise click.ClickException(str(error)) from error
                target = sources / "-".join(wheel.name.split("-")[:2])
                wheels.unpack(wheel, target)
            click.echo(f"{library} {show_version(version)}: {target}")


@main.command()
@_library
@click.argument("version", type=ReleaseType())
@click.option("--sources", type=_directory, help="The unpacked wheel; without it, the one on PyPI.")
def update(library: str, version: Version, sources: Path | None) -> None:
    """Add one release of LIBRARY to its data file and print what changed against the one before it."""
    entries = _read(library, show_version(version), sources)
    data = with_release((DATA / f"{library}.gz").read_bytes(), version, entries)
    surface = Surface(write(library, data))
    place = surface.versions.index(version)
    if place > 0:
        _print_changes(surface, surface.versions[place - 1], version)


@main.command()
@click.argument("library", type=click.Choice(["torch"]))
@click.option(
    "--python", default=sys.executable, help="The Python for which it is installed; default this one."
)
def binary(library: str, python: str) -> None:
    """Ask the installed LIBRARY what its compiled part has, and correct the data by it."""
    file = DATA / f"{library}.gz"
    try:
        version, names, keywords = binaries.ask(python, Surface(file.read_bytes()))
    except (OSError, subprocess.CalledProcessError) as error:
        raise click.ClickException(f"{library} could not be asked: {error}") from error
    binaries.record(library, version, names, keywords)
    click.echo(f"{library} {show_version(version)}: {sum(map(len, names.values()))} names")
    write(library, file.read_bytes())


@main.command()
@_library
@click.argument("old", type=ReleaseType())
@click.argument("new", type=ReleaseType())
def changes(library: str, old: Version, new: Version) -> None:
    """Print what changed in LIBRARY between two releases."""
    _print_changes(Surface((DATA / f"{library}.gz").read_bytes()), old, new)


@main.command()
@click.argument("name")
def show(name: str) -> None:
    """Print the history of a NAME."""
    surface = surface_of(name)
    if surface is None:
        raise click.ClickException(f"there is no data about `{name.partition('.')[0]}`")
    before: list[str] | None = None
    for version in surface.versions:
        entry = surface.entry(name, version)
        lines = [f"  {surface.status(name, version).value}"]
        if entry is not None:
            lines += _described(entry)
            lines.append(f"  defined as {surface.definition(name, version)}")
        if lines != before:
            click.echo("\n".join([f"{surface.library} {show_version(version)}", *lines]))
        before = lines


def _described(entry: ApiEntry) -> list[str]:
    marks = [
        mark
        for mark, there in (("open", entry.open), ("only raises", entry.gone), ("not read", entry.unread))
        if there
    ]
    lines = [f"  {', '.join([entry.kind.value, *marks])}"]
    lines += [f"  {signature}" for signature in entry.signatures]
    if entry.bases:
        lines.append(f"  bases: {', '.join(entry.bases)}")
    if entry.deprecated is not None:
        lines.append(f"  deprecated{'' if entry.warns else ' in the documentation'}: {entry.deprecated}")
    lines += [f"  deprecated where {test}: {said}" for test, said in entry.parameters]
    return lines


def _read(library: str, version: str, sources: Path | None) -> dict[str, ApiEntry]:
    """One release, from its wheel or from the directory where that was unpacked."""
    try:
        if sources is not None:
            return read_release(library, sources)
        with tempfile.TemporaryDirectory() as directory:
            wheel = wheels.download(package_of(library, parse_version(version)), version, Path(directory))
            return read_release(library, wheels.unpack(wheel, Path(directory) / "sources"))
    except (wheels.NoWheel, FileNotFoundError) as error:
        raise click.ClickException(str(error)) from error


def _print_changes(surface: Surface, old: Version, new: Version) -> None:
    for version in (old, new):
        if version not in surface.versions:
            raise click.ClickException(f"there is no data about {surface.library} {show_version(version)}")
    click.echo(render(surface.library, old, new, compare(surface, old, new)), nl=False)


def write(library: str, data: bytes) -> bytes:
    """Write a data file anew, from its content before the corrections."""
    return _write(library, decode(data))


def _write(library: str, releases: binaries.Releases) -> bytes:
    """Write what was read, corrected by what the releases themselves said; the file's new content."""
    if library in PARTIAL:
        data = encode(library, differences(library, releases), partial=True)
    else:
        data = encode(library, binaries.corrected(library, releases))
    DATA.mkdir(exist_ok=True)
    (DATA / f"{library}.gz").write_bytes(data)
    click.echo(f"{library}.gz: {len(data):,} bytes")
    return data


if __name__ == "__main__":
    main()
