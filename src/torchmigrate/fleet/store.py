"""The directory of the results: what was found in each repository, the runs as Parquet, the pages.

    DIR/index.html                  the page of the newest run
    DIR/plans/NAME.html             the plan of a repository
    DIR/runs/RUN/TABLE.parquet      the tables of a run
    DIR/repositories/NAME.json.gz   the last result for a repository, which a run uses again if it can

Everything is written in one step, so that a kill at any moment leaves what can be used and resumed.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from torchmigrate.fleet.model import Examined, FleetError, Record, Repository, Usage
from torchmigrate.fleet.repositories import file_name
from torchmigrate.fleet.schema import NAMES, TABLES, VERSION, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 20_000  # of a table that are held before they are written
_FORM = 1  # of the files in repositories/


class Kept(Struct, frozen=True):
    """A result that is in the directory.

    state: of the repository. key: the settings, and the version of torchmigrate. tables: as in `Examined`.
    """

    state: str
    key: str
    usage: Usage
    tables: Mapping[str, list[Record]]


class Store:
    """The results of a fleet in a directory, which is made.

    Raises OSError from every method where the system does: a full disk.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the directory. Raises FleetError where one is in it."""
        from filelock import FileLock, Timeout

        self.directory.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.directory / ".lock", blocking=False)
        try:
            lock.acquire()
        except Timeout:
            raise FleetError(f"another run is writing to {self.directory}") from None
        try:
            yield
        finally:
            lock.release()

    # ---- one repository ------------------------------------------------------------------------------

    def keep(self, repository: Repository, examined: Examined, key: str, usage: Usage) -> None:
        """Write a result and its page; it takes the place of an earlier one."""
        _write(self.directory / page_of(repository), examined.page.encode("utf-8", "backslashreplace"))
        content = {
            "form": _FORM,
            "state": examined.state,
            "key": key,
            "seconds": round(usage.seconds, 3),
            "megabytes": usage.megabytes,
            "tables": examined.tables,
        }
        data = gzip.compress(json.dumps(content, separators=(",", ":")).encode(), 3, mtime=0)
        _write(self._file_of(repository), data)

    def kept(self, repository: Repository) -> Kept | None:
        """The last result; None: there is none that can be read."""
        try:
            content = json.loads(gzip.decompress(self._file_of(repository).read_bytes()))
            if content["form"] != _FORM or not (self.directory / page_of(repository)).exists():
                return None
            usage = Usage(float(content["seconds"]), int(content["megabytes"]))
            return Kept(content["state"], content["key"], usage, content["tables"])
        except (OSError, ValueError, EOFError, KeyError, TypeError):
            return None  # it is examined anew

    def _file_of(self, repository: Repository) -> Path:
        return self.directory / "repositories" / f"{file_name(repository.name)}.json.gz"

    # ---- runs ----------------------------------------------------------------------------------------

    def runs(self) -> list[str]:
        """The runs that are whole, oldest first."""
        directory = self.directory / "runs"
        if not directory.is_dir():
            return []
        return sorted(
            entry.name
            for entry in directory.iterdir()
            if not entry.name.startswith(".") and all((entry / f"{name}.parquet").exists() for name in NAMES)
        )

    def table(self, run: str, name: str) -> Path:
        """The Parquet file of a table."""
        return self.directory / "runs" / run / f"{name}.parquet"

    def write_run(self, run: str, rows: Iterable[tuple[str, Record]]) -> None:
        """Write the tables of a run: all of them, or none. rows: each with the name of its table."""
        whole = self.directory / "runs" / run
        made = whole.with_name(f".{run}")
        _remove(made)
        made.mkdir(parents=True)
        writers = {name: _Writer(made / f"{name}.parquet", arrow_schema(name)) for name in NAMES}
        try:
            for name, row in rows:
                writers[name].add(row)
            for writer in writers.values():
                writer.close()
            made.replace(whole)
        except BaseException:
            for writer in writers.values():
                writer.abandon()
            _remove(made)
            raise

    def write_page(self, text: str) -> Path:
        """Write the page of the newest run; where it is."""
        path = self.directory / "index.html"
        _write(path, text.encode("utf-8", "backslashreplace"))
        return path

    def describe(self) -> None:
        """Write a description of the tables into the directory."""
        described = {
            "schema": VERSION,
            "tables": {
                name: {
                    "row": table.about,
                    "columns": {column.name: [column.type, column.about] for column in table.columns},
                }
                for name, table in TABLES.items()
            },
        }
        _write(self.directory / "schema.json", (json.dumps(described, indent=2) + "\n").encode())


def page_of(repository: Repository) -> str:
    """Where the plan of a repository is, relative to the directory of the results."""
    return f"plans/{file_name(repository.name)}.html"


class _Writer:
    """Writes a table with many rows in pieces."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._schema = schema
        self._rows: list[Record] = []
        self._file = pq.ParquetWriter(path, schema, compression="zstd")

    def add(self, row: Record) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._file.close()

    def abandon(self) -> None:
        """Close what could not be written."""
        with suppress(Exception):
            self._file.close()

    def _flush(self) -> None:
        import pyarrow as pa

        self._file.write_table(pa.Table.from_pylist(self._rows, self._schema))
        self._rows = []


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def _remove(directory: Path) -> None:
    """Remove a directory of a run that was not finished."""
    if directory.is_dir():
        for entry in os.scandir(directory):
            os.unlink(entry.path)  # noqa: PTH108 (entries of scandir)
        directory.rmdir()
