"""The nouns of a fleet: the repositories to examine, and the result of each."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from msgspec import Struct

Record = dict[str, Any]  # a row of a table: column -> value


class FleetError(Exception):
    """What cannot be done, in one line for a person."""


class Repository(Struct, frozen=True):
    """One line of the list.

    name: what it is called in the results; no two have the same. address: a directory, or what `git clone`
    takes; it may hold a password, and Dask logs the arguments of what fails. revision: a branch, a tag or a
    commit; None: the current state. owner: the person or team responsible for it. is_directory: whether the
    address is a directory, absolute.
    """

    name: str
    address: str
    revision: str | None = None
    owner: str | None = None
    is_directory: bool = False

    def __repr__(self) -> str:
        return f"Repository({self.name!r}, revision={self.revision!r})"  # without the address


class Trouble(enum.Enum):
    """Why a repository could not be examined; the value is what tables have."""

    CLONE = "clone"  # git could not get it, or the directory is not there
    TIME = "time"  # it took longer than it may
    MEMORY = "memory"  # it needed more than it may
    CRASH = "crash"  # the process that examined it ended
    WORKER = "worker"  # the worker died repeatedly
    SETTINGS = "settings"  # its configuration cannot be used


class Failed(Exception):
    """A repository that could not be examined. Can be sent to another process."""

    def __init__(self, trouble: Trouble, why: str) -> None:
        super().__init__(trouble, why)
        self.trouble = trouble
        self.why = why


class FleetSettings(Struct, frozen=True):
    """The settings for every repository; other settings make earlier results outdated.

    target, minimum: releases such as "2.13"; None: what each project requires. select, extend_select,
    ignore: as `check` takes them. isolated: the configurations of the repositories are not read.
    excerpts: whether lines of source leave the worker.
    """

    target: str
    minimum: str | None = None
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    isolated: bool = False
    excerpts: bool = False


class Limits(Struct, frozen=True):
    """What one repository may take. seconds: of time. megabytes: of memory, 1,000,000 bytes each.

    part: files that are examined in one go; a repository with more than twice as many is split.
    """

    seconds: float = 600.0
    megabytes: int = 2000
    part: int = 1500


class RepositoryPart(NamedTuple):
    """Which files of a repository: those with this number, counted from 0, of so many shares."""

    number: int
    of: int


class Job(Struct, frozen=True):
    """The task of a worker for one repository.

    clones: the directory of the clones, on the worker; None: its cache. known: the state of the repository,
    see `Examined`, for which there is a result. state: the one that is meant; None: the current one. part:
    None: the whole. seen: what was found in all its
    parts, each as `Seen`, to be made into one result.
    """

    repository: Repository
    settings: FleetSettings
    limits: Limits
    clones: str | None = None
    known: str | None = None
    state: str | None = None
    part: RepositoryPart | None = None
    seen: tuple[object, ...] = ()

    def __repr__(self) -> str:
        return f"Job({self.repository!r}, part={self.part!r})"  # what was seen may be long


class Usage(Struct, frozen=True):
    """What a job took. megabytes: of memory, at most."""

    seconds: float = 0.0
    megabytes: int = 0

    def plus(self, other: Usage) -> Usage:
        """What two jobs took, one after the other."""
        return Usage(self.seconds + other.seconds, max(self.megabytes, other.megabytes))


class Examined(Struct, frozen=True):
    """The result for a repository.

    state: the commit, or a digest of the files. tables: rows by the name of the table, without the columns
    that say which run and which repository they are of. page: the plan as HTML.
    """

    state: str
    tables: dict[str, list[Record]]
    page: str


class Unchanged(Struct, frozen=True):
    """The repository is as it was in the last run."""

    state: str


class Large(Struct, frozen=True):
    """The repository must be examined in this many parts, all of this state."""

    parts: int
    state: str


class Done(Struct, frozen=True):
    """What a worker says of a job.

    what: the result; of a part, what was seen there (`Seen`). version: of torchmigrate on the worker.
    """

    what: object
    usage: Usage
    version: str
