"""Questions to the tables of a fleet, in SQL: the user's, those that are ready, and those of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from torchmigrate.fleet.model import FleetError, Record
from torchmigrate.fleet.page import Page
from torchmigrate.fleet.schema import NAMES
from torchmigrate.fleet.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

BREAKING = ("breaks_on_import", "raises")
_RANKS = ("breaks_on_import", "raises", "may_raise", "changes", "warns", "may_differ", "pinned", "outdated")


class Ready(Struct, frozen=True):
    """A query with a name. about: what it answers; `$release` in it is the release to query."""

    about: str
    sql: str


_RUNS = "status = 'done' AND runs_on_target AND files_with_torch > 0"
READY = {
    "blocking": Ready(
        "which repositories a release does not run, and because of what",
        """
        SELECT repository, any_value(owner) AS owner, code, any_value(name) AS name, count(*) AS places,
            count(*) FILTER (effort = 'safe') AS safe, count(*) FILTER (effort = 'unsafe') AS unsafe,
            count(*) FILTER (effort = 'by_hand') AS by_hand
        FROM findings
        WHERE release(breaks_on_import) <= release($release) OR release(raises) <= release($release)
            OR release(needs) > release($release)
        GROUP BY repository, code
        ORDER BY repository, places DESC, code
        """,
    ),
    "rules": Ready(
        "which rules are found most, and in how many repositories fixes change every place of them",
        """
        SELECT code, name, places, repositories, mended_safe, mended_unsafe, by_hand FROM rules_of_run
        ORDER BY repositories DESC, places DESC, code
        """,
    ),
    "owners": Ready(
        "what is left to do, by owner",
        """
        SELECT owner, repositories, running, failed, safe, unsafe, by_hand FROM owners_of_run
        ORDER BY by_hand DESC, unsafe DESC, safe DESC, owner
        """,
    ),
}
_VIEWS = f"""
CREATE MACRO release(text) AS list_transform(string_split(text, '.'), lambda part: CAST(part AS INTEGER));
CREATE MACRO rank(effect) AS list_position({list(_RANKS)!r}, effect);
CREATE VIEW rules_of_run AS
    WITH each AS (
        SELECT repository, code, any_value(name) AS name, any_value(url) AS url, count(*) AS places,
            arg_min(effect, rank(effect)) AS effect, bool_and(effort = 'safe') AS safe,
            bool_and(effort <> 'by_hand') AS unsafe, count(*) FILTER (effort = 'by_hand') AS by_hand
        FROM findings WHERE effect IS NOT NULL GROUP BY repository, code
    )
    SELECT code, any_value(name) AS name, any_value(url) AS url, arg_min(effect, rank(effect)) AS effect,
        CAST(sum(places) AS BIGINT) AS places, count(*) AS repositories,
        count(*) FILTER (safe) AS mended_safe, count(*) FILTER (unsafe) AS mended_unsafe,
        CAST(sum(by_hand) AS BIGINT) AS by_hand
    FROM each GROUP BY code;
CREATE VIEW owners_of_run AS
    SELECT owner, count(*) AS repositories, count(*) FILTER ({_RUNS}) AS running,
        count(*) FILTER (status = 'failed') AS failed, CAST(coalesce(sum(safe), 0) AS BIGINT) AS safe,
        CAST(coalesce(sum(unsafe), 0) AS BIGINT) AS unsafe,
        CAST(coalesce(sum(by_hand), 0) AS BIGINT) AS by_hand
    FROM repositories GROUP BY owner;
"""
_TREND = f"""
SELECT runs.run, any_value(runs.started) AS started, any_value(runs.target) AS target,
    any_value(runs.listed) AS listed, count(*) FILTER ({_RUNS}) AS running,
    count(*) FILTER (status = 'done' AND NOT runs_on_target) AS blocked,
    count(*) FILTER (status = 'failed') AS failed, CAST(coalesce(sum(safe), 0) AS BIGINT) AS safe,
    CAST(coalesce(sum(unsafe), 0) AS BIGINT) AS unsafe, CAST(coalesce(sum(by_hand), 0) AS BIGINT) AS by_hand
FROM runs LEFT JOIN all_repositories USING (run) GROUP BY runs.run ORDER BY runs.run
"""
# A place is known again where its line is as it was, wherever that is now; the same place comes first.
_CHANGES = """
WITH both_runs AS (
    SELECT repository FROM all_repositories WHERE run = $before AND status = 'done'
    INTERSECT SELECT repository FROM all_repositories WHERE run = $after AND status = 'done'
),
one AS (
    SELECT *, row_number() OVER (PARTITION BY repository, code, fingerprint, path, row, "column") AS twin
    FROM all_findings SEMI JOIN both_runs USING (repository) WHERE run = $before
),
two AS (
    SELECT *, row_number() OVER (PARTITION BY repository, code, fingerprint, path, row, "column") AS twin
    FROM all_findings SEMI JOIN both_runs USING (repository) WHERE run = $after
),
gone AS (
    SELECT *, row_number() OVER (alike ORDER BY path, row, "column") AS nth
    FROM one ANTI JOIN two USING (repository, code, fingerprint, path, row, "column", twin)
    WINDOW alike AS (PARTITION BY repository, code, fingerprint)
),
fresh AS (
    SELECT *, row_number() OVER (alike ORDER BY path, row, "column") AS nth
    FROM two ANTI JOIN one USING (repository, code, fingerprint, path, row, "column", twin)
    WINDOW alike AS (PARTITION BY repository, code, fingerprint)
)
SELECT CASE WHEN gone.path IS NULL THEN 'new' WHEN fresh.path IS NULL THEN 'gone' ELSE 'moved' END AS change,
    repository, coalesce(fresh.owner, gone.owner) AS owner, code, coalesce(fresh.name, gone.name) AS name,
    coalesce(fresh.path, gone.path) AS path, coalesce(fresh.row, gone.row) AS row,
    CASE WHEN fresh.path IS NOT NULL THEN gone.path END AS path_before,
    CASE WHEN fresh.path IS NOT NULL THEN gone.row END AS row_before
FROM gone FULL JOIN fresh USING (repository, code, fingerprint, nth)
ORDER BY repository, change, path, row, code
"""


# What holds once the tables are there: a query reads them, and reaches nothing else.
_CLOSED = (
    "temp_directory = ''",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "python_enable_replacements = false",
    "enable_external_access = false",
    "lock_configuration = true",
)
_READING = ("SELECT", "CREATE", "MULTI")  # a PIVOT is the last two; what is created is in memory


class Answer(Struct, frozen=True):
    """What a query gives: titles of the columns, and rows."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    @property
    def records(self) -> list[Record]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Tables:
    """The tables of a fleet, open for questions."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, runs: list[str], run: str) -> None:
        self._connection = connection
        self.runs = runs
        self.run = run

    def ask(self, sql: str, values: Mapping[str, Any] | None = None) -> Answer:
        """The answer to a query. values: of the parameters (`$name`) that are in it.

        Raises FleetError: it cannot be run, or does more than read the tables; the message says why.
        """
        import duckdb

        try:
            for statement in self._connection.extract_statements(sql):
                if statement.type.name not in _READING:
                    kind = statement.type.name.replace("_", " ")
                    raise FleetError(
                        f"a query can only read the tables of the runs, with SELECT; {kind} cannot"
                    )
            found = self._connection.execute(sql, dict(values or {}))
            if not found or found.description is None:
                raise FleetError("the query is empty")
            return Answer([each[0] for each in found.description], found.fetchall())
        except (duckdb.PermissionException, duckdb.CatalogException) as error:
            said = " ".join(str(error).partition("LINE 1:")[0].split())
            raise FleetError(f"a query can only read the tables of the runs: {said}") from None
        except duckdb.Error as error:
            raise FleetError(str(error).strip()) from None

    @property
    def target(self) -> str:
        """The release that the run is about."""
        ((target,),) = self.ask("SELECT target FROM runs WHERE run = $run", {"run": self.run}).rows
        return str(target)

    def changes(self, before: str, after: str) -> Answer:
        """The places that are new, gone or moved from one run to another, in repositories of both."""
        return self.ask(_CHANGES, {"before": before, "after": after})

    def before(self, run: str) -> str | None:
        """The run before another one; None: it was the first."""
        earlier = [each for each in self.runs if each < run]
        return earlier[-1] if earlier else None


@contextmanager
def opened(store: Store, run: str | None = None) -> Iterator[Tables]:
    """The tables of a run (None: the newest), as `findings` and so on; those of all runs as `all_findings`.

    Raises FleetError: there is no such run, or its files cannot be read.
    """
    import duckdb

    runs = store.runs()
    if not runs:
        raise FleetError(f"{store.directory}: holds no run of `torchmigrate fleet`")
    if run is not None and run not in runs:
        raise FleetError(f"{store.directory}: has no run {run}; it has {', '.join(runs)}")
    chosen = run or runs[-1]
    with duckdb.connect(":memory:") as connection:
        try:
            tables: list[Path] = []
            for name in NAMES:
                every = [store.table(each, name) for each in runs]
                one = every if name == "runs" else [store.table(chosen, name)]
                connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {_files(one)}")
                connection.execute(f"CREATE VIEW all_{name} AS SELECT * FROM {_files(every)}")
                tables += every
            connection.execute(_VIEWS)
            connection.execute(f"SET allowed_paths = {_list(tables)}")
            for setting in _CLOSED:
                connection.execute(f"SET {setting}")
        except duckdb.Error as error:
            raise FleetError(f"{store.directory}: {str(error).splitlines()[0]}") from None
        yield Tables(connection, runs, chosen)


def _files(paths: list[Path]) -> str:
    """A call that reads Parquet files; columns that older runs lack are null there."""
    return f"read_parquet({_list(paths)}, union_by_name = true, hive_partitioning = false)"


def _list(paths: list[Path]) -> str:
    return "[" + ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths) + "]"


def page_of_run(store: Store) -> Page:
    """What the page shows of the newest run. Raises FleetError."""
    with opened(store) as tables:
        (run,) = tables.ask("SELECT * FROM runs WHERE run = $run", {"run": tables.run}).records
        before = tables.before(tables.run)
        changes = None
        if before is not None:
            found = [row[0] for row in tables.changes(before, tables.run).rows]
            changes = {"run": before, **{kind: found.count(kind) for kind in ("new", "gone", "moved")}}
        return Page(
            run=run,
            repositories=tables.ask("SELECT * FROM repositories ORDER BY repository").records,
            releases=tables.ask("SELECT * FROM releases ORDER BY repository, release(release)").records,
            rules=tables.ask(
                "SELECT * FROM rules_of_run ORDER BY repositories DESC, places DESC, code"
            ).records,
            owners=tables.ask("SELECT * FROM owners_of_run ORDER BY owner NULLS LAST").records,
            trend=tables.ask(_TREND).records,
            changes=changes,
        )
