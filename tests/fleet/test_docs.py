"""The page about fleets. `python tests/fleet/test_docs.py --update` writes what it says of the tables."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from torchmigrate.fleet.model import Trouble
from torchmigrate.fleet.queries import READY, opened
from torchmigrate.fleet.repositories import read_repositories
from torchmigrate.fleet.schema import TABLES, VERSION
from torchmigrate.fleet.store import Store

pytestmark = pytest.mark.one_python

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
TEXT = PAGE.read_text("utf-8")
# What is generated, from the first table to the end of its section.
GENERATED = re.compile(r"^### `runs`\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
RUN = "20261125T165408Z"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def tables() -> str:
    """What the page says of the tables."""
    text = ""
    for name, table in TABLES.items():
        text += f"### `{name}`\n\nA row is {table.about}.\n\n| column | type | |\n| --- | --- | --- |\n"
        for column in table.columns:
            text += f"| `{column.name}` | {column.type} | {column.about} |\n"
        text += "\n"
    return text.rstrip("\n") + "\n"


def test_the_tables_are_those_of_the_page() -> None:
    shown = GENERATED.search(TEXT)
    assert shown is not None and shown[0].rstrip("\n") == tables().rstrip("\n"), (
        "run `python tests/fleet/test_docs.py --update`"
    )


def test_every_trouble_and_every_ready_query_is_on_the_page() -> None:
    assert [f"`{each.value}`" for each in Trouble if f"| `{each.value}` |" not in TEXT] == []
    assert [name for name in READY if f"fleet query {name} " not in TEXT] == []


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The results of a fleet of two repositories, one of which has findings."""
    of: dict[str, Any] = {"run": RUN, "repository": "a"}
    started = datetime(2026, 11, 25, 16, 54, 8, tzinfo=timezone.utc)
    place = {**of, "owner": "vision", "path": "a.py", "row": 3, "effect": "may_raise"}
    rows: list[tuple[str, dict[str, Any]]] = [
        ("runs", {"run": RUN, "schema": VERSION, "started": started, "target": "2.13", "listed": 2}),
        ("repositories", {**of, "owner": "vision", "status": "done", "runs_on_target": False, "files": 3}),
        ("repositories", {"run": RUN, "repository": "b", "status": "failed", "trouble": "time"}),
        ("findings", {**place, "code": "TM600", "name": "load-weights-only", "effort": "unsafe"}),
        ("findings", {**place, "code": "TM100", "name": "symeig", "effort": "by_hand", "raises": "2.0"}),
        ("releases", {**of, "release": "1.13", "runs": True}),
        ("releases", {**of, "release": "2.13", "runs": False}),
    ]
    store = Store(tmp_path / "fleet")
    store.write_run(RUN, rows)
    return store.directory


def test_queries(results: Path) -> None:
    """Each of the page gives something, and names its columns."""
    shown = blocks("sql")
    assert len(shown) == 4
    with opened(Store(results)) as open_tables:
        answers = [open_tables.ask(sql) for sql in shown]
    assert [answer.rows for answer in answers] == [
        [("1.13", 1, 1), ("2.13", 0, 1)],
        [("a", "a.py", 3, "unsafe")],
        [("vision", "TM100", "symeig", 1)],
        [(RUN, 2, 1)],
    ]


def test_python(results: Path) -> None:
    """What needs no cluster is executed, the rest is Python at least."""
    reading, slurm = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", reading],
        cwd=results.parent,
        env={**os.environ},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "path_count" in done.stdout
    ast.parse(slurm)


def test_lists(tmp_path: Path) -> None:
    listed, _, _ = blocks("yaml")
    path = tmp_path / "repos.yaml"
    path.write_text(listed, "utf-8")
    found = read_repositories(path)
    assert [(each.name, each.revision, each.owner) for each in found] == [
        ("acme/detector", "release-2", "vision"),
        ("recognizer", None, None),
        ("tagger", None, None),
    ]
    assert [each.is_directory for each in found] == [False, False, True]


def test_the_workflow(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yml"
    path.write_text(blocks("yaml")[2], "utf-8")
    command = ["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_cluster_of_kubernetes() -> None:
    """Labels, ports and volumes belong together."""
    cluster = yaml.safe_load(blocks("yaml")[1])
    assert (cluster["apiVersion"], cluster["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    worker, scheduler = cluster["spec"]["worker"]["spec"], cluster["spec"]["scheduler"]
    service, (container,) = scheduler["service"], scheduler["spec"]["containers"]
    assert service["selector"]["dask.org/cluster-name"] == cluster["metadata"]["name"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == ports
    (works,) = worker["containers"]
    assert {mount["name"] for mount in works["volumeMounts"]} == {each["name"] for each in worker["volumes"]}
    assert f"service/{cluster['metadata']['name']}-scheduler" in TEXT


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python tests/fleet/test_docs.py --update")
    before = GENERATED.sub("", TEXT).rstrip("\n") if GENERATED.search(TEXT) else TEXT.rstrip("\n")
    PAGE.write_text(f"{before}\n\n{tables()}", "utf-8")
