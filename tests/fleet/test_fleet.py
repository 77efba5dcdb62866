"""Runs over small fleets, by the workers of a real Dask cluster on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from fleet_support import NEW, OLD, Fleet, workers_of

from torchmigrate.fleet.model import FleetError
from torchmigrate.fleet.queries import opened
from torchmigrate.fleet.schema import TABLES, arrow_schema
from torchmigrate.fleet.store import Store


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


@pytest.fixture
def shared(tmp_path: Path) -> Fleet:
    """One that the workers of other tests examine."""
    return Fleet(tmp_path, shared=True)


def test_what_is_found_is_in_tables_pages_and_plans(shared: Fleet) -> None:
    origin = shared.repository("origin", {"a.py": OLD, "bad.py": "def f(:\n"})
    shared.git(origin, "tag", "v1")
    first = shared.git(origin, "rev-parse", "HEAD")
    shared.repository("origin", {"a.py": NEW, "b.py": OLD, "c.py": OLD})
    shared.write("plain/model.py", OLD)
    shared.write("plain/requirements.txt", "torch>=1.8\n")
    shared.write("other/main.py", "print('nothing')\n")
    shared.lists(
        "# address revision owner",
        f"file://{origin} v1 team-a",
        f"file://{origin}",
        "plain  # beside the list",
        "other",
    )
    said = shared.run("--verbose")
    assert "4 repositories: 4 examined, 0 unchanged.\n" in said
    rows = shared.repositories()
    tagged, newest = sorted(name for name in rows if name.endswith(("origin", "origin-2")))
    assert rows[tagged]["state"] == first and rows[tagged]["owner"] == "team-a"
    assert rows[tagged]["revision"] == "v1" and rows[newest]["revision"] is None
    assert rows[newest]["state"] == shared.git(origin, "rev-parse", "HEAD")
    assert [rows[name]["runs_on_target"] for name in (tagged, newest, "plain", "other")] == [False] * 3 + [
        True
    ]
    assert (rows["plain"]["minimum"], rows["other"]["files_with_torch"]) == ("1.8", 0)
    for name, row in rows.items():
        assert row["status"] == "done" and row["seconds"] > 0 and row["megabytes"] > 10, name
        page = (shared.out / row["page"]).read_text("utf-8")
        assert "torch.ger" in page or name == "other"
        assert "eigenvectors" not in page, "no line of source leaves the worker"
    # The same as `plan` says.
    plan = json.loads(
        shared.torchmigrate(
            shared.command("plan", "--to", "2.13", "--output-format", "json", "plain"), 0
        ).stdout
    )
    found = [row for row in shared.table("findings") if row["repository"] == "plain"]
    keys = ("code", "message", "effect", "effort", "help", "symbol", "url")
    assert [{key: row[key] for key in keys} for row in found] == [
        {key: place[key] for key in keys} for place in plan["places"]
    ]
    assert [
        (row["path"], row["row"], row["breaks_on_import"]) for row in found if row["code"] == "TM100"
    ] == [("model.py", 4, "2.0")]
    assert rows["plain"]["headline"] == plan["headline"]
    unread = [(row["repository"], row["kind"], row["examples"]) for row in shared.table("unread")]
    assert unread == [(name, "invalid-syntax", ["bad.py"]) for name in (tagged, newest)]
    (run,) = shared.table("runs")
    assert (run["listed"], run["examined"], run["failed"], run["interrupted"]) == (4, 4, 0, False)
    releases = [row for row in shared.table("releases") if row["repository"] == "plain"]
    assert next(row["release"] for row in releases if not row["runs"]) == "2.0"
    index = (shared.out / "index.html").read_text("utf-8")
    assert f'href="./{rows["plain"]["page"]}"' in index and "0 of 4 repositories run" in index
    for name in TABLES:
        written = pq.read_schema(shared.out / "runs" / shared.runs[0] / f"{name}.parquet")
        assert written.equals(arrow_schema(name)) and written.metadata[b"torchmigrate_schema"] == b"1"
    described = json.loads((shared.out / "schema.json").read_text())
    assert set(described["tables"]) == set(TABLES)


def test_source_is_shown_if_asked_for(shared: Fleet) -> None:
    shared.write("plain/model.py", OLD)
    shared.lists("plain")
    shared.run("--excerpts")
    (row, *_) = [row for row in shared.table("findings") if row["code"] == "TM100"]
    assert "torch.symeig(x, eigenvectors=True)" in row["excerpt"]
    assert "eigenvectors" in (shared.out / "plans" / "plain.html").read_text()


def test_the_second_run_does_nothing_but_for_what_has_changed(shared: Fleet) -> None:
    origin = shared.repository("origin")
    shared.repository("local")
    shared.write("plain/a.py", OLD)
    shared.lists(f"file://{origin}", "local", "plain")
    shared.run()
    clone = next(shared.clones.glob("*origin*/a.py"))
    before = clone.stat().st_ino
    assert "0 examined, 3 unchanged" in shared.run()
    first, second = shared.runs
    for name in ("findings", "releases", "unread"):
        one, two = shared.table(name, first), shared.table(name, second)
        assert [{**row, "run": ""} for row in one] == [{**row, "run": ""} for row in two]
    assert {row["reused"] for row in shared.table("repositories")} == {True}
    assert clone.stat().st_ino == before

    shared.repository("origin", {"b.py": OLD})
    shared.write("local/a.py", "\n" + OLD)  # not committed
    shared.write("plain/a.py", NEW)
    assert "3 examined, 0 unchanged" in shared.run()
    changes = json.loads(shared.ask("compare", "--output-format", "json"))
    assert sorted(
        (row["change"], row["repository"], row["path"]) for row in changes if row["code"] == "TM100"
    ) == [
        ("gone", "plain", "a.py"),
        ("moved", "local", "a.py"),
        ("new", f"{shared.path.name}/origin", "b.py"),
    ]
    assert "3 examined" in shared.run("--no-resume")
    assert "3 examined" in shared.run("--extend-select", "TM411")


def test_what_goes_wrong_in_one_repository_is_named_and_all_others_are_done(fleet: Fleet) -> None:
    fleet.bad_git()
    bad = ["hanging", "crashing", "poisonous", "greedy"]
    for name in (*bad, "good-1", "good-2", "good-3"):
        fleet.repository(f"origins/{name}")
    fleet.repository("configured", {"a.py": OLD, "torchmigrate.toml": "select = ['NONE']\n"})
    lines = [f"file://{fleet.path}/origins/{name}" for name in (*bad, "good-1", "good-2", "good-3", "gone")]
    fleet.lists(*lines, f"file://{fleet.path}/origins/good-1 nowhere", "missing", "configured")
    said = fleet.run("--time-limit", "10", "--memory-limit", "250", "--workers", "2", code=2)
    rows = fleet.repositories()
    assert {name.rpartition("/")[2]: row["trouble"] for name, row in rows.items() if row["trouble"]} == {
        "hanging": "time",
        "crashing": "crash",
        "poisonous": "worker",
        "greedy": "memory",
        "gone": "clone",
        "good-1-2": "clone",
        "missing": "clone",
        "configured": "settings",
    }
    done = {name.rpartition("/")[2] for name, row in rows.items() if row["status"] == "done"}
    assert done == {"good-1", "good-2", "good-3"}
    for name, row in rows.items():
        assert row["why"] is None or f"error: {name}: {row['why']}\n" in said
    assert "took longer than 10 s" in said and "needed more than 250 MB" in said
    assert "11 repositories: 3 examined, 0 unchanged, 8 failed.\n" in said
    assert said.count("\n") == 10, said


def test_a_worker_that_is_killed_costs_nothing(fleet: Fleet) -> None:
    fleet.bad_git()
    names = ("quick", "slow")
    for name in names:
        fleet.repository(f"origins/{name}")
    fleet.lists(*(f"file://{fleet.path}/origins/{name}" for name in names))
    process = fleet.started()
    fleet.wait_for("plans/origins--quick.html")
    (worker,) = workers_of(process)
    worker.kill()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert said.startswith("2 repositories: 2 examined, 0 unchanged.\n")
    assert len([*fleet.clones.glob("*quick*/a.py")]) == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_was_done_before_a_signal_is_used_again(how: signal.Signals, fleet: Fleet) -> None:
    fleet.bad_git()
    for name in ("quick", "slow-1", "slow-2"):
        fleet.repository(f"origins/{name}")
    fleet.lists(*(f"file://{fleet.path}/origins/{name}" for name in ("quick", "slow-1", "slow-2")))
    process = fleet.started()
    fleet.wait_for("plans/origins--quick.html", "repositories/origins--quick.json.gz")
    workers = workers_of(process)
    examining = [child for worker in workers for child in worker.children(recursive=True)]
    if how is signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does
    else:
        process.send_signal(how)
    _, said = process.communicate(timeout=120)
    assert "Traceback" not in said
    _, alive = psutil.wait_procs([*workers, *examining], timeout=30)
    assert not alive
    if how is not signal.SIGKILL:
        assert process.returncode == (130 if how is signal.SIGINT else -signal.SIGTERM)
        assert "3 repositories: 1 examined, 0 unchanged, 2 not reached; the same command goes on" in said
        (run,) = fleet.table("runs")
        assert run["interrupted"] and set(fleet.repositories()) == {"origins/quick"}
        assert "2 were not reached" in (fleet.out / "index.html").read_text("utf-8")
    fleet.good_git()
    fleet.shared = True
    assert "2 examined, 1 unchanged" in fleet.run()


def test_a_full_disk_ends_it_with_one_line_and_loses_nothing(fleet: Fleet) -> None:
    for name in ("a", "b"):
        fleet.write(f"{name}/a.py", OLD)
    fleet.lists("a", "b")
    full = fleet.out / "plans" / ".b.html.part"
    full.parent.mkdir(parents=True)
    full.symlink_to("/dev/full")
    said = fleet.run(code=2)
    assert said.count("\n") == 1
    assert "No space left on device; what was done is kept, and the same command goes on" in said
    assert not (fleet.out / "runs").exists()
    assert "1 examined, 1 unchanged" in fleet.run()


def test_two_runs_do_not_write_to_one_directory(fleet: Fleet) -> None:
    fleet.bad_git()
    fleet.repository("origins/slow")
    fleet.lists(f"file://{fleet.path}/origins/slow")
    process = fleet.started()
    fleet.wait_for(".lock")
    assert fleet.run(code=2) == f"error: another run is writing to {fleet.out}\n"
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_a_large_repository_is_examined_in_parts(shared: Fleet) -> None:
    for number in range(3100):
        shared.write(f"large/pkg/m{number}.py", OLD if number % 500 == 0 else "x = 1\n")
    shared.write("large/pkg/__init__.py", "from pkg import m500\n")
    shared.write("large/pkg/m500.py", "from torch._six import inf\n")
    shared.lists("large")
    shared.run()
    plan = json.loads(
        shared.torchmigrate(
            shared.command("plan", "--to", "2.13", "--output-format", "json", "large"), 0
        ).stdout
    )
    (row,) = shared.table("repositories")
    assert (row["files"], row["headline"]) == (3101, plan["headline"])
    assert [(each["path"], each["row"], each["code"]) for each in shared.table("findings")] == [
        (each["path"].removeprefix("large/"), each["location"]["row"], each["code"])
        for each in plan["places"]
    ]
    assert len(plan["places"]) > 12
    assert "1 unchanged" in shared.run()


def test_a_cluster_that_is_given_is_used(fleet: Fleet) -> None:
    for name in ("a", "b"):
        fleet.write(f"{name}/a.py", OLD)
    fleet.lists("a", "b")
    said = fleet.write("scheduler.json", "")
    said.unlink()
    dask = [sys.executable, "-m", "dask"]
    quiet = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": fleet.environment,
        "cwd": fleet.path,
    }
    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--scheduler-file", said, "--port", "0", "--no-dashboard"], **quiet
    )
    worker = None
    try:
        end = time.monotonic() + 60
        while not (said.exists() and said.read_text()):
            assert time.monotonic() < end
            time.sleep(0.1)
        address = json.loads(said.read_text())["address"]
        run = fleet.started("--scheduler", address)
        assert run.stderr is not None
        assert (
            run.stderr.readline() == f"warning: the scheduler at {address} has no workers: waiting for one\n"
        )
        worker = subprocess.Popen([*dask, "worker", "--scheduler-file", said, "--no-dashboard"], **quiet)
        _, rest = run.communicate(timeout=120)
        assert run.returncode == 0 and "2 examined" in rest
        assert "warning" not in fleet.run("--scheduler", address)
    finally:
        for process in (worker, scheduler):
            if process is not None:
                process.terminate()
                process.wait(30)


def test_no_scheduler_answers(fleet: Fleet) -> None:
    fleet.write("a/a.py", OLD)
    fleet.lists("a")
    said = fleet.run(
        "--scheduler", "tcp://127.0.0.1:1", code=2, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="1s"
    )
    assert said.startswith("error: no Dask scheduler answers at tcp://127.0.0.1:1")
    assert said.count("\n") == 1


def test_questions(shared: Fleet) -> None:
    shared.repository("one", {"a.py": OLD})
    shared.repository("two", {"a.py": OLD, "b.py": "import torch\ntorch.ger(a, b)\n"})
    shared.write("three/a.py", NEW)
    shared.lists("one HEAD team-a", "two HEAD team-b", "three")
    shared.run()
    blocking = json.loads(shared.ask("query", "blocking", "--output-format", "json"))
    assert [(row["repository"], row["code"], row["places"]) for row in blocking] == [
        ("one", "TM100", 1),
        ("two", "TM100", 1),
    ]
    assert shared.ask("query", "blocking", "--release", "1.13", "--output-format", "json") == "[]\n"
    rules = {row["code"]: row for row in json.loads(shared.ask("query", "rules", "--output-format", "json"))}
    assert (rules["TM110"]["places"], rules["TM110"]["repositories"], rules["TM110"]["mended_safe"]) == (
        3,
        2,
        2,
    )
    owners = shared.ask("query", "owners", "--output-format", "csv").splitlines()
    assert owners[0] == "owner,repositories,running,failed,safe,unsafe,by_hand"
    assert sorted(line.split(",")[:3] for line in owners[1:]) == [
        ["", "1", "1"], ["team-a", "1", "0"], ["team-b", "1", "0"],
    ]  # fmt: skip
    table = shared.ask("query", "SELECT repository, runs_last FROM repositories ORDER BY 1")
    assert table == "repository  runs_last\none         1.13\nthree       2.13\ntwo         1.13\n"
    newest = "SELECT DISTINCT release FROM releases ORDER BY release(release) DESC LIMIT 1"
    assert shared.ask("query", newest) == "release\n2.13\n"
    assert shared.ask("query", "SELECT count(*) AS n FROM all_findings", "--run", shared.runs[0])
    assert "Referenced column" in shared.ask("query", "SELECT nothing", code=2)
    assert shared.ask("query", "SHOW TABLES").count("findings") == 2
    pivot = shared.ask(
        "query", "PIVOT findings ON code USING count(*) GROUP BY repository ORDER BY repository"
    )
    assert [line.split() for line in pivot.splitlines()] == [
        ["repository", "TM005", "TM100", "TM110"],
        ["one", "0", "1", "1"],
        ["three", "1", "0", "0"],  # `torch.outer` needs torch 1.7, and no minimum is declared
        ["two", "0", "1", "2"],
    ]
    assert "must be a release of torch" in shared.ask("query", "blocking", "--release", "9x", code=2)
    assert "has no run 2020" in shared.ask("query", "rules", "--run", "2020", code=2)
    assert "there is no run before" in shared.ask("compare", code=2)


def test_a_query_reads_the_tables_and_nothing_else(shared: Fleet) -> None:
    shared.out = shared.path / "it's out"
    store = Store(shared.out)
    store.write_run("20260101T000000Z", [("findings", {"run": "20260101T000000Z", "code": "TM100"})])
    secret = shared.write("secret.csv", "a,b\n1,2\n")
    made = shared.path / "made"
    table = str(next((shared.out / "runs").glob("*/runs.parquet"))).replace("'", "''")
    before = {path: path.read_bytes() for path in shared.path.rglob("*.parquet")}
    beyond = [
        f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM sniff_csv('{secret}')",
        f"FROM '{secret}'",
        f"SELECT * FROM glob('{shared.path}/*')",
        f"SELECT * FROM read_parquet('{shared.path}/**/*.parquet')",
        f"SELECT * FROM query('FROM read_text(''{secret}'')')",
        "SELECT * FROM read_csv('http://localhost:1/a.csv')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        f"COPY (SELECT 1) TO '{made}'",
        f"COPY (SELECT 1 AS run) TO '{table}' (FORMAT parquet, USE_TMP_FILE false)",
        f"EXPLAIN ANALYZE COPY (SELECT 1 AS run) TO '{table}' (FORMAT parquet, USE_TMP_FILE false)",
        f"SELECT 1; COPY (SELECT 1) TO '{made}'",
        f"EXPORT DATABASE '{made}'",
        f"IMPORT DATABASE '{shared.path}'",
        f"ATTACH '{made}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA enable_profiling",
        f"PREPARE x AS COPY (SELECT 1) TO '{made}'",
        "CREATE SECRET (TYPE http)",
        "CALL enable_logging()",
        " -- nothing",
    ]
    with opened(store) as tables:
        for sql in beyond:
            with pytest.raises(FleetError) as error:
                tables.ask(sql)
            assert len(str(error.value).splitlines()) == 1, (sql, error.value)
        assert tables.ask("SELECT code FROM all_findings").rows == [("TM100",)]
    said = shared.ask("query", beyond[0], code=2)
    assert said.startswith("error: a query can only read the tables of the runs: ") and said.count("\n") == 1
    assert not made.exists()
    assert {path: path.read_bytes() for path in shared.path.rglob("*.parquet")} == before


def test_without_a_run_there_is_nothing_to_ask(shared: Fleet) -> None:
    assert (
        shared.ask("query", "rules", code=2) == f"error: {shared.out}: holds no run of `torchmigrate fleet`\n"
    )


def test_a_directory_that_git_ignores_is_looked_at_for_changes(shared: Fleet) -> None:
    shared.repository("outer", {".gitignore": "vendor/\n"})
    shared.write("outer/vendor/a.py", OLD)
    shared.lists("outer/vendor")
    shared.run()
    assert "1 unchanged" in shared.run()
    shared.write("outer/vendor/a.py", NEW)
    assert "1 examined" in shared.run()


def test_a_configuration_above_the_clones_is_that_of_nobody(shared: Fleet) -> None:
    origin = shared.repository(
        "origin", {"a.py": OLD, "sub/torchmigrate.toml": "ignore = ['TM100']\n", "sub/a.py": OLD}
    )
    shared.write("clones/torchmigrate.toml", "ignore = ['TM110']\n")
    shared.lists(f"file://{origin}")
    shared.run("--clones", str(shared.path / "clones"))
    found = {(row["path"], row["code"]) for row in shared.table("findings")}
    assert {("a.py", "TM110"), ("a.py", "TM100"), ("sub/a.py", "TM110")} <= found
    assert ("sub/a.py", "TM100") not in found


def test_workers_are_not_for_a_scheduler(fleet: Fleet) -> None:
    fleet.write("a/a.py", OLD)
    fleet.lists("a")
    said = fleet.run("--scheduler", "tcp://127.0.0.1:1", "--workers", "2", code=2)
    assert "--workers is about this machine" in said
