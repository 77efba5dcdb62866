"""The tables of a fleet: their columns, types and meanings. docs/fleet.md shows what is here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from torchmigrate.planning.model import EFFECTS, Effect

if TYPE_CHECKING:
    import pyarrow as pa

# Raised when a column is removed, renamed or gets another meaning; new ones leave it.
VERSION = 1
TEXT, INTEGER, NUMBER, FLAG, TIME, TEXTS, INTEGERS = (
    "text", "integer", "number", "flag", "time", "texts", "integers",
)  # fmt: skip


class Column(Struct, frozen=True):
    """name, type (one of those above; any value may be null), and what it says."""

    name: str
    type: str
    about: str


class Table(Struct, frozen=True):
    """A table: what a row is, and its columns."""

    about: str
    columns: tuple[Column, ...]


_OF = (
    Column("run", TEXT, "the run: the time at which it began, such as 20261125T165408Z"),
    Column("repository", TEXT, "the name of the repository"),
)
_SINCE = {
    Effect.OUTDATED: "the first release that has a newer way",
    Effect.PINNED: "the first release that the project keeps from being installed",
    Effect.MAY_DIFFER: "the first release that may behave differently",
    Effect.WARNS: "the first release that warns",
    Effect.CHANGES: "the first release with other results, without a warning",
    Effect.MAY_RAISE: "the first release that may raise",
    Effect.RAISES: "the first release that raises when the place is reached",
    Effect.BREAKS_ON_IMPORT: "the first release that raises when the file is imported",
}
TABLES = {
    "runs": Table(
        "a run",
        (
            _OF[0],
            Column("schema", INTEGER, f"the version of these tables, {VERSION}"),
            Column("version", TEXT, "of torchmigrate"),
            Column("started", TIME, "when it began (UTC)"),
            Column("finished", TIME, "when it ended (UTC)"),
            Column("target", TEXT, "the release of torch to move to"),
            Column("settings", TEXT, "the settings of the run, the same for every repository, as JSON"),
            Column("interrupted", FLAG, "whether it was stopped before all repositories were examined"),
            Column("workers", INTEGER, "how many processes examined repositories at the end"),
            Column("listed", INTEGER, "how many repositories the list has"),
            Column("examined", INTEGER, "how many were examined in this run"),
            Column("reused", INTEGER, "how many had not changed since an earlier run, whose results hold"),
            Column("failed", INTEGER, "how many could not be examined"),
        ),
    ),
    "repositories": Table(
        "a repository of the list that was examined, or could not be",
        (
            *_OF,
            Column("owner", TEXT, "as the list says"),
            Column("address", TEXT, "the directory or the address for git, without credentials"),
            Column("revision", TEXT, "as the list says"),
            Column("state", TEXT, "the commit that was examined; of a directory with changes, a digest"),
            Column("status", TEXT, "done or failed"),
            Column("trouble", TEXT, "of a failed one: clone, time, memory, crash, worker or settings"),
            Column("why", TEXT, "the same in a sentence"),
            Column("reused", FLAG, "whether it had not changed since an earlier run"),
            Column("seconds", NUMBER, "how long it took, as the sum over its parts"),
            Column("megabytes", INTEGER, "how much memory it took at most"),
            Column("minimum", TEXT, "the oldest release of torch that it supports"),
            Column("target", TEXT, "the release of torch to move to"),
            Column("runs_first", TEXT, "the first release that runs the unchanged code, if known"),
            Column("runs_last", TEXT, "the last one; null: none does, or nothing uses torch"),
            Column("runs_on_target", FLAG, "whether the target runs the unchanged code, if known"),
            Column("headline", TEXT, "the same in a sentence"),
            Column("files", INTEGER, "how many were read"),
            Column("files_with_torch", INTEGER, "how many of them mention torch or a companion"),
            Column("is_whole", FLAG, "whether all was read that decides if the project runs"),
            Column("safe", INTEGER, "places that a safe fix changes for the target"),
            Column("unsafe", INTEGER, "places that an unsafe fix changes"),
            Column("by_hand", INTEGER, "places that a person has to change"),
            Column("may_differ", INTEGER, "places that may behave differently on the target"),
            Column("pinned", INTEGER, "places that keep the target from being installed"),
            Column("page", TEXT, "the page of its plan, relative to the directory of the results"),
        ),
    ),
    "findings": Table(
        "a place that a release affects; lines that one fix changes are one place",
        (
            *_OF,
            Column("owner", TEXT, "of the repository"),
            Column("path", TEXT, "of the file, relative to the repository"),
            Column("cell", INTEGER, "of a notebook, from 1"),
            Column("row", INTEGER, "of the file or the cell, from 1"),
            Column("column", INTEGER, "from 1, in characters"),
            Column("rows", INTEGERS, "of the other lines of the same place"),
            Column("code", TEXT, "of the rule"),
            Column("name", TEXT, "of the rule"),
            Column("message", TEXT, "what was found"),
            Column("symbol", TEXT, "the qualified name that was found"),
            Column("effect", TEXT, "of the target, see below; null: only older releases lack what is used"),
            Column("effort", TEXT, "for the target: safe, unsafe or by_hand"),
            *(Column(each.label, TEXT, about) for each, about in _SINCE.items()),
            Column("needs", TEXT, "the first release that has what is used, if newer than the minimum"),
            Column("fix", TEXT, "what the fix does"),
            Column("reason", TEXT, "why the fix is not safe"),
            Column("help", TEXT, "what to do by hand"),
            Column("url", TEXT, "the page of the rule"),
            Column("fingerprint", TEXT, "of the rule and its line: stays when the place is moved"),
            Column("excerpt", TEXT, "the lines around it, with --excerpts; else null"),
        ),
    ),
    "releases": Table(
        "what a release does to a repository",
        (
            *_OF,
            Column("release", TEXT, "of torch"),
            Column("runs", FLAG, "whether it runs the unchanged code, if known"),
            Column("needs_newer", INTEGER, "places that need a newer release"),
            *(Column(each.label, INTEGER, f"places: {each.words.lower()}") for each in EFFECTS),
            Column("may_differ", INTEGER, "places that may behave differently"),
            Column("pinned", INTEGER, "places that keep it from being installed"),
            Column("safe", INTEGER, "places that a safe fix changes"),
            Column("unsafe", INTEGER, "places that an unsafe fix changes"),
            Column("by_hand", INTEGER, "places that a person has to change"),
        ),
    ),
    "unread": Table(
        "what was not read, or not wholly",
        (
            *_OF,
            Column("kind", TEXT, "of the files, or of a problem: invalid-syntax, io-error, not-done"),
            Column("files", INTEGER, "how many"),
            Column("why", TEXT, "in a few words"),
            Column("examples", TEXTS, "the first paths"),
            Column("matters", FLAG, "whether what they hold decides if the project runs"),
        ),
    ),
}  # fmt: skip
NAMES = tuple(TABLES)


def arrow_schema(name: str) -> pa.Schema:
    """The schema of a table for Parquet; its metadata says the version."""
    import pyarrow as pa

    types = {
        TEXT: pa.string(),
        INTEGER: pa.int64(),
        NUMBER: pa.float64(),
        FLAG: pa.bool_(),
        TIME: pa.timestamp("us"),  # UTC; for one with a zone, some releases of DuckDB need pytz
        TEXTS: pa.list_(pa.string()),
        INTEGERS: pa.list_(pa.int64()),
    }
    table = TABLES[name]
    fields = [
        pa.field(column.name, types[column.type], metadata={"about": column.about})
        for column in table.columns
    ]
    return pa.schema(fields, metadata={"torchmigrate_schema": str(VERSION), "about": table.about})
