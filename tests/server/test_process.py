"""The server as a process: how it begins and ends, and what it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.editor import PATIENCE, Editor
from harness.project import command, environment

INITIALIZE = {
    "id": 1,
    "method": "initialize",
    "params": {"capabilities": {}, "processId": None, "rootUri": None},
}


def message(content: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **content}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def messages(data: bytes) -> list[dict[str, Any]]:
    """What is in a stream, which must be nothing but messages."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        fields = dict(line.split(": ") for line in head.decode("ascii").split("\r\n"))
        size = int(fields["Content-Length"])
        found.append(json.loads(rest[:size]))
        data = rest[size:]
    return found


def run(
    *sent: dict[str, Any] | bytes, program: list[str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """A server that gets these messages, and then the end of its input."""
    data = b"".join(each if isinstance(each, bytes) else message(each) for each in sent)
    return subprocess.run(
        program or command("server"), input=data, env=environment(), capture_output=True, timeout=PATIENCE
    )


def test_shutdown_and_exit(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        assert editor.close() == 0


def test_exit_alone_is_no_good_end() -> None:
    done = run(INITIALIZE, {"method": "initialized", "params": {}}, {"method": "exit"})
    assert (done.returncode, done.stderr) == (1, b"")


def test_the_end_of_the_input_is_the_end() -> None:
    done = run(INITIALIZE, {"method": "initialized", "params": {}})
    assert (done.returncode, done.stderr) == (1, b"")
    (answer,) = messages(done.stdout)
    assert answer["result"]["serverInfo"]["name"] == "torchmigrate"


def test_the_end_of_the_input_does_not_wait_for_a_check(tmp_path: Path) -> None:
    text = "import torch\n" + "x = torch.ger(a, b)\n" * 20_000
    item = {"uri": "untitled:a", "languageId": "python", "version": 1, "text": text}
    opened = {"method": "textDocument/didOpen", "params": {"textDocument": item}}
    done = run(INITIALIZE, {"method": "initialized", "params": {}}, opened)
    assert (done.returncode, done.stderr) == (1, b"")


def test_what_is_no_message_costs_nothing_else() -> None:
    bad = {"id": 2, "method": "textDocument/hover", "params": {"position": "here"}}
    unknown = {"id": 3, "method": "torchmigrate/unknown", "params": {}}
    later = {"id": 4, "method": "shutdown"}
    body = b"{]"
    broken = b"Content-Length: %d\r\n\r\n" % len(body) + body
    done = run(INITIALIZE, bad, unknown, broken, later, {"method": "exit"})
    assert (done.returncode, done.stderr) == (0, b"")
    answers = {each.get("id"): each for each in messages(done.stdout)}
    assert "result" in answers[4]
    assert answers[3]["error"]["code"] == -32601


def test_nothing_but_messages_is_written_to_stdout(tmp_path: Path) -> None:
    script = (
        "import os, subprocess, sys; import torchmigrate.server.checks as m; check = m.Checker.check\n"
        "def loud(*arguments):\n"
        "    print('printed'); os.write(1, b'written\\n'); subprocess.run(['echo', 'said'])\n"
        "    assert sys.stdin.read() == ''\n"
        "    return check(*arguments)\n"
        "m.Checker.check = loud\n"
        "from torchmigrate.__main__ import main; sys.argv = ['torchmigrate', 'server']; main()"
    )
    with Editor(tmp_path, program=[sys.executable, "-c", script]) as editor:
        name = editor.open(tmp_path / "a.py", "import torch\ntorch.ger(a, b)\n")
        assert len(editor.diagnostics(name)) == 1
        assert not editor.client.errors and not editor.logged


def test_editors_may_say_stdio() -> None:
    done = run(
        INITIALIZE, {"id": 2, "method": "shutdown"}, {"method": "exit"}, program=command("server", "--stdio")
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_without_pygls_it_says_what_is_missing() -> None:
    script = (
        "import sys; sys.modules['pygls'] = None; sys.argv = ['torchmigrate', 'server'];"
        "from torchmigrate.__main__ import main; main()"
    )
    done = run(program=[sys.executable, "-c", script])
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == (
        "error: `torchmigrate server` needs pygls: pip install 'torchmigrate[lsp]'\n"
    )


def test_other_commands_do_not_load_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\ntorch.ger(a, b)\n")
    script = (
        "import atexit, sys; sys.argv = ['torchmigrate', 'check', '--no-cache'];"
        "atexit.register(lambda: print(sorted({'pygls', 'lsprotocol', 'asyncio'} & set(sys.modules)), file=sys.stderr));"
        "from torchmigrate.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "[]"
