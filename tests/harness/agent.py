"""An agent: the client of the MCP SDK, which talks to `torchmigrate mcp` in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import anyio
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import ListToolsResult, TextContent

from harness.launcher import quick_command
from harness.project import environment

PATIENCE = 120  # seconds, on a busy machine


class Answer(NamedTuple):
    """The result of a call.

    data: its structured content. text: its text. failed: whether it is an error.
    """

    data: dict[str, Any]
    text: str
    failed: bool


class Agent:
    """An agent for which a server is started in a directory, anew for each session.

    Args:
        where: the working directory of the server.
        options: of the command.
        program: what starts the server.
        errors: the file for its stderr.
        variables: of its environment.
    """

    def __init__(
        self,
        where: Path,
        *options: str | Path,
        program: list[str] | None = None,
        errors: Path | None = None,
        **variables: str,
    ) -> None:
        self.where = where
        self.program = program or quick_command("mcp", *options, program="torchmigrate mcp")
        self.variables = variables
        self.errors = errors or where.parent / "stderr.txt"

    def call(self, tool: str, **arguments: Any) -> Answer:
        """Call a tool in a session of its own."""
        return self.calls((tool, arguments))[0]

    def calls(self, *calls: tuple[str, dict[str, Any]]) -> list[Answer]:
        """Call tools in one session; the server must write nothing to stderr."""

        async def session() -> list[Answer]:
            answers = []
            async with self._client() as client:
                for tool, arguments in calls:
                    result = await client.call_tool(tool, arguments)
                    (content,) = result.content
                    assert isinstance(content, TextContent)
                    answers.append(Answer(result.structured_content or {}, content.text, result.is_error))
            return answers

        return self._run(session)

    def tools(self) -> ListToolsResult:
        async def session() -> ListToolsResult:
            async with self._client() as client:
                return await client.list_tools()

        return self._run(session)

    def _client(self) -> Client:
        command, *arguments = self.program
        variables = environment(**self.variables)
        parameters = StdioServerParameters(command=command, args=arguments, env=variables, cwd=self.where)
        return Client(stdio_client(parameters, errlog=self.log), read_timeout_seconds=PATIENCE)

    def _run(self, session: Any) -> Any:
        with self.errors.open("w+", encoding="utf-8") as self.log:
            found = anyio.run(session)
            self.log.seek(0)
            written = self.log.read()
        assert written == "", written
        return found
