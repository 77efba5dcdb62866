"""Examines one repository, in a process of its own, which `work.py` starts with the files JOB and RESULT.

The process may hang, need too much memory or crash: only this repository is lost then. It ends when its
stdin is closed, so that nothing is left of it when its worker is killed.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from torchmigrate.fleet.clones import Checkout, link_template
from torchmigrate.fleet.model import Examined, Failed, Job, Large, Record, RepositoryPart, Trouble, Unchanged
from torchmigrate.planning.model import EFFECTS, Effort, Line, Place, Plan

if TYPE_CHECKING:
    from torchmigrate.findings import Problem
    from torchmigrate.planning.look import Project, Seen

_HIDDEN = 0  # the number of a line that is a digest
_EXAMPLES = 5  # paths of files that could not be done
_GARBAGE = 100_000  # new objects after which Python looks for garbage, as in `torchmigrate.__main__`


def examine(job: Job) -> object:
    """The result of a job: `Examined`, `Unchanged` or `Large`; of a part, `Seen`.

    Raises Failed.
    """
    checkout = Checkout(job.repository, job.clones)
    state = job.state or checkout.state()
    if job.known == state and job.part is None:
        return Unchanged(state)
    checkout.fetch(state)
    os.chdir(checkout.directory)
    project = _project(job, is_clone=checkout.is_clone)
    if job.seen:
        whole, *others = job.seen
        for other in others:
            whole.add(other)  # type: ignore[attr-defined]
        return _examined(job, project, whole, state, checkout)  # type: ignore[arg-type]
    if job.part is not None:
        seen = project.look(_share(project.files, job.part), 1)
        if not job.settings.excerpts:
            seen.places = list(map(_hidden, seen.places))
        return seen
    if len(project.files) > 2 * job.limits.part:
        return Large(-(-len(project.files) // job.limits.part), state)
    return _examined(job, project, project.look(project.files, 1), state, checkout)


def _share(files: Sequence[Path], part: RepositoryPart) -> Sequence[Path]:
    """The files of a part: adjacent files, in order, so that the parts can be put together again."""
    first, last = (number * len(files) // part.of for number in (part.number, part.number + 1))
    return files[first:last]


def _project(job: Job, *, is_clone: bool) -> Project:
    from torchmigrate.config.settings import ConfigError, Layer
    from torchmigrate.planning.look import Project
    from torchmigrate.report.console import Console
    from torchmigrate.run.configurations import Configurations

    asked = job.settings
    layer = Layer(
        target=asked.target,
        minimum=asked.minimum,
        select=asked.select or None,
        extend_select=asked.extend_select,
        ignore=asked.ignore,
    )
    here = Path.cwd()
    top = here if is_clone else None
    configurations = Configurations(layer, isolated=asked.isolated, start=here, top=top, guessing=True)
    try:
        return Project(
            [Path()], configurations, Console("never", quiet=True), start=here, root=here, here=here
        )
    except ConfigError as error:
        raise Failed(Trouble.SETTINGS, str(error)) from None


# ---- the tables --------------------------------------------------------------------------------------------


def _examined(job: Job, project: Project, seen: Seen, state: str, checkout: Checkout) -> Examined:
    from torchmigrate.config.settings import ConfigError
    from torchmigrate.planning.html import as_html
    from torchmigrate.planning.links import Links

    try:
        plan, problems = project.plan(seen, job.repository.name)
    except ConfigError as error:
        raise Failed(Trouble.SETTINGS, str(error)) from None
    tables = {
        "repositories": [_repository_row(plan)],
        "findings": list(_findings(plan, excerpts=job.settings.excerpts)),
        "releases": [_release_row(plan, number) for number in range(len(plan.rows))],
        "unread": [*_unread(plan), *_problems(problems)],
    }
    if not job.settings.excerpts:
        plan = _without_source(plan)
    template = link_template(job.repository, state)
    near = checkout.directory if template else Path(os.path.abspath(os.sep))  # noqa: PTH100
    if template is None and not job.repository.is_directory:
        template = "{path}#L{line}"  # it is unknown where it can be read
    links = Links(template, root=checkout.directory, near=near)
    return Examined(state, tables, as_html(plan, links))


def _without_source(plan: Plan) -> Plan:
    return replace(plan, places=tuple(replace(place, excerpt=()) for place in plan.places))


def _repository_row(plan: Plan) -> Record:
    from torchmigrate.planning.compute import headline
    from torchmigrate.planning.json import shown

    low, high = plan.runs or (None, None)
    uses = bool(plan.concerned)
    return {
        "minimum": shown(plan.minimum),
        "target": shown(plan.target),
        "runs_first": shown(low) if uses else None,
        "runs_last": shown(high) if uses else None,
        "runs_on_target": plan.last.runs,
        "headline": headline(plan),
        "files": plan.files,
        "files_with_torch": plan.concerned,
        "is_whole": plan.is_whole,
        **{effort.name.lower(): plan.last.of(effort) for effort in Effort},
        "may_differ": plan.last.may_differ,
        "pinned": plan.last.pinned,
    }


def _findings(plan: Plan, *, excerpts: bool) -> Iterator[Record]:
    from torchmigrate.planning.json import place_of

    for place in plan.listed:
        text = _text(place) if excerpts else None
        yield {**place_of(place, plan), "fingerprint": _fingerprint(place), "excerpt": text}


def _fingerprint(place: Place) -> str:
    (line,) = _hidden(place).excerpt
    return _digest(place.code, place.symbol or "", line.marked)


def _hidden(place: Place) -> Place:
    """The place with a digest in the place of its lines, from which they cannot be read."""
    if [line.number for line in place.excerpt] == [_HIDDEN]:
        return place
    marked = "".join(line.before + line.marked + line.after for line in place.excerpt if line.marked)
    return replace(place, excerpt=(Line(_HIDDEN, "", _digest("".join(marked.split()))),))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _text(place: Place) -> str:
    return "\n".join(line.before + line.marked + line.after for line in place.excerpt)


def _release_row(plan: Plan, number: int) -> Record:
    from torchmigrate.versions.releases import show_version

    row = plan.rows[number]
    return {
        "release": show_version(row.release),
        "runs": row.runs,
        "needs_newer": row.lacking,
        **{effect.label: row.effects[effect].places for effect in EFFECTS},
        "may_differ": row.may_differ,
        "pinned": row.pinned,
        **{effort.name.lower(): row.of(effort) for effort in Effort},
    }


def _unread(plan: Plan) -> Iterator[Record]:
    from torchmigrate.planning.json import unread_of
    from torchmigrate.planning.unread import FAILED

    # What failed comes one by one, below.
    yield from (unread_of(each) for each in plan.unread if each.why != FAILED)


def _problems(problems: Sequence[Problem]) -> Iterator[Record]:
    """What could not be done, files with the same trouble together."""
    alike: dict[tuple[str, str], dict[str, None]] = {}
    for problem in problems:
        alike.setdefault((problem.kind.value, problem.reason), {})[Path(problem.path).as_posix()] = None
    for (kind, why), paths in alike.items():
        yield {
            "kind": kind,
            "files": len(paths),
            "why": why,
            "examples": list(paths)[:_EXAMPLES],
            "matters": True,
        }


# ---- the process -------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Read a job, write its result or what went wrong; the exit code, 0 in both cases."""
    source, target = map(Path, arguments)
    _end_with_stdin()
    with source.open("rb") as file:
        job = pickle.load(file)  # of the worker that started this
    try:
        result: object = examine(job)
    except Failed as error:
        result = error
    data = pickle.dumps(result)
    target.with_suffix(".part").write_bytes(data)
    target.with_suffix(".part").replace(target)
    return 0


def _end_with_stdin() -> None:
    """End the process as soon as the other end of stdin is closed."""

    def wait() -> None:
        # Not by `sys.stdin`, whose lock Python waits for in vain when it ends, a second, and then aborts.
        while os.read(0, 1):
            pass
        if os.name == "posix":
            os.killpg(0, signal.SIGKILL)  # git, too
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def start() -> None:
    """Do what the command line says, and end the process."""
    gc.set_threshold(_GARBAGE)
    try:
        sys.exit(main(sys.argv[1:]))
    finally:
        gc.freeze()  # or Python would look once more before it ends
