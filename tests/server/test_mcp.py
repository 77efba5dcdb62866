"""`torchmigrate mcp` as an agent uses it: the client of the SDK, over stdio."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from harness.agent import PATIENCE, Agent
from harness.project import Project, command, environment

from torchmigrate.server.mcp import MOST_TEXT

OLD = """\
import torch

L, V = torch.symeig(A, eigenvectors=True)
y = torch.ger(a, b)
m = torch.load("model.pt")
"""
UNSAFE = "import torch\nstate = torch.load('a.pt')\n"
SECRET = "import torch\nsecret = torch.ger(a, b)\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "old.py").write_text(OLD)
    (root / "pyproject.toml").write_text('[tool.torchmigrate]\ntarget = "2.13"\n')
    (tmp_path / "outside.py").write_text(SECRET)
    return root


@pytest.fixture
def agent(root: Path) -> Agent:
    return Agent(root)


def snapshot(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


# ---- the tools -------------------------------------------------------------------------------------------


def test_tools_have_schemas_and_say_whether_they_write(agent: Agent) -> None:
    tools = {tool.name: tool for tool in agent.tools().tools}
    assert {name: set(tool.input_schema["properties"]) for name, tool in tools.items()} == {
        "check": {"paths", "target", "minimum", "select", "ignore", "limit"},
        "explain": {"rule"},
        "fix": {"paths", "target", "minimum", "select", "ignore", "unsafe", "write"},
        "plan": {"paths", "target", "minimum", "limit"},
    }
    assert {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint} == {
        "check",
        "explain",
        "plan",
    }
    for tool in tools.values():
        assert tool.description and tool.output_schema
        for name, schema in tool.input_schema["properties"].items():
            assert schema["description"], name
    fields = tools["check"].output_schema or {}
    assert set(fields["$defs"]["Finding"]["required"]) >= {
        "code",
        "path",
        "row",
        "severity",
        "message",
        "fix",
    }


def test_check_finds_what_the_command_finds(
    agent: Agent, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = agent.call("check")
    shown = json.loads(
        Project(root, monkeypatch).run("check", "--output-format", "json", "--no-cache", code=1).stdout
    )
    assert not answer.failed and json.loads(answer.text) == answer.data
    assert answer.data["problems"] == [] and answer.data["more"] == 0
    assert "Checked for torch 2.13." in answer.data["summary"]
    found = answer.data["findings"]
    assert sorted((each["code"], each["row"], each["column"]) for each in found) == sorted(
        (each["code"], each["location"]["row"], each["location"]["column"]) for each in shown
    )
    first = found[0]
    assert (first["code"], first["severity"], first["path"], first["row"]) == ("TM100", "error", "old.py", 3)
    assert "torch.linalg.eigh" in first["message"] and "torch.linalg.eigh" in first["help"]
    assert first["fix"] == {
        "applicability": "safe",
        "title": "Replace with `torch.linalg.eigh`",
        "reason": None,
    }
    assert answer.data["rules"] == {each["code"]: 1 for each in found}


def test_the_most_severe_findings_come_first(agent: Agent) -> None:
    (answer, one) = agent.calls(("check", {}), ("check", {"limit": 1}))
    severities = [each["severity"] for each in answer.data["findings"]]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert one.data["findings"] == answer.data["findings"][:1]
    assert one.data["more"] == len(severities) - 1 and one.data["rules"] == answer.data["rules"]


def test_the_range_and_the_rules_of_a_check(agent: Agent) -> None:
    selected, left, old, safe = agent.calls(
        ("check", {"select": ["TM100"]}),
        ("check", {"ignore": ["symeig", "TM6"]}),
        ("check", {"target": "1.7", "select": ["TM100"]}),
        ("check", {"minimum": "1.4", "select": ["TM100"]}),
    )
    assert [each["code"] for each in selected.data["findings"]] == ["TM100"]
    assert [each["code"] for each in left.data["findings"]] == ["TM110"]
    assert old.data["findings"] == []
    (finding,) = safe.data["findings"]
    assert finding["fix"]["applicability"] != "safe" and finding["fix"]["reason"]


def test_notebooks_and_other_places(agent: Agent, root: Path) -> None:
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": [text]}
        for text in ("from torch import ger", "x = ger(a, b)")
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (root / "a.ipynb").write_text(json.dumps(notebook))
    (finding,) = agent.call("check", paths=["a.ipynb"]).data["findings"]
    assert (finding["cell"], finding["row"]) == (1, 1)
    assert finding["other_places"] == [{"cell": 2, "row": 1, "column": 5}]


def test_what_cannot_be_checked_is_a_problem(agent: Agent, root: Path) -> None:
    (root / "broken.py").write_text("import torch\ndef f(:\n")
    check, fix, plan = agent.calls(("check", {}), ("fix", {}), ("plan", {}))
    for answer in (check, fix, plan):
        (problem,) = answer.data["problems"]
        assert (
            problem.startswith("broken.py:2") and "1 file could not be processed." in answer.data["summary"]
        )
    assert check.data["findings"] and fix.data["diff"] and plan.data["places"]


def test_explain_by_code_name_symbol_and_prefix(agent: Agent) -> None:
    keys = ("TM100", "symeig", "torch.symeig", "TM10", "TOR101")
    code, name, symbol, several, torchfix = agent.calls(*(("explain", {"rule": key}) for key in keys))
    assert code == name == symbol
    (rule,) = code.data["rules"]
    assert (rule["code"], rule["name"], rule["fix"]) == ("TM100", "symeig", "safe") and rule["advice"]
    assert "Why\n" in code.data["text"] and "Before\n" in code.data["text"]
    assert len(several.data["rules"]) > 1 and "TM100" in several.data["text"]
    assert torchfix.data["rules"] and torchfix.data["text"].startswith("TOR101")


def test_plan_lists_releases_and_places(agent: Agent) -> None:
    whole, one = agent.calls(("plan", {"target": "2.9"}), ("plan", {"target": "2.9", "limit": 1}))
    data = whole.data
    assert (data["target"], data["releases"][-1]["last"], data["problems"]) == ("2.9", "2.9", [])
    assert "torch 2.0 breaks" in data["summary"]
    assert data["places"][0]["code"] == "TM100" and data["places"][0]["effect"] == "breaks_on_import"
    assert sum(data["effort"].values()) > 0
    assert one.data["places"] == data["places"][:1] and one.data["more"] == len(data["places"]) - 1


# ---- fixes -----------------------------------------------------------------------------------------------


def test_a_fix_is_a_diff(agent: Agent, root: Path) -> None:
    before = snapshot(root)
    answer = agent.call("fix")
    assert snapshot(root) == before
    assert not answer.data["written"] and answer.data["summary"].startswith("Would fix 2 findings")
    lines = answer.data["diff"].splitlines()
    assert lines[:2] == ["--- a/old.py", "+++ b/old.py"]
    assert "+y = torch.outer(a, b)" in lines and not any("weights_only" in line for line in lines)
    patched = subprocess.run(
        ["git", "apply", "-"], cwd=root, input=answer.data["diff"], text=True, capture_output=True
    )
    assert patched.returncode == 0 and "torch.outer" in (root / "old.py").read_text(), patched.stderr


def test_a_fix_is_written_on_request(agent: Agent, root: Path) -> None:
    shown, written, again = agent.calls(("fix", {}), ("fix", {"write": True}), ("fix", {"write": True}))
    assert written.data["diff"] == shown.data["diff"] and written.data["written"]
    assert written.data["summary"].startswith("Fixed 2 findings in 1 file")
    text = (root / "old.py").read_text()
    assert "torch.outer(a, b)" in text and 'torch.load("model.pt")' in text
    assert again.data["diff"] == "" and not again.data["written"]
    assert set(snapshot(root)) == {"old.py", "pyproject.toml"}


def test_only_the_selected_rules_and_paths_are_fixed(agent: Agent, root: Path) -> None:
    (root / "other.py").write_text(OLD)
    agent.call("fix", paths=["old.py"], select=["TM110"], write=True)
    assert (root / "old.py").read_text() == OLD.replace("torch.ger", "torch.outer")
    assert (root / "other.py").read_text() == OLD


def test_unsafe_fixes_need_unsafe(agent: Agent, root: Path) -> None:
    (root / "old.py").write_text(UNSAFE)
    safe, unsafe = agent.calls(("fix", {"write": True}), ("fix", {"write": True, "unsafe": True}))
    assert safe.data["diff"] == "" and "1 more fixable" in safe.data["summary"]
    assert "weights_only=" in unsafe.data["diff"] and "weights_only=" in (root / "old.py").read_text()


def test_the_configuration_cannot_make_a_call_write(agent: Agent, root: Path) -> None:
    (root / "old.py").write_text(UNSAFE + "x = torch.ger(a, b)\n")
    (root / "pyproject.toml").write_text(
        '[tool.torchmigrate]\nfix = true\nunsafe-fixes = true\noutput-format = "sarif"\n'
    )
    before = snapshot(root)
    check, fix = agent.calls(("check", {}), ("fix", {}), ("plan", {}))[:2]
    assert snapshot(root) == before
    assert {each["code"] for each in check.data["findings"]} == {"TM110", "TM600"}
    assert "torch.outer" in fix.data["diff"] and "weights_only" not in fix.data["diff"]


def test_a_baseline_above_the_root_is_read_and_not_written(agent: Agent, root: Path) -> None:
    subprocess.run(["git", "init", "--quiet", root.parent], check=True)
    (root / "pyproject.toml").unlink()
    baseline = root.parent / "baseline.json"
    (root.parent / "pyproject.toml").write_text('[tool.torchmigrate]\nbaseline = "baseline.json"\n')
    subprocess.run(command("baseline"), cwd=root, env=environment(), check=True, capture_output=True)
    before = baseline.read_bytes()
    check, fix = agent.calls(("check", {}), ("fix", {"write": True}))
    assert check.data["findings"] == [] and fix.data["written"]
    assert baseline.read_bytes() == before


# ---- limits ----------------------------------------------------------------------------------------------


def test_the_number_of_files_is_limited(root: Path) -> None:
    for number in range(5):
        (root / f"a{number}.py").write_text("import torch\n")
    whole, one, explained = Agent(root, "--max-files", "3").calls(
        ("check", {}), ("fix", {"paths": ["old.py"]}), ("explain", {"rule": "TM100"})
    )
    assert whole.failed and "more than 3; name fewer paths" in whole.text
    assert one.data["diff"] and explained.data["rules"]


def test_the_time_is_limited(root: Path) -> None:
    (root / "old.py").write_text("import torch\n" + "x = torch.ger(a, b)\n" * 20_000)
    started = time.monotonic()
    answer = Agent(root, "--time-limit", "0.5").call("check")
    assert answer.failed and "stopped after 0.5 seconds; name fewer paths or rules" in answer.text
    assert time.monotonic() - started < PATIENCE


def test_the_length_of_an_answer_is_limited(agent: Agent, root: Path) -> None:
    (root / "old.py").write_text("import torch\n" + "x = torch.ger(a, b)  # outer\n" * 900)
    check, fix, plan = agent.calls(("check", {"limit": 1000}), ("fix", {}), ("plan", {"limit": 1000}))
    for answer, listed in ((check, "findings"), (plan, "places")):
        assert len(answer.text) < 2 * MOST_TEXT
        assert 0 < len(answer.data[listed]) < 900
        assert answer.data["more"] == 900 - len(answer.data[listed])
    assert check.data["rules"] == {"TM110": 900}
    diff = fix.data["diff"]
    assert len(diff) <= MOST_TEXT and diff.endswith("\n")
    assert fix.data["more_lines"] > 0
    assert diff.count("\n") + fix.data["more_lines"] == 2 + 1 + 1 + 2 * 900


@pytest.mark.parametrize("limit", [0, 1001, "many"])
def test_a_limit_is_a_number_in_the_schema(agent: Agent, limit: Any) -> None:
    answer = agent.call("check", limit=limit)
    assert answer.failed and "limit" in answer.text


# ---- the root --------------------------------------------------------------------------------------------


def escapes(root: Path) -> list[str]:
    (root / "link.py").symlink_to(root.parent / "outside.py")
    (root / "directory").symlink_to(root.parent, target_is_directory=True)
    (root / "far").symlink_to("/")
    return [
        "..",
        "../outside.py",
        "a/../../outside.py",
        str(root.parent / "outside.py"),
        str(root.parent),
        "/",
        "link.py",
        "directory",
        "directory/outside.py",
        "directory/root/../outside.py",
        "far/etc",
        "../missing.py",
        str(root) + "x",
    ]


def test_paths_stay_inside_the_root(agent: Agent, root: Path) -> None:
    paths = escapes(root)
    outside = (root.parent / "outside.py").read_bytes()
    arguments = [("check", {}), ("plan", {}), ("fix", {"write": True})]
    calls = [(tool, {"paths": ["old.py", path], **more}) for path in paths for tool, more in arguments]
    for (tool, given), answer in zip(calls, agent.calls(*calls), strict=True):
        assert answer.failed, given
        assert answer.text == f"Error executing tool {tool}: {given['paths'][1]}: outside of the root {root}"
    assert (root.parent / "outside.py").read_bytes() == outside and (root / "old.py").read_text() == OLD


def test_paths_and_links_inside_the_root_are_taken(agent: Agent, root: Path) -> None:
    (root / "package").mkdir()
    (root / "package" / "link.py").symlink_to(root / "old.py")
    for path in ("old.py", "./old.py", "package/../old.py", str(root / "old.py"), "package/link.py"):
        answer = agent.call("check", paths=[path], select=["TM100"])
        assert [each["path"] for each in answer.data["findings"]] == ["old.py"], (path, answer.text)


def test_a_link_in_the_root_that_leads_to_the_rest_of_the_repository(root: Path) -> None:
    """Elsewhere in the repository is inside of the project for `check`, and outside of the root for an agent."""
    subprocess.run(["git", "init", "--quiet", root.parent], check=True)
    (root / "link.py").symlink_to(root.parent / "outside.py")
    check, fix, one = Agent(root).calls(
        ("check", {}), ("fix", {"write": True}), ("check", {"paths": ["old.py"]})
    )
    assert check.failed and fix.failed and check.text.endswith(f"outside of the root {root}")
    assert "secret" not in check.text and (root.parent / "outside.py").read_text() == SECRET
    assert one.data["findings"]


def test_the_root_is_an_option(root: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "link"
    here.mkdir()
    there.symlink_to(root, target_is_directory=True)
    for given in (root, there, "../root"):
        found, outside = Agent(here, "--root", given).calls(
            ("check", {"select": ["TM100"]}), ("check", {"paths": [str(here)]})
        )
        assert [each["path"] for each in found.data["findings"]] == ["old.py"]
        assert outside.failed
    done = subprocess.run(command("mcp", "--root", "none"), cwd=here, env=environment(), capture_output=True)
    assert done.returncode == 2 and done.stdout == b"" and b"does not exist" in done.stderr


# ---- hostile input ---------------------------------------------------------------------------------------

HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("check", {"paths": ["file:///etc/passwd"]}, "file:///etc/passwd: a URI, not a path"),
    ("check", {"paths": ["untitled://a\x1b[31m"]}, r"untitled://a\x1b[31m: a URI, not a path"),
    ("check", {"paths": ["missing.py"]}, "missing.py: no such file or directory"),
    ("check", {"paths": [""], "target": "\0"}, "the arguments must not contain NUL characters"),
    ("check", {"paths": ["old.py\0"]}, "the arguments must not contain NUL characters"),
    ("check", {"paths": ["-"]}, "-: no such file or directory"),
    ("check", {"paths": ["--fix"]}, "--fix: no such file or directory"),
    ("check", {"paths": ["x" * 4000]}, f"{'x' * 200}: no such file or directory"),
    ("check", {"paths": ["x/" * 2000]}, f"{'x/' * 100}: no such file or directory"),
    ("check", {"target": "banana"}, "must be a release of torch"),
    ("check", {"target": "--fix"}, "must be a release of torch"),
    ("check", {"target": "1.4", "minimum": "2.0"}, "minimum"),
    ("check", {"select": ["NONE"]}, "unknown rule `NONE`"),
    ("check", {"select": ["--output-file=x"]}, "unknown rule `--output-file=x`"),
    ("explain", {"rule": "--help"}, "unknown rule `--help`"),
    ("explain", {"rule": "\u202e\x1b]0;x\x07"}, "unknown rule"),
    ("explain", {"rule": "none\0"}, "the arguments must not contain NUL characters"),
    ("fix", {"write": "maybe"}, "write"),
    ("plan", {"target": "9" * 4000}, "must be a release of torch"),
]


def test_hostile_arguments_are_one_error(agent: Agent, root: Path) -> None:
    before = snapshot(root)
    answers = agent.calls(*((tool, arguments) for tool, arguments, _ in HOSTILE))
    for (tool, arguments, error), answer in zip(HOSTILE, answers, strict=True):
        assert answer.failed and error in answer.text, (arguments, answer.text)
        assert "Traceback" not in answer.text and len(answer.text) < 5000, (tool, arguments)
        assert "\x1b" not in answer.text and "\u202e" not in answer.text
    assert snapshot(root) == before


def test_too_many_and_too_long_arguments(agent: Agent) -> None:
    many, long, huge = agent.calls(
        ("check", {"paths": ["old.py"] * 201}),
        ("check", {"paths": ["x" * 5000]}),
        ("explain", {"rule": "x" * 1_000_000}),
    )
    for answer in (many, long, huge):
        assert answer.failed and "at most" in answer.text and len(answer.text) < 1000, answer.text


def test_names_that_are_not_text(agent: Agent, root: Path) -> None:
    Path(os.fsdecode(bytes(root) + b"/\xff\x1b.py")).write_text(OLD)
    check, fix = agent.calls(("check", {}), ("fix", {}))
    assert {each["path"] for each in check.data["findings"]} == {"old.py", r"\udcff\x1b.py"}
    assert not fix.failed and fix.data["diff"].count("+y = torch.outer(a, b)") == 2
    plan = agent.call("plan")
    assert not plan.failed and "\x1b" not in plan.text


def test_a_bad_configuration_is_one_error(agent: Agent, root: Path) -> None:
    (root / "pyproject.toml").write_text("[tool.torchmigrate]\ntarget = 3\n")
    for answer in agent.calls(("check", {}), ("fix", {}), ("plan", {})):
        assert answer.failed and "pyproject.toml" in answer.text and "target" in answer.text


def test_nothing_of_the_project_runs(root: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    for name in ("click", "json", "torchmigrate", "mcp", "sitecustomize", "msgspec"):
        (root / f"{name}.py").write_text(f"open({str(proof)!r}, 'w')\n")
    # As an installed script, which has its own directory on the path instead of the current one.
    script = "import sys; sys.path.remove(''); sys.argv = ['torchmigrate', 'mcp']; "
    script += "from torchmigrate.__main__ import main; main()"
    agent = Agent(root, program=[sys.executable, "-c", script])
    for answer in agent.calls(("check", {}), ("explain", {"rule": "TM100"}), ("fix", {}), ("plan", {})):
        assert not answer.failed, answer.text
    assert not proof.exists()


def test_variables_of_a_terminal_do_not_count(root: Path) -> None:
    agent = Agent(root, TORCHMIGRATE_OUTPUT_FILE="out.txt", TORCHMIGRATE_OUTPUT_FORMAT="sarif")
    assert agent.call("check", select=["TM100"]).data["rules"] == {"TM100": 1}
    assert not (root / "out.txt").exists()


# ---- the process -----------------------------------------------------------------------------------------

INITIALIZE = {
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def lines(*messages: dict[str, Any] | bytes) -> bytes:
    sent = [
        each if isinstance(each, bytes) else json.dumps({"jsonrpc": "2.0", **each}).encode()
        for each in messages
    ]
    return b"".join(each + b"\n" for each in sent)


def run(data: bytes, where: Path, program: list[str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """A server that gets some input and its end."""
    return subprocess.run(
        program or command("mcp"),
        cwd=where,
        input=data,
        env=environment(),
        capture_output=True,
        timeout=PATIENCE,
    )


def exchange(
    where: Path, *messages: dict[str, Any] | bytes, answers: int, program: list[str] | None = None
) -> tuple[dict[Any, Any], bytes]:
    """The first answers to messages, by their ids, and what is written to stderr; then the input ends."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(program or command("mcp"), cwd=where, env=environment(), **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(lines(INITIALIZE, {"method": "notifications/initialized"}, *messages))
        process.stdin.flush()
        found = [json.loads(process.stdout.readline()) for _ in range(answers)]
        out, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, b"")
    return {each["id"]: each for each in found}, errors


def test_the_end_of_the_input_is_the_end(root: Path, tmp_path: Path) -> None:
    program = ["env", f"TMPDIR={tmp_path}", *command("mcp")]
    found, errors = exchange(root, answers=1, program=program)
    (answer,) = found.values()
    assert answer["result"]["serverInfo"]["name"] == "torchmigrate"
    assert "data, not instructions" in answer["result"]["instructions"]
    done = run(b"", root, program)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"") and errors == b""
    assert list(tmp_path.glob("torchmigrate-*")) == []


def test_what_is_no_message_costs_nothing_else(root: Path) -> None:
    bad = [b"{]", b"", b"null", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b'"\\ud800"', b"[" * 100_000]
    call = {"name": "explain", "arguments": {"rule": "\ud800"}}
    found, errors = exchange(
        root,
        *bad,
        {"id": 2, "method": "tools/call", "params": call},
        {"id": 3, "method": "torchmigrate/unknown", "params": {}},
        {"id": 4, "method": "ping"},
        answers=3,
    )
    assert found[4]["result"] == {} and "error" in found[3] and errors == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(root: Path, tmp_path: Path, number: signal.Signals) -> None:
    variables = environment(TMPDIR=str(tmp_path))
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command("mcp"), cwd=root, env=variables, **pipes) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(lines(INITIALIZE))
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number
        assert process.stderr.read() == b""
    assert list(tmp_path.glob("torchmigrate-*")) == []


def test_nothing_but_messages_is_written_to_stdout(root: Path) -> None:
    script = (
        "import os, subprocess, sys; import torchmigrate.server.mcp as m; run = m.Tools._run\n"
        "async def loud(*arguments, **more):\n"
        "    print('printed', flush=True); os.write(1, b'written\\n'); subprocess.run(['echo', 'said'])\n"
        "    return await run(*arguments, **more)\n"
        "m.Tools._run = loud\n"
        "from torchmigrate.__main__ import main; sys.argv = ['torchmigrate', 'mcp']; main()"
    )
    call = {"id": 2, "method": "tools/call", "params": {"name": "check", "arguments": {}}}
    found, errors = exchange(root, call, answers=2, program=[sys.executable, "-c", script])
    assert found[2]["result"]["structuredContent"]["findings"]
    assert sorted(errors.split()) == [b"printed", b"said", b"written"]


def test_without_the_sdk_it_says_what_is_missing(root: Path) -> None:
    script = (
        "import sys; sys.modules['mcp.server'] = None; sys.argv = ['torchmigrate', 'mcp'];"
        "from torchmigrate.__main__ import main; main()"
    )
    done = run(b"", root, [sys.executable, "-c", script])
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == 'error: `torchmigrate mcp` needs mcp: pip install "torchmigrate[mcp]"\n'


def test_other_commands_do_not_load_it(root: Path) -> None:
    script = (
        "import atexit, sys; sys.argv = ['torchmigrate', 'check', '--no-cache'];"
        "atexit.register(lambda: print(sorted({'mcp', 'pydantic', 'anyio'} & set(sys.modules)), file=sys.stderr));"
        "from torchmigrate.__main__ import main; main()"
    )
    done = run(b"", root, [sys.executable, "-c", script])
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == "[]"
