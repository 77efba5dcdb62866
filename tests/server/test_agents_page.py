"""docs/agents.md, executed. `python tests/server/test_agents_page.py --update` writes what the tools return."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
from harness.agent import Agent

from torchmigrate.server.mcp import MOST_TEXT, Tools

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "agents.md"
BLOCK = re.compile(r"^```json\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CALL = re.compile(r'^```json\n(\{"tool": .*?)^```\n\n```json\n(.*?)^```$', re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.one_python


def executed(text: str, errors: Path) -> str:
    """The text, with what the calls return in this checkout."""
    agent = Agent(ROOT, errors=errors)
    calls = [json.loads(match[1]) for match in CALL.finditer(text)]
    answers = iter(agent.calls(*((call["tool"], call["arguments"]) for call in calls)))

    def replaced(match: re.Match[str]) -> str:
        shown = json.dumps(next(answers).data, indent=2, ensure_ascii=False)
        return f"```json\n{match[1]}```\n\n```json\n{shown}\n```"

    return CALL.sub(replaced, text)


def test_every_call_returns_what_is_shown(tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    assert executed(text, tmp_path / "errors") == text, (
        "run `python tests/server/test_agents_page.py --update`"
    )


def configured() -> list[dict[str, Any]]:
    every = [json.loads(match[1]) for match in BLOCK.finditer(PAGE.read_text("utf-8"))]
    servers = [each.get("mcpServers") or each.get("servers") for each in every]
    return [each["torchmigrate"] for each in servers if each]


def test_the_configurations_start_the_server(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\ntorch.ger(a, b)\n")
    entries = configured()
    assert len(entries) == 3 and {entry["command"] for entry in entries} == {"torchmigrate"}
    for entry in entries:
        arguments = [each.replace("${workspaceFolder}", str(tmp_path)) for each in entry["args"]]
        assert arguments[0] == "mcp"
        agent = Agent(tmp_path, *arguments[1:], errors=tmp_path / "errors")
        assert agent.call("check").data["rules"] == {"TM110": 1}


def test_the_page_names_every_tool_argument_and_limit() -> None:
    import inspect

    text = PAGE.read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*?) \|$", text, re.MULTILINE))
    assert set(rows) == {"check", "explain", "fix", "plan"}
    for tool, listed in rows.items():
        names = set(inspect.signature(getattr(Tools, tool)).parameters) - {"self"}
        if tool == "fix":
            names -= set(inspect.signature(Tools.check).parameters)
        assert set(re.findall(r"`(\w+)`", listed)) - {"check"} == names
    assert f"{MOST_TEXT:,} characters" in text


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python tests/server/test_agents_page.py --update")
    with tempfile.TemporaryDirectory() as name:
        PAGE.write_text(executed(PAGE.read_text("utf-8"), Path(name) / "errors"), "utf-8")
