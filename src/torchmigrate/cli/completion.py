"""What the shell offers for words of the command line, where click asks for it (`_TORCHMIGRATE_COMPLETE`)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, FishComplete, add_completion_class

from torchmigrate.catalogue.groups import PURPOSES

if TYPE_CHECKING:
    from torchmigrate.config.selection import Selectable


class _Fish(FishComplete):
    """click's script for fish ends every completion at its first comma."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


def prepare() -> None:
    """Make what shells are given right for lists. Before click answers the shell."""
    add_completion_class(_Fish)


def rules(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Codes, names and groups that begin so; where nothing was typed, the codes and groups."""
    known = _known(ctx)
    items = [CompletionItem(rule.code, help=rule.name) for rule in known]
    groups = dict.fromkeys(rule.group for rule in known if rule.group)
    items += [CompletionItem(group, help=PURPOSES.get(group, "a group of rules")) for group in groups]
    if incomplete:
        items += [CompletionItem(rule.name, help=rule.code) for rule in known]
    return [item for item in items if item.value.lower().startswith(incomplete.lower())]


def rule_lists(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The same for the last item of a list with commas, in which ALL may be as well."""
    before, comma, last = incomplete.rpartition(",")
    given = set(before.split(","))
    items = rules(ctx, last)
    if "all".startswith(last.lower()):
        items.append(CompletionItem("ALL", help="every rule"))
    return [
        CompletionItem(before + comma + item.value, help=item.help)
        for item in items
        if item.value not in given
    ]


def files(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """What the shell itself offers for files."""
    return [CompletionItem(incomplete, type="file")]


def releases(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The known releases of torch, the newest first."""
    from torchmigrate.versions.releases import RELEASES, show_version

    shown = [show_version(release) for release in reversed(RELEASES)]
    return [CompletionItem(release) for release in shown if release.startswith(incomplete)]


def _known(ctx: click.Context) -> list[Selectable]:
    """The rules of the project, or where its configuration cannot be used, those that are installed."""
    from torchmigrate.config.settings import ConfigError, Layer
    from torchmigrate.files.paths import project_directory
    from torchmigrate.run.configurations import Configurations

    start = project_directory(Path())
    given = ctx.params.get("config")
    config = None if given is None else given.file
    for isolated in (bool(ctx.params.get("isolated")), True):
        with suppress(ConfigError):
            found = Configurations(Layer(), config=config, isolated=isolated, detect=False, start=start)
            return sorted(found.of(start).known, key=lambda rule: rule.code)
    return []
