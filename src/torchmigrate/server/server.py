"""The language server: what it knows of its client, and what it tells it."""

from __future__ import annotations

import logging
import os
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, PyglsError
from pygls.lsp.server import LanguageServer

from torchmigrate import __version__
from torchmigrate.server import edits
from torchmigrate.server.checks import Checked
from torchmigrate.server.diagnostics import diagnostics_of
from torchmigrate.server.documents import Documents
from torchmigrate.server.options import SECTION, are_empty, read_options
from torchmigrate.server.schedule import Schedule, Tasks
from torchmigrate.server.worker import LATER, SOON

NAME = "torchmigrate"
# All cells of a notebook, so that they have the numbers that the user sees.
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook(kind) for kind in ("jupyter-notebook", "interactive")]
)


class Server(LanguageServer):
    """One client's server."""

    def __init__(self) -> None:
        super().__init__(NAME, __version__, notebook_document_sync=_NOTEBOOKS)
        self.schedule = Schedule(lambda uri: self.documents.snapshot(uri))
        self.tasks = Tasks()
        self.was_shut_down = False
        self.pulls = False  # whether the client asks for diagnostics
        self.first_options: object = None  # those that came with the start
        self.resolves = False  # whether it asks for the edits of an action when they are wanted
        self._said: set[str] = set()

    @property
    def documents(self) -> Documents:
        """What the client has open."""
        assert isinstance(self.workspace, Documents), "since it was initialized"
        return self.workspace

    # ---- messages to the client ---------------------------------------------------------------------

    def log(self, message: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """Write a line into the client's log."""
        self.window_log_message(types.LogMessageParams(kind, message))

    def show(self, message: str) -> None:
        """Show the user what is wrong, once."""
        if message not in self._said:
            self._said.add(message)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, message))

    def failed(self, error: Exception) -> None:
        """Tell of a mistake of ours, which costs one answer."""
        if os.environ.get("TORCHMIGRATE_TRACEBACK"):
            logging.getLogger(NAME).error("internal error", exc_info=error)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        self.log(f"internal error: {text}; please report it", types.MessageType.Error)

    def report_server_error(self, error: Exception, source: type[PyglsError | JsonRpcException]) -> None:
        """Log what pygls could not do: a message that is none, or a handler that failed."""
        if isinstance(error, JsonRpcInternalError) or not isinstance(error, (JsonRpcException, ValueError)):
            self.failed(error)
        else:
            self.log(f"a message of the editor was not understood: {type(error).__name__}")

    def start(self, coroutine: Any) -> None:
        """Run a coroutine in the background."""
        self.tasks.start(coroutine, self.failed)

    # ---- options -------------------------------------------------------------------------------------

    def use_options(self, given: object) -> None:
        """Take the options of the client, or if it has none those of the start, and check everything."""
        self.schedule.options, wrong = read_options(self.first_options if are_empty(given) else given)
        self._said.clear()
        for message in wrong:
            self.show(message)
        self.everything_changed()

    async def ask_options(self) -> None:
        """Ask the client for its options, and use them."""
        item = types.ConfigurationItem(section=SECTION)
        answer = await self.workspace_configuration_async(types.ConfigurationParams([item]))
        self.use_options(answer[0] if answer else None)

    @property
    def can_be_asked(self) -> bool:
        """Whether the client gives its options on request."""
        workspace = self.client_capabilities.workspace
        return bool(workspace and workspace.configuration)

    # ---- checks --------------------------------------------------------------------------------------

    def changed(self, uri: str, urgency: int = SOON) -> None:
        """Check a document that has changed, where the client does not ask for that."""
        self.schedule.changed(uri)
        self.start(self.push(uri, urgency))

    def everything_changed(self) -> None:
        """Check all open documents again."""
        self.schedule.everything_changed()
        self.schedule.roots = self.documents.roots
        for uri in self.documents.open_uris():
            self.start(self.push(uri, LATER))
        workspace = self.client_capabilities.workspace
        if self.pulls and workspace and workspace.diagnostics and workspace.diagnostics.refresh_support:
            self.start(self.workspace_diagnostic_refresh_async(None))

    async def push(self, uri: str, urgency: int) -> None:
        """Send what is found in a document, unless the client asks for that: for cells no client does."""
        if self.pulls and self.documents.get_notebook_document(notebook_uri=uri) is None:
            return
        checked = await self.schedule.settled(uri, urgency)
        if checked is None:
            return
        self.tell(checked)
        versions = {part.uri: part.version for part in checked.snapshot.parts}
        for part, found in diagnostics_of(checked).items():
            self.publish(part, found, versions[part])

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None = None) -> None:
        """Send the diagnostics of a text."""
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=version)
        )

    def tell(self, checked: Checked) -> None:
        """Say what could not be done, once."""
        for message in checked.said:
            if checked.source is None:
                self.show(message)
            elif message not in self._said:
                self._said.add(message)
                self.log(message)

    async def apply(self, checked: Checked, changes: edits.Changed, label: str) -> None:
        """Have the client change documents."""
        edit = edits.workspace_edit(changes, versioned=self.knows_versions)
        await self.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, label))

    @property
    def knows_versions(self) -> bool:
        """Whether the client takes edits for the version of a document."""
        workspace = self.client_capabilities.workspace
        return bool(workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes)

    @property
    def shows_markdown(self) -> bool:
        """Whether the client lays out what is hovered over."""
        text = self.client_capabilities.text_document
        formats = text.hover.content_format if text and text.hover else None
        return not formats or types.MarkupKind.Markdown in formats
