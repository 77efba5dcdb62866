"""What an upgrade would do, found out without making anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from torchmigrate.report.console import Console
from torchmigrate.report.summary import plural
from torchmigrate.upgrade import smoke
from torchmigrate.upgrade.environment import given
from torchmigrate.upgrade.fixer import Fixer
from torchmigrate.upgrade.processes import Clock
from torchmigrate.upgrade.requirements import asked_by, imported_by, of_torch
from torchmigrate.upgrade.suite import words_of
from torchmigrate.upgrade.tools import tools_of
from torchmigrate.upgrade.upgrade import PYTEST, UpgradeRequest
from torchmigrate.upgrade.workspace import Workspace
from torchmigrate.versions.releases import show_version


def preview(request: UpgradeRequest, console: Console) -> str:
    """The steps, in lines of text.

    Raises UpgradeError where the upgrade could not be begun.
    """
    return "".join(f"{line}\n" for line in _lines(request, console))


def _lines(request: UpgradeRequest, console: Console) -> Iterator[str]:
    tools = tools_of(request.also)
    request.check()
    space = Workspace.planned(request.path, request.to, request.work)
    fixer = Fixer(space, request.to, console, Clock(), unsafe=request.unsafe, jobs=request.jobs)
    files = fixer.files()
    target = show_version(request.to)
    what = "a copy" if space.is_copy else f"a work tree of {space.base[:9]} on the branch {space.branch}"
    yield f"Would work in {space.directory}, with {what}."
    yield from space.notes
    tested = request.test is not None or smoke.has_tests(files)
    command = request.test or PYTEST
    words = words_of(command)
    if request.environment is not None:
        environment = given(request.environment, request.to)
        if tested:
            environment.check_pytest(words)
        held = f"torch {environment.torch} and Python {environment.python}"
        yield f"Environment: {request.environment}, with {held}."
    else:
        tool = "uv" if shutil.which("uv") else "venv and pip"
        asked, imported = asked_by(space.project), imported_by(files)
        wanted = ", ".join(of_torch(asked, imported, request.to).values())
        yield f"Environment: a new one, created with {tool}, with {wanted} and the project's requirements."
    if tested:
        yield f"Tests: `{command}`."
    else:
        yield "Tests: none; the upgrade would import the modules and run the scripts with --help."
    if request.call_functions and not tested:
        functions = smoke.calls(space.project, smoke.items(space, files)[0], space.project)
        names = ", ".join(name for _, name, *_ in functions) or "none"
        yield f"Functions to call on made inputs in both environments: {names}."
    groups = fixer.groups(fixer.look().findings)
    if not groups and not tools:
        yield f"Fixes for torch {target}: none."
        return
    yield f"Fixes for torch {target}, one commit each:"
    yield from (f"  {tool.title}" for tool in tools)
    for group, paths in groups.items():
        yield f"  {group.title}: {plural(len(paths), 'file')}"
