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
    Effect.OUTDATED: "the first release that has a replacement",
    Effect.PINNED: "the first release that the requirements exclude",
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
            Column("version", TEXT, "the version of torchmigrate"),
            Column("started", TIME, "its start (UTC)"),
            Column("finished", TIME, "its end (UTC)"),
            Column("target", TEXT, "the target release of torch"),
            Column("settings", TEXT, "the settings of the run, as JSON"),
            Column("interrupted", FLAG, "true if it stopped before all repositories were examined"),
            Column("workers", INTEGER, "the number of workers at its end"),
            Column("listed", INTEGER, "repositories in the list"),
            Column("examined", INTEGER, "repositories that were examined in this run"),
            Column("reused", INTEGER, "unchanged repositories, which keep the results of an earlier run"),
            Column("failed", INTEGER, "repositories that could not be examined"),
        ),
    ),
    "repositories": Table(
        "a repository of the list, examined or failed",
        (
            *_OF,
            Column("owner", TEXT, "the owner in the list"),
            Column("address", TEXT, "the directory or the address for git, without credentials"),
            Column("revision", TEXT, "the revision in the list"),
            Column("state", TEXT, "the examined commit, or a digest for a directory with changes"),
            Column("status", TEXT, "done or failed"),
            Column("trouble", TEXT, "the kind of failure: clone, time, memory, crash, worker or settings"),
            Column("why", TEXT, "the failure in a sentence"),
            Column("reused", FLAG, "true if the result comes from an earlier run"),
            Column("seconds", NUMBER, "the time it took, as the sum over its parts"),
            Column("megabytes", INTEGER, "the most memory that it used"),
            Column("minimum", TEXT, "the oldest torch that it supports"),
            Column("target", TEXT, "the target release of torch"),
            Column("runs_first", TEXT, "the first release that runs the unchanged code, if known"),
            Column("runs_last", TEXT, "the last one; null if there is none, or nothing uses torch"),
            Column("runs_on_target", FLAG, "true if the target runs the unchanged code, if known"),
            Column("headline", TEXT, "the result in a sentence"),
            Column("files", INTEGER, "files that were read"),
            Column("files_with_torch", INTEGER, "files that mention torch or a companion library"),
            Column("is_whole", FLAG, "true if every file that decides whether the project runs was read"),
            Column("safe", INTEGER, "places that a safe fix changes for the target"),
            Column("unsafe", INTEGER, "places that an unsafe fix changes"),
            Column("by_hand", INTEGER, "places to change by hand"),
            Column("may_differ", INTEGER, "places that may behave differently on the target"),
            Column("pinned", INTEGER, "places that prevent installing the target"),
            Column("page", TEXT, "its plan, relative to the results directory"),
        ),
    ),
    "findings": Table(
        "a place that a release affects; lines that one fix changes are one place",
        (
            *_OF,
            Column("owner", TEXT, "the owner of the repository"),
            Column("path", TEXT, "the file, relative to the repository"),
            Column("cell", INTEGER, "the cell of a notebook, from 1"),
            Column("row", INTEGER, "the line in the file or the cell, from 1"),
            Column("column", INTEGER, "the column in characters, from 1"),
            Column("rows", INTEGERS, "the other lines of the place"),
            Column("code", TEXT, "the code of the rule"),
            Column("name", TEXT, "the name of the rule"),
            Column("message", TEXT, "the message of the finding"),
            Column("symbol", TEXT, "the qualified name that was found"),
            Column("effect", TEXT, "the effect of the target; null if only older releases lack the name"),
            Column("effort", TEXT, "the effort for the target: safe, unsafe or by_hand"),
            *(Column(each.label, TEXT, about) for each, about in _SINCE.items()),
            Column("needs", TEXT, "the first release that has the name, if newer than the minimum"),
            Column("fix", TEXT, "what the fix does"),
            Column("reason", TEXT, "why the fix is not safe"),
            Column("help", TEXT, "what to do by hand"),
            Column("url", TEXT, "the page of the rule"),
            Column("fingerprint", TEXT, "identifies the rule and the line; stays when the place moves"),
            Column("excerpt", TEXT, "the lines around it, with --excerpts"),
        ),
    ),
    "releases": Table(
        "the effect of a release on a repository",
        (
            *_OF,
            Column("release", TEXT, "the release of torch"),
            Column("runs", FLAG, "true if it runs the unchanged code, if known"),
            Column("needs_newer", INTEGER, "places that need a newer release"),
            *(Column(each.label, INTEGER, f"places: {each.words.lower()}") for each in EFFECTS),
            Column("may_differ", INTEGER, "places that may behave differently"),
            Column("pinned", INTEGER, "places that prevent installing it"),
            Column("safe", INTEGER, "places that a safe fix changes"),
            Column("unsafe", INTEGER, "places that an unsafe fix changes"),
            Column("by_hand", INTEGER, "places to change by hand"),
        ),
    ),
    "unread": Table(
        "a kind of files that was not read, or not completely",
        (
            *_OF,
            Column("kind", TEXT, "the kind of files, or a problem: invalid-syntax, io-error, not-done"),
            Column("files", INTEGER, "the number of files"),
            Column("why", TEXT, "the reason in a few words"),
            Column("examples", TEXTS, "the first paths"),
            Column("matters", FLAG, "true if they may decide whether the project runs"),
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
