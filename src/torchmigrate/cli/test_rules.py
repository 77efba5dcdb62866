"""The command `test-rules`: run the examples in rule files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchmigrate.cli.options import Command, color_option, quiet_option
from torchmigrate.report.console import Console
from torchmigrate.report.summary import plural

if TYPE_CHECKING:
    from torchmigrate.authoring.examples import ExampleFailure
    from torchmigrate.catalogue.index import Catalogue
    from torchmigrate.catalogue.loader import LoadedRule
    from torchmigrate.report.console import Console


@click.command("test-rules", cls=Command, short_help="Run the examples in rule files.")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--new", is_flag=True, help="Write a rule file to start from into the directory, and test it.")
@quiet_option
@color_option
def test_rules(directory: Path, new: bool, quiet: bool, color: str) -> int:
    """Load the rules in a directory (or file) and run every example in them.

    A `before` must be found and become its `after`, which must be clean; `report_only` must be found without
    a fix; `clean` must not be found.
    """
    console = Console(color, quiet=quiet)
    if new and not _write_template(directory, console):
        return 2
    if not directory.exists():
        what = f"{str(directory)!r} does not exist; `--new` makes it"
        raise click.BadParameter(what, param_hint="DIRECTORY")
    return test_directory(directory, console)


def _write_template(directory: Path, console: Console) -> bool:
    """Write a rule file that a user can begin with; whether that was possible."""
    from torchmigrate import authoring

    path = directory / "rules.yaml"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(Path(authoring.__file__).with_name("template.yaml").read_text("utf-8"))
    except FileExistsError:
        console.error(f"{path} exists already")
        return False
    except OSError as error:
        console.error(f"{path}: {(error.strerror or 'cannot be written').lower()}")
        return False
    console.note(f'Wrote {path}. To use it, set `rules = ["{directory.as_posix()}"]` in the configuration.')
    return True


def test_directory(directory: Path, console: Console) -> int:
    """Run every example below a directory (or in a file); 0: all hold, 1: some don't, 2: cannot load."""
    from torchmigrate.authoring.examples import check_rule
    from torchmigrate.catalogue.index import Catalogue
    from torchmigrate.catalogue.problems import CatalogueError
    from torchmigrate.catalogue.store import check_free, load_user_rules, own_rules

    try:
        loaded = load_user_rules([directory])
        known = own_rules()[0]
        ours = {(rule.code, rule.name) for rule in known}  # in a clone of torchmigrate
        check_free(known, (item.rule for item in loaded if (item.rule.code, item.rule.name) not in ours))
    except CatalogueError as error:
        for line in str(error).splitlines():
            console.error(line)
        return 2
    catalogue = Catalogue.of([item.rule for item in loaded])
    failed: set[tuple[str, int]] = set()
    for item in loaded:
        # What is wrong with an example is wrong in every layout: reported once.
        for failure in list(check_rule(item, catalogue)) or _layouts(item, catalogue):
            failed.add((failure.path, failure.line))
            console.out(str(failure).replace("\n", "\n    ") + "\n")
    verdict = f"{len(failed)} failed" if failed else "all hold"
    examples = sum(len(item.examples) for item in loaded)
    console.note(f"{plural(examples, 'example')} of {plural(len(loaded), 'rule')}: {verdict}.")
    return 1 if failed else 0


def _layouts(item: LoadedRule, catalogue: Catalogue) -> Iterable[ExampleFailure]:
    """What is wrong in other layouts of the examples, where these are Python."""
    from torchmigrate.authoring.layouts import check_layouts

    return () if item.rule.files else check_layouts(item, catalogue)
